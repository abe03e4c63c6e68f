/*
 * caller_reports.c - records callers that the receiver rejected, and clears their alerts once the configuration admits
 * them. Loop thread only. Declared in daemon.h.
 */
#include "service/daemon/daemon.h"

#include "db/caller_rows.h"
#include "service/common/admission.h"
#include "service/common/clock.h"
#include "service/common/wire/messages.h"

static bool
callers_are_admitted(const struct core *core, const struct admission_caller *caller)
{
    static const struct admission_load none = {0};
    return admission_decide(&core->conf->dicom, caller, &none) == ADMISSION_GRANTED;
}

void
callers_frame(struct core *core, struct proto_reader *reader)
{
    struct message_caller message;
    if (message_read_callers(reader, NULL) || !core_change(core))
        return;
    while (message_next_caller(reader, &message)) {
        const struct admission_caller caller = {message.calling, message.called, message.host, message.certificate};
        const struct queue_rejection rejection = {
            .calling_ae = message.calling,
            .called_ae = message.called,
            .host = message.host,
            .certificate = message.certificate,
            .reason = message.reason,
            .rejected = message.rejected,
            .admitted = callers_are_admitted(core, &caller),
        };
        if (core_failed(core, queue_add_rejection(core->queue, &rejection, clock_unix_ms()),
                        "record a rejected caller"))
            return;
    }
}

int
callers_set(struct core *core)
{
    struct queue_caller *callers;
    size_t count;
    int rc = queue_callers(core->queue, &callers, &count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct admission_caller caller = {callers[i].calling_ae, callers[i].called_ae, callers[i].host,
                                                callers[i].certificate};
        rc = queue_admit_caller(core->queue, callers[i].id, callers_are_admitted(core, &caller), clock_unix_ms());
    }
    queue_callers_free(callers, count);
    return rc;
}
