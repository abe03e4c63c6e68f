/*
 * quarantine.h - where what cannot be processed is kept, and why:
 *
 *   quarantine/<YYYYMMDD>/<digest>-<name>               the file, byte for byte
 *   quarantine/<YYYYMMDD>/<digest>-<name>.reason.json   code, message, original path, time
 *
 * The digest is of the original path, size and modification time, so the same file found again
 * (another sweep, another run) has the same name and is not stored twice. Any thread.
 */
#ifndef NOCTULE_QUARANTINE_H
#define NOCTULE_QUARANTINE_H

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

/* "9f86d081884c7d65-IM0001.dcm": control characters and bytes that are not UTF-8 become '_', so that
 * a row says the name as it is; long names keep their end. */
void quarantine_name(const char *original, const struct file_stamp *stamp,
                     char name[QUARANTINE_NAME]);
/* "quarantine/20261121", of the day in UTC. */
void quarantine_folder(time_t now, char folder[QUARANTINE_FOLDER]);

/* Is there a file of this name, from whatever day? Then its folder; -ENOENT. */
int quarantine_find(int root, const char *name, char folder[QUARANTINE_FOLDER]);

/* Writes the reason beside the file, unless it is there. The folder is the caller's to sync. */
int quarantine_explain(int root, const char *folder, const char *name,
                       const struct quarantine_reason *reason, time_t now);

#endif
