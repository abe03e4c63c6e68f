/*
 * edge.h - a row of base/limits.def that a test tries at what it lets pass, and one beyond.
 *
 * EDGE(NAME) stands where both are tried; unit.base_limits asks that every row has one somewhere below tests.
 */
#ifndef NOCTULE_EDGE_H
#define NOCTULE_EDGE_H

#include "base/error.h"
#include "base/limits.h"

#include <stdint.h>

struct edge {
    const char *name;
    int64_t most;
    enum code code; /* beyond; CODE_NONE: it is not looked at */
};

enum edge_code {

#define LIMIT(name, most, code, ...) EDGE_##name = (code),
#include "base/limits.def"
#undef LIMIT
};

#define EDGE(name)                                                                                                     \
    {                                                                                                                  \
#name, LIMIT_##name, (enum code)EDGE_##name                                                                    \
    }

#endif
