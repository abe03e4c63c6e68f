/*
 * statistics.c - see statistics.h.
 *
 * Merges the histograms of all slices into one list of real-world values with counts, in ascending
 * order. Every statistic is a pass over that list.
 */
#include "kernels/features/statistics.h"

#include "base/array.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SORT_FEW = 16,       /* keys that are inserted one by one */
    SORT_MANY = 1 << 15, /* keys that are first distributed by their upper bits */
    SORT_BINS = 1 << 16,
    SORT_PARTS = 8, /* of rows and keys, which threads take in turn */
};

/* The keys of a bin, and its values in the list. */
struct keys_bin {
    uint32_t first, end;
    size_t item, unique;
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
        return voxels * (sizeof(struct value_count) + 2 * sizeof(uint64_t)) +
               (voxels >= SORT_MANY ? SORT_BINS * (SORT_PARTS * sizeof(uint32_t) + sizeof(struct keys_bin)) : 0);
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

/* Sorts keys in place. `other` has the same size. Bytes from `end` on are equal. */
static void
sort_keys(uint64_t *keys, uint64_t *other, size_t count, int end)
{
    size_t next;

    if (count <= SORT_FEW) {
        sort_few_keys(keys, count);
        return;
    }
    if (sort_keys_by(keys, other, count, 4, end) == other)
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

/* Values of a region that become sorted keys. */
struct keys {
    const double *reals;
    const uint64_t *bits;
    const double *kept;
    int64_t columns, rows, parts;
    size_t count, counts[SORT_PARTS], starts[SORT_PARTS]; /* of all parts, and of each */
    uint64_t *keys, *other;
    uint32_t *bins;          /* of each part: keys, then the place of the next one */
    struct keys_bin *filled; /* bins with keys */
    struct value_count *items;
};

/* Writes the keys of a part, unless `to` is NULL. Returns their number. */
static size_t
keys_of_part(const struct keys *own, int64_t part, uint64_t *to)
{
    size_t count = 0;

    for (int64_t row = own->rows * part / own->parts; row < own->rows * (part + 1) / own->parts; row++)
        for (int64_t word = 0; word < (own->columns + 63) / 64; word++)
            for (uint64_t bits = image_word(own->bits, own->columns, row, word); bits; bits &= bits - 1) {
                const double value =
                    own->reals[row * own->columns + 64 * word + __builtin_ctzll(bits)] + 0.0; /* not -0 */
                uint64_t key;

                if (!(value >= own->kept[0]) || !(value <= own->kept[1]))
                    continue;
                if (to) { /* the bits of doubles, with the sign inverted, or all bits below 0, ascend as their values */
                    memcpy(&key, &value, sizeof(key));
                    to[count] = key ^ (key >> 63 ? UINT64_MAX : UINT64_C(1) << 63);
                }
                count++;
            }
    return count;
}

static void
keys_count(void *context, int64_t part)
{
    struct keys *own = context;

    own->counts[part] = keys_of_part(own, part, NULL);
}

/* Makes the keys of a part, and counts those of each bin. */
static void
keys_make(void *context, int64_t part)
{
    struct keys *own = context;
    uint64_t *keys = own->keys + own->starts[part];
    const size_t count = keys_of_part(own, part, keys);

    for (size_t i = 0; own->bins && i < count; i++)
        own->bins[part * SORT_BINS + (int64_t)(keys[i] >> 48)]++;
}

static void
keys_distribute(void *context, int64_t part)
{
    struct keys *own = context;
    const uint64_t *keys = own->keys + own->starts[part];
    uint32_t *places = own->bins + part * SORT_BINS;

    for (size_t i = 0; i < own->counts[part]; i++)
        own->other[places[keys[i] >> 48]++] = keys[i];
}

/* Returns how many of sorted keys differ from the one before. */
static size_t
keys_unique(const uint64_t *sorted, size_t count)
{
    size_t unique = count > 0;

    for (size_t i = 1; i < count; i++)
        unique += sorted[i] != sorted[i - 1];
    return unique;
}

/* Lists each value of sorted keys once, with its count. */
static void
keys_list(const uint64_t *sorted, size_t count, struct value_count *items)
{
    for (size_t first = 0, next; first < count; first = next, items++) {
        const uint64_t bits_of = sorted[first] ^ (sorted[first] >> 63 ? UINT64_C(1) << 63 : UINT64_MAX);

        for (next = first + 1; next < count && sorted[next] == sorted[first];)
            next++;
        items->count = next - first;
        memcpy(&items->value, &bits_of, sizeof(double));
    }
}

static void
keys_sort_bin(void *context, int64_t number)
{
    struct keys *own = context;
    struct keys_bin *bin = &own->filled[number];

    sort_keys(own->other + bin->first, own->keys + bin->first, bin->end - bin->first, 6);
    bin->unique = keys_unique(own->other + bin->first, bin->end - bin->first);
}

static void
keys_list_bin(void *context, int64_t number)
{
    const struct keys *own = context;
    const struct keys_bin *bin = &own->filled[number];

    keys_list(own->other + bin->first, bin->end - bin->first, own->items + bin->item);
}

/* Distributes the keys to the bins of their upper bits, sorts each bin, and lists its values. */
static void
keys_list_bins(struct kernels_lane *lane, struct keys *own, struct value_list *list)
{
    int64_t filled = 0;
    uint32_t next = 0;

    for (int64_t bin = 0; bin < SORT_BINS; bin++) {
        const uint32_t first = next;

        for (int64_t part = 0; part < own->parts; part++) {
            uint32_t *place = &own->bins[part * SORT_BINS + bin];
            const uint32_t count = *place;

            *place = next;
            next += count;
        }
        if (next > first)
            own->filled[filled++] = (struct keys_bin){.first = first, .end = next};
    }
    kernels_lane_for(lane, own->parts, keys_distribute, own);
    kernels_lane_for(lane, filled, keys_sort_bin, own);
    for (int64_t bin = 0; bin < filled; bin++) {
        own->filled[bin].item = list->size;
        list->size += own->filled[bin].unique;
    }
    list->items = own->items = array_take_pages((list->size + 1) * sizeof(*list->items));
    if (list->items)
        kernels_lane_for(lane, filled, keys_list_bin, own);
}

int
value_list_of_reals(struct kernels_lane *lane, const double *reals, const struct image_extent *extent,
                    const uint64_t *bits, const double kept[2], struct value_list *list)
{
    const int64_t rows = extent->rows * extent->slices;
    struct keys own = {.reals = reals,
                       .bits = bits,
                       .kept = kept,
                       .columns = extent->columns,
                       .rows = rows,
                       .parts = rows < SORT_PARTS ? rows : SORT_PARTS};

    *list = (struct value_list){.size = 0};
    kernels_lane_for(lane, own.parts, keys_count, &own);
    for (int64_t part = 0; part < own.parts; part++) {
        own.starts[part] = own.count;
        own.count += own.counts[part];
    }
    const bool is_many = own.count >= SORT_MANY && own.count <= UINT32_MAX;

    own.keys = array_take_pages((2 * own.count + 1) * sizeof(*own.keys));
    own.bins = is_many ? calloc(SORT_PARTS * SORT_BINS, sizeof(*own.bins)) : NULL;
    own.filled = is_many ? malloc(SORT_BINS * sizeof(*own.filled)) : NULL;
    list->total = (double)own.count;
    if (own.keys && own.bins && own.filled) {
        own.other = own.keys + own.count;
        kernels_lane_for(lane, own.parts, keys_make, &own);
        keys_list_bins(lane, &own, list);
    } else if (own.keys && !is_many) {
        kernels_lane_for(lane, own.parts, keys_make, &own);
        sort_keys(own.keys, own.keys + own.count, own.count, 8);
        list->size = keys_unique(own.keys, own.count);
        list->items = malloc((list->size + 1) * sizeof(*list->items));
        if (list->items)
            keys_list(own.keys, own.count, list->items);
    }
    free(own.filled);
    free(own.bins);
    free(own.keys);
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

/* The mean of values in low .. high. The mean of equal values is exact. */
struct mean_sums {
    double low, high, first, above, total;
};

static void
list_mean_add(struct mean_sums *sums, double value, double count)
{
    if (value < sums->low || value > sums->high)
        return;
    sums->first = sums->total > 0 ? sums->first : value;
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

/* Sums of powers of values, and of their distances from the mean. */
struct moments {
    double mean, squares, second, third, fourth;
};

static void
moments_add(struct moments *sums, double value, double count)
{
    const double from = value - sums->mean;

    sums->squares += count * value * value;
    sums->second += count * from * from;
    sums->third += count * from * from * from;
    sums->fourth += count * from * from * from * from;
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

/* Sums that do not wait for each other are made together: two passes take a third of the time of seven. */
void
statistics_of(const struct value_list *list, struct feature_value values[STATISTICS])
{
    const double minimum = list->items[0].value, maximum = list->items[list->size - 1].value;
    static const double fractions[] = {0.1, 0.25, 0.5, 0.75, 0.9};
    double percentiles[5];

    value_list_percentiles(list, 5, fractions, percentiles);
    const double low = percentiles[0], lower = percentiles[1], median = percentiles[2];
    const double upper = percentiles[3], high = percentiles[4];
    struct mean_sums all = {.low = -INFINITY, .high = INFINITY}, robust = {.low = low, .high = high};

    for (size_t i = 0; i < list->size; i++) {
        list_mean_add(&all, list->items[i].value, (double)list->items[i].count);
        list_mean_add(&robust, list->items[i].value, (double)list->items[i].count);
    }
    struct moments moments = {.mean = mean_of(&all)};
    struct deviation_sums deviations[3] = {{.low = -INFINITY, .high = INFINITY, .centre = moments.mean},
                                           {.low = low, .high = high, .centre = mean_of(&robust)},
                                           {.low = -INFINITY, .high = INFINITY, .centre = median}};

    for (size_t i = 0; i < list->size; i++) {
        const double value = list->items[i].value, count = (double)list->items[i].count;

        moments_add(&moments, value, count);
        for (int d = 0; d < 3; d++)
            deviation_add(&deviations[d], value, count);
    }
    statistics_put_moments(&moments, list->total, values);
    values[STATISTIC_MINIMUM] = feature_present(minimum);
    values[STATISTIC_MAXIMUM] = feature_present(maximum);
    values[STATISTIC_RANGE] = feature_present(maximum - minimum);
    values[STATISTIC_MEDIAN] = feature_present(median);
    values[STATISTIC_PERCENTILE_10] = feature_present(low);
    values[STATISTIC_PERCENTILE_90] = feature_present(high);
    values[STATISTIC_INTERQUARTILE_RANGE] = feature_present(upper - lower);
    values[STATISTIC_QUARTILE_COEFFICIENT_OF_DISPERSION] = value_by(upper - lower, upper + lower);
    values[STATISTIC_MEAN_ABSOLUTE_DEVIATION] = feature_present(deviations[0].sum / deviations[0].total);
    /* The robust deviation uses the values between two percentiles. It is undefined if there are
     * none, as for two voxels with distant values. */
    values[STATISTIC_ROBUST_MEAN_ABSOLUTE_DEVIATION] = value_by(deviations[1].sum / deviations[1].total, 1);
    values[STATISTIC_MEDIAN_ABSOLUTE_DEVIATION] = feature_present(deviations[2].sum / deviations[2].total);
}
