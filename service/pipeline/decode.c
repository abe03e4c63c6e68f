/* decode.c - see decode.h. */
#include "service/pipeline/decode.h"

#include "base/error.h"
#include "service/common/parallel.h"
#include "service/pipeline/image_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct decoding {
    const struct decode_request *request;
    size_t plane_bytes;
    /*
     * The planes, and the first plane of each round. A round is one plane, or all planes of an
     * instance whose frames must be read in order.
     */
    int32_t *order, *rounds;
    int32_t round_count;
    atomic_llong done;
    pthread_mutex_t lock; /* guards the following: the lowest plane that failed */
    int64_t failed_plane;
    int rc;
    struct error *error;
};

/* The open reader of a thread: consecutive planes are mostly of one multi-frame instance. */
struct open_reader {
    int32_t instance; /* -1: none */
    struct dicom_pixels *pixels;
};

static int
decode_plane(struct decoding *decoding, int64_t z, struct open_reader *reader, struct error *error)
{
    const struct decode_request *request = decoding->request;
    const struct geometry_plane *plane = &request->stack->planes[z];
    char *destination = (char *)request->voxels + (size_t)z * decoding->plane_bytes;
    int rc = 0;
    if (reader->instance != plane->instance) {
        dicom_pixels_close(reader->pixels);
        *reader = (struct open_reader){.instance = -1};
        rc = dicom_pixels_open(request->instances[plane->instance], &reader->pixels, error);
        if (rc == 0) {
            reader->instance = plane->instance;
            dicom_pixels_choose(reader->pixels, request->channel);
        }
    }
    if (rc == 0)
        rc = dicom_pixels_read(reader->pixels, plane->frame, destination, error);
    return rc ? rc : kernels_volume_ready(request->lane, z, 1, error);
}

/* ---- rounds ---- */

/* Returns the instance of which one thread must read all frames; -1: any thread may read. */
static int32_t
decode_instance_in_order(const struct decode_request *request, int32_t z)
{
    const int32_t instance = request->stack->planes[z].instance;
    return dicom_pixels_in_order(request->instances[instance]) ? instance : -1;
}

static int
decode_compare(const void *left, const void *right, void *context)
{
    const struct decode_request *request = context;
    const int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    const int32_t of_a = decode_instance_in_order(request, a), of_b = decode_instance_in_order(request, b);
    if (of_a != of_b)
        return of_a < of_b ? -1 : 1;
    return of_a < 0 ? a - b : request->stack->planes[a].frame - request->stack->planes[b].frame;
}

static int
decode_plan(struct decoding *decoding, struct error *error)
{
    const struct decode_request *request = decoding->request;
    const int32_t count = request->stack->plane_count;
    decoding->order = calloc((size_t)count + 1, sizeof *decoding->order);
    decoding->rounds = calloc((size_t)count + 1, sizeof *decoding->rounds);
    if (!decoding->order || !decoding->rounds)
        return error_set_system(error, -ENOMEM, "decode the pixels");
    for (int32_t z = 0; z < count; z++)
        decoding->order[z] = z;
    qsort_r(decoding->order, (size_t)count, sizeof *decoding->order, decode_compare, (void *)(uintptr_t)request);
    for (int32_t i = 0, last = -1; i < count; i++) {
        const int32_t instance = decode_instance_in_order(request, decoding->order[i]);
        if (instance < 0 || instance != last)
            decoding->rounds[decoding->round_count++] = i;
        last = instance;
    }
    decoding->rounds[decoding->round_count] = count;
    return 0;
}

/* ---- threads ---- */

static bool
decode_round(struct decoding *decoding, struct parallel *loop, int64_t round, struct open_reader *reader)
{
    const struct pipeline_watch *watch = decoding->request->watch;
    const double planes = (double)decoding->request->stack->plane_count;
    struct error error = {0};
    for (int32_t i = decoding->rounds[round]; i < decoding->rounds[round + 1]; i++) {
        if (parallel_stopped(loop))
            return false;
        const int32_t z = decoding->order[i];
        const int rc = decode_plane(decoding, z, reader, &error);
        if (rc) {
            pthread_mutex_lock(&decoding->lock);
            if (decoding->rc == 0 || z < decoding->failed_plane) {
                decoding->failed_plane = z;
                decoding->rc = rc;
                *decoding->error = error;
            }
            pthread_mutex_unlock(&decoding->lock);
            parallel_fail(loop);
            return false;
        }
        const double done = (double)(atomic_fetch_add(&decoding->done, 1) + 1);
        if (watch && watch->progress)
            watch->progress(watch->context, "pixels", done / planes);
    }
    return true;
}

static void
decode_share(struct parallel *loop, void *context)
{
    struct decoding *decoding = context;
    struct open_reader reader = {.instance = -1};
    int64_t round;
    while (parallel_take(loop, &round) && decode_round(decoding, loop, round, &reader))
        continue;
    dicom_pixels_close(reader.pixels);
}

int
decode_stack(const struct decode_request *request, struct error *error)
{
    const struct geometry_stack *stack = request->stack;
    if (image_file_is(request->instances[stack->planes[0].instance]))
        return image_file_decode(request, error);
    struct decoding decoding = {
        .request = request,
        .plane_bytes = (size_t)stack->rows * (size_t)stack->columns * image_pixel_size(stack->pixel),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .error = error,
    };
    int rc = decode_plan(&decoding, error);
    struct parallel loop = {.count = decoding.round_count,
                            .stop = request->watch ? request->watch->stop : NULL,
                            .body = decode_share,
                            .context = &decoding};
    if (!rc)
        parallel_run(&loop, request->threads);
    pthread_mutex_destroy(&decoding.lock);
    free(decoding.order);
    free(decoding.rounds);
    if (rc || decoding.rc)
        return rc ? rc : decoding.rc;
    return parallel_stopped(&loop) ? -ECANCELED : 0;
}
