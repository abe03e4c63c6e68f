/* gabor_cuda.cuh - the part of gabor_cuda.cu that spectral_cuda.cu calls. */
#ifndef NOCTULE_KERNELS_FILTER_GABOR_CUDA_CUH
#define NOCTULE_KERNELS_FILTER_GABOR_CUDA_CUH

#include "kernels/filter/gabor.h"
#include "kernels/filter/spectral_cuda.cuh"

/* Memory of a Gabor filter, for the largest plane. Pointers are to device memory, if not named host_. */
struct cuda_gabor {
    struct gabor_plan plan;
    int64_t chunk;                                 /* slices that are filtered together */
    int angles;                                    /* that are filtered together */
    int64_t rows, columns, back, transfer, pooled; /* values per slice, slice, slice and angle, angle, slice */
    struct gabor_plan *device_plan, *host_plan;    /* per plane */
    struct fft_value *roots[GABOR_PLANES][2], *host_roots[GABOR_PLANES][2]; /* with turns */
    int32_t *places[GABOR_PLANES][2], *host_places[GABOR_PLANES][2];
    double2 *row_memory, *column_memory, *back_memory;
    double *transfer_memory, *pooled_memory, *sums;
};

void cuda_gabor_size(struct cuda_gabor *own);
void cuda_gabor_place(const struct kernels_lane *lane, struct cuda_gabor *own, struct kernels_memory *memory);

/* Queues a filter of the input. */
int cuda_gabor_queue(struct cuda_lane *lane, struct cuda_gabor *own, const struct spectral_input *input, double step,
                     int32_t *codes, struct error *error);

#endif
