/*
 * contours.h - closed planar contours as a mask of the planes that they were drawn on.
 *
 * A point belongs to the plane that is nearest along the normal (row direction x column direction),
 * and is projected on it along the normal: its place there is ((p - origin) . axis) / spacing, in
 * pixels from the centre of pixel (0, 0), in double precision, rounded to 2^-32 of a pixel. All
 * that follows is exact. The area of a contour is the voxels whose centres it encloses, an odd number of times if it crosses
 * itself; so a keyhole has a hole. Contours of one plane (PS3.3 C.8.8.6.3), in any order: those of equal areas count once;
 * those whose areas cross are united; a voxel belongs to the mask when it is inside an odd number of what remains, so a
 * contour within another is a hole, and one within the hole an island. Those of CLOSEDPLANAR_XOR then flip the voxels of
 * their areas. A centre on an edge belongs by the half-open rule: it
 * does on edges with the inside to the right or below (larger column or row), it does not on the
 * others; so contours that share an edge share no voxel, and leave none out. A vertex on a row is
 * the end of the edge above it and not of that below. What has fewer than three points encloses
 * nothing and is passed over.
 *
 * With `centres`, voxels whose centres lie on a contour belong to the mask, as programs mean them that outline the border
 * voxels of a mask (OpenCV's findContours). A point within CONTOURS_CENTRE_TOLERANCE pixels of a centre, along both axes, is
 * moved to it. Contours with one or two points are a voxel or a line. Equal areas count once only if the contours have the same
 * direction: programs draw the hole of a ring that is one voxel wide against the direction of its outline. Then voxels whose
 * centres lie on an edge of any contour are added.
 *
 * Planes between two drawn ones are empty, or, if that is asked for, filled
 * by between.h.
 *
 * Plain C on one thread; nothing is kept. The cost grows with the points, the rows that their edges cross
 * (LIMIT_ROI_CROSSINGS_MI), and the overlaps of contours of one plane (LIMIT_ROI_OVERLAP_MI).
 */
#ifndef NOCTULE_CONTOURS_H
#define NOCTULE_CONTOURS_H

#include "base/contour.h"
#include "base/error.h"
#include "base/planes.h"

#include <stdbool.h>

/* How far a point may lie from its plane, of the distance to the nearest other plane. */
#define CONTOURS_TOLERANCE 0.1

/* How far a point may lie from the centre of a voxel that it stands for, in pixels along each axis. */
#define CONTOURS_CENTRE_TOLERANCE 0.05

struct contours_request {
    const struct image_planes *planes;
    const struct contour *contours;
    int64_t count;
    bool interpolate; /* planes between drawn ones that have no contour */
    bool centres;     /* voxels whose centres lie on a contour belong to it */
};

struct contours_drawn {
    int64_t voxels;
    int64_t planes;      /* that have a contour */
    int64_t first, last; /* of them; -1 when there is none */
    int64_t missing;     /* planes between the two without a contour: they stay empty, or: */
    bool interpolated;
    int64_t first_missing; /* -1 when there is none */
    double farthest;       /* mm from a point to its plane */
    int64_t copies;        /* contours that are equal to another of their plane */
    int64_t crossed;       /* contours that were united with another */
    int64_t points;        /* of all contours that were drawn */
    int64_t on_centres;    /* points at the centre of a voxel, within CONTOURS_CENTRE_TOLERANCE */
};

/*
 * Writes the mask of all planes: rows of (columns + 63) / 64 words, as in struct image_mask. Codes,
 * -EBADMSG but for OUT_OF_MEMORY: CONTOUR_OFF_PLANES, CONTOUR_OBLIQUE, and SIZE_IMPLAUSIBLE for what lies 2^20 pixels
 * away or crosses more rows than LIMIT_ROI_CROSSINGS_MI or overlaps more than LIMIT_ROI_OVERLAP_MI, and what kernels_mask_between says; the mask is then
 * undefined.
 */
int kernels_mask_contours(const struct contours_request *request, uint64_t *bits,
                          struct contours_drawn *drawn, struct error *error);

#endif
