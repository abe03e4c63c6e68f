/* scratch_folder.h - a folder that a test may litter, and what to litter it with. */
#ifndef NOCTULE_SCRATCH_FOLDER_H
#define NOCTULE_SCRATCH_FOLDER_H

#include <check.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[64];

static inline void
scratch_make(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/noctule-unit.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
}

static inline int
scratch_remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline void
scratch_remove(void)
{
    ck_assert_int_eq(nftw(scratch, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* A path below the folder; good for a few calls. */
static inline const char *
scratch_path(const char *relative)
{
    static _Thread_local char paths[8][1024];
    static _Thread_local unsigned turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, relative);
    return path;
}

static inline void
scratch_folder(const char *relative)
{
    ck_assert_int_eq(mkdir(scratch_path(relative), 0755), 0);
}

static inline void
scratch_write(const char *relative, const void *bytes, size_t size)
{
    FILE *file = fopen(scratch_path(relative), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static inline bool
scratch_has(const char *relative)
{
    struct stat status;
    return lstat(scratch_path(relative), &status) == 0;
}

/* The whole file as text; the caller frees it. */
static inline char *
scratch_text(const char *relative)
{
    FILE *file = fopen(scratch_path(relative), "rb");
    ck_assert_msg(file != NULL, "%s is missing", relative);
    char *text = calloc(1, 65536);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_lt(fread(text, 1, 65535, file), 65535);
    fclose(file);
    return text;
}

#endif
