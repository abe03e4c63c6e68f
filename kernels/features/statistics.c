/*
 * statistics.c - see statistics.h.
 *
 * Stored values: merges the histograms of all slices into one list of real-world values with counts, in ascending order. Every
 * statistic is a pass over that list. Other values: passes over the values of a region in their order, without sorting them.
 */
#include "kernels/features/statistics.h"

#include "base/array.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SORT_FEW = 16,    /* keys that are inserted one by one */
    PARTS = 16,       /* of rows and values, which threads take in turn */
    BINS = 1 << 11,   /* of values, to find those of a rank */
    SUMMED = 1 << 12, /* values of a block, which has sums of its own */
};

/* ---------------------------------------------------------------------------- the values -- */

static int
value_count_compare(const void *left, const void *right)
{
    const struct value_count *a = left, *b = right;

    return (a->value > b->value) - (a->value < b->value);
}

size_t
value_list_bytes(const struct feature_region *largest, size_t set)
{
    const struct image_extent extent = feature_extent(largest->volume);
    const size_t entries = largest->volume->tables * largest->volume->values;
    const size_t voxels = (size_t)image_voxels(&extent);

    (void)set;
    if (largest->volume->reals) /* and the sorted values, twice */
        return voxels * (sizeof(struct value_count) + 2 * sizeof(uint64_t));
    return (entries < voxels ? entries : voxels) * sizeof(struct value_count);
}

/* Sorts keys by bytes first .. end - 1, the lowest first. Bytes that all keys share take no pass. `other` has the same size.
 * Returns the sorted keys, which are in one of the two. */
static uint64_t *
sort_keys_by(uint64_t *keys, uint64_t *other, size_t count, int first, int end)
{
    size_t starts[8][256] = {{0}};

    for (size_t i = 0; i < count; i++)
        for (int byte = first; byte < end; byte++)
            starts[byte][keys[i] >> 8 * byte & 255]++;
    for (int byte = first; byte < end; byte++) {
        const int shift = 8 * byte;
        size_t *const own = starts[byte];
        size_t next = 0;

        if (count > 0 && own[keys[0] >> shift & 255] == count)
            continue;
        for (int value = 0; value < 256; value++) {
            const size_t start = next;

            next += own[value];
            own[value] = start;
        }
        for (size_t i = 0; i < count; i++)
            other[own[keys[i] >> shift & 255]++] = keys[i];
        uint64_t *const sorted = other;

        other = keys;
        keys = sorted;
    }
    return keys;
}

static void
sort_few_keys(uint64_t *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const uint64_t key = keys[i];
        size_t at = i;

        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Sorts keys in place. `other` has the same size. */
static void
sort_keys(uint64_t *keys, uint64_t *other, size_t count)
{
    size_t next;

    if (count <= SORT_FEW) {
        sort_few_keys(keys, count);
        return;
    }
    if (sort_keys_by(keys, other, count, 4, 8) == other)
        memcpy(keys, other, count * sizeof(*keys));
    for (size_t first = 0; first < count; first = next) { /* few of the upper halves are equal */
        for (next = first + 1; next < count && keys[next] >> 32 == keys[first] >> 32;)
            next++;
        if (next - first <= SORT_FEW)
            sort_few_keys(keys + first, next - first);
        else if (sort_keys_by(keys + first, other, next - first, 0, 4) == other)
            memcpy(keys + first, other, (next - first) * sizeof(*keys));
    }
}

/* The bits of doubles, with the sign inverted, or all bits below 0, ascend as their values. */
static uint64_t
sort_key_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits ^ (bits >> 63 ? UINT64_MAX : UINT64_C(1) << 63);
}

