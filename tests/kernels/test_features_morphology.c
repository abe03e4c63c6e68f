/*
 * test_features_morphology.c - shape of regions: IBSI's values for its digital phantom, meshes triangle by triangle,
 * hulls by their definition, and cases without a value.
 */
#include "kernels/features/shape/hull.h"
#include "kernels/features/shape/mesh.h"
#include "kernels/features/shape/outline.h"
#include "kernels/features/shape/pair_sums.h"
#include "kernels/features/shape/shape_morphology.h"
#include "kernels/features/statistics.h"
#include "kernels/morphology/morphology.h"
#include "kernels/peaks/peaks.h"
#include "tests/kernels/ref_ibsi.h"
#include "tests/kernels/ref_morphology.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/share.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct texture_options options = {.families = 1u << TEXTURE_FAMILY_all};
static const uint64_t every_value[4] = {~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0)};
static uint64_t random_state;

START_TEST(phantom_of_ibsi)
{
    static const struct ibsi_published published[] = {
        {"RNU0", 0, 0.556}, {"C0JK", 0, 388},   {"2PR5", 0, 0.698}, {"SKGS", 0, 0.0411}, {"BQWJ", 0, 0.599},
        {"KRCK", 0, 1.19},  {"QCFX", 0, 0.843}, {"25C7", 0, 0.186}, {"KLMA", 0, 0.672},  {"L0JK", 0, 13.1},
        {"TDIC", 0, 11.4},  {"P9VJ", 0, 9.31},  {"7J51", 0, 8.54},  {"Q3CK", 0, 0.816},  {"N17B", 0, 0.749},
        {"PBX1", 0, 0.869}, {"R59B", 0, 0.866}, {"6BDE", 0, 1.17},  {"RDD2", 0, 1.36},   {"R3ER", 0, 0.961},
        {"7T7F", 0, 1.03},  {"99N0", 0, 1.20},
    };

    ibsi_check(&family_morphology, &options, 0, published, sizeof(published) / sizeof(published[0]));
}

END_TEST

START_TEST(neighbours_of_the_phantom)
{
    static const struct ibsi_published published[] = {{"N365", 0, 0.0397}, {"NPT7", 0, 0.974}};

    ibsi_check(&family_spatial_correlation, &options, 0, published, sizeof(published) / sizeof(published[0]));
}

END_TEST

/* ----------------------------------------------------------------------------------- meshes ---- */

enum { SIDE = 5, CELLS = SIDE + 1, PLACES = 2 * CELLS + 1 };

static const struct image_extent cube = {SIDE, SIDE, SIDE};

struct solid {
    uint64_t bits[SIDE * SIDE];
    struct morphology_region region;
    uint64_t counts[MORPHOLOGY_CONFIGURATIONS + SIDE * MORPHOLOGY_SUMS];
};

static void
solid_fill(struct solid *solid, int64_t one_in)
{
    static const uint8_t voxels[SIDE * SIDE * SIDE];

    memset(solid, 0, sizeof(*solid));
    for (int i = 0; i < SIDE * SIDE * SIDE; i++)
        solid->bits[i / SIDE] |= (uint64_t)(ref_random_below(&random_state, one_in) == 0) << i % SIDE;
    solid->region = (struct morphology_region){solid->bits, every_value, 1};
    ref_morphology(cube, IMAGE_UINT8, voxels, &solid->region, solid->counts);
}

/*
 * A mesh: its volume in 48ths, its area, and the count of each edge minus that of the opposite edge. Edges are
 * indexed by the sum of their vertices and by whether the first is the lesser.
 */
struct mesh {
    int32_t edges[2 * PLACES][2 * PLACES][2 * PLACES];
    int64_t volume;
    double area;
};

static void
mesh_add_edge(struct mesh *mesh, const int32_t from[3], const int32_t to[3])
{
    const bool lesser = memcmp(from, to, 3 * sizeof(*from)) < 0;

    mesh->edges[from[2] + to[2]][from[1] + to[1]][from[0] + to[0]] += lesser ? 1 : -1;
}

static void
mesh_add_triangle(struct mesh *mesh, int32_t corners[3][3], const double spacing[3])
{
    double sides[2][3], normal[3];

    for (int i = 0; i < 3; i++) {
        const int32_t *a = corners[i], *b = corners[(i + 1) % 3], *c = corners[(i + 2) % 3];

        mesh_add_edge(mesh, a, b);
        mesh->volume += (int64_t)a[0] * (b[1] * c[2] - b[2] * c[1]);
        for (int side = 0; side < 2; side++)
            sides[side][i] = (corners[side + 1][i] - corners[0][i]) * spacing[i] / 2;
    }
    for (int i = 0; i < 3; i++)
        normal[i] = sides[0][(i + 1) % 3] * sides[1][(i + 2) % 3] - sides[0][(i + 2) % 3] * sides[1][(i + 1) % 3];
    mesh->area += sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]) / 2;
}

