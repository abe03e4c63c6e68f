#include "service/common/agreement.h"

#include "service/common/parallel.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { CODES = 256, NO_SURFACE = UINT16_MAX };

/* A corner of a surface: its distance from the other one, and its area. */
struct agreement_element {
    double distance, area;
};

/* The corners of the voxels in the box around both masks. */
struct agreement_corners {
    const struct agreement_request *request;
    int64_t first[3]; /* of the box */
    int64_t size[3];  /* number of corners */
    double areas[CODES];
    uint8_t *codes[AGREEMENT_MASKS]; /* per corner, a bit per voxel around it that the mask has */
    uint16_t *steps;                 /* slices to the nearest corner of the other surface along z */
    int64_t *offsets;                /* of the elements of each slice */
    struct agreement_element *elements;
    int64_t count;
    uint8_t *measured; /* codes of the surface whose elements are measured */
};

/* ------------------------------------------------------------------------------ areas ---- */

/* Counts the neighbours along each axis among the voxels of a code, and the most of one voxel. */
static int
agreement_neighbours(unsigned code, int pairs[3])
{
    int most = 0;
    pairs[0] = pairs[1] = pairs[2] = 0;
    for (unsigned voxel = 0; voxel < 8; voxel++) {
        int own = 0;
        for (int axis = 0; axis < 3 && (code >> voxel & 1); axis++) {
            const unsigned other = voxel ^ 1u << axis;
            own += (int)(code >> other & 1);
            pairs[axis] += other > voxel && (code >> other & 1);
        }
        most = own > most ? own : most;
    }
    return most;
}

/* Returns whether a voxel at an end of the path of four voxels has its neighbour along the axis. */
static bool
agreement_ends_along(unsigned code, int axis)
{
    for (unsigned voxel = 0; voxel < 8; voxel++) {
        unsigned along = 0;
        for (int k = 0; k < 3 && (code >> voxel & 1); k++)
            along |= (code >> (voxel ^ 1u << k) & 1) << k;
        if (along == 1u << axis)
            return true;
    }
    return false;
}

/*
 * Returns the area of the surface between the voxels of a code and the others, up to four of them. All its triangles are
 * those of a cut corner (`corner`), of a cut edge along an axis, or of a plane across an axis.
 */
static double
agreement_area(unsigned code, double corner, const double edge[3], const double plane[3])
{
    int pairs[3];
    const int most = agreement_neighbours(code, pairs);
    const int count = __builtin_popcount(code), all = pairs[0] + pairs[1] + pairs[2];
    double area = 0;
    for (int axis = 0; axis < 3; axis++) {
        if (all == 4 && pairs[axis] == 0)
            return 2 * plane[axis];
        if (all == 2 && pairs[axis] == 0 && most == 2)
            return (count == 3 ? 3 : 4) * corner + plane[axis];
        if (all == 3 && most == 2 && agreement_ends_along(code, axis))
            area += edge[axis];
        if (all <= 2 && most < 2)
            area += 2 * pairs[axis] * edge[axis];
    }
    if (all == 3)
        return most == 3 ? 6 * corner : area + 4 * corner;
    return area + (count - 2 * all) * corner;
}

static void
agreement_fill_areas(const double spacing[3], double areas[CODES])
{
    const double faces[3] = {spacing[1] * spacing[2], spacing[0] * spacing[2], spacing[0] * spacing[1]};
    const double squares[3] = {faces[0] * faces[0], faces[1] * faces[1], faces[2] * faces[2]};
    const double corner = sqrt(squares[0] + squares[1] + squares[2]) / 8;
    double edge[3], plane[3];
    for (int axis = 0; axis < 3; axis++) {
        edge[axis] = sqrt(squares[(axis + 1) % 3] + squares[(axis + 2) % 3]) / 4;
        plane[axis] = faces[axis] / 2;
    }
    for (unsigned code = 0; code < CODES; code++)
        areas[code] = agreement_area(__builtin_popcount(code) > 4 ? ~code & 0xFF : code, corner, edge, plane);
}

/* ------------------------------------------------------------------------------ corners ---- */

