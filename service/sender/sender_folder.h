/*
 * sender_folder.h - a folder as a destination: FOLDER/<SOP Instance UID>.dcm, whole and on disk, or not
 * there at all.
 */
#ifndef NOCTULE_SERVICE_SENDER_SENDER_FOLDER_H
#define NOCTULE_SERVICE_SENDER_SENDER_FOLDER_H

#include "dicom/dicom.h"

/*
 * Copies `file`. What is there with the same bytes counts as delivered; with others it stays, and
 * nothing is delivered. The folder is made when it is missing. Blocks. Codes: FOLDER_CONFLICT
 * (-EEXIST), FOLDER_UNWRITABLE, DISK_FULL, FILE_UNREADABLE.
 */
int folder_deliver(const char *folder, const char *file, const char *sop_instance,
                   struct error *error);

#endif
