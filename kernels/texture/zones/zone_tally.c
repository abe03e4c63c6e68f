#include "kernels/texture/zones/zone_tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ZONE_TALLY_FIRST = 1024, ZONE_DIGIT_BITS = 8, ZONE_DIGITS = 1 << ZONE_DIGIT_BITS };

/* Returns the place of the key, or a free one for it. At least one must be free. */
static struct texture_zone *
zone_tally_find(const struct zone_tally *tally, uint64_t key)
{
    const uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 32) & (tally->room - 1);

    while (tally->zones[at].count > 0 && tally->zones[at].key != key)
        at = (at + 1) & (tally->room - 1);
    return &tally->zones[at];
}

int
zone_tally_add(struct zone_tally *tally, uint64_t key, uint64_t count)
{
    struct texture_zone *zone;

    if (2 * tally->used >= tally->room) {
        struct zone_tally grown = {.room = tally->room ? 2 * tally->room : ZONE_TALLY_FIRST, .used = tally->used};

        grown.zones = calloc(grown.room, sizeof(*grown.zones));
        if (!grown.zones)
            return -ENOMEM;
        for (size_t i = 0; i < tally->room; i++)
            if (tally->zones[i].count > 0)
                *zone_tally_find(&grown, tally->zones[i].key) = tally->zones[i];
        free(tally->zones);
        *tally = grown;
    }
    zone = zone_tally_find(tally, key);
    tally->used += zone->count == 0;
    zone->key = key;
    zone->count += count;
    return 0;
}

/* Sorts by key with a radix sort. Skips digits that all keys share. `other` must have as many
 * places. Returns the array with the result. */
static struct texture_zone *
zones_sort(struct texture_zone *zones, struct texture_zone *other, size_t count)
{
    uint64_t differ = 0;

    for (size_t i = 0; i < count; i++)
        differ |= zones[i].key ^ zones[0].key;
    for (int shift = 0; shift < 64; shift += ZONE_DIGIT_BITS) {
        struct texture_zone *const from = zones;
        size_t next[ZONE_DIGITS + 1] = {0};

        if (!(differ >> shift & (ZONE_DIGITS - 1)))
            continue;
        for (size_t i = 0; i < count; i++)
            next[(from[i].key >> shift & (ZONE_DIGITS - 1)) + 1]++;
        for (int digit = 0; digit < ZONE_DIGITS; digit++)
            next[digit + 1] += next[digit];
        for (size_t i = 0; i < count; i++)
            other[next[from[i].key >> shift & (ZONE_DIGITS - 1)]++] = from[i];
        zones = other;
        other = from;
    }
    return zones;
}

void
zone_tally_list(struct zone_tally *tally, struct texture_zone_list *list)
{
    struct texture_zone *const zones = tally->zones;
    const size_t used = tally->used;
    size_t count = 0;

    for (size_t i = 0; count < used; i++)
        if (zones[i].count > 0)
            zones[count++] = zones[i];
    /* At least half of the table's places are free. */
    if (used > 0 && zones_sort(zones, zones + used, used) != zones)
        memcpy(zones, zones + used, used * sizeof(*zones));
    *list = (struct texture_zone_list){.zones = zones, .count = used};
    *tally = (struct zone_tally){.room = 0};
}
