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

/* What an object is made from, and by whom. Strings are borrowed, UTF-8. */
struct derived_source {
    struct dicom_instance *const *instances; /* all that the stack refers to */
    int32_t instance_count;
    const struct geometry_stack *stack;
    const char *pipeline;          /* name; part of the identity */
    const char *pipeline_settings; /* the resolved pipeline as text; part of the identity */
    const char *software_version;
    const char *device_serial_number; /* stable per installation, not empty */
    int64_t content_time_ms;          /* Unix time, for Content Date and Time; UTC */
    /* Content Description of an object that has one, cut to 64 characters; NULL, "": its Series
     * Description. */
    const char *remark;
};

/* Who an object is. Empty strings when memory ran out. */
struct derived_identity {
    char sop_instance_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    char dimension_organization_uid[DICOM_UID_SIZE];
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
 * UIDs of an object: they follow from its kind and from what it was made of, whatever order that
 * came in. 0, or -ENOMEM with empty UIDs.
 */
int derived_identify(const struct derived_source *source, const struct derived_kind *kind,
                     struct derived_identity *identity);

/*
 * The source's Frame of Reference UID. A source without one still has positions, which mean nothing
 * without a frame of reference; then the UID follows from its series, so that all results of a
 * series agree. 0 or -ENOMEM.
 */
int derived_frame_of_reference_uid(const struct derived_source *source, char uid[DICOM_UID_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
