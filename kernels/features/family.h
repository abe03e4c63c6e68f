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
 * Regions, re-segmentation and levels are not its business: it is handed them. One that spans
 * regions, or makes a map of the volume, prepares that once.
 */
#ifndef NOCTULE_FEATURE_FAMILY_H
#define NOCTULE_FEATURE_FAMILY_H

#include "base/concept.h"
#include "base/error.h"
#include "base/feature.h"
#include "base/texture.h"
#include "kernels/kernels.h"

#include <errno.h>
#include <stdlib.h>

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
    const char *unit;    /* UCUM: "1", "ml", "mm" */
    int value_power; /* 1: times the unit of the image's values, 2: times its square; "": that alone */
    bool of_levels; /* of the discretised values, in a family that does not need levels */
    bool of_bits;   /* of the morphological mask alone, in a family that needs values */
    int percent;    /* of intensity or of volume: a setting of its own; 0: none */
};

/* The volume that is measured. */
struct feature_volume {
    struct kernels_lane *lane; /* holds it */
    const struct texture_options *options;
    int64_t columns, rows, slices;
    int64_t first[3];         /* it is a part, which begins there, of a volume that is measured */
    double voxel_to_mm[3][4]; /* affine: LPS mm of that one's voxel (x, y, z) */
    double spacing[3];        /* mm along columns, rows, slices */
    /* Tables over the values that a pixel may have: one for all slices, or one per slice. */
    size_t tables;                        /* 1, or one per slice */
    size_t values;                        /* 256 or 65536 */
    int32_t smallest;                     /* stored value of the first entry */
    const struct image_rescale *rescales; /* one per table; no slope is 0 */
    const struct image_range *paddings; /* the same: stored values that are none; empty: all are */
    const uint64_t **regions;           /* the bits of all that will be measured */
    size_t region_count;
};

/*
 * A region of it, by IBSI's two masks. The morphological mask is its bits. The intensity mask is what
 * of these has a value (padding has none) that re-segmentation keeps: a voxel of the bits is of the
 * intensity mask exactly where `histograms` counts its stored value (feature_region_keeps). Values and
 * levels are the intensity mask's.
 */
struct feature_region {
    const struct feature_volume *volume;
    size_t number;              /* among the volume's regions */
    const void *prepared;       /* by the family */
    const void *form;           /* likewise, for `values`; NULL: they make it */
    const uint64_t *bits;       /* as of struct image_mask; NULL: the whole volume */
    const uint64_t *histograms; /* [tables][values] of texture_histogram_run, intensity mask */
    double
        kept[2]; /* real-world values that re-segmentation may keep; -INFINITY .. INFINITY: all */
    double extremes[2]; /* of the intensity mask, likewise; INFINITY, -INFINITY: it has no voxel */
    /* Levels: why there are none, or level_of[tables][values] (texture.h) and how many. */
    enum feature_missing no_levels;
    const uint16_t *level_of;
    int levels;
};

/* What a set is called where its histograms and its map stand by themselves. */
struct feature_title {
    const char *word;              /* "tlbap" */
    struct coded_concept quantity; /* what a code of the map is */
    char settings[32];             /* "", "threshold=0.9,strict" */
    int32_t place;                 /* among all that the family may have, from 0 */
};

struct feature_map {
    struct feature_title title;
    const uint8_t *codes; /* the lane's, until it measures again */
};

enum feature_need { FEATURE_NEEDS_BITS, FEATURE_NEEDS_VALUES, FEATURE_NEEDS_LEVELS };

/* What of the counts is a result of its own: nothing, histograms of 256 codes, matrices where the
 * options ask for them. */
enum feature_keep { FEATURE_KEEPS_NOTHING, FEATURE_KEEPS_HISTOGRAM, FEATURE_KEEPS_MATRICES };

/*
 * A family measures a region in sets: one, or one per distance ... `count` and `values` are called
 * where there are levels, or the family does not need any.
 */
