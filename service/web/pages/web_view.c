/* web_view.c - lists on the pages of the web UI. */
#include "service/web/pages/web_view.h"

#include <errno.h>
#include <string.h>

const struct html_link web_view_links[WEB_VIEW_LINKS] = {{"job", "job?id=", NULL},
                                                         {"superseded_by", "job?id=", NULL},
                                                         {"corrects", "job?id=", NULL},
                                                         {"prior_job", "job?id=", NULL},
                                                         {"series_uid", "series?uid=", NULL},
                                                         {"night", "reports?day=", NULL},
                                                         {NULL, NULL, NULL}};

struct report_query
web_view_query(const struct web_view *view, enum report_list_name name)
{
    const struct web_request *request = view->request;
    const bool continues = strcmp(request->values[REQUEST_list], report_lists[name].key) == 0;
    return (struct report_query){.after = continues ? request->values[REQUEST_after] : "",
                                 .job = web_request_number(request, REQUEST_id),
                                 .text = {request->values[REQUEST_uid], ""}};
}

/* Writes a link to the next rows. Keeps the other parameters of the request. */
void
web_view_more(const struct web_view *view, const struct report_table *table)
{
    static const enum request_value kept[] = {REQUEST_id, REQUEST_uid, REQUEST_q};

    if (!*table->next)
        return;
    fprintf(view->out, "<p class=\"more\"><a href=\"%s?list=%s&amp;after=", view->request->path + 1, table->list->key);
    html_query(table->next, view->out);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *value = view->request->values[kept[i]];
        if (!*value)
            continue;
        fprintf(view->out, "&amp;%s=", web_request_value_names[kept[i]]);
        html_query(value, view->out);
    }
    fputs("\">More</a></p>\n", view->out);
}

int
web_view_list(const struct web_view *view, enum report_list_name name, const struct html_buttons *buttons,
              struct error *error)
{
    struct report_table table;
    const struct report_list *list = &report_lists[name];
    const struct report_query query = web_view_query(view, name);
    const char *continued = view->request->values[REQUEST_list];
    int rc = report_page(view->web->report, name, &query, &table, error);
    if (rc < 0)
        return rc;
    if (list->shape == REPORT_FIGURES) {
        if (table.row_count > 0)
            html_figures(&table, NULL, view->out);
    } else if (list->shape == REPORT_DETAILS) {
        if (table.row_count > 0)
            html_details(&table, web_view_links, view->out);
        else
            rc = error_set(error, -ENOENT, CODE_NONE, "not found in the database");
    } else if (!*continued || strcmp(continued, list->key) == 0) {
        if (table.row_count > 0)
            html_table(&table, web_view_links, buttons, view->out);
        else if (list->none)
            fprintf(view->out, "<section id=\"%s\"><h2>%s</h2><p class=\"dim\">%s</p></section>\n", list->key,
                    list->heading, list->none);
        web_view_more(view, &table);
    }
    report_table_free(&table);
    return rc;
}

int
web_view_lists(const struct web_view *view, const enum report_list_name *names, struct error *error)
{
    int rc = 0;
    for (; rc == 0 && *names != REPORT_LIST_COUNT; names++)
        rc = web_view_list(view, *names, NULL, error);
    return rc;
}
