/* share.c - see share.h. */
#include "config/share.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *
share_path(const char *name)
{
    char program[PATH_MAX], *path;
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0)
        return NULL;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    return asprintf(&path, "%s/../share/noctule/%s", program, name) < 0 ? NULL : path;
}
