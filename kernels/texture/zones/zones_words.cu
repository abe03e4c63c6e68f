/* zones_words.cu - words of levels: for 32 adjacent voxels the bit planes of their levels, a mask
 * of voxels with a level, and the starts of runs. One thread makes one word. */
#include "kernels/texture/turn_cuda.cuh"
#include "kernels/texture/zones/zones_cuda.cuh"

#include <type_traits>

namespace
{
enum {
    WORDS_ACROSS = 16, /* bytes per read, if rows are aligned */
    WORDS_BLOCKS = 3,  /* per multiprocessor */
    WORDS_SLICES = 65535,
};

/* Reads from a row, `left` bytes before its end, which is also the end of a unit. */
template <typename Unit, uint32_t Count>
__device__ __forceinline__ void
words_load(const unsigned char *from, uint32_t left, Unit (&units)[Count])
{
#pragma unroll
    for (uint32_t k = 0; k < Count; k++)
        units[k] = k * sizeof(Unit) < left ? __ldg((const Unit *)from + k) : Unit{};
}

template <typename Value, uint32_t Bits> struct words_maker {
    typedef typename std::conditional<Bits == ZONES_FEW_BITS, uint8_t, uint16_t>::type code;
    static constexpr bool copies = sizeof(Value) == 1;

    const struct zones_job &job;
    const uint16_t *levels; /* of stored values */
    const code *copy;       /* the block's own levels of 8-bit values, in bytes if these suffice */
    uint32_t x, y, z;       /* of the word, in the box */

    static constexpr uint32_t per_part = sizeof(uint32_t) / sizeof(Value), parts = ZONES_WIDTH / per_part;

    __device__ __forceinline__ size_t row() const
    {
        return (size_t)(job.first[2] + z) * job.volume.rows + job.first[1] + y;
    }

    /* Reads stored values, packed into 32-bit parts. */
    __device__ __forceinline__ void read(uint32_t values[parts]) const
    {
        const uint32_t column = job.first[0] + x * ZONES_WIDTH;
        const size_t pitch = job.volume.columns * sizeof(Value);
        const unsigned char *from = (const unsigned char *)job.volume.voxels + row() * pitch + column * sizeof(Value);
        const uint32_t left = (uint32_t)(pitch - column * sizeof(Value));

        if (pitch % WORDS_ACROSS == 0) {
            uint4 quads[parts / 4];

            words_load(from, left, quads);
#pragma unroll
            for (uint32_t k = 0; k < parts / 4; k++) {
                values[4 * k] = quads[k].x;
                values[4 * k + 1] = quads[k].y;
                values[4 * k + 2] = quads[k].z;
                values[4 * k + 3] = quads[k].w;
            }
        } else if (pitch % sizeof(uint32_t) == 0) {
            uint32_t words[parts];

            words_load(from, left, words);
#pragma unroll
            for (uint32_t k = 0; k < parts; k++)
                values[k] = words[k];
        } else {
            Value single[ZONES_WIDTH];

            words_load(from, left, single);
#pragma unroll
            for (uint32_t k = 0; k < parts; k++) {
                values[k] = 0;
#pragma unroll
                for (uint32_t i = 0; i < per_part; i++)
                    values[k] |= (uint32_t)single[k * per_part + i] << 8 * sizeof(Value) * i;
            }
        }
    }

    __device__ __forceinline__ zones_word<Bits> make() const
    {
        zones_word<Bits> word = {};
        uint32_t values[parts], codes[8] = {}, planes[8], valid = 0;
        const uint32_t left = job.columns - x * ZONES_WIDTH;
        uint32_t within = left < ZONES_WIDTH ? (1u << left) - 1 : ~0u; /* in the region and the box */

        if (job.volume.region)
            within &= ((const uint32_t *)(job.volume.region +
                                          row() * job.volume.words_per_row))[job.first[0] / ZONES_WIDTH + x];
        if (!within)
            return word;
        read(values);
#pragma unroll
        for (uint32_t i = 0; i < ZONES_WIDTH; i++) {
            const uint32_t value = values[i / per_part] >> 8 * sizeof(Value) * (i % per_part) & (Value) ~(Value)0;
            const uint32_t level = copies ? copy[value] : __ldg(&levels[value ^ job.volume.bias]);

            codes[i / 4] |= (level & 0xFF) << 8 * (i % 4);
            if (Bits != ZONES_FEW_BITS)
                valid |= level > 0 ? 1u << i : 0;
        }
        const uint32_t even[4] = {codes[0], codes[2], codes[4], codes[6]},
                       odd[4] = {codes[1], codes[3], codes[5], codes[7]};

        turn_bytes(even, planes);
        turn_bytes(odd, planes + 4);
        turn_bits(planes);
        if (Bits == ZONES_FEW_BITS) /* the last level has its own bit */
#pragma unroll
            for (uint32_t p = 0; p <= ZONES_FEW_BITS; p++)
                valid |= planes[p];
#pragma unroll
        for (uint32_t p = 0; p < Bits; p++)
            word.plane[p] = planes[p];
        word.valid = valid & within;
        word.starts = word.valid & ~zones_pairs_of(word, word).before;
        return word;
    }

    __device__ __forceinline__ void write(const zones_word<Bits> &word) const
    {
        constexpr uint32_t quads = zones_record<Bits>::count;
        uint4 *to = job.records + zones_word_at(job, x, y, z) * quads;
        uint32_t record[4 * quads] = {};

#pragma unroll
        for (uint32_t p = 0; p < Bits; p++)
            record[p] = word.plane[p];
        record[Bits] = word.valid;
        record[Bits + 1] = word.starts;
#pragma unroll
        for (uint32_t q = 0; q < quads; q++)
            to[q] = make_uint4(record[4 * q], record[4 * q + 1], record[4 * q + 2], record[4 * q + 3]);
        if (x > 0)
            half(x - 1, 1) = level(word, 0);
        else
            half(x, 0) = 0;
        if (x + 1 < job.words)
            half(x + 1, 0) = level(word, ZONES_WIDTH - 1);
        else
            half(x, 1) = 0;
    }

    /* A warp has two bundles, and all its lanes must call it. Beyond the last row the word is
     * empty. */
    __device__ __forceinline__ void write_whole(const zones_word<Bits> &word) const
    {
        const uint32_t own = word.valid == ~0u && word.starts == 1 ? word.level(0) : 0, lane = threadIdx.x % 32,
                       first = lane / ZONES_BUNDLE * ZONES_BUNDLE, bundle = ((1u << ZONES_BUNDLE) - 1) << first;
        const uint32_t alike = __ballot_sync(~0u, own == __shfl_sync(~0u, own, (int)first));

        if (lane == first && y < job.rows)
            job.whole[zones_bundle_at(job, x, y, z)] = (uint16_t)((alike & bundle) == bundle ? own : 0);
    }

    __device__ __forceinline__ uint16_t &half(uint32_t of, int which) const
    {
        return ((uint16_t *)&job.ends[zones_word_at(job, of, y, z)])[which];
    }

    static __device__ __forceinline__ uint16_t level(const zones_word<Bits> &word, int bit)
    {
        return (uint16_t)(word.valid >> bit & 1 ? word.level(bit) : 0);
    }
};

/* Iterates bundle by bundle, since records lie along y. */
template <typename Value, uint32_t Bits>
__global__ void
__launch_bounds__(ZONES_THREADS, WORDS_BLOCKS)
    zones_words(const __grid_constant__ struct zones_job job, uint32_t first, uint32_t count)
{
    typedef words_maker<Value, Bits> maker_of;
    __shared__ typename maker_of::code copy[256];

    for (uint32_t z = first + blockIdx.y; z < first + count; z += gridDim.y) {
        const uint16_t *levels = job.tables + (z - job.table_slice) * job.values;
        const uint32_t index = blockIdx.x * ZONES_THREADS + threadIdx.x, across = index / ZONES_BUNDLE,
                       y = across / job.words * ZONES_BUNDLE + index % ZONES_BUNDLE;
        const maker_of maker = {job, levels, copy, across % job.words, y, z};

        zones_word<Bits> word = {};

        if (maker_of::copies) {
            __syncthreads();
            for (uint32_t value = threadIdx.x; value < 256; value += ZONES_THREADS)
                copy[value] = (typename maker_of::code)__ldg(&levels[value ^ job.volume.bias]);
            __syncthreads();
        }
        if (y < job.rows) {
            word = maker.make();
            maker.write(word);
        }
        maker.write_whole(word);
    }
}
} // namespace

void
zones_words_queue(const struct zones_job *job, enum image_pixel pixel, uint32_t first, uint32_t count,
                  cudaStream_t stream)
{
    const uint32_t words = zones_bundles(job->rows) * ZONES_BUNDLE * job->words;
    const dim3 blocks((words - 1) / ZONES_THREADS + 1, count < WORDS_SLICES ? count : (uint32_t)WORDS_SLICES);
    const bool few = zones_bits_of(job) == ZONES_FEW_BITS;

    if (pixel == IMAGE_UINT8 && few)
        zones_words<uint8_t, ZONES_FEW_BITS><<<blocks, ZONES_THREADS, 0, stream>>>(*job, first, count);
    else if (pixel == IMAGE_UINT8)
        zones_words<uint8_t, ZONES_MANY_BITS><<<blocks, ZONES_THREADS, 0, stream>>>(*job, first, count);
    else if (few)
        zones_words<uint16_t, ZONES_FEW_BITS><<<blocks, ZONES_THREADS, 0, stream>>>(*job, first, count);
    else
        zones_words<uint16_t, ZONES_MANY_BITS><<<blocks, ZONES_THREADS, 0, stream>>>(*job, first, count);
}
