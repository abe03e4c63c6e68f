#include "dicom/read/pixels/rle.h"
#include "dicom/value/value.h"

#include <stdbool.h>
#include <string.h>

#define HEADER_SIZE 64 /* the number of segments and 15 offsets, 32 bits each */

/* Returns false if the segment ends early or a run exceeds the frame. Bytes after the last pixel are padding. */
static bool
decode_runs(const uint8_t *at, const uint8_t *end, unsigned shift, size_t count, uint16_t *samples)
{
    size_t done = 0;
    while (done < count) {
        if (at == end)
            return false;
        const uint8_t control = *at++;
        if (control == 128)
            continue;
        const bool literal = control < 128;
        const size_t run = literal ? control + 1u : 257u - control;
        const size_t needed = literal ? run : 1;
        if (run > count - done || needed > (size_t)(end - at))
            return false;
        if (literal)
            for (size_t i = 0; i < run; i++)
                samples[done + i] |= (uint16_t)(at[i] << shift);
        else
            for (size_t i = 0; i < run; i++)
                samples[done + i] |= (uint16_t)(at[0] << shift);
        at += needed;
        done += run;
    }
    return true;
}

const char *
rle_decode_segment(const uint8_t *bytes, size_t size, size_t segments, size_t segment, unsigned shift, size_t count,
                   uint16_t *samples)
{
    if (size < HEADER_SIZE || value_u32(bytes, false) != segments)
        return "its RLE header does not match the image";
    const uint8_t *offset = bytes + 4 + 4 * segment;
    const size_t start = value_u32(offset, false);
    const size_t end = segment + 1 < segments ? value_u32(offset + 4, false) : size;
    if (start < HEADER_SIZE || start > end || end > size)
        return "its RLE segments lie outside the frame";
    return decode_runs(bytes + start, bytes + end, shift, count, samples) ? NULL : "its RLE runs do not fill the frame";
}

const char *
rle_decode(const uint8_t *bytes, size_t size, size_t bytes_per_pixel, size_t count, uint16_t *samples)
{
    const char *why = NULL;
    memset(samples, 0, count * sizeof(*samples));
    /* The most significant byte comes first. */
    for (size_t k = 0; k < bytes_per_pixel && !why; k++)
        why = rle_decode_segment(bytes, size, bytes_per_pixel, k, 8 * (unsigned)(bytes_per_pixel - 1 - k), count,
                                 samples);
    return why;
}
