/*
 * zones_tiles.cu - zones as far as a block sees them: those of its tile, united in shared memory run by
 * run. Levels are looked at as planes of bits, 32 voxels at a time.
 */
#include "kernels/texture/zones/zones_cuda.cuh"

namespace
{
enum {
    TILE_SLOTS = ZONES_THREADS * ZONES_WIDTH,
    TILE_COUNTERS = 1024, /* of sizes, and of distances */
    TILE_SHIFT = 16,      /* a root has its count above its number */
    TILE_LOADS = 4,       /* of levels that are under way */
    TILE_BLOCKS = 4,      /* of a multiprocessor, whose shared memory has room for as many */
};

constexpr uint32_t TILE_SLOT = (1u << TILE_SHIFT) - 1, TILE_REACHES = 1u << 31,
                   TILE_HELD = TILE_REACHES >> TILE_SHIFT, /* above what is counted */
    TILE_FAR = TILE_HELD - 1;

/* In shared memory. Words lie in all banks. */
template <uint32_t Bits> struct zones_memory {
    union {
        uint32_t forest[TILE_SLOTS + ZONES_THREADS];

        struct {
            uint32_t codes[ZONES_THREADS][8]; /* of voxels, four in each */
            uint8_t valid[ZONES_THREADS][8];
        };
    };

    uint32_t rows[(Bits + 2) * ZONES_THREADS];
    uint32_t hung[ZONES_THREADS]; /* starts of runs that are below others since they were linked */
    uint32_t sizes[TILE_COUNTERS], distances[TILE_COUNTERS];
    uint32_t queues[ZONES_THREADS / 32][ZONES_QUEUE];
    uint32_t of_warp[ZONES_THREADS / 32];
    uint32_t base, nearest;
};

struct zones_forest {
    uint32_t *memory, *hung;

    __device__ __forceinline__ uint32_t *at(uint32_t slot) const
    {
        return &memory[slot + slot / ZONES_WIDTH];
    }

    __device__ __forceinline__ uint32_t peek(uint32_t slot) const
    {
        return *(const volatile uint32_t *)at(slot);
    }

    __device__ __forceinline__ void raise(uint32_t slot, uint32_t above) const
    {
        *at(slot) = above;
    }

    /* What it is below. */
    __device__ __forceinline__ uint32_t hang(uint32_t root, uint32_t below) const
    {
        const uint32_t over = atomicCAS(at(root), root, below);

        if (over == root)
            atomicOr(&hung[root / ZONES_WIDTH], 1u << root % ZONES_WIDTH);
        return over;
    }

