#include "tests/kernels/ref_jobs.h"
#include "tests/kernels/ref_fuzzy.h"
#include "tests/kernels/ref_level_set.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t
ref_mask_words(struct image_extent extent)
{
    return (extent.columns + 63) / 64 * extent.rows * extent.slices;
}

static struct kernels_fuzzy_demand
fuzzy_demand_of(const struct ref_whole *whole)
{
    struct kernels_fuzzy_demand demand = {.objects = whole->object_count, .relative = whole->relative};

    for (size_t i = 0; i < whole->object_count; i++)
        demand.maps += whole->objects[i].map;
    return demand;
}

static int
run_fuzzy(struct kernels_lane *lane, const struct ref_whole *whole, struct ref_results *results, struct error *error)
{
    if (whole->object_count == 0)
        return 0;
    return kernels_fuzzy_run(lane, whole->objects, whole->object_count, whole->relative, results->fuzzy, error);
}

static int
run_level_set(struct kernels_lane *lane, const struct ref_whole *whole, struct ref_results *results,
              struct error *error)
{
    if (whole->job.label_count == 0)
        return 0;
    return kernels_level_set_run(lane, whole->job.labels, whole->job.label_count, results->masks, error);
}

/* Does all work after the voxels are in the lane. */
static int
work(struct kernels_lane *lane, const struct ref_whole *whole, struct ref_results *results, struct error *error)
{
    const struct ref_job *job = &whole->job;
    int rc = 0;

    if (job->label_count > 0 && !job->no_hint)
        rc = kernels_level_set_begin(lane, job->labels, job->label_count, error);
    if (!rc)
        rc = ref_announce(lane, job->extent.slices, job->threads, job->order);
    if (!rc && whole->fuzzy_first)
        rc = run_fuzzy(lane, whole, results, error);
    if (!rc)
        rc = run_level_set(lane, whole, results, error);
    if (!rc && !whole->fuzzy_first)
        rc = run_fuzzy(lane, whole, results, error);
    return rc;
}

int
ref_run(struct kernels_lane *lane, const struct ref_whole *whole, struct ref_results *results, double *seconds,
        struct error *error)
{
    const struct ref_job *job = &whole->job;
    const struct kernels_level_set_demand labels = {job->label_count};
    const struct kernels_fuzzy_demand objects = fuzzy_demand_of(whole);
    const struct kernels_demand demand = {.of = {[KERNELS_LEVEL_SET] = job->label_count > 0 ? &labels : NULL,
                                                 [KERNELS_FUZZY] = whole->object_count > 0 ? &objects : NULL}};
    size_t bytes = (size_t)ref_voxels(job->extent) * image_pixel_size(job->pixel);
    double begun = ref_clock(), spent;
    void *voxels;
    int rc = kernels_volume_begin(lane, job->extent, job->pixel, &demand, &voxels, error);

    if (rc)
        return rc;
    spent = ref_clock() - begun;
    if (job->voxels)
        memcpy(voxels, job->voxels, bytes);
    begun = ref_clock();
    rc = work(lane, whole, results, error);
    if (seconds)
        *seconds = spent + ref_clock() - begun;
    return rc;
}

/* Results of the references */

static void
set_bit(struct image_extent extent, struct ref_outcome *outcome, int64_t i)
{
    int64_t x = i % extent.columns, row = i / extent.columns;

    outcome->bits[row * ((extent.columns + 63) / 64) + x / 64] |= UINT64_C(1) << x % 64;
    outcome->voxels++;
}

static void
expect_label(const struct ref_job *job, size_t label, struct ref_outcome *outcome)
{
    int64_t count = ref_voxels(job->extent);
    int8_t *states = ref_allocate(count, 1);

    outcome->codes = ref_allocate(count, 1);
    outcome->bits = ref_allocate(ref_mask_words(job->extent), sizeof(uint64_t));
    ref_level_set_start(job->extent, job->pixel, job->voxels, &job->labels[label], states);
    ref_level_set_search(job->extent, states);
    ref_level_set_codes(job->extent, states, outcome->codes);
    for (int64_t i = 0; i < count; i++)
        if (states[i] > 0)
            set_bit(job->extent, outcome, i);
    free(states);
}

/* One label, or one map, on its own thread, because the references dominate the time of large tests. */
struct expectation {
    const struct ref_whole *whole;
    size_t index;
    bool is_label;
    struct ref_outcome *outcome;
    pthread_t thread;
};

