/* object.c - see object.h. */
#include "service/pipeline/segment/object.h"

#include "base/error.h"
#include "base/text.h"
#include "dicom/read/rtstruct.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One element per segment, in the pipeline's order. */
struct object_segments {
    struct object_region *regions;
    size_t count;
};

/* The search for one segment's region among the job's objects. */
struct object_search {
    const struct segmentation *segmentation;
    const struct conf_segment *segment;
    struct rtstruct *set; /* that has it; NULL: none so far */
    const char *path;     /* its file */
    int32_t roi;
    struct error refusal; /* why the last one of the kind is not it; CODE_NONE: there was none */
};

/* ------------------------------------------------------------------------------ fitting ---- */

static const struct dicom_instance *
object_image(const struct segmentation *segmentation)
{
    return segmentation->instances[segmentation->stack->planes[0].instance];
}

static bool
object_names_series(const struct rtstruct *set, const char *series_uid)
{
    for (int32_t i = 0; i < set->series_count; i++)
        if (strcmp(set->series[i].series_uid, series_uid) == 0)
            return true;
    return false;
}

/* The region's own, or the first that the set tells; roi -1: no region. */
static const char *
object_frame(const struct rtstruct *set, int32_t roi)
{
    const char *frame = roi >= 0 ? set->rois[roi].frame_of_reference_uid : "";
    for (int32_t i = 0; i < set->series_count && !frame[0]; i++)
        frame = set->series[i].frame_of_reference_uid;
    return frame;
}

/* That the set is of the images: their series is named, or the frame of reference is theirs. */
static int
object_check_series(const struct object_search *search, const struct rtstruct *set, int32_t roi,
                    const char *path, struct error *error)
{
    const struct dicom_instance *image = object_image(search->segmentation);
    const char *frame = object_frame(set, roi), *own = image->frame_of_reference_uid;
    const bool named = object_names_series(set, image->series_uid);
    if (named && frame[0] && own[0] && strcmp(frame, own) != 0)
        return error_set_files(error, -EINVAL, CODE_OBJECT_OTHER_FRAME, path, NULL,
                               "%s names this series, but lies in another frame of reference (%s) "
                               "than its images (%s).",
                               text_base_name(path), frame, own);
    if (named || (own[0] && strcmp(frame, own) == 0))
        return 0;
    return error_set_files(error, -EINVAL, CODE_OBJECT_OTHER_SERIES, path, NULL,
                           "%s was not drawn on this series (%s), nor in its images' frame of "
                           "reference.",
                           text_base_name(path), image->series_uid);
}

/* ------------------------------------------------------------------------------ finding ---- */

static bool
object_is_wanted(const struct conf_object *wanted, const struct rtstruct_roi *roi)
{
    return wanted->roi ? fnmatch(wanted->roi, roi->name, 0) == 0 : roi->number == wanted->number;
}

/* The first region from `roi` on that is wanted; -1: there is none. */
static int32_t
object_next_roi(const struct conf_object *wanted, const struct rtstruct *set, int32_t roi)
{
    for (; roi < set->roi_count; roi++)
        if (object_is_wanted(wanted, &set->rois[roi]))
            return roi;
    return -1;
}

static int
object_refuse_absent(const struct object_search *search, const struct rtstruct *set,
                     const char *path, struct error *error)
{
    const struct conf_object *wanted = &search->segment->object;
    char which[96], names[200] = "";
    if (wanted->roi)
        snprintf(which, sizeof which, "named \"%s\"", wanted->roi);
    else
        snprintf(which, sizeof which, "with number %d", wanted->number);
    for (int32_t i = 0; i < set->roi_count; i++)
        segment_append(names, sizeof names, "%s%" PRId32 " \"%s\"", i > 0 ? ", " : "",
                       set->rois[i].number, set->rois[i].name);
    text_utf8_mend_end(names);
    return error_set_files(error, -EINVAL, CODE_ROI_NOT_FOUND, path, NULL,
                           "%s has no region %s for segment \"%s\"; it has %s.",
                           text_base_name(path), which, search->segment->label,
                           names[0] ? names : "none at all");
}

static int
object_refuse_second(const struct object_search *search, const struct rtstruct *set, int32_t roi,
                     int32_t second, const char *path, struct error *error)
{
    const struct rtstruct_roi *a = &set->rois[roi], *b = &set->rois[second];
    return error_set_files(error, -EINVAL, CODE_ROI_AMBIGUOUS, path, NULL,
                           "%s has several regions that fit segment \"%s\": \"%s\" (%" PRId32
                           ") and \"%s\" (%" PRId32 "); name one as it is, or by its number.",
                           text_base_name(path), search->segment->label, a->name, a->number,
                           b->name, b->number);
}

/* 0 where the set has the region; else search->refusal says why not, or *error why no other one
 * need be asked. */
static int
object_judge(struct object_search *search, const struct rtstruct *set, const char *path,
             int32_t *roi, struct error *error)
{
    const struct conf_object *wanted = &search->segment->object;
    *roi = object_next_roi(wanted, set, 0);
    int rc = object_check_series(search, set, *roi, path, &search->refusal);
    if (rc)
        return rc;
    if (*roi < 0)
        return object_refuse_absent(search, set, path, &search->refusal);
    const int32_t second = object_next_roi(wanted, set, *roi + 1);
    return second < 0 ? 0 : object_refuse_second(search, set, *roi, second, path, error);
}

