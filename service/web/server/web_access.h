/*
 * web_access.h - access control by host name and token.
 *
 * With DNS rebinding, a foreign page can make a browser send requests to 127.0.0.1 under a name of
 * its own and read the answers. Requests with unknown names must be refused. All functions except
 * web_access_read_token are pure; any thread may call them.
 */
#ifndef NOCTULE_SERVICE_WEB_SERVER_WEB_ACCESS_H
#define NOCTULE_SERVICE_WEB_SERVER_WEB_ACCESS_H

#include "base/error.h"
#include "config/config.h"
#include "service/common/decisions/decisions.h"

#define WEB_ACCESS_TOKEN 512
#define WEB_ACCESS_SHOWN 768

struct web_access {
    const struct conf_page *page;
    char token[WEB_ACCESS_TOKEN];  /* of viewers without a name; "": there is none */
    char secret[WEB_ACCESS_TOKEN]; /* of the proxy that names persons; "": there is none */
    struct persons persons;        /* the caller must free them */
    unsigned char key[32];         /* of sessions and forms (web_session.h) */
};

/* Reads the files of tokens that are configured. Returns 0 or -errno with a message. */
int web_access_read_token(const struct conf_page *page, struct web_access *access, struct error *error);

/* Checks the Host header. Accepts addresses, localhost and configured names. If no name is
 * configured and other machines can reach the web UI, accepts all names, because a token is needed
 * then. */
bool web_access_is_known_host(const struct web_access *access, const char *host);

/* Compares two texts in a time that does not depend on them. */
bool web_access_is_same(const char *own, const char *shown);

/* Returns the token of the Authorization header: Bearer, or the password of Basic, which is decoded to `text`. NULL: it
 * has none. */
const char *web_access_shown(const char *authorization, char text[WEB_ACCESS_SHOWN]);

/* Checks the token of viewers without a name; true if there is none. */
bool web_access_is_authorized(const struct web_access *access, const char *authorization);

#endif