static void *
expect_one(void *argument)
{
    struct expectation *own = argument;
    const struct ref_job *job = &own->whole->job;

    if (own->is_label) {
        expect_label(job, own->index, own->outcome);
        return NULL;
    }
    own->outcome->map = ref_allocate(ref_voxels(job->extent), sizeof(uint16_t));
    ref_fuzzy_map(job->extent, job->pixel, job->voxels, &own->whole->objects[own->index], own->outcome->map);
    return NULL;
}

static void
expect_all(struct expectation *expectations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&expectations[i].thread, NULL, expect_one, &expectations[i]))
            abort();
    for (size_t i = 0; i < count; i++)
        pthread_join(expectations[i].thread, NULL);
}

/* Computes the voxels that each object keeps, from all maps. */
static void
expect_objects(const struct ref_whole *whole, struct ref_outcome *outcomes)
{
    struct image_extent extent = whole->job.extent;
    int64_t count = ref_voxels(extent);
    uint16_t *maps[REF_MOST];
    uint8_t *in = ref_allocate(count, 1);

    for (size_t i = 0; i < whole->object_count; i++)
        maps[i] = outcomes[i].map;
    for (size_t i = 0; i < whole->object_count; i++) {
        outcomes[i].bits = ref_allocate(ref_mask_words(extent), sizeof(uint64_t));
        ref_fuzzy_object(count, whole->objects, maps, whole->object_count, i, whole->relative, in);
        for (int64_t v = 0; v < count; v++)
            if (in[v])
                set_bit(extent, &outcomes[i], v);
    }
    free(in);
}

void
ref_expect(const struct ref_whole *whole, struct ref_expected *expected)
{
    struct expectation expectations[2 * REF_MOST];
    size_t count = 0;

    memset(expected, 0, sizeof(*expected));
    for (size_t i = 0; i < whole->job.label_count; i++)
        expectations[count++] =
            (struct expectation){.whole = whole, .index = i, .is_label = true, .outcome = &expected->labels[i]};
    for (size_t i = 0; i < whole->object_count; i++)
        expectations[count++] = (struct expectation){.whole = whole, .index = i, .outcome = &expected->objects[i]};
    expect_all(expectations, count);
    expect_objects(whole, expected->objects);
}

static void
outcome_free(struct ref_outcome *outcome)
{
    free(outcome->bits);
    free(outcome->codes);
    free(outcome->map);
}

void
ref_expected_free(struct ref_expected *expected)
{
    for (size_t i = 0; i < REF_MOST; i++) {
        outcome_free(&expected->labels[i]);
        outcome_free(&expected->objects[i]);
    }
}

/* Comparing */

static _Thread_local char difference[sizeof(struct error)];

static bool
mask_differs(struct image_extent extent, const struct image_mask *mask, const struct ref_outcome *outcome,
             const char *what, size_t index)
{
    size_t words = (size_t)ref_mask_words(extent), first = 0;

    difference[0] = '\0';
    if (mask->words_per_row != (extent.columns + 63) / 64 || mask->voxels != outcome->voxels)
        snprintf(difference, sizeof(difference), "%s %zu has %lld voxels, not %lld", what, index,
                 (long long)mask->voxels, (long long)outcome->voxels);
    else if (memcmp(mask->bits, outcome->bits, words * sizeof(*mask->bits)) != 0) {
        while (mask->bits[first] == outcome->bits[first])
            first++;
        snprintf(difference, sizeof(difference), "%s %zu differs first in word %zu of %zu", what, index, first, words);
    }
    return difference[0] != '\0';
}

static bool
codes_differ(struct kernels_lane *lane, const struct ref_job *job, const struct ref_outcome *outcome, size_t label)
{
    int64_t count = ref_voxels(job->extent);
    int8_t *codes = ref_allocate(count, 1);
    int rc = kernels_level_set_codes(lane, label, codes, NULL);

    difference[0] = '\0';
    if (rc)
        snprintf(difference, sizeof(difference), "codes of label %zu: %s", label, strerror(-rc));
    else if (memcmp(codes, outcome->codes, (size_t)count) != 0)
        snprintf(difference, sizeof(difference), "codes of label %zu differ", label);
    free(codes);
    return difference[0] != '\0';
}

static bool
map_differs(const struct ref_whole *whole, const struct kernels_fuzzy_result *result, const struct ref_outcome *outcome,
            size_t object)
{
    int64_t count = ref_voxels(whole->job.extent), wrong = 0;

    if (whole->objects[object].map != (result->map != NULL)) {
        snprintf(difference, sizeof(difference), "map %zu is there, or not, unasked", object);
        return true;
    }
    for (int64_t i = 0; i < count && result->map; i++)
        wrong += result->map[i] != outcome->map[i];
    if (wrong > 0)
        snprintf(difference, sizeof(difference), "%lld voxels of map %zu differ", (long long)wrong, object);
    return wrong > 0;
}

