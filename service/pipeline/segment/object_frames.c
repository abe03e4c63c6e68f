/* object_frames.c - see object_frames.h. */
#include "service/pipeline/segment/object_frames.h"

#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AXES_TOLERANCE 1e-4 /* of a direction cosine */
#define OFF_TOLERANCE  0.1  /* of the distance to the nearest other plane */
#define PARTS          65536.0

static int
frames_refuse(const struct object_frames *frames, int32_t frame, const char *why,
              struct error *error)
{
    const char *path = frames->source->image->path;
    return error_set_files(error, -EINVAL, CODE_SEG_GRID_DIFFERS, path, NULL,
                           "%s, segment \"%s\": frame %" PRId32 " %s.", text_base_name(path),
                           frames->source->segments[frames->segment].label, frame + 1, why);
}

static double
frames_height(const struct image_planes *planes, const double point[3])
{
    double normal[3];
    image_planes_normal(planes, normal);
    return image_planes_along(point, planes->origins, normal);
}

/* mm to the nearest other plane. */
static double
frames_distance(const struct image_planes *planes, int64_t z)
{
    double least = INFINITY;
    for (int64_t other = z - 1; other <= z + 1; other += 2)
        if (other >= 0 && other < planes->extent.slices)
            least = fmin(least, fabs(frames_height(planes, planes->origins + 3 * other) -
                                     frames_height(planes, planes->origins + 3 * z)));
    return isfinite(least) ? least : planes->thickness;
}

/* The plane that the frame lies on; -1: none. */
static int64_t
frames_plane(const struct image_planes *planes, const struct seg_source_frame *frame, double *off)
{
    const double height = frames_height(planes, frame->position);
    int64_t nearest = 0;
    *off = INFINITY;
    for (int64_t z = 0; z < planes->extent.slices; z++) {
        const double distance = fabs(frames_height(planes, planes->origins + 3 * z) - height);
        if (distance < *off) {
            *off = distance;
            nearest = z;
        }
    }
    return *off <= OFF_TOLERANCE * frames_distance(planes, nearest) ? nearest : -1;
}

static bool
frames_is_parallel(const struct image_planes *planes, const struct seg_source_frame *frame)
{
    for (int i = 0; i < 6; i++)
        if (!(fabs(planes->axes[i] - frame->orientation[i]) <= AXES_TOLERANCE))
            return false;
    return true;
}

/* Which of the frame's pixels along an axis each of the plane's is nearest to; -1: none. */
static void
frames_places(const struct image_planes *planes, const struct seg_source_frame *frame, int64_t z,
              int axis, int32_t size, int64_t count, int32_t *places)
{
    const double *direction = planes->axes + (ptrdiff_t)3 * axis;
    const double shift = image_planes_along(planes->origins + 3 * z, frame->position, direction);
    for (int64_t i = 0; i < count; i++) {
        const double place = (shift + (double)i * planes->spacing[axis]) / frame->spacing[axis];
        const double nearest = floor(floor(place * PARTS + 0.5) / PARTS + 0.5);
        places[i] = nearest >= 0 && nearest < size ? (int32_t)nearest : -1;
    }
}

/* What is needed while frames are filled in. */
struct frames_work {
    struct dicom_pixels *reader;
    uint16_t *pixels;       /* of a frame */
    int32_t *across, *down; /* places of columns and rows */
    bool *taken;            /* planes */
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
frames_copy(const struct object_frames *frames, const struct frames_work *work, int64_t z,
            uint64_t *bits)
{
    const struct image_extent *extent = &frames->planes->extent;
    const int64_t words = (extent->columns + 63) / 64;
    int64_t voxels = 0;
    for (int64_t y = 0; y < extent->rows; y++) {
        uint64_t *row = bits + (z * extent->rows + y) * words;
        if (work->down[y] < 0)
            continue;
        const uint16_t *from = work->pixels + (int64_t)work->down[y] * frames->source->columns;
        for (int64_t x = 0; x < extent->columns; x++)
            if (work->across[x] >= 0 && frames_is_in(frames, from[work->across[x]])) {
                row[x / 64] |= UINT64_C(1) << x % 64;
                voxels++;
            }
    }
    return voxels;
}

static int
frames_fill_one(const struct object_frames *frames, int32_t number, const struct frames_work *work,
                uint64_t *bits, struct object_filled *filled, struct error *error)
{
    const struct seg_source *source = frames->source;
    const struct image_planes *planes = frames->planes;
    const struct seg_source_frame *frame = &source->frames[number];
    double off;
    if (!frame->has_geometry)
        return frames_refuse(frames, number, "has no position, orientation or pixel spacing",
                             error);
    if (!frames_is_parallel(planes, frame))
        return frames_refuse(frames, number, "is not parallel to the slices of the series", error);
    const int64_t z = frames_plane(planes, frame, &off);
    if (z < 0)
        return frames_refuse(frames, number, "lies on none of the series' slices", error);
    if (work->taken[z])
        return frames_refuse(frames, number, "lies on a slice that an earlier one lies on", error);
    const int rc = seg_source_read(source, work->reader, number, work->pixels, error);
    if (rc)
        return rc;
    frames_places(planes, frame, z, 0, source->columns, planes->extent.columns, work->across);
    frames_places(planes, frame, z, 1, source->rows, planes->extent.rows, work->down);
    const int64_t voxels = frames_copy(frames, work, z, bits);
    work->taken[z] = true;
    filled->frames++;
    filled->voxels += voxels;
    filled->planes += voxels > 0;
    filled->farthest = fmax(filled->farthest, off);
    return 0;
}

int
object_frames_fill(const struct object_frames *frames, uint64_t *bits, struct object_filled *filled,
                   struct error *error)
{
    const struct seg_source *source = frames->source;
    const struct image_extent *extent = &frames->planes->extent;
    struct frames_work work = {
        .pixels = calloc((size_t)source->rows * (size_t)source->columns, sizeof *work.pixels),
        .across = calloc((size_t)extent->columns, sizeof *work.across),
        .down = calloc((size_t)extent->rows, sizeof *work.down),
        .taken = calloc((size_t)extent->slices, sizeof *work.taken)};
    int rc = work.pixels && work.across && work.down && work.taken
                 ? 0
                 : error_set_system(error, -ENOMEM, "read the frames of a segment");
    *filled = (struct object_filled){0};
    if (rc == 0)
        rc = dicom_pixels_open(source->image, &work.reader, error);
    for (int32_t i = 0; i < source->frame_count && rc == 0; i++)
        if (source->frames[i].segment == frames->segment || source->frames[i].segment < 0)
            rc = frames_fill_one(frames, i, &work, bits, filled, error);
    dicom_pixels_close(work.reader);
    free(work.pixels);
    free(work.across);
    free(work.down);
    free(work.taken);
    return rc;
}
