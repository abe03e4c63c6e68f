/* sender_images.h - the images of a stored series (LAYOUT_SERIES). */
#ifndef NOCTULE_SERVICE_SENDER_SENDER_IMAGES_H
#define NOCTULE_SERVICE_SENDER_SENDER_IMAGES_H

#include "base/error.h"

#include <stddef.h>

struct sender_images {
    char **files; /* paths, sorted */
    size_t count;
};

/* Finds the newest file of each instance in the folder of a series. The caller must call sender_images_free() in any case.
 * Code: FILE_UNREADABLE, also if there is none. */
int sender_images_find(const char *folder, struct sender_images *images, struct error *error);
void sender_images_free(struct sender_images *images);

#endif
