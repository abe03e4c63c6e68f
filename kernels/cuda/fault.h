/*
 * fault.h - makes one call of the CUDA runtime fail, for tests (test_hook.h).
 *
 * The calls of this process are counted from 1. NOCTULE_CUDA_FAIL_AT=N[:memory|:lost] in the
 * environment, or cuda_fault_at, names the one that fails in place of being made; NOCTULE_CUDA_FAIL_IN=WORD
 * spares processes that have no such word in their command line, as workers of other GPUs. What
 * releases memory is not counted: nobody acts on its errors. Any thread.
 */
#ifndef NOCTULE_FAULT_CUDA_H
#define NOCTULE_FAULT_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_fault_kind {
    CUDA_FAULT_UNKNOWN, /* one call fails */
    CUDA_FAULT_MEMORY,  /* one call says that there is no memory */
    CUDA_FAULT_LOST,    /* this call and all after it fail, as on a device that has gone */
};

/* Counts from 1 again, and lets the nth call fail; 0: none. */
void cuda_fault_at(int64_t nth, enum cuda_fault_kind kind);

/* Calls since cuda_fault_at or the start. */
int64_t cuda_fault_calls(void);

#ifdef __cplusplus
}
#endif
#endif
