/*
 * fuzz_upload.c - any bytes as the body of an upload. A file that the parser returns must lie within the body, behind an
 * empty line and before the boundary, and must not contain it. The values must be lines.
 *
 * The first line of an input is the Content-Type, the rest is the body.
 */
#include "service/web/decide/web_decide.h"
#include "service/web/server/web_form.h"
#include "tests/fuzz/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The boundary begins the body, without its first line break. */
static void
check_file(const struct web_parts *parts, const char *body, size_t size)
{
    const char *const head_end = memmem(body, size, "\r\n", 2), *const end = parts->file + parts->size;
    must(head_end != NULL);
    const size_t boundary = (size_t)(head_end - body);
    must(parts->file >= head_end + 4 && end + 2 + boundary <= body + size);
    must(memcmp(parts->file - 4, "\r\n\r\n", 4) == 0 && memcmp(end, "\r\n", 2) == 0);
    must(memcmp(end + 2, body, boundary) == 0);
    for (const char *at = parts->file; (at = memmem(at, (size_t)(end - at), "\r\n", 2)); at += 2)
        must((size_t)(end - at) < 2 + boundary || memcmp(at + 2, body, boundary) != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const uint8_t *line = size ? memchr(bytes, '\n', size) : NULL;
    if (!line)
        return 0;
    const size_t rest = size - (size_t)(line + 1 - bytes);
    char *type = strndup((const char *)bytes, (size_t)(line - bytes));
    char *body = malloc(rest ? rest : 1); /* a sanitizer detects reads beyond its end */
    must(type && body);
    memcpy(body, line + 1, rest);
    struct web_parts parts = {.file = NULL};
    const char *fault = web_parts_read(body, rest, type, &parts);
    must(web_form_is_line(parts.job) || fault);
    if (!fault) {
        must(parts.size > 0 && web_form_is_line(parts.token) && web_form_is_line(parts.seen));
        check_file(&parts, body, rest);
    }
    free(body);
    free(type);
    return 0;
}
