/*
 * op.h - the interfaces of operations and backends.
 *
 * A lane holds a volume and is independent of the algorithms. An algorithm is one struct kernels_op
 * per backend, entered in ops.def, with its own state in every lane. A backend has devices, lanes,
 * memory, uploads and a table of operations. A new one must be entered in lane.c. Its device and
 * lane structs must begin with struct kernels_device and struct kernels_lane.
 *
 * lane.c and the .c file of each header check every argument and the order of calls, so that
 * backends and operations receive only valid calls.
 */
#ifndef NOCTULE_KERNELS_OP_H
#define NOCTULE_KERNELS_OP_H

#include "kernels/kernels.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Consecutive pieces of one memory block. If memory is NULL, pieces are only counted. */
struct kernels_arena {
    unsigned char *memory;
    size_t used;
    bool too_large; /* the sum overflows */
};

/* Takes count * size bytes at the next multiple of 256. Returns NULL if pieces are only counted. */
void *kernels_take(struct kernels_arena *arena, size_t count, size_t size);

/* Memory of a lane's operations, valid until the next volume. */
struct kernels_memory {
    struct kernels_arena host;   /* pinned on a GPU's lane */
    struct kernels_arena device; /* GPU memory; empty on the CPU */
};

/*
 * One algorithm on one backend. Its state of `state_size` bytes per lane is zeroed when the lane is
 * opened, and only the operation may use it (kernels_state). `open` and `close` manage further
 * resources per lane and may be NULL. A job calls:
 *
 *   needs    Reads the demand, keeps it at the beginning of the state to check requests against,
 *            and sizes the state for the lane's volume. Returns false if a size overflows, so that
 *            no memory would suffice. NULL: the operation has no demand; every job may use it.
 *   place    Takes the pieces of the state: once to count them, once to get them. May be NULL.
 *   keep     As `place`, for host memory of results: it holds the results of a run until the next
 *            run, whatever other operations do. May be NULL.
 *   begin    Announces a request before the first slice is ready. May be NULL.
 *   ready    After `begin`: slices first .. first + count - 1 are ready. Called from any thread
 *            on a CPU, and serially on a GPU.
 *   queued   On a GPU, after `begin`: the upload of more rows is queued. May be NULL.
 *   run      Runs the request when every slice is ready, any number of times per job. Runs are
 *            serial; if they take turns, the thread that has the turn calls it.
 *
 * All transient operations share the same memory, which keeps no data between runs.
 */
struct kernels_op {
    const char *name;
    size_t state_size;
    bool transient;
    bool awaits; /* on a GPU: `run` itself waits for the (announced) slices that it reads */
    int (*open)(struct kernels_lane *lane, struct error *error);
    void (*close)(struct kernels_lane *lane);
    bool (*needs)(struct kernels_lane *lane, const void *demand);
    void (*place)(struct kernels_lane *lane, struct kernels_memory *memory);
    int (*begin)(struct kernels_lane *lane, const void *request, struct error *error);
    int (*ready)(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error);
    int (*run)(struct kernels_lane *lane, const void *request, struct error *error);
    void (*keep)(struct kernels_lane *lane, struct kernels_memory *memory);
    int (*queued)(struct kernels_lane *lane, struct error *error);
};

struct kernels_device {
    const struct kernels_backend *backend;
    int threads;
    struct cpu_pool *pool; /* of the backend */
    char description[256];
};

/* Permitted uses of an operation in a job. */
enum kernels_op_phase {
    KERNELS_OP_ABSENT, /* no memory was reserved */
    KERNELS_OP_READY,
    KERNELS_OP_BEGUN, /* announced by begin, not run yet */
};

/* The part of a lane that lane.c owns. Backends and operations may read it. While several threads
 * use the lane, only the announcement fields change, by atomic operations. */
struct kernels_lane {
    struct kernels_device *device;
    bool has_volume;
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels; /* of kernels_volume_begin */
    enum kernels_op_phase phase[KERNELS_OPS];
    void *state[KERNELS_OPS];
    int64_t *rows_left; /* per slice, not announced yet */
    size_t rows_left_capacity;
    int64_t rows_ready; /* rows for which the backend's rows_ready has returned */
    int64_t bytes;      /* host memory */
};

struct kernels_backend {
    const char *name;
    /* Returns -ENODEV if there is no such device; "auto" then tries the next backend. */
    int (*device_open)(const struct kernels_device_options *options, struct kernels_device **device,
                       struct error *error);
    void (*device_close)(struct kernels_device *device);
    /* See kernels_device_leave and kernels_device_memory; NULL on the CPU. */
    void (*device_leave)(struct kernels_device *device, size_t bytes);
    int (*device_memory)(struct kernels_device *device, struct kernels_gpu_memory *memory);
    /* Opens and closes the lane's resources other than its operations. */
    int (*lane_open)(struct kernels_device *device, struct kernels_lane **lane, struct error *error);
    void (*lane_close)(struct kernels_lane *lane);
    /* See kernels_lane_reserve. */
    int (*lane_reserve)(struct kernels_lane *lane, size_t bytes);
    /* Makes the device current in the calling thread. Must precede every use of the lane. */
    int (*lane_enter)(struct kernels_lane *lane, struct error *error);
    /* Reserves the volume and the counted memory, and writes the start addresses into `memory`. The
     * lane must already hold the job's extent and pixel type. */
    int (*volume_begin)(struct kernels_lane *lane, struct kernels_memory *memory, void **voxels, struct error *error);
    /* Uploads rows first .. first + count - 1 of the volume, and passes slices to the operations that have begun
     * (kernels_slices_arrived). NULL: lane.c passes complete slices. */
    int (*rows_ready)(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error);
    const struct kernels_op *ops[KERNELS_OPS];
    /*
     * For lanes whose runs take turns, otherwise NULL. A run may leave the turn to others after it
     * has queued all work and before it has its results. Sets *has_turn to whether the caller holds
     * the turn.
     */
    int (*turn_take)(struct kernels_lane *lane, const struct kernels_op *op, bool *has_turn, struct error *error);
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

/* Start and run a request, for an operation's public functions. Return -EINVAL if the job has no
 * volume or no memory for it, or if begin comes too late; -EBUSY if slices are missing. */
int kernels_op_begin(struct kernels_lane *lane, enum kernels_op_id id, const void *request, struct error *error);
/* Must not be called inside a run, which holds the turn: a run must use the operation table
 * instead. */
int kernels_op_run(struct kernels_lane *lane, enum kernels_op_id id, const void *request, struct error *error);

/* Checks whether the operation may run now, as kernels_op_run does. Callers use it before they
 * check arguments of the volume's size. */
int kernels_op_check(struct kernels_lane *lane, enum kernels_op_id id, struct error *error);

/* For a backend's rows_ready. */
int kernels_slices_arrived(struct kernels_lane *lane, int64_t first, int64_t count, struct error *error);

/* Returns -ENOMEM and sets the error to the size that does not fit. */
int kernels_no_memory(const struct kernels_lane *lane, struct error *error);

/* `needs` of operations without parameters in their demand (kernels_asked). */
bool kernels_op_asked(struct kernels_lane *lane, const void *demand);

/* Returns the number of processors available to this process. */
int kernels_processors(void);

#ifdef __cplusplus
}
#endif
#endif
