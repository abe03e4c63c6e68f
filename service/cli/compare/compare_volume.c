#include "service/cli/compare/compare_volume.h"

#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Positions in decimal digits may be off by this much, mm. */
#define COMPARE_TOLERANCE   0.01

#define COMPARE_MOST_SLICES 65535

static int
volume_finish(struct compare_volume *volume, struct dicom_instance *const *instances,
              const struct geometry_stack *stack, struct error *error)
{
    static const struct conf_pipeline none;
    volume->segmentation =
        (struct segmentation){.pipeline = &none, .instances = instances, .stack = stack, .grid = &volume->grid};
    int rc = grid_make(&none, instances, stack, &volume->grid, error);
    if (rc == 0 && volume->grid.straight) {
        volume->segmentation.instances = volume->grid.instances;
        volume->segmentation.stack = volume->grid.stack;
    }
    return rc;
}

int
compare_volume_of_images(const struct headers *series, struct compare_volume *volume, struct error *error)
{
    const struct geometry_limits limits = {
        .min_planes = 1, .spacing_tolerance = 0.01, .allow_missing = true, .include_derived = true, .straighten = true};
    const struct geometry_stack *only = NULL;
    *volume = (struct compare_volume){0};
    int rc = geometry_group(series->instances, (int32_t)series->count, &limits, &volume->grouped, error);
    int accepted = 0;
    for (int32_t i = 0; rc == 0 && i < volume->grouped->stack_count; i++) {
        const struct geometry_stack *stack = &volume->grouped->stacks[i];
        accepted += stack->accepted;
        if (!only || (stack->accepted && !only->accepted))
            only = stack;
    }
    if (rc)
        return rc;
    if (accepted > 1)
        return error_set(error, -EINVAL, CODE_TOO_MANY_STACKS,
                         "series %s has %d volumes. Give the images of one of them.", series->instances[0]->series_uid,
                         accepted);
    if (!only || !only->accepted) {
        *error = only ? only->error : (struct error){.code = CODE_NO_GEOMETRY};
        return -EINVAL;
    }
    return volume_finish(volume, series->instances, only, error);
}

/* ------------------------------------------------------------------------ Segmentations ---- */

/* The lattice of the frames: a first frame, and the heights of all above it along the normal. */
struct volume_lattice {
    const struct seg_source_frame *first;
    double normal[3];
    double *heights; /* ascending, without duplicates */
    size_t count;
};

