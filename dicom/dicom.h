/*
 * dicom.h - reading DICOM files: headers, frames, and the attributes that results inherit.
 *
 * This is the C interface to DCMTK and OpenJPEG. Callers need none of their headers. Every call
 * returns 0 or a negative errno and fills a struct error. No C++ exception leaves. After one call
 * of dicom_init, all calls may be made from several threads at once.
 */
#ifndef NOCTULE_DICOM_DICOM_H
#define NOCTULE_DICOM_DICOM_H

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
#define DICOM_DEFLATED_LITTLE "1.2.840.10008.1.2.1.99"
#define DICOM_RLE_LOSSLESS    "1.2.840.10008.1.2.5"

#define DICOM_UID_SIZE        65 /* 64 characters and the NUL (PS3.5 9.1) */
#define DICOM_CS_SIZE         17
#define DICOM_LO_SIZE         260 /* 64 characters of up to 4 bytes */
#define DICOM_UNIT_SIZE       32  /* a unit of UCUM */
#define DICOM_DS_SIZE         32  /* 16 in the standard; senders write longer ones */

#define DICOM_LEFT_OUT_SIZE   256

/* Registers codecs and silences DCMTK's own logger. Must be called once, before any other call
 * here. If memory is short, ends the process with EX_TEMPFAIL. */
void dicom_init(void);

/* Returns whether DCMTK has its data dictionary. dicom_init ends the process if it is missing.
 * Must be called before dicom_init, from the same thread. */
bool dicom_has_dictionary(void);

/* Attributes that announce the number of slice locations (counts.def). */
enum dicom_count {

#define COUNT(id, ...) DICOM_COUNT_##id,
#include "dicom/read/image/counts.def"
#undef COUNT
    DICOM_COUNTS
};

/* Returns the attribute's name, for messages. */
const char *dicom_count_name(enum dicom_count count);

/* Sources of a pixel spacing (spacing.def). */
enum dicom_spacing {

#define SPACING(id, ...) DICOM_SPACING_##id,
#include "dicom/read/image/spacing.def"
#undef SPACING
    DICOM_SPACINGS
};

/* Returns the word of a source of spacing, as in job.json. */
const char *dicom_spacing_word(enum dicom_spacing source);

/* How stored samples become the one value per pixel of dicom_pixels_read. */
enum dicom_colour {
    DICOM_COLOUR_NONE, /* they are the values, or indices of a Modality LUT */
    DICOM_COLOUR_RGB,
    DICOM_COLOUR_YBR,
    DICOM_COLOUR_YBR_422, /* uncompressed, with one pair of colour differences per two pixels */
    DICOM_COLOUR_PALETTE,
};

/* The value of a pixel with colour. */
enum dicom_channel {
    DICOM_CHANNEL_LUMA, /* Y of PS3.3 C.7.6.3.1.2 (BT.601), rounded half up */
    DICOM_CHANNEL_RED,
    DICOM_CHANNEL_GREEN,
    DICOM_CHANNEL_BLUE,
};

/* One plane of pixels: a classic instance, one frame of an enhanced image, or one tile of a mosaic. */
struct dicom_frame {
    bool has_position;          /* Image Position (Patient), within 1e6 mm */
    bool has_orientation;       /* Image Orientation (Patient), orthonormal to 1e-3 */
    bool has_spacing;           /* Pixel Spacing, both from 1e-3 to 1e3 mm */
    enum dicom_spacing spacing; /* the attribute of pixel_spacing; NONE without has_spacing */
    /* 2-D images: first column, first row, last column and last row for which pixel_spacing is valid. */
    int32_t calibrated[4];
    bool has_rescale;              /* the header has slope and intercept */
    double position[3];            /* mm, LPS */
    double orientation[6];         /* direction cosines of the row, then of the column */
    double pixel_spacing[2];       /* mm between rows, mm between columns (as in the standard) */
    double slice_thickness;        /* mm; 0 if absent or impossible */
    double spacing_between_slices; /* mm; 0 if absent or impossible */
    double slope, intercept;       /* real-world value = slope * stored value + intercept */
    /* The first Real World Value Mapping (0040,9096) with a slope. It is not applied. */
    bool has_mapping;
    double mapping_slope, mapping_intercept;
    /* The first linear window of the VOI LUT module or macro (PS3.3 C.11.2): the attributes as
     * written, and the real-world values shown black and white. */
    bool has_window;
    double window_center, window_width;
    double window_low, window_high;
    char position_text[3][DICOM_DS_SIZE]; /* as written in the header */
    char orientation_text[6][DICOM_DS_SIZE];
    char spacing_text[2][DICOM_DS_SIZE];
    /* Attributes that distinguish volumes (keys.def): canonical texts. Equal texts have equal meaning; "" if absent. */
#define KEY(id, ...) char id[DICOM_DS_SIZE];
#include "dicom/read/image/keys.def"
#undef KEY
    /* Acquisition Date and Time, of the frame if it has its own: digits and a dot. Texts sort in
     * time order; "" if absent. */
    char acquired[DICOM_DS_SIZE];
    /* Reason to exclude the frame from processing, whatever the geometry check finds:
     * CODE_MOSAIC, CODE_LOCALIZER, CODE_SCREENSHOT or CODE_DERIVED_IMAGE (a reformat, projection
     * or map). CODE_NONE for an image. */
    enum code excluded;
    int32_t tiles; /* slices in the plane of a mosaic; 0 if the header has no count */
    bool derived;  /* from Image Type value 1; excluded if the series has originals too */
};

