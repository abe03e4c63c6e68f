/* web_preview.h - the preview of a job's segments. */
#ifndef NOCTULE_SERVICE_WEB_WEB_PREVIEW_H
#define NOCTULE_SERVICE_WEB_WEB_PREVIEW_H

#include "service/web/web_view.h"

/* Reads the preview file. Returns 0 or -errno. The caller must free *bytes. */
int preview_find(const struct page *page, int64_t job, unsigned char **bytes, size_t *size);

bool preview_is_there(const struct page *page, int64_t job);
/* Writes the image element. */
void preview_image(const struct view *view, int64_t job);
/* Writes a section with the image, if it exists. */
void preview_section(const struct view *view, int64_t job);

#endif
