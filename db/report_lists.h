/*
 * report_lists.h - lists of the public views, as tables for any printer: of a report period, of the
 * web UI and of commands. db/report/list_rows.c has a row per list: a new list is one row there.
 *
 * Texts are as in the database, foreign ones included: a printer must escape them.
 */
#ifndef NOCTULE_DB_REPORT_LISTS_H
#define NOCTULE_DB_REPORT_LISTS_H

#include "base/error.h"
#include "db/iso_time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct report;

/* The tables of a report period in their order, then the lists of the web UI. */
enum report_list_name {
    PERIOD_SERIES,
    PERIOD_JOBS,
    PERIOD_DELIVERIES,
    PERIOD_FILES,
    PERIOD_DISK,
    PERIOD_FAILED,
    PERIOD_REVIEW,
    PERIOD_UNDELIVERED,
    PERIOD_UNPULLED,
    PERIOD_REFUSED,
    PERIOD_QUARANTINED,
    PERIOD_SENDERS,
    PERIOD_CALLERS,
    PERIOD_UNRULED,
    PERIOD_PULLED,
    PERIOD_PIPELINES,
    PERIOD_SEGMENTS,
    PERIOD_COMPUTE,
    PERIOD_SLOWEST,
    PERIOD_HOURS,
    WEB_BAR,
    WEB_FLOW,
    WEB_HOURS,
    WEB_BACKLOG,
    WEB_PIPELINE_WORK,
    WEB_MACHINE,
    WEB_CONFIGURATION,
    WEB_RUNNING,
    WEB_PROGRAM_RUNS,
    WEB_REVIEW,
    WEB_REVIEW_DECIDED,
    WEB_REVIEW_JOB,
    WEB_REVIEW_BEFORE,
    WEB_REVIEW_REASONS,
    WEB_UPLOADS,    /* corrected masks of job ?2 that are still being received */
    WEB_CORRECTION, /* a job with corrected masks beside the job that it corrects; ?2 is one of them */
    WEB_QUARANTINED,
    WEB_DESTINATION_HOLDS,
    WEB_PULLING,
    WEB_UNPULLED,
    WEB_SENDERS,
    WEB_CALLERS,
    WEB_DEVICE_EVENTS,
    WEB_PROGRAMS,
    WEB_DAYS,
    WEB_CALENDAR,
    WEB_BY_PIPELINE,
    WEB_BY_SCANNER,
    WEB_COHORT_SEGMENTS,
    WEB_COHORT,
    WEB_NIGHTS,
    WEB_NIGHT,
    WEB_JOB,
    WEB_JOB_STATE,
    WEB_JOB_SEGMENTS,
    WEB_JOB_QUANTITIES,
    WEB_JOB_RESULTS,
    WEB_JOB_DELIVERIES,
    WEB_JOB_EVENTS,
    WEB_JOB_STEPS,
    WEB_JOB_BREACHES,
    WEB_JOB_SETTINGS,
    WEB_SERIES,
    WEB_SERIES_JOBS,
    WEB_SERIES_STACKS,
    WEB_FOUND,
    WEB_FOUND_STUDY,
    REPORT_LIST_COUNT,

    PERIOD_COUNT = WEB_BAR
};

struct report_column {
    const char *key;   /* in JSON; must not change */
    const char *title; /* for people, with the unit */
    unsigned form;     /* several joined by OR */
    const char *sql;   /* an expression over the view */
};

enum {
    REPORT_TEXT = 0,     /* on a terminal, shortened in its middle */
    REPORT_NUMBER = 1,   /* right-aligned, not shortened */
    REPORT_WHOLE = 2,    /* not shortened */
    REPORT_DROP = 4,     /* left out if the line is too long, the last such column first */
    REPORT_TIME = 8,     /* not shortened */
    REPORT_SHARE = 16,   /* from 0 to 1 */
    REPORT_REMEDY = 32,  /* the remedy of the code that the expression gives */
    REPORT_BELOW = 64,   /* in a line of its own below the row; must follow the short ones */
    REPORT_SILENT = 128, /* not printed if it is 0 */
    REPORT_ADDED = 256,  /* of no view: also in JSON and CSV */
    REPORT_HIDDEN = 512, /* with REPORT_BELOW: a value for addresses only */
    REPORT_SPARE = 1024, /* left out if no row has a value */
};

/* A value of a field, with the rows that it selects. */
struct report_choice {
    const char *word;  /* in addresses and of the API; must not change */
    const char *title; /* for people; NULL: it is a part of another choice, and pages do not offer it */
    const char *sql;   /* a condition over the view; of a field that is counted, over that column alone */
};

/* A condition that a list offers. In its SQL, $ is the value and @ the pseudonym of a search text. */
struct report_field {
    const char *key;   /* in addresses and of the API; must not change */
    const char *title; /* for people */

