#include "dicom/objects/seg/seg_writer.h"

enum {
    BLOCK = 4096, /* voxels per test for an early end */
    RUN = 512,    /* fixed length, which spares vector loops their remainder */
};

bool
seg_fractional_any(const uint16_t *voxels, int64_t count)
{
    for (int64_t start = 0; start < count; start += BLOCK) {
        int64_t end = count - start < BLOCK ? count : start + BLOCK;
        uint8_t any = 0;
        for (int64_t i = start; i < end; i++)
            any |= seg_fractional_value(voxels[i]);
        if (any)
            return true;
    }
    return false;
}

static void
convert_run(uint8_t *restrict values, const uint16_t *restrict voxels)
{
    for (int i = 0; i < RUN; i++)
        values[i] = seg_fractional_value(voxels[i]);
}

void
seg_fractional_fill(uint8_t *values, const uint16_t *voxels, int64_t count)
{
    int64_t i = 0;
    for (; i + RUN <= count; i += RUN)
        convert_run(values + i, voxels + i);
    for (; i < count; i++)
        values[i] = seg_fractional_value(voxels[i]);
}

void
seg_fractional_append(struct byte_sink *sink, const uint16_t *voxels, int64_t count)
{
    while (count > 0) {
        int64_t part = count < BYTE_SINK_RESERVE ? count : BYTE_SINK_RESERVE;
        seg_fractional_fill(byte_sink_reserve(sink, (size_t)part), voxels, part);
        byte_sink_commit(sink, (size_t)part);
        voxels += part;
        count -= part;
    }
}
