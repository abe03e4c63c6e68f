/* The codes, their document, and the contents of an error. */
#include "base/error.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT NOCTULE_SOURCE_DIR "/docs/codes.md"

enum kind { LASTING, PASSING };

static const struct {
    enum code code;
    const char *name;
    enum kind kind;
    const char *where, *meaning, *to_do;
} rows[] = {

#define CODE(name, kind, where, meaning, to_do) {CODE_##name, #name, kind, where, meaning, to_do},
#include "base/codes.def"
#undef CODE
};

enum { ROWS = sizeof rows / sizeof rows[0] };

START_TEST(names_are_found_again)
{
    for (size_t i = 0; i < ROWS; i++) {
        ck_assert_str_eq(code_name(rows[i].code), rows[i].name);
        ck_assert_int_eq(code_find(rows[i].name), rows[i].code);
        ck_assert_int_eq(code_passing(rows[i].code), rows[i].kind == PASSING);
        ck_assert_uint_lt(strlen(rows[i].name), CODE_NAME_SIZE);
    }
    ck_assert_str_eq(code_name(CODE_NONE), "");
    ck_assert_int_eq(code_find(""), CODE_NONE);
    ck_assert_int_eq(code_find("NO_SUCH_CODE"), CODE_NONE);
    ck_assert_int_eq(code_find("TAG_MISSING "), CODE_NONE);
    ck_assert(!code_passing(CODE_NONE));
}

END_TEST

/* The document's table is the one that the programs hold, row by row. */
START_TEST(the_document_is_the_table)
{
    FILE *document = fopen(DOCUMENT, "r");
    ck_assert_ptr_nonnull(document);
    char line[2048], expected[2048];
    bool found = false;
    while (!found && fgets(line, sizeof line, document))
        found = strcmp(line, "|---|---|---|---|---|\n") == 0;
    ck_assert(found);
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(expected, sizeof expected, "| `%s` | %s | %s | %s | %s |\n", rows[i].name,
                 rows[i].kind == PASSING ? "transient" : "permanent", rows[i].where, rows[i].meaning, rows[i].to_do);
        ck_assert_ptr_nonnull(fgets(line, sizeof line, document));
        ck_assert_str_eq(line, expected);
    }
    ck_assert_ptr_null(fgets(line, sizeof line, document));
    fclose(document);
}

END_TEST

START_TEST(a_new_error_replaces_the_old_one)
{
    struct error error;
    memset(&error, 'x', sizeof error);
    ck_assert_int_eq(error_set_files(&error, -EBADMSG, CODE_TAG_MISSING, "/a", "/b", "%s lacks %d", "a", 7), -EBADMSG);
    ck_assert_int_eq(error.code, CODE_TAG_MISSING);
    ck_assert_str_eq(error.message, "a lacks 7");
    ck_assert_str_eq(error.file[0], "/a");
    ck_assert_str_eq(error.file[1], "/b");
    ck_assert_int_eq(error_set(&error, -ENOENT, CODE_NO_INPUT, "none"), -ENOENT);
    ck_assert_int_eq(error.code, CODE_NO_INPUT);
    ck_assert_str_eq(error.message, "none");
    ck_assert_str_eq(error.file[0], "");
    ck_assert_str_eq(error.file[1], "");
    ck_assert_int_eq(error_set(NULL, -EIO, CODE_IO_ERROR, "nobody asks"), -EIO);
}

END_TEST

START_TEST(long_messages_are_cut)
{
    struct error error;
    char text[2 * sizeof error.message];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    error_set(&error, 0, CODE_EMPTY, "%s", text);
    ck_assert_uint_eq(strlen(error.message), sizeof error.message - 1);
    ck_assert_str_eq(error.message + sizeof error.message - 6, "a ...");
}

END_TEST

