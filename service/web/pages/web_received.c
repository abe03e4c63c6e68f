/* web_received.c - the page Received: senders, rejected callers and quarantined files. */
#include "service/web/decide/web_decide.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------- callers ---- */

static void
received_cell(const char *title, const char *text, FILE *out)
{
    fprintf(out, "<td data-t=\"%s\">", title);
    if (text && *text)
        html_untrusted(text, out);
    fputs("</td>", out);
}

static void
received_time(const char *at, FILE *out)
{
    fputs("<td class=\"t\" data-t=\"Last\">", out);
    html_time(at ? at : "", out);
    fputs("</td>", out);
}

static void
received_rejected(const struct report_table *callers, size_t row, FILE *out)
{
    const bool was = report_cell(callers, row, "admitted") != NULL;
    fputs(was ? "<tr><td>" : "<tr class=\"act\"><td>", out);
    html_mark(was ? MARK_DONE : MARK_REFUSED, was ? "Admitted now" : "Rejected", out);
    fputs("</td>", out);
    received_cell("Calling", report_cell(callers, row, "calling"), out);
    received_cell("Address", report_cell(callers, row, "host"), out);
    received_cell("Called", report_cell(callers, row, "called"), out);
    fputs("<td class=\"n\" data-t=\"Count\">", out);
    if (!was)
        fprintf(out, "<a href=\"#caller-%zu\">", row);
    html_count((int64_t)report_number(callers, row, "rejected"), out);
    fputs(was ? "</td>" : "</a></td>", out);
    received_time(report_cell(callers, row, "last"), out);
    received_cell("", report_cell(callers, row, "meaning"), out);
    fputs("</tr>\n", out);
}

/* Returns the peer with this AE title, or NULL. */
static const struct conf_peer *
received_peer(const struct conf_dicom *dicom, const char *title)
{
    for (size_t i = 0; i < dicom->peer_count; i++)
        if (dicom->peers[i].ae_title && strcmp(dicom->peers[i].ae_title, title) == 0)
            return &dicom->peers[i];
    return NULL;
}

static void
received_sender(const struct web_view *view, const struct report_table *senders, size_t row)
{
    const char *name = report_cell(senders, row, "sender");
    const struct conf_peer *peer = received_peer(&view->web->conf->dicom, name ? name : "");
    const int64_t work = (int64_t)report_number(senders, row, "work");
    FILE *out = view->out;
    fputs("<tr><td>", out);
    html_mark(work > 0 ? MARK_DONE : MARK_WAITING, work > 0 ? "Admitted" : "Quiet", out);
    fputs("</td>", out);
    received_cell("Calling", name && *name ? name : "inboxes", out);
    received_cell("Address", peer && peer->host ? peer->host : "", out);
    received_cell("Called", report_cell(senders, row, "called"), out);
    fputs("<td class=\"n\" data-t=\"Count\">", out);
    if (work > 0) {
        const bool is_caller = name && *name;
        fprintf(out, "<a href=\"work?since=24h&amp;current=yes&amp;%s=", is_caller ? "sender" : "way");
        html_query(is_caller ? name : "inbox", out);
        fputs("\">", out);
    }
    html_count(work, out);
    fputs(work > 0 ? "</a></td>" : "</td>", out);
    received_time(report_cell(senders, row, "last"), out);
    fputs("<td>", out);
    html_count((int64_t)report_number(senders, row, "instances"), out);
    fputs(" instances</td></tr>\n", out);
}

/* Writes the peers that have sent no object: the list of senders lacks them. */
static void
received_quiet_peers(const struct web_view *view, const struct report_table *senders)
{
    const struct conf_dicom *dicom = &view->web->conf->dicom;
    for (size_t i = 0; i < dicom->peer_count; i++) {
        const char *title = dicom->peers[i].ae_title;
        bool found = false;
        for (size_t row = 0; row < senders->row_count && title; row++) {
            const char *name = report_cell(senders, row, "sender");
            found = found || (name && strcmp(name, title) == 0);
        }
        if (found)
            continue;
        fputs("<tr><td>", view->out);
        html_mark(MARK_WAITING, "Quiet", view->out);
        fputs("</td>", view->out);
        received_cell("Calling", title ? title : "any AE title", view->out);
        received_cell("Address", dicom->peers[i].host ? dicom->peers[i].host : "", view->out);
        fputs("<td></td><td class=\"n\" data-t=\"Count\">0</td><td></td><td class=\"dim\">no series in 7 "
              "days</td></tr>\n",
              view->out);
    }
}

