/* slurm_manifest.c - see slurm_manifest.h: functions of the step. */
#include "service/common/slurm/slurm_manifest.h"

#include "base/array.h"
#include "base/durable.h"
#include "base/limits.h"
#include "base/test_hook.h"
#include "service/common/file_ops.h"
#include "service/common/jobs/job_output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ----------------------------------------------------------------------- a step's folder -- */

static int
manifest_run_fail(struct error *error, int rc, const char *verb, const char *name)
{
    char what[NAME_MAX + 64];
    snprintf(what, sizeof what, "%s %s", verb, name);
    return error_set_system(error, rc, what);
}

static int
manifest_run_copy(struct manifest_run *run, struct output *output, int folder, const char *name, size_t *room,
                  struct error *error)
{
    int to;
    bool write_failed;
    struct manifest_file *grown = array_grow(run->files, room, run->count + 1, sizeof *run->files);
    if (!grown)
        return manifest_run_fail(error, -ENOMEM, "list", name);
    run->files = grown;
    struct manifest_file *file = &run->files[run->count++];
    snprintf(file->name, sizeof file->name, "%s", name);
    const int from = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return manifest_run_fail(error, -errno, "open", name);
    int rc = output_create(output, name, &to);
    if (rc) {
        manifest_run_fail(error, rc, "create, on the shared folder,", name);
    } else {
        rc = digest_file(from, to, &file->digest, &write_failed);
        if (rc)
            manifest_run_fail(error, rc, write_failed ? "write to the shared folder" : "read", name);
        else
            output_finish(output, to);
    }
    close(from);
    crash_point("step_in_copy");
    return rc;
}

static int
manifest_run_copy_all(struct manifest_run *run, struct output *output, const char *from, struct error *error)
{
    DIR *entries;
    size_t room = 0;
    int rc = file_open_directory(AT_FDCWD, from, 0, &entries);
    if (rc)
        return manifest_run_fail(error, rc, "open", "the results");
    for (const struct dirent *entry; rc == 0 && (entry = readdir(entries));)
        if (entry->d_name[0] != '.')
            rc = manifest_run_copy(run, output, dirfd(entries), entry->d_name, &room, error);
    closedir(entries);
    return rc;
}

int
manifest_run_take(const struct slurm_folder *folder, const char *from, struct manifest_run *run, struct error *error)
{
    struct output *output = NULL;
    char nonce[ATTEMPT_NONCE_SIZE], path[64];
    const char *unsynced;
    *run = (struct manifest_run){0};
    int rc = slurm_nonce_make(nonce);
    snprintf(run->name, sizeof run->name, MANIFEST_RUN "%.16s", nonce);
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", folder->fd, run->name);
    if (rc == 0)
        rc = output_open(path, true, &output);
    if (rc && slurm_folder_is_void(folder))
        rc = -ESTALE; /* the attempt's folder is not created again */
    if (rc)
        return manifest_run_fail(error, rc, "create a folder in", folder->path);
    rc = manifest_run_copy_all(run, output, from, error);
    if (rc == 0) {
        rc = output_sync_all(output, &unsynced);
        if (rc)
            manifest_run_fail(error, rc, "write to the shared folder", unsynced);
    }
    if (rc == 0) {
        rc = output_publish(output, NULL);
        if (rc)
            manifest_run_fail(error, rc, "publish", "results on the shared folder");
    }
    output_close(output);
    return rc;
}

void
manifest_run_free(struct manifest_run *run)
{
    free(run->files);
    *run = (struct manifest_run){0};
}

/* ------------------------------------------------------------------------------ writing ---- */

void
manifest_begin(struct sealed_writer *writer, const struct slurm_folder *folder, const struct manifest_run *run,
               const char *node, const char *device)
{
    const struct message_manifest head = {
        .job = folder->id.job,
        .attempt = folder->id.number,
        .nonce = folder->id.nonce,
        .run = run ? run->name : "",
        .node = node,
        .device = device,
    };
    struct proto_writer frame;
    sealed_begin(writer, MANIFEST_ROLE);
    message_write_manifest(&frame, &head);
    for (size_t i = 0; run && i < run->count; i++)
        message_add_file(&frame, &(struct message_file){.name = run->files[i].name,
                                                        .size = run->files[i].digest.size,
                                                        .sha256 = run->files[i].digest.sha256});
    sealed_add(writer, &frame);
}

bool
manifest_exists(const struct slurm_folder *folder)
{
    return faccessat(folder->fd, MANIFEST_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Writes under a temporary unique name first, since two steps may publish at the same time. */
static int
manifest_place(const struct sealed_writer *writer, int folder)
{
    char nonce[ATTEMPT_NONCE_SIZE], name[sizeof MANIFEST_FILE + ATTEMPT_NONCE_SIZE];
    int rc = slurm_nonce_make(nonce);
    if (rc)
        return rc;
    snprintf(name, sizeof name, MANIFEST_FILE "-%s", nonce);
    rc = durable_write(folder, name, writer->bytes, writer->size, 0640, DURABLE_NEW);
    if (rc)
        return rc;
    crash_point("step_before_manifest");
    rc = durable_rename_new(folder, name, folder, MANIFEST_FILE);
    crash_point("step_after_manifest");
    if (rc)
        unlinkat(folder, name, 0);
    return rc ? rc : durable_sync_folder(folder, ".");
}

int
manifest_publish(struct sealed_writer *writer, const struct slurm_folder *folder, struct error *error)
{
    int rc = sealed_end(writer);
    if (rc == 0)
        rc = slurm_folder_is_void(folder) ? -ESTALE : manifest_place(writer, folder->fd);
    sealed_release(writer);
    if (rc == -EEXIST || rc == -ESTALE)
        return rc;
    return rc ? error_set_system(error, rc, "write the manifest") : 0;
}
