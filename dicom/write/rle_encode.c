/* rle_encode.c - see rle_encode.h. Runs do not cross the ends of rows (PS3.5 G.3.1). */
#include "dicom/write/rle_encode.h"

#include <endian.h>
#include <string.h>

enum {
    HEADER_SIZE = 64, /* the number of segments and 15 offsets, 32 bits each */
    RUN_MAX = 128,    /* bytes of one run, of one byte or literal */
    RUN_WORTH = 3,    /* shorter runs do not end a literal one */
};

size_t
rle_encoded_max(const struct rle_frame *frame)
{
    const size_t row = frame->columns + (frame->columns + RUN_MAX - 1) / RUN_MAX;
    return HEADER_SIZE + frame->bytes_per_pixel * (frame->rows * row + 1);
}

/* Returns the number of bytes, up to RUN_MAX, that are equal to the first one. */
static size_t
run_length(const uint8_t *at, const uint8_t *end)
{
    const size_t max = (size_t)(end - at) < RUN_MAX ? (size_t)(end - at) : RUN_MAX;
    const uint64_t wanted = at[0] * UINT64_C(0x0101010101010101);
    size_t length = 0;
    while (length + 8 <= max) {
        uint64_t word;
        memcpy(&word, at + length, sizeof(word));
        if (word != wanted)
            break;
        length += 8;
    }
    while (length < max && at[length] == at[0])
        length++;
    return length;
}

/* Returns the end of the bytes that no run of equal ones is worth. */
static const uint8_t *
literal_end(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *limit = end - at < RUN_MAX ? end : at + RUN_MAX;
    while (at < limit && (end - at < RUN_WORTH || at[0] != at[1] || at[1] != at[2]))
        at++;
    return at;
}

static uint8_t *
encode_row(const uint8_t *at, const uint8_t *end, uint8_t *to)
{
    while (at < end) {
        const size_t run = run_length(at, end);
        if (run > 1) {
            *to++ = (uint8_t)(257 - run);
            *to++ = at[0];
            at += run;
            continue;
        }
        const uint8_t *literal = literal_end(at, end);
        const size_t length = (size_t)(literal - at);
        *to++ = (uint8_t)(length - 1);
        memcpy(to, at, length);
        to += length;
        at = literal;
    }
    return to;
}

/* Copies one byte of each pixel of a row. */
static const uint8_t *
pick_bytes(const struct rle_frame *frame, size_t row, size_t byte, uint8_t *picked)
{
    const uint8_t *from = frame->bytes + row * frame->columns * frame->bytes_per_pixel;
    if (frame->bytes_per_pixel == 1)
        return from;
    for (size_t x = 0; x < frame->columns; x++)
        picked[x] = from[x * frame->bytes_per_pixel + byte];
    return picked;
}

size_t
rle_encode(const struct rle_frame *frame, uint8_t *encoded)
{
    uint8_t picked[UINT16_MAX];
    uint32_t header[HEADER_SIZE / sizeof(uint32_t)] = {htole32((uint32_t)frame->bytes_per_pixel)};
    uint8_t *to = encoded + HEADER_SIZE;
    for (size_t k = 0; k < frame->bytes_per_pixel; k++) {
        /* The most significant byte of a sample, or the first sample, comes first. */
        const size_t byte = frame->bytes_per_pixel == 2 ? 1 - k : k;
        header[1 + k] = htole32((uint32_t)(to - encoded));
        for (size_t y = 0; y < frame->rows; y++) {
            const uint8_t *row = pick_bytes(frame, y, byte, picked);
            to = encode_row(row, row + frame->columns, to);
        }
        if ((to - encoded) % 2)
            *to++ = 0;
    }
    memcpy(encoded, header, sizeof(header));
    return (size_t)(to - encoded);
}
