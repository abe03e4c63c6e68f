/*
 * inbox_scan.h - looking at folders and files in bounded steps, each for one pool thread; and the rules
 * about names and places.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_SCAN_H
#define NOCTULE_SERVICE_RECEIVER_INBOX_INBOX_SCAN_H

#include "service/common/file_ops.h"
#include "service/receiver/inbox/inbox_inotify.h"

#include <dirent.h>

#define SCAN_STEP 256 /* files looked at in one step: about a millisecond on a local disk */

/* Names that are not taken in: hidden ones, and ".part", ".tmp", ".partial" at the end. */
bool scan_ignores(const char *name);

/*
 * Why files may not be taken in from `inbox`, a message, or NULL. All paths are absolute and
 * resolved; root may have the inbox below it, but not among its own folders, and not be in it.
 */
const char *scan_conflict(const char *inbox, const char *root);
/* Is `path` the folder `above`, or below it? */
bool scan_is_within(const char *path, const char *above);

enum scan_kind {
    SCAN_ENTER, /* opens a folder and watches it */
    SCAN_READ,  /* looks at its next SCAN_STEP entries */
    SCAN_LOOK,  /* looks at the files given */
};

struct scan_sight {
    char *relative; /* to the inbox; owned by the step */
    mode_t mode;    /* 0 when error */
    bool renamed;   /* given: renamed into place */
    int error;      /* -errno */
    struct file_stamp stamp;
};

struct scan_step {
    enum scan_kind kind;
    const char *inbox, *root;      /* absolute; not owned */
    const struct inotify *inotify; /* NULL: none */
    char *folder;                  /* SCAN_ENTER: relative, "" is the inbox itself; owned */
    DIR *directory; /* SCAN_ENTER gives it, SCAN_READ reads it and closes it at the end */
    /* Results */
    int error;            /* the folder cannot be entered or read on */
    const char *conflict; /* with -EINVAL: scan_conflict's message */
    bool made;            /* the inbox was missing and has been made */
    int descriptor;       /* of the watch; -errno when it cannot be watched */
    bool remote;          /* the folder changes behind this kernel's back, perhaps */
    int64_t cpu_ns;       /* the step took */
    size_t count;
    struct scan_sight sights[SCAN_STEP];
};

/* Does the step; blocks. */
void scan_run(struct scan_step *step);
/* Frees what the sights and the folder hold, not the directory. */
void scan_clear(struct scan_step *step);

#endif