/* The set is the search's where it has the region, and closed where it has not. */
static int
object_consider(struct object_search *search, struct rtstruct *set, const char *path,
                struct error *error)
{
    struct error found = {.code = CODE_NONE};
    int32_t roi;
    const bool again =
        search->set && strcmp(search->set->sop_instance_uid, set->sop_instance_uid) == 0;
    int rc = again ? -EEXIST : object_judge(search, set, path, &roi, &found);
    if (rc == 0 && search->set) {
        error_set_files(&found, -EINVAL, CODE_OBJECT_AMBIGUOUS, search->path, path,
                        "%s and %s both have the region of segment \"%s\"; name what only one of "
                        "them has, or leave one out.",
                        text_base_name(search->path), text_base_name(path), search->segment->label);
    } else if (rc == 0) {
        search->set = set;
        search->path = path;
        search->roi = roi;
        return 0;
    }
    rtstruct_close(set);
    if (found.code == CODE_NONE)
        return 0;
    if (error)
        *error = found;
    return -EINVAL;
}

static int
object_refuse_all(const struct object_search *search, struct error *error)
{
    if (search->refusal.code != CODE_NONE) {
        if (error)
            *error = search->refusal;
        return -EINVAL;
    }
    return error_set(error, -EINVAL, CODE_OBJECT_MISSING,
                     "segment \"%s\" is a region of an RT Structure Set, and the job has none: "
                     "noctule run takes one with --object FILE.",
                     search->segment->label);
}

/* What is of another kind is of no concern; what cannot be read could be what is wanted. */
static int
object_search(struct object_search *search, struct error *error)
{
    const struct segmentation *segmentation = search->segmentation;
    int rc = 0;
    for (size_t i = 0; i < segmentation->object_count && rc == 0; i++) {
        struct error unread = {.code = CODE_NONE};
        struct rtstruct *set;
        rc = rtstruct_open(segmentation->objects[i], &set, &unread);
        if (rc == 0)
            rc = object_consider(search, set, segmentation->objects[i], error);
        else if (unread.code == CODE_SOP_CLASS_UNSUPPORTED)
            rc = 0;
        else if (error)
            *error = unread;
    }
    if (rc == 0 && !search->set)
        rc = object_refuse_all(search, error);
    return rc;
}

/* ------------------------------------------------------------------------------ drawing ---- */

/* What was wrong with contours, which do not know where they come from. */
static int
object_refuse_contours(const struct object_search *search, int rc, const struct error *why,
                       struct error *error)
{
    return error_set_files(error, rc, why->code, search->path, NULL, "%s, region \"%s\": %.300s",
                           text_base_name(search->path), search->set->rois[search->roi].name,
                           why->message);
}

static int
object_draw(const struct object_search *search, const struct image_planes *planes,
            const struct rtstruct_contours *contours, struct object_region *region,
            struct error *error)
{
    const int64_t words = (planes->extent.columns + 63) / 64;
    struct error why = {.code = CODE_NONE};
    region->contours = contours->count;
    region->left_out = contours->left_out;
    region->bits =
        calloc((size_t)(words * planes->extent.rows * planes->extent.slices), sizeof *region->bits);
    if (!region->bits)
        return error_set_system(error, -ENOMEM, "hold the mask of a region");
    int rc = kernels_mask_contours(planes, contours->contours, contours->count, region->bits,
                                   &region->drawn, &why);
    if (rc)
        return object_refuse_contours(search, rc, &why, error);
    region->mask = (struct image_mask){region->bits, words, region->drawn.voxels};
    if (region->mask.voxels > 0)
        return 0;
    return error_set_files(error, -EINVAL, CODE_ROI_EMPTY, search->path, NULL,
                           "%s, region \"%s\": no voxel of the series lies within its %" PRId64
                           " closed contours%s.",
                           text_base_name(search->path), region->name, region->contours,
                           region->left_out > 0 ? "; points and open lines enclose none" : "");
}

/* Origins as the files have them: where they are regular they need not be evenly spaced. */
static double *
object_make_planes(const struct segmentation *segmentation, struct image_planes *planes)
{
    const struct geometry_stack *stack = segmentation->stack;
    double *origins = calloc((size_t)stack->plane_count, 3 * sizeof *origins);
    const struct dicom_frame *first = NULL;
    for (int32_t z = stack->plane_count - 1; z >= 0 && origins; z--) {
        const struct geometry_plane *plane = &stack->planes[z];
        first = &segmentation->instances[plane->instance]->frames[plane->frame];
        memcpy(origins + (size_t)z * 3, first->position, 3 * sizeof *origins);
    }
    if (!first)
        return origins;
    *planes = (struct image_planes){
        .extent = {stack->columns, stack->rows, stack->plane_count},
        .spacing = {first->pixel_spacing[1], first->pixel_spacing[0]},
        .thickness = stack->spacing[2],
        .origins = origins,
    };
    memcpy(planes->axes, first->orientation, sizeof planes->axes);
    return origins;
}

