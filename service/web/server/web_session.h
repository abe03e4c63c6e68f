/*
 * web_session.h - the persons of requests: by a proxy, by a token, or by the cookie of a login.
 *
 * The cookie holds name, expiry and a MAC, so that sessions survive this process and need no memory. The MAC covers
 * the digest of the person's token: a new token ends them. Forms hold a MAC of their person, so that another site
 * cannot send them. The key is derived from the root's key for hashed identifiers. All functions are thread-safe.
 */
#ifndef NOCTULE_SERVICE_WEB_SERVER_WEB_SESSION_H
#define NOCTULE_SERVICE_WEB_SERVER_WEB_SESSION_H

#include "service/common/pseudonym.h"
#include "service/web/server/web_access.h"
#include "service/web/server/web_request.h"

#define WEB_SESSION_FORM 65 /* size of a form's token, with the terminator */

struct web_person {
    char name[PERSON_NAME]; /* "": a viewer without a name */
    enum person_role role;
    const char *how; /* "token", "proxy"; "": neither */
    bool by_bearer;  /* which no browser sends by itself */
};

/* Derives the key. Returns 0 or -ENOMEM. */
int web_session_open(struct web_access *access, const struct pseudonym_key *key);

/* Finds the person of a request. Returns false if the request must be refused. */
bool web_session_identify(const struct web_access *access, const struct web_request *request,
                          struct web_person *person);

/* Finds the person of a token; NULL: none. */
const struct person *web_session_find(const struct web_access *access, const char *token);

/* Writes the Set-Cookie header of a login; a person of NULL ends it. */
void web_session_cookie(const struct web_access *access, const struct person *person, bool by_tls, char *text,
                        size_t size);

/* Writes the token of this person's forms. */
void web_session_form(const struct web_access *access, const struct web_person *person, char text[WEB_SESSION_FORM]);

/* Checks that a POST comes from a page of this site: Origin, Sec-Fetch-Site and, unless by_bearer, the form's token.
 * Returns the fault in words, or NULL. */
const char *web_session_fault(const struct web_access *access, const struct web_request *request,
                              const struct web_person *person, const char *form);

/* Does the same without the form's token, for the login. */
const char *web_session_foreign(const struct web_access *access, const struct web_request *request);

#endif
