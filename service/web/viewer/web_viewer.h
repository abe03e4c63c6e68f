/*
 * web_viewer.h - the slice viewer within a page.
 */
#ifndef NOCTULE_SERVICE_WEB_VIEWER_WEB_VIEWER_H
#define NOCTULE_SERVICE_WEB_VIEWER_WEB_VIEWER_H

#include "service/web/pages/web_view.h"

/*
 * Writes the viewer of a job: for the script, and for browsers without scripts a plane as a PNG with links to its
 * neighbours and to the other views. `page` is the page's own path, such as "job". Without a brick file, writes the preview,
 * or nothing if there is none. The reply must be runs_script. Returns whether there is a brick file.
 */
bool web_viewer_put(const struct web_view *view, int64_t job, const char *page);

#endif
