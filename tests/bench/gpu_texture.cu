/*
 * gpu_texture.cu - texture on the GPU with resident input: the sizes of Hong 2018 and Masur 2022, compared with the
 * papers' own methods, and larger ones. All images are generated from a fixed seed.
 *
 * Counts are compared with Hong 2018's scheme 1, codes with Masur 2022's own listing. The time of a GLCM is that of
 * the counting: from levels on the device, or from the stored values if these do not need levels. Each of the papers'
 * methods has its own line. The ratio to the paper refers to its best method, scheme 2 or shared memory. Cases of
 * scheme 3 time upload and counting together, from announcing the slices to the counts on the host.
 */
#include "kernels/texture/texture_cuda.cuh"
#include "tests/bench/gpu_bench.cuh"
#include "tests/bench/hong2018.cuh"
#include "tests/bench/masur2022.cuh"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

static const int few_rounds = 5;   /* for slow methods */
static const int paper_slabs = 16; /* of scheme 3 */

/* A lane with one volume of bytes, and its reference. The first case opens it. */
struct setting {
    image_extent extent;
    bool rough;
    int maps = 0; /* number of pattern maps that come back */
    kernels_device *device = nullptr;
    kernels_lane *lane = nullptr;
    cuda_lane *cuda = nullptr;
    uint8_t *pinned = nullptr;
    size_t bytes = 0;
    double read_ms = 0, upload_ms = 0;
};

static void
must(int rc, const char *message)
{
    if (rc == 0)
        return;
    fprintf(stderr, "noctule-bench: %s\n", message);
    exit(EXIT_FAILURE);
}

/* Fills the volume: smooth with a slow wave, rough with noise. */
static void
fill(const image_extent &extent, bool rough, uint8_t *voxels)
{
    uint64_t state = 1;
    std::vector<double> wave((size_t)extent.columns);

    for (int64_t x = 0; x < extent.columns; x++)
        wave[(size_t)x] = 127.5 + 80 * std::sin((double)x * 0.01);
    for (int64_t row = 0; row < extent.rows * extent.slices; row++) {
        double shift = 47 * std::cos((double)row * 0.013);

        for (int64_t x = 0; x < extent.columns; x++) {
            state = state * UINT64_C(6364136223846793005) + 1;
            voxels[row * extent.columns + x] = rough ? (uint8_t)(state >> 56) : (uint8_t)(wave[(size_t)x] + shift);
        }
    }
}

static void
open_setting(const gpu_bench *bench, setting *setting)
{
    const kernels_device_options options = {"cuda", nullptr, 0};
    const image_extent &extent = setting->extent;
    kernels_demand demand = {};
    struct error error = {};
    void *voxels;

    demand.of[KERNELS_GLCM] = demand.of[KERNELS_HISTOGRAM] = &kernels_asked;
    demand.of[KERNELS_PATTERNS] = &texture_patterns_demands[setting->maps];
    setting->bytes = (size_t)(extent.columns * extent.rows * extent.slices);
    must(kernels_device_open(&options, &setting->device, &error), error.message);
    must(kernels_lane_open(setting->device, &setting->lane, &error), error.message);
    must(kernels_volume_begin(setting->lane, extent, IMAGE_UINT8, &demand, &voxels, &error), error.message);
    setting->cuda = cuda_lane_of(setting->lane);
    setting->pinned = (uint8_t *)voxels;
    setting->upload_ms = gpu_bench_upload_ms(bench, setting->cuda->work, setting->cuda->device_voxels, setting->bytes);
    fill(extent, setting->rough, setting->pinned);
    must(kernels_volume_ready(setting->lane, 0, extent.slices, NULL), "a slice was not taken");
    GPU_BENCH_TRY(cudaDeviceSynchronize());
    setting->read_ms = gpu_bench_read_ms(bench, setting->cuda->work, setting->cuda->device_voxels, setting->bytes);
}

