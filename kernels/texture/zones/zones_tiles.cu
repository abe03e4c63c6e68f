/*
 * zones_tiles.cu - zones within a tile. A block unites the runs of its tile in shared memory. The
 * surrounding rows are also copied to shared memory, during the previous tile: they show which runs
 * cross the tile's border. Voxels without a neighbour of the same level are counted at once.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/texture/zones/zones_cuda.cuh"

#include <algorithm>

namespace
{
enum {
    TILE_PITCH = ZONES_WIDTH + 1, /* slots per word, so that words use all banks */
    TILE_SLOTS = ZONES_THREADS * TILE_PITCH,
    TILE_SHIFT = 16,     /* a root's count is above its number */
    TILE_COUNTERS = 960, /* for sizes, and for distances */
    TILE_BLOCKS = 2,     /* per multiprocessor */
    TILE_SHARED = 228 << 10,
    TILE_RESERVED = 1 << 10, /* reserved shared memory per block */
};

constexpr uint32_t TILE_SLOT = (1u << TILE_SHIFT) - 1, TILE_REACHES = 1u << 31,
                   TILE_HELD = TILE_REACHES >> TILE_SHIFT, /* flag above the count */
    TILE_FAR = TILE_HELD - 1;

/* In shared memory. */
template <uint32_t Bits, bool Flat, bool Distances> struct zones_memory {
    static constexpr uint32_t pitch = (Flat ? ZONES_FLAT_ROWS : ZONES_DEEP_ROWS) + 2,
                              around = pitch * (Flat ? 1 : ZONES_DEEP_SLICES + 2);

    /* Of the tile's rows and the surrounding ones. */
    uint4 records[zones_record<Bits>::count][around];
    uint32_t ends[around];

    uint32_t forest[TILE_SLOTS];
    /* Starts of runs that were linked below others; before that, isolated voxels. */
    uint32_t hung[ZONES_THREADS];
    uint32_t starts[ZONES_THREADS];
    uint32_t sizes[TILE_COUNTERS], distances[Distances ? TILE_COUNTERS : 1];
    uint32_t queues[ZONES_THREADS / 32][ZONES_QUEUE];
    uint32_t of_warp[ZONES_THREADS / 32];
    uint32_t first_number, first_label; /* of the tile */
    uint32_t nearest;
};

/* A thread's word, and its relation to its neighbours. */
template <uint32_t Bits> struct zones_own {
    zones_word<Bits> word;
    struct zones_contacts contacts[ZONES_SIDES]; /* with rows of the tile */
    uint32_t alone;                              /* isolated voxels, without a neighbour of the same level */
    uint32_t bridged;                            /* one-voxel runs in one zone with such a run two before them */
    uint32_t heads;                              /* starts of other runs that are not isolated */
    uint32_t crossing;                           /* starts of runs that have their level next to them in another tile */
    uint32_t reaching;                           /* heads that cross or have a bridged run that does */
    bool chained;                                /* whether any word of the warp is bridged */
};

