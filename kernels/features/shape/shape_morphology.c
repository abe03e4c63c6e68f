/* shape_morphology.c - see shape_morphology.h. Features use the morphological mask, unless they depend on
 * values. */
#include "kernels/features/shape/shape_morphology.h"

#include "kernels/features/matrices/eigen.h"
#include "kernels/features/shape/hull.h"
#include "kernels/features/shape/mesh.h"
#include "kernels/features/shape/outline.h"
#include "kernels/features/shape/plane_diameters.h"
#include "kernels/features/shape/shape.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct feature_definition morphology_definitions[MORPHOLOGY_FEATURES] = {
    {"mesh_volume", "Volume (mesh)", "RNU0", .unit = "ml", .of_bits = true},
    {"surface_area", "Surface area (mesh)", "C0JK", .unit = "mm2", .of_bits = true},
    {"surface_to_volume_ratio", "Surface to volume ratio", "2PR5", .unit = "/mm", .of_bits = true},
    {"compactness_1", "Compactness 1", "SKGS", .unit = "1", .of_bits = true},
    {"compactness_2", "Compactness 2", "BQWJ", .unit = "1", .of_bits = true},
    {"spherical_disproportion", "Spherical disproportion", "KRCK", .unit = "1", .of_bits = true},
    {"sphericity", "Sphericity", "QCFX", .unit = "1", .of_bits = true},
    {"asphericity", "Asphericity", "25C7", .unit = "1", .of_bits = true},
    {"centre_of_mass_shift", "Centre of mass shift", "KLMA", .unit = "mm"},
    {"maximum_3d_diameter", "Maximum 3D diameter", "L0JK", .unit = "mm", .of_bits = true},
    {"maximum_2d_diameter_slice", "Maximum 2D diameter in planes of one slice", "", .unit = "mm", .of_bits = true},
    {"maximum_2d_diameter_column", "Maximum 2D diameter in planes of one row", "", .unit = "mm", .of_bits = true},
    {"maximum_2d_diameter_row", "Maximum 2D diameter in planes of one column", "", .unit = "mm", .of_bits = true},
    {"major_axis_length", "Major axis length", "TDIC", .unit = "mm", .of_bits = true},
    {"minor_axis_length", "Minor axis length", "P9VJ", .unit = "mm", .of_bits = true},
    {"least_axis_length", "Least axis length", "7J51", .unit = "mm", .of_bits = true},
    {"elongation", "Elongation", "Q3CK", .unit = "1", .of_bits = true},
    {"flatness", "Flatness", "N17B", .unit = "1", .of_bits = true},
    {"volume_density_box", "Volume density (axis-aligned bounding box)", "PBX1", .unit = "1", .of_bits = true},
    {"area_density_box", "Area density (axis-aligned bounding box)", "R59B", .unit = "1", .of_bits = true},
    {"volume_density_ellipsoid", "Volume density (approximate enclosing ellipsoid)", "6BDE", .unit = "1",
     .of_bits = true},
    {"area_density_ellipsoid", "Area density (approximate enclosing ellipsoid)", "RDD2", .unit = "1", .of_bits = true},
    {"volume_density_hull", "Volume density (convex hull)", "R3ER", .unit = "1", .of_bits = true},
    {"area_density_hull", "Area density (convex hull)", "7T7F", .unit = "1", .of_bits = true},
    {"integrated_intensity", "Integrated intensity", "99N0", .unit = "ml", .value_power = 1},
};

enum { ELLIPSOID_TERMS = 20 };

#define PI 3.14159265358979323846

/* Parts of the form: the position of the bits, the diameters within planes, then each side of the hull in bands of slices. */
enum { FORM_PLACE, FORM_PLANES, FORM_SIDES, FORM_BANDS = 4, FORM_PARTS = FORM_SIDES + HULL_SIDES * FORM_BANDS };

/* The points of a side of the hull. */
struct form_outline {
    struct hull_point *points[FORM_BANDS];
    size_t counts[FORM_BANDS];
    atomic_int made; /* bands finished */
};

/* Results from the bits only: their position, and the hull of their mesh, unless they are empty. */
struct morphology_form {
    struct shape_place place;
    struct form_outline outlines[HULL_SIDES];
    struct hull sides[HULL_SIDES];
    atomic_int made; /* sides finished */
    double diameter; /* of both sides */
    double within[PLANES_OF_VOXELS];
};

/* Quantities shared by several features. */
struct form {
    const struct feature_region *region;
    const uint64_t *counts;
    const double *spacing;
    const struct morphology_form *of_bits;
    double volume, area; /* of the mesh: mm3, mm2 */
    struct feature_value *values;
};

static struct feature_value
ratio(double of, double by)
{
    return by != 0 ? feature_present(of / by) : feature_absent(FEATURE_DIVISION_BY_ZERO);
}

