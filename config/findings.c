#include "config/findings.h"

#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
findings_stop(struct findings *findings, int rc)
{
    if (!findings->stop)
        findings->stop = rc;
    return findings->stop;
}

/* Returns whether both findings are the same, at the same line of a file that is included twice. */
static bool
finding_repeats(const struct findings *findings, const struct conf_finding *a, const struct conf_finding *b)
{
    char place_a[1024], place_b[1024];
    if (a->line == b->line || strcmp(a->text, b->text) != 0)
        return false;
    source_place(findings->source, a->line, place_a, sizeof(place_a));
    source_place(findings->source, b->line, place_b, sizeof(place_b));
    return strcmp(place_a, place_b) == 0;
}

/* Inserts a finding after those of its line and of earlier lines. Drops the last if the list is
 * full. */
static void
findings_insert(struct conf_findings *all, const struct conf_finding *finding)
{
    size_t at = all->count;
    while (at > 0 && all->items[at - 1].line > finding->line)
        at--;
    if (all->count == CONF_FINDINGS) {
        all->more++;
        if (at == all->count) {
            free(finding->message);
            return;
        }
        free(all->items[--all->count].message);
    }
    memmove(&all->items[at + 1], &all->items[at], (all->count - at) * sizeof(all->items[0]));
    all->items[at] = *finding;
    all->count++;
}

int
findings_add(struct findings *findings, bool wrong, unsigned line, const char *option, const char *text)
{
    struct conf_finding finding = {.wrong = wrong, .line = line};
    char place[1024];
    source_place(findings->source, line, place, sizeof(place));
    const int length = asprintf(&finding.message, "%s: %s%s%s", place, option, option[0] ? ": " : "", text);
    if (length < 0)
        return findings_stop(findings, -ENOMEM);
    finding.text = finding.message + (size_t)length - strlen(text);
    size_t i = 0;
    while (i < findings->all->count && !finding_repeats(findings, &findings->all->items[i], &finding))
        i++;
    if (i < findings->all->count)
        free(finding.message);
    else
        findings_insert(findings->all, &finding);
    findings->wrong += wrong;
    return findings->wrong >= FINDINGS_MAX ? findings_stop(findings, -E2BIG) : -EINVAL;
}

void
findings_lose(struct findings *findings, const void *member, size_t size)
{
    struct lost *lost = array_grow(findings->lost, &findings->lost_room, findings->lost_count + 1, sizeof(*lost));
    if (!lost) {
        findings_stop(findings, -ENOMEM);
        return;
    }
    findings->lost = lost;
    findings->lost[findings->lost_count++] = (struct lost){member, size};
}

bool
findings_lost(const struct findings *findings, const void *member, size_t size)
{
    const char *begin = member;
    for (size_t i = 0; i < findings->lost_count; i++) {
        const struct lost *lost = &findings->lost[i];
        if (begin < lost->at + lost->size && lost->at < begin + size)
            return true;
    }
    return false;
}

int
findings_first_error(const struct findings *findings, struct error *error)
{
    if (findings->stop == -ENOMEM)
        return source_out_of_memory(error);
    const struct conf_findings *all = findings->all;
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].wrong)
            return error_set(error, -EINVAL, CODE_NONE, "%s", all->items[i].message);
    return 0;
}
