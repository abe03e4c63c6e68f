/*
 * family.h - feature families: their definitions, needs, counts from a lane, and values from
 * counts.
 *
 * Counts are exact integers, bit-identical on every backend. Values are computed from them in
 * double precision in a fixed order, so that all backends agree. Definitions are those of IBSI
 * (reference manual, arXiv:1612.07003) and Haralick (1973, f14). A feature that is undefined for
 * its region has the reason instead of a value.
 *
 * A family is a file in this folder with one struct feature_family, and a row in families.def. It
 * receives regions, re-segmentation and levels from its caller. A family that covers several
 * regions or makes a map of the volume prepares that once.
 */
#ifndef NOCTULE_KERNELS_FEATURES_FAMILY_H
#define NOCTULE_KERNELS_FEATURES_FAMILY_H

#include "base/concept.h"
#include "base/error.h"
#include "base/feature.h"
#include "base/texture_options.h"
#include "kernels/kernels.h"

#include <errno.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

struct feature_value {
    double value; /* 0 if missing */
    enum feature_missing missing;
};

/* Definition of a feature. `ibsi` is "" if IBSI has no code. */
struct feature_definition {
    const char *name;    /* "joint_entropy": stable, lower case */
    const char *meaning; /* "Joint entropy": as coded meaning */
    const char *ibsi;    /* "TU9B" */
    const char *unit;    /* UCUM: "1", "ml", "mm" */
    /* 1: times the unit of the image's values, 2: times its square; "": that unit only */
    int value_power;
    bool of_levels; /* computed from levels, in a family that does not need levels */
    bool of_voxels; /* counts voxels, in a family that measures lengths */
    bool of_bits;   /* computed from the morphological mask only, in a family that needs values */
    bool of_shift;  /* computed from values plus energy_shift */
    int percent;    /* of intensity or volume, its own setting; 0: no setting */
};

/* The volume to measure. */
struct feature_volume {
    struct kernels_lane *lane; /* holds the volume */
    const struct texture_options *options;
    int64_t columns, rows, slices;
    int64_t first[3];         /* first voxel, if this is a part of a larger measured volume */
    double voxel_to_mm[3][4]; /* affine: LPS mm of the larger volume's voxel (x, y, z) */
    double spacing[3];        /* mm along columns, rows, slices */
    /* Tables over all possible pixel values: one for all slices, or one per slice. */
    size_t tables;                        /* 1, or the number of slices */
    size_t values;                        /* 256 or 65536 */
    int32_t smallest;                     /* stored value of the first entry */
    const struct image_rescale *rescales; /* one per table; no slope is 0 */
    const struct image_range *paddings;   /* stored values to ignore, one per table; may be empty */
    const uint64_t **regions;             /* bits of all regions to measure */
    size_t region_count;
    /*
     * Real-world values of the voxels; NAN: padding. NULL: they are those of the lane's stored values. Else the lane has
     * the levels of one region at a time (0: not in the intensity mask), in one table without rescale and padding.
     */
    const double *reals;
};

struct value_list;

/*
 * A region of the volume, with IBSI's two masks. The morphological mask is its bits. The intensity
 * mask has those voxels of the bits that have a value (padding has none) and that re-segmentation
 * keeps. These are exactly the voxels counted in `histograms` (feature_region_keeps). Values and
 * levels belong to the intensity mask.
 */
struct feature_region {
    const struct feature_volume *volume;
    size_t number;              /* index among the volume's regions */
    const void *prepared;       /* by the family's `prepare` */
    const void *form;           /* by the family's `form`, for `values`; NULL: `values` makes it */
    const uint64_t *bits;       /* as in struct image_mask; NULL: the whole volume */
    const uint64_t *histograms; /* [tables][values] of texture_histogram_run, intensity mask */
    double kept[2];             /* real-world values kept by re-segmentation; -INFINITY .. INFINITY: all */
    double extremes[2];         /* real-world, of the intensity mask; INFINITY, -INFINITY: it is empty */
    /* The reason for missing levels, or level_of[tables][values] (texture.h) and their number. */
    enum feature_missing no_levels;
    const uint16_t *level_of;
    int levels;
    /* With more than TEXTURE_MAX_LEVELS: the level of each voxel of the volume, 0: none. level_of is then not used. */
    const uint32_t *wide;
};

/* Names of a set with its own histograms and map. */
struct feature_title {
    const char *word;              /* "tlbap" */
    struct coded_concept quantity; /* meaning of a code of the map */
    char settings[32];             /* "", "threshold=0.9,strict" */
    int32_t place;                 /* index among all possible sets of the family, from 0 */
};

struct feature_map {
    struct feature_title title;
    const uint8_t *codes; /* owned by the lane, valid until the next measurement */
};

enum feature_need { FEATURE_NEEDS_BITS, FEATURE_NEEDS_VALUES, FEATURE_NEEDS_LEVELS };

/* The space in which a family measures lengths: none, the plane of a slice, or the volume in the patient. */
enum feature_space { FEATURE_OF_VOXELS, FEATURE_OF_PLANE, FEATURE_OF_VOLUME };

