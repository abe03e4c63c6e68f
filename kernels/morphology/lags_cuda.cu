/* lags_cuda.cu - sums over pairs by distance, on the GPU: the transforms of lags_cpu.c. A block
 * transforms a few lines in shared memory. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/morphology/lags.h"
#include "kernels/morphology/residue.h"

enum {
    LAGS_THREADS = 256,
    LAGS_BLOCKS = 4096,
    LAGS_LINES = 8,         /* adjacent lines, if they fit */
    LAGS_SHARED = 48 << 10, /* bytes available on every GPU: a line of LAGS_LONGEST fits */
};

/* As in lags_cpu.c. */
enum { LAGS_OF_VOXELS, LAGS_OF_VALUES, LAGS_OF_SQUARES, LAGS_ARRAYS };

struct cuda_lags {
    size_t words; /* words of a region's bits */
    uint64_t *arrays[LAGS_ARRAYS];
    uint64_t *bits, *kept, *roots, *counts;
};

struct lags_job {
    const void *voxels;
    const uint64_t *bits; /* NULL: every voxel */
    const uint64_t *kept;
    size_t table; /* words from one table to the next; 0: one table */
    uint32_t bias, least;
    int64_t columns, rows, words;
    int64_t first[3], size[3], length[3], step[3];
    uint64_t *arrays[LAGS_ARRAYS];
};

/* As struct line_pass of lags_cpu.c. */
struct lags_pass {
    uint64_t *array;
    const uint64_t *roots;
    int64_t length, step, across, along; /* steps to the next point, the next line, and the next row of lines */
    int64_t lines, rows;
    int64_t first, left_out; /* lines from `first` on are `left_out` further */
    int64_t there;
    int32_t together; /* lines per block */
};

template <typename Value>
static __global__ void
__launch_bounds__(LAGS_THREADS) lags_fill(struct lags_job job)
{
    const int64_t voxels = job.size[0] * job.size[1] * job.size[2];

    for (int64_t i = (int64_t)blockIdx.x * LAGS_THREADS + threadIdx.x; i < voxels;
         i += (int64_t)gridDim.x * LAGS_THREADS) {
        const int64_t x = i % job.size[0], y = i / job.size[0] % job.size[1];
        const int64_t z = i / job.size[0] / job.size[1], column = job.first[0] + x;
        const int64_t row = (job.first[2] + z) * job.rows + job.first[1] + y;
        const uint64_t value = (uint32_t)((const Value *)job.voxels)[row * job.columns + column] ^ job.bias;
        const uint64_t *kept = job.kept + (size_t)(job.first[2] + z) * job.table;
        const bool has = (job.bits == NULL || (job.bits[row * job.words + column / 64] >> column % 64 & 1)) &&
                         (kept[value / 64] >> value % 64 & 1);
        const int64_t to = z * job.step[2] + y * job.step[1] + x;
        const uint64_t own = has ? value - job.least : 0;

        job.arrays[LAGS_OF_VOXELS][to] = has;
        job.arrays[LAGS_OF_VALUES][to] = own;
        job.arrays[LAGS_OF_SQUARES][to] = own * own;
    }
}

static __global__ void
lags_fill_roots(uint64_t *roots, int64_t length, uint64_t step)
{
    const int64_t i = (int64_t)blockIdx.x * LAGS_THREADS + threadIdx.x;

    if (i < length)
        roots[i] = residue_power(step, (uint64_t)i);
}

/* Returns the point that the butterflies take at a place: ordered by the last digit of its
 * number. */
static __device__ __forceinline__ int64_t
lags_order(int64_t place, int64_t length)
{
    int64_t point = 0, digit = 1;

    while (length > 1) {
        const int64_t radix = length == 3 ? 3 : 2;

        length /= radix;
        point += place / length * digit;
        place %= length;
        digit *= radix;
    }
    return point;
}

static __device__ __forceinline__ void
lags_butterflies_of_three(const struct lags_pass &pass, uint64_t *lines)
{
    const uint64_t third = pass.roots[pass.length / 3], other = pass.roots[pass.length / 3 * 2];

    for (int64_t k = threadIdx.x; k < pass.length / 3 * pass.together; k += LAGS_THREADS) {
        uint64_t *at = lines + k / pass.together * 3 * pass.together + k % pass.together;
        const uint64_t a = at[0], b = at[pass.together], c = at[2 * pass.together];

        at[0] = residue_add(a, residue_add(b, c));
        at[pass.together] = residue_add(a, residue_add(residue_multiply(b, third), residue_multiply(c, other)));
        at[2 * pass.together] = residue_add(a, residue_add(residue_multiply(b, other), residue_multiply(c, third)));
    }
    __syncthreads();
}

