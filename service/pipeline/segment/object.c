#include "service/pipeline/segment/object.h"

#include "base/error.h"
#include "base/text.h"
#include "service/pipeline/segment/object_figures.h"
#include "service/pipeline/segment/object_frames.h"
#include "service/pipeline/segment/object_search.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One element per segment, in the pipeline's order. */
struct object_segments {
    struct object_region *regions;
    size_t count;
};

/* ------------------------------------------------------------------------------ drawing ---- */

static int
object_draw(const struct object_search *search, const struct image_planes *planes, struct object_region *region,
            struct error *error)
{
    struct rtstruct_contours contours;
    struct error why = {.code = CODE_NONE};
    int rc = rtstruct_contours_read(search->set->rtstruct, search->item, &contours, error);
    if (rc)
        return rc;
    region->contours = contours.count;
    region->left_out = contours.left_out;
    const struct contours_request request = {planes, contours.contours, contours.count,
                                             search->segment->object.interpolate,
                                             search->segment->object.pixels == CONF_PIXELS_CENTRES};
    rc = kernels_mask_contours(&request, region->bits, &region->drawn, &why);
    rtstruct_contours_free(&contours);
    if (rc == 0)
        return 0;
    /* The kernel knows neither the object nor the region. */
    const bool elsewhere = why.code == CODE_CONTOUR_OFF_PLANES || why.code == CODE_CONTOUR_OBLIQUE;
    return error_set_files(error, rc, why.code, search->set->path, NULL, "%s, region \"%s\": %.300s%s",
                           text_base_name(search->set->path), search->set->items[search->item].name, why.message,
                           elsewhere ? " Draw it on the slices of this series." : "");
}

/* Makes the mask in *bits. Planes without a frame are empty. */
static int
object_fill(const struct object_search *search, const struct image_planes *planes, uint64_t *bits,
            struct object_region *region, struct error *error)
{
    const struct geometry_stack *stack = search->segmentation->grid->source;
    const struct dicom_instance *image = search->segmentation->grid->source_instances[stack->planes[0].instance];
    const struct object_frames frames = {.image_uid = stack->flat ? image->sop_instance_uid : NULL,
                                         .image_frame = stack->planes[0].frame + 1,
                                         .source = search->set->seg,
                                         .segment = search->item,
                                         .threshold = search->segment->object.threshold,
                                         .exact = search->segment->object.corrected,
                                         .planes = planes};
    struct object_filled filled;
    int rc = object_frames_fill(&frames, bits, &filled, error);
    region->frames = filled.frames;
    region->between = filled.between;
    region->drawn = (struct contours_drawn){
        .voxels = filled.voxels, .planes = filled.planes, .missing = filled.empty, .farthest = filled.farthest};
    return rc;
}

static int
object_figure(const struct object_search *search, const struct image_planes *planes, struct object_region *region,
              struct error *error)
{
    const struct grid *grid = search->segmentation->grid;
    const struct object_figures figures = {.path = search->set->path,
                                           .item = &search->set->report->items[search->item],
                                           .planes = planes,
                                           .instances = grid->source_instances,
                                           .stack = grid->source};
    struct object_figured figured;
    int rc = object_figures_draw(&figures, region->bits, &figured, error);
    region->contours = figured.outlines;
    region->points = figured.points;
    region->elsewhere = figured.elsewhere;
    region->drawn = figured.drawn;
    return rc;
}

static int
object_refuse_empty(const struct object_search *search, const struct object_region *region, struct error *error)
{
    const char *path = search->set->path;
    const int64_t drawn = search->set->seg ? region->frames : region->contours;
    char why[160];
    if (drawn > 0)
        snprintf(why, sizeof why, "its %" PRId64 " %s have no voxel of this series in them. Was it drawn on it?", drawn,
                 search->set->seg ? "frames" : "closed contours");
    else
        snprintf(why, sizeof why, "%s. Draw it, or leave segment \"%.64s\" out.",
                 region->elsewhere > 0  ? "it is drawn on other images or frames"
                 : region->left_out > 0 ? "points and open lines enclose no voxel"
                                        : "it has no contour",
                 search->segment->label);
    return error_set_files(error, -EINVAL, CODE_ROI_EMPTY, path, NULL, "%s, %s \"%s\": %s", text_base_name(path),
                           search->set->seg ? "segment" : "region", region->name, why);
}

