/*
 * fragments.h - encapsulated pixel data: where the pieces of each frame are; private to dicom/.
 */
#ifndef NOCTULE_DICOM_FRAGMENTS_H
#define NOCTULE_DICOM_FRAGMENTS_H

#include "dicom/read/scan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fragment {
    int64_t offset; /* of its bytes, in the file */
    uint32_t length;
};

/* Frame i is made of fragments[first[i]] to fragments[first[i + 1] - 1], joined. */
struct fragments {
    int32_t count;
    struct fragment *list;
    int32_t frame_count;
    int32_t *first; /* frame_count + 1 */
};

/*
 * Indexes the pixel data at which the scan left the stream; the scan kept the Extended Offset Table
 * (7FE0,0001) if there is one. Frames are found by one fragment a frame, else by that table, else
 * by the Basic Offset Table, else by the codecs' start markers (PS3.5 A.4). Release with
 * fragments_release whatever the outcome. Codes: PIXELS_UNDECODABLE, FILE_TRUNCATED,
 * FILE_UNREADABLE, TAG_INVALID, OUT_OF_MEMORY.
 */
int fragments_index(struct stream *stream, const struct scan *scan, const char *path,
                    int32_t frame_count, struct fragments *fragments, struct error *error);
void fragments_release(struct fragments *fragments);

/* Bytes of one frame. */
size_t fragments_frame_size(const struct fragments *fragments, int32_t frame);

#ifdef __cplusplus
}
#endif
#endif