template <uint32_t Bits, bool Flat, bool Distances> struct zones_tile {
    const struct zones_job &job;
    zones_memory<Bits, Flat, Distances> &memory;
    const struct zones_place begin;

    static constexpr uint32_t rows = Flat ? ZONES_FLAT_ROWS : ZONES_DEEP_ROWS, slices = Flat ? 1 : ZONES_DEEP_SLICES,
                              quads = zones_record<Bits>::count, pitch = zones_memory<Bits, Flat, Distances>::pitch;

    __device__ __forceinline__ uint32_t peek(uint32_t slot) const
    {
        return *(const volatile uint32_t *)&memory.forest[slot];
    }

    /* Returns the root of a linked slot. All lanes of the warp must call it, until each has found
     * its root. Roots may already hold counts. */
    __device__ __forceinline__ uint32_t root(bool is, uint32_t slot) const
    {
        uint32_t over = is ? peek(slot) & TILE_SLOT : slot;

        for (;;) {
            const uint32_t next = is ? peek(over) & TILE_SLOT : over;

            if (!__any_sync(~0u, next != over))
                return over;
            over = next;
        }
    }

    /* Returns the first slot of the thread's word. */
    __device__ __forceinline__ uint32_t first_slot() const
    {
        return threadIdx.x * TILE_PITCH;
    }

    __device__ __forceinline__ uint32_t y_of(uint32_t word) const
    {
        return begin.y + word % rows;
    }

    __device__ __forceinline__ uint32_t z_of(uint32_t word) const
    {
        return begin.z + word / rows;
    }

    __device__ __forceinline__ size_t at(uint32_t word) const
    {
        return zones_word_at(job, begin.x, y_of(word), z_of(word));
    }

    /* Returns the place of a word in memory. */
    static __device__ __forceinline__ uint32_t place_of(uint32_t word)
    {
        return word % rows + 1 + (Flat ? 0 : (word / rows + 1) * pitch);
    }

    __device__ __forceinline__ zones_word<Bits> word_at(uint32_t place) const
    {
        uint4 record[quads];

#pragma unroll
        for (uint32_t q = 0; q < quads; q++)
            record[q] = memory.records[q][place];
        return zones_word_of<Bits>(record);
    }

    /* Begins to copy the tile and its surroundings to shared memory. All threads must call it. */
    __device__ __forceinline__ void fetch() const
    {
#pragma unroll
        for (uint32_t first = 0; first < memory.around; first += ZONES_THREADS) {
            const uint32_t i = first + threadIdx.x;

            if (i >= memory.around)
                break;
            const uint32_t y = begin.y + i % pitch - 1, z = Flat ? begin.z : begin.z + i / pitch - 1;
            const bool exists = y < job.rows && z < job.slices;
            const size_t from = exists ? zones_word_at(job, begin.x, y, z) : 0;

#pragma unroll
            for (uint32_t q = 0; q < quads; q++)
                ptx_copy<sizeof(uint4)>(&memory.records[q][i], &job.records[from * quads + q], exists);
            ptx_copy<sizeof(uint32_t)>(&memory.ends[i], &job.ends[from], exists);
        }
        ptx_copies_end_group();
    }

    /* Propagates marks down along voxels connected to the one `apart` before them, in doubling
     * steps. */
    static __device__ __forceinline__ uint32_t marked_down(uint32_t marks, uint32_t hang, int apart)
    {
#pragma unroll
        for (int step = apart; step < ZONES_WIDTH; step *= 2) {
            marks |= (marks & hang) >> step;
            hang &= hang << step;
        }
        return marks;
    }

    /* Returns which of the first and last voxels of a word have their level next to them in the
     * adjacent words of this or neighbouring rows. */
    __device__ __forceinline__ uint32_t crossing_ends(const zones_word<Bits> &own) const
    {
        const uint32_t place = place_of(threadIdx.x), levels = own.level(ZONES_WIDTH - 1) << 16 | own.level(0);
        uint32_t differ = ~0u;

#pragma unroll
        for (int dz = Flat ? 0 : -1; dz <= (Flat ? 0 : 1); dz++)
#pragma unroll
            for (int dy = -1; dy <= 1; dy++)
                differ = __vminu2(differ, levels ^ memory.ends[(int)place + dy + dz * (int)pitch]);
        return own.valid & ((differ & 0xFFFF ? 0 : 1u) | (differ >> 16 ? 0 : 1u << (ZONES_WIDTH - 1)));
    }

    /* Compares the thread's word with all neighbouring rows. All lanes of the warp must call it. */
    __device__ __forceinline__ zones_own<Bits> find(const zones_word<Bits> &word) const
    {
        const uint32_t y = threadIdx.x % rows, z = threadIdx.x / rows, place = place_of(threadIdx.x);
        zones_own<Bits> own;
        struct zones_met met[ZONES_SIDES] = {};

        own.word = word;
        const uint32_t joined = own.word.joined(), single = own.word.starts & ~(joined >> 1);
        uint32_t alike = joined | joined >> 1, crossing = crossing_ends(own.word);
        const auto look = [&](int dy, int dz) {
            zones_met there = zones_met_of(own.word, word_at((uint32_t)((int)place + dy + dz * (int)pitch)));
            const uint32_t within = y + dy < rows && z + dz < slices ? ~0u : 0;

            const uint32_t any = there.pairs.at | there.pairs.before | there.pairs.after;

            alike |= any;
            crossing |= any & ~within;
            there.pairs.at &= within;
            there.pairs.before &= within;
            there.pairs.after &= within;
            return there;
        };

        own.bridged = 0;
#pragma unroll
        for (int i = 0; i < ZONES_SIDES; i++) {
            const enum zones_side side = (enum zones_side)i;

            if (Flat && side != ZONES_ABOVE)
                continue;
            met[i] = look(zones_side_y(side), zones_side_z(side));
            look(-zones_side_y(side), -zones_side_z(side));
            own.bridged |= zones_bridged(met[i]) & single & single << 2;
        }
        /* If there are few, handling them separately costs more than it saves. */
        own.chained = 4 * __reduce_add_sync(~0u, (uint32_t)__popc(own.bridged)) >
                      __reduce_add_sync(~0u, (uint32_t)__popc(own.word.starts));
        own.bridged = own.chained ? own.bridged : 0;
        zones_find_contacts(own.word, met, own.bridged, own.contacts);
        own.alone = own.word.valid & ~(alike | crossing);
        own.heads = own.word.starts & ~(own.alone | own.bridged);
        own.crossing = marked_down(crossing, joined, 1) & own.word.starts;
        own.reaching = marked_down(own.crossing, own.bridged, 2);
        return own;
    }

    /* Counts the isolated voxels in the words of a warp, one level per lane. */
    __device__ __forceinline__ void count_alone(uint32_t alone, const zones_counters &sizes) const
    {
        const uint32_t lane = threadIdx.x % 32, first = threadIdx.x - lane;

        if (!__any_sync(~0u, alone != 0))
            return;
        memory.hung[threadIdx.x] = alone;
        __syncwarp();
        for (uint32_t level = lane + 1; level - lane <= job.levels; level += 32) {
            uint32_t count = 0;

#pragma unroll 16
            for (uint32_t i = 0; i < 32; i++) {
                const zones_word<Bits> other = word_at(place_of(first) + i % rows + i / rows * pitch);
                uint32_t alike = memory.hung[first + i];

#pragma unroll
                for (uint32_t p = 0; p < Bits; p++)
                    alike &= ~(other.plane[p] ^ (level >> p & 1 ? ~0u : 0));
                count += (uint32_t)__popc(alike);
            }
            if (count > 0 && level <= job.levels)
                sizes.add(job, 1, slice_group(), level, 1, count);
        }
        __syncwarp();
    }

    /* Links every head below an earlier run that its first voxel touches, without atomics, since
     * each head belongs to one thread. Other contacts remain. Returns the linked heads. */
    __device__ __forceinline__ uint32_t link(zones_own<Bits> &own) const
    {
        /* position of that run */
        uint32_t linked = 0, slice = 0, up = 0, down = 0, before = 0, after = 0;

#pragma unroll
        for (int i = 0; i < ZONES_SIDES; i++) {
            const enum zones_side side = (enum zones_side)i;
            struct zones_contacts &contacts = own.contacts[i];
            const uint32_t low = (uint32_t)contacts.left & own.heads & ~linked,
                           high = (uint32_t)(contacts.left >> ZONES_WIDTH) & own.heads & ~(linked | low);

            contacts.left &= ~((uint64_t)high << ZONES_WIDTH | low);
            linked |= low | high;
            slice |= zones_side_z(side) < 0 ? low | high : 0;
            up |= zones_side_y(side) < 0 ? low | high : 0;
            down |= zones_side_y(side) > 0 ? low | high : 0;
            before |= low & contacts.before;
            after |= high;
        }
        for (uint32_t left = linked; left; left &= left - 1) {
            const int bit = __ffs((int)left) - 1;
            const uint32_t word = threadIdx.x - (slice >> bit & 1) * rows - (up >> bit & 1) + (down >> bit & 1);
            const int to = bit - (int)(before >> bit & 1) + (int)(after >> bit & 1);

            memory.forest[first_slot() + bit] = word * TILE_PITCH + zones_start(memory.starts[word], to);
        }
        return linked;
    }

    static __device__ __forceinline__ uint32_t every_other(int bit)
    {
        return bit % 2 ? 0xAAAAAAAA : 0x55555555;
    }

    /* Links bridged runs below the first of their chain. Runs without a link become roots. */
    __device__ __forceinline__ void plant(uint32_t bridged, uint32_t roots) const
    {
        for (uint32_t left = bridged; left; left &= left - 1) {
            const int bit = __ffs((int)left) - 1;

            memory.forest[first_slot() + bit] = first_slot() + zones_start(~bridged & every_other(bit), bit);
        }
        for (; roots; roots &= roots - 1) {
            const uint32_t slot = first_slot() + __ffs((int)roots) - 1;

            memory.forest[slot] = slot;
        }
    }

    /* Links heads directly to their current roots, if many are linked; otherwise paths are short
     * already. Concurrent changes by others only shorten the paths. */
    __device__ __forceinline__ void shorten(const zones_word<Bits> &own, uint32_t linked) const
    {
        if (2 * __reduce_add_sync(~0u, (uint32_t)__popc(linked)) < __reduce_add_sync(~0u, (uint32_t)__popc(own.starts)))
            return;
        each_run(own, linked, [&](bool is, int bit, uint32_t) {
            const uint32_t slot = first_slot() + bit;
            uint32_t over = is ? peek(slot) : slot;

            for (;;) {
                const uint32_t next = is ? peek(over) : over;

                if (!__any_sync(~0u, next != over))
                    return;
                over = next;
                if (is)
                    memory.forest[slot] = over;
            }
        });
    }

    __device__ __forceinline__ void unite(const zones_own<Bits> &own) const
    {
        const auto both = [&](uint32_t pair) {
            zones_unite_numbers(
                memory.forest, [&](uint32_t slot) { return peek(slot); },
                [&](uint32_t slot) { atomicOr(&memory.hung[slot / TILE_PITCH], 1u << slot % TILE_PITCH); },
                pair >> TILE_SHIFT, pair & TILE_SLOT);
        };
        zones_queue<uint32_t> queue = {memory.queues[threadIdx.x / 32], 0};

#pragma unroll
        for (int i = 0; i < ZONES_SIDES; i++) {
            const enum zones_side side = (enum zones_side)i;
            const uint32_t other = threadIdx.x + zones_side_y(side) + zones_side_z(side) * (int)rows;

            if (Flat && side != ZONES_ABOVE)
                continue;
            zones_each_pair(own.contacts[i], [&](bool is, int from, int to) {
                const uint32_t slot = first_slot() + zones_start(own.word.starts, from);

                queue.push(is, slot << TILE_SHIFT | (other * TILE_PITCH + zones_start(own.contacts[i].starts, to)),
                           both);
            });
        }
        queue.finish(both);
    }

    /*
     * Calls visit(exists, first voxel, length) for the runs in `some`. All lanes of the warp must
     * call it. Lanes without runs left use the last voxel, since diverged lanes would stay apart
     * until the loop ends.
     */
    template <typename Visit>
    __device__ __forceinline__ void each_run(const zones_word<Bits> &own, uint32_t some, const Visit &visit) const
    {
        const uint32_t ends = ~(own.joined() >> 1);

        for (uint32_t left = some; __any_sync(~0u, left != 0); left &= left - 1) {
            const int bit = __ffs((int)(left | 1u << (ZONES_WIDTH - 1))) - 1;

            visit(left != 0, bit, (uint32_t)__ffs((int)(ends >> bit)));
        }
    }

    /* Returns the voxels of a head's run and the runs bridged to it, as its root counts them. */
    static __device__ __forceinline__ uint32_t voxels(const zones_own<Bits> &own, int bit, uint32_t run)
    {
        if (own.chained) {
            const uint32_t beyond = every_other(bit) & ~0u << bit << 1, end = beyond & ~own.bridged;

            run += (uint32_t)__popc(beyond & ((end & -end) - 1));
        }
        return run << TILE_SHIFT;
    }

    /* Heads below others add their voxels to their roots, and link to them directly. */
    __device__ __forceinline__ void count(const zones_own<Bits> &own, uint32_t hung) const
    {
        each_run(own.word, hung, [&](bool is, int bit, uint32_t run) {
            const uint32_t slot = first_slot() + bit, over = root(is, slot);

            if (!is)
                return;
            memory.forest[slot] = over;
            atomicAdd(&memory.forest[over], voxels(own, bit, run));
            if (own.reaching >> bit & 1 && !(peek(over) & TILE_REACHES))
                atomicOr(&memory.forest[over], TILE_REACHES);
        });
    }

    __device__ __forceinline__ uint32_t slice_group() const
    {
        return job.per_slice ? (job.first[2] + z_of(threadIdx.x)) << TEXTURE_ZONE_LEVEL_BITS : 0;
    }

    /* Counts the roots of zones that end in the tile. Returns the other roots, which hold all
     * voxels of their part. */
    __device__ __forceinline__ uint32_t list(const zones_own<Bits> &own, uint32_t roots,
                                             const zones_counters &sizes) const
    {
        const uint32_t slice = slice_group();
        uint32_t reaching = 0;

        each_run(own.word, roots, [&](bool is, int bit, uint32_t run) {
            const uint32_t slot = first_slot() + bit, all = memory.forest[slot] + voxels(own, bit, run);

            if (!is)
                return;
            if (all & TILE_REACHES || own.reaching >> bit & 1) {
                reaching |= 1u << bit;
                memory.forest[slot] = all;
            } else
                sizes.add(job, 1, slice, own.word.level(bit), all >> TILE_SHIFT);
        });
        return reaching;
    }

    /* First number and label of a thread, relative to the tile's first ones. */
    struct places {
        uint32_t number, label;
    };

    /* Reserves numbers for the block's roots that cross, and labels for its crossing runs. */
    __device__ __forceinline__ places reserve(uint32_t reaching, uint32_t crossing) const
    {
        const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const uint32_t own = (uint32_t)__popc(reaching) | (uint32_t)__popc(crossing) << 16;
        uint32_t sum = own, before = 0;

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
            memory.first_number = atomicAdd(job.numbers, all & 0xFFFF);
            memory.first_label = atomicAdd(job.label_count, all >> 16);
        }
        for (uint32_t i = 0; i < warp; i++)
            before += memory.of_warp[i];
        __syncthreads();
        before += sum - own;
        return {before & 0xFFFF, before >> 16};
    }

    /* Calls visit(slot, voxel, number in the tile). */
    template <typename Visit>
    __device__ __forceinline__ void each_number(uint32_t reaching, uint32_t number, const Visit &visit) const
    {
        for (; reaching; reaching &= reaching - 1) {
            const int bit = __ffs((int)reaching) - 1;

            visit(first_slot() + bit, bit, number++);
        }
    }

    __device__ __forceinline__ void write_numbers(const zones_word<Bits> &own, uint32_t reaching, uint32_t first) const
    {
        const uint32_t slice = slice_group();

        each_number(reaching, first, [&](uint32_t slot, int bit, uint32_t number) {
            const uint32_t id = memory.first_number + number;

            job.parents[id] = id;
            job.groups[id] = slice | own.level(bit);
            job.sizes[id] = memory.forest[slot] >> TILE_SHIFT & (TILE_HELD - 1);
            memory.forest[slot] = TILE_REACHES | number << TILE_SHIFT | slot;
        });
    }

    /* Returns a slot's root: heads link to it directly, bridged runs through their head. */
    __device__ __forceinline__ uint32_t root_of(const zones_own<Bits> &own, uint32_t slot) const
    {
        uint32_t root = memory.forest[slot] & TILE_SLOT;

        for (uint32_t over = root; own.chained && (over = memory.forest[root] & TILE_SLOT) != root;)
            root = over;
        return root;
    }

    /* Writes the labels for the seams. */
    __device__ __forceinline__ void write_labels(const zones_own<Bits> &own, uint32_t first) const
    {
        uint32_t place = memory.first_label + first;

        if (y_of(threadIdx.x) < job.rows && z_of(threadIdx.x) < job.slices)
            job.crossings[at(threadIdx.x)] = make_uint2(own.crossing, place);
        for (uint32_t left = own.crossing; left; left &= left - 1) {
            const uint32_t root = root_of(own, first_slot() + __ffs((int)left) - 1);

            job.labels[place++] = memory.first_number + (memory.forest[root] >> TILE_SHIFT & (TILE_HELD - 1));
        }
    }

    /* Distances */

    __device__ __forceinline__ void lower(const zones_own<Bits> &own, uint32_t slot, uint32_t distance) const
    {
        const uint32_t root = root_of(own, slot), held = peek(root);
        const uint32_t wanted = (held & (TILE_REACHES | TILE_SLOT)) | distance << TILE_SHIFT;

        if (wanted < held)
            atomicMin(&memory.forest[root], wanted);
    }

    /* Returns the smallest of the thread's distances. */
    __device__ __forceinline__ uint32_t lower_by_steps(const zones_own<Bits> &own) const
    {
        const zones_word<Bits> &word = own.word;
        const uint32_t ends = word.valid & ~(word.joined() >> 1);
        uint32_t run = TILE_FAR, all = TILE_FAR;

        if (!word.valid)
            return all;
        const uint4 *steps = (const uint4 *)(job.steps + at(threadIdx.x) * ZONES_WIDTH);

#pragma unroll
        for (uint32_t q = 0; q < 4; q++) {
            const uint4 four = __ldg(&steps[q]);
            const uint32_t two[4] = {four.x, four.y, four.z, four.w};

#pragma unroll
            for (int b = 0; b < 8; b++) {
                const int bit = 8 * q + b;

                run = min(word.starts >> bit & 1 ? (uint32_t)TILE_FAR : run, two[b / 2] >> 16 * (b % 2) & 0xFFFF);
                if (ends >> bit & 1) {
                    all = min(all, run);
                    lower(own, first_slot() + zones_start(word.starts, bit), run);
                }
            }
        }
        return all;
    }

    __device__ __forceinline__ uint32_t lower_by_border(const zones_own<Bits> &own) const
    {
        const uint32_t y = y_of(threadIdx.x), z = z_of(threadIdx.x);
        const uint32_t of_rows = min(y + 1, job.rows - y), of_slices = Flat ? ~0u : min(z + 1, job.slices - z);
        uint32_t all = TILE_FAR;

        each_run(own.word, own.word.starts, [&](bool is, int bit, uint32_t run) {
            /* The distance from the border of the volume is smallest at an end of the run. */
            const uint32_t x = begin.x * ZONES_WIDTH + bit;
            const uint32_t distance = min(min(x + 1, job.columns - (x + run - 1)), min(of_rows, of_slices));

            if (!is)
                return;
            all = min(all, distance);
            lower(own, first_slot() + bit, distance);
        });
        return all;
    }

    /* Replaces the roots' counts by distances. */
    __device__ __forceinline__ void measure(const zones_own<Bits> &own, uint32_t roots, uint32_t reaching,
                                            uint32_t first, const zones_counters &counters) const
    {
        const uint32_t slice = slice_group();
        uint32_t nearest;

        __syncthreads();
        for (uint32_t left = roots; left; left &= left - 1)
            memory.forest[first_slot() + __ffs((int)left) - 1] |= (uint32_t)TILE_FAR << TILE_SHIFT;
        if (threadIdx.x == 0)
            memory.nearest = TILE_FAR;
        __syncthreads();
        nearest = job.steps ? lower_by_steps(own) : lower_by_border(own);
        nearest = __reduce_min_sync(~0u, nearest);
        if (threadIdx.x % 32 == 0)
            atomicMin(&memory.nearest, nearest);
        __syncthreads();
        nearest = memory.nearest;
        each_run(own.word, roots & ~reaching, [&](bool is, int bit, uint32_t) {
            if (is)
                counters.add(job, nearest, slice, own.word.level(bit), memory.forest[first_slot() + bit] >> TILE_SHIFT);
        });
        each_number(reaching, first, [&](uint32_t slot, int, uint32_t number) {
            job.least[memory.first_number + number] = memory.forest[slot] >> TILE_SHIFT & (TILE_HELD - 1);
        });
        __syncthreads();
        counters.flush(job, nearest, job.per_slice ? job.first[2] + begin.z : 0);
    }

    /* Processes the fetched tile. fetch_next() may overwrite it. */
    template <typename Fetch>
    __device__ __forceinline__ void run(const zones_counters &sizes, const zones_counters &distances,
                                        const Fetch &fetch_next) const
    {
        zones_own<Bits> own = {};

        ptx_copies_wait<0>();
        __syncthreads();
        const zones_word<Bits> word = word_at(place_of(threadIdx.x));

        if (__any_sync(~0u, word.valid != 0)) {
            own = find(word);
            count_alone(own.alone, sizes);
        }
        memory.starts[threadIdx.x] = own.word.starts;
        memory.hung[threadIdx.x] = 0;
        const bool any = __syncthreads_or(own.word.valid != 0);

        fetch_next();
        if (!any)
            return;
        const uint32_t linked = link(own);
        uint64_t left = 0;

        plant(own.bridged, (own.heads | (Distances ? own.alone : 0)) & ~linked);
#pragma unroll
        for (int i = 0; i < ZONES_SIDES; i++)
            left |= own.contacts[i].left;
        const bool more = __syncthreads_or(left != 0);

        shorten(own.word, linked);
        __syncthreads();
        if (more) {
            unite(own);
            __syncthreads();
        }
        const uint32_t hung = linked | memory.hung[threadIdx.x], roots = own.heads & ~hung;

        count(own, hung);
        __syncthreads();
        const uint32_t reaching = list(own, roots, sizes);
        const places first = reserve(reaching, own.crossing);

        write_numbers(own.word, reaching, first.number);
        __syncthreads();
        write_labels(own, first.label);
        if (Distances)
            measure(own, roots | own.alone, reaching, first.number, distances);
        if (job.per_slice)
            sizes.flush(job, 1, job.first[2] + begin.z);
    }
};

