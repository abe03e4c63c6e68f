/*
 * kind_regex.c - regular expressions. Reading the option compiles the expression.
 */
#include "config/kinds/kinds.h"

#include "base/error.h"
#include "config/expression.h"

#include <errno.h>
#include <stdlib.h>

static int
regex_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    struct conf_regex *regex = calloc(1, sizeof(*regex));
    if (!regex)
        return -ENOMEM;
    int rc = read_text(reader, row, setting, &regex->text);
    if (rc == 0) {
        char reason[EXPRESSION_REASON];
        const int result = expression_compile(regex->text, &regex->compiled, reason);
        rc = result == -EINVAL
                 ? read_fail(reader, setting, "%s: \"%s\": %s", code_name(CODE_REGEX_UNSUPPORTED), regex->text, reason)
                 : result;
    }
    if (rc == 0) {
        memcpy(field, &regex, sizeof(regex));
        return 0; // cppcheck-suppress memleak ; the field has it now
    }
    free(regex->text);
    free(regex);
    return rc;
}

static void
regex_clear(const struct option_row *row, void *field)
{
    struct conf_regex *regex = *(struct conf_regex **)field;
    (void)row;
    if (!regex)
        return;
    expression_free(regex->compiled);
    free(regex->text);
    free(regex);
}

const struct option_kind option_regex = {.read = regex_read,
                                         .write = write_text_of,
                                         .has = option_not_null,
                                         .clear = regex_clear,
                                         .type = "string",
                                         .limits = " characters"};
