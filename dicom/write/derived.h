/*
 * derived.h - what objects derived from a stack (segmentations, parametric maps, reports) have in
 * common, whoever writes or verifies them: what they are made from, and who they are.
 */
#ifndef NOCTULE_DERIVED_H
#define NOCTULE_DERIVED_H

#include "base/concept.h"
#include "dicom/read/geometry/geometry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A result that was made before, of the same kind, series and pipeline. */
struct derived_reference {
    const char *sop_instance_uid, *series_uid, *study_uid;
};

struct derived_earlier {
    struct derived_reference latest;
    struct derived_reference replaced; /* by the latest one; NULLs: none */
};

/* What an object is made from, and by whom. Strings are borrowed, UTF-8. */
struct derived_source {
    struct dicom_instance *const *instances; /* all that the stack refers to */
    int32_t instance_count;
    const struct geometry_stack *stack;
    const char *pipeline; /* name; part of the identity */
    /* The resolved pipeline and the annotation objects used, with their digests, as text; part of the identity. */
    const char *pipeline_settings;
    const char *software_version;
    const char *device_serial_number; /* stable per installation, not empty */
    const char *objects_made; /* latest date and time of the annotation objects; NULL, "": none */
    const struct derived_earlier *earlier; /* NULL: none */
    /* derived_made_of, if the caller has it; "": it is computed for each UID. */
    char made_of[DICOM_UID_SIZE];
    /* Content Description of an object that has one, cut to 64 characters; NULL, "": its Series
     * Description. */
    const char *remark;
};

/* Who an object is. Empty strings when memory ran out. */
struct derived_identity {
    char sop_instance_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    char dimension_organization_uid[DICOM_UID_SIZE];
    const struct derived_reference *replaces; /* of the source's `earlier`; NULL: none */
};

struct derived_summary {
    struct derived_identity identity;
    int64_t frames;                     /* written */
    int64_t bytes;                      /* of the file */
    char left_out[DICOM_LEFT_OUT_SIZE]; /* of what is inherited: dicom_inherit */
};

/* The plane's instance and frame. */
const struct dicom_instance *derived_plane_instance(const struct derived_source *source,
                                                    int32_t plane);
const struct dicom_frame *derived_plane_frame(const struct derived_source *source, int32_t plane);
/* Of unevenly spaced planes: they are not equally thick, so that each tells its own. */
bool derived_measures_differ(const struct derived_source *source);

/* What kind of object it is: "SEG instance" (series, dimensions) is what its UIDs are for. */
struct derived_kind {
    const char *before, *after; /* "SEG ", "" */
    bool omits_frames;          /* where they are empty */
};

/*
 * The identity of results, which all their UIDs follow from: the pipeline, the version, the serial number, and
 * UID, frame and digest (dicom_digest) of each frame of the stack, in any order. 0 or -ENOMEM.
 */
int derived_made_of(const struct derived_source *source, char uid[DICOM_UID_SIZE]);

/* Names a part of the results, such as a finding. The UID is the same in all objects. 0 or -ENOMEM. */
int derived_part_uid(const struct derived_source *source, const char *what, const char *part,
                     char uid[DICOM_UID_SIZE]);

/*
 * Finds the object that one replaces: the latest earlier one, or, if the new one is that very object, the one that it
 * replaced. `make` writes the SOP Instance UID of an object that replaces this one (NULL: none). 0 or -errno.
 */
int derived_find_replaced(const struct derived_earlier *earlier,
                          int (*make)(void *context, const struct derived_reference *replaces,
                                      char uid[DICOM_UID_SIZE]),
                          void *context, const struct derived_reference **replaces);

/*
 * UIDs of an object: they follow from its kind, from derived_made_of and from the object that it replaces.
 * 0, or -ENOMEM with empty UIDs.
 */
int derived_identify(const struct derived_source *source, const struct derived_kind *kind,
                     struct derived_identity *identity);

/*
 * The source's Frame of Reference UID. A source without one still has positions, which mean nothing
 * without a frame of reference; then the UID follows from its series and digests, so that the results of all
 * pipelines agree. 0 or -ENOMEM.
 */
int derived_frame_of_reference_uid(const struct derived_source *source, char uid[DICOM_UID_SIZE]);

/*
 * Latest date and time that the source states ("YYYYMMDDHHMMSS.FFFFFF"): acquisition, content and creation of the
 * instances, and those of the annotation objects. "" if none is a valid date and time.
 */
void derived_latest_time(const struct derived_source *source, char text[DICOM_DS_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
