/*
 * pull_command.c - `noctule pull`: retrieves studies from archives, and lists retrievals. The
 * daemon retrieves. With --dry-run this process queries the archive, and no study is sent.
 */
#include "service/cli/control_requests.h"

#include "base/limits.h"
#include "base/text.h"
#include "db/pull_queue.h"
#include "db/report.h"
#include "service/common/clock.h"
#include "service/common/pull/pull_keys.h"
#include "service/common/pull/pull_query.h"
#include "service/common/settings.h"

#include "db/iso_time.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pull {
    bool accession, study, series, dry_run, json;
    const char *list; /* a file; NULL: the arguments are the values */
    int64_t cancel;   /* a batch; 0 if not given */
    struct report_filter filter;
    /* requested items */
    struct queue_pull_wish *items; /* malloc'd, with their identifiers */
    size_t count;
    int32_t list_line; /* of the current value: line of the list, then position among the arguments */
    const char *source;
};

/* ---------------------------------------------------------------------------------- items ---- */

/* Returns the kind of the values by the options. */
static enum queue_pull_key
pull_key(const struct pull *pull)
{
    return pull->accession ? QUEUE_PULL_ACCESSION : pull->study ? QUEUE_PULL_STUDY : QUEUE_PULL_SERIES;
}

/* Adds a value once. Returns an exit code. */
static int
pull_add(struct pull *pull, const char *value)
{
    const enum queue_pull_key key = pull_key(pull);
    if (!(key == QUEUE_PULL_ACCESSION ? pull_accession_fits(value) : pull_uid_fits(value))) {
        cli_print_error(key == QUEUE_PULL_ACCESSION
                            ? "\"%s\" is not an Accession Number: it must have at most 16 ASCII "
                              "characters, without *, ? and \\"
                            : "\"%s\" is not a UID",
                        value);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < pull->count; i++)
        if (pull->items[i].key == key && strcmp(pull->items[i].identifier, value) == 0)
            return EXIT_OK;
    if (!pull_count_fits(pull->count + 1)) {
        cli_print_error("at most %d items per request: split the list", LIMIT_PULL_ITEMS);
        return EXIT_USAGE;
    }
    struct queue_pull_wish *grown = reallocarray(pull->items, pull->count + 1, sizeof *pull->items);
    char *copy = grown ? strdup(value) : NULL;
    if (grown)
        pull->items = grown;
    if (!copy) {
        cli_print_error("out of memory");
        return EXIT_PARTIAL;
    }
    pull->items[pull->count++] = (struct queue_pull_wish){key, copy, pull->list_line};
    return EXIT_OK;
}

/* Adds the value of a line without the blanks around it, unless it is empty or a comment. A line
 * with a NUL must be refused, because C would cut the value there. */
