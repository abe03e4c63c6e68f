/*
 * gpu_enclosed.cu - the cases enclosed/... on the GPU alone: directions in which a shell with holes lies, from bits to bits. Results
 * are compared with the CPU's.
 */
#include "kernels/enclosed/enclosed_cuda.cuh"
#include "tests/bench/gpu_bench.cuh"

#include <cmath>
#include <cstdio>
#include <cstdlib>

static void
enclosed_must(int rc, const struct error *error)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s\n", error->message);
    exit(EXIT_FAILURE);
}

struct enclosed_lane {
    kernels_device *device = nullptr;
    kernels_lane *lane = nullptr;

    enclosed_lane(const char *backend, const image_extent &extent)
    {
        const kernels_device_options options = {backend, nullptr, 0};
        kernels_demand demand = {};
        struct error error = {};
        void *voxels;

        demand.of[KERNELS_ENCLOSED] = &kernels_asked;
        enclosed_must(kernels_device_open(&options, &device, &error), &error);
        enclosed_must(kernels_lane_open(device, &lane, &error), &error);
        enclosed_must(kernels_volume_begin(lane, extent, IMAGE_UINT8, &demand, &voxels, &error), &error);
        enclosed_must(kernels_volume_ready(lane, 0, extent.slices, &error), &error);
    }

    ~enclosed_lane()
    {
        kernels_lane_close(lane);
        kernels_device_close(device);
    }
};

/* Draws a shell around the middle, with holes. */
static std::vector<uint64_t>
enclosed_shell(const image_extent &extent)
{
    const int64_t words = (extent.columns - 1) / 64 + 1;
    std::vector<uint64_t> bits((size_t)(words * extent.rows * extent.slices));

    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 0; y < extent.rows; y++)
            for (int64_t x = 0; x < extent.columns; x++) {
                const double a = ((double)x + 0.5) / (double)extent.columns - 0.5;
                const double b = ((double)y + 0.5) / (double)extent.rows - 0.5;
                const double c = ((double)z + 0.5) / (double)extent.slices - 0.5;
                const double radius = std::sqrt(a * a + b * b + c * c);

                if (radius > 0.3 && radius < 0.33 && (x * 7 + y * 5 + z * 3) % 61 > 3)
                    bits[(size_t)((z * extent.rows + y) * words + x / 64)] |= UINT64_C(1) << x % 64;
            }
    return bits;
}

static int
enclosed_time_case(const gpu_bench *bench, const char *name, const image_extent &extent, double mm,
                   enclosed_directions directions)
{
    const enclosed_lane gpu("cuda", extent), cpu("cpu", extent);
    const std::vector<uint64_t> mask = enclosed_shell(extent);
    std::vector<uint64_t> ours(mask.size()), theirs(mask.size());
    cuda_lane *lane = cuda_lane_of(gpu.lane);
    const size_t bytes = 8 * mask.size();
    struct error error = {};
    enclosed_plan plan;

    enclosed_request request = {mask.data(), directions,   directions == ENCLOSED_26 ? 22 : 13,
                                220,         {mm, mm, mm}, theirs.data()};
    enclosed_must(enclosed_run(cpu.lane, &request, &error), &error);
    request.bits = ours.data();
    enclosed_must(enclosed_run(gpu.lane, &request, &error), &error);
    enclosed_plan_make(&request, &extent, &plan);
    const double median = gpu_bench_median_ms(
        bench, lane->work, [&](cudaStream_t) { enclosed_must(cuda_enclosed_queue(lane, &plan, &error), &error); });
    const gpu_bench_result result = {
        name, 2 * bytes, median,        gpu_bench_read_ms(bench, lane->work, lane->device_voxels, bytes),
        0,    0,         ours != theirs};

    gpu_bench_report(bench, &result);
    return ours != theirs;
}

int
gpu_bench_enclosed(const struct gpu_bench *bench)
{
    static const struct {
        const char *name;
        image_extent extent;
        double mm;
        enclosed_directions directions;
    } cases[] = {{"enclosed/26-head-2mm", {128, 128, 80}, 2, ENCLOSED_26},
                 {"enclosed/26-chest-2mm", {180, 180, 140}, 2, ENCLOSED_26},
                 {"enclosed/axial-16-chest-2mm", {180, 180, 140}, 2, ENCLOSED_AXIAL_16},
                 {"enclosed/26-whole-1mm", {512, 512, 300}, 1, ENCLOSED_26},
                 {"enclosed/axial-16-whole-1mm", {512, 512, 300}, 1, ENCLOSED_AXIAL_16}};

    int wrong = 0;

    for (const auto &each : cases)
        if (gpu_bench_wants(bench, each.name))
            wrong += enclosed_time_case(bench, each.name, each.extent, each.mm, each.directions);
    return wrong;
}
