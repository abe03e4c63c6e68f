#include "service/pipeline/job_lane.h"

#include "service/common/parallel.h"
#include "service/pipeline/measure/measure_values.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_KEPT = 32 << 20, /* bytes of a block that malloc may keep when it is freed, the most that glibc allows */
    MOST_KEPT = 256 << 20,   /* bytes */
};

struct job_device {
    struct kernels_device *device;
    int threads;
    atomic_int running; /* jobs, in all lanes */
    int64_t most_bytes;
    pthread_mutex_t lock;
    struct kernels_device *fallback; /* NULL until a job needs it; under the lock */
};

struct job_lane {
    struct job_device *device;
    struct kernels_lane *lane, *coarse;
    struct kernels_lane *fallback, *fallback_coarse; /* NULL until a job needs them */
    struct valuing *valuing;
    int64_t kept;    /* bytes */
    int64_t largest; /* of the jobs since its last rest, in bytes */
};

/* ------------------------------------------------------------------------------- device ---- */

int
job_device_open(const struct kernels_device_options *options, int64_t most_bytes, struct job_device **out,
                struct error *error)
{
    struct job_device *device = calloc(1, sizeof *device);
    if (!device)
        return error_set_system(error, -ENOMEM, "open the device");
    struct kernels_device_options own = *options;
    own.threads = options->threads > 0 ? options->threads : parallel_processors();
    device->threads = own.threads;
    device->most_bytes = most_bytes;
    const int rc = kernels_device_open(&own, &device->device, error);
    if (rc) {
        free(device);
        return rc;
    }
    if (strcmp(kernels_device_backend(device->device), "cpu") != 0) {
        /* Keeps memory that a job freed for its next steps, and for the next job until job_lane_rest(): beside a GPU,
         * new pages take more time than the values that are written to them. */
        mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT);
        mallopt(M_TRIM_THRESHOLD, MOST_KEPT);
    }
    pthread_mutex_init(&device->lock, NULL);
    *out = device;
    return 0;
}

const char *
job_device_description(const struct job_device *device)
{
    return kernels_device_description(device->device);
}

struct kernels_device *
job_device_kernels(const struct job_device *device)
{
    return device->device;
}

void
job_device_close(struct job_device *device)
{
    if (!device)
        return;
    if (device->fallback)
        kernels_device_close(device->fallback);
    kernels_device_close(device->device);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* --------------------------------------------------------------------------------- lane ---- */

/* Opens two lanes of a device, or none. */
static int
job_lane_open_both(struct kernels_device *device, struct kernels_lane **lane, struct kernels_lane **coarse,
                   struct error *error)
{
    *lane = NULL; /* kernels_lane_open sets it only if it succeeds */
    int rc = kernels_lane_open(device, lane, error);
    if (rc == 0)
        rc = kernels_lane_open(device, coarse, error);
    if (rc) {
        kernels_lane_close(*lane);
        *lane = NULL;
    }
    return rc;
}

int
job_lane_open(struct job_device *device, struct job_lane **out, struct error *error)
{
    struct job_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return error_set_system(error, -ENOMEM, "open a lane");
    lane->device = device;
    lane->valuing = valuing_open();
    const int rc = lane->valuing ? job_lane_open_both(device->device, &lane->lane, &lane->coarse, error)
                                 : error_set_system(error, -ENOMEM, "open a lane");
    if (rc)
        job_lane_close(lane);
    else
        *out = lane;
    return rc;
}

static bool
job_lane_open_fallback(struct job_lane *lane)
{
    struct job_device *device = lane->device;
    const struct kernels_device_options options = {.backend = "cpu", .threads = device->threads};
    pthread_mutex_lock(&device->lock);
    if (!device->fallback)
        kernels_device_open(&options, &device->fallback, NULL);
    if (device->fallback)
        job_lane_open_both(device->fallback, &lane->fallback, &lane->fallback_coarse, NULL);
    pthread_mutex_unlock(&device->lock);
    return lane->fallback != NULL;
}

/* Runs a job with the threads of the device, or its share of them if other jobs run. */
static void
job_lane_run_once(struct job_lane *lane, const struct job_spec *spec, const struct headers *headers,
                  const struct pipeline_watch *watch, struct pipeline_report *report)
{
    const int threads = lane->device->threads, running = atomic_load(&lane->device->running);
    const struct pipeline_compute compute = {.device = lane->device->device,
                                             .lane = lane->lane,
                                             .coarse_lane = lane->coarse,
                                             .valuing = lane->valuing,
                                             .threads = (threads + running - 1) / running,
                                             .most_bytes = lane->device->most_bytes,
                                             .fallback_device = lane->fallback ? lane->device->fallback : NULL,
                                             .fallback_lane = lane->fallback,
                                             .fallback_coarse_lane = lane->fallback_coarse};
    if (headers)
        pipeline_run_headers(spec, headers, &compute, watch, report);
    else
        pipeline_run(spec, &compute, watch, report);
    const int64_t bytes = kernels_lane_bytes(lane->lane) + kernels_lane_bytes(lane->coarse);
    lane->largest = bytes > lane->largest ? bytes : lane->largest;
}

void
job_lane_run(struct job_lane *lane, const struct job_spec *spec, const struct headers *headers,
             const struct pipeline_watch *watch, struct pipeline_report *report)
{
    atomic_fetch_add(&lane->device->running, 1);
    job_lane_run_once(lane, spec, headers, watch, report);
    if (!lane->fallback && report->verdict == PROTO_VERDICT_RETRY && report->error.code == CODE_OUT_OF_MEMORY &&
        strcmp(kernels_device_backend(lane->device->device), "cpu") != 0 && job_lane_open_fallback(lane)) {
        pipeline_report_clear(report);
        job_lane_run_once(lane, spec, headers, watch, report);
    }
    atomic_fetch_sub(&lane->device->running, 1);
}

int
job_lane_keep(struct job_lane *lane, int64_t bytes)
{
    lane->kept = bytes;
    return kernels_lane_reserve(lane->lane, bytes);
}

void
job_lane_rest(struct job_lane *lane, bool of_gpu)
{
    struct kernels_lane *fresh, *coarse;
    /* Replace lanes that are as large as their largest job. */
    if (lane->largest > (of_gpu ? 0 : lane->kept) &&
        job_lane_open_both(lane->device->device, &fresh, &coarse, NULL) == 0) {
        kernels_lane_close(lane->lane);
        kernels_lane_close(lane->coarse);
        lane->lane = fresh;
        lane->coarse = coarse;
        lane->largest = 0;
        if (lane->kept > 0) /* if this fails, jobs allocate memory themselves */
            kernels_lane_reserve(fresh, lane->kept);
    }
    kernels_lane_close(lane->fallback);
    kernels_lane_close(lane->fallback_coarse);
    lane->fallback = lane->fallback_coarse = NULL;
    malloc_trim(0);
}

void
job_lane_close(struct job_lane *lane)
{
    if (!lane)
        return;
    valuing_close(lane->valuing);
    kernels_lane_close(lane->lane);
    kernels_lane_close(lane->coarse);
    kernels_lane_close(lane->fallback);
    kernels_lane_close(lane->fallback_coarse);
    free(lane);
}
