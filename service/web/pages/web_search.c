/* web_search.c - finds series by accession number, patient or UID, and jobs by number. */
#include "service/web/pages/web_view.h"

#include "service/web/decide/web_decide.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int
search_job(const struct web_view *view, int64_t job, struct error *error)
{
    struct report_table list;
    const struct report_query query = {.job = job};
    if (job == 0)
        return 0;
    const int rc = report_page(view->web->report, WEB_JOB, &query, &list, error);
    if (rc < 0)
        return rc;
    if (list.row_count > 0)
        fprintf(view->out,
                "<section><h2>Job with this number</h2><p><a href=\"job?id=%" PRId64 "\">Job %" PRId64
                "</a></p></section>\n",
                job, job);
    report_table_free(&list);
    return 0;
}

/* The link to the next rows as a form: an address would hold the text. */
static void
search_more(const struct web_view *view, const struct report_table *list)
{
    const char *const fields[][2] = {{"q", view->request->values[REQUEST_q]}, {"after", list->next}};
    if (!*list->next)
        return;
    fputs("<form class=\"more\" method=\"post\" action=\"search\">", view->out);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        web_form_field(view->out, fields[i][0], fields[i][1]);
    fputs("<button>More</button></form>\n", view->out);
}

/* Study UIDs have no index, so they are searched only if all else fails. */
static int
search_series(const struct web_view *view, struct report_query query, struct error *error)
{
    struct report_table list;
    int rc = report_page(view->web->report, WEB_FOUND, &query, &list, error);
    if (rc == 0 && list.row_count == 0 && text_is_uid(query.text[0])) {
        report_table_free(&list);
        rc = report_page(view->web->report, WEB_FOUND_STUDY, &query, &list, error);
    }
    if (rc < 0)
        return rc;
    if (list.row_count > 0)
        html_table(&list, web_view_links, NULL, view->out);
    else
        fputs("<section><h2>Results</h2><p class=\"dim\">no matching series</p></section>\n", view->out);
    search_more(view, &list);
    report_table_free(&list);
    return 0;
}

int
web_view_search(const struct web_view *view, struct error *error)
{
    const struct conf *conf = view->web->conf;
    const char *text = view->request->values[REQUEST_q];
    char word[PSEUDONYM_SIZE];
    if (!view->request->posts && view->request->parameter_count > 0)
        return error_set(error, -EINVAL, CODE_NONE,
                         "a search is sent by its form, since addresses stay in logs and in the history of browsers");
    if (!*text) {
        const bool none = conf->identifiers == CONF_IDENTIFIERS_NONE;
        fprintf(view->out,
                "<section><p>Search series by %sthe UID of a series, a study, an instance or a result; "
                "search jobs by number.%s Enter the complete value.</p></section>\n",
                none ? "" : "accession number, patient ID, or ",
                none ? " Accession numbers and patient IDs are not stored here (option identifiers)." : "");
        return 0;
    }
    if (conf->identifiers != CONF_IDENTIFIERS_HASHED || pseudonym_of(&view->web->key, text, word) != 0)
        word[0] = '\0';
    const char *continues = view->request->values[REQUEST_after];
    const struct report_query query = {.after = continues, .text = {text, word}};
    int rc = *continues ? 0 : search_job(view, web_request_number(view->request, REQUEST_q), error);
    return rc ? rc : search_series(view, query, error);
}
