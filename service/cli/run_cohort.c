#include "service/cli/run_cohort.h"

#include "db/queue.h"
#include "service/cli/cli.h"
#include "service/cli/cohort_tables.h"
#include "service/common/clock.h"
#include "service/pipeline/image_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int
cohort_complain(const struct run_cohort *cohort, int rc)
{
    if (rc)
        cli_print_error("cannot make the cohort: %s",
                        cohort->queue && *queue_reason(cohort->queue) ? queue_reason(cohort->queue) : strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

int
run_cohort_open(struct run_cohort *cohort)
{
    const char *root = cohort->conf->root;
    struct error error = {0};
    cohort->identifiers = cohort->unnamed ? CONF_IDENTIFIERS_NONE : cohort->conf->identifiers;
    int rc = cohort->identifiers == CONF_IDENTIFIERS_HASHED ? pseudonym_key_read(root, &cohort->key) : 0;
    if (rc == -ENOMEM)
        return cohort_complain(cohort, rc);
    if (rc) {
        cli_print_error(
            "the column patient stays empty: identifiers = \"hashed\" needs the key of %s: %s. Set identifiers "
            "= \"plain\" in the configuration to have the Patient IDs.",
            root, strerror(-rc));
        cohort->identifiers = CONF_IDENTIFIERS_NONE;
    }
    if (mkdir(cohort->scratch->results, 0700) != 0 && errno != EEXIST)
        return cohort_complain(cohort, -errno);
    if (asprintf(&cohort->path, "%s/cohort.db", cohort->scratch->results) < 0) {
        cohort->path = NULL;
        return cohort_complain(cohort, -ENOMEM);
    }
    if (queue_open(cohort->path, &cohort->queue, &error) != 0) {
        cli_print_error("cannot make the cohort: %s", error.message);
        return EXIT_PARTIAL;
    }
    return cohort_complain(cohort, queue_note(cohort->queue, "START", "noctuled " NOCTULE_VERSION, clock_unix_ms()));
}

/* Adds the first image, which has the attributes of the series. */
static int
cohort_add_instance(struct run_cohort *cohort, const struct unit *unit, int64_t *series_id)
{
    const struct dicom_instance *first = unit->headers->instances[0];
    struct series_about about = first->about;
    char source[sizeof unit->group + 8], *path;
    enum queue_arrival arrival;
    const int rc = pseudonym_of_series(&cohort->key, cohort->identifiers, &about);
    snprintf(source, sizeof source, "folder:%s", unit->group);
    /* An image file may be measured with several masks. */
    if (asprintf(&path, image_file_is(first) ? "%s#%d" : "%s", unit->paths[0], first->series_number) < 0)
        return -ENOMEM;
    const struct queue_instance instance = {.sop_instance_uid = first->sop_instance_uid,
                                            .sop_class_uid = first->sop_class_uid,
                                            .transfer_syntax_uid = first->transfer_syntax_uid,
                                            .series_uid = first->series_uid,
                                            .study_uid = first->study_uid,
                                            .modality = first->modality,
                                            .body_part = first->body_part,
                                            .series_description = first->series_description,
                                            .about = &about,
                                            .frame_of_reference = first->frame_of_reference_uid,
                                            .path = path,
                                            .source = source,
                                            .frames = (int32_t)unit->headers->count};
    const int added = rc ? rc : queue_add_instance(cohort->queue, &instance, clock_unix_ms(), &arrival, series_id);
    free(path);
    return added;
}

/* Adds the series of `count` units, which are its stacks. */
static int
cohort_add_series(struct run_cohort *cohort, const struct unit *first, size_t count, int64_t *series)
{
    struct queue_stack *stacks = calloc(count, sizeof *stacks);
    int rc = stacks ? cohort_add_instance(cohort, first, &series[0]) : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct error *refusal = &first[i].refusal;
        series[i] = series[0];
        stacks[i] = (struct queue_stack){.name = first[i].stack,
                                         .accepted = refusal->code == CODE_NONE,
                                         .code = refusal->code,
                                         .message = refusal->message,
                                         .file_a = refusal->file[0],
                                         .file_b = refusal->file[1]};
    }
    if (rc == 0)
        rc = queue_settle(cohort->queue, series[0], 1, "noctule run", stacks, count, clock_unix_ms());
    free(stacks);
    return rc;
}

enum { COHORT_TABLES = 4 };

/* Makes the paths of the tables. The caller must free them, also after -ENOMEM. */
static int
cohort_paths(const struct run_cohort *cohort, char *paths[COHORT_TABLES])
{
    static const char *const names[COHORT_TABLES] = {"cohort.csv", "dictionary.csv", "reasons.csv", "failed.csv"};
    for (int i = 0; i < COHORT_TABLES; i++)
        if (asprintf(&paths[i], "%s/%s", cohort->output, names[i]) < 0) {
            paths[i] = NULL;
            return -ENOMEM;
        }
    return 0;
}

/* Records each file that cannot be read, for the table of failures. */
static int
cohort_add_refused(struct run_cohort *cohort, const struct headers *headers, char *const *paths)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < headers->count; i++) {
        const struct error *error = &headers->errors[i];
        if (headers->rc[i] == 0 || input_sorted_is_other(error))
            continue;
        rc = queue_add_quarantine(cohort->queue,
                                  &(struct queue_quarantine){.path = paths[i],
                                                             .series_uid = "",
                                                             .sop_instance_uid = "",
                                                             .code = error->code,
                                                             .message = error->message},
                                  clock_unix_ms());
    }
    return rc;
}

