/* test_slices.c - the brick file of the slice viewer: planes equal the volume, or its rounded values; damage of each byte is found. */
#include "service/common/slices/slices.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEGMENTS = 3 };

/* A volume of any size with random voxels and masks. */
struct case_of_slices {
    struct slices_volume volume;
    struct slices_segment segments[SEGMENTS];
    struct image_rescale rescales[64];
    uint16_t *values; /* the stored bits */
    uint8_t *bytes;   /* of 8-bit pixels */
    struct image_mask masks[SEGMENTS];
    uint64_t *bits[SEGMENTS];
};

static uint32_t
draw(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static int64_t
voxel_at(const struct slices_volume *volume, const int32_t at[3])
{
    return at[0] + volume->size[0] * (at[1] + (int64_t)volume->size[1] * at[2]);
}

/* Sets the segments: one that is a box, one of single voxels, one of everything. */
static void
case_fill_masks(struct case_of_slices *made, uint32_t *state)
{
    const int32_t *size = made->volume.size;
    const int64_t words = (size[0] + 63) / 64;
    for (int s = 0; s < SEGMENTS; s++) {
        uint64_t *bits = made->bits[s] = calloc((size_t)(words * size[1] * size[2]), sizeof *bits);
        int64_t count = 0;
        for (int32_t z = 0; z < size[2]; z++)
            for (int32_t y = 0; y < size[1]; y++)
                for (int32_t x = 0; x < size[0]; x++) {
                    const bool within = s == 0   ? x >= size[0] / 3 && y >= size[1] / 4 && z <= size[2] / 2
                                        : s == 1 ? draw(state) % 50 == 0
                                                 : true;
                    bits[((int64_t)z * size[1] + y) * words + x / 64] |= (uint64_t)within << x % 64;
                    count += within;
                }
        made->masks[s] = (struct image_mask){bits, words, count};
    }
}

static struct case_of_slices *
case_make(const int32_t size[3], enum image_pixel pixel, uint32_t seed)
{
    struct case_of_slices *made = calloc(1, sizeof *made);
    const size_t voxels = (size_t)size[0] * (size_t)size[1] * (size_t)size[2];
    uint32_t state = seed;
    made->volume = (struct slices_volume){.pixel = pixel,
                                          .spacing = {0.5, 0.75, 2},
                                          .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                          .window = {0, 60}, /* too narrow for a step of 2 */
                                          .unit = "[hnsf'U]",
                                          .rescale_count = 1,
                                          .rescales = made->rescales,
                                          .segment_count = SEGMENTS,
                                          .segments = made->segments};
    memcpy(made->volume.size, size, sizeof made->volume.size);
    for (int i = 0; i < 64; i++)
        made->rescales[i] = (struct image_rescale){1 + i, -1024};
    for (int s = 0; s < SEGMENTS; s++) {
        snprintf(made->segments[s].label, SLICES_LABEL, "Segment %d \xe5\xa4\x96", s);
        memcpy(made->segments[s].rgb, (const uint8_t[]){255, (uint8_t)s, 7}, 3);
    }
    made->values = calloc(voxels, 2);
    made->bytes = calloc(voxels, 1);
    for (size_t i = 0; i < voxels; i++) {
        /* Even seeds: a block of one value, then ramps with noise. Odd ones: any values, mostly like the neighbour. */
        const int32_t x = (int32_t)(i % (size_t)size[0]), y = (int32_t)(i / (size_t)size[0] % (size_t)size[1]);
        const int32_t z = (int32_t)(i / ((size_t)size[0] * (size_t)size[1]));
        const uint32_t kind = draw(&state) % 16, noise = draw(&state) % (y < 16 ? 3 : 200);
        const uint32_t ramp = x < 16 && z < 16 ? 7 : (uint32_t)(9 * y * (z % 3) - 500 * z + x) + noise;
        const uint32_t like = kind == 0 || i == 0 ? draw(&state) : made->values[i - 1] + draw(&state) % 9 - 4;
        const uint32_t value = seed % 2 ? like : ramp;
        made->values[i] = pixel == IMAGE_UINT8 ? (uint8_t)value : (uint16_t)value;
        made->bytes[i] = (uint8_t)value;
    }
    case_fill_masks(made, &state);
    return made;
}

static void
case_free(struct case_of_slices *made)
{
    for (int s = 0; s < SEGMENTS; s++)
        free(made->bits[s]);
    free(made->values);
    free(made->bytes);
    free(made);
}

static int
case_write(const struct case_of_slices *made, int threads)
{
    const struct image_mask *masks[SEGMENTS];
    for (int s = 0; s < SEGMENTS; s++)
        masks[s] = &made->masks[s];
    const struct slices_request request = {
        &made->volume, made->volume.pixel == IMAGE_UINT8 ? (const void *)made->bytes : made->values, masks, threads};
    const int fd = memfd_create("slices", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(slices_write(&request, fd), 0);
    return fd;
}

/* Compares a plane with the volume, voxel by voxel. */
static void
must_be_plane(const struct case_of_slices *made, struct slices *file, enum slices_view view, int32_t at)
{
    const struct slices_layout layout = slices_layout_of(&made->volume, view);
    const int32_t *size = made->volume.size;
    struct slices_plane plane;
    struct error error = {0};
    int32_t voxel[3];
    ck_assert_msg(slices_read_plane(file, &layout, at, &plane, &error) == 0, "%s", error.message);
    ck_assert_int_eq(plane.columns, size[layout.across]);
    ck_assert_int_eq(plane.rows, size[layout.down]);
    voxel[layout.through] = layout.from_end ? size[layout.through] - 1 - at : at;
    for (int32_t y = 0; y < plane.rows; y++) {
        voxel[layout.down] = layout.from_below ? plane.rows - 1 - y : y;
        for (int32_t x = 0; x < plane.columns; x++) {
            voxel[layout.across] = layout.from_right ? plane.columns - 1 - x : x;
            uint32_t found = 0, wanted = 0;
            for (int32_t layer = 0; layer < plane.layer_count; layer++)
                found |= (uint32_t)slices_has(&plane, layer, x, y) << plane.layer_segments[layer];
            for (uint32_t s = 0; s < SEGMENTS; s++)
                wanted |= (uint32_t)image_has(made->bits[s], size[0], voxel[1] + (int64_t)size[1] * voxel[2], voxel[0])
                          << s;
            if (plane.values[y * plane.columns + x] != made->values[voxel_at(&made->volume, voxel)] || found != wanted)
                ck_abort_msg("view %d, plane %d, pixel %d %d: %d and %#x", view, at, x, y,
                             plane.values[y * plane.columns + x], found);
        }
    }
    slices_plane_free(&plane);
}

static void
must_have_all_planes(const struct case_of_slices *made, int fd)
{
    struct slices *file;
    struct error error = {0};
    ck_assert_msg(slices_open(fd, &file, &error) == 0, "%s", error.message);
    for (enum slices_view view = 0; view < SLICES_VIEWS; view++)
        for (int32_t at = 0; at < made->volume.size[slices_layout_of(&made->volume, view).through]; at++)
            must_be_plane(made, file, view, at);
    /* The same with kept blocks: in order, then in any order and view. */
    uint32_t state = 11;
    ck_assert_int_eq(slices_keep(file), 0);
    for (enum slices_view view = 0; view < SLICES_VIEWS; view++)
        for (int32_t at = 0; at < made->volume.size[slices_layout_of(&made->volume, view).through]; at++)
            must_be_plane(made, file, view, at);
    for (int i = 0; i < 100; i++) {
        const enum slices_view view = draw(&state) % SLICES_VIEWS;
        const struct slices_layout layout = slices_layout_of(&made->volume, view);
        const int32_t at = (int32_t)(draw(&state) % (uint32_t)made->volume.size[layout.through]);
        must_be_plane(made, file, view, at);
        ck_assert_int_eq(slices_kept_distance(file, &layout, at), 0);
    }
    slices_close(file);
}

static const enum image_pixel pixels[] = {IMAGE_UINT8, IMAGE_INT16, IMAGE_UINT16};

static const int32_t sizes[][3] = {{1, 1, 1},   {16, 16, 16}, {17, 33, 5}, {100, 3, 40},
                                   {65, 15, 2}, {2, 70, 31},  {31, 1, 17}, {48, 32, 16}};

START_TEST(every_plane_equals_the_volume)
{
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct case_of_slices *made = case_make(sizes[s], pixels[_i], (uint32_t)s + 1);
        const int fd = case_write(made, 2);
        must_have_all_planes(made, fd);
        close(fd);
        case_free(made);
    }
}

END_TEST

/* ------------------------------------------------------------------------------ rounding ---- */

/* Reads all axial planes. Returns stored values, which the caller must free. */
static uint16_t *
values_of(int fd, int32_t *step, double *error_max)
{
    struct slices *file;
    struct error error = {0};
    ck_assert_msg(slices_open(fd, &file, &error) == 0, "%s", error.message);
    const struct slices_volume *volume = slices_volume_of(file);
    const struct slices_layout layout = slices_layout_of(volume, SLICES_AXIAL);
    const size_t slice = (size_t)volume->size[0] * (size_t)volume->size[1];
    uint16_t *values = malloc(slice * (size_t)volume->size[2] * sizeof *values);
    for (int32_t z = 0; z < volume->size[2]; z++) {
        struct slices_plane plane;
        ck_assert_int_eq(slices_read_plane(file, &layout, z, &plane, &error), 0);
        memcpy(values + slice * (size_t)z, plane.values, slice * sizeof *values);
        slices_plane_free(&plane);
    }
    *step = volume->step;
    *error_max = slices_error(volume);
    slices_close(file);
    return values;
}

static int32_t
number_of(uint16_t stored, enum image_pixel pixel)
{
    return pixel == IMAGE_INT16 ? (int16_t)stored : stored;
}

/* Returns the nearest multiple of the step that the type has, or the type's largest value if that is nearer. */
static int32_t
nearest(int32_t value, int32_t step, enum image_pixel pixel)
{
    const int32_t most = pixel == IMAGE_INT16 ? INT16_MAX : pixel == IMAGE_UINT8 ? UINT8_MAX : UINT16_MAX;
    int32_t found = value - ((value % step) + step) % step;
    if (2 * (value - found) >= step)
        found += step;
    return found > most ? most : found;
}

/* Returns the smallest step by which a block of the reference is the one that was read. */
static int32_t
step_of_block(const struct case_of_slices *made, const uint16_t *values, const int32_t first[3])
{
    const struct slices_volume *volume = &made->volume;
    for (int32_t step = 1; step <= 1 << 12; step *= 2) {
        bool equal = true;
        for (int32_t z = first[2]; equal && z < first[2] + 16 && z < volume->size[2]; z++)
            for (int32_t y = first[1]; equal && y < first[1] + 16 && y < volume->size[1]; y++)
                for (int32_t x = first[0]; equal && x < first[0] + 16 && x < volume->size[0]; x++) {
                    const int64_t i = voxel_at(volume, (const int32_t[]){x, y, z});
                    equal = nearest(number_of(made->values[i], volume->pixel), step, volume->pixel) ==
                            number_of(values[i], volume->pixel);
                }
        if (equal)
            return step;
    }
    ck_abort_msg("the block at %d %d %d is rounded by no step", first[0], first[1], first[2]);
}

/* Compares each block with plain rounding. The largest step must be that of the head. */
static void
must_be_rounded(const struct case_of_slices *made, const uint16_t *values, int32_t step)
{
    int32_t largest = 1, first[3];
    const int64_t voxels = (int64_t)made->volume.size[0] * made->volume.size[1] * made->volume.size[2];
    for (first[2] = 0; first[2] < made->volume.size[2]; first[2] += 16)
        for (first[1] = 0; first[1] < made->volume.size[1]; first[1] += 16)
            for (first[0] = 0; first[0] < made->volume.size[0]; first[0] += 16) {
                const int32_t of_block = step_of_block(made, values, first);
                largest = of_block > largest ? of_block : largest;
            }
    ck_assert_int_eq(largest, step);
    for (int64_t i = 0; i < voxels; i++) {
        const int32_t error = number_of(made->values[i], made->volume.pixel) - number_of(values[i], made->volume.pixel);
        ck_assert_int_le(2 * abs(error), step);
    }
}

/* Replaces the values: Gaussian noise; any values; only the ends of the type and their neighbours. */
static void
case_fill_noise(struct case_of_slices *made, int kind, double sigma)
{
    const int64_t voxels = (int64_t)made->volume.size[0] * made->volume.size[1] * made->volume.size[2];
    const enum image_pixel pixel = made->volume.pixel;
    const int32_t least = pixel == IMAGE_INT16 ? INT16_MIN : 0;
    const int32_t most = pixel == IMAGE_INT16 ? INT16_MAX : pixel == IMAGE_UINT8 ? UINT8_MAX : UINT16_MAX;
    uint32_t state = (uint32_t)kind + 77;
    for (int64_t i = 0; i < voxels; i++) {
        double noise = -6;
        for (int k = 0; k < 12; k++)
            noise += (draw(&state) % 65536) / 65536.0;
        const int32_t middle = pixel == IMAGE_UINT8 ? 128 : 1000, near = (int32_t)(draw(&state) % 9);
        int32_t value = kind == 0   ? middle + (int32_t)(sigma * noise)
                        : kind == 1 ? least + (int32_t)(draw(&state) % (uint32_t)(most - least + 1))
                        : near % 2  ? least + near
                                    : most - near;
        value = value < least ? least : value > most ? most : value;
        made->values[i] = (uint16_t)value;
        made->bytes[i] = (uint8_t)value;
    }
}

START_TEST(noise_is_rounded_to_the_nearest_multiples)
{
    static const int32_t whole[3] = {80, 48, 48}, others[3] = {83, 50, 40};
    const int kind = _i / 3;
    struct case_of_slices *made = case_make(kind == 0 ? whole : others, pixels[_i % 3], 2);
    const bool is_small = made->volume.pixel == IMAGE_UINT8;
    case_fill_noise(made, kind, is_small ? 30 : 100);
    made->rescales[0] = (struct image_rescale){-0.5, 3};
    memcpy(made->volume.window, is_small ? (const double[]){0, 300} : (const double[]){-20000, 20000},
           sizeof made->volume.window);
    for (int s = 0; s < SEGMENTS; s++)
        made->masks[s].voxels = 0; /* an empty mask needs no bytes */
    const int fd = case_write(made, 2);
    int32_t step;
    double error_max;
    uint16_t *values = values_of(fd, &step, &error_max);
    must_be_rounded(made, values, step);
    ck_assert_int_gt(step, 1);
    ck_assert_double_eq(error_max, 0.5 * step / 2);
    if (kind == 0) /* blocks of any values would need steps above the limit */
        ck_assert_int_le(4 * lseek(fd, 0, SEEK_END), 2 * whole[0] * whole[1] * whole[2]);
    free(values);
    close(fd);
    case_free(made);
}

END_TEST

/* By the definition: a step is at most 8 of 256 greys of the window, after the steepest rescale. */
START_TEST(the_window_limits_the_step)
{
    static const double widths[] = {63, 64, 127, 128, 1500, 1e9};
    static const int32_t steps[] = {1, 2, 2, 4, 32, 4096};
    struct case_of_slices *made = case_make((const int32_t[]){40, 40, 40}, IMAGE_UINT16, 2);
    int32_t step;
    double error_max;
    case_fill_noise(made, 1, 0);
    made->volume.rescale_count = 40;
    for (int i = 0; i < 40; i++)
        made->rescales[i] = (struct image_rescale){i == 7 ? -1 : 0.25, 0};
    made->volume.window[0] = -1000;
    made->volume.window[1] = widths[_i] - 1000;
    const int fd = case_write(made, 1);
    uint16_t *values = values_of(fd, &step, &error_max);
    ck_assert_int_eq(step, steps[_i]);
    ck_assert_double_eq(error_max, step / 2);
    must_be_rounded(made, values, step);
    free(values);
    close(fd);
    case_free(made);
}

END_TEST

/* A quarter of its blocks is noise that would be rounded in a volume of noise. */
START_TEST(a_volume_that_fits_is_exact)
{
    struct case_of_slices *made = case_make((const int32_t[]){64, 64, 64}, IMAGE_INT16, 2);
    const int64_t slice = 64 * 64;
    int32_t step;
    double error_max;
    case_fill_noise(made, 0, 100);
    for (int64_t i = 16 * slice; i < 64 * slice; i++)
        made->values[i] = 50;
    made->volume.window[1] = 100000;
    for (int s = 0; s < SEGMENTS; s++)
        made->masks[s].voxels = 0;
    const int fd = case_write(made, 3);
    uint16_t *values = values_of(fd, &step, &error_max);
    ck_assert_int_eq(step, 1);
    ck_assert_double_eq(error_max, 0);
    ck_assert_mem_eq(values, made->values, (size_t)slice * 64 * sizeof *values);
    free(values);
    close(fd);
    case_free(made);
}

END_TEST

/* The directions that the stack's axes can have: 6 orders and 8 signs. The expected picture is from the rule of readers. */
START_TEST(views_show_the_patient_as_readers_expect)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    /* Of each view: the patient axes to the right, down, and with the number; and which end is first. */
    static const struct {
        int axes[3];
        bool reversed[3];
        const char *edges[4];
    } wanted[SLICES_VIEWS] = {{{0, 1, 2}, {false, false, false}, {"R", "L", "A", "P"}},
                              {{0, 2, 1}, {false, true, false}, {"R", "L", "H", "F"}},
                              {{1, 2, 0}, {false, true, false}, {"A", "P", "H", "F"}}};

    for (int order = 0; order < 6; order++) {
        for (int signs = 0; signs < 8; signs++) {
            struct slices_volume volume = {.size = {7, 9, 11}, .has_geometry = true, .spacing = {1, 2, 3}};
            int stack_axis[3];
            for (int i = 0; i < 3; i++) {
                volume.axes[3 * i + orders[order][i]] = signs >> i & 1 ? -1 : 1;
                stack_axis[orders[order][i]] = i;
            }
            for (enum slices_view view = 0; view < SLICES_VIEWS; view++) {
                const struct slices_layout layout = slices_layout_of(&volume, view);
                const int axes[3] = {layout.across, layout.down, layout.through};
                const bool reversed[3] = {layout.from_right, layout.from_below, layout.from_end};
                char edges[4][4], place[SLICES_PLACE];
                for (int i = 0; i < 3; i++) {
                    const int axis = stack_axis[wanted[view].axes[i]];
                    ck_assert_int_eq(axes[i], axis);
                    ck_assert_int_eq(reversed[i], (signs >> axis & 1) != wanted[view].reversed[i]);
                }
                slices_edges(&volume, &layout, edges);
                for (int i = 0; i < 4; i++)
                    ck_assert_str_eq(edges[i], wanted[view].edges[i]);
                /* The origin is 0, so the planes are on the side to which the axis points. */
                const bool against = signs >> layout.through & 1;
                slices_place(&volume, &layout, 2, place);
                char text[SLICES_PLACE];
                const double mm = volume.spacing[layout.through] * (against ? volume.size[layout.through] - 3 : 2);
                snprintf(text, sizeof text, "%c%.1f mm", (against ? "FAR" : "HPL")[view], mm);
                ck_assert_str_eq(place, text);
            }
        }
    }
}

