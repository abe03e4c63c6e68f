#include "service/courier/folder.h"

#include "service/common/crash_point.h"
#include "service/common/failure.h"
#include "service/common/file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ".<UID>.dcm.part": whoever watches the folder passes over it. */
#define PART_SIZE (DICOM_UID_SIZE + 16)

static int
fail_folder(struct dicom_fault *fault, int error, const char *folder)
{
    if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG)
        return fail_with(fault, error, "DISK_FULL", "There is no space left in %s (%s).", folder,
                         strerror(-error));
    return fail_with(fault, error, "FOLDER_UNWRITABLE", "Nothing can be written to %s (%s).",
                     folder, strerror(-error));
}

static int
fail_source(struct dicom_fault *fault, int error, const char *file)
{
    return fail_with(fault, error, "FILE_UNREADABLE", "%s cannot be read (%s).", file,
                     strerror(-error));
}

/* Opens the folder, making it when it is missing: a descriptor or -errno. */
static int
open_folder(const char *folder)
{
    int error = file_make_path(folder);
    if (error)
        return error;
    int base = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return base < 0 ? -errno : base;
}

/* A part left by a courier that was killed is written over. */
static int
write_part(int source, int base, const char *part, bool *read_failed)
{
    int copy = openat(base, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (copy < 0)
        return -errno;
    int error = file_copy(source, copy, read_failed);
    if (error == 0 && fsync(copy) < 0)
        error = -errno;
    int closed = file_close(copy);
    return error ? error : closed;
}

/* Something of that name is there already. */
static int
compare(int source, int base, const char *name, const char *folder, struct dicom_fault *fault)
{
    bool same = false;
    int there = openat(base, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int error = there < 0 ? -errno : file_same_bytes(source, there, &same);
    if (there >= 0)
        close(there);
    if (error)
        return fail_folder(fault, error, folder);
    if (same)
        return 0;
    return fail_with(fault, -EEXIST, "FOLDER_CONFLICT",
                     "%s has another file %s already, which stays. Move it away and resend.",
                     folder, name);
}

static int
deliver(int source, int base, const char *folder, const char *file, const char *sop_instance,
        struct dicom_fault *fault)
{
    char name[PART_SIZE], part[PART_SIZE];
    bool read_failed = false;
    snprintf(name, sizeof name, "%s.dcm", sop_instance);
    snprintf(part, sizeof part, ".%s.dcm.part", sop_instance);
    int error = write_part(source, base, part, &read_failed);
    crash_point("courier_after_part");
    if (error == 0)
        error = file_rename_new(base, part, base, name);
    if (error)
        unlinkat(base, part, 0);
    if (error == -EEXIST)
        error = compare(source, base, name, folder, fault);
    else if (error)
        return read_failed ? fail_source(fault, error, file) : fail_folder(fault, error, folder);
    if (error == 0 && fsync(base) < 0)
        return fail_folder(fault, -errno, folder);
    return error;
}

int
folder_deliver(const char *folder, const char *file, const char *sop_instance,
               struct dicom_fault *fault)
{
    int source = open(file, O_RDONLY | O_CLOEXEC);
    if (source < 0)
        return fail_source(fault, -errno, file);
    int base = open_folder(folder);
    int error = base < 0 ? fail_folder(fault, base, folder)
                         : deliver(source, base, folder, file, sop_instance, fault);
    if (base >= 0)
        close(base);
    close(source);
    return error;
}
