/*
 * gpu_fuzzy.cu - fuzzy connectedness on the GPU with resident input, compared with the paper's own method. Cases: a
 * vessel tree in noise and a smooth field in the sizes of Wang 2016, and a maze. All volumes are generated from a
 * fixed seed.
 */
#include "kernels/fuzzy/fuzzy_object.cuh"
#include "tests/bench/gpu_bench.cuh"
#include "tests/bench/wang2016.cuh"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" {
#include "tests/kernels/ref_fuzzy.h"
}

struct content {
    const char *name;
    void (*fill)(const image_extent &extent, int16_t *voxels);
    kernels_fuzzy_object object;
    bool slow_for_the_paper; /* a front of one voxel on a path of a million */
};

static uint64_t
mix(uint64_t value)
{
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdULL;
    value ^= value >> 33;
    value *= 0xc4ceb9fe1a85ec53ULL;
    return value ^ value >> 33;
}

/* Returns noise of mean 0 and deviation 1, from the sum of eight uniform numbers. */
static double
noise(uint64_t index)
{
    uint64_t a = mix(2 * index + 1), b = mix(2 * index + 2);
    double sum = 0;

    for (int shift = 0; shift < 64; shift += 16)
        sum += (double)((a >> shift & 0xffff) + (b >> shift & 0xffff)) / 65536;
    return (sum - 4) / std::sqrt(8.0 / 12);
}

static double
uniform(uint64_t *state)
{
    *state = mix(*state + 7);
    return (double)(*state & 0xffff) / 65536;
}

template <typename Slice>
static void
each_slice(const image_extent &extent, const Slice &slice)
{
    unsigned count = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::thread> threads;

    for (unsigned i = 0; i < count; i++)
        threads.emplace_back([=] {
            for (int64_t z = i; z < extent.slices; z += count)
                slice(z);
        });
    for (std::thread &thread : threads)
        thread.join();
}

struct branch {
    double at[3], toward[3], radius;
    int64_t length;
};

static void
stamp_ball(const image_extent &extent, const branch &branch, std::vector<uint8_t> &vessel)
{
    const int64_t size[3] = {extent.columns, extent.rows, extent.slices};
    int64_t low[3], high[3];

    for (int axis = 0; axis < 3; axis++) {
        low[axis] = std::max<int64_t>(0, (int64_t)std::ceil(branch.at[axis] - branch.radius));
        high[axis] = std::min<int64_t>(size[axis] - 1, (int64_t)std::floor(branch.at[axis] + branch.radius));
    }
    for (int64_t z = low[2]; z <= high[2]; z++)
        for (int64_t y = low[1]; y <= high[1]; y++)
            for (int64_t x = low[0]; x <= high[0]; x++) {
                double dx = (double)x - branch.at[0], dy = (double)y - branch.at[1];
                double dz = (double)z - branch.at[2];

                if (dx * dx + dy * dy + dz * dz <= branch.radius * branch.radius)
                    vessel[(size_t)((z * extent.rows + y) * extent.columns + x)] = 1;
            }
}

/* Moves a wandering branch by one step. The branch must turn back at the ends of the volume. */
static void
wander(const image_extent &extent, branch *branch, uint64_t *state)
{
    const int64_t size[3] = {extent.columns, extent.rows, extent.slices};
    double length = 0;

    for (double &toward : branch->toward) {
        toward += (uniform(state) - 0.5) * 0.25;
        length += toward * toward;
    }
    for (int axis = 0; axis < 3; axis++) {
        branch->toward[axis] /= std::sqrt(length);
        branch->at[axis] += branch->toward[axis];
        if (branch->at[axis] < 1 || branch->at[axis] > (double)size[axis] - 2)
            branch->toward[axis] = -branch->toward[axis];
        branch->at[axis] = std::min(std::max(branch->at[axis], 1.0), (double)size[axis] - 2);
    }
}

static std::vector<uint8_t>
vessel_tree(const image_extent &extent)
{
    std::vector<uint8_t> vessel((size_t)(extent.columns * extent.rows * extent.slices));
    std::vector<branch> branches;
    uint64_t state = 3;

    branches.push_back({{(double)extent.columns / 2, (double)extent.rows / 2, 2},
                        {0.1, 0.2, 1},
                        (double)extent.columns / 50,
                        extent.slices});
    while (!branches.empty() && branches.size() < 400) {
        branch now = branches.back();

        branches.pop_back();
        for (int64_t i = 0; i < now.length && now.radius > 0.8; i++) {
            wander(extent, &now, &state);
            stamp_ball(extent, now, vessel);
            if (uniform(&state) < 0.025) {
                branch child = now;

                for (double &toward : child.toward)
                    toward += (uniform(&state) - 0.5) * 2;
                child.radius *= 0.75;
                child.length = (now.length - i) * 2 / 3 + 20;
                now.radius *= 0.93;
                branches.push_back(child);
            }
        }
    }
    return vessel;
}

