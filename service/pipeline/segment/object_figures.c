#include "service/pipeline/segment/object_figures.h"

#include "base/error.h"
#include "base/limits.h"
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

/* Returns whether the coordinates of a figure on images are those of a plane. */
static bool
figures_is_on(const struct object_figures *figures, const struct sr_source_figure *figure, int64_t z)
{
    const char *uid = figures_image(figures, z)->sop_instance_uid;
    for (int32_t i = 0; i < figure->image_count; i++) {
        const struct sr_source_image *image = &figure->images[i];
        if (strcmp(image->uid, uid) != 0)
            continue;
        if (image->frame_count == 0)
            return true;
        for (int32_t k = 0; k < image->frame_count; k++)
            if (image->frames[k] == figures->stack->planes[z].frame + 1)
                return true;
    }
    return false;
}

bool
object_figure_is_elsewhere(const struct object_figures *figures, const struct sr_source_figure *figure)
{
    return figures->stack->flat && !figure->frame_of_reference_uid[0] && !figures_is_on(figures, figure, 0);
}

/* Checks a figure. Returns how often it is drawn: once in space, or on each plane of its images. */
static int
figures_count_planes(const struct object_figures *figures, const struct sr_source_figure *figure, int64_t *count,
                     struct error *error)
{
    const char *own = figures_image(figures, 0)->frame_of_reference_uid;
    const bool in_space = figure->frame_of_reference_uid[0] != '\0';
    *count = in_space;
    if (figure->form == SR_SOURCE_OTHER)
        return figures_refuse(figures, CODE_FIGURE_UNSUPPORTED, "is drawn as ", figure->type, error);
    if (in_space && figures->stack->flat)
        return figures_refuse(figures, CODE_OBJECT_OTHER_FRAME, "lies in space, in which a 2-D image has no place", "",
                              error);
    if (in_space && strcmp(figure->frame_of_reference_uid, own) != 0)
        return figures_refuse(figures, CODE_OBJECT_OTHER_FRAME,
                              "lies in another frame of reference than the images: ", figure->frame_of_reference_uid,
                              error);
    for (int64_t z = 0; z < figures->planes->extent.slices && !in_space; z++)
        *count += figures_is_on(figures, figure, z);
    if (*count == 0)
        return figures_refuse(figures, CODE_OBJECT_OTHER_SERIES,
                              "is drawn on an image that is no slice of the series: ",
                              figure->image_count ? figure->images[0].uid : "it names none", error);
    return 0;
}

/* Converts points on an image to mm, or to pixels of a 2-D image. Columns and rows of the plane count from the corner of its
 * first pixel. */
static void
figures_place(const struct image_planes *planes, const struct sr_source_figure *figure, int64_t z, double *points)
{
    for (int64_t i = 0; i < figure->count; i++) {
        const double across = (figure->points[3 * i] - 0.5) * planes->spacing[0];
        const double down = (figure->points[3 * i + 1] - 0.5) * planes->spacing[1];
        for (int k = 0; k < 3; k++)
            points[3 * i + k] = planes->origins[3 * z + k] + across * planes->axes[k] + down * planes->axes[3 + k];
    }
}

/* A figure on one plane, or in space. */
struct figures_placed {
    const struct sr_source_figure *figure;
    int64_t z;      /* -1: in space */
    double *points; /* in mm, or in pixels of a 2-D image */
};

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
figures_set_point(const struct object_figures *figures, const struct figures_placed *placed, int64_t index,
                  uint64_t *bits, struct error *error)
{
    const double *point = placed->points + 3 * index;
    const struct image_planes *planes = figures->planes;
    const struct image_extent *extent = &planes->extent;
    const int64_t z = placed->z < 0 ? figures_nearest(planes, image_planes_height(planes, point)) : placed->z;
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
    if (figures->stack->flat)
        snprintf(where, sizeof where, "column %.1f, row %.1f", point[0] + 0.5, point[1] + 0.5);
    else
        snprintf(where, sizeof where, "%.1f, %.1f, %.1f mm", point[0], point[1], point[2]);
    return figures_refuse(figures, CODE_SEED_OUTSIDE, "has a point outside of the volume: ", where, error);
}

/* An ellipse in pixels of its plane: its centre and its semi-axes. */
struct figures_ellipse {
    int64_t z;
    double centre[2], u[2], v[2];
};

/*
 * Takes the ellipse of placed points. A circle on pixels that are not square, and axes without a common centre or a right
 * angle, in pixels or in mm, are refused: the meaning of either is not certain.
 */