    /* All lanes of a warp, until each is at its root. Roots may be counted already. */
    __device__ __forceinline__ uint32_t root(uint32_t slot) const
    {
        for (;;) {
            const uint32_t next = peek(slot) & TILE_SLOT;

            if (!__any_sync(~0u, next != slot))
                return slot;
            slot = next;
        }
    }
};

/* Four values of a row beside each other; fewer at its end. */
template <typename Value>
__device__ __forceinline__ void
zones_four_values(const struct glcm_volume &volume, size_t row, uint32_t column, uint32_t value[4])
{
    const Value *at = (const Value *)volume.voxels + row * volume.columns + column;

    if (volume.columns % 4 == 0) {
        const uint32_t *words = (const uint32_t *)at;
        const uint32_t low = column < volume.columns ? __ldg(words) : 0;

        if (sizeof(Value) == 1) {
#pragma unroll
            for (int k = 0; k < 4; k++)
                value[k] = low >> 8 * k & 0xFF;
            return;
        }
        const uint32_t high = column < volume.columns ? __ldg(words + 1) : 0;

        value[0] = low & 0xFFFF;
        value[1] = low >> 16;
        value[2] = high & 0xFFFF;
        value[3] = high >> 16;
        return;
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; k++)
        value[k] = column + k < volume.columns ? __ldg(at + k) : 0;
}

/* Bit p of byte i of word k becomes bit 8 * i + k of word p. */
__device__ __forceinline__ void
transpose(uint32_t words[8])
{
    const auto swap = [&](int a, int b, int by, uint32_t mask) {
        const uint32_t differ = (words[a] >> by ^ words[b]) & mask;

        words[b] ^= differ;
        words[a] ^= differ << by;
    };

#pragma unroll
    for (int k = 0; k < 4; k++)
        swap(k, k + 4, 4, 0x0F0F0F0F);
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (k % 4 < 2)
            swap(k, k + 2, 2, 0x33333333);
#pragma unroll
    for (int k = 0; k < 8; k += 2)
        swap(k, k + 1, 1, 0x55555555);
}

/* Byte i of word k and byte k of word i change places. */
__device__ __forceinline__ void
transpose_bytes(const uint32_t from[4], uint32_t to[4])
{
    const uint32_t low[2] = {__byte_perm(from[0], from[1], 0x5140),
                             __byte_perm(from[2], from[3], 0x5140)},
                   high[2] = {__byte_perm(from[0], from[1], 0x7362),
                              __byte_perm(from[2], from[3], 0x7362)};

    to[0] = __byte_perm(low[0], low[1], 0x5410);
    to[1] = __byte_perm(low[0], low[1], 0x7632);
    to[2] = __byte_perm(high[0], high[1], 0x5410);
    to[3] = __byte_perm(high[0], high[1], 0x7632);
}

template <typename Value, uint32_t Bits, bool Flat, bool Distances> struct zones_tile {
    const struct zones_job &job;
    zones_memory<Bits> &memory;
    uint32_t wx, y0, z0; /* where it begins */

    static constexpr uint32_t rows = Flat ? ZONES_FLAT_ROWS : ZONES_DEEP_ROWS;

    __device__ __forceinline__ zones_forest forest() const
    {
        return {memory.forest, memory.hung};
    }

    __device__ __forceinline__ uint32_t y_of(uint32_t word) const
    {
        return y0 + word % rows;
    }

    __device__ __forceinline__ uint32_t z_of(uint32_t word) const
    {
        return z0 + word / rows;
    }

    __device__ __forceinline__ bool exists(uint32_t word) const
    {
        return y_of(word) < job.rows && z_of(word) < job.slices;
    }

    /* Does its row lie where tiles meet? */
    __device__ __forceinline__ bool meets(uint32_t word) const
    {
        const uint32_t y = y_of(word), z = z_of(word);

        if (!exists(word))
            return false;
        return (word % rows == 0 && y > 0) || (word % rows == rows - 1 && y + 1 < job.rows) ||
               (!Flat && ((word / rows == 0 && z > 0) ||
                          (word / rows == ZONES_THREADS / rows - 1 && z + 1 < job.slices)));
    }

    /* Of its region, and of the box. */
    __device__ __forceinline__ uint32_t inside(uint32_t word) const
    {
        const size_t row =
            (size_t)(job.first[2] + z_of(word)) * job.volume.rows + job.first[1] + y_of(word);
        const uint32_t left = job.columns - wx * ZONES_WIDTH;
        const uint32_t bits = left < ZONES_WIDTH ? (1u << left) - 1 : ~0u;

        if (!exists(word))
            return 0;
        if (!job.volume.region)
            return bits;
        return bits &
               ((const uint32_t *)(job.volume.region +
                                   row *
                                       job.volume.words_per_row))[job.first[0] / ZONES_WIDTH + wx];
    }

    /* Four voxels a thread, of four rows at a time, go to the threads that own the rows. */
    __device__ __forceinline__ void read_levels() const
    {
        const uint32_t lane = threadIdx.x % 32, part = lane % 8,
                       column = job.first[0] + wx * ZONES_WIDTH + 4 * part;

#pragma unroll TILE_LOADS
        for (uint32_t i = 0; i < 8; i++) {
            const uint32_t word = threadIdx.x - lane + 4 * i + lane / 8, z = z_of(word);
            const size_t row =
                (size_t)(job.first[2] + z) * job.volume.rows + job.first[1] + y_of(word);
            const uint16_t *table = job.tables + (z - job.table_slice) * job.values;
            uint32_t value[4], codes = 0, valid = 0;

            if (!exists(word))
                continue;
            zones_four_values<Value>(job.volume, row, column, value);
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) {
                const uint32_t level = __ldg(&table[value[k] ^ job.volume.bias]);

                codes |= (level & 0xFF) << 8 * k;
                valid |= level > 0 ? 1u << k : 0;
            }
            memory.codes[word][part] = codes;
            memory.valid[word][part] = (uint8_t)valid;
        }
    }

