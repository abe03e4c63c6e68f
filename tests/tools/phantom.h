/*
 * phantom.h - describes the pictures of noctule-phantom and how to store them.
 *
 * Everything depends only on struct phantom: an equal one gives the same bytes. There is no patient data.
 */
#ifndef NOCTULE_PHANTOM_H
#define NOCTULE_PHANTOM_H

#include <stdbool.h>
#include <stdint.h>

struct part10;

enum phantom_kind {
    PHANTOM_CT_HEAD,  /* skull, brain, ventricles, air, table; Hounsfield units */
    PHANTOM_MR_BRAIN, /* scalp, skull, grey and white matter, ventricles */
    PHANTOM_PET,      /* a warm body with hot spots, Bq/ml; the slope varies per slice */
    PHANTOM_SPHERE,   /* a ball of radius size / 4, 40 HU in air, no noise */
    PHANTOM_MAZE,     /* one corridor, one voxel wide, through the whole volume; 40 HU */
    /* CT in Hounsfield units, with in-plane blur as from a scanner. */
    PHANTOM_CHEST,                /* lungs with vessels, emphysema and airways joined to them, heart, ribs, table */
    PHANTOM_CHEST_OPEN,           /* same, but a wound connects a lung, and a hole the trachea, with the outside air */
    PHANTOM_HEAD_TILTED,          /* a skull with holes in its base, face and neck below it, tilted gantry */
    PHANTOM_BODY,                 /* an abdomen between two arms, fat under the skin and inside, gas, a table */
    PHANTOM_BODY_CUT,             /* same, but larger than the field of view */
    PHANTOM_ANGIOGRAPHY,          /* an abdomen with contrast medium in its arteries, near kidneys and spine */
    PHANTOM_ANGIOGRAPHY_TOUCHING, /* same, but the aorta touches the spine */
};

/* Materials of voxels. */
enum tissue {

#define TISSUE(name, text) TISSUE_##name,
#include "tests/tools/phantom_tissues.def"
#undef TISSUE
    TISSUE_COUNT
};

/* Names and defaults of a kind. */
struct phantom_picture {
    const char *name;
    const char *body_part, *description; /* in the headers */
    const char *region[2];               /* code (SCT) and meaning of the body part */
    double extent[3];                    /* mm, by default */
    double tilt;                         /* degrees, by default */
};

struct phantom {
    enum phantom_kind kind;
    int32_t columns, rows, slices;
    double spacing[3]; /* mm: x, y, z */
    uint64_t seed;
    int32_t echoes;
    int32_t gap;       /* number of a missing slice (from 1); 0: none */
    int32_t duplicate; /* number of a duplicated slice (from 1); 0: none */
    double tilt;       /* gantry tilt in degrees */
    int32_t bits;      /* stored: 8, 12, 16 or 32; 8 also in 8 allocated bits */
    bool is_signed;
    bool multi_frame;
    bool instances_lie; /* Images in Acquisition is more than the actual number */
    /* For series of several parts and with vendor quirks (phantom_kinds.c). */
    uint64_t identity;        /* key of the UIDs, in addition to the seed; 0: all of the above */
    int32_t tiles;            /* slices per row and rows of slices in an image */
    bool floats;              /* Float Pixel Data */
    const char *const *edits; /* changes to the attributes (phantom_edit) */
    int32_t files_before;     /* number of files already in the folder */
};

struct phantom_plane {
    int32_t slice;  /* from 0 */
    int32_t echo;   /* from 0 */
    int32_t copy;   /* 1: the duplicate */
    int32_t volume; /* from 0 */
    int32_t number; /* Instance Number; 0: its index among the planes */
};

const struct phantom_picture *phantom_picture(enum phantom_kind kind);
bool phantom_find_kind(const char *name, enum phantom_kind *kind);

/* Tissues (enum tissue) and real-world values of one plane: rows * columns of each. */
struct phantom_drawing {
    uint8_t *tissues;
    int32_t *values;
};

void phantom_draw(const struct phantom *phantom, const struct phantom_plane *plane,
                  const struct phantom_drawing *drawing);

/* Draws only the tissues of a slice (from 0). */
void phantom_draw_tissues(const struct phantom *phantom, int32_t slice, uint8_t *tissues);

/*
 * Gives the direction of a column and the position of a slice's first voxel, in patient coordinates, mm. Slices count
 * from 0.
 */
void phantom_column_direction(const struct phantom *phantom, double direction[3]);
void phantom_position(const struct phantom *phantom, int32_t slice, double position[3]);

/*
 * Writes the truth: an NRRD with one byte (enum tissue) per voxel of all slices, and the names of its tissues as in
 * 3D Slicer (.seg.nrrd). Prints their volumes. Returns 0 or -errno.
 */
int phantom_write_truth(const struct phantom *phantom, const char *path);

/*
 * Writes the planes as one series into the folder: one file each, or one multi-frame file. Stores the series' UID in
 * uid (65 bytes). Returns 0 or -errno.
 */
int phantom_store(const struct phantom *phantom, const struct phantom_plane *planes, int32_t plane_count,
                  const char *folder, char *uid);

/* Targets of an edit: the data set, or one of its functional groups. */
enum phantom_place { PHANTOM_FILE, PHANTOM_SHARED, PHANTOM_FRAME };

/*
 * Changes attributes by lines of text; the last one is NULL. A line is [PLACE] PATH VR VALUES:
 *   PLACE   empty: the data set; "shared" or "frame": its functional groups
 *   PATH    0018,9087, or 0018,9117/0018,9087 in the item of a sequence, which is created if missing
 *   VALUES  one for all images, or one per volume in turn with "|" between them, or one per slice
 *           with ";" between them. "-" puts no element. \ separates the numbers of one value, as in
 *           DICOM. {v}, {s} and {n} are volume, slice and number, from 1. {s*2.5-10:0.1} is
 *           arithmetic, then the width (filled with zeros) and the decimals.
 * -PATH removes an element, and ?TAG sets its VR to UN. An invalid line sets the set's error.
 */
void phantom_edit(struct part10 *set, const char *const *lines, enum phantom_place place,
                  const struct phantom_plane *plane);

/* Changes of a kind of series, found by name. */
struct phantom_changes {
    int32_t columns, rows, slices, volumes; /* replace those of the kind's first part; 0: unchanged */
    uint64_t seed;
};

bool phantom_has_kind(const char *name);
int phantom_store_kind(const char *name, const struct phantom_changes *changes, const char *folder, char *uid,
                       int32_t *image_count);
void phantom_list_kinds(void);

#endif