/* The header of one file. The owner must free it with dicom_instance_free. */
struct dicom_instance {
    char *path;
    int64_t file_size;
    char digest[DICOM_UID_SIZE]; /* of the data set (dicom_digest); "" if not computed */
    char sop_class_uid[DICOM_UID_SIZE];
    char sop_instance_uid[DICOM_UID_SIZE];
    char study_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE];
    char frame_of_reference_uid[DICOM_UID_SIZE]; /* "" if absent */
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char modality[DICOM_CS_SIZE];
    char body_part[DICOM_CS_SIZE];
    char image_type[DICOM_LO_SIZE]; /* all values, separated by "\\" */
    char series_description[DICOM_LO_SIZE];
    struct series_about about;
    /* Patient ID and its issuer. Must only be compared, never logged or reported. */
    char patient[DICOM_LO_SIZE];
    char patient_name[DICOM_LO_SIZE]; /* only compared, as `patient` */
    char content[DICOM_DS_SIZE];      /* Content Date and Time, in the form of `acquired` */
    /* Instance Creation Date and Time, in the form of `acquired` */
    char created[DICOM_DS_SIZE];
    int32_t instance_number; /* 0 if absent */
    int32_t series_number;   /* 0 if absent */
    /* of the whole series, from the attributes that state it; 0 if unknown */
    int32_t expected_instances;
    int32_t images_in_acquisition; /* Images in Acquisition; 0 if absent */
    int32_t temporal_positions;    /* Number of Temporal Positions; 0 if absent */
    int32_t counts[DICOM_COUNTS];  /* announced slice locations; 0 if absent */
    /* Concatenation: this file is one part of a multi-frame image (PS3.3 C.7.6.16.2.2.4). */
    char concatenation_uid[DICOM_UID_SIZE];            /* "" if absent */
    int32_t concatenation_number, concatenation_total; /* from 1; 0 if absent */
    int32_t rows, columns;                             /* of a frame */
    /* Size of a tile if a mosaic is split: each frame is one tile of the only plane, row by row. 0 if not. */
    int32_t tile_rows, tile_columns;
    int32_t bits_allocated, bits_stored, high_bit;
    bool is_signed;
    bool monochrome1;                /* affects display only; values are never inverted */
    char photometric[DICOM_CS_SIZE]; /* Photometric Interpretation */
    enum dicom_colour colour;
    bool planar;            /* uncompressed colour: one plane per sample */
    int32_t stored_samples; /* per pixel, of uncompressed pixel data; 2 with DICOM_COLOUR_YBR_422; 0 as 1 */
    /* The values are those of the Modality LUT Sequence (0028,3000), whose index the stored values are. */
    bool has_modality_lut;
    /* 2-D images: Pixel Intensity Relationship and its Sign (PS3.3 C.8.11.3.1.2); "" and 0 if absent. */
    char intensity_relationship[DICOM_CS_SIZE];
    int32_t intensity_sign;
    bool lossy; /* Lossy Image Compression 01, or a lossy transfer syntax */
    char lossy_ratio[DICOM_DS_SIZE];
    char lossy_method[DICOM_CS_SIZE];
    /* UCUM unit of the real-world values, from Rescale Type (0028,1054) or Units (0054,1001):
     * "[hnsf'U]", "Bq/ml" and so on. "" if the source has no unit. */
    char value_unit[DICOM_UNIT_SIZE];
    bool contrast; /* has Contrast/Bolus Agent, or its sequence */
    bool multi_frame;
    /* A 2-D image by its SOP class (DX, MG, CR, US, SC, XA and others): each frame is a stack of its own, without patient
     * geometry, also if the header has a position. */
    bool flat;
    /* of an image file (service/pipeline/image_file.h): its values are reals, and stored values only come close to them */
    bool has_reals;
    bool has_none; /* some of these are NAN */
    bool has_padding;
    int32_t padding_lo, padding_hi; /* stored values, inclusive (Pixel Padding Value, Range Limit) */
    enum image_pixel pixel;         /* type of the values from dicom_pixels_read */
    int32_t frame_count;
    struct dicom_frame *frames; /* array of frame_count */
    /* File offset of native pixel data; -1 if encapsulated or deflated. */
    int64_t pixel_offset;
    int64_t pixel_length;       /* bytes of native pixel data */
    int64_t encapsulated_bytes; /* of the fragments, without their headers */
};

