#include "service/receiver/spool/recover.h"

#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/receiver/spool/replaced.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_A_STEP 4096 /* limit of the names per step, including skipped ones */

struct recover {
    struct store *store;
    DIR *all;                /* series/ */
    DIR *series;             /* a folder in it, or NULL */
    char name[NAME_MAX + 1]; /* name of that folder */
};

int
recover_open(struct store *store, struct recover **out)
{
    struct recover *recover = calloc(1, sizeof *recover);
    if (!recover)
        return -ENOMEM;
    recover->store = store;
    int error = file_open_directory(store_fd(store), LAYOUT_SERIES, O_NOFOLLOW, &recover->all);
    if (error) {
        free(recover);
        return error;
    }
    *out = recover;
    return 0;
}

static void
close_series(struct recover *recover)
{
    if (recover->series)
        closedir(recover->series);
    recover->series = NULL;
}

void
recover_close(struct recover *recover)
{
    if (!recover)
        return;
    close_series(recover);
    closedir(recover->all);
    free(recover);
}

/* Returns the next name that is neither hidden nor a link to a replacement, or NULL at the end. */
static const char *
next_name(DIR *directory, int *error)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(directory);
        if (!entry) {
            *error = -errno;
            return NULL;
        }
        if (entry->d_name[0] != '.' && entry->d_type != DT_LNK)
            return entry->d_name;
    }
}

/* Returns 1 with a path relative to the root, 0 at the end, or -errno. */
static int
next_path(struct recover *recover, char path[PATH_MAX])
{
    int error = 0;
    for (;;) {
        const char *name = recover->series ? next_name(recover->series, &error) : NULL;
        if (name) {
            snprintf(path, PATH_MAX, LAYOUT_SERIES "/%s/%s", recover->name, name);
            return 1;
        }
        close_series(recover);
        name = next_name(recover->all, &error);
        if (!name)
            return error;
        snprintf(recover->name, sizeof recover->name, "%s", name);
        error = file_open_directory(dirfd(recover->all), name, O_NOFOLLOW, &recover->series);
        if (error)
            log_warn("recover.skipped", LOG_STR("series", name), LOG_STR("error", strerror(-error)));
    }
}

static bool
recover_describe(const struct recover *recover, const char *path, struct import_item *item)
{
    char absolute[PATH_MAX];
    if (snprintf(absolute, sizeof absolute, "%s/%s", store_root(recover->store), path) >= (int)sizeof absolute)
        return false;
    struct error error = {.code = CODE_FILE_UNREADABLE};
    import_forget(item);
    const int fd = open(absolute, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const int rc = fd < 0 ? -errno : import_peek(fd, absolute, NULL, item, &error);
    if (fd >= 0)
        close(fd);
    if (rc) {
        log_warn("recover.skipped", LOG_STR("path", path), LOG_STR("code", code_name(error.code)));
        return false;
    }
    item->outcome = IMPORT_ARRIVED;
    item->report.replaced = replaced_times(path);
    import_path(&item->report, item->report.replaced, item->report.path);
    if (strcmp(item->report.path, path) == 0)
        return true;
    log_warn("recover.skipped", LOG_STR("path", path), LOG_STR("belongs", item->report.path));
    return false;
}

int
recover_step(struct recover *recover, struct import_item *const *items, size_t count, struct seen_files *with_rows,
             size_t *found)
{
    *found = 0;
    for (size_t read = 0, names = 0; read < count && names < NAMES_A_STEP; names++) {
        char path[PATH_MAX];
        int more = next_path(recover, path);
        if (more <= 0)
            return more;
        if (with_rows && seen_files_find(with_rows, file_key(path)))
            continue;
        read++;
        if (recover_describe(recover, path, items[*found]))
            ++*found;
    }
    return 1;
}
