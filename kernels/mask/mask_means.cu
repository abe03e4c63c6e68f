/* mask_means.cu - mean values of the inner voxels of numbered components, those whose six neighbours in the
 * volume lie in the mask. A thread adds up the voxels of a word, run by run. */
#include "kernels/mask/mask_runs.cuh"

/* Returns the inner voxels in a word of the volume. */
__device__ static __forceinline__ uint64_t
inner_voxels(const volume_forest<tile_deep> &forest, const struct volume_word &own, uint32_t x, uint32_t y, uint32_t z)
{
    const struct mask_grid &grid = forest.search.grid;
    const auto beside = [&](bool exists, uint32_t other_x, uint32_t other_y, uint32_t other_z) {
        return exists ? forest.word(other_x, other_y, other_z).bits : ~UINT64_C(0);
    };
    const uint64_t lower = own.bits << 1 | beside(x > 0, x - 1, y, z) >> 63,
                   higher = own.bits >> 1 | (x + 1 < grid.words_per_row ? forest.word(x + 1, y, z).bits << 63
                                                                        : UINT64_C(1) << (grid.columns - 1) % 64),
                   inner = own.bits & lower & higher;

    if (!inner)
        return 0;
    return inner & beside(y > 0, x, y - 1, z) & beside(y + 1 < grid.rows, x, y + 1, z) & beside(z > 0, x, y, z - 1) &
           beside(z + 1 < grid.slices, x, y, z + 1);
}

template <typename Value>
__global__ void
__launch_bounds__(MASK_THREADS) search_means(const __grid_constant__ struct mask_search search, const Value *voxels,
                                             uint32_t first, struct mask_sums *means)
{
    const volume_forest<tile_deep> forest = {search};
    const uint32_t words = (uint32_t)search.grid.words_per_row, rows = (uint32_t)search.grid.rows;

    SEARCH_EACH((uint32_t)search.grid.words, word)
    {
        const uint32_t x = word % words, y = word / words % rows, z = word / words / rows;
        const struct volume_word own = forest.word(x, y, z);
        const Value *const values = voxels + ((size_t)z * rows + y) * (size_t)search.grid.columns + (size_t)x * 64;
        uint64_t left = own.bits ? inner_voxels(forest, own, x, y, z) : 0;

        while (__any_sync(~0u, left != 0)) {
            uint32_t number = ~0u, sum = 0, count = 0;

            if (left) {
                const uint64_t low = left & (0 - left), bits = left & first_run(own.bits, left);
                const uint32_t node = forest.of(own, run_within(own.bits, low | (low - 1)));

                number = node_at(search, node_at(search, node)->parent)->count - first;
                left &= ~bits;
                if (number < MASK_MEANS)
                    for (uint64_t some = bits; some; some &= some - 1, count++)
                        sum += (uint32_t)(int32_t)values[__ffsll((long long)some) - 1];
            }
            __syncwarp();
            /* Lanes of the same component add together. */
            const unsigned same = __match_any_sync(~0u, number);
            const int32_t all = (int32_t)__reduce_add_sync(same, sum);
            const uint32_t counted = __reduce_add_sync(same, count);

            if (number < MASK_MEANS && threadIdx.x % 32 == (unsigned)__ffs((int)same) - 1) {
                atomicAdd(&means[number].sum, (unsigned long long)(long long)all);
                atomicAdd(&means[number].count, (unsigned long long)counted);
            }
            __syncwarp();
        }
    }
}

__global__ void
__launch_bounds__(MASK_THREADS) search_decide(const __grid_constant__ struct mask_search search, uint32_t first,
                                              double least, const struct mask_sums *means)
{
    visit_roots(search, [&](uint32_t root, const struct mask_node &node) {
        const uint32_t number = node.count - first;

        if (number >= MASK_MEANS)
            return;
        const struct mask_sums mean = means[number];
        const bool stays = mean.count > 0 && __ddiv_rn((double)(long long)mean.sum, (double)mean.count) >= least;

        node_at(search, root)->count = MASK_MEAN_STAYS - (stays ? 0 : 1);
    });
}

void
mask_means_queue(const struct mask_search *search, enum image_pixel pixel, const void *voxels, uint32_t first,
                 double least, struct mask_sums *means, cudaStream_t stream)
{
    const uint32_t blocks = search->grid.blocks;

    if (pixel == IMAGE_UINT8)
        search_means<uint8_t><<<blocks, MASK_THREADS, 0, stream>>>(*search, (const uint8_t *)voxels, first, means);
    else if (pixel == IMAGE_INT16)
        search_means<int16_t><<<blocks, MASK_THREADS, 0, stream>>>(*search, (const int16_t *)voxels, first, means);
    else
        search_means<uint16_t><<<blocks, MASK_THREADS, 0, stream>>>(*search, (const uint16_t *)voxels, first, means);
    search_decide<<<blocks, MASK_THREADS, 0, stream>>>(*search, first, least, means);
}
