/*
 * purge_command.c - `noctule purge`: selects series and has the daemon remove them. Only the daemon
 * knows which series are in use. Patients are read from the files, because the database does not
 * store them.
 */
#include "service/cli/control_requests.h"

#include "db/report.h"
#include "dicom/dicom.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct purge {
    const char *patient; /* NULL if not given */
    bool undelivered, dry_run, yes, json;
    struct report_filter filter; /* for --before and --patient */
    char **keys;                 /* Series Instance UIDs; owned if `chosen` */
    size_t count;
    size_t images; /* number of image series, which come first; object series and "" follow */
    bool chosen;
};

/* ------------------------------------------------------------------------------- selection ---- */

static bool
purge_is_of_patient(const struct purge *purge, const char *root, const char *path)
{
    char whole[PATH_MAX];
    struct dicom_identity identity;
    if (snprintf(whole, sizeof(whole), "%s/%s", root, path) >= (int)sizeof(whole))
        return false;
    dicom_identify(whole, &identity);
    return strcmp(identity.patient_id, purge->patient) == 0;
}

/* Keeps the series of the patient only. */
static int
purge_choose_patient(struct purge *purge, const char *root, struct report *report, struct error *error)
{
    size_t kept = 0;
    int rc = 0;
    dicom_init();
    for (size_t i = 0; i < purge->count; i++) {
        bool matches = false;
        if (rc == 0) {
            char **paths;
            size_t count = 0;
            const struct report_filter filter = {.series = purge->keys[i]};
            rc = report_keys(report, &report_telling_files, &filter, &paths, &count, error);
            for (size_t k = 0; rc == 0 && k < count; k++) {
                matches = matches || purge_is_of_patient(purge, root, paths[k]);
                free(paths[k]);
            }
            if (rc == 0)
                free(paths);
        }
        if (matches)
            purge->keys[kept++] = purge->keys[i];
        else
            free(purge->keys[i]);
    }
    purge->count = kept;
    return rc;
}

static int
purge_add_key(struct purge *purge, const char *key, struct error *error)
{
    char **keys = realloc(purge->keys, (purge->count + 1) * sizeof(*keys));
    if (keys)
        purge->keys = keys;
    if (!keys || !(keys[purge->count] = strdup(key)))
        return error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "out of memory");
    purge->count++;
    return 0;
}

/* Returns whether all images of an object are to be removed, so that the object goes with them. */
static bool
purge_takes_with_it(const struct purge *purge, const struct report_object *object)
{
    char drawn_on[DICOM_UID_SIZE];
    int length = 0;
    const char *list = object->drawn_on;
    for (; sscanf(list, "%64s%n", drawn_on, &length) == 1; list += length) {
        size_t i = 0;
        while (i < purge->images && strcmp(purge->keys[i], drawn_on) != 0)
            i++;
        if (i == purge->images)
            return false;
    }
    return object->drawn_on[0] != '\0';
}

/* Adds the series of each object once. With --patient, selects objects of the patient on any
 * images, else old objects without stored images. Objects in an image series go with it. */
static int
purge_choose_objects(struct purge *purge, const char *root, struct report *report, struct error *error)
{
    struct report_object *objects;
    size_t count;
    const struct report_object_filter filter = {.before = purge->filter.before};
    int rc = report_objects(report, &filter, &objects, &count, error);
    if (rc)
        return rc;
    purge->images = purge->count;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct report_object *object = &objects[i];
        if (object->in_series ||
            (purge->count > purge->images && strcmp(purge->keys[purge->count - 1], object->series_uid) == 0))
            continue;
        if (purge->patient ? !purge_takes_with_it(purge, object) && purge_is_of_patient(purge, root, object->path)
                           : object->drawn_on[0] == '\0')
            rc = purge_add_key(purge, object->series_uid, error);
    }
    report_objects_free(objects, count);
    return rc;
}

static int
purge_choose(const struct cli_context *context, struct purge *purge)
{
    struct report *report;
    struct error error = {0};
    int status = cli_open_report(context->conf, &report);
    if (status != EXIT_OK)
        return status;
    int rc = report_keys(report, &report_series, &purge->filter, &purge->keys, &purge->count, &error);
    purge->chosen = rc == 0;
    if (rc == 0 && purge->patient)
        rc = purge_choose_patient(purge, context->conf->root, report, &error);
    if (rc == 0)
        rc = purge_choose_objects(purge, context->conf->root, report, &error);
    /* Quarantined files without a known series have no patient and are found by age only. The key
     * "" stands for all of them. */
    if (rc == 0 && !purge->patient) {
        char **strays;
        size_t count;
        rc = report_keys(report, &report_stray_files, &purge->filter, &strays, &count, &error);
        for (size_t i = 0; rc == 0 && i < count; i++)
            free(strays[i]);
        if (rc == 0)
            free(strays);
        if (rc == 0 && count > 0)
            rc = purge_add_key(purge, "", &error);
    }
    report_close(report);
    if (rc == 0)
        return EXIT_OK;
    cli_print_error("%s", error.message);
    return EXIT_DATABASE;
}

