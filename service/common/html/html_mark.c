/* html_mark.c - states as a shape, a word and a colour. */
#include "service/common/html/html.h"

#include <string.h>

/* Shapes in a square of 16. CARD is the colour behind the shape. */
#define CARD   "var(--card)"
#define CIRCLE "<circle cx=\"8\" cy=\"8\" r=\"6.2\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1.6\"/>"
#define PATH(d, width, more)                                                                                           \
    "<path d=\"" d "\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"" width "\"" more "/>"
#define CUT(d)   "<path d=\"" d "\" fill=\"none\" stroke=\"" CARD "\" stroke-width=\"1.8\"/>"
#define SOLID(d) "<path d=\"" d "\" fill=\"currentColor\"/>"
#define DOT(x)   "<circle cx=\"" x "\" cy=\"8\" r=\"1.7\" fill=\"currentColor\"/>"

static const struct {
    const char *name; /* the class, and with "i-" the id */
    const char *shape;
} marks[] = {
    [MARK_DONE] = {"done", SOLID("M8 1a7 7 0 100 14A7 7 0 008 1z") CUT("M4.6 8.2l2.3 2.4 4.5-5")},
    [MARK_RUNNING] = {"running", CIRCLE SOLID("M8 1.8a6.2 6.2 0 010 12.4z")},
    [MARK_WAITING] = {"waiting", CIRCLE PATH("M8 4.2V8l2.6 1.8", "1.6", "")},
    [MARK_RECEIVING] = {"receiving", DOT("3") DOT("8") DOT("13")},
    [MARK_REVIEW] = {"review", SOLID("M8 .8L15.2 8 8 15.2.8 8z") CUT("M8 4.4v4.2M8 10.2v1.6")},
    [MARK_FAILED] = {"failed", SOLID("M3 1h10a2 2 0 012 2v10a2 2 0 01-2 2H3a2 2 0 01-2-2V3a2 2 0 012-2z")
                                   CUT("M5 5l6 6M11 5l-6 6")},
    [MARK_REFUSED] = {"refused", CIRCLE PATH("M3.8 12.2l8.4-8.4", "1.8", "")},
    [MARK_HELD] = {"held", PATH("M2 2h12v12H2z", "1.6", "") PATH("M6 5v6M10 5v6", "2", "")},
    [MARK_ATTENTION] = {"attention", SOLID("M8 1l7.4 13.4H.6z") CUT("M8 5.6v4M8 11.2v1.6")},
    [MARK_NONE] = {"none", PATH("M2.5 8h11", "1.8", " stroke-dasharray=\"3 2\"")},
};

enum { MARKS = sizeof marks / sizeof *marks };

void
html_sprite(FILE *out)
{
    fputs("<svg class=\"sprite\" aria-hidden=\"true\"><defs>", out);
    for (int i = 0; i < MARKS; i++)
        fprintf(out, "<symbol id=\"i-%s\" viewBox=\"0 0 16 16\">%s</symbol>\n", marks[i].name, marks[i].shape);
    fputs("</defs></svg>", out);
}

const char *
html_mark_class(enum html_mark mark)
{
    return marks[mark].name;
}

void
html_icon(enum html_mark mark, FILE *out)
{
    fprintf(out, "<svg class=\"i\" aria-hidden=\"true\"><use href=\"#i-%s\"/></svg>", marks[mark].name);
}

void
html_mark(enum html_mark mark, const char *word, FILE *out)
{
    fprintf(out, "<span class=\"mark %s\">", marks[mark].name);
    html_icon(mark, out);
    html_text(word, out);
    fputs("</span>", out);
}

/* ------------------------------------------------------------------------ states of the database ---- */

static const struct html_state states[] = {
    {"GATHERING", "Receiving", MARK_RECEIVING},
    {"SETTLED", "Complete", MARK_DONE},
    {"REFUSED", "Refused", MARK_REFUSED},
    {"NO_JOB", "No job", MARK_NONE},
    {"READY", "Ready", MARK_WAITING},
    {"RUNNING", "Running", MARK_RUNNING},
    {"DELAYED", "Delayed", MARK_WAITING},
    {"DONE", "Done", MARK_DONE},
    {"EMPTY", "Empty", MARK_NONE},
    {"REVIEW", "Review", MARK_REVIEW},
    {"REJECTED", "Rejected", MARK_REFUSED},
    {"FAILED", "Failed", MARK_FAILED},
    {"CANCELLED", "Cancelled", MARK_NONE},
    {"PENDING", "Waiting", MARK_WAITING},
    {"SENDING", "Sending", MARK_RUNNING},
    {"SENT", "Sent", MARK_DONE},
    {"WAITING", "Waiting", MARK_WAITING},
    {"UNDELIVERED", "Not delivered", MARK_ATTENTION},
    {"UNCOMMITTED", "Not committed", MARK_ATTENTION},
    {"HELD", "Held", MARK_HELD},
    {"FINDING", "Searching", MARK_RUNNING},
    {"MOVING", "Retrieving", MARK_RUNNING},
    {"NOT_FOUND", "Not found", MARK_FAILED},
    {"PARTIAL", "Partial", MARK_ATTENTION},
    {"BROKEN", "Broken", MARK_FAILED},
    {"in force", "In force", MARK_DONE},
    {"refused", "Refused", MARK_FAILED},
    {"up", "Up", MARK_DONE},
    {"down", "Down", MARK_FAILED},
};

const struct html_state *
html_find_state(const char *name)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strcmp(states[i].name, name) == 0)
            return &states[i];
    return NULL;
}

void
html_state(const char *name, FILE *out)
{
    const struct html_state *state = html_find_state(name);
    if (state)
        html_mark(state->mark, state->word, out);
    else
        html_untrusted(name, out);
}
