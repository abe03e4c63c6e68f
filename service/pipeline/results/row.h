/*
 * row.h - a file that a job may leave, as a row of a table; private to results/.
 *
 * To add one: a row in results_objects.c or tables.c with its functions, and for a DICOM object its folder in
 * dicom/objects/. Nothing else knows the files by name.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_ROW_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_ROW_H

#include "dicom/objects/seg/seg.h"
#include "service/pipeline/results/on_planes.h"
#include "service/pipeline/results/preview.h"
#include "service/pipeline/results/results.h"

/* What the files are made of. */
struct results {
    const struct results_request *request;
    struct pipeline_report *report;
    char *identity;                   /* of the pipeline and of the annotation objects, for UIDs */
    char made_of[DICOM_UID_SIZE];     /* derived_made_of */
    char objects_made[DICOM_DS_SIZE]; /* latest date and time of the annotation objects; "" */
    struct earlier *earlier;          /* what the results replace, spec->earlier_count of them */
    char remark[288]; /* that it is delivered though it is not as expected; else "" */
    /* One per segment that is not hidden, in the pipeline's order. */
    size_t segment_count;
    struct preview_segment *preview_segments;
    const char **warnings; /* what is not as expected, under a line that says so */
    size_t warning_count;
    struct seg_segment *segments;
    struct on_planes placed;
    char (*parameters)[SEGMENT_DESCRIPTION];
    struct seg_segment *fractional_segments; /* those with a connectedness map */
    int32_t fractional_count;
};

/* An object that the series has already of the pipeline, by its file name. */
struct earlier {
    char file[64];
    char uids[6][DICOM_UID_SIZE];
    struct derived_earlier objects; /* of the UIDs above */
};

struct result_file {
    size_t number; /* of its kind, from 0 */
    char name[64];
    int fd;                         /* while it is written */
    const char *path;               /* where it is read back; else NULL */
    struct derived_summary summary; /* of an object: filled by its writer */
};

/* Functions return 0, or -errno with the report's error filled. */
struct result_row {
    const char *kind;      /* in v_results; NULL: for people, not listed */
    const char *file;      /* "*" stands for what sets several of a kind apart */
    const char *sop_class; /* NULL: no DICOM object */
    size_t (*wanted)(const struct results *results); /* how many; NULL: made beside the others */
    void (*part)(const struct results *results, size_t number, char *text,
                 size_t size); /* for "*" */
    /* Writes the file; of a DICOM object, once more with a path, reads it back: one that does not
     * read back as computed is this machine's error. */
    int (*make)(const struct results *results, struct result_file *file);
    /* In place of a writer: puts the features into a table. */
    void (*put)(const struct feature_set *features, FILE *out);
};

/* Where a file cannot be made or finished: the name is enough, the folder is known. */
int results_file_error(struct pipeline_report *report, int rc, const char *verb, const char *name);

/* Computes what all UIDs follow from. 0 or -ENOMEM. */
int results_identify(struct results *results);

/* Objects and volumes, made where a segment has voxels; tables for people, made always. Both end
 * with a row without a file. */
extern const struct result_row result_objects[], result_tables[];

#endif
