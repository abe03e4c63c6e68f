/*
 * import.c - see import.h. import_peek.c reads headers, import_finish.c handles originals.
 *
 * The steps of an import and the state after each. A step that fails sets the final outcome.
 *
 *     examine: open, check the stamp, peek --> UNPLACED, bound for series/ or quarantine/
 *     stage:   does the instance exist? -----> PRESENT with the same data set, else quarantine/
 *        |     copied into incoming/
 *     sync:    source unchanged?, fdatasync
 *     publish: rename to the final name -----> PLACED; an instance that appeared meanwhile is
 *                                              compared as in stage
 *     seal:    folders synced ---------------> DECIDED; only now ARRIVED or QUARANTINED
 *
 * A received file is already staged, so it is examined there. If it is for series/, import_seal seals it later.
 */
#include "service/receiver/spool/import.h"

#include "base/durable.h"
#include "base/test_hook.h"
#include "service/common/layout.h"
#include "service/receiver/spool/replaced.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MAX_PUBLISHES 8 /* attempts while other imports take the name */

enum import_state {
    UNPLACED, /* folder/name does not have its bytes yet */
    PRESENT,  /* folder/name had them before */
    PLACED,   /* this batch has put them there */
    DECIDED,  /* the item's outcome is final */
};

enum import_target { SERIES, QUARANTINE };

struct work {
    struct import_item *item;
    enum import_state state;
    enum import_target target;
    int source; /* -1: not open */
    struct stat status;
    struct staged staged;                 /* empty: no file is staged, since it exists already */
    bool received;                        /* by import_received */
    const struct dicom_requestor *sender; /* of a received file */
    char folder[DICOM_UID_SIZE + 16];
    char name[QUARANTINE_NAME];
};

static bool
is_bound_for(const struct work *work, enum import_target target)
{
    return work->state != DECIDED && work->target == target;
}

/* ------------------------------------------------------------------------ outcomes ------ */

static void
import_set_outcome(struct work *work, enum import_outcome outcome, int error)
{
    work->state = DECIDED;
    work->item->outcome = outcome;
    work->item->error = error;
}

void
import_unreadable(struct import_item *item, int error)
{
    struct import_report *report = &item->report;
    *report = (struct import_report){.code = CODE_FILE_UNREADABLE};
    snprintf(report->message, sizeof report->message,
             "It cannot be read (%s): check its permissions and its disk or share. It will be tried "
             "again every minute.",
             strerror(-error));
    item->outcome = IMPORT_UNREADABLE;
    item->error = error;
}

static void
import_set_unreadable(struct work *work, int error)
{
    import_unreadable(work->item, error);
    work->state = DECIDED;
}

