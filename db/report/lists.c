/*
 * lists.c - reads lists (report_lists.h), and prints those of commands: jobs, series, deliveries,
 * pulls, quarantine and destinations. list_rows.c has their columns and queries.
 */
#include "db/report/report_private.h"

#include "base/terminal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ------------------------------------------------------------------------------------- reading */

/* Returns the query of a list, with `before` before it. NULL: no memory. */
static char *
list_make_sql(struct report *report, const char *before, const struct report_list *list)
{
    sqlite3_str *sql = sqlite3_str_new(report->db.handle);
    sqlite3_str_appendf(sql, "%s%s", before, list->with ? list->with : "");
    for (size_t i = 0; i < list->column_count; i++)
        sqlite3_str_appendf(sql, "%s %s", i ? "," : "SELECT", list->columns[i].sql);
    sqlite3_str_appendf(sql, "%s%s FROM %s %s", list->mark ? ", " : "", list->mark ? list->mark : "", list->view,
                        list->tail);
    return sqlite3_str_finish(sql);
}

int
report_add_row(struct report *report, struct report_table *table, sqlite3_stmt *row)
{
    const size_t columns = table->list->column_count;
    if (table->row_count == table->row_capacity) {
        const size_t wanted = table->row_capacity ? 2 * table->row_capacity : 64;
        char **grown = reallocarray(table->cells, wanted * columns, sizeof *grown);
        if (!grown)
            return database_refuse(&report->db, -ENOMEM, "out of memory");
        table->cells = grown;
        table->row_capacity = wanted;
    }
    char **cells = table->cells + table->row_count++ * columns;
    memset(cells, 0, columns * sizeof *cells);
    for (size_t i = 0; i < columns; i++) {
        if (sqlite3_column_type(row, (int)i) == SQLITE_NULL)
            continue;
        const char *text = report_text(row, (int)i);
        cells[i] = strdup(table->list->columns[i].form & REPORT_REMEDY ? code_remedy(code_find(text)) : text);
        if (!cells[i])
            return database_refuse(&report->db, -ENOMEM, "out of memory");
    }
    if (table->list->mark)
        snprintf(table->next, sizeof table->next, "%s", report_text(row, (int)columns));
    return 0;
}

/* Adds at most `max` rows. Keeps the mark of the last one only if there are more. */
static int
table_fill(struct report *report, sqlite3_stmt *row, size_t max, struct report_table *table)
{
    int rc;
    while ((rc = database_step(&report->db, row)) == 1 && table->row_count < max)
        if ((rc = report_add_row(report, table, row)) < 0)
            break;
    if (rc != 1)
        table->next[0] = '\0';
    return rc < 0 ? rc : 0;
}

static int
table_read(struct report *report, enum report_list_name name, const char *before, const struct database_value *values,
           size_t count, size_t max, struct report_table *table)
{
    sqlite3_stmt *row;
    *table = (struct report_table){.list = &report_lists[name]};
    if (!report->sql[name])
        report->sql[name] = list_make_sql(report, before, table->list);
    if (!report->sql[name])
        return database_refuse(&report->db, -ENOMEM, "out of memory");
    int rc = database_start(&report->db, report->sql[name], values, count, &row);
    if (rc < 0)
        return rc;
    rc = table_fill(report, row, max, table);
    database_end(row);
    return rc;
}

int
report_page(struct report *report, enum report_list_name name, const struct report_query *query,
            struct report_table *table, struct error *error)
{
    /* All parameters, in each query. */
    static const char before[] = "WITH asked (mark, job, text, word, most) AS (SELECT ?1, ?2, ?3, ?4, ?5) ";

    const size_t max = report_lists[name].max_rows ? report_lists[name].max_rows : PAGE_ROWS;
    const struct database_value values[] = {value_text(query->after ? query->after : ""), value_int(query->job),
                                            value_text(query->text[0] ? query->text[0] : ""),
                                            value_text(query->text[1] ? query->text[1] : ""),
                                            value_int((int64_t)max + 1)};
    const int rc = table_read(report, name, before, values, COLUMN_COUNT(values), max, table);
    if (rc < 0)
        report_table_free(table);
    return report_conclude(report, NULL, rc, error);
}

void
report_table_free(struct report_table *table)
{
    for (size_t i = 0; i < table->row_count * table->list->column_count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct report_table){.list = table->list};
}

const char *
report_cell(const struct report_table *table, size_t row, const char *key)
{
    size_t column = 0;
    while (strcmp(table->list->columns[column].key, key) != 0)
        column++;
    return table->cells[row * table->list->column_count + column];
}

const char *
report_cell_text(const struct report_table *table, size_t row, const char *key)
{
    const char *text = report_cell(table, row, key);
    return text ? text : "";
}

