/*
 * fragments.h - finds the fragments of each frame in encapsulated pixel data; private to dicom/.
 */
#ifndef NOCTULE_DICOM_READ_PIXELS_FRAGMENTS_H
#define NOCTULE_DICOM_READ_PIXELS_FRAGMENTS_H

#include "dicom/read/scan/scan_header.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fragment {
    int64_t offset; /* file offset of its bytes */
    uint32_t length;
};

/* Frame i consists of fragments[first[i]] to fragments[first[i + 1] - 1], joined. */
struct fragments {
    int32_t count;
    struct fragment *list;
    int32_t frame_count;
    int32_t *first; /* frame_count + 1 */
};

/*
 * Indexes the pixel data at the stream's position after the scan, which kept the Extended Offset
 * Table (7FE0,0001) if present. Finds frames, in this order, by one fragment per frame, by that
 * table, by the Basic Offset Table, or by the codecs' start markers (PS3.5 A.4). The caller must
 * call fragments_release in any case. Codes: PIXELS_UNDECODABLE, FILE_TRUNCATED, FILE_UNREADABLE,
 * TAG_INVALID, OUT_OF_MEMORY.
 */
int fragments_index(struct stream *stream, const struct scan *scan, const char *path, int32_t frame_count,
                    struct fragments *fragments, struct error *error);
void fragments_release(struct fragments *fragments);

/* Returns the bytes of one frame. */
size_t fragments_frame_size(const struct fragments *fragments, int32_t frame);

#ifdef __cplusplus
}
#endif
#endif