/*
 * Keeps the reason why an optional region is empty, instead of an error. Returns 0, or rc for other
 * errors.
 */
static int
object_pass_empty(const struct object_search *search, struct object_region *region, int rc, struct error *error)
{
    if (!rc || !search->segment->object.optional || error->code != CODE_ROI_EMPTY)
        return rc;
    snprintf(region->absent, sizeof region->absent, "%s", error->message);
    text_utf8_mend_end(region->absent);
    *error = (struct error){.code = CODE_NONE};
    return 0;
}

/* Checks that results can refer to the object, and that a segment without a type gets its codes. */
static int
object_check(const struct object_search *search, struct error *error)
{
    const struct conf_pipeline *pipeline = search->segmentation->pipeline;
    const struct conf_segment *segment = search->segment;
    const struct object_set *set = search->set;
    const struct object_item *item = &set->items[search->item];
    /* DCMTK 3.6.7 and older readers cannot read a report with an IMAGE item of that class. */
    if ((pipeline->results & CONF_RESULT_SR) && !(pipeline->results & CONF_RESULT_SEG) && !segment->hidden &&
        strcmp(set->class_uid, SEG_SOURCE_LABELMAP_CLASS) == 0)
        return error_set_files(error, -EINVAL, CODE_OBJECT_NOT_REFERABLE, set->path, NULL,
                               "%s is a Label Map Segmentation, to which readers of reports know "
                               "no reference: results of pipeline %s need \"seg\" too.",
                               text_base_name(set->path), pipeline->name);
    if (!object_item_has_type(item, segment))
        return error_set_files(error, -EINVAL, CODE_TAG_MISSING, set->path, NULL,
                               "%s, segment \"%s\": Segmented Property Type Code Sequence (0062,000F) has "
                               "no whole code. Give segment \"%.64s\" of pipeline %s a type.",
                               text_base_name(set->path), item->name, segment->label, pipeline->name);
    return 0;
}

static int64_t
object_words(const struct image_planes *planes)
{
    return (planes->extent.columns + 63) / 64 * planes->extent.rows;
}

/* Allocates the mask and draws the region into it. */
static int
object_make_one(const struct object_search *search, const struct image_planes *planes, struct object_region *region,
                struct error *error)
{
    region->bits = calloc((size_t)(object_words(planes) * planes->extent.slices), sizeof *region->bits);
    if (!region->bits)
        return error_set_system(error, -ENOMEM, "hold the mask of a region");
    if (!search->set)
        return 0;
    if (search->set->seg)
        return object_fill(search, planes, region->bits, region, error);
    return search->set->report ? object_figure(search, planes, region, error)
                               : object_draw(search, planes, region, error);
}

/* Adds the voxels and the figures of another region. */
static void
object_add_part(const struct image_planes *planes, const struct object_region *other, struct object_region *region)
{
    struct contours_drawn *drawn = &region->drawn;
    const struct contours_drawn *own = &other->drawn;
    const size_t length = strlen(region->name);
    snprintf(region->name + length, sizeof region->name - length, "%s%s", region->united > 0 ? ", " : "", other->name);
    text_utf8_mend_end(region->name);
    for (int64_t i = 0; i < object_words(planes) * planes->extent.slices; i++)
        region->bits[i] |= other->bits[i];
    region->united++;
    region->contours += other->contours;
    region->left_out += other->left_out;
    region->frames += other->frames;
    region->between = fmax(region->between, other->between);
    drawn->missing += own->missing;
    drawn->interpolated |= own->interpolated;
    drawn->farthest = fmax(drawn->farthest, own->farthest);
    drawn->copies += own->copies;
    drawn->crossed += own->crossed;
    drawn->points += own->points;
    drawn->on_centres += own->on_centres;
}

