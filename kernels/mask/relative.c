#include "kernels/mask/relative.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Tallies */

struct tally_entry {
    double value;
    uint64_t count;
};

static int
compare_entries(const void *a, const void *b)
{
    double left = ((const struct tally_entry *)a)->value;
    double right = ((const struct tally_entry *)b)->value;

    return (left > right) - (left < right);
}

/* Collects the non-empty bins as real-world values. Only counts them without memory. */
static size_t
collect_entries(enum image_pixel pixel, const uint64_t *histograms, size_t tables, const struct image_rescale *rescales,
                struct tally_entry *entries)
{
    const struct image_range range = image_pixel_range(pixel);
    const size_t bins = (size_t)(range.hi - range.lo) + 1;
    const int32_t lowest = range.lo;
    size_t found = 0;

    for (size_t i = 0; i < tables * bins; i++) {
        const struct image_rescale *rescale = &rescales[i / bins];

        if (histograms[i] == 0)
            continue;
        if (entries)
            entries[found] = (struct tally_entry){
                rescale->slope * (double)(lowest + (int32_t)(i % bins)) + rescale->intercept, histograms[i]};
        found++;
    }
    return found;
}

int
mask_tally_make(enum image_pixel pixel, const uint64_t *histograms, size_t tables, const struct image_rescale *rescales,
                struct mask_tally *tally, struct error *error)
{
    const size_t count = collect_entries(pixel, histograms, tables, rescales, NULL);
    struct tally_entry *entries = calloc(count + 1, sizeof(*entries));

    *tally = (struct mask_tally){.values = calloc(count + 1, sizeof(*tally->values)),
                                 .counts = calloc(count + 1, sizeof(*tally->counts))};
    if (!entries || !tally->values || !tally->counts) {
        free(entries);
        mask_tally_free(tally);
        return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no memory for a tally of values");
    }
    collect_entries(pixel, histograms, tables, rescales, entries);
    qsort(entries, count, sizeof(*entries), compare_entries);
    /* Merge entries of equal values. */
    for (size_t i = 0; i < count; i++) {
        tally->total += entries[i].count;
        if (i > 0 && entries[i].value == entries[i - 1].value) {
            tally->counts[tally->count - 1] += entries[i].count;
            continue;
        }
        tally->values[tally->count] = entries[i].value;
        tally->counts[tally->count++] = entries[i].count;
    }
    free(entries);
    return 0;
}

void
mask_tally_free(struct mask_tally *tally)
{
    free(tally->values);
    free(tally->counts);
    *tally = (struct mask_tally){0};
}

/* Ranges */

static double
percentile_of(const struct mask_tally *tally, double p)
{
    const double wanted = p / 100 * (double)tally->total;
    uint64_t below = 0;

    for (size_t i = 0; i < tally->count; i++) {
        below += tally->counts[i];
        if ((double)below >= wanted)
            return tally->values[i];
    }
    return tally->values[tally->count - 1];
}

int
mask_range_percentile(const struct mask_tally *tally, double p, double q, double range[2])
{
    if (tally->count == 0)
        return -ENODATA;
    range[0] = percentile_of(tally, p);
    range[1] = percentile_of(tally, q);
    return 0;
}

static double
tally_mean(const struct mask_tally *tally)
{
    double sum = 0;

    for (size_t i = 0; i < tally->count; i++)
        sum += tally->values[i] * (double)tally->counts[i];
    return sum / (double)tally->total;
}

int
mask_range_sigma(const struct mask_tally *tally, double s, double range[2])
{
    double mean, squares = 0, apart;

    if (tally->count == 0)
        return -ENODATA;
    mean = tally_mean(tally);
    for (size_t i = 0; i < tally->count; i++) {
        double away = tally->values[i] - mean;

        squares += away * away * (double)tally->counts[i];
    }
    apart = s * sqrt(squares / (double)tally->total);
    range[0] = mean - apart;
    range[1] = mean + apart;
    return 0;
}

int
mask_range_of_max(const struct mask_tally *tally, double share, double range[2])
{
    if (tally->count == 0)
        return -ENODATA;
    range[0] = share * tally->values[tally->count - 1];
    range[1] = INFINITY;
    return 0;
}

/* Otsu's classes */

/*
 * S is the sum of the values of a class, less the mean. The variance between classes is largest where the sum of S^2 /
 * N over the classes is largest. `best` is the largest such sum of the first i values with the classes so far. `next`
 * is that with one class more, whose first value is `begin`.
 */