END_TEST

START_TEST(without_geometry_the_stack_is_axial)
{
    const struct slices_volume volume = {.size = {7, 9, 11}};
    const struct slices_layout layout = slices_layout_of(&volume, SLICES_AXIAL);
    char edges[4][4], place[SLICES_PLACE];
    ck_assert(layout.across == 0 && layout.down == 1 && layout.through == 2);
    ck_assert(!layout.from_right && !layout.from_below && !layout.from_end);
    slices_edges(&volume, &layout, edges);
    slices_place(&volume, &layout, 0, place);
    ck_assert_str_eq(edges[0], "");
    ck_assert_str_eq(place, "");
}

END_TEST

/* A 2-D image has no geometry, and may have a spacing. */
START_TEST(a_2d_image_may_have_a_spacing)
{
    struct case_of_slices *made = case_make((const int32_t[]){20, 18, 1}, IMAGE_UINT8, 1);
    struct error error = {0};
    made->volume.in_mm = _i;
    const int fd = case_write(made, 1);
    struct slices *file;
    ck_assert_int_eq(slices_open(fd, &file, &error), 0);
    ck_assert(!slices_volume_of(file)->has_geometry);
    ck_assert_int_eq(slices_volume_of(file)->in_mm, _i);
    slices_close(file);
    close(fd);
    case_free(made);
}

