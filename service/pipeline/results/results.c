/*
 * results.c - see results.h.
 *
 * Each step returns 0 or -errno with report->error filled.
 */
#include "service/pipeline/results/results.h"

#include "base/durable.h"
#include "base/error.h"
#include "base/test_hook.h"
#include "base/text.h"
#include "dicom/objects/seg/seg.h"
#include "dicom/read/annotation/object_peek.h"
#include "service/common/clock.h"
#include "service/common/slices/slices.h"
#include "service/common/volume/volume_file.h"
#include "service/pipeline/flat_image.h"
#include "service/pipeline/results/preview.h"
#include "service/pipeline/results/row.h"
#include "service/pipeline/segment/object.h"
#include "service/pipeline/segment/segment_program.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
results_file_error(struct pipeline_report *report, int rc, const char *verb, const char *name)
{
    char what[128];
    snprintf(what, sizeof what, "%s %s", verb, name);
    return error_set_system(&report->error, rc, what);
}

/*
 * Copies the codes of the annotation object to a segment without a type; the region of the object
 * is used unless one is configured.
 */
static void
results_take_codes(const struct provenance *provenance, struct seg_segment *segment)
{
    if (!segment->type.value) {
        if (provenance->category.value && strcmp(segment->category.value, CONF_CATEGORY) == 0)
            segment->category = provenance->category;
        segment->type = provenance->property;
        if (!segment->modifier.value)
            segment->modifier = provenance->modifier;
    }
    if (!segment->region.value)
        segment->region = provenance->region;
}

/* Sets the area of a segment of a 2-D image, which has no volume. Without mm, or beyond the region that has them: pixels. */
static void
results_size_area(const struct results *results, size_t i, struct drawing_segment *segment)
{
    const struct geometry_stack *stack = results->request->stack;
    const struct image_mask *mask = &results->request->segmentation->masks[i];
    const bool in_mm = flat_image_lengths(stack, mask->bits) == FEATURE_PRESENT;
    segment->amount = (double)mask->voxels * (in_mm ? stack->spacing[0] * stack->spacing[1] : 1);
    segment->unit = in_mm ? "mm\302\262" : DRAWING_PIXELS;
}

/* States the origin of lengths in a 2-D image (spacing.def). */
static void
results_tell_lengths(struct results *results)
{
    static const char *const meanings[DICOM_SPACINGS] = {
#define SPACING(id, word, meaning) meaning,
#include "dicom/read/image/spacing.def"
#undef SPACING
    };
    const struct geometry_stack *stack = results->request->stack;
    if (stack->flat && geometry_is_in_mm(stack))
        snprintf(results->lengths, sizeof results->lengths, "Lengths: %s", meanings[stack->spacing_source]);
    else if (stack->flat)
        snprintf(results->lengths, sizeof results->lengths, "No lengths: the header has no spacing in mm");
}

static void
results_describe_segment(struct results *results, size_t i)
{
    const struct segmentation *found = results->request->segmentation;
    const struct conf_segment *segment = &results->request->pipeline->segments[i];
    const struct segment_method *method = segment_methods[segment->method];
    const struct object_region *region = object_region_of(found, i);
    const struct provenance *algorithm = segment_program_provenance(found, i);
    const size_t n = results->segment_count++;
    segment_describe(found, i, results->parameters[n]);
    results->segments[n] = (struct seg_segment){
        .label = segment->label,
        .description = results->placed.descriptions[i],
        .category = segment->category,
        .type = segment->type,
        .modifier = segment->modifier,
        .region = segment->region,
        .color_rgb = {segment->color[0], segment->color[1], segment->color[2]},
        .algorithm_family = method->family,
        .algorithm_name = method->algorithm,
        .algorithm_version = NOCTULE_VERSION,
        .algorithm_parameters = results->parameters[n],
        .bits = results->placed.masks[i].bits,
        .words_per_row = results->placed.masks[i].words_per_row,
        /* The region that the segment equals as it was drawn. */
        .origin = region && region->what && conf_segment_is_object(segment) ? &region->origin : NULL,
        .tracked = region && region->what && !object_region_is_changed(found, i) ? &region->origin : NULL,
        .provenance = region ? region->provenance : algorithm,
        .changed = algorithm ? found->places[i] != SEGMENT_NO_PLACE
                             : region && region->what && object_region_is_changed(found, i),
        .corrected = region && segment->object.corrected,
        .map = results->placed.maps[i],
    };
    if (region && region->provenance)
        results_take_codes(region->provenance, &results->segments[n]);
    results->grid_segments[n] = results->segments[n];
    results->grid_segments[n].bits = found->masks[i].bits;
    results->grid_segments[n].words_per_row = found->masks[i].words_per_row;
    results->grid_segments[n].map = found->maps[i];
    if (results->placed.maps[i]) {
        results->fractional_segments[results->fractional_count] = results->segments[n];
        results->fractional_grid_segments[results->fractional_count++] = results->grid_segments[n];
    }
    results->preview_segments[n] = (struct drawing_segment){
        .mask = &found->masks[i],
        .color = {segment->color[0], segment->color[1], segment->color[2]},
        .label = segment->label,
        .amount = results->report->segments[i].millilitres,
        .unit = "ml",
    };
    if (results->request->stack->flat)
        results_size_area(results, i, &results->preview_segments[n]);
}

