/* slurm_manifest_read.c - see slurm_manifest.h: functions of the daemon. */
#include "service/common/slurm/slurm_manifest.h"

#include "base/limits.h"
#include "service/common/jobs/job_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------ reading ---- */

static bool
manifest_has(const struct manifest *manifest, const char *name)
{
    for (size_t i = 0; i < manifest->count; i++)
        if (strcmp(manifest->files[i].name, name) == 0)
            return true;
    return false;
}

/* Returns whether the name can be a result: it cannot lead out of the folder and is not the name of
 * an unfinished file. */
static bool
manifest_is_name(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/') && strlen(name) < sizeof((struct manifest_file *)NULL)->name;
}

static int
manifest_take_files(struct manifest *manifest, struct proto_reader *reader, struct error *error)
{
    struct message_file row;
    if (reader->rows > LIMIT_ATTEMPT_RESULTS)
        return sealed_refuse(error, MANIFEST_FILE, "has more files than a job can have");
    manifest->files = calloc((size_t)reader->rows + 1, sizeof *manifest->files);
    if (!manifest->files)
        return error_set_system(error, -ENOMEM, "list the results");
    while (message_next_file(reader, &row)) {
        struct manifest_file *file = &manifest->files[manifest->count];
        if (!manifest_is_name(row.name) || row.size < 0 || !digest_is_sha256(row.sha256) ||
            manifest_has(manifest, row.name))
            return sealed_refuse(error, MANIFEST_FILE, "has an invalid or duplicate file name");
        snprintf(file->name, sizeof file->name, "%s", row.name);
        file->digest.size = row.size;
        memcpy(file->digest.sha256, row.sha256, sizeof file->digest.sha256);
        manifest->count++;
    }
    return 0;
}

static int
manifest_check_head(const struct manifest *manifest, const struct slurm_attempt_id *id, struct error *error)
{
    const struct message_manifest *head = &manifest->head;
    if (head->job != id->job || head->attempt != id->number || strcmp(head->nonce, id->nonce) != 0)
        return error_set(error, -ESTALE, CODE_ATTEMPT_OTHER,
                         "the manifest is of attempt %" PRId64 " of job %" PRId64
                         ", nonce %.32s, but the job is at attempt %" PRId64 ", nonce %s",
                         head->attempt, head->job, head->nonce, id->number, id->nonce);
    if (manifest->count > 0 &&
        (strncmp(head->run, MANIFEST_RUN, sizeof MANIFEST_RUN - 1) != 0 || !manifest_is_name(head->run)))
        return sealed_refuse(error, MANIFEST_FILE, "has an invalid folder name");
    return 0;
}

/* Checks the DONE frame in a copy, since reading alters the frame and it is read again later. */
static int
manifest_check_done(const struct manifest *manifest, const struct proto_reader *frame, struct error *error)
{
    struct message_done done;
    struct message_result result;
    struct proto_reader reader = *frame;
    reader.bytes = malloc(frame->size);
    if (!reader.bytes)
        return error_set_system(error, -ENOMEM, "read the manifest");
    memcpy(reader.bytes, frame->bytes, frame->size);
    int rc = 0;
    if (message_read_done(&reader, &done) != 0 || done.job != manifest->head.job)
        rc = sealed_refuse(error, MANIFEST_FILE, "has no outcome of the job");
    while (rc == 0 && message_next_result(&reader, &result))
        if (!manifest_has(manifest, result.file))
            rc = sealed_refuse(error, MANIFEST_FILE, "has a result that is not one of its files");
    free(reader.bytes);
    return rc;
}

/* Checks that the report has measurements, then one DONE, and no other frame. */
static int
manifest_check_report(struct manifest *manifest, struct error *error)
{
    struct proto_reader reader;
    bool done = false;
    int more, rc = 0;
    while (rc == 0 && (more = sealed_next(&manifest->sealed, &reader)) == 1) {
        if (done || (!message_is_measurement(reader.type) && reader.type != PROTO_DONE))
            rc = sealed_refuse(error, MANIFEST_FILE, "has an unexpected frame");
        else if ((done = reader.type == PROTO_DONE))
            rc = manifest_check_done(manifest, &reader, error);
    }
    if (rc == 0 && (more < 0 || !done))
        rc = sealed_refuse(error, MANIFEST_FILE, "ends early");
    manifest->sealed.frames.consumed = manifest->sealed.first; /* rewinds: its frames were only iterated */
    return rc;
}

static struct manifest *
manifest_new(struct error *error)
{
    struct manifest *manifest = calloc(1, sizeof *manifest);
    if (manifest)
        manifest->folder = -1;
    else
        error_set_system(error, -ENOMEM, "read the manifest");
    return manifest;
}

/* Checks an opened manifest and returns it in *out, or frees it. `rc`: the result of opening it. */
static int
manifest_take(struct manifest *manifest, int rc, const struct slurm_attempt_id *id, struct manifest **out,
              struct error *error)
{
    struct proto_reader reader;
    if (rc == 0 &&
        (sealed_next(&manifest->sealed, &reader) != 1 || message_read_manifest(&reader, &manifest->head) != 0))
        rc = sealed_refuse(error, MANIFEST_FILE, "has an invalid head");
    manifest->sealed.first = manifest->sealed.frames.consumed;
    if (rc == 0)
        rc = manifest_take_files(manifest, &reader, error);
    if (rc == 0)
        rc = manifest_check_head(manifest, id, error);
    if (rc == 0)
        rc = manifest_check_report(manifest, error);
    if (rc)
        manifest_free(manifest);
    else
        *out = manifest;
    return rc;
}

