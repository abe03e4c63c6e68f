/*
 * replaced.h - instances that came again with another data set, which took the place of the first:
 *
 *   series/<Series>/<SOP>.dcm           the first
 *   series/<Series>/<SOP>+2.dcm         what came after it had been replaced once
 *   series/<Series>/<SOP>.dcm -> "+2"   once the row says so, in the place of the first
 *
 * A stored file is never written over, so that who reads a series by the paths of an older revision
 * finds the old bytes or nothing; hence the link that leads nowhere. The row's path is what counts,
 * and the highest number is the newest. After a crash both files may be there: both are reported,
 * the row takes the higher, and the lower is removed then. Any thread.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_REPLACED_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_REPLACED_H

#include "service/receiver/spool/store.h"

#include "dicom/dicom.h"

#define REPLACED_NAME (DICOM_UID_SIZE + 20)

/* The file's name, replaced so many times (0: the first). */
void replaced_name(const char *sop_instance_uid, int32_t times, char name[REPLACED_NAME]);
/* The number in such a name, or a path that ends with one. */
int32_t replaced_times(const char *path);

/* How many times it was replaced, by what is in the folder (below the root); -ENOENT when it holds
 * none. The file itself may be gone. */
int replaced_find(const struct store *store, const char *folder, const char *sop_instance_uid,
                  int32_t *times);

/* Removes those that were replaced before; the row names the file of `times`, which is on disk. */
int replaced_retire(const struct store *store, const char *folder, const char *sop_instance_uid,
                    int32_t times);

#endif
