/*
 * stack_writer.h - base of the writers of objects made from a stack (segmentations, parametric
 * maps, structure sets): the file and its data set, the modules that all kinds have, and the functional
 * groups that refer to the source; private to dicom/.
 *
 * Callers must put modules and add functional groups in ascending tag order. The sink keeps write
 * errors, the buffers keep encoding errors. One thread per writer.
 */
#ifndef NOCTULE_DICOM_WRITE_STACK_WRITER_H
#define NOCTULE_DICOM_WRITE_STACK_WRITER_H

#include "dicom/write/byte_sink.h"
#include "dicom/write/dataset_writer.h"
#include "dicom/write/derived.h"
#include "dicom/write/rle_encode.h"

/* Longest value that a 32-bit length can express: even, and not the mark of an undefined length. */
#define STACK_MAX_VALUE_LENGTH ((uint64_t)UINT32_MAX - 1)

/* Properties that differ between kinds of objects. Strings are borrowed. */
struct stack_object {
    const char *image_type;
    const struct coded_concept *derivation;
    enum code too_large, invalid; /* codes of these failures */
    bool has_bytes;               /* frames may be in RLE: see derived_transfer_syntax */
    bool flat;                    /* needs no position in the patient, and does not keep that of the source's pixels */
    bool follows_source;          /* may be of a 2-D image: a frame has the pixels of the image to which it refers */
    /*
     * The planes of a Source Image Sequence of the whole object, which Derivation Code Sequence then follows. NULL: the
     * first ones. None: not written.
     */
    const int32_t *sources;
    size_t source_count;
};

struct stack_writer {
    struct stack_object object;
    char frame_of_reference_uid[DICOM_UID_SIZE];
    struct dataset_writer set;  /* elements not yet in the sink */
    struct element_buffer item; /* one item of a long sequence */
    uint8_t *referenced;        /* per instance: its item has been encoded in this pass */
    struct byte_sink sink;
    uint8_t *encoded; /* a frame in RLE */
};

/* Checks a writer whose source and object are set. `wrong` is the result of the kind's own check
 * (NULL if valid). Codes: `invalid`, with `wrong` or the fault of the source; NO_GEOMETRY. */
int stack_check(const struct stack_writer *w, const char *wrong, struct error *error);

/* Reads the elements to inherit and prepares writing to `fd`. Set `ascii` if all texts of this
 * kind of object are ASCII. Codes: those of dicom_inherit, OUT_OF_MEMORY. The caller must call
 * stack_writer_close in either case. */
int stack_writer_open(struct stack_writer *w, bool ascii, int fd, struct error *error);
/* Must follow an encoding, which ended with `rc`. Writes the rest and fills the summary. Codes:
 * WRITE_FAILED, OUT_OF_MEMORY, too_large (-EOVERFLOW: a sequence exceeds its length field), invalid
 * (-EMSGSIZE: a text is too long). */
int stack_writer_finish(struct stack_writer *w, int rc, int64_t frames, struct derived_summary *summary,
                        struct error *error);
void stack_writer_close(struct stack_writer *w); /* frees; does not write */

/* Moves a buffer's bytes to the sink. */
void stack_drain(struct stack_writer *w, struct element_buffer *buffer);

/* --- modules --- */

/* Puts all modules up to the equipment, with Common Instance Reference. Returns 0, -ENOMEM, or
 * -EOVERFLOW if its sequence exceeds the length field. */
int stack_put_head(struct stack_writer *w);

/* A dimension of the frames (PS3.3 C.7.6.17): an attribute of a functional group. */
struct stack_dimension {
    uint32_t attribute;
    uint32_t group;
    const char *label;
};

/* Of a 2-D image, puts an empty Patient Orientation instead of a Frame of Reference. */
void stack_put_relationship(struct stack_writer *w, int32_t series_number, const struct stack_dimension *dimensions,
                            size_t count);
/* Puts the attributes of unsigned pixels with `bits` bits allocated and stored; 64: of doubles. */
void stack_put_pixels(struct stack_writer *w, int64_t frames, uint16_t bits);
void stack_put_lossiness(struct stack_writer *w);
/* Puts Content Label, made from any text. Uses `otherwise` if no character of it is legal. */
void stack_put_content(struct stack_writer *w, const char *label, const char *otherwise);

/*
 * Puts the Per-frame Functional Groups Sequence. `encode` must add the items to the writer's `item`, end each with
 * stack_end_item, and return the sum of their sizes. It is called twice: first for the sizes, then to write. This costs
 * about a microsecond per frame. The sequence therefore has an explicit length, which every reader accepts and can
 * check, and only one item is in memory.
 */
typedef uint64_t stack_encode_frames(void *context, bool write);
int stack_put_frame_groups(struct stack_writer *w, stack_encode_frames *encode, void *context);
uint64_t stack_end_item(struct stack_writer *w, bool write);

/* Returns whether frames are in RLE, and the caller must put them with stack_put_rle_frame. */
bool stack_is_rle(const struct stack_writer *w);

/* Puts tag, VR and length of Pixel Data, or of Double Float Pixel Data ("OD"). Its `length` bytes must follow through the sink. In RLE only the tag, and an
 * empty Basic Offset Table. */
void stack_put_pixel_header(struct stack_writer *w, const char vr[2], uint64_t length);
/* Puts a frame as one fragment. All frames must have one size. Returns 0 or -ENOMEM. */
int stack_put_rle_frame(struct stack_writer *w, const struct rle_frame *frame);
/* Must follow the pixels: pads them to an even length, or ends the fragments. `begun` is the sink's total before them. */
void stack_end_pixels(struct stack_writer *w, int64_t begun);

/* --- functional groups, into an open item --- */

/* Adds references to all source images, for all frames of a resampled grid. Other frames have one source frame each. */
void stack_add_shared_derivation(const struct stack_writer *w, struct element_buffer *to);
/* Adds a reference to the one source frame of this plane. */
void stack_add_derivation(const struct stack_writer *w, struct element_buffer *to, int32_t plane);
/* `label`: Frame Label, the value of a dimension; NULL: none. */
void stack_add_frame_content(struct element_buffer *to, const uint32_t *indices, size_t count, const char *label);
/* Planes and Pixel Measures are those of volumes. The next three leave out those of a 2-D image (PS3.3 A.51.5). */
void stack_add_plane_position(const struct stack_writer *w, struct element_buffer *to, int32_t plane);
void stack_add_plane_orientation(const struct stack_writer *w, struct element_buffer *to);
/* Adds Pixel Measures in mm: shared, or of each frame if unevenly spaced planes differ in thickness
 * (derived_measures_differ). Only one of the two calls adds them. `plane` may be STACK_SHARED. */
#define STACK_SHARED (-1)
void stack_add_measures(const struct stack_writer *w, struct element_buffer *to, int32_t plane);

#endif
