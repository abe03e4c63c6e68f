/* The limits of foreign input, and their document. */
#include "base/error.h"
#include "base/limits.h"
#include "tests/unit/suite.h"

#include <stdio.h>
#include <string.h>

#define DOCUMENT NOCTULE_SOURCE_DIR "/docs/conformance.md"

static const struct {
    int most;
    enum code code;
    const char *of, *what;
} rows[] = {

#define LIMIT(name, most, code, of, what) {most, code, of, what},
#include "base/limits.def"
#undef LIMIT
};

static void
row_text(size_t i, char *line, size_t size)
{
    const char *code = code_name(rows[i].code);
    snprintf(line, size, "| %d | %s | %s | %s%s%s |\n", rows[i].most, rows[i].what, rows[i].of,
             *code ? "`" : "", *code ? code : "not looked at", *code ? "`" : "");
}

START_TEST(the_document_is_the_table)
{
    FILE *document = fopen(DOCUMENT, "r");
    ck_assert_ptr_nonnull(document);
    char line[2048], expected[2048];
    bool found = false;
    while (!found && fgets(line, sizeof line, document))
        found = strcmp(line, "| At most | What | Of each | Beyond |\n") == 0;
    ck_assert(found && fgets(line, sizeof line, document));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        row_text(i, expected, sizeof expected);
        ck_assert_ptr_nonnull(fgets(line, sizeof line, document));
        ck_assert_str_eq(line, expected);
    }
    ck_assert(!fgets(line, sizeof line, document) || line[0] != '|');
    fclose(document);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("base_limits");
    TCase *tests = tcase_create("limits");
    tcase_add_test(tests, the_document_is_the_table);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
