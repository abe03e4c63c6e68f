/* results_objects.c - the DICOM objects of a job and its state codes, as rows (row.h). */
#include "service/pipeline/results/row.h"

#include "base/durable.h"
#include "base/error.h"
#include "dicom/objects/pmap/capture.h"
#include "dicom/objects/pmap/pmap.h"
#include "dicom/objects/sr/sr.h"
#include "dicom/read/annotation/rtstruct.h"
#include "kernels/level_set/level_set.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/results/measurements.h"
#include "service/pipeline/volume_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------- segmentations -- */

/* Returns the object that this file replaces; NULL without one. */
static const struct derived_earlier *
results_earlier(const struct results *results, const char *file)
{
    for (size_t i = 0; i < results->request->spec->earlier_count; i++)
        if (strcmp(results->earlier[i].file, file) == 0)
            return &results->earlier[i].objects;
    return NULL;
}

struct seg_request
results_seg_request(const struct results *results, const char *file)
{
    const struct results_request *request = results->request;
    const struct conf_pipeline *pipeline = request->pipeline;
    struct seg_request seg = {
        .source =
            {
                .instances = request->headers->instances,
                .instance_count = (int32_t)request->headers->count,
                .stack = request->stack,
                .pipeline = pipeline->name,
                .pipeline_settings = results->identity,
                .software_version = NOCTULE_VERSION,
                .device_serial_number = request->spec->device_serial_number,
                .objects_made = results->objects_made,
                .earlier = results_earlier(results, file),
                .remark = results->remark,
                .creator = results->creator,
                .equipment = results->equipment,
                .equipment_count = results->equipment_count,
                .compression = (enum derived_compression)pipeline->compression,
            },
        .segments = results->segments,
        .segment_count = (int32_t)results->segment_count,
        .omit_empty_frames = pipeline->omit_empty_frames,
        .series_description = pipeline->series_description ? pipeline->series_description : "",
        .series_number = pipeline->series_number,
    };
    memcpy(seg.source.made_of, results->made_of, sizeof seg.source.made_of);
    return seg;
}

/* Describes a segmentation object, which may be on the upright grid. */
static struct seg_request
seg_request_of_object(const struct results *results, const char *file)
{
    struct seg_request seg = results_seg_request(results, file);
    if (results_are_upright(results)) {
        seg.source.images = seg.source.stack;
        seg.source.stack = results->request->grid->stack;
        seg.segments = results->grid_segments;
    }
    return seg;
}

int
results_identify(struct results *results)
{
    const struct seg_request seg = results_seg_request(results, "");
    return derived_made_of(&seg.source, results->made_of);
}

static int
seg_file(const struct results *results, const struct seg_request *request, struct result_file *file)
{
    struct error *error = &results->report->error;
    return file->path ? seg_verify(request, file->path, results->request->threads, error)
                      : seg_write(request, file->fd, &file->summary, error);
}

static size_t
seg_wanted(const struct results *results)
{
    return (results->request->pipeline->results & CONF_RESULT_SEG) != 0;
}

static int
seg_make(const struct results *results, struct result_file *file)
{
    const struct seg_request request = seg_request_of_object(results, file->name);
    return seg_file(results, &request, file);
}

static size_t
fractional_wanted(const struct results *results)
{
    return results->fractional_count > 0;
}

/* Writes the maps of fuzzy connectedness as an object of their own. */
static int
fractional_make(const struct results *results, struct result_file *file)
{
    struct seg_request request = seg_request_of_object(results, file->name);
    request.segments = results_are_upright(results) ? results->fractional_grid_segments : results->fractional_segments;
    request.segment_count = results->fractional_count;
    request.type = SEG_FRACTIONAL;
    request.series_number = results_series_number(&request, RESULTS_SERIES_FRACTIONAL);
    return seg_file(results, &request, file);
}

static size_t
labelmap_wanted(const struct results *results)
{
    return (results->request->pipeline->results & CONF_RESULT_LABELMAP) != 0;
}

static int
labelmap_make(const struct results *results, struct result_file *file)
{
    struct seg_request request = seg_request_of_object(results, file->name);
    request.type = SEG_LABELMAP;
    request.series_number = results_series_number(&request, RESULTS_SERIES_LABELMAP);
    request.overlap_last = results->request->pipeline->overlap == CONF_OVERLAP_LAST;
    return seg_file(results, &request, file);
}

