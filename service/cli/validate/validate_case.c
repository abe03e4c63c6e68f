#include "service/cli/validate/validate_case.h"

#include "service/cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the lowest Dice of a DONE result of the segment, or a negative number if it needs no reference. */
static double
validate_limit(const struct conf_pipeline *pipeline, const char *label)
{
    const size_t segment = conf_find_segment(pipeline, label);
    const struct conf_segment *found = &pipeline->segments[segment];
    if (segment == pipeline->segment_count || found->hidden || !found->expect ||
        found->expect->trust != CONF_TRUST_LOCAL)
        return -1;
    return found->expect->trust_dice;
}

/* --------------------------------------------------------------------------------- running ---- */

/* Returns the pattern of the regions that are the reference of a segment. */
static char *
validate_pattern(const struct compare_request *request, char *label)
{
    const size_t length = strlen(label);
    for (size_t i = 0; i < request->pair_count; i++)
        if (strncmp(request->pairs[i], label, length) == 0 && request->pairs[i][length] == '=')
            return request->pairs[i] + length + 1;
    return request->pair_count == 0 ? label : NULL;
}

/* Makes a segment that shows a reference in the preview. */
static struct conf_segment
validate_reference(const struct conf_segment *segment, char *pattern, enum conf_object_kind kind, char *label)
{
    return (struct conf_segment){
        .label = label,
        .description = (char *)"",
        .method = CONF_OBJECT,
        .object = {.kind = kind, .roi = pattern, .threshold = 0.5, .own = true, .unite = true, .optional = true},
        .category = segment->category,
        .type = segment->type,
        .color = {1 - segment->color[0], 1 - segment->color[1], 1 - segment->color[2]}};
}

/*
 * Writes the settings of a case: the segments of the pipeline, and their references. NULL without memory. Results need no
 * trust, which is to be found.
 */
static char *
validate_settings(const struct validate_run *run, const struct compare_object *reference)
{
    enum { LABEL = 300 };

    struct conf_pipeline pipeline = *run->pipeline;
    struct conf_segment *segments = calloc(2 * pipeline.segment_count + 1, sizeof *segments);
    char(*labels)[LABEL] = calloc(pipeline.segment_count + 1, sizeof *labels), *text = NULL;
    if (segments && labels) {
        memcpy(segments, run->pipeline->segments, pipeline.segment_count * sizeof *segments);
        pipeline.segments = segments;
        for (size_t i = 0; i < run->pipeline->segment_count && reference; i++) {
            const struct conf_segment *segment = &run->pipeline->segments[i];
            char *pattern = segment->hidden ? NULL : validate_pattern(&run->request, segment->label);
            snprintf(labels[i], LABEL, "Reference: %.50s", segment->label);
            if (pattern && segment->type.value)
                segments[pipeline.segment_count++] = validate_reference(segment, pattern, reference->kind, labels[i]);
        }
        for (size_t i = 0; i < pipeline.segment_count; i++)
            segments[i].quantities = 0;
        pipeline.texture_count = 0;
        pipeline.results = CONF_RESULT_SEG;
        pipeline.review = CONF_HOLD;
        pipeline.unreviewed = true;
        text = conf_pipeline_to_text(&pipeline);
    }
    free(segments);
    free(labels);
    return text;
}

/* Reads the findings of the job on the images. */
static void
validate_take_report(struct validate_case *own, const struct pipeline_report *report)
{
    const struct dicom_instance *first = own->unit->headers->instances[0];
    own->images = (struct trust_images){first->about.manufacturer, first->about.model, first->frames[0].kernel,
                                        fmax(first->frames[0].slice_thickness, report->source.steps[1]), NAN};
    for (int32_t i = 0; i < report->segment_count && isnan(own->images.noise); i++)
        own->images.noise = report->segments[i].measures.noise;
    snprintf(own->outcome, sizeof own->outcome, "%s", pipeline_outcome(report));
    if (report->breaches.count > 0)
        expect_tell(&report->breaches, own->checks, sizeof own->checks);
    else if (report->error.code != CODE_NONE)
        snprintf(own->checks, sizeof own->checks, "%s: %.900s", code_name(report->error.code), report->error.message);
}

