/* compare.c - `noctule compare`: measures the agreement of regions with those of a reference. */
#include "service/cli/cli.h"

#include "base/text.h"
#include "db/report.h"
#include "service/cli/compare/compare_case.h"
#include "service/cli/compare/compare_print.h"
#include "service/cli/input/input.h"
#include "service/common/layout.h"
#include "service/common/parallel.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPARE_MOST_MM 1000.0

struct compare_options {
    struct cli_texts images, regions;
    const char *tolerance;
    double tolerance_mm;
    bool json;
};

struct compare_run {
    const struct conf *conf;
    const struct compare_options *options;
    struct compare_request request;
    struct collection files;
    size_t reference; /* the first file of the reference */
    size_t images;    /* the first file of --images */
    struct headers headers;
    struct input_skipped skipped;
    struct sorted sorted;
    struct compare_object *objects; /* one per file */
    size_t object_count;
    struct compare_rows rows;
    size_t failed; /* files, cases and objects that could not be compared */
};

static int
compare_check(struct cli_call *call)
{
    struct compare_options *options = call->options;
    char *end = NULL;
    options->tolerance_mm = options->tolerance ? strtod(options->tolerance, &end) : 2;
    if (options->tolerance && (end == options->tolerance || *end || !(options->tolerance_mm >= 0) ||
                               options->tolerance_mm > COMPARE_MOST_MM))
        return cli_usage_error(call->command->name, "--tolerance takes millimetres, 0 to %.0f", COMPARE_MOST_MM);
    for (size_t i = 0; i < options->regions.count; i++)
        if (!strchr(options->regions.items[i], '='))
            return cli_usage_error(call->command->name, "--region takes FOUND=REFERENCE");
    return EXIT_OK;
}

/* ---------------------------------------------------------------------------------- input ---- */

/* Returns whether an input is the number of a job. */
static bool
compare_is_job(const char *input, int64_t *job)
{
    return access(input, F_OK) != 0 && cli_parse_number(input, job) == 0;
}

/* Adds a file, a folder, or the results of a job. */
static int
compare_collect(struct compare_run *run, const char *input)
{
    int64_t job;
    char folder[PATH_MAX];
    if (!compare_is_job(input, &job))
        return cli_collect(&run->files, input);
    snprintf(folder, sizeof folder, "%s/" LAYOUT_OUTBOX "/%lld", run->conf->root, (long long)job);
    return cli_collect(&run->files, folder);
}

/* Adds the stored images of a job. */
static int
compare_collect_images(struct compare_run *run, int64_t job)
{
    struct report *report;
    struct report_stored stored = {0};
    struct error error;
    char *series = NULL;
    int status = cli_open_report(run->conf, &report);
    if (status != EXIT_OK)
        return status;
    int rc = report_series_of(report, job, &series, &error);
    if (rc == 0)
        rc = report_stored_series(report, series, &stored, &error);
    report_close(report);
    for (size_t i = 0; i < stored.path_count && rc == 0; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", run->conf->root, stored.paths[i]);
        rc = input_collect_add(&run->files, path);
        if (rc)
            error_set_system(&error, rc, "list the images");
    }
    if (rc)
        cli_print_error("%s", error.message);
    free(series);
    report_stored_clear(&stored);
    return rc ? EXIT_NOT_FOUND : EXIT_OK;
}

static void
compare_complain(struct compare_run *run, const char *what, const struct error *error)
{
    cli_print_error("%s%s%s: %s", what, *what ? ": " : "", code_name(error->code), error->message);
    run->failed++;
}

/* Sorts a file that is no image: to the objects, to the failures, or to the files that are skipped. */
static int
compare_sort_file(struct compare_run *run, size_t file)
{
    struct compare_object *object = &run->objects[run->object_count];
    struct error error = {.code = CODE_NONE};
    const char *path = run->files.paths[file];
    if (!input_sorted_is_other(&run->headers.errors[file])) {
        compare_complain(run, path, &run->headers.errors[file]);
        return 0;
    }
    const int rc = file < run->images ? compare_object_open(path, object, &error) : -EINVAL;
    if (rc == 0) {
        object->side = file < run->reference ? AGREEMENT_FOUND : AGREEMENT_REFERENCE;
        run->object_count++;
    }
    if (rc == 0 || rc == -ENOMEM)
        return rc;
    if (input_sorted_is_other(&error) || file >= run->images)
        return input_skipped_add(&run->skipped, path, run->headers.errors[file].code, run->headers.errors[file].message);
    compare_complain(run, path, &error);
    return 0;
}

static int
compare_read(struct compare_run *run)
{
    int rc = headers_read(run->files.paths, run->files.count, run->request.threads, NULL, &run->headers);
    run->objects = calloc(run->files.count + 1, sizeof *run->objects);
    if (!run->objects)
        rc = -ENOMEM;
    for (size_t i = 0; i < run->headers.count && rc == 0; i++)
        if (run->headers.rc[i])
            rc = compare_sort_file(run, i);
    if (rc == 0)
        rc = input_sorted_make(&run->headers, run->files.paths, &run->conf->series, &run->skipped, &run->sorted);
    if (rc)
        cli_print_error("cannot read the files: %s", strerror(-rc));
    return rc ? EXIT_PARTIAL : EXIT_OK;
}

/* ---------------------------------------------------------------------------------- cases ---- */

