#include "tests/bench/hong2018.cuh"

#include "tests/bench/gpu_bench.cuh"

#include <algorithm>
#include <cstdlib>

enum { SHARED = 48 << 10, BLOCKS_PER_PROCESSOR = 2 };

struct slab {
    int64_t first, end; /* rows of first pixels */
};

static __device__ bool
pair_of(const hong2018 &run, int64_t pixel, int *pair)
{
    int64_t x = pixel % run.width + run.dx, y = pixel / run.width + run.dy;

    if (x < 0 || y < 0 || x >= run.width || y >= run.height)
        return false;
    *pair = run.image[pixel] * run.levels / 256 * run.levels + run.image[y * run.width + x] * run.levels / 256;
    return true;
}

static __global__ void
vote_globally(const hong2018 run)
{
    int64_t pixel = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int pair;

    if (pixel < run.width * run.height && pair_of(run, pixel, &pair))
        atomicAdd(&run.counts[pair], 1u);
}

static __global__ void
vote_in_copies(const hong2018 run, const slab rows, int copies)
{
    extern __shared__ uint32_t sub_glcm[];
    const int size = run.levels * run.levels;
    const int64_t step = (int64_t)gridDim.x * blockDim.x, end = rows.end * run.width;

    for (int i = (int)threadIdx.x; i < size * copies; i += (int)blockDim.x)
        sub_glcm[i] = 0;
    __syncthreads();
    for (int64_t pixel = rows.first * run.width + (int64_t)blockIdx.x * blockDim.x + threadIdx.x; pixel < end;
         pixel += step) {
        int pair;

        if (pair_of(run, pixel, &pair))
            atomicAdd(&sub_glcm[(int)threadIdx.x % copies * size + pair], 1u);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < size; i += (int)blockDim.x) {
        uint32_t sum = 0;

        for (int copy = 0; copy < copies; copy++)
            sum += sub_glcm[copy * size + i];
        atomicAdd(&run.counts[i], sum);
    }
}

static size_t
counts_size(const hong2018 &run)
{
    return (size_t)run.levels * (size_t)run.levels * sizeof(uint32_t);
}

static void
queue_copies(const hong2018 &run, const slab &rows, cudaStream_t stream)
{
    const unsigned threads = run.levels == 8 ? 1024 : 512;
    const int copies = (int)(SHARED / BLOCKS_PER_PROCESSOR / counts_size(run));
    const int64_t wanted = ((rows.end - rows.first) * run.width + threads - 1) / threads;
    int device, processors;

    GPU_BENCH_TRY(cudaGetDevice(&device));
    GPU_BENCH_TRY(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    const int64_t blocks = std::min<int64_t>(wanted, (int64_t)processors * (int64_t)(2048 / threads));
    vote_in_copies<<<(unsigned)blocks, threads, (size_t)copies * counts_size(run), stream>>>(run, rows, copies);
}

void
hong2018_scheme_1(const hong2018 &run, cudaStream_t stream)
{
    const int threads = 256;
    const int64_t blocks = (run.width * run.height + threads - 1) / threads;

    GPU_BENCH_TRY(cudaMemsetAsync(run.counts, 0, counts_size(run), stream));
    vote_globally<<<(unsigned)blocks, threads, 0, stream>>>(run);
}

void
hong2018_scheme_2(const hong2018 &run, cudaStream_t stream)
{
    GPU_BENCH_TRY(cudaMemsetAsync(run.counts, 0, counts_size(run), stream));
    queue_copies(run, {0, run.height}, stream);
}

/* Slab i has its own rows and those of the halo, because pairs may reach into the next slab. */
void
hong2018_scheme_3(const hong2018 &run, const uint8_t *pinned, int slabs, uint8_t *image, const cudaStream_t streams[2])
{
    const int64_t halo = std::abs(run.dy);

    GPU_BENCH_TRY(cudaMemsetAsync(run.counts, 0, counts_size(run), streams[0]));
    GPU_BENCH_TRY(cudaStreamSynchronize(streams[0]));
    for (int i = 0; i < slabs; i++) {
        const slab rows = {run.height * i / slabs, run.height * (i + 1) / slabs};
        const int64_t first = std::max<int64_t>(0, rows.first - (run.dy < 0 ? halo : 0));
        const int64_t end = std::min(run.height, rows.end + (run.dy > 0 ? halo : 0));

        GPU_BENCH_TRY(cudaMemcpyAsync(image + first * run.width, pinned + first * run.width,
                                      (size_t)((end - first) * run.width), cudaMemcpyHostToDevice, streams[i % 2]));
        queue_copies(run, rows, streams[i % 2]);
    }
    for (int i = 0; i < 2; i++)
        GPU_BENCH_TRY(cudaStreamSynchronize(streams[i]));
}
