/*
 * test_contours.c - contours as masks: the definition on random and on difficult drawings, all kinds of planes, and
 * rejected input.
 */
#include "tests/kernels/ref_contours.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/share.h"
#include "tests/unit/edge.h"
#include "tests/unit/growth.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    MOST_CONTOURS = 40,
    MOST_POINTS = 4096,
    MOST_PLANES = 12,
};

/* A drawing in pixels and planes, and its place in space. */
struct drawing {
    struct image_planes planes;
    double origins[3 * MOST_PLANES];
    double points[3 * MOST_POINTS];
    struct contour contours[MOST_CONTOURS];
    int64_t count, used;
    bool centres;
    uint64_t *bits;
    struct contours_drawn drawn;
    struct error error;
};

static struct drawing drawing;

static void
draw_on(int64_t columns, int64_t rows, int64_t slices)
{
    free(drawing.bits);
    memset(&drawing, 0, sizeof(drawing));
    drawing.planes = (struct image_planes){
        .extent = {columns, rows, slices},
        .axes = {1, 0, 0, 0, 1, 0},
        .spacing = {1, 1},
        .thickness = 1,
        .origins = drawing.origins,
    };
    for (int64_t z = 0; z < slices; z++)
        drawing.origins[3 * z + 2] = (double)z;
    drawing.bits = malloc((size_t)((columns + 63) / 64 * rows * slices) * sizeof(uint64_t));
    ck_assert_ptr_nonnull(drawing.bits);
}

/* Makes the planes of a tilted, moved and shifted gantry, at uneven distances. */
static void
tilt(double degrees)
{
    const double turn = degrees * acos(-1) / 180;
    const double axes[6] = {cos(turn / 3), sin(turn / 3), 0, -sin(turn / 3) * cos(turn), cos(turn / 3) * cos(turn),
                            sin(turn)};

    memcpy(drawing.planes.axes, axes, sizeof(axes));
    drawing.planes.spacing[0] = 0.9765625;
    drawing.planes.spacing[1] = 0.49;
    for (int64_t z = 0; z < drawing.planes.extent.slices; z++) {
        drawing.origins[3 * z] = -250.3 + 0.1 * (double)z;
        drawing.origins[3 * z + 1] = 17.1;
        drawing.origins[3 * z + 2] = -800 + (double)(z * 4 + z * z % 3);
    }
}

/* Adds a point of the next contour, in pixels of a plane, at the distance `off` from it. */
static void
add_point(int64_t z, double x, double y, double off)
{
    struct contour *contour = &drawing.contours[drawing.count];
    double *point = drawing.points + 3 * drawing.used++;
    const double *a = drawing.planes.axes, *b = a + 3;
    const double normal[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};

    ck_assert_int_le(drawing.used, MOST_POINTS);
    if (contour->count++ == 0)
        contour->points = point;
    for (int i = 0; i < 3; i++)
        point[i] = drawing.origins[3 * z + i] + x * drawing.planes.spacing[0] * a[i] +
                   y * drawing.planes.spacing[1] * b[i] + off * normal[i];
}

static void
end_contour(void)
{
    ck_assert_int_lt(++drawing.count, MOST_CONTOURS);
}

static void
add_box(int64_t z, double left, double top, double right, double bottom)
{
    add_point(z, left, top, 0);
    add_point(z, right, top, 0);
    add_point(z, right, bottom, 0);
    add_point(z, left, bottom, 0);
    end_contour();
}

static int
draw(void)
{
    const struct contours_request request = {&drawing.planes, drawing.contours, drawing.count, false, drawing.centres};

    return kernels_mask_contours(&request, drawing.bits, &drawing.drawn, &drawing.error);
}

static bool
has(int64_t x, int64_t y, int64_t z)
{
    const struct image_extent *extent = &drawing.planes.extent;
    const int64_t words = (extent->columns + 63) / 64;

    return drawing.bits[(z * extent->rows + y) * words + x / 64] >> x % 64 & 1;
}

