/* exit_codes.h - exit codes of `noctule`; documented in noctule(1). A command must not exit with 0
 * if any part of its work was not done. */
#ifndef NOCTULE_SERVICE_COMMON_EXIT_CODES_H
#define NOCTULE_SERVICE_COMMON_EXIT_CODES_H

enum {
    EXIT_OK = 0,
    EXIT_PARTIAL = 1,   /* a part failed or was rejected; the output of the other parts may exist */
    EXIT_USAGE = 2,     /* wrong arguments */
    EXIT_NOT_FOUND = 3, /* no such job, series, pipeline or input */
    EXIT_NO_DAEMON = 4, /* the daemon does not run or does not respond */
    EXIT_CONFIG = 5,    /* the configuration is missing or wrong */
    EXIT_DATABASE = 6,  /* the database is missing or cannot be read */
    EXIT_EMPTY = 7,     /* `run`: success, but a job found no voxel */
    EXIT_REVIEW = 8,    /* `run`: success, but a result breaks an expectation of its pipeline */
    /* Noctuled: the root had a database, which is missing now (DATABASE_LOST). */
    EXIT_LOST = 9,
};

#endif