static int
figures_take_ellipse(const struct object_figures *figures, const struct figures_placed *placed,
                     struct figures_ellipse *ellipse, struct error *error)
{
    const struct image_planes *planes = figures->planes;
    const struct sr_source_figure *figure = placed->figure;
    const double *mm = figures->stack->spacing; /* per pixel, along x and y */
    double at[4][2];
    ellipse->z = placed->z;
    for (int64_t i = 0; i < figure->count; i++)
        for (int axis = 0; axis < 2; axis++)
            at[i][axis] = image_planes_along(placed->points + 3 * i, planes->origins + 3 * placed->z,
                                             planes->axes + (ptrdiff_t)3 * axis) /
                          planes->spacing[axis];
    if (figure->count == 2) {
        const double radius = hypot(at[1][0] - at[0][0], at[1][1] - at[0][1]);
        *ellipse = (struct figures_ellipse){placed->z, {at[0][0], at[0][1]}, {radius, 0}, {0, radius}};
        if (fabs(mm[0] - mm[1]) > 1e-6 * mm[0])
            return figures_refuse(figures, CODE_FIGURE_UNSUPPORTED, "is a CIRCLE on pixels that are not square", "",
                                  error);
    } else {
        double apart = 0, in_pixels = 0, in_mm = 0, size[2] = {0, 0};
        for (int axis = 0; axis < 2; axis++) {
            ellipse->centre[axis] = (at[0][axis] + at[1][axis]) / 2;
            ellipse->u[axis] = (at[1][axis] - at[0][axis]) / 2;
            ellipse->v[axis] = (at[3][axis] - at[2][axis]) / 2;
            apart = fmax(apart, fabs(ellipse->centre[axis] - (at[2][axis] + at[3][axis]) / 2));
            in_pixels += ellipse->u[axis] * ellipse->v[axis];
            in_mm += ellipse->u[axis] * ellipse->v[axis] * mm[axis] * mm[axis] / (mm[0] * mm[1]);
            size[0] = hypot(size[0], ellipse->u[axis]);
            size[1] = hypot(size[1], ellipse->v[axis]);
        }
        if (apart > 0.01 * fmax(size[0], size[1]) + 0.01 ||
            fmin(fabs(in_pixels), fabs(in_mm)) > 0.01 * size[0] * size[1])
            return figures_refuse(figures, CODE_FIGURE_UNSUPPORTED,
                                  "is an ELLIPSE whose axes have no common centre or no right angle", "", error);
    }
    if (fabs(ellipse->u[0] * ellipse->v[1] - ellipse->u[1] * ellipse->v[0]) < 1e-6)
        return figures_refuse(figures, CODE_FIGURE_UNSUPPORTED, "is without area: ", figure->type, error);
    return 0;
}

/* Sets the pixels whose centres are in the ellipse or on it. Refuses a pixel that is set. */
static int
figures_fill_ellipse(const struct object_figures *figures, const struct figures_ellipse *ellipse, uint64_t *bits,
                     struct error *error)
{
    const struct image_extent *extent = &figures->planes->extent;
    const int64_t words = (extent->columns + 63) / 64;
    const double *u = ellipse->u, *v = ellipse->v, cross = u[0] * v[1] - u[1] * v[0];
    const double half[2] = {hypot(u[0], v[0]), hypot(u[1], v[1])};
    const int64_t first[2] = {(int64_t)fmax(0, floor(ellipse->centre[0] - half[0])),
                              (int64_t)fmax(0, floor(ellipse->centre[1] - half[1]))};
    const int64_t end[2] = {(int64_t)fmin((double)extent->columns, ceil(ellipse->centre[0] + half[0]) + 1),
                            (int64_t)fmin((double)extent->rows, ceil(ellipse->centre[1] + half[1]) + 1)};
    for (int64_t y = first[1]; y < end[1]; y++)
        for (int64_t x = first[0]; x < end[0]; x++) {
            const double dx = (double)x - ellipse->centre[0], dy = (double)y - ellipse->centre[1];
            const double along_u = (dx * v[1] - dy * v[0]) / cross, along_v = (dy * u[0] - dx * u[1]) / cross;
            uint64_t *word = &bits[(ellipse->z * extent->rows + y) * words + x / 64];
            if (along_u * along_u + along_v * along_v > 1)
                continue;
            if (*word >> x % 64 & 1)
                return figures_refuse(figures, CODE_FIGURE_UNSUPPORTED,
                                      "has a circle or an ellipse that overlaps another outline", "", error);
            *word |= UINT64_C(1) << x % 64;
        }
    return 0;
}

struct figures_drawing {
    struct figures_placed *placed;
    struct contour *outlines;
    double *points;
    int64_t count, point_count;
};

