/* Boxes of voxels in space: which are the same, and which voxels lie nearest. */
#include "service/common/volume/volume_grid.h"

#include "tests/unit/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An oblique grid of unequal spacings. */
static struct volume_grid
oblique(int64_t x, int64_t y, int64_t z)
{
    const double a = 0.3, b = -0.7;
    const double u[3] = {cos(a) * cos(b), sin(a) * cos(b), -sin(b)}, v[3] = {-sin(a), cos(a), 0};
    const double w[3] = {cos(a) * sin(b), sin(a) * sin(b), cos(b)};
    const double spacing[3] = {0.7, 0.8, 2.5};
    struct volume_grid grid = {.size = {x, y, z}, .to_mm = {0}};
    for (int row = 0; row < 3; row++) {
        grid.to_mm[4 * row] = u[row] * spacing[0];
        grid.to_mm[4 * row + 1] = v[row] * spacing[1];
        grid.to_mm[4 * row + 2] = w[row] * spacing[2];
        grid.to_mm[4 * row + 3] = 10.0 * row - 123.4;
    }
    return grid;
}

static void
centre(const struct volume_grid *grid, int64_t x, int64_t y, int64_t z, double mm[3])
{
    for (int row = 0; row < 3; row++) {
        const double *line = grid->to_mm + 4 * row;
        mm[row] = line[0] * (double)x + line[1] * (double)y + line[2] * (double)z + line[3];
    }
}

/* Returns the same box with its axes in this order, some of them backwards. */
static struct volume_grid
turned(const struct volume_grid *grid, const int order[3], int backwards)
{
    struct volume_grid turned = *grid;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t size = grid->size[order[axis]];
        turned.size[axis] = size;
        for (int row = 0; row < 3; row++) {
            const double step = grid->to_mm[4 * row + order[axis]];
            turned.to_mm[4 * row + axis] = backwards >> axis & 1 ? -step : step;
            turned.to_mm[4 * row + 3] += backwards >> axis & 1 ? step * (double)(size - 1) : 0;
        }
    }
    return turned;
}

static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* Each voxel of the walk lies where the voxel of the grid lies. */
static void
check_walk(const struct volume_grid *from, const struct volume_grid *to, const struct volume_walk *walk)
{
    for (int64_t z = 0; z < to->size[2]; z++) {
        for (int64_t y = 0; y < to->size[1]; y++) {
            for (int64_t x = 0; x < to->size[0]; x++) {
                const int64_t at = walk->first + x * walk->stride[0] + y * walk->stride[1] + z * walk->stride[2];
                ck_assert_int_ge(at, 0);
                ck_assert_int_lt(at, from->size[0] * from->size[1] * from->size[2]);
                double here[3], there[3];
                centre(to, x, y, z, here);
                centre(from, at % from->size[0], at / from->size[0] % from->size[1], at / from->size[0] / from->size[1],
                       there);
                for (int row = 0; row < 3; row++)
                    ck_assert_double_eq_tol(here[row], there[row], 1e-9);
            }
        }
    }
}

START_TEST(axes_may_have_any_order_and_direction)
{
    static const int64_t sizes[3][3] = {{5, 4, 3}, {4, 4, 4}, {6, 1, 2}};
    const int order = _i / 8 % 6;
    const int64_t *size = sizes[_i / 48];
    const struct volume_grid to = oblique(size[0], size[1], size[2]), from = turned(&to, orders[order], _i % 8);
    struct volume_walk walk;
    char why[160] = "";
    ck_assert_msg(volume_grid_same(&from, &to, &walk, why), "%s", why);
    check_walk(&from, &to, &walk);
}

END_TEST

START_TEST(a_grid_keeps_its_own_order)
{
    const struct volume_grid grid = oblique(1, 1, 4);
    struct volume_walk walk;
    char why[160];
    ck_assert(volume_grid_same(&grid, &grid, &walk, why));
    ck_assert_int_eq(walk.first, 0);
    ck_assert_int_eq(walk.stride[0], 1);
    ck_assert_int_eq(walk.stride[1], 1);
    ck_assert_int_eq(walk.stride[2], 1);
}

END_TEST

