/* slurm_folder_make.c - see slurm_folder.h: functions of the daemon. */
#include "service/common/slurm/slurm_folder.h"

#include "base/durable.h"
#include "base/test_hook.h"
#include "base/text.h"
#include "service/common/file_ops.h"
#include "service/common/slurm/slurm_sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder under construction. */
struct slurm_making {
    const struct slurm_attempt_order *order;
    const atomic_bool *stop;
    struct error *error;
    char *path;
    int folder, staged; /* `staged` is -1 until a file is copied */
    size_t count;       /* number of files of the job */
    char **files;       /* paths for the spec that is written */
    struct digest *digests;
};

static int
making_fail(const struct slurm_making *making, int rc, const char *verb, const char *name)
{
    char what[400];
    snprintf(what, sizeof what, "%s %.380s", verb, name);
    return error_set_system(making->error, rc, what);
}

bool
slurm_folder_is_shared(const char *shared, const char *path)
{
    const size_t length = shared ? strlen(shared) : 0;
    return length > 0 && strncmp(path, shared, length) == 0 && path[length] == '/' && !strstr(path, "/../");
}

/* Uses the digest of the spec if there is one, so that the file need not be read. The size is the current one. */
static bool
making_know(struct slurm_making *making, size_t i, int from)
{
    const struct job_spec *spec = making->order->spec;
    struct digest *digest = &making->digests[i];
    struct stat status;
    if (i >= spec->input_count || !spec->sha256 || !spec->sha256[i] || !digest_is_sha256(spec->sha256[i]) ||
        fstat(from, &status) != 0)
        return false;
    digest->size = status.st_size;
    memcpy(digest->sha256, spec->sha256[i], sizeof digest->sha256);
    return true;
}

/* Copies the file `from` into the folder. The name of the copy shows which file it was. The caller
 * must sync the copies. */
