/* slices_block.c - see slices_block.h. Compilers make vectors of the loops over slices. */
#include "service/common/slices/slices_block.h"

#include <string.h>

/* Predicts a column by its left, upper and upper left neighbours. Sums are modulo 2^16 for reader and writer. */
static inline void
block_predict(const int16_t *left, const int16_t *upper, const int16_t *corner, int16_t *restrict predicted)
{
#pragma GCC unroll 1
    for (int z = 0; z < BLOCK_EDGE; z++) {
        const int16_t high = left[z] > upper[z] ? left[z] : upper[z];
        const int16_t low = left[z] > upper[z] ? upper[z] : left[z];
        const int16_t slope = (int16_t)(uint16_t)((uint16_t)left[z] + (uint16_t)upper[z] - (uint16_t)corner[z]);
        const int16_t floored = slope < low ? low : slope;
        predicted[z] = floored > high ? high : floored;
    }
}

static inline void
block_predict_at(const struct block *block, int32_t x, int32_t y, const int16_t *first, int16_t *restrict predicted)
{
    const block_lanes *at = &block->lanes[BLOCK_EDGE * y + x];
    if (x > 0 && y > 0)
        block_predict(at[-1], at[-BLOCK_EDGE], at[-BLOCK_EDGE - 1], predicted);
    else
        memcpy(predicted, x > 0 ? at[-1] : y > 0 ? at[-BLOCK_EDGE] : first, sizeof *at);
}

void
block_to_differences(const struct block *block, int16_t first, uint16_t differences[][BLOCK_EDGE])
{
    block_lanes predicted, firsts;
    for (int z = 0; z < BLOCK_EDGE; z++)
        firsts[z] = first;
    for (int32_t y = 0; y < block->size[1]; y++) {
        for (int32_t x = 0; x < block->size[0]; x++) {
            const int16_t *value = block->lanes[BLOCK_EDGE * y + x];
            uint16_t *restrict to = differences[BLOCK_EDGE * y + x];
            block_predict_at(block, x, y, firsts, predicted);
#pragma GCC unroll 1
            for (int z = 0; z < BLOCK_EDGE; z++) {
                const int16_t difference = (int16_t)(uint16_t)((uint16_t)value[z] - (uint16_t)predicted[z]);
                to[z] = (uint16_t)((uint16_t)((uint16_t)difference << 1) ^ (uint16_t)(difference < 0 ? 0xffff : 0));
            }
        }
    }
}

void
block_from_differences(struct block *block, int16_t first, const uint16_t differences[][BLOCK_EDGE])
{
    block_lanes predicted, firsts;
    for (int z = 0; z < BLOCK_EDGE; z++)
        firsts[z] = first;
    for (int32_t y = 0; y < block->size[1]; y++) {
        for (int32_t x = 0; x < block->size[0]; x++) {
            int16_t *restrict value = block->lanes[BLOCK_EDGE * y + x];
            const uint16_t *from = differences[BLOCK_EDGE * y + x];
            block_predict_at(block, x, y, firsts, predicted);
#pragma GCC unroll 1
            for (int z = 0; z < BLOCK_EDGE; z++)
                value[z] = (int16_t)(uint16_t)((uint16_t)predicted[z] +
                                               (uint16_t)((from[z] >> 1) ^ (uint16_t) - (from[z] & 1)));
        }
    }
}
