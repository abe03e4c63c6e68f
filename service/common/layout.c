#include "service/common/layout.h"

#include "base/durable.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char marker[] = "The database noctule.db belongs to this folder. Without it noctuled does not start.\n";

int
layout_mark_database(const char *root)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" LAYOUT_DATABASE_MADE, root);
    if (access(path, F_OK) == 0)
        return 0;
    const int rc = durable_write(AT_FDCWD, path, marker, strlen(marker), 0640, DURABLE_REPLACE);
    return rc ? rc : durable_sync_folder(AT_FDCWD, root);
}

bool
layout_had_database(const char *root)
{
    static const char *const folders[] = {LAYOUT_SERIES, LAYOUT_OUTBOX, LAYOUT_QUARANTINE};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" LAYOUT_DATABASE_MADE, root);
    bool had = access(path, F_OK) == 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && !had; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        DIR *folder = opendir(path);
        const struct dirent *entry;
        while (folder && !had && (entry = readdir(folder)))
            had = entry->d_name[0] != '.';
        if (folder)
            closedir(folder);
    }
    return had;
}

bool
layout_lacks_database(const char *root)
{
    char path[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "%s/" LAYOUT_DATABASE, root);
    return stat(path, &status) < 0 ? errno == ENOENT : status.st_size == 0;
}

int
layout_refuse_database(const char *root, struct error *error)
{
    return error_set(error, -ENODATA, CODE_DATABASE_LOST,
                     "%s: %s/" LAYOUT_DATABASE
                     " is missing or empty, and the folder had a database: restore the backup of "
                     "noctule.db (operations.md, Restore); or start once with noctuled "
                     "--new-database, and every stored series runs and is sent again",
                     code_name(CODE_DATABASE_LOST), root);
}

char *
layout_inbox_source(const char *inbox)
{
    char *source;
    return asprintf(&source, "inbox:%s", inbox) < 0 ? NULL : source;
}
