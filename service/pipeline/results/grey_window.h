/*
 * grey_window.h - chooses the grey window of a preview.
 *
 * A pipeline may set it (preview_window). Else the values decide.
 *
 * The window of the images (PS3.3 C.11.2, see dicom.h) is used on three conditions. All displayed
 * slices have the same one. At least half of the displayed segmented tissue lies within it (without
 * a segment, a twentieth of all voxels). It is at most sixteen times as wide as the spread of the
 * tissue's values (1st to 99.5th percentile).
 *
 * Otherwise the window is the spread of the tissue, widened on both sides by one and a half times
 * itself, to show the tissue and its neighbours: a brain is a twentieth of a CT's range. It is at
 * most as wide as the spread of all displayed values. Without a segment it is that spread.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_GREY_WINDOW_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_GREY_WINDOW_H

#include "service/pipeline/results/panel.h"

enum grey_window_origin {
    GREY_WINDOW_OF_PIPELINE,
    GREY_WINDOW_OF_IMAGES,
    GREY_WINDOW_OF_SEGMENTS,
    GREY_WINDOW_OF_EVERYTHING,
};

struct grey_window {
    double low, high;     /* real-world values: black, white */
    double center, width; /* values for the legend: as the images state them */
    enum grey_window_origin origin;
};

/* The displayed slices and their values; all borrowed. */
struct grey_window_request {
    const struct panel_volume *volume;
    const struct panel *slices; /* panels through axis 2 */
    int slice_count;
    const struct image_mask *const *masks;
    size_t mask_count;
    const double *set; /* centre and width; width 0: chosen here */
};

/* Returns 0 or -ENOMEM. */
int grey_window_choose(const struct grey_window_request *request, struct grey_window *window);

/* Writes centre and width with the unit (UCUM; "": no unit), and their source. */
void grey_window_describe(const struct grey_window *window, const char *unit, char *text, size_t size);

#endif
