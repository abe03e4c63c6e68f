/*
 * sr.h - measurements as a DICOM Structured Report (TID 1500 of PS3.16): a measurement group of TID 1411 for each
 * segment of a SEG object, or of TID 1410 in a 2-D image, and of TID 1501 for the whole volume.
 *
 * Enhanced SR Storage suffices for references to segments and images. Comprehensive 3D SR Storage has the same content,
 * and may be the root of the results of a job: it refers to all other objects. Our own writer encodes the report and
 * passes it to a byte sink. DCMTK's dcmsr does not write it (docs/architecture.md, "Dependencies"): it takes 13 times as
 * long and 8 times the memory, makes random UIDs, and replaces only sr_items.c. Memory to write: the size of the file,
 * about 0.5 KiB per source instance and 1 KiB per measurement with four settings. To read back, only the attributes before
 * the content are in memory. Any thread.
 */
#ifndef NOCTULE_DICOM_OBJECTS_SR_SR_H
#define NOCTULE_DICOM_OBJECTS_SR_SR_H

#include "base/feature.h"
#include "dicom/objects/seg/seg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SR_SOP_CLASS    "1.2.840.10008.5.1.4.1.1.88.22"
#define SR_3D_SOP_CLASS "1.2.840.10008.5.1.4.1.1.88.34"

/* Each setting is at most one modifier and one parameter. The method of an SUV is one modifier more. */
#define SR_MAX_MODIFIERS  (FEATURE_SETTING_COUNT + 1)
#define SR_MAX_PARAMETERS FEATURE_SETTING_COUNT
#define SR_MAX_WORDS      2

/*
 * Reasons for a missing number (PS3.16 CID 42). PS3.3 C.18.1 uses a NUM without value. highdicom (0.28.2) cannot open
 * reports with such an item. Therefore a missing number is a qualitative evaluation of its group (TID 1411, 1501): a
 * CODE with the feature's concept, the qualifier as value, the settings of the number, and the reason as text.
 */
enum sr_qualifier {
    SR_NOT_A_NUMBER,        /* 114000: not defined for this region */
    SR_MEASUREMENT_FAILURE, /* 114006: measurement failed */
    SR_NOT_ATTEMPTED,       /* 114007: what it needs is missing */
};

/* A numeric setting of a measurement. */
struct sr_parameter {
    struct coded_concept concept;
    struct coded_concept unit; /* UCUM */
    double value;              /* finite */
};

/* A textual setting. */
struct sr_words {
    struct coded_concept concept;
    const char *text;
};

/* One number, or the reason why it is missing. Strings are borrowed, UTF-8. */
struct sr_measurement {
    struct coded_concept concept; /* IBSI code, or ours (99NOCTULE) if IBSI has none */
    struct coded_concept unit;    /* UCUM: value "1", meaning "no units" */
    /* a value that is not finite is written as absent: not a number */
    double value;
    const char *absence;         /* "" or NULL if there is a value, or the reason as text */
    enum sr_qualifier qualifier; /* of an absent value */
    /* concept name and concept value: aggregation, discretisation and so on */
    struct coded_concept modifiers[SR_MAX_MODIFIERS][2];
    size_t modifier_count;
    struct sr_parameter parameters[SR_MAX_PARAMETERS];
    size_t parameter_count;
    struct sr_words words[SR_MAX_WORDS];
    size_t words_count;
    /* Of a length: its ends in mm, in the frame of reference of the source. Comprehensive 3D SR only. */
    bool has_path;
    double path[2][3];
};

#define SR_WHOLE_VOLUME (-1)

struct sr_group {
    int32_t segment; /* index into the SEG request's segments, from 0, or SR_WHOLE_VOLUME */
    const struct sr_measurement *measurements;
    size_t measurement_count; /* at least 1; a segment of a Comprehensive 3D SR may have none */
};

/* Another object of the job, in the study of the source. Strings are borrowed. */
struct sr_result {
    const char *class_uid, *instance_uid, *series_uid;
};

struct sr_request {
    /*
     * Request from which the SEG was written. If no group refers to a segment, the SEG is not needed: only instances,
     * stack, equipment, pipeline and time are read, and there may be no segments. The SEG is not needed either if all
     * measured segments have an origin. Then the groups refer to the objects from which the segments were taken. A
     * region of an RT Structure Set is 130488, DCM, "Region in Space" (TID 1411). Its number is a HAS CONCEPT MOD,
     * because neither class allows HAS PROPERTIES there (PS3.3 A.35.2.3.1.2, A.35.13.3.1.2). Groups of a 2-D image refer
     * to its frame, and there are neither a frame of reference nor paths.
     */
    const struct seg_request *seg;
    const struct derived_identity *seg_identity; /* of the SEG; NULL without SEG */
    const struct derived_earlier *earlier;       /* earlier reports; NULL without any */
    /* In any order. The report has the groups of segments first, as TID 1500 does. */
    const struct sr_group *groups;
    size_t group_count;    /* at least 1 */
    bool comprehensive_3d; /* else Enhanced SR */
    /* Comprehensive 3D SR only: all other objects of the job, the SEG included, those of a series one after the other. */
    const struct sr_result *results;
    size_t result_count;
    const char *algorithm_parameters; /* of the measurements as a whole; NULL or "" if absent */
    const char *series_description;   /* "": "<pipeline> measurements" */
    int32_t series_number;
};

/*
 * Writes the report to fd (a regular file, open for writing, at offset 0). The caller must sync,
 * close and rename it. Inherited attributes are read from the first plane's file.
 *
 * UIDs are derived from the SEG's identity (or from the one it would have, seg_identify), the content, and the report
 * that this one replaces. The same measurements of the same SEG have the same UIDs. Dates and times are the SEG's. The
 * summary is as in seg_write; frames is 0, and there are no dimensions.
 *
 * Codes: those of dicom_inherit; WRITE_FAILED (with errno: -ENOSPC, -EIO and so on); OUT_OF_MEMORY;
 * SR_REQUEST_INVALID, a defect of the caller.
 */
int sr_write(const struct sr_request *request, int fd, struct derived_summary *summary, struct error *error);

/* Reads the report at `path`, independently of the writer: the attributes with DCMTK, the content byte by byte. Compares
 * every element of every item with the request, numbers bit by bit. Codes: SR_MISMATCH (-EBADMSG) with the first
 * difference, or with the reason why the file cannot be read; OUT_OF_MEMORY. */
int sr_verify(const struct sr_request *request, const char *path, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
