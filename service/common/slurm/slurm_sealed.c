#include "service/common/slurm/slurm_sealed.h"

#include "base/array.h"
#include "base/limits.h"
#include "service/common/slurm/slurm_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALED_MAX ((size_t)LIMIT_ATTEMPT_MIB << 20)
#define SEAL_BYTES (PROTO_HEADER + 4u + DIGEST_TEXT - 1u) /* the SEAL frame: a string of this length */

/* ------------------------------------------------------------------------------ writing ---- */

void
sealed_add(struct sealed_writer *writer, struct proto_writer *frame)
{
    const int rc = proto_finish(frame);
    if (!writer->error && rc)
        writer->error = rc;
    else if (!writer->error && frame->size > SEALED_MAX - SEAL_BYTES - writer->size)
        writer->error = -EMSGSIZE;
    uint8_t *grown = writer->error ? NULL : array_grow(writer->bytes, &writer->capacity, writer->size + frame->size, 1);
    if (grown) {
        memcpy(grown + writer->size, frame->bytes, frame->size);
        writer->bytes = grown;
        writer->size += frame->size;
    } else if (!writer->error) {
        writer->error = -ENOMEM;
    }
    proto_release(frame);
}

void
sealed_begin(struct sealed_writer *writer, const char *role)
{
    struct proto_writer frame;
    char dialect[MESSAGE_DIALECT];
    *writer = (struct sealed_writer){0};
    message_dialect(dialect);
    message_write_hello(&frame, &(struct message_hello){.role = role, .build_id = dialect});
    sealed_add(writer, &frame);
}

int
sealed_end(struct sealed_writer *writer)
{
    struct digest digest;
    struct proto_writer frame;
    if (!writer->error)
        writer->error = digest_bytes(writer->bytes, writer->size, &digest);
    if (writer->error)
        return writer->error;
    message_write_seal(&frame, &(struct message_seal){.sha256 = digest.sha256});
    sealed_add(writer, &frame);
    return writer->error;
}

void
sealed_release(struct sealed_writer *writer)
{
    free(writer->bytes);
    *writer = (struct sealed_writer){0};
}

/* ------------------------------------------------------------------------------ reading ---- */

int
sealed_refuse(struct error *error, const char *name, const char *what)
{
    return error_set(error, -EBADMSG, CODE_ATTEMPT_DAMAGED, "the attempt's file %s %s: check the shared folder", name,
                     what);
}

/* Removes the last frame if it is the seal of those before it. */
static int
sealed_take_seal(struct sealed *sealed)
{
    struct digest digest;
    struct message_seal seal;
    struct proto_stream *const frames = &sealed->frames;
    if (frames->size < SEAL_BYTES)
        return -EBADMSG;
    struct proto_stream last = {.bytes = frames->bytes + frames->size - SEAL_BYTES, .size = SEAL_BYTES};
    struct proto_reader reader;
    if (proto_next(&last, &reader) != 1 || message_read_seal(&reader, &seal) != 0)
        return -EBADMSG;
    frames->size -= SEAL_BYTES;
    const int rc = digest_bytes(frames->bytes, frames->size, &digest);
    return rc ? rc : strcmp(seal.sha256, digest.sha256) == 0 ? 0 : -EBADMSG;
}

static int
sealed_check_hello(struct sealed *sealed, const char *name, const char *role, struct error *error)
{
    struct proto_reader reader;
    struct message_hello hello;
    char dialect[MESSAGE_DIALECT];
    if (proto_next(&sealed->frames, &reader) != 1 || message_read_hello(&reader, &hello) != 0)
        return sealed_refuse(error, name, "has an invalid start");
    if (strcmp(hello.role, role) != 0)
        return sealed_refuse(error, name, "is of another kind than its name");
    message_dialect(dialect);
    if (strcmp(hello.build_id, dialect) != 0)
        return error_set(error, -EPROTO, CODE_ATTEMPT_OTHER_VERSION,
                         "the attempt's file %s was written by Noctule %.60s, but this is %s: install "
                         "the same version on every node",
                         name, hello.build_id, dialect);
    sealed->first = sealed->frames.consumed;
    return 0;
}

int
sealed_open(uint8_t *bytes, size_t size, const char *name, const char *role, struct sealed *sealed, struct error *error)
{
    *sealed = (struct sealed){.frames = {.bytes = bytes, .size = size, .capacity = size}};
    int rc = sealed_take_seal(sealed);
    if (rc == -EBADMSG)
        sealed_refuse(error, name, "is cut off or altered");
    else if (rc)
        error_set_system(error, rc, "check an attempt's file");
    if (rc == 0)
        rc = sealed_check_hello(sealed, name, role, error);
    if (rc)
        proto_stream_release(&sealed->frames);
    return rc;
}

/* Loads the complete file. Returns -EMSGSIZE if it is too large, and -EBADMSG if it is not a
 * regular file or changes. */
static int
sealed_load(int fd, uint8_t **bytes, size_t *size)
{
    struct stat status;
    size_t got = 0;
    if (fstat(fd, &status) != 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -EBADMSG;
    if ((uint64_t)status.st_size > SEALED_MAX)
        return -EMSGSIZE;
    *size = (size_t)status.st_size;
    *bytes = malloc(*size + 1);
    if (!*bytes)
        return -ENOMEM;
    while (got < *size) {
        const ssize_t some = read(fd, *bytes + got, *size - got);
        if (some == 0)
            return -EBADMSG;
        if (some < 0 && errno != EINTR)
            return -errno;
        got += some > 0 ? (size_t)some : 0;
    }
    return 0;
}

int
sealed_read(int folder, const char *name, const char *role, struct sealed *sealed, struct error *error)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    char what[80];
    snprintf(what, sizeof what, "read the attempt's file %.40s", name);
    *sealed = (struct sealed){0};
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return error_set_system(error, -errno, what);
    const int rc = sealed_load(fd, &bytes, &size);
    close(fd);
    if (rc == 0)
        return sealed_open(bytes, size, name, role, sealed, error);
    free(bytes);
    if (rc == -EMSGSIZE)
        return sealed_refuse(error, name, "is too large");
    return rc == -EBADMSG ? sealed_refuse(error, name, "is not a regular file, or changed while it was read")
                          : error_set_system(error, rc, what);
}

int
sealed_next(struct sealed *sealed, struct proto_reader *reader)
{
    const int rc = proto_next(&sealed->frames, reader);
    return rc == 0 && sealed->frames.consumed < sealed->frames.size ? -EBADMSG : rc;
}
