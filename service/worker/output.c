/* output.c - see output.h. */
#include "output.h"

#include "file_ops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".part"

struct output {
    char *path;
    int folder;
    bool made;      /* by this run */
    bool published; /* something of this run may be in place */
    char **names;   /* of the files made */
    size_t count;
};

static char *
part_name(const char *name)
{
    char *part;
    return asprintf(&part, ".%s" SUFFIX, name) < 0 ? NULL : part;
}

static bool
is_part(const char *name)
{
    size_t length = strlen(name);
    return name[0] == '.' && length > sizeof SUFFIX &&
           strcmp(name + length - (sizeof SUFFIX - 1), SUFFIX) == 0;
}

static bool
is_between(const char *name, const char *prefix, const char *suffix)
{
    size_t length = strlen(name), before = strlen(prefix), after = strlen(suffix);
    return length > before + after && strncmp(name, prefix, before) == 0 &&
           strcmp(name + length - after, suffix) == 0;
}

/* Files that a run puts there, by name. */
static bool
is_result(const char *name)
{
    static const char *const names[] = {
        "seg.dcm",      "seg-fractional.dcm", "sr.dcm",      "features.json",
        "features.csv", "patterns.json",      "preview.png", "job.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return is_between(name, "codes-", ".nrrd") || is_between(name, "pmap-", ".dcm");
}

static bool
was_made(const struct output *output, const char *name)
{
    for (size_t i = 0; i < output->count; i++) {
        if (strcmp(output->names[i], name) == 0)
            return true;
    }
    return false;
}

/* Removes every file that `chosen` names. */
static int
sweep(const struct output *output, bool (*chosen)(const struct output *output, const char *name))
{
    int copy = openat(output->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        int error = -errno;
        if (copy >= 0)
            close(copy);
        return error;
    }
    int error = 0;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (chosen(output, entry->d_name) && unlinkat(output->folder, entry->d_name, 0) != 0 &&
            errno != ENOENT)
            error = -errno;
    }
    closedir(entries);
    return error;
}

static bool
leftover(const struct output *output, const char *name)
{
    (void)output;
    return is_part(name);
}

static bool
outdated(const struct output *output, const char *name)
{
    return is_result(name) && !was_made(output, name);
}

/* ------------------------------------------------------------------------ opening, closing -- */

/* Makes the last part of `path` (whose parent is there); 1 when it is new, 0 when it was there. */
static int
make_one(char *path)
{
    if (mkdir(path, 0750) != 0)
        return errno == EEXIST ? 0 : -errno;
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        slash = NULL;
    if (slash)
        *slash = '\0';
    int error = file_sync_directory(AT_FDCWD, slash ? path : path[0] == '/' ? "/" : ".");
    if (slash)
        *slash = '/';
    if (error)
        rmdir(path);
    return error ? error : 1;
}

static int
make_all(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    size_t length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/')
        copy[--length] = '\0';
    int made = 0;
    for (char *at = copy + 1; made >= 0 && (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        made = make_one(copy);
        *at = '/';
    }
    if (made >= 0)
        made = make_one(copy);
    free(copy);
    return made;
}

/* File systems without locks of this kind are used without. */
static int
lock(int folder)
{
    if (flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return 0;
    return -EBUSY;
}

/* Unlocks, and takes the folder away if this run made it and nothing is in it. */
static void
release(struct output *output)
{
    if (output->made)
        rmdir(output->path);
    if (output->folder >= 0)
        close(output->folder);
    free(output->names);
    free(output->path);
    free(output);
}

static int
take_folder(struct output *output)
{
    output->folder = open(output->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (output->folder < 0)
        return -errno;
    if (faccessat(output->folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return -errno;
    int error = lock(output->folder);
    return error ? error : sweep(output, leftover);
}

int
output_open(const char *path, struct output **output)
{
    struct output *o = calloc(1, sizeof *o);
    char *copy = strdup(path);
    int made = o && copy ? make_all(path) : -ENOMEM;
    if (made < 0) {
        free(o);
        free(copy);
        return made;
    }
    *o = (struct output){.path = copy, .made = made > 0};
    int error = take_folder(o);
    if (error) {
        release(o);
        return error;
    }
    *output = o;
    return 0;
}

static void
remove_made(const struct output *output)
{
    for (size_t i = 0; i < output->count; i++) {
        char *part = part_name(output->names[i]);
        if (part)
            unlinkat(output->folder, part, 0);
        free(part);
        if (output->published)
            unlinkat(output->folder, output->names[i], 0);
    }
}

static void
forget_made(struct output *output)
{
    for (size_t i = 0; i < output->count; i++)
        free(output->names[i]);
    output->count = 0;
}

void
output_close(struct output *output)
{
    if (!output)
        return;
    remove_made(output);
    forget_made(output);
    release(output);
}

/* ------------------------------------------------------------------------------------ files - */

static int
remember(struct output *output, const char *name)
{
    char **grown = reallocarray(output->names, output->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    output->names = grown;
    grown[output->count] = strdup(name);
    if (!grown[output->count])
        return -ENOMEM;
    output->count++;
    return 0;
}

int
output_create(struct output *output, const char *name, int *fd)
{
    char *part = part_name(name);
    if (!part)
        return -ENOMEM;
    int error = remember(output, name);
    if (error == 0) {
        *fd =
            openat(output->folder, part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
        if (*fd < 0)
            error = -errno;
    }
    free(part);
    return error;
}

char *
output_part_path(const struct output *output, const char *name)
{
    char *path;
    return asprintf(&path, "%s/.%s" SUFFIX, output->path, name) < 0 ? NULL : path;
}

int
output_finish(int fd)
{
    int error = fdatasync(fd) != 0 ? -errno : 0;
    int closed = file_close(fd);
    return error ? error : closed;
}

int
output_publish(struct output *output)
{
    int error = 0;
    output->published = true;
    for (size_t i = 0; i < output->count && error == 0; i++) {
        char *part = part_name(output->names[i]);
        if (!part)
            error = -ENOMEM;
        else if (renameat(output->folder, part, output->folder, output->names[i]) != 0)
            error = -errno;
        free(part);
    }
    if (error == 0)
        error = sweep(output, outdated);
    if (error == 0 && fsync(output->folder) != 0)
        error = -errno;
    if (error) {
        remove_made(output);
        return error;
    }
    forget_made(output);
    output->made = false;
    return 0;
}
