/*
 * mask_keep.cu - which components stay: the largest, those of a size, those at the border; and their
 * numbers.
 */
#include "kernels/mask/mask_runs.cuh"

#include <limits.h>

/* The largest */

__device__ static __forceinline__ bool
bound_before(const struct mask_bound &a, const struct mask_bound &b)
{
    return a.size > b.size || (a.size == b.size && a.last < b.last);
}

/* The first of all the block's, for its first thread. */
__device__ static struct mask_bound
first_of_block(struct mask_bound own, struct mask_bound *shared)
{
    shared[threadIdx.x] = own;
    for (unsigned half = MASK_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half && bound_before(shared[threadIdx.x + half], shared[threadIdx.x]))
            shared[threadIdx.x] = shared[threadIdx.x + half];
    }
    __syncthreads();
    return shared[0];
}

__global__ void
search_largest(struct mask_facts *facts)
{
    if (facts->highest > 0)
        facts->bound = {(long long)(facts->highest >> 32), (uint32_t)~facts->highest};
}

void
mask_search_largest(const struct mask_search *search, cudaStream_t stream)
{
    search_largest<<<1, 1, 0, stream>>>(search->facts);
}

__global__ void
__launch_bounds__(MASK_THREADS) search_next(const __grid_constant__ struct mask_search search)
{
    __shared__ struct mask_bound shared[MASK_THREADS];
    __shared__ bool is_last;
    const struct mask_bound bound = search.facts->bound;
    struct mask_bound own = {-1, ULLONG_MAX};

    visit_slots(search, search.firsts, [&](uint32_t slot) {
        const struct mask_bound candidate = {search.counts[slot], slot};

        if (search.slots[slot] == (slot | SLOT_FIRST) && bound_before(bound, candidate) &&
            bound_before(candidate, own))
            own = candidate;
    });
    own = first_of_block(own, shared);
    if (threadIdx.x == 0) {
        search.partials[blockIdx.x] = own;
        __threadfence();
        is_last = atomicAdd(&search.facts->ticket, 1) + 1 == gridDim.x;
    }
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    own.size = -1;
    own.last = ULLONG_MAX;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += MASK_THREADS) {
        const volatile struct mask_bound *partial = &search.partials[i];
        const struct mask_bound other = {partial->size, partial->last};

        if (bound_before(other, own))
            own = other;
    }
    own = first_of_block(own, shared);
    if (threadIdx.x == 0) {
        search.facts->ticket = 0;
        if (own.size >= 0)
            search.facts->bound = own;
    }
}

void
mask_search_next(const struct mask_search *search, cudaStream_t stream)
{
    const uint32_t blocks =
        search->grid.blocks < MASK_PARTIALS ? search->grid.blocks : (uint32_t)MASK_PARTIALS;

    search_next<<<blocks, MASK_THREADS, 0, stream>>>(*search);
}

__global__ void
search_share(struct mask_facts *facts, double share)
{
    facts->bound.size = (long long)ceil(__dmul_rn(share, (double)facts->bound.size));
    facts->bound.last = ULLONG_MAX;
}

void
mask_search_share(const struct mask_search *search, double share, cudaStream_t stream)
{
    search_share<<<1, 1, 0, stream>>>(search->facts, share);
}

/* What stays */

__global__ void
__launch_bounds__(MASK_THREADS) search_drop(const __grid_constant__ struct mask_search search)
{
    const struct mask_bound bound = search.facts->bound;
    uint32_t found = 0, kept = 0;

    SEARCH_EACH((uint32_t)search.grid.words, word)
    {
        uint64_t turned = 0;

        visit_roots(search, search_runs_at(search, word),
                    [&](uint32_t slot, uint32_t root, uint32_t count, uint64_t run) {
                        const bool goes = bound_before(bound, {count, root});

                        found += root == slot;
                        kept += root == slot && !goes;
                        turned |= goes ? run : 0;
                    });
        if (turned)
            search.bits[word] ^= turned;
    }
    __syncwarp();
    found = __reduce_add_sync(~0u, found);
    kept = __reduce_add_sync(~0u, kept);
    if (threadIdx.x % 32 == 0 && found > 0 && !search.border) {
        atomicAdd(&search.facts->found, found);
        atomicAdd(&search.facts->kept, kept);
    }
}

void
mask_search_drop(const struct mask_search *search, cudaStream_t stream)
{
    search_drop<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search);
}

/* Numbers */

__global__ void
__launch_bounds__(MASK_THREADS) search_number(const __grid_constant__ struct mask_search search)
{
    visit_slots(search, search.firsts, [&](uint32_t slot) {
        if (search.slots[slot] != (slot | SLOT_FIRST))
            return;
        search.counts[slot] = (uint32_t)atomicAdd(&search.facts->found, 1ULL);
        atomicAdd(&search.facts->kept, 1ULL);
    });
}

void
mask_search_number(const struct mask_search *search, cudaStream_t stream)
{
    search_number<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search);
}

__global__ void
__launch_bounds__(MASK_THREADS)
    search_part(const __grid_constant__ struct mask_search search, int bit, uint64_t *part)
{
    SEARCH_EACH((uint32_t)search.grid.words, word)
    {
        uint64_t taken = 0;

        visit_roots(search, search_runs_at(search, word),
                    [&](uint32_t, uint32_t, uint32_t number, uint64_t run) {
                        taken |= number >> bit & 1 ? run : 0;
                    });
        if (word < search.grid.words)
            part[word] = taken;
    }
}

void
mask_search_part(const struct mask_search *search, int bit, uint64_t *part, cudaStream_t stream)
{
    search_part<<<search->grid.blocks, MASK_THREADS, 0, stream>>>(*search, bit, part);
}
