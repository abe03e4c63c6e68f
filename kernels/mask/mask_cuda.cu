/*
 * mask_cuda.cu - masks on the GPU as an operation: memory, the initial mask of a request, the order
 * of its steps, and its results. The host waits only for the number of components when cutting
 * bridges, and to make a ball while the previous one is still being sent.
 */
#include "kernels/mask/mask_cuda.cuh"
#include "kernels/range/range.h"

#include <limits.h>

enum { BLOCKS_PER_PROCESSOR = 8 };

/* Work memory besides the mask itself: one to work in, and those for cutting bridges. */
enum { SPARE, CUT, PART, ONE, OTHER, SPARES };

struct cuda_mask {
    struct kernels_mask_demand demand;
    struct mask_grid grid;
    uint64_t *masks, *host_masks; /* host: pinned */
    uint64_t *spare[SPARES];
    uint16_t *labels;
    struct mask_node *nodes;
    uint8_t *firsts;
    uint64_t *hung;
    struct mask_facts *facts, *host_facts;
    struct mask_bound *partials;
    struct mask_pass *passes, *host_passes;
    struct mask_ball ball;                 /* on the host */
    bool walks;                            /* `walk` makes that ball */
    struct mask_walk walk;                 /* for that ball */
    struct mask_grow_ball grow, host_grow; /* otherwise for that ball: on the device, and pinned */
    struct kernels_mask_step ball_step;    /* the step that has that ball; a negative amount: no ball */
    struct mask_grid ball_grid;            /* of the masks that it grows: those of the volume, or padded ones */
    uint64_t *padded[2];                   /* for closings */
    struct mask_sums *means;
};

/* A lane */

static struct mask_grid
cuda_mask_grid(const struct kernels_lane *lane, const struct image_extent *extent)
{
    const int64_t most = (int64_t)cuda_device_of(lane)->multiprocessors * BLOCKS_PER_PROCESSOR;
    struct mask_grid grid = {extent->columns, extent->rows, extent->slices};

    grid.words_per_row = (grid.columns - 1) / 64 + 1;
    grid.words = grid.words_per_row * grid.rows * grid.slices;
    grid.tail = ~UINT64_C(0) >> (63 - (grid.columns - 1) % 64);
    const int64_t wanted = (grid.words - 1) / MASK_THREADS + 1;

    grid.blocks = (uint32_t)(wanted < most ? wanted : most);
    return grid;
}

/* Returns the extent of the largest masks that balls grow. */
static struct image_extent
cuda_mask_largest(const struct kernels_lane *lane)
{
    const struct kernels_mask_demand *demand = &((const struct cuda_mask *)kernels_state(lane, KERNELS_MASK))->demand;

    return demand->closings ? mask_padded(&lane->extent, demand->spacing, demand->reach_mm, false) : lane->extent;
}

static bool
cuda_mask_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_mask *own = (struct cuda_mask *)kernels_state(lane, KERNELS_MASK);

    own->demand = *(const struct kernels_mask_demand *)demand;
    own->grid = cuda_mask_grid(lane, &lane->extent);
    if (!mask_runs_can(&own->grid) ||
        (own->demand.closings && !mask_padded_can(own->demand.spacing, own->demand.reach_mm)))
        return false;
    const struct image_extent largest = cuda_mask_largest(lane);
    const struct mask_grid grid = cuda_mask_grid(lane, &largest);
    const struct mask_reach reach = mask_reach_of(&largest, own->demand.spacing, own->demand.reach_mm);

    return mask_runs_can(&grid) && mask_grow_can(&grid, &reach);
}

static void
place_grow_ball(struct mask_grow_ball *ball, const struct mask_reach *most, struct kernels_arena *arena)
{
    cuda_take(arena, &ball->rows, mask_grow_rows(most));
    cuda_take(arena, &ball->offsets, mask_grow_rows(most));
    cuda_take(arena, &ball->group, mask_ball_groups(most));
}