double
report_number(const struct report_table *table, size_t row, const char *key)
{
    const char *text = report_cell(table, row, key);
    return text ? strtod(text, NULL) : 0.0;
}

bool
report_is_spare(const struct report_table *table, size_t column)
{
    const size_t stride = table->list->column_count;
    bool has_value = false;
    for (size_t row = 0; row < table->row_count && !has_value; row++)
        has_value = table->cells[row * stride + column] && *table->cells[row * stride + column];
    return table->list->columns[column].form & REPORT_SPARE && !has_value;
}

/* ---------------------------------------------------------------------------- a report period */

#define DAY_SECONDS 86400
#define PERIOD_ROWS 1000 /* max rows of a table */

/* All parameters of a period, in each query. Reading other columns of series costs time. */
static const char period_before[] =
    "WITH period (since, until, step) AS (SELECT ?1, ?2, ?3), "
    "settled AS (SELECT series_uid, state, settled_at, code, message, instances, jobs, modality, "
    "  body_part, series_description, sender, station, manufacturer, model, institution "
    "  FROM v_series WHERE settled_at >= ?1 AND settled_at < ?2), "
    "ended AS (SELECT * FROM v_jobs WHERE ended_at >= ?1 AND ended_at < ?2), "
    "tried AS (SELECT *, coalesce(started_at, created_at) AS tried_at FROM v_deliveries "
    "  WHERE coalesce(started_at, created_at) >= ?1 AND coalesce(started_at, created_at) < ?2) ";

/* Reads all tables at one moment. */
static int
period_read(struct report *report, struct report_period *period)
{
    const struct database_value values[] = {value_text(period->since), value_text(period->until),
                                            value_int(period->step_seconds)};
    int rc = database_script(&report->db, "BEGIN");
    if (rc < 0)
        return rc;
    for (int i = 0; i < PERIOD_COUNT && rc == 0; i++)
        rc = table_read(report, (enum report_list_name)i, period_before, values, COLUMN_COUNT(values), PERIOD_ROWS,
                        &period->tables[i]);
    database_quietly(&report->db, "COMMIT");
    return rc;
}

int
report_period_read(struct report *report, int64_t since_ms, int64_t until_ms, struct report_period **period,
                   struct error *error)
{
    struct report_period *made = calloc(1, sizeof *made);
    const int64_t seconds = (until_ms - since_ms) / 1000;
    int rc = 0;
    if (!made) {
        rc = database_refuse(&report->db, -ENOMEM, "out of memory");
    } else if (since_ms >= until_ms || seconds > 366LL * DAY_SECONDS || iso_time_from_ms(since_ms, made->since) != 0 ||
               iso_time_from_ms(until_ms, made->until) != 0) {
        rc = database_refuse(&report->db, -EINVAL,
                             "a report is of a time that ends after it begins, and of a year at most");
    } else {
        /* hours for a short period, else days, or weeks */
        made->step_seconds = seconds <= 3 * DAY_SECONDS    ? 3600
                             : seconds <= 60 * DAY_SECONDS ? DAY_SECONDS
                                                           : 7 * DAY_SECONDS;
        rc = period_read(report, made);
    }
    if (rc < 0) {
        report_period_free(made);
        made = NULL;
    }
    *period = made;
    return report_conclude(report, NULL, rc, error);
}

void
report_period_free(struct report_period *period)
{
    for (int i = 0; period && i < PERIOD_COUNT && period->tables[i].list; i++)
        report_table_free(&period->tables[i]);
    free(period);
}

/* ---------------------------------------------------------------------------- lists of commands */

const char *
report_list_state(const struct report_list *list, size_t i)
{
    return i < (size_t)list->state_count ? list->states[i] : NULL;
}

int
report_print_rows(struct report *report, const struct report_selection *selection, const char *heading, FILE *out)
{
    static const struct report_layout layout = {.max_rows = SIZE_MAX, .indent = "", .empty = "", .below = NULL};

    struct report_table table = {.list = selection->list};
    sqlite3_stmt *row;
    char *sql = list_make_sql(report, "", table.list);
    if (!sql)
        return database_refuse(&report->db, -ENOMEM, "out of memory");
    int rc = database_query(&report->db, sql, selection->values, selection->count, &row);
    sqlite3_free(sql);
    if (rc < 0)
        return rc;
    rc = table_fill(report, row, SIZE_MAX, &table);
    sqlite3_finalize(row);
    if (rc == 0 && (table.row_count > 0 || !heading)) {
        if (heading)
            fprintf(out, "\n%s\n", heading);
        rc = report_table_print(&table, &layout, out);
        if (rc < 0)
            rc = database_refuse(&report->db, rc, "out of memory");
    }
    report_table_free(&table);
    return rc;
}