static __device__ __forceinline__ void
lags_butterflies_of_two(const struct lags_pass &pass, uint64_t *lines, int64_t half)
{
    for (int64_t k = threadIdx.x; k < pass.length / 2 * pass.together; k += LAGS_THREADS) {
        const int64_t pair = k / pass.together, i = pair % half;
        uint64_t *at = lines + (pair / half * 2 * half + i) * pass.together + k % pass.together;
        const uint64_t root = pass.roots[i * (pass.length / (2 * half))];
        const uint64_t a = at[0], b = residue_multiply(at[half * pass.together], root);

        at[0] = residue_add(a, b);
        at[half * pass.together] = residue_subtract(a, b);
    }
    __syncthreads();
}

/* Returns the beginning of a line. An excess line, which is not written back, gets that of the
 * last. */
static __device__ __forceinline__ uint64_t *
lags_line(const struct lags_pass &pass, int64_t line, int64_t row)
{
    line = line < pass.lines ? line : pass.lines - 1;
    line += line >= pass.first ? pass.left_out : 0;
    return pass.array + line * pass.across + row * pass.along;
}

static __global__ void
__launch_bounds__(LAGS_THREADS) lags_transform(struct lags_pass pass)
{
    extern __shared__ uint64_t lags_lines[];
    const int64_t groups = (pass.lines + pass.together - 1) / pass.together, points = pass.length * pass.together;

    for (int64_t i = blockIdx.x; i < groups * pass.rows; i += gridDim.x) {
        const int64_t line = i % groups * pass.together, row = i / groups;
        int64_t half = 1;

        for (int64_t k = threadIdx.x; k < points; k += LAGS_THREADS) {
            const int64_t point = lags_order(k / pass.together, pass.length);

            lags_lines[k] = point < pass.there ? lags_line(pass, line + k % pass.together, row)[point * pass.step] : 0;
        }
        __syncthreads();
        if (pass.length % 3 == 0) {
            lags_butterflies_of_three(pass, lags_lines);
            half = 3;
        }
        for (; half < pass.length; half *= 2)
            lags_butterflies_of_two(pass, lags_lines, half);
        for (int64_t k = threadIdx.x; k < points; k += LAGS_THREADS)
            if (line + k % pass.together < pass.lines)
                lags_line(pass, line + k % pass.together, row)[k / pass.together * pass.step] = lags_lines[k];
        __syncthreads();
    }
}

/* As lagging_multiply_slice. */
static __global__ void
__launch_bounds__(LAGS_THREADS)
    lags_multiply(struct lags_job job, uint64_t *first, const uint64_t *second, uint64_t inverse)
{
    const int64_t points = job.length[0] * job.length[1] * job.length[2];

    for (int64_t at = (int64_t)blockIdx.x * LAGS_THREADS + threadIdx.x; at < points;
         at += (int64_t)gridDim.x * LAGS_THREADS) {
        const int64_t x = at % job.length[0], y = at / job.length[0] % job.length[1];
        const int64_t z = at / job.length[0] / job.length[1];
        const int64_t back = residue_opposite(z, job.length[2]) * job.step[2] +
                             residue_opposite(y, job.length[1]) * job.step[1] + residue_opposite(x, job.length[0]);

        if (at <= back) {
            const uint64_t sum =
                residue_add(residue_multiply(first[at], second[back]), residue_multiply(second[at], first[back]));

            first[at] = first[back] = residue_multiply(sum, inverse);
        }
    }
}

/* As lagging_count_slice. */
static __global__ void
__launch_bounds__(LAGS_THREADS) lags_count(struct lags_job job, const uint64_t *array, uint64_t *counts)
{
    const int64_t voxels = job.size[0] * job.size[1] * job.size[2];

    for (int64_t i = (int64_t)blockIdx.x * LAGS_THREADS + threadIdx.x; i < voxels;
         i += (int64_t)gridDim.x * LAGS_THREADS) {
        const int64_t x = i % job.size[0], y = i / job.size[0] % job.size[1];
        const int64_t z = i / job.size[0] / job.size[1], left = residue_opposite(x, job.length[0]);
        const uint64_t *here = array + z * job.step[2] + y * job.step[1];
        const uint64_t *there = array + z * job.step[2] + residue_opposite(y, job.length[1]) * job.step[1];
        uint64_t sum = here[x] + (x > 0 ? here[left] : 0);

        sum += y > 0 ? there[x] + (x > 0 ? there[left] : 0) : 0;
        counts[i] = z > 0 ? sum : sum / 2;
    }
}

