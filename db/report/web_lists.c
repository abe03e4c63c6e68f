/* web_lists.c - see db/web_lists.h. web_list_queries.c has the queries. */
#include "db/report/report_period_private.h"
#include "db/report/report_private.h"
#include "db/report/web_lists_private.h"

#include <stdlib.h>
#include <string.h>

static int
page_read(struct report *report, const struct page_source *source, const struct page_asked *asked,
          struct page_list *list)
{
    const struct database_value values[] = {
        value_text(asked->after ? asked->after : ""), value_int(asked->job),
        value_text(asked->text[0] ? asked->text[0] : ""),
        value_text(asked->text[1] ? asked->text[1] : ""), value_int(PAGE_ROWS + 1)};
    sqlite3_stmt *row;
    int rc = database_start(&report->db, source->sql, values, 5, &row);
    if (rc < 0)
        return rc;
    char mark[PAGE_MARK] = "";
    while ((rc = database_step(&report->db, row)) == 1 && list->table.row_count < PAGE_ROWS) {
        snprintf(mark, sizeof mark, "%s", report_text(row, (int)list->table.column_count));
        if ((rc = night_add_row(report, &list->table, row)) < 0)
            break;
    }
    if (rc == 1)
        memcpy(list->next, mark, sizeof mark);
    database_end(row);
    return rc < 0 ? rc : 0;
}

int
report_page_list(struct report *report, enum page_list_name name, const struct page_asked *asked,
                 struct page_list *list, struct error *error)
{
    const struct page_source *source = &page_sources[name];
    *list = (struct page_list){.table = source->table};
    const int rc = page_read(report, source, asked, list);
    if (rc < 0)
        page_list_free(list);
    return report_conclude(report, NULL, rc, error);
}

const char *
page_list_key(enum page_list_name name)
{
    return page_sources[name].table.key;
}

void
page_list_free(struct page_list *list)
{
    night_table_free(&list->table);
    *list = (struct page_list){0};
}
