/*
 * dicom.h - reading DICOM files: headers, frames, and the attributes that results inherit.
 *
 * The C face of DCMTK and OpenJPEG; no header of theirs is needed to use it. Every call returns 0
 * or a negative errno and fills a struct error; no C++ exception leaves. All calls may be made from
 * several threads at once after one call of dicom_init.
 */
#ifndef NOCTULE_DICOM_H
#define NOCTULE_DICOM_H

#include "base/attribute.h"
#include "base/error.h"
#include "base/image.h"
#include "base/series_about.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DICOM_IMPLICIT_LITTLE "1.2.840.10008.1.2"
#define DICOM_EXPLICIT_LITTLE "1.2.840.10008.1.2.1"

#define DICOM_UID_SIZE        65 /* 64 characters and the end (PS3.5, 9.1) */
#define DICOM_CS_SIZE         17
#define DICOM_LO_SIZE         260 /* 64 characters of up to 4 bytes */
#define DICOM_DS_SIZE         32  /* 16 by the standard; senders write longer ones */

#define DICOM_LEFT_OUT_SIZE   256

/* Registers codecs and silences DCMTK's own logger. Call once, before any other call here. Without the memory for it
 * the process ends with EX_TEMPFAIL. */
void dicom_init(void);

/* Is there a data dictionary, without which dicom_init ends the process? From the thread that calls dicom_init, before. */
bool dicom_has_dictionary(void);

/* Elements that announce the number of slice locations (counts.def). */
enum dicom_count {

#define COUNT(id, ...) DICOM_COUNT_##id,
#include "dicom/read/counts.def"
#undef COUNT
    DICOM_COUNTS
};

/* Returns the element's name, for messages. */
const char *dicom_count_name(enum dicom_count count);

/* One plane of pixels: a classic instance, one frame of an enhanced multi-frame one, or one tile of a mosaic. */
struct dicom_frame {
    bool has_position;             /* Image Position (Patient), within 1e6 mm */
    bool has_orientation;          /* Image Orientation (Patient), orthonormal to 1e-3 */
    bool has_spacing;              /* Pixel Spacing, both from 1e-3 to 1e3 mm */
    bool has_rescale;              /* slope and intercept were given */
    double position[3];            /* mm, LPS */
    double orientation[6];         /* direction cosines of the row, then of the column */
    double pixel_spacing[2];       /* mm between rows, mm between columns (as in the standard) */
    double slice_thickness;        /* mm; 0 when absent or impossible */
    double spacing_between_slices; /* mm; 0 when absent or impossible */
    double slope, intercept;       /* real-world value = slope * stored + intercept */
    /* The first Real World Value Mapping (0040,9096) with a slope; it is not applied. */
    bool has_mapping;
    double mapping_slope, mapping_intercept;
    /* The first window of the VOI LUT module or macro (PS3.3 C.11.2), where it is linear: as it
     * says, and the real-world values that are black and white. */
    bool has_window;
    double window_center, window_width;
    double window_low, window_high;
    char position_text[3][DICOM_DS_SIZE]; /* as the source writes them */
    char orientation_text[6][DICOM_DS_SIZE];
    char spacing_text[2][DICOM_DS_SIZE];
    /* What sets volumes apart (keys.def): "" or a canonical text, equal texts meaning the same. */
#define KEY(id, ...) char id[DICOM_DS_SIZE];
#include "dicom/read/keys.def"
#undef KEY
    /* Acquisition Date and Time, of the frame where it has its own: digits and a dot, in ascending
     * order as text; "" when absent. */
    char acquired[DICOM_DS_SIZE];
    /* Not for processing, whatever the gate says: CODE_MOSAIC, CODE_LOCALIZER, CODE_SCREENSHOT or
     * CODE_DERIVED_IMAGE (a reformat, projection or map); CODE_NONE: an image. */
    enum code excluded;
    int32_t tiles; /* slices in the plane of a mosaic; 0 when the header does not say */
    bool derived;  /* Image Type value 1: excluded beside originals of its series */
};