template <uint32_t Bits, bool Flat, bool Distances>
__global__ void
__launch_bounds__(ZONES_THREADS, TILE_BLOCKS) zones_tiles(const __grid_constant__ struct zones_job job)
{
    typedef zones_tile<Bits, Flat, Distances> shape;
    extern __shared__ __align__(16) unsigned char shared_memory[];
    zones_memory<Bits, Flat, Distances> &memory = *(zones_memory<Bits, Flat, Distances> *)shared_memory;

    static_assert(TILE_BLOCKS * (sizeof(memory) + TILE_RESERVED) <= TILE_SHARED, "");
    const uint32_t each = TILE_COUNTERS / job.levels;
    const zones_counters sizes = {memory.sizes, each, false},
                         distances = {memory.distances, Distances ? each : 0, true};
    const uint32_t count = *job.tile_count;

    sizes.clear(job);
    distances.clear(job);
    __syncthreads();
    const auto at = [&](uint32_t tile) { return shape{job, memory, job.tiles[tile]}; };

    if (blockIdx.x < count)
        at(blockIdx.x).fetch();
    for (uint32_t tile = blockIdx.x; tile < count; tile += gridDim.x)
        at(tile).run(sizes, distances, [&] {
            if (tile + gridDim.x < count)
                at(tile + gridDim.x).fetch();
        });
    __syncthreads();
    sizes.flush(job, 1, 0);
}

