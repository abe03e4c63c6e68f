/*
 * troubles.c - see troubles.h. Neither files nor senders are named: the log may have it, too.
 *
 * What is broken is of a kind, by which the page tells it; what only wants attention is not.
 */
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
    FILE *out; /* NULL: only what is broken is asked for */
    bool broken[TROUBLE_KINDS];
    int64_t since_ms[TROUBLE_KINDS]; /* of the first of each kind */
};

/* In one line, whatever a path holds. */
__attribute__((format(printf, 4, 0))) static void
troubles_write(const struct troubles *troubles, enum trouble_level level, int64_t since_ms,
               const char *format, va_list values)
{
    char text[640];
    if (!troubles->out)
        return;
    vsnprintf(text, sizeof text, format, values);
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < ' ')
            *at = '?';
    }
    fprintf(troubles->out, "%d\t%" PRId64 "\t%s\n", (int)level, since_ms, text);
}

__attribute__((format(printf, 4, 5))) static void
troubles_add(const struct troubles *troubles, enum trouble_level level, int64_t since_ms,
             const char *format, ...)
{
    va_list values;
    va_start(values, format);
    troubles_write(troubles, level, since_ms, format, values);
    va_end(values);
}

__attribute__((format(printf, 4, 5))) static void
troubles_add_broken(struct troubles *troubles, enum trouble_kind kind, int64_t since_ms,
                    const char *format, ...)
{
    va_list values;
    if (!troubles->broken[kind])
        troubles->since_ms[kind] = since_ms;
    troubles->broken[kind] = true;
    va_start(values, format);
    troubles_write(troubles, TROUBLE_BROKEN, since_ms, format, values);
    va_end(values);
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

/* One worker of several is missed, and so are the page and the probe (TROUBLE_KINDS); the others are needed. */
static enum trouble_kind
troubles_kind_of(const struct core *core, const struct pool_trouble *child)
{
    static const enum trouble_kind kinds[] = {TROUBLE_intake, TROUBLE_worker, TROUBLE_courier,
                                              TROUBLE_cluster};

    static const char *const roles[] = {"intake", "worker", "courier", "cluster"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles && !child->works; i++) {
        if (strcmp(child->role, roles[i]) == 0)
            return kinds[i] == TROUBLE_worker && troubles_a_worker_is_usable(core) ? TROUBLE_KINDS
                                                                                   : kinds[i];
    }
    return TROUBLE_KINDS;
}

static void
troubles_add_child(void *context, const struct pool_trouble *child)
{
    struct troubles *troubles = context;
    const enum trouble_kind kind = troubles_kind_of(troubles->core, child);
    const char *destination = deliveries_served_from(troubles->core->deliveries, child->slot);
    const char *peer =
        *destination ? destination : pulls_served_from(troubles->core->pulls, child->slot);
    char who[128], number[16] = "";
    if (strcmp(child->role, "worker") == 0)
        snprintf(number, sizeof number, " %d", child->number);
    snprintf(who, sizeof who, "%s%s%s%s", child->role, number, *peer ? " for " : "", peer);
    if (kind == TROUBLE_KINDS)
        troubles_add(troubles, TROUBLE_ATTENTION, child->since_ms, "the %s %s", who, child->text);
    else
        troubles_add_broken(troubles, kind, child->since_ms, "the %s %s", who, child->text);
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
        troubles_add_broken(troubles, TROUBLE_stopping, 0, "noctuled is stopping");
    if (core->trouble)
        troubles_add_broken(
            troubles, TROUBLE_database, core->trouble_since_ms,
            "the database cannot be written: %s; senders are told to come again, jobs wait",
            core->trouble_why);
    if (core->disk_low)
        troubles_add_broken(
            troubles, TROUBLE_disk, core->disk_low_since_ms,
            "less than min_free_mib (%g MiB) is free; senders are told to come again%s",
            core->conf->min_free_mib, core->disk_spent ? ", jobs wait" : "");
    if (*reception->trouble)
        troubles_add_broken(troubles, TROUBLE_reception, reception->since_ms, "%s",
                            reception->trouble);
    else if (!reception->open)
        troubles_add_broken(troubles, TROUBLE_starting, reception->since_ms,
                            "nothing is taken in yet");
    pool_each_trouble(core->pool, troubles_add_child, troubles);
    if (*cluster_trouble(core->cluster))
        troubles_add(troubles, TROUBLE_ATTENTION, 0, "jobs wait for Slurm: %s",
                     cluster_trouble(core->cluster));
    if (*workers_trouble(core->workers))
        troubles_add_broken(troubles, TROUBLE_compute, 0, "no job can run: %s",
                            workers_trouble(core->workers));
    else if (troubles->out && !core_closed(core) && troubles_jobs_wait(core))
        troubles_add(troubles, TROUBLE_JOBS_WAIT, 0, "jobs that are ready, for a lane: %zu run",
                     jobs_running(core->jobs));
}

char *
troubles_to_text(const struct core *core)
{
    struct text_stream stream;
    if (text_open(&stream))
        return NULL;
    struct troubles troubles = {.core = core, .out = stream.out};
    troubles_add_all(&troubles);
    return text_close(&stream) ? NULL : stream.bytes;
}

void
troubles_tell_page(const struct core *core)
{
    struct troubles troubles = {.core = core};
    struct proto_writer writer;
    if (core->page < 0 || !pool_ready(core->pool, core->page))
        return;
    troubles_add_all(&troubles);
    message_write_condition(&writer, NULL);
    for (int i = 0; i < TROUBLE_KINDS; i++) {
        const struct message_hindrance row = {.kind = i, .since_ms = troubles.since_ms[i]};
        if (troubles.broken[i])
            message_add_hindrance(&writer, &row);
    }
    pool_send(core->pool, core->page, &writer); /* -EPIPE: the next page is told when it is there */
}
