/*
 * test_structures.c - structure sets of masks: the reader and the kernel of contours restore the mask, voxel for
 * voxel, on planes of any place, and with holes of both kinds.
 */
#include "dicom/objects/rtstruct/rtstruct_object.h"
#include "kernels/mask/contours.h"
#include "tests/unit/dicom/seg_sample.h"
#include "tests/unit/suite.h"

#include <math.h>

static struct seg_sample sample;
static struct rtstruct_request request;
static const char *const types[SEG_SAMPLE_MAX_SEGMENTS] = {"ORGAN", "", "GTV", "", "", "", "", ""};
static double origins[3 * 64];
static struct image_planes planes;
static uint64_t state = 1;

static uint32_t
random_below(uint32_t end)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % end);
}

static double
random_real(void)
{
    return random_below(1u << 30) / (double)(1u << 30);
}

/* ---- planes ---- */

static void
make(int32_t columns, int32_t rows, int32_t count, int32_t segments)
{
    const struct seg_sample_shape shape = {.columns = columns, .rows = rows, .planes = count, .segments = segments};
    seg_sample_make(&sample, &shape);
    request = (struct rtstruct_request){
        .seg = &sample.request, .types = types, .series_description = "", .series_number = 9003};
}

/* Turns the planes about three axes, shears and moves them, and spaces them unevenly. */
static void
turn(void)
{
    const double a = 6 * random_real(), b = 6 * random_real(), c = 6 * random_real(), shear = random_real() - 0.5;
    const double axes[6] = {cos(a) * cos(b),
                            sin(a) * cos(b),
                            -sin(b),
                            cos(a) * sin(b) * sin(c) - sin(a) * cos(c),
                            sin(a) * sin(b) * sin(c) + cos(a) * cos(c),
                            cos(b) * sin(c)};
    const double normal[3] = {axes[1] * axes[5] - axes[2] * axes[4], axes[2] * axes[3] - axes[0] * axes[5],
                              axes[0] * axes[4] - axes[1] * axes[3]};
    const double spacing[2] = {0.2 + 5 * random_real(), 0.2 + 5 * random_real()};
    double height = 0;
    for (int32_t p = 0; p < sample.stack.plane_count; p++) {
        struct dicom_frame *frame = &sample.frames[p];
        height += 0.5 + 3 * random_real();
        memcpy(frame->orientation, axes, sizeof(axes));
        memcpy(frame->pixel_spacing, spacing, sizeof(spacing));
        for (int k = 0; k < 3; k++)
            frame->position[k] =
                1500 * (random_real() > 0.5 ? shear : -0.1) + height * (normal[k] + shear * axes[3 + k]);
        if (p > 0) /* the same place for all planes */
            for (int k = 0; k < 3; k++)
                frame->position[k] = sample.frames[0].position[k] +
                                     (height - sample.stack.planes[0].position) * (normal[k] + shear * axes[3 + k]);
        else
            sample.stack.planes[0].position = height;
    }
}

static void
describe_planes(void)
{
    const struct dicom_frame *first = &sample.frames[0];
    for (int32_t p = 0; p < sample.stack.plane_count; p++)
        memcpy(origins + 3 * p, derived_plane_frame(&sample.request.source, p)->position, 3 * sizeof(double));
    planes = (struct image_planes){.extent = {sample.stack.columns, sample.stack.rows, sample.stack.plane_count},
                                   .spacing = {first->pixel_spacing[1], first->pixel_spacing[0]},
                                   .thickness = 1,
                                   .origins = origins};
    memcpy(planes.axes, first->orientation, sizeof(planes.axes));
}

/* ---- masks ---- */

static bool
has(int32_t segment, int32_t x, int32_t y, int32_t z)
{
    const struct seg_segment *of = &sample.segments[segment];
    return x >= 0 && y >= 0 && x < sample.stack.columns && y < sample.stack.rows &&
           of->bits[(z * sample.stack.rows + y) * of->words_per_row + x / 64] >> x % 64 & 1;
}

static void
flip(int32_t segment, int32_t x, int32_t y, int32_t z)
{
    const int64_t row = (sample.segments[segment].bits - sample.words) +
                        ((int64_t)z * sample.stack.rows + y) * sample.segments[segment].words_per_row;
    if (x >= 0 && y >= 0 && x < sample.stack.columns && y < sample.stack.rows)
        sample.words[row + x / 64] ^= UINT64_C(1) << x % 64;
}