int
manifest_parse(uint8_t *bytes, size_t size, const struct slurm_attempt_id *id, struct manifest **out,
               struct error *error)
{
    struct manifest *manifest = manifest_new(error);
    if (!manifest) {
        free(bytes);
        return -ENOMEM;
    }
    int rc = sealed_open(bytes, size, MANIFEST_FILE, MANIFEST_ROLE, &manifest->sealed, error);
    return manifest_take(manifest, rc, id, out, error);
}

int
manifest_read(const char *share, const struct slurm_attempt_id *id, struct manifest **out, struct error *error)
{
    char name[ATTEMPT_NAME_SIZE], *path, what[160];
    struct manifest *manifest = manifest_new(error);
    if (!manifest)
        return -ENOMEM;
    slurm_folder_name_write(id, name);
    int rc = asprintf(&path, "%s/%s", share, name) < 0 ? -ENOMEM : 0;
    if (rc) {
        error_set_system(error, rc, "name the attempt");
        return manifest_take(manifest, rc, id, out, error);
    }
    manifest->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    rc = manifest->folder < 0 ? -errno : 0;
    free(path);
    snprintf(what, sizeof what, "open the attempt's folder %s", name);
    if (rc)
        error_set_system(error, rc, what);
    else
        rc = sealed_read(manifest->folder, MANIFEST_FILE, MANIFEST_ROLE, &manifest->sealed, error);
    return manifest_take(manifest, rc, id, out, error);
}

bool
manifest_next(struct manifest *manifest, struct proto_reader *reader)
{
    return sealed_next(&manifest->sealed, reader) == 1;
}

void
manifest_free(struct manifest *manifest)
{
    if (!manifest)
        return;
    if (manifest->folder >= 0)
        close(manifest->folder);
    proto_stream_release(&manifest->sealed.frames);
    free(manifest->files);
    free(manifest);
}

/* --------------------------------------------------------------------------- collecting ---- */

static int
manifest_differs(struct error *error, const struct manifest_file *file, const char *how)
{
    return error_set_files(error, -EBADMSG, CODE_ATTEMPT_FILE_DIFFERS, file->name, NULL,
                           "%.100s, a result of the attempt, %s: check the shared folder", file->name, how);
}

static int
manifest_copy(const struct manifest_file *file, int from, int to, struct error *error)
{
    struct stat status;
    struct digest digest;
    bool write_failed = false;
    if (fstat(from, &status) != 0)
        return error_set_system(error, -errno, "check a result on the shared folder");
    if (!S_ISREG(status.st_mode) || status.st_size != file->digest.size)
        return manifest_differs(error, file, "has another size than in the manifest");
    const int rc = digest_file(from, to, &digest, &write_failed);
    if (rc)
        return error_set_system(error, rc, write_failed ? "write a result" : "read a result on the shared folder");
    return digest_equal(&digest, &file->digest)
               ? 0
               : manifest_differs(error, file, "has other contents than the step wrote");
}

static int
manifest_collect_one(const struct manifest_file *file, int run, struct output *output, struct error *error)
{
    int to;
    const int from = openat(run, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from < 0)
        return errno == ENOENT || errno == ELOOP
                   ? manifest_differs(error, file, "is missing")
                   : error_set_system(error, -errno, "open a result on the shared folder");
    int rc = output_create(output, file->name, &to);
    if (rc) {
        error_set_system(error, rc, "create a result");
    } else {
        rc = manifest_copy(file, from, to, error);
        if (rc == 0)
            output_finish(output, to);
    }
    close(from);
    return rc;
}

static bool
manifest_is_any(const char *name)
{
    return name[0] != '.';
}

static int
manifest_collect_all(const struct manifest *manifest, int run, struct output *output, const atomic_bool *stop,
                     struct error *error)
{
    const char *name;
    int rc = 0;
    for (size_t i = 0; i < manifest->count && rc == 0; i++)
        rc = stop && atomic_load(stop) ? error_set(error, -ECANCELED, CODE_STOPPED, "the collection was stopped")
                                       : manifest_collect_one(&manifest->files[i], run, output, error);
    if (rc)
        return rc;
    rc = output_sync_all(output, &name);
    if (rc == 0)
        rc = output_publish(output, manifest_is_any);
    return rc ? error_set_system(error, rc, "move the results to the outbox") : 0;
}

int
manifest_collect(const struct manifest *manifest, const char *path, const atomic_bool *stop, struct error *error)
{
    struct output *output;
    int run = manifest->count == 0
                  ? -1
                  : openat(manifest->folder, manifest->head.run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (manifest->count > 0 && run < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENOTDIR
                   ? manifest_differs(error, &manifest->files[0], "is missing")
                   : error_set_system(error, -errno, "open the results on the shared folder");
    int rc = output_open(path, true, &output);
    if (rc) {
        error_set_system(error, rc, "use the job's folder in the outbox");
    } else {
        rc = manifest_collect_all(manifest, run, output, stop, error);
        output_close(output);
    }
    if (run >= 0)
        close(run);
    return rc;
}
