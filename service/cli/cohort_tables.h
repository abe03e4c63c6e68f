/*
 * cohort_tables.h - writes the tables of a cohort (db/report.h) into files, and prints the missing patients, and the form
 * in which patients are named, on standard error.
 */
#ifndef NOCTULE_SERVICE_CLI_COHORT_TABLES_H
#define NOCTULE_SERVICE_CLI_COHORT_TABLES_H

#include "db/report.h"

#define COHORT_STANDARD_OUTPUT "" /* as a path */

/* Paths; NULL: not wanted. */
struct cohort_tables {
    const char *table, *dictionary, *reasons, *failed;
    const char *failed_by; /* for messages: the option or file that lists the jobs and series without a row */
};

/* Replaces each file when it is complete. Returns a code of exit_codes.h, after an error message unless it is EXIT_OK. */
int cohort_tables_write(struct report *report, const struct report_cohort *what, const struct cohort_tables *tables);

#endif