/*
 * Adds the digest of an annotation object. Keeps its date and time if it is the latest; objects
 * without a date do not count.
 */
static int
results_identify_object(struct results *results, const char *path, FILE *out)
{
    char digest[DICOM_UID_SIZE];
    const struct job_spec *spec = results->request->spec;
    struct object_peek *peek;
    struct error error;
    int rc = dicom_digest(path, digest, &results->report->error);
    if (rc)
        return rc;
    fprintf(out, "object %s;\n", digest);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_system(&results->report->error, -errno, "read an annotation object");
    if (object_peek_open(fd, path, NULL, &peek, &error) == 0) {
        if (strcmp(peek->made, results->objects_made) > 0)
            memcpy(results->objects_made, peek->made, sizeof results->objects_made);
        if (spec->corrects && strcmp(path, spec->objects[spec->object_count - 1]) == 0)
            memcpy(results->creator, peek->person, sizeof results->creator);
        object_peek_free(peek);
    }
    close(fd);
    return 0;
}

/* Returns whether an earlier segment comes from the same object. */
static bool
results_identified_object(const struct segmentation *found, size_t segment, const char *path)
{
    for (size_t i = 0; i < segment; i++) {
        const struct object_region *region = object_region_of(found, i);
        if (region && region->what && strcmp(region->path, path) == 0)
            return true;
    }
    return false;
}

/*
 * Adds the masks of programs, in the order of segments, and lists their algorithms as contributing equipment. A mask's
 * digest stands for its voxels; the rest is text that results have.
 */
static int
results_identify_masks(struct results *results, FILE *out)
{
    const struct segmentation *found = results->request->segmentation;
    const size_t count = results->request->pipeline->segment_count;
    const struct program_mask *mask;
    results->equipment = calloc(count + 1, sizeof *results->equipment);
    if (!results->equipment)
        return error_set_system(&results->report->error, -ENOMEM, "list the programs");
    for (size_t i = 0; i < count; i++) {
        bool again = !(mask = segment_program_mask(found, i));
        for (size_t k = 0; k < i && !again; k++)
            again = segment_program_mask(found, k) == mask;
        if (again)
            continue;
        const struct provenance_algorithm *algorithm = segment_program_provenance(found, i)->algorithms;
        results->equipment[results->equipment_count++] =
            (struct derived_equipment){algorithm->name, algorithm->version};
        fprintf(out, "mask %s of program %s;\n", mask->mask->sha256, mask->mask->identity);
        fprintf(out, "algorithm %s;\n%s;\n%s;\n%s;\n", algorithm->family.value, algorithm->name, algorithm->version,
                algorithm->source);
        for (size_t k = 0; k < mask->program->command_count; k++)
            fprintf(out, "argv %s;\n", mask->program->command[k]);
    }
    return 0;
}