/* Calls `take` with each voxel of a mask. */
static void
agreement_each(const struct agreement_request *request, enum agreement_mask which,
               void (*take)(void *context, enum agreement_mask which, const int64_t at[3]), void *context)
{
    const struct image_mask *mask = &request->masks[which];
    int64_t at[3];
    for (int64_t row = 0; row < request->extent.rows * request->extent.slices; row++) {
        at[1] = row % request->extent.rows;
        at[2] = row / request->extent.rows;
        for (int64_t word = 0; word < mask->words_per_row; word++)
            for (uint64_t bits = mask->bits[row * mask->words_per_row + word]; bits; bits &= bits - 1) {
                at[0] = word * 64 + __builtin_ctzll(bits);
                take(context, which, at);
            }
    }
}

/* `size` has the last voxels until the box is known. */
static void
agreement_widen(void *context, enum agreement_mask which, const int64_t at[3])
{
    struct agreement_corners *corners = context;
    (void)which;
    for (int axis = 0; axis < 3; axis++) {
        corners->first[axis] = at[axis] < corners->first[axis] ? at[axis] : corners->first[axis];
        corners->size[axis] = at[axis] > corners->size[axis] ? at[axis] : corners->size[axis];
    }
}

/* Voxel x lies between the corners x and x + 1. */
static void
agreement_mark(void *context, enum agreement_mask which, const int64_t at[3])
{
    const struct agreement_corners *corners = context;
    const int64_t *size = corners->size;
    for (unsigned corner = 0; corner < 8; corner++) {
        const int64_t x = at[0] - corners->first[0] + (corner & 1), y = at[1] - corners->first[1] + (corner >> 1 & 1),
                      z = at[2] - corners->first[2] + (corner >> 2);
        uint8_t *code = &corners->codes[which][(z * size[1] + y) * size[0] + x];
        *code = (uint8_t)(*code | 1u << (7 - corner));
    }
}

static bool
agreement_is_surface(uint8_t code)
{
    return code != 0 && code != CODES - 1;
}

static int64_t
agreement_slice_corners(const struct agreement_corners *corners)
{
    return corners->size[0] * corners->size[1];
}

/* ------------------------------------------------------------------------------ distances ---- */

/* Buffers of a thread, each as long as the longest line of corners, and one as large as a slice. */
struct agreement_line {
    double *squares, *from, *ends;
    int64_t *places;
};

/*
 * Replaces each of `count` values, `stride` apart, by the lowest of value k + (distance from k)^2: the lower envelope of
 * parabolas (Felzenszwalb and Huttenlocher, 2012).
 */
static void
agreement_envelope(double *values, int64_t count, int64_t stride, double spacing, const struct agreement_line *line)
{
    int64_t last = -1;
    for (int64_t k = 0; k < count; k++) {
        const double own = line->from[k] = values[k * stride], at = (double)k * spacing;
        double begin = -INFINITY;
        if (own == INFINITY)
            continue;
        for (; last >= 0; last--) {
            const double other = (double)line->places[last] * spacing;
            begin = ((own + at * at) - (line->from[line->places[last]] + other * other)) / (2 * (at - other));
            if (begin > line->ends[last])
                break;
            begin = -INFINITY;
        }
        line->places[++last] = k;
        line->ends[last] = begin;
    }
    for (int64_t k = 0, place = 0; k < count && last >= 0; k++) {
        while (place < last && line->ends[place + 1] < (double)k * spacing)
            place++;
        const double distance = (double)(k - line->places[place]) * spacing;
        values[k * stride] = line->from[line->places[place]] + distance * distance;
    }
}

