/* ptx.cuh - replaces kernels/cuda/ptx.cuh, which documents each function. */
#ifndef NOCTULE_PTX_CUH
#define NOCTULE_PTX_CUH

#include <cstdint>
#include <cuda_runtime.h>

template <int BYTES>
static inline void
ptx_copy(void *to, const void *from, bool exists)
{
    emulator::copy_later(to, exists ? from : nullptr, BYTES);
}

template <int BYTES>
static inline void
ptx_copy(void *to, const void *from)
{
    emulator::copy_later(to, from, BYTES);
}

static inline void
ptx_copies_end_group(void)
{
    emulator::end_group();
}

template <int PENDING>
static inline void
ptx_copies_wait(void)
{
    emulator::wait_for_groups(PENDING);
}

static inline void
ptx_prefetch(const void *)
{
}

static inline double
ptx_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static inline double
ptx_rcp(double x)
{
    return 1 / x;
}

template <typename Value>
static inline void
ptx_store(Value *to, Value value, bool wanted)
{
    if (wanted)
        *to = value;
}

template <typename Value>
static inline void
ptx_load(Value &to, const void *from, bool wanted)
{
    to = wanted ? *(const Value *)from : Value{};
}

static inline void
ptx_let_next_begin(void)
{
}

static inline void
ptx_wait_for_last(void)
{
}

static inline void
ptx_fence(void)
{
    __threadfence();
}

static inline uint32_t
ptx_and_acquire(uint32_t *word, uint32_t keep)
{
    return atomicAnd(word, keep);
}

/* Counts from the beginning of the block's dynamic shared memory. */
static inline uint32_t
ptx_shared_address(const void *piece)
{
    return (uint32_t)((const unsigned char *)piece - emulator::block_shared);
}

template <uint32_t ADDEND>
static inline void
ptx_add_shared(uint32_t address)
{
    atomicAdd((uint32_t *)(emulator::block_shared + address), ADDEND);
}

static inline void
ptx_add_shared(uint32_t address, uint32_t addend)
{
    atomicAdd((uint32_t *)(emulator::block_shared + address), addend);
}

static inline uint32_t
ptx_keep(uint32_t value)
{
    return value;
}

static inline int64_t
ptx_mad_wide(int32_t a, int32_t b, int64_t c)
{
    return (int64_t)a * b + c;
}

static inline uint64_t
ptx_mad_wide(uint32_t a, uint32_t b, uint64_t c)
{
    return (uint64_t)a * b + c;
}

template <uint32_t SELECTOR>
static inline uint32_t
ptx_permute(uint32_t a, uint32_t b)
{
    uint32_t bytes = __byte_perm(a, b, SELECTOR);

    for (int i = 0; i < 4; i++)
        if (SELECTOR >> 4 * i & 8)
            bytes = (bytes & ~(0xffu << 8 * i)) | (bytes >> 8 * i & 0x80 ? 0xffu << 8 * i : 0);
    return bytes;
}

template <uint32_t TABLE>
static inline uint32_t
ptx_logic(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t bits = 0;

    for (int i = 0; i < 8; i++)
        if (TABLE >> i & 1)
            bits |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return bits;
}

/* Input of a lane: its words of the rows and columns, and its sums. */
struct ptx_bits {
    uint32_t rows[4], columns[2];
    int32_t *sums;
};

static inline uint64_t
ptx_take_bits(const struct emulator::brought &all, uint32_t, uint32_t own)
{
    const auto of = [&](uint32_t lane) { return (const struct ptx_bits *)all.value[lane]; };

    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t row = own / 4 + 8 * (i / 2), column = own % 4 * 2 + i % 2;
        for (uint32_t k = 0; k < 8; k++)
            of(own)->sums[i] += __builtin_popcount(of(row % 8 * 4 + k % 4)->rows[row / 8 + k / 4 * 2] &
                                                   of(column * 4 + k % 4)->columns[k / 4]);
    }
    return 0;
}

static inline void
ptx_multiply_bits(int32_t sums[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
    const struct ptx_bits own = {{a0, a1, a2, a3}, {b0, b1}, sums};

    emulator::meet_warp(0xffffffffu, (uint64_t)&own, 0, ptx_take_bits);
}

#endif