/* Parses the objects that the results replace; job_spec_read() has checked them. */
static int
results_take_earlier(struct results *results)
{
    const struct job_spec *spec = results->request->spec;
    results->earlier = calloc(spec->earlier_count + 1, sizeof *results->earlier);
    if (!results->earlier)
        return error_set_system(&results->report->error, -ENOMEM, "list the replaced objects");
    for (size_t i = 0; i < spec->earlier_count; i++) {
        struct earlier *earlier = &results->earlier[i];
        char(*uids)[DICOM_UID_SIZE] = earlier->uids;
        const int count = sscanf(spec->earlier[i], "%63s %64s %64s %64s %64s %64s %64s %64s %64s", earlier->file,
                                 uids[0], uids[1], uids[2], uids[3], uids[4], uids[5], uids[6], uids[7]);
        const int each = count % 4 == 1 ? 4 : 3; /* UIDs of an object: 3 in the files of version 0.2.0 */
        earlier->objects.latest = (struct derived_reference){uids[0], uids[1], uids[2], each == 4 ? uids[3] : NULL};
        if (count > 5)
            earlier->objects.replaced =
                (struct derived_reference){uids[each], uids[each + 1], uids[each + 2], each == 4 ? uids[7] : NULL};
    }
    return 0;
}

/* A later run may know another earlier study: its report is another object. */
static void
results_identify_changes(const struct feature_set *features, FILE *out)
{
    for (size_t i = 0; i < features->count; i++) {
        const struct feature *change = &features->items[i];
        if (strcmp(change->family, "change") == 0)
            fprintf(out, "%s of %d %.17g %s;\n", change->name, (int)change->segment, change->value,
                    change->missing_reason);
    }
}

/*
 * Makes the text from which UIDs follow, besides the images: the pipeline, the regions of
 * annotation objects, the masks of programs, and the changes since an earlier study.
 */
static int
results_make_identity(struct results *results)
{
    const struct segmentation *found = results->request->segmentation;
    const struct conf_pipeline *pipeline = results->request->pipeline;
    struct error *error = &results->report->error;
    struct text_stream text;
    char *settings = conf_pipeline_identity(pipeline);
    if (!settings || text_open(&text)) {
        free(settings);
        return error_set_system(error, -ENOMEM, "identify the results");
    }
    fputs(settings, text.out);
    free(settings);
    /* The series decides on the factor, also by images beside the stack. */
    if (results->report->suv.given)
        fprintf(text.out, "suv %.17g %.17g;\n", results->report->suv.found.lowest, results->report->suv.found.highest);
    int rc = 0;
    for (size_t i = 0; i < pipeline->segment_count && rc == 0; i++) {
        const struct object_region *region = object_region_of(found, i);
        if (!region)
            continue;
        fprintf(text.out, "region %" PRId32 " of %s %s;\n", region->what ? region->number : 0,
                region->what ? region->sop_instance_uid : "", region->absent);
        if (region->what && !results_identified_object(found, i, region->path))
            rc = results_identify_object(results, region->path, text.out);
    }
    if (rc == 0)
        rc = results_identify_masks(results, text.out);
    results_identify_changes(&results->report->features, text.out);
    const int closed = text_close(&text);
    results->identity = text.bytes;
    if (rc == 0)
        rc = results_take_earlier(results);
    if (rc == 0 && (closed || results_identify(results)))
        rc = error_set_system(error, -ENOMEM, "identify the results");
    return rc;
}

static int
results_describe_segments(struct results *results)
{
    const struct conf_pipeline *pipeline = results->request->pipeline;
    const size_t count = pipeline->segment_count;
    results->segments = calloc(count, sizeof *results->segments);
    results->fractional_segments = calloc(count, sizeof *results->fractional_segments);
    results->grid_segments = calloc(count, sizeof *results->grid_segments);
    results->fractional_grid_segments = calloc(count, sizeof *results->fractional_grid_segments);
    results->preview_segments = calloc(count, sizeof *results->preview_segments);
    results->parameters = calloc(count, sizeof *results->parameters);
    if (results->report->breaches.count > 0 && !results->report->review)
        snprintf(results->remark, sizeof results->remark, "Not as expected: %s", results->report->breaches.at[0].text);
    if (!results->segments || !results->fractional_segments || !results->grid_segments ||
        !results->fractional_grid_segments || !results->preview_segments || !results->parameters)
        return error_set_system(&results->report->error, -ENOMEM, "describe the segments");
    results_tell_lengths(results);
    int rc = results_make_identity(results);
    if (rc == 0)
        rc = on_planes_make(results->request, &results->placed, &results->report->error);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++)
        if (!pipeline->segments[i].hidden)
            results_describe_segment(results, i);
    return 0;
}

/* ---------------------------------------------------------------------------------- rows -- */

static const struct result_row *const row_tables[] = {result_objects, result_tables};

