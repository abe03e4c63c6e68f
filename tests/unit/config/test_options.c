/*
 * test_options.c - the option table against the shipped file, the man page and layout.h.
 */
#include "config/kinds/kinds.h"
#include "tests/unit/config/config_files.h"

#include <ctype.h>

#define SHIPPED NOCTULE_SOURCE_DIR "/config/noctule.conf"
#define MANUAL  NOCTULE_SOURCE_DIR "/docs/noctule.conf.5"
#define LAYOUT  NOCTULE_SOURCE_DIR "/service/common/layout.h"

/* ------------------------------------------------------------------- the list of options --- */

/* The option table, one element per option. */
struct conf_option {
    const char *key;      /* "series.quiet_seconds", "pipelines[].segments[].label" */
    const char *type;     /* "number", "integer", "string", "boolean", "enum a|b", "set a|b",
                             "3 numbers", "number or 3", "names", "integers",
                             "lists of 3 integers", "group", "list" */
    const char *fallback; /* the default in file syntax; "": none; NULL: required */
    const char *limits;   /* "0 .. 86400"; "" */
    const char *help;
};

#define MAX_OPTIONS 1024

static char keys[MAX_OPTIONS][96];
static char types[MAX_OPTIONS][512], limits[MAX_OPTIONS][64];
static struct conf_option listing[MAX_OPTIONS];
static size_t listing_count;

static void
option_describe(const struct option_row *row, size_t at)
{
    const struct option_kind *kind = row->kind;
    if (kind->describe)
        kind->describe(row, types[at], sizeof(types[at]));
    else
        snprintf(types[at], sizeof(types[at]), "%s", kind->type);
    if (!kind->limits)
        return;
    int used = snprintf(limits[at], sizeof(limits[at]), "%.10g .. %.10g%s", row->min, row->max, kind->limits);
    if (kind == &option_integers)
        snprintf(limits[at] + used, sizeof(limits[at]) - (size_t)used, ", 1 .. %zu elements", row->array.elements);
}

static void
list_section(const struct option_section *section, const char *prefix)
{
    for (size_t i = 0; i < section->row_count && listing_count < MAX_OPTIONS; i++) {
        const struct option_row *row = &section->rows[i];
        const size_t at = listing_count++;
        snprintf(keys[at], sizeof(keys[at]), "%s%s", prefix, row->name);
        option_describe(row, at);
        listing[at] = (struct conf_option){
            .key = keys[at], .type = types[at], .fallback = row->fallback, .limits = limits[at], .help = row->help};
        if (row->kind->below) {
            char below[128];
            snprintf(below, sizeof(below), "%s%s", keys[at], row->kind->below);
            list_section(row->section, below);
        }
    }
}

static const struct conf_option *
conf_options(size_t *count)
{
    if (listing_count == 0)
        list_section(&option_root, "");
    *count = listing_count;
    return listing;
}

/* --------------------------------------------------------------------------------- checks --- */

/* Returns the last part of the key, which is the name in the file. */
static const char *
name_of(const struct conf_option *option)
{
    const char *dot = strrchr(option->key, '.');
    return dot ? dot + 1 : option->key;
}

static bool
is_aggregate(const struct conf_option *option)
{
    return strcmp(option->type, "group") == 0 || strcmp(option->type, "list") == 0;
}

/* Returns whether the text contains `name = value`. */
static bool
mentions(const char *text, const char *name, const char *value)
{
    char setting[256];
    snprintf(setting, sizeof(setting), "%s = %s", name, value);
    for (const char *at = text; (at = strstr(at, setting)); at++)
        if (at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_'))
            return true;
    return false;
}

START_TEST(every_row_is_complete)
{
    size_t count;
    const struct conf_option *options = conf_options(&count);
    ck_assert_uint_gt(count, 60);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(options[i].help && strlen(options[i].help) > 10, "%s", options[i].key);
        ck_assert_msg(options[i].type[0] != '\0' && strlen(options[i].type) < 500, "%s", options[i].key); /* not cut */
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(options[i].key, options[j].key);
    }
}

END_TEST

START_TEST(the_shipped_file_names_every_option_with_its_default)
{
    size_t count;
    const struct conf_option *options = conf_options(&count);
    char *text = read_text_file(SHIPPED);
    for (size_t i = 0; i < count; i++) {
        bool has_default = options[i].fallback && options[i].fallback[0] && !is_aggregate(&options[i]);
        const char *value = has_default ? options[i].fallback : "";
        ck_assert_msg(mentions(text, name_of(&options[i]), value),
                      "noctule.conf lacks %s: write there\n%s = %s; # %s%s%s", options[i].key, name_of(&options[i]),
                      value, options[i].help, options[i].limits[0] ? "; " : "", options[i].limits);
    }
    free(text);
}

END_TEST

