/* run.c - `noctule run`: reads the input files, runs a job per stack and prints the results. */
#include "service/cli/cli.h"

#include "service/cli/input/input.h"
#include "service/cli/run_cohort.h"
#include "service/cli/run_images.h"
#include "service/cli/run_programs.h"
#include "service/common/file_ops.h"
#include "service/common/parallel.h"
#include "service/pipeline/headers.h"
#include "service/pipeline/job_lane.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/pipeline.h"
#include "service/pipeline/results/results.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_THREADS 256

struct options {
    const char *wanted;
    const struct conf_pipeline *pipeline; /* of that name */
    const char *output;
    const char *stack, *stacks; /* NULL: see struct units_request */
    int64_t wanted_threads;     /* 0: as configured */
    int threads;
    bool accept_missing, keep_masks, slices, json, quiet, table, cohort;
    char **inputs;
    int input_count;
    struct cli_texts objects;
    struct run_images_request images; /* with the masks of --mask, also of programs */
};

struct direct_run {
    const struct conf *conf;
    struct options options;
    struct collection files;
    struct headers headers;
    struct units units;
    struct input_skipped skipped;
    struct input_objects found; /* among the images; used without --object */
    char **unit_objects;        /* of the current unit; has room for all */
    struct run_programs programs;
    struct run_images images;
    char **groups; /* the inputs as absolute paths; NULL: no cohort */
    struct run_cohort cohort;
    size_t faulty;
    size_t refused, empty, review;
    bool cohort_failed;
    char *settings, *validated;
    struct job_device *device;
    struct job_lane *lane;
    struct progress *progress;
    struct json json;
    enum confine_role confined;
    /* existing folder in which the output path was created; NULL: the output folder existed */
    char *kept;
};

static atomic_bool stop;
static volatile sig_atomic_t stop_signal;

static void
on_stop(int number)
{
    stop_signal = number;
    atomic_store(&stop, true);
}

/* ------------------------------------------------------------------------------- options ---- */

static int
run_check(struct cli_call *call)
{
    const struct options *options = call->options;
    const char *name = call->command->name;
    if (options->wanted_threads > MAX_THREADS)
        return cli_usage_error(name, "--threads takes a number from 1 to %d", MAX_THREADS);
    if (!options->output || options->output[0] == '\0')
        return cli_usage_error(name, "needs --output DIR");
    if (options->table && options->json)
        return cli_usage_error(name, "--table and --json cannot be combined");
    if (options->stack && options->stacks)
        return cli_usage_error(name, "--stack and --stacks cannot be combined");
    if (!options->wanted)
        return cli_usage_error(name, "needs --pipeline NAME");
    const struct cli_texts *masks = &options->images.masks;
    const bool images = run_images_are_given(&options->images);
    if (images && call->count > 0)
        return cli_usage_error(name, "--image and --pairs cannot be combined with files and folders");
    if (!images && call->count == 0)
        return cli_usage_error(name, "needs files or folders");
    if (images && masks->count > 0 && masks->count != options->images.images.count)
        return cli_usage_error(name, "needs one --mask per --image");
    if (options->images.label > 0 && !images)
        return cli_usage_error(name, "--label requires --image or --pairs");
    if (options->images.label > UINT16_MAX)
        return cli_usage_error(name, "--label takes a number from 1 to %d", UINT16_MAX);
    if (options->images.pairs && options->images.images.count > 0)
        return cli_usage_error(name, "--pairs and --image cannot be combined");
    for (size_t i = 0; i < masks->count && !images; i++)
        if (!strchr(masks->items[i], '='))
            return cli_usage_error(name, "--mask takes NAME=FILE, or with --image a FILE");
    return EXIT_OK;
}

/* --------------------------------------------------------------------------------- input ---- */

static void
complain_error(struct direct_run *run, const char *what, const struct error *error)
{
    cli_progress_clear(run->progress);
    cli_print_error("%s%s%s: %s", what, what[0] ? ": " : "", code_name(error->code), error->message);
}

