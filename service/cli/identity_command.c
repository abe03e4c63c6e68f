/*
 * identity_command.c - `noctule identity`: finds the original of a pseudonym or of a UID in de-identified copies.
 *
 * No table of pseudonyms exists. The command computes the pseudonym of everything in the database, with the key of the
 * installation, and compares. The daemon stores the person before the command reads.
 */
#include "service/cli/control_requests.h"

#include "base/text.h"
#include "db/report.h"
#include "dicom/deidentify/deidentify.h"
#include "service/common/exit_codes.h"
#include "service/common/layout.h"
#include "service/common/pseudonym.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct identity_search {
    const char *root, *wanted;
    struct deidentify how;
    bool is_patient;
    char last[2 * DICOM_LO_SIZE]; /* the line printed last */
    size_t found;
};

static void
identity_print(struct identity_search *search, const char *line)
{
    if (strcmp(search->last, line) != 0)
        puts(line);
    snprintf(search->last, sizeof search->last, "%s", line);
    search->found++;
}

/* Reads the Patient ID of a stored file; "" if it is gone. */
static void
identity_of_file(const struct identity_search *search, const char *path, struct dicom_identity *identity)
{
    char whole[PATH_MAX];
    *identity = (struct dicom_identity){.patient_id = ""};
    if (*path && snprintf(whole, sizeof whole, "%s/%s", search->root, path) < (int)sizeof whole)
        dicom_identify(whole, identity);
}

/* Compares the patient of a series. The database has the Patient ID, its hash, or nothing (option identifiers); then the
 * files have it, as long as they are stored. */
static int
identity_take_patient(struct identity_search *search, const struct report_identifier *identifier)
{
    struct dicom_identity identity = {.patient_id = ""};
    char pseudonym[DEIDENTIFY_WORD], line[sizeof search->last];
    const bool is_hash = strcmp(identifier->value, search->wanted) == 0;
    const char *id = identifier->value;
    if (is_hash || !*identifier->value) {
        identity_of_file(search, identifier->path, &identity);
        id = identity.patient_id;
    }
    const int rc = *id ? deidentify_patient(&search->how, id, pseudonym) : 0;
    if (rc || (!is_hash && (!*id || strcmp(pseudonym, search->wanted) != 0)))
        return rc;
    snprintf(line, sizeof line, *id ? "Patient ID %s" : "Patient ID: only its hash is stored, and the images are gone",
             id);
    identity_print(search, line);
    printf("  study %s, series %s\n", identifier->study_uid, identifier->series_uid);
    return 0;
}

static int
identity_take(void *context, const struct report_identifier *identifier)
{
    struct identity_search *search = context;
    char replaced[DICOM_UID_SIZE], line[sizeof search->last];
    const bool is_patient = strcmp(identifier->kind, "patient") == 0;
    if (is_patient && search->is_patient)
        return identity_take_patient(search, identifier);
    if (is_patient || search->is_patient)
        return 0;
    const int rc = deidentify_uid(&search->how, identifier->value, replaced);
    if (rc || strcmp(replaced, search->wanted) != 0)
        return rc;
    snprintf(line, sizeof line, "%s %s", identifier->kind, identifier->value);
    identity_print(search, line);
    return 0;
}

static void
write_identity(struct proto_writer *writer, enum proto_type type, const char *word, const void *options)
{
    char login[256];
    (void)options;
    const struct message_identity message = {.word = word, .login = control_login(login, sizeof login)};
    message_write(writer, type, &message);
}

static int
identity_check(struct cli_call *call)
{
    const char *word = call->arguments[0];
    const bool is_hash = strncmp(word, "h:", 2) == 0 && strlen(word) == DEIDENTIFY_WORD - 1 &&
                         strspn(word + 2, "0123456789abcdef") == DEIDENTIFY_WORD - 3;
    return is_hash || (strncmp(word, "2.25.", 5) == 0 && word[5] && text_is_uid(word))
               ? EXIT_OK
               : cli_usage_error(
                     call->command->name,
                     "needs a pseudonym (h: and 24 digits, 0 to 9 and a to f) or a UID that begins with 2.25.");
}

static int
identity_run(struct cli_call *call)
{
    const struct conf *conf = call->context->conf;
    struct pseudonym_key key;
    struct report *report;
    struct error error;
    struct identity_search search = {.root = conf->root, .wanted = call->arguments[0]};
    search.how = (struct deidentify){.digest = pseudonym_digest, .key = &key};
    search.is_patient = search.wanted[0] == 'h';
    int rc = pseudonym_key_read(conf->root, &key);
    if (rc) {
        cli_print_error("%s/" LAYOUT_PSEUDONYM_KEY ": %s; without this key, nothing can be found", conf->root,
                        strerror(-rc));
        return EXIT_CONFIG;
    }
    int status = control_run(call);
    if (status == EXIT_OK)
        status = cli_open_report(conf, &report);
    if (status != EXIT_OK)
        return status;
    dicom_init();
    rc = report_each_identifier(report, identity_take, &search, &error);
    report_close(report);
    if (rc < 0) {
        cli_print_error("%s", error.message);
        return EXIT_DATABASE;
    }
    if (search.found == 0)
        cli_print_error("%s: the database has nothing with this pseudonym", search.wanted);
    return search.found > 0 ? EXIT_OK : EXIT_NOT_FOUND;
}

const struct cli_command cli_identity = {
    .name = "identity",
    .help = "find the original of a pseudonym or UID in de-identified copies; the audit notes who asked",
    .usage = {"PSEUDONYM"},
    .min_arguments = 1,
    .max_arguments = 1,
    .needs = "one pseudonym or UID",
    .check = identity_check,
    .run = identity_run,
    .request = &(const struct cli_request){PROTO_IDENTITY, "identity", write_identity, false}};
