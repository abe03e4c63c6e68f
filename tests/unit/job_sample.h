/*
 * job_sample.h - a small series on disk and a job for it: what tests of whole jobs share.
 *
 * Six slices of 24 x 20 voxels; a block of 40 HU (12 x 10 x 4 voxels) in air.
 */
#ifndef NOCTULE_JOB_SAMPLE_H
#define NOCTULE_JOB_SAMPLE_H

#include "tests/unit/dicom_bytes.h"

#include "service/common/jobs/job_file.h"

#include <dirent.h>
#include <limits.h>
#include <unistd.h>

enum { SAMPLE_SLICES = 6, SAMPLE_COLUMNS = 24, SAMPLE_ROWS = 20, SAMPLE_BLOCK = 12 * 10 * 4 };

#define SAMPLE_SETTINGS(range)                                                                                         \
    "name = \"block\"; segments = ( { label = \"Block\"; method = \"level-set\"; range = " range                       \
    "; shapes = ( { kind = \"sphere\"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; "                                   \
    "radius_voxels = 2.0; } ); category = { code = \"123037004\"; scheme = \"SCT\"; meaning = "                        \
    "\"Anatomical Structure\"; }; type = { code = \"12738006\"; scheme = \"SCT\"; meaning = "                          \
    "\"Brain\"; }; } ); results = [ \"seg\", \"codes\" ]; min_slices = 1;"

struct job_sample {
    char folder[64];
    char input[SAMPLE_SLICES][128];
    char *inputs[SAMPLE_SLICES];
    char output[128];
    struct job_spec spec; /* borrows from the sample */
};

static inline void
job_sample_write_slice(const struct job_sample *sample, int z, const char *slope, const char *intercept)
{
    uint16_t pixels[SAMPLE_ROWS * SAMPLE_COLUMNS];
    char position[64], instance[64];
    for (int i = 0; i < SAMPLE_ROWS * SAMPLE_COLUMNS; i++) {
        int x = i % SAMPLE_COLUMNS, y = i / SAMPLE_COLUMNS;
        pixels[i] = x >= 6 && x < 18 && y >= 5 && y < 15 && z >= 1 && z < 5 ? 1064 : 24;
    }
    snprintf(position, sizeof position, "0\\0\\%d", 3 * z);
    snprintf(instance, sizeof instance, "1.2.3.4.1.%d", z + 1);
    struct sample_image image = SAMPLE_IMAGE;
    image.rows = SAMPLE_ROWS;
    image.columns = SAMPLE_COLUMNS;
    image.position = position;
    image.instance_uid = instance;
    image.thickness = "3";
    image.pixels = pixels;
    image.pixel_size = sizeof pixels;
    image.slope = slope;
    image.intercept = intercept;
    sample_write(&image, sample->input[z]);
}

static inline void
job_sample_make(struct job_sample *sample)
{
    snprintf(sample->folder, sizeof sample->folder, "/tmp/noctule-jobs.XXXXXX");
    if (!mkdtemp(sample->folder))
        abort();
    for (int z = 0; z < SAMPLE_SLICES; z++) {
        snprintf(sample->input[z], sizeof sample->input[z], "%s/%d.dcm", sample->folder, z);
        sample->inputs[z] = sample->input[z];
        job_sample_write_slice(sample, z, "1", "-1024");
    }
    snprintf(sample->output, sizeof sample->output, "%s/out", sample->folder);
    static char settings[] = SAMPLE_SETTINGS("[ 0.0, 80.0 ]"), no_stack[] = "", serial[] = "N1";
    sample->spec = (struct job_spec){.id = 1,
                                     .stack = no_stack,
                                     .settings = settings,
                                     .output = sample->output,
                                     .device_serial_number = serial,
                                     .inputs = sample->inputs,
                                     .input_count = SAMPLE_SLICES};
}

static inline void
job_sample_remove(struct job_sample *sample)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", sample->folder);
    if (system(command) != 0)
        abort();
}

/* Entries of the output folder, -1 when there is none. */
static inline int
job_sample_output_entries(const struct job_sample *sample)
{
    DIR *entries = opendir(sample->output);
    int count = 0;
    if (!entries)
        return -1;
    for (const struct dirent *e; (e = readdir(entries)) != NULL;)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(entries);
    return count;
}

#endif