template <uint32_t Bits, bool Flat, bool Distances>
cudaError_t
tiles_launch(const struct zones_job *job, int processors, cudaStream_t stream)
{
    const size_t memory = sizeof(zones_memory<Bits, Flat, Distances>);
    const uint32_t blocks = std::min(zones_tiles_of(*job), (uint32_t)processors * TILE_BLOCKS);
    const cudaError_t status = cudaFuncSetAttribute(zones_tiles<Bits, Flat, Distances>,
                                                    cudaFuncAttributeMaxDynamicSharedMemorySize, (int)memory);

    if (status == cudaSuccess)
        zones_tiles<Bits, Flat, Distances><<<blocks, ZONES_THREADS, memory, stream>>>(*job);
    return status;
}
} // namespace

cudaError_t
zones_tiles_queue(const struct zones_job *job, int processors, cudaStream_t stream)
{
    const int which = (zones_bits_of(job) == ZONES_FEW_BITS ? 4 : 0) + (job->flat ? 2 : 0) + (job->distances ? 1 : 0);
    decltype(&tiles_launch<ZONES_FEW_BITS, true, true>) const launches[] = {
        tiles_launch<ZONES_MANY_BITS, false, false>, tiles_launch<ZONES_MANY_BITS, false, true>,
        tiles_launch<ZONES_MANY_BITS, true, false>,  tiles_launch<ZONES_MANY_BITS, true, true>,
        tiles_launch<ZONES_FEW_BITS, false, false>,  tiles_launch<ZONES_FEW_BITS, false, true>,
        tiles_launch<ZONES_FEW_BITS, true, false>,   tiles_launch<ZONES_FEW_BITS, true, true>,
    };

    return launches[which](job, processors, stream);
}
