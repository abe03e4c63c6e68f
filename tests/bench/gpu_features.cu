/*
 * gpu_features.cu - the cases features/... on the GPU: the counts of feature families, by operation, of a resident
 * volume of 512^3 bytes with 32 levels. The time runs from the call to the counts in host memory, so it includes
 * waits of the host. Counts are compared with the CPU's.
 *
 * Smooth: waves, whose levels form connected sheets. Noise: independent voxels, where zones of 26 neighbours are few.
 * Level: one level except at the edge, with the longest runs and the largest zone. Checker: two levels whose equal
 * voxels touch only at edges. Stored: waves and noise as int16, of which the lane holds the ball.
 */
#include "kernels/cuda/cuda.cuh"
#include "kernels/morphology/lags.h"
#include "kernels/peaks/peaks.h"
#include "kernels/texture/texture.h"
#include "tests/bench/gpu_bench.cuh"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

static const int64_t EDGE = 512;
static const int LEVELS = 32;

typedef std::vector<uint64_t> feature_counts;

static void
features_must(int rc, const struct error *error)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s\n", error->message);
    exit(EXIT_FAILURE);
}

enum features_content {
    FEATURES_SMOOTH,
    FEATURES_NOISE,
    FEATURES_LEVEL,
    FEATURES_CHECKER,
    FEATURES_STORED,
};

/* Terms of the waves: by column, by row, and by column and slice. */
struct features_waves {
    std::vector<double> of_column, of_row, of_slice;

    features_waves()
    {
        for (int64_t i = 0; i < EDGE; i++) {
            of_column.push_back(60 * std::sin((double)i * 0.031));
            of_row.push_back(std::cos((double)i * 0.027));
        }
        for (int64_t i = 0; i < EDGE * EDGE; i++)
            of_slice.push_back(60 * std::sin((double)(i / EDGE) * 0.023 + (double)(i % EDGE) * 0.011));
    }

    int at(int64_t x, int64_t y, int64_t z) const
    {
        return (int)(127.5 + of_column[(size_t)x] * of_row[(size_t)y] + of_slice[(size_t)(z * EDGE + x)]);
    }
};

static void
features_fill(enum features_content content, void *given)
{
    static const features_waves waves;
    uint8_t *voxels = (uint8_t *)given;
    uint64_t state = 1;

    for (int64_t i = 0; i < EDGE * EDGE * EDGE; i++) {
        const int64_t x = i % EDGE, y = i / EDGE % EDGE, z = i / (EDGE * EDGE);
        const bool inner = x > 0 && y > 0 && z > 0;

        state = state * UINT64_C(6364136223846793005) + 1;
        if (content == FEATURES_NOISE)
            voxels[i] = (uint8_t)(state >> 56);
        else if (content == FEATURES_LEVEL)
            voxels[i] = inner ? 100 : 0;
        else if (content == FEATURES_CHECKER)
            voxels[i] = (x + y + z) % 2 ? 200 : 100;
        else if (content == FEATURES_STORED)
            ((int16_t *)given)[i] = (int16_t)(waves.at(x, y, z) * 8 - 1024 + (int)(state >> 58));
        else
            voxels[i] = (uint8_t)waves.at(x, y, z);
    }
}

static enum image_pixel
features_pixel(enum features_content content)
{
    return content == FEATURES_STORED ? IMAGE_INT16 : IMAGE_UINT8;
}

static std::vector<uint64_t>
features_ball(int64_t radius)
{
    std::vector<uint64_t> bits((size_t)(EDGE / 64 * EDGE * EDGE));

    for (int64_t i = 0; i < EDGE * EDGE * EDGE; i++) {
        const int64_t x = i % EDGE - EDGE / 2, y = i / EDGE % EDGE - EDGE / 2, z = i / (EDGE * EDGE) - EDGE / 2;

        if (x * x + y * y + z * z < radius * radius)
            bits[(size_t)(i / 64)] |= UINT64_C(1) << i % 64;
    }
    return bits;
}

/* A lane of a backend, with memory for every operation here. */
struct features_lane {
    kernels_device *device = nullptr;
    kernels_lane *lane = nullptr;

    features_lane(const char *backend, enum features_content content)
    {
        const kernels_device_options options = {backend, nullptr, 0};
        kernels_demand demand = {};
        struct error error = {};
        void *voxels;

        for (int op : {KERNELS_REGION, KERNELS_HISTOGRAM, KERNELS_NEIGHBOURS, KERNELS_RUNS, KERNELS_ZONES,
                       KERNELS_MORPHOLOGY, KERNELS_LAGS, KERNELS_PEAKS})
            demand.of[op] = &kernels_asked;
        features_must(kernels_device_open(&options, &device, &error), &error);
        features_must(kernels_lane_open(device, &lane, &error), &error);
        features_must(kernels_volume_begin(lane, {EDGE, EDGE, EDGE}, features_pixel(content), &demand, &voxels, &error),
                      &error);
        features_fill(content, voxels);
        features_must(kernels_volume_ready(lane, 0, EDGE, &error), &error);
    }