/* Checks that every voxel equals the reference's, that the padding is clear, and that the number is right. */
static void
expect_reference(void)
{
    const struct image_extent *extent = &drawing.planes.extent;
    int64_t voxels = 0, wrong = 0;

    bool *mask = calloc((size_t)(extent->rows * extent->columns), sizeof(*mask));

    ck_assert_msg(draw() == 0, "%s", drawing.error.message);
    for (int64_t z = 0; z < extent->slices; z++) {
        ref_contours_plane(&drawing.planes, drawing.contours, drawing.count, z, drawing.centres, mask);
        for (int64_t y = 0; y < extent->rows; y++)
            for (int64_t x = 0; x < (extent->columns + 63) / 64 * 64; x++) {
                const bool expected = x < extent->columns && mask[y * extent->columns + x];
                voxels += expected;
                wrong += has(x, y, z) != expected;
            }
    }
    free(mask);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(drawing.drawn.voxels, voxels);
}

/* ---- the definition ---- */

/* Returns a place between pixels, or on a quarter of one so that edges go through centres. */
static double
random_place(uint64_t *random, int64_t size, bool coarse)
{
    const int64_t steps = coarse ? 4 : 1 << 20;
    return (double)ref_random_below(random, (size + 8) * steps) / (double)steps - 4;
}

static void
random_drawing(uint64_t seed)
{
    uint64_t random = seed;
    const bool coarse = ref_random_below(&random, 2);
    const int64_t slices = 1 + ref_random_below(&random, 5);

    draw_on(1 + ref_random_below(&random, 140), 1 + ref_random_below(&random, 40), slices);
    drawing.centres = ref_random_below(&random, 2);
    if (ref_random_below(&random, 2))
        tilt((double)ref_random_below(&random, 40) - 20);
    for (int64_t i = ref_random_below(&random, 8); i >= 0; i--) {
        const int64_t z = ref_random_below(&random, slices);

        for (int64_t points = ref_random_below(&random, 24); points >= 0; points--)
            add_point(z, random_place(&random, drawing.planes.extent.columns, coarse),
                      random_place(&random, drawing.planes.extent.rows, coarse),
                      0.05 * (double)ref_random_below(&random, 2));
        drawing.contours[drawing.count].is_xor = ref_random_below(&random, 6) == 0;
        end_contour();
    }
}

START_TEST(random_drawings)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        random_drawing(seed + 100 * (uint64_t)_i);
        expect_reference();
    }
}

END_TEST

/* Checks that the left and the upper edge are included, and the right and the lower are not, for both directions. */
START_TEST(edges_through_centres)
{
    draw_on(70, 9, 1);
    if (_i)
        add_box(0, 66, 6, 62, 2);
    else
        add_box(0, 62, 2, 66, 6);
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 16);
    for (int64_t y = 2; y < 6; y++)
        for (int64_t x = 62; x < 66; x++)
            ck_assert(has(x, y, 0));
}

END_TEST

/* Checks that each voxel is in exactly one of the triangles of a fan, whose edges and vertices are centres. */
START_TEST(adjacent_parts_neither_overlap_nor_leave_gaps)
{
    static const double rim[][2] = {{1, 1}, {5, 1}, {9, 1}, {9, 6}, {9, 11}, {4, 11}, {1, 11}, {1, 4}};
    int64_t sum = 0;

    for (size_t i = 0; i < 8; i++) {
        draw_on(12, 12, 1);
        add_point(0, 5, 6, 0);
        add_point(0, rim[i][0], rim[i][1], 0);
        add_point(0, rim[(i + 1) % 8][0], rim[(i + 1) % 8][1], 0);
        end_contour();
        expect_reference();
        sum += drawing.drawn.voxels;
    }
    ck_assert_int_eq(sum, 8 * 10);
}

END_TEST