static double
sort_value_of(uint64_t key)
{
    const uint64_t bits = key ^ (key >> 63 ? UINT64_C(1) << 63 : UINT64_MAX);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* The kept values of a region, x fastest. */
struct real_values {
    const double *reals;
    const uint64_t *bits;
    const double *kept;
    int64_t columns, rows, parts;
    size_t starts[PARTS + 1]; /* of the values of each part of the rows */
    size_t kept_of[PARTS];
    double ends[PARTS][2]; /* the smallest and the largest value of each part */
    double *items;
    size_t count;
};

/* Counts the voxels of the region in a part. */
static void
real_values_count(void *context, int64_t part)
{
    struct real_values *own = context;
    size_t count = 0;

    for (int64_t row = own->rows * part / own->parts; row < own->rows * (part + 1) / own->parts; row++)
        for (int64_t word = 0; word < (own->columns + 63) / 64; word++)
            count += (size_t)__builtin_popcountll(image_word(own->bits, own->columns, row, word));
    own->starts[part + 1] = count;
}

/* Copies the kept values of a part, a run of voxels at a time, without branches. */
static void
real_values_copy(void *context, int64_t part)
{
    struct real_values *own = context;
    double *const to = own->items + own->starts[part];
    const double least = own->kept[0], most = own->kept[1];
    double low = INFINITY, high = -INFINITY;
    size_t count = 0;

    for (int64_t row = own->rows * part / own->parts; row < own->rows * (part + 1) / own->parts; row++)
        for (int64_t word = 0; word < (own->columns + 63) / 64; word++)
            for (uint64_t bits = image_word(own->bits, own->columns, row, word), run; bits; bits &= bits + run) {
                const int first = __builtin_ctzll(bits),
                          rest = bits >> first == UINT64_MAX ? 64 : __builtin_ctzll(~(bits >> first));
                const double *const from = own->reals + row * own->columns + 64 * word + first;

                run = bits & -bits;
                for (int i = 0; i < rest; i++) {
                    const double value = from[i] + 0.0; /* not -0 */
                    const bool keeps = (value >= least) & (value <= most);

                    to[count] = value;
                    count += keeps;
                    low = keeps & (value < low) ? value : low;
                    high = keeps & (value > high) ? value : high;
                }
            }
    own->ends[part][0] = low;
    own->ends[part][1] = high;
    own->kept_of[part] = count;
}

/* Takes the values from kept[0] to kept[1] of a region. Returns 0 or -ENOMEM. The caller must free `items`. */
static int
real_values_take(struct kernels_lane *lane, const double *reals, const struct image_extent *extent,
                 const uint64_t *bits, const double kept[2], struct real_values *own)
{
    const int64_t rows = extent->rows * extent->slices;

    *own = (struct real_values){.reals = reals,
                                .bits = bits,
                                .kept = kept,
                                .columns = extent->columns,
                                .rows = rows,
                                .parts = rows < PARTS ? rows : PARTS};
    kernels_lane_for(lane, own->parts, real_values_count, own);
    for (int64_t part = 0; part < own->parts; part++)
        own->starts[part + 1] += own->starts[part];
    own->items = array_take_pages((own->starts[own->parts] + 1) * sizeof(*own->items));
    if (!own->items)
        return -ENOMEM;
    kernels_lane_for(lane, own->parts, real_values_copy, own);
    for (int64_t part = 0; part < own->parts; part++) { /* closes the gaps of values that are not kept */
        if (own->count < own->starts[part])
            memmove(own->items + own->count, own->items + own->starts[part], own->kept_of[part] * sizeof(*own->items));
        own->starts[part] = own->count;
        own->count += own->kept_of[part];
    }
    own->starts[own->parts] = own->count;
    return 0;
}

/* Lists each value of sorted keys once, with its count. Returns the number of values. */
static size_t
keys_list(const uint64_t *sorted, size_t count, struct value_count *items)
{
    size_t size = 0;

    for (size_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && sorted[next] == sorted[first];)
            next++;
        items[size++] = (struct value_count){sort_value_of(sorted[first]), next - first};
    }
    return size;
}

int
value_list_of_reals(struct kernels_lane *lane, const double *reals, const struct image_extent *extent,
                    const uint64_t *bits, const double kept[2], struct value_list *list)
{
    struct real_values own;
    uint64_t *keys;

    *list = (struct value_list){.size = 0};
    if (real_values_take(lane, reals, extent, bits, kept, &own))
        return -ENOMEM;
    keys = array_take_pages((2 * own.count + 1) * sizeof(*keys));
    list->items = array_take_pages((own.count + 1) * sizeof(*list->items));
    list->total = (double)own.count;
    for (size_t i = 0; keys && i < own.count; i++)
        keys[i] = sort_key_of(own.items[i]);
    free(own.items);
    if (keys && list->items) {
        sort_keys(keys, keys + own.count, own.count);
        list->size = keys_list(keys, own.count, list->items);
    } else {
        free(list->items);
        list->items = NULL;
    }
    free(keys);
    return list->items ? 0 : -ENOMEM;
}

