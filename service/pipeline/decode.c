/* decode.c - see decode.h. */
#include "service/pipeline/decode.h"

#include "service/common/failure.h"
#include "service/common/parallel.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct decoding {
    const struct decode_request *request;
    size_t plane_bytes;
    atomic_llong done;
    pthread_mutex_t lock; /* guards what follows: the lowest plane that failed */
    int64_t failed_plane;
    int error;
    struct dicom_fault *fault;
};

/* The reader a thread has open: planes of one multi-frame instance mostly follow one another. */
struct open_reader {
    int32_t instance; /* -1: none */
    struct dicom_pixels *pixels;
};

static int
open_instance(const struct decode_request *request, int32_t instance, struct open_reader *reader,
              struct dicom_fault *fault)
{
    if (reader->instance == instance)
        return 0;
    dicom_pixels_close(reader->pixels);
    reader->pixels = NULL;
    reader->instance = -1;
    int error = dicom_pixels_open(request->instances[instance], &reader->pixels, fault);
    if (error == 0)
        reader->instance = instance;
    return error;
}

static int
decode_plane(struct decoding *decoding, int64_t z, struct open_reader *reader,
             struct dicom_fault *fault)
{
    const struct decode_request *request = decoding->request;
    const struct geometry_plane *plane = &request->stack->planes[z];
    char *destination = (char *)request->voxels + (size_t)z * decoding->plane_bytes;
    int error = open_instance(request, plane->instance, reader, fault);
    if (error == 0)
        error = dicom_pixels_read(reader->pixels, plane->frame, destination, fault);
    if (error)
        return error;
    error = kernels_volume_ready(request->lane, z, 1);
    return error ? pipeline_compute_fault(fault, error, "a slice cannot be handed over") : 0;
}

static void
keep_lowest(struct decoding *decoding, int64_t z, int error, const struct dicom_fault *fault)
{
    pthread_mutex_lock(&decoding->lock);
    if (decoding->error == 0 || z < decoding->failed_plane) {
        decoding->failed_plane = z;
        decoding->error = error;
        *decoding->fault = *fault;
    }
    pthread_mutex_unlock(&decoding->lock);
}

static void
decode_share(struct parallel *loop, void *context)
{
    struct decoding *decoding = context;
    const struct pipeline_watch *watch = decoding->request->watch;
    struct open_reader reader = {.instance = -1};
    struct dicom_fault fault = {0};
    int64_t z;
    while (parallel_take(loop, &z)) {
        int error = decode_plane(decoding, z, &reader, &fault);
        if (error) {
            keep_lowest(decoding, z, error, &fault);
            parallel_fail(loop);
            break;
        }
        double done = (double)(atomic_fetch_add(&decoding->done, 1) + 1);
        if (watch && watch->progress)
            watch->progress(watch->context, "pixels", done / (double)loop->count);
    }
    dicom_pixels_close(reader.pixels);
}

int
decode_stack(const struct decode_request *request, struct dicom_fault *fault)
{
    const struct geometry_stack *stack = request->stack;
    struct decoding decoding = {
        .request = request,
        .plane_bytes =
            (size_t)stack->rows * (size_t)stack->columns * image_pixel_size(stack->pixel),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .fault = fault,
    };
    struct parallel loop = {.count = stack->plane_count,
                            .stop = request->watch ? request->watch->stop : NULL,
                            .body = decode_share,
                            .context = &decoding};
    parallel_run(&loop, request->threads);
    pthread_mutex_destroy(&decoding.lock);
    if (decoding.error)
        return decoding.error;
    return parallel_stopped(&loop) ? -ECANCELED : 0;
}