/* Draws vessels of 200 in 100, with noise of deviation 20. */
static void
fill_vessels(const image_extent &extent, int16_t *voxels)
{
    std::vector<uint8_t> vessel = vessel_tree(extent);
    int64_t slice = extent.columns * extent.rows;

    each_slice(extent, [&, voxels, slice](int64_t z) {
        for (int64_t i = z * slice; i < (z + 1) * slice; i++)
            voxels[i] = (int16_t)std::lround((vessel[(size_t)i] ? 200 : 100) + 20 * noise((uint64_t)i));
    });
}

static void
fill_smooth(const image_extent &extent, int16_t *voxels)
{
    each_slice(extent, [&, voxels](int64_t z) {
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++) {
                int64_t i = (z * extent.rows + y) * extent.columns + x;
                double dx = (double)x, dy = (double)y, dz = (double)z;
                double value = 150 + 40 * std::sin(dx * 0.05) * std::cos(dy * 0.043) +
                               40 * std::sin(dz * 0.037 + dx * 0.021) + 20 * std::sin((dx + dy + dz) * 0.11);

                voxels[i] = (int16_t)std::lround(value + 3 * noise((uint64_t)i));
            }
    });
}

/* Draws a random tree of passages one voxel wide, with values of 500 to 599, in walls of 0. */
static void
fill_maze(const image_extent &extent, int16_t *voxels)
{
    const int64_t cells[3] = {(extent.columns + 1) / 2, (extent.rows + 1) / 2, (extent.slices + 1) / 2};
    std::vector<bool> seen((size_t)(cells[0] * cells[1] * cells[2]));
    std::vector<std::array<int64_t, 3>> path = {{0, 0, 0}};
    uint64_t state = 3;
    auto cell = [&](const std::array<int64_t, 3> &at) {
        return (size_t)((at[2] * cells[1] + at[1]) * cells[0] + at[0]);
    };
    auto open = [&](int64_t x, int64_t y, int64_t z) {
        voxels[(z * extent.rows + y) * extent.columns + x] = (int16_t)(500 + (int)(uniform(&state) * 100));
    };

    std::fill_n(voxels, extent.columns * extent.rows * extent.slices, (int16_t)0);
    open(0, 0, 0);
    seen[0] = true;
    while (!path.empty()) {
        std::array<int64_t, 3> at = path.back(), next[6];
        size_t ways = 0;

        for (size_t way = 0; way < 6; way++) {
            std::array<int64_t, 3> to = at;

            to[way / 2] += way % 2 == 0 ? -1 : 1;
            if (to[way / 2] >= 0 && to[way / 2] < cells[way / 2] && !seen[cell(to)])
                next[ways++] = to;
        }
        if (ways == 0) {
            path.pop_back();
            continue;
        }
        path.push_back(next[(size_t)(uniform(&state) * (double)ways)]);
        seen[cell(path.back())] = true;
        open(2 * path.back()[0], 2 * path.back()[1], 2 * path.back()[2]);
        open(at[0] + path.back()[0], at[1] + path.back()[1], at[2] + path.back()[2]);
    }
}

struct setting {
    const content *what;
    image_extent extent;
    size_t voxels;
    kernels_voxel seed;
    std::vector<int16_t> host;
    std::vector<void *> taken;
    cudaStream_t stream;
    fuzzy_volume volume;
    fuzzy_map_memory memory;
    edge_flood_volume edges;
    fuzzy_reach reach;
    uint32_t *seeds; /* one, for the edges */
    edge_flood_counts *counts;
    fuzzy_output output;
    uint16_t *map;
    double read_ms, upload_ms, paper_ms;
    std::vector<uint16_t> truth;
};

template <typename Element>
static Element *
take(setting *setting, size_t count)
{
    void *memory;

    GPU_BENCH_TRY(cudaMalloc(&memory, count * sizeof(Element)));
    setting->taken.push_back(memory);
    return (Element *)memory;
}

template <typename Element>
static Element *
put(setting *setting, const std::vector<Element> &host)
{
    Element *device = take<Element>(setting, host.size());

    GPU_BENCH_TRY(cudaMemcpy(device, host.data(), host.size() * sizeof(Element), cudaMemcpyHostToDevice));
    return device;
}

