/*
 * gpu_picture.cu - the cases picture/... on the GPU: all texture of one 2-D picture of 16384 x 16384 (the largest of
 * Hong 2018) with 16-bit values. Statistics of the values, the GLCM of 32 levels in four directions with its features,
 * and the histograms of LBP, TLBAP and LANADP.
 *
 * The time of picture/CONTENT/SIZE runs from the start of the job, with the values in pinned memory, to the features on the
 * host. It includes the upload, so that ratio_to_upload compares it with the upload alone. The cases below that name time
 * the steps with the picture on the GPU. All results are compared with those of the CPU.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/features/discretise.h"
#include "kernels/features/family.h"
#include "kernels/texture/texture.h"
#include "tests/bench/gpu_bench.cuh"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

static const int64_t PICTURE_EDGE = 16384;
static const size_t PICTURE_VALUES = 65536;

static void
picture_must(int rc, const struct error &error)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s\n", error.message);
    exit(EXIT_FAILURE);
}

/* Values of 12 bits: waves with noise of 6 bits, or noise alone. */
static void
picture_fill(bool rough, uint16_t *voxels)
{
    std::vector<float> of_column;
    uint64_t state = 1;

    for (int64_t x = 0; x < PICTURE_EDGE; x++)
        of_column.push_back(2000 + 1200 * std::sin((float)x * 0.002f));
    for (int64_t y = 0; y < PICTURE_EDGE; y++) {
        const float of_row = 700 * std::cos((float)y * 0.0017f);

        for (int64_t x = 0; x < PICTURE_EDGE; x++) {
            state = state * UINT64_C(6364136223846793005) + 1;
            *voxels++ = (uint16_t)(rough ? state >> 52 : (uint64_t)(of_column[(size_t)x] + of_row) + (state >> 58));
        }
    }
}

struct picture_options {
    int distance = 1;
    glcm_options glcm = {};
    texture_options texture = {};

    picture_options()
    {
        glcm.aggregation = AGGREGATION_2D_SLICE_MERGED;
        glcm.symmetric = true;
        glcm.distances = &distance;
        glcm.distance_count = 1;
        texture.levels.kind = DISCRETISATION_FIXED_BIN_NUMBER;
        texture.levels.levels = 32;
        texture.first_order = true;
        texture.glcm = &glcm;
        texture.patterns = (1u << TEXTURE_PATTERNS) - 1;
        texture.tlbap_threshold = 0.9;
    }
};

/* A lane with the picture, and the results of its last run. */
struct picture {
    const picture_options options;
    const image_rescale as_stored = {1, 0};
    const image_range no_padding = {1, 0};
    const uint64_t *whole = nullptr;
    kernels_device *device = nullptr;
    kernels_lane *lane = nullptr;
    void *voxels = nullptr;
    feature_volume volume = {};
    feature_region region = {};
    std::vector<uint64_t> patterns, histogram;
    std::vector<uint16_t> level_of;
    std::vector<feature_value> first_order, glcm;

    picture(const char *backend)
        : patterns((size_t)TEXTURE_PATTERNS * 256), histogram(PICTURE_VALUES), level_of(PICTURE_VALUES)
    {
        const kernels_device_options chosen = {backend, nullptr, 0};
        struct error error = {};

        volume.options = &options.texture;
        volume.columns = volume.rows = PICTURE_EDGE;
        volume.slices = 1;
        volume.spacing[0] = volume.spacing[1] = volume.spacing[2] = 1;
        volume.tables = 1;
        volume.values = PICTURE_VALUES;
        volume.rescales = &as_stored;
        volume.paddings = &no_padding;
        volume.regions = &whole;
        volume.region_count = 1;
        region.volume = &volume;
        region.prepared = patterns.data();
        region.histograms = histogram.data();
        region.level_of = level_of.data();
        picture_must(kernels_device_open(&chosen, &device, &error), error);
        picture_must(kernels_lane_open(device, &lane, &error), error);
        volume.lane = lane;
    }

    ~picture()
    {
        kernels_lane_close(lane);
        kernels_device_close(device);
    }

    picture(const picture &) = delete;
    picture &operator=(const picture &) = delete;

    void begin()
    {
        kernels_demand demand = {};
        struct error error = {};

        demand.of[KERNELS_GLCM] = demand.of[KERNELS_HISTOGRAM] = &kernels_asked;
        demand.of[KERNELS_PATTERNS] = &texture_patterns_demands[0];
        picture_must(
            kernels_volume_begin(lane, {PICTURE_EDGE, PICTURE_EDGE, 1}, IMAGE_UINT16, &demand, &voxels, &error), error);
    }

    void upload()
    {
        struct error error = {};

        picture_must(kernels_volume_ready(lane, 0, 1, &error), error);
    }

    void count_patterns()
    {
        struct error error = {};

        picture_must(family_patterns.prepare(&volume, patterns.data(), nullptr, &error), error);
    }

