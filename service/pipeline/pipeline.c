/*
 * pipeline.c - see pipeline.h.
 *
 * A job is a sequence of steps that share struct job. Each step returns 0 or -errno with
 * report->error filled. verdict_of() converts the errno of the failed step to the verdict, so steps
 * need not. results_objects.c writes the results.
 */
#include "service/pipeline/pipeline.h"

#include "base/error.h"
#include "base/test_hook.h"
#include "base/text.h"
#include "config/config.h"
#include "service/common/clock.h"
#include "service/common/jobs/job_output.h"
#include "service/common/routing/routing_options.h"
#include "service/pipeline/contrast.h"
#include "service/pipeline/decode.h"
#include "service/pipeline/grid.h"
#include "service/pipeline/measure/measure_groups.h"
#include "service/pipeline/measure/measure_unit.h"
#include "service/pipeline/results/results.h"
#include "service/pipeline/segment/object_pick.h"
#include "service/pipeline/segment/segment.h"
#include "service/pipeline/volume.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct job {
    const struct job_spec *spec;
    const struct headers *headers;
    const struct pipeline_compute *compute;
    const struct pipeline_watch *watch;
    struct pipeline_report *report;

    struct conf_pipeline *settings;
    const struct conf_pipeline *pipeline; /* the same, with a segment per region of objects */
    struct output *output;
    struct geometry_series *series;
    const struct geometry_stack *stack; /* of the source */
    struct headers_digests *digests;    /* in progress; else NULL */
    struct grid grid;                   /* to compute on */
    struct kernels_lane *lane;          /* the lane that the job runs on */
    struct segmentation segmentation;
    void *voxels; /* of the lane */
    struct texture_groups groups;
    struct texture_result texture; /* without the features, which are in the report */
};

/* ------------------------------------------------------------------------------ preparing -- */

static int
read_settings(struct job *job)
{
    struct error error;
    int rc = conf_pipeline_from_text(job->spec->settings, &job->settings, &error);
    if (rc)
        return error_set(&job->report->error, rc, CODE_PIPELINE_INVALID,
                         "the pipeline of the job cannot be read: %s", error.message);
    job->pipeline = job->settings;
    return 0;
}

static int
open_output(struct job *job)
{
    const char *folder = job->spec->folder ? job->spec->folder : job->spec->output;
    int rc = output_open(folder, !job->spec->folder, &job->output);
    if (rc == -EBUSY)
        return error_set(&job->report->error, rc, CODE_OUTPUT_BUSY,
                         "another job is writing into %s", folder);
    if (rc) {
        char what[400];
        snprintf(what, sizeof what, "use the output folder %s", folder);
        return error_set_system(&job->report->error, rc, what);
    }
    return 0;
}

/* Stops the job if an input cannot be read: a result of a part of the series would look whole. */
static int
check_headers(struct job *job)
{
    const struct headers *headers = job->headers;
    for (size_t i = 0; i < headers->count; i++) {
        if (headers->rc[i]) {
            job->report->error = headers->errors[i];
            return headers->rc[i];
        }
    }
    if (headers->count == 0)
        return error_set(&job->report->error, -EINVAL, CODE_NO_INPUT,
                         "the job names no input file");
    return 0;
}

struct geometry_limits
pipeline_limits(const struct conf_pipeline *pipeline)
{
    struct geometry_limits limits = {
        .min_planes = pipeline->min_slices,
        .spacing_tolerance = pipeline->spacing_tolerance,
    };
    routing_options_set_limits(routing_options_of(pipeline), &limits);
    return limits;
}

/* Notes missing temporal positions: the stack can be complete although the series is not. */
static void
note_times(struct job *job)
{
    char text[80];
    const struct geometry_series *series = job->series;
    if (series->times >= series->times_announced)
        return;
    snprintf(text, sizeof text, "%d of %d temporal positions are there", series->times,
             series->times_announced);
    pipeline_note(job->report, text);
}

