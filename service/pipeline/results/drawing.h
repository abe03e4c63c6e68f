/*
 * drawing.h - draws cuts through a volume with the outlines of its segments: the parts that previews (preview.h) and
 * pictures (picture.h) have in common.
 *
 * Outlines lie within the segment. A segment with the colour of an earlier one, as is common in SEGs, gets another
 * colour. MONOCHROME1 is inverted for display.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_DRAWING_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_DRAWING_H

#include "base/image.h"
#include "service/pipeline/results/grey_window.h"
#include "service/pipeline/results/lettering.h"
#include "service/pipeline/results/panel.h"

/* extent.c: finds where the segments of a volume are. Counts the voxels in any segment, plane by plane along each axis. */

struct segments_extent {
    /* slices with a voxel in a segment; all slices if there is no such voxel */
    int32_t first, last;
    /*
     * The plane with the most voxels, per axis: of several the one nearest to the middle, of two
     * the first; without voxels the middle of the volume.
     */
    int32_t fullest[3];
};

/* Returns 0 or -ENOMEM. */
int segments_extent_find(const struct image_mask *const *masks, size_t count, struct image_extent volume, int threads,
                         struct segments_extent *extent);

/* Bytes of a line of text, with room for a volume after a label. */
enum { DRAWING_TEXT_SIZE = 320 };

/* Greys of texts and of the ground, 0 to 255. */
enum { DRAWING_LIGHT = 237, DRAWING_GROUND = 23, DRAWING_BLACK = 0 };

/* Unit of an area whose pixels have no known size. */
#define DRAWING_PIXELS "pixels"

struct drawing_segment {
    const struct image_mask *mask;
    double color[3];   /* RGB, 0..1 */
    const char *label; /* UTF-8 */
    double amount;     /* shown after the label */
    const char *unit;
};

/* All borrowed. */
struct drawing_request {
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    const void *voxels; /* stored values, stack->pixel, x fastest */
    const struct drawing_segment *segments;
    size_t segment_count;
    const char *const *warnings; /* lines of UTF-8, broken if they are longer than the sheet */
    size_t warning_count;
    const char *note; /* at the end, broken likewise; may be "" */
    double window[2]; /* centre and width of the grey window; width 0: chosen from the images */
    int threads;      /* threads that draw, including the caller */
};

struct drawing {
    const struct drawing_request *request;
    const struct image_mask **masks;
    struct panel_volume volume;
    struct segments_extent extent;
    struct grey_window window;  /* chosen by the sheet */
    struct indexed_png palette; /* a picture without pixels */
    uint8_t *colors;            /* one index of the palette per segment */
    uint8_t warning;            /* likewise, of warnings */
};

/* Finds the segments and chooses colours. Returns 0 or -ENOMEM; call drawing_close() in both cases. */
int drawing_open(const struct drawing_request *request, struct drawing *drawing);
void drawing_close(struct drawing *drawing);

/* Writes the plane, number and position of a panel. `total` adds the number of slices. */
#define DRAWING_CAPTION_SIZE 96
void drawing_caption(const struct drawing *drawing, const struct panel *panel, bool total,
                     char text[DRAWING_CAPTION_SIZE]);

/* Draws a sampled panel, with outlines of one or two pixels, into its own part of the picture. */
void drawing_panel(const struct drawing *drawing, struct indexed_png *picture, struct panel *panel, int outline);

/* Draws the letters of the patient's directions at the edges of a panel, unless they would hide the image. */
void drawing_directions(const struct drawing *drawing, struct indexed_png *picture, const struct panel *panel,
                        struct lettering *lettering);

#endif
