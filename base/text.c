/* text.c - see text.h. */
#include "base/text.h"

#include <string.h>

const char *
text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