int
value_list_make(const struct feature_region *region, struct value_list *list)
{
    const struct feature_volume *volume = region->volume;
    const size_t all = volume->tables * volume->values;
    size_t filled = 0;

    if (volume->reals) {
        const struct image_extent extent = feature_extent(volume);

        return value_list_of_reals(volume->lane, volume->reals, &extent, region->bits, region->kept, list);
    }
    for (size_t i = 0; i < all; i++)
        filled += region->histograms[i] > 0;
    *list = (struct value_list){.items = malloc((filled + 1) * sizeof(*list->items))};
    if (!list->items)
        return -ENOMEM;
    for (size_t i = 0; i < all; i++) {
        if (region->histograms[i] == 0) /* most are 0, and divisions are slow */
            continue;
        const struct image_rescale *rescale = &volume->rescales[i / volume->values];
        const double stored = (double)volume->smallest + (double)(i % volume->values);
        const double value = rescale->slope * stored + rescale->intercept;

        list->items[list->size++] = (struct value_count){value, region->histograms[i]};
        list->total += (double)region->histograms[i];
    }
    qsort(list->items, list->size, sizeof(*list->items), value_count_compare);
    /* Merge equal values of several slices, so that the list does not depend on the slices. */
    size_t kept = 0;

    for (size_t i = 0; i < list->size; i++) {
        if (kept > 0 && list->items[kept - 1].value == list->items[i].value)
            list->items[kept - 1].count += list->items[i].count;
        else
            list->items[kept++] = list->items[i];
    }
    list->size = kept;
    return 0;
}

void
level_counts(const struct feature_region *region, uint64_t *counts)
{
    const size_t entries = region->volume->tables * region->volume->values;

    const struct image_extent extent = feature_extent(region->volume);

    for (int level = 0; level < region->levels; level++)
        counts[level] = 0;
    for (int64_t i = 0; region->wide && i < image_voxels(&extent); i++)
        if (region->wide[i] > 0)
            counts[region->wide[i] - 1]++;
    if (region->wide)
        return;
    for (size_t i = 0; i < entries; i++)
        if (region->level_of[i] > 0)
            counts[region->level_of[i] - 1] += region->histograms[i];
}

double
entropy_of_counts(const uint64_t *counts, size_t size)
{
    double total = 0, sum = 0;

    for (size_t i = 0; i < size; i++)
        total += (double)counts[i];
    for (size_t i = 0; i < size; i++)
        if (counts[i] > 0)
            sum -= (double)counts[i] / total * log2((double)counts[i] / total);
    return sum > 0 ? sum : 0; /* not -0 */
}

/* ------------------------------------------------------------------------ the statistics -- */

/* Returns a quotient, or the reason why it is undefined. */
static struct feature_value
value_by(double value, double by)
{
    const double quotient = value / by;

    return isfinite(quotient) ? feature_present(quotient) : feature_absent(FEATURE_DIVISION_BY_ZERO);
}

/* Moves to the value at a rank, from 0, of the sorted voxels. `item` and the voxels before it are those of a lower rank, or 0. */
static double
value_list_at(const struct value_list *list, double rank, size_t *item, uint64_t *passed)
{
    if (list->total == (double)list->size) /* each value is there once */
        *item = *passed = (size_t)rank;
    while (*item + 1 < list->size && rank >= (double)(*passed + list->items[*item].count))
        *passed += list->items[(*item)++].count;
    return list->items[*item].value;
}

/* Sets the percentiles of ascending fractions. */
static void
value_list_percentiles(const struct value_list *list, size_t count, const double *fractions, double *percentiles)
{
    size_t item = 0;
    uint64_t passed = 0;

    for (size_t i = 0; i < count; i++) {
        const double rank = fractions[i] * (list->total - 1), below = floor(rank);
        const double low = value_list_at(list, below, &item, &passed);
        size_t next = item;
        uint64_t before = passed;
        const double high = value_list_at(list, ceil(rank), &next, &before);

        percentiles[i] = low + (high - low) * (rank - below);
    }
}