/* Finds the state among the known names, ignoring case; NULL stays NULL. */
static int
list_match_state(struct report *report, const struct report_list *list, const char *wanted, const char **state)
{
    *state = NULL;
    if (!wanted)
        return 0;
    char names[128] = "";
    for (int i = 0; i < list->state_count; i++) {
        *state = list->states[i];
        if (strcasecmp(wanted, *state) == 0)
            return 0;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", *state);
    }
    return database_refuse(&report->db, -EINVAL, "there is no state '%s'; it is one of %s", wanted, names);
}

/* A filter as the words of a list. */
struct list_words {
    struct report_browse browse;
    char job[24], batch[24], since[ISO_TIME_SIZE], before[ISO_TIME_SIZE];
};

/* Completes the beginning of a time with its first moment: "2026-1" begins with October. */
static const char *
list_complete(const char *text, char at[ISO_TIME_SIZE])
{
    const size_t length = text ? strlen(text) : 0;
    strcpy(at, "0000-01-01T00:00:00.000Z");
    if (!text || length > ISO_TIME_LENGTH)
        return text;
    if ((length == 6 || length == 9) && text[length - 1] != '0')
        at[length] = '0';
    memcpy(at, text, length);
    return at;
}

/* Sets a word. A list without this field shows all rows, as its command has no such option. */
static void
list_set(struct list_words *words, const struct report_list *list, const char *key, const char *value,
         const char *pseudonym)
{
    const int field = value ? report_field_place(list, key) : -1;
    if (field < 0)
        return;
    words->browse.values[field] = value;
    words->browse.pseudonyms[field] = pseudonym ? pseudonym : "";
}

/* Returns 0, -EINVAL for an unknown state, or -ENOENT for an unknown series or job. */
static int
list_select(struct report *report, const struct report_list *list, const struct report_filter *filter,
            struct list_words *words)
{
    const struct {
        const char *key, *value, *pseudonym;
    } given[] = {
        {"pipeline", filter->pipeline, NULL},
        {"series", filter->series, NULL},
        {"destination", filter->destination, NULL},
        {"code", filter->code, NULL},
        {"since", list_complete(filter->since, words->since), NULL},
        {"before", list_complete(filter->before, words->before), NULL},
        {"modality", filter->modality, NULL},
        {"sender", filter->sender, NULL},
        {"accession", filter->accession[0], filter->accession[1]},
        {"patient", filter->patient[0], filter->patient[1]},
        {"current", filter->current ? "yes" : NULL, NULL},
        {"kept", "yes", NULL},
        {"job", filter->job ? words->job : NULL, NULL},
        {"batch", filter->batch ? words->batch : NULL, NULL},
    };

    const char *state;
    int64_t found;
    words->browse = (struct report_browse){.limit = filter->limit};
    snprintf(words->job, sizeof words->job, "%lld", (long long)filter->job);
    snprintf(words->batch, sizeof words->batch, "%lld", (long long)filter->batch);
    int rc = list_match_state(report, list, filter->state, &state);
    if (rc == 0 && filter->series) {
        rc = database_get(&report->db, "SELECT 1 FROM v_series WHERE series_uid = ?",
                          VALUES(value_text(filter->series)), &found);
        if (rc == 0)
            rc = database_refuse(&report->db, -ENOENT, "there is no series %s", filter->series);
        rc = rc < 0 ? rc : 0;
    }
    if (rc == 0 && filter->job)
        rc = report_expect_job(report, filter->job);
    list_set(words, list, "state", state, NULL);
    for (size_t i = 0; i < COLUMN_COUNT(given); i++)
        list_set(words, list, given[i].key, given[i].value, given[i].pseudonym);
    return rc;
}

static int
list_print(struct report *report, const struct report_list *list, const struct report_browse *browse, FILE *out,
           struct error *error)
{
    static const struct report_layout layout = {.max_rows = SIZE_MAX, .indent = "", .empty = "", .below = NULL};

    struct report_table table;
    int rc = report_browse(report, list, browse, &table, error);
    if (rc < 0)
        return rc;
    rc = report_table_print(&table, &layout, out);
    if (rc == 0 && *table.next && terminal_columns(out) != INT_MAX)
        fprintf(out, "The list is cut, newest first; --limit sets its length.\n");
    report_table_free(&table);
    return report_conclude(report, out, rc < 0 ? database_refuse(&report->db, rc, "out of memory") : 0, error);
}

