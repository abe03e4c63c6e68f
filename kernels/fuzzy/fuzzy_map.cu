/* fuzzy_map.cu - the steps of the connectedness map in order: see fuzzy_map.cuh. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/fuzzy/fuzzy_emit.cuh"
#include "kernels/fuzzy/fuzzy_graph.cuh"
#include "kernels/fuzzy/fuzzy_load.cuh"

#define MAP_TRY(call)                                                                                                  \
    do {                                                                                                               \
        cudaError_t error_ = CUDA_OF(call);                                                                            \
        if (error_ != cudaSuccess)                                                                                     \
            return error_;                                                                                             \
    } while (0)

/* Voxels on a tile's surface: each component that remains after contraction has one. */
#define TILE_SURFACE 1352

/* Converts the doubles to fixed point, without the zeros at both ends. Returns the number of
 * entries. */
static uint32_t
fix(const double *values, size_t count, bool keep_start, uint32_t *table, int32_t *start)
{
    size_t first = 0, last = count;

    for (size_t i = 0; i < count; i++)
        table[i] = (uint32_t)(65535.0 * values[i] * 65536.0);
    while (last > 0 && table[last - 1] == 0)
        last--;
    while (!keep_start && first < last && table[first] == 0)
        first++;
    for (size_t i = first; i < last; i++)
        table[i - first] = table[i];
    table[last - first] = 0;
    *start = (int32_t)first;
    return (uint32_t)(last - first);
}

void
fuzzy_fix_tables(const struct fuzzy_tables *tables, uint32_t *table, struct fuzzy_lookup *lookup)
{
    size_t differences = (size_t)tables->span + 1, sums = 2 * (size_t)tables->span + 1;
    int32_t start;

    lookup->sums = fix(tables->first, sums, false, table, &lookup->sum_low);
    lookup->differences = fix(tables->second, differences, true, table + lookup->sums + 1, &start);
    lookup->low = tables->low;
    lookup->span = tables->span;
}

static void
take_edges(struct kernels_arena *arena, struct fuzzy_edges *edges, size_t count)
{
    cuda_take(arena, &edges->nodes, count);
    cuda_take(arena, &edges->affinity, count);
}

void
fuzzy_map_place(const struct fuzzy_grid *grid, struct kernels_arena *arena, struct fuzzy_map_memory *memory)
{
    size_t tiles = grid->tile_count, voxels = tiles * FUZZY_TILE_VOXELS;
    size_t nodes = tiles * TILE_SURFACE + 1, faces = tiles * FUZZY_TILE_FACES;
    size_t all_levels = 2 * nodes + FUZZY_LEVELS + 1;

    cuda_take(arena, &memory->component, voxels);
    cuda_take(arena, &memory->cap, voxels);
    cuda_take(arena, &memory->seeds, voxels / 32);
    cuda_take(arena, &memory->faces, faces);
    cuda_take(arena, &memory->base, tiles);
    cuda_take(arena, &memory->chosen, nodes);
    cuda_take(arena, &memory->parent, all_levels);
    cuda_take(arena, &memory->strongest, all_levels);
    cuda_take(arena, &memory->connected, all_levels);
    cuda_take(arena, &memory->best, nodes / 2 + 1);
    take_edges(arena, &memory->forest, nodes);
    take_edges(arena, &memory->edges[0], nodes + faces);
    take_edges(arena, &memory->edges[1], nodes + faces);
    memory->pair_slots = 1 << 12;
    while (memory->pair_slots < 1 << 22 && memory->pair_slots < nodes)
        memory->pair_slots *= 2;
    cuda_take(arena, &memory->pairs, memory->pair_slots);
    cuda_take(arena, &memory->levels, FUZZY_LEVELS + 1);
}

static __global__ void
clear_levels(struct fuzzy_level *levels)
{
    struct fuzzy_level empty = {1, 0, 0};

    levels[threadIdx.x] = empty;
}