    enum {
        REPORT_EQUAL,  /* a text */
        REPORT_CHOICE, /* one of `choices` */
        REPORT_COUNT,  /* a whole number */
        REPORT_AMOUNT, /* a number */
        REPORT_MOMENT, /* a time: report_moment() */
        REPORT_SEARCH  /* a text, which can be an identifier */
    } form;

    const char *sql;
    const struct report_choice *choices; /* up to one without a word */
    const char *options;                 /* a query of the values that there are, or NULL */
};

/* An order that a list offers. */
struct report_sort {
    const char *key;
    const char *sql; /* never NULL; a column of the view, or the index is not used */
    bool is_number;
    bool descends; /* unless the request asks for the other direction */
};

#define REPORT_FIELDS 24 /* max fields of a list */

struct report_list {
    const char *key;     /* in JSON, and in addresses of the web UI */
    const char *heading; /* for people */
    const char *hint;    /* the remedy for all its rows; NULL: each row has its own, or none */
    const char *none;    /* a page's text without rows; NULL: the list is left out */

    enum {
        REPORT_ROWS,
        REPORT_FIGURES, /* exactly one row, as names and figures */
        REPORT_DETAILS  /* at most one row, line by line */
    } shape;

    const struct report_column *columns;
    size_t column_count;
    const char *with; /* the text before SELECT, with all parameters; or NULL */
    const char *view;
    const char *tail; /* "WHERE ... ORDER BY ... LIMIT ..."; of no list with fields */
    size_t max_rows;  /* of a page; 0: PAGE_ROWS */
    const char *mark; /* an expression that gives the place of a row in the order; or NULL */
    const char *id;   /* the column that identifies a row: for report_keys(), and to sort rows by it; or NULL */
    const char *const *states;
    int state_count;
    /* Of a list that report_browse() reads. It has no tail. */
    const struct report_field *fields;
    size_t field_count;
    const struct report_sort *sorts; /* the first is the default */
    size_t sort_count;
    const char *unique; /* a whole number that distinguishes rows of one place in an order: it ends each order */
    const char
        *whole;     /* a query of the values of the counted column with their counts (n), without a filter; or NULL */
    bool is_closed; /* JSON and CSV have the columns of the list only, not those of the view */
};

extern const struct report_list report_lists[REPORT_LIST_COUNT];

#define REPORT_TEXT_MAX 256 /* characters of a text that is searched for, or given to the API */
#define REPORT_MARK     1024

/* The rows of a list. */
struct report_table {
    const struct report_list *list;
    char **cells; /* by row; NULL: not known */
    size_t row_count, row_capacity;
    char next[REPORT_MARK]; /* mark to continue from; "": that was all */
};

void report_table_free(struct report_table *table);
/* Returns the text of a cell, NULL if it is not known. The list must have a column `key`. */
const char *report_cell(const struct report_table *table, size_t row, const char *key);
/* As report_cell(); "" if it is not known. */
const char *report_cell_text(const struct report_table *table, size_t row, const char *key);
/* Returns a cell as a number; 0 if it is not known. */
double report_number(const struct report_table *table, size_t row, const char *key);
/* Returns whether a column is REPORT_SPARE, and no row has a value. */
bool report_is_spare(const struct report_table *table, size_t column);

/* How rows are printed as text. */
struct report_layout {
    size_t max_rows;
    const char *indent;
    const char *empty; /* text of a cell without one */
    /* prints the columns REPORT_BELOW; NULL: they are columns like the others */
    void (*below)(const struct report_table *table, size_t row, FILE *out);
};

/*
 * Prints titles and rows, columns as wide as their cells. On a terminal, columns are left out and
 * shortened until a line fits. Returns 0 or -ENOMEM.
 */
int report_table_print(const struct report_table *table, const struct report_layout *layout, FILE *out);

/*
 * Returns the size of the first character of untrusted text, or 0 if it must not be printed as it
 * is: invalid UTF-8, a control character, or a change of text direction. Sets *length to the bytes
 * to advance.
 */
size_t report_character(const char *text, size_t *length);

/* ----------------------------------------------------------------------- lists of the web UI -- */

#define PAGE_ROWS 50 /* after as many rows, a list ends with a mark to continue from */

/* The arguments of a list. A list ignores those that it does not need. */
struct report_query {
    const char *after; /* a mark: the list begins after it; "": at the first row */
    int64_t job;       /* its number */
    /* the search text and its pseudonym (pseudonym.h), or ""; also a Series Instance UID */
    const char *text[2];
};

/*
 * Returns 0, -ETIMEDOUT if it took longer than report_bound() allows, or another -errno. Free with
 * report_table_free().
 */
