/*
 * browse.c - lists with filters, orders and marks to continue from (report_browse). list_rows.c has their rows.
 *
 * The rows are selected and sorted in a query of their own, with the columns of the view only. The expressions of the
 * list, which may be queries, are computed for the rows of the answer.
 */
#include "db/report/report_private.h"

#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BROWSE_VALUES = 2 * REPORT_FIELDS + 4, /* each field has at most two: the text and its pseudonym */
    OPTIONS_MAX = 200,
    AMOUNT_MAX = 1000000000,
};

/* A query in the making. */
struct browse {
    struct report *report;
    const struct report_list *list;
    sqlite3_str *sql;
    struct database_value values[BROWSE_VALUES];
    int value_count;
    const struct report_sort *sort;
    bool descends;
    const char *before_sort,
        *after_equal; /* operators that keep SQLite from an index of the order, or of equal values */
    /* texts that the values refer to */
    char moments[REPORT_FIELDS][ISO_TIME_SIZE];
    size_t moment_count;
    char mark[REPORT_MARK];
};

/* --------------------------------------------------------------------------- values of fields -- */

/* Reads "36h" and "7d". Returns the milliseconds, or -1. */
static int64_t
moment_ago(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || (strcmp(text + digits, "h") != 0 && strcmp(text + digits, "d") != 0))
        return -1;
    return strtoll(text, NULL, 10) * (text[digits] == 'h' ? 1 : 24) * 3600 * 1000;
}

/* Reads the offset of a time, "+01:30", "Z" or "", in minutes. In a URL the plus arrives as a space. */
static int
moment_offset(const char *text, int *minutes)
{
    static const char form[] = "dd:dd";
    *minutes = 0;
    if (!*text || strcmp(text, "Z") == 0 || strcmp(text, "z") == 0)
        return 0;
    if (!strchr("+- ", *text) || strlen(text) != sizeof form)
        return -EINVAL;
    for (size_t i = 0; form[i]; i++)
        if (form[i] == 'd' ? text[1 + i] < '0' || text[1 + i] > '9' : text[1 + i] != form[i])
            return -EINVAL;
    const int hours = (text[1] - '0') * 10 + text[2] - '0', rest = (text[4] - '0') * 10 + text[5] - '0';
    *minutes = (*text == '-' ? -1 : 1) * (60 * hours + rest);
    return hours < 24 && rest < 60 ? 0 : -EINVAL;
}

int
report_moment(const char *text, int64_t now_ms, char at[ISO_TIME_SIZE])
{
    static const char whole[] = "0000-01-01T00:00:00.000Z";

    const int64_t ago = moment_ago(text);
    if (ago >= 0)
        return iso_time_from_ms(now_ms - ago, at) == 0 ? 0 : -EINVAL;
    size_t length = strspn(text, "0123456789-");
    if (length > 10) /* the date, and an offset without a time */
        length = 10;
    if (length == 10 && (text[10] == 'T' || text[10] == 't'))
        length += 1 + strspn(text + 11, "0123456789:.");
    /* The date; minutes; seconds with up to nine digits of a fraction, of which three count. */
    if (length != 10 && length != 16 && length != 19 && (length < 21 || length > 29 || text[19] != '.'))
        return -EINVAL;
    memcpy(at, whole, sizeof whole);
    memcpy(at, text, length < ISO_TIME_LENGTH - 1 ? length : ISO_TIME_LENGTH - 1);
    if (length > 10)
        at[10] = 'T';
    int minutes;
    int64_t ms;
    if ((length == 10 && text[10]) || moment_offset(text + length, &minutes) != 0 || iso_time_to_ms(at, &ms) != 0)
        return -EINVAL;
    return iso_time_from_ms(ms - minutes * INT64_C(60000), at) == 0 ? 0 : -EINVAL;
}

static int
browse_refuse(struct browse *b, const char *key, const char *why)
{
    return database_refuse(&b->report->db, -EINVAL, "parameter %s: %s", key, why);
}

