/* broker_case.h - one attempt at a run, for broker_execute.c and broker_warm.c. */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_BROKER_CASE_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_BROKER_CASE_H

#include "service/common/program/broker_private.h"
#include "service/common/program/program_words.h"

struct broker_case {
    struct broker_process *process;
    const struct program_order *order;
    struct conf_program *program;
    struct program_outcome *outcome;
    struct output_tail tail;
    enum sandbox_kind kind;
    bool reads;         /* which step runs: the one that reads the output, or writes the input */
    double started;     /* clock_seconds() */
    int64_t size;       /* of the output at the last check */
    const char *folder; /* has "out" and "tmp" of the program: the work folder, or that of a warm program */
};

/* The pipes of a program. */
struct broker_pipes {
    int input; /* to it; -1: it has /dev/null */
    int outputs[2];
};

/* Starts the program of a case. Fills the pipes, which the caller must close. `talks`: it has standard input, and an error
 * output of its own. Returns the keeper, or -errno with the error of the outcome. */
pid_t case_start(struct broker_case *run, const struct program_words *words, bool talks, struct broker_pipes *pipes);
void case_close_pipes(struct broker_pipes *pipes);

/* Checks the limits of a program that runs (broker_watch). */
int case_check(void *context, struct broker_watch *watch, struct error *error);
/* Decides the code of a program that ended by itself. */
int case_judge_end(struct broker_case *run, const struct broker_watch *watch);

/* Runs a case in a warm program, which is started if there is none. */
int broker_warm_run(struct broker_case *run);

#endif