/* One file's header. The owner frees it with dicom_instance_free. */
struct dicom_instance {
    char *path;
    int64_t file_size;
    char
        digest[DICOM_UID_SIZE]; /* of the data set, as dicom_digest computes it; "": not computed */
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* "" when absent */
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char modality[DICOM_CS_SIZE];
    char body_part[DICOM_CS_SIZE];
    char image_type[DICOM_LO_SIZE]; /* all values, with "\\" between them */
    char series_description[DICOM_LO_SIZE];
    struct series_about about;
    char patient[DICOM_LO_SIZE];      /* Patient ID and its issuer; never told, only compared */
    char patient_name[DICOM_LO_SIZE]; /* likewise */
    char content[DICOM_DS_SIZE];      /* Content Date and Time, as `acquired` */
    char created[DICOM_DS_SIZE];      /* Instance Creation Date and Time, likewise */
    int32_t instance_number;          /* 0 when absent */
    int32_t series_number;            /* 0 when absent */
    int32_t expected_instances; /* of the whole series, from the tags that say so; 0 when unknown */
    int32_t images_in_acquisition; /* Images in Acquisition by itself; 0 when absent */
    int32_t temporal_positions;    /* Number of Temporal Positions by itself; 0 when absent */
    int32_t counts[DICOM_COUNTS];  /* slice locations that are announced; 0 when absent */
    /* One part of a multi-frame image (PS3.3 C.7.6.16.2.2.4). */
    char concatenation_uid[DICOM_UID_SIZE];            /* "" when absent */
    int32_t concatenation_number, concatenation_total; /* from 1; 0 when absent */
    int32_t rows, columns;                             /* of a frame */
    /* A mosaic that is taken apart: each frame is a tile of its only plane, row by row; 0: no mosaic. */
    int32_t tile_rows, tile_columns;
    int32_t bits_allocated, bits_stored, high_bit;
    bool is_signed;
    bool monochrome1; /* display inversion only: values are never inverted */
    bool lossy;       /* Lossy Image Compression 01, or a lossy transfer syntax */
    char lossy_ratio[DICOM_DS_SIZE];
    char lossy_method[DICOM_CS_SIZE];
    /* UCUM unit of the real-world values, from Rescale Type (0028,1054) or Units (0054,1001):
     * "[hnsf'U]", "Bq/ml", ...; "" when the source does not say, or has no unit. */
    char value_unit[DICOM_CS_SIZE];
    bool contrast; /* an agent is given: Contrast/Bolus Agent, or its sequence */
    bool multi_frame;
    bool has_padding;
    int32_t padding_lo,
        padding_hi;         /* stored values, inclusive (Pixel Padding Value, Range Limit) */
    enum image_pixel pixel; /* what dicom_pixels_read delivers */
    int32_t frame_count;
    struct dicom_frame *frames; /* frame_count of them */
    /* Native pixels: where in the file they start; -1 when encapsulated or deflated. */
    int64_t pixel_offset;
    int64_t pixel_length;       /* bytes of native pixel data */
    int64_t encapsulated_bytes; /* of the fragments, without their heads */
};

/*
 * Reads the header of one file and checks that it is an image this program can process: a supported
 * storage class (classic and enhanced CT, MR, PET), a transfer syntax it can decode, one sample a
 * pixel, valid UIDs, plausible sizes, and pixel data that is all there (without reading it). Codes:
 * NOT_DICOM, FILE_EMPTY, FILE_TRUNCATED, FILE_UNREADABLE, TAG_MISSING, TAG_INVALID, UID_INVALID,
 * SOP_CLASS_UNSUPPORTED, TRANSFER_SYNTAX_UNSUPPORTED, PIXELS_UNSUPPORTED, SIZE_IMPLAUSIBLE,
 * OWN_RESULT, OUT_OF_MEMORY (-ENOMEM, the only one that may pass by itself besides
 * FILE_UNREADABLE with the errno of the system call; the others are -EBADMSG).
 */
int dicom_peek(const char *path, struct dicom_instance **instance, struct error *error);

/* Who waits for a header. Where reading it takes long, it is asked now and then whether they have
 * gone. */
struct dicom_asker {
    bool (*gone)(const void *context);
    const void *context;
};

/* The same of the open file `fd`, which stays the caller's and where it was; `path` is for people.
 * Ends with -ECANCELED and ASSOCIATION_ABORTED once the asker (NULL: one that stays) has gone. */
int dicom_peek_open(int fd, const char *path, const struct dicom_asker *asker,
                    struct dicom_instance **instance, struct error *error);
void dicom_instance_free(struct dicom_instance *instance);

/* What a file says of itself, also one that dicom_peek refuses, as far as it can be read; "" is not
 * known. */
