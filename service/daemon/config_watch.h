/*
 * config_watch.h - finds faults of the configuration file that no reload has met yet: the alert config_file.
 *
 * A change of a file, or of a folder of @overlay, is found by its inode, size and times. Only then is the configuration
 * loaded, and every 10 s while it has a fault. One thread: the loop's.
 */
#ifndef NOCTULE_SERVICE_DAEMON_CONFIG_WATCH_H
#define NOCTULE_SERVICE_DAEMON_CONFIG_WATCH_H

#include "base/error.h"

#include <stdint.h>

struct config_watch {
    const char *file, *root; /* as given to noctuled; root NULL: none */
    char *paths;             /* files and folders of the last load, one per line; NULL: none yet */
    uint64_t print;          /* of paths, before the last load */
    int64_t again_ms;        /* of clock_steady_ms, when a faulty configuration is loaded again */
    int64_t since_ms;        /* Unix time of the first load with a fault; 0: no fault */
    struct error fault;
    struct error refused; /* the fault of the last reload, which is the alert `configuration` */
};

/* Must be called after each load of the configuration. `refused`: why a reload failed, NULL: it is in force. */
void config_watch_loaded(struct config_watch *watch, const struct error *refused);
/* Loads the configuration if it may have changed. */
void config_watch_check(struct config_watch *watch);
/* Returns why noctuled would not start with the file, or NULL. The fault of the last reload does not count. */
const char *config_watch_fault(const struct config_watch *watch);

#endif