static void
cuda_mask_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_mask *own = (struct cuda_mask *)kernels_state(lane, KERNELS_MASK);
    const size_t words = (size_t)own->grid.words, slices = (size_t)own->grid.slices;
    const struct image_extent largest = cuda_mask_largest(lane);
    const size_t padded = own->demand.closings ? (size_t)cuda_mask_grid(lane, &largest).words : 0;
    const struct mask_reach most = mask_reach_of(&largest, own->demand.spacing, own->demand.reach_mm);

    cuda_take(&memory->device, &own->masks, own->demand.masks, words);
    cuda_take(&memory->host, &own->host_masks, own->demand.masks, words);
    for (int i = 0; i < (own->demand.bridges ? SPARES : SPARE + 1); i++)
        cuda_take(&memory->device, &own->spare[i], words);
    cuda_take(&memory->device, &own->labels, mask_runs(&own->grid));
    cuda_take(&memory->device, &own->nodes, mask_runs(&own->grid));
    cuda_take(&memory->device, &own->firsts, words);
    cuda_take(&memory->device, &own->hung, (mask_runs(&own->grid) - 1) / 64 + 1);
    cuda_take(&memory->device, &own->facts, 1);
    cuda_take(&memory->host, &own->host_facts, 1);
    cuda_take(&memory->device, &own->partials, MASK_PARTIALS);
    cuda_take(&memory->device, &own->passes, slices);
    cuda_take(&memory->host, &own->host_passes, slices);
    mask_ball_place(&own->ball, &most, &memory->host);
    place_grow_ball(&own->grow, &most, &memory->device);
    place_grow_ball(&own->host_grow, &most, &memory->host);
    for (int i = 0; i < 2; i++)
        cuda_take(&memory->device, &own->padded[i], padded);
    cuda_take(&memory->device, &own->means, MASK_MEANS);
    own->ball_step.amount = -1;
}

/* Kernels */

/* Returns the bits of a word that are voxels. */
__device__ static __forceinline__ uint64_t
word_voxels(const struct mask_grid &grid, int64_t word)
{
    return (word + 1) % grid.words_per_row == 0 ? grid.tail : ~UINT64_C(0);
}

__global__ void
__launch_bounds__(MASK_THREADS) mask_whole(const __grid_constant__ struct mask_grid grid, uint64_t *bits)
{
    MASK_EACH_WORD(grid, word)
    bits[word] = word_voxels(grid, word);
}

enum mask_joining { MASK_AND, MASK_AND_NOT, MASK_OR, MASK_EITHER };

__global__ void
__launch_bounds__(MASK_THREADS) mask_join(const __grid_constant__ struct mask_grid grid, const uint64_t *other,
                                          enum mask_joining how, uint64_t *bits)
{
    MASK_EACH_WORD(grid, word)
    bits[word] = how == MASK_AND       ? bits[word] & other[word]
                 : how == MASK_AND_NOT ? bits[word] & ~other[word]
                 : how == MASK_OR      ? bits[word] | (other[word] & word_voxels(grid, word))
                                       : bits[word] ^ other[word];
}

/* Copies a mask to another grid that begins `away` voxels from its own. Voxels beyond it are 0. */
__global__ void
__launch_bounds__(MASK_THREADS) mask_move(const __grid_constant__ struct mask_grid from, const uint64_t *bits,
                                          const __grid_constant__ struct mask_reach away,
                                          const __grid_constant__ struct mask_grid to, uint64_t *moved)
{
    MASK_EACH_WORD(to, word)
    {
        const struct mask_place at = mask_place_of(to, word);
        const int64_t y = at.y + away.size[1], z = at.z + away.size[2];
        const int64_t first = at.x + (away.size[0] >> 6);
        const int shift = (int)(away.size[0] & 63);
        const uint64_t *row = bits + (z * from.rows + y) * from.words_per_row;
        const auto word_of = [&](int64_t i) { return i >= 0 && i < from.words_per_row ? row[i] : 0; };
        uint64_t own = 0;

        if (y >= 0 && y < from.rows && z >= 0 && z < from.slices)
            own = shift == 0 ? word_of(first) : word_of(first) >> shift | word_of(first + 1) << (64 - shift);
        moved[word] = at.x + 1 == to.words_per_row ? own & to.tail : own;
    }
}

__global__ void
mask_measure_begin(struct mask_facts *facts)
{
    facts->voxels = 0;
    for (int axis = 0; axis < 3; axis++) {
        facts->first[axis] = LLONG_MAX;
        facts->last[axis] = -1;
    }
}

/* Merges a block's results in shared memory first: the atomic operations of all blocks use the same
 * few words. */
