/* pipeline_report.h - reports of a job: its progress and its result. */
#ifndef NOCTULE_SERVICE_PIPELINE_PIPELINE_REPORT_H
#define NOCTULE_SERVICE_PIPELINE_PIPELINE_REPORT_H

#include "base/error.h"
#include "dicom/dicom.h"
#include "dicom/read/annotation/provenance.h"
#include "service/common/jobs/feature_document.h"
#include "service/common/wire/messages.h"
#include "service/common/wire/proto.h"
#include "service/pipeline/expectations.h"
#include "service/pipeline/flat_image.h"
#include "service/pipeline/suv_series.h"

#include <stdatomic.h>

/*
 * A file for destinations and queries. preview.png and job.json are in the same folder and not
 * listed.
 */
struct pipeline_result {
    char kind[16]; /* as in docs/database.md, v_results */
    char file[96]; /* name within the output folder */
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    char replaces[DICOM_UID_SIZE]; /* SOP Instance UID of the object that it replaces; "": unset */
    int64_t size;
    int64_t frames;
};

struct segment_number {
    const char *key;   /* in the record */
    const char *words; /* in the note */
    double value;
    bool measured;
};

/* The region of an annotation object that a segment was taken from. */
struct pipeline_object {
    const struct provenance *provenance; /* held; NULL: the segment does not come from an object */
    bool changed;                        /* changed by Noctule */
    int32_t number;
    char name[DICOM_LO_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char tracking_uid[DICOM_UID_SIZE]; /* "": the object has none */
};

struct pipeline_segment {
    char label[DICOM_LO_SIZE];
    int32_t number; /* Segment Number; 0: hidden */
    int64_t voxels;
    double millilitres;
    struct segment_measures measures;
    const char *method; /* name of the method */
    /* Numbers that the method used, and which of them it measured. */
    struct segment_number numbers[5];
    int number_count;
    int64_t measured_voxels;
    char told[320]; /* for the note; may be "" */
    /*
     * For a segment from an annotation object: the region's name and number there, and the number
     * of its regions; 0: no region.
     */
    char region[DICOM_LO_SIZE];
    int32_t region_number, regions;
    char absent[sizeof(((struct error *)NULL)->message)]; /* reason for having no voxel; "" */
    struct pipeline_object object;
    int64_t prior; /* the job that it was compared with by its Tracking UID; 0: the one of its job */
};

/* The stack in the files. */
struct pipeline_source {
    int32_t planes;
    double spacing[2];      /* mm between columns, rows */
    double steps[2];        /* mm, the smallest and the largest between two planes; 0: one plane */
    char straightened[128]; /* reason for straightening: "tilted by 18.5 degrees"; "" */
    char manufacturer[SERIES_ABOUT_SIZE], model[SERIES_ABOUT_SIZE];
    char kernel[DICOM_DS_SIZE]; /* Convolution Kernel of all planes; "": none, or several */
    double kvp;                 /* of all planes; 0: none, or several */
    /* A 2-D image (flat_image.h). */
    bool flat;
    char values[FLAT_IMAGE_VALUES];
    const char *spacing_source;        /* word of spacing.def; NULL: a volume */
    int32_t calibrated[4];             /* first column, first row, last column, last row with the spacing */
    char intensity[DICOM_CS_SIZE + 3]; /* Pixel Intensity Relationship and Sign, "LOG -1"; "" */
    double thickness[2];               /* mm, smallest and largest Slice Thickness; 0: a plane has none */
};

struct pipeline_report {
    enum proto_verdict verdict;
    struct error error; /* also of an EMPTY result ("EMPTY"), and of broken expectations */
    bool empty;
    bool review; /* expectations are broken, and the pipeline holds such results for review */
    struct expect_breaches breaches;
    double read_seconds;    /* headers, grouping, decoding */
    double compute_seconds; /* remaining computation after all slices had arrived */
    double write_seconds;   /* SEG, codes and preview, synced */
    double verify_seconds;
    double total_seconds;
    int64_t voxels;
    int64_t segmented_voxels; /* in at least one segment */
    int64_t peak_bytes;       /* resident, of this process up to now */
    char backend[16];
    struct suv_conversion suv; /* of the values */
    char note[256];            /* remarks about a successful job: measurements, device */
    /* The device failed (COMPUTE_DEVICE_LOST): this process must not use it again. */
    bool device_lost;
    int32_t columns, rows, planes;
    double spacing[3];           /* mm between columns, rows, planes */
    char unit[FEATURE_TERM + 1]; /* of the values of `measures`: UCUM; "1": not known */
    struct pipeline_source source;
    char series_uid[DICOM_UID_SIZE];
    struct pipeline_segment *segments; /* pipeline_report_clear() frees these and all below */
    int32_t segment_count;
    struct feature_set features;
    struct pipeline_result *results;
    int32_t result_count;
};

struct pipeline_watch {
    /* Reports progress, from any thread, often: the receiver must throttle. May be NULL. */
    void (*progress)(void *context, const char *stage, double fraction);
    void *context;
    atomic_bool *stop; /* set by any thread: the job ends with PROTO_VERDICT_STOPPED; may be NULL */
};

/* The stages of progress in their order; the last is NULL. Progress passes these pointers. */
extern const char *const pipeline_stages[];

/* Appends to the note; cuts it if there is no room. */
void pipeline_note(struct pipeline_report *report, const char *text);

void pipeline_report_clear(struct pipeline_report *report);

/* Begins a stage and reports it. Returns -ECANCELED if the job was stopped. `watch` may be NULL. */
int pipeline_enter(const struct pipeline_watch *watch, const char *stage);
/* Returns whether the job was stopped. */
bool pipeline_stopped(const struct pipeline_watch *watch);

/* Returns "REVIEW", "EMPTY", or the verdict: "DONE", "RETRY", "REJECT", "STOPPED". */
const char *pipeline_outcome(const struct pipeline_report *report);

/* ------------------------------------------------------------------------- report_frames.c ---- */

/* The report as messages to the daemon: as many FEATURES and HISTOGRAM as needed, then DONE. */

void report_write_progress(struct proto_writer *writer, int64_t job, const char *stage, double fraction);
void report_write_features(struct proto_writer *writer, int64_t job, const struct feature *features, size_t count);
void report_write_histogram(struct proto_writer *writer, int64_t job, const struct feature_histogram *histogram);
void report_write_done(struct proto_writer *writer, int64_t job, const struct pipeline_report *report);

/* Passes each message to `take`, which must finish and release it; false: stop. */
void report_write(int64_t job, const struct pipeline_report *report,
                  bool (*take)(void *context, struct proto_writer *frame), void *context);

#endif
