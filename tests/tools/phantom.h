/*
 * phantom.h - what noctule-phantom draws, and how it is stored.
 *
 * Everything follows from struct phantom: the same one gives the same bytes. No patient anywhere.
 */
#ifndef NOCTULE_PHANTOM_H
#define NOCTULE_PHANTOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct part10;

enum phantom_kind {
    PHANTOM_CT_HEAD,  /* skull, brain, ventricles, air, table; Hounsfield units */
    PHANTOM_MR_BRAIN, /* scalp, skull, grey and white matter, ventricles */
    PHANTOM_PET,      /* a warm body with hot spots, Bq/ml; the slope differs from slice to slice */
    PHANTOM_SPHERE,   /* a ball of radius size / 4, 40 HU in air, no noise */
    PHANTOM_MAZE,     /* one corridor, one voxel wide, through the whole volume; 40 HU */
    /* CT in Hounsfield units, blurred in the plane as scanners do. */
    PHANTOM_CHEST, /* lungs with vessels, emphysema and airways joined to them, heart, ribs, table */
    PHANTOM_CHEST_OPEN, /* likewise; a wound joins a lung, and a hole the trachea, with the air outside */
    PHANTOM_HEAD_TILTED, /* a skull with holes in its base, face and neck below it, the gantry tilted */
    PHANTOM_BODY,     /* an abdomen between two arms, fat under the skin and inside, gas, a table */
    PHANTOM_BODY_CUT, /* likewise, larger than the field of view */
    PHANTOM_ANGIOGRAPHY, /* an abdomen with contrast medium in its arteries, beside kidneys and spine */
    PHANTOM_ANGIOGRAPHY_TOUCHING, /* likewise; the aorta lies against the spine */
};

/* What a voxel is made of. */
enum tissue {

#define TISSUE(name, text) TISSUE_##name,
#include "tests/tools/phantom_tissues.def"
#undef TISSUE
    TISSUE_COUNT
};

/* How a kind is asked for and told of. */
struct phantom_picture {
    const char *name;
    const char *body_part, *description; /* in the headers */
    const char *region[2];               /* code (SCT) and meaning of the body part */
    double extent[3];                    /* mm, when nothing else is asked for */
    double tilt;                         /* degrees, likewise */
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
    int32_t bits;      /* stored: 8, 12, 16 or 32; 8 also in 8 allocated ones */
    bool is_signed;
    bool multi_frame;
    bool instances_lie; /* Images in Acquisition names more than there are */
    /* For series of several parts and of scanners' habits (phantom_kinds.c). */
    uint64_t identity; /* what UIDs are made from, beside the seed; 0: all of the above */
    int32_t tiles;     /* so many slices stand in a row, and as many rows of them in an image */
    bool floats;       /* Float Pixel Data */
    const char *const *edits; /* changes to the attributes (phantom_edit) */
    int32_t files_before;     /* so many files are in the folder already */
};

/* An image of the series. */
struct phantom_plane {
    int32_t slice;  /* from 0 */
    int32_t echo;   /* from 0 */
    int32_t copy;   /* 1: the duplicate */
    int32_t volume; /* from 0 */
    int32_t number; /* Instance Number; 0: its place among the planes */
};

const struct phantom_picture *phantom_picture(enum phantom_kind kind);
bool phantom_find_kind(const char *name, enum phantom_kind *kind);

/* What one plane is made of (enum tissue), and its real-world values: rows * columns of each. */
struct phantom_drawing {
    uint8_t *tissues;
    int32_t *values;
};

void phantom_draw(const struct phantom *phantom, const struct phantom_plane *plane,
                  const struct phantom_drawing *drawing);

/* The first of the two, of a slice (from 0). */
void phantom_draw_tissues(const struct phantom *phantom, int32_t slice, uint8_t *tissues);

/* Direction of a column and position of the first voxel of a slice (from 0): patient coordinates, mm. */
void phantom_column_direction(const struct phantom *phantom, double direction[3]);
void phantom_position(const struct phantom *phantom, int32_t slice, double position[3]);

/*
 * Writes the truth: an NRRD of one byte a voxel, enum tissue, of all slices, with the names of the
 * tissues in it as 3D Slicer has them (.seg.nrrd), and prints their volumes. 0 or -errno.
 */
int phantom_write_truth(const struct phantom *phantom, const char *path);

/*
 * Writes the planes as one series into the folder: one file each, or one multi-frame file. 0 or
 * -errno; the series' UID goes into uid (65 bytes).
 */
int phantom_store(const struct phantom *phantom, const struct phantom_plane *planes,
                  int32_t plane_count, const char *folder, char *uid);

/* What an edit may be for: the data set, or one of its functional groups. */
enum phantom_place { PHANTOM_FILE, PHANTOM_SHARED, PHANTOM_FRAME };

/*
 * Changes attributes by lines of text, up to a NULL. A line is [PLACE] PATH VR VALUES:
 *   PLACE   nothing: the data set; "shared" or "frame": its functional groups
 *   PATH    0018,9087, or 0018,9117/0018,9087 in the item of a sequence, which is made where missing
 *   VALUES  one for all images; with "|" between them one for each volume in turn, with ";" for each
 *           slice; "-" puts nothing; \ stands between the numbers of one value as in DICOM. {v}, {s}
 *           and {n} are volume, slice and number, from 1; {s*2.5-10:0.1} is arithmetic, then the
 *           width, filled with zeros, and the decimals
 * -PATH removes, and ?TAG gives the VR UN. What is wrong in a line makes the set's error.
 */
void phantom_edit(struct part10 *set, const char *const *lines, enum phantom_place place,
                  const struct phantom_plane *plane);

/* Kinds of series, by name. */
struct phantom_changes {
    int32_t columns, rows, slices,
        volumes; /* instead of those of the kind's first part; 0: as they are */
    uint64_t seed;
};

bool phantom_has_kind(const char *name);
int phantom_store_kind(const char *name, const struct phantom_changes *changes, const char *folder,
                       char *uid, int32_t *image_count);
void phantom_list_kinds(void);

#endif
