/*
 * gpu_filter.cu - the cases filter/... on the GPU alone: responses to a resident volume of 512x512x512 int16, which are
 * left on the device; of image types, to doubles. Results are compared with the CPU's on a part of the volume.
 */
#include "kernels/filter/image_type_cuda.cuh"
#include "kernels/filter/separable_cuda.cuh"
#include "kernels/filter/spectral_cuda.cuh"
#include "tests/bench/gpu_bench.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static void
filter_must(int rc, const struct error *error)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s\n", error->message);
    exit(EXIT_FAILURE);
}

struct filter_lane {
    kernels_device *device = nullptr;
    kernels_lane *lane = nullptr;
    filter_demand own;
    image_type_demand image_type = {};
    const double *responses[IMAGE_TYPE_BANDS];
    int64_t count;

    filter_lane(const char *backend, const image_extent &extent, const filter_options &options)
    {
        const kernels_device_options device_options = {backend, nullptr, 0};
        kernels_demand demand = {};
        struct error error = {};
        void *voxels;
        uint64_t state = 1;

        own = {options, {1, 1, 1}, false};
        image_type.options = options;
        image_type.bands = 0xFF;
        count = image_voxels(&extent) * image_type_count(&image_type);
        for (int axis = 0; axis < 3; axis++)
            image_type.spacing[axis] = 1;
        if (filter_is_image_type(options.kind))
            demand.of[KERNELS_IMAGE_TYPE] = &image_type;
        else
            filter_demand_set(&demand, &own);
        filter_must(kernels_device_open(&device_options, &device, &error), &error);
        filter_must(kernels_lane_open(device, &lane, &error), &error);
        filter_must(kernels_volume_begin(lane, extent, IMAGE_INT16, &demand, &voxels, &error), &error);
        for (int64_t i = 0; i < image_voxels(&extent); i++) { /* noise of 12 bits */
            state = state * UINT64_C(6364136223846793005) + 1;
            ((int16_t *)voxels)[i] = (int16_t)((int32_t)(state >> 52) - 1024);
        }
        filter_must(kernels_volume_ready(lane, 0, extent.slices, &error), &error);
        if (filter_is_image_type(options.kind))
            run_image_type((const int16_t *)voxels, extent);
    }

    void run_image_type(const int16_t *voxels, const image_extent &extent)
    {
        const std::vector<double> values(voxels, voxels + image_voxels(&extent));
        const image_type_request request = {
            values.data(), 0, 0, {extent.columns, extent.rows, extent.slices}, {0, 0, 0}};
        struct error error = {};

        filter_must(image_type_run(lane, &request, responses, &error), &error);
    }

    ~filter_lane()
    {
        kernels_lane_close(lane);
        kernels_device_close(device);
    }
};

static const filter_request filter_asked = {4096, 0, {1, 0}, 0, nullptr};

/* Returns the number of codes that differ from the CPU's. */
static int64_t
filter_compare(const filter_options &options)
{
    const image_extent part = {150, 90, 70};
    const filter_lane gpu("cuda", part, options), cpu("cpu", part, options);
    const int32_t *ours, *theirs;
    struct error error = {};
    int64_t differ = 0;
    double step;

    for (int64_t i = 0; i < gpu.count && filter_is_image_type(options.kind); i++)
        differ += memcmp(&gpu.responses[0][i], &cpu.responses[0][i], sizeof(double)) != 0;
    if (filter_is_image_type(options.kind))
        return differ;
    filter_must(filter_run(gpu.lane, options.kind, &filter_asked, &ours, &step, &error), &error);
    filter_must(filter_run(cpu.lane, options.kind, &filter_asked, &theirs, &step, &error), &error);
    for (int64_t i = 0; i < image_voxels(&part); i++)
        differ += ours[i] != theirs[i];
    return differ;
}

static int
filter_time_case(const gpu_bench *bench, const char *name, const filter_options &options)
{
    const image_extent whole = {512, 512, 512};
    const int64_t differ = filter_compare(options);
    const filter_lane gpu("cuda", whole, options);
    const size_t voxels = (size_t)image_voxels(&whole);
    const bool is_image_type = filter_is_image_type(options.kind);
    const size_t volume = (is_image_type ? sizeof(double) : sizeof(int16_t)) * voxels;
    const size_t written = is_image_type ? sizeof(double) * (size_t)gpu.count : sizeof(int32_t) * voxels;
    cuda_lane *lane = cuda_lane_of(gpu.lane);
    const filter_task job = {&filter_asked, is_image_type ? 0 : filter_step(&gpu.own, filter_asked.limit), nullptr};
    struct error error = {};
    int32_t *codes;
    const double median = gpu_bench_median_ms(bench, lane->work, [&](cudaStream_t) {
        filter_must(is_image_type                 ? cuda_image_type_queue(lane, &error)
                    : options.kind < FILTER_GABOR ? cuda_separable_queue(lane, &job, &codes, &error)
                                                  : cuda_spectral_queue(lane, &job, &codes, &error),
                    &error);
    });
    const gpu_bench_result result = {
        name,   volume + written,
        median, gpu_bench_read_ms(bench, lane->work, lane->device_voxels, sizeof(int16_t) * voxels),
        0,      0,
        differ};

    gpu_bench_report(bench, &result);
    return differ > 0;
}

