/*
 * program_labels.h - the label maps that the output of a program becomes; private to this folder.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_PROGRAM_PROGRAM_LABELS_H
#define NOCTULE_SERVICE_PIPELINE_PROGRAM_PROGRAM_LABELS_H

#include "service/pipeline/program/program_source.h"

enum { PROGRAM_LABELS = 65536 };

/* Label maps on the working grid, one after the other. Regions that share voxels lie in different layers. */
struct program_labels {
    const struct program_source *source;
    const struct conf_program *program;
    bool known[PROGRAM_LABELS]; /* labels that the order accepts */
    int64_t voxels;             /* of a layer */
    int layers;
    uint16_t *maps;
};

/* Appends an empty layer. Returns 0, or -errno with PROGRAM_OUTPUT_TOO_LARGE or OUT_OF_MEMORY. */
int program_labels_add(struct program_labels *labels, struct error *error);

/*
 * Finds the label to store: the value itself, or 0 for an unknown one that the program may write. `where` names the
 * region or voxel. Returns 0, or -EINVAL with PROGRAM_LABEL_UNKNOWN.
 */
int program_labels_accept(const struct program_labels *labels, int64_t value, const char *where, uint16_t *label,
                          struct error *error);

/*
 * Read the output: a label map, or the regions of a Segmentation or an RT Structure Set. `relative` is its path below the
 * folder `out`, which has the path `path`. Messages contain no text of the program, which may name a patient.
 */
int program_output_volume(struct program_labels *labels, int out, const char *relative, struct error *error);
int program_output_regions(struct program_labels *labels, int out, const char *path, const char *relative,
                           struct error *error);

#endif