/* ------------------------------------------------------------------------------ on the host ---- */

static void
cuda_lags_place(struct kernels_lane *lane, struct kernels_memory *memory)
{
    struct cuda_lags *own = (struct cuda_lags *)kernels_state(lane, KERNELS_LAGS);
    const struct image_extent *extent = &lane->extent;
    const size_t points = (size_t)lags_points(extent);

    own->words = ((size_t)extent->columns + 63) / 64 * (size_t)(extent->rows * extent->slices);
    for (int i = 0; i < LAGS_ARRAYS; i++)
        cuda_take(&memory->device, &own->arrays[i], points);
    cuda_take(&memory->device, &own->counts, points); /* more than any box has */
    cuda_take(&memory->device, &own->bits, own->words);
    cuda_take(&memory->device, &own->kept, (size_t)extent->slices, morphology_table(lane->pixel));
    cuda_take(&memory->device, &own->roots, LAGS_LONGEST);
}

static int
lags_run_pass(struct cuda_lane *lane, struct lags_pass *pass, bool back, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const uint64_t root = residue_root((uint64_t)pass->length);
    const int64_t fit = LAGS_SHARED / (int64_t)sizeof(uint64_t) / pass->length;
    uint64_t *roots = ((struct cuda_lags *)kernels_state(&lane->base, KERNELS_LAGS))->roots;

    pass->roots = roots;
    pass->together = fit < LAGS_LINES ? (int32_t)fit : (int32_t)LAGS_LINES;
    lags_fill_roots<<<(unsigned)(pass->length / LAGS_THREADS + 1), LAGS_THREADS, 0, lane->work>>>(
        roots, pass->length, back ? residue_power(root, (uint64_t)pass->length - 1) : root);
    CUDA_LAUNCHED(device);
    lags_transform<<<LAGS_BLOCKS, LAGS_THREADS, (size_t)(pass->length * pass->together) * sizeof(uint64_t),
                     lane->work>>>(*pass);
    CUDA_LAUNCHED(device);
    return 0;
}

/* Returns the lines along an axis. `across` and `along` are the other two axes. */
static struct lags_pass
lags_pass_of(const struct lags_job *job, uint64_t *array, int axis, int across, int along, int64_t lines, int64_t rows,
             int64_t there)
{
    struct lags_pass pass = {};

    pass.array = array;
    pass.length = job->length[axis];
    pass.step = job->step[axis];
    pass.across = job->step[across];
    pass.along = job->step[along];
    pass.lines = pass.first = lines;
    pass.rows = rows;
    pass.there = there;
    return pass;
}

/* As array_transform. */
static int
lags_forth(struct cuda_lane *lane, const struct lags_job *job, uint64_t *array, struct error *error)
{
    const int64_t *size = job->size, *length = job->length;
    struct lags_pass passes[3] = {
        lags_pass_of(job, array, 0, 1, 2, size[1], size[2], size[0]),
        lags_pass_of(job, array, 1, 0, 2, length[0], size[2], size[1]),
        lags_pass_of(job, array, 2, 0, 1, length[0], length[1], size[2]),
    };
    int rc = 0;

    for (int i = 0; i < 3 && rc == 0; i++)
        rc = lags_run_pass(lane, &passes[i], false, error);
    return rc;
}

/* As array_transform_back. */
static int
lags_back(struct cuda_lane *lane, const struct lags_job *job, uint64_t *array, struct error *error)
{
    const int64_t *size = job->size, *length = job->length;
    struct lags_pass passes[3] = {
        lags_pass_of(job, array, 2, 0, 1, length[0], length[1], length[2]),
        lags_pass_of(job, array, 1, 0, 2, length[0], size[2], length[1]),
        lags_pass_of(job, array, 0, 1, 2, 2 * size[1] - 1, size[2], length[0]),
    };
    int rc = 0;

    passes[2].first = size[1];
    passes[2].left_out = length[1] - passes[2].lines;
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = lags_run_pass(lane, &passes[i], true, error);
    return rc;
}

