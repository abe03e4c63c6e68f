/*
 * night.h - `noctule report`: the tables of db/night.h and what is not well, as text, JSON and a page.
 *
 * Everything that came from images, senders and people is escaped here, once per kind of output. What
 * cannot be written shows in the stream, which is the caller's.
 */
#ifndef NOCTULE_CLI_NIGHT_H
#define NOCTULE_CLI_NIGHT_H

#include "db/night.h"
#include "service/cli/troubles.h"

#include <stdio.h>

struct night_report {
    const struct night *night;
    const struct cli_troubles *troubles; /* now */
    const char *root;                    /* the folder that paths are relative to */
    bool attention;                      /* somebody has to look at something */
};

void night_write_text(const struct night_report *report, FILE *out);
void night_write_json(const struct night_report *report, FILE *out);
/* One file that needs no other: styles, charts and a bounded number of previews are within. */
void night_write_html(const struct night_report *report, FILE *out);

/* "2026-01-31 02:03" of a time as the database has it, in UTC or as clocks here show it. */
#define NIGHT_MINUTE 20
void night_minute(const char *at, bool local, char text[NIGHT_MINUTE]);

/* A cell as people read it: times without their T, else as it is; NULL where it is not to be told. */
#define NIGHT_SHOWN 32
const char *night_shown(const struct night_table *table, size_t row, size_t column,
                        char buffer[NIGHT_SHOWN]);

/* One character of foreign text, where it begins: its bytes, or 0 where it is not to be printed as it
 * is, for it is none, moves cursors or turns the direction of what follows. At most `*length` bytes
 * are to be gone on by. */
size_t night_character(const char *text, size_t *length);

/* ------------------------------------------------------------------------------- html only ----- */

extern const char night_html_style[];

/* Escaped for between tags and within quotes. */
void night_html_text(const char *text, FILE *out);

/* Bars, a column for each row of the table, one part upon the other. */
struct night_chart {
    const char *title;
    const char *good, *bad;       /* keys of the table's columns; `bad`: NULL for none */
    const char *good_as, *bad_as; /* what they are called */
};

void night_html_chart(const struct night_table *table, const struct night_chart *chart, FILE *out);

/* The previews of jobs that are under review, as many as may be, with what was found. */
void night_html_previews(const struct night_report *report, FILE *out);

#endif
