/*
 * web_settings.c - the page Settings: shows the configuration in force, read only. It omits secrets: tokens and keys
 * are in files, and the values of commands and environments are left out.
 */
#include "service/web/pages/web_view.h"

#include "service/common/alert/alert_list.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------- in force ---- */

/* Returns the row of a state, "in force" or "refused", or -1. */
static int
settings_row(const struct report_table *loads, const char *state)
{
    for (size_t row = 0; row < loads->row_count; row++)
        if (strcmp(report_cell(loads, row, "state"), state) == 0)
            return (int)row;
    return -1;
}

static void
settings_refused(const struct report_table *loads, FILE *out)
{
    const int row = settings_row(loads, "refused"), kept = settings_row(loads, "in force");
    if (row < 0)
        return;
    fputs("<div class=\"verdict bad\" id=\"refused\">", out);
    html_icon(MARK_FAILED, out);
    fputs("<strong>The configuration read at ", out);
    html_time(report_cell(loads, (size_t)row, "at"), out);
    fputs(" was refused.</strong>", out);
    if (kept >= 0) {
        fputs("<span>The one of ", out);
        html_time(report_cell(loads, (size_t)kept, "at"), out);
        fputs(" stays in force; a restart would fail.</span>", out);
    }
    fputs("<pre>", out);
    html_text(report_cell(loads, (size_t)row, "reason"), out);
    fputs("</pre><span class=\"dim\">Correct the file, then <code>noctule check-config &amp;&amp; noctule "
          "reload</code>.</span></div>\n",
          out);
}

/* Writes the alert of a changed file that would be refused, before somebody reloads it. */
static void
settings_fault(const struct alerts *alerts, FILE *out)
{
    for (size_t i = 0; i < alerts->count; i++) {
        if (alerts->items[i].kind != ALERT_config_file)
            continue;
        fputs("<div class=\"verdict warn\">", out);
        html_icon(MARK_ATTENTION, out);
        fputs("<strong>The configuration file changed and is wrong.</strong><pre>", out);
        html_text(alerts->items[i].text, out);
        fputs("</pre></div>\n", out);
    }
}

static void
settings_in_force(const struct report_table *loads, FILE *out)
{
    const int row = settings_row(loads, "in force");
    fputs("<section><h2>In force</h2>", out);
    if (row < 0) {
        fputs("<p class=\"dim\">The daemon records here when it read which files.</p></section>\n", out);
        return;
    }
    const char *cause = report_cell(loads, (size_t)row, "cause"), *by = report_cell(loads, (size_t)row, "by");
    fputs("<dl><dt>Read</dt><dd>", out);
    html_time(report_cell(loads, (size_t)row, "at"), out);
    fprintf(out, ", %s", strcmp(cause, "start") == 0 ? "at the start" : "by a reload");
    if (by && *by) {
        fputs(" of ", out);
        html_untrusted(by, out);
    }
    fputs("</dd><dt>Files</dt><dd>", out);
    html_untrusted(report_cell(loads, (size_t)row, "files"), out);
    fputs("</dd><dt>Program</dt><dd>noctule " NOCTULE_VERSION "</dd></dl></section>\n", out);
}

static void
settings_warnings(const struct web *web, FILE *out)
{
    fputs("<section><h2>Warnings</h2>", out);
    size_t count = 0;
    for (size_t i = 0; i < web->findings.count; i++) {
        if (web->findings.items[i].wrong)
            continue;
        const char *message = web->findings.items[i].message, *text = strstr(message, ": ");
        fputs(count++ ? ""
                      : "<table class=\"rows\"><thead><tr><th scope=\"col\">Line</th><th scope=\"col\">Warning</th>"
                        "</tr></thead><tbody>\n",
              out);
        fputs("<tr><td><code>", out);
        const char *slash = message;
        for (const char *at = message; text && at < text; at++)
            slash = *at == '/' ? at + 1 : slash;
        char *place = strndup(slash, text ? (size_t)(text - slash) : 0);
        html_text(place ? place : "", out);
        free(place);
        fputs("</code></td><td>", out);
        html_untrusted(text ? text + 2 : message, out);
        fputs("</td></tr>\n", out);
    }
    fputs(count ? "</tbody></table></section>\n"
                : "<p class=\"dim\">None. Doubtful settings appear here with their line.</p></section>\n",
          out);
}

/* ------------------------------------------------------------------- pipelines, rules, peers ---- */

static void
settings_heads(const char *heading, const char *id, const char *const *titles, FILE *out)
{
    fprintf(out, "<section id=\"%s\"><h2>%s</h2><table class=\"rows\"><thead><tr>", id, heading);
    for (; *titles; titles++)
        fprintf(out, "<th scope=\"col\"%s>%s</th>", **titles == '#' ? " class=\"n\"" : "", *titles + (**titles == '#'));
    fputs("</tr></thead><tbody>\n", out);
}

static void
settings_names(char *const *names, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", out);
        html_untrusted(names[i], out);
    }
}

