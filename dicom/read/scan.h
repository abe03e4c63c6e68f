/*
 * scan.h - the structural walk over a DICOM file up to its pixel data; private to dicom/.
 *
 * Every file goes through this before DCMTK sees a byte of it. The walk checks what a parser relies
 * on (lengths inside their parents and inside the file, sequence nesting of bounded depth: DCMTK
 * recurses), finds where the pixel data start, and gathers the top-level elements that the caller
 * wants, so that DCMTK parses those alone. Icons, blobs of vendors and the like are never parsed.
 */
#ifndef NOCTULE_DICOM_SCAN_H
#define NOCTULE_DICOM_SCAN_H

#include "dicom/dicom.h"
#include "dicom/read/stream.h"
#include "dicom/value/transfer_syntax.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SCAN_MAX_DEPTH         32
#define SCAN_MAX_KEPT          (128 << 20)
#define SCAN_MAX_PRIVATE       1024

#define SCAN_TAG_FLOAT_PIXELS  0x7FE00008u
#define SCAN_TAG_DOUBLE_PIXELS 0x7FE00009u
#define SCAN_TAG_PIXELS        0x7FE00010u

struct scan {
    char transfer_syntax_uid[DICOM_UID_SIZE];
    char media_class_uid[DICOM_UID_SIZE]; /* Media Storage SOP Class UID, "" when absent */
    const struct transfer_syntax *syntax; /* NULL: unknown; walked as explicit little endian */
    bool has_preamble;
    bool implicit_vr; /* of the data set as it really is: some senders mislabel it */
    bool big_endian;

    uint8_t *kept; /* the wanted elements, in file order, in the encoding of the data set */
    size_t kept_size;

    uint32_t pixel_tag;   /* 0 when the file has no pixel data */
    char pixel_vr[3];     /* "" in implicit VR */
    bool encapsulated;    /* undefined length */
    int64_t pixel_offset; /* of the value, in the file (in the inflated bytes when deflated) */
    int64_t pixel_length; /* -1 when encapsulated */
};

/* The elements to keep. Both lists are ascending. */
struct scan_wanted {
    const uint32_t *tags;
    size_t tag_count;
    /* Private elements in whatever block they stand, (gggg,xxee) as gggg00ee; the creators of their
     * groups are kept with them. What is longer than SCAN_MAX_PRIVATE is none of them. */
    const uint32_t *private_tags;
    size_t private_count;
    /* Is told what the elements before the pixel data hold, in a form that does not depend on how
     * they are written (dicom_compare); or NULL. */
    stream_visit *content;
    void *context;
};

/*
 * Walks the file from its first byte to the start of the pixel data (where the stream then stands)
 * or to the end. Release with scan_release whatever the outcome. Codes: FILE_EMPTY, NOT_DICOM, FILE_TRUNCATED, FILE_UNREADABLE, TAG_MISSING, TAG_INVALID,
 * SIZE_IMPLAUSIBLE, OUT_OF_MEMORY.
 */
int scan_file(struct stream *stream, const char *path, const struct scan_wanted *wanted,
              struct scan *scan, struct error *error);
void scan_release(struct scan *scan);

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