__global__ void
__launch_bounds__(MASK_THREADS)
    mask_measure_words(const __grid_constant__ struct mask_grid grid, const uint64_t *bits, struct mask_facts *facts)
{
    __shared__ uint32_t block_first[3], block_last[3], block_voxels;
    uint32_t first[3] = {~0u, ~0u, ~0u}, last[3] = {}, voxels = 0;

    if (threadIdx.x < 3) {
        block_first[threadIdx.x] = ~0u;
        block_last[threadIdx.x] = block_voxels = 0;
    }
    __syncthreads();
    MASK_EACH_WORD(grid, word)
    {
        const uint64_t own = bits[word];

        if (!own)
            continue;
        const struct mask_place at = mask_place_of(grid, word);
        const uint32_t x = (uint32_t)at.x * 64, y = (uint32_t)at.y, z = (uint32_t)at.z;
        const uint32_t low[3] = {x + (uint32_t)__ffsll((long long)own) - 1, y, z};
        const uint32_t high[3] = {x + 63 - (uint32_t)__clzll((long long)own), y, z};

        voxels += (uint32_t)__popcll(own);
        for (int axis = 0; axis < 3; axis++) {
            first[axis] = min(first[axis], low[axis]);
            last[axis] = max(last[axis], high[axis]);
        }
    }
    __syncwarp();
    voxels = __reduce_add_sync(~0u, voxels);
    for (int axis = 0; axis < 3; axis++) {
        first[axis] = __reduce_min_sync(~0u, first[axis]);
        last[axis] = __reduce_max_sync(~0u, last[axis]);
    }
    if (threadIdx.x % 32 == 0 && voxels > 0) {
        atomicAdd(&block_voxels, voxels);
        for (int axis = 0; axis < 3; axis++) {
            atomicMin(&block_first[axis], first[axis]);
            atomicMax(&block_last[axis], last[axis]);
        }
    }
    __syncthreads();
    if (threadIdx.x >= 3 || block_voxels == 0)
        return;
    if (threadIdx.x == 0)
        atomicAdd(&facts->voxels, (unsigned long long)block_voxels);
    atomicMin(&facts->first[threadIdx.x], (long long)block_first[threadIdx.x]);
    atomicMax(&facts->last[threadIdx.x], (long long)block_last[threadIdx.x]);
}

/* State of a request */

struct mask_work {
    struct cuda_lane *lane;
    struct cuda_mask *own;
    uint64_t *bits;                           /* the current mask, on the device */
    uint64_t *spare;                          /* same size as bits */
    const struct kernels_mask_request *given; /* NULL: steps without bounds */
    const uint64_t *memory;                   /* of the mask, on the host */
};

static void
queue_measure(const struct mask_work *work, const struct mask_grid *grid, const uint64_t *bits)
{
    struct mask_facts *facts = work->own->facts;

    mask_measure_begin<<<1, 1, 0, work->lane->work>>>(facts);
    mask_measure_words<<<grid->blocks, MASK_THREADS, 0, work->lane->work>>>(*grid, bits, facts);
}

static void
queue_join(const struct mask_work *work, const uint64_t *other, enum mask_joining how, uint64_t *bits)
{
    const struct mask_grid *grid = &work->own->grid;

    mask_join<<<grid->blocks, MASK_THREADS, 0, work->lane->work>>>(*grid, other, how, bits);
}

/* Joins a set. Results of this lane are already on the device, but not masks that the caller wrote to their memory. */
static int
join_set(const struct mask_work *work, const uint64_t *set, enum mask_joining how, struct error *error)
{
    const struct cuda_mask *own = work->own;
    const size_t words = (size_t)own->grid.words;
    const uint64_t *resident = work->spare;

    if (set >= own->host_masks && set < own->host_masks + own->demand.masks * words && set != work->memory)
        resident = own->masks + (set - own->host_masks);
    else
        CUDA_SEND(work->lane, work->spare, set, words);
    queue_join(work, resident, how, work->bits);
    CUDA_LAUNCHED(cuda_device_of(&work->lane->base));
    return 0;
}

static int
begin_ranges(const struct mask_work *work, const struct kernels_mask_request *given, uint64_t *bits,
             struct error *error)
{
    struct cuda_lane *lane = work->lane;
    const struct cuda_mask *own = work->own;
    const bool alike = given->range_count == 1;

