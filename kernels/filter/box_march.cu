/*
 * box_march.cu - means of small boxes on the GPU, in one kernel. A block walks along z. A thread has some adjacent columns of
 * some rows, and keeps their sums along z: it adds the newest value and subtracts the oldest one, which is read again from the
 * cache. Both are read while the previous slice is summed along y, in shared memory, and along x, within a warp.
 *
 * Sums are integers, of 32 bits or in doubles, which hold them exactly.
 */
#include "kernels/cuda/ptx.cuh"
#include "kernels/filter/separable_march.cuh"

enum {
    BOX_LANES = 32,
    BOX_GROUP = 4, /* columns of a thread */
    BOX_ACROSS = BOX_LANES * BOX_GROUP,
    BOX_MARGIN = SEPARABLE_BOX_HALF + 1,    /* columns to each side that have no outputs */
    BOX_WIDE = BOX_ACROSS - 2 * BOX_MARGIN, /* outputs of a block along x */
    BOX_SIDE = 64,                          /* and along y */
    BOX_TALL = BOX_SIDE + 2 * BOX_MARGIN,   /* rows that are read */
};

/* How values are read: each by itself, or a thread's columns at a time. Such volumes have rows of whole groups. */
enum box_form { BOX_ANY, BOX_HALVES, BOX_VALUES, BOX_CODES };

struct box_pass {
    struct separable_input input;
    struct separable_output output;
    int32_t sides[3];
    enum filter_boundary boundary;
    int half[3];
    int32_t begin, end; /* slices that are written */
    int32_t depth;      /* of a block */
};

/* The order of a group beyond the volume, in which a group of it is seen. */
enum box_order { BOX_FORWARD, BOX_BACKWARD, BOX_FIRST, BOX_LAST };

template <box_form FORM> struct box_shape {
    static constexpr int WARPS = FORM == BOX_HALVES ? 8 : 16;
    static constexpr int BLOCKS = FORM == BOX_HALVES ? 2 : 1; /* of a multiprocessor */
    static constexpr int THREADS = WARPS * BOX_LANES;
    static constexpr int ROWS = BOX_TALL / WARPS, DOWN = BOX_SIDE / WARPS; /* that a warp reads, and writes */
};

/* Elements that a thread reads or writes at a time. */
template <typename Value> struct alignas(16) box_piece {
    static constexpr int COUNT = 16 / sizeof(Value);
    Value of[(unsigned)COUNT];
};

template <typename Value> using box_row = struct box_piece<Value>[BOX_GROUP / box_piece<Value>::COUNT][BOX_LANES];

template <typename Value, box_form FORM> struct box_tile {
    box_row<Value> sums[2][BOX_TALL]; /* along z, of this slice and the next one */
    box_row<Value> lines[(unsigned)box_shape<FORM>::WARPS];
    int32_t rows[BOX_TALL]; /* places of the rows of a slice; negative: 0 */
};

template <typename Value>
static __device__ __forceinline__ void
box_put(box_row<Value> &row, int lane, const Value (&values)[BOX_GROUP])
{
#pragma unroll
    for (int p = 0; p < BOX_GROUP / box_piece<Value>::COUNT; p++) {
        struct box_piece<Value> piece;

#pragma unroll
        for (int i = 0; i < box_piece<Value>::COUNT; i++)
            piece.of[i] = values[p * box_piece<Value>::COUNT + i];
        row[p][lane] = piece;
    }
}

template <typename Value>
static __device__ __forceinline__ void
box_take(const box_row<Value> &row, int lane, Value (&values)[BOX_GROUP])
{
#pragma unroll
    for (int p = 0; p < BOX_GROUP / box_piece<Value>::COUNT; p++) {
        const struct box_piece<Value> piece = row[p][lane];

#pragma unroll
        for (int i = 0; i < box_piece<Value>::COUNT; i++)
            values[p * box_piece<Value>::COUNT + i] = piece.of[i];
    }
}

