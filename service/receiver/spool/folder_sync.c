/* folder_sync.c - see store.h. The syncs of a folder are numbered while callers use it. A
 * caller is served by the first sync that begins after its call. */
#include "service/receiver/spool/store.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct rounds {
    LIST_ENTRY(rounds) next;
    int users;
    bool running;
    uint64_t begun, done;
    uint64_t failed; /* the last sync that failed, or 0 */
    int error;       /* its error */
    pthread_cond_t ended;
    char folder[NAME_MAX + 1];
};

struct folder_sync {
    int base;
    folder_sync_call call;
    pthread_mutex_t lock;
    LIST_HEAD(rounds_list, rounds) rounds;
};

int
folder_sync_open(int base, folder_sync_call call, struct folder_sync **out)
{
    struct folder_sync *sync = calloc(1, sizeof *sync);
    if (!sync)
        return -ENOMEM;
    *sync = (struct folder_sync){.base = base, .call = call};
    pthread_mutex_init(&sync->lock, NULL); /* cannot fail */
    *out = sync;
    return 0;
}

void
folder_sync_close(struct folder_sync *sync)
{
    if (!sync)
        return;
    pthread_mutex_destroy(&sync->lock);
    free(sync);
}

static struct rounds *
join_locked(struct folder_sync *sync, const char *folder)
{
    struct rounds *rounds = LIST_FIRST(&sync->rounds);
    while (rounds && strcmp(rounds->folder, folder) != 0)
        rounds = LIST_NEXT(rounds, next);
    if (!rounds) {
        rounds = calloc(1, sizeof *rounds);
        if (!rounds)
            return NULL;
        snprintf(rounds->folder, sizeof rounds->folder, "%s", folder);
        pthread_cond_init(&rounds->ended, NULL);
        LIST_INSERT_HEAD(&sync->rounds, rounds, next);
    }
    rounds->users++;
    return rounds;
}

int
folder_sync_run(struct folder_sync *sync, const char *folder)
{
    if (strlen(folder) > NAME_MAX)
        return -ENAMETOOLONG;
    pthread_mutex_lock(&sync->lock);
    struct rounds *rounds = join_locked(sync, folder);
    if (!rounds) {
        pthread_mutex_unlock(&sync->lock);
        return -ENOMEM;
    }
    const uint64_t mine = rounds->begun + 1;
    while (rounds->done < mine) {
        if (rounds->running) {
            pthread_cond_wait(&rounds->ended, &sync->lock);
            continue;
        }
        const uint64_t number = ++rounds->begun;
        rounds->running = true;
        pthread_mutex_unlock(&sync->lock);
        const int failed = sync->call(sync->base, rounds->folder);
        pthread_mutex_lock(&sync->lock);
        rounds->running = false;
        rounds->done = number;
        if (failed) {
            rounds->failed = number;
            rounds->error = failed;
        }
        pthread_cond_broadcast(&rounds->ended);
    }
    const int error = rounds->failed >= mine ? rounds->error : 0;
    if (--rounds->users == 0) {
        LIST_REMOVE(rounds, next);
        pthread_cond_destroy(&rounds->ended);
        free(rounds);
    }
    pthread_mutex_unlock(&sync->lock);
    return error;
}
