/*
 * pipeline.c - see pipeline.h.
 *
 * A job is a row of steps that share struct job. Each step returns 0 or -errno with report->fault
 * filled; verdict_of turns the errno of the step that failed into the verdict, so that no step
 * decides what becomes of the job. The preview is drawn and written by a thread of its own beside
 * the SEG: both only read the volume and the masks.
 */
#include "pipeline.h"

#include "clock.h"
#include "config.h"
#include "crash_point.h"
#include "decode.h"
#include "describe.h"
#include "failure.h"
#include "labels.h"
#include "nrrd.h"
#include "output.h"
#include "preview.h"
#include "record.h"
#include "seg.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SEG_FILE        "seg.dcm"
#define FRACTIONAL_FILE "seg-fractional.dcm"
#define SEG_SOP_CLASS   "1.2.840.10008.5.1.4.1.1.66.4"

#define DEVICE_LOST     "COMPUTE_DEVICE_LOST"

/* What fuzzy connectedness is called in PS3.16 CID 7162, as near as it gets. */
static const struct seg_code neighborhood_analysis = {"123101", "DCM", "Neighborhood Analysis"};

const char *const pipeline_stages[] = {"headers", "pixels", "compute", "write", "verify", NULL};

struct job {
    const struct job_spec *spec;
    const struct headers *headers;
    const struct pipeline_compute *compute;
    const struct pipeline_watch *watch;
    struct pipeline_report *report;

    struct conf_pipeline *pipeline;
    struct output *output;
    struct geometry_series *series;
    const struct geometry_stack *stack;
    struct kernels_lane *lane; /* the one that the job runs on */
    struct labels labels;
    struct fuzzy_objects objects;
    void *voxels; /* the lane's */
    /* One a segment of the pipeline, in its order, whatever the method. */
    struct kernels_mask *masks;
    const uint16_t **scenes; /* NULL: none wanted */
    bool two_passes;         /* level sets start from objects, and so come after them */
    void **kept;             /* masks and scenes of the first pass, two an object */
    struct preview_segment *preview_segments;
    struct seg_segment *seg_segments;
    char (*parameters)[DESCRIBE_SIZE];
    struct seg_segment *scene_segments; /* those with a scene */
    int32_t scene_count;
};

static bool
stopped(const struct job *job)
{
    return job->watch && job->watch->stop && atomic_load(job->watch->stop);
}

/* Begins a stage: tells the watcher, and ends the job if it was told to stop. */
static int
enter(struct job *job, const char *stage)
{
    if (stopped(job))
        return -ECANCELED;
    if (job->watch && job->watch->progress)
        job->watch->progress(job->watch->context, stage, 0);
    return 0;
}

/* ------------------------------------------------------------------------------ preparing -- */

static int
read_settings(struct job *job)
{
    char reason[CONF_REASON];
    int error = conf_pipeline_from_text(job->spec->settings, &job->pipeline, reason, sizeof reason);
    if (error)
        return fail_with(&job->report->fault, error, "PIPELINE_INVALID",
                         "the pipeline of the job cannot be read: %s", reason);
    return 0;
}

static int
open_output(struct job *job)
{
    int error = output_open(job->spec->output, &job->output);
    if (error == -EBUSY)
        return fail_with(&job->report->fault, error, "OUTPUT_BUSY",
                         "another job is writing into %s", job->spec->output);
    if (error) {
        char what[400];
        snprintf(what, sizeof what, "use the output folder %s", job->spec->output);
        return fail_with_system(&job->report->fault, error, what);
    }
    return 0;
}

/* An input that cannot be read stops the job: a result of part of a series would look whole. */
static int
check_headers(struct job *job)
{
    const struct headers *headers = job->headers;
    for (size_t i = 0; i < headers->count; i++) {
        if (headers->errors[i]) {
            job->report->fault = headers->faults[i];
            return headers->errors[i];
        }
    }
    if (headers->count == 0)
        return fail_with(&job->report->fault, -EINVAL, "NO_INPUT", "the job names no input file");
    return 0;
}

