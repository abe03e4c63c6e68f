/* similar_command.c - `noctule similar`: regions with a similar texture, and how well a search finds a label again. */
#include "service/cli/cli.h"

#include "db/report.h"
#include "service/common/json.h"
#include "service/common/pseudonym.h"
#include "service/common/similar_document.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct similar {
    const char *segment, *by, *distance, *pipeline, *spacing;
    int64_t limit;
    const char *evaluate, *labels;
    bool json, csv;
};

static const char *
similar_by_word(size_t i)
{
    return report_similar_by_words[i];
}

static const char *
similar_distance_word(size_t i)
{
    return report_similar_distance_words[i];
}

static const char *
similar_column_word(size_t i)
{
    return report_similar_columns[i];
}

/* Refuses a word that is not in the list. */
static int
similar_check_word(const char *option, const char *const *words, const char *word)
{
    char list[128] = "";
    if (similar_find_word(words, word, 0) >= 0)
        return EXIT_OK;
    for (size_t i = 0, length = 0; words[i]; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%s", i > 0 ? ", " : "", words[i]);
    return cli_usage_error("similar", "%s: there is no \"%s\"; it is one of %s", option, word, list);
}

static int
similar_check(struct cli_call *call)
{
    const struct similar *similar = call->options;
    const char *name = call->command->name;
    struct report_similar_query query = {0};
    const bool evaluates = similar->evaluate || similar->labels;
    if (similar->json && similar->csv)
        return cli_usage_error(name, "--json and --csv cannot be combined");
    if (evaluates == (call->count == 1))
        return cli_usage_error(name, evaluates ? "an evaluation uses each region in turn, and takes no job"
                                               : "needs a job number or a Series Instance UID");
    if (similar->evaluate && similar->labels)
        return cli_usage_error(name, "--evaluate and --labels cannot be combined: the file has the labels");
    if (evaluates && (similar->limit || similar->csv))
        return cli_usage_error(name, "an evaluation has neither --limit nor --csv");
    if (similar_read_spacing(similar->spacing, &query) < 0)
        return cli_usage_error(name, "--spacing: \"%s\" is not \"any\" or a percentage of 0 to 100", similar->spacing);
    const int status = similar_check_word("--by", report_similar_by_words, similar->by);
    return status ? status : similar_check_word("--distance", report_similar_distance_words, similar->distance);
}

static struct report_similar_query
similar_query(const struct similar *similar)
{
    struct report_similar_query query = {
        .segment = similar->segment,
        .by = similar_find_word(report_similar_by_words, similar->by, SIMILAR_PATTERNS),
        .distance = similar_find_word(report_similar_distance_words, similar->distance, -1),
        .pipeline = similar->pipeline,
        .limit = similar->limit,
        .two_threads = true,
    };
    similar_read_spacing(similar->spacing, &query);
    return query;
}

static int
similar_exit(int rc, const struct error *error)
{
    if (rc)
        cli_print_error("%s", error->message);
    return rc == 0                         ? EXIT_OK
           : rc == -ENOENT                 ? EXIT_NOT_FOUND
           : rc == -EINVAL || rc == -E2BIG ? EXIT_USAGE
                                           : EXIT_DATABASE;
}

/* ------------------------------------------------------------------------------------ a search - */

/* Shortens the distances of a table for people: a line of the terminal has no room for 15 digits. */
static void
similar_round(struct report_table *table)
{
    size_t column = 0;
    while (strcmp(table->list->columns[column].key, "distance") != 0)
        column++;
    for (size_t row = 0; row < table->row_count; row++) {
        char *cell = table->cells[row * table->list->column_count + column];
        snprintf(cell, strlen(cell) + 1, "%.6f", strtod(cell, NULL));
    }
}

static void
similar_print(struct report_table *table, const struct report_similar_found *found)
{
    static const struct report_layout layout = {.max_rows = SIZE_MAX, .indent = "", .empty = "", .below = NULL};
    printf("Job %" PRId64 ", %s %d%s%s%s: %s, distance %s\n", found->job, "segment", (int)found->segment,
           *found->label ? " (" : "", found->label, *found->label ? ")" : "", found->settings, found->distance);
    similar_round(table);
    report_table_print(table, &layout, stdout);
    similar_put_counts(found, stdout);
    puts("\n" SIMILAR_MEANING);
}

static int
similar_search(struct report *report, struct report_similar_query *query, const struct similar *similar)
{
    struct report_similar_found found;
    struct report_table table;
    struct error error = {0};
    const int rc = report_similar(report, query, &table, &found, &error);
    if (rc)
        return similar_exit(rc, &error);
    if (similar->json)
        similar_to_json(&table, &found, query, stdout);
    else if (similar->csv)
        similar_to_csv(&table, stdout);
    else
        similar_print(&table, &found);
    report_table_free(&table);
    return EXIT_OK;
}

/* -------------------------------------------------------------------------------- an evaluation - */

struct similar_labels {
    struct report_similar_label *items;
    size_t count;
    char column[16];
};

static void
labels_free(struct similar_labels *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        free(labels->items[i].key);
        free(labels->items[i].label);
    }
    free(labels->items);
}