/* Counts that are results themselves: none, histograms of 256 codes, or matrices if requested. */
enum feature_keep { FEATURE_KEEPS_NOTHING, FEATURE_KEEPS_HISTOGRAM, FEATURE_KEEPS_MATRICES };

/* A family measures a region in sets, for example one per distance. `count` and `values` are called
 * only if there are levels or the family does not need any. */
struct feature_family {
    const char *name; /* "glcm" */
    const struct feature_definition *definitions;
    size_t definition_count;
    /* if it needs levels and there are none, all its features are missing */
    enum feature_need needs;
    double margin_mm; /* required margin of values around a region */
    enum feature_space space;
    /* Values are one set and depend only on voxels and intensities, not on options. Option groups
     * with equal voxels and intensities share them. */
    bool of_intensities;
    enum feature_keep keeps;
    /* The options that enable the family: a choice of `families`, `first_order`, or those that `wanted` reads instead
     * if it is not NULL. */
    enum texture_family choice;
    bool by_first_order;
    bool (*wanted)(const struct texture_options *options);
    size_t (*sets)(const struct texture_options *options); /* NULL: one */
    /* Adds the set's own settings; NULL: no settings. */
    void (*describe)(const struct texture_options *options, size_t set, char settings[FEATURE_SETTINGS]);
    /* Returns whether a feature is enabled; NULL: all are. */
    bool (*tells)(const struct texture_options *options, size_t feature);
    /* For families with histograms or maps. */
    void (*title)(const struct texture_options *options, size_t set, struct feature_title *title);
    /*
     * Called once before regions are measured. `prepared` has prepared_size bytes, initially zero,
     * and is passed to `count` and `values` in the region. `prepare` fills it using the lane. NULL:
     * not used. If requested, maps[set] receives the codes, map_size voxels each. Otherwise, or if
     * a map has no voxels, maps is NULL.
     */
    size_t (*prepared_size)(const struct feature_volume *volume);
    int (*prepare)(const struct feature_volume *volume, void *prepared, struct feature_map *maps, struct error *error);
    size_t (*map_size)(const struct feature_volume *volume); /* NULL: no maps */
    const char *no_map;                                      /* message if a requested map has no voxels */
    /*
     * For families with costly work on the bits alone: `form` has form_size bytes, initially zero,
     * and is passed to `values`. Any threads may compute its parts, in parallel and while the lane
     * is busy. form_clear must free their memory, also if a part fails. Returns 0 or -ENOMEM. NULL:
     * not used.
     */
    size_t form_size, form_parts;
    int (*form)(const struct feature_region *region, size_t part, void *form);
    void (*form_clear)(void *form);
    /*
     * Counts a set. The caller must free the counts, also after an error. `count` and `prepare` run
     * the operation that the job demands for the family, with the errors of texture.h. NULL:
     * histograms and bits suffice. Consecutive families with the same `count` share its result,
     * which covers the needs of all of them.
     */
    enum kernels_op_id op;
    const void *(*demand)(const struct texture_options *options, bool maps); /* NULL: kernels_asked */
    int (*count)(const struct feature_region *region, size_t set, uint64_t **counts, struct error *error);
    /* Counting is slow and values are fast: other families count first, so that their values are
     * computed meanwhile. */
    bool counted_last;
    /*
     * Returns the max bytes that `count` and `values` use for a set of any region, ignoring sizes
     * much smaller than a slice. `largest` is the whole volume as a region with the max number of
     * levels. NULL: no more memory.
     */
    size_t (*bytes)(const struct feature_region *largest, size_t set);
    /* Sets values[definition_count], all initially missing. Returns 0 or -ENOMEM. NULL: no
     * features. */
    int (*values)(const struct feature_region *region, size_t set, const uint64_t *counts,
                  struct feature_value *values);
};

#define FEATURE_FAMILY_MAX 64 /* max definitions of a family */

/* All families, in the order of their features in a record. */
#define FAMILY(id) extern const struct feature_family family_##id;
#include "base/families.def"

enum {

#define FAMILY(id) FEATURE_FAMILY_##id,
#include "base/families.def"
    FEATURE_FAMILIES,
};
extern const struct feature_family *const feature_families[FEATURE_FAMILIES];

/* Returns whether the options enable a family. */
bool feature_family_wanted(const struct feature_family *family, const struct texture_options *options);

/* Returns whether a voxel of the region's bits, with that stored value and slice, is in its
 * intensity mask. */
static inline bool
feature_region_keeps(const struct feature_region *region, int64_t slice, int32_t stored)
{
    const struct feature_volume *volume = region->volume;
    const size_t table = volume->tables > 1 ? (size_t)slice : 0;

    return region->histograms[table * volume->values + (size_t)(stored - volume->smallest)] > 0;
}

static inline struct image_extent
feature_extent(const struct feature_volume *volume)
{
    return (struct image_extent){volume->columns, volume->rows, volume->slices};
}

/* Allocates zeroed counts. */
static inline int
feature_counts_make(size_t size, uint64_t **counts, struct error *error)
{
    *counts = (uint64_t *)calloc(size, sizeof(**counts));
    return *counts ? 0 : error_set_system(error, -ENOMEM, "count texture");
}

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
