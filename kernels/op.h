/*
 * op.h - what an operation and a backend are.
 *
 * A lane holds a volume, and knows nothing of what is done with it: an algorithm is one struct
 * kernels_op a backend, entered in ops.def, with its own state in every lane. A backend is a device,
 * its lanes, their memory and the way of a volume into them, and a table of operations; a new one
 * is entered in lane.c. Its device and lane structs begin with the two structs below.
 *
 * lane.c and the headers' own .c files check every argument and keep the order of calls, so that
 * backends and operations see only calls that make sense.
 */
#ifndef NOCTULE_OP_H
#define NOCTULE_OP_H

#include "kernels/kernels.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pieces of one memory, one after the other; without memory they are only counted. */
struct kernels_arena {
    unsigned char *memory;
    size_t used;
    bool too_large; /* the sum does not fit a number */
};

/* A piece of count * size bytes at the next multiple of 256; NULL where they are only counted. */
void *kernels_take(struct kernels_arena *arena, size_t count, size_t size);

/* What a lane gives to its operations, and takes back with the next volume. */
struct kernels_memory {
    struct kernels_arena host;   /* pinned, on a GPU's lane */
    struct kernels_arena device; /* of a GPU; the CPU has none */
};

/*
 * One algorithm on one backend. Its state, `state_size` bytes a lane, begins as zeros when the lane
 * is opened and is the operation's alone (kernels_state); open and close are for what else a lane
 * has of it, and may be NULL. A job goes
 *
 *   needs    of a demand for it: keeps it at the beginning of the state, where requests are checked
 *            against it, and sizes the state for the lane's volume; false where that is more than
 *            its numbers can count, and no memory would do. NULL: it takes no demand, and every job
 *            may use it.
 *   place    takes the state's pieces: once to count them, once more to have them. NULL: none.
 *   keep     likewise those that results are handed out in, the host's: they hold what a run has put
 *            there until the next one, whatever other operations do. NULL: none.
 *   begin    the hint that a request will come: before the first slice is announced. NULL: no use.
 *   ready    after begin, slices first .. first + count - 1 are there: from any thread on a CPU,
 *            one after the other on a GPU.
 *   run      the request, once every slice is there; any number of times a job, one at a time where
 *            runs take no turns, else by the thread whose turn it is.
 *
 * What a transient operation places holds nothing from one run to the next: all of these share it.
 */
struct kernels_op {
    const char *name;
    size_t state_size;
    bool transient;
    bool awaits; /* on a GPU: `run` itself waits for the slices it reads, which are announced */
    int (*open)(struct kernels_lane *lane, struct error *error);
    void (*close)(struct kernels_lane *lane);
    bool (*needs)(struct kernels_lane *lane, const void *demand);
    void (*place)(struct kernels_lane *lane, struct kernels_memory *memory);
    int (*begin)(struct kernels_lane *lane, const void *request, struct error *error);
    int (*ready)(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error);
    int (*run)(struct kernels_lane *lane, const void *request, struct error *error);
    void (*keep)(struct kernels_lane *lane, struct kernels_memory *memory);
};

struct kernels_device {
    const struct kernels_backend *backend;
    int threads;
    char description[256];
};

/* What a job may do with an operation. */
enum kernels_op_phase {
    KERNELS_OP_ABSENT, /* no memory was asked for */
    KERNELS_OP_READY,
    KERNELS_OP_BEGUN, /* hinted at, and not run yet */
};

/*
 * The part of a lane that lane.c owns; backends and operations read it. Only the announcement
 * fields change while several threads are inside the lane, by atomic operations.
 */
struct kernels_lane {
    struct kernels_device *device;
    bool has_volume;
    struct image_extent extent;
    enum image_pixel pixel;
    enum kernels_op_phase phase[KERNELS_OPS];
    void *state[KERNELS_OPS];
    uint64_t *announced; /* one bit per slice */
    size_t announced_words;
    int64_t slices_ready; /* slices whose volume_ready has returned */
    int64_t bytes;        /* of the host's memory */
};

struct kernels_backend {
    const char *name;
    /* -ENODEV: there is no such device here, and "auto" looks further. */
    int (*device_open)(const struct kernels_device_options *options, struct kernels_device **device,
                       struct error *error);
    void (*device_close)(struct kernels_device *device);
    /* Opens and closes what a lane has beside its operations. */
    int (*lane_open)(struct kernels_device *device, struct kernels_lane **lane,
                     struct error *error);
    void (*lane_close)(struct kernels_lane *lane);
    /* As kernels_lane_reserve. */
    int (*lane_reserve)(struct kernels_lane *lane, size_t bytes);
    /* Makes the device the calling thread's, before every use of the lane. */
    int (*lane_enter)(struct kernels_lane *lane, struct error *error);
    /*
     * The job's extent and pixel type stand in the lane already. Reserves the volume and as much
     * memory as has been counted, whose beginnings it writes into `memory`.
     */
    int (*volume_begin)(struct kernels_lane *lane, struct kernels_memory *memory, void **voxels,
                        struct error *error);
    /* Hands slices on to the operations that have begun (kernels_slices_arrived). */
    int (*volume_ready)(struct kernels_lane *lane, int64_t first, int64_t count,
                        struct error *error);
    const struct kernels_op *ops[KERNELS_OPS];
    /*
     * Of a lane whose runs take turns, else NULL. A run that has queued all may leave the turn to others before it has
     * its results; *has_turn tells whether it did.
     */
    int (*turn_take)(struct kernels_lane *lane, const struct kernels_op *op, bool *has_turn,
                     struct error *error);
    void (*turn_leave)(struct kernels_lane *lane);
};

extern const struct kernels_backend kernels_backend_cpu;
#define OP(NAME, name) extern const struct kernels_op cpu_##name##_op;
#include "kernels/ops.def"
#undef OP
#ifdef NOCTULE_CUDA
extern const struct kernels_backend kernels_backend_cuda;
#define OP(NAME, name) extern const struct kernels_op cuda_##name##_op;
#include "kernels/ops.def"
#undef OP
#endif

static inline void *
kernels_state(const struct kernels_lane *lane, enum kernels_op_id id)
{
    return lane->state[id];
}

/* For an operation's own header: its hint, and its request. -EINVAL where the job has no volume or
 * no memory for it, or comes too late with a hint; -EBUSY while slices are missing. */
int kernels_op_begin(struct kernels_lane *lane, enum kernels_op_id id, const void *request,
                     struct error *error);
/* Not from inside a run: it has the turn that this one would wait for, and calls what the table has. */
int kernels_op_run(struct kernels_lane *lane, enum kernels_op_id id, const void *request,
                   struct error *error);

/* Whether the operation may run now, as kernels_op_run asks it too: for checks of arguments that
 * are of the volume's size. */
int kernels_op_check(struct kernels_lane *lane, enum kernels_op_id id, struct error *error);

/* For a backend's volume_ready. */
int kernels_slices_arrived(struct kernels_lane *lane, int64_t first, int64_t count,
                           struct error *error);

/* -ENOMEM, saying for what. */
int kernels_no_memory(const struct kernels_lane *lane, struct error *error);

/* The `needs` of operations that take no more than to be asked for (kernels_asked). */
bool kernels_op_asked(struct kernels_lane *lane, const void *demand);

/* Processors this process may run on. */
int kernels_processors(void);

#ifdef __cplusplus
}
#endif
#endif