    __device__ __forceinline__ zones_word<Bits> read() const
    {
        zones_word<Bits> own = {};
        uint32_t planes[8];

        __syncthreads();
        read_levels();
        __syncwarp();
        own.valid = inside(threadIdx.x);
        if (own.valid) {
            const uint4 *codes = (const uint4 *)memory.codes[threadIdx.x];
            const uint4 low = codes[0], high = codes[1];
            const uint32_t even[4] = {low.x, low.z, high.x, high.z},
                           odd[4] = {low.y, low.w, high.y, high.w};
            const uint2 fours = *(const uint2 *)memory.valid[threadIdx.x];

            transpose_bytes(even, planes);
            transpose_bytes(odd, planes + 4);
            transpose(planes);
            own.valid &= __byte_perm(fours.x | fours.x >> 4, fours.y | fours.y >> 4, 0x6420);
#pragma unroll
            for (uint32_t p = 0; p < Bits; p++)
                own.plane[p] = planes[p];
        }
        own.starts = own.valid & ~zones_alike<-1>(own, own);
        return own;
    }

    __device__ __forceinline__ void put(const zones_word<Bits> &own) const
    {
#pragma unroll
        for (uint32_t p = 0; p < Bits; p++)
            memory.rows[p * ZONES_THREADS + threadIdx.x] = own.plane[p];
        memory.rows[Bits * ZONES_THREADS + threadIdx.x] = own.valid;
        memory.rows[(Bits + 1) * ZONES_THREADS + threadIdx.x] = own.starts;
    }

    __device__ __forceinline__ bool get(uint32_t word, zones_word<Bits> *other) const
    {
#pragma unroll
        for (uint32_t p = 0; p < Bits; p++)
            other->plane[p] = memory.rows[p * ZONES_THREADS + word];
        other->valid = memory.rows[Bits * ZONES_THREADS + word];
        other->starts = memory.rows[(Bits + 1) * ZONES_THREADS + word];
        return true;
    }

    static __device__ __forceinline__ int away(enum zones_side side)
    {
        return zones_side_y(side) + zones_side_z(side) * (int)rows;
    }

    __device__ __forceinline__ void find(const zones_word<Bits> &own,
                                         struct zones_contacts contacts[ZONES_SIDES]) const
    {
        const uint32_t y = threadIdx.x % rows, z = threadIdx.x / rows;

        zones_find_pairs<Bits, Flat>(
            own,
            [&](enum zones_side side, zones_word<Bits> *other) {
                return (int)y + zones_side_y(side) >= 0 && y + zones_side_y(side) < rows &&
                       (int)z + zones_side_z(side) >= 0 && get(threadIdx.x + away(side), other);
            },
            contacts);
    }

    /* visit(is it one, from bit, from slot, to slot) of pairs that bring runs together, all lanes of a warp; those for
     * which it is true stay. */
    template <typename Visit>
    __device__ __forceinline__ void each_pair(const zones_word<Bits> &own,
                                              struct zones_contacts contacts[ZONES_SIDES],
                                              const Visit &visit) const
    {
#pragma unroll
        for (int i = 0; i < ZONES_SIDES; i++) {
            const uint32_t other = threadIdx.x + away((enum zones_side)i);

            if (Flat && i != ZONES_ABOVE)
                continue;
            zones_each_pair(&contacts[i], [&](bool is, int from, int to) {
                const int start = zones_start(own.starts, from);

                return visit(is, start, threadIdx.x * ZONES_WIDTH + start,
                             other * ZONES_WIDTH + zones_start(contacts[i].starts, to));
            });
        }
    }

