/*
 * web_rows.c - pages that are a list of the API with its filters: received series, and quarantined files. Counts of reports
 * are links to them.
 */
#include "service/web/pages/web_browse.h"

#include <string.h>

static int
rows_write(const struct web_list *list, const char *const *fields, struct error *error)
{
    static const struct html_link links[] = {
        {"series_description", "series?uid=", "series_uid"}, {"series_uid", "series?uid=", NULL}, {NULL, NULL, NULL}};

    FILE *out = list->view->out;
    fputs("<section class=\"list\">\n", out);
    web_list_chips(list);
    const int rc = web_list_form(list, fields, error);
    if (rc)
        return rc;
    fputs("</section>\n", out);
    if (list->table.row_count > 0)
        html_table(&list->table, links, NULL, out);
    else
        fputs("<section><p class=\"dim\">No row matches the filter.</p></section>\n", out);
    fputs("<section class=\"list\">", out);
    web_list_pager(list);
    fputs("</section>\n", out);
    return 0;
}

static int
rows_view(const struct web_view *view, enum report_browse_name name, const char *const *fields, struct error *error)
{
    struct web_list list;
    int rc = web_list_read(&list, view, name, error);
    if (rc == 0)
        rc = rows_write(&list, fields, error);
    web_list_clear(&list);
    return rc;
}

int
web_view_arrivals(const struct web_view *view, struct error *error)
{
    static const char *const fields[] = {"modality", "station", "refused", "unruled", "settled_since", "code", NULL};
    return rows_view(view, BROWSE_ARRIVALS, fields, error);
}

int
web_view_quarantined(const struct web_view *view, struct error *error)
{
    static const char *const fields[] = {"code", "sender", "kept", "since", NULL};
    return rows_view(view, BROWSE_QUARANTINE, fields, error);
}
