/*
 * web_lists.h - the lists of the page, as tables that whoever draws them need not understand (report_period.h has their types).
 *
 * Asked of the public views like all of report.h. A list ends after PAGE_ROWS rows and says where to go on; texts are as
 * the database has them, foreign ones included: escape them.
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

/* What a list is asked for; what it has no use for is not looked at. */
struct page_asked {
    const char *after; /* a mark: the rows behind it; "": from the first */
    int64_t job;       /* its number */
    const char *text
        [2]; /* what is looked for, and what stands for it (pseudonym.h), or ""; also a Series Instance UID */
};

struct page_list {
    struct night_table table;
    char next[PAGE_MARK]; /* where to go on; "": those were all */
};

/* 0; -ETIMEDOUT where it took longer than report_bound allows; or another -errno. Free with page_list_free. */
int report_page_list(struct report *report, enum page_list_name name,
                     const struct page_asked *asked, struct page_list *list, struct error *error);
/* The key of its table. */
const char *page_list_key(enum page_list_name name);
void page_list_free(struct page_list *list);

#endif
