/*
 * list_command.c - `noctule list`: the lists of the web UI and of /api/v1, with the same words. A row of report_browsed
 * (db/report/list_rows.c) is all that a list needs.
 */
#include "service/cli/cli.h"

#include "db/report.h"
#include "db/report_lists.h"
#include "service/common/pseudonym.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct listing {
    const char *sort, *after;
    int64_t limit;
    bool json, csv;
};

static const struct report_list *
listing_find(const char *key)
{
    for (size_t i = 0; i < BROWSE_COUNT; i++)
        if (strcmp(report_browsed[i].key, key) == 0)
            return &report_browsed[i];
    return NULL;
}

/* Prints each list with its words. */
static int
listing_print_names(void)
{
    for (size_t i = 0; i < BROWSE_COUNT; i++) {
        const struct report_list *list = &report_browsed[i];
        printf("%-13s", list->key);
        for (size_t k = 0; k < list->field_count; k++)
            printf(" %s=", list->fields[k].key);
        printf("\n%-13s", "");
        for (size_t k = 0; k < list->sort_count; k++)
            printf("%s%s", k ? ", " : " sorted by ", list->sorts[k].key);
        putchar('\n');
    }
    return EXIT_OK;
}

static int
listing_check(struct cli_call *call)
{
    const struct listing *listing = call->options;
    if (listing->json && listing->csv)
        return cli_usage_error(call->command->name, "--json and --csv cannot be combined");
    if (call->count > 0 && !listing_find(call->arguments[0]))
        return cli_usage_error(call->command->name, "there is no list \"%s\"; noctule list prints all",
                               call->arguments[0]);
    return EXIT_OK;
}

/* Takes "KEY=VALUE". Returns an exit code. */
static int
listing_take(const struct cli_call *call, const struct report_list *list, const char *word,
             struct report_browse *browse)
{
    char key[64];
    const char *value = strchr(word, '=');
    snprintf(key, sizeof key, "%.*s", value ? (int)(value - word) : 0, word);
    const int field = report_field_place(list, key);
    if (field < 0 || browse->values[field])
        return cli_usage_error(call->command->name,
                               field < 0 ? "the list %s has no word \"%s\"; noctule list prints them"
                                         : "the list %s has the word \"%s\" once",
                               list->key, word);
    browse->values[field] = value + 1;
    return EXIT_OK;
}

/* A searched text is found as a hash, too. */
static void
listing_hash(const struct conf *conf, const struct report_list *list, struct report_browse *browse,
             char hash[PSEUDONYM_SIZE])
{
    struct pseudonym_key key;
    const int text = report_field_place(list, "text");
    if (text < 0 || !browse->values[text] || pseudonym_key_read(conf->root, &key) != 0)
        return; /* without a key the database has no hashes */
    if (pseudonym_of(&key, browse->values[text], hash) == 0)
        browse->pseudonym = hash;
}

static int
listing_print(struct report *report, const struct report_list *list, const struct report_browse *browse,
              const struct listing *listing, char next[REPORT_MARK], struct error *error)
{
    static const struct report_layout layout = {.max_rows = SIZE_MAX, .indent = "", .empty = "", .below = NULL};

    struct report_table table;
    if (listing->json || listing->csv || list->column_count == 0) {
        const int rc =
            report_browse_print(report, list, browse, listing->json ? REPORT_JSON : REPORT_CSV, stdout, next, error);
        fputs(rc == 0 && listing->json ? "\n" : "", stdout);
        return rc;
    }
    int rc = report_browse(report, list, browse, &table, error);
    if (rc)
        return rc;
    snprintf(next, REPORT_MARK, "%s", table.next);
    rc = report_table_print(&table, &layout, stdout);
    report_table_free(&table);
    return rc ? error_set_system(error, rc, "print the list") : 0;
}

static int
listing_run(struct cli_call *call)
{
    const struct listing *listing = call->options;
    const struct conf *conf = call->context->conf;
    struct report_browse browse = {.sort = listing->sort, .after = listing->after, .limit = listing->limit};
    char hash[PSEUDONYM_SIZE], next[REPORT_MARK] = "";
    struct error error = {0};
    struct report *report;
    if (call->count == 0)
        return listing_print_names();
    const struct report_list *list = listing_find(call->arguments[0]);
    int status = EXIT_OK;
    for (int i = 1; i < call->count && status == EXIT_OK; i++)
        status = listing_take(call, list, call->arguments[i], &browse);
    if (status == EXIT_OK)
        status = cli_open_report(conf, &report);
    if (status != EXIT_OK)
        return status;
    listing_hash(conf, list, &browse, hash);
    const int rc = listing_print(report, list, &browse, listing, next, &error);
    report_close(report);
    if (rc)
        cli_print_error("%s", error.message);
    else if (*next)
        cli_print_error("there are more rows: --limit N, or --after \"%s\"", next);
    return rc == 0 ? EXIT_OK : rc == -EINVAL ? EXIT_USAGE : EXIT_DATABASE;
}

const struct cli_command cli_list = {
    .name = "list",
    .help = "print a list of the web UI and the API, or the names of all lists",
    .usage = {"[OPTION]... [LIST [KEY=VALUE]...]"},
    .more = "The words are those of /api/v1: noctule list work state=FAILED since=24h. A time is 2026-01-31, "
            "36h or 7d.",
    .options =
        (const struct cli_option[]){
            {"sort", 0, &cli_text, CLI_AT(struct listing, sort), .noun = "KEY",
             .help = "order; with - before it descending"},
            {"after", 0, &cli_text, CLI_AT(struct listing, after), .noun = "MARK", .help = "the rows after this mark"},
            {"limit", 0, &cli_count, CLI_AT(struct listing, limit), .help = "max number of rows; default 50"},
            {"csv", 0, &cli_flag, CLI_AT(struct listing, csv), .help = "print CSV instead of text"},
            CLI_JSON(struct listing),
            {0}},
    .size = sizeof(struct listing),
    .kind = &cli_text,
    .max_arguments = INT_MAX,
    .check = listing_check,
    .run = listing_run};
