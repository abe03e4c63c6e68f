/* sr_writer.h - state and content items of the report writer; private to sr*.c. */
#ifndef NOCTULE_DICOM_OBJECTS_SR_SR_WRITER_H
#define NOCTULE_DICOM_OBJECTS_SR_SR_WRITER_H

#include "dicom/objects/sr/sr.h"
#include "dicom/write/dataset_writer.h"

/* The whole report is encoded into `set.elements`, whose first error is the writer's. */
struct sr_writer {
    const struct sr_request *request;
    char device_uid[DICOM_UID_SIZE];
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* of the source, or derived */
    int32_t *sources;                            /* instances of the stack, each once, by ascending plane */
    int32_t source_count;
    struct dataset_writer set;
};

/* Put the parts of the object, in tag order. The buffer keeps errors. */
void sr_put_modules(struct sr_writer *w);
void sr_put_content(struct sr_writer *w);

/* Returns the i-th source instance. */
const struct dicom_instance *sr_source(const struct sr_writer *w, int32_t i);

/* Returns whether the report has a code of this scheme. */
bool sr_uses(const struct sr_request *request, const char *scheme);

/* Returns whether the code is a side of the body (CID 244). The name of any other modifier of a
 * type is our own concept. */
bool sr_is_laterality(const struct coded_concept *code);

/*
 * --- content items (PS3.3 C.17.3) ---
 *
 * A leaf is added in one call. An item with children must be begun, given its value and then its children, and ended:
 *
 *   struct sr_branch item = sr_begin(w, SR_CONTAINS, "CODE", &concept);
 *   sr_put_code(w, &code);
 *   sr_begin_children(w, &item);
 *   ... items ...
 *   sr_end(w, &item);
 */

/* Relationship Type (PS3.3 C.17.3.2.4). */
#define SR_CONTAINS        "CONTAINS"
#define SR_HAS_PROPERTIES  "HAS PROPERTIES"
#define SR_HAS_OBS_CONTEXT "HAS OBS CONTEXT"
#define SR_HAS_ACQ_CONTEXT "HAS ACQ CONTEXT"
#define SR_INFERRED_FROM   "INFERRED FROM"
#define SR_HAS_CONCEPT_MOD "HAS CONCEPT MOD"

struct sr_branch {
    size_t item;
    size_t children; /* 0 if not begun */
};

struct sr_branch sr_begin(struct sr_writer *w, const char *relation, const char *type,
                          const struct coded_concept *concept);
void sr_begin_children(struct sr_writer *w, struct sr_branch *branch);
/* Begins a CONTAINS container and its children. */
struct sr_branch sr_begin_container(struct sr_writer *w, const struct coded_concept *concept);
void sr_end(struct sr_writer *w, const struct sr_branch *branch);

/* Put values into an item that has been begun. */
void sr_put_code(struct sr_writer *w, const struct coded_concept *code);
void sr_put_number(struct sr_writer *w, double value, const struct coded_concept *unit);

void sr_add_text(struct sr_writer *w, const char *relation, const struct coded_concept *concept, const char *text);
void sr_add_uid(struct sr_writer *w, const char *relation, const struct coded_concept *concept, const char *uid);
void sr_add_code(struct sr_writer *w, const char *relation, const struct coded_concept *concept,
                 const struct coded_concept *code);
void sr_add_number(struct sr_writer *w, const char *relation, const struct coded_concept *concept, double value,
                   const struct coded_concept *unit);

/* Adds the two points from which a length is inferred (TID 1400), in the frame of reference of the report. */
void sr_add_path(struct sr_writer *w, const struct coded_concept *concept, const double path[2][3]);

/* Reference to a whole instance, to some of its frames or to one of its segments. */
struct sr_image {
    const char *class_uid;
    const char *instance_uid;
    const char *frames; /* numbers from 1, separated by backslashes; NULL for all frames */
    uint16_t segment;   /* 0 if it is not a reference to a segment */
};

/* Add a reference with relation CONTAINS, of type IMAGE, or COMPOSITE for an instance that is not an image. `concept`
 * may be NULL. An item that is begun may get children, and must be ended. */
struct sr_branch sr_begin_reference(struct sr_writer *w, const char *type, const struct coded_concept *concept,
                                    const struct sr_image *image);
void sr_add_image(struct sr_writer *w, const struct coded_concept *concept, const struct sr_image *image);

#endif
