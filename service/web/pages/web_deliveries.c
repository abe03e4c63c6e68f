/* web_deliveries.c - the page Deliveries: a row per destination, what is not delivered by cause, and all deliveries. */
#include "service/web/decide/web_decide.h"
#include "service/web/pages/web_browse.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_ROWS 10 /* deliveries of a group; a link leads to the others */

/* ---------------------------------------------------------------------------- destinations --- */

static void
destination_how(const struct conf_destination *destination, FILE *out)
{
    if (!destination) {
        fputs("not configured", out);
    } else if (destination->folder) {
        fputs("folder ", out);
        html_text(destination->folder, out);
    } else if (destination->stow) {
        fputs("STOW-RS, ", out);
        html_text(destination->stow, out);
    } else {
        fputs(destination->tls ? "C-STORE over TLS, " : "C-STORE, ", out);
        html_text(destination->host, out);
        fprintf(out, ":%d%s", destination->port, destination->commit ? ", commitment" : "");
    }
    if (destination && destination->deidentify)
        fputs(", de-identified; pixels stay as they are", out);
}

/* Writes a count as a link to its list; 0 is no link. */
static void
destination_count(const char *destination, const char *count, const char *condition, const char *title, FILE *out)
{
    const int64_t number = strtoll(count, NULL, 10);
    fprintf(out, "<td class=\"n\" data-t=\"%s\">", title);
    if (number > 0) {
        fputs("<a href=\"deliveries?destination=", out);
        html_query(destination, out);
        fprintf(out, "&amp;%s\">", condition);
    }
    html_count(number, out);
    fputs(number > 0 ? "</a></td>" : "</td>", out);
}

/* Writes 24 bars, one per hour. */
static void
destination_chart(const char *hours, FILE *out)
{
    int64_t counts[24] = {0}, most = 1, sum = 0;
    char *rest = NULL;
    for (int i = 0; i < 24; i++) {
        counts[i] = strtoll(i ? rest : hours, &rest, 10);
        most = counts[i] > most ? counts[i] : most;
        sum += counts[i];
    }
    fprintf(out,
            "<td class=\"bars\"><svg viewBox=\"0 0 192 16\" role=\"img\" aria-label=\"%" PRId64
            " sent in 24 hours, at most %" PRId64 " in an hour\">",
            sum, sum ? most : 0);
    for (int i = 0; i < 24; i++) {
        const double height = counts[i] ? 1.0 + 15.0 * (double)counts[i] / (double)most : 0.0;
        if (counts[i])
            fprintf(out, "<rect class=\"c1\" x=\"%d\" y=\"%.1f\" width=\"7\" height=\"%.1f\"/>", 8 * i, 16.0 - height,
                    height);
    }
    fputs("</svg></td>", out);
}

struct destinations {
    const struct web_view *view;
    struct report_table table, holds; /* BROWSE_DESTINATIONS, WEB_DESTINATION_HOLDS */
};

/* Returns the person who holds a destination, also one without deliveries; "" if it is not held. */
static const char *
destination_hold(const struct report_table *holds, const char *name)
{
    for (size_t row = 0; row < holds->row_count; row++)
        if (strcmp(report_cell_text(holds, row, "name"), name) == 0)
            return report_cell_text(holds, row, "held_by");
    return "";
}

static bool
destination_may(const struct web_view *view)
{
    return web_may(view, "hold", "destination of any name");
}

/* Writes a destination. `row` is its place in the table; without deliveries it has none. */
static void
destination_row(const struct destinations *all, const struct conf_destination *of, const char *name, size_t row)
{
    FILE *out = all->view->out;
    const struct report_table *table = &all->table;
    const bool is_known = row < table->row_count;
    const char *hold = destination_hold(&all->holds, name);
    const char *held = *hold || !is_known ? hold : report_cell_text(table, row, "held"),
               *down = is_known ? report_cell_text(table, row, "down_reason") : "";
    const bool is_down = is_known && *report_cell_text(table, row, "down_since");
    fprintf(out, "<tr%s><td title=\"", is_down ? " class=\"bad\"" : "");
    html_text(*held ? held : down, out);
    fputs("\">", out);
    if (of)
        html_state(*held ? "HELD" : is_down ? "down" : "up", out);
    else
        html_mark(MARK_NONE, "Unused", out);
    fputs("</td><td class=\"t\" data-t=\"Destination\">", out);
    html_text(name, out);
    fputs("</td><td class=\"dim long\">", out);
    destination_how(of, out);
    fputs("</td>", out);
    destination_count(name, is_known ? report_cell_text(table, row, "waiting") : "0", "state=WAITING", "Waiting", out);
    destination_count(name, is_known ? report_cell_text(table, row, "failed") : "0", "state=FAILED", "Failed", out);
    destination_count(name, is_known ? report_cell_text(table, row, "uncommitted") : "0", "commitment=REQUESTED",
                      "Not committed", out);
    destination_count(name, is_known ? report_cell_text(table, row, "sent_24h") : "0", "state=SENT&amp;sent_since=24h",
                      "Sent (24 h)", out);
    destination_chart(is_known ? report_cell_text(table, row, "hours") : "", out);
    fputs("<td class=\"t\" data-t=\"Last sent\">", out);
    html_time(is_known ? report_cell_text(table, row, "last_sent") : "", out);
    fputs("</td><td class=\"t\" data-t=\"Next attempt\">", out);
    html_time(is_known ? report_cell_text(table, row, "next") : "", out);
    fputs("</td>", out);
    if (destination_may(all->view)) {
        fputs("<td class=\"acts\">", out);
        if (of)
            web_destination_buttons(all->view, name, *hold);
        fputs("</td>", out);
    }
    fputs("</tr>\n", out);
}

