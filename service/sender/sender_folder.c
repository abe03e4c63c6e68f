/* sender_folder.c - a folder as a destination: writes files atomically and synced. Declared in sender.h. */
#include "service/sender/sender.h"

#include "base/durable.h"
#include "base/error.h"
#include "base/test_hook.h"
#include "service/common/file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Size of ".NAME.part", a name that readers of the folder must skip. */
#define PART_SIZE (SENDER_NAME + 8)

static int
fail_folder(struct error *error, int rc, const char *folder)
{
    if (rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG)
        return error_set(error, rc, CODE_DISK_FULL, "There is no space left in %s (%s).", folder, strerror(-rc));
    return error_set(error, rc, CODE_FOLDER_UNWRITABLE, "Nothing can be written to %s (%s).", folder, strerror(-rc));
}

static int
fail_source(struct error *error, int rc, const char *file)
{
    return error_set(error, rc, CODE_FILE_UNREADABLE, "%s cannot be read (%s).", file, strerror(-rc));
}

/* Compares an existing file of that name with the source. */
static int
compare(int source, int base, const char *name, const char *folder, struct error *error)
{
    bool same = false;
    int there = openat(base, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int rc = there < 0 ? -errno : file_same_bytes(source, there, &same);
    if (there >= 0)
        close(there);
    if (rc)
        return fail_folder(error, rc, folder);
    if (same)
        return 0;
    return error_set(error, -EEXIST, CODE_FOLDER_CONFLICT,
                     "%s has another file %s already, which stays. Move it away and resend.", folder, name);
}

static int
deliver(int source, int base, const char *folder, const char *file, const char *name, struct error *error)
{
    char part[PART_SIZE];
    bool read_failed = false;
    snprintf(part, sizeof part, ".%s.part", name);
    int rc = durable_create(base, part, 0640);
    if (rc >= 0)
        rc = durable_finish(rc, file_copy(source, rc, &read_failed));
    crash_point("courier_after_part");
    if (rc == 0)
        rc = durable_rename_new(base, part, base, name);
    if (rc)
        unlinkat(base, part, 0);
    if (rc == -EEXIST)
        rc = compare(source, base, name, folder, error);
    else if (rc)
        return read_failed ? fail_source(error, rc, file) : fail_folder(error, rc, folder);
    if (rc == 0 && fsync(base) < 0)
        return fail_folder(error, -errno, folder);
    return rc;
}

int
sender_folder_deliver(const char *folder, const char *file, const char *name, struct error *error)
{
    int source = open(file, O_RDONLY | O_CLOEXEC);
    if (source < 0)
        return fail_source(error, -errno, file);
    int base = file_make_path(folder);
    if (base == 0) {
        base = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        base = base < 0 ? -errno : base;
    }
    int rc = base < 0 ? fail_folder(error, base, folder) : deliver(source, base, folder, file, name, error);
    if (base >= 0)
        close(base);
    close(source);
    return rc;
}
