/* seg_pixels.c - pixel data of segmentation objects: bits, probabilities or labels, native or in RLE. */
#include "dicom/objects/seg/seg_writer.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t
seg_pixel_data_length(const struct seg_writer *w)
{
    const uint64_t bits = (uint64_t)w->plan.frames * (uint64_t)seg_plan_voxels(w->request) * seg_bits(w->request);
    return (bits + 15) / 16 * 2;
}

/* Sets the labels of the voxels with set bits in `word`. `at` is the label of its first voxel. */
static void
label_word(uint8_t *at, uint64_t word, uint16_t label, size_t size)
{
    const uint16_t stored = htole16(label);
    if (word == UINT64_MAX && size == 1) {
        memset(at, label, 64);
        return;
    }
    for (; word; word &= word - 1)
        memcpy(at + (size_t)__builtin_ctzll(word) * size, &stored, size);
}

/* Adds a segment's voxels to the labels of a plane. */
static void
label_segment(uint8_t *labels, const struct mask_plane *mask, uint16_t label, size_t size)
{
    const int64_t last = ((int64_t)mask->columns + 63) / 64 - 1;
    const uint64_t tail = mask->columns % 64 ? (UINT64_C(1) << mask->columns % 64) - 1 : UINT64_MAX;
    for (int32_t y = 0; y < mask->rows; y++) {
        const uint64_t *row = mask->words + y * mask->words_per_row;
        uint8_t *to = labels + (size_t)y * (size_t)mask->columns * size;
        for (int64_t i = 0; i <= last; i++) {
            const uint64_t word = i < last ? row[i] : row[i] & tail;
            if (word)
                label_word(to + (size_t)i * 64 * size, word, label, size);
        }
    }
}

/* Puts one frame of a LABELMAP or, in RLE, of a FRACTIONAL object. */
static int
put_bytes(struct seg_writer *w, int32_t segment, int32_t plane)
{
    const struct seg_request *request = w->request;
    const size_t voxels = (size_t)seg_plan_voxels(request);
    const size_t size = seg_bits(request) / 8;
    if (request->type == SEG_FRACTIONAL) {
        seg_fractional_fill(w->frame, seg_plan_map(request, segment, plane), (int64_t)voxels);
    } else {
        memset(w->frame, 0, voxels * size);
        for (int32_t s = 0; s < request->segment_count; s++) {
            const struct mask_plane mask = seg_plan_mask(request, s, plane);
            label_segment(w->frame, &mask, (uint16_t)(s + 1), size);
        }
    }
    if (stack_is_rle(&w->out)) {
        const struct geometry_stack *stack = request->source.stack;
        const struct rle_frame frame = {w->frame, size, (size_t)stack->columns, (size_t)stack->rows};
        return stack_put_rle_frame(&w->out, &frame);
    }
    byte_sink_append(&w->out.sink, w->frame, voxels * size);
    return 0;
}

int
seg_put_pixel_data(struct seg_writer *w)
{
    const struct seg_plan *plan = &w->plan;
    const enum seg_type type = w->request->type;
    const bool in_memory = type == SEG_LABELMAP || stack_is_rle(&w->out);
    struct mask_packer packer = {.sink = &w->out.sink};
    if (in_memory && !(w->frame = malloc((size_t)seg_plan_voxels(w->request) * seg_bits(w->request) / 8)))
        return -ENOMEM;
    stack_put_pixel_header(&w->out, seg_bits(w->request) == 16 ? "OW" : "OB", seg_pixel_data_length(w));
    const int64_t begun = w->out.sink.total;
    int rc = 0;
    for (int32_t s = 0; s < plan->segment_count; s++) {
        for (int32_t p = 0; p < plan->plane_count && !w->out.sink.error && !rc; p++) {
            if (!plan->present[(int64_t)s * plan->plane_count + p])
                continue;
            if (in_memory) {
                rc = put_bytes(w, s, p);
            } else if (type == SEG_FRACTIONAL) {
                seg_fractional_append(&w->out.sink, seg_plan_map(w->request, s, p), seg_plan_voxels(w->request));
            } else {
                const struct mask_plane mask = seg_plan_mask(w->request, s, p);
                mask_pack(&packer, &mask);
            }
        }
    }
    mask_pack_finish(&packer);
    stack_end_pixels(&w->out, begun);
    return rc;
}