/* Returns the place of a column among the elements of a row. */
template <typename Value>
static __device__ __forceinline__ int
box_element(int column)
{
    constexpr int COUNT = box_piece<Value>::COUNT;

    return column % BOX_GROUP / COUNT * (BOX_LANES * COUNT) + column / BOX_GROUP * COUNT + column % COUNT;
}

/* The stored values of a group. */
template <box_form FORM> struct box_stored {
    typedef int4 Group;
};

template <> struct box_stored<BOX_HALVES> {
    typedef uint2 Group;
};

/* Reads the groups of a slice. `columns`: places of the group's columns in a row, or of the first one. */
template <box_form FORM, size_t ROWS>
static __device__ __forceinline__ void
box_read(const struct box_pass &pass, const struct separable_slice &slice, const int32_t *rows,
         const int32_t (&columns)[BOX_GROUP], typename box_stored<FORM>::Group (&groups)[ROWS])
{
    if constexpr (FORM == BOX_ANY) {
#pragma unroll
        for (size_t r = 0; r < ROWS; r++) {
            int32_t places[BOX_GROUP], stored[BOX_GROUP] = {};

            /* Without branches, which would make reads wait for each other. Those that are 0 are found later. */
#pragma unroll
            for (int i = 0; i < BOX_GROUP; i++)
                places[i] = max(rows[r], 0) + max(columns[i], 0);
            if (slice.within)
                separable_read<true>(pass.input, slice.at, places, stored);
            groups[r] = make_int4(stored[0], stored[1], stored[2], stored[3]);
        }
    } else {
        const int64_t size = sizeof(groups[0]) / BOX_GROUP;
        const unsigned char *const own = slice.at + columns[0] * size;
        const bool exists = slice.within & (columns[0] >= 0);

#pragma unroll
        for (size_t r = 0; r < ROWS; r++)
            ptx_load(groups[r], own + rows[r] * size, exists & (rows[r] >= 0));
    }
}

/* Adds the values of a group of the newest slice to the sums along z, and subtracts those of the oldest one. */
static __device__ __forceinline__ void
box_add_group(const struct box_pass &pass, uint2 newest, uint2 oldest, uint32_t (&totals)[BOX_GROUP])
{
    const uint32_t high = (uint32_t)pass.input.request.limit * 0x10001u;
    const uint32_t low = ((uint32_t)-pass.input.request.limit & 0xFFFF) * 0x10001u;
    const uint32_t in[2] = {__vmins2(__vmaxs2(newest.x, low), high), __vmins2(__vmaxs2(newest.y, low), high)};
    const uint32_t out[2] = {__vmins2(__vmaxs2(oldest.x, low), high), __vmins2(__vmaxs2(oldest.y, low), high)};

#pragma unroll
    for (int i = 0; i < BOX_GROUP; i++)
        totals[i] = (uint32_t)__dp2a_lo((int)__byte_perm(in[i / 2], out[i / 2], i % 2 ? 0x7632 : 0x5410), 0xFF01,
                                        (int)totals[i]);
}

template <typename Value>
static __device__ __forceinline__ Value
box_number(int32_t value)
{
    return (Value)value;
}