/* Moves the grid along its first axis, and returns whether it is still the same. */
static bool
same_after(double mm, char why[160])
{
    const struct volume_grid grid = oblique(512, 512, 300);
    struct volume_grid moved = grid;
    struct volume_walk walk;
    for (int row = 0; row < 3; row++)
        moved.to_mm[4 * row + 3] += grid.to_mm[4 * row] / 0.7 * mm;
    return volume_grid_same(&moved, &grid, &walk, why);
}

START_TEST(centres_may_differ_by_a_hundredth_of_a_mm)
{
    char why[160];
    ck_assert(same_after(0.009, why));
    ck_assert(same_after(-0.009, why));
    ck_assert(!same_after(0.011, why));
    ck_assert_str_eq(why, "voxel (0, 0, 0) is 0.011 mm from its place");
    ck_assert(!same_after(0.35, why)); /* half a voxel */
    ck_assert_str_eq(why, "voxel (0, 0, 0) is 0.35 mm from its place");
}

END_TEST

START_TEST(another_spacing_is_found_at_the_far_corner)
{
    const struct volume_grid grid = oblique(512, 512, 300);
    struct volume_grid wider = grid;
    struct volume_walk walk;
    char why[160];
    for (int row = 0; row < 3; row++)
        wider.to_mm[4 * row] *= 1 + 0.011 / (0.7 * 511);
    ck_assert(!volume_grid_same(&wider, &grid, &walk, why));
    ck_assert_str_eq(why, "voxel (511, 0, 0) is 0.011 mm from its place");
}

END_TEST

START_TEST(other_sizes_differ)
{
    const struct volume_grid grid = oblique(40, 32, 12), half = oblique(20, 32, 12);
    struct volume_walk walk;
    char why[160];
    ck_assert(!volume_grid_same(&half, &grid, &walk, why));
    ck_assert_str_eq(why, "20 x 32 x 12 voxels, not 40 x 32 x 12");
}

END_TEST

START_TEST(swapped_sizes_and_a_lone_flip_differ)
{
    const struct volume_grid grid = oblique(40, 32, 12);
    struct volume_grid other = oblique(32, 40, 12);
    struct volume_walk walk;
    char why[160];
    ck_assert(!volume_grid_same(&other, &grid, &walk, why));
    other = grid;
    for (int row = 0; row < 3; row++)
        other.to_mm[4 * row] *= -1;
    ck_assert(!volume_grid_same(&other, &grid, &walk, why));
    ck_assert_ptr_nonnull(strstr(why, "is 27.3 mm from its place")); /* 39 columns */
}

END_TEST

START_TEST(a_matrix_that_is_no_box_is_not_regular)
{
    const struct volume_grid good = oblique(4, 4, 4);
    struct volume_grid grid = good;
    struct volume_walk walk;
    char why[160];
    ck_assert(volume_grid_regular(&good));
    const double odd[] = {NAN, INFINITY, -INFINITY, 1e300};
    for (int i = 0; i < 12; i++) {
        for (size_t j = 0; j < sizeof odd / sizeof odd[0]; j++) {
            grid = good;
            grid.to_mm[i] = odd[j];
            ck_assert_msg(!volume_grid_regular(&grid) || (odd[j] == 1e300 && i % 4 == 3), "%d %g", i, odd[j]);
            ck_assert(!volume_grid_same(&grid, &good, &walk, why));
        }
    }
    grid = good;
    for (int row = 0; row < 3; row++)
        grid.to_mm[4 * row + 1] = 2 * grid.to_mm[4 * row];
    ck_assert(!volume_grid_regular(&grid));
    memset(grid.to_mm, 0, sizeof grid.to_mm);
    ck_assert(!volume_grid_regular(&grid));
}

END_TEST

/* ---- the nearest voxel ---- */

/* Finds it among all voxels, by the distance in mm; ties to the lower index along each axis. */
static int64_t
search(const struct volume_grid *from, const double mm[3])
{
    int64_t best = -1;
    double least = INFINITY;
    for (int64_t at = 0; at < from->size[0] * from->size[1] * from->size[2]; at++) {
        double there[3];
        centre(from, at % from->size[0], at / from->size[0] % from->size[1], at / from->size[0] / from->size[1], there);
        const double distance = hypot(hypot(there[0] - mm[0], there[1] - mm[1]), there[2] - mm[2]);
        if (distance < least - 1e-7) {
            least = distance;
            best = at;
        }
    }
    return best;
}

