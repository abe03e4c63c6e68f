/*
 * level_set_launch.cuh - kernels that follow one another on a stream without a gap (programmatic
 * dependent launch, from compute capability 9.0 on).
 *
 * A kernel launched early begins once every block of the kernel before it has let it or is done,
 * and waits for that kernel's end, and so for its results, where it says so. It must wait
 * somewhere: the kernel after it relies on all that came before. Older devices know neither; there
 * kernels follow one another as ever.
 */
#ifndef NOCTULE_LEVEL_SET_LAUNCH_CUH
#define NOCTULE_LEVEL_SET_LAUNCH_CUH

#include "kernels/cuda/ptx.cuh"

/* As <<<blocks, threads, memory, stream>>>; cudaGetLastError says whether it went well. */
template <typename... Parameters, typename... Arguments>
static inline void
launch_early(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, size_t memory,
             cudaStream_t stream, const Arguments &...arguments)
{
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};

    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = memory;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    (void)cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

#endif
