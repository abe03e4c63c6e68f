/* quantities.h - quantities of a segment, and the images that they need (quantities.def). */
#ifndef NOCTULE_BASE_QUANTITIES_H
#define NOCTULE_BASE_QUANTITIES_H

#ifdef __cplusplus
extern "C" {
#endif

enum quantity {

#define QUANTITY(ID, ...) QUANTITY_##ID,
#include "base/quantities.def"
    QUANTITIES,
};

enum quantity_value {

#define QUANTITY_VALUE(ID, ...) QUANTITY_VALUE_##ID,
#include "base/quantities.def"
    QUANTITY_VALUES,
};

enum quantity_need {
    QUANTITY_NEEDS_ANY,  /* any images */
    QUANTITY_NEEDS_SUV,  /* the pipeline has a `unit` */
    QUANTITY_NEEDS_HU,   /* values in Hounsfield units */
    QUANTITY_NEEDS_THIN, /* the same, in slices of QUANTITY_THIN_MM */
};

/* Limits of the thickness and of the distance of slices of an Agatston score, with a tolerance of 1 %. */
#define QUANTITY_THIN_MM  2.5
#define QUANTITY_THICK_MM 3.0

struct quantity_row {
    const char *word; /* the choice of the option */
    enum quantity_need needs;
};
extern const struct quantity_row quantity_rows[QUANTITIES];
extern const char *const quantity_names[QUANTITIES + 1]; /* the words, and NULL */

#ifdef __cplusplus
}
#endif
#endif
