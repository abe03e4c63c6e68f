/* input_objects.h - RTSTRUCT, SEG and SR objects among the images of `noctule run`. */
#ifndef NOCTULE_SERVICE_CLI_INPUT_INPUT_OBJECTS_H
#define NOCTULE_SERVICE_CLI_INPUT_INPUT_OBJECTS_H

#include "dicom/read/annotation/object_peek.h"
#include "service/pipeline/headers.h"

struct input_object {
    char *path; /* borrowed */
    struct object_peek *peek;
};

struct input_objects {
    struct input_object *items;
    size_t count, room;
};

/* Adds a file. Returns 1; 0 with the reason if it is not such an object; or -ENOMEM. */
int input_objects_add(struct input_objects *all, char *path, struct error *reason);

/* Writes the paths of the objects that refer to a series, its images or its frame of reference.
 * `paths` must have all->count elements. Returns their number. */
size_t input_objects_of(const struct input_objects *all, const struct headers *series,
                        char **paths);

void input_objects_free(struct input_objects *all);

#endif
