/*
 * html.h - parts of HTML documents: escaped text of images, senders and users; tables, figures and
 * charts of db/report_lists.h; the style sheet. All output formats share the rules for untrusted
 * text.
 *
 * The HTML contains no scripts and loads no external resources. Write errors show in the stream,
 * which the caller owns and must check. Thread-safe.
 */
#ifndef NOCTULE_SERVICE_COMMON_HTML_HTML_H
#define NOCTULE_SERVICE_COMMON_HTML_HTML_H

#include "db/report_lists.h"
#include "service/common/alert/alert_list.h"

#include <stdio.h>

/* ------------------------------------------------------------------------------ text output -- */

/* Writes the local time of a database time: "2026-01-31 03:03:04 +0100"; "" for any other text. */
#define SHOWN_TIME LOCAL_TIME_SIZE
void shown_time(const char *at, char text[SHOWN_TIME]);

/* Returns a cell's text for display, with times in local time. Returns NULL if the cell is empty or
 * hidden. */
#define SHOWN_CELL SHOWN_TIME
const char *shown_cell(const struct report_table *table, size_t row, size_t column, char buffer[SHOWN_CELL]);

/* -------------------------------------------------------------------------------------- html -- */

extern const char html_style[];

/* Writes text escaped for element content and quoted attributes. */
void html_text(const char *text, FILE *out);
/* Writes escaped text with times as html_time(), isolated (<bdi>) so that its text direction cannot affect the text
 * around it. */
void html_untrusted(const char *text, FILE *out);
/* Writes a time of the database for people, "28 Nov 09:41" in local time, with the UTC time and its seconds as tooltip.
 * Other texts are written as they are. */
void html_time(const char *at, FILE *out);
void html_time_ms(int64_t ms, FILE *out);
/* Writes a number with thousands separated by commas. */
void html_count(int64_t count, FILE *out);
/* Writes "12.3 s", "4 min 20 s", "5 h 2 min" or "2 d 15 h". */
void html_duration(double seconds, FILE *out);
/* Writes a value of a URL query. */
void html_query(const char *text, FILE *out);

/* A state is a shape, a word and a colour. */
enum html_mark {
    MARK_DONE,
    MARK_RUNNING,
    MARK_WAITING,
    MARK_RECEIVING,
    MARK_REVIEW, /* a person must decide */
    MARK_FAILED,
    MARK_REFUSED,
    MARK_HELD,
    MARK_ATTENTION,
    MARK_NONE,
};

/* A state of the database. */
struct html_state {
    const char *name; /* "GATHERING" */
    const char *word; /* "Receiving" */
    enum html_mark mark;
};

/* Writes the shapes, once per document and before their use. */
void html_sprite(FILE *out);
/* Writes a shape alone; the text beside it must name the state. */
void html_icon(enum html_mark mark, FILE *out);
void html_mark(enum html_mark mark, const char *word, FILE *out);
/* Returns the class of a mark, which gives its colour. */
const char *html_mark_class(enum html_mark mark);
/* Returns NULL for an unknown name. */
const struct html_state *html_find_state(const char *name);
/* Writes the mark of a state; an unknown name as text. */
void html_state(const char *name, FILE *out);

/* A link for the cells of a column: `href`, in which & is escaped, followed by the cell. */
struct html_link {
    const char *key;  /* key of the column; NULL ends a list of links */
    const char *href; /* "job?id=" */
    /* Key of the column whose value follows instead of the cell's, and of others ("code&state"), "": none; then 0 has no link.
     * NULL: the cell's. */
    const char *of;
};

/* Writes the buttons of a row, which are the last cell of it. */
struct html_buttons {
    void (*write)(const void *context, const struct report_table *table, size_t row);
    const void *context;
};

/* Writes a section: its heading, the first rows with one line each, and the number of further rows. A column unfolds the
 * values that are REPORT_BELOW. `links` and `buttons` may be NULL. */
void html_table(const struct report_table *table, const struct html_link *links, const struct html_buttons *buttons,
                FILE *out);
/* Writes the only row of a table as a section of names and figures. `links` may be NULL. */
void html_figures(const struct report_table *table, const struct html_link *links, FILE *out);

/* Writes all cells of a table's only row, one per line. */
void html_details(const struct report_table *table, const struct html_link *links, FILE *out);

/* Adds to the row of an alert, such as a link or a button. */
typedef void html_alert_more(const void *context, const struct alert *alert, FILE *out);

/* Writes the alerts, each with its time, and its remedy or acknowledgement; or, with `waits`, the reasons for which work
 * waits. `more` may be NULL. Returns their number. */
size_t html_alerts(const struct alerts *alerts, bool waits, html_alert_more *more, const void *context, FILE *out);

/* Reads a PNG file of at most `max_size` bytes below the root, without following a link. The caller
 * must free *bytes. Returns 0 or -errno. */
int html_read_preview(const char *root, const char *path, size_t max_size, unsigned char **bytes, size_t *size);

/* Writes a PNG file as an image within the page. `alt` is escaped. */
void html_png(const unsigned char *bytes, size_t size, const char *alt, FILE *out);

/* A value of each row of a table as a bar on the one before it. */
struct html_bar {
    const char *key, *word; /* the column, and its name */
    const char *class;      /* its colour: "c1" to "c4", "cf" for failures */
    bool beside;            /* begins another stack */
    /* First bar of a stack: the address of the list that the stack counts, or NULL. The time of the row is added to it
     * as `times` "since" and "before". */
    const char *href, *times;
};

/* A bar chart. The table has the columns of the bars, and `at` with times at the same distance. */
struct html_chart {
    const char *title;
    bool has_caption; /* show the title */
    const struct html_bar *bars;
    size_t bar_count;
};

void html_chart(const struct report_table *table, const struct html_chart *chart, FILE *out);

/* The links of each list of a report, or NULL. */
typedef const struct html_link *html_report_links[PERIOD_COUNT];

/* Write the figures and charts of a report, or its tables except those of results under review. `links` may be NULL. */
void html_report_figures(const struct report_period *period, const html_report_links *links, FILE *out);
void html_report_tables(const struct report_period *period, const html_report_links *links, FILE *out);

#endif
