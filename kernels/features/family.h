/*
 * family.h - a family of features: what its features are, what it needs, how its counts are asked
 * of a lane, and how values come from counts.
 *
 * Counts are exact integers, bit-identical on every backend; values are taken from them in double
 * precision in a fixed order, so that every backend gives the same numbers. Definitions are IBSI's
 * (reference manual, arXiv:1612.07003) and Haralick's (1973, f14). A feature that is not defined for
 * its region carries the reason instead of a value.
 *
 * A family is a file beside this one with one struct feature_family, and its row in families.def.
 * Regions, re-segmentation and levels are not its business: it is handed them.
 */
#ifndef NOCTULE_FEATURE_FAMILY_H
#define NOCTULE_FEATURE_FAMILY_H

#include "base/feature.h"
#include "base/texture.h"
#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

struct feature_value {
    double value; /* 0 when missing */
    enum feature_missing missing;
};

/* What a feature is, whatever its value. `ibsi` is "" where IBSI has no code. */
struct feature_definition {
    const char *name;    /* "joint_entropy": stable, lower case */
    const char *meaning; /* "Joint entropy": as coded meaning */
    const char *ibsi;    /* "TU9B" */
    const char *unit;    /* UCUM: "1", "ml", "mm"; "" where value_power is not 0 */
    int value_power;     /* 1: in the unit of the image's values, 2: in its square */
    bool of_levels;      /* of the discretised values, in a family that does not need levels */
};

/* The volume that is measured. */
struct feature_volume {
    struct kernels_lane *lane; /* holds it */
    const struct texture_options *options;
    int64_t columns, rows, slices;
    double voxel_to_mm[3][4]; /* affine: LPS mm of voxel (x, y, z) */
    double spacing[3];        /* mm along columns, rows, slices */
    /* Tables over the values that a pixel may have: one for all slices, or one per slice. */
    size_t tables;                        /* 1, or one per slice */
    size_t values;                        /* 256 or 65536 */
    int32_t smallest;                     /* stored value of the first entry */
    const struct image_rescale *rescales; /* one per table; no slope is 0 */
};

/* A region of it: its voxels, their values, and their levels. */
struct feature_region {
    const struct feature_volume *volume;
    const uint64_t *bits;       /* as of struct image_mask; NULL: the whole volume */
    const uint64_t *histograms; /* [tables][values] of texture_histogram_run, without padding */
    /* Levels: why there are none, or level_of[tables][values] (texture.h) and how many. */
    enum feature_missing no_levels;
    const uint16_t *level_of;
    int levels;
};

/*
 * A family measures a region in sets: one, or one per distance ... `count` and `values` are called
 * where there are levels, or the family does not need any.
 */
struct feature_family {
    const char *name; /* "glcm" */
    const struct feature_definition *definitions;
    size_t definition_count;
    bool needs_levels; /* without levels all of its features are missing */
    bool (*wanted)(const struct texture_options *options);
    size_t (*sets)(const struct texture_options *options); /* NULL: one */
    /* Adds the settings of a set that are the family's own; NULL: there are none. */
    void (*describe)(const struct texture_options *options, size_t set,
                     char settings[FEATURE_SETTINGS]);
    /* How many counts a set takes, and their counting on the lane with the operation that a job
     * demands for it, with the errors of texture.h. NULL: the histograms and the bits are all it
     * needs. */
    enum kernels_op_id op;
    size_t (*count_size)(const struct feature_region *region, size_t set);
    int (*count)(const struct feature_region *region, size_t set, uint64_t *counts,
                 struct error *error);
    /* Fills values[definition_count], all missing before; 0 or -ENOMEM. */
    int (*values)(const struct feature_region *region, size_t set, const uint64_t *counts,
                  struct feature_value *values);
};

#define FEATURE_FAMILY_MAX 64 /* definitions of a family */

/* All families, in the order of their features in a record. */
#define FAMILY(id) extern const struct feature_family family_##id;
#include "base/families.def"
extern const struct feature_family *const feature_families[];
extern const size_t feature_family_count;

static inline struct feature_value
feature_present(double value)
{
    return (struct feature_value){value, FEATURE_PRESENT};
}

static inline struct feature_value
feature_absent(enum feature_missing missing)
{
    return (struct feature_value){0, missing};
}

#ifdef __cplusplus
}
#endif
#endif
