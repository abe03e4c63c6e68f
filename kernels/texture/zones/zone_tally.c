/* zone_tally.c - see zone_tally.h. */
#include "kernels/texture/zones/zone_tally.h"

#include <errno.h>
#include <stdlib.h>

enum { ZONE_TALLY_FIRST = 1024 };

/* Where the key is, or belongs: there is a free place. */
static struct texture_zone *
zone_tally_find(const struct zone_tally *tally, uint64_t key)
{
    const uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 32) & (tally->room - 1);

    while (tally->zones[at].count > 0 && tally->zones[at].key != key)
        at = (at + 1) & (tally->room - 1);
    return &tally->zones[at];
}

static int
zone_tally_grow(struct zone_tally *tally)
{
    struct zone_tally grown = {.room = tally->room ? 2 * tally->room : ZONE_TALLY_FIRST,
                               .used = tally->used};

    grown.zones = calloc(grown.room, sizeof(*grown.zones));
    if (!grown.zones)
        return -ENOMEM;
    for (size_t i = 0; i < tally->room; i++)
        if (tally->zones[i].count > 0)
            *zone_tally_find(&grown, tally->zones[i].key) = tally->zones[i];
    free(tally->zones);
    *tally = grown;
    return 0;
}

int
zone_tally_add(struct zone_tally *tally, uint64_t key, uint64_t count)
{
    struct texture_zone *zone;

    if (2 * tally->used >= tally->room && zone_tally_grow(tally))
        return -ENOMEM;
    zone = zone_tally_find(tally, key);
    tally->used += zone->count == 0;
    zone->key = key;
    zone->count += count;
    return 0;
}

static int
zone_compare(const void *left, const void *right)
{
    const struct texture_zone *a = left, *b = right;

    return (a->key > b->key) - (a->key < b->key);
}

void
zone_tally_list(struct zone_tally *tally, struct texture_zone_list *list)
{
    *list = (struct texture_zone_list){.zones = tally->zones};
    for (size_t i = 0; i < tally->room; i++)
        if (tally->zones[i].count > 0)
            list->zones[list->count++] = tally->zones[i];
    if (list->count > 0)
        qsort(list->zones, list->count, sizeof(*list->zones), zone_compare);
    *tally = (struct zone_tally){.room = 0};
}
