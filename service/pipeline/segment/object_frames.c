#include "service/pipeline/segment/object_frames.h"

#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AXES_TOLERANCE    1e-4 /* of a direction cosine */
#define OFF_TOLERANCE     0.1  /* of the distance to the nearest other plane */
#define STEP_TOLERANCE    1e-4 /* of the distance between frames: heights are texts of ten digits */
#define TOLD_TOLERANCE    0.01 /* of the stated distance, which has fewer digits than positions */
#define SPACING_TOLERANCE 1e-4 /* of the pixel spacing, of frames that must have the pixels of a plane */
#define SHIFT_TOLERANCE   0.01 /* of a pixel, likewise */
#define PARTS             65536.0
#define THICK_FRAMES      1.5 /* times the distance of slices */

static int
frames_refuse(const struct object_frames *frames, int32_t frame, const char *why, struct error *error)
{
    const char *path = frames->source->image->path;
    return error_set_files(error, -EINVAL, CODE_SEG_GRID_DIFFERS, path, NULL,
                           "%s, segment \"%s\": frame %" PRId32 " %s. Have it made on the slices of this series.",
                           text_base_name(path), frames->source->segments[frames->segment].label, frame + 1, why);
}

/* Returns the distance to the nearest other plane, in mm. */
static double
frames_distance(const struct image_planes *planes, int64_t z)
{
    double least = INFINITY;
    for (int64_t other = z - 1; other <= z + 1; other += 2)
        if (other >= 0 && other < planes->extent.slices)
            least = fmin(least, fabs(image_planes_height(planes, planes->origins + 3 * other) -
                                     image_planes_height(planes, planes->origins + 3 * z)));
    return isfinite(least) ? least : planes->thickness;
}

/*
 * The axis of the planes, and the direction, of a frame's axis (0: along its rows, 1: along its
 * columns).
 */
struct frames_axis {
    int plane_axis;
    double sign;
};

/*
 * Finds the plane's axes of the frame's axes. Returns false if the frame is not parallel, or is
 * rotated in its plane.
 */
static bool
frames_find_axes(const struct image_planes *planes, const struct seg_source_frame *frame, struct frames_axis axes[2])
{
    for (int a = 0; a < 2; a++) {
        const double *own = frame->orientation + (ptrdiff_t)3 * a;
        axes[a] = (struct frames_axis){-1, 0};
        for (int b = 0; b < 2; b++)
            for (int sign = -1; sign <= 1; sign += 2) {
                const double *other = planes->axes + (ptrdiff_t)3 * b;
                if (fabs(own[0] - sign * other[0]) <= AXES_TOLERANCE &&
                    fabs(own[1] - sign * other[1]) <= AXES_TOLERANCE &&
                    fabs(own[2] - sign * other[2]) <= AXES_TOLERANCE)
                    axes[a] = (struct frames_axis){b, sign};
            }
    }
    return axes[0].plane_axis >= 0 && axes[1].plane_axis >= 0 && axes[0].plane_axis != axes[1].plane_axis;
}

/*
 * Finds the frame's nearest pixel along its axis `a` for each of the plane's pixels along
 * axis.plane_axis; -1: beyond the frame.
 */
static void
frames_places(const struct image_planes *planes, const struct seg_source_frame *frame, int64_t z, int a,
              struct frames_axis axis, int32_t size, int32_t *places)
{
    const int b = axis.plane_axis;
    const int64_t count = b == 0 ? planes->extent.columns : planes->extent.rows;
    const double shift =
        axis.sign * image_planes_along(planes->origins + 3 * z, frame->position, planes->axes + (ptrdiff_t)3 * b);
    for (int64_t i = 0; i < count; i++) {
        const double place = (shift + axis.sign * (double)i * planes->spacing[b]) / frame->spacing[a];
        const double nearest = floor(floor(place * PARTS + 0.5) / PARTS + 0.5);
        places[i] = nearest >= 0 && nearest < size ? (int32_t)nearest : -1;
    }
}

/* A frame of the segment, and its distance from the nearest plane. */
struct frames_slice {
    double height, off;
    int64_t plane;
    int32_t frame;
};

/* Scratch memory for filling frames. */
struct frames_work {
    struct dicom_pixels *reader;
    uint16_t *pixels;            /* of a frame */
    int32_t *across, *down;      /* pixel of the frame, per column and row of the planes */
    bool turned;                 /* the frame's rows run along the planes' columns */
    struct frames_slice *slices; /* sorted by height */
    int32_t count;
    int32_t *of_plane; /* the frame of each plane; -1: no frame */
};