double
value_list_percentile(const struct value_list *list, double fraction)
{
    double percentile;

    value_list_percentiles(list, 1, &fraction, &percentile);
    return percentile;
}

/* The mean of values in low .. high. `first` is the first of them, so that the mean of equal values is exact. */
struct mean_sums {
    double low, high, first, above, total;
};

static void
mean_sums_add(struct mean_sums *sums, double value, double count)
{
    if (value < sums->low || value > sums->high)
        return;
    sums->above += count * (value - sums->first);
    sums->total += count;
}

static double
mean_of(const struct mean_sums *sums)
{
    return sums->first + sums->above / sums->total;
}

/* The mean absolute deviation from a centre of values in low .. high. */
struct deviation_sums {
    double low, high, centre, sum, total;
};

static void
deviation_add(struct deviation_sums *sums, double value, double count)
{
    if (value < sums->low || value > sums->high)
        return;
    sums->sum += count * fabs(value - sums->centre);
    sums->total += count;
}

/* Sums of squares of values plus a shift, and of powers of their distances from the mean. */
struct moments {
    double mean, shift, squares, second, third, fourth;
};

static void
moments_add(struct moments *sums, double value, double count)
{
    const double from = value - sums->mean, shifted = value + sums->shift;

    sums->squares += count * shifted * shifted;
    sums->second += count * from * from;
    sums->third += count * from * from * from;
    sums->fourth += count * from * from * from * from;
}

/* The sums of a pass over all values, and over those between two percentiles. */
struct first_pass {
    struct mean_sums all, robust;
};

static void
first_pass_add(struct first_pass *pass, double value, double count)
{
    mean_sums_add(&pass->all, value, count);
    mean_sums_add(&pass->robust, value, count);
}

/* The sums of the next pass. */
struct second_pass {
    struct moments moments;
    struct deviation_sums about_mean, robust, about_median;
};

static void
second_pass_add(struct second_pass *pass, double value, double count)
{
    moments_add(&pass->moments, value, count);
    deviation_add(&pass->about_mean, value, count);
    deviation_add(&pass->robust, value, count);
    deviation_add(&pass->about_median, value, count);
}

enum { PERCENTILE_10, PERCENTILE_25, PERCENTILE_50, PERCENTILE_75, PERCENTILE_90, PERCENTILES };

static const double percentile_fractions[PERCENTILES] = {0.1, 0.25, 0.5, 0.75, 0.9};

static struct second_pass
second_pass_after(const struct first_pass *first, const double percentiles[PERCENTILES], double shift)
{
    const double mean = mean_of(&first->all);

    return (struct second_pass){
        .moments = {.mean = mean, .shift = shift},
        .about_mean = {.low = -INFINITY, .high = INFINITY, .centre = mean},
        .robust = {.low = first->robust.low, .high = first->robust.high, .centre = mean_of(&first->robust)},
        .about_median = {.low = -INFINITY, .high = INFINITY, .centre = percentiles[PERCENTILE_50]}};
}

static void
statistics_put_moments(const struct moments *sums, double total, struct feature_value *values)
{
    const double second = sums->second / total;

    values[STATISTIC_MEAN] = feature_present(sums->mean);
    values[STATISTIC_VARIANCE] = feature_present(second);
    values[STATISTIC_COEFFICIENT_OF_VARIATION] = value_by(sqrt(second), sums->mean);
    values[STATISTIC_ENERGY] = feature_present(sums->squares);
    values[STATISTIC_ROOT_MEAN_SQUARE] = feature_present(sqrt(sums->squares / total));
    values[STATISTIC_SKEWNESS] = values[STATISTIC_KURTOSIS] = feature_absent(FEATURE_ONE_GREY_LEVEL);
    if (second > 0) {
        values[STATISTIC_SKEWNESS] = feature_present(sums->third / total / (second * sqrt(second)));
        values[STATISTIC_KURTOSIS] = feature_present(sums->fourth / total / (second * second) - 3);
    }
}

