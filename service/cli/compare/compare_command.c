/* compare_command.c - `noctule compare`: measures the agreement of regions with those of a reference. */
#include "service/cli/cli.h"

#include "base/text.h"
#include "db/report.h"
#include "service/cli/compare/compare_case.h"
#include "service/cli/compare/compare_input.h"
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
    struct compare_input input;
    struct sorted sorted;
    struct compare_rows rows;
    size_t failed; /* cases and objects that could not be compared */
};

static int
compare_check(struct cli_call *call)
{
    struct compare_options *options = call->options;
    char *end = NULL;
    options->tolerance_mm = options->tolerance ? strtod(options->tolerance, &end) : 2;
    if (options->tolerance &&
        (end == options->tolerance || *end || !(options->tolerance_mm >= 0) || options->tolerance_mm > COMPARE_MOST_MM))
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
        return cli_collect(&run->input.files, input);
    snprintf(folder, sizeof folder, "%s/" LAYOUT_OUTBOX "/%lld", run->conf->root, (long long)job);
    return cli_collect(&run->input.files, folder);
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
        rc = input_collect_add(&run->input.files, path);
        if (rc)
            error_set_system(&error, rc, "list the images");
    }
    if (rc)
        cli_print_error("%s", error.message);
    free(series);
    report_stored_clear(&stored);
    return rc ? EXIT_NOT_FOUND : EXIT_OK;
}

/* ---------------------------------------------------------------------------------- cases ---- */

/* Compares the marked objects if both sides have one. */
static void
compare_marked(struct compare_run *run, const struct headers *series, const bool *marked)
{
    const struct compare_object **objects = calloc(run->input.object_count + 1, sizeof(struct compare_object *));
    size_t count = 0, sides[AGREEMENT_MASKS] = {0};
    struct error error = {.code = CODE_NONE};
    int rc = objects ? 0 : error_set_system(&error, -ENOMEM, "compare regions");
    for (size_t i = 0; i < run->input.object_count && rc == 0; i++)
        if (marked[i]) {
            objects[count++] = &run->input.objects[i];
            sides[run->input.objects[i].side]++;
        }
    if (rc == 0 && sides[0] > 0 && sides[1] > 0) {
        for (size_t i = 0; i < run->input.object_count; i++)
            run->input.objects[i].used |= marked[i];
        rc = compare_case(&run->request, series, objects, count, &run->rows, &error);
    }
    if (rc) {
        compare_complain(count > 0 ? objects[0]->path : "", &error);
        run->failed++;
    }
    free(objects);
}

/* Compares the objects of each series of images, then Segmentations without images. */
static void
compare_all(struct compare_run *run)
{
    bool *marked = calloc(run->input.object_count + 1, sizeof *marked);
    for (size_t i = 0; i < run->sorted.count && marked; i++) {
        const struct headers *series = &run->sorted.series[i].headers;
        for (size_t k = 0; k < run->input.object_count; k++)
            marked[k] = compare_object_is_of(&run->input.objects[k], series->instances[0]);
        compare_marked(run, series, marked);
    }
    for (size_t i = 0; i < run->input.object_count && marked; i++) {
        if (run->input.objects[i].used || run->input.objects[i].side != AGREEMENT_FOUND)
            continue;
        for (size_t k = 0; k < run->input.object_count; k++)
            marked[k] = k == i || (!run->input.objects[k].used && run->input.objects[k].side == AGREEMENT_REFERENCE &&
                                   compare_objects_share(&run->input.objects[i], &run->input.objects[k]));
        compare_marked(run, NULL, marked);
    }
    for (size_t i = 0; i < run->input.object_count; i++)
        if (!run->input.objects[i].used) {
            cli_print_error("%s: no %s of the same series", run->input.objects[i].path,
                            run->input.objects[i].side == AGREEMENT_FOUND ? "reference" : "object to compare");
            run->failed++;
        }
    run->failed += !marked;
    free(marked);
}

static int
compare_all_inputs(struct compare_run *run, char **inputs)
{
    int status = compare_collect(run, inputs[0]);
    run->input.reference = run->input.files.count;
    if (status == EXIT_OK)
        status = compare_collect(run, inputs[1]);
    run->input.images = run->input.files.count;
    for (size_t i = 0; i < run->options->images.count && status == EXIT_OK; i++)
        status = cli_collect(&run->input.files, run->options->images.items[i]);
    for (int i = 0; i < 2 && status == EXIT_OK; i++) {
        int64_t job;
        if (compare_is_job(inputs[i], &job))
            status = compare_collect_images(run, job);
    }
    if (status == EXIT_OK && (cli_confine(CONFINE_STEP, &run->input.files, NULL, 0, &(struct command_places){0}) != 0 ||
                              cli_confine_calls(CONFINE_STEP) != 0))
        status = EXIT_PARTIAL;
    if (status != EXIT_OK)
        return status;
    if (compare_input_read(&run->input, run->request.threads) != 0 ||
        input_sorted_make(&run->input.headers, run->input.files.paths, &run->conf->series, &run->input.skipped,
                          &run->sorted) != 0)
        return EXIT_PARTIAL;
    compare_all(run);
    run->failed += run->input.failed;
    for (size_t i = 0; i < run->rows.count; i++)
        run->failed += run->rows.items[i].error.code != CODE_NONE;
    compare_print(&run->rows, run->request.tolerance_mm, run->options->json);
    if (run->input.object_count == 0)
        input_skipped_print(&run->input.skipped);
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
    free(run.rows.items);
    input_sorted_free(&run.sorted);
    compare_input_free(&run.input);
    return status;
}

const struct cli_command cli_compare = {
    .name = "compare",
    .help = "measure the agreement of regions with those of a reference",
    .usage = {"[OPTION]... FOUND REFERENCE"},
    .more =
        "FOUND and REFERENCE: a SEG or RTSTRUCT file, a folder with such files, or the number of a job. Objects of one "
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
