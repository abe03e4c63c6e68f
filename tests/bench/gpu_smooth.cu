/*
 * gpu_smooth.cu - the cases coarse/... and smooth/... on the GPU alone: mean values of blocks of a resident volume of
 * 512x512x300 int16, and ranges of Gaussian-filtered values of it and of a grid of 2 mm. Results are compared with the
 * CPU's.
 */
#include "kernels/coarse/coarse_cuda.cuh"
#include "kernels/smooth/smooth_cuda.cuh"
#include "tests/bench/gpu_bench.cuh"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static void
smooth_must(int rc, const struct error *error)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s\n", error->message);
    exit(EXIT_FAILURE);
}

struct smooth_lane {
    kernels_device *device = nullptr;
    kernels_lane *lane = nullptr;

    smooth_lane(const char *backend, const image_extent &extent, const smooth_demand &wanted)
    {
        const kernels_device_options options = {backend, nullptr, 0};
        kernels_demand demand = {};
        struct error error = {};
        void *voxels;
        uint64_t state = 1;

        demand.of[KERNELS_COARSE] = &kernels_asked;
        demand.of[KERNELS_SMOOTH] = &wanted;
        smooth_must(kernels_device_open(&options, &device, &error), &error);
        smooth_must(kernels_lane_open(device, &lane, &error), &error);
        smooth_must(kernels_volume_begin(lane, extent, IMAGE_INT16, &demand, &voxels, &error), &error);
        for (int64_t i = 0; i < image_voxels(&extent); i++) { /* a slow wave and noise */
            state = state * UINT64_C(6364136223846793005) + 1;
            ((int16_t *)voxels)[i] = (int16_t)(900 * std::sin((double)(i % 100003) * 0.002) + (double)(state >> 55));
        }
        smooth_must(kernels_volume_ready(lane, 0, extent.slices, &error), &error);
    }

    ~smooth_lane()
    {
        kernels_lane_close(lane);
        kernels_device_close(device);
    }
};

/* Times `queue` and prints the case. */
template <typename Queue>
static int
smooth_report(const gpu_bench *bench, const char *name, cuda_lane *lane, size_t results, int64_t differ,
              const Queue &queue)
{
    const size_t volume = 2 * (size_t)image_voxels(&lane->base.extent);
    struct error error = {};
    const double median =
        gpu_bench_median_ms(bench, lane->work, [&](cudaStream_t) { smooth_must(queue(&error), &error); });
    const gpu_bench_result result = {
        name,  volume + results, median, gpu_bench_read_ms(bench, lane->work, lane->device_voxels, volume), 0, 0,
        differ};

    gpu_bench_report(bench, &result);
    return differ > 0;
}

static int
coarse_time_case(const gpu_bench *bench, const char *name, const image_extent &extent, const double spacing[3])
{
    const smooth_lane gpu("cuda", extent, {{1, 1, 1}, 0}), cpu("cpu", extent, {{1, 1, 1}, 0});
    coarse_request request = {};
    struct error error = {};

    coarse_grid_find(extent, spacing, 2, &request.grid);
    request.lo = -1024;
    request.hi = 3071;
    request.scale = 8;
    request.padding = {-2000, -2000};
    const size_t count = (size_t)image_voxels(&request.grid.extent);
    std::vector<int16_t> ours(count), theirs(count);
    request.blocks = theirs.data();
    smooth_must(coarse_run(cpu.lane, &request, &error), &error);
    request.blocks = ours.data();
    smooth_must(coarse_run(gpu.lane, &request, &error), &error);
    return smooth_report(bench, name, cuda_lane_of(gpu.lane), 2 * count, ours != theirs,
                         [&](struct error *queue_error) {
                             int16_t *blocks;

                             return cuda_coarse_queue(cuda_lane_of(gpu.lane), &request, &blocks, queue_error);
                         });
}

static int
smooth_time_case(const gpu_bench *bench, const char *name, const image_extent &extent, const smooth_demand &demand,
                 bool counts)
{
    const smooth_lane gpu("cuda", extent, demand), cpu("cpu", extent, demand);
    const size_t words = (size_t)((extent.columns + 63) / 64 * extent.rows * extent.slices);
    std::vector<uint64_t> bits[2], bins[2];
    smooth_request request = {};
    struct error error = {};
    smooth_plan plan = {};

    request.sigma_mm = demand.sigma_mm;
    request.lo = -1024;
    request.hi = 3071;
    request.padding = {1, 0};
    request.range = {-10, 250};
    request.bins = 1024;
    request.first = -512;
    request.width = 1;
    for (int i = 0; i < 2; i++) {
        bits[i].resize(words);
        bins[i].resize(1024);
        request.bits = bits[i].data();
        request.histogram = counts ? bins[i].data() : NULL;
        smooth_must(smooth_run(i == 0 ? cpu.lane : gpu.lane, &request, &error), &error);
    }
    smooth_plan_make(gpu.lane, &request, &plan);
    return smooth_report(
        bench, name, cuda_lane_of(gpu.lane), 8 * words, bits[0] != bits[1] || bins[0] != bins[1],
        [&](struct error *queue_error) { return cuda_smooth_queue(cuda_lane_of(gpu.lane), &plan, queue_error); });
}

int
gpu_bench_smooth(const struct gpu_bench *bench)
{
    static const image_extent whole = {512, 512, 300}, grid = {256, 256, 150};
    static const double even[3] = {0.98, 0.98, 1}, thick[3] = {0.7, 0.7, 2.5};

    static const struct {
        const char *name;
        const image_extent &extent;
        smooth_demand demand;
        bool counts;
    } cases[] = {
        {"smooth/1mm-resident", whole, {{0.98, 0.98, 1}, 1}, false},
        {"smooth/0.7mm-thick-resident", whole, {{0.7, 0.7, 2.5}, 0.7}, false},
        {"smooth/2mm-on-2mm-resident", grid, {{1.96, 1.96, 2}, 2}, false},
        {"smooth/3mm-on-2mm-resident", grid, {{1.96, 1.96, 2}, 3}, false},
        {"smooth/3mm-on-2mm-counted-resident", grid, {{1.96, 1.96, 2}, 3}, true},
    };

    int wrong = 0;

    if (gpu_bench_wants(bench, "coarse/2x2x2-resident"))
        wrong += coarse_time_case(bench, "coarse/2x2x2-resident", whole, even);
    if (gpu_bench_wants(bench, "coarse/3x3x1-resident"))
        wrong += coarse_time_case(bench, "coarse/3x3x1-resident", whole, thick);
    for (const auto &chosen : cases)
        if (gpu_bench_wants(bench, chosen.name))
            wrong += smooth_time_case(bench, chosen.name, chosen.extent, chosen.demand, chosen.counts);
    return wrong;
}