static void
put_tables(setting *setting)
{
    auto range = std::minmax_element(setting->host.begin(), setting->host.end());
    fuzzy_lookup *lookup = &setting->volume.lookup;
    int32_t span = *range.second - *range.first;
    std::vector<double> first((size_t)(2 * span + 1)), second((size_t)(span + 1));
    std::vector<uint32_t> table((size_t)(3 * span + 4));
    fuzzy_tables tables = {*range.first, span, first.data(), second.data()};

    fuzzy_fill_tables(&setting->what->object, &tables);
    fuzzy_fix_tables(&tables, table.data(), lookup);
    lookup->table = put(setting, table);
    lookup->first = put(setting, first);
    lookup->second = put(setting, second);
    lookup->padding = {0, -1};
    std::vector<int32_t> reach((size_t)(2 * span + 2));
    if (!fuzzy_fill_reach(&tables, setting->what->object.threshold, reach.data()))
        throw std::logic_error("the affinity rises with the difference");
    setting->reach = {put(setting, reach), *range.first, span, lookup->padding};
}

static void
put_seed(setting *setting)
{
    const fuzzy_grid *grid = &setting->volume.grid;
    const kernels_voxel *seed = &setting->seed;
    int64_t tile = ((seed->z >> 4) * grid->tiles[1] + (seed->y >> 4)) * grid->tiles[0] + (seed->x >> 4);
    int64_t place = tile * FUZZY_TILE_VOXELS + ((seed->z & 15) << 8 | (seed->y & 15) << 4 | (seed->x & 15));
    uint32_t word = 1u << (place & 31);
    const image_extent &extent = setting->extent;

    setting->seeds =
        put(setting, std::vector<uint32_t>{(uint32_t)(seed->x + extent.columns * (seed->y + extent.rows * seed->z))});
    GPU_BENCH_TRY(cudaMemset(setting->memory.seeds, 0, (size_t)grid->tile_count * (FUZZY_TILE_VOXELS / 8)));
    GPU_BENCH_TRY(cudaMemcpy(setting->memory.seeds + place / 32, &word, sizeof word, cudaMemcpyHostToDevice));
}

static void
set_up(const gpu_bench *bench, setting *setting)
{
    const image_extent &extent = setting->extent;
    int64_t words_per_row = fuzzy_ceil(extent.columns, 64);
    struct kernels_arena arena = {};
    size_t bytes;
    int16_t *voxels;

    setting->voxels = (size_t)(extent.columns * extent.rows * extent.slices);
    setting->host.resize(setting->voxels);
    setting->what->fill(extent, setting->host.data());
    GPU_BENCH_TRY(cudaStreamCreate(&setting->stream));
    GPU_BENCH_TRY(cudaMallocHost(&setting->counts, sizeof *setting->counts));
    voxels = take<int16_t>(setting, setting->voxels);
    bytes = setting->voxels * sizeof(int16_t);
    setting->upload_ms = gpu_bench_upload_ms(bench, setting->stream, voxels, bytes);
    GPU_BENCH_TRY(cudaMemcpy(voxels, setting->host.data(), bytes, cudaMemcpyHostToDevice));
    setting->read_ms = gpu_bench_read_ms(bench, setting->stream, voxels, bytes);
    setting->volume.voxels = voxels;
    setting->volume.pixel = IMAGE_INT16;
    setting->volume.grid = fuzzy_grid_of(extent);
    put_tables(setting);
    edge_flood_measure(extent, &setting->edges);
    fuzzy_map_place(&setting->volume.grid, &arena, &setting->memory);
    edge_flood_place_volume(&setting->edges, &arena);
    arena = {take<unsigned char>(setting, arena.used), 0, false};
    fuzzy_map_place(&setting->volume.grid, &arena, &setting->memory);
    edge_flood_place_volume(&setting->edges, &arena);
    put_seed(setting);
    setting->map = take<uint16_t>(setting, setting->voxels);
    setting->output.bits = take<unsigned long long>(setting, (size_t)(words_per_row * extent.rows * extent.slices));
    setting->output.words_per_row = words_per_row;
    setting->output.count = take<unsigned long long>(setting, 1);
    setting->output.threshold = setting->what->object.threshold;
}

static void
tear_down(setting *setting)
{
    for (void *memory : setting->taken)
        GPU_BENCH_TRY(cudaFree(memory));
    GPU_BENCH_TRY(cudaFreeHost(setting->counts));
    GPU_BENCH_TRY(cudaStreamDestroy(setting->stream));
}

