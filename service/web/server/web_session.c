#include "service/web/server/web_session.h"

#include "service/common/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SECRET_HEADER   "Noctule-Proxy-Secret"
#define SESSION_SECONDS (12 * 3600)
#define FORM_SECONDS    (12 * 3600) /* a form is good for this time at least, and for twice this time at most */

/* Browsers accept the prefix only with TLS. */
static const char cookie_names[2][16] = {"noctule", "__Host-noctule"};

/* ----------------------------------------------------------------------------------- MACs ---- */

/* Writes "" without memory; a comparison then fails. */
static void
session_mac(const unsigned char key[32], const char *text, char mac[WEB_SESSION_FORM])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    mac[0] = '\0';
    if (!HMAC(EVP_sha256(), key, 32, (const unsigned char *)text, strlen(text), digest, NULL))
        return;
    for (int i = 0; i < 32; i++)
        snprintf(mac + 2 * i, 3, "%02x", digest[i]);
}

static bool
session_is_mac(const char *mac, const char *shown)
{
    return *mac && web_access_is_same(mac, shown);
}

int
web_session_open(struct web_access *access, const struct pseudonym_key *key)
{
    static const char purpose[] = "noctule: sessions and forms of the web UI";
    unsigned size = sizeof access->key;
    return HMAC(EVP_sha256(), key->bytes, sizeof key->bytes, (const unsigned char *)purpose, strlen(purpose),
                access->key, &size)
               ? 0
               : -ENOMEM;
}

/* -------------------------------------------------------------------------------- session ---- */

static void
session_seal(const struct web_access *access, const struct person *person, int64_t until, char mac[WEB_SESSION_FORM])
{
    char text[256];
    snprintf(text, sizeof text, "session\n%s\n%" PRId64 "\n%s", person->name, until, person->token);
    session_mac(access->key, text, mac);
}

void
web_session_cookie(const struct web_access *access, const struct person *person, bool by_tls, char *text, size_t size)
{
    char mac[WEB_SESSION_FORM];
    const int64_t until = clock_unix_ms() / 1000 + SESSION_SECONDS;
    const char *rest = by_tls ? "; Path=/; HttpOnly; SameSite=Strict; Secure" : "; Path=/; HttpOnly; SameSite=Strict";
    if (person) {
        session_seal(access, person, until, mac);
        snprintf(text, size, "%s=%s:%" PRId64 ":%s%s", cookie_names[by_tls], person->name, until, mac, rest);
    } else {
        snprintf(text, size, "%s=; Max-Age=0%s", cookie_names[by_tls], rest);
    }
}

/* Finds "NAME=value" in a Cookie header. */
static bool
session_cookie_value(const char *cookies, const char *name, char *value, size_t size)
{
    const size_t length = strlen(name);
    while (*cookies) {
        cookies += strspn(cookies, "; ");
        const size_t part = strcspn(cookies, ";");
        if (part > length && strncmp(cookies, name, length) == 0 && cookies[length] == '=') {
            snprintf(value, size, "%.*s", (int)(part - length - 1), cookies + length + 1);
            return part - length - 1 < size;
        }
        cookies += part;
    }
    return false;
}

static const struct person *
session_of_cookie(const struct web_access *access, const char *cookies)
{
    char value[256], mac[WEB_SESSION_FORM], *rest = value;
    if (!session_cookie_value(cookies, cookie_names[1], value, sizeof value) &&
        !session_cookie_value(cookies, cookie_names[0], value, sizeof value))
        return NULL;
    const char *name = strsep(&rest, ":"), *until = strsep(&rest, ":");
    if (!until || !rest || strlen(until) > 18 || until[strspn(until, "0123456789")])
        return NULL;
    const struct person *person = persons_find(&access->persons, name);
    const int64_t end = strtoll(until, NULL, 10);
    if (!person || end <= clock_unix_ms() / 1000)
        return NULL;
    session_seal(access, person, end, mac);
    return session_is_mac(mac, rest) ? person : NULL;
}

/* --------------------------------------------------------------------------------- person ---- */

const struct person *
web_session_find(const struct web_access *access, const char *token)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char text[PERSON_DIGEST];
    const struct person *found = NULL;
    if (EVP_Digest(token, strlen(token), digest, NULL, EVP_sha256(), NULL) != 1)
        return NULL;
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    for (size_t i = 0; i < access->persons.count; i++) /* all of them, in constant time */
        if (web_access_is_same(access->persons.at[i].token, text))
            found = &access->persons.at[i];
    return found;
}

