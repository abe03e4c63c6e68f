/* web_preview.c - see web_preview.h. */
#include "service/web/web_preview.h"

#include "base/limits.h"
#include "service/common/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

int
preview_find(const struct page *page, int64_t job, unsigned char **bytes, size_t *size)
{
    char path[64];
    snprintf(path, sizeof path, LAYOUT_OUTBOX "/%" PRId64 "/preview.png", job);
    return html_read_preview(page->conf->root, path, (size_t)LIMIT_PREVIEW_MIB << 20, bytes, size);
}

bool
preview_is_there(const struct page *page, int64_t job)
{
    char *path;
    struct stat status;
    if (asprintf(&path, "%s/" LAYOUT_OUTBOX "/%" PRId64 "/preview.png", page->conf->root, job) < 0)
        return false;
    const bool found = lstat(path, &status) == 0 && S_ISREG(status.st_mode);
    free(path);
    return found;
}

void
preview_image(const struct view *view, int64_t job)
{
    fprintf(view->out,
            "<img alt=\"Preview of the segments of job %" PRId64 "\" src=\"preview?id=%" PRId64
            "\" loading=\"lazy\">",
            job, job);
}

void
preview_section(const struct view *view, int64_t job)
{
    if (*view->request->values[REQUEST_list] || !preview_is_there(view->page, job))
        return;
    fputs("<section class=\"preview\"><h2>Preview</h2>", view->out);
    preview_image(view, job);
    fputs("</section>\n", view->out);
}
