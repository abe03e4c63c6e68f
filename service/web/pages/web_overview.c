/*
 * web_overview.c - the page Overview: is the service well? The alerts with their remedies, the flow of the last 24
 * hours, running and waiting work, the parts of the service, and the machine.
 */
#include "service/web/decide/web_decide.h"

#include "base/calendar/time_window.h"
#include "service/common/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define MIB (1024.0 * 1024.0)

/* ---------------------------------------------------------------------------------- alerts ---- */

/* The page that shows the objects of an alert. */
struct overview_target {
    enum alert_kind kind;
    const char *href;
    bool of_subject; /* the address continues with the subject of the alert */
};

static const struct overview_target overview_targets[] = {
    {ALERT_jobs_failed, "work?state=FAILED&amp;current=yes&amp;ended_since=24h", false},
    {ALERT_review, "review", false},
    {ALERT_undelivered, "deliveries?state=FAILED&amp;destination=", true},
    {ALERT_delivery_review, "deliveries", false},
    {ALERT_destination_down, "deliveries?state=UNDELIVERED&amp;destination=", true},
    {ALERT_destination_rejects, "deliveries?state=UNDELIVERED&amp;destination=", true},
    {ALERT_deliveries, "deliveries?state=WAITING&amp;destination=", true},
    {ALERT_commitments, "deliveries?commitment=REQUESTED&amp;destination=", true},
    {ALERT_caller, "received#callers", false},
    {ALERT_quarantine, "received#quarantined", false},
    {ALERT_unpulled, "received#unpulled", false},
    {ALERT_pulls, "received#pulling", false},
    {ALERT_receiving, "work?state=GATHERING", false},
    {ALERT_window, "work?state=WAITING&amp;pipeline=", true},
    {ALERT_jobs_ready, "work?state=WAITING", false},
    {ALERT_delayed, "work?state=DELAYED&amp;code=", true},
    {ALERT_late, "work?state=WAITING", false},
    {ALERT_configuration, "settings", false},
    {ALERT_config_file, "settings", false},
    {ALERT_program_broken, "settings#programs", false},
    {ALERT_report, "reports", false},
    {ALERT_disk_filling, "reports#disk", false},
};

/* Writes the link to the objects of an alert, and its buttons, after its text. `context` is the view. */
static void
overview_alert_more(const void *context, const struct alert *alert, FILE *out)
{
    const char *subject = strchr(alert->id, ':');
    fputs("<div class=\"act\">", out);
    for (size_t i = 0; i < sizeof overview_targets / sizeof *overview_targets; i++) {
        const struct overview_target *target = &overview_targets[i];
        if (target->kind != alert->kind || (target->of_subject && !subject))
            continue;
        fprintf(out, "<a class=\"button tiny\" href=\"%s", target->href);
        if (target->of_subject)
            html_query(subject + 1, out);
        fputs("\">Show<span class=\"hidden\"> ", out);
        html_text(alert->id, out);
        fputs("</span></a>", out);
    }
    web_alert_buttons(context, alert, out);
    fputs("</div>", out);
}

static void
overview_alerts(const struct web_view *view, const struct alerts *alerts)
{
    FILE *out = view->out;
    if (alerts_worst(alerts) == ALERT_BROKEN) {
        fputs("<div class=\"verdict bad\">", out);
        html_icon(MARK_FAILED, out);
        fputs("<strong>The service does not do its work.</strong> <code>/readyz</code> answers 503 for the same "
              "reasons.</div>\n",
              out);
    }
    fputs("<section id=\"alerts\"><h2>Alerts</h2>", out);
    if (html_alerts(alerts, false, overview_alert_more, view, out) == 0)
        fputs("<p class=\"dim\">No alert. An alert appears here if a person should act, with its remedy.</p>", out);
    fputs("</section>\n", out);
}

/* ------------------------------------------------------------------------------------ flow ---- */

struct overview_line {
    enum html_mark mark;
    const char *key, *word, *href;
};

struct overview_step {
    const char *title;
    struct overview_line total; /* no mark */
    struct overview_line lines[3];
};

