/*
 * mask_file.h - the stored mask of a program's run: a label map on the grid of a job, run-length encoded.
 *
 *     noctule-mask 1
 *     size 512 512 300
 *     to_mm 0.7 0 0 -179.2 0 0.7 0 -179.2 0 0 1 -90
 *     layers 1
 *     label 5 120331
 *     end
 *     then per layer and row (columns fastest, slices last): pairs of LEB128 numbers, length and value, to the row's end
 *
 * A label is a value other than 0. The bytes follow from the grid and the labels only, so that their SHA-256 identifies the
 * mask: runs are as long as possible, and numbers as short as possible. Regions of a SEG or an RTSTRUCT that share voxels
 * lie in different layers. Functions return 0 or -errno with the error filled.
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_MASK_FILE_H
#define NOCTULE_SERVICE_COMMON_VOLUME_MASK_FILE_H

#include "service/common/volume/volume_file.h"

#include <stddef.h>

/* The labels of a mask with their numbers of voxels, in ascending order. */
struct mask_label_list {
    size_t count;

    struct mask_label {
        uint16_t value;
        int64_t voxels;
    } * items;
};

/*
 * Writes the mask of `layers` label maps, one after the other, size[0] * size[1] * size[2] values each, durably into a new
 * file of the folder (the caller must sync the folder). Fills the size in bytes, the digest as hexadecimal text, and the
 * labels that occur (the caller must free labels->items). Code besides those of a system call: PROGRAM_OUTPUT_TOO_LARGE
 * beyond LIMIT_MASK_MIB or LIMIT_MASK_LAYERS.
 */
int mask_file_write(int folder, const char *name, const struct volume_grid *grid, int layers, const uint16_t *maps,
                    int64_t *size, char sha256[65], struct mask_label_list *labels, struct error *error);

/* A mask in memory. Several threads may read it. */
struct mask_file;

/*
 * Reads a mask with this digest ("": any) on this grid (volume_grid_same, same order of axes). A missing, damaged or other
 * file: PROGRAM_MASK_DAMAGED; one that cannot be opened or read: FILE_UNREADABLE. The caller must free it with mask_file_free().
 */
int mask_file_read(const char *path, const char *sha256, const struct volume_grid *grid, struct mask_file **mask,
                   struct error *error);
void mask_file_free(struct mask_file *mask);

/* Sets the bits of all voxels that have one of the values, in the layout of struct image_mask (kernels/mask/mask.h):
 * `words_per_row` words of 64 voxels per row. Bits must be 0 before. */
void mask_file_bits(const struct mask_file *mask, const int *values, size_t count, int64_t words_per_row,
                    uint64_t *bits);

#endif