static void
mesh_add_cell(struct mesh *mesh, const struct morphology_region *region, const int32_t at[3], const double spacing[3])
{
    int configuration = 0, edges[MESH_CORNERS];

    for (int c = 0; c < 8; c++)
        configuration |=
            ref_morphology_has(cube, region, at[0] - 1 + (c & 1), at[1] - 1 + (c >> 1 & 1), at[2] - 1 + (c >> 2)) << c;
    const int count = mesh_configuration_edges(configuration, edges);
    for (int i = 0; i < count; i += 3) {
        int32_t corners[3][3];

        for (int k = 0; k < 3; k++) {
            mesh_edge_middle(edges[i + k], corners[k]);
            for (int axis = 0; axis < 3; axis++)
                corners[k][axis] += 2 * at[axis];
        }
        mesh_add_triangle(mesh, corners, spacing);
    }
}

/* Checks that all triangles of a region's mesh make a closed surface of the counted volume. */
START_TEST(meshes_are_closed)
{
    static const double spacing[3] = {0.5, 0.75, 2};
    static struct mesh mesh;

    for (int number = (int)test_share_first(); number < 300; number += (int)test_share()) {
        struct solid solid;

        solid_fill(&solid, 1 + number % 6);
        memset(&mesh, 0, sizeof(mesh));
        for (int32_t i = 0; i < CELLS * CELLS * CELLS; i++)
            mesh_add_cell(&mesh, &solid.region, (int32_t[3]){i % CELLS, i / CELLS % CELLS, i / CELLS / CELLS}, spacing);
        for (int i = 0; i < 8 * PLACES * PLACES * PLACES; i++)
            ck_assert_int_eq((&mesh.edges[0][0][0])[i], 0);
        ck_assert_double_eq_tol(mesh_volume(solid.counts, spacing), (double)mesh.volume / 48 * 0.75, 1e-12);
        ck_assert_double_eq_tol(mesh_area(solid.counts, spacing), mesh.area, 1e-10);
    }
}

END_TEST

/* ------------------------------------------------------------------------------------ hulls ---- */

static int64_t
above(const struct hull *hull, size_t facet, const struct hull_point *point)
{
    int64_t a[3], b[3], c[3];

    for (int i = 0; i < 3; i++) {
        a[i] = point->at[i] - hull->points[hull->facets[facet][0]].at[i];
        b[i] = hull->points[hull->facets[facet][1]].at[i] - hull->points[hull->facets[facet][0]].at[i];
        c[i] = hull->points[hull->facets[facet][2]].at[i] - hull->points[hull->facets[facet][0]].at[i];
    }
    return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0]);
}

/*
 * Checks that each edge of a facet is another facet's in the opposite direction, or on the rim, and that no point is
 * outside.
 */
static void
check_side(const struct hull *hull, const struct hull_point *points, size_t count)
{
    ck_assert_uint_eq(hull->facet_count + hull->rim_count, 2 * hull->point_count - 2);
    for (size_t f = 0; f < hull->facet_count; f++)
        for (size_t p = 0; p < count; p++)
            ck_assert_int_le(above(hull, f, &points[p]), 0);
    for (size_t f = 0; f < 3 * hull->facet_count; f++) {
        const int32_t from = hull->facets[f / 3][f % 3], to = hull->facets[f / 3][(f + 1) % 3];
        int found = 0;

        for (size_t g = 0; g < 3 * hull->facet_count; g++)
            found += hull->facets[g / 3][g % 3] == to && hull->facets[g / 3][(g + 1) % 3] == from;
        for (size_t r = 0; r < hull->rim_count; r++)
            found += hull->rim[r][0] == from && hull->rim[r][1] == to;
        ck_assert_int_eq(found, 1);
    }
}

/* Makes both sides. Returns 0, or the reason why there are none. */
static int
make_sides(const struct hull_point *points, size_t count, struct hull sides[HULL_SIDES])
{
    const int lower = hull_make(points, count, HULL_LOWER, &sides[HULL_LOWER]);

    ck_assert_int_eq(hull_make(points, count, HULL_UPPER, &sides[HULL_UPPER]), lower);
    return lower;
}

