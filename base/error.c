#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum kind { LASTING, PASSING };

static const struct {
    const char *name;
    enum kind kind;
    const char *to_do;
} codes[] = {
    [CODE_NONE] = {"", LASTING, ""},

#define CODE(name, kind, where, meaning, to_do) [CODE_##name] = {#name, kind, to_do},
#include "base/codes.def"
#undef CODE
};

const char *
code_name(enum code code)
{
    return codes[code].name;
}

enum code
code_find(const char *name)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(codes[i].name, name) == 0)
            return (enum code)i;
    }
    return CODE_NONE;
}

bool
code_passing(enum code code)
{
    return codes[code].kind == PASSING;
}

const char *
code_remedy(enum code code)
{
    return codes[code].to_do;
}

static void __attribute__((format(printf, 5, 0))) error_fill(struct error *error, enum code code, const char *file0,
                                                             const char *file1, const char *format, va_list arguments)
{
    if (!error)
        return;
    memset(error, 0, sizeof *error);
    error->code = code;
    snprintf(error->file[0], sizeof error->file[0], "%s", file0 ? file0 : "");
    snprintf(error->file[1], sizeof error->file[1], "%s", file1 ? file1 : "");
    if (vsnprintf(error->message, sizeof error->message, format, arguments) >= (int)sizeof error->message) {
        /* End a message that was cut behind a whole word, with "...". */
        const size_t size = sizeof error->message;
        static const char mark[] = " ...";
        size_t end = size - sizeof mark;
        while (end > 0 && error->message[end] != ' ')
            end--;
        /* One word takes all: cut it before a character. */
        if (end == 0)
            for (end = size - sizeof mark; end > 0 && ((unsigned char)error->message[end] & 0xc0) == 0x80;)
                end--;
        memcpy(error->message + end, mark, sizeof mark);
    }
}

int
error_set(struct error *error, int rc, enum code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_fill(error, code, NULL, NULL, format, arguments);
    va_end(arguments);
    return rc;
}

int
error_set_files(struct error *error, int rc, enum code code, const char *file0, const char *file1, const char *format,
                ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_fill(error, code, file0, file1, format, arguments);
    va_end(arguments);
    return rc;
}

/* Returns CODE_NONE if the machine did not fail. EFBIG, a limit on file sizes, counts as a full disk. */
static enum code
error_system_code(int rc)
{
    switch (-rc) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return CODE_DISK_FULL;
    case ENOMEM:
        return CODE_OUT_OF_MEMORY;
    case EIO:
        return CODE_IO_ERROR;
    default:
        return CODE_NONE;
    }
}

int
error_set_system(struct error *error, int rc, const char *what)
{
    enum code code = error_system_code(rc);
    if (code == CODE_NONE)
        code = rc == -EACCES || rc == -EPERM || rc == -EROFS || rc == -ENOTDIR ? CODE_OUTPUT_UNWRITABLE : CODE_IO_ERROR;
    return error_set(error, rc, code, "could not %s: %s", what, strerror(-rc));
}

void
error_normalise(struct error *error, int rc)
{
    bool unnamed = error->code == CODE_NONE || error->code == CODE_WRITE_FAILED;
    enum code code = error_system_code(rc);
    if (unnamed)
        error->code = code != CODE_NONE ? code : CODE_IO_ERROR;
    else if (code != CODE_NONE && rc != -EIO)
        error->code = code;
    if (error->message[0] == '\0')
        snprintf(error->message, sizeof error->message, "%s", strerror(-rc));
}
