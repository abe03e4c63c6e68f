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
#include "service/common/clock.h"
#include "service/common/jobs/job_output.h"
#include "service/common/routing/routing_options.h"
#include "service/pipeline/decode.h"
#include "service/pipeline/flat_image.h"
#include "service/pipeline/grid.h"
#include "service/pipeline/image_file.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/measure/measure_changes.h"
#include "service/pipeline/measure/measure_groups.h"
#include "service/pipeline/measure/measure_quantities.h"
#include "service/pipeline/results/results.h"
#include "service/pipeline/segment/correction.h"
#include "service/pipeline/segment/object_pick.h"
#include "service/pipeline/segment/segment.h"
#include "service/pipeline/segment/segment_coarse.h"
#include "service/pipeline/volume.h"
#include "service/pipeline/volume_source.h"

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
    const struct conf_pipeline *pipeline; /* the same, with corrected segments, and a segment per region of objects */
    struct correction correction;
    struct output *output;
    struct volume_source source;
    struct headers_digests *digests; /* in progress; else NULL */
    struct kernels_lane *lane;       /* the lane that the job runs on */
    struct segmentation segmentation;
    struct coarse_volume coarse;
    void *voxels; /* of the lane */
    struct texture_groups groups;
    struct texture_result texture; /* without the features, which are in the report */
};

/* ------------------------------------------------------------------------------ preparing -- */