/* Makes each region that matches, and unites them. */
static int
object_make_united(const struct object_search *search, const struct image_planes *planes, struct object_region *region,
                   struct error *error)
{
    struct object_search one = *search;
    int rc = 0;
    region->name[0] = '\0';
    region->bits = calloc((size_t)(object_words(planes) * planes->extent.slices), sizeof *region->bits);
    if (!region->bits)
        return error_set_system(error, -ENOMEM, "hold the mask of a region");
    for (; one.item >= 0 && rc == 0; one.item = object_search_next(&search->segment->object, one.set, one.item + 1)) {
        struct object_region part = {.what = region->what};
        snprintf(part.name, sizeof part.name, "%s", one.set->items[one.item].name);
        rc = object_search_check(&one, one.set, one.item, error);
        if (rc == 0)
            rc = object_make_one(&one, planes, &part, error);
        if (rc == 0)
            object_add_part(planes, &part, region);
        free(part.bits);
    }
    object_figures_count(&planes->extent, region->bits, &region->drawn);
    return rc;
}

double *
object_make_planes(const struct geometry_stack *stack, struct dicom_instance *const *instances,
                   struct image_planes *planes)
{
    double *origins = calloc((size_t)stack->plane_count, 3 * sizeof *origins);
    const struct dicom_frame *first = NULL;
    for (int32_t z = stack->plane_count - 1; z >= 0 && origins; z--) {
        const struct geometry_plane *plane = &stack->planes[z];
        first = &instances[plane->instance]->frames[plane->frame];
        if (!stack->flat)
            memcpy(origins + (size_t)z * 3, first->position, 3 * sizeof *origins);
    }
    if (!first)
        return origins;
    if (stack->flat) {
        *planes = (struct image_planes){.extent = {stack->columns, stack->rows, stack->plane_count},
                                        .spacing = {1, 1},
                                        .thickness = 1,
                                        .axes = {1, 0, 0, 0, 1, 0},
                                        .origins = origins};
        return origins;
    }
    *planes = (struct image_planes){
        .extent = {stack->columns, stack->rows, stack->plane_count},
        .spacing = {first->pixel_spacing[1], first->pixel_spacing[0]},
        .thickness = stack->spacing[2],
        .origins = origins,
    };
    memcpy(planes->axes, first->orientation, sizeof planes->axes);
    return origins;
}

/* Returns whether a corrected mask may be on the upright grid, on which its result was written. */
static bool
object_may_be_upright(const struct object_search *search)
{
    return search->segment->object.corrected && search->set && search->set->seg &&
           search->segmentation->grid->straight && search->segmentation->pipeline->seg_grid == CONF_SEG_UPRIGHT;
}

/* Makes the masks of a region whose frames have exactly the voxels of the upright grid. */
static int
object_make_upright(const struct object_search *search, struct object_region *region, struct error *error)
{
    const struct grid *grid = search->segmentation->grid;
    const struct geometry_stack *stack = grid->stack;
    struct image_planes planes = {.extent = {stack->columns, stack->rows, stack->plane_count},
                                  .spacing = {stack->spacing[0], stack->spacing[1]},
                                  .thickness = stack->spacing[2]};
    memcpy(planes.axes, stack->axes, sizeof planes.axes);
    double *origins = calloc((size_t)stack->plane_count, 3 * sizeof *origins);
    region->grid_bits = calloc((size_t)(object_words(&planes) * stack->plane_count), sizeof *region->grid_bits);
    for (int64_t i = 0; i < 3 * (int64_t)stack->plane_count && origins; i++)
        origins[i] = stack->origin[i % 3] + (double)(i / 3) * stack->spacing[2] * stack->axes[6 + i % 3];
    planes.origins = origins;
    int rc = origins && region->grid_bits ? object_fill(search, &planes, region->grid_bits, region, error)
                                          : error_set_system(error, -ENOMEM, "hold the mask of a region");
    free(origins);
    region->mask = (struct image_mask){region->grid_bits, (planes.extent.columns + 63) / 64, region->drawn.voxels};
    if (rc == 0 && region->mask.voxels == 0)
        rc = object_pass_empty(search, region, object_refuse_empty(search, region, error), error);
    free(region->bits);
    region->bits = NULL;
    return rc ? rc : grid_mask_on_planes(grid, &region->mask, &region->bits, &region->whole, error);
}

