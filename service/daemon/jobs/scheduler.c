/*
 * scheduler.c - see scheduler.h.
 *
 * Lane counts are small (a handful of workers with a few lanes each), so everything is looked for
 * by going through the lanes.
 */
#include "service/daemon/jobs/scheduler.h"

struct floor {
    const struct sched_lane *lanes;
    size_t count;
    bool taken[SCHED_MAX_LANES];    /* given away in this call */
    bool reserved[SCHED_MAX_LANES]; /* by lane: its worker waits to become empty */
    bool solitary[SCHED_MAX_LANES]; /* by lane: its worker was given a job that runs alone */
};

static bool
is_idle(const struct floor *floor, size_t lane)
{
    return !floor->lanes[lane].job && !floor->taken[lane];
}

static size_t
busy_beside(const struct floor *floor, size_t lane)
{
    size_t busy = 0;
    for (size_t i = 0; i < floor->count; i++)
        busy += floor->lanes[i].worker == floor->lanes[lane].worker && !is_idle(floor, i);
    return busy;
}

static bool
has_solitary(const struct floor *floor, size_t lane)
{
    for (size_t i = 0; i < floor->count; i++) {
        if (floor->lanes[i].worker == floor->lanes[lane].worker &&
            (floor->solitary[i] || (floor->lanes[i].job && floor->lanes[i].alone)))
            return true;
    }
    return false;
}

static bool
has_other(const struct floor *floor, int worker)
{
    for (size_t i = 0; i < floor->count; i++) {
        if (floor->lanes[i].usable && floor->lanes[i].worker != worker)
            return true;
    }
    return false;
}

/*
 * The lane in the least busy usable worker but `avoid`; idle_only: only lanes that could start now.
 */
static size_t
best_lane(const struct floor *floor, int avoid, bool idle_only)
{
    size_t best = floor->count, least = SIZE_MAX;
    for (size_t i = 0; i < floor->count; i++) {
        if (!floor->lanes[i].usable || floor->lanes[i].worker == avoid || floor->reserved[i] ||
            has_solitary(floor, i) || (idle_only && !is_idle(floor, i)))
            continue;
        size_t busy = busy_beside(floor, i);
        if (busy < least) {
            best = i;
            least = busy;
        }
    }
    return best;
}

static void
mark_worker(const struct floor *floor, bool marks[], size_t lane)
{
    for (size_t i = 0; i < floor->count; i++) {
        if (floor->lanes[i].worker == floor->lanes[lane].worker)
            marks[i] = true;
    }
}

static size_t
place(struct floor *floor, const struct sched_job *job)
{
    int avoid = has_other(floor, job->avoid) ? job->avoid : -1;
    size_t lane = best_lane(floor, avoid, !job->alone);
    if (lane == floor->count)
        return lane;
    if (job->alone && busy_beside(floor, lane) > 0) {
        mark_worker(floor, floor->reserved, lane);
        return floor->count;
    }
    floor->taken[lane] = true;
    floor->solitary[lane] = job->alone;
    return lane;
}

size_t
sched_pick(const struct sched_job *jobs, size_t job_count, const struct sched_lane *lanes,
           size_t lane_count, bool closed, int64_t now_ms, struct sched_assignment *assignments)
{
    struct floor floor = {.lanes = lanes,
                          .count = lane_count < SCHED_MAX_LANES ? lane_count : SCHED_MAX_LANES};
    size_t assigned = 0;
    for (size_t i = 0; i < job_count && !closed && assigned < floor.count; i++) {
        if (jobs[i].not_before_ms > now_ms)
            continue;
        size_t lane = place(&floor, &jobs[i]);
        if (lane < floor.count)
            assignments[assigned++] = (struct sched_assignment){i, lane};
    }
    return assigned;
}