static int
browse_number(struct browse *b, const struct report_field *field, const char *text, struct database_value *value)
{
    const size_t length = strlen(text);
    char *end;
    if (field->form == REPORT_COUNT) {
        if (length == 0 || length > 18 || strspn(text, "0123456789") != length)
            return browse_refuse(b, field->key, "a whole number of at most 18 digits is expected");
        *value = value_int(strtoll(text, NULL, 10));
        return 0;
    }
    *value = value_real(strtod(text, &end));
    if (*end || length == 0 || length > 32 || strspn(text, "0123456789.eE+-") != length || value->as.d < 0.0 ||
        value->as.d > AMOUNT_MAX)
        return browse_refuse(b, field->key, "a number from 0 to 1000000000 is expected");
    return 0;
}

static int
browse_value(struct browse *b, const struct report_field *field, const char *text, struct database_value *value)
{
    if (field->form == REPORT_COUNT || field->form == REPORT_AMOUNT)
        return browse_number(b, field, text, value);
    *value = value_text(text);
    if (text_characters(text) > REPORT_TEXT_MAX)
        return browse_refuse(b, field->key, "the text is too long");
    if (field->form == REPORT_MOMENT) {
        char *at = b->moments[b->moment_count++];
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (report_moment(text, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, at) != 0)
            return browse_refuse(b, field->key,
                                 "a time is expected, such as 2026-01-31, 2026-01-31T09:30:00+01:00, 36h or 7d");
        value->as.s = at;
    }
    return 0;
}

/* ------------------------------------------------------------------------------- conditions ---- */

/* Appends a condition, with the numbers of its parameters. */
static void
browse_append(struct browse *b, const char *sql, int value, int pseudonym)
{
    for (size_t length; *sql; sql += length) {
        length = strcspn(sql, "$@");
        sqlite3_str_append(b->sql, sql, (int)length);
        if (sql[length])
            sqlite3_str_appendf(b->sql, "?%d", sql[length++] == '$' ? value : pseudonym);
    }
}

static int
browse_choose(struct browse *b, const struct report_field *field, const char *text)
{
    char words[256] = "one of these is expected:";
    for (const struct report_choice *choice = field->choices; choice->word; choice++) {
        if (strcmp(choice->word, text) == 0) {
            sqlite3_str_appendf(b->sql, " AND (%s)", choice->sql);
            return 0;
        }
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s %s", choice == field->choices ? "" : ",", choice->word);
    }
    return browse_refuse(b, field->key, words);
}

/* Appends the conditions of all fields but one. */
static int
browse_where(struct browse *b, const struct report_browse *wanted, int but)
{
    sqlite3_str_appendall(b->sql, " WHERE 1");
    for (int i = 0; i < (int)b->list->field_count; i++) {
        const struct report_field *field = &b->list->fields[i];
        const char *text = i == but ? NULL : wanted->values[i];
        if (!text || !*text)
            continue;
        int rc = field->form == REPORT_CHOICE ? browse_choose(b, field, text)
                                              : browse_value(b, field, text, &b->values[b->value_count++]);
        if (rc < 0)
            return rc;
        if (field->form == REPORT_CHOICE)
            continue;
        const int value = b->value_count;
        const char *pseudonym = wanted->pseudonyms[i] ? wanted->pseudonyms[i] : wanted->pseudonym;
        if (field->form == REPORT_SEARCH)
            b->values[b->value_count++] = value_text(pseudonym ? pseudonym : "");
        sqlite3_str_appendall(b->sql, " AND (");
        browse_append(b, field->sql, value, b->value_count);
        sqlite3_str_appendall(b->sql, ")");
        if (field->form == REPORT_EQUAL)
            sqlite3_str_appendall(b->sql, b->after_equal);
    }
    return 0;
}

/* ----------------------------------------------------------------------------- order and mark -- */