/* `name = ...;` in a comment must be an option, too. */
START_TEST(the_shipped_file_has_no_unknown_option)
{
    size_t count;
    const struct conf_option *options = conf_options(&count);
    char *text = read_text_file(SHIPPED);
    for (const char *at = text; (at = strstr(at, " = ")); at++) {
        const char *begin = at;
        while (begin > text && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_'))
            begin--;
        bool known = false;
        for (size_t i = 0; i < count && !known; i++)
            known = strlen(name_of(&options[i])) == (size_t)(at - begin) &&
                    strncmp(name_of(&options[i]), begin, (size_t)(at - begin)) == 0;
        ck_assert_msg(known, "noctule.conf: \"%.*s\" is no option", (int)(at - begin), begin);
    }
    free(text);
}

END_TEST

START_TEST(the_shipped_file_gives_the_defaults)
{
    struct error error = {0};
    struct conf *shipped, *empty;
    ck_assert_msg(conf_load(SHIPPED, &shipped, &error) == 0, "%s", error.message);
    ck_assert_int_eq(conf_load(write_file("empty.conf", ""), &empty, &error), 0);
    ck_assert_ptr_nonnull(conf_find_pipeline(shipped, "head-ct"));
    ck_assert_ptr_nonnull(conf_find_pipeline(shipped, "example"));
    ck_assert_uint_eq(shipped->rule_count, 0); /* rules are the site's */

    /* The shipped file empties Noctule's own inbox; by default an inbox keeps its files. */
    ck_assert_int_eq(shipped->inboxes[0].after, CONF_DELETE);
    ck_assert_int_eq(empty->inboxes[0].after, CONF_KEEP);
    shipped->inboxes[0].after = CONF_KEEP;

    /* Except for pipelines and rules, the shipped file equals an empty file. */
    size_t pipelines = shipped->pipeline_count, rules = shipped->rule_count;
    shipped->pipeline_count = shipped->rule_count = 0;
    char *text = conf_to_text(shipped), *expected = conf_to_text(empty);
    ck_assert_str_eq(text, expected);
    shipped->pipeline_count = pipelines;
    shipped->rule_count = rules;
    free(text);
    free(expected);
    conf_free(shipped);
    conf_free(empty);
}

END_TEST

/* Writes the text as roff: escapes minus signs and apostrophes, and allows a line break after a
 * bar. */
static void
put_roff(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '-')
            fputs("\\-", out);
        else if (*text == '\'')
            fputs("\\(aq", out);
        else if (*text == '|')
            fputs("|\\:", out);
        else
            fputc(*text, out);
    }
}

/* Writes the entry of the option in noctule.conf(5). */
static void
put_entry(FILE *out, const struct conf_option *option)
{
    fputs(".TP\n.B ", out);
    put_roff(out, option->key);
    fputc('\n', out);
    put_roff(out, option->type);
    if (!option->fallback)
        fputs("; required", out);
    else if (!option->fallback[0])
        fputs("; no default", out);
    else
        fputs("; default ", out);
    put_roff(out, option->fallback ? option->fallback : "");
    fputs(option->limits[0] ? "; " : "", out);
    put_roff(out, option->limits);
    fprintf(out, ".\n%c", toupper((unsigned char)option->help[0]));
    put_roff(out, option->help + 1);
    fputs(".\n", out);
}

/* Returns the manual with the entries of the table. */
static char *
make_manual(const char *text)
{
    size_t count, size = 0;
    const struct conf_option *options = conf_options(&count);
    const char *begin = strstr(text, ".TP\n"), *end = strstr(text, ".SH NOTES\n");
    ck_assert(begin && end && begin < end);
    char *made = NULL;
    FILE *out = open_memstream(&made, &size);
    ck_assert_ptr_nonnull(out);
    fwrite(text, 1, (size_t)(begin - text), out);
    for (size_t i = 0; i < count; i++)
        put_entry(out, &options[i]);
    fputs(end, out);
    ck_assert_int_eq(fclose(out), 0);
    return made;
}

static void
write_manual(const char *text)
{
    FILE *file = fopen(MANUAL, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* With NOCTULE_WRITE_MANUAL, this test writes the section OPTIONS. */
START_TEST(the_manual_matches_the_table)
{
    char *text = read_text_file(MANUAL);
    char *made = make_manual(text);
    if (getenv("NOCTULE_WRITE_MANUAL"))
        write_manual(made);
    else
        ck_assert_msg(strcmp(text, made) == 0,
                      "noctule.conf(5) is not what the table makes: run this test once more with "
                      "NOCTULE_WRITE_MANUAL=1 in the environment");
    free(text);
    free(made);
}

END_TEST

/* No folder that layout.h names may be an inbox. */
START_TEST(no_inbox_is_in_an_own_folder)
{
    char *text = read_text_file(LAYOUT);
    int folders = 0;
    for (const char *at = text; (at = strstr(at, "#define LAYOUT_")); at++) {
        char name[64], value[64], conf_text[160];
        struct error error = {0};
        if (sscanf(at, "#define %63s \"%63[^\"]\"", name, value) != 2 || strchr(value, '/') ||
            strncmp(name, "LAYOUT_DATABASE", 15) == 0 || strcmp(name, "LAYOUT_LOCK") == 0 ||
            strcmp(name, "LAYOUT_PSEUDONYM_KEY") == 0 || strcmp(name, "LAYOUT_CLUSTER_ID") == 0)
            continue;
        struct conf *conf = NULL;
        snprintf(conf_text, sizeof(conf_text), "inbox = ( { path = \"%s\"; } );", value);
        ck_assert_msg(conf_load(write_file("own.conf", conf_text), &conf, &error) < 0, "%s may be an inbox", value);
        folders++;
    }
    ck_assert_int_ge(folders, 6);
    free(text);
}

END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("options");
    tcase_add_unchecked_fixture(tcase, make_test_folder, remove_test_folder);
    tcase_add_test(tcase, every_row_is_complete);
    tcase_add_test(tcase, the_shipped_file_names_every_option_with_its_default);
    tcase_add_test(tcase, the_shipped_file_has_no_unknown_option);
    tcase_add_test(tcase, the_shipped_file_gives_the_defaults);
    tcase_add_test(tcase, the_manual_matches_the_table);
    tcase_add_test(tcase, no_inbox_is_in_an_own_folder);
    return run_case(tcase, "config_options");
}
