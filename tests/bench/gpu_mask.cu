/*
 * gpu_mask.cu - the cases mask/... on the GPU alone: from bits to bits on the device, one kernel after the other.
 * Results are compared with the CPU's.
 */
#include "kernels/mask/mask_cuda.cuh"
#include "tests/bench/gpu_bench.cuh"
#include "tests/bench/mask_cases.h"

#include <cstdio>
#include <cstdlib>
#include <string>

static void
mask_must(int rc, const struct error *error)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s\n", error->message);
    exit(EXIT_FAILURE);
}

/* A lane with a volume of bytes, 1 inside the case's content, and the same content as mask 0. */
struct mask_lane {
    kernels_device *device = nullptr;
    kernels_lane *lane = nullptr;
    kernels_mask_result begun = {};

    mask_lane(const char *backend, const mask_case *chosen, const std::vector<uint8_t> &in)
    {
        const kernels_device_options options = {backend, nullptr, 0};
        const kernels_mask_demand masks = mask_case_demand(chosen);
        const image_range one = {1, 1};
        kernels_mask_request request = {};
        kernels_demand demand = {};
        struct error error = {};
        void *voxels;

        demand.of[KERNELS_MASK] = &masks;
        request.ranges = &one;
        request.range_count = 1;
        request.padding = {1, 0};
        mask_must(kernels_device_open(&options, &device, &error), &error);
        mask_must(kernels_lane_open(device, &lane, &error), &error);
        mask_must(kernels_volume_begin(lane, chosen->extent, IMAGE_UINT8, &demand, &voxels, &error), &error);
        std::copy(in.begin(), in.end(), (uint8_t *)voxels);
        mask_must(kernels_volume_ready(lane, 0, chosen->extent.slices, &error), &error);
        mask_must(kernels_mask_run(lane, 0, &request, &begun, &error), &error);
    }

    ~mask_lane()
    {
        kernels_lane_close(lane);
        kernels_device_close(device);
    }

    kernels_mask_result run(const mask_case *chosen)
    {
        kernels_mask_request request = {};
        kernels_mask_result result;
        struct error error = {};

        request.found = begun.mask.bits;
        request.steps = chosen->steps;
        request.step_count = chosen->count;
        mask_must(kernels_mask_run(lane, 1, &request, &result, &error), &error);
        return result;
    }
};

static int64_t
mask_mismatches(const mask_case *chosen, const kernels_mask_result &a, const kernels_mask_result &b)
{
    const int64_t words = mask_case_floor(chosen->extent) / 16;
    int64_t differ = 0;

    for (int64_t i = 0; i < words; i++)
        differ += __builtin_popcountll(a.mask.bits[i] ^ b.mask.bits[i]);
    return differ;
}

/* Times the steps of a case on the device, as mask_cuda.cu queues them. */
static int
time_case(const gpu_bench *bench, const mask_case *chosen)
{
    const size_t voxels = (size_t)image_voxels(&chosen->extent);
    std::vector<uint8_t> in(voxels);

    mask_case_draw(chosen->content, chosen->extent, in.data());
    mask_lane gpu("cuda", chosen, in), cpu("cpu", chosen, in);
    const int64_t differ = mask_mismatches(chosen, gpu.run(chosen), cpu.run(chosen));
    cuda_lane *lane = cuda_lane_of(gpu.lane);
    struct error error = {};
    const size_t floor = (size_t)mask_case_floor(chosen->extent);
    const std::string name = std::string(chosen->name) + "-resident";
    const double median = gpu_bench_median_ms(bench, lane->work, [&](cudaStream_t) {
        mask_must(cuda_mask_queue(gpu.lane, 0, 1, chosen->steps, chosen->count, &error), &error);
    });
    const gpu_bench_result result = {
        name.c_str(), floor, median, gpu_bench_read_ms(bench, lane->work, lane->device_voxels, floor), 0, 0, differ};

    gpu_bench_report(bench, &result);
    return differ > 0;
}

/* Times the conversion of bytes to bits. */
static int
time_range(const gpu_bench *bench)
{
    const char *name = "mask/range-512-resident";
    const mask_case *chosen = &mask_cases[mask_case_count - 1];
    const size_t voxels = (size_t)image_voxels(&chosen->extent);
    const mask_grid grid = {512, 512, 512, 8, INT64_C(8) * 512 * 512, ~UINT64_C(0), 0};
    const mask_pass one = {1, {1}, {0}};
    std::vector<uint8_t> in(voxels);
    std::vector<uint64_t> found((size_t)grid.words);
    int64_t differ = 0;
    mask_pass *pass;
    uint64_t *bits;

    if (!gpu_bench_wants(bench, name))
        return 0;
    mask_case_draw(chosen->content, chosen->extent, in.data());
    mask_lane gpu("cuda", chosen, in), cpu("cpu", chosen, in);
    cuda_lane *lane = cuda_lane_of(gpu.lane);

    GPU_BENCH_TRY(cudaMalloc(&pass, sizeof(*pass)));
    GPU_BENCH_TRY(cudaMalloc(&bits, found.size() * sizeof(*bits)));
    GPU_BENCH_TRY(cudaMemcpy(pass, &one, sizeof(one), cudaMemcpyHostToDevice));
    const double median = gpu_bench_median_ms(bench, lane->work, [&](cudaStream_t stream) {
        mask_range_queue(&grid, IMAGE_UINT8, lane->device_voxels, pass, true, bits, stream);
    });
    GPU_BENCH_TRY(cudaMemcpy(found.data(), bits, found.size() * sizeof(*bits), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < found.size(); i++)
        differ += __builtin_popcountll(found[i] ^ cpu.begun.mask.bits[i]);
    const gpu_bench_result result = {
        name, voxels, median, gpu_bench_read_ms(bench, lane->work, lane->device_voxels, voxels), 0, 0, differ};

    gpu_bench_report(bench, &result);
    GPU_BENCH_TRY(cudaFree(pass));
    GPU_BENCH_TRY(cudaFree(bits));
    return differ > 0;
}

int
gpu_bench_mask(const struct gpu_bench *bench)
{
    int wrong = time_range(bench);

    for (size_t i = 0; i < mask_case_count; i++)
        if (gpu_bench_wants(bench, mask_cases[i].name) &&
            std::string(mask_cases[i].name).find("-512") != std::string::npos)
            wrong += time_case(bench, &mask_cases[i]);
    return wrong;
}
