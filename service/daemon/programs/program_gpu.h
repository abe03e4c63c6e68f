/*
 * program_gpu.h - the GPUs of runs: a share of the memory, which the lanes of the GPU's worker leave free (RESERVE), or the
 * whole GPU, whose worker ends meanwhile (workers_lend). One run at a time has a whole GPU, so that jobs go on elsewhere.
 *
 *     asked --RESERVED, or the worker is gone--> granted --run ends--> returned
 *                                                   |                     ^
 *                                                   +--warm--> idle --COLD+
 *
 * A warm process keeps its share between runs, until another run needs the memory (PROGRAM_COOL). Loop thread only.
 */
#ifndef NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAM_GPU_H
#define NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAM_GPU_H

#include "service/daemon/jobs/workers.h"
#include "service/daemon/programs/program_attempt.h"

#define PROGRAM_GRANTS 64

struct program_grant {
    int64_t run; /* 0: idle, of a warm process */
    int slot;    /* of its process in the pool */
    char program[65];
    size_t worker;
    bool whole;
    int64_t bytes; /* of a share */

    enum { PROGRAM_GRANT_ASKED, PROGRAM_GRANT_GIVEN, PROGRAM_GRANT_IMPOSSIBLE } state;

    bool is_cold;        /* the warm process ended during the run */
    bool is_cooling;     /* PROGRAM_COOL was sent to it */
    bool is_ended;       /* to be returned in the next search */
    bool is_used;        /* by an attempt, or a warm process */
    bool is_wanted;      /* the run was READY in the last search for runs to start */
    int64_t token;       /* of its RESERVE */
    uint64_t asked_at;   /* in the loop's clock */
    int64_t free_before; /* bytes; 0: not known */
};

/* A RESERVE that only asks for the free memory, to compare it with that before a program. */
struct program_probe {
    int64_t token, before; /* before 0: not known */
    bool is_fresh;         /* the worker had just started */
    char program[65];
};

struct program_gpus {
    struct core *core;
    struct program_grant grants[PROGRAM_GRANTS];
    size_t count;
    int64_t token; /* the last one used */
    struct program_probe probes[WORKERS_MAX];
    int64_t fresh[WORKERS_MAX];     /* free bytes when the worker had just started; 0: not known */
    char lent_for[WORKERS_MAX][65]; /* program that had the whole GPU since; "" */
};

/* Finds a GPU for a run that is to start in this process. Returns 1 with the UUID set, 0 if the run must wait, -ENOMEM if
 * its share does not fit into a GPU, or -ENODEV without a GPU. */
int program_gpu_take(struct program_gpus *gpus, int64_t run, const struct conf_program *program, int slot,
                     struct program_place *place);
/* Returns whether the process waits for the GPU of another run. */
bool program_gpu_holds(const struct program_gpus *gpus, int slot, int64_t run);
/* Returns the GPU of a run that has ended, unless its process stays warm. */
void program_gpu_end(struct program_gpus *gpus, int64_t run, bool stays_warm);
/* Returns the GPUs that a process keeps. program NULL: of all programs. */
void program_gpu_cold(struct program_gpus *gpus, int slot, const char *program);

/* Must surround a search for runs to start. They return the GPUs of runs that have ended, or are not READY any more. */
void program_gpu_search_begin(struct program_gpus *gpus);
void program_gpu_search_end(struct program_gpus *gpus);

void program_gpu_reserved(struct program_gpus *gpus, size_t worker, const struct message_reserved *message);
/* Events of a worker's slot. */
void program_gpu_worker_ready(struct program_gpus *gpus, size_t worker);
/* Checks the time limit of reservations. */
void program_gpu_tick(struct program_gpus *gpus);

#endif
