/*
 * inspect.c - see inspect.h.
 */
#include "service/intake/inspect.h"

#include "service/common/parallel.h"

#include "dicom/dicom.h"
#include "dicom/read/geometry/geometry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inspect {
    int64_t series_id, revision;
    double tolerance;
    int32_t count;
    char **paths;
    struct dicom_instance **instances; /* by path; NULL: not read */
    struct proto_writer answer;

    pthread_mutex_t lock; /* for the two below, while threads peek */
    int64_t failed;       /* the first path that could not be read; -1: none */
    struct error error;
};

static int
copy_paths(struct proto_reader *request, struct inspect *inspect, int64_t count)
{
    /* A path takes at least the four bytes of its length, so a count beyond the frame is a lie. */
    if (request->error || count < 0 || (uint64_t)count > request->size / 4)
        return -EBADMSG;
    inspect->paths = calloc((size_t)count + 1, sizeof *inspect->paths);
    inspect->instances = calloc((size_t)count + 1, sizeof *inspect->instances);
    if (!inspect->paths || !inspect->instances)
        return -ENOMEM;
    for (int64_t i = 0; i < count; i++) {
        inspect->paths[i] = strdup(proto_get_str(request));
        if (!inspect->paths[i])
            return -ENOMEM;
        inspect->count++;
    }
    return proto_end(request);
}

int
inspect_open(struct proto_reader *request, struct inspect **out)
{
    struct inspect *inspect = calloc(1, sizeof *inspect);
    if (!inspect)
        return -ENOMEM;
    pthread_mutex_init(&inspect->lock, NULL);
    inspect->failed = -1;
    inspect->series_id = proto_get_i64(request);
    inspect->revision = proto_get_i64(request);
    inspect->tolerance = proto_get_f64(request);
    int error = copy_paths(request, inspect, proto_get_i64(request));
    if (error) {
        inspect_free(inspect);
        return error;
    }
    *out = inspect;
    return 0;
}

void
inspect_free(struct inspect *inspect)
{
    if (!inspect)
        return;
    for (int32_t i = 0; i < inspect->count; i++) {
        if (inspect->instances[i])
            dicom_instance_free(inspect->instances[i]);
        free(inspect->paths[i]);
    }
    free(inspect->paths);
    free(inspect->instances);
    pthread_mutex_destroy(&inspect->lock);
    proto_release(&inspect->answer);
    free(inspect);
}

/* Keeps the error of the lowest index: parallel.h promises that it is the same on every run. */
static void
keep_error(struct inspect *inspect, int64_t i, const struct error *error)
{
    pthread_mutex_lock(&inspect->lock);
    if (inspect->failed < 0 || i < inspect->failed) {
        inspect->failed = i;
        inspect->error = *error;
    }
    pthread_mutex_unlock(&inspect->lock);
}

static void
peek_some(struct parallel *loop, void *context)
{
    struct inspect *inspect = context;
    struct error error;
    int64_t i;
    while (parallel_take(loop, &i)) {
        if (dicom_peek(inspect->paths[i], &inspect->instances[i], &error) == 0)
            continue;
        inspect->instances[i] = NULL;
        keep_error(inspect, i, &error);
        parallel_fail(loop);
    }
}

static void
put_error(struct proto_writer *answer, const struct error *error)
{
    proto_put_str(answer, code_name(error->code));
    proto_put_str(answer, error->message);
    proto_put_str(answer, error->file[0]);
    proto_put_str(answer, error->file[1]);
}

static void
put_stack(struct proto_writer *answer, const struct geometry_stack *stack)
{
    static const struct error none = {0};
    proto_put_str(answer, stack->name);
    proto_put_i64(answer, stack->accepted);
    proto_put_i64(answer, stack->plane_count);
    proto_put_i64(answer, stack->columns);
    proto_put_i64(answer, stack->rows);
    proto_put_f64(answer, stack->spacing[2]);
    put_error(answer, stack->accepted ? &none : &stack->error);
}

/* A series that cannot be judged at all is one stack that is refused. */
static void
put_refusal(struct proto_writer *answer, const struct error *error)
{
    const struct geometry_stack refused = {.error = *error};
    proto_put_i64(answer, 1);
    put_stack(answer, &refused);
}

static void
put_stacks(struct inspect *inspect)
{
    const struct geometry_limits limits = {.min_planes = 1,
                                           .spacing_tolerance = inspect->tolerance};
    struct geometry_series *series = NULL;
    struct error error = {0};
    if (geometry_group(inspect->instances, inspect->count, &limits, &series, &error) != 0) {
        put_refusal(&inspect->answer, &error);
        return;
    }
    proto_put_i64(&inspect->answer, series->stack_count);
    for (int32_t i = 0; i < series->stack_count; i++)
        put_stack(&inspect->answer, &series->stacks[i]);
    geometry_series_free(series);
}

void
inspect_run(struct inspect *inspect, int threads)
{
    struct parallel loop = {.count = inspect->count, .body = peek_some, .context = inspect};
    parallel_run(&loop, threads);
    proto_start(&inspect->answer, PROTO_INSPECTED);
    proto_put_i64(&inspect->answer, inspect->series_id);
    proto_put_i64(&inspect->answer, inspect->revision);
    if (inspect->failed >= 0)
        put_refusal(&inspect->answer, &inspect->error);
    else
        put_stacks(inspect);
}

void
inspect_answer(struct inspect *inspect, struct proto_writer *writer)
{
    *writer = inspect->answer;
    inspect->answer = (struct proto_writer){0};
}