static void
note_mapping(struct job *job)
{
    const struct geometry_plane *plane = &job->stack->planes[0];
    const struct dicom_frame *frame =
        &job->headers->instances[plane->instance]->frames[plane->frame];
    char text[160];
    if (!geometry_has_own_mapping(frame))
        return;
    snprintf(text, sizeof text,
             "Real World Value Mapping (slope %.6g, intercept %.6g) is not applied; values are "
             "those of the rescale",
             frame->mapping_slope, frame->mapping_intercept);
    pipeline_note(job->report, text);
}

static int
choose_stack(struct job *job)
{
    struct pipeline_report *report = job->report;
    struct geometry_limits limits = pipeline_limits(job->pipeline);
    limits.allow_missing = true; /* decided when the series was inspected */
    memcpy(report->series_uid, job->headers->instances[0]->series_uid, sizeof report->series_uid);
    int rc = geometry_group(job->headers->instances, (int32_t)job->headers->count, &limits,
                            &job->series, &report->error);
    if (rc)
        return rc;
    for (int32_t i = 0; i < job->series->stack_count && !job->stack; i++) {
        if (strcmp(job->series->stacks[i].name, job->spec->stack) == 0)
            job->stack = &job->series->stacks[i];
    }
    if (!job->stack)
        return error_set(&report->error, -ENOENT, CODE_STACK_NOT_FOUND,
                         "the series has no stack named \"%s\" (it has %d)", job->spec->stack,
                         job->series->stack_count);
    if (!job->stack->accepted) {
        report->error = job->stack->error;
        return -EINVAL;
    }
    note_times(job);
    note_mapping(job);
    return 0;
}

/* Selects the grid. The report describes the volume of this grid. */
static int
choose_grid(struct job *job)
{
    struct pipeline_report *report = job->report;
    int rc =
        grid_make(job->pipeline, job->headers->instances, job->stack, &job->grid, &report->error);
    if (rc)
        return rc;
    const struct geometry_stack *stack = job->grid.stack;
    report->columns = stack->columns;
    report->rows = stack->rows;
    report->planes = stack->plane_count;
    report->voxels = (int64_t)report->columns * report->rows * report->planes;
    memcpy(report->spacing, stack->spacing, sizeof report->spacing);
    report->source.planes = job->stack->plane_count;
    memcpy(report->source.spacing, job->stack->spacing, sizeof report->source.spacing);
    memcpy(report->source.steps, job->grid.steps, sizeof report->source.steps);
    memcpy(report->source.straightened, job->grid.because, sizeof report->source.straightened);
    if (job->grid.straight)
        pipeline_note(report, job->grid.text);
    return 0;
}

/* ------------------------------------------------------------------- decoding, computing ---- */

static void
use_lane(struct job *job, const struct kernels_device *device, struct kernels_lane *lane)
{
    job->lane = lane;
    snprintf(job->report->backend, sizeof job->report->backend, "%s",
             kernels_device_backend(device));
}

/* Continues on the fallback device, which has more memory and is slower. */
static void
fall_back(struct job *job, const char *reason)
{
    char text[sizeof job->report->error.message + 32];
    use_lane(job, job->compute->fallback_device, job->compute->fallback_lane);
    snprintf(text, sizeof text, "ran on the %s: %s",
             strcmp(job->report->backend, "cpu") == 0 ? "CPU" : job->report->backend, reason);
    pipeline_note(job->report, text);
}

/* Begins a volume for the stack; job->voxels must be filled next. */
static int
reserve(struct job *job, const struct geometry_stack *stack, const struct kernels_demand *demand)
{
    struct error error; /* not used if the job falls back */
    const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
    int rc = kernels_volume_begin(job->lane, extent, stack->pixel, demand, &job->voxels, &error);
    if (rc == -ENOMEM && job->compute->fallback_lane && job->lane == job->compute->lane) {
        fall_back(job, error.message);
        rc = kernels_volume_begin(job->lane, extent, stack->pixel, demand, &job->voxels, &error);
    }
    if (rc)
        job->report->error = error;
    return rc;
}

