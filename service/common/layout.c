/* layout.c - see layout.h. */
#include "service/common/layout.h"

#include <stdio.h>

char *
layout_inbox_source(const char *inbox)
{
    char *source;
    return asprintf(&source, "inbox:%s", inbox) < 0 ? NULL : source;
}
