/*
 * web_kept.h - open files of the slice viewer, with decoded blocks, for browsers that scroll: the next planes need no decoding.
 *
 * All functions are thread-safe. A file that was replaced or removed is not used again. Each takes up to 16 MiB beside its masks.
 */
#ifndef NOCTULE_SERVICE_WEB_VIEWER_WEB_KEPT_H
#define NOCTULE_SERVICE_WEB_VIEWER_WEB_KEPT_H

#include "service/common/slices/slices.h"

#include <pthread.h>
#include <sys/stat.h>

enum { WEB_KEPT_FILES = 8, WEB_KEPT_MS = 30000 };

struct web_kept {
    pthread_mutex_t lock;

    struct web_kept_file {
        struct slices *slices; /* NULL: free */
        int fd;
        struct stat status;
        bool is_used;    /* by a thread */
        int64_t used_ms; /* steady time of its last use */
    } files[WEB_KEPT_FILES];
};

/*
 * Opens the file for a plane of a view, or finds it open. Takes over `fd`, also on errors. *file belongs to the calling thread
 * until web_kept_return(). Returns 0 or -errno with an error; -EAGAIN: all are in use.
 */
int web_kept_open(struct web_kept *kept, int fd, enum slices_view view, int64_t at, struct web_kept_file **file,
                  struct error *error);
/* `failed`: the file is closed. */
void web_kept_return(struct web_kept *kept, struct web_kept_file *file, bool failed);

/* Closes files that were not used for WEB_KEPT_MS; 0 as time: all. */
void web_kept_close_old(struct web_kept *kept, int64_t now_ms);

#endif