/*
 * Reads the header of one file and checks that this program can process it: a supported storage
 * class (classic and enhanced CT, MR, PET, and 2-D images), a transfer syntax that can be decoded, one sample per
 * pixel or colour of a 2-D image, valid UIDs, plausible sizes, and complete pixel data. Pixel data is not read.
 *
 * Codes: NOT_DICOM, FILE_EMPTY, FILE_TRUNCATED, FILE_UNREADABLE, TAG_MISSING, TAG_INVALID, UID_INVALID,
 * SOP_CLASS_UNSUPPORTED, TRANSFER_SYNTAX_UNSUPPORTED, PIXELS_UNSUPPORTED, SIZE_IMPLAUSIBLE, OWN_RESULT, OUT_OF_MEMORY.
 * Returns -ENOMEM for OUT_OF_MEMORY, the errno of the system call for FILE_UNREADABLE, and -EBADMSG for the others.
 * Only the first two may be transient.
 */
int dicom_peek(const char *path, struct dicom_instance **instance, struct error *error);

/* The requestor of a header. A long read polls `gone`, and stops when it returns true. */
struct dicom_requestor {
    bool (*gone)(const void *context);
    const void *context;
};

/* Reads the header of the open file `fd` as dicom_peek does. The caller keeps `fd`, whose offset
 * does not change. `path` is for messages. Returns -ECANCELED with ASSOCIATION_ABORTED if the
 * requestor has gone. A NULL requestor never goes. */
int dicom_peek_open(int fd, const char *path, const struct dicom_requestor *requestor, struct dicom_instance **instance,
                    struct error *error);
void dicom_instance_free(struct dicom_instance *instance);

/* Identity of a file, read as far as possible, also of a file that dicom_peek rejects. "" if unknown. */
struct dicom_identity {
    char sop_instance_uid[DICOM_UID_SIZE];
    char series_uid[DICOM_UID_SIZE], study_uid[DICOM_UID_SIZE];
    char patient_id[DICOM_LO_SIZE];
};

void dicom_identify(const char *path, struct dicom_identity *identity);
void dicom_identify_open(int fd, const char *path, struct dicom_identity *identity);

enum dicom_likeness {
    DICOM_DIFFERENT,
    DICOM_SAME,    /* same elements; encoding may differ */
    DICOM_RECODED, /* compressed in transfer syntaxes that need decoding to compare */
};

/* Compares the data sets of two open files. Ignores differences between copies of an instance
 * that arrived by different paths: file meta information, group lengths, trailing padding, VRs,
 * and defined or undefined sequence lengths. Returns 0, -ENOMEM, or -errno of a read. */
int dicom_compare(int a, int b, enum dicom_likeness *likeness);

/* Computes the digest of a data set, in the form of a UID. Data sets that are equal for
 * dicom_compare have equal digests. Returns 0, -ENOMEM, or -errno of a read with
 * FILE_UNREADABLE. */
int dicom_digest(const char *path, char digest[DICOM_UID_SIZE], struct error *error);

/* Returns the name of a UID of the standard ("MRImageStorage"), or else the UID itself. */
const char *dicom_uid_name(const char *uid);