static int
validate_job(struct validate_run *run, struct validate_case *own, const struct compare_object *reference,
             const struct pipeline_watch *watch)
{
    struct unit *unit = own->unit;
    char *settings = validate_settings(run, reference), *objects[] = {reference ? strdup(reference->path) : NULL};
    const struct job_spec spec = {.stack = unit->stack,
                                  .settings = settings,
                                  .output = unit->output,
                                  .device_serial_number = run->conf->device_serial_number,
                                  .inputs = unit->paths,
                                  .input_count = unit->headers->count,
                                  .objects = objects,
                                  .object_count = reference ? 1 : 0};
    struct pipeline_report report = {.error = unit->refusal, .verdict = PROTO_VERDICT_REJECT};
    const bool able = settings && (!reference || objects[0]);
    if (able && unit->refusal.code == CODE_NONE)
        job_lane_run(run->lane, &spec, unit->headers, watch, &report);
    if (able)
        validate_take_report(own, &report);
    pipeline_report_clear(&report);
    free(objects[0]);
    free(settings);
    return able ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------------------- comparing ---- */

/* Decides whether all segments with `trust` were compared, and how close the worst of them is to its limit. */
static void
validate_rate(const struct validate_run *run, struct validate_case *own)
{
    size_t wanted = 0, compared = 0;
    own->margin = INFINITY;
    for (size_t i = 0; i < run->pipeline->segment_count; i++)
        wanted += validate_limit(run->pipeline, run->pipeline->segments[i].label) >= 0;
    for (size_t i = 0; i < own->rows.count; i++) {
        const struct compare_row *row = &own->rows.items[i];
        const double limit = validate_limit(run->pipeline, row->regions[AGREEMENT_FOUND]);
        if (limit < 0 || row->error.code != CODE_NONE)
            continue;
        compared++;
        if (!isnan(row->agreement.dice))
            own->margin = fmin(own->margin, row->agreement.dice - limit);
    }
    own->complete = wanted > 0 && compared == wanted;
    own->wrong = strcmp(own->outcome, "DONE") == 0 && (own->other || own->margin < 0);
}

static int
validate_compare(struct validate_run *run, struct validate_case *own, const struct compare_object *reference)
{
    struct compare_object found = {.kind = CONF_SEG, .side = AGREEMENT_FOUND};
    const struct compare_object *objects[] = {&found, reference};
    struct error error = {.code = CODE_NONE};
    char *path = NULL;
    if (asprintf(&path, "%s/seg.dcm", own->unit->output) < 0)
        return -ENOMEM;
    found.path = path;
    const int rc = compare_case(&run->request, own->unit->headers, objects, 2, &own->rows, &error);
    for (size_t i = 0; i < own->rows.count; i++)
        own->rows.items[i].paths[AGREEMENT_FOUND] = own->unit->output;
    if (rc)
        compare_complain(own->unit->output, &error);
    free(path);
    return rc == -ENOMEM ? rc : 0;
}

/* Returns the only reference of a series, or NULL after an error message. */
static const struct compare_object *
validate_find_reference(const struct validate_run *run, const struct unit *unit)
{
    const struct compare_object *found = NULL;
    for (size_t i = 0; i < run->input.object_count; i++) {
        const struct compare_object *object = &run->input.objects[i];
        if (!compare_object_is_of(object, unit->headers->instances[0]))
            continue;
        if (found) {
            cli_print_error("%s and %s are both references of one series: leave one out", found->path, object->path);
            return NULL;
        }
        found = object;
    }
    if (!found)
        cli_print_error("%s: no reference of this series", unit->paths[0]);
    return found;
}

int
validate_all(struct validate_run *run, const struct pipeline_watch *watch)
{
    int rc = 0;
    run->cases = calloc(run->units.count + 1, sizeof *run->cases);
    if (!run->cases)
        return -ENOMEM;
    for (size_t i = 0; i < run->units.count && rc == 0 && !pipeline_stopped(watch); i++) {
        struct unit *unit = &run->units.items[i];
        const struct dicom_instance *first = unit->headers->instances[0];
        struct validate_case *own = &run->cases[run->count];
        bool is_other = false; /* given with --others */
        for (size_t k = run->others; k < run->input.files.count; k++)
            is_other |= strcmp(run->input.files.paths[k], unit->paths[0]) == 0;
        *own = (struct validate_case){.unit = unit, .other = is_other};
        const struct compare_object *reference = own->other ? NULL : validate_find_reference(run, unit);
        if (!own->other && !reference)
            continue;
        run->count++;
        rc = pseudonym_of(&run->key, first->patient, own->patient);
        if (rc == 0)
            rc = pseudonym_of(&run->key, first->series_uid, own->series);
        if (rc == 0)
            rc = validate_job(run, own, reference, watch);
        if (rc == 0 && reference && strcmp(own->outcome, "REJECT") != 0 && strcmp(own->outcome, "RETRY") != 0)
            rc = validate_compare(run, own, reference);
        validate_rate(run, own);
    }
    return rc;
}

void
validate_free(struct validate_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        free(run->cases[i].rows.items);
    free(run->cases);
    input_units_free(&run->units);
    compare_input_free(&run->input);
}