/* One block per tile. */
template <typename Voxel, bool SMALL>
static __global__ void
__launch_bounds__(TILE_THREADS, 3) contract_tiles(const __grid_constant__ struct contract_arguments arguments)
{
    extern __shared__ __align__(16) unsigned char shared[];
    struct tile_memory *tile = (struct tile_memory *)shared;
    const struct fuzzy_grid &grid = arguments.grid;
    const struct fuzzy_map_memory &memory = arguments.memory;
    const struct tile_origin origin = {blockIdx.x,
                                       {(int64_t)(blockIdx.x % grid.tiles[0]) * FUZZY_TILE_SIDE,
                                        (int64_t)(blockIdx.x / grid.tiles[0] % grid.tiles[1]) * FUZZY_TILE_SIDE,
                                        (int64_t)(blockIdx.x / grid.tiles[0] / grid.tiles[1]) * FUZZY_TILE_SIDE}};
    const struct fuzzy_lookup &lookup = arguments.lookup;
    const uint32_t *table = SMALL ? tile->table : lookup.table;
    /* A thread's voxels inside the volume. Of those beyond, at most one slice is read. */
    const int64_t left = (grid.size[2] - origin.at[2]) / 2 + 1;
    const uint32_t columns = left < TILE_COLUMN ? (uint32_t)left : TILE_COLUMN;
    const int64_t x = origin.at[0] + (threadIdx.x & 15), y = origin.at[1] + (threadIdx.x >> 4 & 15);
    struct tile_thread self;
    uint32_t base;

    /* Empty the table of pairs, at negligible cost. */
    for (uint32_t i = blockIdx.x * TILE_THREADS + threadIdx.x; i < memory.pair_slots; i += gridDim.x * TILE_THREADS)
        memory.pairs[i] = 0;
    self.waiting = 0;
#pragma unroll
    for (uint32_t i = 0; i < TILE_COLUMN && i < columns; i++) {
        uint32_t voxel = threadIdx.x + i * TILE_THREADS;

        tile->values[voxel] = value_at<Voxel>(arguments, x, y, origin.at[2] + (voxel >> 8));
    }
    if (SMALL)
        for (uint32_t i = threadIdx.x; i < fuzzy_fixed_entries(&lookup); i += TILE_THREADS)
            tile->table[i] = lookup.table[i];
    __syncthreads();
    inside_affinities(lookup, table, tile->values, columns, tile);
#pragma unroll
    for (uint32_t axis = 0; axis < 3; axis++)
        self.leaving[axis] = leaving_key<Voxel>(arguments, origin, table, columns, tile, axis);
    __syncthreads();
    drop_weakest(tile, lookup, table, columns);
    __syncthreads();
    write_faces(memory.faces + (size_t)origin.tile * FUZZY_TILE_FACES, tile, &self);
    first_keys(tile, &self, memory.seeds + (size_t)origin.tile * (FUZZY_TILE_VOXELS / 32), columns);
    __syncthreads();
    offer_leaving<true>(tile, &self);
    __syncthreads();
    contract(tile, &self, columns);
    base = write_components(arguments, tile, &self, origin.tile, columns);
    span(memory.forest, tile, &self, base);
}

typedef void contract_kernel(const struct contract_arguments);

template <bool SMALL>
static contract_kernel *
contract_of(enum image_pixel pixel)
{
    switch (pixel) {
    case IMAGE_UINT8:
        return contract_tiles<uint8_t, SMALL>;
    case IMAGE_INT16:
        return contract_tiles<int16_t, SMALL>;
    case IMAGE_UINT16:
        return contract_tiles<uint16_t, SMALL>;
    }
    return NULL;
}

cudaError_t
fuzzy_map_run(const struct fuzzy_volume *volume, const struct fuzzy_map_memory *memory,
              const struct fuzzy_output *output, int multiprocessors, cudaStream_t stream)
{
    const struct fuzzy_grid *grid = &volume->grid;
    const size_t bytes = sizeof(struct tile_memory);
    const bool small = fuzzy_fixed_entries(&volume->lookup) <= FUZZY_SMALL_TABLE;
    const struct contract_arguments arguments = {volume->voxels, *grid, volume->lookup, *memory};
    contract_kernel *kernel = small ? contract_of<true>(volume->pixel) : contract_of<false>(volume->pixel);
    const unsigned blocks = (unsigned)multiprocessors * (2048 / GRAPH_THREADS);
    struct fuzzy_map_memory climbed = *memory;
    void *climbs[] = {&climbed};

    clear_levels<<<1, FUZZY_LEVELS + 1, 0, stream>>>(memory->levels);
    MAP_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<grid->tile_count, TILE_THREADS, bytes, stream>>>(arguments);
    MAP_TRY(cudaGetLastError());
    /* From the tiles' components to the results of all nodes. */
    choose_first<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory);
    number_first<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory);
    find_first_parents<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory);
    lift_forest<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory);
    lift_faces<<<grid->tile_count, GRAPH_THREADS, 0, stream>>>(*memory, *grid);
    MAP_TRY(cudaGetLastError());
    MAP_TRY(
        cudaLaunchCooperativeKernel(climb, (unsigned)multiprocessors * CLIMB_BLOCKS, CLIMB_THREADS, climbs, 0, stream));
    write_map<<<(unsigned)(output->words_per_row * grid->tiles[1] * grid->tiles[2]), GRAPH_THREADS, 0, stream>>>(
        *memory, *grid, *output);
    MAP_TRY(cudaGetLastError());
    return cudaSuccess;
}
