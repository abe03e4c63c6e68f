/* resample_cuda.cu - resamples a volume on the GPU: the operation, its memory, its tables and
 * results. The kernels are in resample_pass.cu and resample_spline.cu. */
#include "kernels/resample/resample_cuda.cuh"

#include <algorithm>

struct cuda_resample {
    struct resample_demand demand; /* first: requests are checked against it */
    struct resample_tables host, device;
    void *voxels, *host_voxels;
    struct image_rescale *rescales;       /* for RESAMPLE_RESCALED, per plane */
    double *rescaled;                     /* the volume in rows of whole spans */
    struct resample_between_axes between; /* order 3 */
};

static struct cuda_resample *
cuda_resample_state(const struct kernels_lane *lane)
{
    return (struct cuda_resample *)kernels_state(lane, KERNELS_RESAMPLE);
}

/* Returns the doubles per row of a rescaled volume. Rows of order 3 are whole spans of 16 (resample_lines.cuh). */
static int64_t
cuda_resample_pitch(const struct kernels_lane *lane)
{
    const int64_t columns = lane->extent.columns;

    return cuda_resample_state(lane)->demand.order == RESAMPLE_CUBIC ? (columns + 15) / 16 * 16 : columns;
}

static bool
cuda_resample_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_resample *own = cuda_resample_state(lane);

    own->demand = *(const struct resample_demand *)demand;
    return resample_fits(lane, &own->demand) &&
           (own->demand.order != RESAMPLE_CUBIC || resample_spline_fits(&lane->extent, &own->demand));
}

static void
cuda_resample_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_resample *own = cuda_resample_state(lane);
    const struct image_extent *to = &own->demand.extent;
    const size_t voxels = (size_t)image_voxels(to);

    resample_place_tables(&memory->host, lane, &own->demand, &own->host);
    resample_place_tables(&memory->device, lane, &own->demand, &own->device);
    own->host_voxels = kernels_take(&memory->host, voxels, resample_voxel_size(&own->demand));
    own->voxels = kernels_take(&memory->device, voxels, resample_voxel_size(&own->demand));
    if (own->demand.values == RESAMPLE_RESCALED) {
        cuda_take(&memory->device, &own->rescales, (size_t)lane->extent.slices);
        cuda_take(&memory->device, &own->rescaled, (size_t)(cuda_resample_pitch(lane) * lane->extent.rows),
                  (size_t)lane->extent.slices);
    }
    if (own->demand.order == RESAMPLE_CUBIC)
        resample_place_spline(&memory->device, &lane->extent, to, &own->between);
}

/* If all planes share taps, only one set is stored. */
static size_t
cuda_resample_taps(const struct cuda_lane *lane, int axis)
{
    const struct cuda_resample *own = cuda_resample_state(&lane->base);
    const size_t size = resample_table_size(&lane->base, &own->demand, axis);

    return axis < 2 && own->host.step[axis] == 0 ? size / (size_t)lane->base.extent.slices : size;
}

static int
cuda_resample_send_tables(struct cuda_lane *lane, struct error *error)
{
    const struct cuda_resample *own = cuda_resample_state(&lane->base);
    const struct resample_tables *host = &own->host, *device = &own->device;

    for (int axis = 0; axis < 3; axis++)
        if (own->demand.order == RESAMPLE_CUBIC)
            CUDA_SEND(lane, device->weights[axis], host->weights[axis],
                      resample_table_size(&lane->base, &own->demand, axis));
        else
            CUDA_SEND(lane, device->taps[axis], host->taps[axis], cuda_resample_taps(lane, axis));
    if (own->demand.order == RESAMPLE_CUBIC)
        CUDA_SEND(lane, device->starts, host->starts, 3);
    return 0;
}

