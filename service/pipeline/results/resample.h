/*
 * resample.h - slices of stored values at the size of a picture: a pixel is the mean of evenly
 * spaced samples, each bilinear between the centres of voxels and constant beyond the outermost.
 */
#ifndef NOCTULE_RESAMPLE_H
#define NOCTULE_RESAMPLE_H

#include "dicom/dicom.h"

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

/* How many floats resample_slice needs to work in. */
size_t resampler_scratch(const struct resampler *resampler);

/* `slice`: stored values, x fastest; `values`: width x height means of them, likewise. */
void resample_slice(const struct resampler *resampler, const void *slice, enum image_pixel pixel,
                    float *scratch, float *values);

#endif
