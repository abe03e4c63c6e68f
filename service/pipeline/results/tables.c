/* tables.c - see tables.h. */
#include "service/pipeline/results/tables.h"

#include "base/durable.h"
#include "base/error.h"
#include "base/text.h"
#include "dicom/objects/pmap/pmap.h"
#include "dicom/objects/sr/sr.h"
#include "service/common/clock.h"
#include "service/common/crash_point.h"
#include "service/common/file_ops.h"
#include "service/pipeline/measure/settings.h"
#include "service/pipeline/results/measurements.h"
#include "service/pipeline/results/objects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------- tables -- */

static int
write_text(int fd, const struct feature_set *set, void (*put)(const struct feature_set *, FILE *))
{
    struct text_stream text;
    int error = text_open(&text);
    if (error)
        return error;
    put(set, text.out);
    error = text_close(&text);
    if (error == 0)
        error = durable_write_all(fd, text.bytes, text.size);
    free(text.bytes);
    return error;
}

static int
write_table(const struct texture_results *results, const char *name,
            void (*put)(const struct feature_set *, FILE *))
{
    int fd;
    int error = output_create(results->output, name, &fd);
    if (error)
        return results_file_error(results->report, error, "make", name);
    error = write_text(fd, &results->report->features, put);
    if (error)
        return results_file_error(results->report, error, "write", name);
    output_finish(results->output, fd);
    return 0;
}

int
texture_results_write_tables(const struct texture_results *results)
{
    const struct conf_glcm *glcm = results->pipeline->texture->glcm;
    double begun = clock_seconds();
    int error = write_table(results, "features.json", feature_set_to_json);
    if (error == 0)
        error = write_table(results, "features.csv", feature_set_to_csv);
    if (error == 0 && results->report->features.histogram_count > 0)
        error = write_table(results, "patterns.json", feature_set_to_patterns);
    if (error == 0 && glcm && glcm->matrices != CONF_NO_MATRICES)
        error = write_table(results, "matrices.json",
                            glcm->matrices == CONF_COUNTS ? feature_set_to_counts
                                                          : feature_set_to_probabilities);
    results->report->write_seconds += clock_seconds() - begun;
    return error;
}

/* --------------------------------------------------------------------------------- objects -- */

/* An object to write and read back. */
struct object {
    const char *kind, *file, *sop_class;
    const void *request;
    int (*write)(const void *request, int fd, struct seg_summary *summary, struct error *error);
    int (*verify)(const void *request, const char *path, struct error *error);
};

static int
write_object(const struct texture_results *results, const struct object *object)
{
    int fd;
    struct seg_summary summary;
    int rc = output_create(results->output, object->file, &fd);
    if (rc)
        return results_file_error(results->report, rc, "make", object->file);
    rc = object->write(object->request, fd, &summary, &results->report->error);
    crash_point("worker_in_write");
    if (rc)
        return rc;
    output_finish(results->output, fd);
    struct pipeline_result *result = results_add(results->report, object->kind, object->file);
    snprintf(result->sop_class_uid, sizeof result->sop_class_uid, "%s", object->sop_class);
    memcpy(result->sop_instance_uid, summary.identity.sop_instance_uid, DICOM_UID_SIZE);
    memcpy(result->series_uid, summary.identity.series_uid, DICOM_UID_SIZE);
    result->size = summary.bytes;
    result->frames = summary.frames;
    return 0;
}

/* A result that does not read back as computed is this machine's fault: worth another try. */
static int
verify_object(const struct texture_results *results, const struct object *object)
{
    char *path = output_part_path(results->output, object->file);
    if (!path)
        return results_file_error(results->report, -ENOMEM, "read back", object->file);
    int rc = object->verify(object->request, path, &results->report->error);
    free(path);
    return rc == 0 || rc == -ENOMEM ? rc : -EAGAIN;
}

static int
make_object(const struct texture_results *results, const struct object *object)
{
    struct pipeline_report *report = results->report;
    double begun = clock_seconds();
    int error = pipeline_enter(results->watch, "write");
    if (error == 0)
        error = write_object(results, object);
    double written = clock_seconds();
    report->write_seconds += written - begun;
    if (error == 0)
        error = pipeline_enter(results->watch, "verify");
    if (error == 0)
        error = verify_object(results, object);
    report->verify_seconds += clock_seconds() - written;
    return error;
}

