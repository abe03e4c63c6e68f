/*
 * gpu_bench.h - the cases of noctule-bench that time kernels on a GPU, input resident there.
 *
 * One JSON line a case: what it is, on what device, the bytes of the volume, the median time, and
 * beside it, from the same run, one read of the volume, its bare upload from pinned memory, and the
 * paper's own method.
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
    const char *filter; /* only the cases whose name contains this; NULL: all */
    FILE *out;
};

/* Each returns how many of its cases differ from their reference or could not run. */
int gpu_bench_level_set(const struct gpu_bench *bench);
int gpu_bench_fuzzy(const struct gpu_bench *bench);
int gpu_bench_mask(const struct gpu_bench *bench);
int gpu_bench_resample(const struct gpu_bench *bench);
int gpu_bench_texture(const struct gpu_bench *bench);
int gpu_bench_features(const struct gpu_bench *bench);

/* The median seconds of one bare copy of so many bytes from pinned memory to the first GPU. */
double gpu_bench_bare_upload(int rounds, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