/* Checks that a point within rounding of a centre counts as on it: 0.3 of these pixels is not a double. */
START_TEST(rounding_moves_only_voxels_on_the_edge)
{
    draw_on(40, 40, 1);
    drawing.planes.spacing[0] = drawing.planes.spacing[1] = 0.3;
    drawing.origins[0] = -17.1;
    drawing.origins[1] = 1234.7;
    for (int i = 0; i < 4; i++)
        add_point(0, i == 1 || i == 2 ? 33 : 7, i / 2 ? 29 : 3, 0);
    end_contour();
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 26 * 26);
    ck_assert(has(7, 3, 0) && !has(33, 28, 0) && !has(32, 29, 0));
}

END_TEST

/* Checks that two crossing boxes are united. One has a hole that crosses no contour and must stay. */
START_TEST(crossing_contours_are_united)
{
    draw_on(100, 30, 1);
    add_box(0, 9.5, 4.5, 49.5, 25.5);
    add_box(0, 39.5, 9.5, 79.5, 20.5);
    add_box(0, 14.5, 9.5, 24.5, 14.5);
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 40 * 21 + 30 * 11 - 10 * 5);
    ck_assert_int_eq(drawing.drawn.crossed, 2);
    ck_assert_int_eq(drawing.drawn.copies, 0);
}

END_TEST

START_TEST(xor_contours_cancel)
{
    draw_on(100, 30, 1);
    add_box(0, 9.5, 4.5, 49.5, 25.5);
    add_box(0, 39.5, 9.5, 79.5, 20.5);
    drawing.contours[0].is_xor = drawing.contours[1].is_xor = true;
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 40 * 21 + 40 * 11 - 2 * 10 * 11);
    ck_assert_int_eq(drawing.drawn.crossed, 0);
}

END_TEST

START_TEST(holes_islands_and_twice_the_same)
{
    draw_on(100, 30, 3);
    add_box(1, 9.5, 4.5, 89.5, 25.5);
    add_box(1, 19.5, 9.5, 79.5, 20.5);
    add_box(1, 39.5, 11.5, 49.5, 18.5);
    add_box(2, 3.5, 3.5, 10.5, 10.5);
    add_box(2, 3.5, 3.5, 10.5, 10.5);
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 80 * 21 - 60 * 11 + 10 * 7 + 7 * 7);
    ck_assert_int_eq(drawing.drawn.copies, 1);
    ck_assert_int_eq(drawing.drawn.crossed, 0);
}

END_TEST

/* Checks that each area is freed once, with a copy before another contour. */
START_TEST(a_copy_before_another)
{
    draw_on(100, 30, 1);
    add_box(0, 3.5, 3.5, 10.5, 10.5);
    add_box(0, 3.5, 3.5, 10.5, 10.5);
    add_box(0, 20.5, 12.5, 30.5, 20.5);
    add_box(0, 22.5, 14.5, 24.5, 16.5);
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 7 * 7 + 10 * 8 - 2 * 2);
    ck_assert_int_eq(drawing.drawn.copies, 1);
}

END_TEST

/*
 * Draws corners (10, 4), (14, 4), (14, 9), (10, 9), which are voxel centres, and a hole whose outline is the ring
 * around it.
 */
static void
draw_square(bool centres)
{
    draw_on(100, 30, 1);
    drawing.centres = centres;
    add_box(0, 10, 4, 14, 9.01);
    add_point(0, 12, 5, 0);
    add_point(0, 11, 6, 0);
    add_point(0, 12, 7, 0);
    add_point(0, 13, 6, 0);
    end_contour();
    expect_reference();
    ck_assert_int_eq(drawing.drawn.points, 8);
    ck_assert_int_eq(drawing.drawn.on_centres, 8);
}

START_TEST(contours_through_centres)
{
    draw_square(true);
    ck_assert_int_eq(drawing.drawn.voxels, 5 * 6 - 1);
    ck_assert(!has(12, 6, 0));
    draw_square(false);
    /* Must not have the right and the lower border, except for the point that lies 0.01 pixels lower. */
    ck_assert_int_lt(drawing.drawn.voxels, 5 * 6 - 1);
}

