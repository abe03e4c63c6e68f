/* web_preview.c - the preview of a job's segments. */
#include "service/web/pages/web_view.h"

#include "base/limits.h"
#include "service/common/layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

int
web_preview_find(const struct web *web, int64_t job, unsigned char **bytes, size_t *size)
{
    char path[64];
    snprintf(path, sizeof path, LAYOUT_OUTBOX "/%" PRId64 "/preview.png", job);
    return html_read_preview(web->conf->root, path, (size_t)LIMIT_PREVIEW_MIB << 20, bytes, size);
}

bool
web_preview_is_there(const struct web *web, int64_t job)
{
    char *path;
    struct stat status;
    if (asprintf(&path, "%s/" LAYOUT_OUTBOX "/%" PRId64 "/preview.png", web->conf->root, job) < 0)
        return false;
    const bool found = lstat(path, &status) == 0 && S_ISREG(status.st_mode);
    free(path);
    return found;
}

void
web_preview_image(const struct web_view *view, int64_t job)
{
    fprintf(view->out,
            "<img alt=\"Preview of the segments of job %" PRId64 "\" src=\"preview?id=%" PRId64 "\" loading=\"lazy\">",
            job, job);
}
