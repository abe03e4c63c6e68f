#include "service/web/server/web_access.h"

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

/* Reads the first line of the file of an option. Returns 0 or -errno with a message. */
static int
web_access_read_line(const char *path, const char *option, char text[WEB_ACCESS_TOKEN], struct error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t got = fd < 0 ? -1 : read(fd, text, WEB_ACCESS_TOKEN - 1);
    const int failure = errno;
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return error_set(error, -failure, CODE_NONE, "cannot read %s (%s): %s", path, option, strerror(failure));
    const size_t length = strcspn(text, "\r\n");
    const bool whole = text[length] != '\0' || got < WEB_ACCESS_TOKEN - 1;
    text[length] = '\0';
    if (length < MIN_TOKEN || !whole)
        return error_set(error, -EINVAL, CODE_NONE,
                         "%s: the first line must be a token of %d to %d characters; create one "
                         "with openssl rand -hex 24",
                         path, MIN_TOKEN, WEB_ACCESS_TOKEN - 2);
    return 0;
}

int
web_access_read_token(const struct conf_page *page, struct web_access *access, struct error *error)
{
    *access = (struct web_access){.page = page};
    int rc = page->token_file ? web_access_read_line(page->token_file, "page.token_file", access->token, error) : 0;
    if (rc == 0 && page->secret_file)
        rc = web_access_read_line(page->secret_file, "page.secret_file", access->secret, error);
    if (rc == 0 && page->tokens_file)
        rc = persons_read(page->tokens_file, &access->persons, error);
    return rc;
}

bool
web_access_is_same(const char *own, const char *shown)
{
    unsigned char digests[2][EVP_MAX_MD_SIZE];
    unsigned size = 0;
    return EVP_Digest(own, strlen(own), digests[0], &size, EVP_sha256(), NULL) == 1 &&
           EVP_Digest(shown, strlen(shown), digests[1], &size, EVP_sha256(), NULL) == 1 &&
           CRYPTO_memcmp(digests[0], digests[1], size) == 0;
}

const char *
web_access_shown(const char *authorization, char text[WEB_ACCESS_SHOWN])
{
    const size_t word = strcspn(authorization, " ");
    const char *rest = authorization + word + strspn(authorization + word, " ");
    if (word == strlen("Bearer") && strncasecmp(authorization, "Bearer", word) == 0)
        return rest;
    if (word != strlen("Basic") || strncasecmp(authorization, "Basic", word) != 0)
        return NULL;
    /* "USER:PASSWORD" in base64 */
    const size_t length = strlen(rest);
    if (length == 0 || length % 4 != 0 || length / 4 * 3 >= WEB_ACCESS_SHOWN)
        return NULL;
    const int size = EVP_DecodeBlock((unsigned char *)text, (const unsigned char *)rest, (int)length);
    if (size < 0)
        return NULL;
    text[size] = '\0'; /* padding is decoded to zero bytes as well */
    const char *colon = strchr(text, ':');
    return colon ? colon + 1 : NULL;
}

bool
web_access_is_authorized(const struct web_access *access, const char *authorization)
{
    char text[WEB_ACCESS_SHOWN];
    const char *shown = *access->token ? web_access_shown(authorization, text) : NULL;
    return !*access->token || (shown && web_access_is_same(access->token, shown));
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
