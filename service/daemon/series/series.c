#include "service/daemon/series/series.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STACKS_NAMED   8 /* further ones are only counted */
#define CLOCK_SLACK_MS 60000

void
series_decide(const struct queue_series *series, const struct conf_series *timers, int64_t listening_since_ms,
              int64_t now_ms, struct series_decision *decision)
{
    double wait = timers->patience_seconds;
    if (series->complete_requested)
        wait = 0;
    else if (series->expected_instances <= 0)
        wait = timers->quiet_seconds;
    else if (series->instances >= series->expected_instances)
        wait = timers->complete_seconds;
    int64_t wait_ms = (int64_t)(wait * 1000.0);
    int64_t since_ms = series->last_seen_ms;
    if (listening_since_ms > since_ms)
        since_ms = listening_since_ms;
    *decision = (struct series_decision){.due_ms = since_ms + wait_ms};
    /* After a small correction of the clock the wait is only longer. After a large one, due_ms might never come. */
    bool clock_went_back = decision->due_ms > now_ms + 2 * wait_ms + CLOCK_SLACK_MS;
    if (now_ms < decision->due_ms && !clock_went_back && !series->complete_requested)
        return;
    decision->settle = true;
    int64_t quiet_ms = now_ms - series->last_seen_ms;
    char *evidence = decision->evidence;
    if (series->expected_instances > 0)
        series_add_evidence(evidence, "%d of %d expected instances", series->instances, series->expected_instances);
    else
        series_add_evidence(evidence, "%d instance%s, expected number not known", series->instances,
                            series->instances == 1 ? "" : "s");
    if (series->complete_requested)
        series_add_evidence(evidence, ", declared complete by an operator");
    series_add_evidence(evidence, ", quiet %.1f s", quiet_ms > 0 ? (double)quiet_ms / 1000.0 : 0);
    if (clock_went_back)
        series_add_evidence(evidence, " (the clock was set back)");
}

static void
series_add_stacks(char evidence[SERIES_EVIDENCE], const struct queue_stack *stacks, size_t count)
{
    size_t named = 0;
    for (size_t i = 0; i < count; i++) {
        const struct queue_stack *stack = &stacks[i];
        if (stack->passed_over || named++ >= STACKS_NAMED)
            continue;
        if (named > 1)
            series_add_evidence(evidence, ",");
        if (stack->name && *stack->name)
            series_add_evidence(evidence, " %s", stack->name);
        if (!stack->accepted) {
            series_add_evidence(evidence, " refused (%s)", code_name(stack->code));
            continue;
        }
        series_add_evidence(evidence, " %d plane%s of %d x %d", stack->planes, stack->planes == 1 ? "" : "s",
                            stack->columns, stack->rows);
        if (stack->planes > 1)
            series_add_evidence(evidence, ", %.4g mm apart, unbroken", stack->spacing_mm);
    }
    if (named > STACKS_NAMED)
        series_add_evidence(evidence, " and %zu more", named - STACKS_NAMED);
}

void
series_add_geometry(char evidence[SERIES_EVIDENCE], const struct queue_stack *stacks, size_t count)
{
    size_t images = 0;
    const char *split_by = "";
    for (size_t i = 0; i < count; i++) {
        images += !stacks[i].passed_over;
        if (!*split_by && stacks[i].split_by)
            split_by = stacks[i].split_by;
    }
    series_add_evidence(evidence, "; %zu stack%s%s%s", images, images == 1 ? "" : "s", *split_by ? " by " : "",
                        split_by);
    if (images > 0)
        series_add_evidence(evidence, ":");
    series_add_stacks(evidence, stacks, count);
    for (size_t i = 0; i < count; i++) {
        if (stacks[i].passed_over)
            series_add_evidence(evidence, "; %d image%s passed over (%s)", stacks[i].planes,
                                stacks[i].planes == 1 ? "" : "s", code_name(stacks[i].code));
    }
    if (count > 0 && stacks[0].times < stacks[0].times_announced)
        series_add_evidence(evidence, "; %d of %d temporal positions", stacks[0].times, stacks[0].times_announced);
}

void
series_add_evidence(char evidence[SERIES_EVIDENCE], const char *format, ...)
{
    size_t used = strlen(evidence);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(evidence + used, SERIES_EVIDENCE - used, format, arguments);
    va_end(arguments);
}

struct rules_series
routing_subject(const struct conf *conf, const struct queue_series *series)
{
    return (struct rules_series){
        .modality = series->modality ? series->modality : "",
        .body_part = series->body_part ? series->body_part : "",
        .description = series->description ? series->description : "",
        .inbox = series->inbox ? conf_find_inbox(conf, series->inbox) : NULL,
        .called_ae = series->called_ae,
        .sender = series->sender,
    };
}