END_TEST

START_TEST(all_of_the_head_is_read_back)
{
    struct case_of_slices *made = case_make((const int32_t[]){20, 18, 9}, IMAGE_INT16, 5);
    struct slices_volume *volume = &made->volume;
    volume->monochrome1 = volume->has_geometry = true;
    volume->rescale_count = volume->size[2];
    memcpy(volume->origin, (const double[]){-1.5, 2, 1e6}, sizeof volume->origin);
    memcpy(volume->axes, (const double[]){0, 1, 0, 0, 0, -1, -1, 0, 0}, sizeof volume->axes);
    const int fd = case_write(made, 1);
    struct slices *file;
    struct error error = {0};
    ck_assert_int_eq(slices_open(fd, &file, &error), 0);
    const struct slices_volume *read = slices_volume_of(file);
    ck_assert_mem_eq(read->size, volume->size, sizeof read->size);
    ck_assert_int_eq(read->pixel, volume->pixel);
    ck_assert(read->monochrome1 && read->has_geometry && read->in_mm);
    ck_assert_mem_eq(read->spacing, volume->spacing, sizeof read->spacing);
    ck_assert_mem_eq(read->origin, volume->origin, sizeof read->origin);
    ck_assert_mem_eq(read->axes, volume->axes, sizeof read->axes);
    ck_assert_mem_eq(read->window, volume->window, sizeof read->window);
    ck_assert_str_eq(read->unit, volume->unit);
    ck_assert_int_eq(read->rescale_count, volume->rescale_count);
    ck_assert_mem_eq(read->rescales, volume->rescales, (size_t)volume->size[2] * sizeof *read->rescales);
    ck_assert_int_eq(read->segment_count, SEGMENTS);
    for (int s = 0; s < SEGMENTS; s++) {
        ck_assert_str_eq(read->segments[s].label, made->segments[s].label);
        ck_assert_mem_eq(read->segments[s].rgb, made->segments[s].rgb, 3);
    }
    must_have_all_planes(made, fd);
    slices_close(file);
    close(fd);
    case_free(made);
}

