/* contour.h - a contour of an RTSTRUCT, from which a mask is made. */
#ifndef NOCTULE_BASE_CONTOUR_H
#define NOCTULE_BASE_CONTOUR_H

#include <stdbool.h>
#include <stdint.h>

/* A closed polygon: x, y, z of each point in mm, LPS. The points are borrowed. */
struct contour {
    const double *points;
    int64_t count;
    bool is_xor; /* Contour Geometric Type CLOSEDPLANAR_XOR (PS3.3 C.8.8.6.3) */
};

#endif
