/*
 * web_view.h - what the pages are made of, and the pages: each writes what stands between head and foot. 0, -ENOENT where the thing asked
 * for is not there, or another -errno.
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

/* Where cells of lists lead. */
extern const struct html_link view_links[];

/* What is asked of a list by the request: where to go on, if this is the list that it goes on with. */
struct page_asked view_asked(const struct view *view, enum page_list_name name);

/*
 * A list as a section, and where to go on. One without rows is left out, or with `empty` says that. Where the request
 * goes on with another list, nothing.
 */
int view_list(const struct view *view, enum page_list_name name, const char *empty,
              const struct page_asked *asked, struct error *error);
/* A list of one row, as figures. */
int view_figures(const struct view *view, enum page_list_name name, struct error *error);
/* ... or line by line: -ENOENT where there is none. */
int view_details(const struct view *view, enum page_list_name name, const struct page_asked *asked,
                 struct error *error);
/* "Older", where there is more. */
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
