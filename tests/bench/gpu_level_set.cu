/*
 * gpu_level_set.cu - the level set's cases of noctule-bench on a GPU.
 *
 * "dense" thresholds the whole volume and floods, from a volume on the device to the region's bits there. "job" is a
 * lane's whole job from pinned memory to the mask in host memory, compared with the bare upload. Spheres have the paper's sizes (radius a quarter
 * of the side). Their regions are compared with the paper's own method, voxel by voxel. All others are compared with
 * the components from level_set_unite.cu.
 */
#include "kernels/level_set/level_set_cuda.cuh"
#include "tests/bench/gpu_bench.cuh"
#include "tests/bench/trapani2018.cuh"
extern "C" {
#include "tests/kernels/ref_drive.h"
#include "tests/kernels/ref_volumes.h"
}

#include <cstdlib>
#include <string>

enum pattern {
    SPHERE,
    SERPENTINE_X,
    SERPENTINE_Y,
    SERPENTINE_Z,
    RANDOM_MAZE,
    NOISE,
};

struct sized_case {
    const char *name;
    enum pattern pattern;
    struct image_extent extent;
    double radius; /* of the initial region */
};

/* The brain has the extent of the 7T series, but contains a sphere. */
static const struct sized_case cases[] = {
    {"level-set-128-r16", SPHERE, {128, 128, 128}, 16},
    {"level-set-128-r64", SPHERE, {128, 128, 128}, 64},
    {"level-set-256-r32", SPHERE, {256, 256, 256}, 32},
    {"level-set-256-r128", SPHERE, {256, 256, 256}, 128},
    {"level-set-274x384x384-r50", SPHERE, {274, 384, 384}, 50},
    {"level-set-512-r64", SPHERE, {512, 512, 512}, 64},
    {"level-set-512-r256", SPHERE, {512, 512, 512}, 256},
    {"level-set-1024-r128", SPHERE, {1024, 1024, 1024}, 128},
    {"level-set-1024-r512", SPHERE, {1024, 1024, 1024}, 512},
    {"level-set-serpentine-x-512", SERPENTINE_X, {512, 512, 512}, 64},
    {"level-set-serpentine-y-512", SERPENTINE_Y, {512, 512, 512}, 64},
    {"level-set-serpentine-z-512", SERPENTINE_Z, {512, 512, 512}, 64},
    {"level-set-random-maze-512", RANDOM_MAZE, {512, 512, 512}, 64},
    {"level-set-noise-60-512", NOISE, {512, 512, 512}, 64},
};

enum { IN_VALUE = 100, OUT_VALUE = 0 };

/* A volume and its one label; all memory of level_set_job on the device. */
struct resident {
    struct kernels_shape sphere;
    struct image_range range;
    struct kernels_level_set_label label;
    struct level_set_job job;
    void *voxels; /* on the device */
    cudaStream_t stream, beside;
    cudaEvent_t fork, joined;
    int blocks;
    std::vector<void *> memory;
};

/* Allocates whole pieces of 16 bytes, which some kernels need. */
static void *
take(struct resident *resident, size_t bytes)
{
    void *piece;

    GPU_BENCH_TRY(cudaMalloc(&piece, (bytes + 15) / 16 * 16));
    resident->memory.push_back(piece);
    return piece;
}

static void
set_passes(struct resident *resident)
{
    struct level_set_job *job = &resident->job;
    std::vector<struct level_set_pass> passes((size_t)job->slices,
                                              level_set_make_pass(job->pixel, resident->range, {1, 0}));
    size_t bytes = passes.size() * sizeof(passes[0]);
    void *memory = take(resident, bytes);

    GPU_BENCH_TRY(cudaMemcpy(memory, passes.data(), bytes, cudaMemcpyHostToDevice));
    job->passes = (const struct level_set_pass *)memory;
}