END_TEST

static uint8_t *
bytes_of(int fd, size_t *size)
{
    *size = (size_t)lseek(fd, 0, SEEK_END);
    uint8_t *bytes = malloc(*size);
    ck_assert_int_eq(pread(fd, bytes, *size, 0), (ssize_t)*size);
    return bytes;
}

START_TEST(the_bytes_do_not_depend_on_the_threads)
{
    struct case_of_slices *made = case_make((const int32_t[]){200, 130, 90}, IMAGE_INT16, 9);
    const int one = case_write(made, 1), many = case_write(made, 7);
    size_t sizes_of[2];
    uint8_t *first = bytes_of(one, &sizes_of[0]), *second = bytes_of(many, &sizes_of[1]);
    ck_assert_uint_eq(sizes_of[0], sizes_of[1]);
    ck_assert_mem_eq(first, second, sizes_of[0]);
    free(first);
    free(second);
    close(one);
    close(many);
    case_free(made);
}

END_TEST

/* Returns whether a file is refused, when it is opened or when all of its planes are read. */
static bool
is_refused(int fd, const struct slices_volume *volume)
{
    struct slices *file;
    struct error error = {0};
    int rc = slices_open(fd, &file, &error);
    for (enum slices_view view = 0; rc == 0 && view < SLICES_VIEWS; view++) {
        const struct slices_layout layout = slices_layout_of(volume, view);
        for (int32_t at = 0; rc == 0 && at < volume->size[layout.through]; at += 16) {
            struct slices_plane plane;
            rc = slices_read_plane(file, &layout, at, &plane, &error);
            slices_plane_free(&plane);
        }
    }
    slices_close(file);
    ck_assert(rc == 0 || (rc == -EBADMSG && error.code == CODE_SLICES_DAMAGED && error.message[0]));
    return rc != 0;
}