/* Returns whether the case is selected; if so, its volume is on the device. */
static bool
begins(const gpu_bench *bench, setting *setting, const std::string &name)
{
    if (!gpu_bench_wants(bench, name.c_str()))
        return false;
    if (!setting->device)
        open_setting(bench, setting);
    return true;
}

static void
close_setting(setting *setting)
{
    if (!setting->device)
        return;
    kernels_lane_close(setting->lane);
    kernels_device_close(setting->device);
}

static int
report(const gpu_bench *bench, const setting *setting, const std::string &name, double median_ms, double paper_ms,
       int64_t mismatches)
{
    const gpu_bench_result result = {name.c_str(),       setting->bytes, median_ms, setting->read_ms,
                                     setting->upload_ms, paper_ms,       mismatches};

    gpu_bench_report(bench, &result);
    return mismatches > 0;
}

static std::vector<uint16_t>
paper_levels(int levels)
{
    std::vector<uint16_t> table(256);

    for (int value = 0; value < 256; value++)
        table[(size_t)value] = (uint16_t)(value * levels / 256 + 1);
    return table;
}

/* GLCM */

static hong2018
paper_of(const setting *setting, int levels, const texture_offset &offset, uint32_t *counts)
{
    return {(const uint8_t *)setting->cuda->device_voxels,
            setting->extent.columns,
            setting->extent.rows,
            levels,
            offset.x,
            offset.y,
            counts};
}

/* Returns the number of counts that differ from scheme 1's. One slice only. */
static int64_t
wrong_counts(const setting *setting, const std::vector<texture_offset> &offsets, int levels)
{
    const size_t size = (size_t)(levels * levels);
    std::vector<uint64_t> ours(size * offsets.size());
    std::vector<uint32_t> theirs(size);
    uint32_t *counts;
    int64_t wrong = 0;

    GPU_BENCH_TRY(cudaMemcpy(ours.data(), cuda_glcm_of(setting->cuda)->counted.counts, ours.size() * sizeof(uint64_t),
                             cudaMemcpyDeviceToHost));
    GPU_BENCH_TRY(cudaMalloc(&counts, size * sizeof(uint32_t)));
    for (size_t o = 0; o < offsets.size(); o++) {
        hong2018_scheme_1(paper_of(setting, levels, offsets[o], counts), setting->cuda->work);
        GPU_BENCH_TRY(cudaStreamSynchronize(setting->cuda->work));
        GPU_BENCH_TRY(cudaMemcpy(theirs.data(), counts, size * sizeof(uint32_t), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < size; i++)
            wrong += ours[o * size + i] != theirs[i];
    }
    GPU_BENCH_TRY(cudaFree(counts));
    return wrong;
}

/* Times schemes 1 and 2. Scheme 1 is slow and gets few rounds. Returns the median of scheme 2. */
static double
time_paper(const gpu_bench *bench, const setting *setting, const std::string &name, int levels,
           const texture_offset &offset)
{
    double median = 0;
    uint32_t *counts;

    GPU_BENCH_TRY(cudaMalloc(&counts, (size_t)(levels * levels) * sizeof(uint32_t)));
    for (int scheme = 1; scheme <= 2; scheme++) {
        gpu_bench rounds = *bench;

        rounds.rounds = scheme == 1 ? std::min(bench->rounds, few_rounds) : bench->rounds;
        median = gpu_bench_median_ms(&rounds, setting->cuda->work, [&](cudaStream_t stream) {
            const hong2018 run = paper_of(setting, levels, offset, counts);

            if (scheme == 1)
                hong2018_scheme_1(run, stream);
            else
                hong2018_scheme_2(run, stream);
        });
        report(&rounds, setting, "hong2018/scheme" + std::to_string(scheme) + "/" + name, median, 0, -1);
    }
    GPU_BENCH_TRY(cudaFree(counts));
    return median;
}

static int
run_glcm(const gpu_bench *bench, setting *setting, const std::string &name, const std::vector<texture_offset> &offsets,
         int levels, const uint64_t *region)
{
    const std::vector<uint16_t> table = paper_levels(levels);
    const bool flat = setting->extent.slices == 1;
    double median, paper_ms = 0;
    texture_glcm request = {};
    glcm_plan plan = {};
    struct error error = {};

    if (!begins(bench, setting, name))
        return 0;
    request.levels = {levels, table.data(), 1};
    request.region = region;
    request.offsets = offsets.data();
    request.offset_count = offsets.size();
    must(cuda_glcm_begin(setting->cuda, &request, &plan, &error), error.message);
    must(cuda_glcm_send(setting->cuda, &request, &plan, 0, offsets.size(), &error), error.message);
    if (flat && offsets.size() == 1)
        paper_ms = time_paper(bench, setting, name, levels, offsets[0]);
    median = gpu_bench_median_ms(bench, setting->cuda->work, [&](cudaStream_t) {
        must(cuda_glcm_count(setting->cuda, &plan, offsets.size(), &error), error.message);
    });
    return report(bench, setting, name, median, paper_ms,
                  flat && !region ? wrong_counts(setting, offsets, levels) : -1);
}

template <typename Run>
static double
median_of_calls(const gpu_bench *bench, const Run &run)
{
    std::vector<float> times;

    for (int round = 0; round < std::min(bench->rounds, few_rounds); round++) {
        auto begun = std::chrono::steady_clock::now();
        run();
        times.push_back(std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - begun).count());
    }
    return gpu_bench_median(times);
}