static int
browse_sort(struct browse *b, const char *key)
{
    b->sort = b->list->sorts;
    b->descends = b->sort->descends;
    if (!key || !*key)
        return 0;
    b->descends = *key == '-';
    key += b->descends;
    for (; b->sort < b->list->sorts + b->list->sort_count; b->sort++)
        if (strcmp(b->sort->key, key) == 0)
            return 0;
    return browse_refuse(b, "sort", "the list has no such order");
}

/* A mark is the value of the order, a space, and the number that distinguishes the row. */
static int
browse_continue(struct browse *b, const char *after)
{
    char *end; /* The value may be of another order: then the first row is undefined. */
    if (!after || !*after)
        return 0;
    snprintf(b->mark, sizeof b->mark, "%s", after);
    char *number = strrchr(b->mark, ' ');
    if (strlen(after) >= sizeof b->mark || !number || !number[1])
        return browse_refuse(b, "after", "the mark is none of this list");
    *number++ = '\0';
    struct database_value *value = &b->values[b->value_count];
    value[1] = value_int(strtoll(number, &end, 10));
    if (*end || strspn(number, "-0123456789") != strlen(number))
        return browse_refuse(b, "after", "the mark is none of this list");
    value[0] = value_text(b->mark);
    if (b->sort->is_number) {
        const bool is_whole = b->mark[strspn(b->mark, "-0123456789")] == '\0';
        value[0] = is_whole ? value_int(strtoll(b->mark, &end, 10)) : value_real(strtod(b->mark, &end));
    }
    sqlite3_str_appendf(b->sql, " AND (%s, %s) %s (?%d, ?%d)", b->sort->sql, b->list->unique, b->descends ? "<" : ">",
                        b->value_count + 1, b->value_count + 2);
    b->value_count += 2;
    return 0;
}

static void
browse_order(struct browse *b)
{
    const char *direction = b->descends ? "DESC" : "ASC";
    sqlite3_str_appendf(b->sql, " ORDER BY %s%s %s, %s %s", b->before_sort, b->sort->sql, direction, b->list->unique,
                        direction);
}

/* Writes the mark of a row whose last columns are the value of the order and the number. */
static void
browse_mark(const struct browse *b, sqlite3_stmt *row, char mark[REPORT_MARK])
{
    const int columns = sqlite3_column_count(row);
    const long long number = sqlite3_column_int64(row, columns - 1);
    if (b->sort->is_number && sqlite3_column_type(row, columns - 2) == SQLITE_FLOAT)
        snprintf(mark, REPORT_MARK, "%.17g %lld", sqlite3_column_double(row, columns - 2), number);
    else
        snprintf(mark, REPORT_MARK, "%s %lld", report_text(row, columns - 2), number);
}

/* ----------------------------------------------------------------------------------- queries --- */

/*
 * Chooses between an index of the order, which is read until the page is full, and one of the filter, whose rows are
 * all sorted. SQLite has no statistics, so its planner cannot estimate how many rows a filter finds.
 */
static void
browse_plan(struct browse *b, const struct report_browse *wanted, int64_t limit)
{
    if (wanted->total && *wanted->total < 2 * limit)
        b->before_sort = "+";
    else if (wanted->total && *wanted->total > 40 * limit && b->sort == b->list->sorts)
        b->after_equal = " IS TRUE";
}

/*
 * Appends the query of the rows, one more than wanted, and starts it. Frees the text. Sorting whole rows is slow: where a
 * number identifies a row, the numbers are sorted, and the rows of the answer are read by them.
 */
