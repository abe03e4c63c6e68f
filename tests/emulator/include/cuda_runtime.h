/*
 * cuda_runtime.h - CUDA C++ for a CPU compiler. Replaces the toolkit's header: tests/emulator/threads.hh runs the
 * kernels of the CUDA backend, in host memory.
 *
 * The types and calls of the runtime are the toolkit's own (cuda_runtime_api.h), implemented in runtime.cc. This
 * header has the language (CUDA C++ Programming Guide: built-in variables, warp functions, atomics, launches) and the
 * functions of the CUDA Math API that the backend uses. rewrite.sed turns the <<<...>>> of a launch into
 * `<< emulator::launch(...)`, and an extern __shared__ array into a pointer.
 */
#ifndef NOCTULE_EMULATOR_CUDA_RUNTIME_H
#define NOCTULE_EMULATOR_CUDA_RUNTIME_H

#include "tests/emulator/threads.hh"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <cuda_runtime_api.h>
#include <map>
#include <time.h>
#include <tuple>
#include <type_traits>
#include <utility>

using std::max;
using std::min;

/* Take two different number types, unlike the functions of the standard library. */
template <typename A, typename B>
std::enable_if_t<!std::is_same_v<A, B>, std::common_type_t<A, B>>
min(A a, B b)
{
    return std::min<std::common_type_t<A, B>>(a, b);
}

template <typename A, typename B>
std::enable_if_t<!std::is_same_v<A, B>, std::common_type_t<A, B>>
max(A a, B b)
{
    return std::max<std::common_type_t<A, B>>(a, b);
}

#undef __shared__
#undef __launch_bounds__
#undef __forceinline__
#undef __noinline__
#undef __align__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __forceinline__  inline
#define __noinline__     __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define warpSize         emulator::WARP

namespace emulator
{

/* ---- launches ---- */

/* Returns whether a launch is allowed (runtime.cc); sets cudaGetLastError's value if not. */
bool may_launch(const void *kernel, dim3 grid, dim3 size, size_t shared);

template <typename... Parameters, typename... Arguments>
void
run(void (*kernel)(Parameters...), dim3 grid, dim3 size, size_t shared, bool is_cooperative, Arguments &&...arguments)
{
    const std::tuple<std::decay_t<Parameters>...> given(std::forward<Arguments>(arguments)...);

    if (may_launch((const void *)kernel, grid, size, shared))
        run_grid(grid, size, shared, is_cooperative, [&] {
            auto own = given; /* each thread has its own parameters */
            std::apply(kernel, own);
        });
}

template <typename... Arguments> struct launched {
    dim3 grid, size;
    size_t shared;
    std::tuple<Arguments...> arguments;
};

struct launch {
    dim3 grid, size;
    size_t shared;

    launch(dim3 its_grid, dim3 its_size, size_t its_shared = 0, cudaStream_t = nullptr)
        : grid(its_grid), size(its_size), shared(its_shared)
    {
    }