/* Returns the smaller memory limit of worker and pipeline; 0: no limit. */
static int64_t
most_bytes(const struct job *job)
{
    const int64_t most = job->compute->most_bytes;
    const int64_t own = (int64_t)(job->pipeline->memory_mib * (1 << 20));
    return own > 0 && (most <= 0 || own < most) ? own : most;
}

/* Returns the part of it for a lane; a straightened stack needs some besides. */
static int64_t
most_of_lane(const struct job *job)
{
    const int64_t most = most_bytes(job), beside = grid_bytes(&job->grid, job->pipeline);
    if (most <= 0)
        return 0;
    return most > beside ? most - beside : 1;
}

/* Names the option with the limit, and the part of the grid. */
static void
tell_whose_memory(struct job *job)
{
    char *message = job->report->error.message;
    const size_t size = sizeof job->report->error.message;
    const int64_t beside = grid_bytes(&job->grid, job->pipeline);
    if (job->report->error.code != CODE_JOB_TOO_LARGE)
        return;
    if (job->grid.straight)
        snprintf(message + strlen(message), size - strlen(message),
                 " besides %.0f for the straightened copy (%s): a larger grid.mm needs less",
                 (double)beside / (1 << 20), job->grid.text);
    if (most_bytes(job) != job->compute->most_bytes)
        snprintf(message + strlen(message), size - strlen(message), " (memory_mib of pipeline %s)",
                 job->pipeline->name);
}

static void
set_up_segmentation(struct job *job)
{
    job->segmentation.pipeline = job->pipeline;
    job->segmentation.instances = job->grid.instances;
    job->segmentation.stack = job->grid.stack;
    job->segmentation.grid = &job->grid;
    job->segmentation.objects = job->spec->objects;
    job->segmentation.object_count = job->spec->object_count;
}

static int
choose_regions(struct job *job)
{
    set_up_segmentation(job);
    int rc = object_picks_make(&job->segmentation, &job->report->error);
    job->pipeline = job->segmentation.pipeline;
    return rc;
}

/* Begins the volume to compute on: everything that is known before its voxels are. */
static int
begin_volume(struct job *job)
{
    struct error *error = &job->report->error;
    struct kernels_demand demand = {.of = {NULL}, .most_bytes = most_of_lane(job)};
    set_up_segmentation(job);
    int rc = segmentation_prepare(&job->segmentation, &demand, error);
    texture_groups_demand(job->pipeline, &job->grid, job->segmentation.bytes.passing, &demand);
    if (rc == 0)
        rc = reserve(job, job->grid.stack, &demand);
    if (rc)
        tell_whose_memory(job);
    return rc ? rc : segmentation_begin(&job->segmentation, job->lane, error);
}

static int
decode_source(struct job *job)
{
    const struct decode_request request = {.instances = job->headers->instances,
                                           .stack = job->stack,
                                           .lane = job->lane,
                                           .voxels = job->voxels,
                                           .threads = job->compute->threads,
                                           .watch = job->watch};
    int rc = pipeline_enter(job->watch, "pixels");
    return rc ? rc : decode_stack(&request, &job->report->error);
}

/*
 * Resamples the source in the lane to memory of the grid. Segments that exist already, such as
 * drawn regions, take memory besides.
 */
static int
straighten(struct job *job)
{
    const struct kernels_demand demand = {.of = {[KERNELS_RESAMPLE] = &job->grid.demand},
                                          .most_bytes = most_of_lane(job),
                                          .beside_bytes = job->segmentation.bytes.lasting};
    const int64_t left = demand.most_bytes > 0 ? demand.most_bytes - demand.beside_bytes : 0;
    int rc = reserve(job, job->stack, &demand);
    if (rc == 0)
        rc = decode_source(job);
    if (rc == 0)
        rc = grid_resample(&job->grid, job->lane, job->voxels, left, &job->report->error);
    if (rc)
        tell_whose_memory(job);
    return rc;
}