START_TEST(damage_of_each_byte_is_found)
{
    struct case_of_slices *made = case_make((const int32_t[]){18, 17, 3}, IMAGE_INT16, 3);
    const int fd = case_write(made, 1);
    size_t size;
    uint8_t *bytes = bytes_of(fd, &size);
    ck_assert(!is_refused(fd, &made->volume));
    for (size_t i = 0; i < size; i++) {
        const uint8_t other = (uint8_t)(bytes[i] ^ 0x11);
        ck_assert_int_eq(pwrite(fd, &other, 1, (off_t)i), 1);
        ck_assert_msg(is_refused(fd, &made->volume), "byte %zu", i);
        ck_assert_int_eq(pwrite(fd, &bytes[i], 1, (off_t)i), 1);
    }
    for (size_t i = 0; i < size; i++) {
        ck_assert_int_eq(ftruncate(fd, (off_t)i), 0);
        ck_assert_msg(is_refused(fd, &made->volume), "cut to %zu", i);
        ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
        ck_assert_int_eq(pwrite(fd, bytes, size, 0), (ssize_t)size);
    }
    ck_assert_int_eq(pwrite(fd, "x", 1, (off_t)size), 1);
    ck_assert_msg(is_refused(fd, &made->volume), "one byte more");
    free(bytes);
    close(fd);
    case_free(made);
}

