/* programs_private.h - shared by the parts of programs/. */
#ifndef NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAMS_PRIVATE_H
#define NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAMS_PRIVATE_H

#include "db/program_rows.h"
#include "service/daemon/programs/program_attempt.h"
#include "service/daemon/programs/program_gpu.h"
#include "service/daemon/programs/programs.h"

#define PROGRAMS_MAX 16 /* processes */

struct program_slot {
    int pool;       /* slot in the pool */
    bool is_filled; /* has a process, or will get one */
    char last[65];  /* program of its last run: its warm process may be there */
};

/* The programs of the configuration, as the role checked them last. */
struct program_checks {
    struct queue_program *at;
    size_t count;
    void *frame;      /* holds the strings */
    bool is_recorded; /* stored in the database, or in the open batch */
};

struct programs {
    struct core *core;
    struct attempts attempts;
    struct program_slot slots[PROGRAMS_MAX];
    size_t slot_count;
    struct program_checks checks;
    struct program_gpus gpus;
};

/* Returns the check of a program with a known identity, or NULL. */
const struct queue_program *programs_find_check(const struct programs *programs, const char *name);

/* Plans the runs of waiting jobs again that lack one of this program; NULL: of all waiting jobs. Returns 0 or -errno. */
int programs_plan_waiting(struct core *core, const char *program);
/* Cancels a run that must not take place as planned, and plans again for the jobs that wait for it. Returns 0 or -errno. */
int programs_replan(struct core *core, int64_t run_id, const char *program, const char *why);

#endif