int
object_region_make(const struct object_search *search, struct object_region *region, struct error *error)
{
    const struct grid *grid = search->segmentation->grid;
    struct image_planes planes;
    double *origins = object_make_planes(grid->source, grid->source_instances, &planes);
    if (!origins)
        return error_set_system(error, -ENOMEM, "hold the planes of the series");
    int rc = search->set && search->segment->object.unite ? object_make_united(search, &planes, region, error)
                                                          : object_make_one(search, &planes, region, error);
    free(origins);
    if (rc && error->code == CODE_SEG_GRID_DIFFERS && object_may_be_upright(search))
        return object_make_upright(search, region, error);
    if (rc)
        return rc;
    region->whole = (struct image_mask){region->bits, (planes.extent.columns + 63) / 64, region->drawn.voxels};
    if (region->whole.voxels == 0 && search->set)
        rc = object_pass_empty(search, region, object_refuse_empty(search, region, error), error);
    region->mask = region->whole;
    if (rc || !grid->straight)
        return rc;
    rc = grid_mask_of_planes(grid, region->bits, &region->grid_bits, &region->mask, error);
    if (rc || region->mask.voxels > 0 || region->whole.voxels == 0)
        return rc;
    rc = error_set_files(error, -EINVAL, CODE_ROI_EMPTY, search->set->path, NULL,
                         "%s, region \"%s\": none of the slices that it is drawn on is nearest to "
                         "a slice of the upright grid; give the pipeline a smaller grid.mm.",
                         text_base_name(search->set->path), region->name);
    return object_pass_empty(search, region, rc, error);
}

static void
object_identify(const struct object_search *search, struct object_region *region)
{
    const struct object_set *set = search->set;
    const struct object_item *item = &set->items[search->item];
    snprintf(region->class_uid, sizeof region->class_uid, "%s", set->class_uid);
    snprintf(region->sop_instance_uid, sizeof region->sop_instance_uid, "%s", set->sop_instance_uid);
    snprintf(region->study_uid, sizeof region->study_uid, "%s", set->study_uid);
    snprintf(region->series_uid, sizeof region->series_uid, "%s", set->series_uid);
    snprintf(region->name, sizeof region->name, "%s", item->name);
    if (set->rtstruct && !search->segment->object.unite)
        snprintf(region->roi_type, sizeof region->roi_type, "%s", set->rtstruct->rois[search->item].type);
    snprintf(region->tracking_id, sizeof region->tracking_id, "%s", item->tracking_id);
    snprintf(region->tracking_uid, sizeof region->tracking_uid, "%s", item->tracking_uid);
    /* United regions may have different provenance: none is stated. */
    region->provenance = search->segment->object.unite ? &provenance_unstated : provenance_hold(item->provenance);
    region->what = set->what;
    region->path = set->path;
    region->number = item->number;
    region->origin = (struct seg_origin){.class_uid = region->class_uid,
                                         .instance_uid = region->sop_instance_uid,
                                         .series_uid = region->series_uid,
                                         .study_uid = region->study_uid,
                                         .number = region->number,
                                         .tracking_id = region->tracking_id,
                                         .tracking_uid = region->tracking_uid};
}

/* ----------------------------------------------------------------------------- the method -- */

static int
object_prepare_one(const struct segmentation *segmentation, size_t segment, struct object_region *region,
                   struct error *error)
{
    const struct object_pick *pick = &segmentation->picks->of[segment];
    const struct object_search search = {.segmentation = segmentation,
                                         .segment = &segmentation->pipeline->segments[segment],
                                         .set = pick->set,
                                         .item = pick->item};
    if (pick->set) {
        const int rc = object_check(&search, error);
        if (rc)
            return rc;
        object_identify(&search, region);
    }
    snprintf(region->absent, sizeof region->absent, "%s", pick->absent);
    return object_region_make(&search, region, error);
}

static int
object_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct object_segments *own = prepared;
    int rc = 0;
    own->count = segmentation->of[CONF_OBJECT].count;
    own->regions = calloc(own->count, sizeof *own->regions);
    if (!own->regions)
        return error_set_system(error, -ENOMEM, "hold the regions");
    for (size_t k = 0; k < own->count && rc == 0; k++)
        rc = object_prepare_one(segmentation, segmentation->of[CONF_OBJECT].segments[k], &own->regions[k], error);
    /*
     * Closes the objects early: contours and frames may be large, and the segments have copies or
     * hold their share.
     */
    object_sets_close(&segmentation->picks->sets);
    return rc;
}