/* ---------------------------------------------------------------------------------- report -- */

static int
write_sr(const void *request, int fd, struct seg_summary *summary, struct error *error)
{
    return sr_write(request, fd, summary, error);
}

static int
verify_sr(const void *request, const char *path, struct error *error)
{
    return sr_verify(request, path, error);
}

/* The results' series stand behind each other, from that of the SEG. */
static int32_t
series_number(const struct seg_request *seg, int32_t place)
{
    return seg->series_number <= INT32_MAX - place ? seg->series_number + place : INT32_MAX;
}

static int
make_report(const struct texture_results *results, const struct seg_request *seg)
{
    char unit[FEATURE_TERM];
    struct seg_identity identity;
    struct measurements measurements;
    texture_value_unit(results->instances, results->stack, 1, unit);
    if (measurements_make(&results->report->features, unit, &measurements))
        return error_set_system(&results->report->error, -ENOMEM, "make the report");
    seg_identify(seg, &identity);
    const struct sr_request request = {
        .seg = seg,
        .seg_identity = results->pipeline->results & CONF_RESULT_SEG ? &identity : NULL,
        .groups = measurements.groups,
        .group_count = measurements.group_count,
        .series_description = "",
        .series_number = series_number(seg, 1),
    };
    const struct object object = {"sr", "sr.dcm", SR_SOP_CLASS, &request, write_sr, verify_sr};
    int rc = identity.sop_instance_uid[0]
                 ? make_object(results, &object)
                 : error_set_system(&results->report->error, -ENOMEM, "make the report");
    measurements_free(&measurements);
    return rc;
}

/* ------------------------------------------------------------------------------------ maps -- */

static int
write_pmap(const void *request, int fd, struct seg_summary *summary, struct error *error)
{
    return pmap_write(request, fd, summary, error);
}

static int
verify_pmap(const void *request, const char *path, struct error *error)
{
    return pmap_verify(request, path, error);
}

static const struct seg_code quantities[TEXTURE_PATTERNS] = {
    {"LBP", SEG_OWN_SCHEME, "Local binary pattern"},
    {"TLBAP", SEG_OWN_SCHEME, "Threshold local binary AND pattern"},
    {"LANADP", SEG_OWN_SCHEME, "Local adjacent neighborhood average difference pattern"},
};

static int
make_map(const struct texture_results *results, const struct seg_request *seg,
         enum texture_pattern pattern)
{
    char settings[FEATURE_TERM], explanation[sizeof settings + 32], file[32];
    texture_pattern_settings(results->pipeline->texture, pattern, settings);
    snprintf(explanation, sizeof explanation, "%s code%s%s", quantities[pattern].value,
             settings[0] ? ", " : "", settings);
    snprintf(file, sizeof file, "pmap-%s.dcm", texture_pattern_names[pattern]);
    const struct pmap_request request = {
        .source = seg,
        .kind = texture_pattern_names[pattern],
        .quantity = quantities[pattern],
        .explanation = explanation,
        .codes = results->maps[pattern],
        .series_description = "",
        .series_number = series_number(seg, 2 + (int32_t)pattern),
    };
    const struct object object = {"pmap", file, PMAP_SOP_CLASS, &request, write_pmap, verify_pmap};
    return make_object(results, &object);
}

int
texture_results_write_objects(const struct texture_results *results, const struct seg_request *seg)
{
    int rc = 0;
    if ((results->pipeline->results & CONF_RESULT_SR) && results->report->features.count > 0)
        rc = make_report(results, seg);
    for (int p = 0; p < TEXTURE_PATTERNS && rc == 0; p++)
        if (results->maps[p])
            rc = make_map(results, seg, (enum texture_pattern)p);
    if (rc == 0 && results->report->result_count == 0)
        rc = error_set(&results->report->error, -ENODATA, CODE_PMAP_EMPTY,
                       "planes of less than 3 x 3 voxels have no patterns, and the pipeline "
                       "asks for nothing else");
    return rc;
}
