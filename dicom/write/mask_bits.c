#include "dicom/write/mask_bits.h"

#include <endian.h>
#include <string.h>

/* Returns the mask of the last word's voxels: all ones if the row ends with a full word. */
static uint64_t
last_word_mask(int32_t columns)
{
    return columns % 64 ? (UINT64_C(1) << columns % 64) - 1 : UINT64_MAX;
}

bool
mask_any(const struct mask_plane *plane)
{
    int64_t last = ((int64_t)plane->columns + 63) / 64 - 1;
    uint64_t tail = last_word_mask(plane->columns);
    for (int32_t y = 0; y < plane->rows; y++) {
        const uint64_t *row = plane->words + y * plane->words_per_row;
        uint64_t any = row[last] & tail;
        for (int64_t i = 0; i < last; i++)
            any |= row[i];
        if (any)
            return true;
    }
    return false;
}

bool
mask_add(const struct mask_plane *plane, uint64_t *seen)
{
    int64_t last = ((int64_t)plane->columns + 63) / 64 - 1;
    uint64_t tail = last_word_mask(plane->columns);
    uint64_t twice = 0;
    for (int32_t y = 0; y < plane->rows; y++) {
        const uint64_t *row = plane->words + y * plane->words_per_row;
        for (int64_t i = 0; i < last; i++) {
            twice |= seen[i] & row[i];
            seen[i] |= row[i];
        }
        twice |= seen[last] & row[last] & tail;
        seen[last] |= row[last] & tail;
        seen += last + 1;
    }
    return twice != 0;
}

static uint8_t *
put_word(uint8_t *place, uint64_t word)
{
    word = htole64(word);
    memcpy(place, &word, sizeof(word));
    return place + sizeof(word);
}

static void
pack_row(struct mask_packer *packer, const uint64_t *row, int32_t columns)
{
    uint8_t *start = byte_sink_reserve(packer->sink, (size_t)columns / 8 + 16);
    uint8_t *place = start;
    uint64_t pending = packer->pending;
    unsigned held = packer->pending_bits;
    int64_t full = columns / 64;
    if (held == 0) {
        for (int64_t i = 0; i < full; i++)
            place = put_word(place, row[i]);
    } else {
        for (int64_t i = 0; i < full; i++) {
            place = put_word(place, pending | row[i] << held);
            pending = row[i] >> (64 - held);
        }
    }
    unsigned rest = (unsigned)columns % 64;
    if (rest > 0) {
        uint64_t word = row[full] & last_word_mask(columns);
        pending |= word << held;
        if (held + rest >= 64) {
            place = put_word(place, pending);
            pending = held ? word >> (64 - held) : 0;
        }
        held = (held + rest) % 64;
    }
    packer->pending = pending;
    packer->pending_bits = held;
    byte_sink_commit(packer->sink, (size_t)(place - start));
}

void
mask_pack(struct mask_packer *packer, const struct mask_plane *plane)
{
    bool contiguous = plane->columns % 64 == 0 && plane->words_per_row == plane->columns / 64;
    if (contiguous && packer->pending_bits == 0 && __BYTE_ORDER == __LITTLE_ENDIAN) {
        /* The bits in memory have the layout of the file. */
        byte_sink_append(packer->sink, plane->words, (size_t)plane->rows * (size_t)plane->columns / 8);
        return;
    }
    for (int32_t y = 0; y < plane->rows; y++)
        pack_row(packer, plane->words + y * plane->words_per_row, plane->columns);
}

void
mask_pack_finish(struct mask_packer *packer)
{
    uint8_t bytes[8];
    put_word(bytes, packer->pending);
    byte_sink_append(packer->sink, bytes, (packer->pending_bits + 7) / 8);
    packer->pending = 0;
    packer->pending_bits = 0;
}