    /* Every run is hung below one before it that it meets: nobody else does that. What else it meets stays. Returns
     * the starts of those that are hung. */
    __device__ __forceinline__ uint32_t link(const zones_word<Bits> &own,
                                             struct zones_contacts contacts[ZONES_SIDES]) const
    {
        const uint32_t first = threadIdx.x * ZONES_WIDTH;
        uint32_t linked = 0;

        memory.hung[threadIdx.x] = 0;
#pragma unroll
        for (uint32_t bit = 0; bit < ZONES_WIDTH; bit++)
            *forest().at(first + bit) = first + bit;
        each_pair(own, contacts, [&](bool is, int start, uint32_t slot, uint32_t other) {
            const bool known = is && linked >> start & 1;

            if (is && !known)
                *forest().at(slot) = other;
            linked |= is ? 1u << start : 0;
            return known;
        });
        return linked;
    }

    /* Every run shows its root so far; where few hang below others the way to it is short as it is. */
    __device__ __forceinline__ void shorten(const zones_word<Bits> &own, uint32_t linked) const
    {
        if (2 * __reduce_add_sync(~0u, (uint32_t)__popc(linked)) <
            __reduce_add_sync(~0u, (uint32_t)__popc(own.starts)))
            return;
        each_run(own, own.starts, [&](bool, uint32_t slot, int, uint32_t) {
            *forest().at(slot) = forest().root(slot);
        });
    }

    static __device__ __forceinline__ bool
    any_left(const struct zones_contacts contacts[ZONES_SIDES])
    {
        uint64_t left = 0;

#pragma unroll
        for (int i = 0; i < ZONES_SIDES; i++)
            left |= contacts[i].left;
        return left != 0;
    }

    __device__ __forceinline__ void unite(const zones_word<Bits> &own,
                                          struct zones_contacts contacts[ZONES_SIDES]) const
    {
        const auto both = [&](uint32_t pair) {
            zones_unite_numbers(forest(), pair >> TILE_SHIFT, pair & TILE_SLOT);
        };
        zones_queue<uint32_t> queue = {memory.queues[threadIdx.x / 32], 0};

        each_pair(own, contacts, [&](bool is, int, uint32_t slot, uint32_t other) {
            queue.push(is, slot << TILE_SHIFT | other, both);
            return false;
        });
        queue.finish(both);
    }

    /* visit(is there one, slot, first voxel, the run's voxels) of some of the runs of the thread's word. All lanes of a
     * warp, those that have none left, too, as of the last voxel: those that part in a loop would stay apart to its
     * end. */
    template <typename Visit>
    __device__ __forceinline__ void each_run(const zones_word<Bits> &own, uint32_t some,
                                             const Visit &visit) const
    {
        const uint32_t breaks = own.starts | ~own.valid;

        for (uint32_t left = some; __any_sync(~0u, left != 0); left &= left - 1) {
            const uint32_t first = left & -left, from = -first, beyond = breaks & from << 1;
            const int bit = __ffs((int)(first | 1u << (ZONES_WIDTH - 1))) - 1;

            visit(left != 0, threadIdx.x * ZONES_WIDTH + bit, bit,
                  beyond ? from & ((beyond & -beyond) - 1) : from);
        }
    }

    /* What a run has for its root's count. */
    __device__ __forceinline__ uint32_t part(uint32_t run) const
    {
        const uint32_t edge = meets(threadIdx.x)
                                  ? ~0u
                                  : (uint32_t)(wx > 0) | (uint32_t)(wx + 1 < job.words)
                                                             << (ZONES_WIDTH - 1);

        return (uint32_t)__popc(run) << TILE_SHIFT | (run & edge ? TILE_REACHES : 0);
    }