static bool
lies_inside(const struct volume_grid *from, const double mm[3])
{
    for (int axis = 0; axis < 3; axis++) {
        double along = 0, length = 0;
        for (int row = 0; row < 3; row++) {
            const double step = from->to_mm[4 * row + axis];
            along += (mm[row] - from->to_mm[4 * row + 3]) * step;
            length += step * step;
        }
        if (along / length < -0.5 - 1e-6 || along / length > (double)from->size[axis] - 0.5 + 1e-6)
            return false;
    }
    return true;
}

static int64_t
check_nearest(const struct volume_grid *from, const struct volume_grid *to)
{
    int64_t *row = calloc((size_t)to->size[0], sizeof *row), outside = 0;
    for (int64_t z = 0; z < to->size[2]; z++) {
        for (int64_t y = 0; y < to->size[1]; y++) {
            volume_nearest_row(from, to, y, z, row);
            for (int64_t x = 0; x < to->size[0]; x++) {
                double mm[3];
                centre(to, x, y, z, mm);
                const bool inside = lies_inside(from, mm);
                ck_assert_int_eq(row[x], inside ? search(from, mm) : -1);
                outside += !inside;
            }
        }
    }
    free(row);
    return outside;
}

START_TEST(the_nearest_voxel_is_that_of_a_search)
{
    const struct volume_grid to = oblique(9, 7, 5);
    struct volume_grid from = turned(&to, orders[_i % 6], _i % 8);
    ck_assert_int_eq(check_nearest(&from, &to), 0);
    for (int i = 0; i < 3; i++)
        from.size[i] -= 1;
    ck_assert_int_gt(check_nearest(&from, &to), 0);
    for (int row = 0; row < 3; row++)
        from.to_mm[4 * row + 3] += 0.37 * row;
    ck_assert_int_gt(check_nearest(&from, &to), 0);
}

END_TEST

START_TEST(ties_take_the_lower_index)
{
    /* Voxels of `from` are twice as wide: each second centre lies between two of them. */
    const struct volume_grid to = oblique(8, 6, 4);
    struct volume_grid from = to;
    int64_t row[8];
    for (int axis = 0; axis < 3; axis++)
        from.size[axis] /= 2;
    for (int i = 0; i < 12; i++)
        from.to_mm[i] *= i % 4 == 3 ? 1 : 2;
    volume_nearest_row(&from, &to, 1, 3, row);
    static const int64_t columns[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    for (int x = 0; x < 8; x++)
        ck_assert_int_eq(row[x], columns[x] + 4 * (0 + 3 * 1));
    check_nearest(&from, &to);
}

END_TEST

START_TEST(places_far_away_have_no_voxel)
{
    const struct volume_grid to = oblique(3, 2, 2);
    struct volume_grid from = to;
    int64_t row[3];
    from.to_mm[3] = 1e200;
    volume_nearest_row(&from, &to, 0, 0, row);
    for (int x = 0; x < 3; x++)
        ck_assert_int_eq(row[x], -1);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("volume_grid");
    TCase *tests = tcase_create("volume_grid");
    tcase_add_loop_test(tests, axes_may_have_any_order_and_direction, 0, 3 * 48);
    tcase_add_test(tests, a_grid_keeps_its_own_order);
    tcase_add_test(tests, centres_may_differ_by_a_hundredth_of_a_mm);
    tcase_add_test(tests, another_spacing_is_found_at_the_far_corner);
    tcase_add_test(tests, other_sizes_differ);
    tcase_add_test(tests, swapped_sizes_and_a_lone_flip_differ);
    tcase_add_test(tests, a_matrix_that_is_no_box_is_not_regular);
    tcase_add_loop_test(tests, the_nearest_voxel_is_that_of_a_search, 0, 24);
    tcase_add_test(tests, ties_take_the_lower_index);
    tcase_add_test(tests, places_far_away_have_no_voxel);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