/* --------------------------------------------------------------------------------- the mesh ---- */

static void
form_put_mesh(const struct form *form)
{
    const struct shape_place *place = &form->of_bits->place;
    const double volume = form->volume, area = form->area;
    /* area of a sphere with this volume */
    const double as_sphere = cbrt(36 * PI * volume * volume);
    const double compactness = 36 * PI * volume * volume / (area * area * area);
    struct feature_value *values = form->values;
    double side[3]; /* of the bounding box */

    values[MORPHOLOGY_VOLUME] = feature_present(volume / 1000);
    values[MORPHOLOGY_AREA] = feature_present(area);
    values[MORPHOLOGY_AREA_BY_VOLUME] = feature_present(area / volume);
    values[MORPHOLOGY_COMPACTNESS_1] = feature_present(volume / (sqrt(PI) * area * sqrt(area)));
    values[MORPHOLOGY_COMPACTNESS_2] = feature_present(compactness);
    values[MORPHOLOGY_SPHERICAL_DISPROPORTION] = feature_present(area / as_sphere);
    values[MORPHOLOGY_SPHERICITY] = feature_present(as_sphere / area);
    values[MORPHOLOGY_ASPHERICITY] = feature_present(area / as_sphere - 1);
    for (int i = 0; i < 3; i++)
        side[i] = (double)(place->last[i] - place->first[i] + 1) * form->spacing[i];
    values[MORPHOLOGY_BOX_VOLUME_DENSITY] = feature_present(volume / (side[0] * side[1] * side[2]));
    values[MORPHOLOGY_BOX_AREA_DENSITY] =
        feature_present(area / (2 * (side[0] * side[1] + side[1] * side[2] + side[2] * side[0])));
}

/* Returns the mm of a half voxel, the unit of the mesh's coordinates. */
static void
form_half_steps(const struct feature_volume *volume, double half[3])
{
    for (int i = 0; i < 3; i++)
        half[i] = volume->spacing[i] / 2;
}

/* Computes the hull and the diameter of the mesh's vertices. */
static void
form_put_hull(const struct form *form)
{
    const struct hull *sides = form->of_bits->sides;
    struct feature_value *values = form->values;
    double half[3];

    form_half_steps(form->region->volume, half);
    values[MORPHOLOGY_DIAMETER] = feature_present(form->of_bits->diameter);
    values[MORPHOLOGY_DIAMETER_SLICE] = feature_present(form->of_bits->within[PLANE_OF_SLICE]);
    values[MORPHOLOGY_DIAMETER_COLUMN] = feature_present(form->of_bits->within[PLANE_OF_ROW]);
    values[MORPHOLOGY_DIAMETER_ROW] = feature_present(form->of_bits->within[PLANE_OF_COLUMN]);
    values[MORPHOLOGY_HULL_VOLUME_DENSITY] = feature_present(form->volume / hull_volume(sides, half));
    values[MORPHOLOGY_HULL_AREA_DENSITY] = feature_present(form->area / hull_area(sides, half));
}

/* --------------------------------------------------------------------------- principal axes ---- */

/* Computes the sample covariance of the voxels' centres, in integers until the division by n (n -
 * 1). */
static void
form_covariance(const struct form *form, double matrix[9])
{
    const struct shape_place *place = &form->of_bits->place;
    const double others = (double)(place->voxels > 1 ? place->voxels - 1 : 1);
    const double pairs = (double)place->voxels * others;

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const shape_product sum = i == j ? place->square[i] : place->product[3 - i - j];
            const shape_product whole = place->voxels * sum - (shape_product)place->sum[i] * place->sum[j];

            matrix[3 * i + j] = (double)whole / pairs * form->spacing[i] * form->spacing[j];
        }
}

double
ellipsoid_area(const double axes[3])
{
    const double alpha = 1 - axes[1] * axes[1] / (axes[0] * axes[0]);
    const double beta = 1 - axes[2] * axes[2] / (axes[0] * axes[0]); /* squares of eccentricities */
    const double middle = (alpha + beta) / 2, both = alpha * beta;
    double sum = 0, term = 1, before = 0; /* (alpha beta)^n times the Legendre polynomial of n */

    for (int n = 0; n <= ELLIPSOID_TERMS; n++) {
        const double next = ((2 * n + 1) * middle * term - n * both * before) / (n + 1);

        sum += term / (1 - 4.0 * n * n);
        before = term;
        term = next;
    }
    return 4 * PI * axes[0] * axes[1] * sum;
}

