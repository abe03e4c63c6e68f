/* contour.h - a line that someone drew, as it comes from a file and as a mask is made of it. */
#ifndef NOCTULE_CONTOUR_H
#define NOCTULE_CONTOUR_H

#include <stdbool.h>
#include <stdint.h>

/* Points x, y, z in mm, LPS, each joined with the next and the last with the first. */
struct contour {
    const double *points;
    int64_t count;
    bool is_xor; /* Contour Geometric Type CLOSEDPLANAR_XOR (PS3.3 C.8.8.6.3) */
};

#endif