    void count_values()
    {
        struct error error = {};

        picture_must(texture_histogram_run(lane, nullptr, false, histogram.data(), &error), error);
    }

    void make_levels()
    {
        size_t first = 0, last = PICTURE_VALUES - 1;

        while (histogram[first] == 0)
            first++;
        while (histogram[last] == 0)
            last--;
        region.extremes[0] = (double)first;
        region.extremes[1] = (double)last;
        picture_must(discretise(&options.texture.levels, &as_stored, 1, PICTURE_VALUES, 0, (double)first, (double)last,
                                level_of.data(), &region.levels),
                     {});
    }

    void measure(const feature_family &family, std::vector<feature_value> &values)
    {
        uint64_t *counts = nullptr;
        struct error error = {};

        values.assign(family.definition_count, {});
        picture_must(family.count ? family.count(&region, 0, &counts, &error) : 0, error);
        picture_must(family.values(&region, 0, counts, values.data()), error);
        free(counts);
    }

    /* Measures in the order of a job, with a thread per family. */
    void texture()
    {
        count_patterns();
        count_values();
        make_levels();
        std::thread other([this] { measure(family_first_order, first_order); });
        measure(family_glcm, glcm);
        other.join();
    }
};

static int64_t
picture_differences(const picture &a, const picture &b)
{
    int64_t wrong = 0;

    for (size_t i = 0; i < PICTURE_VALUES; i++)
        wrong += a.histogram[i] != b.histogram[i];
    for (size_t i = 0; i < a.patterns.size(); i++)
        wrong += a.patterns[i] != b.patterns[i];
    for (size_t i = 0; i < a.first_order.size(); i++)
        wrong += a.first_order[i].value != b.first_order[i].value;
    for (size_t i = 0; i < a.glcm.size(); i++)
        wrong += a.glcm[i].value != b.glcm[i].value;
    return wrong;
}

template <typename Prepare, typename Run>
static double
picture_median_ms(const gpu_bench *bench, const Prepare &prepare, const Run &run)
{
    std::vector<float> times;

    for (int round = -1; round < bench->rounds; round++) {
        prepare();
        const auto begun = std::chrono::steady_clock::now();
        run();
        if (round >= 0)
            times.push_back(std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - begun).count());
    }
    return gpu_bench_median(times);
}

static int
picture_run(const gpu_bench *bench, bool rough)
{
    const std::string name = std::string("picture/") + (rough ? "rough/" : "smooth/") + std::to_string(PICTURE_EDGE);
    const size_t bytes = (size_t)(PICTURE_EDGE * PICTURE_EDGE) * sizeof(uint16_t);

    if (!gpu_bench_wants(bench, name.c_str()))
        return 0;
    picture gpu("cuda"), cpu("cpu");
    gpu.begin();
    picture_fill(rough, (uint16_t *)gpu.voxels);
    cuda_lane *lane = cuda_lane_of(gpu.lane);
    const double upload_ms = gpu_bench_upload_ms(bench, lane->work, lane->device_voxels, bytes);
    const double read_ms = gpu_bench_read_ms(bench, lane->work, lane->device_voxels, bytes);
    const double whole_ms = picture_median_ms(
        bench, [] {},
        [&] {
            gpu.begin();
            gpu.upload();
            gpu.texture();
        });

    cpu.begin();
    std::copy_n((const uint16_t *)gpu.voxels, bytes / sizeof(uint16_t), (uint16_t *)cpu.voxels);
    cpu.upload();
    cpu.texture();
    const int64_t wrong = picture_differences(gpu, cpu);
    const auto report = [&](const std::string &of, double median_ms, int64_t mismatches) {
        const gpu_bench_result result = {of.c_str(), bytes, median_ms, read_ms, upload_ms, 0, mismatches};

        gpu_bench_report(bench, &result);
    };
    const auto step = [&](const char *of, const std::function<void()> &run) {
        const auto settle = [&] { GPU_BENCH_TRY(cudaDeviceSynchronize()); };

        report(name + "/" + of, picture_median_ms(bench, settle, run), -1);
    };

    report(name, whole_ms, wrong);
    step("upload", [&] {
        gpu.begin();
        gpu.upload();
        GPU_BENCH_TRY(cudaStreamSynchronize(lane->upload));
    });
    step("patterns", [&] { gpu.count_patterns(); });
    step("values", [&] { gpu.count_values(); });
    step("levels", [&] { gpu.make_levels(); });
    step("first-order", [&] { gpu.measure(family_first_order, gpu.first_order); });
    step("glcm", [&] { gpu.measure(family_glcm, gpu.glcm); });
    return wrong > 0;
}

int
gpu_bench_picture(const struct gpu_bench *bench)
{
    return picture_run(bench, false) + picture_run(bench, true);
}
