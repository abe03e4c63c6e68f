/* doctor_files.c - checks the configuration file, the root folder and the inboxes. */
#include "db/filesystem.h"
#include "db/report.h"
#include "service/cli/cli.h"
#include "service/cli/doctor/doctor.h"
#include "service/common/clock.h"
#include "service/common/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MIB        (1024.0 * 1024.0)
#define SHORT_DAYS 7

/* ---------------------------------------------------------------------- configuration ---- */

static void
configuration_mode(struct examination *examination, const char *path)
{
    struct stat status;
    const char *not_for_service = examination->doctor->not_for_service;
    if (!path || stat(path, &status) < 0)
        return; /* already a configuration error */
    if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0)
        doctor_failed(examination, errno, path, "chgrp it to the service's group, and chmod 0640");
    else if (*not_for_service)
        doctor_find(examination, DOCTOR_BROKEN,
                    "%s: the service's user %s cannot read this file: chgrp it to the service's group, and chmod 0640",
                    not_for_service, examination->doctor->user);
    if (status.st_mode & S_IWOTH)
        doctor_find(examination, DOCTOR_ATTENTION, "every user can write %s and so redirect images: chmod 0640", path);
}

void
doctor_check_configuration(struct examination *examination)
{
    const struct doctor *doctor = examination->doctor;
    for (size_t i = 0; i < doctor->findings->count; i++)
        doctor_find(examination, doctor->findings->items[i].wrong ? DOCTOR_BROKEN : DOCTOR_ATTENTION, "%s",
                    doctor->findings->items[i].message);
    if (doctor->findings->more > 0 || doctor->findings->count > DOCTOR_FINDINGS)
        doctor_find(examination, DOCTOR_ATTENTION, "and more errors: see noctule check-config");
    if (!doctor->conf && doctor->findings->count == 0)
        doctor_find(examination, DOCTOR_BROKEN, "%s%s", doctor->no_conf,
                    doctor->config_path ? "; give its path with --config or NOCTULE_CONFIG" : "");
    configuration_mode(examination, doctor->config_path);
    if (doctor->conf)
        doctor_fine(examination, "%s; pipelines: %zu, rules: %zu", doctor->config_path, doctor->conf->pipeline_count,
                    doctor->conf->rule_count);
}

/* ------------------------------------------------------------------------------- root ---- */

/* Files are moved between these folders by rename(2), so they must share one file system. */
static void
root_folders(struct examination *examination, const char *root, dev_t device)
{
    static const char *const folders[] = {LAYOUT_INCOMING, LAYOUT_SERIES,   LAYOUT_QUARANTINE, LAYOUT_JOBS,
                                          LAYOUT_OUTBOX,   LAYOUT_RELEASED, LAYOUT_REMOVED,    LAYOUT_RUN,
                                          LAYOUT_PROGRAMS, LAYOUT_CONVERTED};
    const char *name;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[PATH_MAX];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        if (stat(path, &status) < 0) {
            if (errno != ENOENT) /* the daemon creates it */
                doctor_failed(examination, errno, path, "chown it to the service's user");
        } else if (status.st_dev != device)
            doctor_find(examination, DOCTOR_BROKEN,
                        "%s is on another file system than %s, so files cannot be renamed into it: "
                        "use one file system for the whole root",
                        path, root);
        else if (faccessat(AT_FDCWD, path, R_OK | W_OK | X_OK, AT_EACCESS) < 0 && errno != EROFS)
            doctor_failed(examination, errno, path, "chown it to the service's user");
    }
    char database[PATH_MAX];
    snprintf(database, sizeof database, "%s/" LAYOUT_DATABASE, root);
    if (filesystem_check(database, &name) == -EREMOTE)
        doctor_find(examination, DOCTOR_BROKEN,
                    "%s is on %s, where SQLite databases can be damaged: move the root to a local file system", root,
                    name);
}

/* Returns the days until the space is used at the rate of the last week, or -1 if unknown. */
static double
root_days(const struct conf *conf, double spare_mib)
{
    struct report *report;
    int64_t bytes = 0;
    struct error error;
    if (cli_try_report(conf, &report, &error) < 0)
        return -1;
    if (report_week_bytes(report, DOCTOR_SECONDS, clock_unix_ms(), &bytes, &error) < 0)
        bytes = 0;
    report_close(report);
    return bytes > 0 ? spare_mib / ((double)bytes / 7 / MIB) : -1;
}

static void
root_space(struct examination *examination)
{
    const struct conf *conf = examination->doctor->conf;
    const bool removes = conf->retention.low_mib > 0 || conf->retention.series_days > 0;
    struct statvfs status;
    if (statvfs(conf->root, &status) < 0)
        return;
    const double free_mib = (double)status.f_bavail * (double)status.f_frsize / MIB;
    const double days = root_days(conf, free_mib - conf->min_free_mib);
    char lasts[96] = "";
    if (days >= 0)
        snprintf(lasts, sizeof lasts, ", enough for %.0f days at the rate of the last week", days);
    if (free_mib < conf->min_free_mib)
        doctor_find(examination, DOCTOR_BROKEN,
                    "%s has %.0f MiB free, less than min_free_mib (%g), so reception stops: free "
                    "space, or set retention",
                    conf->root, free_mib, conf->min_free_mib);
    else if (status.f_files > 0 && status.f_favail == 0)
        doctor_find(examination, DOCTOR_BROKEN, "%s has no free inodes: remove files", conf->root);
    else if (days >= 0 && days < SHORT_DAYS && !removes)
        doctor_find(examination, DOCTOR_ATTENTION, "%s has %.0f MiB free%s: free space, or set retention", conf->root,
                    free_mib, lasts);
    doctor_fine(examination, "%s: %.1f GiB free%s", conf->root, free_mib / 1024, lasts);
}

