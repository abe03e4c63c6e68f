/*
 * scan_header.h - structural walk over a DICOM file up to its pixel data; private to dicom/.
 *
 * Every file must pass it before DCMTK parses any byte. The walk checks the assumptions of a
 * parser: lengths inside their parents and inside the file, and limited depth of sequences, because
 * DCMTK recurses. It finds the start of the pixel data, and collects the elements that the caller
 * wants, so that DCMTK parses only those. Icons and vendors' binary data are never parsed.
 * limits.def limits the resources that a file can use in the walk and in the parser.
 */
#ifndef NOCTULE_DICOM_READ_SCAN_SCAN_HEADER_H
#define NOCTULE_DICOM_READ_SCAN_SCAN_HEADER_H

#include "base/limits.h"
#include "dicom/dicom.h"
#include "dicom/read/scan/stream.h"
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
    char media_class_uid[DICOM_UID_SIZE]; /* Media Storage SOP Class UID; "" if absent */
    const struct transfer_syntax *syntax; /* NULL if unknown; walked as explicit little endian */
    bool has_preamble;
    bool implicit_vr; /* actual encoding of the data set; some senders mislabel it */
    bool big_endian;

    /* The wanted elements, in file order, in the encoding of the data set. */
    struct scan_bytes kept;

    /* Wanted elements of the separate sequence (scan_separate), item after item, for a parser to
     * read one by one. frame_ends[i] is the end of item i in `frames`. */
    bool has_frames;
    bool frames_implicit_vr;
    struct scan_bytes frames;
    size_t *frame_ends;
    int32_t frame_count, frame_room;

    uint32_t pixel_tag;   /* 0 if the file has no pixel data */
    char pixel_vr[3];     /* "" in implicit VR */
    bool encapsulated;    /* undefined length */
    int64_t pixel_offset; /* of the value, in the file, or in the inflated bytes if deflated */
    int64_t pixel_length; /* -1 if encapsulated */

    double begun, polled; /* in CPU time of the thread */
    const struct dicom_requestor *requestor;
};

/* A sequence of the data set that may be long. Its items are kept separately and have their own
 * limits. */
struct scan_separate {
    uint32_t tag;
    int32_t max_items, max_mib;
    int32_t max_elements;         /* max elements and items kept per item */
    const char *items, *per_item; /* names of what exceeds a limit, for messages */
};

/* The elements to keep. The lists must be ascending. */
struct scan_wanted {
    const uint32_t *tags;
    size_t tag_count;
    uint32_t max_bytes; /* of a value; longer values are not kept */
    /* inside the items of wanted sequences too, only wanted elements are kept */
    bool nested;
    /*
     * Private elements in any block: (gggg,xxee) given as gggg00ee. The creators of their groups
     * are kept too. Values longer than LIMIT_PRIVATE_BYTES are not kept, with exceptions:
     * sequences, the CSA headers of Siemens, with limits LIMIT_CSA_BYTES (image) and
     * LIMIT_CSA_SERIES_BYTES (series, with the protocol), and the protocol of software XA, with the
     * latter limit.
     */
    const uint32_t *private_tags;
    size_t private_count;
    const uint32_t *private_sequences; /* ascending */
    size_t sequence_count;
    uint32_t max_private_bytes; /* replaces those limits, also for sequences; 0: does not */
    /* Receives the content of the elements before the pixel data, in a form that does not depend
     * on their encoding (dicom_compare). May be NULL. */
    stream_visit *content;
    void *context;
    const struct scan_separate *separate;    /* NULL: the Per-Frame Functional Groups Sequence */
    const struct dicom_requestor *requestor; /* NULL: never stops */
};

/* Returns a request for these elements of the data set only. */
struct scan_wanted scan_wanted_of(const uint32_t *tags, size_t tag_count, uint32_t max_bytes);

/*
 * Walks the file from its first byte to the start of the pixel data, where the stream then stands,
 * or to the end. The caller must call scan_release in any case. Codes: FILE_EMPTY, NOT_DICOM,
 * FILE_TRUNCATED, FILE_UNREADABLE, TAG_MISSING, TAG_INVALID, SIZE_IMPLAUSIBLE,
 * EXPANSION_IMPLAUSIBLE, READING_TOO_LONG, OUT_OF_MEMORY.
 */
int scan_file(struct stream *stream, const char *path, const struct scan_wanted *wanted, struct scan *scan,
              struct error *error);
void scan_release(struct scan *scan);

/* Checks the CPU time spent on the header. Returns 0 to continue, -EBADMSG with
 * READING_TOO_LONG, or -ECANCELED with ASSOCIATION_ABORTED if the requestor has gone. */
int scan_check_time(struct scan *scan, const char *path, struct error *error);

/* An item header of encapsulated pixel data: Item or Sequence Delimitation. */
struct scan_item {
    bool is_delimiter;
    uint32_t length;
};

/* Reads the item header at the stream's position. Returns 0, -ENODATA at the end of the file,
 * -EBADMSG if it is not an item, or -errno. */
int scan_pixel_item(struct stream *stream, struct scan_item *item);

/* Fills the error for a failure of a stream function while reading `what`. */
int scan_error(const struct stream *stream, const char *path, int rc, const char *what, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
