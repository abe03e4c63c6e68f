/*
 * exit_codes.h - how `noctule` ends; documented in noctule(1). Never 0 when anything was left
 * undone.
 */
#ifndef NOCTULE_SERVICE_COMMON_EXIT_CODES_H
#define NOCTULE_SERVICE_COMMON_EXIT_CODES_H

enum {
    EXIT_OK = 0,
    EXIT_PARTIAL = 1,   /* something failed or was refused; output may exist for the rest */
    EXIT_USAGE = 2,     /* wrong arguments */
    EXIT_NOT_FOUND = 3, /* no such job, series, pipeline or input */
    EXIT_NO_DAEMON = 4, /* the daemon does not run, or does not answer */
    EXIT_CONFIG = 5,    /* the configuration is missing or wrong */
    EXIT_DATABASE = 6,  /* the database is missing or cannot be read */
    EXIT_EMPTY = 7,     /* `run`: all went well, but some job found no voxel */
    EXIT_REVIEW = 8,    /* `run`: all went well, but some result is not as its pipeline expects */
    EXIT_LOST = 9,      /* noctuled: the root had a database, and has none (DATABASE_LOST) */
};

#endif
