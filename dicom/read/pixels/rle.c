#include "dicom/read/pixels/rle.h"
#include "dicom/value/value.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define HEADER_SIZE 64 /* the number of segments and 15 offsets, 32 bits each */

/* Returns false if the segment ends early or a run exceeds the frame. Bytes after the last pixel are padding. */
static bool
decode_runs(const uint8_t *at, const uint8_t *end, size_t count, uint8_t *to, size_t stride)
{
    while (count > 0) {
        if (at == end)
            return false;
        const uint8_t control = *at++;
        if (control == 128)
            continue;
        const bool literal = control < 128;
        const size_t run = literal ? control + 1u : 257u - control;
        const size_t needed = literal ? run : 1;
        if (run > count || needed > (size_t)(end - at))
            return false;
        if (stride == 1 && literal)
            memcpy(to, at, run);
        else if (stride == 1)
            memset(to, at[0], run);
        else
            for (size_t i = 0; i < run; i++)
                to[i * stride] = at[literal ? i : 0];
        at += needed;
        to += run * stride;
        count -= run;
    }
    return true;
}

const char *
rle_decode_segment(const uint8_t *bytes, size_t size, size_t segments, size_t segment, size_t count, uint8_t *to,
                   size_t stride)
{
    if (size < HEADER_SIZE || value_u32(bytes, false) != segments)
        return "its RLE header does not match the image";
    const uint8_t *offset = bytes + 4 + 4 * segment;
    const size_t start = value_u32(offset, false);
    const size_t end = segment + 1 < segments ? value_u32(offset + 4, false) : size;
    if (start < HEADER_SIZE || start > end || end > size)
        return "its RLE segments lie outside the frame";
    return decode_runs(bytes + start, bytes + end, count, to, stride) ? NULL : "its RLE runs do not fill the frame";
}

const char *
rle_decode(const uint8_t *bytes, size_t size, size_t bytes_per_pixel, size_t count, void *pixels)
{
    const char *why = NULL;
    /* The most significant byte comes first. */
    for (size_t k = 0; k < bytes_per_pixel && !why; k++) {
        const size_t place = __BYTE_ORDER == __LITTLE_ENDIAN ? bytes_per_pixel - 1 - k : k;
        why = rle_decode_segment(bytes, size, bytes_per_pixel, k, count, (uint8_t *)pixels + place, bytes_per_pixel);
    }
    return why;
}
