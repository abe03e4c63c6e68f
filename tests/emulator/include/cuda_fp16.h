/* cuda_fp16.h - includes the toolkit's header and adds its device-only functions. */
#ifndef NOCTULE_EMULATOR_CUDA_FP16_H
#define NOCTULE_EMULATOR_CUDA_FP16_H

#include_next <cuda_fp16.h>

/* Computes in double, which holds the product exactly and, for numbers as here, the sum: rounded once. */
static inline __half2
__hfma2(__half2 a, __half2 b, __half2 c)
{
    const auto of = [](__half x, __half y, __half z) {
        return __double2half((double)__half2float(x) * __half2float(y) + __half2float(z));
    };

    return __halves2half2(of(__low2half(a), __low2half(b), __low2half(c)),
                          of(__high2half(a), __high2half(b), __high2half(c)));
}

#endif