static int
making_stage(struct slurm_making *making, size_t i, int from, const char *path)
{
    char name[96];
    bool write_failed = false;
    snprintf(name, sizeof name, "%06zu-%.50s", i, text_base_name(path));
    int rc = 0;
    if (making->staged < 0 && mkdirat(making->folder, ATTEMPT_INPUTS, 0750) != 0)
        rc = -errno;
    if (making->staged < 0 && rc == 0) {
        making->staged = openat(making->folder, ATTEMPT_INPUTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        rc = making->staged < 0 ? -errno : 0;
    }
    const int to = rc ? rc : durable_create(making->staged, name, 0640);
    if (to < 0)
        return making_fail(making, to, "create a copy of", path);
    bool read_failed;
    if (making_know(making, i, from)) {
        rc = file_copy(from, to, &read_failed);
        write_failed = rc && !read_failed;
    } else {
        rc = digest_file(from, to, &making->digests[i], &write_failed);
    }
    const int closed = durable_close(to);
    if (rc == 0 && closed) {
        rc = closed;
        write_failed = true;
    }
    if (rc)
        return making_fail(making, rc, write_failed ? "write a copy of" : "copy", path);
    return asprintf(&making->files[i], "%s/" ATTEMPT_INPUTS "/%s", making->path, name) < 0
               ? making_fail(making, -ENOMEM, "copy", path)
               : 0;
}

static int
making_take(struct slurm_making *making, size_t i, const char *path)
{
    if (making->stop && atomic_load(making->stop))
        return error_set(making->error, -ECANCELED, CODE_STOPPED, "the submission was stopped");
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return error_set_files(making->error, -errno, CODE_FILE_UNREADABLE, path, NULL,
                               "an input of the job cannot be opened: %s", strerror(errno));
    /* A node may not read the masks in the root: a step is confined to the folder of series. */
    const bool is_mask = i >= making->order->spec->input_count + making->order->spec->object_count;
    int rc;
    if (is_mask || !slurm_folder_is_shared(making->order->shared, path)) {
        rc = making_stage(making, i, from, path);
    } else {
        making->files[i] = strdup(path);
        rc = making->files[i] ? 0 : -ENOMEM;
        if (rc == 0 && !making_know(making, i, from))
            rc = digest_file(from, -1, &making->digests[i], NULL);
        if (rc)
            making_fail(making, rc, "read", path);
    }
    close(from);
    return rc;
}

static int
making_take_all(struct slurm_making *making)
{
    const struct job_spec *spec = making->order->spec;
    making->count = slurm_folder_files(spec);
    making->files = calloc(making->count + 1, sizeof *making->files);
    making->digests = calloc(making->count + 1, sizeof *making->digests);
    int rc = making->files && making->digests ? 0 : making_fail(making, -ENOMEM, "list", "inputs");
    for (size_t i = 0; i < making->count && rc == 0; i++)
        rc = making_take(making, i, slurm_folder_file(spec, i));
    /* Syncing hundreds of copies one by one would wait for the disk each time. */
    if (rc == 0 && making->staged >= 0 && syncfs(making->staged) != 0)
        rc = making_fail(making, -errno, "sync", ATTEMPT_INPUTS);
    return rc;
}

/* Writes the job spec, which differs from a local worker's only in the paths of the inputs, and digests it. */
static int
making_write_spec(struct slurm_making *making, struct digest *digest)
{
    struct job_spec spec = *making->order->spec;
    char *path = NULL, **copy = making->files + spec.input_count + spec.object_count;
    spec.inputs = making->files;
    spec.sha256 = NULL; /* they are in `attempt` */
    spec.objects = making->files + spec.input_count;
    spec.masks = calloc(spec.mask_count + 1, sizeof *spec.masks);
    int rc = !spec.masks || asprintf(&path, "%s/" ATTEMPT_SPEC, making->path) < 0 ? -ENOMEM : 0;
    for (size_t i = 0; i < spec.mask_count && rc == 0; i++) {
        spec.masks[i] = making->order->spec->masks[i];
        if (*spec.masks[i].path)
            spec.masks[i].path = *copy++;
    }
    if (rc == 0)
        rc = job_spec_write(&spec, path);
    free(spec.masks);
    free(path);
    const int fd = rc ? rc : openat(making->folder, ATTEMPT_SPEC, O_RDONLY | O_CLOEXEC);
    if (rc == 0)
        rc = fd < 0 ? -errno : digest_file(fd, -1, digest, NULL);
    if (fd >= 0)
        close(fd);
    return rc ? making_fail(making, rc, "write", ATTEMPT_SPEC) : 0;
}

static int
making_write_attempt(struct slurm_making *making, const struct digest *spec)
{
    const struct slurm_attempt_order *order = making->order;
    const struct message_attempt head = {
        .job = order->id.job,
        .attempt = order->id.number,
        .nonce = order->id.nonce,
        .deadline_seconds = order->deadline_seconds,
        .backend = order->backend,
        .threads = order->threads,
        .memory_bytes = order->memory_bytes,
        .spec_size = spec->size,
        .spec_sha256 = spec->sha256,
    };
    struct sealed_writer writer;
    struct proto_writer frame;
    sealed_begin(&writer, ATTEMPT_ROLE);
    message_write_attempt(&frame, &head);
    for (size_t i = 0; i < making->count; i++)
        message_add_input(
            &frame, &(struct message_input){.size = making->digests[i].size, .sha256 = making->digests[i].sha256});
    sealed_add(&writer, &frame);
    int rc = sealed_end(&writer);
    if (rc == 0)
        rc = durable_write(making->folder, ATTEMPT_FILE, writer.bytes, writer.size, 0640, DURABLE_NEW);
    sealed_release(&writer);
    if (rc == 0)
        rc = durable_sync_folder(making->folder, ".");
    return rc ? making_fail(making, rc, "write", ATTEMPT_FILE) : 0;
}

static int
making_fill(struct slurm_making *making)
{
    struct digest spec;
    making->folder = open(making->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (making->folder < 0)
        return making_fail(making, -errno, "open", making->path);
    int rc = making_take_all(making);
    if (rc == 0)
        rc = making_write_spec(making, &spec);
    crash_point("attempt_before_attempt_file");
    if (rc == 0)
        rc = making_write_attempt(making, &spec);
    if (rc == 0) {
        rc = durable_sync_folder(making->folder, "..");
        if (rc)
            making_fail(making, rc, "sync the folder of", making->path);
    }
    return rc;
}

int
slurm_folder_make(const char *share, const struct slurm_attempt_order *order, const atomic_bool *stop,
                  struct error *error)
{
    char name[ATTEMPT_NAME_SIZE];
    struct slurm_making making = {.order = order, .stop = stop, .error = error, .folder = -1, .staged = -1};
    slurm_folder_name_write(&order->id, name);
    if (asprintf(&making.path, "%s/%s", share, name) < 0)
        return error_set_system(error, -ENOMEM, "name the attempt");
    int rc = mkdir(making.path, 0750) == 0 ? 0 : making_fail(&making, -errno, "make", making.path);
    if (rc == 0) {
        rc = making_fill(&making);
        if (rc)
            slurm_folder_remove(share, &order->id);
    }
    for (size_t i = 0; making.files && i < making.count; i++)
        free(making.files[i]);
    free(making.files);
    free(making.digests);
    if (making.staged >= 0)
        close(making.staged);
    if (making.folder >= 0)
        close(making.folder);
    free(making.path);
    return rc;
}

int
slurm_folder_remove(const char *share, const struct slurm_attempt_id *id)
{
    char name[ATTEMPT_NAME_SIZE];
    slurm_folder_name_write(id, name);
    const int base = open(share, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return -errno;
    const int rc = file_remove(base, name, NULL);
    close(base);
    return rc;
}