/* Draws a plane from rows of text, in which '#' is a voxel. */
static void
draw(int32_t segment, int32_t z, const char *const *rows)
{
    for (int32_t y = 0; rows[y]; y++)
        for (int32_t x = 0; rows[y][x]; x++)
            if (rows[y][x] == '#')
                seg_sample_set(&sample, segment, x, y, z);
}

/* Noise of any density, with flipped discs and boxes: holes, islands in them, bridges and corners. */
static void
scatter(int32_t segment, int32_t z)
{
    const uint32_t density = random_below(4) ? 0 : random_below(101);
    for (int32_t y = 0; y < sample.stack.rows; y++)
        for (int32_t x = 0; x < sample.stack.columns; x++)
            if (random_below(100) < density)
                flip(segment, x, y, z);
    for (uint32_t i = random_below(12); i > 0; i--) {
        const int32_t x0 = (int32_t)random_below((uint32_t)sample.stack.columns);
        const int32_t y0 = (int32_t)random_below((uint32_t)sample.stack.rows);
        const int32_t size = 1 + (int32_t)random_below(20);
        const bool disc = random_below(2);
        for (int32_t y = -size; y <= size; y++)
            for (int32_t x = -size; x <= size; x++)
                if (!disc || x * x + y * y <= size * size)
                    flip(segment, x0 + x, y0 + y, z);
    }
}

/* Counts the parts of a plane. Voxels are joined by edges. */
static int64_t
count_parts(int32_t segment, int32_t z)
{
    const int32_t columns = sample.stack.columns, rows = sample.stack.rows;
    bool *seen = calloc((size_t)columns * (size_t)rows, sizeof(*seen));
    int32_t *stack = malloc((size_t)columns * (size_t)rows * 5 * sizeof(*stack));
    int64_t parts = 0;
    ck_assert(seen && stack);
    for (int32_t i = 0; i < columns * rows; i++) {
        int32_t used = 0;
        if (seen[i] || !has(segment, i % columns, i / columns, z))
            continue;
        parts++;
        stack[used++] = i;
        while (used > 0) {
            const int32_t at = stack[--used], x = at % columns, y = at / columns;
            if (seen[at])
                continue;
            seen[at] = true;
            const int32_t neighbours[4][2] = {{x - 1, y}, {x + 1, y}, {x, y - 1}, {x, y + 1}};
            for (int k = 0; k < 4; k++)
                if (has(segment, neighbours[k][0], neighbours[k][1], z))
                    stack[used++] = neighbours[k][1] * columns + neighbours[k][0];
        }
    }
    free(seen);
    free(stack);
    return parts;
}

/* ---- comparison ---- */

struct tally {
    int64_t contours, points, xors;
};

static struct tally tally;

/* Each point of a contour rounds to a voxel of the mask, and no point lies on the line of its neighbours. */
static void
check_points(const struct contour *contour, int32_t segment, int32_t z)
{
    for (int64_t i = 0; i < contour->count; i++) {
        double at[3][2];
        for (int k = 0; k < 3; k++) {
            const double *point = contour->points + 3 * ((i + k) % contour->count);
            at[k][0] = image_planes_along(point, origins + 3 * z, planes.axes) / planes.spacing[0];
            at[k][1] = image_planes_along(point, origins + 3 * z, planes.axes + 3) / planes.spacing[1];
        }
        ck_assert(has(segment, (int32_t)lround(at[0][0]), (int32_t)lround(at[0][1]), z));
        const double ax = at[1][0] - at[0][0], ay = at[1][1] - at[0][1];
        const double bx = at[2][0] - at[1][0], by = at[2][1] - at[1][1];
        ck_assert_msg(fabs(ax * by - ay * bx) > 1e-6 || ax * bx + ay * by < 0, "point %lld of %lld is on a line",
                      (long long)i + 1, (long long)contour->count);
    }
}

