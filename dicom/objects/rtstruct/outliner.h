/*
 * outliner.h - the outlines of one plane of a mask, for closed planar contours; private to dicom/objects/rtstruct/.
 *
 * An outline follows the edges of pixels, OUTLINE_INSET of a pixel inside the mask. A point is therefore never on the
 * centre of a pixel, nor on an edge that two outlines share, and it rounds to a pixel of the mask. Pixels that share
 * only a corner have outlines of their own. Points between two others on one line are left out.
 *
 * A hole is joined to its outline by a keyhole: two equal edges through pixels of the mask, along the row above the
 * hole. The area of such an outline is that of the mask by the even-odd rule, and an island in a hole is an outline of
 * its own. Without keyholes, each hole is an outline, and the even-odd rule applies to all outlines of the plane.
 *
 * Memory: 4 bytes per pixel of a plane, and 24 bytes per point of its outlines. One thread per outliner.
 */
#ifndef NOCTULE_DICOM_OBJECTS_RTSTRUCT_OUTLINER_H
#define NOCTULE_DICOM_OBJECTS_RTSTRUCT_OUTLINER_H

#include "dicom/write/mask_bits.h"

#define OUTLINE_INSET (1.0 / 256)

/* Corners of pixels, in quarters of a pixel: 4 * column, plus 1 or -1 for an inset to the right or left; rows alike. */
struct outline_point {
    int32_t x, y;
};

/* Returns the pixel coordinate: 0 is the centre of the first pixel. */
static inline double
outline_place(int32_t quarters)
{
    const int32_t corner = (quarters + 1) >> 2;
    return corner - 0.5 + (quarters - 4 * corner) * OUTLINE_INSET;
}

struct outline_vertex {
    struct outline_point at;
    int32_t before; /* the vertex before it along the outline */
};

struct outline_loop {
    int32_t first; /* vertex */
    int32_t row;   /* of its topmost pixels */
    bool is_hole;
};

struct outliner {
    int32_t columns, rows;
    int32_t *edges; /* per pixel whose left neighbour is outside: 1 + the vertex above its left edge; else 0 */
    struct outline_vertex *vertices;
    struct outline_loop *loops;
    struct outline_point *points; /* of the current outline */
    int32_t vertex_count, vertex_room, loop_count, loop_room, point_room, next;
};

/* Returns 0 or -ENOMEM. The caller must call outliner_close in either case. */
int outliner_open(struct outliner *outliner, int32_t columns, int32_t rows);
void outliner_close(struct outliner *outliner);

/* Finds the outlines of a plane of the outliner's size. Returns 0 or -ENOMEM. */
int outliner_trace(struct outliner *outliner, const struct mask_plane *plane, bool keyholes);

/* Returns the number of points of the next outline, in `points` until the next call; 0 past the last; or -ENOMEM. */
int32_t outliner_next(struct outliner *outliner);

/* Returns whether a plane that was traced without keyholes has a hole. */
bool outliner_has_hole(const struct outliner *outliner);

#endif
