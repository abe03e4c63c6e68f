/* night_private.h - where the tables of a night come from. Private to db/report/. */
#ifndef NOCTULE_NIGHT_PRIVATE_H
#define NOCTULE_NIGHT_PRIVATE_H

#include "db/night.h"

struct night_source {
    struct night_table table; /* without rows */
    const char *sql; /* ?1: since, ?2: until, ?3: the step; a column per column, in order */
};

extern const struct night_source night_sources[NIGHT_TABLE_COUNT];

#endif