/* Begins the straightened volume again, since its padding is known now. Drawn regions stay. */
static int
begin_straightened(struct job *job)
{
    segmentation_restart(&job->segmentation);
    int rc = begin_volume(job);
    if (rc)
        return rc;
    memcpy(job->voxels, job->grid.voxels,
           (size_t)job->report->voxels * image_pixel_size(job->grid.stack->pixel));
    return kernels_volume_ready(job->lane, 0, job->grid.stack->plane_count, &job->report->error);
}

/* Returns the memory limit for texture on its own grids, besides the job's lane. */
static int64_t
most_of_groups(const struct job *job)
{
    const int64_t most = most_of_lane(job), taken = kernels_lane_bytes(job->lane);
    if (most <= 0)
        return 0;
    return most > taken ? most - taken : 1;
}

static int
prepare_groups_on(struct job *job, struct kernels_device *device, struct error *error)
{
    job->groups = (struct texture_groups){.pipeline = job->pipeline,
                                          .grid = &job->grid,
                                          .watch = job->watch,
                                          .valuing = job->compute->valuing};
    return texture_groups_prepare(&job->groups, device, most_of_groups(job), error);
}

/* Prepares texture. Groups that do not fit into the memory of a GPU run on the CPU. */
static int
prepare_groups(struct job *job)
{
    const struct pipeline_compute *compute = job->compute;
    struct error error; /* not used if the CPU runs it */
    const bool is_fallback = job->lane == compute->fallback_lane;
    int rc =
        prepare_groups_on(job, is_fallback ? compute->fallback_device : compute->device, &error);
    if (rc == -ENOMEM && compute->fallback_device && !is_fallback) {
        texture_groups_release(&job->groups);
        rc = prepare_groups_on(job, compute->fallback_device, &error);
    }
    if (rc) {
        job->report->error = error;
        tell_whose_memory(job);
    }
    for (size_t g = 0; rc == 0 && g < job->pipeline->texture_count; g++)
        if (job->groups.grids[g].text[0] && !strstr(job->report->note, job->groups.grids[g].text))
            pipeline_note(job->report, job->groups.grids[g].text);
    return rc;
}

/*
 * Decodes the stack. A straightened volume begins twice, so that errors are found before decoding.
 */
static int
decode(struct job *job)
{
    int rc = begin_volume(job);
    if (rc == 0)
        rc = prepare_groups(job);
    if (rc || !job->grid.straight)
        return rc ? rc : decode_source(job);
    rc = straighten(job);
    return rc ? rc : begin_straightened(job);
}

static int
check_contrast(struct job *job)
{
    int32_t value;
    struct error *error = &job->report->error;
    struct image_range padding = volume_common_padding(job->grid.instances, job->grid.stack);
    switch (
        contrast_find(job->voxels, job->grid.stack->pixel, job->report->voxels, padding, &value)) {
    case CONTRAST_NO_VALUE:
        return error_set(error, -EINVAL, CODE_CONSTANT_PIXELS,
                         "every pixel of the series is padding");
    case CONTRAST_ONE_VALUE:
        return error_set(error, -EINVAL, CODE_CONSTANT_PIXELS,
                         "every pixel of the series has the stored value %d", value);
    case CONTRAST_SOME:
        break;
    }
    return 0;
}

/* Returns the number of voxels in at least one segment that is not hidden. */
static int64_t
count_union(const struct segmentation *found, int64_t words)
{
    const struct conf_pipeline *pipeline = found->pipeline;
    const struct image_mask *only = NULL;
    int64_t shown = 0, voxels = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if (!pipeline->segments[i].hidden) {
            only = &found->masks[i];
            shown++;
        }
    if (shown == 1)
        return only->voxels;
    for (int64_t w = 0; w < words; w++) {
        uint64_t any = 0;
        for (size_t i = 0; i < pipeline->segment_count; i++)
            if (!pipeline->segments[i].hidden)
                any |= found->masks[i].bits[w];
        voxels += __builtin_popcountll(any);
    }
    return voxels;
}

