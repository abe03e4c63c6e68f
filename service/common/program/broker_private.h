/* broker_private.h - the two ends of the socket between the broker and its parent, and the parts of the broker. */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_BROKER_PRIVATE_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_BROKER_PRIVATE_H

#include "service/common/program/broker.h"
#include "service/common/program/program_digest.h"
#include "service/common/program/sandbox.h"
#include "service/common/program/work_folder.h"

#include <stdbool.h>
#include <stddef.h>

/* ---------------------------------------------------------------------------- the socket ---- */

/* A request; `size` bytes of text follow. The answers are struct broker_answer: both ends are one program. */
struct broker_head {
    enum broker_verb verb;
    int64_t run;
    size_t size;
};

/* Serves the requests until the parent closes the socket, and exits. */
_Noreturn void broker_main(int fd, const struct program_steps *steps, const char *root);

/* --------------------------------------------------------------------------- the process ---- */

struct broker_request {
    struct broker_head head;
    char *text;   /* ends in NUL */
    bool stopped; /* STOP came while it waited */
};

struct broker_process {
    int fd;
    const struct program_steps *steps;
    const char *root; /* NULL: none */
    struct sandbox_probe probe;
    struct broker_request *waiting; /* requests that came during a run */
    size_t waiting_count, waiting_room;
    int64_t run;  /* being executed; 0: none */
    bool stopped; /* the run is to be stopped */
    bool gone;    /* the parent closed the socket */

    struct broker_digest {
        char stamp[65];
        struct program_digest digest;
    } * digests;

    size_t digest_count, digest_room;
    struct broker_warm *warm; /* list */
};

void broker_answer(struct broker_process *process, const struct broker_answer *answer);
/* Reports that a warm program has ended. */
void broker_answer_cold(struct broker_process *process, const char *name);

/* A child of the broker that is awaited. */
struct broker_watch {
    pid_t pid;
    int end_signal;           /* ends it */
    int outputs[2];           /* its standard output and error output, which do not block; -1: none */
    struct output_tail *tail; /* receives them */
    double last_sign;         /* clock_seconds() of the last output */
    int64_t peak_bytes;
    int status; /* set by broker_await(): of waitpid() */
    /* Called about four times per second; returns 0 or -errno, with the error, to end the child. May be NULL. */
    int (*check)(void *context, struct broker_watch *watch, struct error *error);
    void *context;
    struct broker_reply *reply; /* of a warm program; NULL: wait for the end of the child */
};

/* The answer of a warm program: the line "OK" or "ERROR text" on its standard output. */
struct broker_reply {
    char line[5]; /* its first bytes */
    size_t used;  /* number of bytes of the line */
    bool there, well;
};

/* Waits for the end of the child or its reply, and takes requests. Returns 0, the -errno of `check`, or -ECANCELED if the
 * run was stopped or the parent is gone. The child has ended in all cases but one: 0 with a reply. */
int broker_await(struct broker_process *process, struct broker_watch *watch, struct error *error);

/* The result of a step that runs in a process of its own. */
struct broker_result {
    int rc;
    struct error error;

    union {
        struct program_outcome outcome;
        struct program_digest digest;
    } of;
};

struct broker_step {
    const char *name;    /* for messages: "reads the output" */
    char *const *inputs; /* paths that it may read */
    size_t input_count;
    const char *output;   /* folder that it may write, or NULL */
    double limit_seconds; /* 0: none */
    void (*run)(const void *context, struct broker_result *result);
    const void *context;
};

/* Runs a step in a confined process, and fills `result`. Returns 0 or -errno with the error filled. -ECANCELED: stopped. */
int broker_run_step(struct broker_process *process, const struct broker_step *step, struct broker_result *result,
                    struct error *error);

/* Finds the digests of a program. Reads its files if one of them changed. */
int broker_digest(struct broker_process *process, const struct conf_program *program, struct program_digest *digest,
                  struct error *error);

/* Chooses the sandbox of a program. Code: PROGRAM_SANDBOX. */
int broker_choose_sandbox(const struct broker_process *process, const struct conf_program *program,
                          enum sandbox_kind *kind, struct error *error);

/* Ends warm programs of this name ("": all), and reports each as BROKER_COLD. Returns their number. */
int broker_warm_end(struct broker_process *process, const char *name);
/* Ends warm programs that are dead, have been idle too long, or differ from the configuration (NULL: not compared). */
void broker_warm_check(struct broker_process *process, const struct conf *conf);

/* Executes an order, and fills its outcome. */
void broker_execute(struct broker_process *process, const struct program_order *order, struct program_outcome *outcome);

#endif
