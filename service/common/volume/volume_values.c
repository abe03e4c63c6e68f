/* volume_values.c - see volume_file.h. */
#include "service/common/volume/volume_file.h"

#include <string.h>

/* The bytes as a value of the type. */
#define VALUE_OF(type)                                                                                                 \
    {                                                                                                                  \
        type value;                                                                                                    \
        memcpy(&value, raw, sizeof value);                                                                             \
        return (double)value;                                                                                          \
    }

size_t
volume_type_size(enum volume_type type)
{
    static const size_t sizes[] = {
        [VOLUME_UINT8] = 1, [VOLUME_INT8] = 1,   [VOLUME_UINT16] = 2, [VOLUME_INT16] = 2,   [VOLUME_UINT32] = 4,
        [VOLUME_INT32] = 4, [VOLUME_UINT64] = 8, [VOLUME_INT64] = 8,  [VOLUME_FLOAT32] = 4, [VOLUME_FLOAT64] = 8};
    return sizes[type];
}

double
volume_value(enum volume_type type, bool swapped, const void *bytes)
{
    const size_t size = volume_type_size(type);
    uint8_t turned[sizeof(double)];
    const uint8_t *raw = bytes;
    if (swapped) {
        for (size_t i = 0; i < size; i++)
            turned[i] = raw[size - 1 - i];
        raw = turned;
    }
    switch (type) {
    case VOLUME_UINT8:
        return *raw;
    case VOLUME_INT8:
        VALUE_OF(int8_t)
    case VOLUME_UINT16:
        VALUE_OF(uint16_t)
    case VOLUME_INT16:
        VALUE_OF(int16_t)
    case VOLUME_UINT32:
        VALUE_OF(uint32_t)
    case VOLUME_INT32:
        VALUE_OF(int32_t)
    case VOLUME_UINT64:
        VALUE_OF(uint64_t)
    case VOLUME_INT64:
        VALUE_OF(int64_t)
    case VOLUME_FLOAT32:
        VALUE_OF(float)
    case VOLUME_FLOAT64:
        VALUE_OF(double)
    }
    return 0;
}

/* Converts values of the type, in a loop of its own. */
#define VALUES_OF(type)                                                                                                \
    for (int64_t i = 0; i < count; i++) {                                                                              \
        type value;                                                                                                    \
        memcpy(&value, raw + (size_t)i * sizeof value, sizeof value);                                                  \
        values[i] = (double)value;                                                                                     \
    }                                                                                                                  \
    return;

void
volume_values(enum volume_type type, bool swapped, const void *bytes, int64_t count, double *values)
{
    const uint8_t *raw = bytes;
    if (!swapped)
        switch (type) { /* the others are rare */
        case VOLUME_UINT8:
            VALUES_OF(uint8_t)
        case VOLUME_INT16:
            VALUES_OF(int16_t)
        case VOLUME_UINT16:
            VALUES_OF(uint16_t)
        case VOLUME_FLOAT32:
            VALUES_OF(float)
        case VOLUME_FLOAT64:
            VALUES_OF(double)
        default:
            break;
        }
    for (int64_t i = 0; i < count; i++)
        values[i] = volume_value(type, swapped, raw + (size_t)i * volume_type_size(type));
}

int64_t
volume_run(const void *values, int64_t count, size_t size)
{
    /* Compares the bytes with those one value before, 32 at a time. */
    const uint8_t *bytes = values;
    const size_t end = (size_t)count * size;
    size_t at = size;
    if (count > 1 && bytes[0] != bytes[size]) /* most values of a measured image */
        return 1;
    for (uint64_t here[4], before[4]; at + sizeof here <= end; at += sizeof here) {
        memcpy(here, bytes + at, sizeof here);
        memcpy(before, bytes + at - size, sizeof before);
        if ((here[0] ^ before[0]) | (here[1] ^ before[1]) | (here[2] ^ before[2]) | (here[3] ^ before[3]))
            break;
    }
    while (at < end && bytes[at] == bytes[at - size])
        at++;
    return (int64_t)(at / size);
}
