/* web_work.c - the page Work: jobs, and series without a job, in one list. */
#include "service/web/pages/web_browse.h"

#include <stdlib.h>
#include <string.h>

static void
work_untrusted(const struct web_list *list, size_t row, const char *key, const char *class, const char *title)
{
    const char *text = report_cell_text(&list->table, row, key);
    fprintf(list->view->out, "<td class=\"%s\" data-t=\"%s\">", class, title);
    if (*text)
        html_untrusted(text, list->view->out);
    fputs("</td>", list->view->out);
}

/* Writes "PACS SENT, SHARE WAITING" as marks with the names of the destinations. */
static void
work_deliveries(const char *text, FILE *out)
{
    for (size_t length; *text; text += length + strspn(text + length, ", ")) {
        char item[300];
        const char *end = strstr(text, ", ");
        length = end ? (size_t)(end - text) : strlen(text);
        snprintf(item, sizeof item, "%.*s", (int)length, text);
        char *state = strrchr(item, ' ');
        const struct html_state *of = state ? html_find_state(state + 1) : NULL;
        if (!of)
            continue;
        *state = '\0';
        html_mark(of->mark, item, out);
        fprintf(out, "<span class=\"hidden\"> %s</span> ", of->word);
    }
}

/* Writes the last column: the destinations, or the reason if there are no results. */
static void
work_outcome(const struct web_list *list, size_t row)
{
    FILE *out = list->view->out;
    const char *reason = report_cell_text(&list->table, row, "reason"),
               *message = report_cell_text(&list->table, row, "message");
    fputs("<td class=\"outcome\">", out);
    work_deliveries(report_cell_text(&list->table, row, "deliveries"), out);
    if (*reason) {
        fputs("<span class=\"dim\" title=\"", out);
        html_text(message, out);
        fputs("\">", out);
        html_untrusted(reason, out);
        fputs("</span>", out);
    }
    fputs("</td>", out);
}

static void
work_time(const struct web_list *list, size_t row)
{
    FILE *out = list->view->out;
    const char *seconds = report_cell_text(&list->table, row, "seconds");
    fputs("<td class=\"t\" data-t=\"Time\">", out);
    html_time(report_cell_text(&list->table, row, "at"), out);
    fputs("</td><td class=\"n\" data-t=\"Took\">", out);
    if (*seconds)
        html_duration(strtod(seconds, NULL), out);
    fputs(strcmp(report_cell_text(&list->table, row, "state"), "RUNNING") == 0 ? " so far</td>" : "</td>", out);
}

/* The link leads to the job, or to a series without one. */
static void
work_address(const struct web_list *list, size_t row, FILE *out)
{
    const char *job = report_cell_text(&list->table, row, "job");
    fputs(*job ? "<a href=\"job?id=" : "<a href=\"series?uid=", out);
    html_query(*job ? job : report_cell_text(&list->table, row, "series_uid"), out);
    fputs("\">", out);
}

static void
work_row(const struct web_list *list, size_t row, bool has_patients)
{
    FILE *out = list->view->out;
    const char *job = report_cell_text(&list->table, row, "job"),
               *description = report_cell_text(&list->table, row, "series_description");
    fputs("<tr><td>", out);
    html_state(report_cell_text(&list->table, row, "state"), out);
    fputs("</td><td class=\"t\">", out);
    work_address(list, row, out);
    fputs(*job ? "" : "series", out);
    html_text(job, out);
    fputs("</a></td>", out);
    work_untrusted(list, row, "pipeline", "t", "Pipeline");
    fputs("<td class=\"cut\" title=\"", out);
    html_text(description, out);
    fputs("\">", out);
    html_untrusted(*description ? description : "\xe2\x80\x93", out);
    fputs("</td>", out);
    if (has_patients)
        work_untrusted(list, row, "patient_id", "uid patient", "Patient");
    work_untrusted(list, row, "modality", "", "Modality");
    work_untrusted(list, row, "station", "t", "Scanner");
    work_untrusted(list, row, "instances", "n", "Images");
    work_time(list, row);
    work_outcome(list, row);
    fputs("</tr>\n", out);
}