static void
statistics_put(const struct second_pass *sums, double total, double minimum, double maximum,
               const double percentiles[PERCENTILES], struct feature_value *values)
{
    const double lower = percentiles[PERCENTILE_25], upper = percentiles[PERCENTILE_75];

    statistics_put_moments(&sums->moments, total, values);
    values[STATISTIC_MINIMUM] = feature_present(minimum);
    values[STATISTIC_MAXIMUM] = feature_present(maximum);
    values[STATISTIC_RANGE] = feature_present(maximum - minimum);
    values[STATISTIC_MEDIAN] = feature_present(percentiles[PERCENTILE_50]);
    values[STATISTIC_PERCENTILE_10] = feature_present(percentiles[PERCENTILE_10]);
    values[STATISTIC_PERCENTILE_90] = feature_present(percentiles[PERCENTILE_90]);
    values[STATISTIC_INTERQUARTILE_RANGE] = feature_present(upper - lower);
    values[STATISTIC_QUARTILE_COEFFICIENT_OF_DISPERSION] = value_by(upper - lower, upper + lower);
    values[STATISTIC_MEAN_ABSOLUTE_DEVIATION] = feature_present(sums->about_mean.sum / sums->about_mean.total);
    /* The robust deviation uses the values between two percentiles. It is undefined if there are
     * none, as for two voxels with distant values. */
    values[STATISTIC_ROBUST_MEAN_ABSOLUTE_DEVIATION] = value_by(sums->robust.sum / sums->robust.total, 1);
    values[STATISTIC_MEDIAN_ABSOLUTE_DEVIATION] = feature_present(sums->about_median.sum / sums->about_median.total);
}

/* Sums that do not wait for each other are made together: two passes take a third of the time of seven. */
void
statistics_of(const struct value_list *list, double shift, struct feature_value values[STATISTICS])
{
    const struct value_count *items = list->items;
    double percentiles[PERCENTILES];
    size_t inner = 0;

    value_list_percentiles(list, PERCENTILES, percentile_fractions, percentiles);
    while (inner + 1 < list->size && items[inner].value < percentiles[PERCENTILE_10])
        inner++;
    struct first_pass first = {
        {.low = -INFINITY, .high = INFINITY, .first = items[0].value},
        {.low = percentiles[PERCENTILE_10], .high = percentiles[PERCENTILE_90], .first = items[inner].value}};

    for (size_t i = 0; i < list->size; i++)
        first_pass_add(&first, items[i].value, (double)items[i].count);
    struct second_pass second = second_pass_after(&first, percentiles, shift);

    for (size_t i = 0; i < list->size; i++)
        second_pass_add(&second, items[i].value, (double)items[i].count);
    statistics_put(&second, list->total, items[0].value, items[list->size - 1].value, percentiles, values);
}

/* ------------------------------------------------------------ statistics without a list -- */

/* Values by rank. Bins of equal width show which values may have a rank; only these are sorted. */
struct value_ranks {
    const struct real_values *own;
    double low, scale;
    size_t (*places)[BINS]; /* of each part: values of a bin, then the place of the next one in `keys`, or NOT_RANKED */
    size_t before[BINS + 1]; /* values in lower bins */
    size_t first[BINS];      /* the place of a bin in `keys` */
    uint64_t *keys;
};

#define NOT_RANKED SIZE_MAX

/* Ascends with the value. */
static int
ranked_bin(const struct value_ranks *ranked, double value)
{
    return ranked->scale > 0 ? (int)((value - ranked->low) * ranked->scale) : 0;
}

static void
ranked_count(void *context, int64_t part)
{
    const struct value_ranks *ranked = context;
    const struct real_values *own = ranked->own;

    for (size_t i = own->starts[part]; i < own->starts[part + 1]; i++)
        ranked->places[part][ranked_bin(ranked, own->items[i])]++;
}

static void
ranked_gather(void *context, int64_t part)
{
    const struct value_ranks *ranked = context;
    const struct real_values *own = ranked->own;

    for (size_t i = own->starts[part]; i < own->starts[part + 1]; i++) {
        size_t *place = &ranked->places[part][ranked_bin(ranked, own->items[i])];

        if (*place != NOT_RANKED)
            ranked->keys[(*place)++] = sort_key_of(own->items[i]);
    }
}

