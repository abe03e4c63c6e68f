/*
 * program_attempt.h - one attempt at a run of a program: the report of the process, and the state that it leads to.
 *
 *     ended as    recorded as
 *     WELL        DONE; waiting jobs become READY
 *     ILL         DELAYED if the code is transient and attempts are left, else FAILED with the waiting jobs. Out of GPU
 *                 memory: DELAYED for an attempt with the whole GPU, then with cpu_command, neither counted
 *     RETURNED    READY, the attempt not counted
 *     OUTDATED    CANCELLED; the jobs that wait for it get another run
 */
#ifndef NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAM_ATTEMPT_H
#define NOCTULE_SERVICE_DAEMON_PROGRAMS_PROGRAM_ATTEMPT_H

#include "db/program_rows.h"
#include "kernels/gpu.h"
#include "service/common/program/program_order.h"
#include "service/common/wire/messages.h"
#include "service/daemon/attempt.h"

enum program_attempt_end {
    PROGRAM_ATTEMPT_WELL,
    PROGRAM_ATTEMPT_ILL,
    PROGRAM_ATTEMPT_RETURNED,
    PROGRAM_ATTEMPT_OUTDATED
};

/* Where an attempt computes. */
struct program_place {
    enum program_as as;
    enum conf_gpu gpu;
    char uuid[KERNELS_UUID]; /* "": no GPU */
};

struct program_attempt {
    struct attempt base;  /* its id is the run's */
    struct queue_run run; /* as of its start; attempts includes this one */
    size_t slot;          /* index in struct programs */
    struct program_place place;
    int max_attempts;
    bool has_cpu_command;
    double deadline_seconds;
    bool is_warm;      /* its process stays */
    enum code refused; /* why it cannot start; CODE_NONE: it can */
    bool started;      /* PROGRAM_RUN was sent */
    bool stopping;     /* PROGRAM_STOP was sent */
    bool unwanted;     /* no job waits for it any more */
    bool overdue;
    uint64_t deadline_at; /* in the loop's clock */
    enum program_attempt_end end;
    struct queue_run_end outcome;
    char message[512]; /* of the outcome */
    void *frame;       /* holds its other strings; NULL: none */
};

extern const struct attempt_type program_attempt_type;

/* Creates the attempt of a run that is being started, and takes over the run's strings. Returns NULL without memory; the
 * caller then still owns them. */
struct program_attempt *program_attempt_new(struct attempts *attempts, struct queue_run *run);

/* Fills the attempt from a PROGRAM_ENDED message and ends it. Returns 0, -EBADMSG for impossible values, or -ENOMEM. */
int program_attempt_read(struct program_attempt *attempt, struct proto_reader *reader,
                         struct message_program_ended *message);
/* Ends the attempt with an outcome that the daemon found itself. */
void program_attempt_end(struct program_attempt *attempt, enum program_attempt_end end, enum code code,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Files and folders of an attempt below programs/. */
enum program_file { PROGRAM_WORK, PROGRAM_ORDER, PROGRAM_RESULT };

/* Returns the absolute path. The caller must free it; NULL: no memory. */
char *program_attempt_path(const struct program_attempt *attempt, enum program_file file);
/* Removes it, with the contents of a folder. */
void program_attempt_remove(const struct program_attempt *attempt, enum program_file file);

/* Returns the name of the place for the database: "", "shared", "whole" or "cpu". */
const char *program_place_name(const struct program_place *place);

#endif