static int
choose_stack(struct job *job)
{
    struct pipeline_report *report = job->report;
    const struct geometry_limits limits = {job->pipeline->min_slices,
                                           job->pipeline->spacing_tolerance};
    memcpy(report->series_uid, job->headers->instances[0]->series_uid, sizeof report->series_uid);
    int error = geometry_group(job->headers->instances, (int32_t)job->headers->count, &limits,
                               &job->series, &report->fault);
    if (error)
        return error;
    for (int32_t i = 0; i < job->series->stack_count && !job->stack; i++) {
        if (strcmp(job->series->stacks[i].name, job->spec->stack) == 0)
            job->stack = &job->series->stacks[i];
    }
    if (!job->stack)
        return fail_with(&report->fault, -ENOENT, "STACK_NOT_FOUND",
                         "the series has no stack named \"%s\" (it has %d)", job->spec->stack,
                         job->series->stack_count);
    if (!job->stack->accepted) {
        report->fault = job->stack->fault;
        return -EINVAL;
    }
    report->columns = job->stack->columns;
    report->rows = job->stack->rows;
    report->planes = job->stack->plane_count;
    report->voxels = (int64_t)report->columns * report->rows * report->planes;
    memcpy(report->spacing, job->stack->spacing, sizeof report->spacing);
    return 0;
}

/* ------------------------------------------------------------------- decoding, computing ---- */

int
pipeline_compute_fault(struct dicom_fault *fault, int error, const char *reason)
{
    if (error == -E2BIG)
        return fail_with(fault, error, "VOLUME_TOO_LARGE", "the compute backend: %s", reason);
    if (error == -EIO)
        return fail_with(fault, error, DEVICE_LOST, "the compute backend: %s", reason);
    return fail_with(fault, error, "COMPUTE_FAILED", "the compute backend: %s", reason);
}

static int
backend_fault(struct job *job, int error, const char *reason)
{
    return pipeline_compute_fault(&job->report->fault, error, reason);
}