END_TEST

/* The version is a digit of the file's first 8 bytes. */
START_TEST(another_version_is_refused_by_name)
{
    struct case_of_slices *made = case_make((const int32_t[]){18, 17, 3}, IMAGE_INT16, 3);
    const int fd = case_write(made, 1);
    struct slices *file;
    struct error error = {0};
    for (const char *version = "12"; *version; version++) {
        ck_assert_int_eq(pwrite(fd, version, 1, 7), 1);
        ck_assert_int_eq(slices_open(fd, &file, &error), -EBADMSG);
        ck_assert_int_eq(error.code, CODE_SLICES_VERSION);
        ck_assert_ptr_nonnull(strstr(error.message, "noctule retry"));
        ck_assert_ptr_null(file);
    }
    close(fd);
    case_free(made);
}

END_TEST

/* The web UI opens a file before it reads planes. In between, the file may be cut off. */
START_TEST(a_file_that_is_cut_off_while_open_is_refused)
{
    struct case_of_slices *made = case_make((const int32_t[]){18, 17, 3}, IMAGE_INT16, 3);
    const int fd = case_write(made, 1);
    const struct slices_layout layout = slices_layout_of(&made->volume, SLICES_AXIAL);
    struct slices *file;
    struct slices_plane plane;
    struct error error = {0};
    ck_assert_int_eq(slices_open(fd, &file, &error), 0);
    ck_assert_int_eq(ftruncate(fd, lseek(fd, 0, SEEK_END) - 1), 0);
    ck_assert_int_eq(slices_read_plane(file, &layout, 0, &plane, &error), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_SLICES_DAMAGED);
    slices_plane_free(&plane);
    slices_close(file);
    close(fd);
    case_free(made);
}

