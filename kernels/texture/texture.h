/*
 * texture.h - counts of texture on a lane's announced volume: value histograms, grey level
 * co-occurrence matrices (Hong 2018, IBSI), neighbourhoods, runs and zones of levels (IBSI), and local
 * patterns (Masur 2022).
 *
 * Everything here is integers, bit-identical on every backend and equal to the references in
 * tests/kernels; features/family.h turns counts into features. Conventions (shapes, errors,
 * threads) are those of kernels.h. All calls need every slice announced (-EBUSY otherwise) and may
 * be made any number of times a job; what they need is reserved by kernels_volume_begin when the
 * demand asks for KERNELS_GLCM, KERNELS_HISTOGRAM and so on (kernels_asked; KERNELS_PATTERNS has a demand
 * of its own; -EINVAL otherwise). Bits that pad a region's rows may be anything. Arrays for results are the caller's.
 */
#ifndef NOCTULE_TEXTURE_H
#define NOCTULE_TEXTURE_H

#include "base/texture.h"
#include "kernels/kernels.h"
#include "kernels/texture/region.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kernels_memory; /* op.h */

#define TEXTURE_MAX_LEVELS 256

/*
 * A discretisation as a table: the level of stored value v is level_of[v - smallest of the pixel
 * type], 1 .. levels, or 0 for what is left out (re-segmentation, padding). One table, or one a
 * slice, each of 256 (uint8) or 65536 entries.
 */
struct texture_levels {
    int levels; /* 2 .. TEXTURE_MAX_LEVELS */
    const uint16_t *level_of;
    size_t table_count; /* 1, or one a slice */
};

/*
 * Raw directional counts: voxel v and its neighbour v + offset, both inside the volume and the
 * region and neither left out, count once at [level of v][level of the neighbour].
 */
struct texture_glcm {
    struct texture_levels levels;
    const uint64_t *region;               /* bits as of struct image_mask; NULL: every voxel */
    const struct texture_offset *offsets; /* none is (0, 0, 0); |component| <= 255 */
    size_t offset_count;                  /* at least 1; the same offset may stand there twice */
    bool per_slice; /* a matrix for each slice of v, else one for all slices */
};

/*
 * counts[((z * offset_count) + o) * levels * levels + (i - 1) * levels + (j - 1)], z = 0 unless
 * per_slice, is added to nothing: it is overwritten.
 */
int texture_glcm_run(struct kernels_lane *lane, const struct texture_glcm *request,
                     uint64_t *counts, struct error *error);

/*
 * How often each stored value occurs in the region (NULL: the volume): counts[v - smallest of the
 * pixel type], 256 or 65536 entries a matrix; one for all slices, or with per_slice one for each.
 */
int texture_histogram_run(struct kernels_lane *lane, const uint64_t *region, bool per_slice,
                          uint64_t *counts, struct error *error);

/*
 * Neighbourhoods: the neighbours of a voxel of the region that has a level are those other voxels of
 * the region with a level that are at most `distance` away along each axis, in its slice or in space.
 */
#define TEXTURE_MAX_DISTANCE 3

enum texture_neighbour_kind {
    TEXTURE_ALIKE,   /* voxels by how many neighbours differ from them by at most alpha */
    TEXTURE_PRESENT, /* voxels by how many neighbours they have */
    TEXTURE_DEVIATION, /* the sum over these voxels of |n * level - sum of the n neighbours' levels| */
    TEXTURE_NEIGHBOUR_KINDS,
};

struct texture_neighbours {
    struct texture_levels levels;
    const uint64_t *region; /* as of struct texture_glcm */
    int distance;           /* 1 .. TEXTURE_MAX_DISTANCE */
    int alpha;              /* 0 .. TEXTURE_MAX_LEVELS */
    bool in_slice;
    bool per_slice; /* counts for each slice; in_slice */
};

/* One more than there can be neighbours. */
static inline size_t
texture_neighbours_width(const struct texture_neighbours *request)
{
    const size_t side = 2 * (size_t)request->distance + 1;

    return request->in_slice ? side * side : side * side * side;
}

/* counts[((z * TEXTURE_NEIGHBOUR_KINDS + kind) * levels + level - 1) * width + n], z = 0 unless
 * per_slice, is overwritten. */
int texture_neighbours_run(struct kernels_lane *lane, const struct texture_neighbours *request,
                           uint64_t *counts, struct error *error);

/*
 * Runs: voxels of the region of one level that follow each other in a direction, as many as there
 * are.
 */
#define TEXTURE_MAX_DIRECTIONS 13
#define TEXTURE_MAX_RUN        8192

struct texture_runs {
    struct texture_levels levels;
    const uint64_t *region;
    const struct texture_offset *directions; /* components of -1 .. 1; none is (0, 0, 0) */
    size_t direction_count;                  /* 1 .. TEXTURE_MAX_DIRECTIONS */
    int64_t longest; /* that is counted: at least the longest side of the region's box along which a
                        direction leads */
    bool per_slice;  /* directions within slices */
};

static inline size_t
texture_runs_size(const struct texture_runs *request, int64_t slices)
{
    return (request->per_slice ? (size_t)slices : 1) * request->direction_count *
           (size_t)(request->levels.levels * request->longest);
}

/* counts[((z * direction_count + d) * levels + level - 1) * longest + length - 1] is overwritten.
 * -E2BIG where such a side is longer than TEXTURE_MAX_RUN. */
int texture_runs_run(struct kernels_lane *lane, const struct texture_runs *request,
                     uint64_t *counts, struct error *error);

/*
 * Zones: voxels of the region of one level that hang together by faces, edges and corners, in their
 * slice or in space. A zone is told by how many voxels it has, and by the smallest distance of its
 * voxels: by how many steps along the axes (in the slice, or in space) it is to the nearest voxel
 * that is not of the region, or beyond the volume; 1 at the border.
 */
