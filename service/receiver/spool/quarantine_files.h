/*
 * quarantine_files.h - the files of the quarantine and their reasons:
 *
 *     quarantine/<YYYYMMDD>/<digest>               the file, byte for byte
 *     quarantine/<YYYYMMDD>/<digest>.reason.json   code, message, original path, time
 *
 * The digest is of the original path, size and modification time. A file that is found again, by another sweep or run,
 * thus has the same name and is not stored twice. The original name may contain a patient's name. Events contain the
 * path in the quarantine, and only the reason file contains the original name. Thread-safe.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_QUARANTINE_FILES_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_QUARANTINE_FILES_H

#include "base/error.h"

#include "service/common/file_ops.h"

#include <time.h>

#define QUARANTINE_NAME   192
#define QUARANTINE_FOLDER 32

struct quarantine_reason {
    enum code code;
    const char *message;
    const char *original;                      /* absolute path */
    const char *series_uid, *sop_instance_uid; /* "": unknown */
};

/* Writes "quarantine/20261121", by the day in UTC. */
void quarantine_folder(time_t now, char folder[QUARANTINE_FOLDER]);

/* Finds the file in the folders of all days, also by its name of version 0.1.0 ("9f86d081884c7d65-IM0001.dcm"). Returns
 * 0 with name and folder, -ENOENT with the name for a new file ("9f86d081884c7d65"), or another -errno. */
int quarantine_find(int root, const char *original, const struct file_stamp *stamp, char folder[QUARANTINE_FOLDER],
                    char name[QUARANTINE_NAME]);

/* Writes the reason next to the file, unless it exists. The caller must sync the folder. Returns 0 or -errno. */
int quarantine_explain(int root, const char *folder, const char *name, const struct quarantine_reason *reason,
                       time_t now);

#endif
