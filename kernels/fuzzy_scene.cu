/* fuzzy_scene.cu - the steps of the scene in order: see fuzzy_scene.cuh. */
#include "fuzzy_graph.cuh"

#include "cuda.cuh"

#define SCENE_TRY(call)                                                                            \
    do {                                                                                           \
        cudaError_t error_ = CUDA_OF(call);                                                        \
        if (error_ != cudaSuccess)                                                                 \
            return error_;                                                                         \
    } while (0)

/* Levels that are queued before the host asks whether there are more: an empty one costs less than
 * the answer does. */
#define LEVELS_UNASKED 12

/* Voxels on the surface of a tile: a component that is left when the tile is contracted has one. */
#define TILE_SURFACE 1352

/* Fixed point of the doubles, without the zeros at both ends; returns how many entries there are.
 */
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

struct layout {
    unsigned char *start;
    size_t used;
};

template <typename Element>
static void
take(struct layout *layout, Element **piece, uint64_t count)
{
    *piece = layout->start == NULL ? NULL : (Element *)(layout->start + layout->used);
    layout->used += (count * sizeof(Element) + 255) / 256 * 256;
}

static void
take_edges(struct layout *layout, struct fuzzy_edges *edges, uint64_t count)
{
    take(layout, &edges->nodes, count);
    take(layout, &edges->affinity, count);
}

size_t
fuzzy_scene_place(const struct fuzzy_grid *grid, unsigned char *start,
                  struct fuzzy_scene_memory *memory)
{
    struct layout layout = {start, 0};
    uint64_t tiles = grid->tile_count, voxels = tiles * FUZZY_TILE_VOXELS;
    uint64_t nodes = tiles * TILE_SURFACE + 1, faces = tiles * FUZZY_TILE_FACES;
    uint64_t all_levels = 2 * nodes + FUZZY_LEVELS + 1;

    take(&layout, &memory->component, voxels);
    take(&layout, &memory->cap, voxels);
    take(&layout, &memory->seeds, voxels / 32);
    take(&layout, &memory->faces, faces);
    take(&layout, &memory->base, tiles);
    take(&layout, &memory->chosen, nodes);
    take(&layout, &memory->parent, all_levels);
    take(&layout, &memory->strongest, all_levels);
    take(&layout, &memory->connected, all_levels);
    take(&layout, &memory->best, nodes / 2 + 1);
    take_edges(&layout, &memory->forest, nodes);
    take_edges(&layout, &memory->edges[0], nodes + faces);
    take_edges(&layout, &memory->edges[1], nodes + faces);
    memory->pair_slots = 1 << 12;
    while (memory->pair_slots < 1 << 22 && memory->pair_slots < nodes)
        memory->pair_slots *= 2;
    take(&layout, &memory->pairs, memory->pair_slots);
    take(&layout, &memory->levels, FUZZY_LEVELS + 1);
    return layout.used;
}

static __global__ void
clear_levels(struct fuzzy_level *levels)
{
    struct fuzzy_level empty = {1, 0, 0};

    levels[threadIdx.x] = empty;
}

