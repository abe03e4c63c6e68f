/*
 * measurements.h - for tests: the content of a report, read from a file. The fields of a line are separated by tabs.
 * Numbers may be hexadecimal ("0x1.8p1"), to be exact.
 *
 *   group        SEGMENT (from 0; -1: the whole volume)
 *   measurement  VALUE or "-" | code | scheme | meaning | unit | its meaning | reason | 114000 or
 *                114006
 *   modifier     code | scheme | meaning (name) | code | scheme | meaning (value)
 *   parameter    VALUE | code | scheme | meaning | unit | its meaning
 *   words        code | scheme | meaning | TEXT
 *
 * A modifier, parameter or words must follow their measurement, and a measurement its group.
 */
#ifndef NOCTULE_TESTS_MEASUREMENTS_H
#define NOCTULE_TESTS_MEASUREMENTS_H

#include "dicom/objects/sr/sr.h"

struct measurements {
    char *text; /* the file, split into fields */
    struct sr_group *groups;
    size_t group_count;
    struct sr_measurement *measurements; /* of all groups */
};

/* Exits with an error if the file does not have this format. */
void measurements_read(const char *path, struct measurements *into);
void measurements_free(struct measurements *measurements);

#endif
