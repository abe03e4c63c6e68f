/*
 * ref_ibsi.h - the digital phantom of IBSI's reference manual (chapter 5, CC BY 4.0), and feature families measured
 * on it by the CPU backend.
 */
#ifndef NOCTULE_REF_IBSI_H
#define NOCTULE_REF_IBSI_H

#include "kernels/features/family.h"

enum { IBSI_VOXELS = 80, IBSI_ROWS = 16, IBSI_LEVELS = 6 };

/* 5 x 4 x 4 voxels of 2 mm, whose values are their levels. Each row of the region is one word. */
struct ibsi_phantom {
    uint8_t voxels[IBSI_VOXELS];
    uint64_t region[IBSI_ROWS];
    uint16_t level_of[256];
};

extern const struct image_extent ibsi_extent;

void ibsi_fill(struct ibsi_phantom *phantom);

/* Measures a set of a family on the phantom. */
void ibsi_measure(const struct feature_family *family, const struct texture_options *options, size_t set,
                  struct feature_value values[FEATURE_FAMILY_MAX]);

/* A value as printed by IBSI, with three digits. `percent` is the percentage of the definition. */
struct ibsi_published {
    const char *code;
    int percent;
    double value;
};

/* Checks that a set of the family has the values published by IBSI for the phantom, and only codes among those. */
void ibsi_check(const struct feature_family *family, const struct texture_options *options, size_t set,
                const struct ibsi_published *published, size_t count);

#endif
