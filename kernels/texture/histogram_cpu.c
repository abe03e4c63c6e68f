/* histogram_cpu.c - counts each stored value on the CPU. Threads count blocks of rows in their own
 * tables, and add these to the caller's. */
#include "kernels/texture/texture_cpu.h"

#include <string.h>

enum {
    CHUNK = 1024,           /* columns counted at a time */
    SLICE_VOXELS = 1 << 20, /* voxels per block if tables are flushed after each */
};

/* The operation's state. */
struct cpu_histogram {
    struct texture_space *spaces;
};

struct tallying {
    struct cpu_lane *lane;
    const uint64_t *region;
    bool per_slice;
    uint16_t bias; /* value ^ bias is the index in the caller's histogram */
    size_t values;
    struct texture_blocks blocks;
    uint64_t *counts;
    int64_t next;
    int64_t space;
};

static void
empty_values(const struct tallying *tallying, int64_t z, uint32_t *const tables[4])
{
    uint64_t *counts = tallying->counts + (tallying->per_slice ? (size_t)z * tallying->values : 0);

    for (size_t i = 0; i < tallying->values; i++) {
        texture_add(&counts[i ^ tallying->bias], (uint64_t)tables[0][i] + tables[1][i]);
        tables[0][i] = tables[1][i] = 0;
    }
}

/* Gathers the values of a word's voxels in the region. Returns their number. */
static int64_t
gather_word(const struct tallying *tallying, int64_t row, int64_t word, uint32_t *values)
{
    const struct kernels_lane *lane = &tallying->lane->base;
    const void *voxels = tallying->lane->voxels.memory;
    int64_t from = row * lane->extent.columns + word * 64;
    int64_t left = lane->extent.columns - word * 64, count = left < 64 ? left : 64, found = 0;
    uint64_t bits = texture_region_word(lane, tallying->region, row, word);
    bool bytes = lane->pixel == IMAGE_UINT8;

    if (__builtin_popcountll(bits) == count) {
        for (int64_t i = 0; i < count; i++)
            values[i] = bytes ? ((const uint8_t *)voxels)[from + i] : ((const uint16_t *)voxels)[from + i];
        return count;
    }
    for (; bits; bits &= bits - 1) {
        const int64_t i = from + __builtin_ctzll(bits);

        values[found++] = bytes ? ((const uint8_t *)voxels)[i] : ((const uint16_t *)voxels)[i];
    }
    return found;
}

static void
tally_values(void *context)
{
    struct tallying *tallying = context;
    const struct cpu_histogram *own = kernels_state(&tallying->lane->base, KERNELS_HISTOGRAM);
    struct texture_space *space = own->spaces + __atomic_fetch_add(&tallying->space, 1, __ATOMIC_RELAXED);
    uint32_t *even = space->high, *odd = space->high + tallying->values;
    uint32_t *const tables[4] = {even, odd, even, odd};
    int64_t i, z = 0, pending = 0;

    memset(space->high, 0, 2 * tallying->values * sizeof(uint32_t));
    while ((i = __atomic_fetch_add(&tallying->next, 1, __ATOMIC_RELAXED)) < tallying->blocks.count) {
        struct texture_block block = texture_block_at(&tallying->blocks, i);

        if (pending > 0 && ((tallying->per_slice && block.z != z) || pending > TEXTURE_MOST_PENDING)) {
            empty_values(tallying, z, tables);
            pending = 0;
        }
        z = block.z;
        for (int64_t y = block.first; y < block.end; y++) {
            const struct isa *isa = cpu_device_of(&tallying->lane->base)->isa;
            const int64_t words = texture_words_per_row(&tallying->lane->base);
            const int64_t row = z * tallying->blocks.rows + y;
            int64_t total = 0;

            for (int64_t word = 0; word < words;) {
                uint32_t values[CHUNK];
                int64_t count = 0;

                for (; word < words && count <= CHUNK - 64; word++)
                    count += gather_word(tallying, row, word, values + count);
                isa->tally32(values, count, tables);
                total += count;
            }
            pending += total;
        }
    }
    if (pending > 0)
        empty_values(tallying, z, tables);
}

static void
cpu_histogram_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cpu_histogram *own = kernels_state(lane, KERNELS_HISTOGRAM);

    own->spaces = kernels_take(&memory->host, (size_t)lane->device->threads, sizeof(*own->spaces));
}

static int
cpu_histogram_run(struct kernels_lane *lane, const void *given, struct error *error)
{
    const struct texture_histogram_request *request = given;
    const bool per_slice = request->per_slice;
    struct tallying tallying = {.lane = cpu_lane_of(lane),
                                .region = request->region,
                                .per_slice = per_slice,
                                .bias = lane->pixel == IMAGE_INT16 ? 0x8000 : 0,
                                .values = lane->pixel == IMAGE_UINT8 ? 256 : TEXTURE_VALUES,
                                .blocks =
                                    texture_blocks_of(lane->extent.columns, lane->extent.rows, lane->extent.slices,
                                                      per_slice ? SLICE_VOXELS : TEXTURE_BLOCK_VOXELS),
                                .counts = request->counts};

    (void)error;
    memset(request->counts, 0,
           (per_slice ? (size_t)lane->extent.slices : 1) * tallying.values * sizeof(*request->counts));
    cpu_pool_run(cpu_device_of(lane)->pool, tally_values, &tallying);
    return 0;
}

const struct kernels_op cpu_histogram_op = {
    .name = "texture (histogram)",
    .state_size = sizeof(struct cpu_histogram),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cpu_histogram_place,
    .run = cpu_histogram_run,
};
