/*
 * program_volume.c - reads a label map that a program wrote, on the working grid or, by nearest voxel, on another one.
 */
#include "service/pipeline/program/program_labels.h"

#include "base/error.h"
#include "service/common/volume/volume_grid.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Max voxels of an output on another grid, per voxel of the working grid: four times as fine along each axis. */
#define FINEST 64

struct output_volume {
    const struct program_labels *labels;
    const int64_t *size;     /* of the file */
    struct volume_walk walk; /* place in `map` of each voxel of the file */
    uint16_t *map;
};

/* Names a voxel with a value that is no label. */
static int
volume_refuse(const struct output_volume *volume, const int64_t at[3], double value, struct error *error)
{
    char where[100];
    uint16_t none;
    snprintf(where, sizeof where, "voxel (%" PRId64 ", %" PRId64 ", %" PRId64 ") of the output", at[0], at[1], at[2]);
    if (!isfinite(value))
        return error_set(error, -EINVAL, CODE_PROGRAM_NOT_FINITE, "%s is not a finite number", where);
    if (volume->labels->program->has_threshold)
        value = 1;
    if (value < 0 || value != floor(value))
        return error_set(error, -EINVAL, CODE_PROGRAM_FRACTIONS, "%s is %.9g, and the program has no threshold", where,
                         value);
    return program_labels_accept(volume->labels, value < 1e15 ? (int64_t)value : INT64_MAX, where, &none, error);
}

/* Converts a value to a label. */
static int
volume_label(const struct output_volume *volume, const int64_t at[3], double value, uint16_t *label,
             struct error *error)
{
    const struct conf_program *program = volume->labels->program;
    const double found = program->has_threshold ? value >= program->threshold : value;
    const bool whole = isfinite(value) && found >= 0 && found == floor(found);
    *label = 0;
    if (whole && (found == 0 || (found < PROGRAM_LABELS && volume->labels->known[(int)found])))
        *label = (uint16_t)found;
    else if (!whole || !program->ignore_others)
        return volume_refuse(volume, at, value, error);
    return 0;
}

static int
volume_take_run(void *context, int64_t first, double value, int64_t count, struct error *error)
{
    const struct output_volume *volume = context;
    const int64_t *stride = volume->walk.stride;
    const int64_t columns = volume->size[0], rows = volume->size[1];
    int64_t at[3] = {first % columns, first / columns % rows, first / columns / rows};
    uint16_t label;
    const int rc = volume_label(volume, at, value, &label, error);
    for (int64_t i = 0; rc == 0 && label != 0 && i < count; i++) {
        volume->map[volume->walk.first + at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2]] = label;
        if (++at[0] == columns) {
            at[0] = 0;
            at[2] += ++at[1] == rows;
            at[1] %= rows;
        }
    }
    return rc;
}

/* Reads the file on its own grid, and takes the nearest voxel for each one of the working grid. */
static int
volume_read_other(const struct program_labels *labels, const struct volume_grid *box, int out, const char *relative,
                  const struct volume_header *header, struct error *error)
{
    const int64_t *size = header->grid.size;
    const int64_t count = size[0] * size[1] * size[2];
    if (count / FINEST > labels->voxels)
        return error_set(error, -E2BIG, CODE_PROGRAM_OUTPUT_SIZE,
                         "the output has %" PRId64 " voxels, which are more than %d per voxel of the input", count,
                         FINEST);
    struct output_volume volume = {.labels = labels, .size = size, .walk = {.stride = {1, size[0], size[0] * size[1]}}};
    int64_t *indices = calloc((size_t)box->size[0], sizeof *indices);
    volume.map = calloc((size_t)count, sizeof *volume.map);
    int rc = indices && volume.map ? volume_read(out, relative, header, volume_take_run, &volume, error)
                                   : error_set_system(error, -ENOMEM, "hold the output of a program");
    uint16_t *to = labels->maps;
    for (int64_t row = 0; rc == 0 && row < box->size[1] * box->size[2]; row++) {
        volume_nearest_row(&header->grid, box, row % box->size[1], row / box->size[1], indices);
        for (int64_t x = 0; x < box->size[0]; x++)
            *to++ = indices[x] >= 0 ? volume.map[indices[x]] : 0;
    }
    free(volume.map);
    free(indices);
    return rc;
}

int
program_output_volume(struct program_labels *labels, int out, const char *relative, struct error *error)
{
    const struct volume_grid box = volume_source_box(&labels->source->volume.grid);
    const enum volume_format format = labels->program->output == CONF_OUTPUT_NRRD ? VOLUME_NRRD : VOLUME_NIFTI;
    struct volume_header header;
    struct output_volume volume = {.labels = labels, .size = header.grid.size};
    char why[160], unused[160];
    int rc = volume_read_header(out, relative, format, &header, error);
    if (rc)
        return rc;
    const bool same = volume_grid_same(&header.grid, &box, &volume.walk, why);
    if (!same && !labels->program->resample)
        return error_set(error, -EINVAL, CODE_PROGRAM_GRID_DIFFERS, "the output is not on the grid of the input: %s",
                         why);
    rc = program_labels_add(labels, error);
    if (rc)
        return rc;
    if (!same)
        return volume_read_other(labels, &box, out, relative, &header, error);
    volume.map = labels->maps;
    /* Voxels come in the order of the file: the walk must lead from them to the working grid. */
    volume_grid_same(&box, &header.grid, &volume.walk, unused);
    return volume_read(out, relative, &header, volume_take_run, &volume, error);
}
