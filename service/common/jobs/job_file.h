/*
 * job_file.h - a job, self-contained: input files, the resolved pipeline, the output folder.
 *
 * The daemon writes one as a file for a worker, `noctule run` makes one in memory, a batch script
 * may keep one for later. The file is text, a key and its value a line:
 *
 *   noctule-job 1
 *   id 17
 *   stack echo 1
 *   output /var/lib/noctule/outbox/17
 *   device NOCTULE-0123456789
 *   settings name = "head-ct";
 *   <tab>segments = ( ... );
 *   input /var/lib/noctule/series/1.2.3/1.2.3.1.dcm
 *   sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 *   input /var/lib/noctule/series/1.2.3/1.2.3.2.dcm
 *   object /var/lib/noctule/series/1.2.9/1.2.9.1.dcm
 *   earlier seg.dcm 2.25.7 2.25.8 1.2.3 2.25.5 2.25.6 1.2.3
 *   end 3
 *
 * A line that begins with a tab goes on with the value of the line before it, after a line break.
 * Within a value a backslash is written as \\ and any other control character as \xHH; all other
 * bytes stand for themselves, so that any file name survives. `end` carries the number of inputs and
 * objects together: a file without it was cut off. `sha256`, which is of the input before it, may be left out, and
 * `earlier`: an object that the series has already of this pipeline, as its file name and SOP Instance, Series
 * Instance and Study Instance UID, then the UIDs of the object that it replaced, if there is one.
 */
#ifndef NOCTULE_SERVICE_COMMON_JOBS_JOB_FILE_H
#define NOCTULE_SERVICE_COMMON_JOBS_JOB_FILE_H

#include "base/error.h"

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
    char **sha256;  /* of each input as it was taken in, or NULL; NULL: of none */
    char **objects; /* absolute paths of what people drew on them: RTSTRUCT, SEG, SR */
    size_t object_count;
    char **earlier; /* as in the file: what the results replace */
    size_t earlier_count;
    /* Where the output is made, for who copies it to where it lasts; NULL: in `output`, which the record tells. In no
     * file. */
    const char *folder;
    const char *note; /* begins that of the report, and is in no file; NULL: nothing to note */
};

/* Durable: synced, and renamed into place, so that a reader sees all of it or none. 0 or -errno. */
int job_spec_write(const struct job_spec *spec, const char *path);
/* 0; -EBADMSG with "line N: ..." when it is no job spec; another -errno when it cannot be read. */
int job_spec_read(const char *path, struct job_spec **spec, struct error *error);
void job_spec_free(struct job_spec *spec);

#endif
