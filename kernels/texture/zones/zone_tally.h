/*
 * zone_tally.h - zones counted by their keys, as backends find them: in any order, however many there
 * are. A table takes 32 bytes a key at most, and there are few keys: zones of k sizes have k * k / 2 voxels
 * at least. Begins as zeros; one thread at a time.
 */
#ifndef NOCTULE_ZONE_TALLY_H
#define NOCTULE_ZONE_TALLY_H

#include "kernels/texture/texture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct zone_tally {
    struct texture_zone *zones; /* by a hash of their keys; a count of 0: free */
    size_t room, used;          /* room: a power of 2 */
};

/* 0 or -ENOMEM. */
int zone_tally_add(struct zone_tally *tally, uint64_t key, uint64_t count);

/* The list, to which the tally's memory goes. */
void zone_tally_list(struct zone_tally *tally, struct texture_zone_list *list);

#ifdef __cplusplus
}
#endif
#endif