    template <typename... Arguments> launched<std::decay_t<Arguments>...> operator()(Arguments &&...arguments) const
    {
        return {grid, size, shared, {std::forward<Arguments>(arguments)...}};
    }
};

template <typename... Parameters, typename... Arguments>
void
operator<<(void (*kernel)(Parameters...), const launched<Arguments...> &it)
{
    std::apply([&](const auto &...arguments) { run(kernel, it.grid, it.size, it.shared, false, arguments...); },
               it.arguments);
}

template <typename... Parameters, size_t... At>
void
run_from(void (*kernel)(Parameters...), dim3 grid, dim3 size, void **arguments, size_t shared,
         std::index_sequence<At...>)
{
    run(kernel, grid, size, shared, true, *(std::decay_t<Parameters> *)arguments[At]...);
}

/* ---- warps ---- */

template <typename Value>
uint64_t
to_bits(Value value)
{
    uint64_t bits = 0;

    static_assert(sizeof value <= sizeof bits);
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <typename Value>
Value
from_bits(uint64_t bits)
{
    Value value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint64_t
take_source(const struct brought &all, uint32_t, uint32_t own)
{
    return all.value[all.source[own]];
}

/* Returns the value of another lane, or the lane's own if the other is outside its part of the warp. */
template <typename Value>
Value
shuffle(uint32_t mask, Value value, int source, bool exists)
{
    return from_bits<Value>(meet_warp(mask, to_bits(value), exists ? (uint32_t)source : lane(), take_source));
}

template <typename Value, typename Combine>
uint64_t
take_all(const struct brought &all, uint32_t mask, uint32_t)
{
    Value sum = from_bits<Value>(all.value[__builtin_ctz(mask)]);

    for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1)
        sum = Combine()(sum, from_bits<Value>(all.value[__builtin_ctz(rest)]));
    return to_bits(sum);
}

template <typename Combine, typename Value>
Value
reduce(uint32_t mask, Value value)
{
    return from_bits<Value>(meet_warp(mask, to_bits(value), 0, take_all<Value, Combine>));
}

struct smaller {
    template <typename Value> Value operator()(Value a, Value b) const
    {
        return b < a ? b : a;
    }
};

struct larger {
    template <typename Value> Value operator()(Value a, Value b) const
    {
        return a < b ? b : a;
    }
};

inline uint64_t
take_ballot(const struct brought &all, uint32_t mask, uint32_t)
{
    uint32_t ballot = 0;

    for (uint32_t rest = mask; rest; rest &= rest - 1)
        if (all.value[__builtin_ctz(rest)])
            ballot |= rest & -rest;
    return ballot;
}

inline uint64_t
take_match(const struct brought &all, uint32_t mask, uint32_t own)
{
    uint32_t same = 0;

    for (uint32_t rest = mask; rest; rest &= rest - 1)
        if (all.value[__builtin_ctz(rest)] == all.value[own])
            same |= rest & -rest;
    return same;
}

inline uint64_t
take_nothing(const struct brought &, uint32_t, uint32_t)
{
    return 0;
}

} /* namespace emulator */

inline int
emulator_first(int width)
{
    return (int)emulator::lane() / width * width;
}

template <typename Value>
Value
__shfl_sync(uint32_t mask, Value value, int source, int width = 32)
{
    return emulator::shuffle(mask, value, emulator_first(width) + (source & (width - 1)), true);
}

template <typename Value>
Value
__shfl_up_sync(uint32_t mask, Value value, unsigned delta, int width = 32)
{
    const int source = (int)emulator::lane() - (int)delta;

    return emulator::shuffle(mask, value, source, source >= emulator_first(width));
}

template <typename Value>
Value
__shfl_down_sync(uint32_t mask, Value value, unsigned delta, int width = 32)
{
    const int source = (int)emulator::lane() + (int)delta;

    return emulator::shuffle(mask, value, source, source < emulator_first(width) + width);
}

template <typename Value>
Value
__shfl_xor_sync(uint32_t mask, Value value, int bits, int width = 32)
{
    const int source = (int)emulator::lane() ^ bits;

    return emulator::shuffle(mask, value, source, source < emulator_first(width) + width);
}

inline uint32_t
__ballot_sync(uint32_t mask, int predicate)
{
    return (uint32_t)emulator::meet_warp(mask, predicate != 0, 0, emulator::take_ballot);
}

inline int
__any_sync(uint32_t mask, int predicate)
{
    return emulator::reduce<std::bit_or<int>>(mask, (int)(predicate != 0));
}

inline int
__all_sync(uint32_t mask, int predicate)
{
    return emulator::reduce<std::bit_and<int>>(mask, (int)(predicate != 0));
}

template <typename Value>
uint32_t
__match_any_sync(uint32_t mask, Value value)
{
    return (uint32_t)emulator::meet_warp(mask, emulator::to_bits(value), 0, emulator::take_match);
}

template <typename Value>
Value
__reduce_add_sync(uint32_t mask, Value value)
{
    return emulator::reduce<std::plus<Value>>(mask, value);
}

template <typename Value>
Value
__reduce_or_sync(uint32_t mask, Value value)
{
    return emulator::reduce<std::bit_or<Value>>(mask, value);
}

template <typename Value>
Value
__reduce_min_sync(uint32_t mask, Value value)
{
    return emulator::reduce<emulator::smaller>(mask, value);
}

template <typename Value>
Value
__reduce_max_sync(uint32_t mask, Value value)
{
    return emulator::reduce<emulator::larger>(mask, value);
}

inline void
__syncwarp(uint32_t mask = 0xffffffffu)
{
    emulator::meet_warp(mask, 0, 0, emulator::take_nothing);
}

/* ---- blocks and memory ---- */

inline void
__syncthreads()
{
    emulator::meet_block(false);
}

inline int
__syncthreads_or(int predicate)
{
    return emulator::meet_block(predicate != 0) > 0;
}

inline int
__syncthreads_and(int predicate)
{
    return emulator::meet_block(predicate == 0) == 0;
}

inline int
__syncthreads_count(int predicate)
{
    return emulator::meet_block(predicate != 0);
}

inline void
__threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

inline void
__threadfence_block()
{
    __threadfence();
}

inline void
__threadfence_system()
{
    __threadfence();
}

template <typename Value>
Value
__ldg(const Value *from)
{
    return *from;
}

/* Bypasses the first cache, so that writes of other multiprocessors are visible. */
template <typename Value>
Value
__ldcg(const Value *from)
{
    return *(const volatile Value *)from;
}

inline double2
__ldcg(const double2 *from)
{
    return *from;
}

template <typename Value>
Value
__ldca(const Value *from)
{
    return *from;
}

template <typename Value>
Value
__ldcs(const Value *from)
{
    return *from;
}

template <typename Value>
void
__stcs(Value *to, Value value)
{
    *to = value;
}

template <typename Value>
void
__stcg(Value *to, Value value)
{
    *(volatile Value *)to = value;
}

/* Reads, changes and replaces a word atomically. */
template <typename Value, typename Change>
Value
emulator_change(Value *word, const Change &change)
{
    Value old = __atomic_load_n(word, __ATOMIC_SEQ_CST);

    while (!__atomic_compare_exchange_n(word, &old, change(old), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return old;
}

#define EMULATOR_ATOMIC(name, Change)                                                                                  \
    template <typename Value> Value name(Value *word, std::common_type_t<Value> operand)                               \
    {                                                                                                                  \
        return emulator_change(word, [&](Value old) { return Value(Change()(old, operand)); });                        \
    }

EMULATOR_ATOMIC(atomicAdd, std::plus<Value>)
EMULATOR_ATOMIC(atomicSub, std::minus<Value>)
EMULATOR_ATOMIC(atomicMin, emulator::smaller)
EMULATOR_ATOMIC(atomicMax, emulator::larger)
EMULATOR_ATOMIC(atomicOr, std::bit_or<Value>)
EMULATOR_ATOMIC(atomicAnd, std::bit_and<Value>)

template <typename Value>
Value
atomicExch(Value *word, std::common_type_t<Value> value)
{
    return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
}

template <typename Value>
Value
atomicCAS(Value *word, std::common_type_t<Value> expected, std::common_type_t<Value> value)
{
    __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return expected;
}

/* Counts nanoseconds. */
inline int64_t
clock64()
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* ---- numbers ---- */

inline int
__popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

inline int
__popcll(unsigned long long bits)
{
    return __builtin_popcountll(bits);
}

inline int
__ffs(int bits)
{
    return __builtin_ffs(bits);
}

inline int
__ffsll(long long bits)
{
    return __builtin_ffsll(bits);
}

inline int
__clz(int bits)
{
    return bits ? __builtin_clz((unsigned)bits) : 32;
}

inline int
__clzll(long long bits)
{
    return bits ? __builtin_clzll((unsigned long long)bits) : 64;
}

inline unsigned
__brev(unsigned bits)
{
    unsigned turned = 0;

    for (int i = 0; i < 32; i++)
        turned |= (bits >> i & 1) << (31 - i);
    return turned;
}

inline unsigned
__float_as_uint(float value)
{
    unsigned bits;

    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

inline float
__uint_as_float(unsigned bits)
{
    float value;

    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

inline unsigned
__byte_perm(unsigned low, unsigned high, unsigned selector)
{
    const uint64_t bytes = (uint64_t)high << 32 | low;
    unsigned chosen = 0;

    for (int i = 0; i < 4; i++)
        chosen |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return chosen;
}

inline unsigned
__funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}

inline unsigned
__funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}

inline unsigned
__funnelshift_rc(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> min(shift, 32u));
}

inline unsigned
__dp4a(unsigned a, unsigned b, unsigned sum)
{
    for (int i = 0; i < 32; i += 8)
        sum += (a >> i & 0xff) * (b >> i & 0xff);
    return sum;
}

inline unsigned
__dp2a_lo(unsigned halves, unsigned bytes, unsigned sum)
{
    return sum + (halves & 0xffff) * (bytes & 0xff) + (halves >> 16) * (bytes >> 8 & 0xff);
}

inline int
__dp2a_lo(int halves, int bytes, int sum)
{
    return sum + (int16_t)halves * (int8_t)bytes + (int16_t)(halves >> 16) * (int8_t)(bytes >> 8);
}

inline unsigned
__dp2a_hi(unsigned halves, unsigned bytes, unsigned sum)
{
    return __dp2a_lo(halves, bytes >> 16, sum);
}

/* SIMD on parts of BITS bits, without a carry into the next part. */
template <int BITS, typename Of>
unsigned
emulator_parts(const Of &of)
{
    unsigned all = 0;

    for (int i = 0; i < 32; i += BITS)
        all |= (unsigned)(of(i) & ((1u << BITS) - 1)) << i;
    return all;
}

#define EMULATOR_PART(word, i, BITS) ((word) >> (i) & ((1u << (BITS)) - 1))
#define EMULATOR_SIMD(name, BITS, result)                                                                              \
    inline unsigned name(unsigned x, unsigned y)                                                                       \
    {                                                                                                                  \
        return emulator_parts<BITS>([&](int i) {                                                                       \
            const unsigned a = EMULATOR_PART(x, i, BITS), b = EMULATOR_PART(y, i, BITS);                               \
            return (unsigned)(result);                                                                                 \
        });                                                                                                            \
    }
#define EMULATOR_SIMD_3(name, result)                                                                                  \
    inline unsigned name(unsigned x, unsigned y, unsigned z)                                                           \
    {                                                                                                                  \
        return emulator_parts<16>([&](int i) {                                                                         \
            const unsigned a = EMULATOR_PART(x, i, 16), b = EMULATOR_PART(y, i, 16), c = EMULATOR_PART(z, i, 16);      \
            return (unsigned)(result);                                                                                 \
        });                                                                                                            \
    }

EMULATOR_SIMD(__vsub2, 16, a - b)
EMULATOR_SIMD(__vsub4, 8, a - b)
EMULATOR_SIMD(__vminu2, 16, min(a, b))
EMULATOR_SIMD(__vmaxu2, 16, max(a, b))
EMULATOR_SIMD(__vmins2, 16, min((int16_t)a, (int16_t)b))
EMULATOR_SIMD(__vmaxs2, 16, max((int16_t)a, (int16_t)b))
EMULATOR_SIMD(__vcmpleu2, 16, a <= b ? ~0u : 0)
EMULATOR_SIMD(__vcmpleu4, 8, a <= b ? ~0u : 0)
EMULATOR_SIMD_3(__vimax3_u16x2, max(max(a, b), c))
EMULATOR_SIMD_3(__viaddmin_u16x2, min((a + b) & 0xffff, c))
EMULATOR_SIMD_3(__viaddmax_u16x2, max((a + b) & 0xffff, c))

/* Each operation must round once and must not be fused unless requested. Compiler options forbid contraction. */
inline double
__dadd_rn(double a, double b)
{
    return a + b;
}

inline double
__dsub_rn(double a, double b)
{
    return a - b;
}

inline double
__dmul_rn(double a, double b)
{
    return a * b;
}

inline double
__ddiv_rn(double a, double b)
{
    return a / b;
}

static inline float
__fmaf_rn(float weight, float value, float sum)
{
    return std::fma(weight, value, sum);
}

inline double
__fma_rn(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

inline double
__dadd_rd(double a, double b)
{
    const int before = fegetround();

    fesetround(FE_DOWNWARD);
    volatile double x = a, y = b, sum = x + y;
    fesetround(before);
    return sum;
}

inline long long
__double_as_longlong(double value)
{
    return emulator::from_bits<long long>(emulator::to_bits(value));
}

inline double
__longlong_as_double(long long bits)
{
    return emulator::from_bits<double>((uint64_t)bits);
}

inline int
__double2loint(double value)
{
    return (int)__double_as_longlong(value);
}

inline int
__double2hiint(double value)
{
    return (int)(__double_as_longlong(value) >> 32);
}

inline double
__hiloint2double(int high, int low)
{
    return __longlong_as_double((long long)((uint64_t)(uint32_t)high << 32 | (uint32_t)low));
}

inline unsigned long long
__umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

/* ---- additions of the toolkit's header for C++ ---- */

template <typename... Parameters, typename... Arguments>
cudaError_t
cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...), Arguments &&...arguments)
{
    emulator::run(kernel, config->gridDim, config->blockDim, config->dynamicSmemBytes, false,
                  std::forward<Arguments>(arguments)...);
    return cudaPeekAtLastError();
}

template <typename... Parameters>
cudaError_t
cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 size, void **arguments, size_t shared,
                            cudaStream_t)
{
    emulator::run_from(kernel, grid, size, arguments, shared, std::index_sequence_for<Parameters...>());
    return cudaPeekAtLastError();
}

template <typename Kernel>
cudaError_t
cudaFuncSetAttribute(Kernel *kernel, cudaFuncAttribute which, int value)
{
    return cudaFuncSetAttribute((const void *)kernel, which, value);
}

template <typename Kernel>
cudaError_t
cudaFuncGetAttributes(cudaFuncAttributes *found, Kernel *kernel)
{
    return cudaFuncGetAttributes(found, (const void *)kernel);
}

template <typename Kernel>
cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Kernel *kernel, int size, size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)kernel, size, shared);
}

template <typename Value>
cudaError_t
cudaMalloc(Value **memory, size_t bytes)
{
    return cudaMalloc((void **)memory, bytes);
}

template <typename Value>
cudaError_t
cudaHostAlloc(Value **memory, size_t bytes, unsigned flags)
{
    return cudaHostAlloc((void **)memory, bytes, flags);
}

#endif
