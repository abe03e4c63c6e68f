/*
 * html.h - what pages for people are made of: text that came from images, senders and people, escaped; tables, figures and
 * charts of what db/report_period.h has; how all of it looks. And what every kind of output shows of such text.
 *
 * What is written needs no script and nothing from elsewhere. What cannot be written shows in the stream, which is the
 * caller's. From any thread.
 */
#ifndef NOCTULE_SERVICE_COMMON_HTML_HTML_H
#define NOCTULE_SERVICE_COMMON_HTML_HTML_H

#include "db/report_period.h"
#include "service/common/alert/alert_list.h"

#include <stdio.h>

/* ---------------------------------------------------------------------- what is shown of text -- */

/* Local time of a time as the database has it: "2026-01-31 03:03:04 +0100"; "" for any other text. */
#define SHOWN_TIME LOCAL_TIME_SIZE
void shown_time(const char *at, char text[SHOWN_TIME]);

/* A cell as people read it: times as above, else as it is; NULL where it is not to be told. */
#define SHOWN_CELL SHOWN_TIME
const char *shown_cell(const struct night_table *table, size_t row, size_t column,
                       char buffer[SHOWN_CELL]);

/* One character of foreign text, where it begins: its bytes, or 0 where it is not to be printed as it
 * is, for it is none, moves cursors or turns the direction of what follows. At most `*length` bytes
 * are to be gone on by. */
size_t shown_character(const char *text, size_t *length);

/* ---------------------------------------------------------------------------------------- html -- */

extern const char html_style[];

/* Escaped for between tags and within quotes. */
void html_text(const char *text, FILE *out);
/* The same, with times as local ones, turning the direction of nothing but itself. */
void html_foreign(const char *text, FILE *out);
/* As a value in the query of an address. */
void html_query(const char *text, FILE *out);

/* The cells of a column lead somewhere: to what is here, and the cell behind it. */
struct html_link {
    const char *key;  /* of the column; NULL ends a list of links */
    const char *href; /* "job?id=" */
};

/* A section: its heading, the first rows, and how many more there are. `links`: NULL for none. */
void html_table(const struct night_table *table, const struct html_link *links, FILE *out);
/* A section of a table's only row: names and figures. */
void html_figures(const struct night_table *table, FILE *out);

/* All of a table's only row, a line each. */
void html_details(const struct night_table *table, const struct html_link *links, FILE *out);

/* The list of alerts, with id, time and remedy or acknowledgement. */
void html_alerts(const struct alerts *alerts, FILE *out);

/* A PNG file below the root of so many bytes at most, whole: malloc'd. 0 or -errno; no link is followed. */
int html_read_preview(const char *root, const char *path, size_t most, unsigned char **bytes,
                      size_t *size);

/* Bars, a column for each row of the table, one part upon the other. */
struct html_chart {
    const char *title;
    const char *good, *bad;       /* keys of the table's columns; `bad`: NULL for none */
    const char *good_as, *bad_as; /* what they are called */
};

void html_chart(const struct night_table *table, const struct html_chart *chart, FILE *out);

/* What a night came to, as figures and charts; and its tables, but for what is under review. */
void html_night_figures(const struct night *night, FILE *out);
void html_night_tables(const struct night *night, const struct html_link *links, FILE *out);

#endif