/* Measures the elements of a slice, by columns and then by rows. */
static void
agreement_measure_slice(const struct agreement_corners *corners, int64_t z, const struct agreement_line *line)
{
    const double *spacing = corners->request->spacing;
    const int64_t slice = agreement_slice_corners(corners), columns = corners->size[0];
    const uint8_t *codes = corners->measured + z * slice;
    struct agreement_element *element = corners->elements + corners->offsets[z];
    if (corners->offsets[z] == corners->offsets[z + 1])
        return;
    for (int64_t i = 0; i < slice; i++) {
        const uint16_t steps = corners->steps[z * slice + i];
        line->squares[i] = steps == NO_SURFACE ? INFINITY : (steps * spacing[2]) * (steps * spacing[2]);
    }
    for (int64_t x = 0; x < columns; x++)
        agreement_envelope(line->squares + x, corners->size[1], columns, spacing[1], line);
    for (int64_t y = 0; y < corners->size[1]; y++) {
        agreement_envelope(line->squares + y * columns, columns, 1, spacing[0], line);
        for (int64_t i = y * columns; i < (y + 1) * columns; i++)
            if (agreement_is_surface(codes[i]))
                *element++ = (struct agreement_element){sqrt(line->squares[i]), corners->areas[codes[i]]};
    }
}

static void
agreement_body(struct parallel *loop, void *context)
{
    const struct agreement_corners *corners = context;
    const int64_t longest = corners->size[0] > corners->size[1] ? corners->size[0] : corners->size[1];
    const size_t length = (size_t)longest, slice = (size_t)agreement_slice_corners(corners);
    struct agreement_line line = {.squares = calloc(slice, sizeof *line.squares),
                                  .from = calloc(length, sizeof *line.from),
                                  .ends = calloc(length, sizeof *line.ends),
                                  .places = calloc(length, sizeof *line.places)};
    if (line.squares && line.from && line.ends && line.places)
        for (int64_t z; parallel_take(loop, &z);)
            agreement_measure_slice(corners, z, &line);
    else
        parallel_fail(loop);
    free(line.squares);
    free(line.from);
    free(line.ends);
    free(line.places);
}

static int
agreement_compare(const void *a, const void *b)
{
    const struct agreement_element *one = a, *other = b;
    if (one->distance != other->distance)
        return one->distance < other->distance ? -1 : 1;
    return (one->area > other->area) - (one->area < other->area);
}

/* Finds the elements of one surface, sorted by their distance from the other one. */
static int
agreement_sort(struct agreement_corners *corners, enum agreement_mask which)
{
    const int64_t slice = agreement_slice_corners(corners);
    struct parallel loop = {.count = corners->size[2], .body = agreement_body, .context = corners};
    corners->measured = corners->codes[which];
    corners->count = 0;
    for (int64_t z = 0; z < corners->size[2]; z++) {
        corners->offsets[z] = corners->count;
        for (int64_t i = 0; i < slice; i++)
            corners->count += agreement_is_surface(corners->measured[z * slice + i]);
    }
    corners->offsets[corners->size[2]] = corners->count;
    corners->elements = calloc((size_t)corners->count + 1, sizeof *corners->elements);
    if (!corners->elements)
        return -ENOMEM;
    /* The distance along z of each corner from the other surface. */
    const uint8_t *codes = corners->codes[!which];
    const int64_t count = slice * corners->size[2];
    for (int64_t i = 0; i < count; i++) {
        const int before = i < slice ? NO_SURFACE : corners->steps[i - slice];
        corners->steps[i] = agreement_is_surface(codes[i]) ? 0 : (uint16_t)(before + (before < NO_SURFACE));
    }
    for (int64_t i = count - slice - 1; i >= 0; i--) {
        const int after = corners->steps[i + slice] + (corners->steps[i + slice] < NO_SURFACE);
        corners->steps[i] = (uint16_t)(after < corners->steps[i] ? after : corners->steps[i]);
    }
    parallel_run(&loop, corners->request->threads);
    if (atomic_load(&loop.failed))
        return -ENOMEM;
    qsort(corners->elements, (size_t)corners->count, sizeof *corners->elements, agreement_compare);
    return 0;
}

/* ------------------------------------------------------------------------------ measures ---- */

