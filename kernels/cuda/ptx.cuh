/* ptx.cuh - instructions that CUDA C++ cannot express, or that its compiler expands to two. All PTX
 * of the backend must be here (NVIDIA, "Parallel Thread Execution ISA"). */
#ifndef NOCTULE_KERNELS_CUDA_PTX_CUH
#define NOCTULE_KERNELS_CUDA_PTX_CUH

#include <cstdint>
#include <cuda_runtime.h>
#include <type_traits>

/*
 * cp.async: copies BYTES (4, 8 or 16, aligned to that) from device to shared memory without
 * registers; zeros unless `exists`. A thread's copies are ready when it has ended the group and
 * waited for all but the last `PENDING` groups.
 */
template <int BYTES>
__device__ static __forceinline__ void
ptx_copy(void *to, const void *from, bool exists)
{
    const uint32_t there = (uint32_t)__cvta_generic_to_shared(to);

    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "");
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(there), "l"(from), "r"(exists ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(there), "l"(from), "r"(exists ? BYTES : 0),
                     "n"(BYTES)
                     : "memory");
}

template <int BYTES>
__device__ static __forceinline__ void
ptx_copy(void *to, const void *from)
{
    const uint32_t there = (uint32_t)__cvta_generic_to_shared(to);

    static_assert(BYTES == 8 || BYTES == 16, "");
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(there), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(there), "l"(from) : "memory");
}

__device__ static __forceinline__ void
ptx_copies_end_group(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING>
__device__ static __forceinline__ void
ptx_copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* prefetch: loads the address into the L2 cache. */
__device__ static __forceinline__ void
ptx_prefetch(const void *there)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(there));
}

/* rsqrt: the inverse square root of a normal number, to about 20 bits. */
__device__ static __forceinline__ double
ptx_rsqrt(double x)
{
    double guess;

    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(x));
    return guess;
}

/* rcp: the inverse of a normal number, to about 20 bits. */
__device__ static __forceinline__ double
ptx_rcp(double x)
{
    double guess;

    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(x));
    return guess;
}

/* st, predicated instead of branched. The kernel must not read the memory. */
template <typename Value>
__device__ static __forceinline__ void
ptx_store(Value *to, Value value, bool wanted)
{
    const uint32_t whether = wanted;

    if constexpr (std::is_same<Value, double>::value)
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.f64 [%0], %1; }" ::"l"(to), "d"(value),
                     "r"(whether));
    else if constexpr (sizeof(Value) == 2)
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.u16 [%0], %1; }" ::"l"(to),
                     "h"((uint16_t)value), "r"(whether));
    else
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.u8 [%0], %1; }" ::"l"(to),
                     "h"((uint16_t)value), "r"(whether));
}

/* ld, predicated instead of branched: zeros unless `wanted`. The kernel must not write the memory. */
__device__ static __forceinline__ void
ptx_load(uint2 &to, const void *from, bool wanted)
{
    const uint32_t whether = wanted;

    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; mov.u32 %0, 0; mov.u32 %1, 0; "
                 "@p ld.global.v2.u32 {%0, %1}, [%2]; }"
                 : "=&r"(to.x), "=&r"(to.y)
                 : "l"(from), "r"(whether));
}

__device__ static __forceinline__ void
ptx_load(int4 &to, const void *from, bool wanted)
{
    const uint32_t whether = wanted;

    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; "
                 "mov.u32 %3, 0; @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "=&r"(to.x), "=&r"(to.y), "=&r"(to.z), "=&r"(to.w)
                 : "l"(from), "r"(whether));
}

/* griddepcontrol, from compute capability 9.0: lets the next kernel of the stream begin. */
__device__ static __forceinline__ void
ptx_let_next_begin(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Waits until the previous kernel has ended and its results are visible. */
__device__ static __forceinline__ void
ptx_wait_for_last(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* fence: orders the block's previous reads and writes before the thread's later writes. */
__device__ static __forceinline__ void
ptx_fence(void)
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* atom with acquire: the block's later reads are not older than the returned value. */
__device__ static __forceinline__ uint32_t
ptx_and_acquire(uint32_t *word, uint32_t keep)
{
    uint32_t old;

    asm volatile("atom.acquire.gpu.global.and.b32 %0, [%1], %2;" : "=r"(old) : "l"(word), "r"(keep) : "memory");
    return old;
}

/* Returns the address of shared memory for ptx_add_shared. */
__device__ static __forceinline__ uint32_t
ptx_shared_address(const void *piece)
{
    return (uint32_t)__cvta_generic_to_shared(piece);
}

/* red. The result is visible after the next barrier. */
template <uint32_t ADDEND>
__device__ static __forceinline__ void
ptx_add_shared(uint32_t address)
{
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address), "n"(ADDEND));
}

__device__ static __forceinline__ void
ptx_add_shared(uint32_t address, uint32_t addend)
{
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address), "r"(addend));
}

/* shfl from the own lane: keeps a value in its register, since the compiler cannot recompute it at
 * its use. The whole warp must call it. */
__device__ static __forceinline__ uint32_t
ptx_keep(uint32_t value)
{
    uint32_t kept;

    asm volatile("shfl.sync.bfly.b32 %0, %1, 0, 31, 0xffffffff;" : "=r"(kept) : "r"(value));
    return kept;
}

/* mad.wide: a * b + c with the full product. */
__device__ static __forceinline__ int64_t
ptx_mad_wide(int32_t a, int32_t b, int64_t c)
{
    int64_t sum;

    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(sum) : "r"(a), "r"(b), "l"(c));
    return sum;
}

__device__ static __forceinline__ uint64_t
ptx_mad_wide(uint32_t a, uint32_t b, uint64_t c)
{
    uint64_t sum;

    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(sum) : "r"(a), "r"(b), "l"(c));
    return sum;
}

/* prmt: bits 4 i .. 4 i + 3 of the selector choose byte i. If the highest of them is set, the
 * byte's sign is replicated. */
template <uint32_t SELECTOR>
__device__ static __forceinline__ uint32_t
ptx_permute(uint32_t a, uint32_t b)
{
    uint32_t bytes;

    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "n"(SELECTOR));
    return bytes;
}

/* lop3: any function of three bits: bit 4 a + 2 b + c of the table is the result. */
template <uint32_t TABLE>
__device__ static __forceinline__ uint32_t
ptx_logic(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t bits;

    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(bits) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
    return bits;
}

/*
 * mma.m16n8k256 of bits, with the lane layout of that section of the ISA. Adds to sums the number
 * of bits set both in 16 rows of 256 bits, a0 .. a3, and in 8 columns, b0 and b1. The whole warp
 * must call it.
 */
__device__ static __forceinline__ void
ptx_multiply_bits(int32_t sums[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

#endif
