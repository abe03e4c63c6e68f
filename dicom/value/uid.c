#include "dicom/value/uid.h"

#include <openssl/evp.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct uid_name {
    EVP_MD_CTX *digest;
    bool failed;
};

int
uid_name_begin(struct uid_name **out)
{
    struct uid_name *name = calloc(1, sizeof(*name));
    if (!name)
        return -ENOMEM;
    name->digest = EVP_MD_CTX_new();
    if (!name->digest || EVP_DigestInit_ex(name->digest, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(name->digest);
        free(name);
        return -ENOMEM;
    }
    *out = name;
    return 0;
}

void
uid_name_bytes(struct uid_name *name, const void *bytes, size_t size)
{
    if (EVP_DigestUpdate(name->digest, bytes, size) != 1)
        name->failed = true;
}

void
uid_name_number(struct uid_name *name, int64_t number)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)number >> (8 * i));
    uid_name_bytes(name, bytes, sizeof(bytes));
}

void
uid_name_text(struct uid_name *name, const char *text)
{
    size_t size = strlen(text);
    uid_name_number(name, (int64_t)size);
    uid_name_bytes(name, text, size);
}

int
uid_name_end(struct uid_name *name, char uid[DICOM_UID_SIZE])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    bool good = EVP_DigestFinal_ex(name->digest, digest, NULL) == 1 && !name->failed;
    EVP_MD_CTX_free(name->digest);
    free(name);
    uid[0] = '\0';
    if (!good)
        return -ENOMEM;
    uid_from_bytes(digest, uid);
    return 0;
}

int
uid_from_texts(char uid[DICOM_UID_SIZE], const char *const *texts)
{
    struct uid_name *name;
    int rc = uid_name_begin(&name);
    if (rc)
        return rc;
    for (; *texts; texts++)
        uid_name_text(name, *texts);
    return uid_name_end(name, uid);
}

void
uid_from_bytes(const uint8_t bytes[16], char uid[DICOM_UID_SIZE])
{
    __extension__ unsigned __int128 value = 0;
    for (int i = 0; i < 16; i++) {
        uint8_t byte = bytes[i];
        if (i == 6)
            byte = (uint8_t)(0x80 | (byte & 0x0F)); /* version 8 */
        if (i == 8)
            byte = (uint8_t)(0x80 | (byte & 0x3F)); /* variant of RFC 9562 */
        value = value << 8 | byte;
    }
    char digits[40]; /* 2^128 has 39 */
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value > 0);
    char *place = memcpy(uid, "2.25.", 5);
    place += 5;
    while (count > 0)
        *place++ = digits[--count];
    *place = '\0';
}
