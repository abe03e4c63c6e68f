/*
 * contours.h - converts closed planar contours to a mask of the planes that they were drawn on.
 *
 * A point belongs to the nearest plane along the normal (row direction x column direction), and is
 * projected on it along the normal. Its position there is ((p - origin) . axis) / spacing, in
 * pixels from the centre of pixel (0, 0), in double precision, rounded to 2^-32 of a pixel. All
 * further steps are exact.
 *
 * The area of a contour has the voxels whose centres it encloses, an odd number of times if it
 * crosses itself: a keyhole has a hole. Contours of one plane (PS3.3 C.8.8.6.3) may be in any
 * order. Equal areas count once, and crossing areas are united. A voxel belongs to the mask if an
 * odd number of the remaining areas have it. A contour within another is therefore a hole, and one
 * within the hole an island. Contours of CLOSEDPLANAR_XOR then flip the voxels of their areas.
 *
 * Centres on an edge follow the half-open rule: they belong to the area if its inside is to the
 * right or below (larger column or row). Contours that share an edge therefore share no voxel and
 * leave no gap. A vertex on a row is the end of the edge above it, but not of the edge below.
 * Contours of fewer than three points enclose no area and are skipped.
 *
 * With `centres`, voxels whose centres lie on a contour belong to the mask, for programs that
 * outline the border voxels of a mask (OpenCV's findContours). A point within
 * CONTOURS_CENTRE_TOLERANCE pixels of a centre, along both axes, is moved to it. Contours with one
 * or two points are a voxel or a line. Equal areas count once only if the contours have the same
 * direction: programs draw the hole of a ring that is one voxel wide against the direction of its
 * outline. Then voxels whose centres lie on an edge of any contour are added.
 *
 * Planes between two drawn ones stay empty or, with `interpolate`, are filled by between.h.
 *
 * Threads: one, plain C. The call keeps no state. The cost grows with the points, the rows that
 * edges cross (LIMIT_ROI_CROSSINGS_MI), and the overlaps of contours on one plane
 * (LIMIT_ROI_OVERLAP_MI).
 */
#ifndef NOCTULE_KERNELS_MASK_CONTOURS_H
#define NOCTULE_KERNELS_MASK_CONTOURS_H

#include "base/contour.h"
#include "base/error.h"
#include "base/planes.h"

#include <stdbool.h>

/* Max distance of a point from its plane, in distances to the nearest other plane. */
#define CONTOURS_TOLERANCE 0.1

/* Max distance of a point from the voxel centre that it stands for, in pixels along each axis. */
#define CONTOURS_CENTRE_TOLERANCE 0.05

struct contours_request {
    const struct image_planes *planes;
    const struct contour *contours;
    int64_t count;
    bool interpolate; /* fill planes between drawn ones that have no contour */
    bool centres;     /* voxels whose centres lie on a contour belong to it */
};

struct contours_drawn {
    int64_t voxels;
    int64_t planes;      /* with a contour */
    int64_t first, last; /* such planes; -1 if there are none */
    int64_t missing;     /* planes between the two without a contour, empty or interpolated */
    bool interpolated;
    int64_t first_missing; /* -1 if there are none */
    double farthest;       /* mm from a point to its plane */
    int64_t copies;        /* contours equal to another of their plane */
    int64_t crossed;       /* contours united with another */
    int64_t points;        /* of all contours drawn */
    int64_t on_centres;    /* points at the centre of a voxel, within CONTOURS_CENTRE_TOLERANCE */
};

/*
 * Writes the mask of all planes: rows of (columns + 63) / 64 words, as in struct image_mask.
 * Returns OUT_OF_MEMORY (-ENOMEM) or, with -EBADMSG, CONTOUR_OFF_PLANES, CONTOUR_OBLIQUE,
 * SIZE_IMPLAUSIBLE, or an error of kernels_mask_between. SIZE_IMPLAUSIBLE means points 2^20 pixels
 * away, or more than LIMIT_ROI_CROSSINGS_MI or LIMIT_ROI_OVERLAP_MI. After an error the mask is
 * undefined.
 */
int kernels_mask_contours(const struct contours_request *request, uint64_t *bits, struct contours_drawn *drawn,
                          struct error *error);

#endif