    static __device__ __forceinline__ uint32_t add_part(uint32_t to, uint32_t more)
    {
        return (to + (more & ~TILE_REACHES)) | (more & TILE_REACHES);
    }

    /* Runs below others show their roots, which count their voxels. */
    __device__ __forceinline__ void count(const zones_word<Bits> &own, uint32_t hung) const
    {
        uint32_t last = TILE_SLOT, parts = 0;
        const auto give = [&]() {
            if (parts & ~TILE_REACHES)
                atomicAdd(forest().at(last), parts & ~TILE_REACHES);
            if (parts & TILE_REACHES && !(forest().peek(last) & TILE_REACHES))
                atomicOr(forest().at(last), TILE_REACHES);
            parts = 0;
        };

        each_run(own, hung, [&](bool is, uint32_t slot, int, uint32_t run) {
            const uint32_t root = forest().root(slot), more = part(run);

            if (!is)
                return;
            *forest().at(slot) = root;
            if (root != last)
                give();
            last = root;
            parts = add_part(parts, more);
        });
        give();
    }

    __device__ __forceinline__ uint32_t group(const zones_word<Bits> &own, int bit) const
    {
        const uint32_t slice = job.per_slice ? job.first[2] + z_of(threadIdx.x) : 0;

        return slice << TEXTURE_ZONE_LEVEL_BITS | own.level(bit);
    }

    /* Roots whose zones end in the tile are counted; which are the others? These hold all of their part. */
    __device__ __forceinline__ uint32_t list(const zones_word<Bits> &own, uint32_t roots,
                                             const zones_counters &sizes) const
    {
        uint32_t reaching = 0;

        each_run(own, roots, [&](bool is, uint32_t slot, int bit, uint32_t run) {
            const uint32_t all = add_part(*forest().at(slot), part(run));

            if (!is)
                return;
            if (all & TILE_REACHES) {
                reaching |= 1u << bit;
                *forest().at(slot) = all;
            } else
                sizes.add(job, 1, group(own, bit), all >> TILE_SHIFT);
        });
        return reaching;
    }

