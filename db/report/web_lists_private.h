/* web_lists_private.h - the queries behind the lists of the web UI. Private to db/report/. */
#ifndef NOCTULE_DB_REPORT_WEB_LISTS_PRIVATE_H
#define NOCTULE_DB_REPORT_WEB_LISTS_PRIVATE_H

#include "db/web_lists.h"

struct page_source {
    struct night_table table; /* without rows */
    /*
     * ?1: the mark, ?2: the job, ?3 and ?4: the texts, ?5: the limit; one result column per table
     * column, in order, then the row's mark.
     */
    const char *sql;
};

extern const struct page_source page_sources[PAGE_LIST_COUNT];

#endif