static int
object_draw_roi(const struct object_search *search, struct object_region *region,
                struct error *error)
{
    struct rtstruct_contours contours;
    struct image_planes planes;
    int rc = rtstruct_contours_read(search->set, search->roi, &contours, error);
    if (rc)
        return rc;
    double *origins = object_make_planes(search->segmentation, &planes);
    rc = origins ? object_draw(search, &planes, &contours, region, error)
                 : error_set_system(error, -ENOMEM, "hold the planes of the series");
    free(origins);
    rtstruct_contours_free(&contours);
    return rc;
}

static void
object_identify(const struct object_search *search, struct object_region *region)
{
    const struct rtstruct *set = search->set;
    memcpy(region->sop_instance_uid, set->sop_instance_uid, sizeof region->sop_instance_uid);
    memcpy(region->study_uid, set->study_uid, sizeof region->study_uid);
    memcpy(region->series_uid, set->series_uid, sizeof region->series_uid);
    memcpy(region->name, set->rois[search->roi].name, sizeof region->name);
    region->number = set->rois[search->roi].number;
    region->origin = (struct seg_origin){.class_uid = RTSTRUCT_CLASS_UID,
                                         .instance_uid = region->sop_instance_uid,
                                         .series_uid = region->series_uid,
                                         .study_uid = region->study_uid,
                                         .number = region->number,
                                         .tracking_id = "",
                                         .tracking_uid = ""};
}

/* ----------------------------------------------------------------------------- the method -- */

static int
object_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct object_segments *own = prepared;
    int rc = 0;
    own->count = segmentation->of[CONF_OBJECT].count;
    own->regions = calloc(own->count, sizeof *own->regions);
    if (!own->regions)
        return error_set_system(error, -ENOMEM, "hold the regions");
    for (size_t k = 0; k < own->count && rc == 0; k++) {
        struct object_search search = {.segmentation = segmentation,
                                       .segment = segment_at(segmentation, CONF_OBJECT, k)};
        rc = object_search(&search, error);
        if (rc == 0) {
            object_identify(&search, &own->regions[k]);
            rc = object_draw_roi(&search, &own->regions[k], error);
        }
        rtstruct_close(search.set);
    }
    return rc;
}

static void
object_release(void *prepared)
{
    struct object_segments *own = prepared;
    for (size_t k = 0; k < own->count && own->regions; k++)
        free(own->regions[k].bits);
    free(own->regions);
}

static int
object_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels,
           struct error *error)
{
    const struct object_segments *own = segmentation->of[CONF_OBJECT].prepared;
    (void)lane;
    (void)voxels;
    (void)error;
    for (size_t k = 0; k < own->count; k++)
        segmentation->found[segmentation->of[CONF_OBJECT].segments[k]] = own->regions[k].mask;
    return 0;
}

const struct object_region *
object_region_of(const struct segmentation *segmentation, size_t segment)
{
    const struct object_segments *own = segmentation->of[CONF_OBJECT].prepared;
    return segmentation->pipeline->segments[segment].method == CONF_OBJECT
               ? &own->regions[segment_place(segmentation, segment)]
               : NULL;
}

static void
object_describe(const struct segmentation *segmentation, size_t segment,
                char text[SEGMENT_DESCRIPTION])
{
    const struct object_region *region = object_region_of(segmentation, segment);
    snprintf(text, SEGMENT_DESCRIPTION,
             "region %" PRId32 " \"%s\" of RT Structure Set %s, drawn on %" PRId64 " slices",
             region->number, region->name, region->sop_instance_uid, region->drawn.planes);
    if (region->drawn.missing > 0)
        segment_append(text, SEGMENT_DESCRIPTION,
                       "; %" PRId64 " slices between them have no contour and are left empty",
                       region->drawn.missing);
}

static void
object_report(const struct segmentation *segmentation, size_t segment,
              struct pipeline_segment *report)
{
    const struct object_region *region = object_region_of(segmentation, segment);
    report->numbers[report->number_count++] =
        (struct segment_number){"contours", "contours", (double)region->contours, false};
    report->numbers[report->number_count++] = (struct segment_number){
        "slices_drawn", "slices drawn", (double)region->drawn.planes, false};
    report->numbers[report->number_count++] = (struct segment_number){
        "slices_missing", "slices missing", (double)region->drawn.missing, false};
    report->numbers[report->number_count++] =
        (struct segment_number){"farthest_mm", "farthest mm", region->drawn.farthest, false};
    if (region->drawn.missing > 0)
        snprintf(report->told, sizeof report->told,
                 "%.64s: %" PRId64 " slices between drawn ones have no contour, and stay empty",
                 report->label, region->drawn.missing);
}

const struct segment_method segment_object = {
    .algorithm = "Noctule mask of contours",
    .family = {"123109", "DCM", "Manual Processing"},
    .op = KERNELS_OPS,
    .size = sizeof(struct object_segments),
    .prepare = object_prepare,
    .release = object_release,
    .run = object_run,
    .describe = object_describe,
    .report = object_report,
};