static int
pull_add_line(struct pull *pull, char *line, size_t length)
{
    char *end = line + strlen(line);
    pull->list_line++;
    if (strlen(line) != length) {
        cli_print_error("%s: line %" PRId32 " has a NUL in it, and the list must be text. Save it as "
                        "plain text (ASCII or UTF-8) and try again",
                        pull->list, pull->list_line);
        return EXIT_USAGE;
    }
    while (isspace((unsigned char)*line))
        line++;
    while (end > line && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return *line && *line != '#' ? pull_add(pull, line) : EXIT_OK;
}

static int
pull_read_list(struct pull *pull)
{
    const bool standard = strcmp(pull->list, "-") == 0;
    FILE *file = standard ? stdin : fopen(pull->list, "re");
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    int status = EXIT_OK;
    if (!file) {
        cli_print_error("%s: %s", pull->list, strerror(errno));
        return EXIT_NOT_FOUND;
    }
    while (status == EXIT_OK && (length = getline(&line, &size, file)) >= 0)
        status = pull_add_line(pull, line, (size_t)length);
    free(line);
    if (status == EXIT_OK && ferror(file)) {
        cli_print_error("%s: %s", pull->list, strerror(errno));
        status = EXIT_PARTIAL;
    }
    if (!standard)
        fclose(file);
    return status;
}

/* ---------------------------------------------------------------------------------- query ---- */

static int
pull_query_one(const struct pull_request *asking, const struct queue_pull_wish *item)
{
    const struct pull_key key = {
        item->key == QUEUE_PULL_ACCESSION ? item->identifier : "",
        item->key == QUEUE_PULL_STUDY ? item->identifier : "",
        item->key == QUEUE_PULL_SERIES ? item->identifier : "",
    };
    struct pull_found found;
    struct dicom_answer answer;
    struct error error;
    const int rc = pull_find(asking, &key, &found, &answer, &error);
    if (rc)
        cli_print_error("%s %s: %s%s%s", queue_pull_key_name(item->key), item->identifier, code_name(error.code),
                        error.code ? ": " : "", error.message);
    else if (found.count == 0)
        printf("%s %s: not found\n", queue_pull_key_name(item->key), item->identifier);
    for (size_t i = 0; rc == 0 && i < found.count; i++) {
        const struct dicom_match *part = &found.parts[i];
        printf("%s %s: study %s", queue_pull_key_name(item->key), item->identifier, part->study_uid);
        if (*part->series_uid)
            printf(", series %s", part->series_uid);
        if (part->instances > 0)
            printf(", %" PRId32 " instances\n", part->instances);
        else
            printf(", unknown number of instances\n");
    }
    const bool some = rc == 0 && found.count > 0;
    free(found.parts);
    return some ? EXIT_OK : EXIT_PARTIAL;
}

static int
pull_query_all(const struct pull *pull, const struct conf *conf, const struct conf_source *source)
{
    struct error error;
    dicom_init();
    struct dicom_tls *tls = source->tls ? settings_open_tls(&conf->dicom.tls, false, &error) : NULL;
    if (source->tls && !tls) {
        cli_print_error("%s", error.message);
        return EXIT_CONFIG;
    }
    const struct pull_request asking = {conf, source, tls, NULL};
    int status = EXIT_OK;
    for (size_t i = 0; i < pull->count; i++)
        if (pull_query_one(&asking, &pull->items[i]) != EXIT_OK)
            status = EXIT_PARTIAL;
    dicom_tls_close(tls);
    return status;
}

/* -------------------------------------------------------------------------------- request ---- */

static void
write_pull(struct proto_writer *writer, enum proto_type type, const char *items, const void *options)
{
    const struct pull *pull = options;
    char login[256];
    const struct message_pull message = {
        .source = pull->source, .items = items, .login = control_login(login, sizeof login)};
    message_write(writer, type, &message);
}

static void
write_cancel_pull(struct proto_writer *writer, enum proto_type type, const char *argument, const void *options)
{
    const struct pull *pull = options;
    char login[256];
    const struct message_cancel_pull message = {.batch = pull->cancel, .login = control_login(login, sizeof login)};
    (void)argument;
    message_write(writer, type, &message);
}

static void
write_pull_items(struct proto_writer *writer, enum proto_type type, const char *argument, const void *options)
{
    const struct pull *pull = options;
    struct text_stream text;
    (void)argument;
    if (text_open(&text)) {
        write_pull(writer, type, "", options); /* the daemon refuses an empty list */
        return;
    }
    for (size_t i = 0; i < pull->count; i++)
        fprintf(text.out, "%s %" PRId32 " %s\n", queue_pull_key_name(pull->items[i].key), pull->items[i].list_line,
                pull->items[i].identifier);
    write_pull(writer, type, text_close(&text) ? "" : text.bytes, options);
    free(text.bytes);
}

/* ----------------------------------------------------------------------------------- list ---- */

static int
pull_list(const struct pull *pull, const struct conf *conf)
{
    struct report *report;
    struct error error = {0};
    int status = cli_open_report(conf, &report);
    if (status != EXIT_OK)
        return status;
    int rc = report_list(report, &report_pulls, &pull->filter, stdout, pull->json, &error);
    report_close(report);
    if (rc) {
        cli_print_error("%s", error.message);
        return rc == -EINVAL ? EXIT_USAGE : EXIT_DATABASE;
    }
    const int64_t now_ms = clock_unix_ms();
    for (size_t i = 0; i < conf->pull.source_count && !pull->json; i++) {
        const struct conf_source *source = &conf->pull.sources[i];
        char opens[ISO_TIME_SIZE], local[LOCAL_TIME_SIZE];
        if (!source->window || time_window_is_open(source->window->times, now_ms))
            continue;
        const int64_t opens_ms = time_window_opens(source->window->times, now_ms);
        if (opens_ms != TIME_WINDOW_NEVER && iso_time_from_ms(opens_ms, opens) == 0 &&
            iso_time_to_local(opens, local) == 0)
            printf("%s: retrieval starts at %s (%s).\n", source->name, local, source->window->text);
        else
            printf("%s: the window never opens (%s).\n", source->name, source->window->text);
    }
    return EXIT_OK;
}

/* ---------------------------------------------------------------------------------- command -- */

static int
pull_check(struct cli_call *call)
{
    const struct pull *pull = call->options;
    const char *name = call->command->name;
    const int keys = pull->accession + pull->study + pull->series;
    const bool retrieves = call->count > 0;
    if (pull->cancel && (retrieves || keys || pull->list || pull->dry_run))
        return cli_usage_error(name, "--cancel cannot be combined with other options");
    if (!retrieves && (keys || pull->list || pull->dry_run))
        return cli_usage_error(name, "needs the name of a source");
    if (retrieves && keys != 1)
        return cli_usage_error(name, "needs one of --accession, --study and --series");
    if (retrieves && call->count == 1 && !pull->list)
        return cli_usage_error(name, "needs one or more values, or --list");
    if ((retrieves || pull->cancel) && (pull->json || pull->filter.state || pull->filter.batch))
        return cli_usage_error(name, "--json, --state and --batch need the list: give no source");
    return EXIT_OK;
}

static int
pull_order(const struct cli_call *call, struct pull *pull)
{
    static const struct cli_request request = {PROTO_PULL, "pull", write_pull_items, false};
    const struct conf *conf = call->context->conf;
    const struct conf_source *source = conf_find_source(conf, call->arguments[0]);
    char *none = NULL;
    if (!source) {
        cli_print_error("the configuration has no source \"%s\" (pull.sources); it has:", call->arguments[0]);
        for (size_t i = 0; i < conf->pull.source_count; i++)
            cli_print_error("  %s", conf->pull.sources[i].name);
        return EXIT_NOT_FOUND;
    }
    int status = pull->list ? pull_read_list(pull) : EXIT_OK;
    for (int i = 1; i < call->count && status == EXIT_OK; i++) {
        pull->list_line++;
        status = pull_add(pull, call->arguments[i]);
    }
    if (status == EXIT_OK && pull->count == 0) {
        cli_print_error("the list has no values");
        status = EXIT_USAGE;
    }
    if (status != EXIT_OK)
        return status;
    pull->source = source->name;
    return pull->dry_run ? pull_query_all(pull, conf, source)
                         : control_request_all(conf->root, &request, &none, 1, pull);
}

static int
pull_run(struct cli_call *call)
{
    static const struct cli_request cancel = {PROTO_CANCEL_PULL, "batch", write_cancel_pull, false};
    struct pull *pull = call->options;
    char *none = NULL;
    if (pull->cancel)
        return control_request_all(call->context->conf->root, &cancel, &none, 1, pull);
    if (call->count == 0)
        return pull_list(pull, call->context->conf);
    const int status = pull_order(call, pull);
    for (size_t i = 0; i < pull->count; i++)
        free(pull->items[i].identifier);
    free(pull->items);
    return status;
}

static const char *
state_of_pulls(size_t i)
{
    return report_list_state(&report_pulls, i);
}

const struct cli_command cli_pull = {
    .name = "pull",
    .help = "retrieve studies from an archive, or list retrievals",
    .usage = {"[OPTION]... SOURCE VALUE...", "[OPTION]... SOURCE --list FILE", "--cancel BATCH", "[OPTION]..."},
    .more = "Other users can see the arguments of a process: give Accession Numbers with --list.",
    .options =
        (const struct cli_option[]){
            {"accession", 0, &cli_flag, CLI_AT(struct pull, accession), .help = "values are Accession Numbers"},
            {"study", 0, &cli_flag, CLI_AT(struct pull, study), .help = "values are Study Instance UIDs"},
            {"series", 0, &cli_flag, CLI_AT(struct pull, series), .help = "values are Series Instance UIDs"},
            {"list", 0, &cli_file, CLI_AT(struct pull, list),
             .help = "file with one value per line, # begins a comment; -: standard input"},
            {"dry-run", 0, &cli_flag, CLI_AT(struct pull, dry_run),
             .help = "only query the archive and print the matches"},
            {"cancel", 0, &cli_count, CLI_AT(struct pull, cancel), .noun = "BATCH",
             .help = "cancel the unfinished items of this batch"},
            {"state", 0, &cli_choice, CLI_AT(struct pull, filter.state), .noun = "STATE", .word = state_of_pulls,
             .help = "list: only this state"},
            {"batch", 0, &cli_count, CLI_AT(struct pull, filter.batch), .help = "list: only this batch"},
            {"limit", 0, &cli_count, CLI_AT(struct pull, filter.limit), .help = "list: max number of rows; default 50"},
            CLI_JSON(struct pull),
            {0}},
    .size = sizeof(struct pull),
    .kind = &cli_text,
    .max_arguments = INT_MAX,
    .check = pull_check,
    .run = pull_run};
