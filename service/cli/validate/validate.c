/*
 * validate.c - `noctule validate`: tries a pipeline on patients of the site.
 *
 * A confined child runs the pipeline and writes the record and the page. Its parent sends the record to the daemon.
 */
#include "service/cli/control_requests.h"

#include "base/durable.h"
#include "base/text.h"
#include "service/cli/input/input.h"
#include "service/cli/validate/validate_result.h"
#include "service/common/file_ops.h"
#include "service/common/parallel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VALIDATE_RECORD "validation.json"
#define VALIDATE_PAGE   "validation.html"

struct validate_options {
    struct cli_texts references, others, regions;
    const char *output;
    bool dry_run, quiet;
};

/* The record as the daemon's message has it. */
struct validate_message {
    char *record;
};

static int
validate_check(struct cli_call *call)
{
    const struct validate_options *options = call->options;
    const char *name = call->command->name;
    if (options->references.count == 0)
        return cli_usage_error(name, "needs --references DIR");
    if (!options->output || !*options->output)
        return cli_usage_error(name, "needs --output DIR");
    for (size_t i = 0; i < options->regions.count; i++)
        if (!strchr(options->regions.items[i], '='))
            return cli_usage_error(name, "--region takes SEGMENT=REFERENCE");
    return EXIT_OK;
}

/* ----------------------------------------------------------------------------------- child ---- */

/* Confines the process, and opens the device. */
static int
validate_open(struct validate_run *run, const struct validate_options *options, struct job_device **device)
{
    const struct conf_compute *compute = &run->conf->compute;
    const bool may_use_gpu =
        strcmp(compute->backend, "cuda") == 0 || (strcmp(compute->backend, "cpu") != 0 && places_have_gpus());
    const enum confine_role role = may_use_gpu ? CONFINE_GPU_STEP : CONFINE_STEP;
    const struct kernels_device_options wanted = {.backend = compute->backend,
                                                  .device = compute->device_count > 0 ? compute->devices[0] : NULL,
                                                  .threads = run->request.threads};
    struct error error;
    if (cli_confine(role, &run->input.files, NULL, 0, &(struct command_places){.output = options->output}) != 0 ||
        (!may_use_gpu && cli_confine_calls(role) != 0))
        return EXIT_PARTIAL;
    int rc = job_device_open(&wanted, 0, device, &error);
    if (rc == 0)
        rc = job_lane_open(*device, &run->lane, &error);
    if (rc)
        cli_print_error("cannot open the compute backend: %s", error.message);
    return rc || (may_use_gpu && cli_confine_calls(role) != 0) ? EXIT_PARTIAL : EXIT_OK;
}

/* Writes a file of the output folder. */
static int
validate_save(const struct validate_run *run, const char *name, struct text_stream *text)
{
    char *path = NULL;
    int rc = text_close(text);
    if (rc == 0 && asprintf(&path, "%s/%s", run->output, name) < 0)
        rc = -ENOMEM;
    if (rc == 0)
        rc = durable_write(AT_FDCWD, path, text->bytes, text->size, 0640, DURABLE_REPLACE);
    if (rc)
        cli_print_error("%s/%s: %s", run->output, name, strerror(-rc));
    free(path);
    free(text->bytes);
    return rc;
}

static int
validate_write(const struct validate_run *run)
{
    struct validate_result result;
    struct text_stream record, page;
    if (validate_decide(run, &result) != 0 || text_open(&record) != 0)
        return EXIT_PARTIAL;
    int rc = validate_put_record(run, &result, record.out);
    const int saved = validate_save(run, VALIDATE_RECORD, &record);
    if (rc == 0)
        rc = saved ? saved : text_open(&page);
    if (rc == 0) {
        validate_put_html(run, &result, page.out);
        rc = validate_save(run, VALIDATE_PAGE, &page);
    }
    validate_print(run, &result, stdout);
    printf("%s/" VALIDATE_PAGE "\n", run->output);
    fflush(stdout);
    free(result.ranges);
    return rc ? EXIT_PARTIAL : result.passed ? EXIT_OK : EXIT_REVIEW;
}

static int
validate_cases(struct validate_run *run, const struct validate_options *options)
{
    struct error error;
    struct progress *progress = cli_progress_open(!options->quiet);
    const struct units_request request = {.headers = &run->input.headers,
                                          .paths = run->input.files.paths,
                                          .pipeline = run->pipeline,
                                          .series_limits = &run->conf->series,
                                          .stacks = CONF_ALL_STACKS,
                                          .output = options->output,
                                          .skipped = &run->input.skipped};
    const struct pipeline_watch watch = {cli_progress_update, progress, NULL};
    if (!progress || compare_input_read(&run->input, run->request.threads) != 0)
        return EXIT_PARTIAL;
    if (input_units_make(&request, &run->units, &error) != 0) {
        cli_print_error("%s", error.message);
        return EXIT_PARTIAL;
    }
    cli_progress_begin(progress, run->pipeline->name);
    const int rc = validate_all(run, &watch);
    cli_progress_close(progress);
    if (rc)
        cli_print_error("%s", strerror(-rc));
    if (rc == 0 && run->count == 0)
        cli_print_error("no series with a reference");
    return rc ? EXIT_PARTIAL : run->count == 0 ? EXIT_NOT_FOUND : EXIT_OK;
}