/* Notes the number of segments that are empty by `optional` or `each`, and names the first. */
static void
note_absent(struct pipeline_report *report)
{
    char names[120] = "", text[200];
    int32_t count = 0;
    for (int32_t i = 0; i < report->segment_count; i++)
        if (report->segments[i].absent[0])
            segment_append(names, sizeof names, "%s%.60s", count++ > 0 ? ", " : "",
                           report->segments[i].label);
    if (count == 0)
        return;
    text_utf8_mend_end(names);
    snprintf(text, sizeof text,
             "empty segments (%" PRId32 " of %" PRId32 "; job.json has the reasons): %s", count,
             report->segment_count, names);
    pipeline_note(report, text);
}

/* Reports the segments with measurements. */
static int
report_segments(struct job *job)
{
    struct pipeline_report *report = job->report;
    const struct segmentation *found = &job->segmentation;
    const double *spacing = job->grid.stack->spacing;
    size_t count = job->pipeline->segment_count;
    report->segments = calloc(count + 1, sizeof *report->segments);
    if (!report->segments)
        return error_set_system(&report->error, -ENOMEM, "count the voxels");
    report->segment_count = (int32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct pipeline_segment *segment = &report->segments[i];
        const struct segment_method *method = segment_methods[job->pipeline->segments[i].method];
        snprintf(segment->label, sizeof segment->label, "%s", job->pipeline->segments[i].label);
        segment->number = conf_segment_number(job->pipeline, i);
        segment->method = conf_method_names[job->pipeline->segments[i].method];
        segment->voxels = found->masks[i].voxels;
        segment->millilitres =
            (double)segment->voxels * spacing[0] * spacing[1] * spacing[2] / 1000;
        if (method->report)
            method->report(found, i, segment);
    }
    note_absent(report);
    for (size_t i = 0; i < count; i++) {
        char text[sizeof report->note];
        if (segment_describe_measured(&report->segments[i], text, sizeof text))
            pipeline_note(report, text);
        if (report->segments[i].told[0])
            pipeline_note(report, report->segments[i].told);
    }
    report->segmented_voxels =
        count_union(found, found->masks[0].words_per_row * report->rows * report->planes);
    return 0;
}

/* Returns the larger of slice thickness and slice distance; 0: not known. */
static double
slice_mm(const struct job *job)
{
    double most = 0;
    for (int32_t z = 0; z < job->stack->plane_count; z++) {
        const struct geometry_plane *plane = &job->stack->planes[z];
        const struct dicom_frame *frame =
            &job->headers->instances[plane->instance]->frames[plane->frame];
        most = fmax(most, frame->slice_thickness);
        if (z > 0 && job->stack->has_geometry)
            most = fmax(most, plane->position - plane[-1].position);
    }
    return most;
}

static bool
names_contrast(const struct job *job)
{
    bool named = false;
    for (int32_t z = 0; z < job->stack->plane_count; z++)
        named |= job->headers->instances[job->stack->planes[z].instance]->contrast;
    return named;
}

/* Tables of the volume, one entry per slice. */
struct slice_tables {
    struct image_rescale *rescale;
    struct image_range *padding;
    double *positions;
    struct expect_window *windows; /* NULL: the edges of the volume */
};

static void
free_slice_tables(struct slice_tables *tables)
{
    free(tables->rescale);
    free(tables->padding);
    free(tables->positions);
    free(tables->windows);
}

static int
fill_slice_tables(struct job *job, struct slice_tables *tables)
{
    struct pipeline_report *report = job->report;
    const struct geometry_stack *stack = job->grid.stack;
    const size_t planes = (size_t)stack->plane_count;
    *tables = (struct slice_tables){.rescale = calloc(planes, sizeof *tables->rescale),
                                    .padding = calloc(planes, sizeof *tables->padding),
                                    .positions = calloc(planes, sizeof *tables->positions)};
    if (!tables->rescale || !tables->padding || !tables->positions)
        return error_set_system(&report->error, -ENOMEM, "measure the segments");
    volume_tables(job->grid.instances, stack, tables->rescale, tables->padding);
    for (size_t z = 0; z < planes; z++)
        tables->positions[z] = stack->planes[z].position - stack->planes[0].position;
    return job->grid.straight ? grid_find_windows(&job->grid, &tables->windows, &report->error) : 0;
}