    ~features_lane()
    {
        kernels_lane_close(lane);
        kernels_device_close(device);
    }
};

/* An operation and its counts. The arrays are those of the request and must stay the same for each call. */
struct features_case {
    std::string name;
    std::function<int(kernels_lane *lane, feature_counts *counts, struct error *error)> run;
    const uint64_t *held = nullptr; /* the region, if the lane holds it */
};

static int
features_time_case(const gpu_bench *bench, const features_lane &gpu, const features_lane &cpu,
                   const features_case &chosen)
{
    const size_t bytes = (size_t)(EDGE * EDGE * EDGE) * image_pixel_size(gpu.lane->pixel);
    cuda_lane *lane = cuda_lane_of(gpu.lane);
    feature_counts ours, theirs;
    struct error error = {};

    features_must(texture_region_hold(gpu.lane, chosen.held, &error), &error);
    features_must(chosen.run(gpu.lane, &ours, &error), &error);
    features_must(chosen.run(cpu.lane, &theirs, &error), &error);
    int64_t differ = ours.size() != theirs.size();
    for (size_t i = 0; i < ours.size() && i < theirs.size(); i++)
        differ += ours[i] != theirs[i];
    const double median = gpu_bench_median_ms(
        bench, lane->work, [&](cudaStream_t) { features_must(chosen.run(gpu.lane, &ours, &error), &error); });
    const gpu_bench_result result = {chosen.name.c_str(),
                                     bytes,
                                     median,
                                     gpu_bench_read_ms(bench, lane->work, lane->device_voxels, bytes),
                                     0,
                                     0,
                                     differ};

    gpu_bench_report(bench, &result);
    return differ > 0;
}

static std::vector<uint16_t>
features_levels()
{
    std::vector<uint16_t> table(256);

    for (int value = 0; value < 256; value++)
        table[(size_t)value] = (uint16_t)(value * LEVELS / 256 + 1);
    return table;
}

static int
features_run_zones(kernels_lane *lane, const texture_zones &zones, feature_counts *counts, struct error *error)
{
    texture_zone_list lists[TEXTURE_ZONE_KINDS] = {};
    const int rc = texture_zones_run(lane, &zones, lists, error);

    counts->clear();
    for (texture_zone_list &list : lists) {
        for (size_t i = 0; i < list.count; i++) {
            counts->push_back(list.zones[i].key);
            counts->push_back(list.zones[i].count);
        }
        free(list.zones);
    }
    return rc;
}

static int
features_run_peaks(kernels_lane *lane, const uint64_t *region, feature_counts *counts, struct error *error)
{
    static const image_rescale as_stored = {1, 0};
    static const image_range none = {1, 0};
    peaks request = {};
    peaks_found found = {};

    request.region = region;
    request.rescales = &as_stored;
    request.paddings = &none;
    request.table_count = 1;
    request.kept[1] = request.largest = 255;
    for (double &spacing : request.spacing)
        spacing = 1;
    const int rc = peaks_run(lane, &request, &found, error);

    *counts = {found.balls, (uint64_t)(found.global * 1e9)};
    return rc;
}

