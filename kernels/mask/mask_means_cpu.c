/* mask_means_cpu.c - drops components of a mask by the mean value of their inner voxels, those whose six
 * neighbours in the volume lie in the mask. Components are numbered. Sums are integers. */
#include "kernels/mask/mask_runs_cpu.h"

#include <string.h>

/* Sizes of components whose decision is made; no number is as high. */
static const uint64_t mean_stays = UINT64_C(1) << 62, mean_goes = UINT64_C(1) << 61;

/* The components first .. first + MASK_MEANS - 1. */
struct mask_turn {
    const struct mask_averaging *of;
    uint64_t first;
};

/* Returns the word, or all ones beyond the volume. */
MASK_INLINE uint64_t
word_beside(const struct mask_labels *labels, bool exists, int64_t row, int64_t word)
{
    return exists ? labels->bits[row * labels->volume->extent.words_per_row + word] : ~UINT64_C(0);
}

/* Returns the inner voxels in a word of a row. */
static uint64_t
inner_voxels(const struct mask_labels *labels, int64_t row, int64_t word)
{
    const struct bits_extent *extent = &labels->volume->extent;
    const int64_t rows = extent->size[1], y = row % rows, z = row / rows, last = extent->words_per_row - 1;
    const uint64_t own = mask_word(labels, row, word);
    const uint64_t lower = own << 1 | word_beside(labels, word > 0, row, word - 1) >> 63;
    const uint64_t higher = own >> 1 | (word < last ? word_beside(labels, true, row, word + 1) << 63
                                                    : UINT64_C(1) << (extent->size[0] - 1) % 64);

    if (!(own & lower & higher))
        return 0;
    return own & lower & higher & word_beside(labels, y > 0, row - 1, word) &
           word_beside(labels, y + 1 < rows, row + 1, word) & word_beside(labels, z > 0, row - rows, word) &
           word_beside(labels, z + 1 < extent->size[2], row + rows, word);
}

/* Adds voxels of a run in a word that begins at this voxel. */
static void
mean_add(const struct mask_turn *turn, uint64_t run, int64_t voxel, uint64_t bits)
{
    uint64_t *slots = turn->of->labels->runs.slots;
    const uint64_t number = (slots[find_root(slots, run)] & ~root_flag) - turn->first;
    struct mask_mean *mean = &turn->of->means[number];
    int64_t sum = 0;

    if (number >= MASK_MEANS)
        return;
    for (uint64_t left = bits; left; left &= left - 1)
        sum += image_value(turn->of->voxels, turn->of->pixel, voxel + __builtin_ctzll(left));
    __atomic_fetch_add(&mean->sum, sum, __ATOMIC_RELAXED);
    __atomic_fetch_add(&mean->count, __builtin_popcountll(bits), __ATOMIC_RELAXED);
}

static void
mean_block(void *context, int64_t number)
{
    const struct mask_turn *turn = context;
    const struct mask_labels *labels = turn->of->labels;
    const struct bits_extent *extent = &labels->volume->extent;
    const uint32_t *first = labels->runs.first;
    struct mask_block block = mask_block(labels->volume, number);

    for (int64_t row = block.first; row < block.end; row++) {
        uint64_t runs = first[row], before = 0; /* runs that begin in the words before */

        for (int64_t word = 0; word < extent->words_per_row && first[row + 1] > first[row]; word++) {
            const uint64_t bits = mask_word(labels, row, word), starts = bits & ~(bits << 1 | before);

            for (uint64_t left = inner_voxels(labels, row, word), own; left; left &= ~own) {
                const uint64_t low = left & -left;

                own = left & ~(bits + low); /* of one run */
                mean_add(turn, runs + (uint64_t)__builtin_popcountll(starts & (low | (low - 1))) - 1,
                         row * extent->size[0] + 64 * word, own);
            }
            runs += (uint64_t)__builtin_popcountll(starts);
            before = bits >> 63;
        }
    }
}

int64_t
mask_drop_means(struct mask_averaging *averaging)
{
    const struct mask_labels *labels = averaging->labels;
    struct mask_turn turn = {averaging, 0};
    uint64_t number = 0;

    for (int64_t run = 0; run < labels->count; run++)
        if (labels->runs.slots[run] & root_flag)
            labels->runs.slots[run] = root_flag | number++;
    for (; turn.first < number; turn.first += MASK_MEANS) {
        memset(averaging->means, 0, MASK_MEANS * sizeof(*averaging->means));
        cpu_pool_for(labels->volume->pool, mask_blocks(labels->volume), mean_block, &turn);
        for (int64_t run = 0; run < labels->count; run++) { /* replace the numbers of the turn by decisions */
            const uint64_t slot = labels->runs.slots[run], in_turn = (slot & ~root_flag) - turn.first;

            if (!(slot & root_flag) || in_turn >= MASK_MEANS)
                continue;
            const struct mask_mean *mean = &averaging->means[in_turn];
            const bool stays = mean->count > 0 && (double)mean->sum / (double)mean->count >= averaging->least;

            labels->runs.slots[run] = root_flag | (stays ? mean_stays : mean_goes);
        }
    }
    return mask_drop(labels, (struct mask_limit){(int64_t)mean_stays, UINT64_MAX});
}
