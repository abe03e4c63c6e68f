/*
 * dataset_writer.h - top level of a result's data set: our elements and those inherited from the
 * source (dicom_inherit), merged in ascending tag order.
 *
 * The caller must put elements in ascending order. Before each one, the writer adds all inherited
 * elements with lower tags. An element replaces the inherited one of the same tag. All elements go
 * into `elements`, whose first error is the writer's. One thread per writer.
 *
 * Text: ours is UTF-8, inherited text is in the source's character set, and an object can have only one set. If all our
 * text is ASCII, the source's set and bytes are kept. Otherwise inherited text is converted to UTF-8. If that fails,
 * the source's bytes are kept and our non-ASCII characters become '?', because the patient's name matters more.
 */
#ifndef NOCTULE_DICOM_WRITE_DATASET_WRITER_H
#define NOCTULE_DICOM_WRITE_DATASET_WRITER_H

#include "dicom/dicom.h"
#include "dicom/value/value.h"
#include "dicom/write/derived.h"
#include "dicom/write/element_writer.h"

enum {
    SH_CHARACTERS = 16,
    LO_CHARACTERS = 64,
    PN_CHARACTERS = 64,
    ST_CHARACTERS = 1024,
    LT_CHARACTERS = 10240,
};

/* Properties of the object. Strings are borrowed. */
struct dataset_object {
    const char *what; /* "segmentation", for messages */
    const char *sop_class_uid;
    const char *transfer_syntax_uid; /* NULL: Explicit VR Little Endian */
    const char *modality;
    const char *description;    /* Series Description; see dataset_describe */
    bool is_rt;                 /* has the RT Series Module (PS3.3 C.8.8.1) */
    const char *conversion;     /* Conversion Type (0008,0064) of a Secondary Capture; else NULL */
    const char *instance;       /* Instance Number; NULL: 1 */
    bool own_codes, ibsi_codes; /* contains codes of CONCEPT_OWN_SCHEME, CONCEPT_IBSI_SCHEME */
};

struct dataset_writer {
    const struct derived_source *source; /* owned by the caller, as are the next two members */
    struct dataset_object object;
    char description[512]; /* used if the caller gave no description */
    struct derived_identity identity;
    /* Content Date and Time: the latest that the source states (derived_latest_time), as written there. */
    char date[VALUE_DA_SIZE];
    char time[VALUE_TM_SIZE];
    struct dicom_inherited inherited;
    size_t next_inherited; /* first element not yet written */
    bool ascii_only;       /* our texts must be ASCII: the character set is the source's */
    struct element_buffer elements;
};

/* Sets the series description, which viewers list: `given`, or, if that is "", the formatted text. */
void dataset_describe(struct dataset_writer *set, const char *given, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads the elements to inherit. Set `ascii` if all texts of this kind of object are ASCII.
 * Codes: those of dicom_inherit, OUT_OF_MEMORY. The caller must call dataset_writer_free in
 * either case. */
int dataset_writer_open(struct dataset_writer *set, bool ascii, struct error *error);
void dataset_writer_free(struct dataset_writer *set);

int dataset_out_of_memory(const struct dataset_writer *set, struct error *error);

/* Writes the inherited elements below `tag`. Returns the inherited element of that tag, once, or NULL. Must precede an
 * element that the caller encodes into `elements` itself. */
const struct dicom_element *dataset_reach(struct dataset_writer *set, uint32_t tag);
/* Reaches the tag, and writes the header, or opens a sequence with its only item. */
void dataset_put_header(struct dataset_writer *set, uint32_t tag, const char vr[2], uint64_t length);
size_t dataset_open_only_item(struct dataset_writer *set, uint32_t tag);

void dataset_put_text(struct dataset_writer *set, uint32_t tag, const char vr[2], const char *text);
void dataset_put_us(struct dataset_writer *set, uint32_t tag, uint16_t number);
/* Puts an LO, cleaned by value_text_clean. */
void dataset_put_line(struct dataset_writer *set, uint32_t tag, const char *text);
/* Puts a PN: the person who corrected the masks, or an empty one. */
void dataset_put_creator(struct dataset_writer *set, uint32_t tag);
/* Puts a required attribute of patient or study: the source's, verbatim, or an empty one. */
void dataset_put_inherited(struct dataset_writer *set, uint32_t tag, const char vr[2]);

/* Attributes that all objects have, in tag order. Attributes of single kinds go between these calls. */
void dataset_put_file_meta(struct dataset_writer *set);
void dataset_put_identification(struct dataset_writer *set); /* up to Manufacturer's Model Name */
void dataset_put_patient_and_equipment(struct dataset_writer *set);
void dataset_put_series(struct dataset_writer *set, int32_t number); /* up to Instance Number */

/* Adds our text to any buffer, cleaned by value_text_clean and `ascii_only`. */
void dataset_add_clean(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag, const char vr[2],
                       const char *text, size_t characters, enum value_text_kind kind);

/* Adds an LO in the same way. */
void dataset_add_line(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag, const char *text);

/* Adds SOP Class and Instance UID to an open item. */
void dataset_add_reference(struct element_buffer *to, const char *class_uid, const char *instance_uid);

/* A coded concept (PS3.3 8.8): adds its attributes to an open item, or adds a sequence of one item. */
void dataset_add_code_values(const struct dataset_writer *set, struct element_buffer *to,
                             const struct coded_concept *code);
void dataset_add_code(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                      const struct coded_concept *code);
/* Return whether a coded concept is complete, or only partly given. The caller must reject partial codes. */
bool dataset_code_is_complete(const struct coded_concept *code);
bool dataset_code_is_partial(const struct coded_concept *code);
/* Returns true also if there is no code. */
bool dataset_code_is_ascii(const struct coded_concept *code);

#endif
