/* headers.c - see headers.h. */
#include "service/pipeline/headers.h"

#include "service/common/clock.h"
#include "service/common/parallel.h"

#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct reading {
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
        headers->rc[i] = dicom_peek(reading->paths[i], &headers->instances[i], &headers->errors[i]);
        if (reading->watch->progress)
            reading->watch->progress(reading->watch->context,
                                     (double)(i + 1) / (double)loop->count);
    }
}

int
headers_read(char *const *paths, size_t count, int threads, const struct headers_watch *watch,
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
    struct reading reading = {paths, headers, watch ? watch : &nobody};
    struct parallel loop = {.count = (int64_t)count,
                            .stop = reading.watch->stop,
                            .body = read_share,
                            .context = &reading};
    parallel_run(&loop, threads);
    if (parallel_stopped(&loop)) {
        headers_free(headers);
        return -ECANCELED;
    }
    headers->seconds = clock_seconds() - begun;
    return 0;
}

struct digesting {
    const struct headers *headers;
    bool *used; /* by instance */
    pthread_mutex_t lock;
    int rc; /* of the first file that failed, which the lock guards with its error */
    struct error *error;
};

static void
digest_share(struct parallel *loop, void *context)
{
    struct digesting *digesting = context;
    int64_t i;
    while (parallel_take(loop, &i)) {
        struct dicom_instance *instance = digesting->headers->instances[i];
        struct error error;
        int rc = digesting->used[i] ? dicom_digest(instance->path, instance->digest, &error) : 0;
        if (rc == 0)
            continue;
        parallel_fail(loop);
        pthread_mutex_lock(&digesting->lock);
        if (digesting->rc == 0) {
            digesting->rc = rc;
            *digesting->error = error;
        }
        pthread_mutex_unlock(&digesting->lock);
    }
}

int
headers_digest(const struct headers *headers, const struct geometry_stack *stack, int threads,
               const atomic_bool *stop, struct error *error)
{
    struct digesting digesting = {
        .headers = headers, .lock = PTHREAD_MUTEX_INITIALIZER, .error = error};
    digesting.used = calloc(headers->count + 1, sizeof *digesting.used);
    if (!digesting.used)
        return error_set_system(error, -ENOMEM, "list the files of the stack");
    for (int32_t z = 0; z < stack->plane_count; z++)
        digesting.used[stack->planes[z].instance] = true;
    struct parallel loop = {.count = (int64_t)headers->count,
                            .stop = stop,
                            .body = digest_share,
                            .context = &digesting};
    parallel_run(&loop, threads);
    free(digesting.used);
    pthread_mutex_destroy(&digesting.lock);
    return parallel_stopped(&loop) ? -ECANCELED : digesting.rc;
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
