/* web_view.c - lists on the pages of the web UI. */
#include "service/web/web_view.h"

#include <errno.h>
#include <string.h>

const struct html_link web_view_links[] = {{"job", "job?id="},
                                           {"superseded_by", "job?id="},
                                           {"series_uid", "series?uid="},
                                           {"night", "night?day="},
                                           {NULL, NULL}};

static bool
web_view_continues_other(const struct web_view *view, const struct page_list *list)
{
    const char *name = view->request->values[REQUEST_list];
    return *name && strcmp(name, list->table.key) != 0;
}

struct page_asked
web_view_query(const struct web_view *view, enum page_list_name name)
{
    const struct web_request *request = view->request;
    const bool continues = strcmp(request->values[REQUEST_list], page_list_key(name)) == 0;
    return (struct page_asked){.after = continues ? request->values[REQUEST_after] : "",
                               .job = web_request_number(request, REQUEST_id),
                               .text = {request->values[REQUEST_uid], ""}};
}

/* Writes a link to the next rows. Keeps the other parameters of the request. */
void
web_view_more(const struct web_view *view, const struct page_list *list)
{
    static const enum request_value kept[] = {REQUEST_id, REQUEST_uid, REQUEST_q};

    if (!*list->next)
        return;
    fprintf(view->out, "<p class=\"more\"><a href=\"%s?list=%s&amp;after=", view->request->path + 1,
            list->table.key);
    html_query(list->next, view->out);
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
web_view_list(const struct web_view *view, enum page_list_name name, const char *empty,
              const struct page_asked *query, struct error *error)
{
    struct page_list list;
    const int rc = report_page_list(view->web->report, name, query, &list, error);
    if (rc < 0)
        return rc;
    if (!web_view_continues_other(view, &list)) {
        if (list.table.row_count > 0)
            html_table(&list.table, web_view_links, view->out);
        else if (empty)
            fprintf(view->out, "<section><h2>%s</h2><p class=\"faint\">%s</p></section>\n",
                    list.table.heading, empty);
        web_view_more(view, &list);
    }
    page_list_free(&list);
    return 0;
}

int
web_view_figures(const struct web_view *view, enum page_list_name name, struct error *error)
{
    struct page_list list;
    const struct page_asked all = {0};
    const int rc = report_page_list(view->web->report, name, &all, &list, error);
    if (rc < 0)
        return rc;
    if (list.table.row_count > 0)
        html_figures(&list.table, view->out);
    page_list_free(&list);
    return 0;
}

int
web_view_details(const struct web_view *view, enum page_list_name name,
                 const struct page_asked *query, struct error *error)
{
    struct page_list list;
    int rc = report_page_list(view->web->report, name, query, &list, error);
    if (rc < 0)
        return rc;
    if (list.table.row_count > 0)
        html_details(&list.table, web_view_links, view->out);
    else
        rc = error_set(error, -ENOENT, CODE_NONE, "not found in the database");
    page_list_free(&list);
    return rc;
}