struct feature_family {
    const char *name; /* "glcm" */
    const struct feature_definition *definitions;
    size_t definition_count;
    enum feature_need needs; /* of a region; without levels all features of who needs them miss */
    double margin_mm;        /* how far around a region it looks at values */
    bool of_intensities; /* its values, in one set, are of voxels and intensities alone, and of no
                                option: groups of options that have the same ones share them */
    enum feature_keep keeps;
    bool (*wanted)(const struct texture_options *options);
    size_t (*sets)(const struct texture_options *options); /* NULL: one */
    /* Adds the settings of a set that are the family's own; NULL: there are none. */
    void (*describe)(const struct texture_options *options, size_t set,
                     char settings[FEATURE_SETTINGS]);
    /* Whether the options have it tell a feature; NULL: it tells all. */
    bool (*tells)(const struct texture_options *options, size_t feature);
    /* Of who keeps histograms, or makes maps. */
    void (*title)(const struct texture_options *options, size_t set, struct feature_title *title);
    /*
     * Once, before a region is measured: so many bytes, zeros at first, of what `count` and `values`
     * are handed as the region's `prepared`, filled with the lane's help. NULL: none. The codes of a
     * map a set, of so many voxels, where they are wanted; else, and where a map has no voxel, maps is
     * NULL.
     */
    size_t (*prepared_size)(const struct feature_volume *volume);
    int (*prepare)(const struct feature_volume *volume, void *prepared, struct feature_map *maps,
                   struct error *error);
    size_t (*map_size)(const struct feature_volume *volume); /* NULL: it makes none */
    const char *no_map; /* told where a map that is wanted has no voxel */
    /*
     * Of who makes much of the bits alone: so many bytes, zeros at first, that `values` is handed as the region's
     * `form`. Their parts are made by any threads, beside each other and while the lane is still at others; what
     * form_clear gives back they may have taken, also where a part fails. 0 or -ENOMEM. NULL: none.
     */
    size_t form_size, form_parts;
    int (*form)(const struct feature_region *region, size_t part, void *form);
    void (*form_clear)(void *form);
    /*
     * Counts a set, into memory that whoever asks for it frees, after an error too; it and `prepare`
     * ask the lane for the operation that a job demands for the family, with the errors of texture.h.
     * NULL: the histograms and the bits are all it needs. Families that follow each other and have one
     * `count` share what it counts, which is what they all want of it by the options.
     */
    enum kernels_op_id op;
    const void *(*demand)(const struct texture_options *options,
                          bool maps); /* NULL: kernels_asked */
    int (*count)(const struct feature_region *region, size_t set, uint64_t **counts,
                 struct error *error);
    /* Counting takes long, and values no time: where others count, too, they come before, so that theirs are made
     * meanwhile. */
    bool counted_last;
    /* The most bytes that `count` and `values` take for a set of any region, told by the volume as one,
     * with as many levels as there may be and nothing else; what is small beside a slice is left out.
     * NULL: that is all. */
    size_t (*bytes)(const struct feature_region *largest, size_t set);
    /* Fills values[definition_count], all missing before; 0 or -ENOMEM. NULL: it has none. */
    int (*values)(const struct feature_region *region, size_t set, const uint64_t *counts,
                  struct feature_value *values);
};

#define FEATURE_FAMILY_MAX 64 /* definitions of a family */

/* All families, in the order of their features in a record. */
#define FAMILY(id) extern const struct feature_family family_##id;
#include "base/families.def"

enum {

#define FAMILY(id) FEATURE_FAMILY_##id,
#include "base/families.def"
    FEATURE_FAMILIES,
};
extern const struct feature_family *const feature_families[FEATURE_FAMILIES];

/* Is a voxel of the region's bits, of that stored value and slice, of its intensity mask? */
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

/* Room for so many counts, zeros at first. */
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
