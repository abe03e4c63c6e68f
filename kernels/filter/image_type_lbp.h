/* image_type_lbp.h - LBP3D on the CPU: blocks of rows, in which vertices share sums of coefficients. Private to kernels/. */
#ifndef NOCTULE_KERNELS_FILTER_IMAGE_TYPE_LBP_H
#define NOCTULE_KERNELS_FILTER_IMAGE_TYPE_LBP_H

#include "kernels/cpu/isa.h"
#include "kernels/filter/image_type_steps.h"

enum {
    LBP_COLUMNS = IMAGE_TYPE_ROW, /* of a block */
    LBP_ROWS = 8,
};

/* Vertices whose sums along slices are equal share a line, and those whose sums along rows are equal, too, share a column. */
struct lbp_plan {
    const struct isa *isa;
    const struct image_type_step *step;
    const struct image_type_memory *memory;
    int lines, columns;
    int line_of[IMAGE_TYPE_VERTICES], column_of[IMAGE_TYPE_VERTICES];       /* of a vertex */
    int line_first[IMAGE_TYPE_VERTICES], column_first[IMAGE_TYPE_VERTICES]; /* the first vertex of each */
    int64_t low[3], span[3];                                                /* coefficients from a voxel, per axis */
    int64_t across, down;                                                   /* blocks */
};

/* Returns the memory of a block, in elements. */
size_t lbp_space(double radius);

void lbp_plan_make(struct lbp_plan *plan);

/* Returns the number of blocks. */
int64_t lbp_blocks(const struct lbp_plan *plan);

/* Computes the responses of a block. */
void lbp_block(const struct lbp_plan *plan, int64_t block, double *space);

#endif
