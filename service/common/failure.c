/* failure.c - see failure.h. */
#include "service/common/failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int
fail_with(struct dicom_fault *fault, int error, const char *code, const char *format, ...)
{
    va_list arguments;
    memset(fault, 0, sizeof *fault);
    snprintf(fault->code, sizeof fault->code, "%s", code);
    va_start(arguments, format);
    vsnprintf(fault->sentence, sizeof fault->sentence, format, arguments);
    va_end(arguments);
    return error;
}

/* NULL: not a failure of the machine. EFBIG is a limit on file sizes: full, to whoever writes. */
static const char *
system_code(int error)
{
    switch (-error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return "DISK_FULL";
    case ENOMEM:
        return "OUT_OF_MEMORY";
    case EIO:
        return "IO_ERROR";
    default:
        return NULL;
    }
}

int
fail_with_system(struct dicom_fault *fault, int error, const char *what)
{
    const char *code = system_code(error);
    if (!code)
        code = error == -EACCES || error == -EPERM || error == -EROFS || error == -ENOTDIR
                   ? "OUTPUT_UNWRITABLE"
                   : "IO_ERROR";
    return fail_with(fault, error, code, "could not %s: %s", what, strerror(-error));
}

void
failure_normalise(struct dicom_fault *fault, int error)
{
    bool unnamed = fault->code[0] == '\0' || strcmp(fault->code, "WRITE_FAILED") == 0;
    const char *code = system_code(error);
    if (unnamed && !code)
        code = "IO_ERROR";
    if (unnamed || (code && error != -EIO))
        snprintf(fault->code, sizeof fault->code, "%s", code);
    if (fault->sentence[0] == '\0')
        snprintf(fault->sentence, sizeof fault->sentence, "%s", strerror(-error));
}