static bool
result_is_named(const struct result_row *row, const char *name)
{
    const char *star = strchr(row->file, '*');
    if (!star)
        return strcmp(name, row->file) == 0;
    size_t length = strlen(name), before = (size_t)(star - row->file), after = strlen(star + 1);
    return length > before + after && strncmp(name, row->file, before) == 0 &&
           strcmp(name + length - after, star + 1) == 0;
}

bool
results_is_file(const char *name)
{
    for (size_t i = 0; i < sizeof row_tables / sizeof row_tables[0]; i++)
        for (const struct result_row *row = row_tables[i]; row->file; row++)
            if (result_is_named(row, name))
                return true;
    return false;
}

static void
result_list(const struct results *results, const struct result_row *row, const struct result_file *file)
{
    static const char left_out[] = "not taken over from the source, being invalid: ";
    char text[sizeof left_out + DICOM_LEFT_OUT_SIZE];
    struct pipeline_report *report = results->report;
    struct pipeline_result *result = &report->results[report->result_count++];
    snprintf(result->kind, sizeof result->kind, "%s", row->kind);
    snprintf(result->file, sizeof result->file, "%s", file->name);
    snprintf(result->sop_class_uid, sizeof result->sop_class_uid, "%s", row->sop_class ? row->sop_class : "");
    memcpy(result->sop_instance_uid, file->summary.identity.sop_instance_uid, DICOM_UID_SIZE);
    memcpy(result->series_uid, file->summary.identity.series_uid, DICOM_UID_SIZE);
    if (file->summary.identity.replaces)
        snprintf(result->replaces, sizeof result->replaces, "%s", file->summary.identity.replaces->sop_instance_uid);
    result->size = lseek(file->fd, 0, SEEK_END);
    result->frames = file->summary.frames;
    /* Note it once: all objects of a job inherit from the same source. */
    if (file->summary.left_out[0] && !strstr(report->note, left_out)) {
        snprintf(text, sizeof text, "%s%s", left_out, file->summary.left_out);
        pipeline_note(report, text);
    }
}

static int
result_put(const struct results *results, const struct result_row *row, const struct result_file *file)
{
    struct text_stream text;
    int rc = text_open(&text);
    if (rc == 0) {
        row->put(&results->report->features, text.out);
        rc = text_close(&text);
    }
    if (rc == 0)
        rc = durable_write_all(file->fd, text.bytes, text.size);
    free(text.bytes);
    return rc ? results_file_error(results->report, rc, "write", file->name) : 0;
}

static int
result_write(const struct results *results, const struct result_row *row, struct result_file *file)
{
    const struct results_request *request = results->request;
    bool first = results->report->result_count == 0; /* the stage began with the preview */
    int rc = first ? 0 : pipeline_enter(request->watch, "write");
    if (rc)
        return rc;
    rc = output_create(request->output, file->name, &file->fd);
    if (rc)
        return results_file_error(results->report, rc, "make", file->name);
    rc = row->put ? result_put(results, row, file) : row->make(results, file);
    crash_point("worker_in_write");
    if (rc)
        return rc;
    if (row->kind)
        result_list(results, row, file);
    output_finish(request->output, file->fd);
    return 0;
}

/*
 * Reads the file back. A difference from the computed data is transient: another attempt may
 * succeed. An object that is too large for readers is not (EOVERFLOW).
 */
static int
result_verify(const struct results *results, const struct result_row *row, struct result_file *file)
{
    int rc = pipeline_enter(results->request->watch, "verify");
    if (rc)
        return rc;
    char *path = output_part_path(results->request->output, file->name);
    if (!path)
        return results_file_error(results->report, -ENOMEM, "read back", file->name);
    file->path = path;
    rc = row->make(results, file);
    free(path);
    return rc == 0 || rc == -ENOMEM || rc == -EOVERFLOW ? rc : -EAGAIN;
}

static int
result_make(const struct results *results, const struct result_row *row, size_t number)
{
    struct result_file file = {.number = number};
    char part[80] = "";
    const int before = (int)strcspn(row->file, "*");
    const char *rest = row->file + before;
    if (*rest)
        row->part(results, number, part, sizeof part);
    snprintf(file.name, sizeof file.name, "%.*s%s%s", before, row->file, part, *rest ? rest + 1 : "");
    double begun = clock_seconds();
    int rc = result_write(results, row, &file);
    double written = clock_seconds();
    results->report->write_seconds += written - begun;
    if (rc == 0 && (row->sop_class || row->reads_back))
        rc = result_verify(results, row, &file);
    results->report->verify_seconds += clock_seconds() - written;
    return rc;
}

