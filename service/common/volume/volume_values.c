/* volume_values.c - see volume_values.h. */
#include "service/common/volume/volume_values.h"

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