/* Takes the part of a character off that UTF-8 text was cut within. */
static void
mend_end(char *text)
{
    size_t length = strlen(text), tail = 0;
    while (tail < length && ((unsigned char)text[length - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (tail < length && ((unsigned char)text[length - 1 - tail] & 0xc0) == 0xc0)
        text[length - 1 - tail] = '\0';
}

/* Adds to what the job has to say of itself; cut where there is no more room. */
static void
note(struct pipeline_report *report, const char *text)
{
    size_t length = strlen(report->note), room = sizeof report->note - length;
    int needed = snprintf(report->note + length, room, "%s%s", length > 0 ? "; " : "", text);
    if (needed < 0 || (size_t)needed >= room)
        mend_end(report->note);
}

static void
use_lane(struct job *job, const struct kernels_device *device, struct kernels_lane *lane)
{
    job->lane = lane;
    snprintf(job->report->backend, sizeof job->report->backend, "%s",
             kernels_device_backend(device));
}

/* What does not fit into a device's memory runs on the other, which has more and is slower. */
static void
fall_back(struct job *job, const char *reason)
{
    char text[KERNELS_REASON + 32];
    use_lane(job, job->compute->fallback_device, job->compute->fallback_lane);
    snprintf(text, sizeof text, "ran on the %s: %s",
             strcmp(job->report->backend, "cpu") == 0 ? "CPU" : job->report->backend, reason);
    note(job->report, text);
}

static int
reserve(struct job *job, bool level_sets, bool objects)
{
    char reason[KERNELS_REASON] = "";
    const struct geometry_stack *stack = job->stack;
    const struct kernels_extent extent = {stack->columns, stack->rows, stack->plane_count};
    const struct kernels_demand demand = {
        .level_set_labels = level_sets ? job->labels.count : 0,
        .fuzzy_objects = objects ? job->objects.count : 0,
        .fuzzy_scenes = objects ? job->objects.scenes : 0,
        .fuzzy_relative = objects && job->pipeline->relative_connectedness,
    };
    enum kernels_pixel pixel = labels_pixel(stack->pixel);
    int error = kernels_volume_begin(job->lane, extent, pixel, &demand, &job->voxels, reason,
                                     sizeof reason);
    if (error == -ENOMEM && job->compute->fallback_lane) {
        fall_back(job, reason);
        error = kernels_volume_begin(job->lane, extent, pixel, &demand, &job->voxels, reason,
                                     sizeof reason);
    }
    if (error == 0 && demand.level_set_labels > 0)
        error = kernels_level_set_begin(job->lane, job->labels.items, job->labels.count, reason,
                                        sizeof reason);
    return error ? backend_fault(job, error, reason) : 0;
}

static bool
starts_from_objects(const struct conf_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if (pipeline->segments[i].from)
            return true;
    return false;
}

static int
begin_volume(struct job *job)
{
    struct dicom_instance *const *instances = job->headers->instances;
    struct dicom_fault *fault = &job->report->fault;
    int error = labels_make(job->pipeline, instances, job->stack, &job->labels, fault);
    if (error == 0)
        error = fuzzy_objects_make(job->pipeline, instances, job->stack, &job->objects, fault);
    job->two_passes = starts_from_objects(job->pipeline);
    return error ? error : reserve(job, !job->two_passes, true);
}

static int
decode(struct job *job)
{
    int error = begin_volume(job);
    if (error == 0)
        error = enter(job, "pixels");
    if (error)
        return error;
    const struct decode_request request = {.instances = job->headers->instances,
                                           .stack = job->stack,
                                           .lane = job->lane,
                                           .voxels = job->voxels,
                                           .threads = job->compute->threads,
                                           .watch = job->watch};
    return decode_stack(&request, &job->report->fault);
}

static int
check_contrast(struct job *job)
{
    struct kernels_range range;
    struct kernels_range padding = labels_common_padding(job->headers->instances, job->stack);
    int error = kernels_volume_range(job->lane, padding, &range);
    if (error == -ENODATA)
        return fail_with(&job->report->fault, -EINVAL, "CONSTANT_PIXELS",
                         "every pixel of the series is padding");
    if (error)
        return backend_fault(job, error, strerror(-error));
    if (range.lo == range.hi)
        return fail_with(&job->report->fault, -EINVAL, "CONSTANT_PIXELS",
                         "every pixel of the series has the stored value %d", range.lo);
    return 0;
}

/* Voxels in at least one segment. */
static int64_t
count_union(const struct kernels_mask *masks, size_t count, int64_t words)
{
    int64_t voxels = 0;
    for (int64_t w = 0; w < words; w++) {
        uint64_t any = 0;
        for (size_t i = 0; i < count; i++)
            any |= masks[i].bits[w];
        voxels += __builtin_popcountll(any);
    }
    return voxels;
}

static int
count_voxels(struct job *job)
{
    struct pipeline_report *report = job->report;
    const double *spacing = job->stack->spacing;
    size_t count = job->pipeline->segment_count;
    report->segments = calloc(count + 1, sizeof *report->segments);
    if (!report->segments)
        return fail_with_system(&report->fault, -ENOMEM, "count the voxels");
    report->segment_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct pipeline_segment *segment = &report->segments[i];
        snprintf(segment->label, sizeof segment->label, "%s", job->pipeline->segments[i].label);
        segment->method = job->pipeline->segments[i].method;
        segment->voxels = job->masks[i].voxels;
        segment->millilitres =
            (double)segment->voxels * spacing[0] * spacing[1] * spacing[2] / 1000;
    }
    report->segmented_voxels =
        count == 1 ? job->masks[0].voxels
                   : count_union(job->masks, count,
                                 job->masks[0].words_per_row * report->rows * report->planes);
    for (size_t k = 0; k < job->objects.count; k++)
        report->segments[job->objects.segments[k]].gaussians = job->objects.gaussians[k];
    return 0;
}

static int
run_level_sets(struct job *job)
{
    char reason[KERNELS_REASON];
    size_t count = job->labels.count;
    if (count == 0)
        return 0;
    struct kernels_mask *masks = calloc(count, sizeof *masks);
    if (!masks)
        return fail_with_system(&job->report->fault, -ENOMEM, "hold the masks");
    int error = kernels_level_set_finish(job->lane, masks, reason, sizeof reason);
    for (size_t k = 0; k < count && error == 0; k++)
        job->masks[job->labels.segments[k]] = masks[k];
    free(masks);
    return error ? backend_fault(job, error, reason) : 0;
}

/* Tells what was measured, of every object that something was measured of. */
static void
note_measurements(struct job *job)
{
    char text[256];
    for (size_t k = 0; k < job->objects.count; k++) {
        const char *label = job->pipeline->segments[job->objects.segments[k]].label;
        if (describe_measured(label, &job->objects.gaussians[k], text, sizeof text))
            note(job->report, text);
    }
}

static int
run_fuzzy_objects(struct job *job)
{
    char reason[KERNELS_REASON];
    const struct fuzzy_objects *objects = &job->objects;
    if (objects->count == 0)
        return 0;
    int error = fuzzy_objects_measure(&job->objects, job->pipeline, job->stack, job->voxels,
                                      &job->report->fault);
    if (error)
        return error;
    note_measurements(job);
    struct kernels_fuzzy_result *results = calloc(objects->count, sizeof *results);
    if (!results)
        return fail_with_system(&job->report->fault, -ENOMEM, "hold the objects");
    error =
        kernels_fuzzy_run(job->lane, objects->items, objects->count,
                          job->pipeline->relative_connectedness, results, reason, sizeof reason);
    for (size_t k = 0; k < objects->count && error == 0; k++) {
        job->masks[objects->segments[k]] = results[k].object;
        job->scenes[objects->segments[k]] = results[k].scene;
    }
    free(results);
    return error ? backend_fault(job, error, reason) : 0;
}

/* ----------------------------------------------- level sets that start from objects ---- */

/* A copy without what there may be between rows beyond whole words, as initial masks are laid out.
 */
static uint64_t *
copy_bits(const struct kernels_mask *mask, const struct geometry_stack *stack)
{
    size_t words = ((size_t)stack->columns + 63) / 64;
    size_t rows = (size_t)stack->rows * (size_t)stack->plane_count;
    uint64_t *copy = malloc(rows * words * sizeof *copy);
    for (size_t row = 0; copy && row < rows; row++)
        memcpy(copy + row * words, mask->bits + row * (size_t)mask->words_per_row,
               words * sizeof *copy);
    return copy;
}

/* What the lane has found is its own until the next volume; the job needs it longer. */
static int
keep_object(struct job *job, size_t k)
{
    size_t i = job->objects.segments[k];
    uint64_t *bits = copy_bits(&job->masks[i], job->stack);
    uint16_t *scene = NULL;
    size_t scene_bytes = (size_t)job->report->voxels * sizeof *scene;
    job->kept[2 * k] = bits;
    if (job->scenes[i]) {
        scene = malloc(scene_bytes);
        job->kept[2 * k + 1] = scene;
    }
    if (!bits || (job->scenes[i] && !scene))
        return fail_with_system(&job->report->fault, -ENOMEM, "keep the objects");
    if (scene)
        job->scenes[i] = memcpy(scene, job->scenes[i], scene_bytes);
    job->masks[i].bits = bits;
    job->masks[i].words_per_row = (job->stack->columns + 63) / 64;
    return 0;
}

static void
name_masks(struct job *job)
{
    const struct conf_segment *segments = job->pipeline->segments;
    for (size_t k = 0; k < job->labels.count; k++) {
        const char *from = segments[job->labels.segments[k]].from;
        for (size_t i = 0; from && i < job->pipeline->segment_count; i++)
            if (strcmp(segments[i].label, from) == 0)
                job->labels.items[k].mask = job->masks[i].bits;
    }
}

/* The same voxels once more: labels are named before the first slice is announced. */
static int
announce_again(struct job *job)
{
    size_t bytes = (size_t)job->report->voxels * dicom_pixel_size(job->stack->pixel);
    void *voxels = malloc(bytes);
    if (!voxels)
        return fail_with_system(&job->report->fault, -ENOMEM, "keep the volume");
    memcpy(voxels, job->voxels, bytes);
    int error = reserve(job, true, false);
    if (error == 0) {
        memcpy(job->voxels, voxels, bytes);
        error = kernels_volume_ready(job->lane, 0, job->stack->plane_count);
        if (error)
            backend_fault(job, error, "the volume cannot be handed over");
    }
    free(voxels);
    return error;
}

static int
run_two_passes(struct job *job)
{
    int error = run_fuzzy_objects(job);
    job->kept = calloc(2 * job->objects.count, sizeof *job->kept);
    if (error == 0 && !job->kept)
        error = fail_with_system(&job->report->fault, -ENOMEM, "keep the objects");
    for (size_t k = 0; k < job->objects.count && error == 0; k++)
        error = keep_object(job, k);
    if (error)
        return error;
    name_masks(job);
    error = stopped(job) ? -ECANCELED : announce_again(job);
    return error ? error : run_level_sets(job);
}

static int
run_one_pass(struct job *job)
{
    int error = run_level_sets(job);
    return error ? error : run_fuzzy_objects(job);
}

static int
compute(struct job *job)
{
    size_t count = job->pipeline->segment_count;
    int error = enter(job, "compute");
    if (error == 0)
        error = check_contrast(job);
    if (error)
        return error;
    job->masks = calloc(count, sizeof *job->masks);
    job->scenes = calloc(count, sizeof *job->scenes);
    if (!job->masks || !job->scenes)
        return fail_with_system(&job->report->fault, -ENOMEM, "hold the masks");
    error = job->two_passes ? run_two_passes(job) : run_one_pass(job);
    return error ? error : count_voxels(job);
}

/* -------------------------------------------------------------------------------- writing -- */

/* Where a file cannot be made or finished: the name is enough, the folder is known. */
static int
file_fault(struct job *job, int error, const char *verb, const char *name)
{
    char what[128];
    snprintf(what, sizeof what, "%s %s", verb, name);
    return fail_with_system(&job->report->fault, error, what);
}

static struct pipeline_result *
add_result(struct job *job, const char *kind, const char *file)
{
    struct pipeline_result *result = &job->report->results[job->report->result_count++];
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
describe_parameters(struct job *job)
{
    const struct conf_segment *segments = job->pipeline->segments;
    for (size_t k = 0; k < job->labels.count; k++) {
        size_t i = job->labels.segments[k];
        describe_level_set(&segments[i], job->parameters[i]);
    }
    for (size_t k = 0; k < job->objects.count; k++) {
        size_t i = job->objects.segments[k];
        describe_fuzzy(&segments[i], &job->objects.items[k], &job->objects.gaussians[k],
                       job->pipeline->relative_connectedness, job->parameters[i]);
    }
}

static int
describe_segments(struct job *job)
{
    size_t count = job->pipeline->segment_count;
    job->seg_segments = calloc(count, sizeof *job->seg_segments);
    job->scene_segments = calloc(count, sizeof *job->scene_segments);
    job->preview_segments = calloc(count, sizeof *job->preview_segments);
    job->parameters = calloc(count, sizeof *job->parameters);
    job->report->results = calloc(count + 2, sizeof *job->report->results);
    if (!job->seg_segments || !job->scene_segments || !job->preview_segments || !job->parameters ||
        !job->report->results)
        return fail_with_system(&job->report->fault, -ENOMEM, "describe the segments");
    describe_parameters(job);
    for (size_t i = 0; i < count; i++) {
        const struct conf_segment *segment = &job->pipeline->segments[i];
        bool fuzzy = segment->method == CONF_FUZZY;
        job->seg_segments[i] = (struct seg_segment){
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
            .algorithm_parameters = job->parameters[i],
            .bits = job->masks[i].bits,
            .words_per_row = job->masks[i].words_per_row,
            .scene = job->scenes[i],
        };
        if (job->scenes[i])
            job->scene_segments[job->scene_count++] = job->seg_segments[i];
        job->preview_segments[i] = (struct preview_segment){
            .mask = &job->masks[i],
            .color = {segment->color[0], segment->color[1], segment->color[2]},
        };
    }
    return 0;
}

static struct seg_request
seg_request_of(const struct job *job)
{
    const struct conf_pipeline *pipeline = job->pipeline;
    return (struct seg_request){
        .instances = job->headers->instances,
        .instance_count = (int32_t)job->headers->count,
        .stack = job->stack,
        .segments = job->seg_segments,
        .segment_count = (int32_t)pipeline->segment_count,
        .omit_empty_frames = pipeline->omit_empty_frames,
        .pipeline = pipeline->name,
        .pipeline_settings = job->spec->settings,
        .software_version = NOCTULE_VERSION,
        .device_serial_number = job->spec->device_serial_number,
        .series_description = pipeline->series_description ? pipeline->series_description : "",
        .series_number = pipeline->series_number,
        .content_time_ms = clock_unix_ms(),
    };
}

/* The scenes of fuzzy connectedness, in an object of their own. */
static struct seg_request
fractional_request_of(const struct job *job)
{
    struct seg_request request = seg_request_of(job);
    request.segments = job->scene_segments;
    request.segment_count = job->scene_count;
    request.fractional = true;
    return request;
}

static const char *
seg_file_of(const struct seg_request *request)
{
    return request->fractional ? FRACTIONAL_FILE : SEG_FILE;
}

static int
write_seg_file(struct job *job, const struct seg_request *request)
{
    int fd;
    struct seg_summary summary;
    const char *file = seg_file_of(request);
    int error = output_create(job->output, file, &fd);
    if (error)
        return file_fault(job, error, "make", file);
    error = seg_write(request, fd, &summary, &job->report->fault);
    crash_point("worker_in_write");
    int finished = output_finish(fd);
    if (error)
        return error;
    if (finished)
        return file_fault(job, finished, "write", file);
    struct pipeline_result *result =
        add_result(job, request->fractional ? "seg-fractional" : "seg", file);
    snprintf(result->sop_class_uid, sizeof result->sop_class_uid, "%s", SEG_SOP_CLASS);
    memcpy(result->sop_instance_uid, summary.identity.sop_instance_uid, DICOM_UID_SIZE);
    memcpy(result->series_uid, summary.identity.series_uid, DICOM_UID_SIZE);
    result->size = summary.bytes;
    result->frames = summary.frames;
    return 0;
}

/* A result that does not read back as computed is this machine's fault: worth another try. */
static int
verify_seg_file(struct job *job, const struct seg_request *request)
{
    char *path = output_part_path(job->output, seg_file_of(request));
    if (!path)
        return file_fault(job, -ENOMEM, "read back", seg_file_of(request));
    int error = seg_verify(request, path, &job->report->fault);
    free(path);
    return error == 0 || error == -ENOMEM ? error : -EAGAIN;
}

static int
write_segs(struct job *job)
{
    struct seg_request requests[2];
    int count = 0, error = 0;
    if (job->pipeline->results & CONF_RESULT_SEG)
        requests[count++] = seg_request_of(job);
    if (job->scene_count > 0)
        requests[count++] = fractional_request_of(job);
    double begun = clock_seconds();
    for (int i = 0; i < count && error == 0; i++)
        error = write_seg_file(job, &requests[i]);
    double written = clock_seconds();
    job->report->write_seconds += written - begun;
    if (error == 0 && count > 0)
        error = enter(job, "verify");
    for (int i = 0; i < count && error == 0; i++)
        error = verify_seg_file(job, &requests[i]);
    job->report->verify_seconds = clock_seconds() - written;
    return error;
}

/* The file's number is that of the segment. */
static int
write_codes_of(struct job *job, size_t label, int8_t *codes)
{
    char name[32];
    int fd;
    snprintf(name, sizeof name, "codes-%zu.nrrd", job->labels.segments[label] + 1);
    int error = kernels_level_set_codes(job->lane, label, codes);
    if (error)
        return backend_fault(job, error, strerror(-error));
    error = output_create(job->output, name, &fd);
    if (error)
        return file_fault(job, error, "make", name);
    error = nrrd_write_int8(fd, job->stack, codes);
    off_t size = lseek(fd, 0, SEEK_CUR);
    int finished = output_finish(fd);
    if (error || finished)
        return file_fault(job, error ? error : finished, "write", name);
    add_result(job, "codes", name)->size = size;
    return 0;
}

static int
write_codes(struct job *job)
{
    double begun = clock_seconds();
    int8_t *codes = malloc((size_t)job->report->voxels);
    int error = codes ? 0 : file_fault(job, -ENOMEM, "hold", "the state codes");
    for (size_t i = 0; i < job->labels.count && error == 0; i++) {
        error = enter(job, "write");
        if (error == 0)
            error = write_codes_of(job, i, codes);
    }
    free(codes);
    job->report->write_seconds += clock_seconds() - begun;
    return error;
}

/* ---------------------------------------------------------------------- preview, beside it -- */

struct preview_task {
    pthread_t thread;
    bool running;
    struct preview_request request;
    int fd;
    int error;
};

static void *
draw_preview(void *argument)
{
    struct preview_task *task = argument;
    task->error = preview_write(&task->request, task->fd);
    int finished = output_finish(task->fd);
    if (task->error == 0)
        task->error = finished;
    return NULL;
}

static int
start_preview(struct job *job, struct preview_task *task)
{
    memset(task, 0, sizeof *task);
    task->request = (struct preview_request){.instances = job->headers->instances,
                                             .stack = job->stack,
                                             .voxels = job->voxels,
                                             .segments = job->preview_segments,
                                             .segment_count = job->pipeline->segment_count};
    int error = output_create(job->output, "preview.png", &task->fd);
    if (error)
        return file_fault(job, error, "make", "preview.png");
    task->running = pthread_create(&task->thread, NULL, draw_preview, task) == 0;
    if (!task->running)
        draw_preview(task);
    return 0;
}

static int
end_preview(struct job *job, struct preview_task *task, int error)
{
    double begun = clock_seconds();
    if (task->running)
        pthread_join(task->thread, NULL);
    job->report->write_seconds += clock_seconds() - begun;
    if (error)
        return error;
    return task->error ? file_fault(job, task->error, "write", "preview.png") : 0;
}

/* ------------------------------------------------------------------------------- publishing -- */

static int64_t
peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : -1;
}

static int
write_record(struct job *job)
{
    const struct record record = {job->report, job->spec, job->pipeline->name,
                                  job->compute->threads};
    int fd;
    int error = output_create(job->output, "job.json", &fd);
    if (error)
        return file_fault(job, error, "make", "job.json");
    error = record_write(fd, &record);
    int finished = output_finish(fd);
    if (error || finished)
        return file_fault(job, error ? error : finished, "write", "job.json");
    return 0;
}

static int
publish(struct job *job, double begun)
{
    struct pipeline_report *report = job->report;
    double start = clock_seconds();
    report->verdict = PROTO_VERDICT_DONE;
    report->peak_bytes = peak_bytes();
    report->total_seconds = clock_seconds() - begun;
    int error = stopped(job) ? -ECANCELED : write_record(job);
    if (error == 0) {
        error = output_publish(job->output);
        if (error)
            file_fault(job, error, "publish", "the results");
    }
    report->write_seconds += clock_seconds() - start;
    if (error == 0)
        crash_point("worker_after_rename");
    return error;
}

static int
write_results(struct job *job, double begun)
{
    struct preview_task preview;
    int error = enter(job, "write");
    if (error == 0)
        error = describe_segments(job);
    if (error == 0)
        error = start_preview(job, &preview);
    if (error)
        return error;
    job->report->empty = job->report->segmented_voxels == 0;
    if (job->report->empty) {
        fail_with(&job->report->fault, 0, "EMPTY",
                  "no voxel belongs to a segment, so there is no object; see preview.png and the "
                  "range and shapes, or the seeds and Gaussians, of the pipeline");
    } else {
        error = write_segs(job);
        if (error == 0 && (job->pipeline->results & CONF_RESULT_CODES))
            error = write_codes(job);
    }
    error = end_preview(job, &preview, error);
    return error ? error : publish(job, begun);
}

/* ----------------------------------------------------------------------------- the whole ---- */

/* Trying again may help: the machine was short of something, or its output is in another's hands.
 */
static bool
is_transient(int error)
{
    switch (-error) {
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EIO:
    case EBUSY:
    case EAGAIN:
    case EINTR:
    case EMFILE:
    case ENFILE:
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case ESTALE:
    case ETIMEDOUT:
    case ENODEV:
        return true;
    default:
        return false;
    }
}

static enum proto_verdict
verdict_of(int error)
{
    if (error == 0)
        return PROTO_VERDICT_DONE;
    if (error == -ECANCELED)
        return PROTO_VERDICT_STOPPED;
    return is_transient(error) ? PROTO_VERDICT_RETRY : PROTO_VERDICT_REJECT;
}

static int
run_steps(struct job *job, double begun)
{
    struct pipeline_report *report = job->report;
    int error = read_settings(job);
    if (error == 0)
        error = open_output(job);
    if (error == 0)
        error = check_headers(job);
    if (error == 0)
        error = choose_stack(job);
    if (error == 0)
        error = decode(job);
    double decoded = clock_seconds();
    report->read_seconds = decoded - begun;
    if (error)
        return error;
    error = compute(job);
    report->compute_seconds = clock_seconds() - decoded;
    crash_point("worker_after_compute");
    return error ? error : write_results(job, begun);
}

static void
release(struct job *job)
{
    output_close(job->output);
    labels_free(&job->labels);
    for (size_t i = 0; job->kept && i < 2 * job->objects.count; i++)
        free(job->kept[i]);
    free(job->kept);
    fuzzy_objects_free(&job->objects);
    free(job->masks);
    free(job->scenes);
    free(job->scene_segments);
    free(job->preview_segments);
    free(job->seg_segments);
    free(job->parameters);
    if (job->series)
        geometry_series_free(job->series);
    if (job->pipeline)
        conf_pipeline_free(job->pipeline);
}

static void
end_report(struct pipeline_report *report, int error, double begun)
{
    report->verdict = verdict_of(error);
    if (error) {
        report->empty = false;
        report->result_count = 0;
        if (error == -ECANCELED)
            fail_with(&report->fault, error, "STOPPED", "the job was told to stop");
        else
            failure_normalise(&report->fault, error);
    }
    report->device_lost = strcmp(report->fault.code, DEVICE_LOST) == 0;
    report->peak_bytes = peak_bytes();
    report->total_seconds = clock_seconds() - begun;
}

int
pipeline_run_headers(const struct job_spec *spec, const struct headers *headers,
                     const struct pipeline_compute *compute_with,
                     const struct pipeline_watch *watch, struct pipeline_report *report)
{
    double begun = clock_seconds() - headers->seconds;
    struct job job = {.spec = spec,
                      .headers = headers,
                      .compute = compute_with,
                      .watch = watch,
                      .report = report};
    memset(report, 0, sizeof *report);
    use_lane(&job, compute_with->device, compute_with->lane);
    int error = run_steps(&job, begun);
    release(&job);
    end_report(report, error, begun);
    return 0;
}

static void
headers_progress(void *context, double fraction)
{
    const struct pipeline_watch *watch = context;
    watch->progress(watch->context, "headers", fraction);
}

int
pipeline_run(const struct job_spec *spec, const struct pipeline_compute *compute_with,
             const struct pipeline_watch *watch, struct pipeline_report *report)
{
    struct headers headers;
    struct pipeline_watch copy = watch ? *watch : (struct pipeline_watch){0};
    const struct headers_watch reading = {
        .progress = copy.progress ? headers_progress : NULL, .context = &copy, .stop = copy.stop};
    double begun = clock_seconds();
    crash_point("worker_before_read");
    int error =
        headers_read(spec->inputs, spec->input_count, compute_with->threads, &reading, &headers);
    if (error == 0) {
        error = pipeline_run_headers(spec, &headers, compute_with, watch, report);
        headers_free(&headers);
        return error;
    }
    memset(report, 0, sizeof *report);
    end_report(report, error, begun);
    return 0;
}

void
pipeline_report_clear(struct pipeline_report *report)
{
    free(report->segments);
    free(report->results);
    feature_set_clear(&report->features);
    report->segments = NULL;
    report->results = NULL;
    report->segment_count = report->result_count = 0;
}

const char *
pipeline_verdict_name(enum proto_verdict verdict)
{
    switch (verdict) {
    case PROTO_VERDICT_DONE:
        return "DONE";
    case PROTO_VERDICT_RETRY:
        return "RETRY";
    case PROTO_VERDICT_REJECT:
        return "REJECT";
    case PROTO_VERDICT_STOPPED:
        break;
    }
    return "STOPPED";
}
