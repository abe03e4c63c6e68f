#include "tests/bench/gpu_bench.cuh"

#include <algorithm>
#include <cstdlib>
#include <cstring>

enum {
    READ_THREADS = 512,
    READ_BLOCKS_PER_PROCESSOR = 4,
    LOADS_IN_FLIGHT = 8,
    MAX_ROUNDS_OF_UPLOAD = 5,
};

void
gpu_bench_check(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "noctule-bench: %s: %s\n", call, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
}

bool
gpu_bench_wants(const struct gpu_bench *bench, const char *name)
{
    return !bench->filter || strstr(name, bench->filter);
}

double
gpu_bench_median(std::vector<float> times)
{
    size_t count = times.size();

    std::sort(times.begin(), times.end());
    return ((double)times[(count - 1) / 2] + (double)times[count / 2]) / 2;
}

static int
device_attribute(cudaDeviceAttr attribute)
{
    int device, value;

    GPU_BENCH_TRY(cudaGetDevice(&device));
    GPU_BENCH_TRY(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
}

/* Each thread must start several loads of 16 bytes before it uses the first. */
__global__ void
__launch_bounds__(READ_THREADS) read_all(const uint4 *memory, size_t count, unsigned *never)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned mixed = 0;

    for (; i + (LOADS_IN_FLIGHT - 1) * step < count; i += LOADS_IN_FLIGHT * step) {
        uint4 loaded[LOADS_IN_FLIGHT];

#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; k++)
            loaded[k] = memory[i + (size_t)k * step];
#pragma unroll
        for (int k = 0; k < LOADS_IN_FLIGHT; k++)
            mixed ^= loaded[k].x ^ loaded[k].y ^ loaded[k].z ^ loaded[k].w;
    }
    for (; i < count; i += step)
        mixed ^= memory[i].x ^ memory[i].y ^ memory[i].z ^ memory[i].w;
    /* Every thread must compute its value, but almost no value is written. */
    if (mixed == 0x9E3779B9u)
        *never = mixed;
}

/* Returns a word that read_all may write. */
static unsigned *
scratch_word()
{
    static unsigned *word;

    if (!word)
        GPU_BENCH_TRY(cudaMalloc(&word, sizeof(*word)));
    return word;
}

static void
queue_read(cudaStream_t stream, const void *memory, size_t bytes)
{
    int blocks = READ_BLOCKS_PER_PROCESSOR * device_attribute(cudaDevAttrMultiProcessorCount);

    read_all<<<(unsigned)blocks, READ_THREADS, 0, stream>>>((const uint4 *)memory, bytes / sizeof(uint4),
                                                            scratch_word());
}

void
gpu_bench_flush_l2(cudaStream_t stream)
{
    static void *buffer;
    static size_t size;

    if (!buffer) {
        size = 4 * (size_t)device_attribute(cudaDevAttrL2CacheSize);
        GPU_BENCH_TRY(cudaMalloc(&buffer, size));
        GPU_BENCH_TRY(cudaMemset(buffer, 0, size));
    }
    queue_read(stream, buffer, size);
}

double
gpu_bench_read_ms(const struct gpu_bench *bench, cudaStream_t stream, const void *memory, size_t bytes)
{
    return gpu_bench_median_ms(bench, stream, [&](cudaStream_t on) { queue_read(on, memory, bytes); });
}

double
gpu_bench_upload_ms(const struct gpu_bench *bench, cudaStream_t stream, void *memory, size_t bytes)
{
    struct gpu_bench few = *bench;
    void *pinned;
    double median;

    few.rounds = std::min(few.rounds, (int)MAX_ROUNDS_OF_UPLOAD);
    GPU_BENCH_TRY(cudaMallocHost(&pinned, bytes));
    memset(pinned, 1, bytes);
    median = gpu_bench_median_ms(&few, stream, [&](cudaStream_t on) {
        GPU_BENCH_TRY(cudaMemcpyAsync(memory, pinned, bytes, cudaMemcpyHostToDevice, on));
    });
    GPU_BENCH_TRY(cudaFreeHost(pinned));
    return median;
}

double
gpu_bench_bare_upload(int rounds, size_t bytes)
{
    const struct gpu_bench bench = {rounds, nullptr, nullptr};
    cudaStream_t stream;
    void *memory;
    double milliseconds;

    GPU_BENCH_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    GPU_BENCH_TRY(cudaMalloc(&memory, bytes));
    milliseconds = gpu_bench_upload_ms(&bench, stream, memory, bytes);
    GPU_BENCH_TRY(cudaFree(memory));
    GPU_BENCH_TRY(cudaStreamDestroy(stream));
    return milliseconds / 1000;
}

/* Prints `name`: number, or null if it was not measured. */
static void
print_number(FILE *out, const char *name, bool measured, double number)
{
    if (measured)
        fprintf(out, ",\"%s\":%.5g", name, number);
    else
        fprintf(out, ",\"%s\":null", name);
}

void
gpu_bench_report(const struct gpu_bench *bench, const struct gpu_bench_result *result)
{
    struct cudaDeviceProp properties;
    int device;

    GPU_BENCH_TRY(cudaGetDevice(&device));
    GPU_BENCH_TRY(cudaGetDeviceProperties(&properties, device));
    fprintf(bench->out, "{\"case\":\"%s\",\"device\":\"%s\",\"bytes\":%zu", result->name, properties.name,
            result->bytes);
    print_number(bench->out, "median_ms", true, result->median_ms);
    print_number(bench->out, "read_ms", true, result->read_ms);
    print_number(bench->out, "ratio_to_read", true, result->median_ms / result->read_ms);
    print_number(bench->out, "upload_ms", result->upload_ms > 0, result->upload_ms);
    print_number(bench->out, "ratio_to_upload", result->upload_ms > 0, result->median_ms / result->upload_ms);
    print_number(bench->out, "paper_ms", result->paper_ms > 0, result->paper_ms);
    print_number(bench->out, "ratio_to_paper", result->paper_ms > 0, result->paper_ms / result->median_ms);
    print_number(bench->out, "mismatches", result->mismatches >= 0, (double)result->mismatches);
    fprintf(bench->out, ",\"rounds\":%d,\"version\":\"%s\"}\n", bench->rounds, NOCTULE_VERSION);
    fflush(bench->out);
}
