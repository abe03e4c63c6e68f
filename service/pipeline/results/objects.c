/*
 * objects.c - see objects.h.
 *
 * Each step returns 0 or -errno with report->error filled.
 */
#include "service/pipeline/results/objects.h"

#include "base/error.h"
#include "dicom/objects/seg/seg.h"
#include "service/common/clock.h"
#include "service/common/crash_point.h"
#include "service/pipeline/results/describe.h"
#include "service/pipeline/results/nrrd.h"
#include "service/pipeline/results/preview.h"
#include "service/pipeline/results/record.h"
#include "service/pipeline/results/tables.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEG_FILE        "seg.dcm"
#define FRACTIONAL_FILE "seg-fractional.dcm"
#define SEG_SOP_CLASS   "1.2.840.10008.5.1.4.1.1.66.4"

/* What fuzzy connectedness is called in PS3.16 CID 7162, as near as it gets. */
static const struct seg_code neighborhood_analysis = {"123101", "DCM", "Neighborhood Analysis"};

struct results {
    const struct results_request *request;
    struct pipeline_report *report;
    char *identity; /* of the pipeline, for UIDs */
    /* One a segment of the pipeline, in its order. */
    struct preview_segment *preview_segments;
    struct seg_segment *segments;
    char (*parameters)[DESCRIBE_SIZE];
    struct seg_segment *scene_segments; /* those with a scene */
    int32_t scene_count;
};

/* Where a file cannot be made or finished: the name is enough, the folder is known. */
int
results_file_error(struct pipeline_report *report, int rc, const char *verb, const char *name)
{
    char what[128];
    snprintf(what, sizeof what, "%s %s", verb, name);
    return error_set_system(&report->error, rc, what);
}

struct pipeline_result *
results_add(struct pipeline_report *report, const char *kind, const char *file)
{
    struct pipeline_result *result = &report->results[report->result_count++];
    snprintf(result->kind, sizeof result->kind, "%s", kind);
    snprintf(result->file, sizeof result->file, "%s", file);
    return result;
}

static struct seg_code
to_seg_code(const struct conf_code *code)
{
    return (struct seg_code){code->value, code->scheme, code->meaning};
}

/* Algorithm Parameters: what a reader of the SEG needs to do it again. */
static void
describe_parameters(struct results *results)
{
    const struct results_request *request = results->request;
    const struct conf_segment *segments = request->pipeline->segments;
    for (size_t k = 0; k < request->labels->count; k++) {
        size_t i = request->labels->segments[k];
        describe_level_set(&segments[i], results->parameters[i]);
    }
    for (size_t k = 0; k < request->objects->count; k++) {
        size_t i = request->objects->segments[k];
        describe_fuzzy(&segments[i], &request->objects->items[k], &request->objects->gaussians[k],
                       request->pipeline->relative_connectedness, results->parameters[i]);
    }
}

static int
describe_segments(struct results *results)
{
    const struct results_request *request = results->request;
    size_t count = request->pipeline->segment_count;
    results->segments = calloc(count, sizeof *results->segments);
    results->scene_segments = calloc(count, sizeof *results->scene_segments);
    results->preview_segments = calloc(count, sizeof *results->preview_segments);
    results->parameters = calloc(count, sizeof *results->parameters);
    results->identity = conf_pipeline_identity(request->pipeline);
    results->report->results =
        calloc(count + 2 + TEXTURE_RESULTS, sizeof *results->report->results);
    if (!results->segments || !results->scene_segments || !results->preview_segments ||
        !results->parameters || !results->identity || !results->report->results)
        return error_set_system(&results->report->error, -ENOMEM, "describe the segments");
    describe_parameters(results);
    for (size_t i = 0; i < count; i++) {
        const struct conf_segment *segment = &request->pipeline->segments[i];
        bool fuzzy = segment->method == CONF_FUZZY;
        results->segments[i] = (struct seg_segment){
            .label = segment->label,
            .description = segment->description ? segment->description : "",
            .category = to_seg_code(&segment->category),
            .type = to_seg_code(&segment->type),
            .modifier = to_seg_code(&segment->modifier),
            .region = to_seg_code(&segment->region),
            .color_rgb = {segment->color[0], segment->color[1], segment->color[2]},
            .algorithm_family = fuzzy ? neighborhood_analysis : (struct seg_code){0},
            .algorithm_name = fuzzy ? "Noctule fuzzy connectedness" : "Noctule level set",
            .algorithm_version = NOCTULE_VERSION,
            .algorithm_parameters = results->parameters[i],
            .bits = request->masks[i].bits,
            .words_per_row = request->masks[i].words_per_row,
            .scene = request->scenes[i],
        };
        if (request->scenes[i])
            results->scene_segments[results->scene_count++] = results->segments[i];
        results->preview_segments[i] = (struct preview_segment){
            .mask = &request->masks[i],
            .color = {segment->color[0], segment->color[1], segment->color[2]},
        };
    }
    return 0;
}