/* ---------------------------------------------------------------------------------- report -- */

int32_t
results_series_number(const struct seg_request *seg, int32_t offset)
{
    return seg->series_number <= INT32_MAX - offset ? seg->series_number + offset : INT32_MAX;
}

static size_t
sr_wanted(const struct results *results)
{
    const struct conf_pipeline *pipeline = results->request->pipeline;
    return pipeline->sr_class == CONF_SR_ENHANCED && (pipeline->results & CONF_RESULT_SR) &&
           results->report->features.count > 0;
}

/* The root of the results (IHE AI Results) refers to all other objects, and is written after them. */
static size_t
root_wanted(const struct results *results)
{
    const struct conf_pipeline *pipeline = results->request->pipeline;
    return pipeline->sr_class == CONF_SR_COMPREHENSIVE_3D && (pipeline->results & CONF_RESULT_SR) &&
           (results->report->features.count > 0 || seg_wanted(results));
}

/*
 * Returns the objects that were written before the report. When it is read back, the results have it, too. The caller must
 * free the list. Returns NULL if memory is short.
 */
static struct sr_result *
root_list(const struct results *results, struct sr_request *report)
{
    const struct pipeline_report *written = results->report;
    struct sr_result *list = calloc((size_t)written->result_count + 1, sizeof *list);
    for (int32_t i = 0; list && i < written->result_count; i++) {
        const struct pipeline_result *result = &written->results[i];
        if (result->sop_class_uid[0] && strcmp(result->sop_class_uid, SR_3D_SOP_CLASS) != 0)
            list[report->result_count++] =
                (struct sr_result){result->sop_class_uid, result->sop_instance_uid, result->series_uid};
    }
    report->results = list;
    return list;
}

static int
sr_make(const struct results *results, struct result_file *file)
{
    const struct results_request *request = results->request;
    struct error *error = &results->report->error;
    const char *unit = value_unit_of(request->headers->instances, request->stack);
    const bool has_seg = seg_wanted(results) > 0;
    const struct seg_request seg = results_seg_request(results, has_seg ? "seg.dcm" : "");
    struct derived_identity identity;
    struct measurements measurements;
    char parameters[sizeof request->grid->text + sizeof results->report->suv.text + sizeof results->lengths + 2];
    const bool root = request->pipeline->sr_class == CONF_SR_COMPREHENSIVE_3D;
    struct sr_result *list = NULL;
    size_t groups = 0;
    int rc = 0;
    seg_identify(&seg, &identity);
    if (measurements_make(&results->report->features, root ? results->segment_count : 0, unit, &measurements) ||
        !identity.sop_instance_uid[0])
        rc = error_set_system(error, -ENOMEM, "make the report");
    /* A report without a SEG cannot refer to a segment whose region is in no object. */
    for (size_t i = 0; i < measurements.group_count; i++) {
        const struct sr_group *group = &measurements.groups[i];
        if (has_seg || group->segment == SR_WHOLE_VOLUME || seg.segments[group->segment].origin)
            measurements.groups[groups++] = *group;
    }
    /* A 2-D image is neither straightened nor in SUV. */
    snprintf(parameters, sizeof parameters, "%s%s%s%s", results->lengths, request->grid->text,
             request->grid->text[0] && results->report->suv.given ? "; " : "", results->report->suv.text);
    struct sr_request report = {
        .seg = &seg,
        .seg_identity = has_seg ? &identity : NULL,
        .earlier = results_earlier(results, file->name),
        .groups = measurements.groups,
        .group_count = groups,
        .algorithm_parameters = parameters,
        .series_description = "",
        .series_number = results_series_number(&seg, RESULTS_SERIES_SR),
        .comprehensive_3d = root,
    };
    if (rc == 0 && root && !(list = root_list(results, &report)))
        rc = error_set_system(error, -ENOMEM, "list the results");
    if (rc == 0)
        rc = file->path ? sr_verify(&report, file->path, error) : sr_write(&report, file->fd, &file->summary, error);
    free(list);
    measurements_free(&measurements);
    return rc;
}

/* ------------------------------------------------------------------------------------ maps -- */

/* A map of a 2-D image is a capture, since a Parametric Map needs a place in the patient. */
static size_t
map_wanted(const struct results *results)
{
    return results->request->stack->flat ? 0 : results->request->map_count;
}

