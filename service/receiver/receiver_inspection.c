/* receiver_inspection.c - inspect series for the daemon. Headers are read in the pool. */
#include "service/receiver/receiver_private.h"

#include "service/common/parallel.h"
#include "service/receiver/inspect.h"

#include <errno.h>
#include <stdlib.h>

#define INSPECT_THREADS 4

struct intake_inspection {
    struct intake *intake;
    struct inspect *inspect;
    uv_work_t work;
};

static void
on_inspect(uv_work_t *work)
{
    struct intake_inspection *inspection = work->data;
    int threads = parallel_processors();
    inspect_run(inspection->inspect, threads < INSPECT_THREADS ? threads : INSPECT_THREADS);
}

static void
after_inspect(uv_work_t *work, int status)
{
    (void)status;
    struct intake_inspection *inspection = work->data;
    struct intake *intake = inspection->intake;
    intake->working--;
    if (!intake->stopping) {
        struct proto_writer writer;
        inspect_answer(inspection->inspect, &writer);
        intake_send_frame(intake, &writer);
    }
    inspect_free(inspection->inspect);
    free(inspection);
}

void
intake_inspect(struct intake *intake, struct proto_reader *reader)
{
    struct intake_inspection *inspection = calloc(1, sizeof *inspection);
    reader->error = inspection ? inspect_open(reader, &inspection->inspect) : -ENOMEM;
    if (reader->error) {
        free(inspection);
        return;
    }
    inspection->intake = intake;
    inspection->work.data = inspection;
    intake_queue_work(intake, &inspection->work, on_inspect, after_inspect);
}
