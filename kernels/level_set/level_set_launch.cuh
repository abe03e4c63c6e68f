/*
 * level_set_launch.cuh - launches kernels that follow one another on a stream without a gap
 * (programmatic dependent launch, from compute capability 9.0).
 *
 * A kernel launched early begins when every block of the previous kernel has allowed it or ended.
 * It waits for that kernel's end and results with ptx_wait_for_last. It must wait at some point,
 * since the next kernel relies on all previous ones. Older devices run kernels one after the other
 * as usual.
 */
#ifndef NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_LAUNCH_CUH
#define NOCTULE_KERNELS_LEVEL_SET_LEVEL_SET_LAUNCH_CUH

#include "kernels/cuda/ptx.cuh"

/* As <<<blocks, threads, memory, stream>>>. The caller must check cudaGetLastError. */
template <typename... Parameters, typename... Arguments>
static inline void
launch_early(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, size_t memory, cudaStream_t stream,
             const Arguments &...arguments)
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
