/*
 * statistics.c - see statistics.h.
 *
 * Merges the histograms of all slices into one list of real-world values with counts, in ascending
 * order. Every statistic is a pass over that list.
 */
#include "kernels/features/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

enum {
    SORT_BYTES = 4, /* upper bytes of keys, by which all are sorted at first: few of them are equal */
    SORT_FEW = 16,  /* keys that are inserted one by one */
};

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

/* Sorts keys. `other` has the same size. Returns the sorted keys, which are in one of the two. */
static uint64_t *
sort_keys(uint64_t *keys, uint64_t *other, size_t count)
{
    size_t end;

    keys = sort_keys_by(keys, other, count, 8 - SORT_BYTES, 8);
    for (size_t first = 0; first < count; first = end) {
        for (end = first + 1; end < count && keys[end] >> 8 * (8 - SORT_BYTES) == keys[first] >> 8 * (8 - SORT_BYTES);)
            end++;
        if (end - first <= SORT_FEW)
            sort_few_keys(keys + first, end - first);
        else if (sort_keys_by(keys + first, other, end - first, 0, 8 - SORT_BYTES) == other)
            memcpy(keys + first, other, (end - first) * sizeof(*keys));
    }
    return keys;
}

/* Lists each value of the sorted keys once, with its count. The list has no items if memory is short. */
static void
value_list_count(const uint64_t *sorted, size_t count, struct value_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        kept += i == 0 || sorted[i] != sorted[i - 1];
    list->items = malloc((kept + 1) * sizeof(*list->items));
    for (size_t i = 0; list->items && i < count; i++) {
        const uint64_t bits_of = sorted[i] ^ (sorted[i] >> 63 ? UINT64_C(1) << 63 : UINT64_MAX);

        if (i == 0 || sorted[i] != sorted[i - 1]) {
            list->items[list->size].count = 0;
            memcpy(&list->items[list->size++].value, &bits_of, sizeof(double));
        }
        list->items[list->size - 1].count++;
    }
}

int
value_list_of_reals(const double *reals, const struct image_extent *extent, const uint64_t *bits, const double kept[2],
                    struct value_list *list)
{
    const int64_t columns = extent->columns, rows = extent->rows * extent->slices;
    size_t count = 0;

    *list = (struct value_list){.size = 0};
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++)
            count += image_has(bits, columns, y, x);
    uint64_t *keys = malloc((2 * count + 1) * sizeof(*keys)), *next = keys;

    if (!keys)
        return -ENOMEM;
    /* The bits of doubles, with the sign inverted, or all bits below 0, ascend as their values. */
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++) {
            const double value = reals[y * columns + x] + 0.0; /* not -0 */

            if (!image_has(bits, columns, y, x) || !(value >= kept[0]) || !(value <= kept[1]))
                continue;
            memcpy(next, &value, sizeof(*next));
            *next ^= *next >> 63 ? UINT64_MAX : UINT64_C(1) << 63;
            next++;
        }
    count = (size_t)(next - keys);
    value_list_count(sort_keys(keys, keys + count, count), count, list);
    list->total = (double)count;
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

        return value_list_of_reals(volume->reals, &extent, region->bits, region->kept, list);
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

/* Returns the value at a rank, from 0, of the sorted voxels. */
static double
value_list_at(const struct value_list *list, double rank)
{
    double passed = 0;

    for (size_t i = 0; i < list->size; i++) {
        passed += (double)list->items[i].count;
        if (rank < passed)
            return list->items[i].value;
    }
    return list->items[list->size - 1].value;
}

double
value_list_percentile(const struct value_list *list, double fraction)
{
    const double rank = fraction * (list->total - 1), below = floor(rank);
    const double low = value_list_at(list, below), high = value_list_at(list, ceil(rank));

    return low + (high - low) * (rank - below);
}

