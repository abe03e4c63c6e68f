/*
 * texture_patterns_cpu.c - local patterns (paper 004) on the CPU.
 */
#include "backend_cpu.h"

#include <string.h>

enum { WHOLE = 1000000 };

/* Neighbours in the order of their bits. */
static const int beside[8] = {1, 1, 0, -1, -1, -1, 0, 1};
static const int below[8] = {0, -1, -1, -1, 0, 1, 1, 1};

struct job {
    struct kernels_lane *lane;
    const struct texture_patterns *request;
};

static int32_t
stored(const struct kernels_lane *lane, const void *voxels, int64_t i)
{
    switch (lane->pixel) {
    case KERNELS_UINT8:
        return ((const uint8_t *)voxels)[i];
    case KERNELS_INT16:
        return ((const int16_t *)voxels)[i];
    case KERNELS_UINT16:
        return ((const uint16_t *)voxels)[i];
    }
    return 0;
}

struct window {
    int32_t c, largest, n[8];
};

static int
lbp(const struct window *w, int i)
{
    return w->n[i] >= w->c;
}

static int
tlbap(const struct texture_patterns *request, const struct window *w, int i)
{
    int64_t n = (int64_t)w->n[i] * WHOLE;
    int64_t threshold = (int64_t)w->largest * request->threshold_millionths;

    if (request->strict)
        return w->n[i] > w->c && n > threshold;
    return w->n[i] >= w->c && n >= threshold;
}

static int
lanadp(const struct texture_patterns *request, const struct window *w, int i)
{
    int32_t after = w->n[(i + 1) % 8] + w->n[(i + 2) % 8];
    int32_t before = w->n[(i + 7) % 8] + w->n[(i + 6) % 8];
    int32_t v = 2 * w->n[i];

    if (request->integer_average) {
        after = after / 2 * 2;
        before = before / 2 * 2;
    }
    return (after >= v && before >= v) || (after <= v && before <= v);
}

static void
codes_of(const struct texture_patterns *request, const struct window *w,
         uint8_t codes[TEXTURE_PATTERNS])
{
    memset(codes, 0, TEXTURE_PATTERNS);
    for (int i = 0; i < 8; i++) {
        codes[TEXTURE_LBP] |= (uint8_t)(lbp(w, i) << i);
        codes[TEXTURE_TLBAP] |= (uint8_t)(tlbap(request, w, i) << i);
        codes[TEXTURE_LANADP] |= (uint8_t)(lanadp(request, w, i) << i);
    }
}

static void
keep(const struct job *job, int64_t x, int64_t row, int64_t at,
     const uint8_t codes[TEXTURE_PATTERNS])
{
    const struct texture_patterns *request = job->request;
    int64_t words = (job->lane->extent.columns + 63) / 64;

    for (int p = 0; p < TEXTURE_PATTERNS; p++) {
        if (request->maps[p])
            request->maps[p][at] = codes[p];
        for (size_t r = 0; r < request->region_count; r++) {
            const uint64_t *region = request->regions[r];
            uint64_t *bin =
                &request->histograms[(r * TEXTURE_PATTERNS + (size_t)p) * 256 + codes[p]];

            if (request->wanted[p] && (!region || (region[row * words + x / 64] >> x % 64 & 1)))
                __atomic_fetch_add(bin, 1, __ATOMIC_RELAXED);
        }
    }
}

static void
slice_patterns(void *context, int64_t z)
{
    const struct job *job = context;
    struct kernels_extent extent = job->lane->extent;
    const void *voxels = cpu_lane_of(job->lane)->voxels.memory;
    uint8_t codes[TEXTURE_PATTERNS];

    for (int64_t y = 1; y + 1 < extent.rows; y++)
        for (int64_t x = 1; x + 1 < extent.columns; x++) {
            int64_t row = z * extent.rows + y, i = row * extent.columns + x;
            struct window w = {.c = stored(job->lane, voxels, i)};

            w.largest = w.c;
            for (int k = 0; k < 8; k++) {
                w.n[k] = stored(job->lane, voxels, i + below[k] * extent.columns + beside[k]);
                w.largest = w.n[k] > w.largest ? w.n[k] : w.largest;
            }
            codes_of(job->request, &w, codes);
            keep(job, x, row, (z * (extent.rows - 2) + y - 1) * (extent.columns - 2) + x - 1,
                 codes);
        }
}

int
cpu_patterns_run(struct kernels_lane *lane, const struct texture_patterns *request, char *reason,
                 size_t reason_size)
{
    struct job job = {lane, request};

    (void)reason;
    (void)reason_size;
    if (request->region_count > 0)
        memset(request->histograms, 0,
               request->region_count * TEXTURE_PATTERNS * 256 * sizeof(*request->histograms));
    cpu_pool_for(cpu_device_of(lane)->pool, lane->extent.slices, slice_patterns, &job);
    return 0;
}