static const struct overview_step overview_steps[] = {
    {"Received",
     {MARK_NONE, "received", "received", "work?since=24h&amp;current=yes"},
     {{MARK_RECEIVING, "receiving", "being received", "work?state=GATHERING"},
      {MARK_REFUSED, "refused", "refused", "work?state=REFUSED&amp;since=24h"},
      {MARK_NONE, "no_job", "without a job", "work?state=NO_JOB&amp;since=24h"}}},
    {"Processed",
     {MARK_NONE, "ended", "processed", "work?ended_since=24h&amp;current=yes"},
     {{MARK_RUNNING, "running", "running", "work?state=RUNNING"},
      {MARK_WAITING, "waiting", "waiting", "work?state=WAITING"},
      {MARK_FAILED, "failed", "failed", "work?state=FAILED&amp;ended_since=24h&amp;current=yes"}}},
    {"To review",
     {MARK_NONE, "review", "to review", "review"},
     {{MARK_REFUSED, "rejected", "rejected", "work?state=REJECTED&amp;ended_since=24h"}}},
    {"Delivered",
     {MARK_NONE, "sent", "delivered", "deliveries?state=SENT&amp;sent_since=24h"},
     {{MARK_RUNNING, "uncommitted", "not committed", "deliveries?commitment=REQUESTED"},
      {MARK_WAITING, "unsent", "waiting", "deliveries?state=WAITING"},
      {MARK_FAILED, "undelivered", "failed", "deliveries?state=FAILED"}}},
};

/* Writes a number that links to the list that it counts. 0 is no link. */
static void
overview_count(const struct report_table *flow, const struct overview_line *line, const char *class, bool word,
               FILE *out)
{
    const int64_t count = (int64_t)report_number(flow, 0, line->key);
    if (count > 0)
        fprintf(out, "<a%s href=\"%s\">", class, line->href);
    else
        fprintf(out, "<span%s>", class);
    html_count(count, out);
    fprintf(out, "%s%s%s", word ? " " : "", word ? line->word : "", count > 0 ? "</a>" : "</span>");
}

static void
overview_flow(const struct report_table *flow, FILE *out)
{
    fputs("<div class=\"flow\">", out);
    for (size_t i = 0; i < sizeof overview_steps / sizeof *overview_steps; i++) {
        const struct overview_step *step = &overview_steps[i];
        fprintf(out, "<div><h3 class=\"dim\">%s</h3>", step->title);
        overview_count(flow, &step->total, " class=\"total\"", false, out);
        fputs("<ul>", out);
        for (size_t k = 0; k < 3 && step->lines[k].key; k++) {
            const bool none = report_number(flow, 0, step->lines[k].key) <= 0.0;
            fprintf(out, "<li%s>", none ? " class=\"dim\"" : "");
            html_icon(step->lines[k].mark, out);
            overview_count(flow, &step->lines[k], "", true, out);
            fputs("</li>", out);
        }
        const char *since = strcmp(step->total.key, "review") == 0 ? report_cell(flow, 0, "review_since") : NULL;
        if (since && *since) {
            fputs("<li>", out);
            html_icon(MARK_WAITING, out);
            fputs("<span>oldest: ", out);
            html_time(since, out);
            fputs("</span></li>", out);
        }
        fputs("</ul></div>\n", out);
    }
    fputs("</div>\n", out);
}

static int
overview_flow_card(const struct web_view *view, const struct report_table *flow, struct error *error)
{
    static const struct html_bar bars[] = {
        {.key = "received", .word = "received", .class = "c1", .href = "work?current=yes", .times = ""},
        {.key = "done", .word = "done", .class = "c2", .beside = true, .href = "work?current=yes", .times = "ended_"},
        {.key = "review", .word = "to review", .class = "c3"},
        {.key = "failed", .word = "failed", .class = "cf"},
    };
    static const struct html_chart chart = {"Received and processed per hour, last 24 hours", false, bars, 4};

    struct report_table hours;
    const int rc = report_page(view->web->report, WEB_HOURS, &(struct report_query){0}, &hours, error);
    if (rc < 0)
        return rc;
    fputs("<section><h2>Flow</h2>", view->out);
    overview_flow(flow, view->out);
    html_chart(&hours, &chart, view->out);
    fputs("</section>\n", view->out);
    report_table_free(&hours);
    return 0;
}

/* ------------------------------------------------------------------------------- first day ---- */

static void
overview_host(const struct web_view *view)
{
    const char *host = view->request->host;
    const size_t length = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    char *name = strndup(host, length);
    html_text(name && *name ? name : "localhost", view->out);
    free(name);
}