static void
object_release(void *prepared)
{
    struct object_segments *own = prepared;
    for (size_t k = 0; k < own->count && own->regions; k++) {
        free(own->regions[k].bits);
        free(own->regions[k].grid_bits);
        provenance_release(own->regions[k].provenance);
    }
    free(own->regions);
}

static int
object_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error)
{
    const struct object_segments *own = segmentation->of[CONF_OBJECT].prepared;
    (void)lane;
    (void)voxels;
    (void)error;
    for (size_t k = 0; k < own->count; k++)
        segmentation->found[segmentation->of[CONF_OBJECT].segments[k]] = own->regions[k].mask;
    return 0;
}

/* Returns the bytes of the region on its planes, and on a grid of its own. */
static struct segment_bytes
object_bytes(const struct segmentation *segmentation, size_t segment)
{
    const struct grid *grid = segmentation->grid;
    const int64_t own = grid->straight ? segment_mask_bytes(grid->stack) : 0;
    (void)segment;
    return (struct segment_bytes){.lasting = segment_mask_bytes(grid->source) + own};
}

const struct object_region *
object_region_of(const struct segmentation *segmentation, size_t segment)
{
    const struct object_segments *own = segmentation->of[CONF_OBJECT].prepared;
    return segmentation->pipeline->segments[segment].method == CONF_OBJECT
               ? &own->regions[segment_place(segmentation, segment)]
               : NULL;
}

const struct object_region *
object_region_alone(const struct segmentation *segmentation, size_t segment)
{
    return segmentation->places[segment] == SEGMENT_NO_PLACE ? object_region_of(segmentation, segment) : NULL;
}

bool
object_region_is_changed(const struct segmentation *segmentation, size_t segment)
{
    const struct object_region *region = object_region_of(segmentation, segment);
    return segmentation->places[segment] != SEGMENT_NO_PLACE || region->united > 1 ||
           (region->drawn.interpolated && region->drawn.missing > 0);
}

static bool
object_takes_centres(const struct segmentation *segmentation, size_t segment)
{
    const struct conf_object *object = &segmentation->pipeline->segments[segment].object;
    return object->kind == CONF_RTSTRUCT && object->pixels == CONF_PIXELS_CENTRES;
}

static void
object_describe(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION])
{
    const struct object_region *region = object_region_of(segmentation, segment);
    if (!region->what) {
        snprintf(text, SEGMENT_DESCRIPTION, "%s", region->absent);
        return;
    }
    if (region->united > 1)
        snprintf(text, SEGMENT_DESCRIPTION, "%" PRId32 " regions united (%s) of %s %s, drawn on %" PRId64 " slices",
                 region->united, region->name, region->what, region->sop_instance_uid, region->drawn.planes);
    else
        snprintf(text, SEGMENT_DESCRIPTION, "region %" PRId32 " \"%s\" of %s %s, drawn on %" PRId64 " slices",
                 region->number, region->name, region->what, region->sop_instance_uid, region->drawn.planes);
    if (object_takes_centres(segmentation, segment))
        segment_append(text, SEGMENT_DESCRIPTION, "; with the voxels whose centres contours cross");
    const struct provenance *provenance = region->provenance;
    if (provenance && strcmp(provenance->type, "MANUAL") == 0 && provenance->name_count > 0)
        segment_append(text, SEGMENT_DESCRIPTION, "; described as \"%s\"", provenance->names[0]);
    if (region->drawn.missing > 0)
        segment_append(text, SEGMENT_DESCRIPTION, "; %" PRId64 " slices between them have no %s and are %s",
                       region->drawn.missing, region->frames > 0 ? "frame" : "contour",
                       region->drawn.interpolated ? "interpolated by shape" : "left empty");
    if (region->between > 0)
        segment_append(text, SEGMENT_DESCRIPTION, "; of its frames, %.3g mm apart, each slice has the nearest",
                       region->between);
}

