/*
 * attempt.c - the daemon's side of an attempt on a shared folder (service/common/slurm), for tests.
 *
 *   attempt make SHARE JOB-FILE NUMBER SECONDS THREADS SHARED   prints the folder; SHARED "": everything is copied
 *   attempt collect SHARE FOLDER OUTPUT                         prints the manifest as JSON
 *
 * On failure, prints "CODE: message" and exits with 1.
 */
#include "base/text.h"
#include "service/common/json.h"
#include "service/common/slurm/slurm_manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
complain(int rc, const struct error *error)
{
    if (rc)
        fprintf(stderr, "%s: %s\n", code_name(error->code), error->message);
    return rc != 0;
}

static int
make(char **arguments)
{
    struct error error = {0};
    struct job_spec *spec;
    char name[ATTEMPT_NAME_SIZE];
    struct slurm_attempt_order order = {.backend = "cpu", .shared = arguments[5]};
    int rc = job_spec_read(arguments[1], &spec, &error);
    if (rc)
        return complain(rc, &error);
    order.spec = spec;
    order.id.job = spec->id;
    order.id.number = strtoll(arguments[2], NULL, 10);
    order.deadline_seconds = strtod(arguments[3], NULL);
    order.threads = atoi(arguments[4]);
    rc = slurm_nonce_make(order.id.nonce);
    if (rc == 0)
        rc = slurm_folder_make(arguments[0], &order, NULL, &error);
    slurm_folder_name_write(&order.id, name);
    if (rc == 0)
        printf("%s/%s\n", arguments[0], name);
    job_spec_free(spec);
    return complain(rc, &error);
}

static void
print_done(struct json *json, struct proto_reader *reader)
{
    struct message_done done;
    struct message_result result;
    if (message_read_done(reader, &done) != 0)
        abort();
    json_integer(json, "verdict", done.verdict);
    json_string(json, "code", code_name(done.code));
    json_string(json, "message", done.message);
    json_begin_array(json, "results");
    while (message_next_result(reader, &result))
        json_string(json, NULL, result.file);
    json_end_array(json);
}

static void
print_manifest(struct manifest *manifest)
{
    struct json json = {.out = stdout};
    struct proto_reader reader;
    int measurements = 0;
    json_begin_object(&json, NULL);
    json_string(&json, "run", manifest->head.run);
    json_string(&json, "node", manifest->head.node);
    json_begin_array(&json, "files");
    for (size_t i = 0; i < manifest->count; i++)
        json_string(&json, NULL, manifest->files[i].name);
    json_end_array(&json);
    while (manifest_next(manifest, &reader)) {
        if (reader.type == PROTO_DONE)
            print_done(&json, &reader);
        else
            measurements++;
    }
    json_integer(&json, "measurements", measurements);
    json_end_object(&json);
}

static int
collect(char **arguments, const struct slurm_attempt_id *id)
{
    struct error error = {0};
    struct manifest *manifest;
    int rc = manifest_read(arguments[0], id, &manifest, &error);
    if (rc)
        return complain(rc, &error);
    rc = manifest_collect(manifest, arguments[2], NULL, &error);
    if (rc == 0)
        print_manifest(manifest);
    manifest_free(manifest);
    return complain(rc, &error);
}

int
main(int count, char **arguments)
{
    struct slurm_attempt_id id;
    if (count == 8 && strcmp(arguments[1], "make") == 0)
        return make(arguments + 2);
    if (count == 5 && strcmp(arguments[1], "collect") == 0 && slurm_folder_name_read(text_base_name(arguments[3]), &id))
        return collect(arguments + 2, &id);
    return 2;
}
