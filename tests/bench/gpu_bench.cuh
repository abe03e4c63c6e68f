/*
 * gpu_bench.cuh - timing for the GPU's cases of noctule-bench.
 *
 * Times are medians between two events on one stream, after warm-up rounds. Before each round, a buffer of several
 * times the L2 cache is read. The cache then cannot hold the input or dirty lines. A failed call of the CUDA
 * runtime ends the program, because later times are invalid.
 */
#ifndef NOCTULE_GPU_BENCH_CUH
#define NOCTULE_GPU_BENCH_CUH

#include "tests/bench/gpu_bench.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>
#include <vector>

#define GPU_BENCH_TRY(call) gpu_bench_check((call), #call)
void gpu_bench_check(cudaError_t error, const char *call);

struct gpu_bench_result {
    const char *name;
    size_t bytes;       /* of the volume */
    double median_ms;   /* input resident, result on the device */
    double read_ms;     /* gpu_bench_read_ms of the volume */
    double upload_ms;   /* gpu_bench_upload_ms; 0: not measured */
    double paper_ms;    /* the paper's own method; 0: not measured */
    int64_t mismatches; /* voxels that differ from the reference; -1: not compared */
};

/* Returns whether the filter selects the case. */
bool gpu_bench_wants(const struct gpu_bench *bench, const char *name);

/*
 * Prints the line: ratio_to_read and ratio_to_upload are median over those, ratio_to_paper is the speed-up over the
 * paper's method. Values without a measurement are null.
 */
void gpu_bench_report(const struct gpu_bench *bench, const struct gpu_bench_result *result);

/* Fills the L2 cache with unrelated bytes, in stream order. */
void gpu_bench_flush_l2(cudaStream_t stream);

double gpu_bench_median(std::vector<float> times);

/* Returns the median time of run(stream), which must do the same work each time. */
template <typename Run>
double
gpu_bench_median_ms(const struct gpu_bench *bench, cudaStream_t stream, const Run &run)
{
    const int warm_up = 2;
    std::vector<float> times;
    cudaEvent_t begun, ended;

    GPU_BENCH_TRY(cudaEventCreate(&begun));
    GPU_BENCH_TRY(cudaEventCreate(&ended));
    for (int round = 0; round < warm_up + bench->rounds; round++) {
        float milliseconds;

        gpu_bench_flush_l2(stream);
        GPU_BENCH_TRY(cudaEventRecord(begun, stream));
        run(stream);
        GPU_BENCH_TRY(cudaEventRecord(ended, stream));
        GPU_BENCH_TRY(cudaEventSynchronize(ended));
        GPU_BENCH_TRY(cudaGetLastError());
        GPU_BENCH_TRY(cudaEventElapsedTime(&milliseconds, begun, ended));
        if (round >= warm_up)
            times.push_back(milliseconds);
    }
    GPU_BENCH_TRY(cudaEventDestroy(begun));
    GPU_BENCH_TRY(cudaEventDestroy(ended));
    return gpu_bench_median(times);
}

/* Times only one read of `bytes` of device memory, 16-byte aligned. */
double gpu_bench_read_ms(const struct gpu_bench *bench, cudaStream_t stream, const void *memory, size_t bytes);

/* Times one copy of `bytes` from pinned memory to device memory, which it overwrites. */
double gpu_bench_upload_ms(const struct gpu_bench *bench, cudaStream_t stream, void *memory, size_t bytes);

#endif