/* Returns the bin of a rank. */
static int
ranked_find(const struct value_ranks *ranked, size_t rank)
{
    int bin = 0;

    while (ranked->before[bin + 1] <= rank)
        bin++;
    return bin;
}

static bool
keys_are_equal(const uint64_t *keys, size_t count)
{
    size_t equal = 1;

    while (equal < count && keys[equal] == keys[0])
        equal++;
    return equal >= count;
}

/* Sorts the values of the bins with these ranks. */
static int
ranked_sort(struct kernels_lane *lane, struct value_ranks *ranked, const size_t *ranks, size_t count)
{
    const int64_t parts = ranked->own->parts;
    bool wanted[BINS] = {false};
    size_t gathered = 0;

    for (size_t r = 0; r < count; r++)
        wanted[ranked_find(ranked, ranks[r])] = true;
    for (int bin = 0; bin < BINS; bin++) {
        ranked->first[bin] = gathered;
        for (int64_t part = 0; part < parts; part++) {
            const size_t values = ranked->places[part][bin];

            ranked->places[part][bin] = wanted[bin] ? gathered : NOT_RANKED;
            gathered += wanted[bin] ? values : 0;
        }
    }
    ranked->keys = malloc(2 * gathered * sizeof(*ranked->keys));
    if (!ranked->keys)
        return -ENOMEM;
    kernels_lane_for(lane, parts, ranked_gather, ranked);
    for (int bin = 0; bin < BINS; bin++) {
        uint64_t *keys = ranked->keys + ranked->first[bin];
        const size_t values = ranked->before[bin + 1] - ranked->before[bin];

        if (wanted[bin] && !keys_are_equal(keys, values))
            sort_keys(keys, ranked->keys + gathered, values);
    }
    return 0;
}

/* Finds percentiles, as value_list_percentiles(). */
static int
real_values_percentiles(struct kernels_lane *lane, const struct real_values *own, const double ends[2],
                        double percentiles[PERCENTILES])
{
    const double scale = (BINS - 1) / (ends[1] - ends[0]);
    struct value_ranks *ranked = malloc(sizeof(*ranked));
    size_t ranks[2 * PERCENTILES];
    int rc = -ENOMEM;

    if (!ranked)
        return -ENOMEM;
    *ranked = (struct value_ranks){.own = own,
                                   .low = ends[0],
                                   .scale = isfinite(scale) && isfinite(ends[0]) ? scale : 0,
                                   .places = calloc((size_t)own->parts, sizeof(*ranked->places))};
    for (int i = 0; i < 2 * PERCENTILES; i++) {
        const double rank = percentile_fractions[i / 2] * ((double)own->count - 1);

        ranks[i] = (size_t)(i % 2 > 0 ? ceil(rank) : floor(rank));
    }
    if (ranked->places) {
        kernels_lane_for(lane, own->parts, ranked_count, ranked);
        for (int bin = 0; bin < BINS; bin++) {
            ranked->before[bin + 1] = ranked->before[bin];
            for (int64_t part = 0; part < own->parts; part++)
                ranked->before[bin + 1] += ranked->places[part][bin];
        }
        rc = ranked_sort(lane, ranked, ranks, 2 * PERCENTILES);
    }
    for (int i = 0; i < PERCENTILES && rc == 0; i++) {
        double found[2];

        for (int end = 0; end < 2; end++) {
            const size_t rank = ranks[2 * i + end];
            const int bin = ranked_find(ranked, rank);

            found[end] = sort_value_of(ranked->keys[ranked->first[bin] + rank - ranked->before[bin]]);
        }
        const double rank = percentile_fractions[i] * ((double)own->count - 1);

        percentiles[i] = found[0] + (found[1] - found[0]) * (rank - floor(rank));
    }
    free(ranked->keys);
    free(ranked->places);
    free(ranked);
    return rc;
}

/* Sums of a pass, per block of values. */
struct summing {
    const struct real_values *own;
    int64_t blocks;
    struct first_pass first, *firsts;
    struct second_pass second, *seconds;
};