static int
browse_start(struct browse *b, const struct report_browse *wanted, int64_t limit, sqlite3_stmt **statement)
{
    b->before_sort = b->after_equal = "";
    int rc = browse_sort(b, wanted->sort);
    const struct report_list *list = b->list;
    const bool by_number = list->id && strcmp(list->id, list->unique) == 0;
    if (rc == 0) {
        sqlite3_str_appendf(b->sql, ", %s, %s FROM (", b->sort->sql, list->unique);
        browse_plan(b, wanted, limit);
        if (by_number)
            sqlite3_str_appendf(b->sql, "WITH found (id, place) AS MATERIALIZED (SELECT %s, %s%s FROM %s", list->id,
                                b->before_sort, b->sort->sql, list->view);
        else
            sqlite3_str_appendf(b->sql, "SELECT * FROM %s", list->view);
        rc = browse_where(b, wanted, -1);
    }
    if (rc == 0)
        rc = browse_continue(b, wanted->after);
    if (rc < 0) {
        sqlite3_free(sqlite3_str_finish(b->sql));
        return rc;
    }
    browse_order(b);
    b->before_sort = "";
    b->values[b->value_count++] = value_int(limit < INT64_MAX ? limit + 1 : limit);
    sqlite3_str_appendf(b->sql, " LIMIT ?%d)", b->value_count);
    if (by_number)
        sqlite3_str_appendf(b->sql, " SELECT * FROM %s WHERE %s IN (SELECT id FROM found))", list->view, list->id);
    sqlite3_str_appendall(b->sql, " r");
    browse_order(b);
    const struct report_selection selection = {list, b->values, (size_t)b->value_count};
    return report_start(b->report, b->sql, &selection, statement);
}

static int64_t
browse_limit(const struct report_browse *wanted)
{
    return wanted->limit <= 0 ? PAGE_ROWS : wanted->limit;
}

int
report_field_place(const struct report_list *list, const char *key)
{
    for (size_t i = 0; i < list->field_count; i++)
        if (strcmp(list->fields[i].key, key) == 0)
            return (int)i;
    return -1;
}

int
report_browse(struct report *report, const struct report_list *list, const struct report_browse *wanted,
              struct report_table *table, struct error *error)
{
    struct browse b = {.report = report, .list = list, .sql = sqlite3_str_new(report->db.handle)};
    const int64_t limit = browse_limit(wanted);
    const bool is_empty = wanted->total && *wanted->total == 0;
    sqlite3_stmt *row;
    *table = (struct report_table){.list = list};
    for (size_t i = 0; i < list->column_count; i++)
        sqlite3_str_appendf(b.sql, "%s %s", i ? "," : "SELECT", list->columns[i].sql);
    int rc = browse_start(&b, wanted, limit, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    while (!is_empty && (rc = database_step(&report->db, row)) == 1 && (int64_t)table->row_count < limit) {
        rc = report_add_row(report, table, row);
        if (rc < 0)
            break;
        browse_mark(&b, row, table->next);
    }
    if (rc != 1)
        table->next[0] = '\0';
    sqlite3_finalize(row);
    if (rc < 0)
        report_table_free(table);
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}

int
report_browse_ids(struct report *report, const struct report_list *list, const struct report_browse *wanted,
                  char ***ids, size_t *count)
{
    struct browse b = {.report = report, .list = list, .sql = sqlite3_str_new(report->db.handle)};
    sqlite3_stmt *row;
    sqlite3_str_appendf(b.sql, "SELECT %s", list->id);
    int rc = browse_start(&b, wanted, INT64_MAX, &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&report->db, row)) == 1) {
        char **grown = reallocarray(*ids, *count + 1, sizeof *grown);
        if (grown)
            *ids = grown;
        char *copy = grown ? strdup(report_text(row, 0)) : NULL;
        if (!copy) {
            rc = database_refuse(&report->db, -ENOMEM, "out of memory");
            break;
        }
        grown[(*count)++] = copy;
    }
    sqlite3_finalize(row);
    return rc;
}

/* Spreadsheets calculate texts that begin so. */
static bool
csv_is_formula(const char *text)
{
    return *text && strchr("=+-@\t\r", *text);
}

