/*
 * bench_fuzzy.c - compares fuzzy connectedness on the CPU with a bucket (Dial) Dijkstra.
 *
 *   bench_fuzzy [REPEAT [SLICES...]]   3 runs per case; numbers of slices (131 and, for linearity, 66)
 *
 * Volumes are 512 x 512 int16: vessels in noise, smooth, a maze, and one path through everything. Prints a JSON line
 * per case: the median of the runs of kernels_fuzzy_run with 1 and 2 threads, for the map and for the object alone.
 * Also prints the ratio to the Dijkstra of the same volume in the same run, and whether the maps are equal. The time
 * excludes kernels_volume_ready and the copy of the voxels. It also excludes the border around the values with which
 * the Dijkstra starts.
 */
#include "kernels/fuzzy/affinity.h"
#include "tests/kernels/ref_drive.h"
#include "tests/kernels/ref_volumes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum {
    COLUMNS = 512,
    ROWS = 512,
    TOP = 400,
    STRENGTHS = 65536,
    CHUNK = 126, /* entries: half a KiB */
    MAX_REPEAT = 99,
    HUGE_PAGE = 1 << 21,
};

static void *
allocate(size_t bytes)
{
    void *memory = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);

    if (!memory) {
        fputs("no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

enum content { VESSELS, SMOOTH, MAZE, PATH, CONTENTS };

static const char *const names[] = {"vessels", "smooth", "maze", "path"};

struct phantom {
    const char *name;
    struct image_extent extent;
    int16_t *voxels;
    struct kernels_voxel seed;
    struct kernels_fuzzy_object object;
};

/* Draws corridors one voxel wide, with varying strengths, between walls of 0. The seed is at one end. */
static void
dig_corridors(enum content content, struct phantom *phantom)
{
    int64_t count = ref_voxels(phantom->extent);
    uint8_t *in = allocate((size_t)count);
    uint64_t random = 2;

    if (content == MAZE)
        ref_random_maze(phantom->extent, 1, in);
    else
        ref_serpentine(phantom->extent, 0, in);
    for (int64_t i = 0; i < count; i++)
        phantom->voxels[i] = (int16_t)(in[i] ? TOP - ref_random_below(&random, TOP / 8) : 0);
    phantom->object.mean = TOP;
    phantom->object.threshold = 9000;
    free(in);
}

static struct phantom
make_phantom(enum content content, int64_t slices)
{
    struct phantom phantom = {.name = names[content], .extent = {COLUMNS, ROWS, slices}};

    phantom.voxels = allocate((size_t)ref_voxels(phantom.extent) * sizeof(int16_t));
    phantom.object = (struct kernels_fuzzy_object){.seed_count = 1,
                                                   .mean = 0.75 * TOP,
                                                   .sigma = 30,
                                                   .homogeneity_sigma = 20,
                                                   .weight = 0.5,
                                                   .threshold = 40000,
                                                   .padding = {1, 0}};
    if (content == VESSELS) {
        ref_vessels(phantom.extent, IMAGE_INT16, TOP, 1, 1, phantom.voxels, &phantom.seed);
    } else if (content == SMOOTH) {
        ref_smooth(phantom.extent, IMAGE_INT16, TOP, 1, phantom.voxels);
        phantom.seed = (struct kernels_voxel){COLUMNS / 2, ROWS / 2, slices / 2};
        phantom.object.mean = phantom.voxels[(phantom.seed.z * ROWS + phantom.seed.y) * COLUMNS + phantom.seed.x];
    } else {
        dig_corridors(content, &phantom);
    }
    return phantom;
}

/*
 * The Dijkstra, as fast as the method allows: a border instead of bounds checks, look-up tables, 32-bit indices, and
 * last-in-first-out buckets of small chunks from one arena.
 */
struct chunk {
    struct chunk *next;
    uint32_t count;
    uint32_t voxels[CHUNK];
};

struct dijkstra {
    int64_t step[3];
    uint16_t *values; /* with the border */
    uint16_t *map;    /* 65535 in the border, which is never entered */
    struct fuzzy_tables tables;
    struct chunk *bucket[STRENGTHS];
    struct chunk *spare;
    struct chunk *arena;
    size_t taken;
};

static inline void
enter(struct dijkstra *dijkstra, uint16_t strength, uint32_t i)
{
    struct chunk *chunk = dijkstra->bucket[strength];

    if (!chunk || chunk->count == CHUNK) {
        struct chunk *fresh = dijkstra->spare;

        if (fresh)
            dijkstra->spare = fresh->next;
        else
            fresh = &dijkstra->arena[dijkstra->taken++];
        fresh->count = 0;
        fresh->next = chunk;
        dijkstra->bucket[strength] = chunk = fresh;
    }
    chunk->voxels[chunk->count++] = i;
}

static inline void
extend(struct dijkstra *dijkstra, uint16_t strength, uint16_t value, int64_t j)
{
    uint16_t affinity, known = dijkstra->map[j];

    if (known >= strength)
        return;
    affinity = fuzzy_affinity(&dijkstra->tables, value, dijkstra->values[j]);
    if (affinity > strength)
        affinity = strength;
    if (affinity <= known)
        return;
    dijkstra->map[j] = affinity;
    enter(dijkstra, affinity, (uint32_t)j);
}

static void
empty_bucket(struct dijkstra *dijkstra, uint16_t strength)
{
    struct chunk *chunk;

    while ((chunk = dijkstra->bucket[strength])) {
        int64_t i = chunk->voxels[--chunk->count];

        if (chunk->count == 0) {
            dijkstra->bucket[strength] = chunk->next;
            chunk->next = dijkstra->spare;
            dijkstra->spare = chunk;
        }
        if (dijkstra->map[i] != strength)
            continue;
        for (int axis = 0; axis < 3; axis++) {
            extend(dijkstra, strength, dijkstra->values[i], i - dijkstra->step[axis]);
            extend(dijkstra, strength, dijkstra->values[i], i + dijkstra->step[axis]);
        }
    }
}

static int64_t
place_of(const struct dijkstra *dijkstra, int64_t x, int64_t y, int64_t z)
{
    return (z + 1) * dijkstra->step[2] + (y + 1) * dijkstra->step[1] + x + 1;
}

static void
load(struct dijkstra *dijkstra, const struct phantom *phantom)
{
    size_t row = COLUMNS * sizeof(uint16_t);
    int64_t slices = phantom->extent.slices;
    size_t bytes = (size_t)((slices + 2) * dijkstra->step[2]) * sizeof(uint16_t);

    memset(dijkstra->values, 0, bytes);
    memset(dijkstra->map, 0xFF, bytes);
    for (int64_t z = 0; z < slices; z++)
        for (int64_t y = 0; y < ROWS; y++) {
            int64_t at = place_of(dijkstra, 0, y, z);
            memcpy(&dijkstra->values[at], &phantom->voxels[(z * ROWS + y) * COLUMNS], row);
            memset(&dijkstra->map[at], 0, row);
        }
}

static struct dijkstra *
dijkstra_for(const struct phantom *phantom)
{
    struct dijkstra *dijkstra = calloc(1, sizeof(*dijkstra));
    size_t voxels = (COLUMNS + 2) * (ROWS + 2) * (size_t)(phantom->extent.slices + 2);

    if (!dijkstra)
        exit(EXIT_FAILURE);
    dijkstra->step[0] = 1;
    dijkstra->step[1] = COLUMNS + 2;
    dijkstra->step[2] = (COLUMNS + 2) * (ROWS + 2);
    dijkstra->values = allocate(voxels * sizeof(uint16_t));
    dijkstra->map = allocate(voxels * sizeof(uint16_t));
    /* At most six entries per voxel, and a partly filled chunk per bucket. */
    dijkstra->arena = allocate((6 * voxels / CHUNK + STRENGTHS) * sizeof(struct chunk));
    dijkstra->tables.span = TOP;
    dijkstra->tables.first = allocate((2 * TOP + 1) * sizeof(double));
    dijkstra->tables.second = allocate((TOP + 1) * sizeof(double));
    return dijkstra;
}

static void
dijkstra_free(struct dijkstra *dijkstra)
{
    free(dijkstra->values);
    free(dijkstra->map);
    free(dijkstra->arena);
    free(dijkstra->tables.first);
    free(dijkstra->tables.second);
    free(dijkstra);
}

/* Wall-clock time and total CPU time of a run. They differ on a busy machine. */
struct cost {
    double seconds;
    double processor;
};

static struct cost
cost_now(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (struct cost){ref_clock(), (double)used.tv_sec + 1e-9 * (double)used.tv_nsec};
}

static struct cost
cost_since(struct cost begun)
{
    struct cost now = cost_now();

    return (struct cost){now.seconds - begun.seconds, now.processor - begun.processor};
}

static struct cost
time_dijkstra(struct dijkstra *dijkstra, const struct phantom *phantom)
{
    int64_t seed = place_of(dijkstra, phantom->seed.x, phantom->seed.y, phantom->seed.z);
    struct cost begun;

    load(dijkstra, phantom);
    memset(dijkstra->bucket, 0, sizeof(dijkstra->bucket));
    dijkstra->spare = NULL;
    dijkstra->taken = 0;
    begun = cost_now();
    fuzzy_fill_tables(&phantom->object, &dijkstra->tables);
    dijkstra->map[seed] = STRENGTHS - 1;
    enter(dijkstra, STRENGTHS - 1, (uint32_t)seed);
    for (int strength = STRENGTHS - 1; strength > 0; strength--)
        empty_bucket(dijkstra, (uint16_t)strength);
    return cost_since(begun);
}

static int64_t
count_differences(const struct dijkstra *dijkstra, const struct phantom *phantom, const uint16_t *map)
{
    int64_t differences = 0;

    for (int64_t z = 0; z < phantom->extent.slices; z++)
        for (int64_t y = 0; y < ROWS; y++)
            for (int64_t x = 0; x < COLUMNS; x++)
                differences += dijkstra->map[place_of(dijkstra, x, y, z)] != *map++;
    return differences;
}

static int
compare_costs(const void *a, const void *b)
{
    double left = ((const struct cost *)a)->seconds, right = ((const struct cost *)b)->seconds;

    return (left > right) - (left < right);
}

static struct cost
median(struct cost *costs, int count)
{
    qsort(costs, (size_t)count, sizeof(*costs), compare_costs);
    return costs[count / 2];
}

static double
peak_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void
check(int rc, const char *message)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s\n", message);
    exit(EXIT_FAILURE);
}

static struct cost
time_run(struct kernels_lane *lane, const struct phantom *phantom, const struct kernels_fuzzy_object *object,
         struct kernels_fuzzy_result *result)
{
    const struct kernels_fuzzy_demand one = {.objects = 1, .maps = object->map};
    const struct kernels_demand demand = {.of[KERNELS_FUZZY] = &one};
    struct error error = {0};
    void *voxels;
    struct cost begun;

    check(kernels_volume_begin(lane, phantom->extent, IMAGE_INT16, &demand, &voxels, &error), error.message);
    memcpy(voxels, phantom->voxels, (size_t)ref_voxels(phantom->extent) * sizeof(int16_t));
    check(kernels_volume_ready(lane, 0, phantom->extent.slices, NULL), "cannot announce slices");
    begun = cost_now();
    check(kernels_fuzzy_run(lane, object, 1, false, result, &error), error.message);
    return cost_since(begun);
}

static void
print_cost(const struct phantom *phantom, const char *result, int threads, struct cost cost)
{
    printf("{\"case\":\"%s-%lld\",\"result\":\"%s\",\"threads\":%d,\"median_seconds\":%.4f,"
           "\"processor_seconds\":%.4f,\"nanoseconds_per_voxel\":%.2f",
           phantom->name, (long long)phantom->extent.slices, result, threads, cost.seconds, cost.processor,
           cost.seconds / (double)ref_voxels(phantom->extent) * 1e9);
}

static void
bench_case(const struct phantom *phantom, const struct dijkstra *dijkstra, double seconds, int threads, bool map,
           int repeat)
{
    struct kernels_device_options options = {.backend = "cpu", .threads = threads};
    struct kernels_fuzzy_object object = phantom->object;
    struct kernels_fuzzy_result result;
    struct kernels_device *device;
    struct kernels_lane *lane;
    struct cost costs[MAX_REPEAT], middle;
    struct error error = {0};

    object.seeds = &phantom->seed;
    object.map = map;
    check(kernels_device_open(&options, &device, &error), error.message);
    check(kernels_lane_open(device, &lane, &error), error.message);
    for (int i = 0; i < repeat; i++)
        costs[i] = time_run(lane, phantom, &object, &result);
    middle = median(costs, repeat);
    print_cost(phantom, map ? "map" : "object", threads, middle);
    printf(",\"over_dijkstra\":%.2f,\"object_voxels\":%lld", seconds / middle.seconds, (long long)result.object.voxels);
    if (map)
        printf(",\"differences\":%lld", (long long)count_differences(dijkstra, phantom, result.map));
    printf(",\"peak_mib\":%.0f}\n", peak_mib());
    fflush(stdout);
    kernels_lane_close(lane);
    kernels_device_close(device);
}

static void
bench_phantom(enum content content, int64_t slices, int repeat)
{
    struct phantom phantom = make_phantom(content, slices);
    struct dijkstra *dijkstra = dijkstra_for(&phantom);
    struct cost costs[MAX_REPEAT], middle;

    for (int i = 0; i < repeat; i++)
        costs[i] = time_dijkstra(dijkstra, &phantom);
    middle = median(costs, repeat);
    print_cost(&phantom, "bucket Dijkstra", 1, middle);
    printf(",\"peak_mib\":%.0f}\n", peak_mib());
    fflush(stdout);
    free(dijkstra->arena);
    dijkstra->arena = NULL;
    for (int threads = 1; threads <= 2; threads++) {
        bench_case(&phantom, dijkstra, middle.seconds, threads, true, repeat);
        bench_case(&phantom, dijkstra, middle.seconds, threads, false, repeat);
    }
    dijkstra_free(dijkstra);
    free(phantom.voxels);
}

int
main(int argc, char **argv)
{
    static const int64_t usual[] = {66, 131};
    int repeat = argc > 1 ? atoi(argv[1]) : 3;

    if (repeat < 1 || repeat > MAX_REPEAT) {
        fprintf(stderr, "usage: %s [REPEAT [SLICES...]]\n", argv[0]);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < (argc > 2 ? argc - 2 : 2); i++) {
        int64_t slices = argc > 2 ? atoll(argv[2 + i]) : usual[i];

        for (int content = 0; content < CONTENTS; content++)
            bench_phantom((enum content)content, slices, repeat);
    }
    return EXIT_SUCCESS;
}
