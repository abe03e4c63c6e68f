/*
 * cpu_pool.c - see cpu_pool.h.
 *
 * A call of cpu_pool_run is a region. A region is listed while it accepts threads. The first body
 * to return proves that no work is left, and unlists its region. One mutex guards all state.
 */
#include "kernels/cpu/cpu_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct region {
    void (*body)(void *context);
    void *context;
    int helpers; /* pool threads inside the body */
    bool listed;
    struct region *next;
};

struct cpu_pool {
    pthread_mutex_t mutex;
    pthread_cond_t offered; /* a region was listed, or the pool is closing */
    pthread_cond_t left;    /* a helper left its region */
    struct region *regions;
    bool closing;
    int thread_count;
    pthread_t threads[];
};

static void
unlist(struct cpu_pool *pool, struct region *region)
{
    struct region **link = &pool->regions;

    if (!region->listed)
        return;
    while (*link != region)
        link = &(*link)->next;
    *link = region->next;
    region->listed = false;
}

static void *
serve(void *argument)
{
    struct cpu_pool *pool = argument;

    pthread_mutex_lock(&pool->mutex);
    while (!pool->closing) {
        struct region *region = pool->regions;

        if (!region) {
            pthread_cond_wait(&pool->offered, &pool->mutex);
            continue;
        }
        region->helpers++;
        pthread_mutex_unlock(&pool->mutex);
        region->body(region->context);
        pthread_mutex_lock(&pool->mutex);
        unlist(pool, region);
        region->helpers--;
        pthread_cond_broadcast(&pool->left);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

int
cpu_pool_open(int threads, struct cpu_pool **result)
{
    size_t own = (size_t)threads - 1;
    struct cpu_pool *pool = calloc(1, sizeof(*pool) + own * sizeof(pool->threads[0]));

    if (!pool)
        return -ENOMEM;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->offered, NULL);
    pthread_cond_init(&pool->left, NULL);
    for (size_t i = 0; i < own; i++) {
        int error = pthread_create(&pool->threads[i], NULL, serve, pool);
        if (error) {
            cpu_pool_close(pool);
            return -error;
        }
        pool->thread_count++;
    }
    *result = pool;
    return 0;
}

void
cpu_pool_close(struct cpu_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->closing = true;
    pthread_cond_broadcast(&pool->offered);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->left);
    pthread_cond_destroy(&pool->offered);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

void
cpu_pool_run(struct cpu_pool *pool, void (*body)(void *context), void *context)
{
    struct region region = {.body = body, .context = context, .listed = true};

    if (pool->thread_count == 0) {
        body(context);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    region.next = pool->regions;
    pool->regions = &region;
    pthread_cond_broadcast(&pool->offered);
    pthread_mutex_unlock(&pool->mutex);

    body(context);

    pthread_mutex_lock(&pool->mutex);
    unlist(pool, &region);
    while (region.helpers > 0)
        pthread_cond_wait(&pool->left, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

struct counted {
    int64_t next;
    int64_t count;
    void (*body)(void *context, int64_t i);
    void *context;
};

static void
count_up(void *argument)
{
    struct counted *counted = argument;
    int64_t i;

    while ((i = __atomic_fetch_add(&counted->next, 1, __ATOMIC_RELAXED)) < counted->count)
        counted->body(counted->context, i);
}

void
cpu_pool_for(struct cpu_pool *pool, int64_t count, void (*body)(void *context, int64_t i), void *context)
{
    struct counted counted = {.count = count, .body = body, .context = context};

    cpu_pool_run(pool, count_up, &counted);
}
