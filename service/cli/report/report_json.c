/* report_json.c - the report as JSON. The keys of tables and columns must not change. */
#include "service/cli/report/report_print.h"

#include "service/common/json.h"

#include <stdlib.h>
#include <string.h>

static void
report_json_row(struct json *json, const struct report_table *table, size_t row, const char *key)
{
    json_begin_object(json, key);
    for (size_t i = 0; i < table->list->column_count; i++) {
        const struct report_column *column = &table->list->columns[i];
        const char *text = table->cells[row * table->list->column_count + i];
        if (column->form & REPORT_HIDDEN)
            continue;
        if (!text)
            json_null(json, column->key);
        else if (!(column->form & REPORT_NUMBER))
            json_string(json, column->key, text);
        else if (strpbrk(text, ".eEnN"))
            json_number(json, column->key, strtod(text, NULL));
        else
            json_integer(json, column->key, strtoll(text, NULL, 10));
    }
    json_end_object(json);
}

void
report_write_json(const struct report_content *report, FILE *out)
{
    struct json json = {.out = out};
    json_begin_object(&json, NULL);
    json_string(&json, "since", report->period->since);
    json_string(&json, "until", report->period->until);
    json_boolean(&json, "attention", report->attention);
    cli_alerts_to_json(report->alerts, &json);
    for (int i = 0; i < PERIOD_COUNT; i++) {
        const struct report_table *table = &report->period->tables[i];
        if (table->list->shape == REPORT_FIGURES) {
            report_json_row(&json, table, 0, table->list->key);
            continue;
        }
        json_begin_array(&json, table->list->key);
        for (size_t row = 0; row < table->row_count; row++)
            report_json_row(&json, table, row, NULL);
        json_end_array(&json);
    }
    json_end_object(&json);
}
