#include "service/common/slurm/slurm_digest.h"

#include "base/durable.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIGEST_BUFFER ((size_t)1 << 20)

static void
digest_spell(const unsigned char *bytes, char sha256[DIGEST_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < (DIGEST_TEXT - 1) / 2; i++) {
        sha256[2 * i] = digits[bytes[i] >> 4];
        sha256[2 * i + 1] = digits[bytes[i] & 15];
    }
    sha256[DIGEST_TEXT - 1] = '\0';
}

int
digest_bytes(const void *bytes, size_t size, struct digest *digest)
{
    unsigned char value[EVP_MAX_MD_SIZE];
    if (EVP_Digest(bytes, size, value, NULL, EVP_sha256(), NULL) != 1)
        return -ENOMEM;
    digest->size = (int64_t)size;
    digest_spell(value, digest->sha256);
    return 0;
}

static int
digest_pump(EVP_MD_CTX *context, char *buffer, int from, int to, int64_t *size, bool *write_failed)
{
    ssize_t got;
    while ((got = pread(from, buffer, DIGEST_BUFFER, (off_t)*size)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        int rc = to >= 0 ? durable_write_all(to, buffer, (size_t)got) : 0;
        *write_failed = rc != 0;
        if (rc == 0 && EVP_DigestUpdate(context, buffer, (size_t)got) != 1)
            rc = -ENOMEM;
        if (rc)
            return rc;
        *size += got;
    }
    return 0;
}

int
digest_file(int from, int to, struct digest *digest, bool *write_failed)
{
    unsigned char value[EVP_MAX_MD_SIZE];
    bool failed = false;
    char *buffer = malloc(DIGEST_BUFFER);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int rc = buffer && context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
    digest->size = 0;
    if (rc == 0)
        rc = digest_pump(context, buffer, from, to, &digest->size, &failed);
    if (rc == 0 && EVP_DigestFinal_ex(context, value, NULL) != 1)
        rc = -ENOMEM;
    if (rc == 0)
        digest_spell(value, digest->sha256);
    EVP_MD_CTX_free(context);
    free(buffer);
    if (write_failed)
        *write_failed = failed;
    return rc;
}

bool
digest_is_sha256(const char *text)
{
    return strlen(text) == DIGEST_TEXT - 1 && strspn(text, "0123456789abcdef") == DIGEST_TEXT - 1;
}

bool
digest_equal(const struct digest *a, const struct digest *b)
{
    return a->size == b->size && strcmp(a->sha256, b->sha256) == 0;
}