static bool
frames_is_in(const struct object_frames *frames, uint16_t pixel)
{
    const struct seg_source *source = frames->source;
    switch (source->type) {
    case SEG_SOURCE_BINARY:
        return pixel != 0;
    case SEG_SOURCE_LABELMAP:
        return pixel == source->segments[frames->segment].number;
    case SEG_SOURCE_FRACTIONAL:
        break;
    }
    return pixel > 0 && pixel >= frames->threshold * source->maximum;
}

static int64_t
frames_copy(const struct object_frames *frames, const struct frames_work *work, int64_t z, uint64_t *bits)
{
    const struct image_extent *extent = &frames->planes->extent;
    const int64_t words = (extent->columns + 63) / 64;
    int64_t voxels = 0;
    for (int64_t y = 0; y < extent->rows; y++) {
        uint64_t *row = bits + (z * extent->rows + y) * words;
        if (work->down[y] < 0)
            continue;
        const int64_t columns = frames->source->columns, step = work->turned ? columns : 1;
        const uint16_t *from = work->pixels + work->down[y] * (work->turned ? 1 : columns);
        for (int64_t x = 0; x < extent->columns; x++)
            if (work->across[x] >= 0 && frames_is_in(frames, from[work->across[x] * step])) {
                row[x / 64] |= UINT64_C(1) << x % 64;
                voxels++;
            }
    }
    return voxels;
}

static int
frames_compare(const void *a, const void *b)
{
    const struct frames_slice *left = a, *right = b;
    const int higher = (left->height > right->height) - (left->height < right->height);
    return higher ? higher : (left->frame > right->frame) - (left->frame < right->frame);
}

/* Returns whether the pixels of a frame are those of a plane. */
static bool
frames_are_pixels(const struct object_frames *frames, const struct seg_source_frame *frame,
                  const struct frames_axis axes[2], const struct frames_slice *slice)
{
    const struct image_planes *planes = frames->planes;
    bool are = frames->source->columns == planes->extent.columns && frames->source->rows == planes->extent.rows &&
               slice->off <= OFF_TOLERANCE * frames_distance(planes, slice->plane);
    for (int a = 0; a < 2; a++) {
        const double shift =
            image_planes_along(planes->origins + 3 * slice->plane, frame->position, planes->axes + (ptrdiff_t)3 * a);
        are = are && axes[a].plane_axis == a && axes[a].sign > 0 &&
              fabs(frame->spacing[a] - planes->spacing[a]) <= SPACING_TOLERANCE * planes->spacing[a] &&
              fabs(shift) <= SHIFT_TOLERANCE * planes->spacing[a];
    }
    return are;
}

static int
frames_gather(const struct object_frames *frames, struct frames_work *work, struct error *error)
{
    const struct seg_source *source = frames->source;
    const struct image_planes *planes = frames->planes;
    for (int32_t i = 0; i < source->frame_count; i++) {
        const struct seg_source_frame *frame = &source->frames[i];
        if (frame->segment >= 0 && frame->segment != frames->segment)
            continue;
        if (!frame->has_geometry)
            return frames_refuse(frames, i, "has no position, orientation or pixel spacing", error);
        struct frames_axis axes[2];
        if (!frames_find_axes(planes, frame, axes))
            return frames_refuse(frames, i, "is not parallel to the slices of the series, or turned within their plane",
                                 error);
        struct frames_slice *slice = &work->slices[work->count++];
        *slice =
            (struct frames_slice){.height = image_planes_height(planes, frame->position), .off = INFINITY, .frame = i};
        for (int64_t z = 0; z < planes->extent.slices; z++) {
            const double off = fabs(image_planes_height(planes, planes->origins + 3 * z) - slice->height);
            if (off < slice->off) {
                slice->off = off;
                slice->plane = z;
            }
        }
        if (frames->exact && !frames_are_pixels(frames, frame, axes, slice))
            return frames_refuse(frames, i, "does not have the pixels of a slice", error);
    }
    qsort(work->slices, (size_t)work->count, sizeof *work->slices, frames_compare);
    return 0;
}

