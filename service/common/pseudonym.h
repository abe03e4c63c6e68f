/*
 * pseudonym.h - keyed hashes of patient identifiers. Within one installation the same identifier gives the same hash,
 * which cannot be reversed without the key. HMAC-SHA-256 (RFC 2104), cut to 96 bits.
 *
 * Calls block and return 0 or -errno. Thread-safe.
 */
#ifndef NOCTULE_SERVICE_COMMON_PSEUDONYM_H
#define NOCTULE_SERVICE_COMMON_PSEUDONYM_H

#include "base/error.h"
#include "base/series_about.h"
#include "config/config.h"

#include <stdint.h>

#define PSEUDONYM_SIZE 27 /* "h:", 24 hexadecimal digits, and the terminator */

struct pseudonym_key {
    uint8_t bytes[32];
};

/* Reads the key of the root (LAYOUT_PSEUDONYM_KEY). Returns -ENOENT if there is no key yet, -EACCES
 * if this user may not read it, and -EBADMSG if it is too short. Returns -ENOMEM if hashes cannot
 * be computed; the process should then exit. */
int pseudonym_key_read(const char *root, struct pseudonym_key *key);
/* Reads the key of the root, or creates it if there is none. */
int pseudonym_key_make(const char *root, struct pseudonym_key *key);

#define PSEUDONYM_DIGEST 32

/* Computes the keyed digest of a text. `key` is a struct pseudonym_key. */
int pseudonym_digest(const void *key, const char *text, uint8_t digest[PSEUDONYM_DIGEST]);

/* Computes the pseudonym of an identifier; "" stays "". */
int pseudonym_of(const struct pseudonym_key *key, const char *identifier, char word[PSEUDONYM_SIZE]);

/* Computes the fingerprint of the key: the pseudonym of a fixed text. The database keeps it, to notice another key. */
int pseudonym_key_fingerprint(const struct pseudonym_key *key, char word[PSEUDONYM_SIZE]);

/* Sets the error IDENTIFIER_KEY_CHANGED. Returns -ENOKEY. */
int pseudonym_refuse_key(struct error *error);

/* Changes the identifying search fields of a series to the form that `identifiers` requires. */
int pseudonym_of_series(const struct pseudonym_key *key, enum conf_identifiers form, struct series_about *about);

#endif