static void
measure_sides(struct hull sides[HULL_SIDES], const double step[3])
{
    hull_measure(&sides[HULL_LOWER], step);
    hull_measure(&sides[HULL_UPPER], step);
}

static void
clear_sides(struct hull sides[HULL_SIDES])
{
    hull_clear(&sides[HULL_LOWER]);
    hull_clear(&sides[HULL_UPPER]);
}

/* Checks that the hull is the same for any axis that separates the sides. */
static void
check_turned(const struct hull_point *points, size_t count, const double step[3], const struct hull sides[HULL_SIDES])
{
    const double turned_step[3] = {step[1], step[2], step[0]};
    struct hull_point turned[200];
    struct hull other[HULL_SIDES];

    for (size_t p = 0; p < count; p++)
        for (int i = 0; i < 3; i++)
            turned[p].at[i] = points[p].at[(i + 1) % 3];
    if (make_sides(turned, count, other) == 0) { /* else the sides are degenerate */
        measure_sides(other, turned_step);
        const double volume = hull_volume(sides, step), area = hull_area(sides, step);

        ck_assert_double_eq_tol(hull_volume(other, turned_step), volume, 1e-12 * volume + 1e-12);
        ck_assert_double_eq_tol(hull_area(other, turned_step), area, 1e-12 * area);
    }
    clear_sides(other);
}

static double
widest(const struct hull_point *points, size_t count, const double step[3])
{
    double most = 0;

    for (size_t a = 0; a < count; a++)
        for (size_t b = 0; b < a; b++) {
            double square = 0;

            for (int i = 0; i < 3; i++) {
                const double side = (points[b].at[i] - points[a].at[i]) * step[i];

                square += side * side;
            }
            most = fmax(most, square);
        }
    return sqrt(most);
}

/* Uses few places and many points, so that most share a plane, a line or a place with others. */
START_TEST(hulls_of_points)
{
    static const double step[3] = {0.7, 0.9, 2.5};
    static const int64_t sides[] = {2, 3, 5, 20, HULL_MOST + 1};
    struct hull_point points[200];

    for (int number = (int)test_share_first(); number < 400; number += (int)test_share()) {
        const size_t count = 4 + (size_t)ref_random_below(&random_state, 196);
        struct hull hull[HULL_SIDES];
        double diameter;

        for (size_t p = 0; p < count; p++)
            for (int i = 0; i < 3; i++)
                points[p].at[i] = (int32_t)ref_random_below(&random_state, sides[number % 5]);
        if (make_sides(points, count, hull) == 0) {
            check_side(&hull[HULL_LOWER], points, count);
            check_side(&hull[HULL_UPPER], points, count);
            measure_sides(hull, step);
            check_turned(points, count, step, hull);
            ck_assert_int_eq(hull_diameter(hull, step, &diameter), 0);
            ck_assert_double_eq_tol(diameter, widest(points, count, step), 1e-12 * diameter);
        } else {
            ck_assert_int_lt(number % 5, 2); /* in a plane by chance */
        }
        clear_sides(hull);
    }
}

END_TEST

START_TEST(hulls_without_points)
{
    static const struct hull_point flat[] = {{{0, 0, 1}}, {{1, 0, 1}}, {{0, 1, 1}}, {{5, 7, 1}}};
    struct hull hull[HULL_SIDES];

    for (size_t count = 0; count <= 4; count++)
        ck_assert_int_eq(make_sides(flat, count, hull), -EDOM);
}

END_TEST

/* A box of 3 x 5 x 2: its own hull. */
START_TEST(hull_of_a_box)
{
    static const double step[3] = {0.5, 0.25, 2};
    struct hull_point points[8];
    struct hull hull[HULL_SIDES];
    double diameter;

    for (int i = 0; i < 8; i++)
        points[i] = (struct hull_point){{i & 1 ? 3 : 0, i & 2 ? 5 : 0, i & 4 ? 2 : 0}};
    ck_assert_int_eq(make_sides(points, 8, hull), 0);
    measure_sides(hull, step);
    ck_assert_double_eq(hull_volume(hull, step), 1.5 * 1.25 * 4);
    ck_assert_double_eq(hull_area(hull, step), 2 * (1.5 * 1.25 + 1.25 * 4 + 4 * 1.5));
    ck_assert_int_eq(hull_diameter(hull, step, &diameter), 0);
    ck_assert_double_eq(diameter, sqrt(1.5 * 1.5 + 1.25 * 1.25 + 16));
    clear_sides(hull);
}

END_TEST