/* Compares the marked objects if both sides have one. */
static void
compare_marked(struct compare_run *run, const struct headers *series, const bool *marked)
{
    const struct compare_object **objects = calloc(run->object_count + 1, sizeof(struct compare_object *));
    size_t count = 0, sides[AGREEMENT_MASKS] = {0};
    struct error error = {.code = CODE_NONE};
    int rc = objects ? 0 : error_set_system(&error, -ENOMEM, "compare regions");
    for (size_t i = 0; i < run->object_count && rc == 0; i++)
        if (marked[i]) {
            objects[count++] = &run->objects[i];
            sides[run->objects[i].side]++;
        }
    if (rc == 0 && sides[0] > 0 && sides[1] > 0) {
        for (size_t i = 0; i < run->object_count; i++)
            run->objects[i].used |= marked[i];
        rc = compare_case(&run->request, series, objects, count, &run->rows, &error);
    }
    if (rc)
        compare_complain(run, count > 0 ? objects[0]->path : "", &error);
    free(objects);
}

/* Compares the objects of each series of images, then Segmentations without images. */
static void
compare_all(struct compare_run *run)
{
    bool *marked = calloc(run->object_count + 1, sizeof *marked);
    for (size_t i = 0; i < run->sorted.count && marked; i++) {
        const struct headers *series = &run->sorted.series[i].headers;
        for (size_t k = 0; k < run->object_count; k++)
            marked[k] = compare_object_is_of(&run->objects[k], series->instances[0]);
        compare_marked(run, series, marked);
    }
    for (size_t i = 0; i < run->object_count && marked; i++) {
        if (run->objects[i].used || run->objects[i].side != AGREEMENT_FOUND)
            continue;
        for (size_t k = 0; k < run->object_count; k++)
            marked[k] = k == i || (!run->objects[k].used && run->objects[k].side == AGREEMENT_REFERENCE &&
                                   compare_objects_share(&run->objects[i], &run->objects[k]));
        compare_marked(run, NULL, marked);
    }
    for (size_t i = 0; i < run->object_count; i++)
        if (!run->objects[i].used) {
            cli_print_error("%s: no %s of the same series", run->objects[i].path,
                            run->objects[i].side == AGREEMENT_FOUND ? "reference" : "object to compare");
            run->failed++;
        }
    run->failed += !marked;
    free(marked);
}

static int
compare_all_inputs(struct compare_run *run, char **inputs)
{
    int status = compare_collect(run, inputs[0]);
    run->reference = run->files.count;
    if (status == EXIT_OK)
        status = compare_collect(run, inputs[1]);
    run->images = run->files.count;
    for (size_t i = 0; i < run->options->images.count && status == EXIT_OK; i++)
        status = cli_collect(&run->files, run->options->images.items[i]);
    for (int i = 0; i < 2 && status == EXIT_OK; i++) {
        int64_t job;
        if (compare_is_job(inputs[i], &job))
            status = compare_collect_images(run, job);
    }
    if (status == EXIT_OK && (cli_confine(CONFINE_STEP, &run->files, NULL, 0, &(struct command_places){0}) != 0 ||
                              cli_confine_calls(CONFINE_STEP) != 0))
        status = EXIT_PARTIAL;
    if (status == EXIT_OK)
        status = compare_read(run);
    if (status != EXIT_OK)
        return status;
    compare_all(run);
    for (size_t i = 0; i < run->rows.count; i++)
        run->failed += run->rows.items[i].error.code != CODE_NONE;
    compare_print(&run->rows, run->request.tolerance_mm, run->options->json);
    if (run->object_count == 0)
        input_skipped_print(&run->skipped);
    return run->failed > 0 ? EXIT_PARTIAL : run->rows.count == 0 ? EXIT_NOT_FOUND : EXIT_OK;
}

static int
compare_run(struct cli_call *call)
{
    const struct compare_options *options = call->options;
    struct compare_run run = {.conf = call->context->conf,
                              .options = options,
                              .request = {.pairs = options->regions.items,
                                          .pair_count = options->regions.count,
                                          .tolerance_mm = options->tolerance_mm,
                                          .threads = parallel_processors()}};
    dicom_init();
    const int status = compare_all_inputs(&run, call->arguments);
    for (size_t i = 0; i < run.object_count; i++)
        free(run.objects[i].references);
    free(run.objects);
    free(run.rows.items);
    input_sorted_free(&run.sorted);
    input_skipped_clear(&run.skipped);
    headers_free(&run.headers);
    input_collect_free(&run.files);
    return status;
}

const struct cli_command cli_compare = {
    .name = "compare",
    .help = "measure the agreement of regions with those of a reference",
    .usage = {"[OPTION]... FOUND REFERENCE"},
    .more = "FOUND and REFERENCE: a SEG or RTSTRUCT file, a folder with such files, or the number of a job. Objects of one "
            "series are compared with each other.",
    .options =
        (const struct cli_option[]){
            {"images", 0, &cli_files, CLI_AT(struct compare_options, images),
             .help = "images of the regions, unless they are in the folders; may be repeated"},
            {"region", 0, &cli_files, CLI_AT(struct compare_options, regions),
             .help = "patterns of regions to compare, each united; may be repeated; default: equal names",
             .noun = "FOUND=REFERENCE"},
            {"tolerance", 0, &cli_text, CLI_AT(struct compare_options, tolerance),
             .help = "tolerance of the surface Dice; default: 2", .noun = "MM"},
            CLI_JSON(struct compare_options),
            {0}},
    .size = sizeof(struct compare_options),
    .kind = &cli_file,
    .min_arguments = 2,
    .max_arguments = 2,
    .needs = "two files, folders or jobs",
    .check = compare_check,
    .run = compare_run};
