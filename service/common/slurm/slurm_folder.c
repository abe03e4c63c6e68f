/* slurm_folder.c - see slurm_folder.h: names, and the step's side. */
#include "service/common/slurm/slurm_folder.h"

#include "service/common/parallel.h"
#include "service/common/slurm/slurm_sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* -------------------------------------------------------------------------------- names ---- */

int
slurm_nonce_make(char nonce[ATTEMPT_NONCE_SIZE])
{
    uint64_t bits[2];
    ssize_t got;
    do
        got = getrandom(bits, sizeof bits, 0);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof bits)
        return got < 0 ? -errno : -EIO;
    snprintf(nonce, ATTEMPT_NONCE_SIZE, "%016" PRIx64 "%016" PRIx64, bits[0], bits[1]);
    return 0;
}

void
slurm_folder_name_write(const struct slurm_attempt_id *id, char name[ATTEMPT_NAME_SIZE])
{
    snprintf(name, ATTEMPT_NAME_SIZE, "job-%" PRId64 ".%" PRId64 ".%s", id->job, id->number, id->nonce);
}

bool
slurm_folder_name_read(const char *name, struct slurm_attempt_id *id)
{
    char again[ATTEMPT_NAME_SIZE];
    *id = (struct slurm_attempt_id){0};
    if (sscanf(name, "job-%" SCNd64 ".%" SCNd64 ".%32[0-9a-f]", &id->job, &id->number, id->nonce) != 3 ||
        strlen(id->nonce) != ATTEMPT_NONCE_SIZE - 1 || id->job <= 0 || id->number <= 0)
        return false;
    slurm_folder_name_write(id, again); /* rejects "job-+1" and anything after the nonce */
    return strcmp(name, again) == 0;
}

const char *
slurm_folder_file(const struct job_spec *spec, size_t i)
{
    if (i < spec->input_count)
        return spec->inputs[i];
    i -= spec->input_count;
    if (i < spec->object_count)
        return spec->objects[i];
    i -= spec->object_count;
    for (size_t mask = 0; mask < spec->mask_count; mask++)
        if (*spec->masks[mask].path && i-- == 0)
            return spec->masks[mask].path;
    return NULL;
}

size_t
slurm_folder_files(const struct job_spec *spec)
{
    size_t count = spec->input_count + spec->object_count;
    while (slurm_folder_file(spec, count))
        count++;
    return count;
}

/* ------------------------------------------------------------------------------ opening ---- */

static int
slurm_folder_refuse(struct error *error, const char *what)
{
    return error_set(error, -EBADMSG, CODE_ATTEMPT_DAMAGED, "the attempt's file " ATTEMPT_FILE " %s", what);
}

/* Checks the values that the daemon wrote. */
static int
slurm_folder_check_head(const struct slurm_folder *folder, struct error *error)
{
    const struct message_attempt *head = &folder->head;
    if (head->job != folder->id.job || head->attempt != folder->id.number || strcmp(head->nonce, folder->id.nonce) != 0)
        return error_set(error, -ESTALE, CODE_ATTEMPT_OTHER,
                         "%.400s holds attempt %" PRId64 " of job %" PRId64 ", but its name is of another attempt",
                         folder->path, head->attempt, head->job);
    if (!isfinite(head->deadline_seconds) || head->deadline_seconds <= 0 || head->threads < 0 ||
        head->threads > INT32_MAX || head->memory_bytes < 0 || head->spec_size < 0 ||
        !digest_is_sha256(head->spec_sha256))
        return slurm_folder_refuse(error, "has invalid numbers");
    return 0;
}

static int
slurm_folder_take_inputs(struct slurm_folder *folder, struct proto_reader *reader, struct error *error)
{
    struct message_input input;
    size_t count = 0;
    folder->inputs = calloc((size_t)reader->rows + 1, sizeof *folder->inputs);
    if (!folder->inputs)
        return error_set_system(error, -ENOMEM, "list the inputs");
    if ((size_t)reader->rows != slurm_folder_files(folder->spec))
        return slurm_folder_refuse(error, "has another number of files than its job");
    while (message_next_input(reader, &input)) {
        struct digest *digest = &folder->inputs[count++];
        if (input.size < 0 || !digest_is_sha256(input.sha256))
            return slurm_folder_refuse(error, "has an invalid digest");
        digest->size = input.size;
        memcpy(digest->sha256, input.sha256, sizeof digest->sha256);
    }
    return 0;
}

/* Checks a regular file against its digest. Returns 0, -EBADMSG if it differs, or another
 * -errno. */
static int
slurm_folder_check_file(int folder, const char *path, int flags, const struct digest *expected)
{
    struct stat status;
    struct digest digest;
    const int fd = openat(folder, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &status) == 0 ? 0 : -errno;
    if (rc == 0 && (!S_ISREG(status.st_mode) || status.st_size != expected->size))
        rc = -EBADMSG;
    if (rc == 0)
        rc = digest_file(fd, -1, &digest, NULL);
    close(fd);
    return rc == 0 && !digest_equal(&digest, expected) ? -EBADMSG : rc;
}

static int
slurm_folder_file_error(int rc, const char *path, struct error *error)
{
    if (rc == -EBADMSG || rc == -ENOENT || rc == -ELOOP)
        return error_set_files(error, -EBADMSG, CODE_ATTEMPT_FILE_DIFFERS, path, NULL,
                               "an input file of the attempt %s: check the shared folder",
                               rc == -ENOENT ? "is missing"
                                             : "has changed since it was received or the attempt was created");
    char what[400];
    snprintf(what, sizeof what, "read %.380s", path);
    return error_set_system(error, rc, what);
}