END_TEST

START_TEST(only_regular_files_are_read)
{
    struct slices *file;
    struct error error = {0};
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(slices_open(ends[0], &file, &error), -EBADMSG);
    ck_assert_ptr_null(file);
    close(ends[0]);
    close(ends[1]);
    ck_assert_int_eq(slices_open(ends[0], &file, &error), -EBADF);
}

END_TEST

START_TEST(a_write_error_is_returned)
{
    struct case_of_slices *made = case_make((const int32_t[]){18, 17, 3}, IMAGE_INT16, 3);
    const struct image_mask *masks[SEGMENTS] = {&made->masks[0], &made->masks[1], &made->masks[2]};
    const struct slices_request request = {&made->volume, made->values, masks, 1};
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(slices_write(&request, ends[1]), -ESPIPE);
    close(ends[0]);
    close(ends[1]);
    case_free(made);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("slices");
    TCase *tests = tcase_create("slices");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, every_plane_equals_the_volume, 0, 3);
    tcase_add_loop_test(tests, noise_is_rounded_to_the_nearest_multiples, 0, 9);
    tcase_add_loop_test(tests, the_window_limits_the_step, 0, 6);
    tcase_add_test(tests, a_volume_that_fits_is_exact);
    tcase_add_test(tests, views_show_the_patient_as_readers_expect);
    tcase_add_test(tests, without_geometry_the_stack_is_axial);
    tcase_add_test(tests, all_of_the_head_is_read_back);
    tcase_add_loop_test(tests, a_2d_image_may_have_a_spacing, 0, 2);
    tcase_add_test(tests, the_bytes_do_not_depend_on_the_threads);
    tcase_add_test(tests, damage_of_each_byte_is_found);
    tcase_add_test(tests, another_version_is_refused_by_name);
    tcase_add_test(tests, a_file_that_is_cut_off_while_open_is_refused);
    tcase_add_test(tests, only_regular_files_are_read);
    tcase_add_test(tests, a_write_error_is_returned);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
