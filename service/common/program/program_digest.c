#include "service/common/program/program_digest.h"

#include "base/text.h"
#include "service/common/file_ops.h"
#include "service/common/slurm/slurm_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct digest_walk {
    FILE *out;
    bool reads; /* digests the contents of files; false: their stamps */
    int64_t bytes;
    struct error *error;
};

static int
digest_unavailable(struct error *error, const char *path, int rc)
{
    return error_set(error, rc, CODE_PROGRAM_UNAVAILABLE, "%s: %s", path, strerror(-rc));
}

/* Writes the line of one file. */
static int
digest_file_line(struct digest_walk *walk, const char *name, const char *path)
{
    struct file_stamp stamp;
    struct digest digest = {0};
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int rc = fd < 0 ? -errno : file_stamp_of(fd, &stamp);
    if (!rc && walk->reads)
        rc = digest_file(fd, -1, &digest, NULL);
    if (fd >= 0)
        close(fd);
    if (rc)
        return digest_unavailable(walk->error, path, rc);
    walk->bytes += stamp.size;
    if (walk->reads)
        fprintf(walk->out, "%s %" PRId64 " %s\n", name, digest.size, digest.sha256);
    else
        fprintf(walk->out, "%s %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", name, stamp.device,
                stamp.inode, stamp.size, stamp.mtime_ns, stamp.ctime_ns);
    return 0;
}

/* Writes the line of an entry below a folder of weights. A link to a file counts as the file. */
static int
digest_entry(struct digest_walk *walk, const FTSENT *entry, size_t root_length)
{
    const char *name = entry->fts_path + root_length;
    struct stat status;
    switch (entry->fts_info) {
    case FTS_F:
        return digest_file_line(walk, name, entry->fts_accpath);
    case FTS_SL:
        if (stat(entry->fts_accpath, &status) == 0 && S_ISREG(status.st_mode))
            return digest_file_line(walk, name, entry->fts_accpath);
        fprintf(walk->out, "%s link\n", name);
        return 0;
    case FTS_DNR:
    case FTS_NS:
    case FTS_ERR:
        return digest_unavailable(walk->error, entry->fts_path, -entry->fts_errno);
    default:
        return 0;
    }
}

static int
digest_compare(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Writes the lines of a file, or of all files of a folder in the order of their names. */
static int
digest_path(struct digest_walk *walk, char *path)
{
    char *const paths[] = {path, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, digest_compare);
    if (!tree)
        return error_set_system(walk->error, -errno, "read the weights of a program");
    int rc = 0;
    for (const FTSENT *entry; rc == 0 && (entry = fts_read(tree));)
        rc = digest_entry(walk, entry, strlen(path));
    fts_close(tree);
    return rc;
}

static int
digest_command(struct digest_walk *walk, char *const *command, size_t count)
{
    struct stat status;
    if (count == 0)
        return 0;
    if (stat(command[0], &status) < 0)
        return digest_unavailable(walk->error, command[0], -errno);
    if (!S_ISREG(status.st_mode) || access(command[0], X_OK) != 0)
        return digest_unavailable(walk->error, command[0], -EACCES);
    return digest_file_line(walk, "", command[0]);
}

/* Digests the lines of a part of the program. `bytes` may be NULL. */
static int
digest_part(const struct conf_program *program, bool weights, bool reads, char sha256[65], int64_t *bytes,
            struct error *error)
{
    struct digest_walk walk = {.reads = reads, .error = error};
    struct digest digest = {0};
    struct text_stream text;
    int rc = text_open(&text);
    if (rc)
        return error_set_system(error, rc, "digest a program");
    walk.out = text.out;
    if (!weights)
        rc = digest_command(&walk, program->command, program->command_count);
    if (!rc && !weights)
        rc = digest_command(&walk, program->cpu_command, program->cpu_command_count);
    for (size_t i = 0; rc == 0 && weights && i < program->weights_count; i++)
        rc = digest_path(&walk, program->weights[i]);
    const int closed = text_close(&text);
    if (!rc && (closed || digest_bytes(text.bytes, text.size, &digest) != 0))
        rc = error_set_system(error, -ENOMEM, "digest a program");
    free(text.bytes);
    memcpy(sha256, digest.sha256, sizeof digest.sha256);
    if (bytes)
        *bytes = walk.bytes;
    return rc;
}

/* Digests the options of a program together with two other digests. */
static int
digest_join(const struct conf_program *program, const char *a, const char *b, char sha256[65], struct error *error)
{
    char *options = conf_program_identity(program), *text = NULL;
    struct digest digest = {0};
    int rc = options && asprintf(&text, "%s\n%s\n%s\n", options, a, b) >= 0 ? 0 : -ENOMEM;
    if (!rc)
        rc = digest_bytes(text, strlen(text), &digest);
    free(options);
    if (rc)
        return error_set_system(error, rc, "digest a program");
    free(text);
    memcpy(sha256, digest.sha256, sizeof digest.sha256);
    return 0;
}

int
program_digest_stamp(const struct conf_program *program, char stamp[65], struct error *error)
{
    char command[65], weights[65];
    for (size_t i = 0; i < program->read_count; i++)
        if (access(program->read[i], R_OK) != 0)
            return digest_unavailable(error, program->read[i], -errno);
    int rc = digest_part(program, false, false, command, NULL, error);
    if (!rc)
        rc = digest_part(program, true, false, weights, NULL, error);
    return rc ? rc : digest_join(program, command, weights, stamp, error);
}

int
program_digest_make(const struct conf_program *program, struct program_digest *digest, struct error *error)
{
    *digest = (struct program_digest){0};
    int rc = digest_part(program, false, true, digest->program_sha256, NULL, error);
    if (!rc && program->weights_count > 0)
        rc = digest_part(program, true, true, digest->weights_sha256, &digest->weights_bytes, error);
    return rc ? rc : digest_join(program, digest->program_sha256, digest->weights_sha256, digest->identity, error);
}
