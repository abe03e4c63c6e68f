/*
 * orientation.h - directions in the words of people who read images.
 *
 * Letters are those of Patient Orientation (0020,0020; PS3.3 C.7.6.1.1.1): L, P and H (head) are
 * the positive directions of patient coordinates, R, A and F (foot) the negative ones; what lies
 * between has up to three letters, the one of the largest component first. The standard does not
 * say how small a component has none: here it is one below 0.05, less than 3 degrees off the
 * others.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_ORIENTATION_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_ORIENTATION_H

#include <stdbool.h>

#define ORIENTATION_SIZE 4

/* Where a unit vector in patient coordinates (LPS) points: "L", "HA", ... */
void orientation_letters(const double direction[3], char letters[ORIENTATION_SIZE]);

/*
 * A place on an axis, as people write it: where it lies from the patient's origin, and how far
 * along the axis, "H12.5 mm"; of an oblique axis "12.5 mm to HP". `direction` is the axis' unit vector, `position` in mm along it.
 */
#define ORIENTATION_PLACE_SIZE 32
void orientation_place(const double direction[3], double position,
                       char text[ORIENTATION_PLACE_SIZE]);

/* Of each of three orthogonal unit vectors the patient axis (0: left, 1: posterior, 2: head) that
 * it runs nearest along, in either direction; of every patient axis there is one. */
void orientation_of_axes(const double axes[9], int patient[3]);

#endif