/* Returns the mean of values in low .. high. The mean of equal values is exact. */
static double
mean_within(const struct value_list *list, double low, double high)
{
    double first = 0, above = 0, total = 0;

    for (size_t i = 0; i < list->size; i++) {
        const double count = (double)list->items[i].count, value = list->items[i].value;

        if (value < low || value > high)
            continue;
        first = total > 0 ? first : value;
        above += count * (value - first);
        total += count;
    }
    return first + above / total;
}

/* Returns the mean absolute deviation from a centre of values in low .. high. */
static double
mean_deviation(const struct value_list *list, double low, double high, double centre)
{
    double sum = 0, total = 0;

    for (size_t i = 0; i < list->size; i++) {
        const double count = (double)list->items[i].count, value = list->items[i].value;

        if (value < low || value > high)
            continue;
        sum += count * fabs(value - centre);
        total += count;
    }
    return sum / total;
}

static void
statistics_put_moments(const struct value_list *list, struct feature_value *values)
{
    const double mean = mean_within(list, -INFINITY, INFINITY);
    double squares = 0, second = 0, third = 0, fourth = 0;

    for (size_t i = 0; i < list->size; i++) {
        const double count = (double)list->items[i].count, value = list->items[i].value;
        const double from = value - mean;

        squares += count * value * value;
        second += count * from * from;
        third += count * from * from * from;
        fourth += count * from * from * from * from;
    }
    second /= list->total;
    values[STATISTIC_MEAN] = feature_present(mean);
    values[STATISTIC_VARIANCE] = feature_present(second);
    values[STATISTIC_COEFFICIENT_OF_VARIATION] = value_by(sqrt(second), mean);
    values[STATISTIC_ENERGY] = feature_present(squares);
    values[STATISTIC_ROOT_MEAN_SQUARE] = feature_present(sqrt(squares / list->total));
    values[STATISTIC_SKEWNESS] = values[STATISTIC_KURTOSIS] = feature_absent(FEATURE_ONE_GREY_LEVEL);
    if (second > 0) {
        values[STATISTIC_SKEWNESS] = feature_present(third / list->total / (second * sqrt(second)));
        values[STATISTIC_KURTOSIS] = feature_present(fourth / list->total / (second * second) - 3);
    }
}

void
statistics_of(const struct value_list *list, struct feature_value values[STATISTICS])
{
    const double minimum = list->items[0].value, maximum = list->items[list->size - 1].value;
    const double lower = value_list_percentile(list, 0.25);
    const double upper = value_list_percentile(list, 0.75);
    const double low = value_list_percentile(list, 0.1), high = value_list_percentile(list, 0.9);

    statistics_put_moments(list, values);
    values[STATISTIC_MINIMUM] = feature_present(minimum);
    values[STATISTIC_MAXIMUM] = feature_present(maximum);
    values[STATISTIC_RANGE] = feature_present(maximum - minimum);
    values[STATISTIC_MEDIAN] = feature_present(value_list_percentile(list, 0.5));
    values[STATISTIC_PERCENTILE_10] = feature_present(low);
    values[STATISTIC_PERCENTILE_90] = feature_present(high);
    values[STATISTIC_INTERQUARTILE_RANGE] = feature_present(upper - lower);
    values[STATISTIC_QUARTILE_COEFFICIENT_OF_DISPERSION] = value_by(upper - lower, upper + lower);
    values[STATISTIC_MEAN_ABSOLUTE_DEVIATION] =
        feature_present(mean_deviation(list, -INFINITY, INFINITY, values[STATISTIC_MEAN].value));
    /* The robust deviation uses the values between two percentiles. It is undefined if there are
     * none, as for two voxels with distant values. */
    values[STATISTIC_ROBUST_MEAN_ABSOLUTE_DEVIATION] =
        value_by(mean_deviation(list, low, high, mean_within(list, low, high)), 1);
    values[STATISTIC_MEDIAN_ABSOLUTE_DEVIATION] =
        feature_present(mean_deviation(list, -INFINITY, INFINITY, values[STATISTIC_MEDIAN].value));
}