/* Compares the hull of all vertices of the mesh with that of the selected ones. */
START_TEST(outlines)
{
    static const double half[3] = {1, 1, 1};

    for (int number = 0; number < 200; number++) {
        struct hull whole[HULL_SIDES], hull[HULL_SIDES];
        struct hull_point all[6 * SIDE * SIDE * SIDE];
        struct solid solid;
        size_t vertices = 0;

        solid_fill(&solid, 1 + number % 20);
        for (int32_t i = 0; i < 6 * SIDE * SIDE * SIDE; i++) {
            int32_t at[3] = {i / 6 % SIDE, i / 6 / SIDE % SIDE, i / 6 / SIDE / SIDE};
            const int32_t axis = i % 6 / 2, side = i % 2 ? 1 : -1;

            if (!ref_morphology_has(cube, &solid.region, at[0], at[1], at[2]))
                continue;
            for (int k = 0; k < 3; k++)
                all[vertices].at[k] = 2 * at[k] + 1 + (k == axis ? side : 0);
            at[axis] += side;
            vertices += !ref_morphology_has(cube, &solid.region, at[0], at[1], at[2]);
        }
        for (enum hull_side side = 0; side < HULL_SIDES; side++) {
            const int rc = hull_make(all, vertices, side, &whole[side]);
            struct hull_point *points;
            size_t count;

            ck_assert_int_eq(outline_points(solid.bits, &cube, side, 0, cube.slices, &points, &count), 0);
            ck_assert_int_eq(hull_make(points, count, side, &hull[side]), rc);
            ck_assert_int_eq(vertices == 0, hull[side].facet_count == 0);
            free(points);
        }
        measure_sides(whole, half);
        measure_sides(hull, half);
        ck_assert_double_eq(hull_volume(whole, half), hull_volume(hull, half));
        ck_assert_double_eq_tol(hull_area(whole, half), hull_area(hull, half), 1e-9);
        clear_sides(whole);
        clear_sides(hull);
    }
}

END_TEST

static void
check_bands(const uint64_t *bits, const struct image_extent *extent, enum hull_side side)
{
    struct hull_point *all, *own;
    size_t count, own_count;

    ck_assert_int_eq(outline_points(bits, extent, side, 0, extent->slices, &all, &count), 0);
    ck_assert_uint_gt(count, 0);
    for (int64_t cut = 0; cut <= extent->slices; cut++) {
        const int64_t ends[] = {0, cut, extent->slices};
        size_t before = 0;

        for (int band = 0; band < 2; band++) {
            ck_assert_int_eq(outline_points(bits, extent, side, ends[band], ends[band + 1], &own, &own_count), 0);
            ck_assert_uint_le(before + own_count, count);
            if (own_count > 0)
                ck_assert_mem_eq(own, all + before, own_count * sizeof(*own));
            before += own_count;
            free(own);
        }
        ck_assert_uint_eq(before, count);
    }
    free(all);
}

/*
 * Returns whether a voxel is in a ball, or in planes that rise by a voxel every four slices. Each end of such planes
 * is compared with those four slices away.
 */
static bool
is_of(bool ball, int64_t edge, int64_t x, int64_t y, int64_t z)
{
    const int64_t from[3] = {x - edge / 2, y - edge / 2, z - edge / 2}, radius = edge / 2 - 2;

    if (ball)
        return from[0] * from[0] + from[1] * from[1] + from[2] * from[2] < radius * radius;
    return 4 * x >= z && 4 * (edge - 1 - x) >= z;
}

/* The points of bands must be the same, for any split of the volume. */
START_TEST(outlines_by_bands)
{
    enum { EDGE = 40 };
    static const struct image_extent extent = {EDGE, EDGE, EDGE};
    uint64_t bits[EDGE * EDGE] = {0};

    for (int i = 0; i < EDGE * EDGE; i++)
        for (int x = 0; x < EDGE; x++)
            bits[i] |= (uint64_t)is_of(_i, EDGE, x, i % EDGE, i / EDGE) << x;
    for (enum hull_side side = 0; side < HULL_SIDES; side++)
        check_bands(bits, &extent, side);
}

END_TEST

/* ------------------------------------------------------------------------------- ellipsoids ---- */

/* If two axes are equal, IBSI's series has a closed sum. */
START_TEST(areas_of_ellipsoids)
{
    static const double sphere[3] = {3, 3, 3}, two_long[3] = {2, 2, 1.8}, two_short[3] = {2, 1.8, 1.8};
    const double pi = acos(-1), e = sqrt(1 - 0.9 * 0.9);

    ck_assert_double_eq_tol(ellipsoid_area(sphere), 36 * pi, 1e-12);
    ck_assert_double_eq_tol(ellipsoid_area(two_long), 8 * pi * (asin(e) / e + 0.9), 1e-12);
    ck_assert_double_eq_tol(ellipsoid_area(two_short), 4 * pi * 1.8 * (atanh(e) / e + 1 - e * atanh(e)), 1e-12);
}