/* Checks the figures, and counts those to draw and their points. */
static int
figures_check(const struct object_figures *figures, struct figures_drawing *drawing, struct object_figured *figured,
              struct error *error)
{
    for (int32_t i = 0; i < figures->item->figure_count; i++) {
        const struct sr_source_figure *figure = &figures->item->figures[i];
        int64_t planes;
        if (object_figure_is_elsewhere(figures, figure)) {
            figured->elsewhere++;
            continue;
        }
        const int rc = figures_count_planes(figures, figure, &planes, error);
        if (rc)
            return rc;
        drawing->count += planes;
        drawing->point_count += planes * figure->count;
        if (drawing->point_count > LIMIT_ROI_POINTS)
            return figures_refuse(figures, CODE_SIZE_IMPLAUSIBLE, "has too many points on its images", "", error);
    }
    return 0;
}

/* Places the figures on their planes, in the order of the report. */
static void
figures_gather(const struct object_figures *figures, struct figures_drawing *drawing, struct object_figured *figured)
{
    struct figures_placed *placed = drawing->placed;
    double *points = drawing->points;
    for (int32_t i = 0; i < figures->item->figure_count; i++) {
        const struct sr_source_figure *figure = &figures->item->figures[i];
        const bool in_space = figure->frame_of_reference_uid[0] != '\0';
        for (int64_t z = 0; z < (in_space ? 1 : figures->planes->extent.slices); z++) {
            if (!in_space && !figures_is_on(figures, figure, z))
                continue;
            *placed++ = (struct figures_placed){figure, in_space ? -1 : z, points};
            if (in_space)
                memcpy(points, figure->points, (size_t)figure->count * 3 * sizeof *points);
            else
                figures_place(figures->planes, figure, z, points);
            if (figure->form == SR_SOURCE_OUTLINE)
                drawing->outlines[figured->outlines++] = (struct contour){points, figure->count, false};
            points += 3 * figure->count;
        }
    }
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

/* Draws the figures of a form, ellipses or points. */
static int
figures_draw_rest(const struct object_figures *figures, const struct figures_drawing *drawing, enum sr_source_form form,
                  uint64_t *bits, struct object_figured *figured, struct error *error)
{
    int rc = 0;
    for (int64_t i = 0; i < drawing->count && rc == 0; i++) {
        const struct figures_placed *placed = &drawing->placed[i];
        struct figures_ellipse ellipse;
        if (placed->figure->form != form)
            continue;
        if (form == SR_SOURCE_ELLIPSE) {
            rc = figures_take_ellipse(figures, placed, &ellipse, error);
            rc = rc ? rc : figures_fill_ellipse(figures, &ellipse, bits, error);
            figured->outlines++;
        }
        for (int64_t k = 0; k < placed->figure->count && rc == 0 && form == SR_SOURCE_POINTS; k++) {
            rc = figures_set_point(figures, placed, k, bits, error);
            figured->points++;
        }
    }
    return rc;
}

static int
figures_draw(const struct object_figures *figures, struct figures_drawing *drawing, uint64_t *bits,
             struct object_figured *figured, struct error *error)
{
    struct error why = {.code = CODE_NONE};
    figures_gather(figures, drawing, figured);
    const struct contours_request request = {figures->planes, drawing->outlines, figured->outlines, false, false};
    int rc = kernels_mask_contours(&request, bits, &figured->drawn, &why);
    if (rc)
        return error_set_files(error, rc, why.code, figures->path, NULL, "%s, region \"%s\": %.300s",
                               text_base_name(figures->path), figures->item->name, why.message);
    rc = figures_draw_rest(figures, drawing, SR_SOURCE_ELLIPSE, bits, figured, error);
    if (rc == 0)
        rc = figures_draw_rest(figures, drawing, SR_SOURCE_POINTS, bits, figured, error);
    /* Count outlines and points together: points may lie in outlines. */
    object_figures_count(&figures->planes->extent, bits, &figured->drawn);
    return rc;
}

int
object_figures_draw(const struct object_figures *figures, uint64_t *bits, struct object_figured *figured,
                    struct error *error)
{
    struct figures_drawing drawing = {0};
    *figured = (struct object_figured){0};
    int rc = figures_check(figures, &drawing, figured, error);
    if (rc)
        return rc;
    drawing.placed = calloc((size_t)drawing.count + 1, sizeof *drawing.placed);
    drawing.outlines = calloc((size_t)drawing.count + 1, sizeof *drawing.outlines);
    drawing.points = calloc((size_t)drawing.point_count + 1, 3 * sizeof *drawing.points);
    rc = drawing.placed && drawing.outlines && drawing.points ? figures_draw(figures, &drawing, bits, figured, error)
                                                              : error_set_system(error, -ENOMEM, "draw a region");
    free(drawing.placed);
    free(drawing.outlines);
    free(drawing.points);
    return rc;
}
