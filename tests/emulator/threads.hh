/*
 * threads.hh - a kernel's threads on a processor: each is a fiber with a stack of its own.
 *
 * A block runs in one thread of the host, so that __shared__ variables are the host's thread_local ones; its fibers
 * take turns, and one goes on until it meets others: its warp, its block, or with a cooperative launch the grid. Which
 * one goes next is drawn from a seed (NOCTULE_EMULATOR_SEED): a result may not depend on it. A wait that cannot end,
 * as that for a lane which never comes, ends the program with a sentence.
 */
#ifndef NOCTULE_EMULATOR_THREADS_HH
#define NOCTULE_EMULATOR_THREADS_HH

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector_functions.h>
#include <vector_types.h>

/* Of the fiber that runs. */
extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

namespace emulator
{

enum {
    WARP = 32,
    SHARED = 227 << 10, /* bytes of a block, at most */
    UNDEFINED = 0xA5,   /* what memory is full of that nobody has written */
};

extern thread_local unsigned char *block_shared; /* the block's dynamic shared memory */

/* What each lane of a mask brings, by lanes. */
struct brought {
    uint64_t value[WARP];
    uint32_t source[WARP];
};

/* What a lane takes from what the lanes of the mask have brought. */
using taken = uint64_t (*)(const struct brought &brought, uint32_t mask, uint32_t lane);

/* Waits for all lanes of the mask, which call it with the same mask and `taken`. */
uint64_t meet_warp(uint32_t mask, uint64_t value, uint32_t source, taken take);

/* Waits for all threads of the block that have not ended; returns the number whose predicate is true. */
int meet_block(bool predicate);

/* Waits for all threads of a grid that was launched cooperatively. */
void meet_grid();

/* Copies that are as late as can be: those of a group are made when the thread waits for it. NULL: zeros. */
void copy_later(void *to, const void *from, size_t bytes);
void end_group();
void wait_for_groups(size_t pending);

/* Lane of the thread that runs. */
uint32_t lane();

/* Runs all blocks, one after the other, or cooperatively: all at once. The kernel is a thread's work. */
void run_grid(dim3 grid, dim3 size, size_t shared_bytes, bool is_cooperative,
              const std::function<void()> &kernel);

} /* namespace emulator */

#endif
