/*
 * program_source.h - the images of an order, for the steps of a program; private to this folder.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_PROGRAM_PROGRAM_SOURCE_H
#define NOCTULE_SERVICE_PIPELINE_PROGRAM_PROGRAM_SOURCE_H

#include "service/common/program/program_order.h"
#include "service/pipeline/volume_source.h"

struct program_source {
    struct conf_pipeline *pipeline;
    struct headers headers;
    struct volume_source volume;
};

/* Reads the headers of the order's instances, and chooses the stack and the grid as a job does. Returns 0 or -errno with
 * the error filled. The caller must call program_source_close() in both cases. */
int program_source_open(const struct program_order *order, struct program_source *source, struct error *error);
void program_source_close(struct program_source *source);

/* The steps (program_steps.h). */
int program_write_input(const struct program_order *order, const struct conf_program *program, int work,
                        struct error *error);
int program_read_output(const struct program_order *order, const struct conf_program *program, int work,
                        struct program_outcome *outcome, struct error *error);

#endif