const char *
ref_compare(struct kernels_lane *lane, const struct ref_whole *whole, const struct ref_expected *expected)
{
    const struct ref_job *job = &whole->job;
    struct ref_results results;
    struct error error = {0};
    int rc = ref_run(lane, whole, &results, NULL, &error);

    if (rc) {
        snprintf(difference, sizeof(difference), "%s (%s)", error.message, strerror(-rc));
        return difference;
    }
    for (size_t i = 0; i < job->label_count; i++)
        if (mask_differs(job->extent, &results.masks[i], &expected->labels[i], "label", i) ||
            codes_differ(lane, job, &expected->labels[i], i))
            return difference;
    for (size_t i = 0; i < whole->object_count; i++)
        if (mask_differs(job->extent, &results.fuzzy[i].object, &expected->objects[i], "object", i) ||
            map_differs(whole, &results.fuzzy[i], &expected->objects[i], i))
            return difference;
    return "";
}

/* Random jobs */

struct random_job {
    struct ref_whole whole; /* must be first: the caller's pointer */
    struct kernels_level_set_label labels[REF_MOST];
    struct kernels_shape shapes[REF_MOST][REF_MOST];
    struct kernels_fuzzy_object objects[REF_MOST];
    struct kernels_voxel seeds[REF_MOST][REF_MOST];
    const uint64_t *bounds[REF_MOST];
};