static void
form_put_axes(const struct form *form)
{
    struct feature_value *values = form->values;
    double matrix[9], diagonal[3], below[2], work[9], variance[3], axes[3];

    form_covariance(form, matrix);
    eigen_tridiagonal(matrix, 3, diagonal, below, work);
    for (int i = 0; i < 3; i++)
        variance[i] = eigen_of_rank(diagonal, below, 3, 2 - i); /* the largest first */
    for (int i = 0; i < 3; i++) {
        axes[i] = variance[i] > 1e-14 * variance[0] ? 2 * sqrt(variance[i]) : 0; /* rounding residues of 0 become 0 */
        values[MORPHOLOGY_MAJOR_AXIS + i] = feature_present(2 * axes[i]);
    }
    values[MORPHOLOGY_ELONGATION] = ratio(axes[1], axes[0]);
    values[MORPHOLOGY_FLATNESS] = ratio(axes[2], axes[0]);
    values[MORPHOLOGY_ELLIPSOID_VOLUME_DENSITY] = ratio(3 * form->volume, 4 * PI * axes[0] * axes[1] * axes[2]);
    values[MORPHOLOGY_ELLIPSOID_AREA_DENSITY] = ratio(form->area, axes[1] > 0 ? ellipsoid_area(axes) : 0);
}

/* ---------------------------------------------------------------------------------- values ---- */

/* Sums over the intensity mask: voxels, values, and values times coordinates. */
struct weights {
    double voxels, value, at[3];
};

/* Returns a slice's sum of coordinates along an axis of the larger volume, weighted by another
 * sum. */
static double
weights_place(const struct feature_volume *volume, int axis, uint64_t places, uint64_t of)
{
    return (double)(places + (uint64_t)volume->first[axis] * of);
}

static void
weights_add_slice(const struct form *form, int64_t z, struct weights *weights)
{
    const struct feature_volume *volume = form->region->volume;
    const struct image_rescale *rescale = &volume->rescales[volume->tables > 1 ? z : 0];
    const uint64_t *sums = form->counts + MORPHOLOGY_CONFIGURATIONS + z * MORPHOLOGY_SUMS;
    const double least = rescale->slope * volume->smallest + rescale->intercept;
    const double value = rescale->slope * (double)sums[MORPHOLOGY_VALUE] + least * (double)sums[MORPHOLOGY_VOXELS];

    weights->voxels += (double)sums[MORPHOLOGY_VOXELS];
    weights->value += value;
    weights->at[0] += rescale->slope * weights_place(volume, 0, sums[MORPHOLOGY_VALUE_X], sums[MORPHOLOGY_VALUE]) +
                      least * weights_place(volume, 0, sums[MORPHOLOGY_X], sums[MORPHOLOGY_VOXELS]);
    weights->at[1] += rescale->slope * weights_place(volume, 1, sums[MORPHOLOGY_VALUE_Y], sums[MORPHOLOGY_VALUE]) +
                      least * weights_place(volume, 1, sums[MORPHOLOGY_Y], sums[MORPHOLOGY_VOXELS]);
    weights->at[2] += value * (double)(volume->first[2] + z);
}

/* Adds a slice of real-world values. */
static void
weights_add_reals(const struct form *form, int64_t z, struct weights *weights)
{
    const struct feature_region *region = form->region;
    const struct feature_volume *volume = region->volume;

    for (int64_t y = 0; y < volume->rows; y++)
        for (int64_t x = 0; x < volume->columns; x++) {
            const int64_t row = z * volume->rows + y;
            const double value = volume->reals[row * volume->columns + x];

            if (!image_has(region->bits, volume->columns, row, x) || !(value >= region->kept[0]) ||
                !(value <= region->kept[1]))
                continue;
            weights->voxels++;
            weights->value += value;
            weights->at[0] += value * (double)(volume->first[0] + x);
            weights->at[1] += value * (double)(volume->first[1] + y);
            weights->at[2] += value * (double)(volume->first[2] + z);
        }
}

static void
form_put_values(const struct form *form)
{
    const struct shape_place *place = &form->of_bits->place;
    struct feature_value *shift = &form->values[MORPHOLOGY_CENTRE_SHIFT];
    struct weights weights = {0};
    double square = 0;

    for (int64_t z = 0; z < form->region->volume->slices; z++)
        (form->region->volume->reals ? weights_add_reals : weights_add_slice)(form, z, &weights);
    if (weights.voxels == 0)
        return;
    form->values[MORPHOLOGY_INTEGRATED_INTENSITY] =
        feature_present(weights.value / weights.voxels * form->volume / 1000);
    for (int i = 0; i < 3; i++) {
        const int64_t first = place->voxels * form->region->volume->first[i];
        const double centre = (double)(place->sum[i] + first) / (double)place->voxels;
        const double from = (weights.at[i] / weights.value - centre) * form->spacing[i];

        square += from * from;
    }
    *shift = weights.value != 0 && isfinite(square) ? feature_present(sqrt(square))
                                                    : feature_absent(FEATURE_DIVISION_BY_ZERO);
}

