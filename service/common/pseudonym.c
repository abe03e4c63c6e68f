#include "service/common/pseudonym.h"

#include "base/durable.h"
#include "service/common/layout.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { WORD_BYTES = 12 };

static int
key_in(const char *root, bool makes, struct pseudonym_key *key)
{
    int folder = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    const size_t size = sizeof key->bytes;
    const int fd = openat(folder, LAYOUT_PSEUDONYM_KEY, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const ssize_t got = fd < 0 ? -1 : read(fd, key->bytes, size);
    int rc = got < 0 ? -errno : got < (ssize_t)size ? -EBADMSG : 0;
    if (fd >= 0)
        close(fd);
    if (fd < 0 && rc == -ENOENT && makes) {
        rc = getrandom(key->bytes, size, 0) != (ssize_t)size ? -EAGAIN : 0;
        if (rc == 0)
            rc = durable_write(folder, LAYOUT_PSEUDONYM_KEY, key->bytes, size, 0600, DURABLE_NEW);
        if (rc == 0)
            rc = durable_sync_folder(folder, ".");
    }
    close(folder);
    if (rc)
        return rc;
    /* Compute one pseudonym while the process can still end. OpenSSL initialises itself with the
     * first digest. If memory is short then, it crashes at a later digest. */
    char word[PSEUDONYM_SIZE];
    return OSSL_LIB_CTX_get0_global_default() ? pseudonym_of(key, "any", word) : -ENOMEM;
}

int
pseudonym_key_read(const char *root, struct pseudonym_key *key)
{
    return key_in(root, false, key);
}

int
pseudonym_key_make(const char *root, struct pseudonym_key *key)
{
    return key_in(root, true, key);
}

int
pseudonym_digest(const void *key, const char *text, uint8_t digest[PSEUDONYM_DIGEST])
{
    const struct pseudonym_key *const own = key;
    return HMAC(EVP_sha256(), own->bytes, sizeof own->bytes, (const uint8_t *)text, strlen(text), digest, NULL)
               ? 0
               : -ENOMEM;
}

int
pseudonym_of(const struct pseudonym_key *key, const char *identifier, char word[PSEUDONYM_SIZE])
{
    uint8_t digest[PSEUDONYM_DIGEST];
    word[0] = '\0';
    if (!*identifier)
        return 0;
    if (pseudonym_digest(key, identifier, digest))
        return -ENOMEM;
    strcpy(word, "h:");
    for (int i = 0; i < WORD_BYTES; i++)
        sprintf(word + 2 + 2 * i, "%02x", digest[i]);
    return 0;
}

int
pseudonym_key_fingerprint(const struct pseudonym_key *key, char word[PSEUDONYM_SIZE])
{
    return pseudonym_of(key, "fingerprint of " LAYOUT_PSEUDONYM_KEY, word);
}

int
pseudonym_refuse_key(struct error *error)
{
    return error_set(
        error, -ENOKEY, CODE_IDENTIFIER_KEY_CHANGED,
        LAYOUT_PSEUDONYM_KEY
        " is missing, or not the key of this database: later de-identified copies would have other pseudonyms and "
        "UIDs than earlier ones. Restore the key and start noctuled again (operations.md, Backup); or start it "
        "once with --new-identifier-key, and tell the recipients of copies.");
}

int
pseudonym_of_series(const struct pseudonym_key *key, enum conf_identifiers form, struct series_about *about)
{
    char word[PSEUDONYM_SIZE];
    int rc = 0;
    for (int i = 0; !rc && i < SERIES_ABOUT_COUNT; i++) {
        char *value = series_about_value(about, i);
        if (!series_about_identifies(i) || form == CONF_IDENTIFIERS_PLAIN)
            continue;
        *word = '\0';
        if (form == CONF_IDENTIFIERS_HASHED)
            rc = pseudonym_of(key, value, word);
        if (!rc)
            strcpy(value, word);
    }
    return rc;
}
