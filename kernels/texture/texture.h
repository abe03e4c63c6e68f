/*
 * texture.h - texture counts on a lane's volume: value histograms, grey level co-occurrence
 * matrices (Hong 2018, IBSI), neighbourhoods, runs and zones of levels (IBSI), and local patterns
 * (Masur 2022).
 *
 * Results are integers, bit-identical on every backend and equal to the references in
 * tests/kernels. features/family.h computes features from them.
 *
 * Shapes, threads: as in kernels.h. Padding bits of a region's rows are ignored.
 * Errors: as in kernels.h; also -EBUSY if a slice is not announced, and -EINVAL without a demand
 * for KERNELS_GLCM, KERNELS_HISTOGRAM and so on (kernels_asked; KERNELS_PATTERNS has its own
 * demand). Calls may be repeated within a job.
 * Memory: kernels_volume_begin reserves it by the demand. The caller owns the result arrays.
 */
#ifndef NOCTULE_KERNELS_TEXTURE_TEXTURE_H
#define NOCTULE_KERNELS_TEXTURE_TEXTURE_H

#include "base/texture_options.h"
#include "kernels/kernels.h"
#include "kernels/texture/region.h"

#ifdef __cplusplus
extern "C" {
#endif

struct kernels_memory; /* op.h */

#define TEXTURE_MAX_LEVELS 256

/*
 * A discretisation as a table. The level of stored value v is level_of[v - smallest of the pixel
 * type]: 1 .. levels, or 0 if excluded (re-segmentation, padding). There may be one table, or one
 * per slice, of 256 (uint8) or 65536 entries.
 */
struct texture_levels {
    int levels; /* 2 .. TEXTURE_MAX_LEVELS */
    const uint16_t *level_of;
    size_t table_count; /* 1, or the number of slices */
};

/* Raw directional counts. Voxel v and its neighbour v + offset count once at [level of v][level of
 * the neighbour]. Both must have a level and lie in the volume and the region. */
struct texture_glcm {
    struct texture_levels levels;
    const uint64_t *region;               /* bits as in struct image_mask; NULL: every voxel */
    const struct texture_offset *offsets; /* must not be (0, 0, 0); |component| <= 255 */
    size_t offset_count;                  /* at least 1; offsets may be repeated */
    bool per_slice;                       /* one matrix per slice of v; otherwise one for all slices */
};

/* Overwrites counts[((z * offset_count) + o) * levels * levels + (i - 1) * levels + (j - 1)]; z = 0
 * unless per_slice. */
int texture_glcm_run(struct kernels_lane *lane, const struct texture_glcm *request, uint64_t *counts,
                     struct error *error);

/*
 * Counts each stored value in the region (NULL: the volume) at counts[v - smallest of the pixel
 * type]. A histogram has 256 or 65536 entries. There is one per slice if per_slice, otherwise one.
 */
int texture_histogram_run(struct kernels_lane *lane, const uint64_t *region, bool per_slice, uint64_t *counts,
                          struct error *error);

/* Neighbourhoods. The neighbours of a voxel are the other voxels at most `distance` away along each
 * axis, in its slice or in space. Only voxels of the region with a level count. */
#define TEXTURE_MAX_DISTANCE 3

enum texture_neighbour_kind {
    TEXTURE_ALIKE,     /* voxels by number of neighbours that differ from them by at most alpha */
    TEXTURE_PRESENT,   /* voxels by number of neighbours */
    TEXTURE_DEVIATION, /* sum over these voxels of |n * level - sum of the n neighbours' levels| */
    TEXTURE_NEIGHBOUR_KINDS,
};

struct texture_neighbours {
    struct texture_levels levels;
    const uint64_t *region; /* as in struct texture_glcm */
    int distance;           /* 1 .. TEXTURE_MAX_DISTANCE */
    int alpha;              /* 0 .. TEXTURE_MAX_LEVELS */
    bool in_slice;
    bool per_slice; /* counts per slice; requires in_slice */
};

/* Returns the max number of neighbours plus 1. */
static inline size_t
texture_neighbours_width(const struct texture_neighbours *request)
{
    const size_t side = 2 * (size_t)request->distance + 1;

    return request->in_slice ? side * side : side * side * side;
}

/* Overwrites counts[((z * TEXTURE_NEIGHBOUR_KINDS + kind) * levels + level - 1) * width + n]; z = 0
 * unless per_slice. */
int texture_neighbours_run(struct kernels_lane *lane, const struct texture_neighbours *request, uint64_t *counts,
                           struct error *error);

/* Runs: maximal sequences of voxels of the region with one level, consecutive along a direction. */
#define TEXTURE_MAX_DIRECTIONS 13
#define TEXTURE_MAX_RUN        16384

struct texture_runs {
    struct texture_levels levels;
    const uint64_t *region;
    const struct texture_offset *directions; /* components -1 .. 1; must not be (0, 0, 0) */
    size_t direction_count;                  /* 1 .. TEXTURE_MAX_DIRECTIONS */
    /* max length to count: at least the longest side of the region's box among the directions'
     * axes */
    int64_t longest;
    bool per_slice; /* requires directions within slices */
};

static inline size_t
texture_runs_size(const struct texture_runs *request, int64_t slices)
{
    return (request->per_slice ? (size_t)slices : 1) * request->direction_count *
           (size_t)(request->levels.levels * request->longest);
}

/* Overwrites counts[((z * direction_count + d) * levels + level - 1) * longest + length - 1].
 * Returns -E2BIG if such a side is longer than TEXTURE_MAX_RUN. */
int texture_runs_run(struct kernels_lane *lane, const struct texture_runs *request, uint64_t *counts,
                     struct error *error);

/*
 * Zones: voxels of the region with one level that are connected by faces, edges and corners, in
 * their slice or in space. A zone has a size in voxels, and a distance, the smallest of its voxels'
 * distances. A voxel's distance is the number of steps along the axes (in the slice, or in space)
 * to the nearest voxel outside the region or the volume. It is 1 at the border.
 */
struct texture_zones {
    struct texture_levels levels;
    const uint64_t *region;
    bool distances; /* count by distance too */
    bool in_slice;
    bool per_slice; /* the key includes the slice; requires in_slice */
};

/* A zone's key, ordered by slice (0 unless per_slice), level, and size or distance. */
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

/* The number of zones with a key. There are far fewer keys than zones. */
struct texture_zone {
    uint64_t key, count;
};

struct texture_zone_list {
    struct texture_zone *zones; /* in ascending order of unique keys */
    size_t count;
};

/* Counts all zones by size and by distance. The lists must be empty. The caller must free their
 * zones, also after an error. Returns -E2BIG if the region's box has 2^31 voxels or more. */
int texture_zones_run(struct kernels_lane *lane, const struct texture_zones *request,
                      struct texture_zone_list lists[TEXTURE_ZONE_KINDS], struct error *error);

/*
 * Local patterns of each slice's 3x3 windows of stored values. Voxels on the edge of their slice
 * have no pattern. Bits: E 1, NE 2, N 4, NW 8, W 16, SW 32, S 64, SE 128 (x to the right, y down).
 * In a window with centre c and largest value m (including the centre), the bit of neighbour n is
 * set
 *
 * - by LBP if n >= c;
 *
 * - by TLBAP if n >= c and n >= threshold * m, compared exactly. The threshold is
 *   threshold_millionths / 10^6. `strict`: > in both (the listing of Masur 2022);
 *
 * - by LANADP if the averages of n_i+1, n_i+2 and of n_i-1, n_i-2 (cyclic) are both >= n_i or
 *   both <= n_i. Averages keep halves or, with `integer_average`, are truncated towards 0 as in
 *   the listing.
 */
struct texture_patterns_demand {
    int maps;   /* 0 .. TEXTURE_PATTERNS: max maps per run */
    bool ahead; /* on a GPU: room for the codes of the whole volume, for texture_patterns_begin; no maps */
};

/* Demands for each number of maps. */
extern const struct texture_patterns_demand texture_patterns_demands[TEXTURE_PATTERNS + 1];
extern const struct texture_patterns_demand texture_patterns_demand_ahead;

struct texture_patterns {
    bool wanted[TEXTURE_PATTERNS];
    int32_t threshold_millionths; /* 0 .. 1000000 */
    bool strict;
    bool integer_average;
    bool maps[TEXTURE_PATTERNS]; /* maps to return; must be requested patterns */
    /*
     * Histograms of the codes in regions (NULL: the volume), without voxels on an edge. Overwrites
     * histograms[(region * TEXTURE_PATTERNS + pattern) * 256 + code], with 0 for patterns not
     * requested.
     */
    const uint64_t *const *regions;
    size_t region_count;
    uint64_t *histograms; /* NULL when region_count is 0 */
};

int texture_patterns_run(struct kernels_lane *lane, const struct texture_patterns *request, struct error *error);

/*
 * Makes the codes of rows as they are uploaded, on a GPU. Call it before the first slice is announced, with a demand `ahead`.
 * Regions and histograms of this request are not used. Runs with the same patterns and settings then only count; others run
 * as without it. Has no effect on the CPU.
 */
int texture_patterns_begin(struct kernels_lane *lane, const struct texture_patterns *request, struct error *error);

/* Returns the map of the last run: one code per voxel not on an edge, x fastest. The lane owns it,
 * and it is valid until the next run. Returns NULL if it was not requested. */
const uint8_t *texture_patterns_map(const struct kernels_lane *lane, enum texture_pattern pattern);

/* Returns (columns - 2) * (rows - 2) * slices. */
size_t texture_patterns_codes(const struct image_extent *extent);

/* Private to kernels/: the head of every KERNELS_PATTERNS state, its needs, and its `keep`. */
struct texture_patterns_state {
    struct texture_patterns_demand demand;
    uint8_t *room[TEXTURE_PATTERNS]; /* as many as in the demand */
    uint8_t *maps[TEXTURE_PATTERNS]; /* pointers into `room`, of this or the last run */
};

bool texture_patterns_needs(struct kernels_lane *lane, const void *demand);
void texture_patterns_keep(struct kernels_lane *lane, struct kernels_memory *memory);

/* Requests of the operations. KERNELS_PATTERNS uses struct texture_patterns. */
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
