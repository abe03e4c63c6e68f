/* pmap_sample.h - a request to write a parametric map of the stack of seg_sample.h. */
#ifndef NOCTULE_PMAP_SAMPLE_H
#define NOCTULE_PMAP_SAMPLE_H

#include "dicom/objects/pmap/pmap.h"
#include "tests/unit/dicom/seg_sample.h"

struct pmap_sample {
    struct seg_sample stack;
    uint8_t *codes;
    struct pmap_request request;
};

static inline int64_t
pmap_sample_codes(const struct seg_sample_shape *shape)
{
    return (int64_t)(shape->columns - 2) * (shape->rows - 2) * shape->planes;
}

/* Uses every code. Each voxel differs from its neighbours. */
static inline void
pmap_sample_make(struct pmap_sample *sample, const struct seg_sample_shape *shape)
{
    seg_sample_make(&sample->stack, shape);
    int64_t count = pmap_sample_codes(shape);
    sample->codes = malloc((size_t)count);
    if (!sample->codes)
        abort();
    for (int64_t i = 0; i < count; i++)
        sample->codes[i] = (uint8_t)(i * 101 + 7);
    sample->request = (struct pmap_request){
        .source = &sample->stack.request.source,
        .kind = "lbp",
        .quantity = {"LBP", CONCEPT_OWN_SCHEME, "Local binary pattern"},
        .explanation = "Local binary pattern",
        .codes = sample->codes,
        .series_description = "",
        .series_number = 1003,
    };
}

static inline void
pmap_sample_free(struct pmap_sample *sample)
{
    free(sample->codes);
    seg_sample_free(&sample->stack);
}

#endif
