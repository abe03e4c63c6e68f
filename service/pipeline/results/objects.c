/* objects.c - the DICOM objects of a job and its state codes, as rows (row.h). */
#include "service/pipeline/results/row.h"

#include "base/error.h"
#include "dicom/objects/pmap/pmap.h"
#include "dicom/objects/sr/sr.h"
#include "kernels/level_set/level_set.h"
#include "service/common/clock.h"
#include "service/pipeline/measure/value_unit.h"
#include "service/pipeline/results/measurements.h"
#include "service/pipeline/results/nrrd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEG_SOP_CLASS "1.2.840.10008.5.1.4.1.1.66.4"

/* ---------------------------------------------------------------------------- segmentations -- */

static struct seg_request
seg_request_of(const struct results *results)
{
    const struct results_request *request = results->request;
    const struct conf_pipeline *pipeline = request->pipeline;
    return (struct seg_request){
        .source =
            {
                .instances = request->headers->instances,
                .instance_count = (int32_t)request->headers->count,
                .stack = request->stack,
                .pipeline = pipeline->name,
                .pipeline_settings = results->identity,
                .software_version = NOCTULE_VERSION,
                .device_serial_number = request->spec->device_serial_number,
                .content_time_ms = clock_unix_ms(),
            },
        .segments = results->segments,
        .segment_count = (int32_t)pipeline->segment_count,
        .omit_empty_frames = pipeline->omit_empty_frames,
        .series_description = pipeline->series_description ? pipeline->series_description : "",
        .series_number = pipeline->series_number,
    };
}

/* The scenes of fuzzy connectedness, in an object of their own. */
static struct seg_request
fractional_request_of(const struct results *results)
{
    struct seg_request request = seg_request_of(results);
    request.segments = results->scene_segments;
    request.segment_count = results->scene_count;
    request.fractional = true;
    return request;
}

static size_t
seg_wanted(const struct results *results)
{
    return (results->request->pipeline->results & CONF_RESULT_SEG) != 0;
}

static int
seg_file_write(const struct results *results, struct result_file *file)
{
    const struct seg_request request = seg_request_of(results);
    return seg_write(&request, file->fd, &file->summary, &results->report->error);
}

static int
seg_file_verify(const struct results *results, const struct result_file *file)
{
    const struct seg_request request = seg_request_of(results);
    return seg_verify(&request, file->path, results->request->threads, &results->report->error);
}

static size_t
fractional_wanted(const struct results *results)
{
    return results->scene_count > 0;
}

static int
fractional_write(const struct results *results, struct result_file *file)
{
    const struct seg_request request = fractional_request_of(results);
    return seg_write(&request, file->fd, &file->summary, &results->report->error);
}

static int
fractional_verify(const struct results *results, const struct result_file *file)
{
    const struct seg_request request = fractional_request_of(results);
    return seg_verify(&request, file->path, results->request->threads, &results->report->error);
}

/* ---------------------------------------------------------------------------------- report -- */

/* The results' series stand behind each other, from that of the SEG. */
static int32_t
series_number(const struct seg_request *seg, int32_t ordinal)
{
    return seg->series_number <= INT32_MAX - ordinal ? seg->series_number + ordinal : INT32_MAX;
}

struct sr_parts {
    struct seg_request seg;
    struct derived_identity identity;
    struct measurements measurements;
    char unit[FEATURE_TERM];
    struct sr_request request; /* refers to the others */
};

/* Free its measurements. */
static int
objects_sr_prepare(const struct results *results, struct sr_parts *report)
{
    const struct results_request *request = results->request;
    texture_value_unit(request->headers->instances, request->stack, 1, report->unit);
    report->seg = seg_request_of(results);
    seg_identify(&report->seg, &report->identity);
    if (measurements_make(&results->report->features, report->unit, &report->measurements) ||
        !report->identity.sop_instance_uid[0])
        return error_set_system(&results->report->error, -ENOMEM, "make the report");
    report->request = (struct sr_request){
        .seg = &report->seg,
        .seg_identity = seg_wanted(results) ? &report->identity : NULL,
        .groups = report->measurements.groups,
        .group_count = report->measurements.group_count,
        .series_description = "",
        .series_number = series_number(&report->seg, 1),
    };
    return 0;
}

