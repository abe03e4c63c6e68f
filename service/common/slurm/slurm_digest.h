/*
 * slurm_digest.h - SHA-256 of files, as 64 lower-case hexadecimal digits: what a file on a shared folder is
 * known by, whoever wrote it.
 *
 * Calls block, and return 0 or -errno (-ENOMEM also when libcrypto fails).
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

/*
 * Of a file from its start to its end. With `to` 0 or more the bytes that were digested, and no others,
 * are written there too; *write_failed (may be NULL) says on failure that it was this.
 */
int digest_file(int from, int to, struct digest *digest, bool *write_failed);

/* What is told of a digest by another process: could it be one? */
bool digest_is_sha256(const char *text);
bool digest_equal(const struct digest *a, const struct digest *b);

#endif
