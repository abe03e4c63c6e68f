/*
 * web_access.h - who is let in: by the name that a browser asked for, and by a token.
 *
 * A page elsewhere can have its reader's browser ask 127.0.0.1 under a name of its own (DNS rebinding), and would then read what is
 * answered: names that are not ours are turned away. Pure but for gate_read_token; from any thread.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_ACCESS_H
#define NOCTULE_SERVICE_WEB_WEB_ACCESS_H

#include "base/error.h"
#include "config/config.h"

#define GATE_TOKEN 512

struct gate {
    const struct conf_page *page;
    char token[GATE_TOKEN]; /* "": none is asked for */
};

/* The file's first line, where one is configured. 0 or -errno, with a message. */
int gate_read_token(const struct conf_page *page, struct gate *gate, struct error *error);

/* Is a request with this Host header ours? An address is, and localhost, and what is configured; all names where a page
 * that others reach has none configured, for that asks for a token. */
bool gate_knows_host(const struct gate *gate, const char *host);

/* Does the Authorization header show the token, as Bearer, or as the password of Basic? In a time that says nothing of the
 * token. */
bool gate_lets_in(const struct gate *gate, const char *authorization);

#endif