/* Measures the segments and checks them. `measures`: one per segment. */
static int
check_segments(struct job *job, struct segment_measures *measures)
{
    struct pipeline_report *report = job->report;
    const struct geometry_stack *stack = job->grid.stack;
    const bool is_known = strcmp(report->unit, "1") != 0;
    char words[FEATURE_TERM + 1];
    struct slice_tables tables;
    int rc = fill_slice_tables(job, &tables);
    struct expect_frame frame = {.positions = tables.positions};
    memcpy(frame.origin, stack->origin, sizeof frame.origin);
    memcpy(frame.axes, stack->axes, sizeof frame.axes);
    snprintf(words, sizeof words, "%s%s", is_known ? " " : "", value_unit_spoken(report->unit));
    const struct expect_volume volume = {
        .extent = {stack->columns, stack->rows, stack->plane_count},
        .spacing = {stack->spacing[0], stack->spacing[1], stack->spacing[2]},
        .voxels = job->voxels,
        .pixel = stack->pixel,
        .rescale = tables.rescale,
        .padding = tables.padding,
        .windows = tables.windows,
        .unit = words,
        .ucum = is_known ? report->unit : "",
        .slice_mm = slice_mm(job),
        .contrast = names_contrast(job),
        .threads = job->compute->threads,
        .frame = stack->has_geometry ? &frame : NULL,
    };
    if (rc == 0)
        rc = expect_check(job->pipeline, &volume, job->segmentation.masks, measures,
                          &report->breaches, &report->error);
    free_slice_tables(&tables);
    return rc;
}

static int
measure_segments(struct job *job)
{
    struct pipeline_report *report = job->report;
    const size_t count = (size_t)report->segment_count;
    struct segment_measures *measures = calloc(count + 1, sizeof *measures);
    if (!measures)
        return error_set_system(&report->error, -ENOMEM, "measure the segments");
    snprintf(report->unit, sizeof report->unit, "%s",
             value_unit_of(job->grid.instances, job->grid.stack));
    int rc = check_segments(job, measures);
    for (size_t i = 0; rc == 0 && i < count; i++)
        report->segments[i].measures = measures[i];
    free(measures);
    return rc;
}

/* Reports the broken expectations. */
static void
report_breaches(struct job *job)
{
    struct pipeline_report *report = job->report;
    char text[sizeof report->error.message];
    if (report->breaches.count == 0)
        return;
    expect_tell(&report->breaches, text, sizeof text);
    report->review = job->pipeline->review == CONF_HOLD || report->breaches.unvalidated;
    error_set(&report->error, 0, CODE_EXPECTATION_BROKEN, "%s", text);
}

static int
compute(struct job *job)
{
    struct error *error = &job->report->error;
    int rc = pipeline_enter(job->watch, "compute");
    if (rc == 0)
        rc = check_contrast(job);
    if (rc == 0)
        rc = segmentation_run(&job->segmentation, job->lane, job->voxels, error);
    for (size_t i = 0; rc == 0 && job->grid.straight && i < job->pipeline->segment_count; i++)
        grid_cut_padding(&job->grid, job->voxels, &job->segmentation.masks[i]);
    if (rc == 0)
        rc = report_segments(job);
    if (rc == 0)
        rc = measure_segments(job);
    if (rc == 0)
        report_breaches(job);
    return rc;
}

/* -------------------------------------------------------------------------------- texture -- */

static int
measure_texture(struct job *job)
{
    struct texture_result *result = &job->texture;
    if (job->pipeline->texture_count == 0)
        return 0;
    int rc = pipeline_enter(job->watch, "texture");
    if (rc == 0)
        rc = texture_groups_measure(&job->groups, job->lane, job->voxels, job->segmentation.masks,
                                    most_of_groups(job), result, &job->report->error);
    if (rc)
        tell_whose_memory(job);
    job->report->features = result->features;
    result->features = (struct feature_set){0};
    if (result->note[0])
        pipeline_note(job->report, result->note);
    return rc;
}

