/*
 * contours_overlap.h - contours of one plane whose areas may overlap; private to kernels/mask.
 *
 * The areas of two contours are disjoint, nested, equal, or crossing. Equal ones count once, unless
 * their directions differ. Contours that cross are united. A voxel belongs to the mask if an odd
 * number of the remaining areas has it. A contour within another is therefore a hole, and one
 * within the hole an island.
 */
#ifndef NOCTULE_KERNELS_MASK_CONTOURS_OVERLAP_H
#define NOCTULE_KERNELS_MASK_CONTOURS_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

struct contours_part {
    int64_t first_row, end_row;   /* of its voxels */
    int64_t first_word, end_word; /* words per row, of its voxels */
    int64_t voxels;
    int direction;   /* 0 if it does not count */
    uint64_t *words; /* rows first_row to end_row - 1, each of words_per_row words */
    int64_t whole;   /* index of the part that it is united with */
    bool is_copy;
};

struct contours_overlaps {
    int64_t copies;  /* contours equal to another */
    int64_t crossed; /* contours united with another */
};

/*
 * Sorts the parts and flips their mask in the bits of a plane. Adds to `found`. Returns 0, -ENOMEM,
 * or -E2BIG if more than `budget` words are compared. Subtracts the compared words from `budget`.
 */
int contours_combine(struct contours_part *parts, int64_t count, int64_t words_per_row, int64_t *budget, uint64_t *bits,
                     struct contours_overlaps *found);

#endif
