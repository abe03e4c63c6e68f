/* boxed_cpu.c - levels of the box around a region, for operations on neighbours (texture_cpu.h). */
#include "kernels/texture/texture_cpu.h"

#include <string.h>

/* Parameters of one call. */
struct boxing {
    const struct cpu_lane *lane;
    const struct texture_levels *levels;
    const uint64_t *region;
    const struct texture_boxed *boxed;
};

void *
cpu_boxed_take(const struct kernels_lane *lane, struct kernels_memory *memory, size_t size)
{
    const int64_t columns = lane->extent.columns + 2 * TEXTURE_MAX_DISTANCE;
    const int64_t rows = lane->extent.rows + 2 * TEXTURE_MAX_DISTANCE;
    const int64_t slices = lane->extent.slices + 2 * TEXTURE_MAX_DISTANCE;

    return kernels_take(&memory->host, (size_t)columns * (size_t)rows, (size_t)slices * size);
}

/* Fills a slice of the box including its margin, or a slice of the margin. Voxels outside the region stay 0. */
static void
boxed_fill_slice(void *context, int64_t i)
{
    const struct boxing *boxing = context;
    const struct texture_boxed *boxed = boxing->boxed;
    const struct kernels_lane *lane = &boxing->lane->base;
    const struct texture_box *box = &boxed->box;
    const int64_t z = i - boxed->margin, end = box->first[0] + box->size[0];
    const bool bytes = lane->pixel == IMAGE_UINT8;
    const uint16_t bias = lane->pixel == IMAGE_INT16 ? 0x8000 : 0; /* value ^ bias is an index of the table */
    const void *voxels = boxing->lane->voxels.memory;
    const size_t values = bytes ? 256 : TEXTURE_VALUES;

    memset(boxed->levels + z * boxed->slice - boxed->margin * (boxed->row + 1), 0,
           (size_t)boxed->slice * sizeof(*boxed->levels));
    if (z < 0 || z >= box->size[2])
        return;
    const uint16_t *level_of =
        boxing->levels->level_of + (boxing->levels->table_count > 1 ? (size_t)(box->first[2] + z) * values : 0);

    for (int64_t y = 0; y < box->size[1]; y++) {
        const int64_t row = (box->first[2] + z) * lane->extent.rows + box->first[1] + y;
        uint16_t *to = boxed->levels + z * boxed->slice + y * boxed->row;

        for (int64_t word = box->first[0] / 64; word <= (end - 1) / 64; word++)
            for (uint64_t bits = texture_region_word(lane, boxing->region, row, word); bits; bits &= bits - 1) {
                const int64_t x = word * 64 + __builtin_ctzll(bits), voxel = row * lane->extent.columns + x;

                to[x - box->first[0]] = bytes ? level_of[((const uint8_t *)voxels)[voxel]]
                                              : level_of[((const uint16_t *)voxels)[voxel] ^ bias];
            }
    }
}

void
cpu_boxed_fill(struct cpu_lane *lane, const struct texture_levels *levels, const uint64_t *region, int64_t margin,
               uint16_t *memory, struct texture_boxed *boxed)
{
    const struct boxing boxing = {lane, levels, region, boxed};

    *boxed = (struct texture_boxed){.margin = margin};
    texture_region_box(&lane->base, region, &boxed->box);
    boxed->row = boxed->box.size[0] + 2 * margin;
    boxed->slice = boxed->row * (boxed->box.size[1] + 2 * margin);
    boxed->levels = memory + margin * (boxed->slice + boxed->row + 1);
    if (boxed->box.size[0] > 0)
        cpu_pool_for(cpu_device_of(&lane->base)->pool, boxed->box.size[2] + 2 * margin, boxed_fill_slice,
                     (void *)(uintptr_t)&boxing);
}
