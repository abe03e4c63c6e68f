/*
 * broker.h - the only process that may execute programs of the site. Its parent is the role "program", noctule run, or
 * noctule run-job, which confine themselves afterwards.
 *
 * The broker is single-threaded and reads no images. It forks one confined process per step: the step that writes the
 * input, the program in its sandbox, the step that reads the output. It ends all programs when its parent dies.
 */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_BROKER_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_BROKER_H

#include "config/config.h"
#include "service/common/program/program_order.h"

#include <stdatomic.h>

/* The steps that read or write images. service/pipeline/program implements them, since service/common must not include
 * the pipeline. Each is called in a forked process that may read the order's inputs and write its work folder. */
struct program_steps {
    /* Writes the input of the program into the folder "in" of the work folder. */
    int (*write_input)(const struct program_order *order, const struct conf_program *program, int work,
                       struct error *error);
    /* Reads the output in the folder "out" of the work folder, checks it, and writes the file "mask" into the work folder.
     * Fills size, sha256, labels and labelled of the outcome. */
    int (*read_output)(const struct program_order *order, const struct conf_program *program, int work,
                       struct program_outcome *outcome, struct error *error);
};

struct broker;

/* Forks the broker. Must be called before other threads exist and before the caller confines itself. Programs may not
 * read below `root`, the folder of the service. It may be NULL. Returns 0 or -errno. */
int broker_open(const struct program_steps *steps, const char *root, struct broker **broker);
/* The descriptor becomes readable when a line has come. */
int broker_fd(const struct broker *broker);

enum broker_verb {
    BROKER_RUN,   /* executes a run; text: path of an order */
    BROKER_ORDER, /* the same; text: an order */
    BROKER_STOP,  /* ends a run */
    BROKER_CHECK, /* text: a configuration (conf_to_text); BROKER_CHECKED for each program, then BROKER_CHECKED with name "" */
    BROKER_COOL /* ends the warm process of a program; text: its name, or "" for all */
};

/* Sends a request. Answers come as lines. run: 0 if the request is of no run. Returns 0 or -errno; -EPIPE: the broker died. */
int broker_send(struct broker *broker, enum broker_verb verb, int64_t run, const char *text);

enum broker_event { BROKER_NONE, BROKER_STAGE, BROKER_ENDED, BROKER_CHECKED, BROKER_COLD };

/* The state of a program of the configuration. */
struct program_checked {
    char name[65], identity[65], program_sha256[65], weights_sha256[65], sandbox[16];
    int64_t weights_bytes;
    struct error error; /* code CODE_NONE: it can run */
};

struct broker_answer {
    enum broker_event event; /* BROKER_NONE: no complete line yet */
    int64_t run;
    char stage[16];                 /* "write", "run", "read" */
    struct program_outcome outcome; /* of BROKER_ENDED */
    struct program_checked checked; /* of BROKER_CHECKED; BROKER_COLD has the name */
};

/* Does not block. Returns 0 or -errno; -EPIPE: the broker died. */
int broker_receive(struct broker *broker, struct broker_answer *answer);

/* Starts the order and waits for its end; for noctule run. `stop` ends it early (PROGRAM_END_STOPPED). */
int broker_run(struct broker *broker, const struct program_order *order, const atomic_bool *stop,
               void (*stage)(void *context, const char *stage), void *context, struct program_outcome *outcome);

/* Kills the broker and all processes below it, and waits for their end. */
void broker_close(struct broker *broker);

#endif
