/*
 * web_view.h - the pages of the web UI and their parts. Each function writes the part between head
 * and foot. Returns 0, -ENOENT if the requested item does not exist, or another -errno.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_VIEW_H
#define NOCTULE_SERVICE_WEB_WEB_VIEW_H

#include "service/common/html/html.h"
#include "service/web/web.h"

struct view {
    struct page *page;
    const struct page_request *request;
    FILE *out;
};

/* Links of list cells. */
extern const struct html_link view_links[];

/*
 * Returns the query of a list: the item of the request, and the row to continue after if the
 * request names this list.
 */
struct page_asked view_asked(const struct view *view, enum page_list_name name);

/*
 * Writes a list as a section, with a link to the next rows. Without rows, writes `empty`, or leaves
 * the section out if it is NULL. If the request continues another list, writes only that one.
 */
int view_list(const struct view *view, enum page_list_name name, const char *empty,
              const struct page_asked *asked, struct error *error);
/* Writes a list of one row as figures. */
int view_figures(const struct view *view, enum page_list_name name, struct error *error);
/* Writes a list of one row line by line. Returns -ENOENT without a row. */
int view_details(const struct view *view, enum page_list_name name, const struct page_asked *asked,
                 struct error *error);
/* Writes the link to the next rows, if there are more. */
void view_more(const struct view *view, const struct page_list *list);

int view_now(const struct view *view, struct error *error);
int view_queue(const struct view *view, struct error *error);
int view_review(const struct view *view, struct error *error);
int view_failures(const struct view *view, struct error *error);
int view_deliveries(const struct view *view, struct error *error);
int view_night(const struct view *view, struct error *error);
int view_devices(const struct view *view, struct error *error);
int view_job(const struct view *view, struct error *error);
int view_series(const struct view *view, struct error *error);
int view_search(const struct view *view, struct error *error);

#endif
