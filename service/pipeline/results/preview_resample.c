#include "service/pipeline/results/preview_resample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES 8 /* per side, within one pixel */

/* Returns the number of samples per side that make one pixel of `source` voxels without gaps. */
static int
samples_for(int source, int pixels)
{
    int samples = (source + pixels - 1) / pixels;
    return samples < MAX_SAMPLES ? samples : MAX_SAMPLES;
}

/*
 * Makes the taps: sample i of pixel p is tap p * samples + i. Returns NULL if there is no memory.
 */
static struct resample_tap *
make_taps(int source, int pixels, int samples)
{
    struct resample_tap *taps = malloc((size_t)pixels * (size_t)samples * sizeof *taps);
    double step = (double)source / pixels;
    for (int i = 0; taps && i < pixels * samples; i++) {
        double at = (i / samples + (i % samples + 0.5) / samples) * step - 0.5;
        at = fmin(fmax(at, 0), source - 1);
        int first = (int)at;
        taps[i] = (struct resample_tap){first, first + 1 < source ? first + 1 : first, (float)(at - first)};
    }
    return taps;
}

int
resampler_make(int columns, int rows, int width, int height, struct resampler *resampler)
{
    int across = samples_for(columns, width), down = samples_for(rows, height);
    *resampler = (struct resampler){
        .columns = columns,
        .rows = rows,
        .width = width,
        .height = height,
        .across = across,
        .down = down,
        .column_taps = make_taps(columns, width, across),
        .row_taps = make_taps(rows, height, down),
    };
    return resampler->column_taps && resampler->row_taps ? 0 : -ENOMEM;
}

void
resampler_free(struct resampler *resampler)
{
    free(resampler->column_taps);
    free(resampler->row_taps);
}

/* Room for a row of voxels and two lines. */
size_t
resampler_scratch(const struct resampler *resampler)
{
    return (size_t)resampler->columns + 2 * (size_t)resampler->width;
}

/* The two lines around a sample: rows ascend, and neighbours have different parity. */
struct lines {
    const struct resampler *resampler;
    const struct resample_source *source;
    float *row;
    float *line[2];
    int held[2]; /* the rows of the lines; -1: no row */
};

/* Returns a row of voxels at the width of the picture: the sum of each pixel's samples. */
static const float *
line_of(struct lines *lines, int y)
{
    const struct resampler *resampler = lines->resampler;
    const struct resample_tap *tap = resampler->column_taps;
    const float *row = lines->row;
    float *line = lines->line[y & 1];
    if (lines->held[y & 1] == y)
        return line;
    lines->source->read(lines->source->context, y, lines->row);
    for (int x = 0; x < resampler->width; x++) {
        float sum = 0;
        for (int i = 0; i < resampler->across; i++, tap++)
            sum += row[tap->first] + tap->part * (row[tap->second] - row[tap->first]);
        line[x] = sum;
    }
    lines->held[y & 1] = y;
    return line;
}

void
resample_rows(const struct resampler *resampler, const struct resample_source *source, float *scratch, float *values)
{
    const size_t width = (size_t)resampler->width;
    const float scale = 1.0F / (float)(resampler->across * resampler->down);
    float *line = scratch + resampler->columns;
    struct lines lines = {resampler, source, scratch, {line, line + width}, {-1, -1}};
    const struct resample_tap *tap = resampler->row_taps;
    for (int y = 0; y < resampler->height; y++, values += width) {
        memset(values, 0, width * sizeof *values);
        for (int j = 0; j < resampler->down; j++, tap++) {
            const float *upper = line_of(&lines, tap->first);
            const float *lower = line_of(&lines, tap->second);
            for (size_t x = 0; x < width; x++)
                values[x] += upper[x] + tap->part * (lower[x] - upper[x]);
        }
        for (size_t x = 0; x < width; x++)
            values[x] *= scale;
    }
}
