/*
 * grey_window.h - which values a preview shows from black to white.
 *
 * It is the images' own window (PS3.3 C.11.2, as dicom.h has it) where that is right: all slices
 * shown have the same one, at least half of the segmented tissue that is shown lies within it (a
 * twentieth of everything, where there is no segment), and it is at most sixteen times as wide as
 * the tissue's values spread (from their 1st to their 99.5th percentile). Else it is the tissue's
 * spread, widened on both sides by one and a half times itself, so that it and its neighbours can
 * be told apart (a brain is a twentieth of what a CT shows), but no wider than the spread of all
 * that is shown; and without a segment it is this spread.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_GREY_WINDOW_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_GREY_WINDOW_H

#include "service/pipeline/results/panel.h"

enum grey_window_origin {
    GREY_WINDOW_OF_IMAGES,
    GREY_WINDOW_OF_SEGMENTS,
    GREY_WINDOW_OF_EVERYTHING,
};

struct grey_window {
    double low, high;     /* real-world values: black, white */
    double center, width; /* as it is told: the images' as they say */
    enum grey_window_origin origin;
};

/* Slices that are shown, their values there; all borrowed. */
struct grey_window_request {
    const struct panel_volume *volume;
    const struct panel *slices; /* panels through axis 2 */
    int slice_count;
    const struct image_mask *const *masks;
    size_t mask_count;
};

/* 0 or -ENOMEM. */
int grey_window_choose(const struct grey_window_request *request, struct grey_window *window);

/* Centre and width with the unit (UCUM; "": none), and where they are from. */
void grey_window_describe(const struct grey_window *window, const char *unit, char *text,
                          size_t size);

#endif