    for (size_t i = 0; i < given->range_count; i++) {
        struct mask_pass *pass = &own->host_passes[i];
        struct image_range intervals[2];

        *pass = {};
        pass->intervals = (uint32_t)range_intervals(lane->base.pixel, given->ranges[i], given->padding, intervals);
        for (uint32_t k = 0; k < pass->intervals; k++) {
            pass->low[k] = (uint16_t)intervals[k].lo;
            pass->span[k] = (uint16_t)(intervals[k].hi - intervals[k].lo);
        }
    }
    CUDA_SEND(lane, own->passes, own->host_passes, given->range_count);
    mask_range_queue(&own->grid, lane->base.pixel, lane->device_voxels, own->passes, alike, bits, lane->work);
    CUDA_LAUNCHED(cuda_device_of(&lane->base));
    return 0;
}

/* Cuts the mask to `within` and `minus`. */
static int
bound_mask(const struct mask_work *work, struct error *error)
{
    const struct kernels_mask_request *given = work->given;
    int rc = 0;

    for (size_t m = 0; given && m < given->within_count && !rc; m++)
        rc = join_set(work, given->within[m], MASK_AND, error);
    for (size_t m = 0; given && m < given->minus_count && !rc; m++)
        rc = join_set(work, given->minus[m], MASK_AND_NOT, error);
    return rc;
}

static int
begin_mask(const struct mask_work *work, struct error *error)
{
    const struct kernels_mask_request *given = work->given;
    const struct mask_grid *grid = &work->own->grid;
    const bool is_ranged = given->range_count > 0, is_united = given->any_of_count > 0;
    uint64_t *ranged = is_united ? work->spare : work->bits;
    int rc = 0;

    if (is_united || !is_ranged) {
        mask_whole<<<grid->blocks, MASK_THREADS, 0, work->lane->work>>>(*grid, work->bits);
        CUDA_LAUNCHED(cuda_device_of(&work->lane->base));
    }
    for (size_t m = 0; m < given->any_of_count && !rc; m++)
        rc = join_set(work, given->any_of[m], m > 0 ? MASK_OR : MASK_AND, error);
    if (is_ranged && !rc)
        rc = begin_ranges(work, given, ranged, error);
    if (is_ranged && is_united && !rc)
        queue_join(work, ranged, MASK_AND, work->bits);
    if (given->found && !rc)
        rc = join_set(work, given->found, MASK_AND, error);
    return rc ? rc : bound_mask(work, error);
}

/* Components, and holes */

static struct mask_search
search_of(const struct mask_work *work, bool corners)
{
    const struct cuda_mask *own = work->own;
    struct mask_search search = {};

    search.grid = own->grid;
    search.bits = work->bits;
    search.corners = corners;
    search.labels = own->labels;
    search.nodes = own->nodes;
    search.firsts = own->firsts;
    search.hung = own->hung;
    search.facts = own->facts;
    search.partials = own->partials;
    return search;
}

/* Precedes all components. */
static const struct mask_bound none_stays = {LLONG_MAX, ULLONG_MAX};

static int
keep_largest(const struct mask_work *work, const struct kernels_mask_step *step, struct error *error)
{
    const struct mask_search search = search_of(work, step->corners);
    const int64_t rounds = step->kind == KERNELS_MASK_KEEP            ? (int64_t)step->amount
                           : step->kind == KERNELS_MASK_KEEP_AT_LEAST ? 1
                                                                      : 0;
    const int64_t voxels = image_voxels(&work->lane->base.extent);
    cudaStream_t stream = work->lane->work;
    struct mask_bound bound = none_stays;

    if (step->kind == KERNELS_MASK_DROP_BELOW) /* the largest is at most the volume */
        bound.size = mask_least_size(step, work->own->demand.spacing, voxels);
    mask_search_begin(&search, bound, stream);
    if (rounds > 0)
        mask_search_largest(&search, rounds, step->kind == KERNELS_MASK_KEEP_AT_LEAST ? step->amount : -1, stream);
    mask_search_drop(&search, stream);
    CUDA_LAUNCHED(cuda_device_of(&work->lane->base));
    return 0;
}

/* Flips the complement's components that do not touch the border. */
static int
fill_inside(const struct mask_work *work, const struct kernels_mask_step *step, struct error *error)
{
    const struct mask_bound at_border = {1, ULLONG_MAX};
    struct mask_search search = search_of(work, step->corners);
    cudaStream_t stream = work->lane->work;

    search.flip = ~UINT64_C(0);
    search.flat = step->kind == KERNELS_MASK_FILL_SLICES;
    search.border = true;
    mask_search_begin(&search, at_border, stream);
    mask_search_drop(&search, stream);
    CUDA_LAUNCHED(cuda_device_of(&work->lane->base));
    return bound_mask(work, error);
}

