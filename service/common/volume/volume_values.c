/* volume_values.c - see volume_values.h. */
#include "service/common/volume/volume_values.h"

#include <string.h>

#define SAME(raw) (raw)

/* Converts to `values`, by way of the unsigned type of the same size. */
#define VALUES_AS(type, unsigned_type, swap)                                                                           \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        unsigned_type raw;                                                                                             \
        type value;                                                                                                    \
        memcpy(&raw, at + i * (int64_t)sizeof raw, sizeof raw);                                                        \
        raw = swapped ? swap(raw) : raw;                                                                               \
        memcpy(&value, &raw, sizeof value);                                                                            \
        values[i] = (double)value;                                                                                     \
    }                                                                                                                  \
    break

size_t
volume_type_size(enum volume_type type)
{
    static const size_t sizes[] = {
        [VOLUME_UINT8] = 1, [VOLUME_INT8] = 1,   [VOLUME_UINT16] = 2, [VOLUME_INT16] = 2,   [VOLUME_UINT32] = 4,
        [VOLUME_INT32] = 4, [VOLUME_UINT64] = 8, [VOLUME_INT64] = 8,  [VOLUME_FLOAT32] = 4, [VOLUME_FLOAT64] = 8};
    return sizes[type];
}

void
volume_values(enum volume_type type, bool swapped, const void *bytes, int64_t count, double *values)
{
    const uint8_t *at = bytes;
    switch (type) {
    case VOLUME_UINT8:
        VALUES_AS(uint8_t, uint8_t, SAME);
    case VOLUME_INT8:
        VALUES_AS(int8_t, uint8_t, SAME);
    case VOLUME_UINT16:
        VALUES_AS(uint16_t, uint16_t, __builtin_bswap16);
    case VOLUME_INT16:
        VALUES_AS(int16_t, uint16_t, __builtin_bswap16);
    case VOLUME_UINT32:
        VALUES_AS(uint32_t, uint32_t, __builtin_bswap32);
    case VOLUME_INT32:
        VALUES_AS(int32_t, uint32_t, __builtin_bswap32);
    case VOLUME_UINT64:
        VALUES_AS(uint64_t, uint64_t, __builtin_bswap64);
    case VOLUME_INT64:
        VALUES_AS(int64_t, uint64_t, __builtin_bswap64);
    case VOLUME_FLOAT32:
        VALUES_AS(float, uint32_t, __builtin_bswap32);
    case VOLUME_FLOAT64:
        VALUES_AS(double, uint64_t, __builtin_bswap64);
    }
}