/* Reads a field of a line, with or without quotes. `more`: a comma ends it. Returns the text behind it and its comma; NULL: the
 * form is wrong. */
static char *
labels_field(char *text, char **field, bool *more)
{
    char *end = *field = text;
    if (*text != '"') {
        end += strcspn(text, ",\r\n");
    } else {
        for (++text; *text && (*text != '"' || text[1] == '"'); *end++ = *text++)
            text += *text == '"';
        if (*text++ != '"')
            return NULL;
        *more = *text == ',';
        *end = '\0';
        return *text && !strchr(",\r\n", *text) ? NULL : text + *more;
    }
    *more = *end == ',';
    *end = '\0';
    return end + *more;
}

static int
labels_add(struct similar_labels *labels, const char *key, const char *label)
{
    struct report_similar_label *grown = reallocarray(labels->items, labels->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    labels->items = grown;
    grown[labels->count] = (struct report_similar_label){strdup(key), strdup(label)};
    labels->count++;
    return grown[labels->count - 1].key && grown[labels->count - 1].label ? 0 : -ENOMEM;
}

/* Adds a line. The label of a patient counts for the pseudonym, too. */
static int
labels_take(struct similar_labels *labels, const struct pseudonym_key *key, char *line)
{
    char *field, *label, hash[PSEUDONYM_SIZE];
    bool has_label, has_third;
    char *rest = labels_field(line, &field, &has_label);
    rest = rest && has_label ? labels_field(rest, &label, &has_third) : NULL;
    if (!rest || !*field || has_third)
        return -EINVAL;
    if (labels->column[0] == '\0') {
        if (strcmp(field, "job") != 0 && strcmp(field, "series") != 0 && strcmp(field, "patient") != 0)
            return -EINVAL;
        snprintf(labels->column, sizeof labels->column, "%s", field);
        return 0;
    }
    int rc = labels_add(labels, field, label);
    if (rc == 0 && key && strcmp(labels->column, "patient") == 0)
        rc = pseudonym_of(key, field, hash) == 0 ? labels_add(labels, hash, label) : -ENOMEM;
    return rc;
}

static int
labels_compare(const void *a, const void *b)
{
    return strcmp(((const struct report_similar_label *)a)->key, ((const struct report_similar_label *)b)->key);
}

/* Reads FILE.csv: a line "job,LABEL", "series,LABEL" or "patient,LABEL", then a key and its label per line. */
static int
labels_read(const char *path, const char *root, struct similar_labels *labels)
{
    struct pseudonym_key key;
    const bool has_key = pseudonym_key_read(root, &key) == 0;
    char *line = NULL;
    size_t size = 0, number = 0;
    int rc = 0;
    FILE *file = fopen(path, "re");
    if (!file) {
        cli_print_error("%s: %s", path, strerror(errno));
        return EXIT_USAGE;
    }
    while (rc == 0 && getline(&line, &size, file) >= 0) {
        char *text = number++ == 0 && strncmp(line, "\xEF\xBB\xBF", 3) == 0 ? line + 3 : line;
        if (text[strspn(text, "\r\n")])
            rc = labels_take(labels, has_key ? &key : NULL, text);
    }
    free(line);
    fclose(file);
    qsort(labels->items, labels->count, labels->items ? sizeof *labels->items : 1, labels_compare);
    for (size_t i = 1; rc == 0 && i < labels->count; i++)
        if (strcmp(labels->items[i].key, labels->items[i - 1].key) == 0 &&
            strcmp(labels->items[i].label, labels->items[i - 1].label) != 0) {
            cli_print_error("%s: %s has two labels", path, labels->items[i].key);
            return EXIT_USAGE;
        }
    if (rc == 0 && labels->count > 0)
        return EXIT_OK;
    cli_print_error(
        rc == -ENOMEM ? "%s: out of memory"
        : rc == 0
            ? "%s: it has no label"
            : "%s, line %zu: two fields with a comma are expected; in line 1 the first one is job, series or patient",
        path, number);
    return EXIT_USAGE;
}

static void
score_to_json(const struct report_similar_score *score, const char *column, const struct report_similar_query *query)
{
    struct json json = {.out = stdout};
    static const char *const precision[] = {"precision_1", "precision_5", "precision_10"};
    static const char *const best[] = {"best_1", "best_5", "best_10"};
    json_begin_object(&json, NULL);
    json_string(&json, "column", column);
    json_string(&json, "by", report_similar_by_words[query->by]);
    json_string(&json, "distance", score->distance);
    json_integer(&json, "regions", score->regions);
    json_integer(&json, "labels", score->labels);
    json_integer(&json, "unlabelled", score->unlabelled);
    json_integer(&json, "queries", score->queries);
    json_integer(&json, "alone", score->alone);
    for (int i = 0; i < 3; i++)
        json_exact(&json, precision[i], score->precision[i]);
    for (int i = 0; i < 3; i++)
        json_exact(&json, best[i], score->best[i]);
    json_exact(&json, "mean_average_precision", score->average);
    json_exact(&json, "chance", score->chance);
    json_end_object(&json);
    putchar('\n');
}

static void
score_print(const struct report_similar_score *score, const char *column, const struct report_similar_query *query)
{
    static const int depths[] = {1, 5, 10};
    printf("Leave one out: same %s, by %s, distance %s\n", column, report_similar_by_words[query->by], score->distance);
    printf("%" PRId64 " regions, %" PRId64 " labels; %" PRId64 " queries, %" PRId64
           " regions without another one of their label, %" PRId64 " without a label\n",
           score->regions, score->labels, score->queries, score->alone, score->unlabelled);
    printf("%-24s %8s %8s %8s\n", "", "FOUND", "CHANCE", "BEST");
    for (int i = 0; i < 3; i++)
        printf("precision at %-11d %8.3f %8.3f %8.3f\n", depths[i], score->precision[i], score->chance, score->best[i]);
    printf("%-24s %8.3f %8s %8.3f\n", "mean average precision", score->average, "", 1.0);
}

static int
similar_evaluate(struct report *report, const struct report_similar_query *query, const struct similar *similar,
                 const char *root)
{
    struct report_similar_score score;
    struct similar_labels labels = {0};
    struct error error = {0};
    int status = similar->labels ? labels_read(similar->labels, root, &labels) : EXIT_OK;
    const char *column = similar->labels ? labels.column : similar->evaluate;
    if (status == EXIT_OK) {
        const struct report_similar_evaluation evaluation = {*query, column, labels.items, labels.count};
        status = similar_exit(report_similar_evaluate(report, &evaluation, &score, &error), &error);
        const char *name = similar->labels ? "label of the site" : column;
        if (status == EXIT_OK && similar->json)
            score_to_json(&score, name, query);
        else if (status == EXIT_OK)
            score_print(&score, name, query);
    }
    labels_free(&labels);
    return status;
}

static int
similar_run(struct cli_call *call)
{
    const struct similar *similar = call->options;
    const struct conf *conf = call->context->conf;
    struct report_similar_query query = similar_query(similar);
    struct report *report;
    int64_t number;
    if (call->count == 1 && cli_parse_number(call->arguments[0], &number) == 0)
        query.job = number;
    else if (call->count == 1)
        query.series = call->arguments[0];
    int status = cli_open_report(conf, &report);
    if (status != EXIT_OK)
        return status;
    status = call->count == 1 ? similar_search(report, &query, similar)
                              : similar_evaluate(report, &query, similar, conf->root);
    report_close(report);
    return status;
}

const struct cli_command cli_similar = {
    .name = "similar",
    .help = "list regions with a similar texture, or measure how well a search finds a label",
    .usage = {"[OPTION]... JOB|SERIES", "--evaluate COLUMN [OPTION]...", "--labels FILE.csv [OPTION]..."},
    .more = "Only regions with the same settings and pixel grid are compared; the number of others is "
            "printed. " SIMILAR_MEANING,
    .options =
        (const struct cli_option[]){
            {"segment", 's', &cli_text, CLI_AT(struct similar, segment), .noun = "NUMBER|LABEL",
             .help = "region of the job; needed if it has several. With --evaluate: only regions with this label"},
            {"by", 0, &cli_choice, CLI_AT(struct similar, by), .noun = "VALUES", .word = similar_by_word,
             .help = "compared values: lbp, tlbap, lanadp, patterns (all three), glcm; default patterns"},
            {"distance", 0, &cli_choice, CLI_AT(struct similar, distance), .noun = "DISTANCE",
             .word = similar_distance_word,
             .help = "chi-square, l1, cosine; of glcm euclidean, l1, cosine. Default: the first"},
            {"pipeline", 'p', &cli_pipeline, CLI_AT(struct similar, pipeline), .help = "only regions of this pipeline"},
            {"spacing", 0, &cli_text, CLI_AT(struct similar, spacing), .noun = "PERCENT",
             .help = "max difference of the pixel spacing, or any; default 0"},
            {"limit", 0, &cli_count, CLI_AT(struct similar, limit), .help = "max number of rows; default 10, max 1000"},
            {"evaluate", 0, &cli_choice, CLI_AT(struct similar, evaluate), .noun = "COLUMN",
             .word = similar_column_word,
             .help = "use each region as a query, and count neighbours with the same value of this column"},
            {"labels", 0, &cli_file, CLI_AT(struct similar, labels),
             .help = "do the same with labels of a CSV file, by job, series or patient"},
            {"csv", 0, &cli_flag, CLI_AT(struct similar, csv), .help = "print CSV instead of text"},
            CLI_JSON(struct similar),
            {0}},
    .size = sizeof(struct similar),
    .kind = &cli_text,
    .max_arguments = 1,
    .needs = "a job number or a Series Instance UID",
    .check = similar_check,
    .run = similar_run};
