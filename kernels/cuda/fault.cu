/* fault.cu - see fault.h. */
#include "kernels/cuda/cuda.cuh"

#include "base/test_hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int64_t calls;
static int64_t fail_at;
static enum cuda_fault_kind fail_as;
static const cudaError_t errors[] = {cudaErrorUnknown, cudaErrorMemoryAllocation, cudaErrorLaunchFailure};

static bool
has_word(const char *word)
{
    FILE *file = fopen("/proc/self/cmdline", "r");
    char *each = NULL;
    size_t size = 0;
    bool is_found = false;

    while (file && !is_found && getdelim(&each, &size, '\0', file) > 0)
        is_found = strcmp(each, word) == 0;
    free(each);
    if (file)
        fclose(file);
    return is_found;
}

static void
read_environment(void)
{
    const char *wanted = test_hook_variable("NOCTULE_CUDA_FAIL_AT");
    const char *where = test_hook_variable("NOCTULE_CUDA_FAIL_IN");
    char *kind;

    if (!wanted || (where && !has_word(where)))
        return;
    fail_at = strtoll(wanted, &kind, 10);
    if (strcmp(kind, ":memory") == 0)
        fail_as = CUDA_FAULT_MEMORY;
    else if (strcmp(kind, ":lost") == 0)
        fail_as = CUDA_FAULT_LOST;
}

void
cuda_fault_at(int64_t nth, enum cuda_fault_kind kind)
{
    pthread_once(&once, read_environment);
    fail_as = kind;
    fail_at = nth;
    __atomic_store_n(&calls, 0, __ATOMIC_SEQ_CST);
}

int64_t
cuda_fault_calls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_SEQ_CST);
}

cudaError_t
cuda_fault(void)
{
    pthread_once(&once, read_environment);
    int64_t call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);

    if (fail_at == 0 || call < fail_at || (call > fail_at && fail_as != CUDA_FAULT_LOST))
        return cudaSuccess;
    return errors[fail_as];
}