/* Times upload in slabs and counting. The paper's scheme 3 does both per slab on two streams. */
static int
run_upload(const gpu_bench *bench, setting *setting, const std::string &name, int levels, const texture_offset &offset)
{
    const std::vector<uint16_t> table = paper_levels(levels);
    std::vector<uint64_t> counts((size_t)(levels * levels));
    double median, paper_ms;
    kernels_demand demand = {};
    texture_glcm request = {};
    cudaStream_t streams[2];
    struct error error = {};
    uint32_t *paper_counts;

    if (!begins(bench, setting, name))
        return 0;
    demand.of[KERNELS_GLCM] = demand.of[KERNELS_HISTOGRAM] = &kernels_asked;
    request.levels = {levels, table.data(), 1};
    request.offsets = &offset;
    request.offset_count = 1;
    GPU_BENCH_TRY(cudaMalloc(&paper_counts, counts.size() * sizeof *paper_counts));
    for (cudaStream_t &stream : streams)
        GPU_BENCH_TRY(cudaStreamCreate(&stream));
    paper_ms = median_of_calls(bench, [&] {
        hong2018_scheme_3(paper_of(setting, levels, offset, paper_counts), setting->pinned, paper_slabs,
                          (uint8_t *)setting->cuda->device_voxels, streams);
    });
    median = median_of_calls(bench, [&] {
        void *voxels;

        must(kernels_volume_begin(setting->lane, setting->extent, IMAGE_UINT8, &demand, &voxels, &error),
             error.message);
        must(kernels_volume_ready(setting->lane, 0, setting->extent.slices, NULL), "not taken");
        must(texture_glcm_run(setting->lane, &request, counts.data(), &error), error.message);
    });
    report(bench, setting, "hong2018/scheme3/" + name, paper_ms, 0, -1);
    for (cudaStream_t stream : streams)
        GPU_BENCH_TRY(cudaStreamDestroy(stream));
    GPU_BENCH_TRY(cudaFree(paper_counts));
    return report(bench, setting, name, median, paper_ms, wrong_counts(setting, {offset}, levels));
}