/* Finds the frames of a 2-D image. */
static int
frames_gather_flat(const struct object_frames *frames, struct frames_work *work, struct error *error)
{
    const struct seg_source *source = frames->source;
    for (int32_t i = 0; i < source->frame_count; i++) {
        const struct seg_source_frame *frame = &source->frames[i];
        if (frame->segment >= 0 && frame->segment != frames->segment)
            continue;
        if (!frame->image_uid[0])
            return frames_refuse(frames, i, "does not name its 2-D image as Source Image (0008,2112)", error);
        if (strcmp(frame->image_uid, frames->image_uid) != 0 ||
            (frame->image_frame > 0 && frame->image_frame != frames->image_frame))
            continue;
        if (source->columns != frames->planes->extent.columns || source->rows != frames->planes->extent.rows)
            return frames_refuse(frames, i, "does not have the pixels of its 2-D image", error);
        work->slices[work->count++] = (struct frames_slice){.frame = i};
    }
    for (int32_t x = 0; x < source->columns && work->count > 0; x++)
        work->across[x] = x;
    for (int32_t y = 0; y < source->rows && work->count > 0; y++)
        work->down[y] = y;
    return 0;
}

/* Copies the frames of a 2-D image. */
static int
frames_fill_flat(const struct object_frames *frames, struct frames_work *work, uint64_t *bits,
                 struct object_filled *filled, struct error *error)
{
    int rc = 0;
    for (int32_t i = 0; i < work->count && rc == 0; i++) {
        rc = seg_source_read(frames->source, work->reader, work->slices[i].frame, work->pixels, error);
        if (rc == 0)
            frames_copy(frames, work, 0, bits);
    }
    for (int64_t w = 0; w < (frames->planes->extent.columns + 63) / 64 * frames->planes->extent.rows; w++)
        filled->voxels += __builtin_popcountll(bits[w]);
    filled->planes = filled->voxels > 0;
    return rc;
}

/*
 * Returns the distance of frames that do not lie on the planes, or are thicker than the slices, so
 * that each belongs to several slices; 0: others; -1: not known. Thick frames are as far apart as
 * they are thick: Spacing Between Slices or Slice Thickness, at most the smallest distance of two
 * frames. Others: Spacing Between Slices, else the smallest distance.
 */
static double
frames_step(const struct object_frames *frames, const struct frames_work *work)
{
    const struct frames_slice *slices = work->slices;
    const struct seg_source_frame *first = &frames->source->frames[slices[0].frame];
    double least = INFINITY;
    bool exact = true;
    for (int32_t i = 1; i < work->count; i++)
        least = fmin(least, slices[i].height - slices[i - 1].height);
    const double thickness = fmin(first->between > 0 ? first->between : first->thickness, least);
    if (thickness > THICK_FRAMES * frames_distance(frames->planes, slices[0].plane))
        return thickness;
    for (int32_t i = 0; i < work->count && exact; i++)
        exact = slices[i].off <= OFF_TOLERANCE * frames_distance(frames->planes, slices[i].plane);
    if (exact)
        return 0;
    if (first->between > 0)
        return first->between;
    return least > 0 && isfinite(least) ? least : -1;
}

/*
 * Returns the frame with the nearest height, of two the lower; -1: all are further away than
 * `farthest`, to within `slack`.
 */
static int32_t
frames_nearest(const struct frames_work *work, double height, double farthest, double slack)
{
    int32_t low = 0, end = work->count;
    while (low < end) {
        const int32_t middle = low + (end - low) / 2;
        if (work->slices[middle].height < height)
            low = middle + 1;
        else
            end = middle;
    }
    const double above = low < work->count ? work->slices[low].height - height : INFINITY;
    const double below = low > 0 ? height - work->slices[low - 1].height : INFINITY;
    /*
     * A plane half-way takes the frame below it, so a frame half-way between two planes belongs to
     * one of them.
     */
    if (below <= above + 2 * slack && below <= farthest + slack)
        return work->slices[low - 1].frame;
    return above < farthest - slack ? work->slices[low].frame : -1;
}

/*
 * Counts planes between frames on planes, if all frames are further apart than the slices: each may
 * belong to several slices.
 */
static int64_t
frames_empty(const struct frames_work *work)
{
    const struct frames_slice *first = &work->slices[0], *last = first + work->count - 1;
    for (int32_t i = 1; i < work->count; i++)
        if (work->slices[i].plane - work->slices[i - 1].plane < 2)
            return 0;
    return work->count > 1 ? last->plane - first->plane + 1 - work->count : 0;
}

/*
 * Assigns frames on planes to these, at most one per plane; other planes take the nearest frame, up
 * to half a step away.
 */