static void
work_table(const struct web_list *list, bool has_patients)
{
    static const struct web_column columns[] = {
        {"State", NULL, ""},
        {"Job", "job", ""},
        {"Pipeline", "pipeline", ""},
        {"Description", NULL, ""},
        {"Patient", NULL, ""},
        {"Modality", NULL, ""},
        {"Scanner", "scanner", ""},
        {"Images", "instances", "n"},
        {"Time", "at", ""},
        {"Took", "seconds", "n"},
        {"Destinations, or why", NULL, ""},
    };

    enum { COLUMNS = sizeof columns / sizeof *columns, PATIENT = 4 };

    struct web_column shown[COLUMNS];
    size_t count = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        if (i != PATIENT || has_patients)
            shown[count++] = columns[i];
    web_list_head(list, shown, count);
    for (size_t row = 0; row < list->table.row_count; row++)
        work_row(list, row, has_patients);
    fputs("</tbody></table>\n", list->view->out);
}

/* Writes how the first series gets here. */
static void
work_first(const struct web_list *list)
{
    FILE *out = list->view->out;
    const struct conf *conf = list->view->web->conf;
    fputs("<p>No series has been received.", out);
    if (conf->dicom.port > 0) {
        fputs(" Send one by C-STORE to AE title <code>", out);
        html_text(conf->dicom.titles[0].ae_title, out);
        fprintf(out, "</code>, port %d.", conf->dicom.port);
    }
    if (conf->inbox_count > 0) {
        fputs(" Or copy one to <code>", out);
        html_text(conf->inboxes[0].path, out);
        fputs("</code>.", out);
    }
    fputs("</p>\n", out);
}

/* Links that many need; others are kept as bookmarks. */
static void
work_links(FILE *out)
{
    static const char *const links[][2] = {
        {"work?state=FAILED&amp;current=yes&amp;ended_since=24h", "Failed in the last 24 hours"},
        {"work?state=REFUSED&amp;since=7d", "Refused in the last 7 days"},
        {"work?longer=60&amp;sort=-seconds", "Took longer than 60 s"},
        {"work?state=GATHERING&amp;sort=at", "Received longest ago"},
    };
    fputs("<p class=\"links\"><span class=\"dim\">Filters:</span>", out);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        fprintf(out, "\n<a href=\"%s\">%s</a>", links[i][0], links[i][1]);
    fputs("</p>\n", out);
}

static int
work_write(const struct web_list *list, struct error *error)
{
    static const char *const fields[] = {"pipeline",    "modality", "scanner", "destination",
                                         "undelivered", "since",    NULL};

    FILE *out = list->view->out;
    fputs("<section class=\"list\">\n", out);
    web_list_chips(list);
    int rc = web_list_form(list, fields, error);
    web_list_text_form(list, "Job, UID, accession, patient, or a part of the description");
    if (rc == 0)
        rc = web_list_saved(list, error);
    if (rc)
        return rc;
    work_links(out);
    if (list->table.row_count > 0)
        work_table(list, list->view->web->conf->identifiers != CONF_IDENTIFIERS_NONE);
    else if (list->is_filtered || (list->browse.after && *list->browse.after))
        fputs("<p class=\"dim\">No job and no series matches the filter.</p>\n", out);
    else
        work_first(list);
    web_list_pager(list);
    fputs("</section>\n", out);
    return 0;
}

int
web_view_work(const struct web_view *view, struct error *error)
{
    struct web_list list;
    int rc = web_list_read(&list, view, view->request->posts ? BROWSE_FOUND : BROWSE_WORK, error);
    if (rc == 0) {
        fputs("<span class=\"dim\">jobs, and series without a job</span>", view->beside);
        rc = work_write(&list, error);
    }
    web_list_clear(&list);
    return rc;
}