END_TEST

/*
 * Draws (12, 5), (11, 6), (12, 7), (13, 6) around (12, 6): findContours draws the same outline for the hole, in the
 * opposite direction.
 */
START_TEST(a_ring_of_one_voxel)
{
    static const double ring[4][2] = {{12, 5}, {11, 6}, {12, 7}, {13, 6}};

    for (int copies = 1; copies <= 2; copies++)
        for (int hole = 0; hole < 2; hole++) {
            draw_on(100, 30, 1);
            drawing.centres = true;
            for (int n = 0; n < copies * (1 + hole); n++) {
                for (int i = 0; i < 4; i++)
                    add_point(0, ring[n % 2 && hole ? 3 - i : i][0], ring[n % 2 && hole ? 3 - i : i][1], 0);
                end_contour();
            }
            expect_reference();
            ck_assert_int_eq(drawing.drawn.voxels, hole ? 4 : 5);
            ck_assert_int_eq(drawing.drawn.copies, (copies - 1) * (1 + hole));
        }
}

END_TEST

/* Draws one voxel, a line of 71 voxels over two words, a diagonal of 4, and a line between the rows. */
START_TEST(voxels_and_lines)
{
    for (int centres = 0; centres < 2; centres++) {
        draw_on(100, 30, 1);
        drawing.centres = centres;
        add_point(0, 3, 3, 0);
        end_contour();
        add_point(0, 80, 5, 0);
        add_point(0, 10, 5, 0);
        end_contour();
        add_point(0, 20, 10, 0);
        add_point(0, 23, 13, 0);
        end_contour();
        add_point(0, 20, 20.5, 0);
        add_point(0, 40, 20.5, 0);
        end_contour();
        add_point(0, -3, 25, 0);
        add_point(0, -1, 25, 0);
        end_contour();
        expect_reference();
        ck_assert_int_eq(drawing.drawn.voxels, centres ? 1 + 71 + 4 : 0);
    }
}

END_TEST

/* Draws a ring as one line: out to the hole, around it, and back on the same way. */
START_TEST(keyhole)
{
    static const double ring[][2] = {{2, 2},  {20, 2}, {20, 12}, {11, 12}, {11, 9},  {15, 9},
                                     {15, 5}, {6, 5},  {6, 9},   {11, 9},  {11, 12}, {2, 12}};

    draw_on(24, 16, 1);
    for (size_t i = 0; i < sizeof(ring) / sizeof(ring[0]); i++)
        add_point(0, ring[i][0], ring[i][1], 0);
    end_contour();
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 18 * 10 - 9 * 4);
}

END_TEST

/* Draws a closed line, repeated points, and edges along rows and lines, back and forth. */
START_TEST(degenerate_lines)
{
    draw_on(70, 20, 1);
    for (int i = 0; i < 9; i++)
        add_point(0, i % 8 < 2 || i % 8 > 5 ? 3 : 64, i % 8 < 4 ? 2 : 9, 0);
    end_contour();
    add_point(0, 10, 12, 0);
    end_contour();
    add_point(0, 10, 12, 0);
    add_point(0, 20, 18, 0);
    end_contour();
    end_contour();
    add_point(0, 30, 12, 0);
    add_point(0, 40, 18, 0);
    add_point(0, 30, 12, 0);
    end_contour();
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 61 * 7);
}

END_TEST

/* Draws points at the maximum distance, on every side of the image. */
START_TEST(beyond_the_image)
{
    draw_on(65, 5, 1);
    add_box(0, -1048575.75, -1048575.5, 1048575.5, 1048575.75);
    add_point(0, -1048575, 2.5, 0);
    add_point(0, 1048575, 2.25, 0);
    add_point(0, 1048575, 300000.25, 0);
    end_contour();
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 3 * 65);
}