/* Errors from this process's lack of descriptors or memory; the file is not the cause. */
static bool
is_shortage(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

static void
import_set_unopened(struct work *work, int error)
{
    if (is_shortage(error))
        import_set_outcome(work, IMPORT_RETRY, error);
    else if (error == -ENOENT)
        import_set_outcome(work, IMPORT_GONE, 0);
    else if (error == -ELOOP || error == -ENOTDIR)
        import_set_outcome(work, IMPORT_CHANGED, 0);
    else
        import_set_unreadable(work, error);
}

/* ------------------------------------------------------------------------- examine ------ */

static int
original_path(const struct import_item *item, char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s/%s", item->folder, item->relative);
    return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static void
bind_for_quarantine(struct work *work, enum code code, const char *message)
{
    struct import_report *report = &work->item->report;
    report->code = code;
    report->replaced = 0;
    snprintf(report->message, sizeof report->message, "%s", message);
    work->target = QUARANTINE;
}

static void
name_instance(struct work *work, int32_t replaced)
{
    struct import_report *report = &work->item->report;
    report->replaced = replaced;
    replaced_name(report->sop_instance_uid, replaced, work->name);
}

/* Reads the header from the open file, since the path may name another file by now. */
static void
examine_header(struct work *work)
{
    struct error error = {0};
    /* Messages must not contain the file's name, which may be a patient's. */
    int rc = import_peek(work->source, "The file", work->sender, work->item, &error);
    if (is_shortage(rc))
        import_set_outcome(work, IMPORT_RETRY, rc);
    else if (rc == -ECANCELED)
        import_set_outcome(work, IMPORT_GONE, -ECONNABORTED);
    else if (rc && error.code == CODE_OWN_RESULT)
        import_set_outcome(work, IMPORT_OWN_RESULT, 0);
    else if (rc && error.code == CODE_FILE_UNREADABLE)
        import_set_unopened(work, rc);
    else if (rc)
        bind_for_quarantine(work, error.code, error.message);
    struct import_report *report = &work->item->report;
    if (rc == 0) {
        snprintf(work->folder, sizeof work->folder, LAYOUT_SERIES "/%s", report->series_uid);
        name_instance(work, 0);
        work->target = SERIES;
    } else if (work->state != DECIDED || error.code == CODE_OWN_RESULT) {
        /* The series of a rejected file can then be reported as incomplete. */
        struct dicom_identity identity;
        dicom_identify_open(work->source, "The file", &identity);
        memcpy(report->sop_instance_uid, identity.sop_instance_uid, DICOM_UID_SIZE);
        memcpy(report->series_uid, identity.series_uid, DICOM_UID_SIZE);
        memcpy(report->study_uid, identity.study_uid, DICOM_UID_SIZE);
    }
}

static void
examine(struct work *work)
{
    char path[PATH_MAX];
    int error = original_path(work->item, path);
    if (!error) {
        const int folder = open(work->item->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        /* Must not block if the name is now a FIFO. */
        work->source = folder < 0 ? -errno : file_open_below(folder, work->item->relative, O_RDONLY | O_NONBLOCK);
        error = work->source < 0 ? work->source : 0;
        if (folder >= 0)
            close(folder);
    }
    if (!error && fstat(work->source, &work->status) != 0)
        error = -errno;
    if (error) {
        import_set_unopened(work, error);
        return;
    }
    struct file_stamp stamp;
    file_stamp_from(&work->status, &stamp);
    if (!S_ISREG(work->status.st_mode) || !file_stamp_equal(&stamp, &work->item->stamp)) {
        import_set_outcome(work, IMPORT_CHANGED, 0);
        return;
    }
    examine_header(work);
}

/* --------------------------------------------------------------------------- twins ------ */

static bool
is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Returns whether a kept original was imported before a restart, or is an instance that was replaced since. Compares
 * size and time only. That is sufficient, since a kept original is not changed. */
static bool
is_same_as_before(const struct work *work, const struct stat *twin)
{
    const struct timespec *time = &work->status.st_mtim;
    if (work->item->after != CONF_KEEP || work->target != SERIES)
        return false;
    if (work->item->report.replaced > 0 && is_older(time, &twin->st_mtim))
        return true;
    return twin->st_size == work->status.st_size && !is_older(time, &twin->st_mtim) && !is_older(&twin->st_mtim, time);
}

/* The same data set is described as in the stored file, which may differ in its bytes. */
static int
compare_with_twin(struct work *work, int twin, enum dicom_likeness *likeness)
{
    struct stat status;
    struct error ignored;
    if (fstat(twin, &status) != 0)
        return -errno;
    *likeness = DICOM_SAME;
    if (is_same_as_before(work, &status))
        return 0;
    int error = dicom_compare(work->source, twin, likeness);
    if (!error && *likeness == DICOM_SAME)
        error = import_peek(twin, work->name, NULL, work->item, &ignored);
    return error;
}

static int
import_digest(int fd, uint64_t *digest)
{
    char buffer[65536];
    off_t at = 0;
    *digest = 0;
    for (;;) {
        ssize_t got = pread(fd, buffer, sizeof buffer, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        *digest = file_digest(*digest, buffer, (size_t)got);
        at += got;
    }
}

static void
find_quarantine_place(const struct store *store, struct work *work)
{
    uint64_t digest;
    int error = work->received ? import_digest(work->source, &digest) : 0;
    if (error) {
        import_set_outcome(work, IMPORT_RETRY, error);
        return;
    }
    /* A rejected file may be sent repeatedly, each time with a new modification time. */
    if (work->received)
        work->item->stamp.mtime_ns = (int64_t)digest;
    char path[PATH_MAX];
    original_path(work->item, path); /* checked in examine */
    char folder[QUARANTINE_FOLDER];
    if (quarantine_find(store_fd(store), path, &work->item->stamp, folder, work->name) == 0)
        work->state = PRESENT;
    else
        quarantine_folder(time(NULL), folder);
    snprintf(work->folder, sizeof work->folder, "%s", folder);
}

/* Opens the newest file of the instance and sets its name. Returns -ENOENT if there is none. */
static int
import_open_twin(const struct store *store, struct work *work)
{
    int32_t replaced;
    char path[IMPORT_PATH];
    int error = replaced_find(store, work->folder, work->item->report.sop_instance_uid, &replaced);
    if (error)
        return error;
    name_instance(work, replaced);
    snprintf(path, sizeof path, "%s/%s", work->folder, work->name);
    const int twin = file_open_below(store_fd(store), path, O_RDONLY);
    if (twin == -ENOENT) /* removed meanwhile */
        name_instance(work, replaced + 1);
    return twin;
}

/* Compares the file with a stored instance of the same UID. The file is then present, rejected, or
 * the next one in its place. */
static void
meet_twin(const struct store *store, struct work *work)
{
    const int twin = import_open_twin(store, work);
    if (twin == -ENOENT)
        return;
    enum dicom_likeness likeness;
    int error = twin < 0 ? twin : compare_with_twin(work, twin, &likeness);
    if (twin >= 0)
        close(twin);
    if (error) {
        import_set_outcome(work, IMPORT_RETRY, error);
    } else if (likeness == DICOM_SAME) {
        work->state = PRESENT;
    } else if (work->item->resent == CONF_NEWEST) {
        name_instance(work, work->item->report.replaced + 1);
    } else {
        const bool recoded = likeness == DICOM_RECODED;
        char message[sizeof work->item->report.message];
        snprintf(message, sizeof message,
                 "Another file with this SOP Instance UID is already in the series, %s. The first one "
                 "is kept. To use the newest, set resent = \"newest\" for this %s; otherwise %s.",
                 recoded ? "in another transfer syntax, so they cannot be compared" : "and its data set differs",
                 work->received ? "peer" : "inbox",
                 recoded ? "let the sender use one transfer syntax for an instance"
                         : "compare the two, and delete the wrong one at its sender");
        bind_for_quarantine(work, CODE_DUPLICATE_UID_DIFFERENT, message);
    }
}

/* Sets the final folder and name. A file for series/ may become one for quarantine/. */
static void
import_find_place(const struct store *store, struct work *work)
{
    if (is_bound_for(work, SERIES))
        meet_twin(store, work);
    if (is_bound_for(work, QUARANTINE))
        find_quarantine_place(store, work);
}

/* ---------------------------------------------------------- stage, sync, publish ------ */

static void
stage(struct store *store, struct work *work, int64_t reserve_bytes)
{
    import_find_place(store, work);
    if (work->state != UNPLACED)
        return;
    if (work->target == QUARANTINE) {
        /* Rejected files must not use up the free space that valid files need. */
        struct statvfs disk;
        if (fstatvfs(store_fd(store), &disk) != 0 ||
            (uint64_t)work->item->stamp.size + (uint64_t)reserve_bytes > (uint64_t)disk.f_bavail * disk.f_frsize) {
            import_set_outcome(work, IMPORT_QUARANTINED, 0);
            return;
        }
    }
    bool source_failed;
    int error = store_stage(store, work->source, &work->status, work->item->token, &work->staged, &source_failed);
    if (error && source_failed)
        import_set_unreadable(work, error);
    else if (error)
        import_set_outcome(work, IMPORT_RETRY, error);
}

static void
import_sync(const struct store *store, struct work *work)
{
    int error = 0;
    if (work->target == SERIES && store_wants_digests(store)) {
        /* The disk writes the staged file meanwhile. */
        struct digest digest;
        error = digest_file(work->staged.fd, -1, &digest, NULL);
        if (!error)
            memcpy(work->item->report.sha256, digest.sha256, sizeof digest.sha256);
    }
    if (!error)
        error = store_sync(&work->staged);
    if (error)
        import_set_outcome(work, IMPORT_RETRY, error);
}

/* Renames the file to its final name. Instances that appeared meanwhile may change its place. */
static void
import_publish(struct store *store, struct work *work)
{
    for (int i = 0; work->state == UNPLACED && i < MAX_PUBLISHES; i++) {
        const enum import_target target = work->target;
        crash_point("intake_after_copy_before_rename");
        int error = store_publish(store, &work->staged, work->folder, work->name);
        if (!error) {
            work->state = PLACED;
            crash_point("intake_after_rename_before_arrived");
        } else if (error != -EEXIST) {
            import_set_outcome(work, IMPORT_RETRY, error);
        } else if (target == QUARANTINE) {
            work->state = PRESENT; /* the name contains the digest of the bytes */
        } else {
            meet_twin(store, work);
        }
        if (work->state == UNPLACED && work->target != target)
            find_quarantine_place(store, work);
    }
    if (work->state == UNPLACED)
        import_set_outcome(work, IMPORT_RETRY, -EAGAIN);
}

/* ---------------------------------------------------------------------------- seal ------ */

static void
import_explain(struct store *store, struct work *work)
{
    char path[PATH_MAX];
    original_path(work->item, path); /* checked in examine */
    const struct import_report *report = &work->item->report;
    const struct quarantine_reason reason = {
        .code = report->code,
        .message = report->message,
        .original = path,
        .series_uid = report->series_uid,
        .sop_instance_uid = report->sop_instance_uid,
    };
    int error = quarantine_explain(store_fd(store), work->folder, work->name, &reason, time(NULL));
    if (error)
        import_set_outcome(work, IMPORT_RETRY, error);
}

static void
arrive(struct work *work)
{
    struct import_item *item = work->item;
    snprintf(item->report.path, sizeof item->report.path, "%s/%s", work->folder, work->name);
    if (work->state != PLACED || work->target != SERIES)
        item->report.sha256[0] = '\0'; /* another file is there */
    import_set_outcome(work, work->target == SERIES ? IMPORT_ARRIVED : IMPORT_QUARANTINED, 0);
}

/* Syncs each folder once, for its first file. The other files share the result. */
static void
seal_all(struct store *store, struct work *works, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (works[i].state == DECIDED)
            continue;
        char folder[sizeof works[i].folder];
        memcpy(folder, works[i].folder, sizeof folder);
        int error = store_sync_folder(store, folder);
        for (size_t j = i; j < count; j++) {
            struct work *work = &works[j];
            if (work->state == DECIDED || strcmp(work->folder, folder) != 0)
                continue;
            if (!error) {
                arrive(work);
                continue;
            }
            /* A file that may not be durable is removed, so that the next attempt starts again. */
            char path[IMPORT_PATH];
            snprintf(path, sizeof path, "%s/%s", folder, work->name);
            if (work->state == PLACED)
                unlinkat(store_fd(store), path, 0);
            import_set_outcome(work, IMPORT_RETRY, error);
        }
    }
}

static void
import_release(struct store *store, struct work *work)
{
    store_discard(store, &work->staged);
    if (work->source >= 0)
        close(work->source);
}

void
import_batch(struct store *store, int64_t reserve_bytes, struct import_item *const *items, size_t count)
{
    struct work *works = calloc(count, sizeof *works);
    if (!works) {
        for (size_t i = 0; i < count; i++) {
            items[i]->outcome = IMPORT_RETRY;
            items[i]->error = -ENOMEM;
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        works[i] = (struct work){.item = items[i], .source = -1, .staged.fd = -1};
        import_forget(items[i]);
        examine(&works[i]);
        stage(store, &works[i], reserve_bytes);
    }
    for (size_t i = 0; i < count; i++) {
        struct file_stamp now;
        if (works[i].state != UNPLACED)
            continue;
        if (file_stamp_of(works[i].source, &now) == 0 && file_stamp_equal(&now, &items[i]->stamp))
            import_sync(store, &works[i]);
        else
            import_set_outcome(&works[i], IMPORT_CHANGED, 0);
    }
    for (size_t i = 0; i < count; i++) {
        if (works[i].state == UNPLACED)
            import_publish(store, &works[i]);
        if (is_bound_for(&works[i], QUARANTINE))
            import_explain(store, &works[i]);
    }
    seal_all(store, works, count);
    for (size_t i = 0; i < count; i++)
        import_release(store, &works[i]);
    free(works);
}

/* ------------------------------------------------------------------------- received ------ */

void
import_received(struct store *store, struct staged *staged, const struct import_claim *claim, struct import_item *item)
{
    struct work work = {.item = item, .staged = *staged, .received = true, .sender = claim->sender};
    *staged = (struct staged){.fd = -1};
    import_forget(item);
    item->after = CONF_DELETE; /* compare instances by their bytes */
    work.source = fcntl(work.staged.fd, F_DUPFD_CLOEXEC, 0);
    if (work.source >= 0)
        store_hurry(&work.staged);
    if (work.source < 0 || fstat(work.source, &work.status) != 0) {
        import_set_outcome(&work, IMPORT_RETRY, -errno);
    } else {
        file_stamp_from(&work.status, &item->stamp);
        examine_header(&work);
        const struct import_report *report = &item->report;
        if (is_bound_for(&work, SERIES) && (strcmp(report->sop_class_uid, claim->sop_class_uid) != 0 ||
                                            strcmp(report->sop_instance_uid, claim->sop_instance_uid) != 0))
            bind_for_quarantine(&work, CODE_COMMAND_MISMATCH,
                                "The SOP Class or SOP Instance UID in the data set differs from that of the "
                                "C-STORE command: correct the sender.");
        import_find_place(store, &work);
    }
    if (work.state == UNPLACED)
        import_sync(store, &work);
    if (work.state == UNPLACED)
        import_publish(store, &work);
    if (is_bound_for(&work, SERIES)) {
        arrive(&work); /* the caller seals it */
    } else if (is_bound_for(&work, QUARANTINE)) {
        import_explain(store, &work);
        seal_all(store, &work, 1);
    }
    import_release(store, &work);
}

int
import_seal(struct store *store, const struct import_item *item)
{
    char folder[IMPORT_PATH];
    const char *name = strrchr(item->report.path, '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(name - item->report.path), item->report.path);
    return store_sync_folder(store, folder);
}