END_TEST

/* ------------------------------------------------------------------------- missing values ---- */

struct scene {
    struct feature_volume volume;
    struct feature_region region;
    struct image_rescale rescale;
    uint64_t histogram[256];
    uint64_t counts[MORPHOLOGY_CONFIGURATIONS + SIDE * MORPHOLOGY_SUMS];
};

static void
take(struct scene *scene, const uint64_t *bits, const uint8_t *voxels, const uint64_t *kept,
     struct feature_value values[MORPHOLOGY_FEATURES])
{
    const struct morphology_region region = {bits, kept, 1};

    ref_morphology(cube, IMAGE_UINT8, voxels, &region, scene->counts);
    scene->volume = (struct feature_volume){.options = &options,
                                            .columns = SIDE,
                                            .rows = SIDE,
                                            .slices = SIDE,
                                            .spacing = {1, 1, 2},
                                            .tables = 1,
                                            .values = 256,
                                            .rescales = &scene->rescale};
    scene->region = (struct feature_region){.volume = &scene->volume, .bits = bits, .histograms = scene->histogram};
    for (int f = 0; f < MORPHOLOGY_FEATURES; f++)
        values[f] = feature_absent(FEATURE_EMPTY_REGION);
    ck_assert_int_eq(family_morphology.values(&scene->region, 0, scene->counts, values), 0);
}

START_TEST(empty_regions)
{
    static const uint8_t voxels[SIDE * SIDE * SIDE];
    static const uint64_t no_value[4];
    struct feature_value values[MORPHOLOGY_FEATURES];
    uint64_t bits[SIDE * SIDE] = {0};
    struct scene scene = {.rescale = {1, 0}};

    take(&scene, bits, voxels, every_value, values);
    for (int f = 0; f < MORPHOLOGY_FEATURES; f++)
        ck_assert_int_eq(values[f].missing, FEATURE_EMPTY_REGION);
    bits[7] = 5; /* two voxels; re-segmentation excludes both */
    take(&scene, bits, voxels, no_value, values);
    ck_assert_int_eq(values[MORPHOLOGY_VOLUME].missing, FEATURE_PRESENT);
    ck_assert_int_eq(values[MORPHOLOGY_CENTRE_SHIFT].missing, FEATURE_EMPTY_REGION);
    ck_assert_int_eq(values[MORPHOLOGY_INTEGRATED_INTENSITY].missing, FEATURE_EMPTY_REGION);
}

END_TEST

/* An octahedron of one voxel, which has no axes. Values of 0 have no centre. */
START_TEST(one_voxel)
{
    static const uint8_t voxels[SIDE * SIDE * SIDE];
    struct feature_value values[MORPHOLOGY_FEATURES];
    uint64_t bits[SIDE * SIDE] = {0};
    struct scene scene = {.rescale = {1, 0}};

    bits[SIDE * 2 + 2] = 4;
    take(&scene, bits, voxels, every_value, values);
    ck_assert_double_eq_tol(values[MORPHOLOGY_VOLUME].value, 2.0 / 6 / 1000, 1e-18);
    ck_assert_double_eq_tol(values[MORPHOLOGY_DIAMETER].value, 2, 1e-15);
    ck_assert_double_eq_tol(values[MORPHOLOGY_HULL_VOLUME_DENSITY].value, 1, 1e-15);
    ck_assert_double_eq_tol(values[MORPHOLOGY_HULL_AREA_DENSITY].value, 1, 1e-15);
    ck_assert_double_eq_tol(values[MORPHOLOGY_BOX_VOLUME_DENSITY].value, 1.0 / 6, 1e-15);
    ck_assert(values[MORPHOLOGY_MAJOR_AXIS].missing == FEATURE_PRESENT && values[MORPHOLOGY_MAJOR_AXIS].value == 0);
    ck_assert_int_eq(values[MORPHOLOGY_ELONGATION].missing, FEATURE_DIVISION_BY_ZERO);
    ck_assert_int_eq(values[MORPHOLOGY_FLATNESS].missing, FEATURE_DIVISION_BY_ZERO);
    ck_assert_int_eq(values[MORPHOLOGY_ELLIPSOID_VOLUME_DENSITY].missing, FEATURE_DIVISION_BY_ZERO);
    ck_assert_int_eq(values[MORPHOLOGY_ELLIPSOID_AREA_DENSITY].missing, FEATURE_DIVISION_BY_ZERO);
    ck_assert_int_eq(values[MORPHOLOGY_CENTRE_SHIFT].missing, FEATURE_DIVISION_BY_ZERO);
    ck_assert_double_eq(values[MORPHOLOGY_INTEGRATED_INTENSITY].value, 0);
}

