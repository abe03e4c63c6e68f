/* Checks that docs/features.md lists exactly the features of every family, in their order. */
#include "kernels/features/family.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT NOCTULE_SOURCE_DIR "/docs/features.md"
#define CELL     80

enum { NAME, MEANING, IBSI, UNIT, CELLS };

/* Returns the family of the table below a heading: "## Place: `shape`". */
static const struct feature_family *
family_of(const char *heading)
{
    char end[CELL];
    for (size_t i = 0; i < FEATURE_FAMILIES; i++) {
        snprintf(end, sizeof end, ": `%s`\n", feature_families[i]->name);
        if (strstr(heading, end))
            return feature_families[i];
    }
    return NULL;
}

/*
 * Reads the first cells of a row "
 * a
 * b
 * 
 * d
 * ...".
 */
static void
take_cells(const char *row, char cells[CELLS][CELL])
{
    for (int i = 0; i < CELLS; i++) {
        const char *start = row + 1 + strspn(row + 1, " ");
        const char *end = strchr(start, '|');
        ck_assert_msg(end != NULL, "%s", row);
        row = end;
        while (end > start && end[-1] == ' ')
            end--;
        snprintf(cells[i], CELL, "%.*s", (int)(end - start), start);
    }
}

static void
expect_definition(const struct feature_definition *definition, const char *row)
{
    static const char *const units[] = {"", "values", "values^2"};
    char cells[CELLS][CELL], name[CELL], unit[CELL];
    const int power = definition->value_power;
    take_cells(row, cells);
    snprintf(name, sizeof name, "`%s`", definition->name);
    ck_assert_str_eq(cells[NAME], name);
    ck_assert_str_eq(cells[MEANING], definition->meaning);
    ck_assert_str_eq(cells[IBSI], definition->ibsi);
    snprintf(unit, sizeof unit, "%s%s%s", units[power], power > 0 && definition->unit[0] ? " " : "", definition->unit);
    ck_assert_str_eq(cells[UNIT], unit);
}

START_TEST(the_document_has_the_features_of_the_families)
{
    FILE *document = fopen(DOCUMENT, "r");
    ck_assert_ptr_nonnull(document);
    const struct feature_family *family = NULL;
    size_t listed = 0, tables = 0;
    char line[1024];
    while (fgets(line, sizeof line, document)) {
        if (strncmp(line, "## ", 3) == 0) {
            ck_assert_uint_eq(listed, family ? family->definition_count : 0);
            family = family_of(line);
            tables += family != NULL;
            listed = 0;
        } else if (family && strncmp(line, "| `", 3) == 0) {
            ck_assert_msg(listed < family->definition_count, "%s", line);
            expect_definition(&family->definitions[listed++], line);
        }
    }
    fclose(document);
    ck_assert_uint_eq(listed, family ? family->definition_count : 0);
    ck_assert_uint_eq(tables, FEATURE_FAMILIES);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("pipeline_features_document");
    TCase *tests = tcase_create("document");
    tcase_add_test(tests, the_document_has_the_features_of_the_families);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
