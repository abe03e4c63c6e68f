/* object_figures.c - see object_figures.h. */
#include "service/pipeline/segment/object_figures.h"

#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
figures_refuse(const struct object_figures *figures, enum code code, const char *why, const char *what,
               struct error *error)
{
    return error_set_files(error, -EINVAL, code, figures->path, NULL, "%s, region \"%s\" %s%s.",
                           text_base_name(figures->path), figures->item->name, why, what);
}

static const struct dicom_instance *
figures_image(const struct object_figures *figures, int64_t z)
{
    return figures->instances[figures->stack->planes[z].instance];
}

/* Returns the figure's points in mm; converts points on an image. */
static int
figures_place(const struct object_figures *figures, const struct sr_source_figure *figure, double *points,
              struct error *error)
{
    memcpy(points, figure->points, (size_t)figure->count * 3 * sizeof *points);
    if (figure->frame_of_reference_uid[0]) {
        const char *own = figures_image(figures, 0)->frame_of_reference_uid;
        return strcmp(figure->frame_of_reference_uid, own) == 0
                   ? 0
                   : figures_refuse(
                         figures, CODE_OBJECT_OTHER_FRAME,
                         "lies in another frame of reference than the images: ", figure->frame_of_reference_uid, error);
    }
    const struct image_planes *planes = figures->planes;
    const int64_t slices = planes->extent.slices;
    int64_t z = 0;
    while (z < slices && (strcmp(figures_image(figures, z)->sop_instance_uid, figure->image_uid) != 0 ||
                          figures->stack->planes[z].frame != figure->image_frame - 1))
        z++;
    if (z == slices)
        return figures_refuse(figures, CODE_OBJECT_OTHER_SERIES,
                              "is drawn on an image that is no slice of the series: ",
                              figure->image_uid[0] ? figure->image_uid : "it names none", error);
    /* Columns and rows of the plane count from the corner of its first pixel. */
    for (int64_t i = 0; i < figure->count; i++) {
        const double across = (points[3 * i] - 0.5) * planes->spacing[0];
        const double down = (points[3 * i + 1] - 0.5) * planes->spacing[1];
        for (int k = 0; k < 3; k++)
            points[3 * i + k] = planes->origins[3 * z + k] + across * planes->axes[k] + down * planes->axes[3 + k];
    }
    return 0;
}

static double
figures_plane_height(const struct image_planes *planes, int64_t z)
{
    return image_planes_height(planes, planes->origins + 3 * z);
}

/* Returns the nearest plane; -1: the height is beyond the planes. */
static int64_t
figures_nearest(const struct image_planes *planes, double height)
{
    const int64_t last = planes->extent.slices - 1;
    int64_t nearest = 0;
    for (int64_t z = 1; z <= last; z++)
        if (fabs(figures_plane_height(planes, z) - height) < fabs(figures_plane_height(planes, nearest) - height))
            nearest = z;
    const int64_t next = nearest == 0 ? 1 : nearest - 1;
    const double apart =
        last > 0 ? fabs(figures_plane_height(planes, next) - figures_plane_height(planes, nearest)) : planes->thickness;
    const bool is_end = nearest == 0 || nearest == last;
    const double beside = fabs(figures_plane_height(planes, nearest) - height);
    return is_end && beside > apart / 2 && (height < 0 || height > figures_plane_height(planes, last)) ? -1 : nearest;
}

