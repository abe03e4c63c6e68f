/*
 * preview_resample.h - flat cuts through a volume at the size of a picture. A pixel is the mean of
 * evenly spaced samples, each bilinear between the centres of voxels and constant beyond the
 * outermost.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_PREVIEW_RESAMPLE_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_PREVIEW_RESAMPLE_H

#include <stddef.h>

/* The position of a sample between two voxels of a row or column. */
struct resample_tap {
    int first, second;
    float part; /* weight of the second */
};

/* From columns x rows voxels to width x height pixels; any number of threads may use it. */
struct resampler {
    int columns, rows, width, height;
    int across, down; /* samples per pixel */
    struct resample_tap *column_taps, *row_taps;
};

/* Returns 0 or -ENOMEM; call resampler_free() in both cases. */
int resampler_make(int columns, int rows, int width, int height, struct resampler *resampler);
void resampler_free(struct resampler *resampler);

/* The source of rows of voxels, in any order and any number of times. */
struct resample_source {
    void (*read)(const void *context, int row, float *values); /* writes `columns` values */
    const void *context;
};

/* Returns the number of floats that resample_rows() needs as scratch memory. */
size_t resampler_scratch(const struct resampler *resampler);

/* Writes width x height means to `values`, x fastest. */
void resample_rows(const struct resampler *resampler, const struct resample_source *source, float *scratch,
                   float *values);

#endif
