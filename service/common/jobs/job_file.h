/*
 * job_file.h - a self-contained job: input files, the resolved pipeline, the output folder.
 *
 * The daemon writes it as a file for a worker, `noctule run` makes it in memory, and a batch script
 * may keep it for later. The file is text, one key with its value per line:
 *
 *     noctule-job 1
 *     id 17
 *     stack echo 1
 *     output /var/lib/noctule/outbox/17
 *     device NOCTULE-0123456789
 *     validated SIEMENS\x09Force\x09Br40\x091.25 to 2.5 mm\x099.1\x0918.3
 *     slices review
 *     settings name = "head-ct";
 *     <tab>segments = ( ... );
 *     input /var/lib/noctule/series/1.2.3/1.2.3.1.dcm
 *     sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 *     input /var/lib/noctule/series/1.2.3/1.2.3.2.dcm
 *     object /var/lib/noctule/series/1.2.9/1.2.9.1.dcm
 *     corrects 9
 *     program name = "deepbet"; ...
 *     mask /var/lib/noctule/programs/12/mask
 *     mask_sha256 4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865
 *     mask_identity 53c234e5e8472b6ac51c1ae1cab3fe06fad053beb8ebfd8977b010655bfdd3c3
 *     earlier sr.dcm 2.25.7 2.25.8 1.2.3 1.2.840.10008.5.1.4.1.1.88.34 2.25.5 2.25.6 1.2.3 1.2.840.10008.5.1.4.1.1.88.22
 *     prior 5 364 20250102 same
 *     prior_value Brain\x09volume\x09ml\x091412.5
 *     prior_tracked 2.25.1\x095\x09364\x09same\x09Lesion 1\x09volume\x09ml\x092.5
 *     end 3
 *
 * A line that begins with a tab continues the value of the line before it, after a line break.
 * Within a value a backslash is written as \\ and any other control character as \xHH. All other
 * bytes are written unchanged, so that any file name can be stored.
 *
 * `end` gives the number of inputs plus objects plus masks. A file without it was cut off. `validated` is
 * optional. `corrects` is optional: the job whose result a person corrected;
 * the last object has the masks. `slices` is optional: the jobs that write the file of the slice viewer, "review" or "all". `sha256` is optional and belongs to the input before it. The lines of a mask follow its `program`. `earlier` is optional. It names a result that this
 * pipeline has already made of the series: its file name and its SOP Instance, Series Instance,
 * Study Instance and SOP Class UID. If that result replaced another one, the UIDs of the replaced one follow.
 * `prior` is optional: the job of an earlier study with whose values this job compares its own, the days between the
 * studies, the earlier date, and whether the settings that define segments and values are the same; or JOB_PRIOR_MISSED. A
 * `prior_value` is the label of a segment, the name of a value, its unit (UCUM), and the value. A `prior_tracked` is the same of
 * a segment with a Tracking UID, after that UID, its job, the days and "same" or "other".
 */
#ifndef NOCTULE_SERVICE_COMMON_JOBS_JOB_FILE_H
#define NOCTULE_SERVICE_COMMON_JOBS_JOB_FILE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* The `prior` of a job if the earlier study from an archive was not measured in time. */
#define JOB_PRIOR_MISSED "0 0 - missed"

/* The mask that a program of the site made of the stack (mask_file.h). */
struct job_mask {
    char *program;      /* conf_program_to_text */
    char *path;         /* absolute; "": a Slurm node makes the mask first */
    char *sha256;       /* of the file; "" without a file */
    char *identity;     /* of program and weights; "": unknown */
    uint16_t *accepted; /* labels for the node that makes the mask, as in struct program_order */
    size_t accepted_count;
};

/* The jobs that write the file of the slice viewer (slices.h). */
enum job_slices { JOB_SLICES_NONE, JOB_SLICES_REVIEW, JOB_SLICES_ALL };

struct job_spec {
    int64_t id;     /* 0 outside the queue */
    char *stack;    /* name of the stack to process; "": the series has only one */
    char *settings; /* the pipeline: conf_pipeline_to_text */
    char *output;   /* folder, created if it is missing */
    char *device_serial_number;
    char *validated; /* ranges that the pipeline is validated for (trust.h); NULL: none */
    enum job_slices slices;
    char **inputs; /* absolute paths of the instances */
    size_t input_count;
    char **sha256;  /* digest of each input when it was received, or NULL; NULL: no digests */
    char **objects; /* absolute paths of annotation objects (RTSTRUCT, SEG, SR) */
    size_t object_count;
    char *prior; /* "JOB DAYS DATE same|other|missed": the earlier study of the job, see job_file.h; NULL: none */
    char **prior_values; /* of its segments, as in the file */
    size_t prior_value_count;
    char **tracked; /* values of segments of earlier studies by their Tracking UID, as in the file */
    size_t tracked_count;
    int64_t corrects;       /* job whose masks the last object corrects, or 0 */
    struct job_mask *masks; /* one per program that the pipeline names */
    size_t mask_count;
    char **earlier; /* as in the file: the results that this job replaces */
    size_t earlier_count;
    /* Folder to write to if the caller copies the output to `output` later; NULL: `output`. The job
     * record has `output` in both cases. Not stored in a file. */
    const char *folder;
    const char *note; /* start of the report's note; NULL: none. Not stored in a file. */
};

/* Writes the file durably: it is synced and then renamed into place, so a reader never sees a part
 * of it. Returns 0 or -errno. */
int job_spec_write(const struct job_spec *spec, const char *path);
/* Reads a job spec. The caller must free it with job_spec_free. Returns 0, -EBADMSG with "line N:
 * ..." if the file is no job spec, or another -errno if it cannot be read. */
int job_spec_read(const char *path, struct job_spec **spec, struct error *error);
void job_spec_free(struct job_spec *spec);
/* Frees an array of masks with its elements. */
void job_masks_free(struct job_mask *masks, size_t count);

#endif
