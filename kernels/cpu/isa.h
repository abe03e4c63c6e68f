/*
 * isa.h - the innermost loops of the CPU backend, one table for each instruction set.
 *
 * All tables compute the same results; the best one this processor can run is chosen when a device
 * is opened. Bits are packed with the first element in bit 0.
 */
#ifndef NOCTULE_ISA_CPU_H
#define NOCTULE_ISA_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* Values v with (v - low) modulo 2^bits <= span: signed and unsigned ranges alike. */
struct isa_interval {
    uint16_t low;
    uint16_t span;
};

/*
 * Smallest and largest value seen, in the order of (v ^ bias); bias is the sign bit for signed
 * values. Values in `skip` do not count when skipping.
 */
struct isa_extremes {
    uint16_t bias;
    bool skipping;
    struct isa_interval skip; /* of biased values */
    uint16_t smallest;        /* biased */
    uint16_t largest;
};

/* What fuzzy connectedness compares: sums own + step stay below 65536. */
struct isa_join {
    const uint16_t *own;
    const uint16_t *other;
    const uint16_t *affinity;
    uint16_t step;
};

/* Neighbouring values, counted from the smallest, and the tables that they are looked up in. */
struct isa_pair {
    const uint16_t *a;
    const uint16_t *b;
    const double *first;
    const double *second;
};

/* Levels at up to four points: the digits of an index, the first the highest. */
struct isa_tuple {
    int points;
    uint16_t base; /* above every level; at most 256 */
    bool wide;     /* indices, of three points, pass 65535 */
    const uint8_t *level[4];
};

enum { ISA_TALLY = 16 }; /* tuples that are counted together */

/*
 * Tables of counters: four of two bytes, any of which counts and which may be the same, and one of
 * four bytes.
 */
struct isa_counters {
    uint16_t *low[4];
    uint32_t *high;
};

/*
 * 3x3 windows: rows above, at and below the centres, each beginning at the column before the first
 * window's centre.
 */
struct isa_windows {
    const int16_t *row[3];
    int64_t count;
};

/* Averages of two values: exact, the next integer below, or the next towards 0. */
enum isa_average {
    ISA_EXACT,
    ISA_FLOOR,
    ISA_TRUNCATED,
};

/*
 * Rows of bits, `stride` words from one to the next, whose unions with rows near them are wanted:
 * group by group those at offsets[end of the group before .. ends[g] - 1], in words, then all that
 * has been found so far widened by widen[g] elements to both sides.
 */
struct isa_rows {
    const uint64_t *first;
    int64_t count;
    int64_t stride;
    int64_t words; /* of a row that are looked at, and are all there is */
    int64_t groups;
    const int64_t *offsets;
    const int64_t *ends;
    const int64_t *widen;
};

/* Rows of bits of two slices, `stride` words from one to the next. `flip`: of the complements, all ones
 * or 0. */
struct isa_pair_rows {
    const uint64_t *a, *b;
    int64_t stride;
    int64_t count;
    int64_t words; /* of a row that are looked at */
    uint64_t flip;
};

/* Words of work space for isa.unite. */
#define ISA_UNITE_SPACE(rows) (2 * (rows)->count * ((rows)->words + 2))

/* Most pairs of a word. */
#define ISA_TOUCHES 64

/*
 * Two rows of which pairs of runs are wanted that share a column, or with `corners` lie side by
 * side in it. It is gone through in words, and is at `word`; each run of the first row and of the
 * second has the next number.
 */
struct isa_touching {
    const uint64_t *rows[2];
    uint64_t flip; /* all ones or 0 */
    uint64_t tail; /* the bits of the last word that are of the row */
    int64_t words;
    bool corners;
    int64_t word;
    uint32_t runs[2];  /* numbers of the next that begin */
    uint64_t carry[2]; /* the last bits of the word before */
};

struct isa {
    const char *name;
    bool bit_instructions; /* BMI, LZCNT and POPCNT may be used */
    bool (*runs_here)(void);
    /*
     * One bit an element: whether it lies in one of the two intervals (give the same twice for
     * one). Writes whole words, the last padded with 0; returns the number of runs of ones.
     */
    int64_t (*pack8)(const uint8_t *values, int64_t count, const struct isa_interval pass[2],
                     uint64_t *bits);
    int64_t (*pack16)(const uint16_t *values, int64_t count, const struct isa_interval pass[2],
                      uint64_t *bits);
    void (*extremes8)(const uint8_t *values, int64_t count, struct isa_extremes *extremes);
    void (*extremes16)(const uint16_t *values, int64_t count, struct isa_extremes *extremes);
    /* Number of bits set in `words` words of line and clear in before. */
    int64_t (*count_new)(const uint64_t *line, const uint64_t *before, int64_t words);
    /*
     * One bit an element: edges where own == other and affinity >= own + step, settled where own <
     * other and affinity >= own + step. Writes edges as whole words, the last padded with 0; adds
     * to settled. edges may be NULL.
     */
    void (*join16)(const struct isa_join *join, int64_t count, uint64_t *edges, uint64_t *settled);
    /* Adds `bit` to the values whose bit is set. */
    void (*raise16)(const uint64_t *bits, int64_t count, uint16_t bit, uint16_t *values);
    /* floor(65535 * (first[a + b] + second[|a - b|])), at most 65535. */
    void (*affinity16)(const struct isa_pair *pair, int64_t count, uint16_t *affinity);
    /* levels = the low bytes of table[value ^ bias]; the table has 65536 entries. */
    void (*level16)(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias,
                    uint8_t *levels);
    /* Adds 1 to tables[any of the four][index] for each index. */
    void (*tally32)(const uint32_t *index, int64_t count, uint32_t *const tables[4]);
    /* Counts indices: low, wide ones high; best in multiples of ISA_TALLY. */
    void (*tally_tuples8)(const struct isa_tuple *tuple, int64_t count,
                          const struct isa_counters *counters);
    /* Adds a table of low counters to high, and clears it, if one of them passes 32767. */
    void (*relieve16)(uint16_t *low, int64_t count, uint32_t *high);
    /* The largest value of each window. */
    void (*largest16)(const struct isa_windows *windows, int16_t *largest);
    /* Bits of the neighbours (texture.h) that are >= bound, or > bound. */
    void (*beyond16)(const struct isa_windows *windows, const int16_t *bound, bool strictly,
                     uint8_t *codes);
    /* LANADP (texture.h). */
    void (*adjacent16)(const struct isa_windows *windows, enum isa_average average, uint8_t *codes);
    /* Eight 64 x 64 matrices side by side: bit c of row[r][i] goes to bit r of row[c][i]. */
    void (*transpose8)(uint64_t row[64][8]);
    /* Number of bits set. */
    int64_t (*count_bits)(const uint64_t *bits, int64_t words);
    /* Number of runs of bits that differ from those of flip, all ones or 0. */
    int64_t (*count_runs)(const uint64_t *bits, int64_t count, uint64_t flip);
    /* Pairs of runs of two rows that touch, in `words` more words of them (ISA_TOUCHES for each);
     * returns how many. */
    int64_t (*touches)(struct isa_touching *rows, int64_t words, uint32_t (*pairs)[2]);
    /* The unions of a and b, row after row without a gap. */
    void (*unite_pair)(const struct isa_pair_rows *rows, uint64_t *to);
    /* The unions, rows->words + 2 words from one to the next. What is widened beyond the words is
     * lost. */
    const uint64_t *(*unite)(const struct isa_rows *rows, uint64_t *space);
};

/* The named table, or the best one here for NULL; NULL if it is unknown or cannot run here. */
const struct isa *isa_find(const char *name);

#endif
