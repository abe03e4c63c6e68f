/*
 * similar_blocks.c - makes blocks of coded histograms, which `noctule similar` reads, when enough jobs have ended or
 * rows were deleted. Loop thread only. Declared in daemon.h.
 */
#include "service/daemon/daemon.h"

#include "service/common/clock.h"

#define TURN_MILLIS 50 /* of blocks per tick; one takes 30 ms */
#define REST_MILLIS 10000

void
pattern_blocks_tick(struct core *core)
{
    const int64_t began_ms = clock_steady_ms();
    bool more = true;
    if (began_ms < core->blocks_due_ms || core->draining || core->db_failed || core->disk_low || !core_change(core))
        return;
    while (more && clock_steady_ms() - began_ms < TURN_MILLIS)
        if (core_failed(core, queue_block_patterns(core->queue, &more), "make a block of patterns"))
            more = false;
    core->blocks_due_ms = more ? 0 : began_ms + REST_MILLIS;
}