struct dicom_identity {
    char sop_instance_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE], study_uid[DICOM_UID_SIZE];
    char patient_id[DICOM_LO_SIZE];
};

void dicom_identify(const char *path, struct dicom_identity *identity);
void dicom_identify_open(int fd, const char *path, struct dicom_identity *identity);

enum dicom_likeness {
    DICOM_DIFFERENT,
    DICOM_SAME,    /* element by element, but for what says how it is written */
    DICOM_RECODED, /* in transfer syntaxes that cannot be compared without decoding */
};

/*
 * Are the data sets of two open files the same? The file meta information does not count, nor do
 * group lengths, trailing padding, VRs, and whether sequences have a length: it is what differs
 * between two copies of an instance that came by different ways. 0, -ENOMEM, or -errno of reading.
 */
int dicom_compare(int a, int b, enum dicom_likeness *likeness);

/*
 * Computes the digest of a data set, in the form of a UID. Data sets that dicom_compare finds the same have the same
 * digest. 0, -ENOMEM, or -errno of reading with FILE_UNREADABLE.
 */
int dicom_digest(const char *path, char digest[DICOM_UID_SIZE], struct error *error);

/* What a UID of the standard is called ("MRImageStorage"); of another one itself. */
const char *dicom_uid_name(const char *uid);

/* What the dictionary says of an attribute, by its keyword ("ProtocolName") or its tag ("(0018,1030)",
 * a private one in any block of its group: "(0019,100C)"). */
enum attribute_kind dicom_attribute_kind(const char *name);

/* What is asked of frames of a file: `asked` has a line for each attribute, its keyword or tag, a tab,
 * and of a private one its creator. */
struct dicom_question {
    const char *path, *asked;
    const int32_t *frames; /* from 0 */
    size_t frame_count;
};

/*
 * values[i] (malloc'd) gets what frame i says, a line for each attribute in the order of `asked`, as enum
 * attribute_told says: UTF-8, several values with a backslash between them, each without padding. Of
 * an enhanced image that is the value of the frame's own functional groups, else of those that all
 * frames share, behind which a tab and where it stands follow ("KVP in CTXRayDetailsSequence of all
 * frames"); else, and of private attributes always, that of the data set itself. Not compared are
 * values of more than LIMIT_RULE_BYTES, items, bytes, and text that is not of the character set that
 * its file declares. Codes: those of dicom_peek that are of the file's structure; no values then.
 */
int dicom_read_values(const struct dicom_question *question, char **values, struct error *error);

/*
 * Frames of one instance, decoded one at a time. A reader belongs to one thread; several readers of
 * one instance may be open at once. The instance outlives its readers.
 */
struct dicom_pixels;
int dicom_pixels_open(const struct dicom_instance *instance, struct dicom_pixels **pixels,
                      struct error *error);
/*
 * Decodes frame 0 .. frame_count - 1 into `destination`: rows * columns values of type
 * instance->pixel, sign-extended from Bits Stored, overlay bits masked away; rescale is not
 * applied. Codes: PIXELS_UNDECODABLE, FILE_TRUNCATED, FILE_UNREADABLE.
 */
int dicom_pixels_read(struct dicom_pixels *pixels, int32_t frame, void *destination,
                      struct error *error);
void dicom_pixels_close(struct dicom_pixels *pixels);
/* Returns whether one reader should read all frames, in their order: each costs those before it, or all of a mosaic. */
bool dicom_pixels_in_order(const struct dicom_instance *instance);

/* One attribute as Explicit VR Little Endian bytes: tag, VR, length and value, ready to be written.
 */
struct dicom_element {
    uint32_t tag; /* group << 16 | element */
    const uint8_t *bytes;
    size_t size;
};

/*
 * What a result object inherits from its source (Patient, General Study, Frame of Reference modules
 * and Specific Character Set), in ascending tag order, values verbatim but for what would make the
 * object invalid, which is left out. Free with dicom_inherited_free.
 */
struct dicom_inherited {
    size_t count;
    struct dicom_element *elements;
    uint8_t *storage;
    /* The attributes that were left out, in whole or in part: "Study Date (0008,0020), ..."; "" */
    char left_out[DICOM_LEFT_OUT_SIZE];
};

int dicom_inherit(const char *path, struct dicom_inherited *inherited, struct error *error);
void dicom_inherited_free(struct dicom_inherited *inherited);

#ifdef __cplusplus
}
#endif
#endif