/* ------------------------------------------------------------------- writing, publishing ---- */

static int64_t
peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : -1;
}

static int
publish(struct job *job, const struct results_request *request, double begun)
{
    struct pipeline_report *report = job->report;
    double start = clock_seconds();
    report->verdict = PROTO_VERDICT_DONE;
    report->peak_bytes = peak_bytes();
    report->total_seconds = start - begun;
    int error = pipeline_stopped(job->watch) ? -ECANCELED : results_publish(request, report);
    report->write_seconds += clock_seconds() - start;
    if (error == 0)
        crash_point("worker_after_rename");
    return error;
}

static int
write_results(struct job *job, double begun)
{
    const struct results_request request = {
        .spec = job->spec,
        .headers = job->headers,
        .pipeline = job->pipeline,
        .stack = job->stack,
        .grid = &job->grid,
        .segmentation = &job->segmentation,
        .lane = job->lane,
        .voxels = job->voxels,
        .maps = job->texture.maps,
        .map_count = job->texture.map_count,
        .threads = job->compute->threads,
        .watch = job->watch,
        .output = job->output,
    };
    int error = results_write(&request, job->report);
    return error ? error : publish(job, &request, begun);
}

/* ----------------------------------------------------------------------------- the whole ---- */

/*
 * Returns whether another attempt may succeed: the machine lacked a resource, or another process
 * uses its output.
 */
static bool
is_transient(int error)
{
    static const int passing[] = {ENOMEM, ENOSPC,  EDQUOT, EFBIG,     EIO,    EBUSY,
                                  EAGAIN, EINTR,   EMFILE, ENFILE,    EACCES, EPERM,
                                  EROFS,  ENOTDIR, ESTALE, ETIMEDOUT, ENODEV};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        if (error == -passing[i])
            return true;
    return false;
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
begin_digests(struct job *job)
{
    job->digests = headers_digest_begin(job->headers, job->stack, job->compute->threads);
    return job->digests
               ? 0
               : error_set_system(&job->report->error, -ENOMEM, "list the files of the stack");
}

static int
end_digests(struct job *job)
{
    struct headers_digests *digests = job->digests;
    job->digests = NULL;
    return headers_digest_end(digests, false, &job->report->error);
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
        error = choose_grid(job);
    if (error == 0)
        error = choose_regions(job);
    if (error == 0)
        error = begin_digests(job);
    if (error == 0)
        error = decode(job);
    double decoded = clock_seconds();
    report->read_seconds = decoded - begun;
    if (error)
        return error;
    error = compute(job);
    if (error == 0)
        error = measure_texture(job);
    report->compute_seconds = clock_seconds() - decoded;
    crash_point("worker_after_compute");
    if (error == 0)
        error = end_digests(job);
    return error ? error : write_results(job, begun);
}

static void
release(struct job *job)
{
    struct error ignored;
    headers_digest_end(job->digests, true, &ignored);
    output_close(job->output);
    texture_groups_release(&job->groups);
    segmentation_release(&job->segmentation); /* owns the pipeline, if segments are of objects */
    grid_release(&job->grid);
    texture_result_clear(&job->texture);
    if (job->series)
        geometry_series_free(job->series);
    if (job->settings)
        conf_pipeline_free(job->settings);
}

static void
end_report(struct pipeline_report *report, int rc, double begun)
{
    report->verdict = verdict_of(rc);
    if (rc) {
        report->empty = report->review = false;
        report->result_count = 0;
        feature_set_clear(&report->features);
        if (rc == -ECANCELED)
            error_set(&report->error, rc, CODE_STOPPED, "the job was stopped");
        else
            error_normalise(&report->error, rc);
    }
    report->device_lost = report->error.code == CODE_COMPUTE_DEVICE_LOST;
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
    if (spec->note && spec->note[0])
        pipeline_note(report, spec->note);
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
