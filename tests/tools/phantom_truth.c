/*
 * phantom_truth.c - writes the tissue of each voxel of a phantom as an NRRD file.
 *
 * The format: https://teem.sourceforge.net/nrrd/format.html; the keys SegmentN_...: 3D Slicer's
 * documentation of its segmentation files.
 */
#include "tests/tools/phantom.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const tissue_names[] = {
#define TISSUE(name, text) text,
#include "tests/tools/phantom_tissues.def"
#undef TISSUE
};

static void
put_header(FILE *file, const struct phantom *phantom)
{
    double down[3], origin[3];
    phantom_column_direction(phantom, down);
    phantom_position(phantom, 0, origin);
    const double *spacing = phantom->spacing;
    fprintf(file,
            "NRRD0005\n# noctule-phantom: what each voxel is made of\n"
            "type: uint8\ndimension: 3\nspace: left-posterior-superior\nsizes: %d %d %d\n"
            "space directions: (%.17g,0,0) (0,%.17g,%.17g) (0,0,%.17g)\n"
            "kinds: domain domain domain\nencoding: raw\nspace origin: (%.17g,%.17g,%.17g)\n",
            phantom->columns, phantom->rows, phantom->slices, spacing[0], down[1] * spacing[1], down[2] * spacing[1],
            spacing[2], origin[0], origin[1], origin[2]);
}

/* Writes the tissues in use as Slicer's segments, and prints their volumes. */
static void
put_segments(FILE *file, const struct phantom *phantom, const int64_t counts[TISSUE_COUNT])
{
    const double *spacing = phantom->spacing;
    double down[3];
    phantom_column_direction(phantom, down);
    const double voxel = spacing[0] * spacing[1] * spacing[2] * down[1];
    int segment = 0;
    for (int tissue = TISSUE_AIR + 1; tissue < TISSUE_COUNT; tissue++) {
        if (!counts[tissue])
            continue;
        fprintf(file, "Segment%d_ID:=%d\nSegment%d_Name:=%s\nSegment%d_LabelValue:=%d\nSegment%d_Layer:=0\n", segment,
                tissue, segment, tissue_names[tissue], segment, tissue, segment);
        printf("%-20s %10.3f ml\n", tissue_names[tissue], (double)counts[tissue] * voxel / 1000);
        segment++;
    }
    fputc('\n', file);
}

/* Draws all slices and counts the voxels of each tissue. */
static uint8_t *
draw_all(const struct phantom *phantom, int64_t counts[TISSUE_COUNT])
{
    const size_t plane = (size_t)phantom->columns * (size_t)phantom->rows;
    uint8_t *tissues = calloc((size_t)phantom->slices, plane);
    for (int32_t slice = 0; tissues && slice < phantom->slices; slice++) {
        uint8_t *at = tissues + (size_t)slice * plane;
        phantom_draw_tissues(phantom, slice, at);
        for (size_t i = 0; i < plane; i++)
            counts[at[i]]++;
    }
    return tissues;
}

int
phantom_write_truth(const struct phantom *phantom, const char *path)
{
    const size_t plane = (size_t)phantom->columns * (size_t)phantom->rows;
    int64_t counts[TISSUE_COUNT] = {0};
    uint8_t *tissues = draw_all(phantom, counts);
    if (!tissues)
        return -ENOMEM;
    FILE *file = fopen(path, "wb");
    int rc = file ? 0 : -errno;
    if (file) {
        put_header(file, phantom);
        put_segments(file, phantom, counts);
        fwrite(tissues, plane, (size_t)phantom->slices, file);
        rc = ferror(file) ? -EIO : 0;
        if (fclose(file) != 0 && rc == 0)
            rc = -errno;
    }
    free(tissues);
    return rc;
}