void
doctor_check_root(struct examination *examination)
{
    const char *root = examination->doctor->conf->root;
    struct stat status;
    if (!examination->doctor->has_user)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "the service's user %s does not exist: create it with systemd-sysusers or useradd -r",
                    examination->doctor->user);
    if (stat(root, &status) < 0) {
        if (errno == ENOENT)
            doctor_find(examination, DOCTOR_BROKEN, "%s does not exist: install -d -o %s -g %s -m 0750 %s", root,
                        examination->doctor->user, examination->doctor->user, root);
        else
            doctor_failed(examination, errno, root, "allow the service's user to enter the folders above it");
        return;
    }
    if (!S_ISDIR(status.st_mode)) {
        doctor_find(examination, DOCTOR_BROKEN, "%s is not a folder: move it away", root);
        return;
    }
    if (faccessat(AT_FDCWD, root, R_OK | W_OK | X_OK, AT_EACCESS) < 0)
        doctor_failed(examination, errno, root,
                      errno == EROFS ? "it is mounted read-only: remount it read-write"
                                     : "chown it to the service's user, and chmod 0750");
    if (status.st_mode & S_IRWXO)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "every user of this machine can access %s with the patients' images (mode %04o): chmod 0750", root,
                    status.st_mode & 07777);
    root_folders(examination, root, status.st_dev);
    root_space(examination);
}

/* ----------------------------------------------------------------------------- inboxes ---- */

static bool
inbox_folder(struct examination *examination, const char *path, bool written)
{
    struct stat status;
    if (stat(path, &status) < 0)
        doctor_failed(examination, errno, path, "create the folder, or mount its file system");
    else if (!S_ISDIR(status.st_mode))
        doctor_find(examination, DOCTOR_BROKEN, "%s is not a folder: move it away", path);
    else if (faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS) < 0)
        doctor_failed(examination, errno, path, "allow the service's group to read it");
    else if (written && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0)
        doctor_failed(examination, errno, path,
                      "files are moved from or to it: allow the service's group to write, or set after = \"keep\"");
    else
        return true;
    return false;
}

void
doctor_check_inbox(struct examination *examination)
{
    const struct conf_inbox *inbox = &examination->doctor->conf->inboxes[examination->index];
    const char *name = NULL;
    if (!inbox_folder(examination, inbox->path, inbox->after != CONF_KEEP))
        return;
    if (inbox->after == CONF_MOVE)
        inbox_folder(examination, inbox->move_to, true);
    const bool twice = inbox->after == CONF_KEEP && !examination->doctor->conf->retention.delete_originals;
    const char *kept = twice ? "; its files are kept forever in addition to the stored copy (see "
                               "the options after and retention.inbox)"
                             : "";
    filesystem_check(inbox->path, &name);
    if (name)
        doctor_fine(examination, "%s, on %s: files from other machines are found every %g seconds%s", inbox->path, name,
                    inbox->sweep_seconds, kept);
    else
        doctor_fine(examination, "%s%s", inbox->path, kept);
}

/* ----------------------------------------------------------------------------- watches ---- */

#define MAX_DEPTH 32

static int64_t
watches_count(int parent, const char *name, int depth, int64_t end_ms)
{
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    int64_t count = fd < 0 ? 0 : 1;
    const struct dirent *entry;
    if (!folder && fd >= 0)
        close(fd);
    while (folder && depth < MAX_DEPTH && clock_unix_ms() < end_ms && (entry = readdir(folder))) {
        if (entry->d_type == DT_DIR && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            count += watches_count(dirfd(folder), entry->d_name, depth + 1, end_ms);
    }
    if (folder)
        closedir(folder);
    return count;
}

void
doctor_check_watches(struct examination *examination)
{
    const struct conf *conf = examination->doctor->conf;
    const int64_t end_ms = clock_unix_ms() + DOCTOR_SECONDS * INT64_C(1000);
    long long allowed = -1;
    int64_t count = 0;
    FILE *file = fopen("/proc/sys/fs/inotify/max_user_watches", "re");
    if (file && fscanf(file, "%lld", &allowed) != 1)
        allowed = -1;
    if (file)
        fclose(file);
    for (size_t i = 0; i < conf->inbox_count; i++)
        count += watches_count(AT_FDCWD, conf->inboxes[i].path, 0, end_ms);
    const bool whole = clock_unix_ms() < end_ms;
    if (allowed >= 0 && count > allowed)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "inboxes have %lld folders%s, and inotify allows %lld; files in the others are "
                    "found by sweeps only: raise fs.inotify.max_user_watches (sysctl)",
                    (long long)count, whole ? "" : " or more", allowed);
    doctor_fine(examination, "inbox folders: %lld%s; inotify allows %lld", (long long)count, whole ? "" : " or more",
                allowed);
}
