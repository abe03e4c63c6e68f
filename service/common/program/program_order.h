/*
 * program_order.h - one attempt at a run of a program: the order for the process that executes it, and its outcome.
 *
 * Both are text files in the format of job_file.h (one key with its value per line), "noctule-program 1" and
 * "noctule-outcome 1". They are not synced, since a crash voids the attempt. Functions return 0 or -errno.
 */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_PROGRAM_ORDER_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_PROGRAM_ORDER_H

#include "base/error.h"
#include "config/config.h"

#include <stddef.h>
#include <stdint.h>

/* Where the program computes. */
enum program_as { PROGRAM_AS_GIVEN, PROGRAM_AS_WHOLE, PROGRAM_AS_CPU };

/* Returns where the next attempt computes after this one lacked GPU memory: with the whole GPU, then with cpu_command. `gpu`
 * is the use of the GPU that the program's configuration gives. Returns `as` if no place is left. */
enum program_as program_next_place(enum conf_gpu gpu, bool has_cpu_command, enum program_as as);

struct program_order {
    int64_t run;
    int attempt;
    char *program;  /* conf_program_to_text */
    char *identity; /* expected identity of program and weights; "": not compared */
    char *pipeline; /* conf_pipeline_to_text of a pipeline whose options for stack and grid apply */
    char *stack;    /* as in struct job_spec */
    char **inputs;  /* absolute paths of the instances */
    size_t input_count;
    char **sha256;      /* as in struct job_spec; NULL: no digests */
    uint16_t *accepted; /* known labels, in ascending order; none: every label is accepted */
    size_t accepted_count;
    char *work;   /* absolute path of the work folder of the attempt; it must not exist */
    char *result; /* absolute path of a folder that gets "mask" and "output.txt"; an existing one is replaced */
    char *gpu;    /* UUID of the GPU; "": none */
    enum program_as as;
    int slot;    /* from 0: decides which processors the program may use */
    int threads; /* of the steps that read and write volumes */
};

enum program_end {
    PROGRAM_END_WELL,   /* the mask is in place */
    PROGRAM_END_ILL,    /* the error has the code */
    PROGRAM_END_STOPPED /* stopped on request */
};

struct program_outcome {
    enum program_end end;
    struct error error;
    char identity[65]; /* of the program and weights that ran; "": not known */
    char program_sha256[65], weights_sha256[65];
    char sha256[65]; /* of the mask */
    char sandbox[16];
    int64_t size;     /* bytes of the mask */
    int64_t labels;   /* different label values */
    int64_t labelled; /* voxels with a label */
    int64_t peak_bytes;
    int starts; /* 1: the process was started for this attempt; 0: a warm one took it */
    double write_seconds, program_seconds, read_seconds;
};

/* Returns the text of the file, or NULL without memory. The caller must free it. */
char *program_order_to_text(const struct program_order *order);
int program_order_write(const struct program_order *order, const char *path);
/* -EBADMSG with "line N: ..." if the file is no order. The caller must free the order. */
int program_order_read(const char *path, struct program_order **order, struct error *error);
int program_order_from_text(const char *text, struct program_order **order, struct error *error);
void program_order_free(struct program_order *order);

int program_outcome_write(const struct program_outcome *outcome, const char *path);
int program_outcome_read(const char *path, struct program_outcome *outcome, struct error *error);

#endif
