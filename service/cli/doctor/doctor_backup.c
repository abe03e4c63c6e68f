/* doctor_backup.c - checks the age of the newest backup made as in docs/operations.md. */
#include "base/text.h"
#include "service/cli/doctor/doctor.h"
#include "service/common/clock.h"
#include "service/common/file_ops.h"
#include "service/common/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

#define HOUR_MS   (3600 * 1000.0)
#define SLACK_MS  (5 * 60 * 1000)
#define UNIT_FROM 48 /* older backups are given in days */

struct backup_newest {
    size_t count; /* number of backups */
    int64_t copied_ms;
    char name[NAME_MAX + 1];
};

/* Notes a backup: a folder with a complete copy of the database. Ignores unfinished copies and the
 * link to the last one. Returns 0 or -errno. */
static int
backup_try(int folder, const char *name, struct backup_newest *newest)
{
    struct stat entry, database;
    char path[NAME_MAX + sizeof "/" LAYOUT_DATABASE];
    snprintf(path, sizeof path, "%s/" LAYOUT_DATABASE, name);
    if (name[0] == '.' || text_ends_in(name, ".part"))
        return 0;
    if (fstatat(folder, name, &entry, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISDIR(entry.st_mode))
        return 0;
    if (fstatat(folder, path, &database, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(database.st_mode) || database.st_size == 0)
        return 0;
    const int64_t copied_ms = (int64_t)database.st_mtim.tv_sec * 1000 + database.st_mtim.tv_nsec / 1000000;
    if (newest->count++ == 0 || copied_ms > newest->copied_ms) {
        newest->copied_ms = copied_ms;
        snprintf(newest->name, sizeof newest->name, "%s", name);
    }
    return 0;
}

static int
backup_find(const char *path, struct backup_newest *newest)
{
    DIR *folder;
    const struct dirent *entry;
    *newest = (struct backup_newest){0};
    int rc = file_open_directory(AT_FDCWD, path, 0, &folder);
    if (rc < 0)
        return rc;
    while (rc == 0 && (entry = readdir(folder)))
        rc = backup_try(dirfd(folder), entry->d_name, newest);
    closedir(folder);
    return rc;
}

static void
backup_report_age(struct examination *examination, const struct backup_newest *newest)
{
    const struct conf_backup *conf = &examination->doctor->conf->backup;
    const double age_ms = (double)(clock_unix_ms() - newest->copied_ms);
    const double hours = age_ms > 0 ? age_ms / HOUR_MS : 0;
    char age[32];
    if (hours < UNIT_FROM)
        snprintf(age, sizeof age, "%.0f hours", hours);
    else
        snprintf(age, sizeof age, "%.0f days", hours / 24);
    if (age_ms < -SLACK_MS)
        doctor_find(examination, DOCTOR_ATTENTION, "%s/%s has a time in the future: set the clock of this machine",
                    conf->folder, newest->name);
    else if (hours > conf->max_age_hours)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "the newest backup in %s, %s, is %s old, more than backup.max_age_hours (%g): "
                    "check the backup job (operations.md, Backup)",
                    conf->folder, newest->name, age, conf->max_age_hours);
    doctor_fine(examination, "the newest of %zu backups in %s is %s old", newest->count, conf->folder, age);
}

/* The service may not read backups. This thread alone uses the rights of the calling user. */
void
doctor_check_backup(struct examination *examination)
{
    const char *path = examination->doctor->conf->backup.folder;
    struct backup_newest newest;
    if (!path) {
        doctor_unknown(examination, "not checked: set backup.folder to the folder of the backups "
                                    "(operations.md, Backup)");
        return;
    }
    setfsuid(examination->doctor->caller);
    const int rc = backup_find(path, &newest);
    if (rc == -EACCES || rc == -EPERM)
        doctor_find(examination, DOCTOR_ATTENTION, "no permission to read %s: run doctor as root", path);
    else if (rc < 0)
        doctor_find(examination, DOCTOR_BROKEN, "%s: %s: mount its file system, or correct backup.folder", path,
                    strerror(-rc));
    else if (newest.count == 0)
        doctor_find(examination, DOCTOR_BROKEN,
                    "%s has no backup (a folder with " LAYOUT_DATABASE "): make one as in operations.md, Backup", path);
    else
        backup_report_age(examination, &newest);
}
