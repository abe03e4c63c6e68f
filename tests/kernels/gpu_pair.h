/* gpu_pair.h - a GPU and the CPU for suites that compare the two, and a GPU whose calls fail. */
#ifndef NOCTULE_GPU_PAIR_H
#define NOCTULE_GPU_PAIR_H

#include "kernels/cuda/fault.h"
#include "kernels/kernels.h"
#include "tests/kernels/gpu_suite.h"

#include <errno.h>

static const char *const backends[2] = {"cpu", "cuda"};
static struct kernels_device *devices[2];
static struct kernels_lane *lanes[2];

static inline void
open_both_with(int threads)
{
    struct error error = {0};

    for (int i = 0; i < 2; i++) {
        struct kernels_device_options options = {.backend = backends[i], .threads = threads};

        ck_assert_int_eq(kernels_device_open(&options, &devices[i], &error), 0);
        ck_assert_int_eq(kernels_lane_open(devices[i], &lanes[i], &error), 0);
    }
}

static inline void
open_both(void)
{
    open_both_with(2);
}

static inline void
close_both(void)
{
    for (int i = 0; i < 2; i++) {
        kernels_lane_close(lanes[i]);
        kernels_device_close(devices[i]);
    }
}

/* Adds a test case whose fixture opens both devices. */
static inline TCase *
gpu_pair_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);

    suite_add_tcase(suite, tcase);
    tcase_add_unchecked_fixture(tcase, open_both, close_both);
    return tcase;
}

#ifdef NOCTULE_CUDA

/* Adds a test that runs once per kind of fault, unless the suite is a selection. */
static inline void
gpu_add_faults(Suite *suite, const TTest *test)
{
    if (quick)
        return;

    TCase *faults = tcase_create("faults");
    suite_add_tcase(suite, faults);
    tcase_add_loop_test(faults, test, CUDA_FAULT_UNKNOWN, CUDA_FAULT_LOST + 1);
}

/*
 * Makes each call of the CUDA runtime fail in turn, from opening the device to the end of the work. Checks that the
 * error is reported and that closing works. Ends with a run of the work without a failure.
 */
static inline void
fail_each_call(enum cuda_fault_kind kind, int (*work)(struct kernels_lane *lane, void *context), void *context)
{
    struct error error = {0};
    int rc = -EIO;

    for (int64_t nth = 1; rc != 0; nth++) {
        struct kernels_device_options options = {.backend = "cuda"};
        struct kernels_device *device = NULL;
        struct kernels_lane *lane = NULL;

        cuda_fault_at(nth, kind);
        rc = kernels_device_open(&options, &device, &error);
        if (!rc)
            rc = kernels_lane_open(device, &lane, &error);
        if (!rc)
            rc = work(lane, context);
        ck_assert_msg(rc != 0 || nth > cuda_fault_calls(), "call %lld failed unnoticed", (long long)nth);
        cuda_fault_at(0, CUDA_FAULT_UNKNOWN);
        if (lane)
            kernels_lane_close(lane);
        if (device)
            kernels_device_close(device);
    }
}

#endif

#endif