int report_page(struct report *report, enum report_list_name name, const struct report_query *query,
                struct report_table *table, struct error *error);

/* ------------------------------------------------------------------- lists with filters ------ */

/* Those of pages come first: the others have no columns, and are read by report_browse_print() only. */
enum report_browse_name {
    BROWSE_WORK, /* jobs, and series without a job */
    BROWSE_DELIVERIES,
    BROWSE_REVIEW,
    BROWSE_SEARCH, /* those of BROWSE_WORK, by an identifier */
    BROWSE_FOUND,  /* with the filters of BROWSE_WORK, and a text */
    BROWSE_SEGMENTS,
    BROWSE_RESULTS,
    BROWSE_EVENTS,
    BROWSE_FEATURES,
    BROWSE_SERIES,
    BROWSE_ARRIVALS,
    BROWSE_DESTINATIONS,
    BROWSE_UNDELIVERED,
    BROWSE_CALLERS,
    BROWSE_PULLS,
    BROWSE_QUARANTINE,
    BROWSE_REPORTS,
    BROWSE_TRENDS,
    BROWSE_CONFIGURATION,
    BROWSE_AUDIT,
    BROWSE_FILTERS,
    BROWSE_COUNT
};

extern const struct report_list report_browsed[BROWSE_COUNT];

/* The rows that are wanted of such a list. */
struct report_browse {
    const char *values[REPORT_FIELDS];     /* by field; NULL or "": any */
    const char *pseudonym;                 /* of the search text (pseudonym.h), or NULL */
    const char *pseudonyms[REPORT_FIELDS]; /* of another one, by field, or NULL */
    const char *sort;                      /* its key, with "-" before it for descending; NULL or "": the default */
    const char *after;                     /* a mark: the rows after it; NULL or "": the first ones */
    int64_t limit;                         /* 0: PAGE_ROWS */
    const int64_t *total;                  /* number of its rows, if they were counted; or NULL */
};

/* Returns the place of a field, or -1. */
int report_field_place(const struct report_list *list, const char *key);

/*
 * Reads a time of a request: RFC 3339, its beginning from the date on (UTC unless it has an offset), or the time
 * before now: "36h", "7d". Returns 0 or -EINVAL.
 */
int report_moment(const char *text, int64_t now_ms, char at[ISO_TIME_SIZE]);

/*
 * Read the rows, for people. Returns -EINVAL with a message that names the parameter. Rows that are added meanwhile
 * neither repeat nor hide others: table->next continues by the values of the last row, not by its number.
 */
int report_browse(struct report *report, const struct report_list *list, const struct report_browse *browse,
                  struct report_table *table, struct error *error);

enum report_format { REPORT_JSON, REPORT_CSV };

/*
 * Prints all columns of the view, as an array or as CSV (RFC 4180). In CSV, a text that a spreadsheet would
 * calculate has ' before it. Sets `next` to the mark to continue from, or "".
 */
int report_browse_print(struct report *report, const struct report_list *list, const struct report_browse *browse,
                        enum report_format format, FILE *out, char next[REPORT_MARK], struct error *error);

/* Prints the first row as a JSON object. Returns -ENOENT without rows. */
int report_browse_one(struct report *report, const struct report_list *list, const struct report_browse *browse,
                      FILE *out, struct error *error);

/* Calls `take` with the name of each column that JSON and CSV have. */
int report_browse_keys(struct report *report, const struct report_list *list,
                       void (*take)(void *context, const char *key), void *context, struct error *error);

/*
 * Counts the rows for each choice of a field; the value of the field itself is ignored. `counts` has a number per
 * choice, then that of all rows. field -1: only that one.
 */
int report_browse_count(struct report *report, const struct report_list *list, const struct report_browse *browse,
                        int field, int64_t *counts, struct error *error);

/* Reads the options of a field, at most 200. The caller must free each, and the array. */
int report_options(struct report *report, const struct report_field *field, char ***options, size_t *count,
                   struct error *error);

/* -------------------------------------------------------------------------- a report period --- */

/* All that arrived in a period and its state, read at one moment. */
struct report_period {
    char since[ISO_TIME_SIZE], until[ISO_TIME_SIZE]; /* excludes `until` */
    int64_t step_seconds;                            /* between two rows of PERIOD_HOURS */
    struct report_table tables[PERIOD_COUNT];
};

/*
 * Reads all that arrived from `since_ms` on until before `until_ms`, in Unix milliseconds. Free
 * with report_period_free(). Returns -EINVAL if the period ends before it begins, or is longer than
 * a year.
 */
int report_period_read(struct report *report, int64_t since_ms, int64_t until_ms, struct report_period **period,
                       struct error *error);
void report_period_free(struct report_period *period);

#endif
