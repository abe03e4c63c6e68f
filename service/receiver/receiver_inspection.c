/* receiver_inspection.c - inspect series for the daemon. Headers are read in the pool. */
#include "service/receiver/receiver_private.h"

#include "service/common/parallel.h"
#include "service/receiver/inspect.h"

#include <errno.h>
#include <stdlib.h>

#define INSPECT_THREADS 4

struct receiver_inspection {
    struct receiver *receiver;
    struct inspect *inspect;
    uv_work_t work;
};

static void
on_inspect(uv_work_t *work)
{
    struct receiver_inspection *inspection = work->data;
    int threads = parallel_processors();
    inspect_run(inspection->inspect, threads < INSPECT_THREADS ? threads : INSPECT_THREADS);
}

static void
after_inspect(uv_work_t *work, int status)
{
    (void)status;
    struct receiver_inspection *inspection = work->data;
    struct receiver *receiver = inspection->receiver;
    receiver->working--;
    if (!receiver->stopping) {
        struct proto_writer writer;
        inspect_answer(inspection->inspect, &writer);
        receiver_send_frame(receiver, &writer);
    }
    inspect_free(inspection->inspect);
    free(inspection);
}

void
receiver_inspect(struct receiver *receiver, struct proto_reader *reader)
{
    struct receiver_inspection *inspection = calloc(1, sizeof *inspection);
    reader->error = inspection ? inspect_open(reader, &inspection->inspect) : -ENOMEM;
    if (reader->error) {
        free(inspection);
        return;
    }
    inspection->receiver = receiver;
    inspection->work.data = inspection;
    receiver_queue_work(receiver, &inspection->work, on_inspect, after_inspect);
}