END_TEST

/* The corners of one slice: flat, and an ellipsoid without volume. Values 1 and 3 along a row. */
START_TEST(one_slice)
{
    uint8_t voxels[SIDE * SIDE * SIDE];
    struct feature_value values[MORPHOLOGY_FEATURES];
    uint64_t bits[SIDE * SIDE] = {0};
    struct scene scene = {.rescale = {0.5, 1}};

    for (int i = 0; i < SIDE * SIDE * SIDE; i++)
        voxels[i] = i % SIDE ? 4 : 0; /* 3 and 1 in real-world values */
    bits[2 * SIDE] = bits[2 * SIDE + 4] = 0x11;
    take(&scene, bits, voxels, every_value, values);
    ck_assert_double_eq(values[MORPHOLOGY_LEAST_AXIS].value, 0);
    ck_assert_double_eq(values[MORPHOLOGY_FLATNESS].value, 0);
    ck_assert_double_eq_tol(values[MORPHOLOGY_ELONGATION].value, 1, 1e-15);
    ck_assert_double_eq_tol(values[MORPHOLOGY_MAJOR_AXIS].value, 4 * sqrt(16.0 / 3), 1e-14);
    ck_assert_double_eq_tol(values[MORPHOLOGY_DIAMETER].value, sqrt(5 * 5 + 4 * 4), 1e-14);
    ck_assert_int_eq(values[MORPHOLOGY_ELLIPSOID_VOLUME_DENSITY].missing, FEATURE_DIVISION_BY_ZERO);
    ck_assert_int_eq(values[MORPHOLOGY_ELLIPSOID_AREA_DENSITY].missing, FEATURE_PRESENT);
    ck_assert_double_eq_tol(values[MORPHOLOGY_CENTRE_SHIFT].value, 1, 1e-15); /* at 3, not at 2 */
    ck_assert_double_eq_tol(values[MORPHOLOGY_INTEGRATED_INTENSITY].value, 2 * values[MORPHOLOGY_VOLUME].value, 1e-18);
}

END_TEST

static void
set_up(void)
{
    random_state = 1;
}

/* ---------------------------------------------------------------- volumes of real-world values -- */

/* Makes a box of values, some of them not in the region (NAN). Odd numbers have values near a large one. */
static double *
make_reals(const int64_t size[3], int number)
{
    const int64_t voxels = size[0] * size[1] * size[2];
    double *values = malloc((size_t)voxels * sizeof(*values));

    ck_assert_ptr_nonnull(values);
    for (int64_t i = 0; i < voxels; i++) {
        const double value = (double)ref_random_below(&random_state, 1 << 30) / (1 << 20) - 200;

        values[i] = number % 2 ? 1e6 + value * 1e-3 : value;
        if (ref_random_below(&random_state, 10) < number)
            values[i] = NAN;
    }
    return values;
}

static const struct pair_box pair_boxes[] = {
    {.size = {13, 11, 7}, .spacing = {0.7, 0.9, 2.5}}, {.size = {1, 1, 40}, .spacing = {1, 1, 3}},
    {.size = {30, 1, 1}, .spacing = {0.3, 1, 1}},      {.size = {2, 9, 17}, .spacing = {5, 0.1, 1}},
    {.size = {8, 27, 3}, .spacing = {1, 1, 1}},
};

static void
close_to(double found, double expected, double size)
{
    ck_assert_msg(fabs(found - expected) <= 1e-12 * size, "%.17g is not %.17g", found, expected);
}

