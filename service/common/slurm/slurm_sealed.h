/*
 * slurm_sealed.h - a file of frames (service/common/wire) that one process writes for another on a
 * shared folder. It begins with HELLO, which names the dialect. The frames follow, then SEAL with
 * the SHA-256 of everything before it. A reader gets either the complete contents or an error.
 *
 * A writer or a sealed file must be used by one thread at a time.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_SEALED_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_SEALED_H

#include "service/common/wire/messages.h"

/* ------------------------------------------------------------------------------ writing ---- */

/* The frames so far. The first failure is kept and returned by sealed_end. */
struct sealed_writer {
    uint8_t *bytes;
    size_t size, capacity;
    int error;
};

/* Begins a file. `role`: the kind of file, for HELLO. */
void sealed_begin(struct sealed_writer *writer, const char *role);
/* Finishes, adds and releases the frame. */
void sealed_add(struct sealed_writer *writer, struct proto_writer *frame);
/* Adds the seal. Returns 0, -ENOMEM, or -EMSGSIZE if a frame or the file is larger than a reader
 * accepts. The bytes belong to the writer until sealed_release. */
int sealed_end(struct sealed_writer *writer);
void sealed_release(struct sealed_writer *writer);

/* ------------------------------------------------------------------------------ reading ---- */

struct sealed {
    struct proto_stream frames; /* the frames between HELLO and SEAL */
    size_t first;               /* offset of the first frame */
};

/* Reads the file `name` of an open folder. Returns 0, or -ENOENT if it does not exist. Returns
 * -EBADMSG with ATTEMPT_DAMAGED if it is larger than LIMIT_ATTEMPT_MIB, cut off or altered, or if
 * its HELLO has another role. Returns -EPROTO with ATTEMPT_OTHER_VERSION if it has another dialect.
 * Returns another -errno if it cannot be read. The caller must release the frames with proto_stream_release(). */
int sealed_read(int folder, const char *name, const char *role, struct sealed *sealed, struct error *error);
/* Parses bytes that were already read. Takes ownership of them, also on failure. */
int sealed_open(uint8_t *bytes, size_t size, const char *name, const char *role, struct sealed *sealed,
                struct error *error);
/* Returns 1 and the next frame, 0 at the end, or -EBADMSG if the rest is no frame. Reading a frame may alter it. */
int sealed_next(struct sealed *sealed, struct proto_reader *reader);
/* Sets ATTEMPT_DAMAGED, and returns -EBADMSG. */
int sealed_refuse(struct error *error, const char *name, const char *what);

#endif
