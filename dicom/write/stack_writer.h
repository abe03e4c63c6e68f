/*
 * stack_writer.h - what the writers of image objects made from a stack have in common
 * (segmentations, parametric maps): the file and its data set, the modules that do not depend on
 * the kind of object, and the functional groups that refer to the source; private to dicom/.
 *
 * Modules are put, and functional groups added, in ascending order of their tags. Write errors are
 * latched in the sink, encoding errors in the buffers. One thread per writer.
 */
#ifndef NOCTULE_STACK_WRITER_H
#define NOCTULE_STACK_WRITER_H

#include "dicom/write/byte_sink.h"
#include "dicom/write/dataset_writer.h"
#include "dicom/write/derived.h"

/* The longest value that a 32-bit length can say: even, and not the mark for "undefined". */
#define STACK_MAX_VALUE_LENGTH ((uint64_t)UINT32_MAX - 1)

/* What sets an object apart from those of other kinds. Strings are borrowed. */
struct stack_object {
    const char *image_type;
    const struct coded_concept *derivation;
    enum code too_large, invalid; /* what to call such a failure */
};

struct stack_writer {
    struct stack_object object;
    char frame_of_reference_uid[DICOM_UID_SIZE];
    struct dataset_writer set;  /* elements on their way to the sink */
    struct element_buffer item; /* one item of a long sequence */
    uint8_t *referenced;        /* by instance: its item has been encoded in this pass */
    struct byte_sink sink;
};

/*
 * Of a writer whose source and object are set: `invalid`, with what the kind's own check found
 * `wrong` (NULL: nothing) or what is wrong with the source; NO_GEOMETRY.
 */
int stack_check(const struct stack_writer *w, const char *wrong, struct error *error);

/*
 * Reads what the object inherits and makes ready to write to `fd`; `ascii`: all texts that only this
 * kind has are. Codes: those of dicom_inherit, OUT_OF_MEMORY. stack_writer_close in either case.
 */
int stack_writer_open(struct stack_writer *w, bool ascii, int fd, struct error *error);
/*
 * After an encoding that ended with `rc`: writes the rest, and fills the summary. Codes:
 * WRITE_FAILED, OUT_OF_MEMORY, too_large (-EFBIG: a sequence beyond its length field), invalid
 * (-EMSGSIZE: a text that is too long).
 */
int stack_writer_finish(struct stack_writer *w, int rc, int64_t frames,
                        struct derived_summary *summary, struct error *error);
void stack_writer_close(struct stack_writer *w); /* frees; writes nothing */

/* Hands a buffer's bytes to the sink and empties it. */
void stack_drain(struct stack_writer *w, struct element_buffer *buffer);

/* --- modules --- */

/*
 * All modules to the equipment, Common Instance Reference among them: 0, -EFBIG when its sequence
 * grows beyond its length field, or -ENOMEM.
 */
int stack_put_head(struct stack_writer *w);

/* A dimension of the frames (PS3.3 C.7.6.17): an attribute of a functional group. */
struct stack_dimension {
    uint32_t attribute;
    uint32_t group;
    const char *label;
};

void stack_put_relationship(struct stack_writer *w, int32_t series_number,
                            const struct stack_dimension *dimensions, size_t count);
/* Unsigned pixels of as many bits, allocated and stored. */
void stack_put_pixels(struct stack_writer *w, int64_t frames, uint16_t bits);
void stack_put_lossiness(struct stack_writer *w);
/* Content Label from any text, or `otherwise` when nothing of it can be used. */
void stack_put_content(struct stack_writer *w, const char *label, const char *otherwise);

/*
 * Per-frame Functional Groups Sequence. `encode` adds the items to stack_fresh_item's buffer, ends
 * each with stack_end_item, and returns the sum of their sizes; it is called twice, first for the
 * sizes, then to write. That costs about a microsecond per frame and lets the sequence carry an
 * explicit length, which every reader takes and can check; memory stays that of one item.
 */
typedef uint64_t stack_encode_frames(void *context, bool write);
int stack_put_frame_groups(struct stack_writer *w, stack_encode_frames *encode, void *context);
struct element_buffer *stack_fresh_item(struct stack_writer *w);
uint64_t stack_end_item(struct stack_writer *w, bool write);

/* Tag, VR and length of Pixel Data, whose `length` bytes follow through the sink. */
void stack_put_pixel_header(struct stack_writer *w, const char vr[2], uint64_t length);

/* --- functional groups, into an open item --- */

/* The one source frame that the frame on this plane was made from. */
void stack_add_derivation(const struct stack_writer *w, struct element_buffer *to, int32_t plane);
void stack_add_frame_content(struct element_buffer *to, const uint32_t *indices, size_t count);
void stack_add_plane_position(const struct stack_writer *w, struct element_buffer *to,
                              int32_t plane);
void stack_add_plane_orientation(const struct stack_writer *w, struct element_buffer *to);
/*
 * Pixel Measures, in one of the two places: shared, or of each frame where planes that are unevenly
 * spaced are not equally thick (derived_measures_differ).
 */
void stack_add_shared_measures(const struct stack_writer *w, struct element_buffer *to);
void stack_add_frame_measures(const struct stack_writer *w, struct element_buffer *to,
                              int32_t plane);

#endif
