#include "service/pipeline/headers.h"

#include "service/common/clock.h"
#include "service/common/parallel.h"
#include "service/pipeline/image_file.h"

#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    bool images; /* of NIfTI or NRRD */
    char *const *paths;
    struct headers *headers;
    const struct headers_watch *watch;
};

static void
read_share(struct parallel *loop, void *context)
{
    const struct reading *reading = context;
    struct headers *headers = reading->headers;
    int64_t i;
    while (parallel_take(loop, &i)) {
        headers->rc[i] = reading->images ? image_file_peek(reading->paths[i], (int32_t)i + 1, &headers->instances[i],
                                                           &headers->errors[i])
                                         : dicom_peek(reading->paths[i], &headers->instances[i], &headers->errors[i]);
        if (reading->watch->progress)
            reading->watch->progress(reading->watch->context, (double)(i + 1) / (double)loop->count);
    }
}

static int
read_all(bool images, char *const *paths, size_t count, int threads, const struct headers_watch *watch,
         struct headers *headers)
{
    static const struct headers_watch nobody = {0};
    double begun = clock_seconds();
    memset(headers, 0, sizeof *headers);
    headers->count = count;
    headers->instances = calloc(count + 1, sizeof *headers->instances);
    headers->errors = calloc(count + 1, sizeof *headers->errors);
    headers->rc = calloc(count + 1, sizeof *headers->rc);
    if (!headers->instances || !headers->errors || !headers->rc) {
        headers_free(headers);
        return -ENOMEM;
    }
    struct reading reading = {images, paths, headers, watch ? watch : &nobody};
    struct parallel loop = {
        .count = (int64_t)count, .stop = reading.watch->stop, .body = read_share, .context = &reading};
    parallel_run(&loop, threads);
    if (parallel_stopped(&loop)) {
        headers_free(headers);
        return -ECANCELED;
    }
    headers->seconds = clock_seconds() - begun;
    return 0;
}

int
headers_read(char *const *paths, size_t count, int threads, const struct headers_watch *watch, struct headers *headers)
{
    return read_all(false, paths, count, threads, watch, headers);
}

int
headers_read_images(char *const *paths, size_t count, int threads, const struct headers_watch *watch,
                    struct headers *headers)
{
    return read_all(true, paths, count, threads, watch, headers);
}

struct headers_digests {
    const struct headers *headers;
    int threads;
    pthread_t thread;
    bool has_thread;
    atomic_bool cancel;
    pthread_mutex_t lock; /* guards rc and error of the first file that failed */
    int rc;
    struct error error;
    /* Per instance; a copy, because other threads copy instances meanwhile. "": not used. */
    char (*digest)[DICOM_UID_SIZE];
    bool used[]; /* per instance */
};

static void
digest_share(struct parallel *loop, void *context)
{
    struct headers_digests *digests = context;
    int64_t i;
    while (parallel_take(loop, &i)) {
        const struct dicom_instance *instance = digests->headers->instances[i];
        struct error error;
        int rc = !digests->used[i]         ? 0
                 : image_file_is(instance) ? image_file_digest(instance->path, digests->digest[i], &error)
                                           : dicom_digest(instance->path, digests->digest[i], &error);
        if (rc == 0)
            continue;
        parallel_fail(loop);
        pthread_mutex_lock(&digests->lock);
        if (digests->rc == 0) {
            digests->rc = rc;
            digests->error = error;
        }
        pthread_mutex_unlock(&digests->lock);
    }
}

static void *
digest_run(void *context)
{
    struct headers_digests *digests = context;
    struct parallel loop = {
        .count = (int64_t)digests->headers->count, .stop = &digests->cancel, .body = digest_share, .context = digests};
    parallel_run(&loop, digests->threads);
    return NULL;
}

struct headers_digests *
headers_digest_begin(const struct headers *headers, const struct geometry_stack *stack, int threads)
{
    struct headers_digests *digests = calloc(1, sizeof *digests + headers->count);
    if (digests)
        digests->digest = calloc(headers->count + 1, sizeof *digests->digest);
    if (!digests || !digests->digest) {
        free(digests);
        return NULL;
    }
    digests->headers = headers;
    digests->threads = threads;
    pthread_mutex_init(&digests->lock, NULL);
    for (int32_t z = 0; z < stack->plane_count; z++)
        digests->used[stack->planes[z].instance] = true;
    digests->has_thread = pthread_create(&digests->thread, NULL, digest_run, digests) == 0;
    return digests;
}

int
headers_digest_end(struct headers_digests *digests, bool cancel, struct error *error)
{
    if (!digests)
        return 0;
    atomic_store(&digests->cancel, cancel);
    if (digests->has_thread)
        pthread_join(digests->thread, NULL);
    else
        digest_run(digests);
    const int rc = cancel ? -ECANCELED : digests->rc;
    for (size_t i = 0; rc == 0 && i < digests->headers->count; i++)
        if (digests->used[i])
            memcpy(digests->headers->instances[i]->digest, digests->digest[i], DICOM_UID_SIZE);
    if (rc && !cancel)
        *error = digests->error;
    pthread_mutex_destroy(&digests->lock);
    free(digests->digest);
    free(digests);
    return rc;
}

void
headers_free(struct headers *headers)
{
    for (size_t i = 0; headers->instances && i < headers->count; i++)
        dicom_instance_free(headers->instances[i]);
    free(headers->instances);
    free(headers->errors);
    free(headers->rc);
    memset(headers, 0, sizeof *headers);
}
