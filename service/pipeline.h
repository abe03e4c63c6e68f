/*
 * pipeline.h - one job, straight through: read, gate, decode, compute, write, read back.
 *
 * The same function serves a worker's lane, `noctule run` and a batch script.
 */
#ifndef NOCTULE_PIPELINE_H
#define NOCTULE_PIPELINE_H

#include "job.h"
#include "proto.h"

#include "dicom.h"
#include "kernels.h"

#include <stdatomic.h>

#define PIPELINE_MAX_RESULTS 8

struct pipeline_result {
    char kind[16]; /* "seg", "codes" */
    char file[64]; /* name within the output folder */
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    int64_t size;
    int64_t frames;
};

struct pipeline_report {
    enum proto_verdict verdict;
    struct dicom_fault fault; /* code and sentence, also of an EMPTY result ("EMPTY") */
    bool empty;
    double read_seconds;    /* headers, grouping, decoding */
    double compute_seconds; /* what was left to compute once all slices were there */
    double write_seconds;
    double verify_seconds;
    double total_seconds;
    int64_t voxels;
    int64_t segmented_voxels;
    int64_t peak_bytes;
    char backend[16];
    char note[128];
    int32_t columns, rows, planes;
    char series_uid[DICOM_UID_SIZE];
    struct pipeline_result results[PIPELINE_MAX_RESULTS];
    int32_t result_count;
};

struct pipeline_watch {
    /* Told now and then, from any thread; may be NULL. */
    void (*progress)(void *context, const char *stage, double fraction);
    void *context;
    atomic_bool *stop; /* set by anybody: the job ends with PROTO_VERDICT_STOPPED; may be NULL */
};

/*
 * Runs the job in the lane with up to `threads` decoding threads. Results are complete, synced and
 * renamed into the output folder when it returns with PROTO_VERDICT_DONE; nothing half-written
 * stays behind otherwise. Returns 0 whenever *report is filled, whatever the verdict.
 */
int pipeline_run(const struct job_spec *spec, struct kernels_lane *lane, int threads,
                 const struct pipeline_watch *watch, struct pipeline_report *report);

#endif