static size_t
destination_find(const struct report_table *table, const char *name)
{
    size_t row = 0;
    while (row < table->row_count && strcmp(report_cell_text(table, row, "destination"), name) != 0)
        row++;
    return row;
}

static void
destination_table(const struct destinations *all)
{
    const struct report_table *table = &all->table;
    FILE *out = all->view->out;
    const struct conf *conf = all->view->web->conf;
    static const char *const titles[] = {"State",         "Destination", "How",           "Waiting",   "Failed",
                                         "Not committed", "Sent (24 h)", "Last 24 hours", "Last sent", "Next attempt"};

    fputs("<table class=\"rows\"><thead><tr>", out);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        fprintf(out, "<th scope=\"col\"%s>%s</th>", i >= 3 && i <= 6 ? " class=\"n\"" : "", titles[i]);
    fprintf(out, "%s</tr></thead>\n<tbody>\n",
            destination_may(all->view) ? "<th scope=\"col\"><span class=\"hidden\">Decisions</span></th>" : "");
    for (size_t i = 0; i < conf->destination_count; i++)
        destination_row(all, &conf->destinations[i], conf->destinations[i].name,
                        destination_find(table, conf->destinations[i].name));
    for (size_t row = 0; row < table->row_count; row++) {
        size_t i = 0;
        const char *name = report_cell_text(table, row, "destination");
        while (i < conf->destination_count && strcmp(conf->destinations[i].name, name) != 0)
            i++;
        if (i == conf->destination_count)
            destination_row(all, NULL, name, row);
    }
    fprintf(out,
            "</tbody></table>\n<footer>A destination is down after %d failures in a row. The others are served "
            "meanwhile.</footer>",
            conf->delivery.breaker_failures);
}

/* Writes the configured destinations in their order, then those that only have deliveries. */
static int
deliveries_destinations(const struct web_view *view, struct error *error)
{
    const struct conf *conf = view->web->conf;
    struct destinations all = {.view = view};
    int rc = report_browse(view->web->report, &report_browsed[BROWSE_DESTINATIONS],
                           &(struct report_browse){.limit = 200}, &all.table, error);
    if (rc)
        return rc;
    rc = report_page(view->web->report, WEB_DESTINATION_HOLDS, &(struct report_query){.after = "", .text = {"", ""}},
                     &all.holds, error);
    if (rc) {
        report_table_free(&all.table);
        return rc;
    }
    fputs("<section><h2>Destinations</h2>\n", view->out);
    if (all.table.row_count > 0 || conf->destination_count > 0)
        destination_table(&all);
    else
        fputs("<p class=\"dim\">No destination is configured: section <code>destinations</code> of the "
              "configuration.</p>\n",
              view->out);
    fputs("</section>\n", view->out);
    report_table_free(&all.table);
    report_table_free(&all.holds);
    return 0;
}

/* ---------------------------------------------------------------------------------- groups --- */

/* The filter of the deliveries of a group. */
struct delivery_filter {
    const char *key, *value;
};

static void
group_filters(const struct report_table *table, size_t row, struct delivery_filter filters[3])
{
    const char *cause = report_cell_text(table, row, "cause");
    const bool is_state = strcmp(cause, "FAILED") == 0 || strcmp(cause, "REVIEW") == 0;
    filters[0] = (struct delivery_filter){"destination", report_cell_text(table, row, "destination")};
    filters[1] = strcmp(cause, "UNCOMMITTED") == 0 ? (struct delivery_filter){"commitment", "REQUESTED"}
                                                   : (struct delivery_filter){"state", is_state ? cause : "WAITING"};
    filters[2] = (struct delivery_filter){"code", is_state ? report_cell_text(table, row, "code") : ""};
}