int
run_cohort_add(struct run_cohort *cohort, const struct units *units, const struct headers *headers, char *const *paths)
{
    cohort->series = calloc(units->count + 1, sizeof *cohort->series);
    char *earlier[COHORT_TABLES] = {NULL};
    int rc = cohort_paths(cohort, earlier);
    for (int i = 0; i < COHORT_TABLES; i++) {
        if (rc == 0 && unlink(earlier[i]) != 0 && errno != ENOENT)
            rc = -errno;
        free(earlier[i]);
    }
    if (rc == 0)
        rc = cohort->series ? queue_begin(cohort->queue) : -ENOMEM;
    for (size_t i = 0, count; rc == 0 && i < units->count; i += count) {
        for (count = 1; i + count < units->count && units->items[i + count].headers == units->items[i].headers;)
            count++;
        rc = cohort_add_series(cohort, &units->items[i], count, &cohort->series[i]);
    }
    if (rc == 0)
        rc = cohort_add_refused(cohort, headers, paths);
    return cohort_complain(cohort, rc == 0 ? queue_commit(cohort->queue) : rc);
}

/* Ends the job as the service does. */
static int
cohort_finish_job(struct run_cohort *cohort, int64_t job_id, const struct unit *unit,
                  const struct pipeline_report *report)
{
    const struct queue_figures figures = {
        .total_seconds = report->total_seconds,
        .voxels = report->voxels,
        .segmented_voxels = report->segmented_voxels,
        .backend = report->backend,
        .note = report->note,
        .voxel = {.spacing = {report->spacing[0], report->spacing[1], report->spacing[2]},
                  .source_spacing = {report->source.spacing[0], report->source.spacing[1]},
                  .source_steps = {report->source.steps[0], report->source.steps[1]},
                  .straightened = report->source.straightened,
                  .kernel = report->source.kernel,
                  .kvp = report->source.kvp,
                  .thickness = {report->source.thickness[0], report->source.thickness[1]},
                  .pixel_values = report->source.values,
                  .pixel_intensity = report->source.intensity,
                  .spacing_source = report->source.spacing_source ? report->source.spacing_source : ""},
        .features = report->features.items,
        .feature_count = report->features.count};
    const struct queue_result folder = {
        .kind = "folder", .path = unit->output, .sop_class_uid = "", .sop_instance_uid = "", .series_uid = ""};
    const struct error *error = &report->error;
    if (report->verdict != PROTO_VERDICT_DONE)
        return queue_fail_job(cohort->queue, job_id, error->code, error->message, error->file[0], error->file[1],
                              clock_unix_ms());
    return queue_finish_job(cohort->queue, job_id,
                            &(struct queue_finish){report->review  ? QUEUE_REVIEW
                                                   : report->empty ? QUEUE_EMPTY
                                                                   : QUEUE_DONE,
                                                   &figures, report->empty ? NULL : &folder, !report->empty,
                                                   error->code, error->message},
                            clock_unix_ms());
}

int
run_cohort_add_job(struct run_cohort *cohort, const struct units *units, const struct unit *unit,
                   const struct pipeline_report *report)
{
    const struct queue_new_job job = {.series_id = cohort->series[unit - units->items],
                                      .revision = 1,
                                      .stack = unit->stack,
                                      .pipeline = cohort->pipeline->name,
                                      .settings = cohort->settings};
    struct queue_ids superseded;
    int64_t job_id;
    int rc = queue_begin(cohort->queue);
    if (rc == 0)
        rc = queue_add_job(cohort->queue, &job, clock_unix_ms(), &job_id, &superseded);
    if (rc == 0) {
        free(superseded.at);
        rc = queue_start_job(cohort->queue, job_id, "run", 0, clock_unix_ms());
    }
    if (rc == 0)
        rc = cohort_finish_job(cohort, job_id, unit, report);
    return cohort_complain(cohort, rc == 0 ? queue_commit(cohort->queue) : rc);
}

int
run_cohort_write(const struct run_cohort *cohort)
{
    char *paths[COHORT_TABLES] = {NULL};
    struct report *report = NULL;
    struct error error = {0};
    int status = cohort_complain(cohort, cohort_paths(cohort, paths));
    if (status == EXIT_OK && report_open(cohort->path, &report, &error) != 0) {
        cli_print_error("cannot make the cohort: %s", error.message);
        status = EXIT_PARTIAL;
    }
    if (status == EXIT_OK)
        status = cohort_tables_write(report, &(struct report_cohort){.pipeline = cohort->pipeline->name},
                                     &(struct cohort_tables){paths[0], paths[1], paths[2], paths[3], paths[3]});
    if (report)
        report_close(report);
    for (int i = 0; i < COHORT_TABLES; i++)
        free(paths[i]);
    return status;
}

void
run_cohort_close(struct run_cohort *cohort)
{
    if (cohort->queue)
        queue_close(cohort->queue);
    free(cohort->path);
    free(cohort->series);
}