static int
figures_set_point(const struct object_figures *figures, const double point[3], uint64_t *bits, struct error *error)
{
    const struct image_planes *planes = figures->planes;
    const struct image_extent *extent = &planes->extent;
    const int64_t z = figures_nearest(planes, image_planes_height(planes, point));
    char where[96];
    if (z >= 0) {
        const double *origin = planes->origins + 3 * z;
        const double x = floor(image_planes_along(point, origin, planes->axes) / planes->spacing[0] + 0.5);
        const double y = floor(image_planes_along(point, origin, planes->axes + 3) / planes->spacing[1] + 0.5);
        if (x >= 0 && x < (double)extent->columns && y >= 0 && y < (double)extent->rows) {
            const int64_t words = (extent->columns + 63) / 64, column = (int64_t)x;
            bits[(z * extent->rows + (int64_t)y) * words + column / 64] |= UINT64_C(1) << column % 64;
            return 0;
        }
    }
    snprintf(where, sizeof where, "%.1f, %.1f, %.1f mm", point[0], point[1], point[2]);
    return figures_refuse(figures, CODE_SEED_OUTSIDE, "has a point outside of the volume: ", where, error);
}

/*
 * Places the figures: `outlines` has room for all of them, `points` for their points, in their
 * order.
 */
static int
figures_gather(const struct object_figures *figures, struct contour *outlines, double *points,
               struct object_figured *figured, struct error *error)
{
    int rc = 0;
    for (int32_t i = 0; i < figures->item->figure_count && rc == 0; i++) {
        const struct sr_source_figure *figure = &figures->item->figures[i];
        if (figure->form == SR_SOURCE_OTHER)
            return figures_refuse(figures, CODE_FIGURE_UNSUPPORTED, "is drawn as ", figure->type, error);
        rc = figures_place(figures, figure, points, error);
        if (figure->form == SR_SOURCE_OUTLINE)
            outlines[figured->outlines++] = (struct contour){points, figure->count, false};
        points += 3 * figure->count;
    }
    return rc;
}

void
object_figures_count(const struct image_extent *extent, const uint64_t *bits, struct contours_drawn *drawn)
{
    const int64_t words = (extent->columns + 63) / 64 * extent->rows;
    drawn->voxels = drawn->planes = 0;
    for (int64_t z = 0; z < extent->slices; z++) {
        int64_t voxels = 0;
        for (int64_t w = 0; w < words; w++)
            voxels += __builtin_popcountll(bits[z * words + w]);
        drawn->voxels += voxels;
        drawn->planes += voxels > 0;
    }
}

static int
figures_draw(const struct object_figures *figures, struct contour *outlines, double *points, uint64_t *bits,
             struct object_figured *figured, struct error *error)
{
    struct error why = {.code = CODE_NONE};
    int rc = figures_gather(figures, outlines, points, figured, error);
    if (rc)
        return rc;
    const struct contours_request request = {figures->planes, outlines, figured->outlines, false, false};
    rc = kernels_mask_contours(&request, bits, &figured->drawn, &why);
    if (rc)
        return error_set_files(error, rc, why.code, figures->path, NULL, "%s, region \"%s\": %.300s",
                               text_base_name(figures->path), figures->item->name, why.message);
    for (int32_t i = 0; i < figures->item->figure_count && rc == 0; i++) {
        const struct sr_source_figure *figure = &figures->item->figures[i];
        for (int64_t k = 0; k < figure->count && rc == 0; k++, points += 3)
            if (figure->form == SR_SOURCE_POINTS) {
                rc = figures_set_point(figures, points, bits, error);
                figured->points++;
            }
    }
    /* Count outlines and points together: points may lie in outlines. */
    object_figures_count(&figures->planes->extent, bits, &figured->drawn);
    return rc;
}

int
object_figures_draw(const struct object_figures *figures, uint64_t *bits, struct object_figured *figured,
                    struct error *error)
{
    const int32_t count = figures->item->figure_count;
    int64_t all = 0;
    *figured = (struct object_figured){0};
    for (int32_t i = 0; i < count; i++)
        all += figures->item->figures[i].count;
    struct contour *outlines = calloc((size_t)count + 1, sizeof *outlines);
    double *points = calloc((size_t)all + 1, 3 * sizeof *points);
    int rc = outlines && points ? figures_draw(figures, outlines, points, bits, figured, error)
                                : error_set_system(error, -ENOMEM, "draw a region");
    free(outlines);
    free(points);
    return rc;
}
