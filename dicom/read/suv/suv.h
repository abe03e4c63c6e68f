/*
 * suv.h - the factor from the values of a PET slice to a standardised uptake value (SUV), from the header.
 *
 * value in SUV = factor * (slope * stored value + intercept). Slope and intercept are those of the rescale, or of the
 * Real World Value Mapping of an enhanced image. No attribute has a default: a missing one is an error.
 *
 * Sources: QIBA, vendor-neutral pseudo-code for SUV (Standardized Uptake Value, QIBA wiki); DICOM PS3.3 C.8.9 (PET) and
 * C.8.22 (Enhanced PET); PS3.16 CID 84, 85 and Annex D (units and methods).
 */
#ifndef NOCTULE_DICOM_READ_SUV_SUV_H
#define NOCTULE_DICOM_READ_SUV_SUV_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

enum suv_unit {

#define SUV_UNIT(id, ...) SUV_##id,
#include "base/suv_units.def"
#undef SUV_UNIT
    SUV_LBM_120, /* only of stored values: SUV Type LBM, James with the multiplier 120 of Sugawara 1999 */
    SUV_UNIT_COUNT = SUV_LBM_120,
    SUV_NO_UNIT,
};

/* Values of the image: Units (0054,1001), or the unit of the mapping. */
enum suv_values {
    SUV_VALUES_UNKNOWN,
    SUV_VALUES_ACTIVITY, /* BQML */
    SUV_VALUES_COUNTS,   /* CNTS */
    SUV_VALUES_SUV,      /* GML and CM2ML: SUV of `stored` */
};

enum suv_decay {
    SUV_DECAY_UNKNOWN,
    SUV_DECAY_NONE,
    SUV_DECAY_START, /* corrected to the start of the scan */
    SUV_DECAY_ADMIN, /* corrected to the injection */
    SUV_DECAY_TIME,  /* corrected to `reference` (enhanced images) */
};

/* The attributes of one frame. Numbers are NAN if absent, not finite, or 0 where 0 is impossible. */
struct suv_header {
    enum suv_values values;
    enum suv_unit stored; /* of SUV_VALUES_SUV, else SUV_NO_UNIT */
    enum suv_decay decay;
    bool attenuated; /* attenuation corrected */
    bool decayed;    /* decay corrected */
    bool mapped;     /* slope and intercept are those of the mapping */
    char sex;        /* 'M', 'F', or 0 */
    int32_t doses;   /* items of Radiopharmaceutical Information Sequence (0054,0016) */
    char units[DICOM_CS_SIZE];
    double weight, size;     /* kg, m */
    double dose, half_life;  /* Bq, s */
    double philips_suv;      /* SUV Scale Factor (7053,1000), "Philips PET Private Group" */
    double philips_activity; /* Activity Concentration Scale Factor (7053,1009) */
    double slope, intercept; /* of the mapping */
    /* Times in seconds since 1970, local time. */
    double start;        /* Radiopharmaceutical Start DateTime (0018,1078) */
    double start_of_day; /* Radiopharmaceutical Start Time (0018,1072), seconds since midnight */
    double series;       /* Series Date and Time */
    double acquired;     /* Acquisition Date and Time */
    double ge_scan;      /* scan Date and Time (0009,100D), "GEMS_PETD_01" */
    double reference;    /* Decay Correction DateTime (0018,9701) */
};

/* Reads the attributes of each frame: `headers` has one element per frame of the instance. Codes: those of dicom_peek
 * about the structure of a file. */
int suv_read(const struct dicom_instance *instance, struct suv_header *headers, struct error *error);

/* How a factor was found. Strings are static. */
struct suv_found {
    enum suv_unit unit;
    const char *rule;       /* "BQML" ... */
    const char *clock;      /* time to which values are decay corrected: "Series Time" ...; "" if not used */
    const char *start;      /* attribute of the start: "Radiopharmaceutical Start Time"; "" if not used */
    double body;            /* g or cm2; NAN if not used */
    double seconds;         /* from the injection to that time; NAN if not used */
    double lowest, highest; /* factors of the slices */
    struct suv_header used; /* of the first slice */
    char doubt[240];        /* implausible weight, size, dose or start, for a person to check; "" */
};

/*
 * Computes one factor per slice. `earliest`: the earliest Acquisition Date and Time of all images of the series; NAN if
 * not known. Pure. Returns 0, or -EINVAL with a code SUV_*.
 */
int suv_factors(const struct suv_header *slices, size_t count, double earliest, enum suv_unit unit, double *factors,
                struct suv_found *found, struct error *error);

/* Returns the measure of the body, in g or cm2; NAN if an attribute is missing or the result is not positive. */
double suv_body(enum suv_unit unit, const struct suv_header *header);

/* Rows of suv_units.def. */
struct suv_unit_row {
    const char *option, *ucum, *spoken, *ucum_meaning;
    const char *quantity, *quantity_meaning, *method, *method_meaning;
};
extern const struct suv_unit_row suv_unit_rows[SUV_UNIT_COUNT];

#ifdef __cplusplus
}
#endif
#endif