/* Converts rows of the volume, one per block at a time. */
template <typename Value>
__global__ void
resample_rescale(const Value *voxels, const struct image_extent extent, const struct image_rescale *rescales,
                 int64_t pitch, double *rescaled)
{
    for (int64_t row = blockIdx.x; row < extent.rows * extent.slices; row += gridDim.x) {
        const struct image_rescale rescale = rescales[row / extent.rows];

        for (int64_t x = threadIdx.x; x < extent.columns; x += blockDim.x)
            rescaled[row * pitch + x] =
                __dadd_rn(__dmul_rn(rescale.slope, (double)voxels[row * extent.columns + x]), rescale.intercept);
    }
}

int
cuda_resample_begin(struct kernels_lane *base, const struct resample_request *request, struct resample_job *job,
                    struct error *error)
{
    struct cuda_resample *own = cuda_resample_state(base);

    resample_fill_tables(request, &own->host);
    *job = {};
    job->from = base->extent;
    job->to = own->demand.extent;
    job->tables = own->device;
    for (int axis = 0; axis < 2; axis++)
        job->tables.step[axis] = own->host.step[axis];
    job->voxels = cuda_lane_of(base)->device_voxels;
    job->resampled = own->voxels;
    job->pixel = own->demand.pixel;
    job->values = own->demand.values;
    job->outside = request->outside;
    job->pitch = base->extent.columns;
    if (own->demand.values == RESAMPLE_RESCALED) {
        job->pitch = cuda_resample_pitch(base);
        if (!request->samples)
            CUDA_SEND(cuda_lane_of(base), own->rescales, request->rescales, (size_t)base->extent.slices);
        else
            CUDA_TRY(cuda_device_of(base),
                     cudaMemcpy2DAsync(own->rescaled, (size_t)job->pitch * sizeof(double), request->samples,
                                       (size_t)base->extent.columns * sizeof(double),
                                       (size_t)base->extent.columns * sizeof(double),
                                       (size_t)(base->extent.rows * base->extent.slices), cudaMemcpyHostToDevice,
                                       cuda_lane_of(base)->work));
        job->has_samples = request->samples != NULL;
    }
    return cuda_resample_send_tables(cuda_lane_of(base), error);
}

int
cuda_resample_queue(struct kernels_lane *base, const struct resample_job *given, struct error *error)
{
    const struct cuda_resample *own = cuda_resample_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    struct resample_job rescaled = *given;
    const struct resample_job *const job = &rescaled;

    if (given->has_samples)
        rescaled.voxels = own->rescaled;
    else if (given->values == RESAMPLE_RESCALED) {
        const unsigned blocks = (unsigned)std::min(given->from.rows * given->from.slices, (int64_t)1 << 20);

        resample_typed(base->pixel, [&](auto value) {
            typedef decltype(value) Value;

            resample_rescale<Value><<<blocks, 128, 0, lane->work>>>((const Value *)given->voxels, given->from,
                                                                    own->rescales, given->pitch, own->rescaled);
        });
        CUDA_LAUNCHED(cuda_device_of(base));
        rescaled.voxels = own->rescaled;
    }
    if (own->demand.order == RESAMPLE_CUBIC)
        return resample_queue_spline(lane, job, &own->between, error);
    return resample_queue_pass(lane, job, own->demand.order, error);
}

static int
cuda_resample_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct resample_run *run = (const struct resample_run *)given;
    const struct cuda_resample *own = cuda_resample_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    struct cuda_device *device = cuda_device_of(base);
    struct resample_job job;
    int rc = cuda_resample_begin(base, run->request, &job, error);

    if (!rc)
        rc = cuda_resample_queue(base, &job, error);
    if (rc)
        return rc;
    CUDA_TRY(device, cudaMemcpyAsync(own->host_voxels, own->voxels,
                                     (size_t)image_voxels(&job.to) * resample_voxel_size(&own->demand),
                                     cudaMemcpyDeviceToHost, lane->work));
    CUDA_TRY(device, cudaStreamSynchronize(lane->work));
    *run->voxels = own->host_voxels;
    return 0;
}

const struct kernels_op cuda_resample_op = {
    .name = "resampling",
    .state_size = sizeof(struct cuda_resample),
    .needs = cuda_resample_needs,
    .place = cuda_resample_place,
    .run = cuda_resample_run,
};