/* Makes the cases of a region; NULL: the volume. */
static std::vector<features_case>
features_cases(const std::string &end, const std::vector<uint16_t> &table, const uint64_t *region)
{
    static std::vector<texture_offset> directions;
    static const std::vector<uint64_t> kept(4, ~UINT64_C(0));
    const texture_levels levels = {LEVELS, table.data(), 1};
    const morphology_region shape = {region, kept.data(), 1};

    directions.clear();
    for (int i = 14; i < 27; i++)
        directions.push_back({i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1});
    const texture_neighbours neighbours = {levels, region, 1, 0, false, false};
    const texture_runs runs = {levels, region, directions.data(), directions.size(), EDGE, false};
    const texture_zones zones = {levels, region, false, false, false}, distances = {levels, region, true, false, false};
    return {
        {"features/histogram/" + end,
         [=](kernels_lane *lane, feature_counts *counts, struct error *error) {
             counts->resize(256);
             return texture_histogram_run(lane, region, false, counts->data(), error);
         }},
        {"features/neighbours/" + end,
         [=](kernels_lane *lane, feature_counts *counts, struct error *error) {
             counts->resize((size_t)(TEXTURE_NEIGHBOUR_KINDS * LEVELS) * texture_neighbours_width(&neighbours));
             return texture_neighbours_run(lane, &neighbours, counts->data(), error);
         }},
        {"features/runs/" + end,
         [=](kernels_lane *lane, feature_counts *counts, struct error *error) {
             counts->resize(texture_runs_size(&runs, EDGE));
             return texture_runs_run(lane, &runs, counts->data(), error);
         }},
        {"features/zones/" + end, [=](kernels_lane *lane, feature_counts *counts,
                                      struct error *error) { return features_run_zones(lane, zones, counts, error); }},
        {"features/distance-zones/" + end,
         [=](kernels_lane *lane, feature_counts *counts, struct error *error) {
             return features_run_zones(lane, distances, counts, error);
         }},
        {"features/morphology/" + end,
         [=](kernels_lane *lane, feature_counts *counts, struct error *error) {
             counts->resize(morphology_size(EDGE));
             return morphology_run(lane, &shape, counts->data(), error);
         }},
    };
}

/* Makes the cases that exist only for regions: balls around each voxel, and pairs of a small ball. */
static std::vector<features_case>
features_region_cases(const uint64_t *large, const uint64_t *small)
{
    static const std::vector<uint64_t> kept(4, ~UINT64_C(0));
    const lags pairs = {{small, kept.data(), 1}, 0};
    texture_box box;
    const image_extent extent = {EDGE, EDGE, EDGE};

    texture_box_of(small, &extent, &box);
    return {
        {"features/peaks/512/ball",
         [=](kernels_lane *lane, feature_counts *counts, struct error *error) {
             return features_run_peaks(lane, large, counts, error);
         }},
        {"features/lags/121/ball",
         [=](kernels_lane *lane, feature_counts *counts, struct error *error) {
             counts->resize(lags_size(&box));
             return lags_run(lane, &pairs, counts->data(), error);
         }},
    };
}

/* Makes the cases of stored values, of the volume and of a held region. */
static std::vector<features_case>
features_stored_cases(const std::string &end, const uint64_t *region)
{
    static const std::vector<uint64_t> kept((1 << 16) / 64, ~UINT64_C(0));
    const morphology_region shape = {region, kept.data(), 1};

    return {
        {"features/histogram/512/" + end,
         [=](kernels_lane *lane, feature_counts *counts, struct error *error) {
             counts->resize(1 << 16);
             return texture_histogram_run(lane, region, false, counts->data(), error);
         },
         region},
        {"features/morphology/512/" + end,
         [=](kernels_lane *lane, feature_counts *counts, struct error *error) {
             counts->resize(morphology_size(EDGE));
             return morphology_run(lane, &shape, counts->data(), error);
         },
         region},
    };
}

/* Runs the cases of one content. The first selected one opens the lanes. */
static int
features_run_content(const gpu_bench *bench, enum features_content content, const std::vector<features_case> &cases)
{
    std::vector<const features_case *> wanted;
    int wrong = 0;

    for (const features_case &each : cases)
        if (gpu_bench_wants(bench, each.name.c_str()))
            wanted.push_back(&each);
    if (wanted.empty())
        return 0;
    const features_lane gpu("cuda", content), cpu("cpu", content);
    for (const features_case *each : wanted)
        wrong += features_time_case(bench, gpu, cpu, *each);
    return wrong;
}

int
gpu_bench_features(const struct gpu_bench *bench)
{
    const std::vector<uint16_t> table = features_levels();
    const std::vector<uint64_t> large = features_ball(200), small = features_ball(61);
    int wrong = 0;

    wrong += features_run_content(bench, FEATURES_SMOOTH, features_cases("512/smooth", table, nullptr));
    wrong += features_run_content(bench, FEATURES_SMOOTH, features_cases("512/ball", table, large.data()));
    wrong += features_run_content(bench, FEATURES_SMOOTH, features_region_cases(large.data(), small.data()));
    wrong += features_run_content(bench, FEATURES_NOISE, features_cases("512/noise", table, nullptr));
    wrong += features_run_content(bench, FEATURES_LEVEL, features_cases("512/level", table, nullptr));
    wrong += features_run_content(bench, FEATURES_CHECKER, features_cases("512/checker", table, nullptr));
    wrong += features_run_content(bench, FEATURES_STORED, features_stored_cases("stored", nullptr));
    wrong += features_run_content(bench, FEATURES_STORED, features_stored_cases("stored-ball", large.data()));
    return wrong;
}
