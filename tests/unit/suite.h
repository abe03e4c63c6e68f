/* suite.h - the end of a main(). */
#ifndef NOCTULE_SUITE_H
#define NOCTULE_SUITE_H

#include <check.h>

/* Runs and frees the suite; the exit status. */
static inline int
suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