/* Compares with all pairs, one by one. */
START_TEST(pairs_of_real_values)
{
    for (int number = 0; number < 8; number++) {
        struct pair_box box = pair_boxes[_i];
        const int64_t voxels = box.size[0] * box.size[1] * box.size[2];
        double *values = make_reals(box.size, number), weights = 0, products = 0, squares = 0;
        struct pair_sums sums, alone;

        box.values = values;
        ck_assert_int_gt(pair_sums_points(box.size), 0);
        ck_assert_int_eq(pair_sums_make(&box, 3, &sums), 0);
        ck_assert_int_eq(pair_sums_make(&box, 1, &alone), 0);
        ck_assert_mem_eq(&sums, &alone, sizeof(sums));
        for (int64_t a = 0; a < voxels; a++)
            for (int64_t b = 0; b < voxels; b++) {
                const int64_t x = a % box.size[0] - b % box.size[0], z = a / box.size[0] / box.size[1];
                const int64_t y = a / box.size[0] % box.size[1] - b / box.size[0] % box.size[1];
                const double dx = (double)x * box.spacing[0], dy = (double)y * box.spacing[1];
                const double dz = (double)(z - b / box.size[0] / box.size[1]) * box.spacing[2];
                const double weight = a == b ? 0 : 1 / sqrt(dx * dx + dy * dy + dz * dz);

                if (isnan(values[a]) || isnan(values[b]))
                    continue;
                weights += weight;
                products += weight * (values[a] - sums.mean) * (values[b] - sums.mean);
                squares += weight * (values[a] - values[b]) * (values[a] - values[b]);
            }
        close_to(sums.weights, weights, weights);
        close_to(sums.squares, squares, squares);
        close_to(sums.products, products, squares);
        free(values);
    }
}

END_TEST

START_TEST(boxes_of_pairs_that_are_too_large)
{
    ck_assert_int_gt(pair_sums_points((int64_t[]){213, 213, 213}), 0); /* of a ball of 5 million voxels */
    ck_assert_int_eq(pair_sums_points((int64_t[]){512, 512, 300}), 0);
    ck_assert_int_eq(pair_sums_points((int64_t[]){INT64_C(1) << 40, 1, 1}), 0);
}

END_TEST

/* Compares with each ball, voxel by voxel, for values with few bits, whose sums are exact. */
START_TEST(peaks_of_real_values)
{
    const struct image_extent extent = {23, 17, 6};
    const double spacing[3] = {1.3, 1.1, 2.9};
    double *values = make_reals((int64_t[]){23, 17, 6}, 2 + _i), local = -INFINITY, global = -INFINITY;
    uint64_t bits[17 * 6];
    struct peaks request = {.region = bits, .kept = {-150, 700}, .largest = -INFINITY};
    struct peaks_found found;

    memcpy(request.spacing, spacing, sizeof(spacing));
    for (int row = 0; row < 17 * 6; row++)
        bits[row] = ref_random(&random_state) & ref_random(&random_state);
    for (int i = 0; i < 23 * 17 * 6; i++)
        values[i] = floor(values[i] * 8) / 8;
    for (int i = 0; i < 23 * 17 * 6; i++)
        if (bits[i / 23] >> i % 23 & 1 && values[i] <= 700)
            request.largest = fmax(request.largest, values[i]);
    ck_assert_int_eq(peaks_of_reals(&request, values, &extent, &found), 0);
    for (int i = 0; i < 23 * 17 * 6; i++) {
        double sum = 0, count = 0;

        for (int j = 0; j < 23 * 17 * 6; j++) {
            const double x = (i % 23 - j % 23) * spacing[0], y = (i / 23 % 17 - j / 23 % 17) * spacing[1];
            const double z = (i / 23 / 17 - j / 23 / 17) * spacing[2];

            if (isnan(values[j]) || x * x + y * y + z * z > PEAKS_RADIUS_MM * PEAKS_RADIUS_MM)
                continue;
            sum += values[j];
            count++;
        }
        if (!(bits[i / 23] >> i % 23 & 1) || !(values[i] >= -150 && values[i] <= 700))
            continue;
        global = fmax(global, sum / count);
        local = values[i] == request.largest ? fmax(local, sum / count) : local;
    }
    ck_assert_double_eq(found.global, global);
    ck_assert_double_eq(found.local, local);
    free(values);
}

END_TEST

