/*
 * derived.h - sources and identity of objects derived from a stack (segmentations, parametric maps,
 * reports), for their writers and verifiers.
 */
#ifndef NOCTULE_DICOM_WRITE_DERIVED_H
#define NOCTULE_DICOM_WRITE_DERIVED_H

#include "base/concept.h"
#include "dicom/read/geometry/geometry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An earlier result of the same kind, series and pipeline. */
struct derived_reference {
    const char *sop_instance_uid, *series_uid, *study_uid;
    const char *class_uid; /* NULL: that of the new object */
};

struct derived_earlier {
    struct derived_reference latest;
    struct derived_reference replaced; /* replaced by the latest one; NULLs if it replaced none */
};

/* Encoding of an image object. RLE is for pixels of whole bytes; objects of bits are deflated instead. */
enum derived_compression { DERIVED_UNCOMPRESSED, DERIVED_RLE, DERIVED_DEFLATED };

/* A program besides Noctule that made a part of the object. Strings are borrowed, UTF-8. */
struct derived_equipment {
    const char *name, *version;
};

/* Source and origin of an object. Strings are borrowed, UTF-8. */
struct derived_source {
    struct dicom_instance *const *instances; /* all instances that the stack refers to */
    int32_t instance_count;
    const struct geometry_stack *stack; /* of the frames to write */
    /* The planes of the source, if the frames are those of a grid to which it was resampled; NULL: those of `stack`.
     * A frame of the grid has no source image of its own. */
    const struct geometry_stack *images;
    const char *pipeline; /* name; part of the identity */
    /* Resolved pipeline and annotation objects used, with their digests, as text; part of the identity. */
    const char *pipeline_settings;
    const char *software_version;
    const char *device_serial_number; /* constant per installation, not empty */
    /* latest date and time of the annotation objects; NULL or "" without any */
    const char *objects_made;
    const struct derived_earlier *earlier; /* NULL without any */
    /* derived_made_of, if the caller has it. If "", it is computed for each UID. */
    char made_of[DICOM_UID_SIZE];
    /* Content Description, cut to 64 characters, of an object that has one. If NULL or "", its
     * Series Description is used. */
    const char *remark;
    /* Content Creator's Name, or Operators' Name of an RT Structure Set: the person who corrected the masks. NULL or "":
     * no person. */
    const char *creator;
    const struct derived_equipment *equipment; /* items of the Contributing Equipment Sequence */
    size_t equipment_count;
    /* No part of the identity: an object keeps its UIDs in another transfer syntax. */
    enum derived_compression compression;
};

/* UIDs of an object. Empty strings if memory was short. */
struct derived_identity {
    char sop_instance_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    char dimension_organization_uid[DICOM_UID_SIZE];
    const struct derived_reference *replaces; /* a member of the source's `earlier`, or NULL */
};

struct derived_summary {
    struct derived_identity identity;
    int64_t frames;                     /* frames written */
    int64_t bytes;                      /* size of the file */
    char left_out[DICOM_LEFT_OUT_SIZE]; /* attributes that were not inherited: see dicom_inherit */
};

/* Returns the planes of the source. */
const struct geometry_stack *derived_images(const struct derived_source *source);
/* Return the instance and frame of a plane of the source. */
const struct dicom_instance *derived_plane_instance(const struct derived_source *source, int32_t plane);
const struct dicom_frame *derived_plane_frame(const struct derived_source *source, int32_t plane);
/* Returns whether planes need Pixel Measures of their own: unevenly spaced planes differ in thickness. */
bool derived_measures_differ(const struct derived_source *source);

/* Returns the UID of the transfer syntax of an image object. `has_bytes`: its frames may be in RLE. */
const char *derived_transfer_syntax(const struct derived_source *source, bool has_bytes);

/* Kind of object. Its UIDs name a role between `before` and `after`: "SEG instance" (series, dimensions). */
struct derived_kind {
    const char *before, *after; /* "SEG ", "" */
    bool omits_frames;          /* omits frames that are empty */
};

/* Computes the identity of results, from which all their UIDs are derived: the pipeline, the
 * version, the serial number, and UID, frame and digest (dicom_digest) of each frame of the
 * stack, in any order. Returns 0 or -ENOMEM. */
int derived_made_of(const struct derived_source *source, char uid[DICOM_UID_SIZE]);

/* Computes the UID of a part of the results, such as a finding. The UID is the same in all
 * objects. Returns 0 or -ENOMEM. */
int derived_part_uid(const struct derived_source *source, const char *what, const char *part, char uid[DICOM_UID_SIZE]);

/* Finds the object that a new one replaces: the latest earlier one. If the new object equals
 * that one, it is the one that the latest replaced. `make` must write the SOP Instance UID of an
 * object that replaces its argument (NULL without any). Returns 0 or -errno. */
int derived_find_replaced(const struct derived_earlier *earlier,
                          int (*make)(void *context, const struct derived_reference *replaces,
                                      char uid[DICOM_UID_SIZE]),
                          void *context, const struct derived_reference **replaces);

/* Derives the UIDs of an object from its kind, derived_made_of and the object that it replaces.
 * Returns 0, or -ENOMEM with empty UIDs. */
int derived_identify(const struct derived_source *source, const struct derived_kind *kind,
                     struct derived_identity *identity);

/* Returns the source's Frame of Reference UID. Positions need a frame of reference. If the
 * source has none, the UID is derived from its series and digests, so that the results of all
 * pipelines agree. Returns 0 or -ENOMEM. */
int derived_frame_of_reference_uid(const struct derived_source *source, char uid[DICOM_UID_SIZE]);

/* Returns the latest date and time in the source ("YYYYMMDDHHMMSS.FFFFFF"): acquisition, content
 * and creation of the instances, and those of the annotation objects. "" if none is valid. */
void derived_latest_time(const struct derived_source *source, char text[DICOM_DS_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
