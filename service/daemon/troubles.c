/* troubles.c - see troubles.h. Neither files nor senders are named: the log may have it, too. */
#include "service/daemon/troubles.h"

#include "base/text.h"
#include "service/common/clock.h"
#include "service/common/troubles.h"
#include "service/daemon/cluster/cluster.h"
#include "service/daemon/delivery/deliveries.h"
#include "service/daemon/jobs/jobs.h"
#include "service/daemon/jobs/workers.h"
#include "service/daemon/pull/pulls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct troubles {
    const struct core *core;
    FILE *out;
};

/* In one line, whatever a path holds. */
__attribute__((format(printf, 4, 5))) static void
troubles_add(const struct troubles *troubles, enum trouble_level level, int64_t since_ms,
             const char *format, ...)
{
    char text[640];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < ' ')
            *at = '?';
    }
    fprintf(troubles->out, "%d\t%" PRId64 "\t%s\n", (int)level, since_ms, text);
}

static bool
troubles_a_worker_is_usable(const struct core *core)
{
    for (size_t i = 0; i < workers_count(core->workers); i++) {
        if (workers_usable(core->workers, i) &&
            pool_works(core->pool, workers_slot(core->workers, i)))
            return true;
    }
    return false;
}

/* One worker of several is missed, and so is the page; the intake and the courier are needed. */
static void
troubles_add_child(void *context, const struct pool_trouble *child)
{
    const struct troubles *troubles = context;
    const bool is_worker = strcmp(child->role, "worker") == 0;
    const bool spared = child->works || strcmp(child->role, "probe") == 0 ||
                        strcmp(child->role, "page") == 0 ||
                        (is_worker && troubles_a_worker_is_usable(troubles->core));
    const char *destination = deliveries_served_from(troubles->core->deliveries, child->slot);
    const char *peer =
        *destination ? destination : pulls_served_from(troubles->core->pulls, child->slot);
    char number[16] = "";
    if (is_worker)
        snprintf(number, sizeof number, " %d", child->number);
    troubles_add(troubles, spared ? TROUBLE_ATTENTION : TROUBLE_BROKEN, child->since_ms,
                 "the %s%s%s%s %s", child->role, number, *peer ? " for " : "", peer, child->text);
}

static bool
troubles_jobs_wait(const struct core *core)
{
    struct queue_job *ready = NULL;
    size_t count = 0;
    if (queue_ready(core->queue, clock_unix_ms(), core_ageing_ms(core), 1, "", &ready, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        queue_job_clear(&ready[i]);
    free(ready);
    return count > 0;
}

static void
troubles_add_all(struct troubles *troubles)
{
    const struct core *core = troubles->core;
    const struct intake_state *reception = &core->reception;
    if (core->draining)
        troubles_add(troubles, TROUBLE_BROKEN, 0, "noctuled is stopping");
    if (core->trouble)
        troubles_add(
            troubles, TROUBLE_BROKEN, core->trouble_since_ms,
            "the database cannot be written: %s; senders are told to come again, jobs wait",
            core->trouble_why);
    if (core->disk_low)
        troubles_add(troubles, TROUBLE_BROKEN, core->disk_low_since_ms,
                     "less than min_free_mib (%g MiB) is free; senders are told to come again%s",
                     core->conf->min_free_mib, core->disk_spent ? ", jobs wait" : "");
    if (*reception->trouble)
        troubles_add(troubles, TROUBLE_BROKEN, reception->since_ms, "%s", reception->trouble);
    else if (!reception->open)
        troubles_add(troubles, TROUBLE_BROKEN, reception->since_ms, "nothing is taken in yet");
    pool_each_trouble(core->pool, troubles_add_child, troubles);
    if (*cluster_trouble(core->cluster))
        troubles_add(troubles, TROUBLE_ATTENTION, 0, "jobs wait for Slurm: %s",
                     cluster_trouble(core->cluster));
    if (*workers_trouble(core->workers))
        troubles_add(troubles, TROUBLE_BROKEN, 0, "no job can run: %s",
                     workers_trouble(core->workers));
    else if (!core_closed(core) && troubles_jobs_wait(core))
        troubles_add(troubles, TROUBLE_JOBS_WAIT, 0, "jobs that are ready, for a lane: %zu run",
                     jobs_running(core->jobs));
}

char *
troubles_to_text(const struct core *core)
{
    struct text_stream stream;
    if (text_open(&stream))
        return NULL;
    struct troubles troubles = {core, stream.out};
    troubles_add_all(&troubles);
    return text_close(&stream) ? NULL : stream.bytes;
}