END_TEST

/* ---- planes ---- */

START_TEST(planes_drawn_and_missing)
{
    draw_on(8, 8, 9);
    add_box(6, 1, 1, 3, 3);
    add_box(2, 1, 1, 3, 3);
    add_box(3, 1, 1, 3, 3);
    ck_assert_int_eq(draw(), 0);
    ck_assert_int_eq(drawing.drawn.planes, 3);
    ck_assert_int_eq(drawing.drawn.first, 2);
    ck_assert_int_eq(drawing.drawn.last, 6);
    ck_assert_int_eq(drawing.drawn.missing, 2);
    ck_assert_int_eq(drawing.drawn.first_missing, 4);
    ck_assert_int_eq(drawing.drawn.voxels, 12);
}

END_TEST

START_TEST(empty_regions_have_no_voxel)
{
    draw_on(8, 8, 2);
    memset(drawing.bits, 0xFF, 2 * 8 * sizeof(uint64_t));
    expect_reference();
    ck_assert_int_eq(drawing.drawn.voxels, 0);
    ck_assert_int_eq(drawing.drawn.planes, 0);
    ck_assert_int_eq(drawing.drawn.first, -1);
    ck_assert_int_eq(drawing.drawn.last, -1);
    ck_assert_int_eq(drawing.drawn.missing, 0);
    ck_assert_int_eq(drawing.drawn.first_missing, -1);
}

END_TEST

/* The nearer neighbour sets the limit: planes at 0, 4 and 5 allow 0.4, 0.1 and 0.1. */
START_TEST(contours_at_the_maximum_distance_from_a_plane)
{
    static const double room[] = {0.4, 0.1, 0.1};

    for (int side = -1; side <= 1; side += 2)
        for (int beyond = 0; beyond < 2; beyond++) {
            draw_on(8, 8, 3);
            drawing.origins[5] = 4;
            drawing.origins[8] = 5;
            for (int i = 0; i < 3; i++)
                add_point(_i, i % 2 ? 1.5 : 5.5, 2 * i + 0.5, side * room[_i] * (beyond ? 1.001 : 0.999));
            end_contour();
            ck_assert_int_eq(draw(), beyond ? -EBADMSG : 0);
            if (beyond)
                ck_assert_int_eq(drawing.error.code, CODE_CONTOUR_OFF_PLANES);
            else
                ck_assert_double_eq_tol(drawing.drawn.farthest, 0.999 * room[_i], 1e-12);
        }
}

END_TEST

START_TEST(thickness_replaces_a_missing_distance)
{
    for (int beyond = 0; beyond < 2; beyond++) {
        draw_on(8, 8, 1);
        drawing.planes.thickness = 5;
        for (int i = 0; i < 3; i++)
            add_point(0, i % 2 ? 1.5 : 5.5, 2 * i + 0.5, beyond ? 0.501 : 0.499);
        end_contour();
        ck_assert_int_eq(draw(), beyond ? -EBADMSG : 0);
    }
    ck_assert_int_eq(drawing.error.code, CODE_CONTOUR_OFF_PLANES);
}

END_TEST

START_TEST(oblique)
{
    draw_on(8, 8, 4);
    add_box(1, 1, 1, 3, 3);
    for (int i = 0; i < 4; i++)
        add_point(i, i % 2 ? 1.5 : 5.5, 2 * i, 0);
    end_contour();
    ck_assert_int_eq(draw(), -EBADMSG);
    ck_assert_int_eq(drawing.error.code, CODE_CONTOUR_OBLIQUE);
    ck_assert_ptr_nonnull(strstr(drawing.error.message, "Contour 2"));
}

END_TEST

