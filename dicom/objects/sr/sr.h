/*
 * sr.h - measurements as a DICOM Structured Report (Enhanced SR, TID 1500 of PS3.16): a measurement
 * group of TID 1411 for each segment of a SEG object, and of TID 1501 for the whole volume.
 *
 * Enhanced SR Storage suffices for references to segments and images. The report is encoded by our
 * own writer and goes through a checked sink; it is read back by DCMTK. Memory to write: the size
 * of the file, about 0.5 KiB per source instance and 1 KiB per measurement with four settings; to read
 * it back: 28 times as much. Any thread.
 */
#ifndef NOCTULE_SR_H
#define NOCTULE_SR_H

#include "base/feature.h"
#include "dicom/objects/seg/seg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SR_SOP_CLASS "1.2.840.10008.5.1.4.1.1.88.22"

/* Each setting is at most one of each. */
#define SR_MAX_MODIFIERS  FEATURE_SETTING_COUNT
#define SR_MAX_PARAMETERS FEATURE_SETTING_COUNT

/*
 * Why there is no number (PS3.16 CID 42). PS3.3 C.18.1 has a NUM without value for that, on which
 * highdicom (0.28.2) cannot open the report; so what has no number is told as a qualitative
 * evaluation of its group (TID 1411, 1501): a CODE, the feature's concept = the qualifier, with the
 * settings of the number and the reason in words.
 */
enum sr_qualifier {
    SR_NOT_A_NUMBER,        /* 114000: not defined for this region */
    SR_MEASUREMENT_FAILURE, /* 114006: could not be measured */
};

/* A setting that a number was derived with. */
struct sr_parameter {
    struct coded_concept concept;
    struct coded_concept unit; /* UCUM */
    double value;              /* finite */
};

/* A setting in words. */
struct sr_words {
    struct coded_concept concept;
    const char *text; /* "" or NULL: none */
};

/* One number, or the reason why there is none. Strings are borrowed, UTF-8. */
struct sr_measurement {
    struct coded_concept concept; /* IBSI code, or ours (99NOCTULE) where IBSI has none */
    struct coded_concept unit;    /* UCUM: value "1", meaning "no units" */
    double value;                 /* one that is not finite is written as absent: not a number */
    const char *absence;          /* "" or NULL: there is a value; else the reason in words */
    enum sr_qualifier qualifier;  /* of an absent value */
    /* Concept name and concept value: aggregation, discretisation ... */
    struct coded_concept modifiers[SR_MAX_MODIFIERS][2];
    size_t modifier_count;
    struct sr_parameter parameters[SR_MAX_PARAMETERS];
    size_t parameter_count;
    struct sr_words words;
};

#define SR_WHOLE_VOLUME (-1)

struct sr_group {
    int32_t segment; /* index into the SEG request's segments, from 0, or SR_WHOLE_VOLUME */
    const struct sr_measurement *measurements;
    size_t measurement_count; /* at least 1 */
};

struct sr_request {
    /* What the SEG was written from. Where no group is of a segment there need not be a SEG: then
     * instances, stack, equipment, pipeline and time are looked at, and the segments may be none.
     * Where all that are measured have an origin there need not be one either: the groups refer to
     * the objects that the segments were taken from, a region of an RT Structure Set as 130488, DCM,
     * "Region in Space" (TID 1411). Its number is a HAS CONCEPT MOD of that, for Enhanced SR has no
     * HAS PROPERTIES there (PS3.3 A.35.2.3.1.2).
     */
    const struct seg_request *seg;
    const struct derived_identity *seg_identity; /* of the SEG; NULL: there is none */
    const struct derived_earlier *earlier;       /* of reports; NULL: none */
    /* In any order; the report tells of the segments first, as TID 1500 does. */
    const struct sr_group *groups;
    size_t group_count;               /* at least 1 */
    const char *algorithm_parameters; /* of what was measured as a whole; NULL or "": none */
    const char *series_description;   /* "": "<pipeline> measurements" */
    int32_t series_number;
};

/*
 * Writes the report to fd (a regular file, open for writing, at offset 0); the caller syncs, closes
 * and renames. The first plane's file is read for what the report inherits. UIDs
 * follow from the SEG's identity, or what it would be (seg_identify), the content, and the report that this
 * one replaces, so that the same measurements of the same SEG have the same UIDs; dates and times are the SEG's.
 * summary as of seg_write (frames is 0, there are no dimensions). Codes: those of dicom_inherit;
 * WRITE_FAILED (with errno: -ENOSPC, -EIO, ...); OUT_OF_MEMORY; SR_REQUEST_INVALID, a defect of the
 * caller.
 */
int sr_write(const struct sr_request *request, int fd, struct derived_summary *summary,
             struct error *error);

/*
 * Reads the report at `path` with DCMTK, independently of the writer, and compares every item with
 * the request, numbers bit by bit. SR_MISMATCH (-EBADMSG) names the first difference, or why the
 * file cannot be read; OUT_OF_MEMORY.
 */
int sr_verify(const struct sr_request *request, const char *path, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