/* Returns the kind of an attribute in the dictionary. `name` is its keyword ("ProtocolName") or
 * its tag ("(0018,1030)"). A private tag may be in any block of its group: "(0019,100C)". */
enum attribute_kind dicom_attribute_kind(const char *name);

/* A request for attributes of frames. `attributes` has one line per attribute: its keyword or tag, a
 * tab, and the creator if it is private. */
struct dicom_value_request {
    const char *path, *attributes;
    const int32_t *frames; /* numbers from 0 */
    size_t frame_count;
};

/*
 * Sets values[i] to the values of frame i (malloc'd): one line per attribute, in the order of `attributes`, in the form
 * of enum attribute_told. Text is UTF-8. Several values are separated by backslashes, without padding.
 *
 * In an enhanced image the value comes from the frame's own functional groups, or else from the
 * shared ones. A tab and its place follow ("KVP in CTXRayDetailsSequence of all frames"). If
 * neither has it, and for every private attribute, the value is that of the data set.
 *
 * Some values cannot be compared: longer than LIMIT_RULE_BYTES, items, bytes, and text outside the declared character
 * set. Codes: those of dicom_peek about the file's structure; then no values are set.
 */
int dicom_read_values(const struct dicom_value_request *request, char **values, struct error *error);

/* Frames of one instance, decoded one at a time. A reader belongs to one thread. Several readers
 * of one instance may be open at once. The instance must outlive its readers. */
struct dicom_pixels;
int dicom_pixels_open(const struct dicom_instance *instance, struct dicom_pixels **pixels, struct error *error);
/* Chooses the channel of an image with colour; the default is luma. Must be called before the first read. */
void dicom_pixels_choose(struct dicom_pixels *pixels, enum dicom_channel channel);
/* Decodes frame 0 .. frame_count - 1 into `destination`: rows * columns values of type
 * instance->pixel, sign-extended from Bits Stored, with overlay bits masked out. A palette or a Modality LUT is
 * applied; rescale is not, and neither are VOI LUT and Presentation LUT. Codes: PIXELS_UNDECODABLE, FILE_TRUNCATED, FILE_UNREADABLE. */
int dicom_pixels_read(struct dicom_pixels *pixels, int32_t frame, void *destination, struct error *error);
/* As dicom_pixels_read, for `count` rows of a frame from row `first` on: all rows, or any of an image that can be read by
 * rows. */
int dicom_pixels_read_rows(struct dicom_pixels *pixels, int32_t frame, int32_t first, int32_t count, void *destination,
                           struct error *error);
/* Returns the max memory in bytes that a reader takes besides the destination. */
int64_t dicom_pixels_bytes(const struct dicom_instance *instance);
/* Returns whether rows can be read apart: of native pixels that are not deflated, and no mosaic. */
bool dicom_pixels_by_rows(const struct dicom_instance *instance);
void dicom_pixels_close(struct dicom_pixels *pixels);
/* Returns whether one reader should read all frames in order, because a frame needs those before
 * it, or needs the whole mosaic. */
bool dicom_pixels_in_order(const struct dicom_instance *instance);

/* One attribute as Explicit VR Little Endian bytes: tag, VR, length and value, ready to write. */
struct dicom_element {
    uint32_t tag; /* group << 16 | element */
    const uint8_t *bytes;
    size_t size;
};

/* Attributes that a result inherits from its source (Patient, General Study and Frame of
 * Reference modules, Specific Character Set), in ascending tag order. Values are verbatim.
 * Values that would make the result invalid are left out. Free with dicom_inherited_free. */
struct dicom_inherited {
    size_t count;
    struct dicom_element *elements;
    uint8_t *storage;
    /* Attributes left out, in whole or in part: "Study Date (0008,0020), ..."; "" if all were kept. */
    char left_out[DICOM_LEFT_OUT_SIZE];
};

int dicom_inherit(const char *path, struct dicom_inherited *inherited, struct error *error);
void dicom_inherited_free(struct dicom_inherited *inherited);

/* Replaces the elements by their UTF-8 form, including Specific Character Set ISO_IR 192.
 * Returns 0, or a negative errno with the elements unchanged: -EILSEQ if the character set is
 * unknown or a text is not valid in it. */
int dicom_inherited_to_utf8(struct dicom_inherited *inherited);

#ifdef __cplusplus
}
#endif
#endif