static int
result_make_all(const struct results *results, const struct result_row *row)
{
    int rc = 0;
    for (; row->file && rc == 0; row++)
        for (size_t i = 0, count = row->wanted ? row->wanted(results) : 0; i < count && rc == 0; i++)
            rc = result_make(results, row, i);
    return rc;
}

static int
results_write_objects(const struct results *results)
{
    struct pipeline_report *report = results->report;
    size_t count = 1;
    for (const struct result_row *row = result_objects; row->file; row++)
        count += row->wanted(results);
    report->results = calloc(count, sizeof *report->results);
    if (!report->results)
        return error_set_system(&report->error, -ENOMEM, "list the results");
    int rc = result_make_all(results, result_objects);
    if (rc == 0 && report->result_count == 0 && (results->request->pipeline->results & CONF_RESULT_PMAP))
        rc = error_set(&report->error, -ENODATA, CODE_PMAP_EMPTY,
                       "planes of less than 3 x 3 voxels have no patterns, and the pipeline has no other result");
    return rc;
}

/* ---------------------------------------------------------------------- preview, beside it -- */

struct preview_task {
    pthread_t thread;
    bool running;
    const struct results *results;
    int fd, slices_fd; /* slices_fd -1: no file for the slice viewer */
    int rc;
    const char *failed; /* the name of the file */
};

static void *
preview_draw(void *argument)
{
    struct preview_task *task = argument;
    struct output *output = task->results->request->output;
    struct preview_style style = {.colors = NULL};
    task->rc = preview_write(&task->results->drawing, task->fd, &style);
    if (task->rc == 0)
        output_finish(output, task->fd);
    if (task->rc == 0 && task->slices_fd >= 0) {
        task->failed = SLICES_FILE;
        task->rc = result_slices_write(task->results, &style, task->slices_fd);
        if (task->rc == 0)
            output_finish(output, task->slices_fd);
    }
    free(style.colors);
    return NULL;
}

/* Draws the preview, with the broken expectations, and writes the file of the slice viewer, in a thread of its own. */
static int
preview_start(struct results *results, struct preview_task *task)
{
    const struct results_request *request = results->request;
    const struct pipeline_report *report = results->report;
    const size_t breaches = report->breaches.count;
    results->warnings = calloc(breaches + 1, sizeof *results->warnings);
    if (!results->warnings)
        return error_set_system(&results->report->error, -ENOMEM, "list the broken expectations");
    if (breaches > 0)
        results->warnings[results->warning_count++] =
            report->review ? "REVIEW: not as expected, held until it is accepted" : "Not as expected, and delivered";
    for (size_t i = 0; i < breaches; i++)
        results->warnings[results->warning_count++] = report->breaches.at[i].text;
    results->drawing =
        (struct drawing_request){.instances = request->grid->instances,
                                 .stack = request->grid->stack,
                                 .voxels = request->voxels,
                                 .segments = results->preview_segments,
                                 .segment_count = results->segment_count,
                                 .warnings = results->warnings,
                                 .warning_count = results->warning_count,
                                 .note = results->lengths[0] ? results->lengths : request->grid->text,
                                 .window = {request->pipeline->preview_window[0], request->pipeline->preview_window[1]},
                                 .threads = request->threads};
    *task = (struct preview_task){.results = results, .slices_fd = -1, .failed = "preview.png"};
    int rc = output_create(request->output, task->failed, &task->fd);
    if (rc == 0 && result_slices_wanted(results)) {
        task->failed = SLICES_FILE;
        rc = output_create(request->output, task->failed, &task->slices_fd);
    }
    if (rc)
        return results_file_error(results->report, rc, "make", task->failed);
    task->failed = "preview.png";
    task->running = pthread_create(&task->thread, NULL, preview_draw, task) == 0;
    if (!task->running)
        preview_draw(task);
    return 0;
}

/*
 * Returns whether results need a voxel in a segment, and no voxel is on a plane: those between two
 * planes of a straightened stack are lost, unless segmentations are on its grid. Measures of the whole volume need none.
 */
