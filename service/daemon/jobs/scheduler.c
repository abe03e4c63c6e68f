/*
 * scheduler.c - see scheduler.h.
 *
 * Slot counts are small (a few workers with a few slots each), so all searches are linear.
 */
#include "service/daemon/jobs/scheduler.h"

struct slot_table {
    const struct sched_slot *slots;
    size_t count;
    bool taken[SCHED_MAX_SLOTS];    /* assigned in this call */
    bool reserved[SCHED_MAX_SLOTS]; /* per slot: its worker waits to become empty */
    bool solitary[SCHED_MAX_SLOTS]; /* per slot: its worker got a job that runs alone */
};

static bool
sched_is_idle(const struct slot_table *table, size_t slot)
{
    return !table->slots[slot].job && !table->taken[slot];
}

static size_t
sched_busy_neighbours(const struct slot_table *table, size_t slot)
{
    size_t busy = 0;
    for (size_t i = 0; i < table->count; i++)
        busy += table->slots[i].worker == table->slots[slot].worker && !sched_is_idle(table, i);
    return busy;
}

static bool
sched_has_solitary(const struct slot_table *table, size_t slot)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->slots[i].worker == table->slots[slot].worker &&
            (table->solitary[i] || (table->slots[i].job && table->slots[i].alone)))
            return true;
    }
    return false;
}

/* Returns a slot in the least busy usable worker other than `avoid`. idle_only: considers only slots that could start
 * now. */
static size_t
sched_best_slot(const struct slot_table *table, int avoid, bool idle_only)
{
    size_t best = table->count, min_busy = SIZE_MAX;
    for (size_t i = 0; i < table->count; i++) {
        if (!table->slots[i].usable || table->slots[i].worker == avoid || table->reserved[i] ||
            sched_has_solitary(table, i) || (idle_only && !sched_is_idle(table, i)))
            continue;
        size_t busy = sched_busy_neighbours(table, i);
        if (busy < min_busy) {
            best = i;
            min_busy = busy;
        }
    }
    return best;
}

size_t
sched_pick(const struct sched_job *jobs, size_t job_count, const struct sched_slot *slots, size_t slot_count,
           bool closed, int64_t now_ms, struct sched_assignment *assignments)
{
    struct slot_table table = {.slots = slots, .count = slot_count < SCHED_MAX_SLOTS ? slot_count : SCHED_MAX_SLOTS};
    size_t assigned = 0;
    for (size_t i = 0; i < job_count && !closed && assigned < table.count; i++) {
        const struct sched_job *job = &jobs[i];
        if (job->not_before_ms > now_ms)
            continue;
        int avoid = -1; /* only if there is another worker */
        for (size_t k = 0; k < table.count; k++)
            avoid = slots[k].usable && slots[k].worker != job->avoid ? job->avoid : avoid;
        const size_t slot = sched_best_slot(&table, avoid, !job->alone);
        if (slot == table.count)
            continue;
        if (job->alone && sched_busy_neighbours(&table, slot) > 0) {
            for (size_t k = 0; k < table.count; k++)
                table.reserved[k] |= slots[k].worker == slots[slot].worker;
            continue;
        }
        table.taken[slot] = true;
        table.solitary[slot] = job->alone;
        assignments[assigned++] = (struct sched_assignment){i, slot};
    }
    return assigned;
}