static int
run_image(const gpu_bench *bench, int64_t edge, bool rough)
{
    const std::vector<texture_offset> settings = {{1, 0, 0}, {1, -1, 0}, {4, 0, 0}, {4, -4, 0}};
    const std::string size = std::string(rough ? "rough/" : "smooth/") + std::to_string(edge);
    setting setting = {{edge, edge, 1}, rough};
    int failed = 0;

    for (int levels : {8, 32}) {
        const std::string by = size + "/L" + std::to_string(levels) + "/";

        for (const texture_offset &offset : settings) {
            const std::string to = std::to_string(offset.x) + "," + std::to_string(offset.y);

            failed += run_glcm(bench, &setting, "glcm/" + by + to, {offset}, levels, nullptr);
            failed += run_upload(bench, &setting, "glcm/upload/" + by + to, levels, offset);
        }
        failed += run_glcm(bench, &setting, "glcm/" + by + "four", {{1, 0, 0}, {1, -1, 0}, {0, -1, 0}, {-1, -1, 0}},
                           levels, nullptr);
    }
    close_setting(&setting);
    return failed;
}

static int
run_volume(const gpu_bench *bench, bool rough)
{
    const std::string name = std::string("glcm/13/512/L32/") + (rough ? "rough" : "smooth");
    setting setting = {{512, 512, 512}, rough};
    std::vector<texture_offset> offsets;
    std::vector<uint64_t> ball((size_t)(8 * 512 * 512));
    int failed;

    if (!gpu_bench_wants(bench, (name + "/masked").c_str()))
        return 0;
    for (int i = 14; i < 27; i++)
        offsets.push_back({i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1});
    for (int64_t i = 0; i < 512 * 512 * 512; i++) {
        int64_t x = i % 512 - 256, y = i / 512 % 512 - 256, z = i / (512 * 512) - 256;

        if (x * x + y * y + z * z < 200 * 200)
            ball[(size_t)(i / 64)] |= UINT64_C(1) << i % 64;
    }
    failed = run_glcm(bench, &setting, name, offsets, 32, nullptr);
    failed += run_glcm(bench, &setting, name + "/masked", offsets, 32, ball.data());
    close_setting(&setting);
    return failed;
}

/* Patterns */

static int64_t
wrong_codes(const setting *setting, const pattern_job &job, const masur2022 &paper)
{
    const image_extent &extent = setting->extent;
    std::vector<uint8_t> ours(setting->bytes), theirs(setting->bytes);
    int64_t wrong = 0;

    for (int p : {(int)TEXTURE_TLBAP, (int)TEXTURE_LANADP}) {
        GPU_BENCH_TRY(cudaMemcpy(theirs.data(), p == TEXTURE_TLBAP ? paper.tlbap : paper.lanadp, setting->bytes,
                                 cudaMemcpyDeviceToHost));
        GPU_BENCH_TRY(cudaMemcpy(ours.data(), job.maps[p], (size_t)(extent.columns * (extent.rows - 2) * extent.slices),
                                 cudaMemcpyDeviceToHost));
        for (int64_t row = 0; row < (extent.rows - 2) * extent.slices; row++) {
            int64_t from = row / (extent.rows - 2) * extent.rows + row % (extent.rows - 2) + 1;

            for (int64_t x = 1; x + 1 < extent.columns; x++)
                wrong += ours[(size_t)(row * extent.columns + x)] != theirs[(size_t)(from * extent.columns + x)];
        }
    }
    return wrong;
}

/* Makes a job for the maps of all three patterns at `memory`, each as large as the volume. */
static pattern_job
patterns_of(const setting *setting, const texture_patterns &request, uint8_t *memory)
{
    const image_extent &extent = setting->extent;
    pattern_job job = {};

    job.voxels = setting->cuda->device_voxels;
    job.columns = job.pitch = (uint32_t)extent.columns;
    job.row_count = (uint32_t)extent.rows;
    job.part = {0, (uint32_t)extent.slices, 0, (uint32_t)extent.rows - 2};
    job.strict = request.strict;
    job.integer_average = request.integer_average;
    job.threshold = request.threshold_millionths;
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        job.maps[p] = memory + (size_t)p * setting->bytes;
    return job;
}

static double
time_patterns(const gpu_bench *bench, const setting *setting, const texture_patterns &request, pattern_job *job)
{
    return gpu_bench_median_ms(bench, setting->cuda->work,
                               [&](cudaStream_t stream) { cuda_patterns_launch(&request, job, IMAGE_UINT8, stream); });
}

