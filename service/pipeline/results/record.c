/* record.c - see results.h. */
#include "service/pipeline/results/results.h"

#include "base/durable.h"
#include "base/text.h"
#include "service/pipeline/segment/segment_program.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

/* Writes the origin of the values and lengths of a 2-D image. */
static void
record_put_flat(struct json *json, const struct pipeline_source *source)
{
    json_begin_object(json, "flat");
    json_string(json, "values", source->values);
    json_string(json, "intensity", source->intensity);
    json_string(json, "spacing_source", source->spacing_source);
    json_begin_array(json, "spacing_within");
    for (int i = 0; i < 4; i++)
        json_integer(json, NULL, source->calibrated[i]);
    json_end_array(json);
    json_end_object(json);
}

static void
record_put_volume(struct json *json, const struct pipeline_report *report)
{
    const struct pipeline_source *source = &report->source;
    json_begin_object(json, "volume");
    json_integer(json, "columns", report->columns);
    json_integer(json, "rows", report->rows);
    json_integer(json, "slices", report->planes);
    json_begin_array(json, "spacing_mm");
    for (int axis = 0; axis < 3; axis++)
        json_number(json, NULL, report->spacing[axis] > 0 ? report->spacing[axis] : NAN);
    json_end_array(json);
    /* The stack of the files, and the reason if the volume differs. */
    json_boolean(json, "straightened", source->straightened[0] != '\0');
    json_string(json, "straightened_because", source->straightened);
    json_begin_object(json, "source");
    json_integer(json, "slices", source->planes);
    json_begin_array(json, "spacing_mm");
    for (int axis = 0; axis < 2; axis++)
        json_number(json, NULL, source->spacing[axis] > 0 ? source->spacing[axis] : NAN);
    json_end_array(json);
    json_begin_array(json, "steps_mm");
    json_number(json, NULL, source->steps[0]);
    json_number(json, NULL, source->steps[1]);
    json_end_array(json);
    if (source->flat)
        record_put_flat(json, source);
    json_string(json, "manufacturer", source->manufacturer);
    json_string(json, "model", source->model);
    json_string(json, "kernel", source->kernel);
    json_number(json, "kvp", source->kvp > 0 ? source->kvp : NAN);
    json_begin_array(json, "slice_thickness_mm");
    for (int i = 0; i < 2; i++)
        json_number(json, NULL, source->thickness[i] > 0 ? source->thickness[i] : NAN);
    json_end_array(json);
    json_end_object(json);
    json_integer(json, "voxels", report->voxels);
    json_integer(json, "segmented_voxels", report->segmented_voxels);
    json_end_object(json);
}

/* Writes a number, unless the factor did not use it. */
static void
put_suv_number(struct json *json, const char *key, double value)
{
    if (!isnan(value))
        json_number(json, key, value);
}

/* Writes the conversion of the values, with all attributes that were used. */
static void
record_put_suv(struct json *json, const struct suv_conversion *suv)
{
    const struct suv_found *found = &suv->found;
    const bool uses_body = !isnan(found->body), uses_dose = !isnan(found->seconds);
    const struct suv_unit_row *unit = &suv_unit_rows[found->unit];
    json_begin_object(json, "suv");
    json_string(json, "unit", unit->option);
    json_string(json, "ucum", unit->ucum);
    json_string(json, "code", unit->quantity);
    json_string(json, "rule", found->rule);
    json_string(json, "units_of_images", found->used.units);
    json_begin_array(json, "factors");
    json_number(json, NULL, found->lowest);
    json_number(json, NULL, found->highest);
    json_end_array(json);
    if (uses_body) {
        put_suv_number(json, "weight_kg", found->used.weight);
        put_suv_number(json, "size_m", found->used.size);
        if (found->used.sex)
            json_string(json, "sex", (const char[]){found->used.sex, '\0'});
        json_number(json, unit->ucum[0] == 'c' ? "body_cm2" : "body_g", found->body);
    }
    if (uses_dose) {
        json_number(json, "dose_bq", found->used.dose);
        put_suv_number(json, "half_life_seconds", found->used.half_life);
        json_number(json, "decay_seconds", found->seconds);
        json_string(json, "decay_from", found->start);
        json_string(json, "decay_to", found->clock);
    }
    json_string(json, "text", suv->text);
    json_end_object(json);
}

void
record_put_code(struct json *json, const char *key, const struct coded_concept *code)
{
    if (!code->value)
        return;
    json_begin_object(json, key);
    json_string(json, "code", code->value);
    json_string(json, "scheme", code->scheme);
    json_string(json, "meaning", code->meaning);
    json_end_object(json);
}

