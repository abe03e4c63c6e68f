#include "service/receiver/inspect.h"

#include "service/common/parallel.h"
#include "service/common/routing/routing_view.h"

#include "dicom/dicom.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COSINES 96 /* enough for six numbers */

struct inspect {
    struct message_inspect request;
    void *frame; /* the INSPECT frame with the paths */
    int32_t count;
    const char **paths;
    struct dicom_instance **instances; /* by path; NULL: not read */
    struct proto_writer answer;

    pthread_mutex_t lock; /* protects the two fields below while threads read */
    int64_t failed;       /* index of the first path that could not be read, or -1 */
    struct error error;
};

int
inspect_open(struct proto_reader *reader, struct inspect **out)
{
    struct inspect *inspect = calloc(1, sizeof *inspect);
    if (!inspect)
        return -ENOMEM;
    pthread_mutex_init(&inspect->lock, NULL);
    inspect->failed = -1;
    int error = message_read_inspect(reader, &inspect->request);
    if (!error) {
        const size_t count = (size_t)reader->rows;
        inspect->frame = message_keep_inspect(reader, &inspect->request);
        inspect->paths = calloc(count + 1, sizeof *inspect->paths);
        inspect->instances = calloc(count + 1, sizeof *inspect->instances);
        if (!inspect->frame || !inspect->paths || !inspect->instances)
            error = -ENOMEM;
    }
    if (error) {
        inspect_free(inspect);
        return error;
    }
    struct message_path path;
    while (message_next_path(reader, &path))
        inspect->paths[inspect->count++] = path.path;
    *out = inspect;
    return 0;
}

void
inspect_free(struct inspect *inspect)
{
    if (!inspect)
        return;
    for (int32_t i = 0; i < inspect->count; i++)
        if (inspect->instances[i])
            dicom_instance_free(inspect->instances[i]);
    free(inspect->paths);
    free(inspect->frame);
    free(inspect->instances);
    pthread_mutex_destroy(&inspect->lock);
    proto_release(&inspect->answer);
    free(inspect);
}

/* Replaces the code if this machine lacked a resource, since the file is then not the cause. */
static void
inspect_mark_machine(struct error *error, int rc)
{
    if (rc == -EMFILE || rc == -ENFILE || rc == -EIO)
        error->code = CODE_IO_ERROR;
    error_normalise(error, rc);
}

static void
peek_some(struct parallel *loop, void *context)
{
    struct inspect *inspect = context;
    struct error error;
    int64_t i;
    while (parallel_take(loop, &i)) {
        int rc = dicom_peek(inspect->paths[i], &inspect->instances[i], &error);
        if (rc == 0)
            continue;
        inspect->instances[i] = NULL;
        inspect_mark_machine(&error, rc);
        /* The error of the lowest index is kept, which parallel.h makes the same in every run. */
        pthread_mutex_lock(&inspect->lock);
        if (inspect->failed < 0 || i < inspect->failed) {
            inspect->failed = i;
            inspect->error = error;
        }
        pthread_mutex_unlock(&inspect->lock);
        parallel_fail(loop);
    }
}

static void
inspect_add_stack(struct inspect *inspect, const struct geometry_series *series, const struct geometry_stack *stack,
                  const struct rules_facts *facts, int options)
{
    static const struct error none = {0};
    const struct error *error = stack->accepted ? &none : &stack->error;
    char cosines[COSINES] = ""; /* Image Orientation (Patient) */
    size_t length = 0;
    for (int i = 0; i < 6 && stack->has_geometry; i++)
        length += (size_t)snprintf(cosines + length, sizeof cosines - length, "%s%.6g", i ? "\\" : "",
                                   stack->axes[i] + 0.0); /* no negative zero */
    const bool has_mm = stack->has_geometry || (stack->flat && geometry_is_in_mm(stack));
    const struct message_stack row = {
        .name = stack->name,
        .accepted = stack->accepted,
        .passed_over = stack->passed_over,
        .split_by = stack->split_by,
        .planes = stack->plane_count,
        .columns = stack->columns,
        .rows = stack->rows,
        .spacing = stack->flat ? 0 : stack->spacing[2],
        .code = error->code,
        .message = error->message,
        .file_a = error->file[0],
        .file_b = error->file[1],
        .times = series->times,
        .times_announced = series->times_announced,
        .options = options,
        .orientation = facts->orientation,
        .values = facts->values,
        .column_mm = has_mm ? stack->spacing[0] : 0,
        .row_mm = has_mm ? stack->spacing[1] : 0,
        .cosines = cosines,
    };
    message_add_stack(&inspect->answer, &row);
}

/* Adds one rejected stack for a series that cannot be inspected. */
static void
inspect_add_refusal(struct inspect *inspect, const struct error *error, int options)
{
    const struct geometry_series none = {0};
    const struct geometry_stack refused = {.error = *error};
    const struct rules_facts unknown = {.orientation = CONF_ANY_ORIENTATION, .values = ""};
    inspect_add_stack(inspect, &none, &refused, &unknown, options);
}

void
inspect_run(struct inspect *inspect, int threads)
{
    struct parallel loop = {.count = inspect->count, .body = peek_some, .context = inspect};
    parallel_run(&loop, threads);
    const struct message_inspected message = {.series_id = inspect->request.series_id,
                                              .revision = inspect->request.revision,
                                              .attributes = inspect->request.attributes};
    struct routing_view_input input = {
        .instances = inspect->instances,
        .paths = inspect->paths,
        .count = inspect->count,
        .limits = {.min_planes = (int32_t)inspect->request.min_slices,
                   .spacing_tolerance = inspect->request.spacing_tolerance,
                   .allow_missing = inspect->request.allow_missing != 0},
        .attributes = inspect->request.attributes,
    };
    message_write_inspected(&inspect->answer, &message);
    for (int options = 0; options < ROUTING_OPTION_SETS; options++) {
        if (!(inspect->request.option_sets >> options & 1))
            continue;
        if (inspect->failed >= 0) {
            inspect_add_refusal(inspect, &inspect->error, options);
            continue;
        }
        struct routing_view view;
        struct error error = {0};
        const int rc = routing_view_make(&input, options, &view, &error);
        if (rc) {
            inspect_mark_machine(&error, rc);
            inspect_add_refusal(inspect, &error, options);
        }
        for (int32_t i = 0; rc == 0 && i < view.grouped->stack_count; i++)
            inspect_add_stack(inspect, view.grouped, &view.grouped->stacks[i], &view.facts[i], options);
        routing_view_release(&view);
    }
}

void
inspect_answer(struct inspect *inspect, struct proto_writer *writer)
{
    *writer = inspect->answer;
    inspect->answer = (struct proto_writer){0};
}