static void
received_callers(const struct web_view *view, const struct report_table *callers, const struct report_table *senders)
{
    static const char *const titles[] = {
        "State", "Calling", "Address", "Called", "Count", "Last", "Received, or reason"};

    FILE *out = view->out;
    fputs("<section id=\"callers\"><h2>Callers</h2>", out);
    if (callers->row_count == 0 && senders->row_count == 0 && view->web->conf->dicom.peer_count == 0) {
        fputs(
            "<p class=\"dim\">No peer is configured. Callers appear here, also rejected ones with the line that admits "
            "them.</p></section>\n",
            out);
        return;
    }
    fputs("<table class=\"rows\"><thead><tr>", out);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        fprintf(out, "<th scope=\"col\"%s>%s</th>", i == 4 ? " class=\"n\"" : "", titles[i]);
    fputs("</tr></thead>\n<tbody>", out);
    for (size_t row = 0; row < callers->row_count; row++)
        received_rejected(callers, row, out);
    for (size_t row = 0; row < senders->row_count; row++)
        received_sender(view, senders, row);
    received_quiet_peers(view, senders);
    fputs(
        "</tbody></table><footer>Count: rejected associations, or the series and jobs of the last 24 hours in the list "
        "<a href=\"work?since=24h&amp;current=yes\">Work</a>.</footer></section>\n",
        out);
}

/* Writes the lines that admit rejected callers. `admit` is "peers: ROW" or "titles: ROW" (v_callers). */
static void
received_admit(const struct web_view *view, const struct report_table *callers, const char *file)
{
    FILE *out = view->out;
    bool any = false;
    for (size_t row = 0; row < callers->row_count; row++) {
        const char *admit = report_cell(callers, row, "admit"), *line = admit ? strchr(admit, '{') : NULL;
        if (report_cell(callers, row, "admitted"))
            continue;
        fputs(any ? "" : "<section><h2>To admit them</h2><div class=\"body spaced\">\n", out);
        any = true;
        fprintf(out, "<div id=\"caller-%zu\"><p><strong>", row);
        html_untrusted(report_cell(callers, row, "calling"), out);
        fputs("</strong> at ", out);
        html_untrusted(report_cell(callers, row, "host"), out);
        fputs(", who called ", out);
        html_untrusted(report_cell(callers, row, "called"), out);
        if (!line) {
            fputs(": no line can admit this caller; correct its settings.</p></div>\n", out);
            continue;
        }
        fprintf(out, ": add to the list <code>dicom.%.*s</code></p><pre>", (int)strcspn(admit, ":"), admit);
        html_text(line, out);
        fputs("</pre>", out);
        if (strncmp(admit, "titles", 6) == 0)
            fputs("<p>If that list is new, its first row must be <code>{ ae_title = \"NOCTULE\"; }</code>.</p>", out);
        fputs("</div>\n", out);
    }
    if (!any)
        return;
    fputs("</div><footer>Write the line into ", out);
    html_untrusted(file && *file ? file : "the configuration", out);
    fputs(
        ", then <code>noctule check-config &amp;&amp; noctule reload</code>. Admit only systems that you know.</footer>"
        "</section>\n",
        out);
}

/* -------------------------------------------------------------------------------- ways in ---- */

static void
received_way(const struct web_view *view, bool broken, const char *name, const char *value, const char *note)
{
    fputs("<tr><td>", view->out);
    html_mark(broken ? MARK_FAILED : MARK_DONE, broken ? "See alerts" : "Open", view->out);
    fprintf(view->out, "</td><td>%s ", name);
    html_untrusted(value, view->out);
    fputs("</td><td class=\"dim nowrap\">", view->out);
    html_untrusted(note, view->out);
    fputs("</td></tr>\n", view->out);
}