/* Counts pairs of two arrays. Destroys the first. */
static int
lags_count_kind(struct cuda_lane *lane, const struct lags_job *job, uint64_t *first, const uint64_t *second,
                uint64_t *to, struct error *error)
{
    struct cuda_device *device = cuda_device_of(&lane->base);
    const uint64_t points = (uint64_t)(job->length[0] * job->length[1] * job->length[2]);
    const size_t voxels = (size_t)(job->size[0] * job->size[1] * job->size[2]);
    uint64_t *counts = ((struct cuda_lags *)kernels_state(&lane->base, KERNELS_LAGS))->counts;
    int rc;

    lags_multiply<<<LAGS_BLOCKS, LAGS_THREADS, 0, lane->work>>>(*job, first, second,
                                                                residue_power(points, RESIDUE_PRIME - 2));
    CUDA_LAUNCHED(device);
    rc = lags_back(lane, job, first, error);
    if (rc)
        return rc;
    lags_count<<<LAGS_BLOCKS, LAGS_THREADS, 0, lane->work>>>(*job, first, counts);
    CUDA_LAUNCHED(device);
    CUDA_FETCH(lane, to, counts, voxels);
    return 0;
}

static int
lags_count_kinds(struct cuda_lane *lane, const struct lags_job *job, uint64_t *counts, struct error *error)
{
    const size_t points = (size_t)(job->length[0] * job->length[1] * job->length[2]);
    const size_t voxels = (size_t)(job->size[0] * job->size[1] * job->size[2]);
    uint64_t *ones = job->arrays[LAGS_OF_VOXELS], *values = job->arrays[LAGS_OF_VALUES];
    uint64_t *squares = job->arrays[LAGS_OF_SQUARES];
    int rc = lags_count_kind(lane, job, squares, ones, counts + LAGS_SQUARES * voxels, error);

    if (rc)
        return rc;
    CUDA_TRY(cuda_device_of(&lane->base),
             cudaMemcpyAsync(squares, values, points * sizeof(*values), cudaMemcpyDeviceToDevice, lane->work));
    rc = lags_count_kind(lane, job, squares, ones, counts + LAGS_VALUES * voxels, error);
    if (rc == 0)
        rc = lags_count_kind(lane, job, values, values, counts + LAGS_PRODUCTS * voxels, error);
    if (rc == 0)
        rc = lags_count_kind(lane, job, ones, ones, counts + LAGS_PAIRS * voxels, error);
    return rc;
}

static int
cuda_lags_run(struct kernels_lane *base, const void *given, struct error *error)
{
    const struct lags_request *request = (const struct lags_request *)given;
    const struct morphology_region *region = &request->lags->region;
    struct cuda_lane *lane = cuda_lane_of(base);
    const struct cuda_lags *own = (const struct cuda_lags *)kernels_state(base, KERNELS_LAGS);
    struct lags_job job = {};
    int rc = 0;

    job.voxels = lane->device_voxels;
    job.bits = region->bits ? own->bits : NULL;
    job.kept = own->kept;
    job.table = region->table_count > 1 ? morphology_table(base->pixel) : 0;
    job.bias = base->pixel == IMAGE_INT16 ? 0x8000 : 0;
    job.least = request->lags->least;
    job.columns = base->extent.columns;
    job.rows = base->extent.rows;
    job.words = (base->extent.columns + 63) / 64;
    for (int i = 0; i < 3; i++) {
        job.first[i] = request->box.first[i];
        job.size[i] = request->box.size[i];
        job.length[i] = request->length[i];
        job.arrays[i] = own->arrays[i];
        job.step[i] = i == 0 ? 1 : job.step[i - 1] * job.length[i - 1];
    }

    if (region->bits)
        CUDA_SEND(lane, own->bits, region->bits, own->words);
    CUDA_SEND(lane, own->kept, region->kept, region->table_count * morphology_table(base->pixel));
    if (base->pixel == IMAGE_UINT8)
        lags_fill<uint8_t><<<LAGS_BLOCKS, LAGS_THREADS, 0, lane->work>>>(job);
    else
        lags_fill<uint16_t><<<LAGS_BLOCKS, LAGS_THREADS, 0, lane->work>>>(job);
    CUDA_LAUNCHED(cuda_device_of(base));
    for (int i = 0; i < LAGS_ARRAYS && rc == 0; i++)
        rc = lags_forth(lane, &job, job.arrays[i], error);
    if (rc == 0)
        rc = lags_count_kinds(lane, &job, request->counts, error);
    if (rc)
        return rc;
    CUDA_TRY(cuda_device_of(base), cudaStreamSynchronize(lane->work));
    return 0;
}

const struct kernels_op cuda_lags_op = {
    .name = "morphology (lags)",
    .state_size = sizeof(struct cuda_lags),
    .transient = true,
    .needs = kernels_op_asked,
    .place = cuda_lags_place,
    .run = cuda_lags_run,
};