static void
set_memory(struct resident *resident)
{
    struct level_set_job *job = &resident->job;
    size_t words = (size_t)job->tiles * TILE_WORDS;
    struct kernels_arena zeros = {};

    job->voxels = resident->voxels;
    job->range = (uint64_t *)take(resident, words * sizeof(*job->range));
    job->initial = (uint64_t *)take(resident, words * sizeof(*job->initial));
    job->inside = (uint64_t *)take(resident, (size_t)job->words * sizeof(*job->inside));
    job->inbox = (uint32_t *)take(resident, (size_t)job->tiles * INBOX_WORDS * sizeof(*job->inbox));
    job->parent = (uint32_t *)take(resident, (words * 32 + 1) * sizeof(*job->parent));
    job->first_node = (uint32_t *)take(resident, words * sizeof(*job->first_node));
    level_set_place_zeros(job, &zeros);
    zeros = {(unsigned char *)take(resident, zeros.used), 0, false};
    level_set_place_zeros(job, &zeros);
}

static void
fill_pattern(const struct sized_case *given, uint8_t *in)
{
    switch (given->pattern) {
    case SPHERE:
        ref_sphere(given->extent, (double)given->extent.columns / 4, in);
        break;
    case SERPENTINE_X:
    case SERPENTINE_Y:
    case SERPENTINE_Z:
        ref_serpentine(given->extent, given->pattern - SERPENTINE_X, in);
        break;
    case RANDOM_MAZE:
        ref_random_maze(given->extent, 1, in);
        break;
    case NOISE:
        ref_noise(given->extent, 0.6, 1, in);
        break;
    }
}

static void
open_resident(struct resident *resident, const struct sized_case *given, const void *voxels)
{
    const struct image_extent *extent = &given->extent;
    size_t bytes = (size_t)ref_voxels(*extent) * sizeof(int16_t);

    resident->sphere = {KERNELS_SPHERE,
                        {(double)(extent->columns / 2), (double)(extent->rows / 2), (double)(extent->slices / 2)},
                        {given->radius, 0, 0}};
    resident->range = {IN_VALUE, IN_VALUE};
    resident->label = {&resident->sphere, 1, &resident->range, 1, {1, 0}, NULL, NULL, 0, false};
    resident->voxels = take(resident, bytes);
    GPU_BENCH_TRY(cudaMemcpy(resident->voxels, voxels, bytes, cudaMemcpyHostToDevice));
    level_set_measure(&resident->job, *extent, IMAGE_INT16, 1);
    set_passes(resident);
    set_memory(resident);
    GPU_BENCH_TRY(level_set_blocks(&resident->blocks));
    GPU_BENCH_TRY(cudaStreamCreateWithFlags(&resident->stream, cudaStreamNonBlocking));
    GPU_BENCH_TRY(cudaStreamCreateWithFlags(&resident->beside, cudaStreamNonBlocking));
    GPU_BENCH_TRY(cudaEventCreateWithFlags(&resident->fork, cudaEventDisableTiming));
    GPU_BENCH_TRY(cudaEventCreateWithFlags(&resident->joined, cudaEventDisableTiming));
}

static void
close_resident(struct resident *resident)
{
    for (void *piece : resident->memory)
        GPU_BENCH_TRY(cudaFree(piece));
    GPU_BENCH_TRY(cudaStreamDestroy(resident->stream));
    GPU_BENCH_TRY(cudaStreamDestroy(resident->beside));
    GPU_BENCH_TRY(cudaEventDestroy(resident->fork));
    GPU_BENCH_TRY(cudaEventDestroy(resident->joined));
}

/* Queues the flood until its end or stop. Both kernels of stage 1 run concurrently. */
static void
queue_flood(const struct resident *resident, cudaStream_t stream)
{
    const struct level_set_job *job = &resident->job;
    cudaStream_t beside = resident->beside;

    GPU_BENCH_TRY(cudaEventRecord(resident->fork, stream));
    GPU_BENCH_TRY(cudaStreamWaitEvent(beside, resident->fork, 0));
    level_set_begin(job, true, beside);
    GPU_BENCH_TRY(level_set_draw(job, 0, &resident->label, beside));
    GPU_BENCH_TRY(cudaEventRecord(resident->joined, beside));
    level_set_pack(job, 0, job->slices, stream);
    GPU_BENCH_TRY(cudaStreamWaitEvent(stream, resident->joined, 0));
    GPU_BENCH_TRY(level_set_flood(job, resident->blocks, level_set_budget(job), stream));
}