/* Balls */

static int
choose_ball(const struct mask_work *work, const struct kernels_mask_step *step, struct error *error)
{
    struct cuda_mask *own = work->own;
    const struct kernels_lane *lane = &work->lane->base;
    const bool closes = step->kind == KERNELS_MASK_CLOSE;
    const struct image_extent extent =
        closes ? mask_padded(&lane->extent, own->demand.spacing, step->amount, step->in_slice) : lane->extent;
    struct mask_grow_ball *made = &own->host_grow;

    if (own->ball_step.amount == step->amount && own->ball_step.in_slice == step->in_slice &&
        (own->ball_step.kind == KERNELS_MASK_CLOSE) == closes)
        return 0;
    own->ball_step.amount = -1;
    own->ball_grid = cuda_mask_grid(lane, &extent);
    mask_ball_make(&own->ball, &extent, own->demand.spacing, step->amount, step->in_slice);
    own->walks = own->ball.reach.size[0] <= MASK_NEAR && own->ball.reach.size[1] <= MASK_NEAR &&
                 own->ball.reach.size[2] <= MASK_NEAR;
    if (own->walks) {
        mask_walk_make(&own->ball_grid, &own->ball, &own->walk);
    } else {
        /* The previous ball may still be in transfer. */
        CUDA_TRY(cuda_device_of(lane), cudaStreamSynchronize(work->lane->work));
        mask_grow_ball_make(&own->ball_grid, &own->ball, made);
        const size_t rows = 4 * (size_t)made->group[made->groups - 1].end;

        own->grow.reach = made->reach;
        own->grow.groups = made->groups;
        CUDA_SEND(work->lane, own->grow.rows, made->rows, rows);
        CUDA_SEND(work->lane, own->grow.offsets, made->offsets, rows);
        CUDA_SEND(work->lane, own->grow.group, made->group, (size_t)made->groups);
    }
    own->ball_step = *step;
    return 0;
}

static int
queue_grow(const struct mask_work *work, const uint64_t *source, bool shrink, uint64_t *target, struct error *error)
{
    const struct cuda_mask *own = work->own;

    if (own->walks)
        return mask_walk_queue(work->lane, &own->ball_grid, &own->walk, source, shrink, target, error);
    queue_measure(work, &own->ball_grid, source);
    mask_grow_queue(&own->ball_grid, &own->grow, own->facts, source, shrink, target, work->lane->work);
    CUDA_LAUNCHED(cuda_device_of(&work->lane->base));
    return 0;
}

static int
grow_in_turn(struct mask_work *work, bool shrink, struct error *error)
{
    uint64_t *before = work->bits;

    work->bits = work->spare;
    work->spare = before;
    return queue_grow(work, before, shrink, work->bits, error);
}

/* Grows and shrinks a copy of the mask that is padded by the reach of the ball. */
static int
close_copy(const struct mask_work *work, struct error *error)
{
    const struct cuda_mask *own = work->own;
    const struct mask_grid *padded = &own->ball_grid;
    const struct mask_reach reach = own->ball.reach, back = {{-reach.size[0], -reach.size[1], -reach.size[2]}};
    struct cuda_device *device = cuda_device_of(&work->lane->base);
    int rc;

    mask_move<<<padded->blocks, MASK_THREADS, 0, work->lane->work>>>(own->grid, work->bits, back, *padded,
                                                                     own->padded[0]);
    CUDA_LAUNCHED(device);
    rc = queue_grow(work, own->padded[0], false, own->padded[1], error);
    if (!rc)
        rc = queue_grow(work, own->padded[1], true, own->padded[0], error);
    if (rc)
        return rc;
    mask_move<<<own->grid.blocks, MASK_THREADS, 0, work->lane->work>>>(*padded, own->padded[0], reach, own->grid,
                                                                       work->bits);
    CUDA_LAUNCHED(device);
    return bound_mask(work, error);
}

