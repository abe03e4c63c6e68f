/* web_preview.h - the picture of a job's segments. */
#ifndef NOCTULE_SERVICE_WEB_WEB_PREVIEW_H
#define NOCTULE_SERVICE_WEB_WEB_PREVIEW_H

#include "service/web/web_view.h"

/* The file, malloc'd; 0 or -errno. */
int preview_find(const struct page *page, int64_t job, unsigned char **bytes, size_t *size);

bool preview_is_there(const struct page *page, int64_t job);
/* It on a page. */
void preview_image(const struct view *view, int64_t job);
/* The same as a section, where it is there. */
void preview_section(const struct view *view, int64_t job);

#endif
