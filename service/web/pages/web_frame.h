/*
 * web_frame.h - the parts of every page: the bar with the menu, the search and the state of the service; the title; the
 * footer.
 */
#ifndef NOCTULE_SERVICE_WEB_PAGES_WEB_FRAME_H
#define NOCTULE_SERVICE_WEB_PAGES_WEB_FRAME_H

#include "service/web/pages/web_view.h"

struct web_frame {
    const struct web_route *routes; /* the table of all addresses, with the pages of the menu */
    size_t route_count;
    const struct web_route *route;     /* NULL: an error page */
    const struct web_request *request; /* NULL: an error page */
    const struct web *web;             /* the same */
    const char *title;
    const char *beside, *content; /* HTML beside and below the title */
    const struct alerts *alerts;  /* NULL: not known */
    int64_t review, undelivered;  /* counts of the menu */
};

/* The icon of the site, an SVG file. */
extern const char web_frame_icon[];

/* Reads the counts of the menu. Returns 0 or -errno. */
int web_frame_count(struct report *report, struct web_frame *frame, struct error *error);

void web_frame_write(const struct web_frame *frame, FILE *out);

#endif