template <typename Voxel, bool SMALL>
static cudaError_t
contract_with(const struct contract_arguments *arguments, cudaStream_t stream)
{
    const int bytes = (int)sizeof(struct tile_memory);

    SCENE_TRY(cudaFuncSetAttribute(contract_tiles<Voxel, SMALL>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    contract_tiles<Voxel, SMALL>
        <<<arguments->grid.tile_count, TILE_THREADS, (size_t)bytes, stream>>>(*arguments);
    SCENE_TRY(cudaGetLastError());
    return cudaSuccess;
}

template <typename Voxel>
static cudaError_t
contract_pixels(const struct contract_arguments *arguments, cudaStream_t stream)
{
    const struct fuzzy_lookup *lookup = &arguments->lookup;

    return fuzzy_fixed_entries(lookup) <= FUZZY_SMALL_TABLE
               ? contract_with<Voxel, true>(arguments, stream)
               : contract_with<Voxel, false>(arguments, stream);
}

static cudaError_t
contract_volume(const struct fuzzy_volume *volume, const struct fuzzy_scene_memory *memory,
                cudaStream_t stream)
{
    struct contract_arguments arguments;

    arguments.voxels = volume->voxels;
    arguments.grid = volume->grid;
    arguments.lookup = volume->lookup;
    arguments.memory = *memory;
    switch (volume->pixel) {
    case KERNELS_UINT8:
        return contract_pixels<uint8_t>(&arguments, stream);
    case KERNELS_INT16:
        return contract_pixels<int16_t>(&arguments, stream);
    case KERNELS_UINT16:
        return contract_pixels<uint16_t>(&arguments, stream);
    }
    return cudaErrorInvalidValue;
}

/* Nodes of one level to nodes of the next. */
static cudaError_t
merge_level(const struct fuzzy_scene_memory *memory, int level, unsigned blocks,
            cudaStream_t stream)
{
    if (level == 0)
        choose_first<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory);
    else
        choose<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory, level);
    number_roots<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory, level);
    find_parents<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory, level);
    SCENE_TRY(cudaGetLastError());
    return cudaSuccess;
}

/* Goes up until a level has no edges; *top is that level. */
static cudaError_t
climb(const struct fuzzy_volume *volume, const struct fuzzy_scene_memory *memory,
      struct fuzzy_level *levels, unsigned blocks, cudaStream_t stream, int *top)
{
    SCENE_TRY(merge_level(memory, 0, blocks, stream));
    lift_forest<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory);
    lift_faces<<<volume->grid.tile_count, GRAPH_THREADS, 0, stream>>>(*memory, volume->grid);
    drain_pairs<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory, 0);
    for (int level = 1; level < FUZZY_LEVELS; level++) {
        SCENE_TRY(merge_level(memory, level, blocks, stream));
        lift_edges<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory, level);
        drain_pairs<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory, level);
        SCENE_TRY(cudaGetLastError());
        if (level < LEVELS_UNASKED || level % 4 != 0)
            continue;
        SCENE_TRY(cudaMemcpyAsync(levels, memory->levels, (FUZZY_LEVELS + 1) * sizeof *levels,
                                  cudaMemcpyDeviceToHost, stream));
        SCENE_TRY(cudaStreamSynchronize(stream));
        *top = level + 1;
        while (*top > 1 && levels[*top - 1].edges == 0)
            (*top)--;
        if (levels[level + 1].edges == 0)
            return cudaSuccess;
    }
    *top = FUZZY_LEVELS;
    return cudaSuccess;
}

cudaError_t
fuzzy_scene_run(const struct fuzzy_volume *volume, const struct fuzzy_scene_memory *memory,
                struct fuzzy_level *levels, const struct fuzzy_output *output, int multiprocessors,
                cudaStream_t stream)
{
    const struct fuzzy_grid *grid = &volume->grid;
    unsigned blocks = (unsigned)multiprocessors * (2048 / GRAPH_THREADS);
    int top = 0;

    SCENE_TRY(
        cudaMemsetAsync(memory->pairs, 0, memory->pair_slots * sizeof *memory->pairs, stream));
    clear_levels<<<1, FUZZY_LEVELS + 1, 0, stream>>>(memory->levels);
    SCENE_TRY(contract_volume(volume, memory, stream));
    SCENE_TRY(climb(volume, memory, levels, blocks, stream, &top));
    for (int level = top; level >= 0; level--)
        descend<<<blocks, GRAPH_THREADS, 0, stream>>>(*memory, level);
    write_scene<<<(unsigned)(output->words_per_row * grid->tiles[1] * grid->tiles[2]),
                  GRAPH_THREADS, 0, stream>>>(*memory, *grid, *output);
    SCENE_TRY(cudaGetLastError());
    return cudaSuccess;
}