/* -------------------------------------------------------------------------------- requests ---- */

static void
purge_write(struct proto_writer *writer, enum proto_type type, const char *series_uid, const void *options)
{
    const struct purge *purge = options;
    char login[256];
    const struct message_purge message = {.series_uid = series_uid,
                                          .before = purge->filter.before,
                                          .undelivered = purge->undelivered,
                                          .dry_run = purge->dry_run,
                                          .json = purge->json,
                                          .login = control_login(login, sizeof(login))};
    message_write(writer, type, &message);
}

static int
purge_request(const struct cli_context *context, const struct purge *purge, bool dry_run)
{
    const struct cli_request request = {
        .type = PROTO_PURGE, .noun = "series", .write = purge_write, .array = purge->json};
    struct purge options = *purge;
    options.dry_run = dry_run;
    return control_request_all(context->conf->root, &request, purge->keys, (int)purge->count, &options);
}

/* Asks for confirmation, after the list of removals was printed. */
static bool
purge_is_meant(const struct purge *purge)
{
    char answer[16] = "";
    if (!isatty(STDIN_FILENO)) {
        cli_print_error("no data was removed: confirm on a terminal, or give --yes");
        return false;
    }
    printf("Remove %s permanently? [y/N] ", purge->count == 1 ? "it" : "them");
    fflush(stdout);
    if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return true;
    puts("nothing was removed");
    return false;
}

static int
purge_run(const struct cli_context *context, const struct purge *purge)
{
    if (purge->count == 0) {
        puts(purge->json ? "[]" : "no matching series");
        return EXIT_OK;
    }
    if (!purge->yes) {
        const int status = purge_request(context, purge, true);
        if (purge->dry_run || status != EXIT_OK)
            return status;
        if (!purge_is_meant(purge))
            return EXIT_PARTIAL;
    }
    return purge_request(context, purge, false);
}

static int
purge_check(struct cli_call *call)
{
    const struct purge *purge = call->options;
    const char *name = call->command->name;
    if (purge->patient && !*purge->patient)
        return cli_usage_error(name, "--patient needs a Patient ID");
    if ((call->count > 0) == (purge->patient || purge->filter.before))
        return cli_usage_error(name, "needs Series Instance UIDs, or --patient or --before");
    if (purge->dry_run && purge->yes)
        return cli_usage_error(name, "--dry-run and --yes cannot be combined");
    if (purge->json && !purge->dry_run && !purge->yes)
        return cli_usage_error(name, "--json needs --dry-run or --yes");
    return EXIT_OK;
}

static int
purge_command(struct cli_call *call)
{
    struct purge *purge = call->options;
    int status = EXIT_OK;
    purge->keys = call->arguments;
    purge->count = (size_t)call->count;
    if (call->count == 0)
        status = purge_choose(call->context, purge);
    if (status == EXIT_OK)
        status = purge_run(call->context, purge);
    for (size_t i = 0; purge->chosen && i < purge->count; i++)
        free(purge->keys[i]);
    if (purge->chosen)
        free(purge->keys);
    return status;
}

const struct cli_command cli_purge = {
    .name = "purge",
    .help = "remove series now: images, results, quarantined files, descriptions; asks first",
    .usage = {"[OPTION]... SERIES_UID...", "[OPTION]... --patient ID", "[OPTION]... --before WHEN"},
    .options =
        (const struct cli_option[]){
            {"patient", 0, &cli_text, CLI_AT(struct purge, patient), .help = "all series of this Patient ID",
             .noun = "ID"},
            {"before", 0, &cli_when, CLI_AT(struct purge, filter.before),
             .help = "series without new instances since, and quarantined files without a series: "
                     "2026-01-31, or 36h ago"},
            {"undelivered", 0, &cli_flag, CLI_AT(struct purge, undelivered),
             .help = "include series with undelivered results"},
            {"dry-run", 0, &cli_flag, CLI_AT(struct purge, dry_run), .help = "list the removals without removing"},
            {"yes", 0, &cli_flag, CLI_AT(struct purge, yes), .help = "do not ask for confirmation"},
            CLI_JSON(struct purge),
            {0}},
    .size = sizeof(struct purge),
    .kind = &cli_uid,
    .max_arguments = INT_MAX,
    .check = purge_check,
    .run = purge_command};