START_TEST(invalid_and_distant_coordinates_are_refused)
{
    const double values[] = {NAN, INFINITY, -INFINITY, 1048576, -1048576};

    draw_on(8, 8, 2);
    add_box(1, 1, 1, 3, 3);
    drawing.points[3 + _i % 2] = values[_i / 2];
    ck_assert_int_eq(draw(), -EBADMSG);
    ck_assert(drawing.error.code == CODE_SIZE_IMPLAUSIBLE || (drawing.error.code == CODE_CONTOUR_OFF_PLANES && _i < 6));
}

END_TEST

/* ---- cost ---- */

/* Makes a line of n points that goes up and down through all rows. */
static double *
zigzag(int64_t n, double rows)
{
    double *points = malloc((size_t)n * 3 * sizeof(*points));

    ck_assert_ptr_nonnull(points);
    for (int64_t i = 0; i < n; i++) {
        points[3 * i] = (double)(i % 1000);
        points[3 * i + 1] = i % 2 ? rows : -1;
        points[3 * i + 2] = 0;
    }
    return points;
}

static int
draw_zigzag(const double *points, int64_t n)
{
    const struct contour contour = {points, n, false};

    const struct contours_request request = {&drawing.planes, &contour, 1, false, false};

    return kernels_mask_contours(&request, drawing.bits, &drawing.drawn, &drawing.error);
}

START_TEST(limit_of_crossings)
{
    if (!test_turn_has(3))
        return;
    static const struct edge edge = EDGE(ROI_CROSSINGS_MI);
    const int64_t most = (edge.most << 20) / 1024;
    double *points = zigzag(most + 2, 1024);

    draw_on(1000, 1024, 1);
    ck_assert_int_eq(draw_zigzag(points, most), 0);
    ck_assert_int_eq(draw_zigzag(points, most + 2), -EBADMSG);
    ck_assert_int_eq(drawing.error.code, edge.code);
    free(points);
}

END_TEST

/* Draws boxes of one height, each narrower than the one before, so that every pair of areas is compared. */
static int
draw_nested(int64_t count)
{
    double *points = calloc((size_t)count * 12, sizeof(*points));
    struct contour *contours = calloc((size_t)count, sizeof(*contours));
    const struct contours_request request = {&drawing.planes, contours, count, false, false};

    for (int64_t i = 0; i < count; i++) {
        for (int64_t p = 0; p < 4; p++) {
            points[12 * i + 3 * p] = p == 1 || p == 2 ? 3000.5 : -0.5 + (double)i;
            points[12 * i + 3 * p + 1] = p < 2 ? -0.5 : 63.5;
        }
        contours[i] = (struct contour){points + 12 * i, 4, false};
    }
    const int rc = kernels_mask_contours(&request, drawing.bits, &drawing.drawn, &drawing.error);
    free(points);
    free(contours);
    return rc;
}

/* Each of n areas has 64 rows of 47 words. */
START_TEST(limit_of_areas)
{
    if (!test_turn_has(3))
        return;
    static const struct edge edge = EDGE(ROI_AREAS_MI);
    const int64_t most = (edge.most << 20) / (64 * 47);

    draw_on(3000, 64, 1);
    ck_assert_int_eq(draw_nested(most + 1), -EBADMSG);
    ck_assert_int_eq(drawing.error.code, edge.code);
    ck_assert_int_eq(draw_nested(most / 4), 0);
}

END_TEST

/* Two areas of one slice are compared in 64 rows of their common words, and once more. */
START_TEST(limit_of_overlaps)
{
    if (!test_turn_has(1))
        return;
    static const struct edge edge = EDGE(ROI_OVERLAP_MI);
    int64_t words = 0, count = 1;

    draw_on(3000, 64, 1);
    while (words <= edge.most << 20) {
        words += count * (1 + 64 * (47 - count / 64));
        count++;
    }
    ck_assert_int_eq(draw_nested(count - 1), 0);
    ck_assert_int_eq(draw_nested(count), -EBADMSG);
    ck_assert_int_eq(drawing.error.code, edge.code);
}

END_TEST

