/* web_lists_private.h - where the lists of the page come from. Private to db/report/. */
#ifndef NOCTULE_DB_REPORT_WEB_LISTS_PRIVATE_H
#define NOCTULE_DB_REPORT_WEB_LISTS_PRIVATE_H

#include "db/web_lists.h"

struct page_source {
    struct night_table table; /* without rows */
    /* ?1: the mark, ?2: the job, ?3 and ?4: the texts, ?5: how many; a column per column, in order, and behind them the row's
     * mark. */
    const char *sql;
};

extern const struct page_source page_sources[PAGE_LIST_COUNT];

#endif
