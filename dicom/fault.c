#include "dicom/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
fault_set(struct dicom_fault *fault, int error, const char *code, const char *file0,
          const char *file1, const char *format, ...)
{
    if (!fault)
        return error;
    memset(fault, 0, sizeof(*fault));
    snprintf(fault->code, sizeof(fault->code), "%s", code);
    snprintf(fault->file[0], sizeof(fault->file[0]), "%s", file0 ? file0 : "");
    snprintf(fault->file[1], sizeof(fault->file[1]), "%s", file1 ? file1 : "");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->sentence, sizeof(fault->sentence), format, arguments);
    va_end(arguments);
    return error;
}

const char *
fault_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
