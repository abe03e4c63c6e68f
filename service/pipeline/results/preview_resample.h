/*
 * preview_resample.h - flat cuts through a volume at the size of a picture: a pixel is the mean of evenly
 * spaced samples, each bilinear between the centres of voxels and constant beyond the outermost.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_PREVIEW_RESAMPLE_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_PREVIEW_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Where a sample lies between two voxels of a row or column. */
struct resample_tap {
    int first, second;
    float part; /* of the second */
};

/* From columns x rows voxels to width x height pixels; any number of threads may use one. */
struct resampler {
    int columns, rows, width, height;
    int across, down; /* samples of a pixel */
    struct resample_tap *column_taps, *row_taps;
};

/* 0 or -ENOMEM; resampler_free in either case. */
int resampler_make(int columns, int rows, int width, int height, struct resampler *resampler);
void resampler_free(struct resampler *resampler);

/* Where rows of voxels come from, any of them, any number of times. */
struct resample_source {
    void (*read)(const void *context, int row, float *values); /* `columns` of them */
    const void *context;
};

/* How many floats resample_rows needs to work in. */
size_t resampler_scratch(const struct resampler *resampler);

/* `values`: width x height means, x fastest. */
void resample_rows(const struct resampler *resampler, const struct resample_source *source,
                   float *scratch, float *values);

#endif
