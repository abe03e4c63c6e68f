/* alert_collect.c - alerts_collect(), the only function that makes the complete list. */
#include "service/common/alert/alert_list.h"

#include "db/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The list, and the time at which acknowledgements are applied. */
struct alerts_collecting {
    struct alerts *alerts;
    int64_t now_ms;
};

static int
collect_row(void *context, const struct report_alert *row)
{
    char *id = strdup(row->id), *text = strdup(row->text);
    struct alerts_collecting *collecting = context;
    if (id && text)
        alerts_append(collecting->alerts, &(struct alert){.id = id,
                                                          .severity = (enum alert_severity)row->severity,
                                                          .since_ms = row->since_ms,
                                                          .changed_ms = row->changed_ms,
                                                          .size = row->size,
                                                          .text = text});
    else
        collecting->alerts->is_starved = true;
    free(id);
    free(text);
    return 0;
}

static int
collect_deadline(void *context, const char *pipeline, const char *text)
{
    struct alerts_collecting *collecting = context;
    alerts_add(collecting->alerts, ALERT_done_by, pipeline, ALERT_ATTENTION, 0, "%s", text);
    return 0;
}

static int
collect_ack(void *context, const struct report_ack *ack)
{
    const struct alerts_collecting *collecting = context;
    struct alerts *alerts = collecting->alerts;
    const bool in_force = ack->until_ms == 0 || collecting->now_ms < ack->until_ms;
    for (size_t i = 0; i < alerts->count; i++) {
        struct alert *alert = &alerts->items[i];
        if (alert->ack.by || strcmp(ack->id, alert->id) != 0 || !in_force || !alert_row(alert->kind)->may_acknowledge)
            continue;
        /* It does not apply if the alert became worse or occurred again. */
        if ((int)alert->severity > ack->severity || alert->changed_ms > ack->changed_ms || alert->size > ack->size)
            continue;
        alert->ack = (struct alert_ack){
            .at_ms = ack->at_ms, .until_ms = ack->until_ms, .by = strdup(ack->by), .reason = strdup(ack->reason)};
        alerts->is_starved |= !alert->ack.by || !alert->ack.reason;
    }
    return 0;
}

/* Ranks alerts: broken, attention, acknowledged, waits. */
static int
alert_rank(const struct alert *alert)
{
    if (alert->severity == ALERT_WAITS)
        return 3;
    if (alert->ack.by)
        return 2;
    return alert->severity == ALERT_BROKEN ? 0 : 1;
}

int
alerts_collect(struct alerts *alerts, const struct conf *conf, struct report *report, int64_t now_ms,
               struct error *error)
{
    struct alerts_collecting collecting = {alerts, now_ms};
    int rc = deadline_alerts_each(conf, report, false, now_ms, collect_deadline, &collecting);
    if (rc == 0 && report)
        rc = report_each_alert(report, collect_row, &collecting, error);
    if (rc == 0 && report)
        rc = report_each_ack(report, collect_ack, &collecting, error);
    /* Stable sort: alerts of a rank keep their order. */
    for (size_t i = 1; i < alerts->count; i++) {
        const struct alert moved = alerts->items[i];
        size_t at = i;
        for (; at > 0 && alert_rank(&alerts->items[at - 1]) > alert_rank(&moved); at--)
            alerts->items[at] = alerts->items[at - 1];
        alerts->items[at] = moved;
    }
    return rc == 0 && alerts->is_starved ? error_set_system(error, -ENOMEM, "list the alerts") : rc;
}
