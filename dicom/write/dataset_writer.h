/*
 * dataset_writer.h - the top level of a result's data set: elements of ours and elements inherited
 * from the source (dicom_inherit), merged in ascending tag order.
 *
 * Elements are put in ascending order. Before one is written, all inherited ones with lower tags
 * are; one of the same tag is replaced. Everything goes into `elements`, whose latched error is the
 * writer's. One thread a writer.
 *
 * Text. Ours is UTF-8, inherited text is in the source's character set, and an object has one set.
 * When all of ours is ASCII, the source's set and bytes are kept as they are. Else inherited text
 * is converted to UTF-8; where that fails, the source's bytes are kept and our characters beyond
 * ASCII become '?': the patient's name matters more.
 */
#ifndef NOCTULE_DATASET_WRITER_H
#define NOCTULE_DATASET_WRITER_H

#include "dicom/dicom.h"
#include "dicom/value/value_text.h"
#include "dicom/write/derived.h"
#include "dicom/write/element_writer.h"

enum {
    SH_CHARACTERS = 16,
    LO_CHARACTERS = 64,
    ST_CHARACTERS = 1024,
    LT_CHARACTERS = 10240,
};

/* What is written. Strings are borrowed. */
struct dataset_object {
    const char *what; /* "segmentation", for messages */
    const char *sop_class_uid;
    const char *modality;
    const char *description;    /* of the series; dataset_describe */
    bool own_codes, ibsi_codes; /* of CONCEPT_OWN_SCHEME, CONCEPT_IBSI_SCHEME are in it */
};

struct dataset_writer {
    const struct derived_source *source; /* the caller's, as are the next two */
    struct dataset_object object;
    char description[512]; /* where none was given */
    struct derived_identity identity;
    /* Of the content: the latest that the source states (derived_latest_time), as it writes them. */
    char date[VALUE_DA_SIZE];
    char time[VALUE_TM_SIZE];
    struct dicom_inherited inherited;
    size_t next_inherited; /* the first that is not written yet */
    bool ascii_only;       /* texts of ours must be: the character set is the source's */
    struct element_buffer elements;
};

/* What people read in a list of series: what was given, or, where that is "", of the format. */
void dataset_describe(struct dataset_writer *set, const char *given, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Reads what the object inherits; `ascii`: all texts that only this kind has are. Codes: those of dicom_inherit,
 * OUT_OF_MEMORY. dataset_writer_free in either case.
 */
int dataset_writer_open(struct dataset_writer *set, bool ascii, struct error *error);
void dataset_writer_free(struct dataset_writer *set);

/* Puts what was not inherited into the summary. */
void dataset_tell_left_out(const struct dataset_writer *set, struct derived_summary *summary);

int dataset_out_of_memory(const struct dataset_writer *set, struct error *error);

/* Comes before an element that the caller encodes into `elements` itself. */
void dataset_reach(struct dataset_writer *set, uint32_t tag);
/* The same, and its header; and a sequence with its only item, open. */
void dataset_put_header(struct dataset_writer *set, uint32_t tag, const char vr[2],
                        uint64_t length);
size_t dataset_open_only_item(struct dataset_writer *set, uint32_t tag);

void dataset_put_text(struct dataset_writer *set, uint32_t tag, const char vr[2], const char *text);
void dataset_put_us(struct dataset_writer *set, uint32_t tag, uint16_t number);
/* LO, made fit by value_text_clean. */
void dataset_put_line(struct dataset_writer *set, uint32_t tag, const char *text);
/* An attribute of patient or study that must be there: the source's, verbatim, or empty. */
void dataset_put_inherited(struct dataset_writer *set, uint32_t tag, const char vr[2]);

/* What all objects have, in the order of their tags; between them comes what some have. */
void dataset_put_file_meta(struct dataset_writer *set);
void dataset_put_identification(struct dataset_writer *set); /* to Manufacturer's Model Name */
void dataset_put_patient_and_equipment(struct dataset_writer *set);
void dataset_put_series(struct dataset_writer *set, int32_t number); /* to Instance Number */

/* Text of ours into any buffer, made fit by value_text_clean and `ascii_only`. */
void dataset_add_clean(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                       const char vr[2], const char *text, size_t characters,
                       enum value_text_kind kind);

/* The same for LO. */
void dataset_add_line(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                      const char *text);

/* Class and instance, into an open item that refers to them. */
void dataset_add_reference(struct element_buffer *to, const char *class_uid,
                           const char *instance_uid);

/* A coded concept (PS3.3 8.8): its attributes into an open item, or a sequence of one. */
void dataset_add_code_values(const struct dataset_writer *set, struct element_buffer *to,
                             const struct coded_concept *code);
void dataset_add_code(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                      const struct coded_concept *code);
/* Does it say all that a coded concept has to? Half a code says something and not all. */
bool dataset_code_is_whole(const struct coded_concept *code);
bool dataset_code_is_half(const struct coded_concept *code);
/* Also when there is none. */
bool dataset_code_is_ascii(const struct coded_concept *code);

#endif