/* After a word, or after a character if one word fills it; text that just fits stays whole. */
START_TEST(long_messages_are_cut_at_a_word)
{
    struct error error;
    char text[2 * sizeof error.message] = "";
    while (strlen(text) < sizeof error.message)
        strcat(text, "seven77 ");
    error_set(&error, 0, CODE_EMPTY, "%s", text);
    ck_assert_str_eq(error.message + strlen(error.message) - 12, " seven77 ...");
    text[sizeof error.message - 1] = '\0';
    error_set(&error, 0, CODE_EMPTY, "%s", text);
    ck_assert_str_eq(error.message, text);
    *text = '\0';
    while (strlen(text) < sizeof error.message)
        strcat(text, "\xc3\xa4");
    error_set(&error, 0, CODE_EMPTY, "x%s", text);
    ck_assert_str_eq(error.message + strlen(error.message) - 6, "\xc3\xa4 ...");
    error_set(&error, 0, CODE_EMPTY, "%s", text);
    ck_assert_str_eq(error.message + strlen(error.message) - 6, "\xc3\xa4 ...");
}

END_TEST

static const struct {
    int rc;
    enum code code;
} failures[] = {
    {-ENOSPC, CODE_DISK_FULL},
    {-EDQUOT, CODE_DISK_FULL},
    {-EFBIG, CODE_DISK_FULL},
    {-ENOMEM, CODE_OUT_OF_MEMORY},
    {-EIO, CODE_IO_ERROR},
    {-EACCES, CODE_OUTPUT_UNWRITABLE},
    {-EPERM, CODE_OUTPUT_UNWRITABLE},
    {-EROFS, CODE_OUTPUT_UNWRITABLE},
    {-ENOTDIR, CODE_OUTPUT_UNWRITABLE},
    {-EMFILE, CODE_IO_ERROR},
};

START_TEST(failures_of_the_machine)
{
    struct error error;
    char expected[200];
    ck_assert_int_eq(error_set_system(&error, failures[_i].rc, "write it"), failures[_i].rc);
    ck_assert_int_eq(error.code, failures[_i].code);
    ck_assert(code_passing(error.code));
    snprintf(expected, sizeof expected, "could not write it: %s", strerror(-failures[_i].rc));
    ck_assert_str_eq(error.message, expected);
}

END_TEST

static enum code
normalised(enum code code, int rc)
{
    struct error error = {.code = code, .message = "as it was", .file = {"/a", ""}};
    error_normalise(&error, rc);
    ck_assert_str_eq(error.message, "as it was");
    ck_assert_str_eq(error.file[0], "/a");
    return error.code;
}

START_TEST(normalising)
{
    ck_assert_int_eq(normalised(CODE_NONE, -ENOSPC), CODE_DISK_FULL);
    ck_assert_int_eq(normalised(CODE_NONE, -ENOENT), CODE_IO_ERROR);
    ck_assert_int_eq(normalised(CODE_WRITE_FAILED, -EIO), CODE_IO_ERROR);
    ck_assert_int_eq(normalised(CODE_WRITE_FAILED, -EDQUOT), CODE_DISK_FULL);
    ck_assert_int_eq(normalised(CODE_FILE_UNREADABLE, -EIO), CODE_FILE_UNREADABLE);
    ck_assert_int_eq(normalised(CODE_FILE_UNREADABLE, -ENOMEM), CODE_OUT_OF_MEMORY);
    ck_assert_int_eq(normalised(CODE_TAG_MISSING, -EBADMSG), CODE_TAG_MISSING);
    struct error error = {0};
    error_normalise(&error, -EIO);
    ck_assert_str_eq(error.message, strerror(EIO));
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("base_error");
    TCase *tests = tcase_create("error");
    tcase_add_test(tests, names_are_found_again);
    tcase_add_test(tests, the_document_is_the_table);
    tcase_add_test(tests, a_new_error_replaces_the_old_one);
    tcase_add_test(tests, long_messages_are_cut);
    tcase_add_test(tests, long_messages_are_cut_at_a_word);
    tcase_add_loop_test(tests, failures_of_the_machine, 0, (int)(sizeof failures / sizeof failures[0]));
    tcase_add_test(tests, normalising);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