static std::vector<uint16_t>
fetch_paper_map(const setting *setting, const wang2016_memory &paper)
{
    std::vector<uint32_t> wide(setting->voxels);

    GPU_BENCH_TRY(cudaMemcpy(wide.data(), paper.map, wide.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    return std::vector<uint16_t>(wide.begin(), wide.end());
}

static size_t
differing(const std::vector<uint16_t> &one, const std::vector<uint16_t> &other)
{
    size_t count = 0;

    for (size_t i = 0; i < one.size(); i++)
        count += one[i] != other[i];
    return count;
}

/* Reports the voxels that are still wrong after the paper's two and three iterations. */
static void
report_corrections(const gpu_bench *bench, const setting *setting, const char *name, const wang2016_memory &paper)
{
    for (int iterations = 2; iterations <= 3; iterations++) {
        wang2016_begin(&paper, &setting->extent, &setting->seed, setting->stream);
        wang2016_correct(&paper, &setting->volume, iterations, setting->stream);
        GPU_BENCH_TRY(cudaStreamSynchronize(setting->stream));
        fprintf(bench->out,
                "{\"case\":\"%s\",\"wang2016_iterations\":%d,\"wrong_voxels\":%zu,"
                "\"voxels\":%zu}\n",
                name, iterations, differing(fetch_paper_map(setting, paper), setting->truth), setting->voxels);
    }
}

/* Runs the paper's iteration to convergence, only once because it takes seconds. Its result is the truth. */
static void
run_paper(const gpu_bench *bench, setting *setting, const char *name)
{
    size_t before = setting->taken.size();
    wang2016_memory paper;
    cudaEvent_t begun, ended;
    float milliseconds;
    int iterations;

    paper.map = take<uint32_t>(setting, setting->voxels);
    paper.front = take<unsigned char>(setting, setting->voxels);
    paper.next_front = take<unsigned char>(setting, setting->voxels);
    paper.changed = take<int>(setting, 1);
    GPU_BENCH_TRY(cudaEventCreate(&begun));
    GPU_BENCH_TRY(cudaEventCreate(&ended));
    GPU_BENCH_TRY(cudaEventRecord(begun, setting->stream));
    wang2016_begin(&paper, &setting->extent, &setting->seed, setting->stream);
    iterations = wang2016_converge(&paper, &setting->volume, setting->stream);
    GPU_BENCH_TRY(cudaEventRecord(ended, setting->stream));
    GPU_BENCH_TRY(cudaEventSynchronize(ended));
    GPU_BENCH_TRY(cudaEventElapsedTime(&milliseconds, begun, ended));
    setting->paper_ms = milliseconds;
    setting->truth = fetch_paper_map(setting, paper);
    fprintf(bench->out, "{\"case\":\"%s\",\"wang2016_launches\":%d,\"ms\":%.1f}\n", name, 2 * iterations, milliseconds);
    report_corrections(bench, setting, name, paper);
    GPU_BENCH_TRY(cudaEventDestroy(begun));
    GPU_BENCH_TRY(cudaEventDestroy(ended));
    while (setting->taken.size() > before) {
        GPU_BENCH_TRY(cudaFree(setting->taken.back()));
        setting->taken.pop_back();
    }
}

static void
find_truth(const gpu_bench *bench, setting *setting, const char *name)
{
    kernels_fuzzy_object object = setting->what->object;

    if (!setting->what->slow_for_the_paper) {
        run_paper(bench, setting, name);
        return;
    }
    object.seeds = &setting->seed;
    object.seed_count = 1;
    setting->truth.resize(setting->voxels);
    ref_fuzzy_map(setting->extent, IMAGE_INT16, setting->host.data(), &object, setting->truth.data());
}

static int64_t
wrong_bits(const setting *setting)
{
    const image_extent &extent = setting->extent;
    int64_t words_per_row = setting->output.words_per_row, wrong = 0;
    std::vector<uint64_t> bits((size_t)(words_per_row * extent.rows * extent.slices));

    GPU_BENCH_TRY(
        cudaMemcpy(bits.data(), setting->output.bits, bits.size() * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    for (int64_t row = 0; row < extent.rows * extent.slices; row++)
        for (int64_t x = 0; x < words_per_row * 64; x++) {
            bool in = (bits[(size_t)(row * words_per_row + x / 64)] >> (x % 64) & 1) != 0;

            wrong += in != (x < extent.columns &&
                            setting->truth[(size_t)(row * extent.columns + x)] > setting->output.threshold);
        }
    return wrong;
}

static int64_t
wrong_voxels(const setting *setting)
{
    std::vector<uint16_t> map(setting->voxels);

    GPU_BENCH_TRY(cudaMemcpy(map.data(), setting->map, map.size() * sizeof(uint16_t), cudaMemcpyDeviceToHost));
    return (int64_t)differing(map, setting->truth);
}

static void
run_map(setting *setting, int multiprocessors, cudaStream_t stream)
{
    GPU_BENCH_TRY(fuzzy_map_run(&setting->volume, &setting->memory, &setting->output, multiprocessors, stream));
}

/* Runs the flood and, if it is stopped, the map of affinities that are 0 or 65535. */
static void
run_object(setting *setting, int multiprocessors, cudaStream_t stream)
{
    const edge_flood_volume *edges = &setting->edges;
    const fuzzy_output *output = &setting->output;

    GPU_BENCH_TRY(fuzzy_object_edges(setting->volume.voxels, setting->volume.pixel, &setting->reach, edges, stream));
    GPU_BENCH_TRY(edge_flood_seed(edges, setting->seeds, 1, stream));
    GPU_BENCH_TRY(edge_flood_run(edges, multiprocessors, stream));
    GPU_BENCH_TRY(edge_flood_write(edges, output->bits, output->count, stream));
    GPU_BENCH_TRY(
        cudaMemcpyAsync(setting->counts, edges->counts, sizeof *setting->counts, cudaMemcpyDeviceToHost, stream));
    GPU_BENCH_TRY(cudaStreamSynchronize(stream));
    if (setting->counts->stopped != 0)
        run_map(setting, multiprocessors, stream);
}

static int64_t
run_ours(const gpu_bench *bench, setting *setting, const char *name, bool map)
{
    int device, multiprocessors;
    gpu_bench_result result = {
        name, setting->voxels * sizeof(int16_t), 0, setting->read_ms, setting->upload_ms, setting->paper_ms, 0};

    GPU_BENCH_TRY(cudaGetDevice(&device));
    GPU_BENCH_TRY(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    setting->output.map = map ? setting->map : NULL;
    fuzzy_lookup_binary(&setting->volume.lookup, !map, setting->what->object.threshold);
    result.median_ms = gpu_bench_median_ms(bench, setting->stream, [&](cudaStream_t stream) {
        if (map)
            run_map(setting, multiprocessors, stream);
        else
            run_object(setting, multiprocessors, stream);
    });
    result.mismatches = wrong_bits(setting) + (map ? wrong_voxels(setting) : 0);
    gpu_bench_report(bench, &result);
    return result.mismatches;
}

static int
run_case(const gpu_bench *bench, const content *what, const image_extent &extent, const kernels_voxel &seed)
{
    const std::string size = std::string("/") + what->name + "/" + std::to_string(extent.columns) + "x" +
                             std::to_string(extent.rows) + "x" + std::to_string(extent.slices);
    const std::string map = "fuzzy/scene" + size, object = "fuzzy/object" + size;
    bool want_map = gpu_bench_wants(bench, map.c_str());
    bool want_object = gpu_bench_wants(bench, object.c_str());
    setting setting = {};
    int failed = 0;

    if (!want_map && !want_object)
        return 0;
    setting.what = what;
    setting.extent = extent;
    setting.seed = seed;
    set_up(bench, &setting);
    find_truth(bench, &setting, ("wang2016/" + size).c_str());
    if (want_map)
        failed += run_ours(bench, &setting, map.c_str(), true) != 0;
    if (want_object)
        failed += run_ours(bench, &setting, object.c_str(), false) != 0;
    tear_down(&setting);
    return failed;
}

/* Takes mean, its deviation, deviation of the difference, weight, threshold. */
static kernels_fuzzy_object
object_of(double mean, double sigma, double homogeneity_sigma, uint16_t threshold)
{
    kernels_fuzzy_object object = {};

    object.mean = mean;
    object.sigma = sigma;
    object.homogeneity_sigma = homogeneity_sigma;
    object.weight = 0.5;
    object.threshold = threshold;
    object.padding = {0, -1};
    return object;
}

int
gpu_bench_fuzzy(const struct gpu_bench *bench)
{
    const content vessels = {"vessels", fill_vessels, object_of(200, 30, 15, 40000), false};
    const content smooth = {"smooth", fill_smooth, object_of(200, 30, 15, 40000), false};
    const content maze = {"maze", fill_maze, object_of(550, 40, 30, 9000), true};
    int failed = 0;

    for (int64_t slices : {131, 261, 576}) {
        failed += run_case(bench, &vessels, {512, 512, slices}, {256, 256, 2});
        failed += run_case(bench, &smooth, {512, 512, slices}, {256, 256, slices / 2});
    }
    return failed + run_case(bench, &maze, {256, 256, 256}, {0, 0, 0});
}
