/*
 * fault.h - makes one call of the CUDA runtime fail, for tests (test_hook.h).
 *
 * The calls of this process are counted from 1. NOCTULE_CUDA_FAIL_AT=N[:memory|:lost] in the
 * environment, or cuda_fault_at, selects the call that fails instead of being made.
 * NOCTULE_CUDA_FAIL_IN=WORD limits this to processes with that word in their command line, for
 * example one GPU's workers. Calls that release memory do not count, since their errors are
 * ignored.
 * Threads: any.
 */
#ifndef NOCTULE_KERNELS_CUDA_FAULT_H
#define NOCTULE_KERNELS_CUDA_FAULT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_fault_kind {
    CUDA_FAULT_UNKNOWN, /* the call fails */
    CUDA_FAULT_MEMORY,  /* the call fails with out of memory */
    CUDA_FAULT_LOST,    /* this and all later calls fail, as on a lost device */
};

/* Restarts the count at 1 and makes the nth call fail; 0: none. */
void cuda_fault_at(int64_t nth, enum cuda_fault_kind kind);

/* Returns the number of calls since cuda_fault_at or the start. */
int64_t cuda_fault_calls(void);

#ifdef __cplusplus
}
#endif
#endif