/* Adds text to the note of a segment. */
static void __attribute__((format(printf, 2, 3))) object_note(struct pipeline_segment *report, const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (report->told[0])
        segment_append(report->told, sizeof report->told, "; %s", text);
    else
        snprintf(report->told, sizeof report->told, "%.64s: %s", report->label, text);
}

/* Notes contours that follow voxel centres, and an option that assumes it wrongly. */
static void
object_note_centres(const struct object_region *region, bool takes_centres, struct pipeline_segment *report)
{
    const struct contours_drawn *drawn = &region->drawn;
    const bool follow = 2 * drawn->on_centres > drawn->points;
    if (drawn->points == 0 || follow == takes_centres)
        return;
    object_note(report,
                follow ? "%" PRId64 " of %" PRId64 " contour points lie on voxel centres; if the "
                         "region has these voxels, set object.contour_pixels = \"centres\""
                       : "only %" PRId64 " of %" PRId64 " contour points lie on voxel centres, and "
                         "object.contour_pixels is \"centres\"",
                drawn->on_centres, drawn->points);
}

static void
object_report(const struct segmentation *segmentation, size_t segment, struct pipeline_segment *report)
{
    const struct object_region *region = object_region_of(segmentation, segment);
    snprintf(report->absent, sizeof report->absent, "%s", region->absent);
    if (!region->what)
        return;
    snprintf(report->region, sizeof report->region, "%s", region->name);
    report->region_number = region->number;
    report->regions = region->united > 0 ? region->united : 1;
    struct pipeline_object *object = &report->object;
    object->provenance = provenance_hold(region->provenance);
    object->changed = object_region_is_changed(segmentation, segment);
    object->number = region->number;
    memcpy(object->name, region->name, sizeof object->name);
    memcpy(object->sop_instance_uid, region->sop_instance_uid, sizeof object->sop_instance_uid);
    memcpy(object->tracking_uid, region->tracking_uid, sizeof object->tracking_uid);
    report->numbers[report->number_count++] =
        region->frames > 0   ? (struct segment_number){"frames", "frames", (double)region->frames, false}
        : region->points > 0 ? (struct segment_number){"points", "points", (double)region->points, false}
                             : (struct segment_number){"contours", "contours", (double)region->contours, false};
    report->numbers[report->number_count++] =
        (struct segment_number){"slices_drawn", "slices drawn", (double)region->drawn.planes, false};
    report->numbers[report->number_count++] =
        (struct segment_number){"slices_missing", "slices missing", (double)region->drawn.missing, false};
    report->numbers[report->number_count++] =
        (struct segment_number){"farthest_mm", "farthest mm", region->drawn.farthest, false};
    if (region->drawn.points > 0)
        report->numbers[report->number_count++] =
            (struct segment_number){"points_on_centres", "points on centres",
                                    (double)region->drawn.on_centres / (double)region->drawn.points, false};
    object_note_centres(region, object_takes_centres(segmentation, segment), report);
    if (region->drawn.missing > 0)
        object_note(report, "%" PRId64 " slices between drawn ones have no %s, and %s", region->drawn.missing,
                    region->frames > 0 ? "frame" : "contour",
                    region->drawn.interpolated ? "are interpolated" : "stay empty");
    if (region->drawn.copies > 0)
        object_note(report, "%" PRId64 " contours are drawn twice and count once", region->drawn.copies);
    if (region->drawn.crossed > 0)
        object_note(report, "%" PRId64 " contours cross others and are united", region->drawn.crossed);
    if (region->between > 0)
        object_note(report, "its frames are %.3g mm apart, other than the slices: each slice has the nearest frame",
                    region->between);
}

const struct segment_method segment_object = {
    /* of a changed region; others keep the algorithm of their object */
    .algorithm = "Noctule steps on a region",
    .family = {"123104", "DCM", "Morphological Operations"},
    .op = KERNELS_OPS,
    .lasts = true,
    .size = sizeof(struct object_segments),
    .prepare = object_prepare,
    .release = object_release,
    .bytes = object_bytes,
    .run = object_run,
    .describe = object_describe,
    .report = object_report,
};
