/* input_objects.c - see input_objects.h. */
#include "service/cli/input/input_objects.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
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

static bool
uid_is(const char *uid, const char *text, size_t length)
{
    return strncmp(uid, text, length) == 0 && !uid[length];
}

static bool
has_instance(const struct headers *series, const char *uid, size_t length)
{
    for (size_t i = 0; i < series->count; i++)
        if (uid_is(series->instances[i]->sop_instance_uid, uid, length))
            return true;
    return false;
}

/* Returns whether a reference line of an object, without its end, names the series. */
static bool
line_names(const char *line, size_t length, const struct headers *series)
{
    static const char *const kinds[] = {OBJECT_OF_SERIES, OBJECT_OF_FRAME, OBJECT_OF_INSTANCE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t skip = strlen(kinds[i]);
        if (length <= skip || strncmp(line, kinds[i], skip) != 0)
            continue;
        const struct dicom_instance *first = series->instances[0];
        return i == 2 ? has_instance(series, line + skip, length - skip)
                      : uid_is(i == 0 ? first->series_uid : first->frame_of_reference_uid,
                               line + skip, length - skip);
    }
    return false;
}

static bool
object_names(const struct object_peek *peek, const struct headers *series)
{
    for (const char *line = peek->references; *line;) {
        const size_t length = strcspn(line, "\n");
        if (line_names(line, length, series))
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

size_t
input_objects_of(const struct input_objects *all, const struct headers *series, char **paths)
{
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++)
        if (object_names(all->items[i].peek, series))
            paths[count++] = all->items[i].path;
    return count;
}

void
input_objects_free(struct input_objects *all)
{
    for (size_t i = 0; i < all->count; i++)
        object_peek_free(all->items[i].peek);
    free(all->items);
    *all = (struct input_objects){0};
}