static void
session_set(struct web_person *person, const struct person *found)
{
    person->how = "token";
    person->role = found->role;
    memcpy(person->name, found->name, sizeof person->name);
}

/* A name from anybody but the proxy is refused, even if the request has a token. Only the proxy may connect to a socket:
 * there, the secret is needed if one is configured. */
static bool
session_of_proxy(const struct web_access *access, const struct web_request *request, const char *name,
                 struct web_person *person)
{
    const char *secret = request->header(request->connection, SECRET_HEADER);
    const bool is_proxy = *access->secret ? web_access_is_same(access->secret, secret) : access->page->socket != NULL;
    if (!is_proxy || !person_is_name(name))
        return false;
    snprintf(person->name, sizeof person->name, "%s", name);
    person->how = "proxy";
    person->role = person_proxy_role(access->page, name);
    return true;
}

bool
web_session_identify(const struct web_access *access, const struct web_request *request, struct web_person *person)
{
    const struct conf_page *page = access->page;
    const struct person *found = NULL;
    char text[WEB_ACCESS_SHOWN];
    *person = (struct web_person){.how = ""};
    if (page->user_header) {
        const char *name = request->header(request->connection, page->user_header);
        if (*name)
            return session_of_proxy(access, request, name, person);
    }
    if (*request->authorization) {
        const char *shown = web_access_shown(request->authorization, text);
        found = shown ? web_session_find(access, shown) : NULL;
        person->by_bearer = strncasecmp(request->authorization, "Bearer ", strlen("Bearer ")) == 0;
        if (!found && *access->token)
            return shown && web_access_is_same(access->token, shown);
    } else if (page->tokens_file) {
        found = session_of_cookie(access, request->cookie);
    }
    if (found)
        session_set(person, found);
    return found || (!*access->token && !page->tokens_file && !page->user_header);
}

/* ---------------------------------------------------------------------------------- forms ---- */

static void
session_form_at(const struct web_access *access, const struct web_person *person, int64_t period,
                char text[WEB_SESSION_FORM])
{
    char sealed[256];
    snprintf(sealed, sizeof sealed, "form\n%s\n%s\n%" PRId64, person->how, person->name, period);
    session_mac(access->key, sealed, text);
}

void
web_session_form(const struct web_access *access, const struct web_person *person, char text[WEB_SESSION_FORM])
{
    session_form_at(access, person, clock_unix_ms() / 1000 / FORM_SECONDS, text);
}

const char *
web_session_foreign(const struct web_access *access, const struct web_request *request)
{
    const char *origin = request->origin;
    const size_t scheme = strncmp(origin, "http://", 7) == 0 ? 7 : strncmp(origin, "https://", 8) == 0 ? 8 : 0;
    if (!*origin)
        return "the header Origin is missing";
    /* Host is one of ours (web_access_is_known_host). A proxy may have replaced it: then Origin has a configured name. */
    bool ours = scheme > 0 && strcasecmp(origin + scheme, request->host) == 0;
    const size_t length = strcspn(origin + scheme, ":");
    for (size_t i = 0; i < access->page->host_count && scheme > 0 && !ours; i++)
        ours = strlen(access->page->hosts[i]) == length &&
               strncasecmp(access->page->hosts[i], origin + scheme, length) == 0;
    if (!ours)
        return "the request comes from another site (Origin)";
    if (*request->fetch_site && strcmp(request->fetch_site, "same-origin") != 0)
        return "the request comes from another site (Sec-Fetch-Site)";
    return NULL;
}

const char *
web_session_fault(const struct web_access *access, const struct web_request *request, const struct web_person *person,
                  const char *form)
{
    char own[WEB_SESSION_FORM];
    const char *fault = web_session_foreign(access, request);
    if (fault || person->by_bearer)
        return fault;
    const int64_t period = clock_unix_ms() / 1000 / FORM_SECONDS;
    for (int64_t back = 0; back < 2; back++) {
        session_form_at(access, person, period - back, own);
        if (session_is_mac(own, form))
            return NULL;
    }
    return "the form is not from this site, or too old: load the page again";
}
