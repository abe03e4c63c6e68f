/*
 * web_view.h - the pages of the web UI and their parts. Each function writes the part between head
 * and foot. Returns 0, -ENOENT if the requested item does not exist, or another -errno.
 */
#ifndef NOCTULE_SERVICE_WEB_PAGES_WEB_VIEW_H
#define NOCTULE_SERVICE_WEB_PAGES_WEB_VIEW_H

#include "service/common/html/html.h"
#include "service/web/web.h"

struct web_view {
    struct web *web;
    const struct web_request *request;
    FILE *out;
    FILE *beside; /* beside the title: a subtitle, and buttons in <div class="act"> */
    int64_t *job; /* set to the job whose data the page has */
};

/* An address of the web UI: a row of the table in web_routes.c. */
struct web_route {
    const char *path;
    const char *title; /* of a page, else NULL */
    const char *menu;  /* the path of the page that the menu marks; NULL: none */
    int (*view)(const struct web_view *view, struct error *error); /* of a page, or: */
    const enum report_list_name *lists;                            /* up to REPORT_LIST_COUNT */
    /* for programs */
    int (*answer)(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);
    int (*post)(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);
    const char *moved; /* the page that replaced this address */
    bool in_menu, refreshes;
    bool
        reads_body; /* a POST has the query in its body, changes nothing, and needs no person: addresses stay in logs */
    bool runs_script; /* has the slice viewer */
    bool open;        /* no token needed */
    bool is_alone;    /* does not use the database */
    /* whether a path is one of this route, which only begins with `path`; answered beside all others unless it is open */
    bool (*is_path)(const char *path);
};

/* Links of list cells. */
enum { WEB_VIEW_LINKS = 7 }; /* with the end */

extern const struct html_link web_view_links[WEB_VIEW_LINKS];

/* Returns the query of a list: the item of the request, and the row to continue after if the
 * request names this list. */
struct report_query web_view_query(const struct web_view *view, enum report_list_name name);

/* Writes a list in its shape: figures, details, or rows with a link to the next ones. Without rows,
 * writes the list's text for that, or leaves the section out. If the request continues another list
 * of rows, writes only that one. `buttons` of its rows may be NULL. Returns -ENOENT for details without a row. */
int web_view_list(const struct web_view *view, enum report_list_name name, const struct html_buttons *buttons,
                  struct error *error);
/* Writes several lists, up to REPORT_LIST_COUNT. */
int web_view_lists(const struct web_view *view, const enum report_list_name *names, struct error *error);
/* Writes the link to the next rows, if there are more. */
void web_view_more(const struct web_view *view, const struct report_table *table);

int web_view_deliveries(const struct web_view *view, struct error *error);
int web_view_work(const struct web_view *view, struct error *error);
int web_view_overview(const struct web_view *view, struct error *error);
int web_view_settings(const struct web_view *view, struct error *error);
int web_view_received(const struct web_view *view, struct error *error);
int web_view_arrivals(const struct web_view *view, struct error *error);
int web_view_quarantined(const struct web_view *view, struct error *error);
int web_view_review(const struct web_view *view, struct error *error);
int web_view_reports(const struct web_view *view, struct error *error);
int web_view_cohort(const struct web_view *view, struct error *error);
int web_view_job(const struct web_view *view, struct error *error);
int web_view_search(const struct web_view *view, struct error *error);

/* Writes the numbers of a job beside their expected ranges: a table, or a list of those with a range, the broken ones first. */
enum web_findings_form { WEB_FINDINGS_TABLE, WEB_FINDINGS_LIST };

int web_findings_put(const struct web_view *view, int64_t job, enum web_findings_form form, struct error *error);

/* Writes a job with corrected masks beside the job that it corrects: WEB_CORRECTION. An empty table writes no text. */
void web_correction_put(const struct web_view *view, const struct report_table *table);

/* Writes the links between the pages of reports beside the title; `here`: "", "now", "cohort" or another word. */
void web_reports_chips(const struct web_view *view, const char *here);

/* The preview of a job's segments. */

/* Reads the preview file. Returns 0 or -errno. The caller must free *bytes. */
int web_preview_find(const struct web *web, int64_t job, unsigned char **bytes, size_t *size);

bool web_preview_is_there(const struct web *web, int64_t job);
/* Writes the image element. */
void web_preview_image(const struct web_view *view, int64_t job);

/* Styles in addition to the shared ones (html.h). */
extern const char web_style[];

#endif
