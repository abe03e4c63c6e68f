/*
 * web_parts.h - the body of an upload: multipart/form-data (RFC 7578). libmicrohttpd's parser is not used, because it
 * has had two overflows.
 */
#ifndef NOCTULE_SERVICE_WEB_DECIDE_WEB_PARTS_H
#define NOCTULE_SERVICE_WEB_DECIDE_WEB_PARTS_H

#include "service/common/decisions/decisions.h"
#include "service/web/server/web_session.h"

struct web_parts {
    char token[WEB_SESSION_FORM], job[20], seen[DECISION_REASON + 1];
    const char *file; /* within the body; NULL: none */
    size_t size;
};

/* Reads a body of the type into the parts, which must be zero. Returns NULL, or the fault as a text. */
const char *web_parts_read(const char *bytes, size_t size, const char *type, struct web_parts *form);

#endif
