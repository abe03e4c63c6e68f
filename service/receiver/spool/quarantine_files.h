/*
 * quarantine_files.h - where what cannot be processed is kept, and why:
 *
 *   quarantine/<YYYYMMDD>/<digest>               the file, byte for byte
 *   quarantine/<YYYYMMDD>/<digest>.reason.json   code, message, original path, time
 *
 * The digest is of the original path, size and modification time, so the same file found again
 * (another sweep, another run) has the same name and is not stored twice. The original name may be a patient's: the path
 * stands in events, and the name in the reason alone. Any thread.
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
    const char *series_uid, *sop_instance_uid; /* "" when not known */
};

/* "quarantine/20261121", of the day in UTC. */
void quarantine_folder(time_t now, char folder[QUARANTINE_FOLDER]);

/*
 * Finds the file of any day, also under its name of version 0.1.0 ("9f86d081884c7d65-IM0001.dcm"). Sets name and folder, or
 * returns -ENOENT with the name for a new one ("9f86d081884c7d65"), or another -errno.
 */
int quarantine_find(int root, const char *original, const struct file_stamp *stamp,
                    char folder[QUARANTINE_FOLDER], char name[QUARANTINE_NAME]);

/* Writes the reason beside the file, unless it is there. The folder is the caller's to sync. */
int quarantine_explain(int root, const char *folder, const char *name,
                       const struct quarantine_reason *reason, time_t now);

#endif