static struct seg_request
seg_request_of(const struct results *results)
{
    const struct results_request *request = results->request;
    const struct conf_pipeline *pipeline = request->pipeline;
    return (struct seg_request){
        .instances = request->headers->instances,
        .instance_count = (int32_t)request->headers->count,
        .stack = request->stack,
        .segments = results->segments,
        .segment_count = (int32_t)pipeline->segment_count,
        .omit_empty_frames = pipeline->omit_empty_frames,
        .pipeline = pipeline->name,
        .pipeline_settings = results->identity,
        .software_version = NOCTULE_VERSION,
        .device_serial_number = request->spec->device_serial_number,
        .series_description = pipeline->series_description ? pipeline->series_description : "",
        .series_number = pipeline->series_number,
        .content_time_ms = clock_unix_ms(),
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

static const char *
seg_file_of(const struct seg_request *request)
{
    return request->fractional ? FRACTIONAL_FILE : SEG_FILE;
}

static int
write_seg_file(struct results *results, const struct seg_request *request)
{
    int fd;
    struct seg_summary summary;
    const char *file = seg_file_of(request);
    int rc = output_create(results->request->output, file, &fd);
    if (rc)
        return results_file_error(results->report, rc, "make", file);
    rc = seg_write(request, fd, &summary, &results->report->error);
    crash_point("worker_in_write");
    if (rc)
        return rc;
    output_finish(results->request->output, fd);
    struct pipeline_result *result =
        results_add(results->report, request->fractional ? "seg-fractional" : "seg", file);
    snprintf(result->sop_class_uid, sizeof result->sop_class_uid, "%s", SEG_SOP_CLASS);
    memcpy(result->sop_instance_uid, summary.identity.sop_instance_uid, DICOM_UID_SIZE);
    memcpy(result->series_uid, summary.identity.series_uid, DICOM_UID_SIZE);
    result->size = summary.bytes;
    result->frames = summary.frames;
    return 0;
}

/* A result that does not read back as computed is this machine's fault: worth another try. */
static int
verify_seg_file(struct results *results, const struct seg_request *request)
{
    char *path = output_part_path(results->request->output, seg_file_of(request));
    if (!path)
        return results_file_error(results->report, -ENOMEM, "read back", seg_file_of(request));
    int rc = seg_verify(request, path, results->request->threads, &results->report->error);
    free(path);
    return rc == 0 || rc == -ENOMEM ? rc : -EAGAIN;
}

static int
write_segs(struct results *results)
{
    struct seg_request requests[2];
    int count = 0, error = 0;
    if (results->request->pipeline->results & CONF_RESULT_SEG)
        requests[count++] = seg_request_of(results);
    if (results->scene_count > 0)
        requests[count++] = fractional_request_of(results);
    double begun = clock_seconds();
    for (int i = 0; i < count && error == 0; i++)
        error = write_seg_file(results, &requests[i]);
    double written = clock_seconds();
    results->report->write_seconds += written - begun;
    if (error == 0 && count > 0)
        error = pipeline_enter(results->request->watch, "verify");
    for (int i = 0; i < count && error == 0; i++)
        error = verify_seg_file(results, &requests[i]);
    results->report->verify_seconds = clock_seconds() - written;
    return error;
}

/* The file's number is that of the segment. */
static int
write_codes_of(struct results *results, size_t label, int8_t *codes)
{
    const struct results_request *request = results->request;
    char name[32];
    int fd;
    snprintf(name, sizeof name, "codes-%zu.nrrd", request->labels->segments[label] + 1);
    int rc = kernels_level_set_codes(request->lane, label, codes);
    if (rc)
        return pipeline_compute_error(&results->report->error, rc, strerror(-rc));
    rc = output_create(request->output, name, &fd);
    if (rc)
        return results_file_error(results->report, rc, "make", name);
    rc = nrrd_write_int8(fd, request->stack, codes);
    if (rc)
        return results_file_error(results->report, rc, "write", name);
    results_add(results->report, "codes", name)->size = lseek(fd, 0, SEEK_CUR);
    output_finish(request->output, fd);
    return 0;
}

static int
write_codes(struct results *results)
{
    double begun = clock_seconds();
    int8_t *codes = malloc((size_t)results->report->voxels);
    int error = codes ? 0 : results_file_error(results->report, -ENOMEM, "hold", "the state codes");
    for (size_t i = 0; i < results->request->labels->count && error == 0; i++) {
        error = pipeline_enter(results->request->watch, "write");
        if (error == 0)
            error = write_codes_of(results, i, codes);
    }
    free(codes);
    results->report->write_seconds += clock_seconds() - begun;
    return error;
}

/* ---------------------------------------------------------------------- preview, beside it -- */

struct preview_task {
    pthread_t thread;
    bool running;
    struct preview_request request;
    struct output *output;
    int fd;
    int error;
};

static void *
draw_preview(void *argument)
{
    struct preview_task *task = argument;
    task->error = preview_write(&task->request, task->fd);
    if (task->error == 0)
        output_finish(task->output, task->fd);
    return NULL;
}

static int
start_preview(struct results *results, struct preview_task *task)
{
    const struct results_request *request = results->request;
    memset(task, 0, sizeof *task);
    task->request = (struct preview_request){.instances = request->headers->instances,
                                             .stack = request->stack,
                                             .voxels = request->voxels,
                                             .segments = results->preview_segments,
                                             .segment_count = request->pipeline->segment_count,
                                             .threads = request->threads};
    task->output = request->output;
    int error = output_create(request->output, "preview.png", &task->fd);
    if (error)
        return results_file_error(results->report, error, "make", "preview.png");
    task->running = pthread_create(&task->thread, NULL, draw_preview, task) == 0;
    if (!task->running)
        draw_preview(task);
    return 0;
}

static int
end_preview(struct results *results, struct preview_task *task, int error)
{
    double begun = clock_seconds();
    if (task->running)
        pthread_join(task->thread, NULL);
    results->report->write_seconds += clock_seconds() - begun;
    if (error)
        return error;
    return task->error ? results_file_error(results->report, task->error, "write", "preview.png")
                       : 0;
}

static struct texture_results
texture_results_of(const struct results *results)
{
    const struct results_request *request = results->request;
    return (struct texture_results){
        .pipeline = request->pipeline,
        .stack = request->stack,
        .instances = request->headers->instances,
        .output = request->output,
        .maps = request->maps,
        .watch = request->watch,
        .report = results->report,
    };
}

static int
write_objects(struct results *results)
{
    int error = write_segs(results);
    if (error == 0 && results->request->pipeline->texture) {
        const struct texture_results texture = texture_results_of(results);
        const struct seg_request seg = seg_request_of(results);
        error = texture_results_write_objects(&texture, &seg);
    }
    if (error == 0 && (results->request->pipeline->results & CONF_RESULT_CODES))
        error = write_codes(results);
    return error;
}

/* Also of a job without any voxel: that there are none is a measurement. */
static int
write_tables(struct results *results)
{
    if (!results->request->pipeline->texture)
        return 0;
    const struct texture_results texture = texture_results_of(results);
    return texture_results_write_tables(&texture);
}

/* What the volume is measured for is there without a voxel in a segment. */
static bool
needs_segments(const struct results *results)
{
    const struct conf_pipeline *pipeline = results->request->pipeline;
    return (pipeline->results & (CONF_RESULT_SEG | CONF_RESULT_CODES)) ||
           results->scene_count > 0 || !pipeline->texture ||
           (pipeline->texture->regions & CONF_SEGMENTS);
}

static int
write_all(struct results *results)
{
    struct pipeline_report *report = results->report;
    struct preview_task preview;
    int rc = describe_segments(results);
    if (rc == 0)
        rc = start_preview(results, &preview);
    if (rc)
        return rc;
    report->empty = report->segmented_voxels == 0 && needs_segments(results);
    if (report->empty)
        error_set(&report->error, 0, CODE_EMPTY,
                  "no voxel belongs to a segment, so there is no object; see preview.png and the "
                  "range and shapes, or the seeds and Gaussians, of the pipeline");
    else
        rc = write_objects(results);
    if (rc == 0)
        rc = write_tables(results);
    return end_preview(results, &preview, rc);
}

int
results_write(const struct results_request *request, struct pipeline_report *report)
{
    struct results results = {.request = request, .report = report};
    int error = pipeline_enter(request->watch, "write");
    if (error == 0)
        error = write_all(&results);
    free(results.scene_segments);
    free(results.preview_segments);
    free(results.segments);
    free(results.parameters);
    free(results.identity);
    return error;
}

/* ------------------------------------------------------------------------------- publishing -- */

static int
write_record(const struct results_request *request, struct pipeline_report *report)
{
    const struct record record = {report, request->spec, request->pipeline->name, request->threads};
    int fd;
    int error = output_create(request->output, "job.json", &fd);
    if (error)
        return results_file_error(report, error, "make", "job.json");
    error = record_write(fd, &record);
    if (error)
        return results_file_error(report, error, "write", "job.json");
    output_finish(request->output, fd);
    return 0;
}

/* The record's sync is the last one to begin; the others may have ended. */
static int
settle(const struct results_request *request, struct pipeline_report *report)
{
    const char *file;
    int error = output_settle(request->output, &file);
    return error ? results_file_error(report, error, "write", file) : 0;
}

int
results_publish(const struct results_request *request, struct pipeline_report *report)
{
    int error = write_record(request, report);
    if (error == 0)
        error = settle(request, report);
    if (error)
        return error;
    error = output_publish(request->output);
    return error ? results_file_error(report, error, "publish", "the results") : 0;
}