static size_t
map_capture_wanted(const struct results *results)
{
    return results->request->stack->flat ? results->request->map_count : 0;
}

/* As NIfTI, maps of 2-D images only. */
static size_t
map_nifti_wanted(const struct results *results)
{
    const bool wanted = results->request->stack->flat && (results->request->pipeline->results & CONF_RESULT_NIFTI);
    return wanted ? results->request->map_count : 0;
}

static void
map_part(const struct results *results, size_t number, char *text, size_t size)
{
    snprintf(text, size, "%s", results->request->maps[number].title.word);
}

static int
map_make(const struct results *results, struct result_file *file)
{
    const struct feature_map *map = &results->request->maps[file->number];
    const struct feature_title *title = &map->title;
    const struct seg_request seg = results_seg_request(results, file->name);
    const bool flat = results->request->stack->flat;
    struct error *error = &results->report->error;
    char explanation[64];
    snprintf(explanation, sizeof explanation, "%s code%s%s", title->quantity.value, title->settings[0] ? ", " : "",
             title->settings);
    const struct pmap_request request = {
        .source = &seg.source,
        .kind = title->word,
        .quantity = title->quantity,
        .explanation = explanation,
        .codes = map->codes,
        .burned_in = results->burned_in,
        .recognizable = results->recognizable,
        .series_description = "",
        .series_number = results_series_number(&seg, RESULTS_SERIES_MAPS + title->place),
    };
    if (file->path)
        return (flat ? capture_verify : pmap_verify)(&request, file->path, error);
    return (flat ? capture_write : pmap_write)(&request, file->fd, &file->summary, error);
}

struct map_slices {
    const struct geometry_stack *stack;
    const uint8_t *codes;
};

/* Fills the plane with codes, and with PMAP_PADDING on its edges. */
static void
map_fill_codes(void *context, int64_t plane, void *to)
{
    const struct map_slices *map = context;
    const int64_t columns = map->stack->columns, rows = map->stack->rows;
    const uint8_t *codes = map->codes + plane * (columns - 2) * (rows - 2);
    uint16_t *values = to;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++)
            *values++ = y > 0 && y < rows - 1 && x > 0 && x < columns - 1 ? *codes++ : PMAP_PADDING;
}

static int
map_nifti_make(const struct results *results, struct result_file *file)
{
    const struct volume_grid box = volume_source_box(results->request->grid);
    struct map_slices map = {results->request->grid->stack, results->request->maps[file->number].codes};
    return result_nifti_make(results, &(struct nifti_file){&box, VOLUME_UINT16, map_fill_codes, &map}, file);
}

/* ----------------------------------------------------------------------------- state codes -- */

/*
 * Finds the level set with this number among those that are not hidden, as numbered in the lane.
 * For larger numbers returns the number of level sets.
 */
static size_t
codes_label(const struct results *results, size_t number)
{
    const struct segmentation *found = results->request->segmentation;
    size_t k = 0, shown = 0;
    for (; k < found->of[CONF_LEVEL_SET].count; k++)
        if (!segment_at(found, CONF_LEVEL_SET, k)->hidden && shown++ == number)
            break;
    return k;
}

static size_t
codes_wanted(const struct results *results)
{
    const struct results_request *request = results->request;
    size_t count = 0;
    if (request->pipeline->results & CONF_RESULT_CODES)
        while (codes_label(results, count) < request->segmentation->of[CONF_LEVEL_SET].count)
            count++;
    return count;
}

/* The number in the file name is that of the segment. */
static void
codes_part(const struct results *results, size_t number, char *text, size_t size)
{
    const struct segmentation *found = results->request->segmentation;
    const size_t segment = found->of[CONF_LEVEL_SET].segments[codes_label(results, number)];
    snprintf(text, size, "%" PRId32, conf_segment_number(found->pipeline, segment));
}

