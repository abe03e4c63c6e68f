/*
 * sender_folder.h - a folder as a destination: writes FOLDER/<SOP Instance UID>.dcm atomically and
 * synced.
 */
#ifndef NOCTULE_SERVICE_SENDER_SENDER_FOLDER_H
#define NOCTULE_SERVICE_SENDER_SENDER_FOLDER_H

#include "dicom/dicom.h"

/*
 * Copies `file`. An existing file with the same bytes counts as delivered. One with other bytes
 * stays, and the call fails. Creates the folder if it is missing. Blocks. Returns 0, or -errno with
 * a code: FOLDER_CONFLICT (-EEXIST), FOLDER_UNWRITABLE, DISK_FULL or FILE_UNREADABLE.
 */
int sender_folder_deliver(const char *folder, const char *file, const char *sop_instance,
                          struct error *error);

#endif
