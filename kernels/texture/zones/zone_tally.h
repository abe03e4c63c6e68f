/*
 * zone_tally.h - counts zones by key, in any order and number. A table takes at most 32 bytes per
 * key. There are few keys: zones of k sizes have at least k * k / 2 voxels. It must be zeroed
 * initially.
 * Threads: one at a time.
 */
#ifndef NOCTULE_KERNELS_TEXTURE_ZONES_ZONE_TALLY_H
#define NOCTULE_KERNELS_TEXTURE_ZONES_ZONE_TALLY_H

#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct zone_tally {
    struct texture_zone *zones; /* hashed by key; count 0: free */
    size_t room, used;          /* room is a power of 2 */
};

/* Returns 0 or -ENOMEM. */
int zone_tally_add(struct zone_tally *tally, uint64_t key, uint64_t count);

/* Moves the counts and their memory to the list. */
void zone_tally_list(struct zone_tally *tally, struct texture_zone_list *list);

#ifdef __cplusplus
}
#endif
#endif