static int
group_deliveries(const struct web_view *view, const struct delivery_filter filters[3], struct error *error)
{
    const struct report_list *list = &report_browsed[BROWSE_DELIVERIES];
    struct report_browse browse = {.limit = GROUP_ROWS};
    struct report_table table;
    FILE *out = view->out;
    for (int i = 0; i < 3; i++)
        browse.values[report_field_place(list, filters[i].key)] = filters[i].value;
    const int rc = report_browse(view->web->report, list, &browse, &table, error);
    if (rc)
        return rc;
    fputs("<table class=\"rows\"><thead><tr><th scope=\"col\">Delivery</th><th scope=\"col\">Job</th><th "
          "scope=\"col\">Result"
          "</th><th scope=\"col\">Description</th><th scope=\"col\" class=\"n\">Tries</th><th "
          "scope=\"col\">Last</th></tr>"
          "</thead>\n<tbody>\n",
          out);
    for (size_t row = 0; row < table.row_count; row++) {
        fprintf(out, "<tr><td data-t=\"Delivery\">%s</td><td data-t=\"Job\"><a href=\"job?id=%s\">%s</a></td><td>",
                report_cell_text(&table, row, "delivery"), report_cell_text(&table, row, "job"),
                report_cell_text(&table, row, "job"));
        html_text(report_cell_text(&table, row, "kind"), out);
        fputs("</td><td class=\"cut\">", out);
        html_untrusted(report_cell_text(&table, row, "series_description"), out);
        fprintf(out, "</td><td class=\"n\" data-t=\"Tries\">%s</td><td class=\"t\" data-t=\"Last\">",
                report_cell_text(&table, row, "attempts"));
        html_time(report_cell_text(&table, row, "last"), out);
        fputs("</td>", out);
        if (strcmp(report_cell_text(&table, row, "state"), "REVIEW") == 0) {
            fputs("<td class=\"acts\">", out);
            web_delivery_buttons(view, report_cell_text(&table, row, "delivery"),
                                 report_cell_text(&table, row, "version"));
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table>\n", out);
    report_table_free(&table);
    return 0;
}

static void
group_summary(const struct report_table *table, size_t row, FILE *out)
{
    const char *cause = report_cell_text(table, row, "cause"), *message = report_cell_text(table, row, "message");
    const int64_t results = (int64_t)report_number(table, row, "deliveries");
    fputs("<summary>", out);
    html_state(cause, out);
    fputs(" <b>", out);
    html_text(report_cell_text(table, row, "destination"), out);
    fputs("</b>: ", out);
    html_count(results, out);
    fputs(results == 1 ? " result of " : " results of ", out);
    html_count((int64_t)report_number(table, row, "jobs"), out);
    fputs(report_number(table, row, "jobs") == 1 ? " job since " : " jobs since ", out);
    html_time(report_cell_text(table, row, "oldest_at"), out);
    fputs(". ", out);
    if (*message && strcmp(cause, "UNCOMMITTED") != 0)
        html_untrusted(message, out);
    else
        fputs(strcmp(cause, "UNCOMMITTED") == 0 ? "Sent, and the archive has not committed them." : "Not tried yet.",
              out);
    fputs("</summary>\n", out);
}

static int
delivery_group(const struct web_view *view, const struct report_table *table, size_t row, struct error *error)
{
    struct delivery_filter filters[3];
    FILE *out = view->out;
    const char *before = "?", *code = report_cell_text(table, row, "code"),
               *next = report_cell_text(table, row, "next_attempt_at");
    group_filters(table, row, filters);
    fputs("<details class=\"group\">", out);
    group_summary(table, row, out);
    fputs("<p class=\"dim\">", out);
    if (*code) {
        fputs("<code>", out);
        html_text(code, out);
        fputs("</code> ", out);
        html_text(report_cell_text(table, row, "to_do"), out);
    }
    if (*next) {
        fputs(" Next attempt ", out);
        html_time(next, out);
        fputc('.', out);
    }
    fputs(" <a href=\"deliveries", out);
    for (int i = 0; i < 3; i++) {
        if (!*filters[i].value)
            continue;
        fprintf(out, "%s%s=", before, filters[i].key);
        html_query(filters[i].value, out);
        before = "&amp;";
    }
    fputs("\">All of them</a></p>\n", out);
    const int rc = group_deliveries(view, filters, error);
    fputs("</details>\n", out);
    return rc;
}

static int
deliveries_groups(const struct web_view *view, struct error *error)
{
    struct report_table table;
    int rc = report_browse(view->web->report, &report_browsed[BROWSE_UNDELIVERED], &(struct report_browse){0}, &table,
                           error);
    if (rc)
        return rc;
    fputs("<section><h2>Not delivered, by cause</h2>\n", view->out);
    if (table.row_count == 0)
        fputs("<p class=\"dim\">All results are delivered.</p>\n", view->out);
    for (size_t row = 0; row < table.row_count && rc == 0; row++)
        rc = delivery_group(view, &table, row, error);
    fputs("</section>\n", view->out);
    report_table_free(&table);
    return rc;
}

/* -------------------------------------------------------------------------------- the list --- */

static void
delivery_row(const struct web_list *list, size_t row)
{
    FILE *out = list->view->out;
    const struct report_table *table = &list->table;
    const char *commitment = report_cell_text(table, row, "commitment"), *held = report_cell_text(table, row, "held");
    fputs("<tr><td>", out);
    html_state(*held ? "HELD" : report_cell_text(table, row, "state"), out);
    fprintf(out,
            "</td><td class=\"t\" data-t=\"Delivery\">%s</td><td class=\"t\" data-t=\"Job\"><a "
            "href=\"job?id=%s\">%s</a></td>",
            report_cell_text(table, row, "delivery"), report_cell_text(table, row, "job"),
            report_cell_text(table, row, "job"));
    fputs("<td class=\"t\" data-t=\"Destination\">", out);
    html_text(report_cell_text(table, row, "destination"), out);
    fputs("</td><td class=\"t\" data-t=\"Result\">", out);
    html_text(report_cell_text(table, row, "kind"), out);
    fputs("</td><td class=\"cut\">", out);
    html_untrusted(report_cell_text(table, row, "series_description"), out);
    fprintf(out, "</td><td class=\"n\" data-t=\"Tries\">%s</td><td class=\"t\" data-t=\"Last\">",
            report_cell_text(table, row, "attempts"));
    html_time(report_cell_text(table, row, "last"), out);
    fputs("</td><td class=\"outcome dim\" title=\"", out);
    html_text(report_cell_text(table, row, "message"), out);
    fputs("\">", out);
    html_text(report_cell_text(table, row, "code"), out);
    if (strcmp(commitment, "NONE") != 0)
        fprintf(out, "%scommitment %s", *report_cell_text(table, row, "code") ? ", " : "",
                strcmp(commitment, "REQUESTED") == 0   ? "requested"
                : strcmp(commitment, "COMMITTED") == 0 ? "received"
                                                       : "failed");
    if (strcmp(report_cell_text(table, row, "state"), "REVIEW") == 0) {
        fputs("<br>\n", out);
        web_delivery_buttons(list->view, report_cell_text(table, row, "delivery"),
                             report_cell_text(table, row, "version"));
    }
    fputs("</td></tr>\n", out);
}

static int
deliveries_list(const struct web_list *list, struct error *error)
{
    static const char *const fields[] = {"destination", "commitment", "since", "code", NULL};

    static const struct web_column columns[] = {
        {"State", NULL, ""},       {"Delivery", "delivery", ""}, {"Job", "job", ""},
        {"Destination", NULL, ""}, {"Result", NULL, ""},         {"Description", NULL, ""},
        {"Tries", NULL, "n"},      {"Last", NULL, ""},           {"Code, commitment", NULL, ""},
    };

    FILE *out = list->view->out;
    fputs("<section class=\"list\"><h2>Deliveries</h2>\n", out);
    web_list_chips(list);
    int rc = web_list_form(list, fields, error);
    if (rc == 0)
        rc = web_list_saved(list, error);
    if (rc)
        return rc;
    if (list->table.row_count > 0) {
        web_list_head(list, columns, sizeof columns / sizeof *columns);
        for (size_t row = 0; row < list->table.row_count; row++)
            delivery_row(list, row);
        fputs("</tbody></table>\n", out);
    } else {
        fprintf(out, "<p class=\"dim\">%s</p>\n",
                list->is_filtered
                    ? "No delivery matches the filter."
                    : "No results have been delivered. A pipeline names its destinations in <code>deliver</code>.");
    }
    web_list_pager(list);
    fputs("</section>\n", out);
    return 0;
}

int
web_view_deliveries(const struct web_view *view, struct error *error)
{
    struct web_list list;
    int rc = web_list_read(&list, view, BROWSE_DELIVERIES, error);
    const bool is_whole = !list.is_filtered && !(list.browse.after && *list.browse.after);
    if (rc == 0 && is_whole)
        rc = deliveries_destinations(view, error);
    if (rc == 0 && is_whole)
        rc = deliveries_groups(view, error);
    if (rc == 0)
        rc = deliveries_list(&list, error);
    web_list_clear(&list);
    return rc;
}
