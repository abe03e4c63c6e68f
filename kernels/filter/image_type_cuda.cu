/* image_type_cuda.cu - image types on the GPU: a thread per item. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/filter/image_type_steps.h"

enum { IMAGE_TYPE_THREADS = 128 };

struct cuda_image_type {
    struct image_type_demand demand; /* first: requests are checked against it */
    struct image_type_plan plan;
    struct image_type_memory memory; /* of the device */
    double *values, *table;
    double *host_table, *host_responses;
};

static struct cuda_image_type *
cuda_image_type_state(const struct kernels_lane *lane)
{
    return (struct cuda_image_type *)kernels_state(lane, KERNELS_IMAGE_TYPE);
}

static __global__ void
image_type_items_of(const __grid_constant__ struct image_type_step step,
                    const __grid_constant__ struct image_type_memory memory, int64_t count)
{
    const int64_t item = (int64_t)blockIdx.x * IMAGE_TYPE_THREADS + threadIdx.x;

    if (item < count)
        image_type_item(&step, &memory, item);
}

static __global__ void
image_type_absent(double *responses, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * IMAGE_TYPE_THREADS + threadIdx.x;

    if (i < count)
        responses[i] = NAN;
}

static bool
cuda_image_type_needs(struct kernels_lane *lane, const void *demand)
{
    struct cuda_image_type *own = cuda_image_type_state(lane);

    own->demand = *(const struct image_type_demand *)demand;
    if (image_type_plan_make(&own->demand, &lane->extent, &own->plan)) /* a run refuses it */
        own->plan.count = 0;
    return true;
}

static void
cuda_image_type_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_image_type *own = cuda_image_type_state(lane);
    const size_t voxels = (size_t)image_voxels(&lane->extent);

    cuda_take(&memory->device, &own->values, voxels);
    cuda_take(&memory->device, &own->memory.at[IMAGE_TYPE_RESPONSES], voxels);
    for (int place = IMAGE_TYPE_FIRST; place <= IMAGE_TYPE_SECOND; place++)
        cuda_take(&memory->device, &own->memory.at[place], (size_t)own->plan.between);
    cuda_take(&memory->device, &own->table, IMAGE_TYPE_TABLE);
    cuda_take(&memory->host, &own->host_table, IMAGE_TYPE_TABLE);
}

static void
cuda_image_type_keep(struct kernels_lane *lane, struct kernels_memory *memory)
{
    cuda_take(&memory->host, &cuda_image_type_state(lane)->host_responses, (size_t)image_voxels(&lane->extent));
}

static unsigned
image_type_blocks(int64_t count)
{
    return (unsigned)((count + IMAGE_TYPE_THREADS - 1) / IMAGE_TYPE_THREADS);
}

static int
image_type_queue(struct cuda_lane *lane, struct cuda_image_type *own, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);

    for (int i = 0; i < own->plan.count && !own->plan.none; i++) {
        const int64_t count = image_type_items(&own->plan.steps[i]);

        image_type_items_of<<<image_type_blocks(count), IMAGE_TYPE_THREADS, 0, lane->work>>>(own->plan.steps[i],
                                                                                             own->memory, count);
        CUDA_LAUNCHED(device);
    }
    return 0;
}

static int
cuda_image_type_run(struct kernels_lane *base, const void *request, struct error *error)
{
    const struct image_type_task *task = (const struct image_type_task *)request;
    struct cuda_image_type *own = cuda_image_type_state(base);
    struct cuda_lane *lane = cuda_lane_of(base);
    const int64_t voxels = image_voxels(&base->extent);
    double *responses = own->memory.at[IMAGE_TYPE_RESPONSES];
    int rc;

    image_type_plan_set(&own->plan, task);
    CUDA_SEND(lane, own->values, task->request->values, (size_t)voxels);
    if (own->demand.options.kind == FILTER_PYRADIOMICS_LBP_3D) {
        image_type_table(&own->demand, own->host_table);
        CUDA_SEND(lane, own->table, own->host_table, IMAGE_TYPE_TABLE);
    }
    own->memory.values = own->values;
    own->memory.table = own->table;
    image_type_absent<<<image_type_blocks(voxels), IMAGE_TYPE_THREADS, 0, lane->work>>>(responses, voxels);
    CUDA_LAUNCHED(cuda_device_of(base));
    rc = image_type_queue(lane, own, error);
    if (rc)
        return rc;
    *task->responses = own->host_responses;
    /* The copy is last, since it may give up the turn. */
    return cuda_result_copy(lane, own->host_responses, responses, (size_t)voxels * sizeof(*responses), error);
}

const struct kernels_op cuda_image_type_op = {
    .name = "the image type",
    .state_size = sizeof(struct cuda_image_type),
    .transient = true,
    .needs = cuda_image_type_needs,
    .place = cuda_image_type_place,
    .run = cuda_image_type_run,
    .keep = cuda_image_type_keep,
};
