/* web_access.c - see web_access.h. */
#include "service/web/web_access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define HOST 256

/* ---------------------------------------------------------------------------------- token ---- */

/* shorter tokens could be guessed */
#define MIN_TOKEN 16

int
web_access_read_token(const struct conf_page *page, struct web_access *access, struct error *error)
{
    *access = (struct web_access){.page = page};
    if (!page->token_file)
        return 0;
    const int fd = open(page->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t got = fd < 0 ? -1 : read(fd, access->token, sizeof access->token - 1);
    const int failure = errno;
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return error_set(error, -failure, CODE_NONE, "cannot read %s (page.token_file): %s", page->token_file,
                         strerror(failure));
    const size_t length = strcspn(access->token, "\r\n");
    const bool whole = access->token[length] != '\0' || got < WEB_ACCESS_TOKEN - 1;
    access->token[length] = '\0';
    if (length < MIN_TOKEN || !whole)
        return error_set(error, -EINVAL, CODE_NONE,
                         "%s: the first line must be a token of %d to %d characters; create one "
                         "with openssl rand -hex 24",
                         page->token_file, MIN_TOKEN, WEB_ACCESS_TOKEN - 2);
    return 0;
}

/* Compares hashes of equal length in constant time. */
static bool
web_access_is_token(const struct web_access *access, const char *shown)
{
    unsigned char own[EVP_MAX_MD_SIZE], given[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    return EVP_Digest(access->token, strlen(access->token), own, &size, EVP_sha256(), NULL) == 1 &&
           EVP_Digest(shown, strlen(shown), given, &size, EVP_sha256(), NULL) == 1 &&
           CRYPTO_memcmp(own, given, size) == 0;
}

bool
web_access_is_authorized(const struct web_access *access, const char *authorization)
{
    char text[WEB_ACCESS_TOKEN + HOST];
    const size_t word = strcspn(authorization, " ");
    const char *rest = authorization + word + strspn(authorization + word, " ");
    if (!*access->token)
        return true;
    if (word == strlen("Bearer") && strncasecmp(authorization, "Bearer", word) == 0)
        return web_access_is_token(access, rest);
    if (word != strlen("Basic") || strncasecmp(authorization, "Basic", word) != 0)
        return false;
    /* "USER:PASSWORD" in base64 */
    const size_t length = strlen(rest);
    if (length == 0 || length % 4 != 0 || length / 4 * 3 >= sizeof text)
        return false;
    const int size = EVP_DecodeBlock((unsigned char *)text, (const unsigned char *)rest, (int)length);
    if (size < 0)
        return false;
    text[size] = '\0'; /* padding is decoded to zero bytes as well */
    const char *colon = strchr(text, ':');
    return colon && web_access_is_token(access, colon + 1);
}

/* ----------------------------------------------------------------------------------- host ---- */

/* Extracts the host from "NAME", "NAME:PORT" or "[ADDRESS]:PORT". */
static bool
web_access_host_name(const char *host, char name[HOST])
{
    const bool bracket = host[0] == '[';
    const size_t length = strcspn(host + bracket, bracket ? "]" : ":");
    const char *end = host + bracket + length;
    if (length == 0 || length >= HOST || (bracket && *end++ != ']'))
        return false;
    memcpy(name, host + bracket, length);
    name[length] = '\0';
    return *end == '\0' || (*end == ':' && end[1 + strspn(end + 1, "0123456789")] == '\0');
}

bool
web_access_is_known_host(const struct web_access *access, const char *host)
{
    const struct conf_page *page = access->page;
    struct in6_addr address;
    char name[HOST];
    if (!web_access_host_name(host, name))
        return false;
    if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1 ||
        strcasecmp(name, "localhost") == 0)
        return true;
    for (size_t i = 0; i < page->host_count; i++)
        if (strcasecmp(name, page->hosts[i]) == 0)
            return true;
    return page->host_count == 0 && !conf_page_is_local(page);
}
