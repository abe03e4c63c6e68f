/*
 * pseudonym.h - what stands for who a patient is, where nobody needs to know: the same word for the same identifier in one
 * installation, and no way back without its key. HMAC-SHA-256 (RFC 2104), cut to 96 bits.
 *
 * Calls block, and return 0 or -errno. From any thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_PSEUDONYM_H
#define NOCTULE_SERVICE_COMMON_PSEUDONYM_H

#include <stdint.h>

#define PSEUDONYM_SIZE 27 /* "h:", 24 hexadecimal digits, and the end */

struct pseudonym_key {
    uint8_t bytes[32];
};

/* That of the root, LAYOUT_PSEUDONYM_KEY. -ENOENT: it was not made yet; -EACCES: it is not for this user; -EBADMSG: it is too
 * short; -ENOMEM: words cannot be made, and this process had better end. */
int pseudonym_key_read(const char *root, struct pseudonym_key *key);
/* The same; made where there is none. */
int pseudonym_key_make(const char *root, struct pseudonym_key *key);

/* "" stays "". */
int pseudonym_of(const struct pseudonym_key *key, const char *identifier,
                 char word[PSEUDONYM_SIZE]);

#endif
