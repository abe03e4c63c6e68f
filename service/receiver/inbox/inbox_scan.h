/* inbox_scan.h - read folders and files in limited steps, each in one pool thread. Also the rules
 * for names and paths. */
#ifndef NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_SCAN_H
#define NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_SCAN_H

#include "service/common/file_ops.h"
#include "service/receiver/inbox/inbox_inotify.h"

#include <dirent.h>

#define SCAN_STEP 256 /* files per step: about a millisecond on a local disk */

/* Returns whether a name is ignored: hidden names, and those that end in ".part", ".tmp" or ".partial". */
bool scan_ignores(const char *name);

/* Returns NULL, or a message with the reason for which `inbox` cannot be an inbox. All paths must
 * be absolute and resolved. The inbox may be below the root, but not in one of its own folders, and
 * the root must not be in the inbox. */
const char *scan_conflict(const char *inbox, const char *root);
/* Returns whether `path` is the folder `above` or below it. */
bool scan_is_within(const char *path, const char *above);

enum scan_kind {
    SCAN_ENTER, /* open a folder and watch it */
    SCAN_READ,  /* read its next SCAN_STEP entries */
    SCAN_LOOK,  /* look at the given files */
};

struct scan_found {
    char *relative; /* below the inbox; owned by the step */
    mode_t mode;    /* 0 after an error */
    bool renamed;   /* input: renamed into place */
    int error;      /* -errno */
    struct file_stamp stamp;
};

struct scan_step {
    enum scan_kind kind;
    const char *inbox, *root;      /* absolute; borrowed */
    const struct inotify *inotify; /* NULL: no inotify */
    char *folder;                  /* SCAN_ENTER: relative; "": the inbox itself; owned */
    DIR *directory;                /* set by SCAN_ENTER; read by SCAN_READ, which closes it at the end */
    /* Results: */
    int error;            /* the folder cannot be entered or read */
    const char *conflict; /* with -EINVAL: the message of scan_conflict */
    bool made;            /* the inbox was missing and was created */
    int descriptor;       /* of the watch; -errno if the folder cannot be watched */
    bool remote;          /* changes by other machines may not be reported */
    int64_t cpu_ns;       /* CPU time of the step */
    size_t count;
    struct scan_found found_files[SCAN_STEP];
};

/* Runs the step. Blocks. */
void scan_run(struct scan_step *step);
/* Frees the sights and the folder's name. Does not close the directory. */
void scan_clear(struct scan_step *step);

#endif
