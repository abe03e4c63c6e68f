/* The limits of foreign input, and their document. */
#include "base/error.h"
#include "base/limits.h"
#include "tests/unit/suite.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT NOCTULE_SOURCE_DIR "/docs/conformance.md"
#define TESTS    NOCTULE_SOURCE_DIR "/tests"

static const struct {
    int most;
    enum code code;
    const char *of, *what;
    const char *edge; /* as tests name it: edge.h */
} rows[] = {

#define LIMIT(name, most, code, of, what) {most, code, of, what, "EDGE(" #name ")"},
#include "base/limits.def"
#undef LIMIT
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static void
row_text(size_t i, char *line, size_t size)
{
    const char *code = code_name(rows[i].code);
    snprintf(line, size, "| %d | %s | %s | %s%s%s |\n", rows[i].most, rows[i].what, rows[i].of, *code ? "`" : "",
             *code ? code : "no code", *code ? "`" : "");
}

START_TEST(the_document_is_the_table)
{
    FILE *document = fopen(DOCUMENT, "r");
    ck_assert_ptr_nonnull(document);
    char line[2048], expected[2048];
    bool found = false;
    while (!found && fgets(line, sizeof line, document))
        found = strcmp(line, "| Maximum | Quantity | Per | Code |\n") == 0;
    ck_assert(found && fgets(line, sizeof line, document));
    for (size_t i = 0; i < ROWS; i++) {
        row_text(i, expected, sizeof expected);
        ck_assert_ptr_nonnull(fgets(line, sizeof line, document));
        ck_assert_str_eq(line, expected);
    }
    ck_assert(!fgets(line, sizeof line, document) || line[0] != '|');
    fclose(document);
}

END_TEST

static bool tried[ROWS];

static int
note_edges(const char *path, const struct stat *status, int type)
{
    const size_t length = strlen(path);
    if (type != FTW_F || length < 2 || strcmp(path + length - 2, ".c") != 0)
        return 0;
    char *text = calloc((size_t)status->st_size + 1, 1);
    FILE *file = fopen(path, "r");
    ck_assert(text && file);
    ck_assert_uint_eq(fread(text, 1, (size_t)status->st_size, file), (size_t)status->st_size);
    for (size_t i = 0; i < ROWS; i++)
        tried[i] |= strstr(text, rows[i].edge) != NULL;
    fclose(file);
    free(text);
    return 0;
}

START_TEST(each_limit_is_tested_at_its_edge)
{
    ck_assert_int_eq(ftw(TESTS, note_edges, 16), 0);
    for (size_t i = 0; i < ROWS; i++)
        ck_assert_msg(tried[i], "no test tries %s (tests/unit/edge.h)", rows[i].edge);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("base_limits");
    TCase *tests = tcase_create("limits");
    tcase_add_test(tests, the_document_is_the_table);
    tcase_add_test(tests, each_limit_is_tested_at_its_edge);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