static int
csv_print_row(struct report *report, sqlite3_stmt *row, FILE *out)
{
    for (int i = 0; i < sqlite3_column_count(row) - 2; i++) {
        const char *text = report_text(row, i);
        char *safe = NULL;
        if (sqlite3_column_type(row, i) == SQLITE_TEXT && csv_is_formula(text) && asprintf(&safe, "'%s", text) < 0)
            return database_refuse(&report->db, -ENOMEM, "out of memory");
        fputs(i ? "," : "", out);
        text_csv(out, safe ? safe : text);
        free(safe);
    }
    fputs("\r\n", out);
    return 1;
}

/* Appends the columns of the view, then those that the list adds: of CSV, or as one JSON object. */
static int
browse_columns(struct browse *b, enum report_format format)
{
    const struct report_list *list = b->list;
    const char *before = list->is_closed ? "" : format == REPORT_CSV ? ", " : " || ',";
    sqlite3_str_appendall(b->sql, list->is_closed ? "SELECT " : format == REPORT_CSV ? "SELECT r.*" : "SELECT ");
    int rc = list->is_closed || format == REPORT_CSV ? 0 : report_append_object(b->report, b->sql, list->view);
    for (size_t i = 0; i < list->column_count; i++) {
        const struct report_column *column = &list->columns[i];
        if (!list->is_closed && !(column->form & REPORT_ADDED))
            continue;
        if (format == REPORT_CSV)
            sqlite3_str_appendf(b->sql, "%s%s AS %s", before, column->sql, column->key);
        else
            sqlite3_str_appendf(b->sql, "%s\"%q\":' || json_quote(%s)", *before ? before : "'{", column->key,
                                column->sql);
        before = format == REPORT_CSV ? ", " : " || ',";
    }
    if (format == REPORT_JSON)
        sqlite3_str_appendall(b->sql, " || '}'");
    return rc;
}

