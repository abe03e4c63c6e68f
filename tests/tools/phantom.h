/*
 * phantom.h - what noctule-phantom draws, and how it is stored.
 *
 * Everything follows from struct phantom: the same one gives the same bytes. No patient anywhere.
 */
#ifndef NOCTULE_PHANTOM_H
#define NOCTULE_PHANTOM_H

#include <stdbool.h>
#include <stdint.h>

enum phantom_kind {
    PHANTOM_CT_HEAD,  /* skull, brain, ventricles, air, table; Hounsfield units */
    PHANTOM_MR_BRAIN, /* scalp, skull, grey and white matter, ventricles */
    PHANTOM_PET,      /* a warm body with hot spots, Bq/ml; the slope differs from slice to slice */
    PHANTOM_SPHERE,   /* a ball of radius size / 4, 40 HU in air, no noise */
    PHANTOM_MAZE,     /* one corridor, one voxel wide, through the whole volume; 40 HU */
};

struct phantom {
    enum phantom_kind kind;
    int32_t columns, rows, slices;
    double spacing[3]; /* mm: x, y, z */
    uint64_t seed;
    int32_t echoes;
    int32_t gap;       /* this slice (from 1) is missing; 0: none */
    int32_t duplicate; /* this slice (from 1) is there twice; 0: none */
    double tilt;       /* of the gantry, degrees */
    int32_t bits;      /* stored: 8, 12 or 16; 8 also in 8 allocated ones */
    bool is_signed;
    bool multi_frame;
    bool instances_lie; /* Images in Acquisition names more than there are */
};

/* An image of the series. */
struct phantom_plane {
    int32_t slice; /* from 0 */
    int32_t echo;  /* from 0 */
    int32_t copy;  /* 1: the duplicate */
};

/* Real-world values of one plane: rows * columns of them. */
void phantom_draw(const struct phantom *phantom, const struct phantom_plane *plane,
                  int32_t *values);

/*
 * Writes the planes as one series into the folder: one file each, or one multi-frame file. 0 or
 * -errno; the series' UID goes into uid (65 bytes).
 */
int phantom_store(const struct phantom *phantom, const struct phantom_plane *planes,
                  int32_t plane_count, const char *folder, char *uid);

#endif