static int
volume_compare_heights(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Returns whether the frame has the orientation and the pixels of the first one. */
static bool
volume_is_aligned(const struct volume_lattice *lattice, const struct seg_source_frame *frame)
{
    const struct seg_source_frame *first = lattice->first;
    double offset[3];
    for (int i = 0; i < 6; i++)
        if (fabs(frame->orientation[i] - first->orientation[i]) > 1e-4)
            return false;
    for (int i = 0; i < 2; i++)
        if (fabs(frame->spacing[i] - first->spacing[i]) > 1e-4 * first->spacing[i])
            return false;
    for (int i = 0; i < 3; i++)
        offset[i] = frame->position[i] - first->position[i];
    for (int axis = 0; axis < 2; axis++) {
        const double *along = first->orientation + 3 * axis;
        if (fabs(offset[0] * along[0] + offset[1] * along[1] + offset[2] * along[2]) > COMPARE_TOLERANCE)
            return false;
    }
    return true;
}

static bool
volume_add_frames(struct volume_lattice *lattice, const struct seg_source *seg, const struct seg_source *other)
{
    bool aligned = seg->columns == other->columns && seg->rows == other->rows;
    for (int32_t i = 0; i < seg->frame_count && aligned; i++) {
        const struct seg_source_frame *frame = &seg->frames[i];
        double height = 0;
        aligned = frame->has_geometry && volume_is_aligned(lattice, frame);
        for (int axis = 0; axis < 3; axis++)
            height += (frame->position[axis] - lattice->first->position[axis]) * lattice->normal[axis];
        lattice->heights[lattice->count++] = height;
    }
    return aligned;
}

/* Returns the distance of the slices: the smallest between two frames, or a smaller one that the first frame states; 0:
 * the frames are not on one lattice. */
static double
volume_find_step(struct volume_lattice *lattice)
{
    const struct seg_source_frame *first = lattice->first;
    double step = first->between > 0 ? first->between : INFINITY;
    size_t kept = 1;
    qsort(lattice->heights, lattice->count, sizeof *lattice->heights, volume_compare_heights);
    for (size_t i = 1; i < lattice->count; i++)
        if (lattice->heights[i] - lattice->heights[kept - 1] > COMPARE_TOLERANCE)
            lattice->heights[kept++] = lattice->heights[i];
    lattice->count = kept;
    for (size_t i = 1; i < kept; i++)
        step = fmin(step, lattice->heights[i] - lattice->heights[i - 1]);
    if (kept == 1)
        return first->thickness > 0 ? first->thickness : 1;
    const double whole = lattice->heights[kept - 1] - lattice->heights[0];
    if (whole / step > COMPARE_MOST_SLICES)
        return 0;
    step = whole / round(whole / step);
    for (size_t i = 1; i < kept; i++) {
        const double steps = (lattice->heights[i] - lattice->heights[0]) / step;
        if (fabs(steps - round(steps)) * step > COMPARE_TOLERANCE)
            return 0;
    }
    return step;
}

/* Makes an instance with a frame per slice, and its stack. */
static int
volume_fill(struct compare_volume *volume, const struct volume_lattice *lattice, const struct object_set *set,
            double step)
{
    const struct seg_source_frame *first = lattice->first;
    const double whole = lattice->heights[lattice->count - 1] - lattice->heights[0];
    const int32_t count = (int32_t)lround(whole / step) + 1;
    struct geometry_stack *stack = &volume->stack;
    struct dicom_instance *instance = volume->instance = calloc(1, sizeof *instance);
    stack->planes = calloc((size_t)count, sizeof *stack->planes);
    if (!instance || !stack->planes || !(instance->frames = calloc((size_t)count, sizeof *instance->frames)))
        return -ENOMEM;
    *stack = (struct geometry_stack){.accepted = true,
                                     .columns = set->seg->columns,
                                     .rows = set->seg->rows,
                                     .plane_count = count,
                                     .planes = stack->planes,
                                     .pixel = IMAGE_UINT8,
                                     .has_geometry = true,
                                     .spacing = {first->spacing[0], first->spacing[1], step}};
    memcpy(stack->normal, lattice->normal, sizeof stack->normal);
    memcpy(stack->axes, first->orientation, sizeof first->orientation);
    memcpy(stack->axes + 6, lattice->normal, sizeof lattice->normal);
    instance->frame_count = count;
    instance->rows = stack->rows;
    instance->columns = stack->columns;
    snprintf(instance->frame_of_reference_uid, DICOM_UID_SIZE, "%s", set->frame);
    snprintf(instance->series_uid, DICOM_UID_SIZE, "%s", set->series_count > 0 ? set->series[0] : "");
    for (int32_t z = 0; z < count; z++) {
        struct dicom_frame *frame = &instance->frames[z];
        const double height = lattice->heights[0] + z * step;
        for (int axis = 0; axis < 3; axis++)
            frame->position[axis] = first->position[axis] + height * lattice->normal[axis];
        memcpy(frame->orientation, first->orientation, sizeof frame->orientation);
        frame->pixel_spacing[0] = first->spacing[1];
        frame->pixel_spacing[1] = first->spacing[0];
        frame->slice_thickness = step;
        frame->has_position = frame->has_orientation = frame->has_spacing = true;
        stack->planes[z] = (struct geometry_plane){.frame = z, .position = height};
    }
    memcpy(stack->origin, instance->frames[0].position, sizeof stack->origin);
    return 0;
}

int
compare_volume_of_segs(struct object_set *const *sets, size_t count, struct compare_volume *volume, struct error *error)
{
    struct volume_lattice lattice = {0};
    size_t frames = 0;
    bool aligned = true;
    *volume = (struct compare_volume){0};
    for (size_t i = 0; i < count; i++) {
        frames += (size_t)sets[i]->seg->frame_count;
        if (!lattice.first && sets[i]->seg->frame_count > 0)
            lattice.first = sets[i]->seg->frames;
    }
    lattice.heights = calloc(frames + 1, sizeof *lattice.heights);
    if (!lattice.heights)
        return error_set_system(error, -ENOMEM, "compare segmentations");
    if (lattice.first && lattice.first->has_geometry) {
        const double *a = lattice.first->orientation, *b = a + 3;
        for (int i = 0; i < 3; i++)
            lattice.normal[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
    }
    for (size_t i = 0; i < count && aligned && lattice.first; i++)
        aligned = volume_add_frames(&lattice, sets[i]->seg, sets[0]->seg);
    const double step = lattice.first && aligned ? volume_find_step(&lattice) : 0;
    int rc = step > 0 ? volume_fill(volume, &lattice, sets[0], step) : 0;
    free(lattice.heights);
    if (rc)
        return error_set_system(error, rc, "compare segmentations");
    if (!(step > 0))
        return error_set_files(error, -EINVAL, CODE_SEG_GRID_DIFFERS, sets[0]->path, sets[count - 1]->path,
                               "%s and %s have frames on different grids. Give the images with --images.",
                               text_base_name(sets[0]->path), text_base_name(sets[count - 1]->path));
    return volume_finish(volume, &volume->instance, &volume->stack, error);
}

void
compare_volume_free(struct compare_volume *volume)
{
    grid_release(&volume->grid);
    if (volume->grouped)
        geometry_series_free(volume->grouped);
    if (volume->instance)
        free(volume->instance->frames);
    free(volume->instance);
    free(volume->stack.planes);
    *volume = (struct compare_volume){0};
}
