/* web_preview.h - the preview of a job's segments. */
#ifndef NOCTULE_SERVICE_WEB_WEB_PREVIEW_H
#define NOCTULE_SERVICE_WEB_WEB_PREVIEW_H

#include "service/web/web_view.h"

/* Reads the preview file. Returns 0 or -errno. The caller must free *bytes. */
int web_preview_find(const struct web *web, int64_t job, unsigned char **bytes, size_t *size);

bool web_preview_is_there(const struct web *web, int64_t job);
/* Writes the image element. */
void web_preview_image(const struct web_view *view, int64_t job);
/* Writes a section with the image, if it exists. */
void web_preview_section(const struct web_view *view, int64_t job);

#endif
