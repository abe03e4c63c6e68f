#include "service/common/similar_document.h"

#include "base/text.h"
#include "service/common/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void
similar_to_json(const struct report_table *table, const struct report_similar_found *found,
                const struct report_similar_query *query, FILE *out)
{
    struct json json = {.out = out};
    json_begin_object(&json, NULL);
    json_integer(&json, "job", found->job);
    json_integer(&json, "segment", found->segment);
    json_string(&json, "label", found->label);
    json_string(&json, "by", report_similar_by_words[query->by]);
    json_string(&json, "distance", found->distance);
    json_string(&json, "settings", found->settings);
    json_integer(&json, "searched", found->searched);
    json_integer(&json, "other_settings", found->other_settings);
    json_integer(&json, "other_grid", found->other_grid);
    json_string(&json, "meaning", SIMILAR_MEANING);
    json_begin_array(&json, "items");
    for (size_t row = 0; row < table->row_count; row++) {
        json_begin_object(&json, NULL);
        for (size_t i = 0; i < table->list->column_count; i++) {
            const struct report_column *column = &table->list->columns[i];
            const char *cell = report_cell(table, row, column->key);
            if (!cell)
                json_null(&json, column->key);
            else if (column->form & REPORT_NUMBER)
                json_literal(&json, column->key, cell);
            else
                json_string(&json, column->key, cell);
        }
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
    fputc('\n', out);
}

void
similar_to_csv(const struct report_table *table, FILE *out)
{
    for (size_t i = 0; i < table->list->column_count; i++)
        fprintf(out, "%s%s", i ? "," : "", table->list->columns[i].key);
    fputs("\r\n", out);
    for (size_t row = 0; row < table->row_count; row++) {
        for (size_t i = 0; i < table->list->column_count; i++) {
            const char *cell = report_cell_text(table, row, table->list->columns[i].key);
            fprintf(out, "%s%s", i ? "," : "", *cell && strchr("=+-@\t\r", *cell) ? "'" : ""); /* no formula */
            text_csv(out, cell);
        }
        fputs("\r\n", out);
    }
}

void
similar_put_counts(const struct report_similar_found *found, FILE *out)
{
    fprintf(out, "%" PRId64 " region%s compared.", found->searched, found->searched == 1 ? " was" : "s were");
    if (found->other_settings > 0)
        fprintf(out, " Left out: %" PRId64 " with other settings, or without these values.", found->other_settings);
    if (found->other_grid > 0)
        fprintf(out, " Left out: %" PRId64 " on another pixel grid.", found->other_grid);
}

int
similar_read_spacing(const char *text, struct report_similar_query *query)
{
    char *end;
    if (!text)
        return 0;
    query->any_spacing = strcmp(text, "any") == 0;
    if (query->any_spacing)
        return 0;
    query->spacing_percent = strtod(text, &end);
    return *end || strspn(text, "0123456789.") != strlen(text) || !*text || query->spacing_percent > 100 ? -EINVAL : 0;
}

int
similar_find_word(const char *const *words, const char *word, int fallback)
{
    if (!word)
        return fallback;
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}
