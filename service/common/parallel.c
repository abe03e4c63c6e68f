#include "service/common/parallel.h"

#include <sched.h>

#define MAX_THREADS 256

static void *
share(void *argument)
{
    struct parallel *loop = argument;
    loop->body(loop, loop->context);
    return NULL;
}

void
parallel_run(struct parallel *loop, int threads)
{
    pthread_t helpers[MAX_THREADS];
    int wanted = threads < MAX_THREADS ? threads : MAX_THREADS;
    int running = 0;
    if (wanted > loop->count)
        wanted = (int)loop->count;
    atomic_init(&loop->next, 0);
    atomic_init(&loop->failed, false);
    while (running < wanted - 1 && pthread_create(&helpers[running], NULL, share, loop) == 0)
        running++;
    loop->body(loop, loop->context);
    while (running > 0)
        pthread_join(helpers[--running], NULL);
}

bool
parallel_stopped(const struct parallel *loop)
{
    return loop->stop && atomic_load(loop->stop);
}

bool
parallel_take(struct parallel *loop, int64_t *index)
{
    if (atomic_load(&loop->failed) || parallel_stopped(loop))
        return false;
    *index = atomic_fetch_add(&loop->next, 1);
    return *index < loop->count;
}

void
parallel_fail(struct parallel *loop)
{
    atomic_store(&loop->failed, true);
}

int
parallel_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}
