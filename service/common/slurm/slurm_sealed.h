/*
 * slurm_sealed.h - a file of frames (service/common/wire) that one process leaves for another on a shared
 * folder: HELLO, which says in what dialect the rest is, the frames, and SEAL, the SHA-256 of all that is
 * before it. A reader sees all that was written, or is told what is wrong with it.
 *
 * One thread at a time.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_SEALED_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_SEALED_H

#include "service/common/wire/messages.h"

/* ------------------------------------------------------------------------------ writing ---- */

/* Bytes that grow by whole frames; the first failure is latched and told by sealed_end. */
struct sealed_writer {
    uint8_t *bytes;
    size_t size, capacity;
    int error;
};

/* `role`: what kind of file it is, for HELLO. */
void sealed_begin(struct sealed_writer *writer, const char *role);
/* Finishes and releases the frame. */
void sealed_add(struct sealed_writer *writer, struct proto_writer *frame);
/* 0, -ENOMEM, or -EMSGSIZE for a frame, or for more than a reader takes. The bytes are the writer's
 * until sealed_release. */
int sealed_end(struct sealed_writer *writer);
void sealed_release(struct sealed_writer *writer);

/* ------------------------------------------------------------------------------ reading ---- */

struct sealed {
    struct proto_stream frames; /* those between HELLO and SEAL */
    size_t first;               /* where they begin */
};

/*
 * Reads the file `name` of an open folder. 0; -ENOENT when it is not there; -EBADMSG with
 * ATTEMPT_DAMAGED when it is larger than LIMIT_ATTEMPT_MIB, cut off or altered, or its HELLO says
 * another role; -EPROTO with ATTEMPT_OTHER_VERSION when the rest is in another dialect; another -errno
 * when it cannot be read.
 */
int sealed_read(int folder, const char *name, const char *role, struct sealed *sealed,
                struct error *error);
/* The same of bytes that were read; they are the sealed file's from now on, also when it fails. */
int sealed_open(uint8_t *bytes, size_t size, const char *name, const char *role,
                struct sealed *sealed, struct error *error);
/* 1 and a frame, 0 when there are no more, -EBADMSG when what is left is none. Reading a frame may alter it. */
int sealed_next(struct sealed *sealed, struct proto_reader *reader);
/* From the first frame again; for those that were looked at and not read. */
void sealed_rewind(struct sealed *sealed);
void sealed_close(struct sealed *sealed);

#endif
