#include "service/web/pages/web_frame.h"

#include "service/web/decide/web_decide.h"

#include "service/common/clock.h"

#include <string.h>
#include <time.h>

#define REFRESH_SECONDS 30
#define MOON            "M13.8 2.2A8.2 8.2 0 1018 13.4 6.6 6.6 0 0113.8 2.2z"

const char web_frame_icon[] = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 20 20\">"
                              "<rect width=\"20\" height=\"20\" rx=\"4\" fill=\"#1b2138\"/>"
                              "<path d=\"" MOON "\" fill=\"#ffd98a\"/></svg>\n";

int
web_frame_count(struct report *report, struct web_frame *frame, struct error *error)
{
    struct report_table table;
    const int rc = report_page(report, WEB_BAR, &(struct report_query){0}, &table, error);
    if (rc < 0)
        return rc;
    frame->review = (int64_t)report_number(&table, 0, "review");
    frame->undelivered = (int64_t)report_number(&table, 0, "undelivered");
    report_table_free(&table);
    return 0;
}

/* Returns the address of a path below the root of the site. */
static const char *
frame_address(const char *path)
{
    return path[1] ? path + 1 : "./";
}

static void
frame_write_count(int64_t count, const char *class, const char *word, FILE *out)
{
    if (count == 0)
        return;
    fprintf(out, "<span class=\"count %s\">", class);
    html_count(count, out);
    fprintf(out, "<span class=\"hidden\"> %s</span></span>", word);
}

static void
frame_write_menu(const struct web_frame *frame, FILE *out)
{
    const char *here = !frame->route ? "" : frame->route->menu ? frame->route->menu : frame->route->path;
    fputs("<nav class=\"pages\" aria-label=\"Pages\">", out);
    for (size_t i = 0; i < frame->route_count; i++) {
        const struct web_route *route = &frame->routes[i];
        if (!route->in_menu)
            continue;
        fprintf(out, "<a href=\"%s\"%s>%s", frame_address(route->path),
                strcmp(here, route->path) == 0 ? " aria-current=\"page\"" : "", route->title);
        if (strcmp(route->path, "/review") == 0)
            frame_write_count(frame->review, "person", "to review", out);
        else if (strcmp(route->path, "/deliveries") == 0)
            frame_write_count(frame->undelivered, "bad", "not delivered", out);
        fputs("</a>", out);
    }
    fputs("</nav>", out);
}

/* Writes the state of the service, from the list of /readyz. */
static void
frame_write_state(const struct alerts *alerts, FILE *out)
{
    static const enum html_mark marks[] = {
        [ALERT_WAITS] = MARK_DONE, [ALERT_ATTENTION] = MARK_ATTENTION, [ALERT_BROKEN] = MARK_FAILED};

    if (!alerts)
        return;
    size_t broken = 0, count = 0;
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        count += alert->severity != ALERT_WAITS && !alert->ack.by;
        broken += alert->severity == ALERT_BROKEN && !alert->ack.by;
    }
    const enum html_mark mark = marks[alerts_worst(alerts)];
    fprintf(out, "<a class=\"service %s\" href=\"./#alerts\">", html_mark_class(mark));
    html_icon(mark, out);
    if (broken > 0)
        fprintf(out, "Broken: %zu</a>", broken);
    else if (count > 0)
        fprintf(out, "%zu alert%s</a>", count, count == 1 ? "" : "s");
    else
        fputs("Working</a>", out);
}

static void
frame_write_bar(const struct web_frame *frame, FILE *out)
{
    fputs("<a class=\"skip\" href=\"#content\">Skip to content</a>\n<header class=\"bar\">"
          "<a class=\"brand\" href=\"./\" aria-label=\"Noctule, overview\">"
          "<svg viewBox=\"0 0 20 20\" aria-hidden=\"true\"><path d=\"" MOON "\" fill=\"#ffd98a\"/></svg>"
          "<span>Noctule</span></a>\n<details class=\"menu\"><summary>Menu</summary></details>",
          out);
    frame_write_menu(frame, out);
    fputs("\n<form class=\"find\" method=\"post\" action=\"search\" role=\"search\"><label class=\"hidden\" "
          "for=\"q\">Find a job, "
          "patient, accession number or UID</label><input id=\"q\" name=\"q\" type=\"search\" autocomplete=\"off\" "
          "maxlength=\"200\" placeholder=\"Job, patient, accession, UID\" value=\"",
          out);
    html_text(frame->request ? frame->request->values[REQUEST_q] : "", out);
    fputs("\"></form>", out);
    frame_write_state(frame->alerts, out);
    fputs("</header>\n", out);
}

static void
frame_write_foot(const struct web_frame *frame, FILE *out)
{
    char zone[64] = "UTC", now[32] = "";
    const time_t seconds = (time_t)(clock_unix_ms() / 1000);
    struct tm here;
    if (localtime_r(&seconds, &here)) {
        if (here.tm_gmtoff != 0)
            strftime(zone, sizeof zone, "%Z (UTC %z)", &here);
        strftime(now, sizeof now, "%H:%M:%S", &here);
    }
    fprintf(out, "<footer class=\"foot\"><span>Noctule " NOCTULE_VERSION "</span><span>Times are in %s</span>", zone);
    if (frame->web)
        web_person_write(frame->web, frame->request, out);
    if (frame->route) {
        fprintf(out, "<span>Read at %s", now);
        if (frame->route->refreshes && *frame->request->values[REQUEST_live])
            fprintf(out, ", again every %d s: <a href=\"%s\">stop</a>", REFRESH_SECONDS,
                    frame_address(frame->route->path));
        else if (frame->route->refreshes)
            fprintf(out, ", <a href=\"%s?live=1\">read again every %d s</a>", frame_address(frame->route->path),
                    REFRESH_SECONDS);
        fputs("</span>", out);
    }
    fputs("<span>Not a medical device</span></footer>\n</body></html>\n", out);
}

void
web_frame_write(const struct web_frame *frame, FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"robots\" content=\"noindex\">\n",
          out);
    if (frame->route && frame->route->refreshes && *frame->request->values[REQUEST_live])
        fprintf(out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", REFRESH_SECONDS);
    fprintf(out,
            "<title>%s - Noctule</title><link rel=\"icon\" href=\"icon.svg\"><link rel=\"stylesheet\" "
            "href=\"style.css\"></head>\n<body>",
            frame->title);
    html_sprite(out);
    frame_write_bar(frame, out);
    fprintf(out, "<main id=\"content\" tabindex=\"-1\"><div class=\"title\"><h1>%s</h1>%s</div>\n%s</main>\n",
            frame->title, frame->beside, frame->content);
    frame_write_foot(frame, out);
}