int
report_browse_print(struct report *report, const struct report_list *list, const struct report_browse *wanted,
                    enum report_format format, FILE *out, char next[REPORT_MARK], struct error *error)
{
    struct browse b = {.report = report, .list = list, .sql = sqlite3_str_new(report->db.handle)};
    const int64_t limit = browse_limit(wanted);
    sqlite3_stmt *row;
    int64_t count = 0;
    next[0] = '\0';
    int rc = browse_columns(&b, format);
    if (rc < 0)
        sqlite3_free(sqlite3_str_finish(b.sql));
    else
        rc = browse_start(&b, wanted, limit, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    for (int i = 0; format == REPORT_CSV && i < sqlite3_column_count(row) - 2; i++)
        fprintf(out, "%s%s", i ? "," : "", sqlite3_column_name(row, i));
    fputs(format == REPORT_CSV ? "\r\n" : "[", out);
    for (; (rc = database_step(&report->db, row)) == 1 && count < limit; count++) {
        if (format == REPORT_CSV)
            rc = csv_print_row(report, row, out);
        else
            fprintf(out, "%s\n%s", count ? "," : "", report_text(row, 0));
        if (rc < 0)
            break;
        browse_mark(&b, row, next);
    }
    if (format == REPORT_JSON)
        fputs(count ? "\n]" : "]", out);
    if (rc != 1)
        next[0] = '\0';
    sqlite3_finalize(row);
    return report_conclude(report, out, rc < 0 ? rc : 0, error);
}

int
report_browse_one(struct report *report, const struct report_list *list, const struct report_browse *wanted, FILE *out,
                  struct error *error)
{
    struct browse b = {.report = report, .list = list, .sql = sqlite3_str_new(report->db.handle)};
    sqlite3_stmt *row;
    int rc = browse_columns(&b, REPORT_JSON);
    if (rc < 0)
        sqlite3_free(sqlite3_str_finish(b.sql));
    else
        rc = browse_start(&b, wanted, 1, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    rc = database_step(&report->db, row);
    if (rc == 1)
        fprintf(out, "%s\n", report_text(row, 0));
    else if (rc == 0)
        rc = database_refuse(&report->db, -ENOENT, "not found in the database");
    sqlite3_finalize(row);
    return report_conclude(report, out, rc < 0 ? rc : 0, error);
}

int
report_browse_keys(struct report *report, const struct report_list *list, void (*take)(void *context, const char *key),
                   void *context, struct error *error)
{
    struct browse b = {.report = report, .list = list, .sql = sqlite3_str_new(report->db.handle)};
    sqlite3_stmt *row;
    int rc = browse_columns(&b, REPORT_CSV);
    sqlite3_str_appendf(b.sql, " FROM (SELECT * FROM %s) r", list->view);
    if (rc == 0)
        rc = report_start(report, b.sql, &(struct report_selection){.list = list}, &row);
    else
        sqlite3_free(sqlite3_str_finish(b.sql));
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    for (int i = 0; i < sqlite3_column_count(row); i++)
        take(context, sqlite3_column_name(row, i));
    sqlite3_finalize(row);
    return 0;
}

/* Counts the values, then the choices among them. With the limit, SQLite computes no other columns of the view. */
int
report_browse_count(struct report *report, const struct report_list *list, const struct report_browse *wanted,
                    int field, int64_t *counts, struct error *error)
{
    static const struct report_choice none = {0};
    static const struct report_field whole = {.key = "1", .choices = &none};
    const struct report_field *of = field < 0 ? &whole : &list->fields[field];
    struct browse b = {.report = report, .list = list, .sql = sqlite3_str_new(report->db.handle)};
    sqlite3_stmt *row;
    int choices = 0;
    sqlite3_str_appendall(b.sql, "SELECT");
    for (; of->choices[choices].word; choices++)
        sqlite3_str_appendf(b.sql, " sum(n) FILTER (WHERE %s),", of->choices[choices].sql);
    b.after_equal = "";
    bool is_filtered = !list->whole;
    for (size_t i = 0; i < list->field_count; i++)
        is_filtered |= (int)i != field && wanted->values[i] && *wanted->values[i];
    int rc = 0;
    sqlite3_str_appendall(b.sql, " sum(n) FROM (");
    if (is_filtered) {
        sqlite3_str_appendf(b.sql, "SELECT %s, count(*) AS n FROM (SELECT %s FROM %s", of->key, of->key, list->view);
        rc = browse_where(&b, wanted, field);
        sqlite3_str_appendf(b.sql, " LIMIT -1) GROUP BY %s)", of->key);
    } else {
        sqlite3_str_appendf(b.sql, "%s)", list->whole);
    }
    if (rc < 0) {
        sqlite3_free(sqlite3_str_finish(b.sql));
        return report_conclude(report, NULL, rc, error);
    }
    rc = report_start(report, b.sql, &(struct report_selection){list, b.values, (size_t)b.value_count}, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    rc = database_step(&report->db, row);
    for (int i = 0; rc == 1 && i <= choices; i++)
        counts[i] = sqlite3_column_int64(row, i);
    sqlite3_finalize(row);
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}

int
report_options(struct report *report, const struct report_field *field, char ***options, size_t *count,
               struct error *error)
{
    sqlite3_stmt *row;
    *count = 0;
    *options = calloc(OPTIONS_MAX, sizeof **options);
    int rc = *options ? database_query(&report->db, field->options, NO_VALUES, &row)
                      : database_refuse(&report->db, -ENOMEM, "out of memory");
    if (rc == 0) {
        while ((rc = database_step(&report->db, row)) == 1 && *count < OPTIONS_MAX) {
            (*options)[*count] = strdup(report_text(row, 0));
            if (!(*options)[(*count)++]) {
                rc = database_refuse(&report->db, -ENOMEM, "out of memory");
                break;
            }
        }
        sqlite3_finalize(row);
    }
    if (rc < 0) {
        while (*count > 0)
            free((*options)[--*count]);
        free(*options);
        *options = NULL;
    }
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}
