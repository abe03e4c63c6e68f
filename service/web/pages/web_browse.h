/*
 * web_browse.h - lists with filters on pages: chips with counts, a form, columns that sort, and the pager. The address
 * is the filter, unless it has a text, which can be a patient's: then the page is the answer to a POST, and its links are
 * forms. One thread at a time may use it.
 */
#ifndef NOCTULE_SERVICE_WEB_PAGES_WEB_BROWSE_H
#define NOCTULE_SERVICE_WEB_PAGES_WEB_BROWSE_H

#include "service/web/pages/web_view.h"

#define WEB_COUNTS 24 /* max choices of a field, and one */

struct web_list {
    const struct web_view *view;
    const struct report_list *list;
    const char *api; /* the address of its rows below API_ROOT */
    struct report_browse browse;
    char pseudonym[PSEUDONYM_SIZE];
    bool is_filtered; /* a field has a value */
    int64_t counts[WEB_COUNTS], total;
    struct report_table table;
};

/*
 * Reads the filter of a request, and the rows with their counts by state. Returns -EINVAL with a message for an unknown
 * or invalid parameter. Free with web_list_clear().
 */
int web_list_read(struct web_list *list, const struct web_view *view, enum report_browse_name name,
                  struct error *error);
void web_list_clear(struct web_list *list);

/* Returns the value of a field, or "". */
const char *web_list_value(const struct web_list *list, const char *key);

/* Writes the chips of the states that there are; no text for a list without states. */
void web_list_chips(const struct web_list *list);

/* Writes the form with these fields, up to NULL. The other values of the filter stay. */
int web_list_form(const struct web_list *list, const char *const *keys, struct error *error);

/* Writes the form of the text, with the filter. */
void web_list_text_form(const struct web_list *list, const char *hint);

/* Writes the filters that the person has saved for this list, and the form to save this one. Returns 0 or -errno. */
int web_list_saved(const struct web_list *list, struct error *error);

/* A column of the table: its title, and the order that its title is a link to. */
struct web_column {
    const char *title, *sort; /* sort NULL: no link */
    const char *class;        /* or "" */
};

void web_list_head(const struct web_list *list, const struct web_column *columns, size_t count);

/* Writes the number of rows, and links to more of them, to CSV and to JSON. */
void web_list_pager(const struct web_list *list);

#endif
