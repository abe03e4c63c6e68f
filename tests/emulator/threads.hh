/*
 * threads.hh - runs the threads of a kernel on a CPU: each is a fiber with its own stack.
 *
 * A block runs in one host thread, so that __shared__ variables are thread_local on the host. Its fibers take turns.
 * Each runs until it synchronizes with others: its warp, its block, or, in a cooperative launch, the grid. The next
 * fiber is drawn at random (seed: NOCTULE_EMULATOR_SEED), because a result must not depend on the order. If a wait
 * cannot end, for example for a lane that never arrives, the program aborts with a message.
 */
#ifndef NOCTULE_EMULATOR_THREADS_HH
#define NOCTULE_EMULATOR_THREADS_HH

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector_functions.h>
#include <vector_types.h>

/* Belong to the running fiber. */
extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

namespace emulator
{

enum {
    WARP = 32,
    SHARED = 227 << 10, /* bytes per block, max */
    UNDEFINED = 0xA5,   /* fills memory that has not been written */
};

extern thread_local unsigned char *block_shared; /* the block's dynamic shared memory */

/* Values of the lanes of a mask, by lane. */
struct brought {
    uint64_t value[WARP];
    uint32_t source[WARP];
};

/* Returns the result of a lane, computed from the values of all lanes of the mask. */
using taken = uint64_t (*)(const struct brought &brought, uint32_t mask, uint32_t lane);

/* Waits for all lanes of the mask, which must call it with the same mask and `taken`. */
uint64_t meet_warp(uint32_t mask, uint64_t value, uint32_t source, taken take);

/* Waits for all threads of the block that have not ended; returns the number whose predicate is true. */
int meet_block(bool predicate);

/* Waits for all threads of the grid. The launch must be cooperative. */
void meet_grid();

/* Queues a copy. The copies of a group are made as late as possible, when the thread waits for it. NULL: zeros. */
void copy_later(void *to, const void *from, size_t bytes);
void end_group();
void wait_for_groups(size_t pending);

uint32_t lane();

/* Runs `kernel` for each thread of all blocks: one block after the other, or all at once if cooperative. */
void run_grid(dim3 grid, dim3 size, size_t shared_bytes, bool is_cooperative, const std::function<void()> &kernel);

} /* namespace emulator */

#endif