/* Runs the stages like a job: the host checks whether the flood was stopped. */
static void
segment(const struct resident *resident, bool may_stop, cudaStream_t stream)
{
    const struct level_set_job *job = &resident->job;
    struct level_set_counts counts;

    queue_flood(resident, stream);
    if (!may_stop)
        return;
    GPU_BENCH_TRY(cudaMemcpyAsync(&counts, job->counts, sizeof(counts), cudaMemcpyDeviceToHost, stream));
    GPU_BENCH_TRY(cudaStreamSynchronize(stream));
    if (counts.stopped)
        GPU_BENCH_TRY(level_set_unite(job, 0, stream));
}

static bool
was_stopped(const struct resident *resident)
{
    struct level_set_counts counts;

    GPU_BENCH_TRY(cudaMemcpy(&counts, resident->job.counts, sizeof(counts), cudaMemcpyDeviceToHost));
    return counts.stopped != 0;
}

static std::vector<uint64_t>
fetch_region(const struct resident *resident)
{
    std::vector<uint64_t> region((size_t)resident->job.words);

    GPU_BENCH_TRY(
        cudaMemcpy(region.data(), resident->job.inside, region.size() * sizeof(region[0]), cudaMemcpyDeviceToHost));
    return region;
}

static int64_t
count_differing(const uint64_t *a, const std::vector<uint64_t> &b)
{
    int64_t differing = 0;

    for (size_t i = 0; i < b.size(); i++)
        differing += __builtin_popcountll(a[i] ^ b[i]);
    return differing;
}

/* Runs the paper's method. Returns its time and the region of its codes. */
static double
time_paper(const struct gpu_bench *bench, const struct resident *resident, std::vector<uint64_t> *region)
{
    const struct level_set_job *job = &resident->job;
    const struct image_extent extent = {job->columns, job->rows, job->slices};
    size_t count = (size_t)ref_voxels(extent);
    struct gpu_bench few = *bench;
    std::vector<int8_t> codes(count);
    struct trapani2018 paper = {extent, job->pixel, resident->voxels, resident->range, resident->sphere, NULL,
                                NULL,   NULL};

    few.rounds = bench->rounds < 3 ? bench->rounds : 3;
    GPU_BENCH_TRY(cudaMalloc(&paper.states, count));
    GPU_BENCH_TRY(cudaMalloc(&paper.active, trapani2018_blocks(extent)));
    GPU_BENCH_TRY(cudaHostAlloc(&paper.changed, sizeof(*paper.changed), cudaHostAllocMapped));
    double milliseconds =
        gpu_bench_median_ms(&few, resident->stream, [&](cudaStream_t stream) { trapani2018_run(&paper, stream); });
    GPU_BENCH_TRY(cudaMemcpy(codes.data(), paper.states, count, cudaMemcpyDeviceToHost));
    GPU_BENCH_TRY(cudaFree(paper.states));
    GPU_BENCH_TRY(cudaFree(paper.active));
    GPU_BENCH_TRY(cudaFreeHost(paper.changed));
    region->assign((size_t)job->words, 0);
    for (size_t i = 0; i < count; i++) {
        size_t row = i / (size_t)job->columns, x = i % (size_t)job->columns;
        (*region)[row * (size_t)job->words_per_row + x / 64] |= (uint64_t)(codes[i] > 0) << x % 64;
    }
    return milliseconds;
}

static int
time_resident(const struct gpu_bench *bench, const struct resident *resident, struct gpu_bench_result result,
              const std::vector<uint64_t> &expected)
{
    const std::string name = std::string(result.name) + "-dense";

    queue_flood(resident, resident->stream);
    GPU_BENCH_TRY(cudaStreamSynchronize(resident->stream));
    const bool may_stop = was_stopped(resident);
    result.name = name.c_str();
    result.median_ms =
        gpu_bench_median_ms(bench, resident->stream, [&](cudaStream_t stream) { segment(resident, may_stop, stream); });
    result.mismatches = count_differing(fetch_region(resident).data(), expected);
    gpu_bench_report(bench, &result);
    return result.mismatches != 0;
}

