#include "service/daemon/configured.h"

#include "base/durable.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/daemon/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const struct configured configured_none = {.memory = -1};

int
configured_read(const char *file, const char *root, struct conf **conf, char **files, struct error *error)
{
    struct conf_findings findings;
    int rc = conf_load_all(file, root, conf, &findings, error);
    for (size_t i = 0; rc && i < findings.count; i++)
        log_error("config.refused", LOG_STR("reason", findings.items[i].message));
    if (rc && findings.more > 0)
        log_error("config.refused", LOG_INT("more", (int64_t)findings.more));
    if (rc && findings.count == 0)
        log_error("config.refused", LOG_STR("reason", error->message));
    *files = findings.files && *findings.files ? findings.files : strdup(file);
    if (*files == findings.files)
        findings.files = NULL;
    conf_findings_free(&findings);
    return rc;
}

/* Keeps the text in memory and sets the path by which children open it. */
static int
configured_store_in_memory(const char *text, int *memory, char **file)
{
    *file = NULL;
    int fd = memfd_create("noctule.conf", MFD_CLOEXEC);
    int error = fd < 0 ? -errno : 0;
    if (!error && write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        error = -EIO;
    if (!error && asprintf(file, "/proc/%d/fd/%d", (int)getpid(), fd) < 0)
        error = -ENOMEM;
    if (error && fd >= 0)
        close(fd);
    *memory = error ? -1 : fd;
    return error;
}

int
configured_write(struct configured *configured, const char *root, const struct conf *conf)
{
    char *text = conf_to_text(conf);
    char *file = NULL;
    int error = text && asprintf(&file, "%s/" LAYOUT_CONFIG, root) >= 0 ? 0 : -ENOMEM;
    int memory = -1;
    if (!error)
        error = durable_write(AT_FDCWD, file, text, strlen(text), 0600, DURABLE_REPLACE);
    if (error && file && core_is_transient(error)) {
        log_warn("config.in_memory", LOG_STR("file", file), LOG_STR("error", strerror(-error)));
        free(file);
        error = configured_store_in_memory(text, &memory, &file);
    }
    if (error) {
        free(text);
        free(file);
        return error;
    }
    if (configured->memory >= 0)
        close(configured->memory);
    configured->memory = memory;
    free(configured->file);
    free(configured->text);
    configured->file = file;
    configured->text = text;
    return 0;
}

void
configured_free(struct configured *configured)
{
    if (configured->memory >= 0)
        close(configured->memory);
    free(configured->file);
    free(configured->text);
    *configured = configured_none;
}
