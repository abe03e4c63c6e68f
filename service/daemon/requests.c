/* requests.c - see requests.h. */
#include "service/daemon/requests.h"

#include "service/common/clock.h"
#include "service/common/log.h"
#include "service/common/messages.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/series/arrivals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct answer {
    struct control *control;
    int64_t client;
    int status;
    char sentence[512];
};

static void
send_answer(void *context, int status)
{
    struct answer *answer = context;
    if (status)
        snprintf(answer->sentence, sizeof answer->sentence,
                 "the database cannot be written (%s); nothing was changed", strerror(-status));
    control_answer(answer->control, answer->client, status ? status : answer->status,
                   answer->sentence);
    free(answer);
}

static int
retry(struct core *core, const struct control_request *request, struct answer *answer)
{
    int error = queue_retry_job(core->queue, request->job, clock_unix_ms());
    if (error == 0)
        due_now(&core->jobs_due);
    snprintf(answer->sentence, sizeof answer->sentence, "job %" PRId64 " is ready to run again",
             request->job);
    return error;
}

static int
cancel(struct core *core, const struct control_request *request, struct answer *answer)
{
    bool was_running = false;
    int error = queue_cancel_job(core->queue, request->job, "CANCELLED", "cancelled by an operator",
                                 clock_unix_ms(), &was_running);
    if (error == 0 && was_running)
        jobs_stop(core->jobs, request->job);
    snprintf(answer->sentence, sizeof answer->sentence, "job %" PRId64 " is cancelled%s",
             request->job, was_running ? "; its worker was told to stop it" : "");
    return error;
}

static int
complete(struct core *core, const struct control_request *request, struct answer *answer)
{
    int error = queue_request_complete(core->queue, request->series_uid, clock_unix_ms());
    if (error == 0)
        arrivals_look(core->arrivals);
    snprintf(answer->sentence, sizeof answer->sentence, "series %s is taken as complete",
             request->series_uid);
    return error;
}

static int
resend(struct core *core, const struct control_request *request, struct answer *answer)
{
    const struct queue_resend which = {
        .delivery_id = request->delivery,
        .job_id = request->job,
        .destination = *request->destination ? request->destination : NULL,
        .not_arrived = request->not_arrived,
    };
    int64_t count = 0;
    int error = queue_resend(core->queue, &which, clock_unix_ms(), &count);
    if (error == 0)
        deliveries_hurry(core->deliveries);
    snprintf(answer->sentence, sizeof answer->sentence,
             count == 1 ? "%" PRId64 " delivery is sent again"
                        : "%" PRId64 " deliveries are sent again",
             count);
    return error;
}

static int
change(struct core *core, const struct control_request *request, struct answer *answer)
{
    if (request->type == PROTO_RETRY)
        return retry(core, request, answer);
    if (request->type == PROTO_CANCEL)
        return cancel(core, request, answer);
    if (request->type == PROTO_RESEND)
        return resend(core, request, answer);
    return complete(core, request, answer);
}

/* The queue's own words say best why it refused. */
static void
explain(struct core *core, int error, struct answer *answer)
{
    const char *reason = queue_reason(core->queue);
    snprintf(answer->sentence, sizeof answer->sentence, "%s",
             reason && *reason ? reason : strerror(-error));
    if (core_is_trouble(error))
        core_failed(core, error, "do what an operator asked");
}

void
request_handle(struct core *core, struct control *control, int64_t client,
               const struct control_request *request)
{
    log_info("control.request", LOG_STR("type", message_name(request->type)),
             LOG_INT("job", request->job), LOG_STR("series", request->series_uid),
             LOG_INT("delivery", request->delivery), LOG_STR("destination", request->destination));
    struct answer *answer = calloc(1, sizeof *answer);
    if (!answer) {
        control_answer(control, client, -ENOMEM, "the daemon is out of memory");
        return;
    }
    answer->control = control;
    answer->client = client;
    if (request->type == PROTO_PING) {
        snprintf(answer->sentence, sizeof answer->sentence, "noctuled " NOCTULE_VERSION);
        send_answer(answer, 0);
        return;
    }
    if (!core_change(core)) {
        send_answer(answer, -EIO);
        return;
    }
    answer->status = change(core, request, answer);
    if (answer->status)
        explain(core, answer->status, answer);
    if (batch_on_commit(core->batch, send_answer, answer))
        send_answer(answer, -ENOMEM);
}