/* Times a job from pinned memory to the mask in host memory, without decoding: the slices are in memory. */
static double
time_job(const struct gpu_bench *bench, struct kernels_lane *lane, const struct resident *resident, const void *voxels,
         struct image_mask *mask)
{
    const struct level_set_job *job = &resident->job;
    const struct image_extent extent = {job->columns, job->rows, job->slices};
    const struct kernels_level_set_demand one = {1};
    struct kernels_demand demand = {};
    std::vector<float> times;

    demand.of[KERNELS_LEVEL_SET] = &one;
    for (int round = 0; round < bench->rounds + 2; round++) {
        void *memory;

        if (kernels_volume_begin(lane, extent, job->pixel, &demand, &memory, NULL))
            return 0;
        if (round == 0)
            memcpy(memory, voxels, (size_t)ref_voxels(extent) * sizeof(int16_t));
        double begun = ref_clock();
        if (kernels_level_set_begin(lane, &resident->label, 1, NULL) ||
            kernels_volume_ready(lane, 0, extent.slices, NULL) ||
            kernels_level_set_run(lane, &resident->label, 1, mask, NULL))
            return 0;
        if (round > 1)
            times.push_back((float)((ref_clock() - begun) * 1e3));
    }
    return gpu_bench_median(times);
}

static int
report_job(const struct gpu_bench *bench, const struct resident *resident, const void *voxels,
           struct gpu_bench_result result, const std::vector<uint64_t> &expected)
{
    const struct kernels_device_options options = {"cuda", NULL, 0};
    const std::string name = std::string(result.name) + "-job";
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct image_mask mask;

    result.name = name.c_str();
    if (kernels_device_open(&options, &device, NULL))
        return 1;
    if (kernels_lane_open(device, &lane, NULL)) {
        kernels_device_close(device);
        return 1;
    }
    result.median_ms = time_job(bench, lane, resident, voxels, &mask);
    result.mismatches = result.median_ms > 0 ? count_differing(mask.bits, expected) : -1;
    kernels_lane_close(lane);
    kernels_device_close(device);
    if (result.median_ms > 0)
        gpu_bench_report(bench, &result);
    return result.mismatches != 0;
}

/* Finds the region by components, without a flood, because the union would begin with its region. */
static std::vector<uint64_t>
unite_alone(const struct resident *resident)
{
    const struct level_set_job *job = &resident->job;

    level_set_begin(job, true, resident->stream);
    GPU_BENCH_TRY(level_set_draw(job, 0, &resident->label, resident->stream));
    level_set_pack(job, 0, job->slices, resident->stream);
    GPU_BENCH_TRY(level_set_unite(job, 0, resident->stream));
    GPU_BENCH_TRY(cudaStreamSynchronize(resident->stream));
    return fetch_region(resident);
}

static int
run_case(const struct gpu_bench *bench, const struct sized_case *given)
{
    size_t count = (size_t)ref_voxels(given->extent), bytes = count * sizeof(int16_t);
    std::vector<uint8_t> in(count);
    std::vector<int16_t> voxels(count);
    std::vector<uint64_t> expected;
    struct resident resident = {};
    struct gpu_bench_result result = {given->name, bytes, 0, 0, 0, 0, 0};
    int wrong;

    fill_pattern(given, in.data());
    ref_paint(IMAGE_INT16, in.data(), (int64_t)count, IN_VALUE, OUT_VALUE, voxels.data());
    open_resident(&resident, given, voxels.data());
    result.read_ms = gpu_bench_read_ms(bench, resident.stream, resident.voxels, bytes);
    if (given->pattern == SPHERE) {
        result.paper_ms = time_paper(bench, &resident, &expected);
    } else {
        expected = unite_alone(&resident);
    }
    wrong = time_resident(bench, &resident, result, expected);
    void *copy = take(&resident, bytes);
    result.upload_ms = gpu_bench_upload_ms(bench, resident.stream, copy, bytes);
    wrong += report_job(bench, &resident, voxels.data(), result, expected);
    close_resident(&resident);
    return wrong;
}

int
gpu_bench_level_set(const struct gpu_bench *bench)
{
    int wrong = 0;

    for (const struct sized_case &given : cases)
        if (gpu_bench_wants(bench, given.name))
            wrong += run_case(bench, &given);
    return wrong;
}
