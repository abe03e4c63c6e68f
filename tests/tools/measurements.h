/*
 * measurements.h - for tests: what a report is to say, from a file of lines with fields between
 * tabs. Numbers may be hexadecimal ("0x1.8p1"), for every bit.
 *
 *   group        SEGMENT (from 0; -1: the whole volume)
 *   measurement  VALUE or "-" | code | scheme | meaning | unit | its meaning | reason | 114000 or
 *                114006
 *   modifier     code | scheme | meaning (name) | code | scheme | meaning (value)
 *   parameter    VALUE | code | scheme | meaning | unit | its meaning
 *   words        code | scheme | meaning | TEXT
 *
 * A modifier, parameter or words are of the measurement before it, a measurement of the group before it.
 */
#ifndef NOCTULE_TESTS_MEASUREMENTS_H
#define NOCTULE_TESTS_MEASUREMENTS_H

#include "dicom/objects/sr/sr.h"

struct measurements {
    char *text; /* of the file, in fields */
    struct sr_group *groups;
    size_t group_count;
    struct sr_measurement *measurements; /* of all groups */
};

/* Ends the program when the file is not as above. */
void measurements_read(const char *path, struct measurements *into);
void measurements_free(struct measurements *measurements);

#endif