static filter_options
filter_laws_of(enum filter_pooling pooling, int energy)
{
    filter_options options = {};

    options.kind = FILTER_LAWS;
    options.boundary = FILTER_MIRROR;
    options.pooling = pooling;
    options.laws[0] = LAWS_E5;
    options.laws[1] = LAWS_L5;
    options.laws[2] = LAWS_S5;
    options.energy = energy;
    return options;
}

static filter_options
filter_coif1_of(enum filter_pooling pooling)
{
    filter_options options = {};

    options.kind = FILTER_WAVELET;
    options.boundary = FILTER_MIRROR;
    options.pooling = pooling;
    options.wavelet = WAVELET_COIF1;
    options.level = 1;
    options.high[2] = true;
    return options;
}

static filter_options
filter_pyradiomics_of(enum filter_kind kind)
{
    filter_options options = {};

    options.kind = kind;
    options.wavelet = WAVELET_COIF1;
    options.level = 1;
    options.sigma_mm = 3;
    options.points = 8;
    options.radius = 1;
    return options;
}

static filter_options
filter_gabor_of(enum filter_boundary boundary)
{
    filter_options options = {};

    options.kind = FILTER_GABOR;
    options.boundary = boundary;
    options.pooling = FILTER_MEAN_OF;
    options.sigma_mm = 5;
    options.gamma = 1.5;
    options.lambda_mm = 2;
    options.theta_degrees = 22.5; /* 8 angles in each of 3 planes */
    return options;
}

static filter_options
filter_simoncelli_of(int level, int riesz)
{
    filter_options options = {};

    options.kind = riesz ? FILTER_RIESZ_SIMONCELLI : FILTER_SIMONCELLI;
    options.boundary = FILTER_PERIODIC;
    options.level = level;
    options.riesz[1] = riesz;
    return options;
}

int
gpu_bench_filter(const struct gpu_bench *bench)
{
    filter_options mean = {}, log = {};
    int wrong = 0;

    mean.kind = FILTER_MEAN;
    mean.size = 15;
    log.kind = FILTER_LOG;
    log.sigma_mm = 3; /* 25 taps */
    log.boundary = FILTER_MIRROR;
    for (int boundary = 0; boundary < FILTER_BOUNDARIES; boundary++) {
        char name[48];

        mean.boundary = (enum filter_boundary)boundary;
        snprintf(name, sizeof(name), "filter/mean15-%s-resident", filter_boundary_names[boundary]);
        if (gpu_bench_wants(bench, name))
            wrong += filter_time_case(bench, name, mean);
    }

    const struct {
        const char *name;
        filter_options options;
    } cases[] = {
        {"filter/log25-resident", log},
        {"filter/coif1-band-resident", filter_coif1_of(FILTER_ONE)},
        {"filter/coif1-mean-resident", filter_coif1_of(FILTER_MEAN_OF)},
        {"filter/coif1-max-resident", filter_coif1_of(FILTER_MAX)},
        {"filter/laws5-max-resident", filter_laws_of(FILTER_MAX, 0)},
        {"filter/laws5-max-energy15-resident", filter_laws_of(FILTER_MAX, 15)},
        {"filter/gabor8x3-periodic-resident", filter_gabor_of(FILTER_PERIODIC)},
        {"filter/gabor8x3-mirror-resident", filter_gabor_of(FILTER_MIRROR)},
        {"filter/simoncelli1-resident", filter_simoncelli_of(1, 0)},
        {"filter/simoncelli2-resident", filter_simoncelli_of(2, 0)},
        {"filter/riesz-simoncelli1-resident", filter_simoncelli_of(1, 2)},
        {"filter/pyradiomics-coif1-bands-resident", filter_pyradiomics_of(FILTER_PYRADIOMICS_WAVELET)},
        {"filter/pyradiomics-log-resident", filter_pyradiomics_of(FILTER_PYRADIOMICS_LOG)},
        {"filter/pyradiomics-gradient-resident", filter_pyradiomics_of(FILTER_PYRADIOMICS_GRADIENT)},
        {"filter/pyradiomics-lbp-2d-resident", filter_pyradiomics_of(FILTER_PYRADIOMICS_LBP_2D)},
    };

    for (const auto &chosen : cases)
        if (gpu_bench_wants(bench, chosen.name))
            wrong += filter_time_case(bench, chosen.name, chosen.options);
    return wrong;
}
