#include "service/receiver/spool/replaced.h"

#include "service/common/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Max number of older files to look for; more than one exists only after a crash. */
#define KEPT_MAX 64

void
replaced_name(const char *sop_instance_uid, int32_t times, char name[REPLACED_NAME])
{
    char number[16] = "";
    if (times > 0)
        snprintf(number, sizeof number, "%c%" PRId32, LAYOUT_REPLACED, times);
    snprintf(name, REPLACED_NAME, "%s%s.dcm", sop_instance_uid, number);
}

int32_t
replaced_times(const char *path)
{
    const char *plus = strrchr(path, LAYOUT_REPLACED);
    const long times = plus && !strchr(plus, '/') ? strtol(plus + 1, NULL, 10) : 0;
    return times > 0 && times < INT32_MAX ? (int32_t)times : 0;
}

static void
replaced_path(const char *folder, const char *sop_instance_uid, int32_t times, char path[PATH_MAX])
{
    char name[REPLACED_NAME];
    replaced_name(sop_instance_uid, times, name);
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

int
replaced_find(const struct store *store, const char *folder, const char *sop_instance_uid, int32_t *times)
{
    char path[PATH_MAX], number[16] = "";
    const int root = store_fd(store);
    replaced_path(folder, sop_instance_uid, 0, path);
    if (readlinkat(root, path, number, sizeof number - 1) < 0 && errno != EINVAL)
        return -errno;
    *times = replaced_times(number); /* 0: it is a file */
    for (;; ++*times) {
        replaced_path(folder, sop_instance_uid, *times + 1, path);
        if (faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            return 0;
    }
}

int
replaced_retire(const struct store *store, const char *folder, const char *sop_instance_uid, int32_t times)
{
    const int root = store_fd(store);
    char number[16], path[PATH_MAX], part[PATH_MAX];
    /* Replace the first file, or the link to an earlier one, by a link. */
    snprintf(number, sizeof number, "%c%" PRId32, LAYOUT_REPLACED, times);
    replaced_path(folder, sop_instance_uid, 0, path);
    snprintf(part, sizeof part, LAYOUT_INCOMING "/%s%s.part", sop_instance_uid, number);
    if (symlinkat(number, root, part) != 0 && errno != EEXIST)
        return -errno;
    int error = renameat(root, part, root, path) == 0 || errno == ENOENT ? 0 : -errno;
    for (int32_t older = times - 1; !error && older > 0 && older >= times - KEPT_MAX; older--) {
        replaced_path(folder, sop_instance_uid, older, path);
        if (unlinkat(root, path, 0) != 0 && errno != ENOENT)
            error = -errno;
    }
    return error;
}