/* Returns whether the file is an --object, which is not reported as skipped. */
static bool
run_is_given_object(const struct direct_run *run, const char *path)
{
    const struct cli_texts *objects = &run->options.objects;
    struct stat file, object;
    if (stat(path, &file) != 0)
        return false;
    for (size_t i = 0; i < objects->count; i++)
        if (stat(objects->items[i], &object) == 0 && object.st_dev == file.st_dev && object.st_ino == file.st_ino)
            return true;
    return false;
}

/* Reports unreadable files. Other files in a folder are no error. */
static int
run_sort_files(struct direct_run *run)
{
    const struct conf_pipeline *pipeline = run->options.pipeline;
    bool wants_objects = false;
    int rc = 0;
    for (size_t i = 0; i < pipeline->segment_count && run->options.objects.count == 0; i++)
        wants_objects |= pipeline->segments[i].method == CONF_OBJECT;
    for (size_t i = 0; i < run->headers.count && rc == 0; i++) {
        const struct error *error = &run->headers.errors[i];
        char *path = run->files.paths[i];
        if (run->headers.rc[i] == 0)
            continue;
        if (!input_sorted_is_other(error)) {
            run->faulty++;
            complain_error(run, path, error);
        } else if (!run_is_given_object(run, path)) {
            rc = input_objects_sort(wants_objects ? &run->found : NULL, &run->skipped, path, error);
        }
    }
    if (rc == 0 && !(run->unit_objects = calloc(run->found.count + 1, sizeof *run->unit_objects)))
        rc = -ENOMEM;
    return rc;
}

static void
run_headers_progress(void *context, double fraction)
{
    cli_progress_update(context, "headers", fraction);
}

static int
read_headers(struct direct_run *run)
{
    const struct headers_watch watch = {run_headers_progress, run->progress, &stop};
    cli_progress_begin(run->progress, "reading");
    int (*const read)(char *const *paths, size_t count, int threads, const struct headers_watch *watch,
                      struct headers *headers) = run->images.count > 0 ? headers_read_images : headers_read;
    int error = read(run->files.paths, run->files.count, run->options.threads, &watch, &run->headers);
    if (error) {
        if (error != -ECANCELED)
            cli_print_error("cannot read the files: %s", strerror(-error));
        return EXIT_PARTIAL;
    }
    error = run_sort_files(run);
    if (error)
        cli_print_error("%s", strerror(-error));
    return error ? EXIT_PARTIAL : EXIT_OK;
}

static int
make_units(struct direct_run *run)
{
    struct error error;
    const struct units_request request = {.headers = &run->headers,
                                          .paths = run->files.paths,
                                          .pipeline = run->options.pipeline,
                                          .series_limits = &run->conf->series,
                                          .stack = run->options.stack,
                                          .stacks = run->options.stacks,
                                          .accept_missing = run->options.accept_missing,
                                          .output = run->options.output,
                                          .skipped = &run->skipped,
                                          .groups = run->groups,
                                          .group_count = run->groups ? (size_t)run->options.input_count : 0};
    if (input_units_make(&request, &run->units, &error) != 0) {
        complain_error(run, "", &error);
        return EXIT_PARTIAL;
    }
    cli_progress_clear(run->progress);
    /* without units, the skipped files are the reason */
    if (run->units.count == 0 || !run->options.quiet)
        input_skipped_print(&run->skipped);
    return run->groups ? run_cohort_add(&run->cohort, &run->units, &run->headers, run->files.paths) : EXIT_OK;
}

/* ------------------------------------------------------------------------------- running ---- */

/* Adds up the images of all series to run. Units of one series are neighbours. */
static struct predict_size
run_size(const struct direct_run *run)
{
    const struct headers *counted = NULL;
    struct predict_size size = {0};
    for (size_t i = 0; i < run->units.count; i++) {
        const struct unit *unit = &run->units.items[i];
        if (unit->refusal.code != CODE_NONE || unit->headers == counted)
            continue;
        counted = unit->headers;
        for (size_t k = 0; k < counted->count; k++)
            predict_add(run->options.pipeline, counted->instances[k], &size);
    }
    return size;
}