    /* Numbers for the block's roots that reach further: the thread's first one. */
    __device__ __forceinline__ uint32_t number(uint32_t reaching) const
    {
        const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        uint32_t sum = (uint32_t)__popc(reaching), before = 0;

        for (int away = 1; away < 32; away *= 2) {
            const uint32_t other = __shfl_up_sync(~0u, sum, away);

            sum += lane >= (uint32_t)away ? other : 0;
        }
        if (lane == 31)
            memory.of_warp[warp] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            uint32_t all = 0;

            for (uint32_t i = 0; i < ZONES_THREADS / 32; i++)
                all += memory.of_warp[i];
            memory.base = all > 0 ? atomicAdd(job.numbers, all) : 0;
        }
        for (uint32_t i = 0; i < warp; i++)
            before += memory.of_warp[i];
        __syncthreads();
        return before + sum - (uint32_t)__popc(reaching);
    }

    /* visit(slot, voxel, number in the tile). */
    template <typename Visit>
    __device__ __forceinline__ void each_number(uint32_t reaching, uint32_t number,
                                                const Visit &visit) const
    {
        for (; reaching; reaching &= reaching - 1) {
            const int bit = __ffs((int)reaching) - 1;

            visit(threadIdx.x * ZONES_WIDTH + bit, bit, number++);
        }
    }

    __device__ __forceinline__ void write_numbers(const zones_word<Bits> &own, uint32_t reaching,
                                                  uint32_t first) const
    {
        each_number(reaching, first, [&](uint32_t slot, int bit, uint32_t number) {
            const uint32_t id = memory.base + number;

            job.parents[id] = id;
            job.groups[id] = group(own, bit);
            job.sizes[id] = *forest().at(slot) >> TILE_SHIFT & (TILE_HELD - 1);
            *forest().at(slot) = TILE_REACHES | number << TILE_SHIFT | slot;
        });
    }

    __device__ __forceinline__ uint32_t label(uint32_t word, uint32_t starts, int bit) const
    {
        const uint32_t root =
            *forest().at(word * ZONES_WIDTH + zones_start(starts, bit)) & TILE_SLOT;

        return memory.base + (*forest().at(root) >> TILE_SHIFT & (TILE_HELD - 1));
    }

    /* What seams read: words where tiles meet, a warp each. */
    __device__ __forceinline__ void write_labels() const
    {
        const uint32_t lane = threadIdx.x % 32;

        for (uint32_t word = threadIdx.x / 32; word < ZONES_THREADS; word += ZONES_THREADS / 32) {
            if (!meets(word))
                continue;
            const uint32_t valid = memory.rows[Bits * ZONES_THREADS + word],
                           starts = memory.rows[(Bits + 1) * ZONES_THREADS + word];

            if (valid >> lane & 1)
                job.labels[zones_word_at(job, wx, y_of(word), z_of(word)) * ZONES_WIDTH + lane] =
                    label(word, starts, (int)lane);
        }
    }

    /* Likewise the ends of words. */
    __device__ __forceinline__ void write_ends(const zones_word<Bits> &own) const
    {
        for (int side = 0; side < 2; side++) {
            const int bit = side * (ZONES_WIDTH - 1);

            if (!exists(threadIdx.x) || (side ? wx + 1 == job.words : wx == 0))
                continue;
            const size_t at =
                zones_word_at(job, 2 * wx + side, y_of(threadIdx.x), z_of(threadIdx.x));
            const bool valid = own.valid >> bit & 1;

            job.end_levels[at] = (uint16_t)(valid ? own.level(bit) : 0);
            if (valid)
                job.end_labels[at] = label(threadIdx.x, own.starts, bit);
        }
    }

    __device__ __forceinline__ void write_record(const zones_word<Bits> &own) const
    {
        constexpr uint32_t quads = (Bits + 5) / 4;
        uint32_t parts[4 * quads] = {};

        if (!meets(threadIdx.x))
            return;
#pragma unroll
        for (uint32_t p = 0; p < Bits; p++)
            parts[p] = own.plane[p];
        parts[Bits] = own.valid;
        parts[Bits + 1] = own.starts;
        uint4 *record =
            job.records + zones_word_at(job, wx, y_of(threadIdx.x), z_of(threadIdx.x)) * quads;

#pragma unroll
        for (uint32_t q = 0; q < quads; q++)
            record[q] =
                make_uint4(parts[4 * q], parts[4 * q + 1], parts[4 * q + 2], parts[4 * q + 3]);
    }

    /* Distances */

    __device__ __forceinline__ void lower(uint32_t slot, uint32_t distance) const
    {
        const uint32_t root = *forest().at(slot) & TILE_SLOT;
        const uint32_t held = *(const volatile uint32_t *)forest().at(root);
        const uint32_t wanted = (held & (TILE_REACHES | TILE_SLOT)) | distance << TILE_SHIFT;

        if (wanted < held)
            atomicMin(forest().at(root), wanted);
    }

    /* From the border of the volume; along a run it is smallest at an end. */
    __device__ __forceinline__ uint32_t from_border(uint32_t run) const
    {
        const uint32_t x = wx * ZONES_WIDTH, y = y_of(threadIdx.x), z = z_of(threadIdx.x);
        const uint32_t least =
            min(min(x + __ffs((int)run), job.columns - (x + 31 - __clz((int)run))),
                min(y + 1, job.rows - y));

        return Flat ? least : min(least, min(z + 1, job.slices - z));
    }

    /* Returns the smallest of the thread's. */
    __device__ __forceinline__ uint32_t lower_by_steps(const zones_word<Bits> &own) const
    {
        const size_t word = zones_word_at(job, wx, y_of(threadIdx.x), z_of(threadIdx.x));
        const uint32_t ends = own.valid & ~(own.joined() >> 1);
        uint32_t run = TILE_FAR, all = TILE_FAR;

        if (!own.valid)
            return all;
        const uint4 *steps = (const uint4 *)(job.steps + word * ZONES_WIDTH);

#pragma unroll
        for (uint32_t q = 0; q < 4; q++) {
            const uint4 four = __ldg(&steps[q]);
            const uint32_t two[4] = {four.x, four.y, four.z, four.w};

#pragma unroll
            for (int b = 0; b < 8; b++) {
                const int bit = 8 * q + b;

                run = min(own.starts >> bit & 1 ? (uint32_t)TILE_FAR : run,
                          two[b / 2] >> 16 * (b % 2) & 0xFFFF);
                if (ends >> bit & 1) {
                    all = min(all, run);
                    lower(threadIdx.x * ZONES_WIDTH + zones_start(own.starts, bit), run);
                }
            }
        }
        return all;
    }

    __device__ __forceinline__ uint32_t lower_by_border(const zones_word<Bits> &own) const
    {
        uint32_t all = TILE_FAR;

        each_run(own, own.starts, [&](bool is, uint32_t slot, int, uint32_t run) {
            const uint32_t distance = from_border(run);

            if (!is)
                return;
            all = min(all, distance);
            lower(slot, distance);
        });
        return all;
    }

    /* Roots' counts give way to distances. */
    __device__ __forceinline__ void measure(const zones_word<Bits> &own, uint32_t roots,
                                            uint32_t reaching, uint32_t first,
                                            const zones_counters &counters) const
    {
        uint32_t nearest;

        __syncthreads();
        each_run(own, roots, [&](bool is, uint32_t slot, int, uint32_t) {
            if (is)
                *forest().at(slot) |= (uint32_t)TILE_FAR << TILE_SHIFT;
        });
        if (threadIdx.x == 0)
            memory.nearest = TILE_FAR;
        __syncthreads();
        nearest = job.steps ? lower_by_steps(own) : lower_by_border(own);
        nearest = __reduce_min_sync(~0u, nearest);
        if (threadIdx.x % 32 == 0)
            atomicMin(&memory.nearest, nearest);
        __syncthreads();
        nearest = memory.nearest;
        each_run(own, roots & ~reaching, [&](bool is, uint32_t slot, int bit, uint32_t) {
            if (is)
                counters.add(job, nearest, group(own, bit), *forest().at(slot) >> TILE_SHIFT);
        });
        each_number(reaching, first, [&](uint32_t slot, int, uint32_t number) {
            job.least[memory.base + number] = *forest().at(slot) >> TILE_SHIFT & (TILE_HELD - 1);
        });
        __syncthreads();
        counters.flush(job, nearest, job.per_slice ? job.first[2] + z0 : 0);
    }

    __device__ __forceinline__ void run(const zones_counters &sizes,
                                        const zones_counters &distances) const
    {
        const zones_word<Bits> own = read();

        if (!__syncthreads_or(own.valid != 0)) {
            write_ends(own);
            write_record(own);
            return;
        }
        put(own);
        __syncthreads();
        struct zones_contacts contacts[ZONES_SIDES];

        find(own, contacts);
        const uint32_t linked = link(own, contacts);
        const bool more = __syncthreads_or(any_left(contacts));

        shorten(own, linked);
        __syncthreads();
        if (more) {
            unite(own, contacts);
            __syncthreads();
        }
        const uint32_t hung = linked | memory.hung[threadIdx.x], roots = own.starts & ~hung;

        count(own, hung);
        __syncthreads();
        const uint32_t reaching = list(own, roots, sizes), first = number(reaching);

        write_numbers(own, reaching, first);
        __syncthreads();
        write_labels();
        write_ends(own);
        write_record(own);
        if (Distances)
            measure(own, roots, reaching, first, distances);
        if (job.per_slice)
            sizes.flush(job, 1, job.first[2] + z0);
    }
};