/* Writes the codes as a volume in teem's format (NRRD0004). */
static int
codes_write(int fd, const struct geometry_stack *stack, const int8_t *voxels)
{
    char header[1024];
    const double *axes = stack->axes, *spacing = stack->spacing, *origin = stack->origin;
    int length =
        snprintf(header, sizeof header,
                 "NRRD0004\n"
                 "# level set state: 2 border, 1 inside, -1 outside at the border, -2 outside\n"
                 "type: int8\n"
                 "dimension: 3\n"
                 "space: left-posterior-superior\n"
                 "sizes: %d %d %d\n"
                 "space directions: (%.17g,%.17g,%.17g) (%.17g,%.17g,%.17g) (%.17g,%.17g,%.17g)\n"
                 "kinds: domain domain domain\n"
                 "encoding: raw\n"
                 "space origin: (%.17g,%.17g,%.17g)\n"
                 "\n",
                 stack->columns, stack->rows, stack->plane_count, axes[0] * spacing[0], axes[1] * spacing[0],
                 axes[2] * spacing[0], axes[3] * spacing[1], axes[4] * spacing[1], axes[5] * spacing[1],
                 axes[6] * spacing[2], axes[7] * spacing[2], axes[8] * spacing[2], origin[0], origin[1], origin[2]);
    int error = durable_write_all(fd, header, (size_t)length);
    if (error)
        return error;
    return durable_write_all(fd, voxels, (size_t)stack->columns * (size_t)stack->rows * (size_t)stack->plane_count);
}

static int
codes_make(const struct results *results, struct result_file *file)
{
    const struct results_request *request = results->request;
    struct pipeline_report *report = results->report;
    int8_t *codes = malloc((size_t)report->voxels);
    if (!codes)
        return results_file_error(report, -ENOMEM, "hold", "the state codes");
    int rc = kernels_level_set_codes(request->lane, codes_label(results, file->number), codes, &report->error);
    if (rc == 0) {
        rc = codes_write(file->fd, request->grid->stack, codes);
        if (rc)
            results_file_error(report, rc, "write", file->name);
    }
    free(codes);
    return rc;
}

const struct result_row result_objects[] = {
    {"seg", "seg.dcm", SEG_SOP_CLASS_UID, seg_wanted, .make = seg_make},
    {"seg-fractional", "seg-fractional.dcm", SEG_SOP_CLASS_UID, fractional_wanted, .make = fractional_make},
    {"labelmap", "labelmap.dcm", SEG_LABELMAP_SOP_CLASS_UID, labelmap_wanted, .make = labelmap_make},
    {"rtstruct", "rtstruct.dcm", RTSTRUCT_CLASS_UID, result_rtstruct_wanted, .make = result_rtstruct_make},
    {"sr", "sr.dcm", SR_SOP_CLASS, sr_wanted, .make = sr_make},
    {"pmap", "pmap-*.dcm", PMAP_SOP_CLASS, map_wanted, map_part, .make = map_make},
    {"pmap", "capture-*.dcm", CAPTURE_SOP_CLASS, map_capture_wanted, map_part, .make = map_make},
    {"pmap", "response-*.dcm", PMAP_SOP_CLASS, response_pmap_wanted, response_pmap_part, .make = response_pmap_make},
    {"pmap", "map-*.dcm", PMAP_SOP_CLASS, map_of_features_pmap_wanted, map_of_features_pmap_part,
     .make = map_of_features_pmap_make},
    {"picture", "picture.dcm", PICTURE_SOP_CLASS, picture_wanted, .make = picture_make},
    {"picture", "picture-*.dcm", PICTURE_SINGLE_SOP_CLASS, picture_single_wanted, picture_part, .make = picture_make},
    {"sr", "sr.dcm", SR_3D_SOP_CLASS, root_wanted, .make = sr_make},
    {"nifti", "volume.nii.gz", NULL, nifti_wanted, .make = nifti_make_volume, .reads_back = true},
    {"nifti", "labels.nii.gz", NULL, nifti_wanted, .make = nifti_make_labels, .reads_back = true},
    {"nifti", "capture-*.nii.gz", NULL, map_nifti_wanted, map_part, .make = map_nifti_make, .reads_back = true},
    {"nifti", "response-*.nii.gz", NULL, response_nifti_wanted, response_nifti_part, .make = response_nifti_make,
     .reads_back = true},
    {"nifti", "map-*.nii.gz", NULL, map_of_features_nifti_wanted, map_of_features_nifti_part,
     .make = map_of_features_nifti_make, .reads_back = true},
    {"nifti", "labels.json", NULL, nifti_wanted, .make = nifti_make_list},
    {"codes", "codes-*.nrrd", NULL, codes_wanted, codes_part, .make = codes_make},
    {.file = NULL},
};