static int
compare(void *context, int32_t segment, const struct rtstruct_contours *contours, struct error *error)
{
    const int64_t words = (planes.extent.columns + 63) / 64;
    uint64_t *bits = malloc((size_t)(words * planes.extent.rows * planes.extent.slices) * sizeof(*bits));
    const struct contours_request drawing = {&planes, contours->contours, contours->count, false, false};
    struct contours_drawn drawn;
    int64_t parts = 0;
    (void)context;
    const int rc = kernels_mask_contours(&drawing, bits, &drawn, error);
    ck_assert_msg(rc == 0, "%s", error->message);
    for (int32_t z = 0; z < sample.stack.plane_count; z++) {
        for (int32_t y = 0; y < sample.stack.rows; y++)
            for (int32_t x = 0; x < sample.stack.columns; x++)
                ck_assert_msg((bits[(z * sample.stack.rows + y) * words + x / 64] >> x % 64 & 1) ==
                                  has(segment, x, y, z),
                              "voxel (%d, %d, %d) of segment %d differs", x, y, z, segment);
        parts += count_parts(segment, z);
    }
    free(bits);
    ck_assert_int_eq(drawn.crossed, 0);
    ck_assert_int_eq(drawn.copies, 0);
    ck_assert_int_eq(drawn.on_centres, 0);
    for (int64_t i = 0; i < contours->count; i++) {
        tally.points += contours->contours[i].count;
        tally.xors += contours->contours[i].is_xor;
        for (int32_t z = 0; z < sample.stack.plane_count; z++)
            if (strcmp(contours->images[i], derived_plane_instance(&sample.request.source, z)->sop_instance_uid) == 0)
                check_points(&contours->contours[i], segment, z);
    }
    tally.contours += contours->count;
    if (!request.xor_holes)
        ck_assert_int_eq(contours->count, parts); /* a contour has its holes */
    return 0;
}

/* Writes the sample and reads it back. */
static void
check(void)
{
    struct derived_summary summary;
    struct error error = {0};
    const int fd = open(sample.target, O_RDWR | O_CREAT | O_TRUNC, 0600);
    describe_planes();
    tally = (struct tally){0};
    int rc = rtstruct_write(&request, fd, &summary, &error);
    close(fd);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
    rc = rtstruct_verify(&request, sample.target, compare, NULL, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
}

START_TEST(random_masks)
{
    for (int i = 0; i < 500; i++) {
        const int32_t segments = 1 + (int32_t)random_below(2);
        make(1 + (int32_t)random_below(140), 1 + (int32_t)random_below(60), 1 + (int32_t)random_below(4), segments);
        if (i % 2)
            turn();
        for (int32_t segment = 0; segment < segments; segment++)
            for (int32_t z = 0; z < sample.stack.plane_count; z++)
                scatter(segment, z);
        for (int holes = 0; holes < 2; holes++) {
            request.xor_holes = holes;
            check();
        }
        seg_sample_free(&sample);
    }
}

END_TEST

/* Drawings, the number of their contours with keyholes and without, and of the points with keyholes, counted by hand. */
static const struct drawn {
    const char *rows[12];
    int64_t contours, points, loops;
} drawings[] = {
    {{"#", NULL}, 1, 4, 1},
    {{"##", "##", NULL}, 1, 4, 1},
    {{"#.", ".#", NULL}, 2, 8, 2},                  /* a corner joins nothing */
    {{"###", "#.#", "###", NULL}, 1, 4 + 4 + 2, 2}, /* the keyhole has two ends on an edge */
    {{"##", "#.", NULL}, 1, 6, 1},
    {{"###", "#.#", "##.", NULL}, 1, 5 + 2 + 3, 1},           /* the hole is open at a corner, where two corners are */
    {{"#####", "#.#.#", "#####", NULL}, 1, 4 + 2 * 4 + 2, 3}, /* the second keyhole ends at the first hole's corner */
    {{"#####", "#...#", "#.#.#", "#...#", "#####", NULL}, 2, 4 + 4 + 2 + 4, 3}, /* an island */
    {{"####", "#..#", "#.##", "##.#", "####", NULL}, 1, 4 + 6 + 4 + 2, 2},      /* the hole has two parts */
};

START_TEST(drawn_masks)
{
    for (size_t i = 0; i < sizeof(drawings) / sizeof(drawings[0]); i++) {
        make(66, 12, 2, 1);
        draw(0, 1, drawings[i].rows);
        check();
        ck_assert_msg(tally.contours == drawings[i].contours && tally.xors == 0, "drawing %zu has %lld contours", i,
                      (long long)tally.contours);
        ck_assert_msg(tally.points == drawings[i].points, "drawing %zu has %lld points", i, (long long)tally.points);
        request.xor_holes = true;
        check();
        ck_assert_msg(tally.contours == drawings[i].loops, "drawing %zu has %lld outlines", i,
                      (long long)tally.contours);
        ck_assert_int_eq(tally.xors, drawings[i].loops > drawings[i].contours ? tally.contours : 0);
        seg_sample_free(&sample);
    }
}

END_TEST

int
main(void)
{
    dicom_init();
    Suite *suite = suite_create("structures");
    TCase *tcase = tcase_create("structures");
    tcase_add_test(tcase, random_masks);
    tcase_add_test(tcase, drawn_masks);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