/* The kinds: every edge crosses all rows, or no edge does. */
static double
zigzag_cost(const void *kind, size_t n)
{
    const bool crosses = *(const bool *)kind;
    double *points = zigzag((int64_t)n, crosses ? 512 : -1);

    draw_on(1000, 512, 1);
    const double begun = growth_clock();
    ck_assert_int_eq(draw_zigzag(points, (int64_t)n), 0);
    const double seconds = growth_clock() - begun;
    free(points);
    return seconds;
}

static double
planes_cost(const void *kind, size_t n)
{
    double *origins = calloc(3 * n, sizeof(*origins));
    double *points = calloc(9 * n, sizeof(*points));
    struct contour *contours = calloc(n, sizeof(*contours));
    uint64_t *bits = malloc(2 * n * sizeof(*bits));
    struct image_planes planes = {{64, 2, (int64_t)n}, {1, 0, 0, 0, 1, 0}, {1, 1}, 1, origins};

    (void)kind;
    ck_assert(origins && points && contours && bits);
    for (size_t i = 0; i < n; i++) {
        origins[3 * i + 2] = (double)i;
        for (size_t p = 0; p < 3; p++) {
            points[9 * i + 3 * p] = (double)(p * 10);
            points[9 * i + 3 * p + 1] = (double)(p % 2) * 2;
            points[9 * i + 3 * p + 2] = (double)i;
        }
        contours[i] = (struct contour){points + 9 * i, 3, false};
    }
    const struct contours_request request = {&planes, contours, (int64_t)n, false, false};
    const double begun = growth_clock();
    ck_assert_int_eq(kernels_mask_contours(&request, bits, &drawing.drawn, &drawing.error), 0);
    const double seconds = growth_clock() - begun;
    ck_assert_int_eq(drawing.drawn.planes, (int64_t)n);
    free(origins);
    free(points);
    free(contours);
    free(bits);
    return seconds;
}

START_TEST(cost_is_linear)
{
    const bool crosses = true, none = false;

    expect_linear("edges through all rows", zigzag_cost, &crosses, 20000);
    expect_linear("edges beside the image", zigzag_cost, &none, 500000);
    expect_linear("planes", planes_cost, NULL, 50000);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("contours");
    TCase *tests = tcase_create("contours");

    tcase_add_loop_test(tests, random_drawings, 0, 4);
    tcase_add_loop_test(tests, edges_through_centres, 0, 2);
    tcase_add_test(tests, adjacent_parts_neither_overlap_nor_leave_gaps);
    tcase_add_test(tests, rounding_moves_only_voxels_on_the_edge);
    tcase_add_test(tests, holes_islands_and_twice_the_same);
    tcase_add_test(tests, crossing_contours_are_united);
    tcase_add_test(tests, xor_contours_cancel);
    tcase_add_test(tests, a_copy_before_another);
    tcase_add_test(tests, contours_through_centres);
    tcase_add_test(tests, a_ring_of_one_voxel);
    tcase_add_test(tests, voxels_and_lines);
    tcase_add_test(tests, keyhole);
    tcase_add_test(tests, degenerate_lines);
    tcase_add_test(tests, beyond_the_image);
    tcase_add_test(tests, planes_drawn_and_missing);
    tcase_add_test(tests, empty_regions_have_no_voxel);
    tcase_add_loop_test(tests, contours_at_the_maximum_distance_from_a_plane, 0, 3);
    tcase_add_test(tests, thickness_replaces_a_missing_distance);
    tcase_add_test(tests, oblique);
    tcase_add_loop_test(tests, invalid_and_distant_coordinates_are_refused, 0, 10);
    tcase_add_test(tests, limit_of_crossings);
    tcase_add_test(tests, limit_of_areas);
    tcase_add_test(tests, limit_of_overlaps);
    tcase_add_test(tests, cost_is_linear);
    suite_add_tcase(suite, tests);
    const int status = suite_run(suite);
    free(drawing.bits);
    return status;
}
