/*
 * pipeline.h - one job, straight through: read, gate, decode, compute, write, read back.
 *
 * The same function serves a worker's lane, `noctule run` and a batch script.
 */
#ifndef NOCTULE_PIPELINE_H
#define NOCTULE_PIPELINE_H

#include "service/common/feature.h"
#include "service/common/job.h"
#include "service/common/proto.h"
#include "service/pipeline/headers.h"
#include "service/pipeline/segment/fuzzy_objects.h"

#include "dicom/dicom.h"
#include "kernels/kernels.h"

#include <stdatomic.h>

/* A file that others will ask for. preview.png and job.json lie beside them and are not listed. */
struct pipeline_result {
    char kind[16]; /* "seg", "seg-fractional", "codes", "sr", "pmap" */
    char file[64]; /* name within the output folder */
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    int64_t size;
    int64_t frames;
};

struct pipeline_segment {
    char label[DICOM_LO_SIZE];
    int64_t voxels;
    double millilitres;
    enum conf_method method;
    struct fuzzy_gaussians gaussians; /* with CONF_FUZZY */
};

struct pipeline_report {
    enum proto_verdict verdict;
    struct error error; /* also of an EMPTY result ("EMPTY") */
    bool empty;
    double read_seconds;    /* headers, grouping, decoding */
    double compute_seconds; /* what was left to compute once all slices were there */
    double write_seconds;   /* SEG, codes and preview, synced */
    double verify_seconds;
    double total_seconds;
    int64_t voxels;
    int64_t segmented_voxels; /* in at least one segment */
    int64_t peak_bytes;       /* resident, of this process so far */
    char backend[16];
    char
        note[256]; /* what is worth knowing of a job that worked: what was measured, where it ran */
    /* The device has failed (COMPUTE_DEVICE_LOST): this process cannot use it any more. */
    bool device_lost;
    int32_t columns, rows, planes;
    double spacing[3]; /* mm between columns, rows, planes */
    char series_uid[DICOM_UID_SIZE];
    struct pipeline_segment *segments; /* pipeline_report_clear frees these and all below */
    int32_t segment_count;
    struct feature_set features;
    struct pipeline_result *results;
    int32_t result_count;
};

struct pipeline_watch {
    /* Told now and then, from any thread, often: throttle there. May be NULL. */
    void (*progress)(void *context, const char *stage, double fraction);
    void *context;
    atomic_bool *stop; /* set by anybody: the job ends with PROTO_VERDICT_STOPPED; may be NULL */
};

/*
 * What a job computes with: a lane of the device, how many threads may decode, and a second lane
 * for jobs that do not fit into the first one's memory (of a CPU, where the first is a GPU's). The
 * lanes are the job's alone while it runs.
 */
struct pipeline_compute {
    const struct kernels_device *device;
    struct kernels_lane *lane;
    int threads;
    const struct kernels_device *fallback_device; /* NULL: none */
    struct kernels_lane *fallback_lane;
};

/* The stages that progress tells of, in order; the last one is NULL. */
extern const char *const pipeline_stages[];

/*
 * Runs the job. Results are complete, synced, read back and in the output folder when it returns
 * with PROTO_VERDICT_DONE; nothing half-written stays behind otherwise. Returns 0 whenever *report
 * is filled, whatever the verdict. `watch` may be NULL.
 */
int pipeline_run(const struct job_spec *spec, const struct pipeline_compute *compute,
                 const struct pipeline_watch *watch, struct pipeline_report *report);

/* The same when the headers of the inputs, all of one series, have been read already (borrowed). */
int pipeline_run_headers(const struct job_spec *spec, const struct headers *headers,
                         const struct pipeline_compute *compute, const struct pipeline_watch *watch,
                         struct pipeline_report *report);

void pipeline_report_clear(struct pipeline_report *report);

/* Begins a stage: tells the watcher; -ECANCELED when the job was told to stop. `watch` may be NULL.
 */
int pipeline_enter(const struct pipeline_watch *watch, const char *stage);
/* Was the job told to stop? */
bool pipeline_stopped(const struct pipeline_watch *watch);

/* "DONE", "RETRY", "REJECT", "STOPPED". */
const char *pipeline_verdict_name(enum proto_verdict verdict);

#endif
