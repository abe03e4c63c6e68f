/* input_objects.c - see input.h. */
#include "service/cli/input/input.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns 1; 0 with the reason if it is not such an object; or -ENOMEM. */
static int
input_objects_add(struct input_objects *all, char *path, struct error *reason)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct object_peek *peek = NULL;
    if (fd < 0)
        return 0;
    int rc = object_peek_open(fd, path, NULL, &peek, reason);
    close(fd);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    struct input_object *grown = array_grow(all->items, &all->room, all->count + 1, sizeof *grown);
    if (!grown) {
        object_peek_free(peek);
        return -ENOMEM;
    }
    all->items = grown;
    grown[all->count++] = (struct input_object){path, peek};
    return 1;
}

int
input_objects_sort(struct input_objects *all, struct input_skipped *skipped, char *path, const struct error *error)
{
    struct error reason = *error;
    const int rc = all && error->code == CODE_SOP_CLASS_UNSUPPORTED ? input_objects_add(all, path, &reason) : 0;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    /* of a file that is no such object either, the header has the better reason */
    const struct error *why = reason.code == CODE_SOP_CLASS_UNSUPPORTED ? error : &reason;
    return input_skipped_add(skipped, path, why->code, why->message);
}

/* Returns whether a reference line of an object, without its end, names the series. */
static bool
line_names(const char *line, size_t length, const struct headers *series)
{
    static const char *const kinds[] = {OBJECT_OF_SERIES, OBJECT_OF_FRAME, OBJECT_OF_INSTANCE};
    const struct dicom_instance *first = series->instances[0];
    const char *const uids[] = {first->series_uid, first->frame_of_reference_uid};
    size_t kind = 0;
    while (kind < 3 && strncmp(line, kinds[kind], strlen(kinds[kind])) != 0)
        kind++;
    const size_t skip = kind < 3 ? strlen(kinds[kind]) : length;
    if (length <= skip)
        return false;
    for (size_t i = 0; i < (kind == 2 ? series->count : 1); i++) {
        const char *uid = kind < 2 ? uids[kind] : series->instances[i]->sop_instance_uid;
        if (strncmp(uid, line + skip, length - skip) == 0 && !uid[length - skip])
            return true;
    }
    return false;
}

bool
input_object_is_of(const struct object_peek *peek, const struct headers *series)
{
    for (const char *line = peek->references; *line;) {
        const size_t length = strcspn(line, "\n");
        if (line_names(line, length, series))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

void
input_objects_free(struct input_objects *all)
{
    for (size_t i = 0; i < all->count; i++)
        object_peek_free(all->items[i].peek);
    free(all->items);
    *all = (struct input_objects){0};
}