static int
frames_assign(const struct object_frames *frames, const struct frames_work *work, struct object_filled *filled,
              struct error *error)
{
    const struct image_planes *planes = frames->planes;
    const double step = frames_step(frames, work);
    const bool exact = step == 0;
    if (step < 0)
        return frames_refuse(frames, work->slices[0].frame, "lies on none of the series' slices", error);
    for (int32_t i = 1; i < work->count; i++) {
        const struct frames_slice *own = &work->slices[i], *before = own - 1;
        const double apart = own->height - before->height;
        if (exact ? own->plane == before->plane : apart < step / 2)
            return frames_refuse(frames, own->frame, "lies on a slice that an earlier one lies on", error);
        /* Slices in a gap would take the neighbouring frame. */
        if (!exact && apart < step * (1 - TOLD_TOLERANCE))
            return frames_refuse(frames, own->frame, "lies closer to the one before than its Spacing Between Slices",
                                 error);
    }
    for (int64_t z = 0; z < planes->extent.slices; z++)
        work->of_plane[z] = exact ? -1
                                  : frames_nearest(work, image_planes_height(planes, planes->origins + 3 * z), step / 2,
                                                   step * STEP_TOLERANCE);
    for (int32_t i = 0; i < work->count && exact; i++)
        work->of_plane[work->slices[i].plane] = work->slices[i].frame;
    filled->between = step;
    filled->empty = exact ? frames_empty(work) : 0;
    return 0;
}

/* Fills all planes that take the frame; reads the frame once. */
static int
frames_fill_one(const struct object_frames *frames, int32_t number, struct frames_work *work, uint64_t *bits,
                struct object_filled *filled, struct error *error)
{
    const struct seg_source *source = frames->source;
    const struct seg_source_frame *frame = &source->frames[number];
    const struct image_planes *planes = frames->planes;
    bool is_read = false;
    for (int64_t z = 0; z < planes->extent.slices; z++) {
        if (work->of_plane[z] != number)
            continue;
        const int rc = is_read ? 0 : seg_source_read(source, work->reader, number, work->pixels, error);
        if (rc)
            return rc;
        is_read = true;
        struct frames_axis axes[2];
        (void)frames_find_axes(planes, frame, axes);
        work->turned = axes[0].plane_axis == 1;
        frames_places(planes, frame, z, 0, axes[0], source->columns, work->turned ? work->down : work->across);
        frames_places(planes, frame, z, 1, axes[1], source->rows, work->turned ? work->across : work->down);
        const int64_t voxels = frames_copy(frames, work, z, bits);
        const double off =
            fabs(image_planes_height(planes, planes->origins + 3 * z) - image_planes_height(planes, frame->position));
        filled->voxels += voxels;
        filled->planes += voxels > 0;
        filled->farthest = fmax(filled->farthest, off);
    }
    return 0;
}

int
object_frames_fill(const struct object_frames *frames, uint64_t *bits, struct object_filled *filled,
                   struct error *error)
{
    const struct seg_source *source = frames->source;
    const struct image_extent *extent = &frames->planes->extent;
    struct frames_work work = {.pixels = calloc((size_t)source->rows * (size_t)source->columns, sizeof *work.pixels),
                               .across = calloc((size_t)extent->columns, sizeof *work.across),
                               .down = calloc((size_t)extent->rows, sizeof *work.down),
                               .slices = calloc((size_t)source->frame_count + 1, sizeof *work.slices),
                               .of_plane = calloc((size_t)extent->slices, sizeof *work.of_plane)};
    *filled = (struct object_filled){0};
    int rc = work.pixels && work.across && work.down && work.slices && work.of_plane
                 ? (frames->image_uid ? frames_gather_flat : frames_gather)(frames, &work, error)
                 : error_set_system(error, -ENOMEM, "read the frames of a segment");
    filled->frames = work.count;
    if (rc == 0 && work.count > 0 && !frames->image_uid)
        rc = frames_assign(frames, &work, filled, error);
    if (rc == 0)
        rc = dicom_pixels_open(source->image, &work.reader, error);
    if (rc == 0 && frames->image_uid)
        rc = frames_fill_flat(frames, &work, bits, filled, error);
    for (int32_t i = 0; i < source->frame_count && rc == 0 && work.count > 0 && !frames->image_uid; i++)
        if (source->frames[i].segment == frames->segment || source->frames[i].segment < 0)
            rc = frames_fill_one(frames, i, &work, bits, filled, error);
    dicom_pixels_close(work.reader);
    free(work.pixels);
    free(work.across);
    free(work.down);
    free(work.slices);
    free(work.of_plane);
    return rc;
}
