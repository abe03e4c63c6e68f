/* web_parts.c - see web_decide.h. */
#include "service/web/decide/web_decide.h"

#include "service/web/server/web_form.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_BOUNDARY  70   /* RFC 2046 */
#define MAX_PART_HEAD 2048 /* bytes; browsers send the name of the file in it */

/* Sets "\r\n--" and the boundary of the parts. Returns its length, or 0 if the type has none. */
static size_t
parts_delimiter(const char *type, char delimiter[MAX_BOUNDARY + 5])
{
    static const char key[] = "boundary=";
    const char *at = strcasestr(type, key);
    if (!at)
        return 0;
    at += strlen(key);
    const bool quoted = *at == '"';
    at += quoted;
    const size_t length = strcspn(at, quoted ? "\"" : "; ");
    if (length == 0 || length > MAX_BOUNDARY || (quoted && at[length] != '"'))
        return 0;
    return (size_t)snprintf(delimiter, MAX_BOUNDARY + 5, "\r\n--%.*s", (int)length, at);
}

/* Copies a value that must be one line of UTF-8. Returns the fault, or NULL. */
static const char *
parts_copy_value(char *to, size_t size, const char *bytes, size_t length)
{
    if (*to || length >= size || memchr(bytes, '\0', length))
        return "a field is too long, or comes twice";
    memcpy(to, bytes, length);
    to[length] = '\0';
    return web_form_is_line(to) ? NULL : "a value is not one line of UTF-8";
}

/* Takes a part with the name of its head. */
static const char *
parts_take(struct web_parts *form, const char *head, size_t head_size, const char *bytes, size_t size)
{
    static const char key[] = "; name=\"";
    char text[MAX_PART_HEAD + 1];
    memcpy(text, head, head_size);
    text[head_size] = '\0';
    const char *name = strcasestr(text, "content-disposition: form-data") ? strstr(text, key) : NULL;
    const char *const at = name ? name + strlen(key) : "";
    if (strncmp(at, "form\"", 5) == 0)
        return parts_copy_value(form->token, sizeof form->token, bytes, size);
    if (strncmp(at, "job\"", 4) == 0)
        return parts_copy_value(form->job, sizeof form->job, bytes, size);
    if (strncmp(at, "seen\"", 5) == 0)
        return parts_copy_value(form->seen, sizeof form->seen, bytes, size);
    if (strncmp(at, "file\"", 5) != 0)
        return "it has an unknown field";
    if (form->file)
        return "it has two files";
    form->file = bytes;
    form->size = size;
    return NULL;
}

const char *
web_parts_read(const char *bytes, size_t size, const char *type, struct web_parts *form)
{
    char delimiter[MAX_BOUNDARY + 5];
    const size_t length = parts_delimiter(type, delimiter);
    const char *const end = bytes + size;
    if (length == 0 || size < length || memcmp(bytes, delimiter + 2, length - 2) != 0)
        return "its boundary differs from that of the Content-Type";
    for (const char *at = bytes + length - 2; end - at >= 2 && memcmp(at, "--", 2) != 0;) {
        const size_t left = (size_t)(end - at);
        const char *body = memmem(at, left < MAX_PART_HEAD ? left : MAX_PART_HEAD, "\r\n\r\n", 4);
        if (!body || memcmp(at, "\r\n", 2) != 0)
            return "the head of a part is too long, or broken";
        body += 4;
        const char *next = memmem(body - 2, (size_t)(end - body) + 2, delimiter, length);
        if (!next)
            return "it ends within a part";
        const char *fault = parts_take(form, at, (size_t)(body - at), body, next > body ? (size_t)(next - body) : 0);
        if (fault)
            return fault;
        at = next + length;
        if (end - at < 2)
            return "it ends within a part";
    }
    return form->file && form->size > 0 ? NULL : "it has no file: choose one";
}
