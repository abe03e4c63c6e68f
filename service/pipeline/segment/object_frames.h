/*
 * object_frames.h - the mask of a segment of a Segmentation, on the planes of a series.
 *
 * Frames must be parallel to the planes; their rows may run along the planes' rows or columns, in
 * either direction. A frame belongs to its plane if all frames of the segment lie on planes, within
 * a tenth of the distance to the next plane, and are not thicker than the slices.
 *
 * Otherwise a plane takes the nearest frame, of two the lower, up to half of the frames' distance
 * away: Spacing Between Slices, Slice Thickness, or the smallest distance of two frames. So thick
 * frames fill all slices within them. A plane without a frame is empty.
 *
 * A pixel of a plane takes the nearest pixel of the frame. Its position is rounded to 2^-16 of a
 * frame's pixel; of two the later is taken. Pixels beyond the frame are not in the mask. So frames
 * on exactly the pixels of the planes are copied, and all others are resampled.
 *
 * A pixel belongs to the segment if it is 1, is the segment's number (label map), or is at least
 * `threshold` of Maximum Fractional Value, and not 0.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_FRAMES_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_OBJECT_FRAMES_H

#include "base/planes.h"
#include "dicom/read/annotation/seg_source.h"

struct object_frames {
    const struct seg_source *source;
    int32_t segment; /* index */
    double threshold;
    bool exact; /* refuse frames that are not on the pixels of the planes */
    const struct image_planes *planes;
    /* A 2-D image: its instance, and its frame from 1. Frames that refer to it as their Source Image, and have its pixels,
     * are copied; those of other images are left out. NULL: a volume. */
    const char *image_uid;
    int32_t image_frame;
};

struct object_filled {
    int64_t voxels;
    int64_t frames;  /* of the segment */
    int64_t planes;  /* with a voxel */
    double farthest; /* mm from a frame to its plane */
    int64_t
        /* planes between frames that are further apart than the slices, with unknown thickness */
        empty;
    double between; /* mm between frames, if planes took the nearest frame; else 0 */
};

/*
 * Sets bits of a mask of all planes; the bits must be 0. Codes: those of dicom_pixels_open() and
 * seg_source_read(), OUT_OF_MEMORY, SEG_GRID_DIFFERS.
 */
int object_frames_fill(const struct object_frames *frames, uint64_t *bits, struct object_filled *filled,
                       struct error *error);

#endif