static void
received_ways(const struct web_view *view)
{
    static const char *const after[] = {"files are kept", "files are moved", "files are deleted"};

    const struct conf *conf = view->web->conf;
    const struct alerts *alerts = &view->web->alerts.list;
    bool broken = false;
    for (size_t i = 0; i < alerts->count; i++)
        broken = broken || alerts->items[i].kind == ALERT_reception || alerts->items[i].kind == ALERT_starting ||
                 alerts->items[i].kind == ALERT_disk;
    fputs("<section><h2>Ways in</h2>", view->out);
    if (conf->dicom.port == 0 && conf->dicom.tls_port == 0 && conf->inbox_count == 0) {
        fputs("<p class=\"dim\">No port and no inbox is set: <code>dicom.port</code>, "
              "<code>inbox</code>.</p></section>\n",
              view->out);
        return;
    }
    fputs("<table><thead><tr><th scope=\"col\">State</th><th scope=\"col\">Way</th><th "
          "scope=\"col\">Note</th></tr></thead>"
          "<tbody>\n",
          view->out);
    char text[64];
    if (conf->dicom.port > 0) {
        snprintf(text, sizeof text, "%d", conf->dicom.port);
        received_way(view, broken, "port", text, conf->dicom.titles[0].ae_title);
    }
    if (conf->dicom.tls_port > 0) {
        snprintf(text, sizeof text, "%d", conf->dicom.tls_port);
        received_way(view, broken, "port", text, "TLS");
    }
    for (size_t i = 0; i < conf->inbox_count; i++)
        received_way(view, broken, "inbox", conf->inboxes[i].name ? conf->inboxes[i].name : conf->inboxes[i].path,
                     after[conf->inboxes[i].after]);
    fputs("</tbody></table></section>\n", view->out);
}

/* ------------------------------------------------------------------------------------ page ---- */

static const enum report_list_name received_pulls[] = {WEB_PULLING, WEB_UNPULLED, REPORT_LIST_COUNT};

static int
received_content(const struct web_view *view, const struct report_table *callers, const struct report_table *senders,
                 struct error *error)
{
    struct report_table files;
    int rc = report_page(view->web->report, WEB_CONFIGURATION, &(struct report_query){0}, &files, error);
    if (rc < 0)
        return rc;
    int64_t work = 0, instances = 0;
    for (size_t row = 0; row < senders->row_count; row++) {
        work += (int64_t)report_number(senders, row, "work");
        instances += (int64_t)report_number(senders, row, "instances");
    }
    fputs("<span class=\"dim\">last 24 hours: ", view->beside);
    fputs(work > 0 ? "<a href=\"work?since=24h&amp;current=yes\">" : "", view->beside);
    html_count(work, view->beside);
    fprintf(view->beside, " series and jobs%s, ", work > 0 ? "</a>" : "");
    html_count(instances, view->beside);
    fputs(" instances</span>", view->beside);

    fputs("<div class=\"columns\"><div class=\"stack\">\n", view->out);
    received_callers(view, callers, senders);
    rc = web_view_quarantine(view, error);
    fputs("</div><div class=\"stack\">\n", view->out);
    received_admit(view, callers, files.row_count > 0 ? report_cell(&files, 0, "main") : NULL);
    received_ways(view);
    fputs("</div></div>\n", view->out);
    report_table_free(&files);
    return rc ? rc : web_view_lists(view, received_pulls, error);
}

int
web_view_received(const struct web_view *view, struct error *error)
{
    struct report_table callers, senders;
    const struct report_query query = web_view_query(view, WEB_CALLERS);
    if (*view->request->values[REQUEST_list]) { /* further rows of a list */
        const int rc = web_view_quarantine(view, error);
        return rc ? rc : web_view_lists(view, received_pulls, error);
    }
    int rc = report_page(view->web->report, WEB_CALLERS, &query, &callers, error);
    if (rc < 0)
        return rc;
    rc = report_page(view->web->report, WEB_SENDERS, &(struct report_query){0}, &senders, error);
    if (rc == 0) {
        rc = received_content(view, &callers, &senders, error);
        report_table_free(&senders);
    }
    report_table_free(&callers);
    return rc;
}
