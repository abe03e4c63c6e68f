#include "kernels/features/shape/shape_flat.h"

#include "kernels/features/matrices/eigen.h"
#include "kernels/features/shape/plane_diameters.h"
#include "kernels/features/shape/shape.h"

#include <math.h>

static const struct feature_definition flat_definitions[SHAPE_FLAT_FEATURES] = {
    {"mesh_surface", "Surface of the mesh in one slice", "", .unit = "mm2"},
    {"pixel_surface", "Surface of the voxels in one slice", "", .unit = "mm2"},
    {"perimeter", "Perimeter of the mesh in one slice", "", .unit = "mm"},
    {"perimeter_surface_ratio", "Perimeter to surface ratio", "", .unit = "/mm"},
    {"sphericity", "Sphericity in one slice", "", .unit = "1"},
    {"spherical_disproportion", "Spherical disproportion in one slice", "", .unit = "1"},
    {"maximum_diameter", "Maximum diameter in one slice", "", .unit = "mm"},
    {"major_axis_length", "Major axis length in one slice", "", .unit = "mm"},
    {"minor_axis_length", "Minor axis length in one slice", "", .unit = "mm"},
    {"elongation", "Elongation in one slice", "", .unit = "1"},
};

#define FLAT_PI 3.14159265358979323846

/* Cells of 2x2 voxels: by the number of voxels in the region, and by the place of two of them. */
struct flat_cells {
    int64_t corner, three, whole; /* one, three, four voxels */
    int64_t along, across;        /* two in one row, two in one column */
    int64_t diagonal;             /* two that are not neighbours, and not connected */
};

static void
flat_add_cell(struct flat_cells *cells, unsigned places)
{
    switch (__builtin_popcount(places)) {
    case 1:
        cells->corner++;
        break;
    case 2:
        if (places == 3 || places == 12)
            cells->along++;
        else if (places == 5 || places == 10)
            cells->across++;
        else
            cells->diagonal++;
        break;
    case 3:
        cells->three++;
        break;
    case 4:
        cells->whole++;
        break;
    default:
        break;
    }
}

/* Counts the cells of the slice around the region. */
static void
flat_count_cells(const struct feature_region *region, const struct shape_place *place, struct flat_cells *cells)
{
    const struct feature_volume *volume = region->volume;
    const int64_t columns = volume->columns, first = place->first[2] * volume->rows;

    for (int64_t y = place->first[1] - 1; y <= place->last[1]; y++)
        for (int64_t x = place->first[0] - 1; x <= place->last[0]; x++) {
            unsigned places = 0;

            for (int64_t i = 0; i < 4; i++) {
                const int64_t column = x + i % 2, row = y + i / 2;

                if (column >= 0 && column < columns && row >= 0 && row < volume->rows &&
                    image_has(region->bits, columns, first + row, column))
                    places |= 1u << i;
            }
            flat_add_cell(cells, places);
        }
}

static void
flat_put_mesh(const struct feature_region *region, const struct flat_cells *cells, int64_t voxels,
              struct feature_value *values)
{
    const double *spacing = region->volume->spacing, pixel = spacing[0] * spacing[1];
    const int64_t eighths =
        cells->corner + 7 * cells->three + 8 * cells->whole + 4 * (cells->along + cells->across) + 2 * cells->diagonal;
    const double surface = (double)eighths / 8 * pixel;
    const double perimeter = (double)cells->along * spacing[0] + (double)cells->across * spacing[1] +
                             (double)(cells->corner + cells->three + 2 * cells->diagonal) / 2 *
                                 sqrt(spacing[0] * spacing[0] + spacing[1] * spacing[1]);
    const double of_circle = 2 * sqrt(FLAT_PI * surface);

    values[SHAPE_FLAT_MESH_SURFACE] = feature_present(surface);
    values[SHAPE_FLAT_PIXEL_SURFACE] = feature_present((double)voxels * pixel);
    values[SHAPE_FLAT_PERIMETER] = feature_present(perimeter);
    values[SHAPE_FLAT_PERIMETER_BY_SURFACE] = feature_present(perimeter / surface);
    values[SHAPE_FLAT_SPHERICITY] = feature_present(of_circle / perimeter);
    values[SHAPE_FLAT_SPHERICAL_DISPROPORTION] = feature_present(perimeter / of_circle);
}

/* Puts the axes by the population's covariance of the voxels' centres. */
static void
flat_put_axes(const struct feature_region *region, const struct shape_place *place, struct feature_value *values)
{
    const double *spacing = region->volume->spacing, pairs = (double)place->voxels * (double)place->voxels;
    const shape_product n = place->voxels;
    double matrix[4], diagonal[2], below[1], work[6], variance[2];

    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const shape_product sum = i == j ? place->square[i] : place->product[2];

            matrix[2 * i + j] =
                (double)(n * sum - (shape_product)place->sum[i] * place->sum[j]) / pairs * spacing[i] * spacing[j];
        }
    eigen_tridiagonal(matrix, 2, diagonal, below, work);
    variance[0] = eigen_of_rank(diagonal, below, 2, 1);
    variance[1] = eigen_of_rank(diagonal, below, 2, 0);
    if (variance[1] <= 1e-14 * variance[0]) /* rounding residues of 0 */
        variance[1] = 0;
    values[SHAPE_FLAT_MAJOR_AXIS] = feature_present(4 * sqrt(variance[0]));
    values[SHAPE_FLAT_MINOR_AXIS] = feature_present(4 * sqrt(variance[1]));
    values[SHAPE_FLAT_ELONGATION] =
        variance[0] > 0 ? feature_present(sqrt(variance[1] / variance[0])) : feature_absent(FEATURE_DIVISION_BY_ZERO);
}

static int
flat_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    const struct image_extent extent = feature_extent(region->volume);
    double diameters[PLANES_OF_VOXELS];
    struct flat_cells cells = {0};
    struct shape_place place;

    (void)set;
    (void)counts;
    shape_place_of(region->volume->lane, region->bits, &extent, &place);
    if (place.voxels == 0)
        return 0;
    if (place.first[2] != place.last[2]) {
        for (int f = 0; f < SHAPE_FLAT_FEATURES; f++)
            values[f] = feature_absent(FEATURE_NOT_ONE_SLICE);
        return 0;
    }
    flat_count_cells(region, &place, &cells);
    flat_put_mesh(region, &cells, place.voxels, values);
    flat_put_axes(region, &place, values);
    const int rc = plane_diameters(region->bits, &extent, region->volume->spacing, diameters);

    values[SHAPE_FLAT_DIAMETER] = feature_present(diameters[PLANE_OF_SLICE]);
    return rc;
}

static bool
flat_wanted(const struct texture_options *options)
{
    return (options->families & 1u << TEXTURE_FAMILY_shape_flat) != 0;
}

const struct feature_family family_shape_flat = {
    .name = "shape-2d",
    .definitions = flat_definitions,
    .definition_count = SHAPE_FLAT_FEATURES,
    .space = FEATURE_OF_PLANE,
    .choice = TEXTURE_FAMILY_shape_flat,
    .wanted = flat_wanted, /* "all" are features of regions of any number of slices */
    .values = flat_values,
};