void
ref_shuffle(uint64_t *random, int64_t *order, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t j = ref_random_below(random, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

static struct image_extent
random_extent(uint64_t *random)
{
    static const int64_t columns[] = {1, 2, 3, 5, 7, 13, 31, 33, 63, 64, 65, 127, 128, 129, 193};
    static const int64_t others[] = {1, 1, 2, 3, 5, 7, 8, 11, 16, 17, 23, 37};
    struct image_extent extent = {
        columns[ref_random_below(random, sizeof(columns) / sizeof(columns[0]))],
        others[ref_random_below(random, sizeof(others) / sizeof(others[0]))],
        others[ref_random_below(random, sizeof(others) / sizeof(others[0]))],
    };

    /* Make x thin in some jobs: another axis gets the long side. */
    if (ref_random_below(random, 3) == 0) {
        int64_t long_side = extent.columns;
        extent.columns = extent.slices;
        extent.slices = long_side;
    }
    return extent;
}

/* Draws values 0 .. 7 with runs along x, and the ends of the pixel type. */
static void
random_values(uint64_t *random, struct ref_job *job)
{
    int64_t count = ref_voxels(job->extent), steadiness = 1 + ref_random_below(random, 6);
    char *voxels = ref_allocate(count, image_pixel_size(job->pixel));
    int32_t value = 0;

    job->voxels = voxels;
    for (int64_t i = 0; i < count; i++) {
        int64_t dice = ref_random_below(random, 100);
        if (ref_random_below(random, steadiness) == 0)
            value = (int32_t)ref_random_below(random, 8);
        ref_paint(job->pixel, &(uint8_t){1}, 1,
                  dice == 0   ? 0x7FFF
                  : dice == 1 ? 0x8000
                              : value,
                  0, voxels + (size_t)i * image_pixel_size(job->pixel));
    }
}

/* Returns sparse bits, none beyond the last column. */
static const uint64_t *
random_mask(uint64_t *random, struct image_extent extent)
{
    int64_t words = ref_mask_words(extent), words_per_row = (extent.columns + 63) / 64;
    uint64_t *bits = ref_allocate(words, sizeof(*bits));

    for (int64_t i = 0; i < words; i++) {
        int64_t columns = extent.columns - i % words_per_row * 64;
        bits[i] = ref_random(random) & ref_random(random) & ref_random(random);
        if (columns < 64)
            bits[i] &= (UINT64_C(1) << columns) - 1;
    }
    return bits;
}

/* Returns dense bits, with any value beyond the last column. */
static const uint64_t *
random_bound(uint64_t *random, struct image_extent extent)
{
    int64_t words = ref_mask_words(extent);
    uint64_t *bits = ref_allocate(words, sizeof(*bits));

    for (int64_t i = 0; i < words; i++)
        bits[i] = ref_random(random) | ref_random(random) | ref_random(random);
    return bits;
}

/* `bound`: receives a mask that the label must stay within; NULL: no mask. */
static void
random_label(uint64_t *random, struct image_extent extent, struct kernels_shape *shapes,
             struct kernels_level_set_label *label, const uint64_t **bound)
{
    bool for_each = ref_random_below(random, 3) == 0;
    struct image_range *ranges = ref_allocate(extent.slices, sizeof(*ranges));

    label->shape_count = (size_t)ref_random_below(random, REF_MOST + 1);
    label->shapes = shapes;
    label->range_count = for_each ? (size_t)extent.slices : 1;
    label->ranges = ranges;
    label->padding = ref_random_padding(random);
    if (ref_random_below(random, 4) == 0)
        label->mask = random_mask(random, extent);
    if (bound && ref_random_below(random, 2) == 0) {
        *bound = random_bound(random, extent);
        label->within = bound;
        label->within_count = 1;
    }
    label->strict = ref_random_below(random, 2) == 0;
    for (size_t s = 0; s < label->shape_count; s++)
        shapes[s] = ref_random_shape(random, extent);
    for (size_t r = 0; r < label->range_count; r++)
        ranges[r] = ref_random_range(random);
}

/* Returns a border position as often as one inside. */
static int64_t
random_place(uint64_t *random, int64_t size)
{
    switch (ref_random_below(random, 4)) {
    case 0:
        return 0;
    case 1:
        return size - 1;
    default:
        return ref_random_below(random, size);
    }
}

static void
random_object(uint64_t *random, struct image_extent extent, struct kernels_voxel *seeds,
              struct kernels_fuzzy_object *object)
{
    static const uint16_t thresholds[] = {0, 1, 8191, 32767, 50000, 65534, 65535};
    static const double weights[] = {0, 0.25, 0.5, 0.9, 1};

    object->seeds = seeds;
    object->seed_count = (size_t)ref_random_below(random, REF_MOST + 1);
    for (size_t i = 0; i < object->seed_count; i++)
        seeds[i] = (struct kernels_voxel){random_place(random, extent.columns), random_place(random, extent.rows),
                                          random_place(random, extent.slices)};
    object->mean = (double)ref_random_below(random, 32) / 4;
    object->sigma = 0.5 + (double)ref_random_below(random, 16) / 4;
    object->homogeneity_sigma = 0.25 + (double)ref_random_below(random, 12) / 4;
    object->weight = weights[ref_random_below(random, sizeof(weights) / sizeof(weights[0]))];
    object->threshold = thresholds[ref_random_below(random, sizeof(thresholds) / sizeof(thresholds[0]))];
    object->padding = ref_random_padding(random);
    object->map = ref_random_below(random, 2) == 0;
    if (ref_random_below(random, 3) == 0)
        object->start = random_mask(random, extent);
}

struct ref_whole *
ref_random_job(uint64_t seed)
{
    struct random_job *own = ref_allocate(1, sizeof(*own));
    struct ref_job *job = &own->whole.job;
    uint64_t random = seed;
    int64_t *order;

    job->extent = random_extent(&random);
    job->pixel = (enum image_pixel)ref_random_below(&random, 3);
    random_values(&random, job);
    job->threads = 1 + (int)ref_random_below(&random, 3);
    job->order = order = ref_allocate(job->extent.slices, sizeof(*order));
    ref_shuffle(&random, order, job->extent.slices);
    job->labels = own->labels;
    job->label_count = (size_t)ref_random_below(&random, REF_MOST + 1);
    for (size_t i = 0; i < job->label_count; i++)
        random_label(&random, job->extent, own->shapes[i], &own->labels[i],
                     seed % 2 == 1 ? &own->bounds[i] : NULL); /* a hint cannot have one */
    own->whole.objects = own->objects;
    own->whole.object_count = (size_t)ref_random_below(&random, REF_MOST + 1);
    for (size_t i = 0; i < own->whole.object_count; i++)
        random_object(&random, job->extent, own->seeds[i], &own->objects[i]);
    own->whole.relative = ref_random_below(&random, 2) == 0;
    own->whole.fuzzy_first = ref_random_below(&random, 2) == 0;
    own->whole.job.no_hint = seed % 2 == 1;
    return &own->whole;
}

/* Frees calloc'd memory that the structs hold as const. */
static void
free_const(const void *memory)
{
    union {
        const void *given;
        void *own;
    } pointer = {.given = memory};

    free(pointer.own);
}

void
ref_random_job_free(struct ref_whole *whole)
{
    for (size_t i = 0; i < whole->job.label_count; i++) {
        free_const(whole->job.labels[i].ranges);
        free_const(whole->job.labels[i].mask);
        if (whole->job.labels[i].within_count > 0)
            free_const(whole->job.labels[i].within[0]);
    }
    for (size_t i = 0; i < whole->object_count; i++)
        free_const(whole->objects[i].start);
    free_const(whole->job.voxels);
    free_const(whole->job.order);
    free(whole);
}
