/*
 * phantom_kinds.c - series with the properties of scanners and archives, and with common defects.
 *
 * A kind is one series of one or more parts. A part consists of volumes of slices, drawn and stored like any phantom,
 * and of lines that change its attributes (phantom_edit). Private elements follow the vendors' conformance statements
 * and the notes of dcm2niix.
 */
#include "tests/tools/phantom.h"

#include "tests/tools/part10.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PARTS 3
#define CT        PHANTOM_CT_HEAD
#define MR        PHANTOM_MR_BRAIN
#define PET       PHANTOM_PET

/* The lines of a part. */
#define EDITS(...)                                                                                                     \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }

struct part {
    enum phantom_kind drawn;
    int32_t slices, volumes;  /* 0 volumes: one; 0 slices: the part is unused */
    const char *const *edits; /* of each image */
    bool enhanced;            /* one multi-frame file */
    bool slice_by_slice;      /* numbered by slice, then volume; else by volume, then slice */
    bool floats;
    int32_t bits, tiles;
    int32_t first_slice; /* from 0 */
    int32_t number;      /* number of the first image; 0: continue from the previous part */
    /* These images have a number but are missing; from 1. Volume 0: in every volume; slice 0: the whole volume. */
    int32_t missing_slice, missing_volume;
};

struct kind {
    const char *name, *what;
    struct part parts[MAX_PARTS];
};

/* Other images in the series: a plane across the others. */
#define CORONAL       "0020,0037 DS 1\\0\\0\\0\\0\\-1", "0020,0032 DS -23\\{s*2.5}\\20"
#define NO_GEOMETRY   "-0020,0032", "-0020,0037", "-0028,0030", "-0020,0052"
#define NO_GROUPS     "-5200,9229", "-5200,9230"
#define SIEMENS       "0008,0070 LO SIEMENS", "0019,0010 LO SIEMENS MR HEADER"
#define CSA           "0008,0070 LO SIEMENS", "0029,0010 LO SIEMENS CSA HEADER"
#define GE            "0008,0070 LO GE MEDICAL SYSTEMS"
#define GE_PARAMETERS GE, "0043,0010 LO GEMS_PARM_01"
#define PHILIPS       "0008,0070 LO Philips"
#define PHILIPS_FRAME "2005,0014 LO Philips MR Imaging DD 005"
#define UIH           "0008,0070 LO UIH", "0065,0010 LO Image Private Header"
#define DIRECTIONS    "-|1\\0\\0|0\\1\\0|0.6\\0\\0.8"
#define DIFFUSION                                                                                                      \
    "frame 0018,9117/0018,9087 FD 0|1000|1000|1000",                                                                   \
        "frame 0018,9117/0018,9075 CS NONE|DIRECTIONAL|DIRECTIONAL|DIRECTIONAL"

static const struct kind kinds[] = {
#include "tests/tools/phantom_kinds.def"
};

static const struct kind *
find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

bool
phantom_has_kind(const char *name)
{
    return find_kind(name) != NULL;
}

void
phantom_list_kinds(void)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        printf("%-28s %s\n", kinds[i].name, kinds[i].what);
}

static bool
is_missing(const struct part *part, const struct phantom_plane *plane)
{
    if (!part->missing_slice && !part->missing_volume)
        return false;
    return (!part->missing_slice || part->missing_slice == plane->slice - part->first_slice + 1) &&
           (!part->missing_volume || part->missing_volume == plane->volume + 1);
}

/* Lists the images of a part, sorted by their numbers from `number` on. */
static struct phantom_plane *
part_plan(const struct part *part, int32_t number, int32_t *count)
{
    const int32_t slices = part->tiles ? 1 : part->slices;
    const int32_t total = slices * part->volumes;
    struct phantom_plane *planes = calloc((size_t)total, sizeof(*planes));
    *count = 0;
    for (int32_t i = 0; planes && i < total; i++) {
        const bool by_slice = part->slice_by_slice;
        const struct phantom_plane plane = {
            .slice = part->first_slice + (by_slice ? i / part->volumes : i % slices),
            .volume = by_slice ? i % part->volumes : i / slices,
            .number = number + i,
        };
        if (!is_missing(part, &plane))
            planes[(*count)++] = plane;
    }
    return planes;
}

static uint64_t
identity_of(const char *name)
{
    uint64_t hash = 1;
    for (; *name; name++)
        hash = part10_mix(hash, (unsigned char)*name);
    return hash;
}

/* The parts of a series that are already written. */
struct progress {
    struct phantom phantom; /* common to the parts */
    int32_t next_number;
};

static int
part_store(struct progress *progress, const struct part *part, const char *folder, char *uid)
{
    struct phantom phantom = progress->phantom;
    phantom.kind = part->drawn;
    phantom.bits = part->bits ? part->bits : part->drawn == PET ? 16 : 12;
    phantom.multi_frame = part->enhanced;
    phantom.floats = part->floats;
    phantom.tiles = part->tiles;
    while (part->tiles && phantom.tiles * phantom.tiles < phantom.slices)
        phantom.tiles++; /* in both directions, until all slices fit */
    phantom.edits = part->edits;
    int32_t count;
    const int32_t number = part->number ? part->number : progress->next_number;
    struct phantom_plane *planes = part_plan(part, number, &count);
    int rc = planes ? phantom_store(&phantom, planes, count, folder, uid) : -ENOMEM;
    progress->next_number = number + part->slices * part->volumes;
    progress->phantom.files_before += part->enhanced ? 1 : count;
    free(planes);
    return rc;
}

static int32_t
either(int32_t changed, int32_t otherwise)
{
    return changed ? changed : otherwise;
}

int
phantom_store_kind(const char *name, const struct phantom_changes *changes, const char *folder, char *uid,
                   int32_t *image_count)
{
    const struct kind *kind = find_kind(name);
    struct progress progress = {
        .phantom = {.columns = either(changes->columns, 24),
                    .rows = either(changes->rows, 20),
                    .slices = either(changes->slices, kind->parts[0].slices),
                    .spacing = {2, 2, 2.5},
                    .seed = changes->seed,
                    .echoes = 1,
                    .identity = identity_of(name)},
        .next_number = 1,
    };
    int rc = 0;
    for (int i = 0; i < MAX_PARTS && kind->parts[i].slices && rc == 0; i++) {
        struct part part = kind->parts[i];
        if (i == 0)
            part.slices = progress.phantom.slices;
        part.volumes = either(i == 0 && changes->volumes ? changes->volumes : part.volumes, 1);
        rc = part_store(&progress, &part, folder, uid);
    }
    *image_count = progress.phantom.files_before;
    return rc;
}
