/*
 * replaced.h - instances that were received again with another data set and replaced the first:
 *
 *     series/<Series>/<SOP>.dcm           the first
 *     series/<Series>/<SOP>+2.dcm         its second replacement
 *     series/<Series>/<SOP>.dcm -> "+2"   replaces the first once the row has the new path
 *
 * A stored file must never be overwritten. A reader with the paths of an older revision thus finds
 * the old bytes or none; therefore the link has no valid target. The row's path counts, and the
 * highest number is the newest. After a crash both files may exist. Both are then reported, the row
 * takes the higher one, and the lower one is removed. Thread-safe.
 */
#ifndef NOCTULE_SERVICE_RECEIVER_SPOOL_REPLACED_H
#define NOCTULE_SERVICE_RECEIVER_SPOOL_REPLACED_H

#include "service/receiver/spool/store.h"

#include "dicom/dicom.h"

#define REPLACED_NAME (DICOM_UID_SIZE + 20)

/* Writes the name of the file after `times` replacements; 0: the first. */
void replaced_name(const char *sop_instance_uid, int32_t times, char name[REPLACED_NAME]);
/* Returns the number in such a name, or in a path that ends in one. */
int32_t replaced_times(const char *path);

/* Finds the number of replacements from the files in the folder (below the root). The file itself
 * may be gone. Returns 0, or -ENOENT if there is none. */
int replaced_find(const struct store *store, const char *folder, const char *sop_instance_uid, int32_t *times);

/* Removes the replaced files. The row must have the path of file number `times`, which must be on
 * disk. Returns 0 or -errno. */
int replaced_retire(const struct store *store, const char *folder, const char *sop_instance_uid, int32_t times);

#endif