struct otsu_search {
    double *numbers; /* numbers of the first i values, and their sums */
    double *sums;
    double *best, *next;
    uint32_t *begin;
};

static double
otsu_gain(const struct otsu_search *search, size_t first, size_t end)
{
    double sum = search->sums[end] - search->sums[first];

    return sum * sum / (search->numbers[end] - search->numbers[first]);
}

/*
 * Computes next[i] for i of first .. last, with the class's first value in low .. high. The best
 * one increases with i (Grønlund 2017): the result for the middle halves the range on either side.
 */
static void
otsu_fill(struct otsu_search *search, size_t first, size_t last, size_t low, size_t high)
{
    while (first <= last) {
        const size_t middle = first + (last - first) / 2;
        size_t best = low;

        search->next[middle] = -INFINITY;
        for (size_t begin = low; begin <= high && begin < middle; begin++) {
            double sum = search->best[begin] + otsu_gain(search, begin, middle);

            if (sum > search->next[middle]) {
                search->next[middle] = sum;
                best = begin;
            }
        }
        search->begin[middle] = (uint32_t)best;
        if (middle > first)
            otsu_fill(search, first, middle - 1, low, best);
        first = middle + 1;
        low = best;
    }
}

/* Finds the classes' first values, followed by the index behind the last value. */
static void
otsu_split(const struct mask_tally *tally, struct otsu_search *search, int classes, size_t first[MASK_MOST_CLASSES + 1])
{
    const size_t count = tally->count;
    uint32_t *begins = search->begin;
    const double mean = tally_mean(tally);

    search->numbers[0] = search->sums[0] = 0;
    for (size_t i = 0; i < tally->count; i++) {
        const double number = (double)tally->counts[i];

        search->numbers[i + 1] = search->numbers[i] + number;
        search->sums[i + 1] = search->sums[i] + (tally->values[i] - mean) * number;
    }
    search->best[0] = -INFINITY;
    for (size_t i = 1; i <= count; i++)
        search->best[i] = otsu_gain(search, 0, i);
    for (int of = 2; of <= classes; of++) {
        double *best = search->best;

        search->begin = begins + (size_t)of * (count + 1);
        otsu_fill(search, (size_t)of, count, (size_t)of - 1, count - 1);
        for (int i = 0; i < of; i++)
            search->next[i] = -INFINITY;
        search->best = search->next;
        search->next = best;
    }
    first[classes] = count;
    for (int of = classes; of >= 2; of--)
        first[of - 1] = begins[(size_t)of * (count + 1) + first[of]];
    first[0] = 0;
    search->begin = begins;
}

size_t
mask_range_bytes(size_t counts, size_t values, int classes)
{
    const size_t length = values + 1, tally = length * (sizeof(double) + sizeof(uint64_t));
    const size_t making = counts * sizeof(uint64_t) + tally + length * sizeof(struct tally_entry);
    const size_t otsu = tally + length * (4 * sizeof(double) + (size_t)(classes + 1) * sizeof(uint32_t));

    return classes > 0 && otsu > making ? otsu : making;
}

int
mask_range_otsu(const struct mask_tally *tally, int classes, int number, double range[2], struct error *error)
{
    const size_t length = tally->count + 1;
    size_t first[MASK_MOST_CLASSES + 1];
    struct otsu_search search;
    double *numbers;

    if (classes < 2 || classes > MASK_MOST_CLASSES || number < 1 || number > classes)
        return error_set(error, -EINVAL, CODE_COMPUTE_FAILED, "there is no class %d of %d", number, classes);
    if (tally->count < (size_t)classes)
        return -ENODATA;
    numbers = calloc(4 * length, sizeof(*numbers));
    search = (struct otsu_search){numbers, numbers + length, numbers + 2 * length, numbers + 3 * length,
                                  calloc((size_t)(classes + 1) * length, sizeof(*search.begin))};
    if (!numbers || !search.begin) {
        free(numbers);
        free(search.begin);
        return error_set(error, -ENOMEM, CODE_COMPUTE_FAILED, "no memory to find %d classes", classes);
    }
    otsu_split(tally, &search, classes, first);
    range[0] = tally->values[first[number - 1]];
    range[1] = tally->values[first[number] - 1];
    free(numbers);
    free(search.begin);
    return 0;
}