static void
overview_first_steps(const struct web_view *view)
{
    const struct conf *conf = view->web->conf;
    const struct conf_dicom *dicom = &conf->dicom;
    const int port = dicom->port > 0 ? dicom->port : 11112;
    const char *title = dicom->title_count > 0 ? dicom->titles[0].ae_title : "NOCTULE";
    FILE *out = view->out;
    fputs("<section><h2>Nothing was received yet: four steps to the first result</h2><ol class=\"steps\">\n", out);
    if (dicom->peer_count > 0 && dicom->port > 0)
        fprintf(out,
                "<li><h3>Admit a sender</h3><p class=\"dim\">%zu peer%s may connect. For another one, add a row to "
                "<code>dicom.peers</code>:</p><pre>{ ae_title = \"CT1\"; host = \"192.0.2.5\"; }</pre></li>\n",
                dicom->peer_count, dicom->peer_count == 1 ? "" : "s");
    else
        fprintf(out,
                "<li><h3>Admit a sender</h3><p class=\"dim\">No %s yet. Write this to a file in <code>conf.d</code>, "
                "with the AE title and the address of the scanner:</p><pre>dicom = { port = %d; peers = ( { ae_title = "
                "\"CT1\"; host = \"192.0.2.5\"; } ); };</pre></li>\n",
                dicom->port > 0 ? "peer may connect" : "port is open", port);
    fputs("<li><h3>Put it in force</h3><p class=\"dim\">The file is checked first. This page shows a refused reload."
          "</p><pre>noctule check-config &amp;&amp; noctule reload</pre></li>\n<li><h3>Send a series to ",
          out);
    html_text(title, out);
    fprintf(
        out,
        " at port %d</h3><p class=\"dim\">From a scanner, an archive, or with DCMTK. Rejected callers are on the page "
        "<a href=\"received\">Received</a>, with the line that admits them.</p><pre>storescu -aec ",
        port);
    html_text(title, out);
    fputc(' ', out);
    overview_host(view);
    fprintf(out, " %d --scan-directories FOLDER</pre></li>\n<li><h3>Or try it without a scanner</h3>", port);
    if (conf->inbox_count > 0) {
        fputs("<p class=\"dim\">This writes a synthetic head into the inbox.</p><pre>noctule-phantom --kind ct-head "
              "--output ",
              out);
        html_text(conf->inboxes[0].path, out);
        fputs("/try</pre>", out);
    } else {
        fprintf(out,
                "<p class=\"dim\">This sends a synthetic head.</p><pre>noctule-phantom --kind ct-head --output try "
                "&amp;&amp; "
                "storescu -aec %s localhost %d --scan-directories try</pre>",
                title, port);
    }
    fputs("</li>\n</ol></section>\n", out);
}

/* --------------------------------------------------------------------- parts of the service ---- */

/* Writes the state of a part: the worst alert of its kinds, or `fine`. */
static void
overview_part(const struct web_view *view, const char *name, const char *const *kinds, enum html_mark mark,
              const char *fine)
{
    const struct alerts *alerts = &view->web->alerts.list;
    const char *word = fine;
    enum alert_severity worst = ALERT_WAITS;
    for (size_t i = 0; i < alerts->count; i++)
        for (const char *const *kind = kinds; *kind; kind++)
            if (alerts->items[i].severity > worst && alert_find_kind(*kind) == alerts->items[i].kind)
                worst = alerts->items[i].severity;
    if (worst != ALERT_WAITS) {
        word = worst == ALERT_BROKEN ? "Broken" : "Attention";
        mark = worst == ALERT_BROKEN ? MARK_FAILED : MARK_ATTENTION;
    }
    fputs("<tr><td>", view->out);
    html_mark(mark, word, view->out);
    fprintf(view->out, "</td><td>%s</td><td class=\"dim\">", name);
}

static void
overview_part_end(FILE *out)
{
    fputs("</td></tr>\n", out);
}

static void
overview_ports(const struct conf *conf, FILE *out)
{
    const char *before = "";
    if (conf->dicom.port > 0) {
        fprintf(out, "port %d", conf->dicom.port);
        before = ", ";
    }
    if (conf->dicom.tls_port > 0) {
        fprintf(out, "%sport %d (TLS)", before, conf->dicom.tls_port);
        before = ", ";
    }
    if (conf->inbox_count > 0)
        fprintf(out, "%s%zu inbox%s", before, conf->inbox_count, conf->inbox_count == 1 ? "" : "es");
    else if (!*before)
        fputs("no port and no inbox is set", out);
}

