/*
 * job.h - a job, self-contained: input files, the resolved pipeline, the output folder.
 *
 * The daemon writes one as a file for a worker, `noctule run` makes one in memory, a batch script
 * may keep one for later. The file is libconfig text.
 */
#ifndef NOCTULE_JOB_H
#define NOCTULE_JOB_H

#include <stddef.h>
#include <stdint.h>

struct job_spec {
    int64_t id;     /* 0 outside the queue */
    char *stack;    /* name of the stack to process; "" when there is only one */
    char *settings; /* the pipeline: conf_pipeline_to_text */
    char *output;   /* folder; made when missing */
    char *device_serial_number;
    char **inputs; /* absolute paths of the instances */
    size_t input_count;
};

int job_spec_write(const struct job_spec *spec,
                   const char *path); /* durable: synced, renamed into place */
int job_spec_read(const char *path, struct job_spec **spec, char *reason, size_t reason_size);
void job_spec_free(struct job_spec *spec);

#endif
