/*
 * web_lists.h - lists of the web UI, as tables for any printer (types: report_period.h).
 *
 * Read from the public views, like all of report.h. A list ends after PAGE_ROWS rows with a mark to
 * continue from. Texts are as in the database, foreign ones included: the printer must escape them.
 */
#ifndef NOCTULE_DB_WEB_LISTS_H
#define NOCTULE_DB_WEB_LISTS_H

#include "db/report_period.h"

#define PAGE_ROWS 50
#define PAGE_MARK 1024

#define PAGE_LISTS(LIST)                                                                           \
    LIST(NOW)                                                                                      \
    LIST(NOW_SERIES)                                                                               \
    LIST(NOW_DELIVERIES)                                                                           \
    LIST(CONFIGURATION)                                                                            \
    LIST(RUNNING)                                                                                  \
    LIST(WAITING)                                                                                  \
    LIST(GATHERING)                                                                                \
    LIST(HOLDS)                                                                                    \
    LIST(REVIEW)                                                                                   \
    LIST(FAILED)                                                                                   \
    LIST(REFUSED)                                                                                  \
    LIST(QUARANTINED)                                                                              \
    LIST(DESTINATIONS)                                                                             \
    LIST(UNDELIVERED)                                                                              \
    LIST(DELIVERED)                                                                                \
    LIST(PULLING)                                                                                  \
    LIST(UNPULLED)                                                                                 \
    LIST(CALLERS)                                                                                  \
    LIST(DEVICES)                                                                                  \
    LIST(DEVICE_EVENTS)                                                                            \
    LIST(NIGHTS)                                                                                   \
    LIST(NIGHT)                                                                                    \
    LIST(JOB)                                                                                      \
    LIST(JOB_SEGMENTS)                                                                             \
    LIST(JOB_RESULTS)                                                                              \
    LIST(JOB_DELIVERIES)                                                                           \
    LIST(JOB_EVENTS)                                                                               \
    LIST(SERIES)                                                                                   \
    LIST(SERIES_JOBS)                                                                              \
    LIST(SERIES_STACKS)                                                                            \
    LIST(FOUND)                                                                                    \
    LIST(FOUND_STUDY)
#define PAGE_LIST_NAME(name) PAGE_##name,

enum page_list_name { PAGE_LISTS(PAGE_LIST_NAME) PAGE_LIST_COUNT };

/* The arguments of a list. A list ignores those that it does not need. */
struct page_asked {
    const char *after; /* a mark: the list begins after it; "": at the first row */
    int64_t job;       /* its number */
    /* the search text and its pseudonym (pseudonym.h), or ""; also a Series Instance UID */
    const char *text[2];
};

struct page_list {
    struct night_table table;
    char next[PAGE_MARK]; /* mark to continue from; "": that was all */
};

/*
 * Returns 0, -ETIMEDOUT if it took longer than report_bound() allows, or another -errno. Free with
 * page_list_free().
 */
int report_page_list(struct report *report, enum page_list_name name,
                     const struct page_asked *asked, struct page_list *list, struct error *error);
/* Returns the key of the list's table. */
const char *page_list_key(enum page_list_name name);
void page_list_free(struct page_list *list);

#endif
