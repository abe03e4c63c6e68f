/*
 * web_access.h - access control by host name and token.
 *
 * With DNS rebinding, a foreign page can make a browser send requests to 127.0.0.1 under a name of
 * its own and read the answers. Requests with unknown names must be refused. All functions except
 * web_access_read_token are pure; any thread may call them.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_ACCESS_H
#define NOCTULE_SERVICE_WEB_WEB_ACCESS_H

#include "base/error.h"
#include "config/config.h"

#define WEB_ACCESS_TOKEN 512

struct web_access {
    const struct conf_page *page;
    char token[WEB_ACCESS_TOKEN]; /* "": no token needed */
};

/* Reads the first line of the token file, if one is configured. Returns 0 or -errno with a
 * message. */
int web_access_read_token(const struct conf_page *page, struct web_access *access, struct error *error);

/* Checks the Host header. Accepts addresses, localhost and configured names. If no name is
 * configured and other machines can reach the web UI, accepts all names, because a token is needed
 * then. */
bool web_access_is_known_host(const struct web_access *access, const char *host);

/* Checks the token of the Authorization header: Bearer, or the password of Basic. The time must not
 * depend on the token. */
bool web_access_is_authorized(const struct web_access *access, const char *authorization);

#endif
