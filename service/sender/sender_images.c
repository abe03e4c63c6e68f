/* sender_images.c - see sender.h. */
#include "service/sender/sender.h"

#include "base/text.h"
#include "service/common/layout.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Skips the newer files of replaced instances: links name them. */
static int
is_instance(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && text_ends_in(entry->d_name, ".dcm") && !strchr(entry->d_name, LAYOUT_REPLACED);
}

static char *
image_path(const char *folder, const char *name)
{
    char *path, link[16] = "", *newest;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return NULL;
    if (readlink(path, link, sizeof link - 1) <= 0 || link[0] != LAYOUT_REPLACED)
        return path;
    const int size = asprintf(&newest, "%.*s%s.dcm", (int)(strlen(path) - strlen(".dcm")), path, link);
    free(path);
    return size < 0 ? NULL : newest;
}

int
sender_images_find(const char *folder, struct sender_images *images, struct error *error)
{
    struct dirent **entries = NULL;
    *images = (struct sender_images){0};
    const int count = scandir(folder, &entries, is_instance, alphasort);
    if (count <= 0)
        return error_set(error, count < 0 ? -errno : -ENOENT, CODE_FILE_UNREADABLE,
                         "The images in %s cannot be read (%s). They may have been removed.", folder,
                         count < 0 ? strerror(errno) : "there is none");
    images->files = calloc((size_t)count, sizeof *images->files);
    int rc = images->files ? 0 : -ENOMEM;
    for (int i = 0; i < count; i++) {
        char *path = rc ? NULL : image_path(folder, entries[i]->d_name);
        free(entries[i]);
        if (path)
            images->files[images->count++] = path;
        else
            rc = -ENOMEM;
    }
    free(entries);
    return rc ? error_set(error, rc, CODE_OUT_OF_MEMORY, "There is not enough memory to list the images.") : 0;
}

void
sender_images_free(struct sender_images *images)
{
    for (size_t i = 0; i < images->count; i++)
        free(images->files[i]);
    free(images->files);
}
