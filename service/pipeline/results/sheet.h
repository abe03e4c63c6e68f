/*
 * sheet.h - the overview of a segmentation on one sheet.
 *
 * From top to bottom: warnings; a legend (colour, label and volume or area of each segment); the axial, coronal and sagittal
 * planes with most segmented voxels, if the volume has geometry and is thick enough; up to twelve slices of the stack,
 * spread over those with a segment; the grey window (grey_window.h), a note, and "not for diagnosis".
 *
 * Everything is on one grid of three columns, and all texts have one size. An only slice takes the whole width.
 * Proportions are true (spacings and positions of the stack). Each tile has a caption with its number (from 1, ascending
 * along the normal) and its position along its normal, and at its edges the letters of their directions
 * (orientation.h). Axial, coronal and sagittal planes have the usual orientation (the patient's right on the viewer's
 * left, anterior or head at the top); slices are shown as in the stack.
 *
 * The sheet has no text of patient, study or images except geometry.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_SHEET_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_SHEET_H

#include "service/pipeline/results/drawing.h"

enum { SHEET_COLUMNS = 3, SHEET_SLICES = 12, SHEET_PLANES = 3 };

/* Pixels: three times the size on a telephone, where letters then have 11 per em. */
enum { SHEET_WIDTH = 3 * 390, SHEET_LETTERS = 3 * 11, SHEET_OUTLINE = 2 };

/* Returns a bound of the pixels of a sheet: of its tiles, and of its texts for so many segments and ten other lines. */
struct sheet_size {
    int64_t tiles, texts;
};

struct sheet_size sheet_size(size_t segments);

/* Text on the sheet. */
struct sheet_text {
    struct box box; /* with the swatch */
    char *text;
    int swatch; /* the segment whose colour precedes the text; -1: none */
};

struct sheet {
    struct drawing *drawing;
    struct lettering *lettering;
    int gap, line;                                    /* between tiles, and between lines of text */
    int height;                                       /* of the content */
    struct panel panels[SHEET_SLICES + SHEET_PLANES]; /* planes first */
    struct box tiles[SHEET_SLICES + SHEET_PLANES];    /* around the panels, black */
    int slice_count, plane_count;
    struct sheet_text *texts;
    size_t text_count, text_room;
    struct box warning; /* a bar beside the warnings */
    struct box window;  /* the place of the grey window's description */
    bool failed;        /* memory was short */
};

/*
 * Lays the sheet out, and samples its panels; chooses the grey window of the drawing. Returns 0 or -ENOMEM; call
 * sheet_close() in both cases.
 */
int sheet_open(struct drawing *drawing, struct sheet *sheet);
void sheet_close(struct sheet *sheet);

/* Draws the sheet. The picture must have the size of the sheet, and the palette of the drawing. */
void sheet_draw(struct sheet *sheet, struct indexed_png *picture);

#endif
