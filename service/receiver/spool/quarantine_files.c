#include "service/receiver/spool/quarantine_files.h"

#include "base/durable.h"
#include "base/text.h"
#include "service/common/json.h"
#include "service/common/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT_NAME 120 /* kept from the original name, so that the digest and the suffixes fit */

static void
quarantine_name(const char *original, const struct file_stamp *stamp, char name[QUARANTINE_NAME])
{
    const int64_t version[2] = {stamp->size, stamp->mtime_ns};
    uint64_t digest = file_digest(0, original, strlen(original));
    digest = file_digest(digest, version, sizeof version);
    snprintf(name, QUARANTINE_NAME, "%016" PRIx64, digest);
}

void
quarantine_folder(time_t now, char folder[QUARANTINE_FOLDER])
{
    struct tm day;
    gmtime_r(&now, &day);
    strftime(folder, QUARANTINE_FOLDER, LAYOUT_QUARANTINE "/%Y%m%d", &day);
}

static int
quarantine_find_name(int root, const char *name, char folder[QUARANTINE_FOLDER])
{
    DIR *days;
    int error = file_open_directory(root, LAYOUT_QUARANTINE, 0, &days);
    if (error)
        return error;
    error = -ENOENT;
    for (const struct dirent *day; error && (day = readdir(days));) {
        char path[QUARANTINE_FOLDER + QUARANTINE_NAME];
        if (strlen(day->d_name) != 8 || strspn(day->d_name, "0123456789") != 8)
            continue;
        snprintf(path, sizeof path, "%.8s/%s", day->d_name, name);
        if (faccessat(dirfd(days), path, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        snprintf(folder, QUARANTINE_FOLDER, LAYOUT_QUARANTINE "/%.8s", day->d_name);
        error = 0;
    }
    closedir(days);
    return error;
}

int
quarantine_find(int root, const char *original, const struct file_stamp *stamp, char folder[QUARANTINE_FOLDER],
                char name[QUARANTINE_NAME])
{
    quarantine_name(original, stamp, name);
    int error = quarantine_find_name(root, name, folder);
    if (error != -ENOENT)
        return error;
    /* With the base name at its end, as in version 0.1.0. */
    const char *base = text_base_name(original);
    size_t length = strlen(base);
    if (length > KEPT_NAME)
        base += length - KEPT_NAME;
    const size_t digits = strlen(name);
    snprintf(name + digits, QUARANTINE_NAME - digits, "-%s", base);
    for (char *at = name; *at;) {
        length = text_line_length(at);
        if (length == 0)
            *at = '_';
        at += length ? length : 1;
    }
    error = quarantine_find_name(root, name, folder);
    if (error)
        quarantine_name(original, stamp, name);
    return error;
}

int
quarantine_explain(int root, const char *folder, const char *name, const struct quarantine_reason *reason, time_t now)
{
    char file[NAME_MAX + 1];
    snprintf(file, sizeof file, "%s.reason.json", name);
    int directory = openat(root, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        return -errno;
    int error = 0;
    struct text_stream text = {0};
    const bool is_new = faccessat(directory, file, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
    if (is_new)
        error = text_open(&text);
    if (is_new && !error) {
        char when[32];
        struct tm utc;
        struct json json = {.out = text.out};
        gmtime_r(&now, &utc);
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
        json_begin_object(&json, NULL);
        json_string(&json, "code", code_name(reason->code));
        json_string(&json, "message", reason->message);
        json_string(&json, "original_path", reason->original);
        json_string(&json, "series_uid", reason->series_uid);
        json_string(&json, "sop_instance_uid", reason->sop_instance_uid);
        json_string(&json, "time", when);
        json_end_object(&json);
        error = text_close(&text);
    }
    if (!error && text.bytes)
        error = durable_write(directory, file, text.bytes, text.size, 0640, DURABLE_NEW);
    free(text.bytes);
    close(directory);
    return error;
}