/* Returns the number of components in *found, after they have been numbered. */
static int
count_numbered(const struct mask_work *work, int64_t *found, struct error *error)
{
    struct cuda_lane *lane = work->lane;
    const struct cuda_mask *own = work->own;

    CUDA_FETCH(lane, own->host_facts, own->facts, 1);
    CUDA_TRY(cuda_device_of(&lane->base), cudaStreamSynchronize(lane->work));
    *found = (int64_t)own->host_facts->found;
    return 0;
}

/* Grows the components with this bit into part ONE, or those without it into OTHER. */
static int
reach_bit(const struct mask_work *work, const struct mask_search *search, int bit, struct error *error)
{
    const struct cuda_mask *own = work->own;
    int rc;

    mask_search_part(search, bit, own->spare[PART], work->lane->work);
    rc = queue_grow(work, own->spare[PART], false, own->spare[ONE], error);
    if (rc)
        return rc;
    queue_join(work, work->bits, MASK_EITHER, own->spare[PART]);
    rc = queue_grow(work, own->spare[PART], false, own->spare[OTHER], error);
    if (rc)
        return rc;
    mask_cut_queue(&own->grid, own->spare[ONE], own->spare[OTHER], search->corners, own->spare[CUT], work->lane->work);
    CUDA_LAUNCHED(cuda_device_of(&work->lane->base));
    return 0;
}

/* As on the CPU: bit by bit of the components' numbers. */
static int
cut_apart(struct mask_work *work, const struct kernels_mask_step *step, struct error *error)
{
    struct cuda_lane *lane = work->lane;
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_mask *own = work->own;
    struct mask_search search;
    int64_t found = 0;
    int rc = grow_in_turn(work, true, error);

    if (rc)
        return rc;
    search = search_of(work, step->corners);
    mask_search_begin(&search, none_stays, lane->work);
    mask_search_number(&search, lane->work);
    CUDA_LAUNCHED(device);
    CUDA_TRY(device,
             cudaMemsetAsync(own->spare[CUT], 0, (size_t)own->grid.words * sizeof(*own->spare[CUT]), lane->work));
    rc = count_numbered(work, &found, error);
    for (int bit = 0; found > INT64_C(1) << bit && !rc; bit++)
        rc = reach_bit(work, &search, bit, error);
    if (!rc)
        rc = grow_in_turn(work, false, error);
    if (rc)
        return rc;
    queue_join(work, own->spare[CUT], MASK_AND_NOT, work->bits);
    CUDA_LAUNCHED(device);
    return 0;
}

static int
drop_by_means(const struct mask_work *work, const struct kernels_mask_step *step, struct error *error)
{
    const struct mask_bound stays = {MASK_MEAN_STAYS, ULLONG_MAX};
    struct cuda_lane *lane = work->lane;
    struct cuda_device *device = cuda_device_of(&lane->base);
    const struct cuda_mask *own = work->own;
    const struct mask_search search = search_of(work, step->corners);
    int64_t found = 0;

    mask_search_begin(&search, stays, lane->work);
    mask_search_number(&search, lane->work);
    CUDA_LAUNCHED(device);
    const int rc = count_numbered(work, &found, error);

    if (rc)
        return rc;
    for (int64_t first = 0; first < found; first += MASK_MEANS) {
        CUDA_TRY(device, cudaMemsetAsync(own->means, 0, MASK_MEANS * sizeof(*own->means), lane->work));
        mask_means_queue(&search, lane->base.pixel, lane->device_voxels, (uint32_t)first, step->amount, own->means,
                         lane->work);
        CUDA_LAUNCHED(device);
    }
    /* mask_search_drop counts them again. */
    CUDA_TRY(device,
             cudaMemsetAsync(&own->facts->found, 0, sizeof(own->facts->found) + sizeof(own->facts->kept), lane->work));
    mask_search_drop(&search, lane->work);
    CUDA_LAUNCHED(device);
    return 0;
}