static size_t
sr_wanted(const struct results *results)
{
    return (results->request->pipeline->results & CONF_RESULT_SR) &&
           results->report->features.count > 0;
}

static int
sr_file_write(const struct results *results, struct result_file *file)
{
    struct sr_parts report;
    int rc = objects_sr_prepare(results, &report);
    if (rc == 0)
        rc = sr_write(&report.request, file->fd, &file->summary, &results->report->error);
    measurements_free(&report.measurements);
    return rc;
}

static int
sr_file_verify(const struct results *results, const struct result_file *file)
{
    struct sr_parts report;
    int rc = objects_sr_prepare(results, &report);
    if (rc == 0)
        rc = sr_verify(&report.request, file->path, &results->report->error);
    measurements_free(&report.measurements);
    return rc;
}

/* ------------------------------------------------------------------------------------ maps -- */

struct map_parts {
    struct seg_request seg;
    char explanation[64];
    struct pmap_request request; /* refers to the others */
};

static size_t
map_wanted(const struct results *results)
{
    return results->request->map_count;
}

static void
map_part(const struct results *results, size_t number, char *text, size_t size)
{
    snprintf(text, size, "%s", results->request->maps[number].title.word);
}

static void
map_prepare(const struct results *results, size_t number, struct map_parts *parts)
{
    const struct feature_map *map = &results->request->maps[number];
    const struct feature_title *title = &map->title;
    snprintf(parts->explanation, sizeof parts->explanation, "%s code%s%s", title->quantity.value,
             title->settings[0] ? ", " : "", title->settings);
    parts->seg = seg_request_of(results);
    parts->request = (struct pmap_request){
        .source = &parts->seg.source,
        .kind = title->word,
        .quantity = title->quantity,
        .explanation = parts->explanation,
        .codes = map->codes,
        .series_description = "",
        .series_number = series_number(&parts->seg, 2 + title->place),
    };
}

static int
map_write(const struct results *results, struct result_file *file)
{
    struct map_parts map;
    map_prepare(results, file->number, &map);
    return pmap_write(&map.request, file->fd, &file->summary, &results->report->error);
}

static int
map_verify(const struct results *results, const struct result_file *file)
{
    struct map_parts map;
    map_prepare(results, file->number, &map);
    return pmap_verify(&map.request, file->path, &results->report->error);
}

/* ----------------------------------------------------------------------------- state codes -- */

static size_t
codes_wanted(const struct results *results)
{
    const struct results_request *request = results->request;
    return request->pipeline->results & CONF_RESULT_CODES
               ? request->segmentation->of[CONF_LEVEL_SET].count
               : 0;
}

/* The file's number is that of the segment. */
static void
codes_part(const struct results *results, size_t number, char *text, size_t size)
{
    snprintf(text, size, "%zu",
             results->request->segmentation->of[CONF_LEVEL_SET].segments[number] + 1);
}

static int
codes_write(const struct results *results, struct result_file *file)
{
    const struct results_request *request = results->request;
    struct pipeline_report *report = results->report;
    int8_t *codes = malloc((size_t)report->voxels);
    if (!codes)
        return results_file_error(report, -ENOMEM, "hold", "the state codes");
    int rc = kernels_level_set_codes(request->lane, file->number, codes, &report->error);
    if (rc == 0) {
        rc = nrrd_write_int8(file->fd, request->stack, codes);
        if (rc)
            results_file_error(report, rc, "write", file->name);
    }
    free(codes);
    return rc;
}

const struct result_row result_objects[] = {
    {"seg", "seg.dcm", SEG_SOP_CLASS, seg_wanted, .write = seg_file_write,
     .verify = seg_file_verify},
    {"seg-fractional", "seg-fractional.dcm", SEG_SOP_CLASS, fractional_wanted,
     .write = fractional_write, .verify = fractional_verify},
    {"sr", "sr.dcm", SR_SOP_CLASS, sr_wanted, .write = sr_file_write, .verify = sr_file_verify},
    {"pmap", "pmap-*.dcm", PMAP_SOP_CLASS, map_wanted, map_part, .write = map_write,
     .verify = map_verify},
    {"codes", "codes-*.nrrd", NULL, codes_wanted, codes_part, .write = codes_write},
    {.file = NULL},
};