struct texture_zones {
    struct texture_levels levels;
    const uint64_t *region;
    bool distances; /* are asked for, beside sizes */
    bool in_slice;
    bool per_slice; /* keys have the slice; in_slice */
};

/* A zone as a number: in order of slice (0 unless per_slice), level and size or distance. */
#define TEXTURE_ZONE_VALUE_BITS 34
#define TEXTURE_ZONE_LEVEL_BITS 9

#ifdef __CUDACC__
__host__ __device__
#endif
    static inline uint64_t
    texture_zone_key(int64_t slice, uint32_t level, uint64_t value)
{
    return ((uint64_t)slice << TEXTURE_ZONE_LEVEL_BITS | level) << TEXTURE_ZONE_VALUE_BITS | value;
}

static inline uint64_t
texture_zone_slice(uint64_t key)
{
    return key >> (TEXTURE_ZONE_VALUE_BITS + TEXTURE_ZONE_LEVEL_BITS);
}

static inline uint64_t
texture_zone_level(uint64_t key)
{
    return key >> TEXTURE_ZONE_VALUE_BITS & ((1u << TEXTURE_ZONE_LEVEL_BITS) - 1);
}

static inline uint64_t
texture_zone_value(uint64_t key)
{
    return key & ((UINT64_C(1) << TEXTURE_ZONE_VALUE_BITS) - 1);
}

enum texture_zone_kind { TEXTURE_ZONE_SIZES, TEXTURE_ZONE_DISTANCES, TEXTURE_ZONE_KINDS };

/* How many zones have a key: there are far fewer of these than of zones. */
struct texture_zone {
    uint64_t key, count;
};

struct texture_zone_list {
    struct texture_zone *zones; /* in ascending order of keys, each once */
    size_t count;
};

/* All zones by size and by distance, empty lists at first; the caller frees their zones, after an error
 * too. -E2BIG where the region's box has 2^31 voxels or more. */
int texture_zones_run(struct kernels_lane *lane, const struct texture_zones *request,
                      struct texture_zone_list lists[TEXTURE_ZONE_KINDS], struct error *error);

/*
 * Local patterns of each slice's 3x3 windows, on stored values. A pattern exists for voxels that
 * are not on the edge of their slice. Bits of all three: E 1, NE 2, N 4, NW 8, W 16, SW 32, S 64,
 * SE 128 (x to the right, y down). For a window of centre c and largest value m (the centre's or a
 * neighbour's) the bit of neighbour n is set
 *
 * - by LBP where n >= c;
 *
 * - by TLBAP where n >= c and n >= threshold * m, exactly, the threshold being threshold_millionths
 *   / 10^6; `strict`: > for both (the listing of Masur 2022);
 *
 * - by LANADP where the averages of n_i+1, n_i+2 and of n_i-1, n_i-2 (cyclic) are both >= n_i or
 *   both <= n_i; exact halves, or with `integer_average` cut to integers towards 0 as the listing's
 *   arithmetic does.
 */
struct texture_patterns_demand {
    int maps; /* 0 .. TEXTURE_PATTERNS: what a run hands out at most */
};

/* One for each such number. */
extern const struct texture_patterns_demand texture_patterns_demands[TEXTURE_PATTERNS + 1];

struct texture_patterns {
    bool wanted[TEXTURE_PATTERNS];
    int32_t threshold_millionths; /* 0 .. 1000000 */
    bool strict;
    bool integer_average;
    bool maps[TEXTURE_PATTERNS]; /* are wanted back, of those that are wanted */
    /* Histograms of the codes within regions (their voxels not on an edge); a NULL region is the
     * whole volume. histograms[(region * TEXTURE_PATTERNS + pattern) * 256 + code], overwritten; 0
     * for patterns that are not wanted. */
    const uint64_t *const *regions;
    size_t region_count;
    uint64_t *histograms; /* NULL when region_count is 0 */
};

int texture_patterns_run(struct kernels_lane *lane, const struct texture_patterns *request,
                         struct error *error);

/* The map that the last run has made: a code for each voxel that is not on an edge, x fastest. It is the
 * lane's, until the next run. NULL: none was wanted. */
const uint8_t *texture_patterns_map(const struct kernels_lane *lane, enum texture_pattern pattern);

/* (columns - 2) * (rows - 2) * slices. */
size_t texture_patterns_codes(const struct image_extent *extent);

/* Within kernels/: what the states of KERNELS_PATTERNS begin with, its needs, and what it keeps. */
struct texture_patterns_state {
    struct texture_patterns_demand demand;
    uint8_t *room[TEXTURE_PATTERNS]; /* as many as are demanded */
    uint8_t *maps[TEXTURE_PATTERNS]; /* among it, of this run or the last */
};

bool texture_patterns_needs(struct kernels_lane *lane, const void *demand);
void texture_patterns_keep(struct kernels_lane *lane, struct kernels_memory *memory);

/* What the operations are given; KERNELS_PATTERNS has struct texture_patterns. */
struct texture_glcm_request {
    const struct texture_glcm *glcm;
    uint64_t *counts;
};

struct texture_neighbours_request {
    const struct texture_neighbours *neighbours;
    uint64_t *counts;
};

struct texture_runs_request {
    const struct texture_runs *runs;
    uint64_t *counts;
};

struct texture_zones_request {
    const struct texture_zones *zones;
    struct zone_tally *tallies; /* one per kind */
};

struct texture_histogram_request {
    const uint64_t *region;
    bool per_slice;
    uint64_t *counts;
};

#ifdef __cplusplus
}
#endif
#endif
