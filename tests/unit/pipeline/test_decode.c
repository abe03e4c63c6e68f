/* Pixels of frames that depend on the frames before them: decoded once, for any readers in any order. */
#include "service/pipeline/decode.h"

#include "tests/unit/dicom/deflated.h"
#include "tests/unit/dicom/peek_sample.h"

#include <errno.h>
#include <unistd.h>
#include <zlib.h>

enum {
    FRAMES = 64,
    SIDE = 256,
    THREADS = 8,
};

/* Puts the last frame lowest. */
static void
add_groups(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
    put_group(bytes, 0x00209116, 0x00200037, "1\\0\\0\\0\\1\\0");
    put_measures(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_sequence(bytes, 0x52009230);
    for (int i = 0; i < FRAMES; i++) {
        char position[32];
        snprintf(position, sizeof(position), "1\\2\\%d", 5 * (FRAMES - i));
        bytes_item(bytes);
        put_group(bytes, 0x00209113, 0x00200032, position);
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

static uint16_t
pixel_of(size_t frame, size_t i)
{
    return (uint16_t)(frame * 64 + i * i % 61);
}

static struct dicom_instance *
make_deflated(void)
{
    static uint16_t cells[FRAMES][SIDE * SIDE];
    for (size_t frame = 0; frame < FRAMES; frame++)
        for (size_t i = 0; i < SIDE * SIDE; i++)
            cells[frame][i] = pixel_of(frame, i);
    struct sample_image image = enhanced_image(SYNTAX_DEFLATED);
    image.frames = "64";
    image.rows = image.columns = SIDE;
    image.bits_stored = 16;
    image.high_bit = 15;
    image.pixels = cells;
    image.pixel_size = sizeof(cells);
    image.extra = add_groups;
    sample_write_deflated(&image, path, 0);
    return peek_or_fail();
}

/* ------------------------------------------------------------------------------ counting ---- */

static int64_t inflated; /* bytes, from all threads */

int __real_inflate(z_stream *zlib, int flush);
/* The linker wraps calls of libraries, too. They must be able to see this function. */
__attribute__((visibility("default"))) int __wrap_inflate(z_stream *zlib, int flush);

int
__wrap_inflate(z_stream *zlib, int flush)
{
    const uInt room = zlib->avail_out;
    const int rc = __real_inflate(zlib, flush);
    __atomic_fetch_add(&inflated, room - zlib->avail_out, __ATOMIC_RELAXED);
    return rc;
}

static int64_t
bytes_of_one_pass(const struct dicom_instance *instance)
{
    static uint16_t frame[SIDE * SIDE];
    struct dicom_pixels *pixels;
    struct error error;
    inflated = 0;
    ck_assert_int_eq(dicom_pixels_open(instance, &pixels, &error), 0);
    for (int i = 0; i < FRAMES; i++)
        ck_assert_int_eq(dicom_pixels_read(pixels, i, frame, &error), 0);
    dicom_pixels_close(pixels);
    return inflated;
}

/* Decodes a stack, and compares each voxel. Returns the inflated bytes. */
static int64_t
bytes_of_decoding(struct dicom_instance *instance, const struct geometry_stack *stack)
{
    const struct kernels_device_options options = {.backend = "cpu", .threads = 1};
    const struct kernels_demand demand = {.of = {NULL}};
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct error error;
    void *voxels;
    ck_assert_int_eq(kernels_device_open(&options, &device, &error), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, &error), 0);
    const struct image_extent extent = {SIDE, SIDE, FRAMES};
    ck_assert_int_eq(kernels_volume_begin(lane, extent, stack->pixel, &demand, &voxels, &error), 0);
    const struct decode_request request = {
        .instances = &instance, .stack = stack, .lane = lane, .voxels = voxels, .threads = THREADS};
    inflated = 0;
    ck_assert_int_eq(decode_stack(&request, &error), 0);
    for (size_t z = 0; z < FRAMES; z++)
        for (size_t i = 0; i < SIDE * SIDE; i++)
            if (((uint16_t *)voxels)[z * SIDE * SIDE + i] != pixel_of(FRAMES - 1 - z, i))
                ck_abort_msg("voxel %zu of plane %zu", i, z);
    kernels_lane_close(lane);
    kernels_device_close(device);
    return inflated;
}

/* -------------------------------------------------------------------------------------------- */

START_TEST(a_deflated_volume_is_inflated_once)
{
    static const struct geometry_limits limits = {.min_planes = 1, .spacing_tolerance = 0.01};
    const int64_t cells = (int64_t)FRAMES * SIDE * SIDE * (int64_t)sizeof(uint16_t);
    struct dicom_instance *instance = make_deflated();
    struct geometry_series *series;
    struct error error;
    ck_assert_int_eq(geometry_group(&instance, 1, &limits, &series, &error), 0);
    ck_assert_int_eq(series->stack_count, 1);
    const int64_t once = bytes_of_one_pass(instance);
    ck_assert_int_ge(once, cells);
    ck_assert_int_lt(once, cells + cells / 4); /* the data before the pixels */
    ck_assert_int_eq(bytes_of_decoding(instance, &series->stacks[0]), once);
    geometry_series_free(series);
    dicom_instance_free(instance);
}

END_TEST

enum { WIDE = 1300, HIGH = 4097 }; /* several pieces */

/* Rows of a large slice are read in several threads, and must all be where they belong. */
START_TEST(a_large_slice_is_read_in_pieces)
{
    static const struct geometry_limits limits = {.min_planes = 1, .spacing_tolerance = 0.01};
    const struct kernels_device_options options = {.backend = "cpu", .threads = 1};
    const struct kernels_demand demand = {.of = {NULL}};
    const struct image_extent extent = {WIDE, HIGH, 1};
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct geometry_series *series;
    struct error error;
    void *voxels;
    uint16_t *cells = malloc((size_t)WIDE * HIGH * sizeof *cells);
    ck_assert_ptr_nonnull(cells);
    for (size_t i = 0; i < (size_t)WIDE * HIGH; i++)
        cells[i] = (uint16_t)(i * i % 4093);
    struct sample_image image = SAMPLE_IMAGE;
    image.rows = HIGH;
    image.columns = WIDE;
    image.pixels = cells;
    image.pixel_size = (size_t)WIDE * HIGH * sizeof *cells;
    sample_write(&image, path);
    struct dicom_instance *instance = peek_or_fail();
    ck_assert_int_eq(geometry_group(&instance, 1, &limits, &series, &error), 0);
    ck_assert_int_eq(series->stack_count, 1);
    ck_assert_int_eq(kernels_device_open(&options, &device, &error), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, &error), 0);
    ck_assert_int_eq(kernels_volume_begin(lane, extent, series->stacks[0].pixel, &demand, &voxels, &error), 0);
    struct decode_request request = {
        .instances = &instance, .stack = &series->stacks[0], .lane = lane, .voxels = voxels, .threads = THREADS};
    ck_assert_int_eq(decode_stack(&request, &error), 0);
    ck_assert_int_eq(memcmp(voxels, cells, image.pixel_size), 0);
    /* The lane has all rows, each once. */
    ck_assert_int_eq(kernels_rows_ready(lane, 0, 0, 1, &error), -EALREADY);
    ck_assert_int_eq(kernels_volume_begin(lane, extent, series->stacks[0].pixel, &demand, &voxels, &error), 0);
    ck_assert_int_eq(truncate(path, instance->file_size - 4000), 0);
    ck_assert_int_ne(decode_stack(&request, &error), 0);
    ck_assert_int_eq(error.code, CODE_FILE_UNREADABLE);
    kernels_lane_close(lane);
    kernels_device_close(device);
    geometry_series_free(series);
    dicom_instance_free(instance);
    free(cells);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("pipeline_decode");
    TCase *tests = new_case(suite, "decode");
    tcase_add_test(tests, a_deflated_volume_is_inflated_once);
    tcase_add_test(tests, a_large_slice_is_read_in_pieces);
    return suite_run(suite);
}