template <typename Value, uint32_t Bits, bool Flat, bool Distances>
__global__ void
__launch_bounds__(ZONES_THREADS, TILE_BLOCKS)
    zones_tiles(const __grid_constant__ struct zones_job job, uint32_t first, uint32_t count)
{
    typedef zones_tile<Value, Bits, Flat, Distances> shape;
    extern __shared__ __align__(16) unsigned char shared_memory[];
    zones_memory<Bits> &memory = *(zones_memory<Bits> *)shared_memory;
    const uint32_t each = TILE_COUNTERS / job.levels;
    const zones_counters sizes = {memory.sizes, each, false},
                         distances = {memory.distances, each, true};
    const uint32_t high = (job.rows - 1) / shape::rows + 1;

    sizes.clear(job);
    distances.clear(job);
    __syncthreads();
    for (uint32_t tile = first + blockIdx.x; tile < first + count; tile += gridDim.x) {
        const shape place = {job, memory, tile % job.words, tile / job.words % high * shape::rows,
                             tile / job.words / high * (ZONES_THREADS / shape::rows)};

        place.run(sizes, distances);
    }
    __syncthreads();
    sizes.flush(job, 1, 0);
}

struct tiles_launch {
    const struct zones_job *job;
    uint32_t first, count, blocks;
    cudaStream_t stream;
    bool allow; /* instead */
};

