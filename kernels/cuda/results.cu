/*
 * results.cu - turns of threads that queue work, and results that arrive during other turns.
 *
 * An operation that has queued all its work gives up its turn. The GPU can then go on with the next
 * operation's work without a gap. Its device memory then belongs to the next operation. Its results
 * go to separate pinned memory, allocated from the front of one block that is reset when no result
 * is taken. If there is no room, the operation keeps its turn until it has its results.
 */
#include "kernels/cuda/cuda.cuh"

#include <errno.h>
#include <string.h>

enum { RESULTS_PIECE = 256 };

void
cuda_turn_take_again(struct cuda_lane *lane, bool *has_turn)
{
    pthread_mutex_lock(&lane->turn);
    lane->has_turn = has_turn;
    *has_turn = true;
}

int
cuda_turn_take(struct kernels_lane *base, const struct kernels_op *op, bool *has_turn, struct error *error)
{
    struct cuda_lane *lane = cuda_lane_of(base);

    if (pthread_mutex_lock(&lane->turn) != 0) /* this thread already holds it */
        return error_set(error, -EDEADLK, CODE_COMPUTE_FAILED, "%s runs inside another's turn", op->name);
    lane->has_turn = has_turn;
    *has_turn = true;
    return op->awaits ? 0 : cuda_await_slices(lane, 0, base->extent.slices, error);
}

bool *
cuda_turn_give_up(struct cuda_lane *lane)
{
    bool *has_turn = lane->has_turn;

    *has_turn = false;
    pthread_mutex_unlock(&lane->turn);
    return has_turn;
}

void
cuda_turn_leave(struct kernels_lane *base)
{
    (void)cuda_turn_give_up(cuda_lane_of(base));
}

struct cuda_result *
cuda_result_take(struct cuda_lane *lane, size_t bytes)
{
    const size_t size = (bytes + RESULTS_PIECE - 1) / RESULTS_PIECE * RESULTS_PIECE;
    struct cuda_results *results = &lane->results;
    struct cuda_result *taken = NULL;

    pthread_mutex_lock(&lane->mutex);
    for (int i = 0; i < CUDA_RESULTS && results->memory && size <= CUDA_RESULTS_BYTES - results->used && !taken; i++)
        if (!results->each[i].taken) {
            taken = &results->each[i];
            taken->taken = true;
            taken->memory = results->memory + results->used;
            results->used += size;
            results->taken++;
        }
    pthread_mutex_unlock(&lane->mutex);
    return taken;
}

void
cuda_result_give_back(struct cuda_lane *lane, struct cuda_result *result)
{
    pthread_mutex_lock(&lane->mutex);
    result->taken = false;
    if (--lane->results.taken == 0)
        lane->results.used = 0;
    pthread_mutex_unlock(&lane->mutex);
}

int
cuda_result_fetch(struct cuda_lane *lane, struct cuda_result *result, const void *from, size_t bytes, bool **has_turn,
                  struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);

    CUDA_TRY(device, cudaMemcpyAsync(result->memory, from, bytes, cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaEventRecord(result->arrived, lane->work));
    *has_turn = cuda_turn_give_up(lane);
    CUDA_TRY(device, cudaEventSynchronize(result->arrived));
    return 0;
}

int
cuda_result_copy(struct cuda_lane *lane, void *to, const void *from, size_t bytes, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    struct cuda_result *result = cuda_result_take(lane, bytes);
    bool *has_turn;
    int rc;

    if (!result) { /* wait in turn */
        CUDA_TRY(device, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, lane->work));
        CUDA_TRY(device, cudaStreamSynchronize(lane->work));
        return 0;
    }
    rc = cuda_result_fetch(lane, result, from, bytes, &has_turn, error);
    if (rc == 0)
        memcpy(to, result->memory, bytes);
    cuda_result_give_back(lane, result);
    return rc;
}