static void
overview_parts(const struct web_view *view, const struct report_table *flow, const struct report_table *machine)
{
    static const char *const daemon[] = {"daemon", "stopping", "database", NULL};
    static const char *const receiver[] = {"reception", "starting", "intake", "disk", NULL};
    static const char *const worker[] = {"compute", "worker", "probe", "slurm", "program", NULL};
    static const char *const sender[] = {"courier", "destination_down", "destination_rejects", NULL};
    static const char *const web[] = {"page", NULL};

    const struct conf *conf = view->web->conf;
    const int64_t receiving = (int64_t)report_number(flow, 0, "receiving");
    const int64_t running = (int64_t)report_number(flow, 0, "running");
    const int64_t waiting = (int64_t)report_number(flow, 0, "unsent");
    const bool receives = conf->dicom.port > 0 || conf->dicom.tls_port > 0 || conf->inbox_count > 0;
    const char *compute = report_cell(machine, 0, "compute");
    FILE *out = view->out;
    fputs("<section><header><h2>Service</h2><a class=\"more\" href=\"settings\">settings</a></header>"
          "<table><thead><tr><th scope=\"col\">State</th><th scope=\"col\">Part</th><th "
          "scope=\"col\">Now</th></tr></thead>"
          "<tbody>\n",
          out);
    overview_part(view, "Daemon", daemon, MARK_DONE, "Working");
    html_count((int64_t)report_number(machine, 0, "per_hour"), out);
    fputs(" jobs in the last hour", out);
    overview_part_end(out);
    overview_part(view, "Receiver", receiver,
                  receiving > 0 ? MARK_RUNNING
                  : receives    ? MARK_DONE
                                : MARK_NONE,
                  receiving > 0 ? "Running"
                  : receives    ? "Open"
                                : "Closed");
    overview_ports(conf, out);
    overview_part_end(out);
    overview_part(view, "Workers", worker, running > 0 ? MARK_RUNNING : MARK_DONE, running > 0 ? "Running" : "Ready");
    html_untrusted(compute && *compute ? compute : conf->compute.backend, out);
    overview_part_end(out);
    overview_part(view, "Senders", sender,
                  waiting > 0                   ? MARK_RUNNING
                  : conf->destination_count > 0 ? MARK_DONE
                                                : MARK_NONE,
                  waiting > 0                   ? "Running"
                  : conf->destination_count > 0 ? "Ready"
                                                : "None");
    fprintf(out, "%zu destination%s", conf->destination_count, conf->destination_count == 1 ? "" : "s");
    overview_part_end(out);
    overview_part(view, "Web UI", web, MARK_DONE, "Working");
    if (conf->page.socket)
        fputs("Unix socket", out);
    else
        fprintf(out, "port %d", conf->page.port);
    overview_part_end(out);
    fputs("</tbody></table></section>\n", out);
}

static void
overview_disk(const struct web_view *view, const struct report_table *machine)
{
    const struct conf *conf = view->web->conf;
    const char *at = report_cell(machine, 0, "free_at"), *days = report_cell(machine, 0, "full_days");
    const double free_gib = report_number(machine, 0, "free_mib") / 1024.0;
    struct statvfs fs;
    FILE *out = view->out;
    fputs("<dt>Disk</dt><dd>", out);
    if (!at) {
        fputs("not measured yet</dd>", out);
        return;
    }
    if (statvfs(conf->root, &fs) == 0 && fs.f_blocks > 0) {
        const double all_gib = (double)fs.f_blocks * (double)fs.f_frsize / MIB / 1024.0;
        const double used = 100.0 * (1.0 - free_gib / all_gib);
        fprintf(out,
                "<progress max=\"100\" value=\"%.0f\" aria-label=\"Disk used: %.0f %%\">%.0f %%</progress>%.1f of %.0f "
                "GiB free",
                used, used, used, free_gib, all_gib);
    } else {
        fprintf(out, "%.1f GiB free", free_gib);
    }
    if (days)
        fprintf(out, "; full in %s days", days);
    fputs("<br><span class=\"dim small\">measured ", out);
    html_time(at, out);
    fprintf(out, "; reception stops below %.*f %s", conf->min_free_mib < 1024.0 ? 0 : 1,
            conf->min_free_mib < 1024.0 ? conf->min_free_mib : conf->min_free_mib / 1024.0,
            conf->min_free_mib < 1024.0 ? "MiB" : "GiB");
    fputs(days ? "" : "; the time to full is known after a day of use", out);
    fputs("</span></dd>", out);
}