static int
settings_pipelines(const struct web_view *view, struct error *error)
{
    static const char *const titles[] = {"Pipeline", "Segments", "Window", "To", "#Work, 7 days", NULL};

    struct report_table counts;
    const struct conf *conf = view->web->conf;
    FILE *out = view->out;
    if (conf->pipeline_count == 0) {
        fputs("<section id=\"pipelines\"><h2>Pipelines</h2><p class=\"dim\">None. <code>noctule presets</code> lists "
              "ready "
              "ones.</p></section>\n",
              out);
        return 0;
    }
    const int rc = report_page(view->web->report, WEB_PIPELINE_WORK, &(struct report_query){0}, &counts, error);
    if (rc < 0)
        return rc;
    settings_heads("Pipelines", "pipelines", titles, out);
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        const struct conf_pipeline *pipeline = &conf->pipelines[i];
        int64_t work = 0;
        for (size_t row = 0; row < counts.row_count; row++)
            if (strcmp(report_cell(&counts, row, "pipeline"), pipeline->name) == 0)
                work = (int64_t)report_number(&counts, row, "work");
        fputs("<tr><td><strong>", out);
        html_untrusted(pipeline->name, out);
        fputs("</strong></td><td data-t=\"Segments\">", out);
        for (size_t k = 0; k < pipeline->segment_count; k++) {
            fputs(k ? ", " : "", out);
            html_untrusted(pipeline->segments[k].label, out);
        }
        fputs("</td><td data-t=\"Window\">", out);
        html_untrusted(pipeline->window ? pipeline->window->text : "always", out);
        fputs("</td><td data-t=\"To\">", out);
        settings_names(pipeline->deliver, pipeline->deliver_count, out);
        fputs("</td><td class=\"n\" data-t=\"Work, 7 days\">", out);
        if (work > 0) {
            fputs("<a href=\"work?since=7d&amp;current=yes&amp;pipeline=", out);
            html_query(pipeline->name, out);
            fputs("\">", out);
        }
        html_count(work, out);
        fputs(work > 0 ? "</a></td></tr>\n" : "</td></tr>\n", out);
    }
    fputs("</tbody></table></section>\n", out);
    report_table_free(&counts);
    return 0;
}

static void
settings_condition(const char *name, const char *value, const char **before, FILE *out)
{
    if (!value)
        return;
    fprintf(out, "%s%s ", *before, name);
    html_untrusted(value, out);
    *before = ", ";
}

static void
settings_rule_conditions(const struct conf_rule *rule, FILE *out)
{
    const char *before = "";
    settings_condition("modality", rule->modality, &before, out);
    settings_condition("body part", rule->body_part, &before, out);
    settings_condition("description with", rule->description, &before, out);
    settings_condition("inbox", rule->inbox, &before, out);
    settings_condition("called AE", rule->called_ae, &before, out);
    settings_condition("sender", rule->sender, &before, out);
    if (rule->min_slices > 0 || rule->max_slices > 0) {
        fprintf(out, "%s", before);
        before = ", ";
        if (rule->min_slices > 0)
            fprintf(out, "from %d ", rule->min_slices);
        if (rule->max_slices > 0)
            fprintf(out, "up to %d ", rule->max_slices);
        fputs("slices", out);
    }
    if (rule->has_spacing) {
        fprintf(out, "%sspacing %g to %g mm", before, rule->spacing[0], rule->spacing[1]);
        before = ", ";
    }
    if (rule->has_contrast) {
        fprintf(out, "%s%s contrast", before, rule->contrast ? "with" : "without");
        before = ", ";
    }
    if (rule->attribute_count > 0) {
        fprintf(out, "%s%zu attribute%s", before, rule->attribute_count, rule->attribute_count == 1 ? "" : "s");
        before = ", ";
    }
    if (rule->study_count > 0) {
        fprintf(out, "%s%zu other series of the study", before, rule->study_count);
        before = ", ";
    }
    fputs(rule->otherwise ? "no other rule matches" : *before ? "" : "each series", out);
}