/* Adds the area of a surface, and the part within the tolerance. Returns the distance of 95 % of the area. */
static double
agreement_add_surface(const struct agreement_corners *corners, double *area, double *within)
{
    double whole = 0, near = 0, part = 0;
    int64_t i = 0;
    for (int64_t k = 0; k < corners->count; k++) {
        whole += corners->elements[k].area;
        if (corners->elements[k].distance <= corners->request->tolerance_mm)
            near += corners->elements[k].area;
    }
    *area += whole;
    *within += near;
    for (; i < corners->count - 1; i++) {
        part += corners->elements[i].area;
        if (part / whole >= 0.95)
            break;
    }
    return corners->count > 0 ? corners->elements[i].distance : INFINITY;
}

static int
agreement_of_surfaces(struct agreement_corners *corners, struct agreement *agreement)
{
    double area = 0, within = 0, farthest = 0;
    const size_t count = (size_t)(agreement_slice_corners(corners) * corners->size[2]);
    int rc = 0;
    for (int which = 0; which < AGREEMENT_MASKS; which++)
        corners->codes[which] = calloc(count, 1);
    corners->steps = calloc(count, sizeof *corners->steps);
    corners->offsets = calloc((size_t)corners->size[2] + 1, sizeof *corners->offsets);
    if (!corners->codes[0] || !corners->codes[1] || !corners->steps || !corners->offsets)
        return -ENOMEM;
    for (int which = 0; which < AGREEMENT_MASKS; which++)
        agreement_each(corners->request, which, agreement_mark, corners);
    for (int which = 0; which < AGREEMENT_MASKS && rc == 0; which++) {
        rc = agreement_sort(corners, which);
        farthest = rc ? 0 : fmax(farthest, agreement_add_surface(corners, &area, &within));
        free(corners->elements);
    }
    agreement->distance_95 = farthest;
    agreement->surface_dice = within / area;
    return rc;
}

int
agreement_measure(const struct agreement_request *request, struct agreement *agreement, struct error *error)
{
    struct agreement_corners corners = {.request = request, .first = {INT64_MAX, INT64_MAX, INT64_MAX}};
    *agreement = (struct agreement){.distance_95 = NAN, .surface_dice = NAN};
    const double *spacing = request->spacing;
    const int64_t words = request->masks[0].words_per_row * request->extent.rows * request->extent.slices;
    for (int64_t i = 0; i < words; i++) {
        const uint64_t found = request->masks[AGREEMENT_FOUND].bits[i],
                       other = request->masks[AGREEMENT_REFERENCE].bits[i];
        agreement->voxels[AGREEMENT_FOUND] += __builtin_popcountll(found);
        agreement->voxels[AGREEMENT_REFERENCE] += __builtin_popcountll(other);
        agreement->common += __builtin_popcountll(found & other);
    }
    const int64_t *voxels = agreement->voxels;
    for (int which = 0; which < AGREEMENT_MASKS; which++)
        agreement->ml[which] = (double)voxels[which] * spacing[0] * spacing[1] * spacing[2] / 1000;
    agreement->wrong = voxels[0] + voxels[1] - 2 * agreement->common;
    agreement->wrong_share =
        (double)agreement->wrong / (double)(request->extent.columns * request->extent.rows * request->extent.slices);
    agreement->dice = 2 * (double)agreement->common / (double)(voxels[0] + voxels[1]);
    agreement->ratio = (double)voxels[AGREEMENT_FOUND] / (double)voxels[AGREEMENT_REFERENCE];
    agreement->bias_ml = agreement->ml[AGREEMENT_FOUND] - agreement->ml[AGREEMENT_REFERENCE];
    if (agreement->voxels[0] + agreement->voxels[1] == 0)
        return 0;
    for (int which = 0; which < AGREEMENT_MASKS; which++)
        agreement_each(request, which, agreement_widen, &corners);
    for (int axis = 0; axis < 3; axis++)
        corners.size[axis] -= corners.first[axis] - 2;
    agreement_fill_areas(request->spacing, corners.areas);
    const int rc = agreement_of_surfaces(&corners, agreement);
    for (int which = 0; which < AGREEMENT_MASKS; which++)
        free(corners.codes[which]);
    free(corners.steps);
    free(corners.offsets);
    return rc ? error_set_system(error, rc, "compare two masks") : 0;
}