/* -------------------------------------------------------------------------- of the bits alone ---- */

/* Joins all bands in order. A region without voxels has no hull. */
static int
form_make_side(const struct feature_volume *volume, enum hull_side side, const struct form_outline *outline,
               struct hull *hull)
{
    struct hull_point *points;
    double half[3];
    size_t count = 0;
    int rc;

    for (int band = 0; band < FORM_BANDS; band++)
        count += outline->counts[band];
    if (count == 0)
        return 0;
    points = malloc(count * sizeof(*points));
    if (!points)
        return -ENOMEM;
    count = 0;
    for (int band = 0; band < FORM_BANDS; count += outline->counts[band++])
        if (outline->counts[band] > 0)
            memcpy(points + count, outline->points[band], outline->counts[band] * sizeof(*points));
    rc = hull_make(points, count, side, hull);
    free(points);
    form_half_steps(volume, half);
    hull_measure(hull, half);
    return rc;
}

/* The thread that finishes the last band makes the side. The thread that finishes the last side
 * measures both. */
static int
morphology_form(const struct feature_region *region, size_t part, void *made)
{
    const struct image_extent extent = feature_extent(region->volume);
    struct morphology_form *form = made;
    double half[3];
    int rc;

    if (part == FORM_PLACE) {
        shape_place_of(region->volume->lane, region->bits, &extent, &form->place);
        return 0;
    }
    if (part == FORM_PLANES)
        return plane_diameters(region->bits, &extent, region->volume->spacing, form->within);
    const enum hull_side side = (enum hull_side)((part - FORM_SIDES) % HULL_SIDES);
    const int band = (int)(part - FORM_SIDES) / HULL_SIDES;
    struct form_outline *outline = &form->outlines[side];

    rc = outline_points(region->bits, &extent, side, band * extent.slices / FORM_BANDS,
                        (band + 1) * extent.slices / FORM_BANDS, &outline->points[band], &outline->counts[band]);
    if (atomic_fetch_add(&outline->made, 1) + 1 < FORM_BANDS)
        return rc;
    if (rc == 0)
        rc = form_make_side(region->volume, side, outline, &form->sides[side]);
    form_half_steps(region->volume, half);
    if (atomic_fetch_add(&form->made, 1) + 1 == HULL_SIDES && rc == 0 && form->sides[HULL_LOWER].point_count > 0)
        rc = hull_diameter(form->sides, half, &form->diameter);
    return rc;
}

static void
morphology_form_clear(void *made)
{
    struct morphology_form *form = made;

    for (int side = 0; side < HULL_SIDES; side++) {
        for (int band = 0; band < FORM_BANDS; band++)
            free(form->outlines[side].points[band]);
        hull_clear(&form->sides[side]);
    }
}

/* ------------------------------------------------------------------------------- the family ---- */

static int
morphology_count(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error)
{
    struct morphology_region made;
    uint64_t *kept;
    int rc = shape_kept_make(region, &made, &kept, error);

    (void)set;
    if (rc == 0)
        rc = feature_counts_make(morphology_size(region->volume->slices), counts, error);
    if (rc == 0)
        rc = morphology_run(region->volume->lane, &made, *counts, error);
    free(kept);
    return rc;
}

static int
morphology_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    struct morphology_form own = {.place = {0}};
    const struct form form = {
        .region = region,
        .counts = counts,
        .spacing = region->volume->spacing,
        .of_bits = region->form ? region->form : &own,
        .volume = mesh_volume(counts, region->volume->spacing),
        .area = mesh_area(counts, region->volume->spacing),
        .values = values,
    };
    int rc = 0;

    (void)set;
    for (size_t part = 0; part < FORM_PARTS && !region->form && rc == 0; part++)
        rc = morphology_form(region, part, &own);
    if (rc == 0 && form.of_bits->place.voxels > 0) {
        form_put_mesh(&form);
        form_put_axes(&form);
        form_put_values(&form);
        form_put_hull(&form);
    }
    morphology_form_clear(&own);
    return rc;
}

const struct feature_family family_morphology = {
    .name = "morphology",
    .definitions = morphology_definitions,
    .definition_count = MORPHOLOGY_FEATURES,
    .needs = FEATURE_NEEDS_VALUES,
    .of_intensities = true,
    .space = FEATURE_OF_VOLUME,
    .choice = TEXTURE_FAMILY_morphology,
    .form_size = sizeof(struct morphology_form),
    .form_parts = FORM_PARTS,
    .form = morphology_form,
    .form_clear = morphology_form_clear,
    .op = KERNELS_MORPHOLOGY,
    .counted_last = true,
    .count = morphology_count,
    .values = morphology_values,
};