static void
settings_rules(const struct conf *conf, FILE *out)
{
    static const char *const titles[] = {"Rule", "Name", "When", "Pipeline", NULL};

    if (conf->rule_count == 0) {
        fputs("<section id=\"rules\"><h2>Rules</h2><p class=\"dim\">None. A rule selects the pipeline of a series; "
              "<code>noctule explain SERIES_UID</code> tries them.</p></section>\n",
              out);
        return;
    }
    settings_heads("Rules", "rules", titles, out);
    for (size_t i = 0; i < conf->rule_count; i++) {
        const struct conf_rule *rule = &conf->rules[i];
        fprintf(out, "<tr><td data-t=\"Rule\">%d</td><td data-t=\"Name\">", rule->number);
        if (rule->name)
            html_untrusted(rule->name, out);
        fputs("</td><td data-t=\"When\">", out);
        settings_rule_conditions(rule, out);
        fputs("</td><td data-t=\"Pipeline\">", out);
        html_untrusted(rule->pipeline, out);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table></section>\n", out);
}

static void
settings_network(const struct conf *conf, FILE *out)
{
    static const char *const titles[] = {"Name", "Address", NULL};

    if (conf->destination_count == 0) {
        fputs("<section id=\"destinations\"><h2>Destinations</h2><p class=\"dim\">None: results stay in the outbox."
              "</p></section>\n",
              out);
    } else {
        settings_heads("Destinations", "destinations", titles, out);
        for (size_t i = 0; i < conf->destination_count; i++) {
            const struct conf_destination *to = &conf->destinations[i];
            fputs("<tr><td><a href=\"deliveries?destination=", out);
            html_query(to->name, out);
            fputs("\">", out);
            html_text(to->name, out);
            fputs("</a></td><td>", out);
            html_untrusted(to->folder ? to->folder : to->stow ? to->stow : to->ae_title ? to->ae_title : "", out);
            if (to->host) {
                fputs(" at ", out);
                html_untrusted(to->host, out);
                fprintf(out, ", port %d%s", to->port, to->tls ? ", TLS" : "");
            }
            fputs("</td></tr>\n", out);
        }
        fputs("</tbody></table></section>\n", out);
    }
    fputs("<section><h2>Reception</h2><dl><dt>Port</dt><dd>", out);
    fprintf(out, conf->dicom.port > 0 ? "%d" : "closed", conf->dicom.port);
    fputs("</dd><dt>TLS port</dt><dd>", out);
    fprintf(out, conf->dicom.tls_port > 0 ? "%d" : "closed", conf->dicom.tls_port);
    fputs("</dd><dt>AE titles</dt><dd>", out);
    for (size_t i = 0; i < conf->dicom.title_count; i++) {
        fputs(i ? ", " : "", out);
        html_untrusted(conf->dicom.titles[i].ae_title, out);
    }
    fprintf(out, "</dd><dt>Peers</dt><dd><a href=\"received\">%zu</a></dd><dt>Inboxes</dt><dd>",
            conf->dicom.peer_count);
    for (size_t i = 0; i < conf->inbox_count; i++) {
        fputs(i ? "<br>" : "", out);
        html_untrusted(conf->inboxes[i].path, out);
    }
    fputs("</dd></dl></section>\n", out);
}

/* ------------------------------------------------------------------------ the whole text ---- */

/* Returns whether the value of an option may be secret. */
static bool
settings_is_secret(const char *line, size_t length)
{
    static const char *const names[] = {"command", "cpu_command", "environment"};
    const size_t indent = strspn(line, " ");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t name = strlen(names[i]);
        if (indent + name < length && strncmp(line + indent, names[i], name) == 0 && line[indent + name] == ' ')
            return true;
    }
    return false;
}

static void
settings_text(const struct conf *conf, FILE *out)
{
    char *text = conf_to_text(conf);
    fputs("<section><h2>All options</h2><div class=\"body\"><details><summary>The configuration in force, with defaults"
          "</summary><pre>",
          out);
    for (const char *line = text; line && *line;) {
        const size_t length = strcspn(line, "\n");
        const size_t shown = settings_is_secret(line, length) ? strcspn(line, "=") : length;
        char *part = strndup(line, shown < length ? shown : length);
        html_text(part ? part : "", out);
        free(part);
        fputs(shown < length ? "= (not shown)\n" : "\n", out);
        line += length + (line[length] == '\n');
    }
    fputs("</pre></details></div></section>\n", out);
    free(text);
}

int
web_view_settings(const struct web_view *view, struct error *error)
{
    static const enum report_list_name programs[] = {WEB_PROGRAMS, REPORT_LIST_COUNT};

    struct report_table loads;
    const struct conf *conf = view->web->conf;
    int rc = report_page(view->web->report, WEB_CONFIGURATION, &(struct report_query){0}, &loads, error);
    if (rc < 0)
        return rc;
    fputs("<span class=\"dim\">the configuration in force; this page changes none of it</span>", view->beside);
    settings_refused(&loads, view->out);
    settings_fault(&view->web->alerts.list, view->out);
    fputs("<div class=\"columns\"><div class=\"stack\">\n", view->out);
    settings_warnings(view->web, view->out);
    rc = settings_pipelines(view, error);
    settings_rules(conf, view->out);
    if (rc == 0)
        rc = web_view_lists(view, programs, error);
    settings_text(conf, view->out);
    fputs("</div><div class=\"stack\">\n", view->out);
    settings_in_force(&loads, view->out);
    settings_network(conf, view->out);
    fprintf(view->out, "<section><h2>Compute</h2><dl><dt>Backend</dt><dd>%s</dd><dt>Devices</dt><dd>",
            conf->compute.backend);
    settings_names(conf->compute.devices, conf->compute.device_count, view->out);
    fprintf(view->out, "%s</dd><dt>Jobs per device</dt><dd>%d</dd></dl></section>\n</div></div>\n",
            conf->compute.device_count ? "" : "all", conf->compute.lanes);
    report_table_free(&loads);
    return rc;
}
