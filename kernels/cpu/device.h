/*
 * device.h - what the files of the CPU backend share.
 *
 * A lane owns four blocks of memory, the voxels, the bits of the level set, what fuzzy
 * connectedness needs and what texture needs, which grow in volume_begin only. All lanes of a
 * device share its pool of threads.
 */
#ifndef NOCTULE_BACKEND_CPU_H
#define NOCTULE_BACKEND_CPU_H

#include "kernels/backend.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/pool.h"

struct cpu_device {
    struct kernels_device base;
    const struct isa *isa;
    struct cpu_pool *pool;
};

/* Page-aligned; contents are undefined after it has grown. */
struct cpu_block {
    void *memory;
    size_t size;
};

/* One label of the level set; the arrays stand in the lane's block of bits. */
struct cpu_label {
    struct kernels_level_set_label given;
    uint64_t *range;  /* one bit a voxel: in range; work space once the flood has begun */
    uint64_t *inside; /* the initial region, then the final one */
    int64_t voxels;   /* bits set in inside */
    int64_t runs;     /* runs of in-range voxels within rows */
};

/* What fuzzy connectedness needs, in the lane's block of its name. */
struct cpu_fuzzy {
    double *first; /* the tables of fuzzy.h, for any span of the pixel type */
    double *second;
    uint64_t **objects;    /* one packed volume an object */
    uint64_t *edge[3];     /* packed, of one step */
    uint64_t *settled;     /* packed, of one step; NULL where no scene is computed */
    void *space;           /* tiles_space bytes */
    uint16_t *affinity[3]; /* one a voxel, with the next one along an axis; NULL likewise */
    uint32_t *buckets;     /* of voxels by strength; NULL likewise */
    uint16_t *scenes;      /* those that are wanted, and one for work if others are computed */
    uint16_t *best;        /* the strongest so far of several objects; NULL where none compete */
};

/* A row's voxels that may have a level: first .. end - 1; none when first >= end. */
struct cpu_texture_row {
    int64_t first;
    int64_t end;
};

/* What texture needs, in the lane's block of its name. */
struct cpu_texture {
    void *levels;                 /* of every voxel: uint8_t, or uint16_t for 256 levels */
    void *empty;                  /* a row without levels */
    struct cpu_texture_row *rows; /* one a row of the volume */
    unsigned char *spaces;        /* a thread's tables, one after the other */
    int16_t *bounds;              /* of TLBAP, one for each largest value of a window */
};

struct cpu_lane {
    struct kernels_lane base;
    struct cpu_block voxels;
    struct cpu_block bits;
    struct cpu_block connected;
    struct cpu_block textured;
    struct cpu_fuzzy fuzzy;
    struct cpu_texture texture;
    struct cpu_label *labels;
    uint64_t *turned;  /* level set work space: the range bits packed along another axis */
    void *flood_space; /* level set work space */
};

/* kernels_device_open, on the named instruction set (isa_find) instead of the best one. */
int cpu_device_open(const struct kernels_device_options *options, const char *isa,
                    struct kernels_device **device, char *reason, size_t reason_size);

/* 0 or -ENOMEM, after which the block is empty. */
int cpu_block_reserve(struct cpu_block *block, size_t size);

static inline struct cpu_lane *
cpu_lane_of(struct kernels_lane *lane)
{
    return (struct cpu_lane *)lane;
}

static inline const struct cpu_device *
cpu_device_of(const struct kernels_lane *lane)
{
    return (const struct cpu_device *)lane->device;
}

/* The level set's part of the table, and its share of volume_begin and volume_ready. */
int cpu_level_set_reserve(struct cpu_lane *lane);
int cpu_level_set_begin(struct kernels_lane *lane, const struct kernels_level_set_label *labels,
                        char *reason, size_t reason_size);
void cpu_level_set_slice(struct cpu_lane *lane, int64_t z);
int cpu_level_set_finish(struct kernels_lane *lane, struct image_mask *masks, char *reason,
                         size_t reason_size);
int cpu_level_set_codes(struct kernels_lane *lane, size_t label, int8_t *codes);

/* Fuzzy connectedness likewise. */
int cpu_fuzzy_reserve(struct cpu_lane *lane);
int cpu_fuzzy_run(struct kernels_lane *lane, const struct kernels_fuzzy_object *objects,
                  bool relative, struct kernels_fuzzy_result *results, char *reason,
                  size_t reason_size);

/* Texture likewise. */
int cpu_texture_reserve(struct cpu_lane *lane);
int cpu_glcm_run(struct kernels_lane *lane, const struct texture_glcm *request, uint64_t *counts,
                 char *reason, size_t reason_size);
int cpu_histogram_run(struct kernels_lane *lane, const uint64_t *region, bool per_slice,
                      uint64_t *counts, char *reason, size_t reason_size);
int cpu_patterns_run(struct kernels_lane *lane, const struct texture_patterns *request,
                     char *reason, size_t reason_size);

#endif
