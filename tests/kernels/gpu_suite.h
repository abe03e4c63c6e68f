/* gpu_suite.h - main() of a suite that needs a GPU. */
#ifndef NOCTULE_GPU_SUITE_H
#define NOCTULE_GPU_SUITE_H

#include "kernels/gpu.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPU_SUITE_SKIPPED = 77 }; /* CTest's status for "skipped" */

static bool quick; /* --quick: a selection, for compute-sanitizer */

/* Makes, runs and frees the suite. Returns the exit status, or GPU_SUITE_SKIPPED if there is no GPU. */
static inline int
gpu_suite_run(int argc, char **argv, Suite *(*make_suite)(void))
{
    quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    if (kernels_gpus(NULL, 0) == 0) {
        puts("skipped: there is no GPU, or no driver for it, or the CUDA backend was not built");
        return GPU_SUITE_SKIPPED;
    }

    SRunner *runner = srunner_create(make_suite());
    srunner_set_fork_status(runner, CK_NOFORK); /* a driver does not survive fork */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
