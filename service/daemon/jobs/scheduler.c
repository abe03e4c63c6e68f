/*
 * scheduler.c - see scheduler.h.
 *
 * Lane counts are small (a handful of workers with a few lanes each), so everything is looked for
 * by going through the lanes.
 */
#include "service/daemon/jobs/scheduler.h"

struct slot_table {
    const struct sched_lane *lanes;
    size_t count;
    bool taken[SCHED_MAX_LANES];    /* given away in this call */
    bool reserved[SCHED_MAX_LANES]; /* by lane: its worker waits to become empty */
    bool solitary[SCHED_MAX_LANES]; /* by lane: its worker was given a job that runs alone */
};

static bool
sched_is_idle(const struct slot_table *table, size_t lane)
{
    return !table->lanes[lane].job && !table->taken[lane];
}

static size_t
sched_busy_beside(const struct slot_table *table, size_t lane)
{
    size_t busy = 0;
    for (size_t i = 0; i < table->count; i++)
        busy += table->lanes[i].worker == table->lanes[lane].worker && !sched_is_idle(table, i);
    return busy;
}

static bool
sched_has_solitary(const struct slot_table *table, size_t lane)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->lanes[i].worker == table->lanes[lane].worker &&
            (table->solitary[i] || (table->lanes[i].job && table->lanes[i].alone)))
            return true;
    }
    return false;
}

static bool
sched_has_other(const struct slot_table *table, int worker)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->lanes[i].usable && table->lanes[i].worker != worker)
            return true;
    }
    return false;
}

/*
 * The lane in the least busy usable worker but `avoid`; idle_only: only lanes that could start now.
 */
static size_t
sched_best_lane(const struct slot_table *table, int avoid, bool idle_only)
{
    size_t best = table->count, least = SIZE_MAX;
    for (size_t i = 0; i < table->count; i++) {
        if (!table->lanes[i].usable || table->lanes[i].worker == avoid || table->reserved[i] ||
            sched_has_solitary(table, i) || (idle_only && !sched_is_idle(table, i)))
            continue;
        size_t busy = sched_busy_beside(table, i);
        if (busy < least) {
            best = i;
            least = busy;
        }
    }
    return best;
}

static void
sched_mark_worker(const struct slot_table *table, bool marks[], size_t lane)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->lanes[i].worker == table->lanes[lane].worker)
            marks[i] = true;
    }
}

static size_t
sched_place(struct slot_table *table, const struct sched_job *job)
{
    int avoid = sched_has_other(table, job->avoid) ? job->avoid : -1;
    size_t lane = sched_best_lane(table, avoid, !job->alone);
    if (lane == table->count)
        return lane;
    if (job->alone && sched_busy_beside(table, lane) > 0) {
        sched_mark_worker(table, table->reserved, lane);
        return table->count;
    }
    table->taken[lane] = true;
    table->solitary[lane] = job->alone;
    return lane;
}

size_t
sched_pick(const struct sched_job *jobs, size_t job_count, const struct sched_lane *lanes,
           size_t lane_count, bool closed, int64_t now_ms, struct sched_assignment *assignments)
{
    struct slot_table table = {
        .lanes = lanes, .count = lane_count < SCHED_MAX_LANES ? lane_count : SCHED_MAX_LANES};
    size_t assigned = 0;
    for (size_t i = 0; i < job_count && !closed && assigned < table.count; i++) {
        if (jobs[i].not_before_ms > now_ms)
            continue;
        size_t lane = sched_place(&table, &jobs[i]);
        if (lane < table.count)
            assignments[assigned++] = (struct sched_assignment){i, lane};
    }
    return assigned;
}
