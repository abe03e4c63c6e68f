#include "tests/bench/masur2022.cuh"

enum { EDGE = 16, HALO = EDGE + 2 };

static __constant__ int power2[9] = {8, 4, 2, 16, 0, 1, 32, 64, 128};
static __constant__ int power[8] = {1, 2, 4, 8, 16, 32, 64, 128};

/* Computes a code from 3 x 3 pixels in global or shared memory, with `pitch` bytes per row. */
static __device__ uint8_t
tlbap_code(const uint8_t *centre, int pitch, int threshold)
{
    int max = centre[-pitch], code = 0, k = 0;

    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++)
            if (centre[y * pitch + x] > max)
                max = centre[y * pitch + x];
    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++, k++) {
            int pixel = centre[y * pitch + x];

            if (pixel > *centre && (int64_t)pixel * 1000000 > (int64_t)max * threshold)
                code += power2[k];
        }
    return (uint8_t)code;
}

static __device__ int
circular(int index)
{
    return (index + 8) % 8;
}

static __device__ uint8_t
lanadp_code(const uint8_t *centre, int pitch)
{
    const int mapping[8] = {centre[1],  centre[1 - pitch], centre[-pitch], centre[-pitch - 1],
                            centre[-1], centre[pitch - 1], centre[pitch],  centre[pitch + 1]};
    int code = 0;

    for (int i = 0; i < 8; i++) {
        int value = mapping[i];
        int avg1 = (mapping[circular(i + 1)] + mapping[circular(i + 2)]) / 2;
        int avg2 = (mapping[circular(i - 1)] + mapping[circular(i - 2)]) / 2;

        if ((avg1 >= value && avg2 >= value) || (avg1 <= value && avg2 <= value))
            code += power[i];
    }
    return (uint8_t)code;
}

/* Algorithm 3: each thread copies its own pixel; those of the edge also copy the pixels beyond it. */
static __device__ const uint8_t *
bring(const masur2022 &run, const uint8_t *image, int x, int y, uint8_t tile[HALO][HALO])
{
    for (int dy = threadIdx.y == 0 ? -1 : 0; dy <= (threadIdx.y == EDGE - 1 ? 1 : 0); dy++)
        for (int dx = threadIdx.x == 0 ? -1 : 0; dx <= (threadIdx.x == EDGE - 1 ? 1 : 0); dx++)
            if (x + dx < run.width && y + dy < run.height)
                tile[(int)threadIdx.y + 1 + dy][(int)threadIdx.x + 1 + dx] =
                    image[(int64_t)(y + dy) * run.width + x + dx];
    __syncthreads();
    return &tile[threadIdx.y + 1][threadIdx.x + 1];
}

template <bool SHARED, bool LANADP>
static __global__ void
find_codes(const masur2022 run)
{
    __shared__ uint8_t tile[HALO][HALO];
    const int x = (int)(blockIdx.x * EDGE + threadIdx.x) + 1;
    const int y = (int)(blockIdx.y * EDGE + threadIdx.y) + 1;
    const int64_t slice = (int64_t)blockIdx.z * run.width * run.height;
    const int64_t at = slice + (int64_t)y * run.width + x;
    const uint8_t *centre = SHARED ? bring(run, run.images + slice, x, y, tile) : run.images + at;
    const int pitch = SHARED ? (int)HALO : run.width;

    if (x >= run.width - 1 || y >= run.height - 1)
        return;
    if (LANADP)
        run.lanadp[at] = lanadp_code(centre, pitch);
    else
        run.tlbap[at] = tlbap_code(centre, pitch, run.threshold_millionths);
}

void
masur2022_run(const masur2022 &run, bool shared, cudaStream_t stream)
{
    const dim3 threads(EDGE, EDGE);
    const dim3 grid((unsigned)(run.width - 2 + EDGE - 1) / EDGE, (unsigned)(run.height - 2 + EDGE - 1) / EDGE,
                    (unsigned)run.slices);

    if (shared) {
        find_codes<true, false><<<grid, threads, 0, stream>>>(run);
        find_codes<true, true><<<grid, threads, 0, stream>>>(run);
    } else {
        find_codes<false, false><<<grid, threads, 0, stream>>>(run);
        find_codes<false, true><<<grid, threads, 0, stream>>>(run);
    }
}
