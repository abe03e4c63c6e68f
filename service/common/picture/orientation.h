/*
 * orientation.h - names of directions for readers of images.
 *
 * Letters are those of Patient Orientation (0020,0020; PS3.3 C.7.6.1.1.1): L, P and H (head) are
 * the positive directions of patient coordinates, R, A and F (foot) the negative ones. Oblique
 * directions have up to three letters, the one of the largest component first. The standard does
 * not define the smallest component with a letter. Here it is 0.05, about 3 degrees.
 */
#ifndef NOCTULE_SERVICE_COMMON_PICTURE_ORIENTATION_H
#define NOCTULE_SERVICE_COMMON_PICTURE_ORIENTATION_H

#include <stdbool.h>

#define ORIENTATION_SIZE 4

/* Writes the direction of a unit vector in patient coordinates (LPS): "L", "HA", ... */
void orientation_letters(const double direction[3], char letters[ORIENTATION_SIZE]);

/*
 * Writes a position on an axis for people, relative to the patient's origin: "H12.5 mm"; on an
 * oblique axis "12.5 mm to HP". `direction` is the unit vector of the axis, `position` in mm along
 * it.
 */
#define ORIENTATION_PLACE_SIZE 32
void orientation_place(const double direction[3], double position, char text[ORIENTATION_PLACE_SIZE]);

/*
 * Assigns to each of three orthogonal unit vectors the patient axis (0: left, 1: posterior, 2:
 * head) that is nearest to it, in either direction. Each axis is assigned once.
 */
void orientation_of_axes(const double axes[9], int patient[3]);

#endif
