/*
 * slurm_digest.h - SHA-256 of files, as 64 lower-case hexadecimal digits. It identifies the
 * contents of files on a shared folder.
 *
 * Calls block. They return 0 or -errno; -ENOMEM also if libcrypto fails.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLURM_SLURM_DIGEST_H
#define NOCTULE_SERVICE_COMMON_SLURM_SLURM_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_TEXT 65

struct digest {
    int64_t size;
    char sha256[DIGEST_TEXT];
};

int digest_bytes(const void *bytes, size_t size, struct digest *digest);

/* Digests a file from its start to its end. If `to` is 0 or more, writes exactly the digested bytes
 * there. After a failure, *write_failed (may be NULL) is true if writing failed. */
int digest_file(int from, int to, struct digest *digest, bool *write_failed);

/* Returns whether the text of another process has the form of a digest. */
bool digest_is_sha256(const char *text);
bool digest_equal(const struct digest *a, const struct digest *b);

#endif