/* Reads the settings and opens the output folder. */
static int
open_job(struct job *job)
{
    const char *folder = job->spec->folder ? job->spec->folder : job->spec->output;
    struct error *error = &job->report->error, why;
    int rc = conf_pipeline_from_text(job->spec->settings, &job->settings, &why);
    if (rc)
        return error_set(error, rc, CODE_PIPELINE_INVALID, "the pipeline of the job cannot be read: %s", why.message);
    job->pipeline = job->settings;
    rc = output_open(folder, !job->spec->folder, &job->output);
    if (rc == -EBUSY)
        return error_set(error, rc, CODE_OUTPUT_BUSY, "another job is writing into %s", folder);
    if (rc) {
        char what[400];
        snprintf(what, sizeof what, "use the output folder %s", folder);
        return error_set_system(error, rc, what);
    }
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

/* Notes what a reader of the results should know of the stack. */
static void
note_stack(struct job *job)
{
    const struct geometry_series *series = job->source.series;
    const struct geometry_plane *plane = &job->source.stack->planes[0];
    const struct dicom_frame *frame = &job->headers->instances[plane->instance]->frames[plane->frame];
    const struct suv_conversion *suv = &job->source.suv.is;
    char text[160];
    if (suv->given) {
        snprintf(text, sizeof text, "values in %s: factor %.6g", suv_unit_rows[suv->found.unit].spoken,
                 suv->found.lowest);
        pipeline_note(job->report, text);
    }
    /* The stack can be complete although the series is not. */
    if (series->times < series->times_announced) {
        snprintf(text, sizeof text, "%d of %d temporal positions are there", series->times, series->times_announced);
        pipeline_note(job->report, text);
    }
    if (geometry_has_own_mapping(frame)) {
        snprintf(text, sizeof text,
                 "Real World Value Mapping (slope %.6g, intercept %.6g) is not applied; values are "
                 "those of the rescale",
                 frame->mapping_slope, frame->mapping_intercept);
        pipeline_note(job->report, text);
    }
}

/* Reports the scanner and the protocol of the stack in the files. */
static void
describe_scan(const struct job *job, struct pipeline_source *source)
{
    const struct geometry_stack *stack = job->source.stack;
    struct dicom_instance *const *instances = job->headers->instances;
    const struct geometry_plane *plane = &stack->planes[0];
    const struct dicom_instance *instance = instances[plane->instance];
    const struct dicom_frame *first = &instance->frames[plane->frame];
    char *unit;
    memcpy(source->manufacturer, instance->about.manufacturer, sizeof source->manufacturer);
    memcpy(source->model, instance->about.model, sizeof source->model);
    memcpy(source->kernel, first->kernel, sizeof source->kernel);
    source->kvp = strtod(first->energy, &unit); /* "120 kV", perhaps as others: keys.def */
    if (strncmp(unit, " kV", 3) != 0)
        source->kvp = 0;
    source->thickness[0] = source->thickness[1] = first->slice_thickness;
    for (int32_t i = 1; i < stack->plane_count; i++) {
        plane = &stack->planes[i];
        const struct dicom_frame *frame = &instances[plane->instance]->frames[plane->frame];
        if (strcmp(frame->kernel, first->kernel) != 0)
            source->kernel[0] = '\0';
        if (strcmp(frame->energy, first->energy) != 0)
            source->kvp = 0;
        source->thickness[0] = fmin(source->thickness[0], frame->slice_thickness);
        source->thickness[1] = fmax(source->thickness[1], frame->slice_thickness);
    }
    if (source->thickness[0] == 0) /* one has none */
        source->thickness[1] = 0;
}

/* Reports the values and the spacing of a 2-D image. It has no slice distance. */
static void
describe_flat(struct job *job, struct pipeline_source *source)
{
    const struct geometry_stack *stack = job->source.stack;
    const struct geometry_plane *plane = &stack->planes[0];
    const struct dicom_instance *instance = job->headers->instances[plane->instance];
    job->report->spacing[2] = 0;
    source->flat = true;
    flat_image_values(instance, &instance->frames[plane->frame], job->pipeline->colour, source->values);
    memcpy(source->calibrated, stack->calibrated, sizeof source->calibrated);
    source->spacing_source = dicom_spacing_word(stack->spacing_source);
    snprintf(source->intensity, sizeof source->intensity, "%s%s", instance->intensity_relationship,
             instance->intensity_sign > 0   ? " 1"
             : instance->intensity_sign < 0 ? " -1"
                                            : "");
}

/* Selects the stack and the grid. The report describes the volume of this grid. */
/* Leaves only NIfTI of the results, and makes maps of features and responses of filters NIfTI. */
static void
leave_nifti(struct conf_pipeline *pipeline)
{
    pipeline->results &= CONF_RESULT_NIFTI;
    for (size_t g = 0; g < pipeline->texture_count; g++) {
        struct texture_options *texture = &pipeline->texture[g];
        texture->response = texture->response ? 1u << TEXTURE_RESPONSE_NIFTI : 0;
        if (texture->voxelwise)
            texture->voxelwise->files = 1u << TEXTURE_RESPONSE_NIFTI;
    }
}

static int
choose_source(struct job *job)
{
    struct pipeline_report *report = job->report;
    const struct headers *headers = job->headers;
    const int rc = volume_source_choose(job->pipeline, headers, job->spec->stack, &job->source, &report->error);
    if (headers->count > 0 && headers->instances[0])
        memcpy(report->series_uid, headers->instances[0]->series_uid, sizeof report->series_uid);
    if (rc)
        return rc;
    job->headers = job->source.headers;
    if (image_file_is(job->headers->instances[0])) /* no DICOM object can refer to it */
        leave_nifti(job->settings);
    report->suv = job->source.suv.is;
    note_stack(job);
    const struct geometry_stack *stack = job->source.grid.stack;
    report->columns = stack->columns;
    report->rows = stack->rows;
    report->planes = stack->plane_count;
    report->voxels = (int64_t)report->columns * report->rows * report->planes;
    report->source.planes = job->source.stack->plane_count;
    if (geometry_is_in_mm(stack)) {
        memcpy(report->spacing, stack->spacing, sizeof report->spacing);
        memcpy(report->source.spacing, job->source.stack->spacing, sizeof report->source.spacing);
    }
    if (stack->flat)
        describe_flat(job, &report->source);
    memcpy(report->source.steps, job->source.grid.steps, sizeof report->source.steps);
    memcpy(report->source.straightened, job->source.grid.because, sizeof report->source.straightened);
    describe_scan(job, &report->source);
    if (job->source.grid.straight)
        pipeline_note(report, job->source.grid.text);
    const char *path = job->headers->instances[job->source.stack->planes[0].instance]->path;
    const int unsuitable = flat_image_check(job->pipeline, stack, path, &report->error);
    return unsuitable ? unsuitable : quantities_check(job->pipeline, &job->source.grid, &report->error);
}

/* Takes the segments that a person corrected from the last object. */
static int
correct_segments(struct job *job)
{
    char text[sizeof job->correction.labels + 32];
    const struct job_spec *spec = job->spec;
    int rc =
        correction_make(&job->correction, job->settings, spec->objects[spec->object_count - 1], &job->report->error);
    if (rc)
        return rc;
    job->pipeline = &job->correction.pipeline;
    snprintf(text, sizeof text, "corrected by a person: %s", job->correction.labels);
    pipeline_note(job->report, text);
    return 0;
}

/* ------------------------------------------------------------------- decoding, computing ---- */

static void
use_lane(struct job *job, const struct kernels_device *device, struct kernels_lane *lane)
{
    job->lane = lane;
    snprintf(job->report->backend, sizeof job->report->backend, "%s", kernels_device_backend(device));
}

/*
 * Begins a volume for the stack; job->voxels must be filled next. The fallback device has more
 * memory and is slower.
 */
static int
reserve(struct job *job, const struct geometry_stack *stack, const struct kernels_demand *demand)
{
    struct error error; /* not used if the job falls back */
    const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
    int rc = kernels_volume_begin(job->lane, extent, stack->pixel, demand, &job->voxels, &error);
    if (rc == -ENOMEM && job->compute->fallback_lane && job->lane == job->compute->lane) {
        char text[sizeof error.message + 32];
        use_lane(job, job->compute->fallback_device, job->compute->fallback_lane);
        snprintf(text, sizeof text, "ran on the %s: %s",
                 strcmp(job->report->backend, "cpu") == 0 ? "CPU" : job->report->backend, error.message);
        pipeline_note(job->report, text);
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
    const int64_t most = most_bytes(job), beside = grid_bytes(&job->source.grid, job->pipeline);
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
    const int64_t beside = grid_bytes(&job->source.grid, job->pipeline);
    if (job->report->error.code != CODE_JOB_TOO_LARGE)
        return;
    if (job->source.grid.straight)
        snprintf(message + strlen(message), size - strlen(message),
                 " besides %.0f for the straightened copy (%s): a larger grid.mm needs less",
                 (double)beside / (1 << 20), job->source.grid.text);
    if (most_bytes(job) != job->compute->most_bytes)
        snprintf(message + strlen(message), size - strlen(message), " (memory_mib of pipeline %s)",
                 job->pipeline->name);
}

static void
set_up_segmentation(struct job *job)
{
    job->segmentation.pipeline = job->pipeline;
    job->segmentation.coarse = coarse_volume_is_wanted(job->pipeline) ? &job->coarse : NULL;
    job->segmentation.instances = job->source.grid.instances;
    job->segmentation.stack = job->source.grid.stack;
    job->segmentation.grid = &job->source.grid;
    job->segmentation.objects = job->spec->objects;
    job->segmentation.object_count = job->spec->object_count;
    job->segmentation.corrected = job->spec->corrects != 0;
    job->segmentation.program_masks = job->spec->masks;
    job->segmentation.program_mask_count = job->spec->mask_count;
}

/* Returns whether the lane counts the values of segments for their means and limits: a GPU, of one slice. */
static bool
lane_counts_values(const struct kernels_lane *lane, const struct geometry_stack *stack)
{
    return stack->plane_count == 1 && kernels_lane_beside(lane);
}

/* Begins the volume to compute on: everything that is known before its voxels are. */
static int
begin_volume(struct job *job)
{
    struct error *error = &job->report->error;
    struct kernels_demand demand = {.of = {NULL}, .most_bytes = most_of_lane(job)};
    set_up_segmentation(job);
    int rc = segmentation_prepare(&job->segmentation, &demand, error);
    struct segment_bytes *bytes = &job->segmentation.bytes;
    /* Frames are decoded before segmentation, and results are written when it has returned its memory. */
    const int64_t decoded = decode_bytes(job->headers->instances, job->source.stack, job->compute->threads);
    const int64_t written =
        results_bytes(job->pipeline, job->spec->slices, job->source.grid.stack, job->compute->threads);
    const int64_t most = decoded > written ? decoded : written;
    if (most > bytes->passing) {
        demand.beside_bytes += most - bytes->passing;
        bytes->passing = most;
    }
    texture_groups_demand(job->pipeline, &job->source.grid, job->segmentation.bytes.passing, &demand);
    quantities_demand(job->pipeline, &job->source.grid, &demand);
    texture_groups_demand_ahead(job->compute->device, job->lane, &job->source.grid, &demand);
    if (lane_counts_values(job->lane, job->source.grid.stack))
        demand.of[KERNELS_HISTOGRAM] = demand.of[KERNELS_REGION] = &kernels_asked;
    if (rc == 0)
        rc = reserve(job, job->source.grid.stack, &demand);
    if (rc)
        tell_whose_memory(job);
    if (rc == 0)
        rc = texture_groups_begin_ahead(job->pipeline, &job->source.grid, &demand, job->lane, error);
    return rc ? rc : segmentation_begin(&job->segmentation, job->lane, error);
}

static int
decode_source(struct job *job)
{
    const struct decode_request request = {.instances = job->headers->instances,
                                           .stack = job->source.stack,
                                           .lane = job->lane,
                                           .voxels = job->voxels,
                                           .reals = job->source.grid.reals,
                                           .channel = (enum dicom_channel)job->pipeline->colour,
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
    const struct kernels_demand demand = {.of = {[KERNELS_RESAMPLE] = &job->source.grid.demand},
                                          .most_bytes = most_of_lane(job),
                                          .beside_bytes = job->segmentation.bytes.lasting};
    const int64_t left = demand.most_bytes > 0 ? demand.most_bytes - demand.beside_bytes : 0;
    int rc = reserve(job, job->source.stack, &demand);
    if (rc == 0)
        rc = decode_source(job);
    if (rc == 0)
        rc = grid_resample(&job->source.grid, job->lane, job->voxels, left, &job->report->error);
    if (rc)
        tell_whose_memory(job);
    return rc;
}

/* Returns the memory limit for another lane, besides those that the job has. */
static int64_t
most_of_other(const struct job *job)
{
    const int64_t most = most_of_lane(job);
    const int64_t taken =
        kernels_lane_bytes(job->lane) + (job->coarse.voxels ? kernels_lane_bytes(job->coarse.lane) : 0);
    if (most <= 0)
        return 0;
    return most > taken ? most - taken : 1;
}

/* Prepares the coarse grid. If it does not fit into the memory of a GPU, it is on the CPU. */
static int
prepare_coarse(struct job *job)
{
    const struct pipeline_compute *compute = job->compute;
    struct error *error = &job->report->error;
    const bool is_fallback = job->lane == compute->fallback_lane;
    if (!job->segmentation.coarse)
        return 0;
    int rc = coarse_volume_prepare(&job->coarse, &job->segmentation,
                                   is_fallback ? compute->fallback_coarse_lane : compute->coarse_lane,
                                   most_of_other(job), error);
    if (rc == -ENOMEM && compute->fallback_lane && !is_fallback) {
        coarse_volume_release(&job->coarse);
        rc = coarse_volume_prepare(&job->coarse, &job->segmentation, compute->fallback_coarse_lane, most_of_other(job),
                                   error);
    }
    if (rc)
        tell_whose_memory(job);
    return rc;
}

/* `other`: a lane of the device, which serves texture unless the job has a coarse volume. Only memory of a GPU is worth keeping
 * for the next job. */
static int
prepare_groups_on(struct job *job, struct kernels_device *device, struct kernels_lane *other, struct error *error)
{
    const bool borrows = !job->segmentation.coarse && other && kernels_lane_beside(other);
    job->groups = (struct texture_groups){.pipeline = job->pipeline,
                                          .grid = &job->source.grid,
                                          .watch = job->watch,
                                          .valuing = job->compute->valuing,
                                          .lane = borrows ? other : NULL,
                                          .borrows_lane = borrows};
    return texture_groups_prepare(&job->groups, device, most_of_other(job), error);
}

/* Prepares texture. Groups that do not fit into the memory of a GPU run on the CPU. */
static int
prepare_groups(struct job *job)
{
    const struct pipeline_compute *compute = job->compute;
    struct error error; /* not used if the CPU runs it */
    const bool is_fallback = job->lane == compute->fallback_lane;
    int rc = prepare_groups_on(job, is_fallback ? compute->fallback_device : compute->device,
                               is_fallback ? compute->fallback_coarse_lane : compute->coarse_lane, &error);
    if (rc == -ENOMEM && compute->fallback_device && !is_fallback) {
        texture_groups_release(&job->groups);
        rc = prepare_groups_on(job, compute->fallback_device, compute->fallback_coarse_lane, &error);
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
 * Decodes the stack. A straightened volume begins twice: first, so that errors are found before
 * decoding, and then, since its padding is known. Drawn regions stay.
 */
static int
decode(struct job *job)
{
    int rc = begin_volume(job);
    if (rc == 0)
        rc = prepare_coarse(job);
    if (rc == 0)
        rc = prepare_groups(job);
    if (rc || !job->source.grid.straight)
        return rc ? rc : decode_source(job);
    rc = straighten(job);
    if (rc)
        return rc;
    segmentation_restart(&job->segmentation);
    rc = begin_volume(job);
    if (rc)
        return rc;
    memcpy(job->voxels, job->source.grid.voxels,
           (size_t)job->report->voxels * image_pixel_size(job->source.grid.stack->pixel));
    return kernels_volume_ready(job->lane, 0, job->source.grid.stack->plane_count, &job->report->error);
}

static int
check_contrast(struct job *job)
{
    int32_t value;
    struct error *error = &job->report->error;
    struct image_range padding = volume_common_padding(job->source.grid.instances, job->source.grid.stack);
    switch (volume_find_contrast(job->voxels, job->source.grid.stack->pixel, job->report->voxels, padding, &value)) {
    case CONTRAST_NO_VALUE:
        return error_set(error, -EINVAL, CODE_CONSTANT_PIXELS, "every pixel of the series is padding");
    case CONTRAST_ONE_VALUE:
        return error_set(error, -EINVAL, CODE_CONSTANT_PIXELS, "every pixel of the series has the stored value %d",
                         value);
    case CONTRAST_SOME:
        break;
    }
    return 0;
}

/* Returns the number of voxels in at least one segment that is not hidden. */
static int64_t
count_union(const struct segmentation *found, int64_t words)
{
    enum { BLOCK = 512 }; /* words */

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
    for (int64_t first = 0; first < words; first += BLOCK) {
        const int64_t count = words - first < BLOCK ? words - first : BLOCK;
        uint64_t any[BLOCK] = {0};
        for (size_t i = 0; i < pipeline->segment_count; i++)
            for (int64_t w = 0; w < count && !pipeline->segments[i].hidden; w++)
                any[w] |= found->masks[i].bits[first + w];
        voxels += mask_count(any, count);
    }
    return voxels;
}

/*
 * Reports the segments with measurements. Notes the number of segments that are empty by `optional`
 * or `each`, and names the first.
 */
static int
report_segments(struct job *job)
{
    char absent[120] = "", text[sizeof job->report->note];
    int32_t absents = 0;
    struct pipeline_report *report = job->report;
    const struct segmentation *found = &job->segmentation;
    const double *spacing = job->source.grid.stack->spacing;
    const bool is_flat = job->source.grid.stack->flat;
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
        segment->millilitres = is_flat ? NAN : (double)segment->voxels * spacing[0] * spacing[1] * spacing[2] / 1000;
        if (method->report)
            method->report(segment_finder(found, i), i, segment);
        if (segment->absent[0])
            segment_append(absent, sizeof absent, "%s%.60s", absents++ > 0 ? ", " : "", segment->label);
    }
    if (absents > 0) {
        text_utf8_mend_end(absent);
        snprintf(text, sizeof text, "empty segments (%" PRId32 " of %" PRId32 "; job.json has the reasons): %s",
                 absents, report->segment_count, absent);
        pipeline_note(report, text);
    }
    for (size_t i = 0; i < count; i++) {
        if (segment_describe_measured(&report->segments[i], text, sizeof text))
            pipeline_note(report, text);
        if (report->segments[i].told[0])
            pipeline_note(report, report->segments[i].told);
    }
    report->segmented_voxels = count_union(found, (int64_t)segment_mask_words(found->stack));
    return 0;
}

/* Finds the larger of slice thickness and slice distance (0: not known), and a contrast agent. */
static void
describe_slices(const struct job *job, struct expect_volume *volume)
{
    for (int32_t z = 0; z < job->source.stack->plane_count; z++) {
        const struct geometry_plane *plane = &job->source.stack->planes[z];
        const struct dicom_instance *instance = job->headers->instances[plane->instance];
        volume->slice_mm = fmax(volume->slice_mm, instance->frames[plane->frame].slice_thickness);
        if (z > 0 && job->source.stack->has_geometry)
            volume->slice_mm = fmax(volume->slice_mm, plane->position - plane[-1].position);
        volume->contrast |= instance->contrast;
    }
}

/* A volume to check, and its tables of one entry per slice. */
struct checked_volume {
    struct expect_volume volume;
    struct expect_frame frame;
    char words[FEATURE_TERM + 1];
    struct image_rescale *rescale;
    struct image_range *padding;
    double *positions;
    struct expect_window *windows; /* NULL: the edges of the volume */
};

static void
checked_release(struct checked_volume *checked)
{
    free(checked->rescale);
    free(checked->padding);
    free(checked->positions);
    free(checked->windows);
}

/* Describes the volume of a segmentation in its lane. Release it also after an error. */
static int
checked_fill(struct job *job, const struct segmentation *found, struct kernels_lane *lane, const void *voxels,
             struct checked_volume *checked)
{
    struct pipeline_report *report = job->report;
    const struct geometry_stack *stack = found->stack;
    const bool is_known = strcmp(report->unit, "1") != 0;
    const size_t planes = (size_t)stack->plane_count;
    *checked = (struct checked_volume){.rescale = calloc(planes, sizeof *checked->rescale),
                                       .padding = calloc(planes, sizeof *checked->padding),
                                       .positions = calloc(planes, sizeof *checked->positions)};
    if (!checked->rescale || !checked->padding || !checked->positions)
        return error_set_system(&report->error, -ENOMEM, "measure the segments");
    volume_tables(found->instances, stack, checked->rescale, checked->padding);
    for (size_t z = 0; z < planes; z++)
        checked->positions[z] = stack->planes[z].position - stack->planes[0].position;
    checked->frame.positions = checked->positions;
    memcpy(checked->frame.origin, stack->origin, sizeof checked->frame.origin);
    memcpy(checked->frame.axes, stack->axes, sizeof checked->frame.axes);
    snprintf(checked->words, sizeof checked->words, "%s%s", is_known ? " " : "", value_unit_spoken(report->unit));
    const struct geometry_plane *plane = &job->source.stack->planes[0];
    const struct dicom_instance *first = job->headers->instances[plane->instance];
    checked->volume = (struct expect_volume){
        .extent = {stack->columns, stack->rows, stack->plane_count},
        .spacing = {stack->spacing[0], stack->spacing[1], stack->spacing[2]},
        .voxels = voxels,
        .pixel = stack->pixel,
        .rescale = checked->rescale,
        .padding = checked->padding,
        .unit = checked->words,
        .ucum = is_known ? report->unit : "",
        .counts = lane == job->lane && lane_counts_values(lane, stack),
        .threads = job->compute->threads,
        .frame = stack->has_geometry ? &checked->frame : NULL,
        .masks = found->masks,
        .lane = lane,
        .spare = found->spare,
        .images = {first->about.manufacturer, first->about.model, first->frames[plane->frame].kernel, 0, NAN},
        .validated = job->spec->validated,
        .doubt = report->suv.found.doubt,
    };
    describe_slices(job, &checked->volume);
    return 0;
}

/* Measures the segments and checks them. `measures`: one per segment. */
static int
check_segments(struct job *job, struct segment_measures *measures)
{
    struct pipeline_report *report = job->report;
    const struct segmentation *found = &job->segmentation;
    struct checked_volume own, coarse = {.windows = NULL};
    int rc = checked_fill(job, found, job->lane, job->voxels, &own);
    if (rc == 0 && job->source.grid.straight)
        rc = grid_find_windows(&job->source.grid, &own.windows, &report->error);
    own.volume.windows = own.windows;
    if (rc == 0 && found->coarse)
        rc = checked_fill(job, &job->coarse.segmentation, job->coarse.lane, job->coarse.voxels, &coarse);
    if (rc == 0 && found->coarse && own.windows)
        rc = coarse_volume_windows(&job->coarse, found->stack, own.windows, &coarse.windows, &report->error);
    coarse.volume.windows = coarse.windows;
    if (rc == 0)
        rc = expect_check(job->pipeline, &own.volume, found->coarse ? &coarse.volume : NULL, measures,
                          &report->breaches, &report->error);
    checked_release(&own);
    checked_release(&coarse);
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
             value_unit_of(job->source.grid.instances, job->source.grid.stack));
    int rc = check_segments(job, measures);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (!segment_is_here(&job->segmentation, i) && !job->segmentation.masks[i].bits)
            coarse_volume_measures(&job->coarse, job->segmentation.stack, &measures[i]);
        report->segments[i].measures = measures[i];
    }
    free(measures);
    return rc;
}

static int
compute(struct job *job)
{
    struct pipeline_report *report = job->report;
    char text[sizeof report->error.message];
    int rc = pipeline_enter(job->watch, "compute");
    if (rc == 0)
        rc = check_contrast(job);
    if (rc == 0 && job->segmentation.coarse)
        rc = coarse_volume_run(&job->coarse, &job->segmentation, job->lane, &report->error);
    if (rc == 0)
        rc = segmentation_run(&job->segmentation, job->lane, job->voxels, &report->error);
    for (size_t i = 0; rc == 0 && job->source.grid.straight && i < job->pipeline->segment_count; i++)
        if (job->segmentation.masks[i].bits)
            grid_cut_padding(&job->source.grid, job->voxels, &job->segmentation.masks[i]);
    for (size_t i = 0; rc == 0 && job->source.grid.source_instances[0]->has_none && i < job->pipeline->segment_count;
         i++)
        if (job->segmentation.masks[i].bits && !job->pipeline->segments[i].hidden)
            rc = image_file_check_region(&job->source.grid, job->segmentation.masks[i].bits,
                                         job->pipeline->segments[i].label, &report->error);
    if (rc == 0)
        rc = report_segments(job);
    if (rc == 0)
        rc = measure_segments(job);
    if (rc == 0 && job->spec->corrects) {
        report->review = true;
        error_set(&report->error, 0, CODE_CORRECTED, "a person corrected %s of the result of job %" PRId64,
                  job->correction.labels, job->spec->corrects);
    }
    if (rc || report->breaches.count == 0)
        return rc;
    expect_tell(&report->breaches, text, sizeof text);
    report->review |= job->pipeline->review == CONF_HOLD || report->breaches.untrusted;
    error_set(&report->error, 0, CODE_EXPECTATION_BROKEN, "%s", text);
    return 0;
}

/* ---------------------------------------------------------- texture, writing, publishing ---- */

static int
measure_texture(struct job *job)
{
    struct texture_result *result = &job->texture;
    const struct quantities_request quantities = {.pipeline = job->pipeline,
                                                  .grid = &job->source.grid,
                                                  .lane = job->lane,
                                                  .voxels = job->voxels,
                                                  .masks = job->segmentation.masks,
                                                  .watch = job->watch};
    const struct geometry_stack *stack = job->source.grid.stack;
    const struct changes_request changes = {.pipeline = job->pipeline,
                                            .spec = job->spec,
                                            .masks = job->segmentation.masks,
                                            .segments = job->report->segments,
                                            .spacing = stack->has_geometry ? stack->spacing : NULL};
    if (job->pipeline->texture_count == 0 && conf_measured_regions(job->pipeline) == 0)
        return 0;
    int rc = pipeline_enter(job->watch, "texture");
    if (rc == 0 && job->pipeline->texture_count > 0)
        rc = texture_groups_measure(&job->groups, job->lane, job->voxels, job->segmentation.masks, most_of_other(job),
                                    result, &job->report->error);
    if (rc)
        tell_whose_memory(job);
    if (rc == 0)
        rc = quantities_measure(&quantities, &result->features, &job->report->error);
    if (rc == 0 && job->pipeline->changes)
        rc = changes_measure(&changes, &result->features);
    if (rc == 0 && feature_set_order(&result->features))
        rc = error_set_system(&job->report->error, -ENOMEM, "measure texture");
    job->report->features = result->features;
    result->features = (struct feature_set){0};
    if (result->note[0])
        pipeline_note(job->report, result->note);
    return rc;
}

static int64_t
peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : -1;
}

/* Writes the results and publishes them. */
static int
write_results(struct job *job, double begun)
{
    struct pipeline_report *report = job->report;
    const struct results_request request = {
        .spec = job->spec,
        .headers = job->headers,
        .pipeline = job->pipeline,
        .stack = job->source.stack,
        .grid = &job->source.grid,
        .segmentation = &job->segmentation,
        .lane = job->lane,
        .voxels = job->voxels,
        .maps = job->texture.maps,
        .map_count = job->texture.map_count,
        .groups = &job->groups,
        .voxelwise = job->texture.voxelwise,
        .voxelwise_count = job->texture.voxelwise_count,
        .threads = job->compute->threads,
        .watch = job->watch,
        .output = job->output,
    };
    int rc = results_write(&request, report);
    if (rc)
        return rc;
    const double start = clock_seconds();
    report->verdict = PROTO_VERDICT_DONE;
    report->peak_bytes = peak_bytes();
    report->total_seconds = start - begun;
    rc = pipeline_stopped(job->watch) ? -ECANCELED : results_publish(&request, report);
    report->write_seconds += clock_seconds() - start;
    if (rc == 0)
        crash_point("worker_after_rename");
    return rc;
}

/* ----------------------------------------------------------------------------- the whole ---- */

/*
 * Returns the verdict of a failed step. Another attempt may succeed if the machine lacked a
 * resource, or another process uses the output.
 */
static enum proto_verdict
verdict_of(int error)
{
    static const int passing[] = {ENOMEM, ENOSPC, EDQUOT, EFBIG, EIO,     EBUSY,  EAGAIN,    EINTR, EMFILE,
                                  ENFILE, EACCES, EPERM,  EROFS, ENOTDIR, ESTALE, ETIMEDOUT, ENODEV};
    if (error == -ECANCELED)
        return PROTO_VERDICT_STOPPED;
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        if (error == -passing[i])
            return PROTO_VERDICT_RETRY;
    return PROTO_VERDICT_REJECT;
}

static int
begin_digests(struct job *job)
{
    job->digests = headers_digest_begin(job->headers, job->source.stack, job->compute->threads);
    return job->digests ? 0 : error_set_system(&job->report->error, -ENOMEM, "list the files of the stack");
}

static int
run_steps(struct job *job, double begun)
{
    struct pipeline_report *report = job->report;
    int error = open_job(job);
    if (error == 0)
        error = choose_source(job);
    if (error == 0 && job->spec->corrects)
        error = correct_segments(job);
    if (error == 0) {
        set_up_segmentation(job);
        error = object_picks_make(&job->segmentation, &report->error);
        job->pipeline = job->segmentation.pipeline;
    }
    /* All threads read one large slice, and take all of the memory's bandwidth: its digest waits. */
    const bool is_one = error == 0 && job->source.stack->plane_count == 1;
    if (error == 0 && !is_one)
        error = begin_digests(job);
    if (error == 0)
        error = decode(job);
    if (error == 0 && is_one)
        error = begin_digests(job);
    double decoded = clock_seconds();
    report->read_seconds = decoded - begun;
    if (error)
        return error;
    error = compute(job);
    if (error == 0)
        error = measure_texture(job);
    report->compute_seconds = clock_seconds() - decoded;
    crash_point("worker_after_compute");
    if (error)
        return error;
    error = headers_digest_end(job->digests, false, &report->error);
    job->digests = NULL;
    return error ? error : write_results(job, begun);
}

static void
end_report(struct pipeline_report *report, int rc, double begun)
{
    report->verdict = PROTO_VERDICT_DONE;
    if (rc) {
        report->verdict = verdict_of(rc);
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

void
pipeline_run_headers(const struct job_spec *spec, const struct headers *headers,
                     const struct pipeline_compute *compute_with, const struct pipeline_watch *watch,
                     struct pipeline_report *report)
{
    double begun = clock_seconds() - headers->seconds;
    struct job job = {.spec = spec, .headers = headers, .compute = compute_with, .watch = watch, .report = report};
    memset(report, 0, sizeof *report);
    if (spec->note && spec->note[0])
        pipeline_note(report, spec->note);
    use_lane(&job, compute_with->device, compute_with->lane);
    int error = run_steps(&job, begun);
    struct error ignored;
    headers_digest_end(job.digests, true, &ignored);
    output_close(job.output);
    texture_groups_release(&job.groups);
    coarse_volume_release(&job.coarse);
    correction_release(&job.correction);
    segmentation_release(&job.segmentation); /* owns the pipeline, if segments are of objects */
    volume_source_release(&job.source);
    texture_result_clear(&job.texture);
    if (job.settings)
        conf_pipeline_free(job.settings);
    end_report(report, error, begun);
}

static void
headers_progress(void *context, double fraction)
{
    const struct pipeline_watch *watch = context;
    watch->progress(watch->context, "headers", fraction);
}

void
pipeline_run(const struct job_spec *spec, const struct pipeline_compute *compute_with,
             const struct pipeline_watch *watch, struct pipeline_report *report)
{
    struct headers headers;
    struct pipeline_watch copy = watch ? *watch : (struct pipeline_watch){0};
    const struct headers_watch reading = {
        .progress = copy.progress ? headers_progress : NULL, .context = &copy, .stop = copy.stop};
    double begun = clock_seconds();
    crash_point("worker_before_read");
    const int error = headers_read(spec->inputs, spec->input_count, compute_with->threads, &reading, &headers);
    if (error == 0) {
        pipeline_run_headers(spec, &headers, compute_with, watch, report);
        headers_free(&headers);
    } else {
        memset(report, 0, sizeof *report);
        end_report(report, error, begun);
    }
}
