/*
 * gpu_bench.h - the cases of noctule-bench that time kernels on a GPU, with the input resident.
 *
 * Prints a JSON line per case: name, device, bytes of the volume, and median time. Also times, in the same run, one
 * read of the volume, its bare upload from pinned memory, and the paper's own method.
 */
#ifndef NOCTULE_GPU_BENCH_H
#define NOCTULE_GPU_BENCH_H

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpu_bench {
    int rounds;         /* timed repetitions, at least 1; the median is reported */
    const char *filter; /* run only cases whose name contains this; NULL: all */
    FILE *out;
};

/* Each returns the number of its cases that differ from their reference or could not run. */
int gpu_bench_level_set(const struct gpu_bench *bench);
int gpu_bench_fuzzy(const struct gpu_bench *bench);
int gpu_bench_mask(const struct gpu_bench *bench);
int gpu_bench_resample(const struct gpu_bench *bench);
int gpu_bench_enclosed(const struct gpu_bench *bench);
int gpu_bench_smooth(const struct gpu_bench *bench);
int gpu_bench_filter(const struct gpu_bench *bench);
int gpu_bench_texture(const struct gpu_bench *bench);
int gpu_bench_picture(const struct gpu_bench *bench);
int gpu_bench_features(const struct gpu_bench *bench);
int gpu_bench_voxelwise(const struct gpu_bench *bench);

/* Returns the median seconds of one bare copy of `bytes` from pinned memory to the first GPU. */
double gpu_bench_bare_upload(int rounds, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
