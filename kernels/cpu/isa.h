/*
 * isa.h - the innermost loops of the CPU backend, one table per instruction set.
 *
 * All tables compute the same results. Opening a device selects the best table that the processor
 * supports. Bits are packed with the first element in bit 0.
 */
#ifndef NOCTULE_KERNELS_CPU_ISA_H
#define NOCTULE_KERNELS_CPU_ISA_H

#include <stdbool.h>
#include <stdint.h>

/* Values v with (v - low) modulo 2^bits <= span: serves signed and unsigned ranges. */
struct isa_interval {
    uint16_t low;
    uint16_t span;
};

/* Smallest and largest value so far, in the order of (v ^ bias). bias is the sign bit for signed
 * values. If `skipping`, values in `skip` do not count. */
struct isa_extremes {
    uint16_t bias;
    bool skipping;
    struct isa_interval skip; /* of biased values */
    uint16_t smallest;        /* biased */
    uint16_t largest;
};

/* Operands of a fuzzy connectedness comparison. Sums own + step must stay below 65536. */
struct isa_join {
    const uint16_t *own;
    const uint16_t *other;
    const uint16_t *affinity;
    uint16_t step;
};

/* Neighbouring values, relative to the smallest, and their lookup tables. */
struct isa_pair {
    const uint16_t *a;
    const uint16_t *b;
    const double *first;
    const double *second;
};

/* Levels at up to four points: the digits of an index, the first most significant. */
struct isa_tuple {
    int points;
    uint16_t base; /* more than every level; at most 256 */
    bool wide;     /* indices of three points exceed 65535 */
    const uint8_t *level[4];
};

enum { ISA_TALLY = 16 }; /* tuples counted per step */

/* Counter tables: four of 16-bit counters and one of 32-bit counters. Any of the four may count,
 * and several may be the same table. */
struct isa_counters {
    uint16_t *low[4];
    uint32_t *high;
};

/* 3x3 windows: the rows above, at and below the centres. Each begins one column before the first
 * centre. */
struct isa_windows {
    const int16_t *row[3];
    int64_t count;
};

/* Rounding of the average of two values: exact, down, or towards 0. */
enum isa_average {
    ISA_EXACT,
    ISA_FLOOR,
    ISA_TRUNCATED,
};

/*
 * Rows of bits, `stride` words apart, to unite with nearby rows. Group g unites the rows at
 * offsets[end of group g - 1 .. ends[g] - 1] (in words), and then widens the union so far by
 * widen[g] elements to both sides.
 */
struct isa_rows {
    const uint64_t *first;
    int64_t count;
    int64_t stride;
    int64_t words; /* words of a row to read, which are all its words */
    int64_t groups;
    const int64_t *offsets;
    const int64_t *ends;
    const int64_t *widen;
};

/* Rows of bits of two slices, `stride` words apart. `flip`: all ones for the complements, otherwise
 * 0. */
struct isa_pair_rows {
    const uint64_t *a, *b;
    int64_t stride;
    int64_t count;
    int64_t words; /* words of a row to read */
    uint64_t flip;
};

struct range_clipping;     /* kernels/range/range.h */
struct coarse_rule;        /* kernels/coarse/coarse_rule.h */
struct fft_plan;           /* kernels/filter/fft.h */
struct fft_lanes;          /* likewise */
struct spectral_plan;      /* kernels/filter/spectral.h */
struct spectral_rings;     /* likewise */
struct image_type_step;    /* kernels/filter/image_type_steps.h */
struct image_type_lines;   /* likewise */
struct image_type_samples; /* likewise */
struct mcc_window;         /* kernels/voxelwise/mcc.h */

/* Values that isa.smooth16 computes at a time: rows must have room for a multiple. */
enum { ISA_SMOOTH = 64 };

/* Elements that isa.weigh64 and isa.weigh_apart64 compute at a time: rows must have room for a multiple. */
enum { ISA_WEIGH = 32 };

/* Words of work space for isa.unite. */
#define ISA_UNITE_SPACE(rows) (2 * (rows)->count * ((rows)->words + 2))

/* Max pairs per word. */
#define ISA_TOUCHES 64