template <box_form FORM, typename Value>
static __device__ __forceinline__ void
box_add_group(const struct box_pass &pass, int32_t row, const int32_t (&columns)[BOX_GROUP], const int4 &newest,
              bool adds, const int4 &oldest, bool subtracts, Value (&totals)[BOX_GROUP])
{
    int32_t in[BOX_GROUP] = {newest.x, newest.y, newest.z, newest.w};
    int32_t out[BOX_GROUP] = {oldest.x, oldest.y, oldest.z, oldest.w};

    if constexpr (FORM == BOX_ANY) {
        int32_t places[BOX_GROUP];

#pragma unroll
        for (int i = 0; i < BOX_GROUP; i++)
            places[i] = row < 0 ? -1 : columns[i];
        if (adds)
            separable_values(pass.input, places, in);
        if (subtracts)
            separable_values(pass.input, places, out);
    } else {
#pragma unroll
        for (int i = 0; i < BOX_GROUP; i++) {
            in[i] = FORM == BOX_CODES ? abs(in[i]) : filter_clip(&pass.input.request, in[i]);
            out[i] = FORM == BOX_CODES ? abs(out[i]) : filter_clip(&pass.input.request, out[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < BOX_GROUP; i++)
        if constexpr (FORM == BOX_CODES)
            totals[i] += (Value)(in[i] - out[i]);
        else
            totals[i] += (Value)in[i] - (Value)out[i];
}

/* Sets a group's columns as the volume has them. */
template <typename Value>
static __device__ __forceinline__ void
box_reorder(enum box_order order, Value (&values)[BOX_GROUP])
{
    const Value first = values[0], second = values[1], third = values[2], last = values[3];
    const bool begins_last = order == BOX_BACKWARD || order == BOX_LAST;
    const bool ends_first = order == BOX_BACKWARD || order == BOX_FIRST;

    values[0] = begins_last ? last : first;
    values[1] = order == BOX_FORWARD ? second : order == BOX_BACKWARD ? third : values[0];
    values[3] = ends_first ? first : last;
    values[2] = order == BOX_FORWARD ? third : order == BOX_BACKWARD ? second : values[3];
}

/* Replaces the values of a row by their sums from its begin on. */
template <typename Value>
static __device__ __forceinline__ void
box_accumulate(int lane, Value (&values)[BOX_GROUP])
{
#pragma unroll
    for (int i = 1; i < BOX_GROUP; i++)
        values[i] += values[i - 1];
    Value all = values[BOX_GROUP - 1];

#pragma unroll
    for (int d = 1; d < BOX_LANES; d *= 2) {
        const Value before = __shfl_up_sync(0xffffffffu, all, (unsigned)d);

        all = lane >= d ? all + before : all;
    }
    all -= values[BOX_GROUP - 1];
#pragma unroll
    for (int i = 0; i < BOX_GROUP; i++)
        values[i] += all;
}

static __device__ __forceinline__ double
box_double(uint32_t sum)
{
    return (double)(int32_t)sum;
}

static __device__ __forceinline__ double
box_double(double sum)
{
    return sum;
}

/* Where a warp's responses go: column `left` - BOX_MARGIN of its first row is at `to`. */
struct box_target {
    int32_t *to;
    int32_t left, pitch, rows; /* rows that exist */
    double factor;
};

template <typename Value>
static __device__ __forceinline__ int32_t
box_code(const struct box_target &target, Value sum)
{
    return filter_code(__dmul_rn(box_double(sum), target.factor));
}

/* Sums a row in boxes of 15 columns, and writes whole groups. */
template <typename Value>
static __device__ __forceinline__ void
box_write_15(const struct box_target &target, int lane, int row, const Value (&v)[BOX_GROUP])
{
    const unsigned all = 0xffffffffu;
    const int32_t x = target.left + BOX_GROUP * lane - BOX_MARGIN;
    const bool writes = x >= target.left && x < min(target.left + BOX_WIDE, target.pitch) && row < target.rows;
    /* Sums from the first column on, and to the last one. */
    const Value two = v[0] + v[1], three = two + v[2], whole = three + v[3], last_two = v[2] + v[3];
    const Value last_three = last_two + v[1];
    const Value middle = __shfl_up_sync(all, whole, 1) + whole + __shfl_down_sync(all, whole, 1);
    const Value before[3] = {__shfl_up_sync(all, last_three, 2), __shfl_up_sync(all, last_two, 2),
                             __shfl_up_sync(all, v[3], 2)};
    const Value after[3] = {__shfl_down_sync(all, v[0], 2), __shfl_down_sync(all, two, 2),
                            __shfl_down_sync(all, three, 2)};
    int4 codes;

    codes.x = box_code<Value>(target, middle + before[0]);
    codes.y = box_code<Value>(target, middle + before[1] + after[0]);
    codes.z = box_code<Value>(target, middle + before[2] + after[1]);
    codes.w = box_code<Value>(target, middle + after[2]);
    if (writes)
        __stcs((int4 *)(target.to + (int64_t)row * target.pitch + BOX_GROUP * lane), codes);
}

/* Sums a row in boxes by differences of sums from its begin on, and writes single columns. */
template <typename Value>
static __device__ __forceinline__ void
box_write(const struct box_target &target, int half, int lane, int row, Value (&sums)[BOX_GROUP], box_row<Value> &line)
{
    const Value *const elements = line[0][0].of;

    box_accumulate(lane, sums);
    box_put<Value>(line, lane, sums);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < BOX_GROUP; k++) {
        /* Lanes without an output read as the nearest one that has one. */
        const int own = k == 0               ? max(lane, (int)BOX_MARGIN)
                        : k == BOX_GROUP - 1 ? min(lane, BOX_LANES - 1 - BOX_MARGIN)
                                             : lane;
        const bool writes = own == lane && target.left + k * BOX_LANES + lane - BOX_MARGIN < target.pitch;
        const Value upper = elements[box_element<Value>(k * BOX_LANES + own + half)];
        const Value lower = elements[box_element<Value>(k * BOX_LANES + own - half - 1)];
        const int32_t code = box_code<Value>(target, upper - lower);

        if (writes & (row < target.rows))
            __stcs(target.to + (int64_t)row * target.pitch + k * BOX_LANES + lane, code);
    }
    __syncwarp();
}

/* Sums DOWN boxes along y, and uses each row of sums. */
template <int DOWN, int UNROLL, typename Value, typename Use>
static __device__ __forceinline__ void
box_along_y(const box_row<Value> *from, int lane, int half, const Use &use)
{
    Value sum[BOX_GROUP] = {}, value[BOX_GROUP], sums[BOX_GROUP];

    /* Not unrolled as a whole: the oldest rows would stay in registers. */
#pragma unroll 7
    for (int i = 0; i < 2 * half; i++) {
        box_take<Value>(from[i], lane, value);
#pragma unroll
        for (int c = 0; c < BOX_GROUP; c++)
            sum[c] += value[c];
    }
#pragma unroll(UNROLL)
    for (int row = 0; row < DOWN; row++) {
        box_take<Value>(from[row + 2 * half], lane, value);
#pragma unroll
        for (int c = 0; c < BOX_GROUP; c++)
            sum[c] += value[c];
        box_take<Value>(from[row], lane, value);
#pragma unroll
        for (int c = 0; c < BOX_GROUP; c++) {
            sums[c] = sum[c];
            sum[c] -= value[c];
        }
        use(row, sums);
    }
}

/* Finds the places of the rows of a block's slice. */
static __device__ __forceinline__ void
box_place_rows(const struct box_pass &pass, int32_t top, int32_t (&rows)[BOX_TALL])
{
    const int32_t row = (int32_t)threadIdx.x;

    if (row >= BOX_TALL)
        return;
    const int64_t place = filter_place(top + row - pass.half[1], pass.sides[1], pass.boundary);

    rows[row] = row >= BOX_SIDE + 2 * pass.half[1] || place < 0 ? INT32_MIN : (int32_t)(place * pass.sides[0]);
}

/* Finds the places of a thread's columns, or that of the group which holds them. */
template <box_form FORM>
static __device__ __forceinline__ enum box_order
box_place_columns(const struct box_pass &pass, int32_t left, int32_t (&columns)[BOX_GROUP])
{
    for (int i = 0; i < BOX_GROUP; i++)
        columns[i] = (int32_t)filter_place(left + i, pass.sides[0], pass.boundary);
    if (FORM == BOX_ANY)
        return BOX_FORWARD;
    const enum box_order order = columns[0] == columns[3]  ? columns[0] % BOX_GROUP ? BOX_LAST : BOX_FIRST
                                 : columns[0] > columns[3] ? BOX_BACKWARD
                                                           : BOX_FORWARD;

    columns[0] = columns[0] < 0 ? -1 : columns[0] / BOX_GROUP * BOX_GROUP;
    return order;
}

/* OF_15: boxes have 15 columns. */
template <typename Value, box_form FORM, bool OF_15>
static __global__ void
__launch_bounds__(box_shape<FORM>::THREADS, box_shape<FORM>::BLOCKS)
    separable_box_march(const __grid_constant__ struct box_pass pass)
{
    typedef struct box_shape<FORM> Shape;
    constexpr int ROWS = Shape::ROWS, DOWN = Shape::DOWN;

    extern __shared__ __align__(16) unsigned char box_memory[];
    struct box_tile<Value, FORM> &tile = *(struct box_tile<Value, FORM> *)box_memory;
    const int32_t across = (pass.sides[0] + BOX_WIDE - 1) / BOX_WIDE, down = (pass.sides[1] + BOX_SIDE - 1) / BOX_SIDE;
    const int32_t left = (int32_t)(blockIdx.x % across) * BOX_WIDE;
    const int32_t top = (int32_t)(blockIdx.x / across % down) * BOX_SIDE;
    const int32_t first = pass.begin + (int32_t)(blockIdx.x / across / down) * pass.depth,
                  end = min(first + pass.depth, pass.end);
    const int32_t start = first - pass.half[2], stop = end + pass.half[2], deep = 2 * pass.half[2] + 1;
    const int lane = (int)threadIdx.x % BOX_LANES, warp = (int)threadIdx.x / BOX_LANES;
    const int32_t y = top + warp * DOWN;
    const int64_t slice = (int64_t)pass.sides[0] * pass.sides[1];
    const int64_t bytes = separable_slice_bytes(pass.input, slice);
    const bool reorders = FORM != BOX_ANY && (left < BOX_MARGIN || left + BOX_WIDE + BOX_MARGIN > pass.sides[0]);
    struct box_target target = {pass.output.codes + (int64_t)first * slice + (int64_t)y * pass.sides[0] + left -
                                    BOX_MARGIN,
                                left, pass.sides[0], pass.sides[1] - y, pass.output.factor};
    struct separable_slice newest = {}, oldest = {};
    Value totals[(unsigned)ROWS][BOX_GROUP] = {};
    typename box_stored<FORM>::Group in[(unsigned)ROWS], out[(unsigned)ROWS];
    int32_t columns[BOX_GROUP];
    const enum box_order order = box_place_columns<FORM>(pass, left - BOX_MARGIN + BOX_GROUP * lane, columns);
    const int32_t *const rows = &tile.rows[warp * ROWS];
    int parity = 0;

    const auto fetch = [&](int32_t z) {
        const int32_t last = z - deep;

        separable_go(pass.input, bytes, z, pass.sides[2], pass.boundary, z > start, newest);
        if (last >= start)
            separable_go(pass.input, bytes, last, pass.sides[2], pass.boundary, last > start, oldest);
        box_read<FORM>(pass, newest, rows, columns, in);
        box_read<FORM>(pass, oldest, rows, columns, out);
    };

    box_place_rows(pass, top, tile.rows);
    __syncthreads();
    fetch(start);
    for (int32_t z = start; z < stop; z++) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if constexpr (FORM == BOX_HALVES)
                box_add_group(pass, in[r], out[r], totals[r]);
            else
                box_add_group<FORM>(pass, rows[r], columns, in[r], newest.within, out[r], oldest.within, totals[r]);
        if (z + 1 < stop)
            fetch(z + 1);
        if (z < first + pass.half[2])
            continue;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            box_put<Value>(tile.sums[parity][warp * ROWS + r], lane, totals[r]);
        __syncthreads(); /* the other sums are those of the last slice but one, which have been read */
        box_along_y<DOWN, OF_15 ? DOWN : 1, Value>(
            &tile.sums[parity][warp * DOWN], lane, pass.half[1], [&](int row, Value(&sums)[BOX_GROUP]) {
                if (reorders)
                    box_reorder(order, sums);
                if constexpr (OF_15)
                    box_write_15(target, lane, row, sums);
                else
                    box_write(target, pass.half[0], lane, row, sums, tile.lines[warp]);
            });
        parity ^= 1;
        target.to += slice;
    }
}

/* ------------------------------------------------------------------------------- the host -- */

bool
separable_box_fits(const struct separable_plan *plan, const struct image_extent *extent)
{
    return plan->half[0] <= SEPARABLE_BOX_HALF && image_slice_voxels(extent) < INT32_MAX;
}

template <typename Value, box_form FORM, bool OF_15>
static int
box_start(struct cuda_lane *lane, struct box_pass *pass, struct error *error)
{
    typedef struct box_shape<FORM> Shape;
    struct cuda_device *device = cuda_device_of(&lane->base);
    const int64_t tiles =
        (int64_t)((pass->sides[0] + BOX_WIDE - 1) / BOX_WIDE) * ((pass->sides[1] + BOX_SIDE - 1) / BOX_SIDE);
    const size_t bytes = sizeof(struct box_tile<Value, FORM>);
    const auto kernel = separable_box_march<Value, FORM, OF_15>;

    pass->depth = separable_depth(device, Shape::BLOCKS, tiles, pass->end - pass->begin, 2 * pass->half[2]);
    const int64_t blocks = tiles * ((pass->end - pass->begin + pass->depth - 1) / pass->depth);

    CUDA_TRY(device, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    kernel<<<(unsigned)blocks, Shape::THREADS, bytes, lane->work>>>(*pass);
    CUDA_LAUNCHED(device);
    return 0;
}

/* Returns how a volume can be read. */
static enum box_form
box_form_of(const struct separable_input *input, int32_t columns)
{
    const struct filter_request *request = &input->request;
    const bool plain = request->padding.lo > request->padding.hi && request->offset == 0;

    if (columns % BOX_GROUP)
        return BOX_ANY;
    if (input->kind == SEPARABLE_VALUES)
        return BOX_VALUES;
    if (input->kind == SEPARABLE_CODES)
        return BOX_CODES;
    return input->kind == SEPARABLE_INT16 && plain && request->limit <= INT16_MAX ? BOX_HALVES : BOX_ANY;
}

template <typename Value, box_form FORM>
static int
box_start_sized(struct cuda_lane *lane, struct box_pass *pass, struct error *error)
{
    return (pass->half[0] == SEPARABLE_BOX_HALF ? box_start<Value, FORM, true>
                                                : box_start<Value, FORM, false>)(lane, pass, error);
}

int
separable_box_queue(struct cuda_lane *lane, const struct separable_plan *plan, const struct separable_input *input,
                    const struct separable_output *output, bool narrow, int64_t first, int64_t end, struct error *error)
{
    const struct image_extent *extent = &lane->base.extent;
    const enum box_form form = box_form_of(input, (int32_t)extent->columns);
    struct box_pass pass = {};

    pass.input = *input;
    pass.output = *output;
    pass.sides[0] = (int32_t)extent->columns;
    pass.sides[1] = (int32_t)extent->rows;
    pass.sides[2] = (int32_t)extent->slices;
    pass.begin = (int32_t)first;
    pass.end = (int32_t)end;
    pass.boundary = plan->demand.options.boundary;
    memcpy(pass.half, plan->half, sizeof(pass.half));
    if (form == BOX_HALVES && narrow)
        return box_start_sized<uint32_t, BOX_HALVES>(lane, &pass, error);
    if (form == BOX_VALUES)
        return narrow ? box_start_sized<uint32_t, BOX_VALUES>(lane, &pass, error)
                      : box_start_sized<double, BOX_VALUES>(lane, &pass, error);
    if (form == BOX_CODES && !narrow)
        return box_start_sized<double, BOX_CODES>(lane, &pass, error);
    return narrow ? box_start<uint32_t, BOX_ANY, false>(lane, &pass, error)
                  : box_start<double, BOX_ANY, false>(lane, &pass, error);
}