/* Runs the validation. */
static int
validate_child(const struct conf *conf, const struct conf_pipeline *pipeline, const struct validate_options *options)
{
    struct validate_run run = {.conf = conf,
                               .pipeline = pipeline,
                               .output = options->output,
                               .request = {.pairs = options->regions.items,
                                           .pair_count = options->regions.count,
                                           .tolerance_mm = 2,
                                           .threads = conf->compute.threads}};
    struct job_device *device = NULL;
    if (run.request.threads == 0)
        run.request.threads = parallel_processors();
    pseudonym_key_read(conf->root, &run.key); /* without the key of a root, hashes are of this validation alone */
    dicom_init();
    int status = EXIT_OK;
    for (size_t i = 0; i < options->references.count && status == EXIT_OK; i++)
        status = cli_collect(&run.input.files, options->references.items[i]);
    run.input.images = run.others = run.input.files.count;
    for (size_t i = 0; i < options->others.count && status == EXIT_OK; i++)
        status = cli_collect(&run.input.files, options->others.items[i]);
    if (status == EXIT_OK)
        status = validate_open(&run, options, &device);
    if (status == EXIT_OK)
        status = validate_cases(&run, options);
    if (status == EXIT_OK)
        status = validate_write(&run);
    validate_free(&run);
    job_lane_close(run.lane);
    job_device_close(device);
    return status;
}

/* ---------------------------------------------------------------------------------- parent ---- */

static void
validate_write_message(struct proto_writer *writer, enum proto_type type, const char *argument, const void *options)
{
    const struct validate_message *given = options;
    char login[256];
    const struct message_validated message = {.record = given->record, .login = control_login(login, sizeof login)};
    (void)argument;
    message_write(writer, type, &message);
}

/* Reads the record of the child and sends it to the daemon. */
static int
validate_send(const struct conf *conf, const char *output)
{
    static const struct cli_request request = {PROTO_VALIDATED, "validation", validate_write_message, false};
    struct validate_message message = {0};
    char *path = NULL;
    size_t size = 0;
    FILE *file = asprintf(&path, "%s/" VALIDATE_RECORD, output) < 0 ? NULL : fopen(path, "re");
    if (!file || getdelim(&message.record, &size, '\0', file) < 0) {
        cli_print_error("%s/" VALIDATE_RECORD ": %s", output, strerror(errno));
        return EXIT_PARTIAL;
    }
    fclose(file);
    free(path);
    const int status = control_request_all(conf->root, &request, (char *[]){NULL}, 1, &message);
    free(message.record);
    return status;
}

static int
validate_command(struct cli_call *call)
{
    const struct validate_options *options = call->options;
    const struct conf *conf = call->context->conf;
    const struct conf_pipeline *pipeline = conf_find_pipeline(conf, call->arguments[0]);
    struct conf *preset = NULL;
    int state = 0, status = pipeline ? EXIT_OK : cli_load_preset(call->arguments[0], &preset);
    if (preset)
        pipeline = &preset->pipelines[0];
    const int rc = status == EXIT_OK ? file_make_path(options->output) : 0;
    if (rc) {
        cli_print_error("%s: %s", options->output, strerror(-rc));
        status = EXIT_PARTIAL;
    }
    if (status != EXIT_OK) {
        conf_free(preset);
        return status;
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        _exit(validate_child(conf, pipeline, options));
    if (child < 0 || waitpid(child, &state, 0) < 0 || !WIFEXITED(state))
        status = EXIT_PARTIAL;
    else
        status = WEXITSTATUS(state);
    if ((status == EXIT_OK || status == EXIT_REVIEW) && !options->dry_run) {
        const int sent = validate_send(conf, options->output);
        status = sent == EXIT_OK ? status : sent;
    }
    conf_free(preset);
    return status;
}

const struct cli_command cli_validate = {
    .name = "validate",
    .help = "try a pipeline or preset on patients of this site, so that its results need no review",
    .usage = {"--references DIR... --output DIR [OPTION]... PIPELINE"},
    .more = "Exit status: 8 if the validation is not passed.",
    .options =
        (const struct cli_option[]){
            {"references", 0, &cli_files, CLI_AT(struct validate_options, references),
             .help = "series with an RTSTRUCT or a SEG each (required); may be repeated", .noun = "DIR"},
            {"others", 0, &cli_files, CLI_AT(struct validate_options, others),
             .help = "series of other regions, of which no result must be DONE; may be repeated", .noun = "DIR"},
            {"region", 0, &cli_files, CLI_AT(struct validate_options, regions),
             .help = "regions that are the reference of a segment; may be repeated; default: equal names",
             .noun = "SEGMENT=REFERENCE"},
            {"output", 'o', &cli_folder, CLI_AT(struct validate_options, output),
             .help = "output folder (required): results, validation.json and validation.html"},
            {"dry-run", 0, &cli_flag, CLI_AT(struct validate_options, dry_run), .help = "do not store the validation"},
            {"quiet", 'q', &cli_flag, CLI_AT(struct validate_options, quiet), .help = "show no progress"},
            {0}},
    .size = sizeof(struct validate_options),
    .kind = &cli_pipeline,
    .min_arguments = 1,
    .max_arguments = 1,
    .needs = "one pipeline or preset",
    .check = validate_check,
    .run = validate_command};
