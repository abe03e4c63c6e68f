/*
 * scan.h - the structural walk over a DICOM file up to its pixel data; private to dicom/.
 *
 * Every file goes through this before DCMTK sees a byte of it. The walk checks what a parser relies
 * on (lengths inside their parents and inside the file, sequence nesting of bounded depth: DCMTK
 * recurses), finds where the pixel data start, and gathers the elements that the caller wants, so
 * that DCMTK parses those alone. Icons, blobs of vendors and the like are never parsed. What a file
 * can make this and the parser do is bounded by limits.def.
 */
#ifndef NOCTULE_DICOM_SCAN_H
#define NOCTULE_DICOM_SCAN_H

#include "base/limits.h"
#include "dicom/dicom.h"
#include "dicom/read/stream.h"
#include "dicom/value/transfer_syntax.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SCAN_TAG_FLOAT_PIXELS  0x7FE00008u
#define SCAN_TAG_DOUBLE_PIXELS 0x7FE00009u
#define SCAN_TAG_PIXELS        0x7FE00010u

struct scan_bytes {
    uint8_t *bytes;
    size_t size, room;
};

struct scan {
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char media_class_uid[DICOM_UID_SIZE]; /* Media Storage SOP Class UID, "" when absent */
    const struct transfer_syntax *syntax; /* NULL: unknown; walked as explicit little endian */
    bool has_preamble;
    bool implicit_vr; /* of the data set as it really is: some senders mislabel it */
    bool big_endian;

    /* The wanted elements, in file order, in the encoding of the data set. */
    struct scan_bytes kept;

    /* Those of the items of the sequence that is kept apart (scan_apart), one item after the other:
     * a parser takes them one by one. frame_ends[i] is where in `frames` those of item i end. */
    bool has_frames;
    bool frames_implicit_vr;
    struct scan_bytes frames;
    size_t *frame_ends;
    int32_t frame_count, frame_room;

    uint32_t pixel_tag;   /* 0 when the file has no pixel data */
    char pixel_vr[3];     /* "" in implicit VR */
    bool encapsulated;    /* undefined length */
    int64_t pixel_offset; /* of the value, in the file (in the inflated bytes when deflated) */
    int64_t pixel_length; /* -1 when encapsulated */

    double begun, asked; /* on the clock of the thread's own time */
    const struct dicom_asker *asker;
};

/* A sequence of the data set that may be long: its items are kept apart, and have limits of their
 * own. */
struct scan_apart {
    uint32_t tag;
    int32_t most_items, most_mib;
    int32_t most_elements;          /* and items, that are kept of each */
    const char *items, *of_an_item; /* for messages: what there is too much of */
};

/* The elements to keep. The lists are ascending. */
struct scan_wanted {
    const uint32_t *tags;
    size_t tag_count;
    uint32_t most_bytes; /* of a value; a longer one is not wanted */
    bool nested;         /* in the items of what is wanted, too, only what is wanted is kept */
    /* Private elements in whatever block they stand, (gggg,xxee) as gggg00ee; the creators of their
     * groups are kept with them. What is longer than LIMIT_PRIVATE_BYTES is none of them, but for
     * those that are sequences, Siemens' CSA headers, which may have LIMIT_CSA_BYTES (image) and
     * LIMIT_CSA_SERIES_BYTES (series, with the protocol), and the protocol of software XA, as long as that. */
    const uint32_t *private_tags;
    size_t private_count;
    const uint32_t *private_sequences; /* ascending */
    size_t sequence_count;
    uint32_t most_private_bytes; /* of each of them, sequences too, in place of that; 0: that */
    /* Is told what the elements before the pixel data hold, in a form that does not depend on how
     * they are written (dicom_compare); or NULL. */
    stream_visit *content;
    void *context;
    const struct scan_apart *apart;  /* NULL: the Per-Frame Functional Groups Sequence */
    const struct dicom_asker *asker; /* NULL: one that stays */
};

/* Those elements of the data set, and nothing more. */
struct scan_wanted scan_wanted_of(const uint32_t *tags, size_t tag_count, uint32_t most_bytes);

/*
 * Walks the file from its first byte to the start of the pixel data (where the stream then stands)
 * or to the end. Release with scan_release whatever the outcome. Codes: FILE_EMPTY, NOT_DICOM,
 * FILE_TRUNCATED, FILE_UNREADABLE, TAG_MISSING, TAG_INVALID, SIZE_IMPLAUSIBLE,
 * EXPANSION_IMPLAUSIBLE, READING_TOO_LONG, OUT_OF_MEMORY.
 */
int scan_file(struct stream *stream, const char *path, const struct scan_wanted *wanted,
              struct scan *scan, struct error *error);
void scan_release(struct scan *scan);

/* Whether the header may take more of the thread's time: 0, or -EBADMSG and READING_TOO_LONG, or
 * -ECANCELED and ASSOCIATION_ABORTED. */
int scan_check_time(struct scan *scan, const char *path, struct error *error);

/* One item header of encapsulated pixel data at the stream's position: Item or Sequence
 * Delimitation.
 */
struct scan_item {
    bool is_delimiter;
    uint32_t length;
};

/* 0, -ENODATA at the end of the file, -EBADMSG for what is no item, or -errno. */
int scan_pixel_item(struct stream *stream, struct scan_item *item);

/* Fills the error for a failure of the stream functions met while reading `what`. */
int scan_error(const struct stream *stream, const char *path, int rc, const char *what,
               struct error *error);

#ifdef __cplusplus
}
#endif
#endif