static bool
results_lack_voxels(const struct results *results)
{
    const struct conf_pipeline *pipeline = results->request->pipeline;
    int64_t voxels = 0;
    for (size_t i = 0; i < results->placed.count; i++)
        if (!pipeline->segments[i].hidden)
            voxels += results->placed.masks[i].voxels;
    if (results->report->segmented_voxels > 0 && (voxels > 0 || results_are_upright(results)))
        return false;
    return (pipeline->results &
            (CONF_RESULT_SEG | CONF_RESULT_LABELMAP | CONF_RESULT_RTSTRUCT | CONF_RESULT_NIFTI | CONF_RESULT_CODES)) ||
           results->fractional_count > 0 || pipeline->texture_count == 0 ||
           (conf_measured_regions(pipeline) & CONF_SEGMENTS);
}

static int
results_write_all(struct results *results)
{
    struct pipeline_report *report = results->report;
    struct preview_task preview;
    int rc = results_describe_segments(results);
    if (rc == 0)
        rc = preview_start(results, &preview);
    if (rc)
        return rc;
    rc = results_plan_pictures(results);
    report->empty = results_lack_voxels(results);
    if (report->empty && !report->review && report->segments[0].absent[0])
        error_set(&report->error, 0, CODE_EMPTY, "no voxel belongs to a segment: %s", report->segments[0].absent);
    else if (report->empty && !report->review)
        error_set(&report->error, 0, CODE_EMPTY,
                  "no voxel belongs to a segment, so there is no object; see preview.png and the "
                  "range and shapes, or the seeds and Gaussians, of the pipeline");
    if (!report->empty && rc == 0)
        rc = results_write_objects(results);
    if (rc == 0)
        rc = result_make_all(results, result_tables);
    const double begun = clock_seconds();
    if (preview.running)
        pthread_join(preview.thread, NULL);
    report->write_seconds += clock_seconds() - begun;
    if (rc == 0 && preview.rc)
        rc = results_file_error(report, preview.rc, "write", preview.failed);
    return rc;
}

int64_t
results_bytes(const struct conf_pipeline *pipeline, enum job_slices slices, const struct geometry_stack *stack,
              int threads)
{
    const int32_t size[3] = {stack->columns, stack->rows, stack->plane_count};
    const int64_t slice = (int64_t)stack->columns * stack->rows * (int64_t)sizeof(float);
    const int64_t pictures =
        pipeline->results & CONF_RESULT_PICTURE ? picture_frames_bytes(stack, pipeline->segment_count, threads) : 0;
    int64_t volumes = pipeline->results & CONF_RESULT_NIFTI ? volume_gzip_bytes(slice, threads) : 0;
    for (size_t g = 0; g < pipeline->texture_count; g++)
        if ((pipeline->texture[g].response |
             (pipeline->texture[g].voxelwise ? pipeline->texture[g].voxelwise->files : 0)) >>
                TEXTURE_RESPONSE_NIFTI &
            1) /* doubles, of the series' voxels */
            volumes = volume_gzip_bytes(2 * slice, threads);
    const int64_t beside = slices == JOB_SLICES_NONE ? 0 : slices_write_bytes(size, pipeline->segment_count, threads);
    return (pictures > volumes ? pictures : volumes) + beside;
}

int
results_write(const struct results_request *request, struct pipeline_report *report)
{
    struct results results = {.request = request, .report = report};
    int rc = pipeline_enter(request->watch, "write");
    if (rc == 0)
        rc = results_write_all(&results);
    on_planes_release(&results.placed);
    picture_frames_free(results.pictures);
    free(results.fractional_segments);
    free(results.grid_segments);
    free(results.fractional_grid_segments);
    free(results.preview_segments);
    free(results.warnings);
    free(results.segments);
    free(results.parameters);
    free(results.identity);
    free(results.equipment);
    free(results.earlier);
    return rc;
}

int
results_publish(const struct results_request *request, struct pipeline_report *report)
{
    const struct record record = {report, request->spec, request->pipeline->name, request->threads};
    const char *unsynced;
    int fd;
    int rc = output_create(request->output, "job.json", &fd);
    if (rc)
        return results_file_error(report, rc, "make", "job.json");
    rc = record_write(fd, &record);
    if (rc)
        return results_file_error(report, rc, "write", "job.json");
    output_finish(request->output, fd);
    /* The record is synced last; the other files may be on disk already. */
    rc = output_sync_all(request->output, &unsynced);
    if (rc)
        return results_file_error(report, rc, "write", unsynced);
    rc = output_publish(request->output, results_is_file);
    return rc ? results_file_error(report, rc, "publish", "the results") : 0;
}