static int
compare_values(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Checks statistics without a list against those of the list: percentiles are equal, and sums of finite values up to rounding. */
static void
check_statistics_without_list(struct kernels_lane *lane, const double *values, const struct image_extent *extent,
                              const uint64_t *bits, const double kept[2], const struct value_list *list)
{
    struct feature_value found[STATISTICS], expected[STATISTICS], alone[STATISTICS];
    const int rc = statistics_of_reals(lane, values, extent, bits, kept, 3, found);

    ck_assert_int_eq(rc, list->size > 0 ? 0 : -ENODATA);
    if (rc)
        return;
    statistics_of(list, 3, expected);
    ck_assert_int_eq(statistics_of_reals(NULL, values, extent, bits, kept, 3, alone), 0);
    for (int s = 0; s < STATISTICS; s++) {
        const bool is_rank =
            (s >= STATISTIC_MEDIAN && s <= STATISTIC_RANGE) || s == STATISTIC_QUARTILE_COEFFICIENT_OF_DISPERSION;
        const double a = found[s].value, b = expected[s].value, bound = is_rank ? 0 : 1e-12 * fabs(b);

        ck_assert_int_eq(found[s].missing, expected[s].missing);
        ck_assert_int_eq(memcmp(&a, &alone[s].value, sizeof(a)), 0);
        ck_assert_msg((isnan(a) && isnan(b)) || a == b || fabs(a - b) <= bound, "statistic %d: %.17g, not %.17g", s, a,
                      b);
    }
}

/* Ascending and unique, with values of both signs, zeros of both signs, infinities, and values that are almost equal; all, some or none
 * of them. Few and many values, with threads or without. */
START_TEST(lists_of_real_values)
{
    static const double kept[][2] = {{-INFINITY, INFINITY}, {-1, 1000 + 0x1p-36}, {1e300, -1e300}};
    static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, 5e-324, -5e-324, 1.7e308, -1.7e308, 1, 1, -1};
    const bool is_many = _i >= 3;
    const double *own = kept[_i % 3];
    const struct image_extent extent = {70, is_many ? 50 : 5, is_many ? 30 : 3};
    const int64_t voxels = image_voxels(&extent), words = 2 * extent.rows * extent.slices;
    const struct kernels_device_options three = {.backend = "cpu", .threads = 3};
    double *values = make_reals((int64_t[]){extent.columns, extent.rows, extent.slices}, 3);
    double *sorted = malloc((size_t)voxels * sizeof(*sorted));
    uint64_t *bits = malloc((size_t)words * sizeof(*bits));
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct value_list list;
    size_t count = 0, at = 0;

    ck_assert_int_eq(kernels_device_open(&three, &device, NULL), 0);
    ck_assert_int_eq(kernels_lane_open(device, &lane, NULL), 0);
    memcpy(values + 100, odd, sizeof(odd));
    for (int i = 200; i < 700; i++) /* that differ in their last bits only */
        values[i] = i < 600 ? 1000 + (double)(ref_random(&random_state) % 300) * 0x1p-43
                            : 2000 + i % 50 + (double)(ref_random(&random_state) % 9) * 0x1p-42;
    for (int64_t i = 0; i < words; i++)
        bits[i] = ref_random(&random_state) | (i == 2 || i == 3 || is_many ? UINT64_MAX : 0);
    for (int64_t i = 0; i < voxels; i++)
        if (bits[i / 70 * 2 + i % 70 / 64] >> i % 70 % 64 & 1 && values[i] >= own[0] && values[i] <= own[1])
            sorted[count++] = values[i];
    qsort(sorted, count, sizeof(*sorted), compare_values);
    ck_assert(_i != 3 || count > 60000);
    for (int threads = 0; threads < 2; threads++) {
        ck_assert_int_eq(value_list_of_reals(threads ? lane : NULL, values, &extent, bits, own, &list), 0);
        ck_assert_double_eq(list.total, (double)count);
        at = 0;
        for (size_t i = 0; i < list.size; i++) {
            ck_assert(i == 0 || list.items[i].value > list.items[i - 1].value);
            for (uint64_t c = 0; c < list.items[i].count; c++)
                ck_assert_double_eq(sorted[at++], list.items[i].value);
        }
        ck_assert_uint_eq(at, count);
        check_statistics_without_list(threads ? lane : NULL, values, &extent, bits, own, &list);
        free(list.items);
    }
    kernels_lane_close(lane);
    kernels_device_close(device);
    free(bits);
    free(sorted);
    free(values);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("features_morphology");
    TCase *tcase = tcase_create("features_morphology");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, phantom_of_ibsi);
    tcase_add_test(tcase, neighbours_of_the_phantom);
    tcase_add_test(tcase, meshes_are_closed);
    tcase_add_test(tcase, hulls_of_points);
    tcase_add_test(tcase, hulls_without_points);
    tcase_add_test(tcase, hull_of_a_box);
    tcase_add_test(tcase, outlines);
    tcase_add_loop_test(tcase, outlines_by_bands, 0, 2);
    tcase_add_test(tcase, areas_of_ellipsoids);
    tcase_add_test(tcase, empty_regions);
    tcase_add_test(tcase, one_voxel);
    tcase_add_test(tcase, one_slice);
    tcase_add_loop_test(tcase, pairs_of_real_values, 0, sizeof(pair_boxes) / sizeof(pair_boxes[0]));
    tcase_add_test(tcase, boxes_of_pairs_that_are_too_large);
    tcase_add_loop_test(tcase, peaks_of_real_values, 0, 3);
    tcase_add_loop_test(tcase, lists_of_real_values, 0, 6);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
