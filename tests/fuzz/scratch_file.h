/* scratch_file.h - inputs as files of a folder that is removed at the end of the process. */
#ifndef NOCTULE_FUZZ_SCRATCH_FILE_H
#define NOCTULE_FUZZ_SCRATCH_FILE_H

#include "tests/fuzz/must.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static char scratch_path[] = "/tmp/noctule-fuzz.XXXXXX";

static inline void
scratch_remove(void)
{
    static const char *const names[] = {"a.nii", "a.hdr", "a.nrrd", "a.nhdr", "a.img", "mask", "again", "slices"};
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch_path, names[i]);
        unlink(path);
    }
    rmdir(scratch_path);
}

/* Writes the file, one of the names above. Returns the descriptor of the folder. */
static inline int
scratch_file(const char *name, const void *bytes, size_t size)
{
    static int folder = -1;
    if (folder < 0) {
        must(mkdtemp(scratch_path) != NULL && atexit(scratch_remove) == 0);
        folder = open(scratch_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        must(folder >= 0);
    }
    const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    return folder;
}

#endif
