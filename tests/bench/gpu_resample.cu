/*
 * gpu_resample.cu - the cases resample/... on the GPU alone. A resident volume of 512x512x300 int16 at 0.8 x 0.8 x
 * 2.5 mm is resampled to 1 mm, and a tilted stack is straightened. Results are compared with the CPU's. The bytes are
 * one read of the volume and one write of the grid.
 */
#include "kernels/resample/resample_cuda.cuh"
#include "tests/bench/gpu_bench.cuh"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

static void
resample_must(int rc, const struct error *error)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s\n", error->message);
    exit(EXIT_FAILURE);
}

/* Fills the volume with a slow wave and noise, some of it beyond the range of a CT. */
static void
resample_fill(const image_extent &extent, int16_t *voxels)
{
    uint64_t state = 1;

    for (int64_t i = 0; i < image_voxels(&extent); i++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        voxels[i] = (int16_t)(700 * std::sin((double)(i % 100003) * 0.002) + (double)(state >> 55));
    }
}

struct resample_planes {
    std::vector<double> origins;
    image_planes planes = {};
    resample_grid grid = {};

    resample_planes(const image_extent &extent, double step, double shear)
    {
        for (int64_t z = 0; z < extent.slices; z++) {
            origins.push_back(0);
            origins.push_back(shear * step * (double)z);
            origins.push_back(step * (double)z);
        }
        planes = {extent, {1, 0, 0, 0, 1, 0}, {0.8, 0.8}, step, origins.data()};
    }
};

struct resample_lane {
    kernels_device *device = nullptr;
    kernels_lane *lane = nullptr;
    resample_request request = {};
    std::vector<image_rescale> rescales;

    resample_lane(const char *backend, const resample_planes &planes, int order, resample_values values)
        : request{&planes.planes, &planes.grid, order, 0, nullptr, nullptr}
    {
        const kernels_device_options options = {backend, nullptr, 0};
        const resample_demand wanted = {planes.grid.extent, order, IMAGE_INT16, values};
        kernels_demand demand = {};
        struct error error = {};
        void *voxels;

        for (int64_t z = 0; z < planes.planes.extent.slices; z++)
            rescales.push_back({0.5 + 0.01 * (double)(z % 7), -3});
        request.rescales = values == RESAMPLE_RESCALED ? rescales.data() : nullptr;
        demand.of[KERNELS_RESAMPLE] = &wanted;
        resample_must(kernels_device_open(&options, &device, &error), &error);
        resample_must(kernels_lane_open(device, &lane, &error), &error);
        resample_must(kernels_volume_begin(lane, planes.planes.extent, IMAGE_INT16, &demand, &voxels, &error), &error);
        resample_fill(planes.planes.extent, (int16_t *)voxels);
        resample_must(kernels_volume_ready(lane, 0, planes.planes.extent.slices, &error), &error);
    }

    ~resample_lane()
    {
        kernels_lane_close(lane);
        kernels_device_close(device);
    }

    const void *run() const
    {
        struct error error = {};
        const void *resampled;

        resample_must(kernels_resample(lane, &request, &resampled, &error), &error);
        return resampled;
    }
};

static int
resample_time_case(const gpu_bench *bench, const char *name, const resample_planes &planes, int order,
                   resample_values values)
{
    const int64_t voxels = image_voxels(&planes.grid.extent);
    const resample_lane gpu("cuda", planes, order, values), cpu("cpu", planes, order, values);
    const void *ours = gpu.run(), *theirs = cpu.run();
    const size_t each = values == RESAMPLE_STORED ? sizeof(int16_t) : sizeof(double);
    const size_t bytes = 2 * (size_t)image_voxels(&planes.planes.extent) + each * (size_t)voxels;
    cuda_lane *lane = cuda_lane_of(gpu.lane);
    struct error error = {};
    resample_job job;
    int64_t differ = 0;

    for (int64_t i = 0; i < voxels; i++)
        differ += each == sizeof(double) ? ((const double *)ours)[i] != ((const double *)theirs)[i]
                                         : ((const int16_t *)ours)[i] != ((const int16_t *)theirs)[i];
    resample_must(cuda_resample_begin(gpu.lane, &gpu.request, &job, &error), &error);
    const double median = gpu_bench_median_ms(
        bench, lane->work, [&](cudaStream_t) { resample_must(cuda_resample_queue(gpu.lane, &job, &error), &error); });
    const gpu_bench_result result = {
        name,
        bytes,
        median,
        gpu_bench_read_ms(bench, lane->work, lane->device_voxels, 2 * (size_t)image_voxels(&planes.planes.extent)),
        0,
        0,
        differ};

    gpu_bench_report(bench, &result);
    return differ > 0;
}

int
gpu_bench_resample(const struct gpu_bench *bench)
{
    static const struct {
        const char *name;
        int order;
        double shear; /* 0: to 1 mm */
        resample_values values = RESAMPLE_STORED;
    } cases[] = {
        {"resample/nearest-1mm-resident", RESAMPLE_NEAREST, 0},
        {"resample/linear-1mm-resident", RESAMPLE_LINEAR, 0},
        {"resample/cubic-1mm-resident", RESAMPLE_CUBIC, 0},
        {"resample/linear-straight-resident", RESAMPLE_LINEAR, 0.33},
        {"resample/linear-real-1mm-resident", RESAMPLE_LINEAR, 0, RESAMPLE_REAL},
        {"resample/cubic-real-1mm-resident", RESAMPLE_CUBIC, 0, RESAMPLE_REAL},
        {"resample/linear-rescaled-1mm-resident", RESAMPLE_LINEAR, 0, RESAMPLE_RESCALED},
        {"resample/cubic-rescaled-1mm-resident", RESAMPLE_CUBIC, 0, RESAMPLE_RESCALED},
    };

    const double mm[3] = {1, 1, 1};
    int wrong = 0;

    for (const auto &chosen : cases) {
        if (!gpu_bench_wants(bench, chosen.name))
            continue;
        resample_planes planes({512, 512, chosen.shear > 0 ? 60 : 300}, 2.5, chosen.shear);

        if (chosen.shear > 0)
            resample_straight(&planes.planes, 0, &planes.grid);
        else
            resample_spaced(&planes.planes, mm, &planes.grid);
        wrong += resample_time_case(bench, chosen.name, planes, chosen.order, chosen.values);
    }
    return wrong;
}
