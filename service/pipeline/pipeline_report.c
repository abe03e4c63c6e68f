#include "service/pipeline/pipeline_report.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const pipeline_stages[] = {"headers", "pixels", "compute", "texture", "write", "verify", NULL};

bool
pipeline_stopped(const struct pipeline_watch *watch)
{
    return watch && watch->stop && atomic_load(watch->stop);
}

int
pipeline_enter(const struct pipeline_watch *watch, const char *stage)
{
    if (pipeline_stopped(watch))
        return -ECANCELED;
    if (watch && watch->progress)
        watch->progress(watch->context, stage, 0);
    return 0;
}

void
pipeline_note(struct pipeline_report *report, const char *text)
{
    size_t length = strlen(report->note), room = sizeof report->note - length;
    int needed = snprintf(report->note + length, room, "%s%s", length > 0 ? "; " : "", text);
    if (needed < 0 || (size_t)needed >= room)
        text_utf8_mend_end(report->note);
}

void
pipeline_report_clear(struct pipeline_report *report)
{
    for (int32_t i = 0; i < report->segment_count; i++)
        provenance_release(report->segments[i].object.provenance);
    free(report->segments);
    free(report->results);
    feature_set_clear(&report->features);
    expect_clear(&report->breaches);
    report->segments = NULL;
    report->results = NULL;
    report->segment_count = report->result_count = 0;
}

const char *
pipeline_outcome(const struct pipeline_report *report)
{
    static const char *const names[] = {
        [PROTO_VERDICT_DONE] = "DONE",
        [PROTO_VERDICT_RETRY] = "RETRY",
        [PROTO_VERDICT_REJECT] = "REJECT",
        [PROTO_VERDICT_STOPPED] = "STOPPED",
    };
    return report->review ? "REVIEW" : report->empty ? "EMPTY" : names[report->verdict];
}