static void
overview_machine(const struct web_view *view, const struct report_table *machine)
{
    const struct conf *conf = view->web->conf;
    const char *compute = report_cell(machine, 0, "compute"), *report = report_cell(machine, 0, "report");
    const char *reported = report_cell(machine, 0, "reported");
    FILE *out = view->out;
    fputs("<section><header><h2>Machine</h2><a class=\"more\" href=\"reports#disk\">trend</a></header><dl>", out);
    overview_disk(view, machine);
    fputs("<dt>Compute</dt><dd>", out);
    html_untrusted(compute && *compute ? compute : "no device is ready", out);
    fprintf(out, "; %d job%s per device</dd><dt>Report</dt><dd>", conf->compute.lanes,
            conf->compute.lanes == 1 ? "" : "s");
    if (report) {
        fputs("<a href=\"reports?day=", out);
        html_query(report, out);
        fputs("\">", out);
        html_text(report, out);
        fprintf(out, "</a>%s; ", reported && strcmp(reported, "FAILED") == 0 ? ", not sent" : "");
    }
    const int64_t next_ms =
        conf->report.at ? time_window_starts(conf->report.at->times, clock_unix_ms()) : TIME_WINDOW_NEVER;
    if (next_ms != TIME_WINDOW_NEVER) {
        fputs("next ", out);
        html_time_ms(next_ms, out);
    } else {
        fputs("no time is set (<code>report.at</code>)", out);
    }
    fputs("</dd></dl></section>\n", out);
}

/* ------------------------------------------------------------------------------------ page ---- */

static const struct html_link overview_links[] = {
    {"job", "job?id=", NULL},
    {"series_uid", "series?uid=", NULL},
    {"pipeline", "work?pipeline=", NULL},
    {"ready", "work?state=READY&amp;pipeline=", "pipeline"},
    {"delayed", "work?state=DELAYED&amp;pipeline=", "pipeline"},
    {"running", "work?state=RUNNING&amp;pipeline=", "pipeline"},
    {NULL, NULL, NULL},
};

static int
overview_list(const struct web_view *view, enum report_list_name name, struct error *error)
{
    struct report_table table;
    const int rc = report_page(view->web->report, name, &(struct report_query){0}, &table, error);
    if (rc < 0)
        return rc;
    if (table.row_count > 0)
        html_table(&table, overview_links, NULL, view->out);
    report_table_free(&table);
    return 0;
}

static int
overview_content(const struct web_view *view, const struct report_table *flow, const struct report_table *machine,
                 struct error *error)
{
    FILE *out = view->out;
    const struct alerts *alerts = &view->web->alerts.list;
    const bool is_new = report_number(flow, 0, "series") == 0.0;
    overview_alerts(view, alerts);
    fputs("<div class=\"columns\"><div class=\"stack\">\n", out);
    int rc = 0;
    if (is_new)
        overview_first_steps(view);
    else
        rc = overview_flow_card(view, flow, error);
    if (rc == 0)
        rc = overview_list(view, WEB_RUNNING, error);
    if (rc == 0)
        rc = overview_list(view, WEB_BACKLOG, error);
    if (rc == 0)
        rc = overview_list(view, WEB_PROGRAM_RUNS, error);
    fputs("</div><div class=\"stack\">\n", out);
    overview_parts(view, flow, machine);
    overview_machine(view, machine);
    fputs("<section id=\"waits\"><h2>Holds, windows and other waits</h2>", out);
    if (html_alerts(alerts, true, overview_alert_more, view, out) == 0)
        fputs("<p class=\"dim\">No job and no result waits for a hold, a window, an archive or other input.</p>", out);
    fputs("</section>\n</div></div>\n", out);
    return rc;
}

int
web_view_overview(const struct web_view *view, struct error *error)
{
    struct report_table flow, machine;
    int rc = report_page(view->web->report, WEB_FLOW, &(struct report_query){0}, &flow, error);
    if (rc < 0)
        return rc;
    rc = report_page(view->web->report, WEB_MACHINE, &(struct report_query){0}, &machine, error);
    if (rc == 0) {
        fputs("<span class=\"dim\">last 24 hours, to ", view->beside);
        html_time_ms(clock_unix_ms(), view->beside);
        fputs("</span>", view->beside);
        rc = overview_content(view, &flow, &machine, error);
        report_table_free(&machine);
    }
    report_table_free(&flow);
    return rc;
}
