#include "service/pipeline/decode.h"

#include "base/error.h"
#include "service/common/parallel.h"
#include "service/pipeline/image_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DECODE_PIECE = 2 << 20 }; /* bytes of a large plane that a thread reads at a time */

/* One plane, rows of one, or all planes of an instance with frames that must be read in order. */
struct decode_round {
    int32_t first, end; /* in the order of planes */
    int32_t row, rows;
};

struct decoding {
    const struct decode_request *request;
    size_t row_bytes;
    int32_t *order; /* the planes */
    struct decode_round *rounds;
    int64_t round_count;
    atomic_llong rows_done;
    pthread_mutex_t lock; /* guards the following */
    int64_t failed_row;   /* of the volume: the lowest that failed */
    int rc;
    struct error *error;
};

/* The open reader of a thread: consecutive planes are mostly of one multi-frame instance. */
struct open_reader {
    int32_t instance; /* -1: none */
    struct dicom_pixels *pixels;
};

static int
decode_rows(struct decoding *decoding, int32_t z, const struct decode_round *round, struct open_reader *reader,
            struct error *error)
{
    const struct decode_request *request = decoding->request;
    const struct geometry_plane *plane = &request->stack->planes[z];
    const size_t row = (size_t)z * (size_t)request->stack->rows + (size_t)round->row;
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
        rc = dicom_pixels_read_rows(reader->pixels, plane->frame, round->row, round->rows,
                                    (char *)request->voxels + row * decoding->row_bytes, error);
    return rc ? rc : kernels_rows_ready(request->lane, z, round->row, round->rows, error);
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

/* Returns the number of pieces in which threads read a plane of an instance. */
static int32_t
decode_pieces(const struct geometry_stack *stack, const struct dicom_instance *instance)
{
    const int64_t pieces =
        (int64_t)stack->rows * stack->columns * (int64_t)image_pixel_size(stack->pixel) / DECODE_PIECE;
    if (pieces < 2 || !dicom_pixels_by_rows(instance))
        return 1;
    return pieces < stack->rows ? (int32_t)pieces : stack->rows;
}

int64_t
decode_bytes(struct dicom_instance *const *instances, const struct geometry_stack *stack, int threads)
{
    int64_t most = 0, rounds = 0;
    if (image_file_is(instances[stack->planes[0].instance]))
        return 0;
    for (int32_t z = 0; z < stack->plane_count; z++) {
        const struct dicom_instance *instance = instances[stack->planes[z].instance];
        const int64_t bytes =
            z > 0 && stack->planes[z].instance == stack->planes[z - 1].instance ? 0 : dicom_pixels_bytes(instance);
        most = bytes > most ? bytes : most;
        rounds += decode_pieces(stack, instance);
    }
    return most * (rounds < threads ? rounds : threads);
}

static void
decode_add_rounds(struct decoding *decoding, int32_t first)
{
    const int32_t z = decoding->order[first], rows = decoding->request->stack->rows;
    const int32_t pieces = decode_pieces(decoding->request->stack,
                                         decoding->request->instances[decoding->request->stack->planes[z].instance]);
    for (int32_t i = 0; i < pieces; i++) {
        const int32_t row = (int32_t)((int64_t)rows * i / pieces), end = (int32_t)((int64_t)rows * (i + 1) / pieces);
        decoding->rounds[decoding->round_count++] = (struct decode_round){first, first + 1, row, end - row};
    }
}

static int
decode_plan(struct decoding *decoding, struct error *error)
{
    const struct decode_request *request = decoding->request;
    const int32_t count = request->stack->plane_count;
    int64_t most = 0;
    for (int32_t z = 0; z < count; z++)
        most += decode_pieces(request->stack, request->instances[request->stack->planes[z].instance]);
    decoding->order = calloc((size_t)count + 1, sizeof *decoding->order);
    decoding->rounds = calloc((size_t)most + 1, sizeof *decoding->rounds);
    if (!decoding->order || !decoding->rounds)
        return error_set_system(error, -ENOMEM, "decode the pixels");
    for (int32_t z = 0; z < count; z++)
        decoding->order[z] = z;
    qsort_r(decoding->order, (size_t)count, sizeof *decoding->order, decode_compare, (void *)(uintptr_t)request);
    for (int32_t i = 0, last = -1; i < count; i++) {
        const int32_t instance = decode_instance_in_order(request, decoding->order[i]);
        if (instance < 0 || instance != last)
            decode_add_rounds(decoding, i);
        else
            decoding->rounds[decoding->round_count - 1].end++;
        last = instance;
    }
    return 0;
}

/* ---- threads ---- */

static void
decode_fail(struct decoding *decoding, int64_t row, int rc, const struct error *error)
{
    pthread_mutex_lock(&decoding->lock);
    if (decoding->rc == 0 || row < decoding->failed_row) {
        decoding->failed_row = row;
        decoding->rc = rc;
        *decoding->error = *error;
    }
    pthread_mutex_unlock(&decoding->lock);
}

static bool
decode_round(struct decoding *decoding, struct parallel *loop, int64_t number, struct open_reader *reader)
{
    const struct geometry_stack *stack = decoding->request->stack;
    const struct pipeline_watch *watch = decoding->request->watch;
    const struct decode_round *round = &decoding->rounds[number];
    struct error error = {0};
    for (int32_t i = round->first; i < round->end; i++) {
        if (parallel_stopped(loop))
            return false;
        const int32_t z = decoding->order[i];
        const int rc = decode_rows(decoding, z, round, reader, &error);
        if (rc) {
            decode_fail(decoding, (int64_t)z * stack->rows + round->row, rc, &error);
            parallel_fail(loop);
            return false;
        }
        const double done = (double)(atomic_fetch_add(&decoding->rows_done, round->rows) + round->rows);
        if (watch && watch->progress)
            watch->progress(watch->context, "pixels", done / ((double)stack->plane_count * stack->rows));
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
        .row_bytes = (size_t)stack->columns * image_pixel_size(stack->pixel),
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