static void
summing_first(void *context, int64_t block)
{
    const struct summing *summing = context;
    const size_t begun = (size_t)block * SUMMED, count = summing->own->count;
    struct first_pass sums = summing->first;

    for (size_t i = begun; i < count && i < begun + SUMMED; i++)
        first_pass_add(&sums, summing->own->items[i], 1);
    summing->firsts[block] = sums;
}

static void
summing_second(void *context, int64_t block)
{
    const struct summing *summing = context;
    const size_t begun = (size_t)block * SUMMED, count = summing->own->count;
    struct second_pass sums = summing->second;

    for (size_t i = begun; i < count && i < begun + SUMMED; i++)
        second_pass_add(&sums, summing->own->items[i], 1);
    summing->seconds[block] = sums;
}

static void
mean_join(struct mean_sums *sums, const struct mean_sums *block)
{
    sums->above += block->above;
    sums->total += block->total;
}

static void
deviation_join(struct deviation_sums *sums, const struct deviation_sums *block)
{
    sums->sum += block->sum;
    sums->total += block->total;
}

static void
second_pass_join(struct second_pass *sums, const struct second_pass *block)
{
    sums->moments.squares += block->moments.squares;
    sums->moments.second += block->moments.second;
    sums->moments.third += block->moments.third;
    sums->moments.fourth += block->moments.fourth;
    deviation_join(&sums->about_mean, &block->about_mean);
    deviation_join(&sums->robust, &block->robust);
    deviation_join(&sums->about_median, &block->about_median);
}

/* Makes both passes. */
static void
summing_run(struct kernels_lane *lane, struct summing *summing, const double percentiles[PERCENTILES], double shift)
{
    const struct real_values *own = summing->own;
    const double low = percentiles[PERCENTILE_10], high = percentiles[PERCENTILE_90];
    size_t inner = 0;

    while (inner + 1 < own->count && !(own->items[inner] >= low && own->items[inner] <= high))
        inner++;
    summing->first = (struct first_pass){{.low = -INFINITY, .high = INFINITY, .first = own->items[0]},
                                         {.low = low, .high = high, .first = own->items[inner]}};
    kernels_lane_for(lane, summing->blocks, summing_first, summing);
    for (int64_t block = 0; block < summing->blocks; block++) {
        mean_join(&summing->first.all, &summing->firsts[block].all);
        mean_join(&summing->first.robust, &summing->firsts[block].robust);
    }
    summing->second = second_pass_after(&summing->first, percentiles, shift);
    kernels_lane_for(lane, summing->blocks, summing_second, summing);
    for (int64_t block = 0; block < summing->blocks; block++)
        second_pass_join(&summing->second, &summing->seconds[block]);
}

int
statistics_of_reals(struct kernels_lane *lane, const double *reals, const struct image_extent *extent,
                    const uint64_t *bits, const double kept[2], double shift, struct feature_value values[STATISTICS])
{
    double ends[2] = {INFINITY, -INFINITY}, percentiles[PERCENTILES];
    struct real_values own;
    struct summing summing = {.own = &own};
    int rc = real_values_take(lane, reals, extent, bits, kept, &own);

    for (int64_t part = 0; part < own.parts; part++) {
        ends[0] = fmin(ends[0], own.ends[part][0]);
        ends[1] = fmax(ends[1], own.ends[part][1]);
    }
    if (rc || own.count == 0) {
        free(own.items);
        return rc ? rc : -ENODATA;
    }
    summing.blocks = (int64_t)((own.count + SUMMED - 1) / SUMMED);
    summing.firsts = malloc((size_t)summing.blocks * sizeof(*summing.firsts));
    summing.seconds = malloc((size_t)summing.blocks * sizeof(*summing.seconds));
    rc = summing.firsts && summing.seconds ? real_values_percentiles(lane, &own, ends, percentiles) : -ENOMEM;
    if (rc == 0) {
        summing_run(lane, &summing, percentiles, shift);
        statistics_put(&summing.second, (double)own.count, ends[0], ends[1], percentiles, values);
    }
    free(summing.firsts);
    free(summing.seconds);
    free(own.items);
    return rc;
}