static int
slurm_folder_read_spec(struct slurm_folder *folder, struct error *error)
{
    struct digest expected = {.size = folder->head.spec_size};
    struct error why;
    char *path;
    memcpy(expected.sha256, folder->head.spec_sha256, sizeof expected.sha256);
    int rc = slurm_folder_check_file(folder->fd, ATTEMPT_SPEC, O_NOFOLLOW, &expected);
    if (rc)
        return slurm_folder_file_error(rc, ATTEMPT_SPEC, error);
    if (asprintf(&path, "%s/" ATTEMPT_SPEC, folder->path) < 0)
        return error_set_system(error, -ENOMEM, "name the job");
    rc = job_spec_read(path, &folder->spec, &why);
    free(path);
    if (rc)
        return error_set(error, rc, CODE_ATTEMPT_DAMAGED, "the attempt's file " ATTEMPT_SPEC ": %s", why.message);
    return folder->spec->id == folder->id.job ? 0 : slurm_folder_refuse(error, "is of another job");
}

int
slurm_folder_read(struct slurm_folder *folder, struct error *error)
{
    struct sealed sealed;
    struct proto_reader reader, more;
    int rc = sealed_read(folder->fd, ATTEMPT_FILE, ATTEMPT_ROLE, &sealed, error);
    if (rc)
        return rc;
    if (sealed_next(&sealed, &reader) != 1 || message_read_attempt(&reader, &folder->head) != 0 ||
        sealed_next(&sealed, &more) != 0) {
        rc = slurm_folder_refuse(error, "does not contain an attempt");
    } else {
        folder->memory = message_keep_attempt(&reader, &folder->head);
        rc = folder->memory ? slurm_folder_check_head(folder, error)
                            : error_set_system(error, -ENOMEM, "read the attempt");
    }
    if (rc == 0)
        rc = slurm_folder_read_spec(folder, error);
    if (rc == 0)
        rc = slurm_folder_take_inputs(folder, &reader, error);
    proto_stream_release(&sealed.frames);
    return rc;
}

static int
slurm_folder_enter(struct slurm_folder *folder, struct error *error)
{
    char what[400];
    /* Read the attempt from the folder's own name, not from the path that leads to it. */
    size_t length = strlen(folder->path);
    while (length > 1 && folder->path[length - 1] == '/')
        folder->path[--length] = '\0';
    const char *slash = strrchr(folder->path, '/');
    if (!slurm_folder_name_read(slash ? slash + 1 : folder->path, &folder->id))
        return error_set(error, -EINVAL, CODE_ATTEMPT_OTHER,
                         "%.400s is not the folder of an attempt (job-<job>.<attempt>.<nonce>)", folder->path);
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd >= 0)
        return 0;
    snprintf(what, sizeof what, "open the attempt's folder %.360s", folder->path);
    return error_set_system(error, -errno, what);
}

int
slurm_folder_open(const char *path, struct slurm_folder **out, struct error *error)
{
    struct slurm_folder *folder = calloc(1, sizeof *folder);
    int rc = -ENOMEM;
    if (folder) {
        folder->fd = -1;
        folder->path = strdup(path);
    }
    if (!folder || !folder->path)
        error_set_system(error, rc, "open the attempt");
    else
        rc = slurm_folder_enter(folder, error);
    if (rc)
        slurm_folder_close(folder);
    else
        *out = folder;
    return rc;
}

void
slurm_folder_close(struct slurm_folder *folder)
{
    if (!folder)
        return;
    if (folder->fd >= 0)
        close(folder->fd);
    job_spec_free(folder->spec);
    free(folder->inputs);
    free(folder->memory);
    free(folder->path);
    free(folder);
}

/* ----------------------------------------------------------------------------- checking ---- */

struct slurm_input_check {
    const struct slurm_folder *folder;
    int *failed; /* 0 or -errno for each input */
};

static void
slurm_folder_check_some(struct parallel *loop, void *context)
{
    const struct slurm_input_check *check = context;
    int64_t i;
    while (parallel_take(loop, &i)) {
        /* May be a link, to the file that replaced it (LAYOUT_REPLACED). */
        check->failed[i] = slurm_folder_check_file(AT_FDCWD, slurm_folder_file(check->folder->spec, (size_t)i), 0,
                                                   &check->folder->inputs[i]);
        if (check->failed[i])
            parallel_fail(loop);
    }
}

int
slurm_folder_check(const struct slurm_folder *folder, int threads, const atomic_bool *stop, struct error *error)
{
    const size_t count = slurm_folder_files(folder->spec);
    struct slurm_input_check check = {folder, calloc(count + 1, sizeof *check.failed)};
    if (!check.failed)
        return error_set_system(error, -ENOMEM, "check the inputs");
    struct parallel loop = {.count = (int64_t)count, .stop = stop, .body = slurm_folder_check_some, .context = &check};
    parallel_run(&loop, threads);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        if (check.failed[i])
            rc = slurm_folder_file_error(check.failed[i], slurm_folder_file(folder->spec, i), error);
    free(check.failed);
    if (rc == 0 && parallel_stopped(&loop))
        return error_set(error, -ECANCELED, CODE_STOPPED, "the job was stopped");
    return rc;
}

/* A removed folder is empty, and its path is free or another folder. A network file system may show either late. */
bool
slurm_folder_is_void(const struct slurm_folder *folder)
{
    struct stat open_one, named;
    return fstat(folder->fd, &open_one) != 0 || stat(folder->path, &named) != 0 || open_one.st_dev != named.st_dev ||
           open_one.st_ino != named.st_ino;
}