/* Runs the default patterns of a job, then those of the paper's listing, compared with the paper's kernels. */
static int
run_patterns(const gpu_bench *bench, const image_extent &extent, bool rough)
{
    const std::string name = std::string("patterns/") + (rough ? "rough/" : "smooth/") +
                             std::to_string(extent.columns) + "x" + std::to_string(extent.slices);
    setting setting = {extent, rough};
    texture_patterns request = {};
    double paper_ms = 0;
    uint8_t *memory;
    int failed;

    if (!begins(bench, &setting, name))
        return 0;
    GPU_BENCH_TRY(cudaMalloc(&memory, 5 * setting.bytes));
    request.threshold_millionths = 900000;
    pattern_job job = patterns_of(&setting, request, memory);
    report(bench, &setting, name, time_patterns(bench, &setting, request, &job), 0, -1);
    request.strict = request.integer_average = true;
    job = patterns_of(&setting, request, memory);
    const masur2022 paper = {(const uint8_t *)job.voxels, (int)extent.columns,          (int)extent.rows,
                             (int)extent.slices,          request.threshold_millionths, memory + 3 * setting.bytes,
                             memory + 4 * setting.bytes};
    for (int shared = 0; shared < 2; shared++) {
        paper_ms = gpu_bench_median_ms(bench, setting.cuda->work,
                                       [&](cudaStream_t stream) { masur2022_run(paper, shared != 0, stream); });
        report(bench, &setting, std::string("masur2022/") + (shared ? "shared/" : "global/") + name, paper_ms, 0, -1);
    }
    const double median = time_patterns(bench, &setting, request, &job);
    failed = report(bench, &setting, name + "/listing", median, paper_ms, wrong_codes(&setting, job, paper));
    GPU_BENCH_TRY(cudaFree(memory));
    close_setting(&setting);
    return failed;
}

/* Times all three maps of a job, back in host memory, compared with the copies alone. */
static void
run_maps(const gpu_bench *bench, const image_extent &extent, bool rough)
{
    const std::string name = std::string("patterns/") + (rough ? "rough/" : "smooth/") +
                             std::to_string(extent.columns) + "x" + std::to_string(extent.slices) + "/maps";
    setting setting = {extent, rough, TEXTURE_PATTERNS};
    texture_patterns request = {};
    struct error error = {};

    if (!begins(bench, &setting, name))
        return;
    request.threshold_millionths = 900000;
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        request.wanted[p] = request.maps[p] = true;
    must(texture_patterns_run(setting.lane, &request, &error), error.message);
    const double median =
        median_of_calls(bench, [&] { must(texture_patterns_run(setting.lane, &request, &error), error.message); });
    const double copies = median_of_calls(bench, [&] {
        for (int p = 0; p < TEXTURE_PATTERNS; p++)
            GPU_BENCH_TRY(
                cudaMemcpyAsync(const_cast<uint8_t *>(texture_patterns_map(setting.lane, (enum texture_pattern)p)),
                                setting.cuda->device_voxels, texture_patterns_codes(&extent), cudaMemcpyDeviceToHost,
                                setting.cuda->download));
        GPU_BENCH_TRY(cudaStreamSynchronize(setting.cuda->download));
    });
    report(bench, &setting, "copies/" + name, copies, 0, -1);
    report(bench, &setting, name, median, copies, -1);
    close_setting(&setting);
}

int
gpu_bench_texture(const struct gpu_bench *bench)
{
    int failed = 0;

    for (int rough = 0; rough < 2; rough++) {
        for (int64_t edge = 256; edge <= 1024; edge *= 2)
            failed += run_patterns(bench, {edge, edge, 1}, rough != 0);
        failed += run_patterns(bench, {1024, 1024, 1024}, rough != 0);
        run_maps(bench, {512, 512, 300}, rough != 0);
        for (int64_t edge = 1024; edge <= 16384; edge *= 2)
            failed += run_image(bench, edge, rough != 0);
        failed += run_volume(bench, rough != 0);
    }
    return failed;
}
