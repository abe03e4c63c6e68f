/*
 * program_digest.h - the identity of a program: SHA-256 over the options that can change its output, the file of its
 * command, and its weights. Equal identities give the same mask, as far as the program itself repeats its bytes.
 */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_PROGRAM_DIGEST_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_PROGRAM_DIGEST_H

#include "base/error.h"
#include "config/config.h"

#include <stdint.h>

struct program_digest {
    char identity[65], program_sha256[65], weights_sha256[65]; /* weights_sha256 is "" without weights */
    int64_t weights_bytes;
};

/* Digests the names and file stamps of all files that program_digest_make() reads. Code: PROGRAM_UNAVAILABLE for a file or
 * folder that is absent, unreadable or not executable. Returns 0 or -errno, as does program_digest_make(). */
int program_digest_stamp(const struct conf_program *program, char stamp[65], struct error *error);
/* Reads all files: may take minutes. */
int program_digest_make(const struct conf_program *program, struct program_digest *digest, struct error *error);

#endif