int
report_list(struct report *report, const struct report_list *list, const struct report_filter *filter, FILE *out,
            bool json, struct error *error)
{
    struct list_words words;
    char next[REPORT_MARK];
    int rc = list_select(report, list, filter, &words);
    if (rc < 0)
        return report_conclude(report, out, rc, error);
    if (!json)
        return list_print(report, list, &words.browse, out, error);
    rc = report_browse_print(report, list, &words.browse, REPORT_JSON, out, next, error);
    if (rc == 0)
        fputc('\n', out);
    return rc;
}

int
report_keys(struct report *report, const struct report_list *list, const struct report_filter *filter, char ***keys,
            size_t *count, struct error *error)
{
    struct list_words words;
    *keys = NULL;
    *count = 0;
    int rc = list_select(report, list, filter, &words);
    if (rc == 0)
        rc = report_browse_ids(report, list, &words.browse, keys, count);
    for (size_t i = 0; i < *count / 2; i++) {
        char *newer = (*keys)[i];
        (*keys)[i] = (*keys)[*count - 1 - i];
        (*keys)[*count - 1 - i] = newer;
    }
    while (rc < 0 && *count > 0)
        free((*keys)[--*count]);
    if (rc < 0)
        free(*keys);
    return report_conclude(report, NULL, rc, error);
}

int
report_quarantined(struct report *report, int64_t number, FILE *out, bool json, struct error *error)
{
    static const struct report_list file = {.view = "v_quarantine", .tail = "WHERE quarantine = ?1"};
    static const char lines[] = "SELECT printf('file      %d', quarantine), printf('since     %s', quarantined_at), "
                                "printf('code      %s', code), printf('reason    %s', message), "
                                "printf('sender    %s', coalesce(nullif(sender, ''), 'inbox')), "
                                "printf('original  %s', original_path), "
                                "printf('path      %s', coalesce(nullif(path, ''), 'not kept')), "
                                "'series    ' || nullif(series_uid, ''), 'instance  ' || nullif(sop_instance_uid, ''), "
                                "iif(lacking, 'The series lacks this instance: send it again.', NULL), "
                                "'removed   ' || removed_at FROM v_quarantine WHERE quarantine = ?1";

    const struct database_value id = value_int(number);
    const struct report_selection rows = {&file, &id, 1};
    int64_t found;
    int rc = database_get(&report->db, "SELECT quarantine FROM v_quarantine WHERE quarantine = ?", VALUES(id), &found);
    if (rc == 0)
        rc = database_refuse(&report->db, -ENOENT, "there is no quarantined file %lld", (long long)number);
    else if (rc > 0)
        rc = json ? report_print_json(report, &rows, true, NULL, 0, out)
                  : report_print_lines(report, lines, &id, 1, out);
    return report_conclude(report, out, rc, error);
}

/*
 * The configured destinations are a temporary table in memory; the database is only read. The view
 * has a row per name of either side, with all columns of v_destinations.
 */
static const char destinations_sql[] =
    "CREATE TEMP TABLE IF NOT EXISTS configured (name TEXT, address TEXT);"
    "CREATE TEMP VIEW IF NOT EXISTS destinations AS "
    "SELECT n.name AS destination, n.address, n.place IS NOT NULL AS configured, "
    "  coalesce(v.pending, 0) AS pending, coalesce(v.sending, 0) AS sending, "
    "  coalesce(v.delayed, 0) AS delayed, coalesce(v.sent, 0) AS sent, "
    "  coalesce(v.failed, 0) AS failed, coalesce(v.cancelled, 0) AS cancelled, "
    "  coalesce(v.uncommitted, 0) AS uncommitted, v.oldest_waiting_at, v.next_attempt_at, "
    "  v.last_sent_at, v.down_since, n.place, (SELECT held_at FROM v_holds "
    "    WHERE kind = 'destination' AND name = n.name) AS held_at "
    "FROM (SELECT name, address, rowid AS place FROM configured UNION ALL "
    "      SELECT destination, '', NULL FROM v_destinations "
    "      WHERE destination NOT IN (SELECT name FROM configured)) n "
    "LEFT JOIN v_destinations v ON v.destination = n.name;"
    "DELETE FROM configured";

int
report_destinations(struct report *report, const struct report_destination *configured, size_t count, FILE *out,
                    bool json, struct error *error)
{
    const struct report_selection rows = {.list = &report_configured};
    int rc = database_script(&report->db, destinations_sql);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = database_run(&report->db, "INSERT INTO configured (name, address) VALUES (?, ?)",
                          VALUES(value_text(configured[i].name), value_text(configured[i].address)));
    if (rc == 0)
        rc = json ? report_print_json(report, &rows, false, NULL, 0, out) : report_print_rows(report, &rows, NULL, out);
    return report_conclude(report, out, rc, error);
}