/* Opens the first configured GPU, or the CPU. */
static int
run_open_device(struct direct_run *run)
{
    struct error error;
    const struct conf_compute *compute = &run->conf->compute;
    const struct predict_size size = run_size(run);
    /* the CPU is predicted to finish before a GPU is open */
    const bool cpu_is_faster =
        strcmp(compute->backend, "auto") == 0 &&
        predict_seconds(run->options.pipeline, &size, run->options.threads) < PREDICT_OPEN_SECONDS;
    const struct kernels_device_options options = {.backend = cpu_is_faster ? "cpu" : compute->backend,
                                                   .device = compute->device_count > 0 ? compute->devices[0] : NULL,
                                                   .threads = run->options.threads};
    int rc = job_device_open(&options, 0, &run->device, &error);
    if (rc == 0)
        rc = job_lane_open(run->device, &run->lane, &error);
    run_programs_find_gpu(&run->programs, compute);
    if (rc)
        cli_print_error("cannot open the compute backend: %s", error.message);
    else if (run->confined == CONFINE_GPU_STEP)
        rc = cli_confine_calls(run->confined);
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

/*
 * Returns the first feature with the name, which has the smallest distance if there are several. The summary names no
 * filter, so that it must not contain values of filtered or normalised images.
 */
static const struct feature *
find_feature(const struct feature_set *set, int32_t segment, const char *name)
{
    char value[FEATURE_SETTING];
    for (size_t i = 0; i < set->count; i++) {
        const struct feature *feature = &set->items[i];
        if (feature->segment == segment && strcmp(feature->name, name) == 0 &&
            !feature_get(feature->settings, FEATURE_filter, value) &&
            !feature_get(feature->settings, FEATURE_normalise_scale, value))
            return feature;
    }
    return NULL;
}

/* Prints the quantities and selected features on one line. features.json has all. */
static void
run_print_features(const struct feature_set *set, int32_t segment)
{
    static const char *const names[][2] = {
        {"mean", "mean"},       {"standard_deviation", "SD"},       {"minimum", "minimum"},
        {"maximum", "maximum"}, {"joint_entropy", "joint entropy"}, {"contrast", "contrast"}};
    const char *before = "    ";
    const size_t selected = sizeof names / sizeof names[0];
    for (size_t i = 0; i < selected + set->count; i++) {
        const struct feature *feature =
            i < selected ? find_feature(set, segment, names[i][0]) : &set->items[i - selected];
        if (!feature || (i >= selected && (feature->segment != segment || strcmp(feature->family, "quantity") != 0)))
            continue;
        const char *name = i < selected ? names[i][1] : feature->name;
        if (feature->missing_reason[0])
            printf("%s%s none (%s)", before, name, feature->missing_reason);
        else
            printf("%s%s %.6g%s%s", before, name, feature->value, strcmp(feature->unit, "1") == 0 ? "" : " ",
                   value_unit_spoken(feature->unit));
        before = ", ";
    }
    if (before[0] == ',')
        putchar('\n');
}

/* A 2-D image has no volume. */
static void
run_print_size(const char *label, int64_t voxels, double millilitres)
{
    if (isnan(millilitres))
        printf("  %-24s %12" PRId64 " pixels", label, voxels);
    else
        printf("  %-24s %12" PRId64 " voxels %10.2f ml", label, voxels, millilitres);
}

static void
run_print_segments(const struct pipeline_report *report)
{
    for (int32_t i = 0; i < report->segment_count; i++) {
        const struct pipeline_segment *segment = &report->segments[i];
        run_print_size(segment->label, segment->voxels, segment->millilitres);
        puts(segment->number > 0 ? "" : "  (hidden)");
        if (segment->number > 0)
            run_print_features(&report->features, segment->number);
    }
    if (find_feature(&report->features, 0, "mean") || find_feature(&report->features, 0, "contrast")) {
        const double *spacing = report->spacing;
        const double ml = (double)report->voxels * spacing[0] * spacing[1] * spacing[2] / 1000;
        run_print_size("(whole volume)", report->voxels, report->source.flat ? NAN : ml);
        putchar('\n');
        run_print_features(&report->features, 0);
    }
}

static void
run_print_done(const struct direct_run *run, const struct unit *unit, const struct pipeline_report *report)
{
    if (run->options.quiet || run->options.json)
        return;
    for (int32_t i = 0; i < report->result_count; i++)
        printf("%s/%s\n", unit->output, report->results[i].file);
    if (report->features.count > 0)
        printf("%s/features.json\n", unit->output);
    if (report->features.histogram_count > 0)
        printf("%s/patterns.json\n", unit->output);
    if (report->features.matrix_count > 0)
        printf("%s/matrices.json\n", unit->output);
    for (size_t i = 0; run->options.keep_masks && i < run->programs.count; i++)
        printf("%s/%s.mask\n", unit->output, run->programs.of[i]->name);
    run_print_segments(report);
    printf("  %d slice%s of %d x %d in %.2f s: read %.2f, compute %.2f, write %.2f, verify %.2f\n", report->planes,
           report->planes == 1 ? "" : "s", report->columns, report->rows, report->total_seconds, report->read_seconds,
           report->compute_seconds, report->write_seconds, report->verify_seconds);
    if (report->note[0])
        printf("  %s\n", report->note);
}

/* Prints the outcome, the first file and the volumes of a job on one line, and then its reasons. */
static void
run_print_row(struct direct_run *run, const struct unit *unit, const struct pipeline_report *report)
{
    const bool refused = report->verdict != PROTO_VERDICT_DONE;
    printf("%-8s%s:", pipeline_outcome(report), unit->paths[0]);
    for (int32_t i = 0; i < report->segment_count; i++)
        if (report->segments[i].number > 0)
            printf(" %s %.0f %s;", report->segments[i].label,
                   report->source.flat ? (double)report->segments[i].voxels : report->segments[i].millilitres,
                   report->source.flat ? "pixels" : "ml");
    putchar('\n');
    if (refused || report->empty)
        printf("        %s: %s\n", code_name(report->error.code), report->error.message);
    for (size_t i = 0; i < report->breaches.count; i++)
        printf("        %s\n", report->breaches.at[i].text);
    fflush(stdout);
    run->refused += refused;
    run->review += report->review;
    run->empty += report->empty && !report->review;
}

static void
run_print(struct direct_run *run, const struct unit *unit, const struct job_spec *spec,
          const struct pipeline_report *report)
{
    if (run->options.table) {
        run_print_row(run, unit, report);
        return;
    }
    if (report->verdict != PROTO_VERDICT_DONE) {
        run->refused++;
        complain_error(run, unit->output, &report->error);
        for (int i = 0; i < 2 && report->error.file[i][0]; i++)
            cli_print_error("  %s", report->error.file[i]);
    } else {
        run->review += report->review;
        run->empty += report->empty;
        if (report->empty)
            complain_error(run, unit->output, &report->error);
        else
            run_print_done(run, unit, report);
        /* unmet expectations: the files are complete nevertheless */
        for (size_t i = 0; i < report->breaches.count; i++)
            cli_print_error("%s: not as expected: %s", unit->output, report->breaches.at[i].text);
        if (report->review)
            cli_print_error("%s: check preview.png; a daemon would hold this result until noctule accept",
                            unit->output);
    }
    if (run->options.json) {
        const struct record record = {report, spec, run->options.pipeline->name, run->options.threads};
        record_put(&run->json, &record);
    }
}

/* Runs the programs of the job. Returns 0, or -errno with the error filled. */
static int
run_unit_programs(struct direct_run *run, struct job_spec *spec, struct error *error)
{
    spec->masks = run->programs.masks;
    spec->mask_count = run->programs.count;
    if (spec->mask_count == 0)
        return 0;
    job_lane_rest(run->lane, true); /* a program may need the memory of the GPU */
    int rc = masks_make(&run->programs.maker, spec, error);
    if (rc)
        spec->mask_count = 0; /* the record of a job has complete masks only */
    return rc == 0 && run->options.keep_masks ? masks_keep(&run->programs.maker, spec, spec->output, false, error) : rc;
}

static void
run_unit(struct direct_run *run, struct unit *unit)
{
    struct job_spec spec = {.stack = unit->stack,
                            .settings = run->settings,
                            .output = unit->output,
                            .device_serial_number = run->conf->device_serial_number,
                            .validated = run->validated,
                            .slices = run->options.slices ? JOB_SLICES_ALL : JOB_SLICES_NONE,
                            .inputs = unit->paths,
                            .input_count = unit->headers->count,
                            .objects = run->options.objects.items,
                            .object_count = run->options.objects.count,
                            .note = unit->note};
    const struct pipeline_watch watch = {cli_progress_update, run->progress, &stop};
    struct pipeline_report report;
    struct error error = unit->refusal;
    char title[48];
    int rc = 0;
    for (size_t i = 0; i < run->found.count; i++) {
        spec.objects = run->unit_objects;
        if (input_object_is_of(run->found.items[i].peek, unit->headers))
            run->unit_objects[spec.object_count++] = run->found.items[i].path;
    }
    if (unit->refusal.code == CODE_NONE) {
        snprintf(title, sizeof title, "%.24s %zu/%zu", run->options.pipeline->name,
                 (size_t)(unit - run->units.items) + 1, run->units.count);
        cli_progress_begin(run->progress, title);
        rc = run->images.masks ? run_images_take_mask(&run->images, unit, &run->programs.scratch, &error)
                               : run_unit_programs(run, &spec, &error);
        if (run->images.masks) {
            spec.masks = &run->images.mask;
            spec.mask_count = rc == 0;
        }
    }
    if (rc || unit->refusal.code != CODE_NONE) {
        report = (struct pipeline_report){.error = error};
        report.verdict = rc ? masks_verdict(rc, &error) : PROTO_VERDICT_REJECT;
        memcpy(report.series_uid, unit->headers->instances[0]->series_uid, sizeof report.series_uid);
    } else {
        cli_progress_begin(run->progress, title); /* without the time of programs */
        job_lane_run(run->lane, &spec, unit->headers, &watch, &report);
        cli_progress_clear(run->progress);
    }
    run_print(run, unit, &spec, &report);
    if (run->groups && unit->refusal.code == CODE_NONE)
        run->cohort_failed |= run_cohort_add_job(&run->cohort, &run->units, unit, &report) != EXIT_OK;
    pipeline_report_clear(&report);
    masks_forget(&run->programs.maker, run->programs.masks, run->programs.count);
}

/* Runs all units. Returns the exit code. */
static int
run_units(struct direct_run *run)
{
    const struct options *options = &run->options;
    const size_t lost = options->accept_missing ? run->units.sorted.orphans : run->faulty;
    if (options->json) {
        run->json.out = stdout;
        json_begin_object(&run->json, NULL);
        input_skipped_put(&run->skipped, &run->json);
        input_skipped_put_damaged(&run->headers, run->files.paths, run->headers.count, &run->json);
        json_begin_array(&run->json, "jobs");
    }
    for (size_t i = 0; i < run->units.count && !atomic_load(&stop); i++)
        run_unit(run, &run->units.items[i]);
    if (options->table)
        printf("%zu stack%s: %zu DONE, %zu REVIEW, %zu EMPTY, %zu without a result\n", run->units.count,
               run->units.count == 1 ? "" : "s", run->units.count - run->review - run->empty - run->refused,
               run->review, run->empty, run->refused);
    if (options->json) {
        json_end_array(&run->json);
        json_end_object(&run->json);
    }
    if (run->groups)
        run->cohort_failed |= run_cohort_write(&run->cohort) != EXIT_OK;
    if (run->units.count == 0 && run->units.stacks == 0) {
        cli_print_error("no image to process among %zu files", run->headers.count);
        return run->faulty > 0 ? EXIT_PARTIAL : EXIT_NOT_FOUND;
    }
    if (run->units.count == 0) {
        cli_print_error("STACK_NOT_FOUND: no series has a stack named \"%s\"; noctule explain lists the stacks",
                        options->stack ? options->stack : options->stacks);
        return EXIT_NOT_FOUND;
    }
    if (run->refused > 0 || lost > 0 || run->cohort_failed)
        return EXIT_PARTIAL;
    return run->review > 0 ? EXIT_REVIEW : run->empty > 0 ? EXIT_EMPTY : EXIT_OK;
}

/* Removes the output folder and the folders created for it, if they are empty. */
static void
remove_output(const struct direct_run *run)
{
    char *path = run->kept ? strdup(run->options.output) : NULL;
    while (path && strcmp(path, run->kept) != 0 && (rmdir(path) == 0 || errno == ENOENT)) {
        const char *above = dirname(path);
        memmove(path, above, strlen(above) + 1);
    }
    free(path);
}

/* Creates the output folder. Returns 0 even if that fails, because each job then reports the error.
 * Returns -ENOMEM after an error message. */
static int
make_output(struct direct_run *run)
{
    if (access(run->options.output, F_OK) == 0)
        return 0;
    char *kept = strdup(run->options.output);
    if (!kept) {
        cli_print_error("%s", strerror(ENOMEM));
        return -ENOMEM;
    }
    do {
        const char *above = dirname(kept);
        memmove(kept, above, strlen(above) + 1);
    } while (access(kept, F_OK) != 0);
    run->kept = kept;
    if (file_make_path(run->options.output) == 0)
        return 0;
    remove_output(run);
    free(run->kept);
    run->kept = NULL;
    return 0;
}

/* Confines the process, because images are foreign data. A GPU driver needs unknown system calls to
 * open a device, so their filter follows later. */
static int
run_confine(struct direct_run *run)
{
    const struct cli_texts *objects = &run->options.objects;
    const struct run_programs *programs = &run->programs;
    const char *output = run->options.output;
    const char *backend = run->conf->compute.backend;
    const bool may_use_gpu = strcmp(backend, "cuda") == 0 || (strcmp(backend, "cpu") != 0 && places_have_gpus());
    run->confined = may_use_gpu ? CONFINE_GPU_STEP : CONFINE_STEP;
    if (make_output(run))
        return EXIT_PARTIAL;
    const struct command_places places = {
        .output = access(output, F_OK) == 0 ? output : NULL, .kept = run->kept, .scratch = programs->scratch.path};
    char **others = calloc(objects->count + programs->count + run->images.count + 1, sizeof *others);
    size_t count = 0;
    for (size_t i = 0; others && i < run->images.count; i++)
        if (run->images.items[i].mask)
            others[count++] = run->images.items[i].mask;
    for (size_t i = 0; others && i < objects->count; i++)
        others[count++] = objects->items[i];
    for (size_t i = 0; others && i < programs->count; i++)
        if (programs->masks[i].path)
            others[count++] = programs->masks[i].path;
    int rc = others ? cli_confine(run->confined, &run->files, others, count, &places) : -ENOMEM;
    free(others);
    if (rc == 0 && !may_use_gpu)
        rc = cli_confine_calls(run->confined);
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

/* Opens the device if there are jobs to run. */
static int
run_begin_jobs(struct direct_run *run)
{
    size_t jobs = 0;
    for (size_t i = 0; i < run->units.count; i++)
        jobs += run->units.items[i].refusal.code == CODE_NONE;
    if (jobs > 1 && run->images.count == 0 && run->options.images.masks.count > 0) {
        cli_print_error("--mask is of one stack, and there are %zu: select it with --stack", jobs);
        return EXIT_USAGE;
    }
    return jobs > 0 ? run_open_device(run) : EXIT_OK;
}

/* Prepares the tables of a cohort. */
static int
run_open_cohort(struct direct_run *run)
{
    struct scratch *scratch = &run->programs.scratch;
    struct error error = {0};
    int rc = 0;
    run->groups = calloc((size_t)run->options.input_count + 1, sizeof *run->groups);
    for (int i = 0; run->groups && rc == 0 && i < run->options.input_count; i++)
        if (!(run->groups[i] = realpath(run->options.inputs[i], NULL))) {
            rc = -errno;
            cli_print_error("%s: %s", run->options.inputs[i], strerror(-rc));
        }
    if (!run->groups)
        cli_print_error("%s", strerror(ENOMEM));
    if (rc || !run->groups)
        return EXIT_PARTIAL;
    if (!scratch->path && scratch_open(scratch, scratch_where(NULL), &error) != 0) {
        cli_print_error("%s", error.message);
        return EXIT_PARTIAL;
    }
    run->cohort = (struct run_cohort){.conf = run->conf,
                                      .pipeline = run->options.pipeline,
                                      .settings = run->settings,
                                      .scratch = scratch,
                                      .output = run->options.output,
                                      .unnamed = run_images_are_given(&run->options.images)};
    return run_cohort_open(&run->cohort);
}

/* Collects the images of --image and --pairs, and chooses their pipeline. */
static int
run_collect_images(struct direct_run *run)
{
    struct run_images *images = &run->images;
    int status = run_images_open(images, &run->options.images, run->options.pipeline, &run->programs.scratch);
    for (size_t i = 0; status == EXIT_OK && i < images->count; i++)
        if (input_collect_add(&run->files, images->items[i].image) != 0) {
            cli_print_error("%s", strerror(ENOMEM));
            status = EXIT_PARTIAL;
        }
    run->options.inputs = run->files.paths;
    run->options.input_count = (int)run->files.count;
    run->options.pipeline = images->pipeline;
    return status;
}

/* Collects the input files. */
static int
run_collect(struct direct_run *run)
{
    const struct options *options = &run->options;
    if (run_images_are_given(&options->images))
        return run_collect_images(run);
    int status = EXIT_OK;
    for (int i = 0; i < options->input_count && status == EXIT_OK; i++)
        status = cli_collect(&run->files, options->inputs[i]);
    return status == EXIT_OK ? run_programs_open(&run->programs, run->conf, options->pipeline, &options->images.masks)
                             : status;
}

static int
run_all(struct direct_run *run)
{
    run->settings = conf_pipeline_to_text(run->options.pipeline);
    if (!run->settings || !run->progress) {
        cli_print_error("%s", strerror(ENOMEM));
        return EXIT_PARTIAL;
    }
    run->validated = cli_find_validated(run->conf, run->options.pipeline);
    int status = run->options.cohort ? run_open_cohort(run) : EXIT_OK;
    if (status == EXIT_OK)
        status = run_confine(run);
    if (status == EXIT_OK)
        status = read_headers(run);
    if (status == EXIT_OK)
        status = make_units(run);
    if (status == EXIT_OK)
        status = run_begin_jobs(run);
    return status == EXIT_OK ? run_units(run) : status;
}

static int
run_command(struct cli_call *call)
{
    struct direct_run run = {.conf = call->context->conf, .options = *(struct options *)call->options};
    run.options.inputs = call->arguments;
    run.options.input_count = call->count;
    run.options.threads = (int)run.options.wanted_threads;
    if (run.options.threads == 0)
        run.options.threads = run.conf->compute.threads;
    if (run.options.threads == 0)
        run.options.threads = parallel_processors();
    int status = cli_find_pipeline(run.conf, run.options.wanted, &run.options.pipeline);
    if (status == EXIT_OK) {
        struct sigaction action = {.sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND};
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGHUP, &action, NULL);
        signal(SIGXFSZ, SIG_IGN); /* a file size limit must be an error, not a signal */
        dicom_init();
        run.progress = cli_progress_open(!run.options.quiet && !run.options.json && !run.options.table);
        run.programs.maker =
            (struct mask_maker){.threads = run.options.threads, .stop = &stop, .progress = run.progress};
        status = run_collect(&run);
    }
    if (status == EXIT_OK)
        status = run_all(&run);
    run_cohort_close(&run.cohort);
    for (int i = 0; run.groups && i < run.options.input_count; i++)
        free(run.groups[i]);
    free(run.groups);
    run_programs_close(&run.programs);
    run_images_close(&run.images);
    job_lane_close(run.lane);
    job_device_close(run.device);
    input_units_free(&run.units);
    input_skipped_clear(&run.skipped);
    input_objects_free(&run.found);
    free(run.unit_objects);
    headers_free(&run.headers);
    input_collect_free(&run.files);
    cli_progress_close(run.progress);
    free(run.settings);
    free(run.validated);
    remove_output(&run);
    free(run.kept);
    return atomic_load(&stop) ? 128 + (int)stop_signal : status;
}

const struct cli_command cli_run = {
    .name = "run",
    .help = "process files or folders now",
    .usage = {"--pipeline NAME --output DIR [OPTION]... INPUT...",
              "--pipeline NAME --output DIR --image FILE [OPTION]...",
              "--pipeline NAME --output DIR --pairs FILE [OPTION]..."},
    .more = "Exit status: 7 if a job found no voxel, 8 if a result does not meet the expectations "
            "of its pipeline, 128 plus the signal number after a signal.",
    .options =
        (const struct cli_option[]){
            {"pipeline", 'p', &cli_pipeline, CLI_AT(struct options, wanted), .help = "pipeline to run (required)"},
            {"output", 'o', &cli_folder, CLI_AT(struct options, output),
             .help = "output folder (required); several stacks get one folder each below it"},
            {"stack", 's', &cli_text, CLI_AT(struct options, stack), .help = "only stacks with this name",
             .noun = "NAME"},
            {"stacks", 0, &cli_text, CLI_AT(struct options, stacks),
             .help = "stacks of each series: all, first, last, b0, or a pattern of names", .noun = "WHICH"},
            {"object", 0, &cli_files, CLI_AT(struct options, objects),
             .help = "RTSTRUCT, SEG or SR file; may be repeated; default: those among the inputs"},
            {"mask", 0, &cli_files, CLI_AT(struct options, images.masks),
             .help = "stored mask of a program, as NAME=FILE, which then does not run; with --image, the label map of "
                     "an "
                     "image, in the same order; may be repeated",
             .noun = "[NAME=]FILE"},
            {"image", 0, &cli_files, CLI_AT(struct options, images.images),
             .help = "measure an image of NIfTI or NRRD instead of DICOM files; may be repeated"},
            {"pairs", 0, &cli_file, CLI_AT(struct options, images.pairs),
             .help = "measure the images of a CSV table with the columns Image, Mask and perhaps Label"},
            {"label", 0, &cli_count, CLI_AT(struct options, images.label),
             .help = "value of the voxels to measure in the masks of --image and --pairs; default: 1", .noun = "N"},
            {"keep-masks", 0, &cli_flag, CLI_AT(struct options, keep_masks),
             .help = "write the masks of programs beside the results, as NAME.mask"},
            {"slices", 0, &cli_flag, CLI_AT(struct options, slices),
             .help = "write slices.nslc, the file of the slice viewer of the web UI"},
            {"accept-missing", 0, &cli_flag, CLI_AT(struct options, accept_missing),
             .help = "process incomplete series"},
            {"threads", 't', &cli_count, CLI_AT(struct options, wanted_threads),
             .help = "number of CPU threads; default: compute.threads"},
            CLI_JSON(struct options),
            {"quiet", 'q', &cli_flag, CLI_AT(struct options, quiet), .help = "print errors only"},
            {"cohort", 0, &cli_flag, CLI_AT(struct options, cohort),
             .help = "write the features of all patients as cohort.csv, dictionary.csv, reasons.csv and failed.csv: a "
                     "patient is a folder in INPUT, or each of several INPUTs"},
            {"table", 0, &cli_flag, CLI_AT(struct options, table),
             .help = "print a row per stack: outcome, first file, volumes; then the reasons"},
            {0}},
    .size = sizeof(struct options),
    .kind = &cli_file,
    .max_arguments = INT_MAX,
    .needs = "files or folders",
    .standalone = true,
    .check = run_check,
    .as_written = true,
    .run = run_command};
