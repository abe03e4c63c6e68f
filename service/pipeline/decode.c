/* decode.c - see decode.h. */
#include "service/pipeline/decode.h"

#include "base/error.h"
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
    int rc;
    struct error *error;
};

/* The reader a thread has open: planes of one multi-frame instance mostly follow one another. */
struct open_reader {
    int32_t instance; /* -1: none */
    struct dicom_pixels *pixels;
};

static int
open_instance(const struct decode_request *request, int32_t instance, struct open_reader *reader,
              struct error *error)
{
    if (reader->instance == instance)
        return 0;
    dicom_pixels_close(reader->pixels);
    reader->pixels = NULL;
    reader->instance = -1;
    int rc = dicom_pixels_open(request->instances[instance], &reader->pixels, error);
    if (rc == 0)
        reader->instance = instance;
    return rc;
}

static int
decode_plane(struct decoding *decoding, int64_t z, struct open_reader *reader, struct error *error)
{
    const struct decode_request *request = decoding->request;
    const struct geometry_plane *plane = &request->stack->planes[z];
    char *destination = (char *)request->voxels + (size_t)z * decoding->plane_bytes;
    int rc = open_instance(request, plane->instance, reader, error);
    if (rc == 0)
        rc = dicom_pixels_read(reader->pixels, plane->frame, destination, error);
    if (rc)
        return rc;
    return kernels_volume_ready(request->lane, z, 1, error);
}

static void
keep_lowest(struct decoding *decoding, int64_t z, int rc, const struct error *error)
{
    pthread_mutex_lock(&decoding->lock);
    if (decoding->rc == 0 || z < decoding->failed_plane) {
        decoding->failed_plane = z;
        decoding->rc = rc;
        *decoding->error = *error;
    }
    pthread_mutex_unlock(&decoding->lock);
}

static void
decode_share(struct parallel *loop, void *context)
{
    struct decoding *decoding = context;
    const struct pipeline_watch *watch = decoding->request->watch;
    struct open_reader reader = {.instance = -1};
    struct error error = {0};
    int64_t z;
    while (parallel_take(loop, &z)) {
        int rc = decode_plane(decoding, z, &reader, &error);
        if (rc) {
            keep_lowest(decoding, z, rc, &error);
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
decode_stack(const struct decode_request *request, struct error *error)
{
    const struct geometry_stack *stack = request->stack;
    struct decoding decoding = {
        .request = request,
        .plane_bytes =
            (size_t)stack->rows * (size_t)stack->columns * image_pixel_size(stack->pixel),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .error = error,
    };
    struct parallel loop = {.count = stack->plane_count,
                            .stop = request->watch ? request->watch->stop : NULL,
                            .body = decode_share,
                            .context = &decoding};
    parallel_run(&loop, request->threads);
    pthread_mutex_destroy(&decoding.lock);
    if (decoding.rc)
        return decoding.rc;
    return parallel_stopped(&loop) ? -ECANCELED : 0;
}