template <typename Value, uint32_t Bits, bool Flat, bool Distances>
cudaError_t
launch(const struct tiles_launch &what)
{
    if (what.allow)
        return cudaFuncSetAttribute(zones_tiles<Value, Bits, Flat, Distances>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    sizeof(zones_memory<Bits>));
    zones_tiles<Value, Bits, Flat, Distances>
        <<<what.blocks, ZONES_THREADS, sizeof(zones_memory<Bits>), what.stream>>>(
            *what.job, what.first, what.count);
    return cudaSuccess;
}

template <typename Value, uint32_t Bits>
cudaError_t
launch_shape(const struct tiles_launch &what, bool flat, bool distances)
{
    if (flat)
        return distances ? launch<Value, Bits, true, true>(what)
                         : launch<Value, Bits, true, false>(what);
    return distances ? launch<Value, Bits, false, true>(what)
                     : launch<Value, Bits, false, false>(what);
}

cudaError_t
launch_any(const struct tiles_launch &what, enum image_pixel pixel, int bits, bool flat,
           bool distances)
{
    if (pixel == IMAGE_UINT8)
        return bits == ZONES_FEW_BITS
                   ? launch_shape<uint8_t, ZONES_FEW_BITS>(what, flat, distances)
                   : launch_shape<uint8_t, ZONES_MANY_BITS>(what, flat, distances);
    return bits == ZONES_FEW_BITS ? launch_shape<uint16_t, ZONES_FEW_BITS>(what, flat, distances)
                                  : launch_shape<uint16_t, ZONES_MANY_BITS>(what, flat, distances);
}
} // namespace

cudaError_t
zones_tiles_allow(const struct zones_job *job, enum image_pixel pixel)
{
    struct tiles_launch what = {};

    what.allow = true;
    return launch_any(what, pixel, zones_bits_of(job), job->flat, job->distances);
}

void
zones_tiles_queue(const struct zones_job *job, enum image_pixel pixel, uint32_t first,
                  uint32_t count, int processors, cudaStream_t stream)
{
    const uint32_t rows = job->flat ? ZONES_FLAT_ROWS : ZONES_DEEP_ROWS,
                   slices = ZONES_THREADS / rows;
    const uint32_t per_layer = job->words * ((job->rows - 1) / rows + 1);
    const uint32_t tiles = per_layer * ((count - 1) / slices + 1);
    const uint32_t most = (uint32_t)processors * 4;
    const struct tiles_launch what = {
        job, first / slices * per_layer, tiles, tiles < most ? tiles : most, stream, false};

    (void)launch_any(what, pixel, zones_bits_of(job), job->flat, job->distances);
}