/* Two rows for pairs of runs that share a column or, with `corners`, have adjacent columns. `word`
 * is the current word. The runs of each row are numbered in order. */
struct isa_touching {
    const uint64_t *rows[2];
    uint64_t flip; /* all ones or 0 */
    uint64_t tail; /* the valid bits of the last word */
    int64_t words;
    bool corners;
    int64_t word;
    uint32_t runs[2];  /* numbers of the next runs to begin */
    uint64_t carry[2]; /* the last bits of the previous word */
};

/* Words of bits to unite with those of other words, moved down by `shift` (0 .. 63) bits; `high` has the bits above. */
struct isa_shifted {
    const uint64_t *own, *low, *high;
    int shift;
};

struct isa {
    const char *name;
    bool bit_instructions;   /* BMI, LZCNT and POPCNT may be used */
    bool (*runs_here)(void); /* NULL: any processor runs it */
    /*
     * Sets one bit per element: whether it lies in either interval (pass one interval twice for a
     * single one). Writes whole words, the last padded with 0. Returns the number of runs of ones.
     */
    int64_t (*pack8)(const uint8_t *values, int64_t count, const struct isa_interval pass[2], uint64_t *bits);
    int64_t (*pack16)(const uint16_t *values, int64_t count, const struct isa_interval pass[2], uint64_t *bits);
    void (*extremes8)(const uint8_t *values, int64_t count, struct isa_extremes *extremes);
    void (*extremes16)(const uint16_t *values, int64_t count, struct isa_extremes *extremes);
    /* Returns the number of bits set in `words` words of line and clear in before. */
    int64_t (*count_new)(const uint64_t *line, const uint64_t *before, int64_t words);
    /*
     * Sets one bit per element: edge if own == other and affinity >= own + step, settled if own <
     * other and affinity >= own + step. Writes edges as whole words, the last padded with 0. Adds
     * to settled. edges may be NULL.
     */
    void (*join16)(const struct isa_join *join, int64_t count, uint64_t *edges, uint64_t *settled);
    /* Adds `bit` to the values whose bit in `bits` is set. */
    void (*raise16)(const uint64_t *bits, int64_t count, uint16_t bit, uint16_t *values);
    /* Computes floor(65535 * (first[a + b] + second[|a - b|])), at most 65535. */
    void (*affinity16)(const struct isa_pair *pair, int64_t count, uint16_t *affinity);
    /* Sets levels to the low bytes of table[value ^ bias]. The table has 65536 entries. */
    void (*level16)(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias, uint8_t *levels);
    /* For each index, adds 1 to tables[k][index] for any k. */
    void (*tally32)(const uint32_t *index, int64_t count, uint32_t *const tables[4]);
    /* Counts indices: narrow ones in low, wide ones in high. Fastest in multiples of ISA_TALLY. */
    void (*tally_tuples8)(const struct isa_tuple *tuple, int64_t count, const struct isa_counters *counters);
    /* If a low counter exceeds 32767, adds the table to high and clears it. */
    void (*relieve16)(uint16_t *low, int64_t count, uint32_t *high);
    /* Finds the largest value of each window. */
    void (*largest16)(const struct isa_windows *windows, int16_t *largest);
    /* Sets the bits of the neighbours (texture.h) that are >= bound or, if `strictly`, > bound. */
    void (*beyond16)(const struct isa_windows *windows, const int16_t *bound, bool strictly, uint8_t *codes);
    /* Computes LANADP (texture.h). */
    void (*adjacent16)(const struct isa_windows *windows, enum isa_average average, uint8_t *codes);
    /* Transposes eight adjacent 64 x 64 matrices: bit c of row[r][i] becomes bit r of row[c][i]. */
    void (*transpose8)(uint64_t row[64][8]);
    /* Returns the number of bits set. */
    int64_t (*count_bits)(const uint64_t *bits, int64_t words);
    /* Returns the number of runs of bits that differ from flip, which is all ones or 0. */
    int64_t (*count_runs)(const uint64_t *bits, int64_t count, uint64_t flip);
    /* Finds pairs of touching runs of two rows in the next `words` words, at most ISA_TOUCHES per
     * word. Returns their number. */
    int64_t (*touches)(struct isa_touching *rows, int64_t words, uint32_t (*pairs)[2]);
    /* Clip values (range_clipped). */
    void (*clip8)(const uint8_t *values, int64_t count, const struct range_clipping *clip, uint16_t *clipped);
    void (*clip16)(const uint16_t *values, int64_t count, const struct range_clipping *clip, uint16_t *clipped);
    /* Adds the values to the sums. */
    void (*add16)(const uint16_t *values, int64_t count, uint32_t *sums);
    /* Adds the sums of `count` groups of `factor` elements to the totals. */
    void (*fold32)(const uint32_t *sums, int64_t count, int64_t factor, uint64_t *totals);
    /* Computes the values of blocks (coarse_value). */
    void (*blocks16)(const uint64_t *totals, int64_t count, const struct coarse_rule *rule, int16_t *blocks);
    /* Computes floor((sum of weights[|k|] * taps[radius + k] + 2^13) / 2^14), k = -radius .. radius, for each element.
     * The weights add up to 2^14. Reads and writes whole groups of ISA_SMOOTH. `filtered` must not be one of the
     * taps. smooth15 needs values from -2^14 to 2^14 - 1. */
    void (*smooth15)(const int16_t *const *taps, const int16_t *weights, int radius, int64_t count, int16_t *filtered);
    void (*smooth16)(const int16_t *const *taps, const int16_t *weights, int radius, int64_t count, int16_t *filtered);
    /* Computes the sum of weights[t] * rows[t] for each element, from 0 on by fma(), t = 0 .. taps - 1. Reads and writes
     * whole groups of ISA_WEIGH. `sums` must not be one of the rows. */
    void (*weigh64)(const double *const *rows, const double *weights, int64_t taps, int64_t count, double *sums);
    /* Computes the same, but products and sums round separately. */
    void (*weigh_apart64)(const double *const *rows, const double *weights, int64_t taps, int64_t count, double *sums);
    /* Writes the unions of a and b, row after row without a gap. */
    void (*unite_pair)(const struct isa_pair_rows *rows, uint64_t *to);
    /* Writes the unions. `to` may be `own`. */
    void (*unite_shifted)(const struct isa_shifted *from, int64_t words, uint64_t *to);
    /* Adds each bit to its counter: bit j of the counters is in counts[j * words], ..., and `digits` of them may change. */
    void (*count_up)(const uint64_t *bits, int64_t words, int digits, uint64_t *counts);
    /* Transforms FFT_LANES lines (fft.h). `other` has as much memory as `values`, and `space` as much as the largest
     * radix. Returns the memory of the result, one of the first two. */
    struct fft_lanes *(*fft_lines)(const struct fft_plan *plan, bool inverse, struct fft_lanes *values,
                                   struct fft_lanes *other, struct fft_lanes *space);
    /* Multiplies the transformed columns kx .. kx + FFT_LANES - 1 of row ky with the transfer function (spectral.h). */
    void (*spectral_apply)(const struct spectral_plan *plan, int64_t kx, int64_t ky, struct spectral_rings *rings,
                           struct fft_lanes *values);
    /* Filters lines by a recursion, or makes the coefficients of their splines (image_type_lines.inc). */
    void (*recur_lines)(const struct image_type_step *step, const struct image_type_lines *lines);
    /* Computes the coefficients of a window (mcc.h). `space` must have room for MCC_SPACE(levels) numbers. */
    void (*mcc_window)(const struct mcc_window *window, double *space, double *coefficients);
    /* Rounds the samples if the step wants that. Compares them with the voxels, or computes the kurtosis of each voxel's. */
    void (*lbp_compare)(const struct image_type_step *step, struct image_type_samples *samples);
    /* Returns the unions, rows->words + 2 words apart. Bits widened beyond the words are lost. */
    const uint64_t *(*unite)(const struct isa_rows *rows, uint64_t *space);
};

/* Returns the named table, or the best supported one for NULL. Returns NULL if it is unknown or not
 * supported. */
const struct isa *isa_find(const char *name);

#endif