static int
queue_step(struct mask_work *work, const struct kernels_mask_step *step, struct error *error)
{
    int rc = mask_step_has_ball(step->kind) ? choose_ball(work, step, error) : 0;

    if (rc)
        return rc;
    switch (step->kind) {
    case KERNELS_MASK_KEEP:
    case KERNELS_MASK_KEEP_AT_LEAST:
    case KERNELS_MASK_DROP_BELOW:
        return keep_largest(work, step, error);
    case KERNELS_MASK_FILL_SLICES:
    case KERNELS_MASK_FILL_VOLUME:
        return fill_inside(work, step, error);
    case KERNELS_MASK_GROW:
    case KERNELS_MASK_SHRINK:
        rc = grow_in_turn(work, step->kind == KERNELS_MASK_SHRINK, error);
        return rc || step->kind == KERNELS_MASK_SHRINK ? rc : bound_mask(work, error);
    case KERNELS_MASK_OPEN:
        rc = grow_in_turn(work, true, error);
        return rc ? rc : grow_in_turn(work, false, error);
    case KERNELS_MASK_CLOSE:
        return close_copy(work, error);
    case KERNELS_MASK_CUT_BRIDGES:
        return cut_apart(work, step, error);
    case KERNELS_MASK_DROP_MEAN_BELOW:
        return drop_by_means(work, step, error);
    case KERNELS_MASK_STEPS:
        break;
    }
    return 0;
}

/* Runs the steps, with the result in the mask's own memory. */
static int
queue_steps(struct mask_work *work, uint64_t *mask, const struct kernels_mask_step *steps, size_t count,
            struct error *error)
{
    const size_t bytes = (size_t)work->own->grid.words * sizeof(*mask);
    int rc = 0;

    for (size_t i = 0; i < count && !rc; i++)
        rc = queue_step(work, &steps[i], error);
    if (!rc && work->bits != mask)
        CUDA_TRY(cuda_device_of(&work->lane->base),
                 cudaMemcpyAsync(mask, work->bits, bytes, cudaMemcpyDeviceToDevice, work->lane->work));
    return rc;
}

int
cuda_mask_queue(struct kernels_lane *base, size_t from, size_t to, const struct kernels_mask_step *steps, size_t count,
                struct error *error)
{
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_mask *own = (struct cuda_mask *)kernels_state(base, KERNELS_MASK);
    const size_t words = (size_t)own->grid.words;
    uint64_t *mask = own->masks + to * words;
    struct mask_work work = {lane, own, mask, own->spare[SPARE], NULL, NULL};

    CUDA_TRY(cuda_device_of(base), cudaMemcpyAsync(mask, own->masks + from * words, words * sizeof(*mask),
                                                   cudaMemcpyDeviceToDevice, lane->work));
    return queue_steps(&work, mask, steps, count, error);
}

static int
cuda_mask_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct mask_request *request = (const struct mask_request *)given;
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_mask *own = (struct cuda_mask *)kernels_state(base, KERNELS_MASK);
    const size_t first = request->place * (size_t)own->grid.words;
    struct mask_work work = {lane, own, own->masks + first, own->spare[SPARE], request->given, own->host_masks + first};
    struct kernels_mask_result *result = request->result;
    const struct mask_facts *facts = own->host_facts;
    int rc;

    /* Work of a failed request may still be running. */
    CUDA_TRY(cuda_device_of(base), cudaStreamSynchronize(lane->work));
    if (!request->given) {
        *request->memory = own->host_masks + first;
        return 0;
    }
    CUDA_TRY(cuda_device_of(base), cudaMemsetAsync(own->facts, 0, sizeof(*own->facts), lane->work));
    rc = begin_mask(&work, error);
    if (!rc)
        rc = queue_steps(&work, own->masks + first, request->given->steps, request->given->step_count, error);
    if (rc)
        return rc;
    queue_measure(&work, &own->grid, work.bits);
    CUDA_LAUNCHED(cuda_device_of(base));
    CUDA_FETCH(lane, own->host_masks + first, work.bits, (size_t)own->grid.words);
    CUDA_FETCH(lane, own->host_facts, own->facts, 1);
    CUDA_TRY(cuda_device_of(base), cudaStreamSynchronize(lane->work));
    result->mask.bits = own->host_masks + first;
    result->mask.words_per_row = own->grid.words_per_row;
    result->mask.voxels = (int64_t)facts->voxels;
    result->components_found = (int64_t)facts->found;
    result->components_kept = (int64_t)facts->kept;
    for (int axis = 0; axis < 3; axis++) {
        result->first[axis] = facts->first[axis];
        result->last[axis] = facts->last[axis];
    }
    return 0;
}

const struct kernels_op cuda_mask_op = {
    .name = "masks",
    .state_size = sizeof(struct cuda_mask),
    .needs = cuda_mask_needs,
    .place = cuda_mask_place,
    .run = cuda_mask_run,
};
