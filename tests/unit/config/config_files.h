/*
 * config_files.h - configuration files in a temporary folder, for the tests of config/.
 */
#ifndef NOCTULE_CONFIG_FILES_H
#define NOCTULE_CONFIG_FILES_H

#include <check.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char test_folder[] = "/tmp/noctule-config-XXXXXX";

static inline void
make_test_folder(void)
{
    strcpy(test_folder + strlen(test_folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test_folder));
}

/* The path of a file in the folder; valid until the fourth call after. */
static inline const char *
test_path(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", test_folder, name);
    return path;
}

static inline const char *
write_bytes(const char *name, const char *bytes, size_t size)
{
    const char *path = test_path(name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static inline const char *
write_file(const char *name, const char *text)
{
    return write_bytes(name, text, strlen(text));
}

static inline void
remove_test_folder(void)
{
    DIR *folder = opendir(test_folder);
    ck_assert_ptr_nonnull(folder);
    const struct dirent *entry;
    while ((entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ck_assert_int_eq(remove(test_path(entry->d_name)), 0);
    closedir(folder);
    ck_assert_int_eq(rmdir(test_folder), 0);
}

/* Reads a whole text file; malloc'd. */
static inline char *
read_text_file(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    char *text = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(text);
    size_t size = fread(text, 1, (1 << 20) - 1, file);
    ck_assert_uint_gt(size, 0);
    fclose(file);
    return text;
}

/* Runs the one test case of a program. */
static inline int
run_case(TCase *tcase, const char *name)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

#endif
