/*
 * gpu_voxelwise.cu - the cases voxelwise/... on the GPU: maps of features of a ball of half a million voxels in 100x100x100, with
 * windows of radius 2 and 32 grey levels, in one case 64, from host memory to host memory. Noise has the most different levels
 * per window. Each 37th voxel is compared with the CPU's.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/voxelwise/voxelwise.h"
#include "tests/bench/gpu_bench.cuh"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { VOXELWISE_BENCH_SIDE = 100, VOXELWISE_BENCH_STEP = 37 };

static void
voxelwise_must(int rc, const struct error *error)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s\n", error->message);
    exit(EXIT_FAILURE);
}

struct voxelwise_bench {
    std::vector<uint16_t> levels;
    std::vector<double> values, maps;
    std::vector<int64_t> voxels, few;
    voxelwise_request request = {};

    voxelwise_bench(bool smooth, int levels_of_noise)
    {
        const int side = VOXELWISE_BENCH_SIDE;
        uint64_t state = 1;

        for (int z = 0; z < side; z++)
            for (int y = 0; y < side; y++)
                for (int x = 0; x < side; x++) {
                    const double from[3] = {x - 49.5, y - 49.5, z - 49.5};
                    const bool in = from[0] * from[0] + from[1] * from[1] + from[2] * from[2] < 49.2 * 49.2;

                    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
                    const int noise = (int)(state >> 33) % (smooth ? 4 : levels_of_noise);
                    const int level =
                        1 +
                        (smooth ? noise + (int)(14 + 13.9 * std::sin(x / 9.0) * std::cos(y / 7.0 + z / 5.0)) : noise);

                    levels.push_back((uint16_t)(in ? level : 0));
                    values.push_back(level * 25.0 + (double)(state >> 40 & 15));
                    if (in)
                        voxels.push_back((int64_t)levels.size() - 1);
                }
        for (size_t i = 0; i < voxels.size(); i += VOXELWISE_BENCH_STEP)
            few.push_back(voxels[i]);
        request.size[0] = request.size[1] = request.size[2] = side;
        request.levels = levels.data();
        request.values = values.data();
        request.level_count = levels_of_noise;
    }
};

/* Runs the maps of some voxels on a backend. Returns the median milliseconds. */
static double
voxelwise_time(const gpu_bench *bench, const char *backend, int rounds, const voxelwise_request &request)
{
    const kernels_device_options options = {backend, nullptr, 0};
    const image_extent extent = {VOXELWISE_BENCH_SIDE, VOXELWISE_BENCH_SIDE, 1};
    kernels_device *device;
    kernels_lane *lane;
    kernels_demand demand = {};
    struct error error = {};
    void *voxels;
    std::vector<float> times;

    (void)bench;
    demand.of[KERNELS_VOXELWISE] = &kernels_asked;
    voxelwise_must(kernels_device_open(&options, &device, &error), &error);
    voxelwise_must(kernels_lane_open(device, &lane, &error), &error);
    voxelwise_must(kernels_volume_begin(lane, extent, IMAGE_UINT8, &demand, &voxels, &error), &error);
    voxelwise_must(kernels_volume_ready(lane, 0, 1, &error), &error);
    for (int round = 0; round < rounds; round++) {
        struct timespec begun, ended;

        clock_gettime(CLOCK_MONOTONIC, &begun);
        voxelwise_must(voxelwise_run(lane, &request, &error), &error);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        if (round > 0 || rounds == 1)
            times.push_back(
                (float)((double)(ended.tv_sec - begun.tv_sec) * 1e3 + (double)(ended.tv_nsec - begun.tv_nsec) / 1e6));
    }
    kernels_lane_close(lane);
    kernels_device_close(device);
    return gpu_bench_median(times);
}

static int
voxelwise_case_run(const gpu_bench *bench, const char *name, bool smooth, enum voxelwise_family family,
                   unsigned features, int levels = 32)
{
    if (!gpu_bench_wants(bench, name))
        return 0;
    voxelwise_bench own(smooth, levels);
    voxelwise_options options = {};
    voxelwise_request request = own.request;
    int64_t differ = 0;

    options.radius = 2;
    options.features[family] = features;
    request.options = &options;

    const size_t count = (size_t)voxelwise_count(&options);
    std::vector<double> all(count * own.voxels.size()), few(count * own.few.size());

    request.voxels = own.few.data();
    request.count = (int64_t)own.few.size();
    request.maps = few.data();
    request.stride = request.count;
    const double cpu = voxelwise_time(bench, "cpu", 1, request);

    request.voxels = own.voxels.data();
    request.count = (int64_t)own.voxels.size();
    request.maps = all.data();
    request.stride = request.count;
    const double median = voxelwise_time(bench, "cuda", bench->rounds + 1, request);

    for (size_t f = 0; f < count; f++)
        for (size_t i = 0; i < own.few.size(); i++)
            differ += memcmp(&few[f * own.few.size() + i], &all[f * own.voxels.size() + i * VOXELWISE_BENCH_STEP],
                             sizeof(double)) != 0;
    fprintf(bench->out,
            "{\"case\": \"%s\", \"voxels\": %zu, \"features\": %zu, \"median_ms\": %.3f, \"cpu_us_per_voxel\": %.3f, "
            "\"mismatches\": %lld}\n",
            name, own.voxels.size(), count, median, cpu * 1e3 / (double)own.few.size(), (long long)differ);
    fflush(bench->out);
    return differ > 0;
}

int
gpu_bench_voxelwise(const struct gpu_bench *bench)
{
    const unsigned mcc = 1u << VOXELWISE_glcm_MAXIMAL_CORRELATION_COEFFICIENT;

    return voxelwise_case_run(bench, "voxelwise/glcm-r2", false, VOXELWISE_FAMILY_glcm, mcc * 2 - 1) +
           voxelwise_case_run(bench, "voxelwise/glcm-r2-smooth", true, VOXELWISE_FAMILY_glcm, mcc * 2 - 1) +
           voxelwise_case_run(bench, "voxelwise/glcm-r2-64-levels", false, VOXELWISE_FAMILY_glcm, mcc * 2 - 1, 64) +
           voxelwise_case_run(bench, "voxelwise/glcm-r2-without-mcc", false, VOXELWISE_FAMILY_glcm, mcc - 1) +
           voxelwise_case_run(bench, "voxelwise/first-order-r2", false, VOXELWISE_FAMILY_first_order,
                              (1u << VOXELWISE_first_order_COUNT) - 1) +
           voxelwise_case_run(bench, "voxelwise/glrlm-r2", false, VOXELWISE_FAMILY_glrlm,
                              (1u << VOXELWISE_glrlm_COUNT) - 1) +
           voxelwise_case_run(bench, "voxelwise/glszm-r2", false, VOXELWISE_FAMILY_glszm,
                              (1u << VOXELWISE_glszm_COUNT) - 1) +
           voxelwise_case_run(bench, "voxelwise/ngldm-r2", false, VOXELWISE_FAMILY_ngldm,
                              (1u << VOXELWISE_ngldm_COUNT) - 1) +
           voxelwise_case_run(bench, "voxelwise/ngtdm-r2", false, VOXELWISE_FAMILY_ngtdm,
                              (1u << VOXELWISE_ngtdm_COUNT) - 1);
}
