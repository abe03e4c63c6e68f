/* web_pages.c - the pages that consist of lists and something else. */
#include "service/web/web_view.h"

#include "db/report.h"

int
web_view_job(const struct web_view *view, struct error *error)
{
    static const enum report_list_name first[] = {WEB_JOB, WEB_JOB_SEGMENTS, WEB_JOB_QUANTITIES, REPORT_LIST_COUNT};

    static const enum report_list_name rest[] = {WEB_JOB_RESULTS, WEB_JOB_DELIVERIES, WEB_JOB_EVENTS,
                                                 REPORT_LIST_COUNT};

    const int rc = web_view_lists(view, first, error);
    if (rc)
        return rc;
    const int64_t job = web_request_number(view->request, REQUEST_id);
    if (!*view->request->values[REQUEST_list] && web_preview_is_there(view->web, job)) {
        fputs("<section class=\"preview\"><h2>Preview</h2>", view->out);
        web_preview_image(view, job);
        fputs("</section>\n", view->out);
    }
    return web_view_lists(view, rest, error);
}
