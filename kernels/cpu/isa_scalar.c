/* isa_scalar.c - the innermost loops for any processor; see isa_private.h. */
#include "kernels/cpu/isa_private.h"

static bool
scalar_runs_here(void)
{
    return true;
}

static int64_t
scalar_pack8(const uint8_t *values, int64_t count, const struct isa_interval pass[2],
             uint64_t *bits)
{
    int64_t runs = 0;
    uint64_t carry = 0;

    for (int64_t i = 0; i < count; i += 64) {
        *bits = pack_word8(values + i, count - i < 64 ? count - i : 64, pass);
        runs += run_starts(*bits++, &carry);
    }
    return runs;
}

static int64_t
scalar_pack16(const uint16_t *values, int64_t count, const struct isa_interval pass[2],
              uint64_t *bits)
{
    int64_t runs = 0;
    uint64_t carry = 0;

    for (int64_t i = 0; i < count; i += 64) {
        *bits = pack_word16(values + i, count - i < 64 ? count - i : 64, pass);
        runs += run_starts(*bits++, &carry);
    }
    return runs;
}

static void
scalar_extremes8(const uint8_t *values, int64_t count, struct isa_extremes *extremes)
{
    extremes8_body(values, count, extremes);
}

static void
scalar_extremes16(const uint16_t *values, int64_t count, struct isa_extremes *extremes)
{
    extremes16_body(values, count, extremes);
}

static int64_t
scalar_count_new(const uint64_t *line, const uint64_t *before, int64_t words)
{
    return count_new_body(line, before, words);
}

static void
scalar_transpose8(uint64_t row[64][8])
{
    transpose8_body(row);
}

static void
scalar_join16(const struct isa_join *join, int64_t count, uint64_t *edges, uint64_t *settled)
{
    for (int64_t i = 0; i < count; i += 64)
        join16_word(join, i, count - i < 64 ? count - i : 64, edges, settled);
}

static void
scalar_raise16(const uint64_t *bits, int64_t count, uint16_t bit, uint16_t *values)
{
    raise16_body(bits, count, bit, values);
}

static void
scalar_affinity16(const struct isa_pair *pair, int64_t count, uint16_t *affinity)
{
    affinity16_body(pair, count, affinity);
}

static void
scalar_level16(const uint16_t *values, int64_t count, const uint16_t *table, uint16_t bias,
               uint8_t *levels)
{
    level16_body(values, count, table, bias, levels);
}

static void
scalar_tally32(const uint32_t *index, int64_t count, uint32_t *const tables[4])
{
    tally32_body(index, count, tables);
}

static void
scalar_tally_tuples8(const struct isa_tuple *tuple, int64_t count,
                     const struct isa_counters *counters)
{
    tally_tuples8_body(tuple, count, counters);
}

static void
scalar_relieve16(uint16_t *low, int64_t count, uint32_t *high)
{
    relieve16_body(low, count, high);
}

static void
scalar_largest16(const struct isa_windows *windows, int16_t *largest)
{
    largest16_body(windows, largest);
}

static void
scalar_beyond16(const struct isa_windows *windows, const int16_t *bound, bool strictly,
                uint8_t *codes)
{
    beyond16_body(windows, bound, strictly, codes);
}

static void
scalar_adjacent16(const struct isa_windows *windows, enum isa_average average, uint8_t *codes)
{
    adjacent16_body(windows, average, codes);
}

const struct isa isa_scalar = {
    .name = "scalar",
    .runs_here = scalar_runs_here,
    .pack8 = scalar_pack8,
    .pack16 = scalar_pack16,
    .extremes8 = scalar_extremes8,
    .extremes16 = scalar_extremes16,
    .count_new = scalar_count_new,
    .join16 = scalar_join16,
    .raise16 = scalar_raise16,
    .affinity16 = scalar_affinity16,
    .level16 = scalar_level16,
    .tally32 = scalar_tally32,
    .tally_tuples8 = scalar_tally_tuples8,
    .relieve16 = scalar_relieve16,
    .largest16 = scalar_largest16,
    .beyond16 = scalar_beyond16,
    .adjacent16 = scalar_adjacent16,
    .transpose8 = scalar_transpose8,
};