/* Writes the object's own statements on the region. */
static void
put_object(struct json *json, const struct pipeline_object *object)
{
    const struct provenance *provenance = object->provenance;
    json_begin_object(json, "object");
    json_string(json, "sop_instance_uid", object->sop_instance_uid);
    json_integer(json, "number", object->number);
    json_string(json, "name", object->name);
    json_string(json, "tracking_uid", object->tracking_uid);
    json_boolean(json, "changed", object->changed);
    json_string(json, "manufacturer", provenance->manufacturer);
    json_string(json, "model", provenance->model);
    json_string(json, "algorithm_type", provenance->type);
    json_begin_array(json, "algorithm_names");
    for (size_t i = 0; i < provenance->name_count; i++)
        json_string(json, NULL, provenance->names[i]);
    json_end_array(json);
    json_begin_array(json, "algorithms");
    for (size_t i = 0; i < provenance->algorithm_count; i++) {
        const struct provenance_algorithm *algorithm = &provenance->algorithms[i];
        json_begin_object(json, NULL);
        record_put_code(json, "family", &algorithm->family);
        record_put_code(json, "code", &algorithm->code);
        json_string(json, "name", algorithm->name);
        json_string(json, "version", algorithm->version);
        json_string(json, "source", algorithm->source);
        json_string(json, "parameters", algorithm->parameters);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static void
put_voxel(struct json *json, const char *key, const int64_t voxel[3])
{
    json_begin_row(json, key);
    for (int axis = 0; axis < 3; axis++)
        json_integer(json, NULL, voxel[axis]);
    json_end_row(json);
}

/* Writes the values of a segment, its box and its centroid; null if there is no voxel. */
static void
put_measures(struct json *json, const struct segment_measures *measures, const char *unit)
{
    json_exact(json, "mean", measures->mean);
    json_exact(json, "minimum", measures->minimum);
    json_exact(json, "maximum", measures->maximum);
    json_string(json, "unit", unit);
    if (measures->slices == 0) {
        json_null(json, "box");
        json_null(json, "centroid_mm");
        return;
    }
    json_begin_object(json, "box");
    put_voxel(json, "first", measures->first);
    put_voxel(json, "last", measures->last);
    json_end_object(json);
    json_begin_row(json, "centroid_mm");
    for (int axis = 0; axis < 3; axis++)
        json_number(json, NULL, measures->centroid[axis]);
    json_end_row(json);
}

/* Writes the labels that a segment takes from the mask of a program. */
static void
put_labels(struct json *json, const struct conf_pipeline *pipeline, const char *label)
{
    const size_t place = conf_find_segment(pipeline, label);
    if (place == pipeline->segment_count || pipeline->segments[place].method != CONF_PROGRAM)
        return;
    json_string(json, "program", pipeline->segments[place].program);
    json_begin_row(json, "labels");
    for (size_t i = 0; i < pipeline->segments[place].value_count; i++)
        json_integer(json, NULL, pipeline->segments[place].values[i]);
    json_end_row(json);
}

/* Writes the programs whose masks the job used. */
static void
put_programs(struct json *json, const struct job_spec *spec)
{
    json_begin_array(json, "programs");
    for (size_t i = 0; i < spec->mask_count; i++) {
        const struct job_mask *mask = &spec->masks[i];
        struct conf_program *program;
        struct error ignored; /* the job failed for it */
        if (conf_program_from_text(mask->program, &program, &ignored))
            continue;
        const struct coded_concept family = segment_program_family(program);
        json_begin_object(json, NULL);
        json_string(json, "program", program->name);
        json_string(json, "name", program->algorithm.name);
        json_string(json, "version", program->algorithm.version);
        record_put_code(json, "family", &family);
        json_string(json, "source", program->algorithm.source);
        json_begin_array(json, "argv");
        for (size_t k = 0; k < program->command_count; k++)
            json_string(json, NULL, program->command[k]);
        json_end_array(json);
        json_string(json, "identity", mask->identity);
        json_string(json, "mask_sha256", mask->sha256);
        json_end_object(json);
        conf_program_free(program);
    }
    json_end_array(json);
}

static void
put_segments(struct json *json, const struct pipeline_report *report, const struct conf_pipeline *pipeline)
{
    json_begin_array(json, "segments");
    for (int32_t i = 0; i < report->segment_count; i++) {
        const struct pipeline_segment *segment = &report->segments[i];
        json_begin_object(json, NULL);
        if (segment->number > 0)
            json_integer(json, "number", segment->number);
        else
            json_boolean(json, "hidden", true);
        json_string(json, "label", segment->label);
        json_integer(json, "voxels", segment->voxels);
        json_number(json, "millilitres", segment->millilitres);
        put_measures(json, &segment->measures, report->unit);
        json_string(json, "method", segment->method);
        if (pipeline)
            put_labels(json, pipeline, segment->label);
        if (segment->regions > 0) {
            json_string(json, "region", segment->region);
            json_integer(json, "region_number", segment->region_number);
            json_integer(json, "regions", segment->regions);
        }
        if (segment->absent[0])
            json_string(json, "empty", segment->absent);
        if (segment->told[0])
            json_string(json, "note", segment->told);
        for (int n = 0; n < segment->number_count; n++)
            json_number(json, segment->numbers[n].key, segment->numbers[n].value);
        if (segment->number_count > 0) {
            json_begin_array(json, "measured");
            for (int n = 0; n < segment->number_count; n++)
                if (segment->numbers[n].measured)
                    json_string(json, NULL, segment->numbers[n].key);
            json_end_array(json);
            json_integer(json, "measured_voxels", segment->measured_voxels);
        }
        if (segment->object.provenance)
            put_object(json, &segment->object);
        json_end_object(json);
    }
    json_end_array(json);
}

/* Writes the broken expectations. */
static void
record_put_breaches(struct json *json, const struct pipeline_report *report)
{
    json_begin_array(json, "broken_expectations");
    for (size_t i = 0; i < report->breaches.count; i++) {
        const struct expect_breach *breach = &report->breaches.at[i];
        json_begin_object(json, NULL);
        json_string(json, "segment", report->segments[breach->segment].label);
        json_string(json, "expectation", breach->expectation);
        if (breach->bounded) {
            json_number(json, "found", breach->found);
            json_begin_array(json, "allowed");
            json_number(json, NULL, breach->allowed[0]);
            json_number(json, NULL, breach->allowed[1]);
            json_end_array(json);
        }
        json_string(json, "text", breach->text);
        json_end_object(json);
    }
    json_end_array(json);
}

static void
put_results(struct json *json, const struct pipeline_report *report)
{
    json_begin_array(json, "results");
    for (int32_t i = 0; i < report->result_count; i++) {
        const struct pipeline_result *result = &report->results[i];
        json_begin_object(json, NULL);
        json_string(json, "kind", result->kind);
        json_string(json, "file", result->file);
        json_integer(json, "bytes", result->size);
        if (result->sop_instance_uid[0]) {
            json_string(json, "sop_class_uid", result->sop_class_uid);
            json_string(json, "sop_instance_uid", result->sop_instance_uid);
            json_string(json, "series_instance_uid", result->series_uid);
            json_integer(json, "frames", result->frames);
            if (result->replaces[0])
                json_string(json, "replaces", result->replaces);
        }
        json_end_object(json);
    }
    json_end_array(json);
}

void
record_put(struct json *json, const struct record *record)
{
    const struct pipeline_report *report = record->report;
    const time_t now = time(NULL);
    struct tm parts;
    char finished[32] = "";
    struct conf_pipeline *pipeline = NULL;
    struct error ignored; /* the report has it */
    if (record->spec->mask_count > 0 && conf_pipeline_from_text(record->spec->settings, &pipeline, &ignored))
        pipeline = NULL;
    if (gmtime_r(&now, &parts))
        strftime(finished, sizeof finished, "%Y-%m-%dT%H:%M:%SZ", &parts);
    json_begin_object(json, NULL);
    json_string(json, "noctule_version", NOCTULE_VERSION);
    json_integer(json, "job", record->spec->id);
    json_string(json, "finished", finished);
    json_string(json, "outcome", pipeline_outcome(report));
    json_error(json, &report->error);
    json_string(json, "pipeline", record->pipeline);
    json_string(json, "series_instance_uid", report->series_uid);
    json_string(json, "stack", record->spec->stack);
    json_integer(json, "input_files", (int64_t)record->spec->input_count);
    json_integer(json, "object_files", (int64_t)record->spec->object_count);
    json_string(json, "output", record->spec->output);
    record_put_volume(json, report);
    if (report->suv.given)
        record_put_suv(json, &report->suv);
    put_segments(json, report, pipeline);
    if (record->spec->mask_count > 0)
        put_programs(json, record->spec);
    record_put_breaches(json, report);
    put_results(json, report);
    json_begin_object(json, "seconds");
    json_number(json, "read", report->read_seconds);
    json_number(json, "compute", report->compute_seconds);
    json_number(json, "write", report->write_seconds);
    json_number(json, "verify", report->verify_seconds);
    json_number(json, "total", report->total_seconds);
    json_end_object(json);
    json_string(json, "backend", report->backend);
    json_integer(json, "threads", record->threads);
    json_string(json, "note", report->note);
    json_integer(json, "peak_bytes", report->peak_bytes);
    json_string(json, "settings", record->spec->settings);
    json_end_object(json);
    conf_pipeline_free(pipeline);
}

int
record_write(int fd, const struct record *record)
{
    struct text_stream text;
    int error = text_open(&text);
    if (error)
        return error;
    struct json json = {.out = text.out};
    record_put(&json, record);
    error = text_close(&text);
    if (error == 0)
        error = durable_write_all(fd, text.bytes, text.size);
    free(text.bytes);
    return error;
}
