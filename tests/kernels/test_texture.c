/*
 * test_texture.c - compares texture of the CPU backend with plain loops and Masur 2022's two versions: every count
 * and every code, on each available instruction set, with 1, 2 and 3 threads.
 */
#include "kernels/level_set/level_set.h"
#include "tests/kernels/ref_patterns.h"
#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"
#include "tests/kernels/variants.h"
#include "tests/share.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    RANDOM_JOBS = 200,
    MOST_OFFSETS = 70, /* more than any backend's batch */
    MOST_REGIONS = 3,
    MANY_REGIONS = 71,
    MOST_ENTRIES = 1 << 19, /* of all matrices of a random job */
};

static struct error error;

static void
open_variants(void)
{
    variants_open(3);
}

/* ---------------------------------------------------------------------- the volume ---- */

struct volume {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
};

static size_t
values_of(const struct volume *volume)
{
    return ref_texture_values(volume->pixel);
}

static int32_t
smallest_of(const struct volume *volume)
{
    return ref_texture_smallest(volume->pixel);
}

static int32_t
largest_of(const struct volume *volume)
{
    return smallest_of(volume) + (int32_t)values_of(volume) - 1;
}

static struct volume
volume_of(struct image_extent extent, enum image_pixel pixel)
{
    return (struct volume){extent, pixel, allocate(ref_voxels(extent), image_pixel_size(pixel))};
}

enum content {
    SCATTER,
    SMOOTH,
    CONSTANT,
    CHECKERBOARD,
    GRADIENT,
    ALL_NEGATIVE, /* near the lowest value */
    CONTENTS,
};

static void
fill(struct volume *volume, enum content content, uint64_t seed)
{
    struct image_extent extent = volume->extent;
    int32_t low = smallest_of(volume), high = largest_of(volume);
    int64_t count = ref_voxels(extent);
    uint64_t random = seed;
    int32_t a = low + (int32_t)ref_random_below(&random, high - low + 1);
    int32_t b = low + (int32_t)ref_random_below(&random, high - low + 1);
    int32_t few = 1 + (int32_t)ref_random_below(&random, 300);

    if (content == SMOOTH) {
        ref_smooth(extent, volume->pixel, volume->pixel == IMAGE_UINT8 ? 255 : 4000, seed, volume->voxels);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t x = i % extent.columns, y = i / extent.columns % extent.rows;
        int64_t z = i / extent.columns / extent.rows;
        int32_t value = a;

        if (content == SCATTER)
            value = low + (int32_t)ref_random_below(&random, high - low + 1);
        else if (content == CHECKERBOARD)
            value = (x + y + z) % 2 ? a : b;
        else if (content == GRADIENT)
            value = low + (int32_t)((x * 3 + y * 5 + z * 7 + a - low) % (high - low + 1));
        else if (content == ALL_NEGATIVE)
            value = low + (int32_t)ref_random_below(&random, few) % (high - low + 1);
        ref_store(volume->pixel, volume->voxels, i, value);
    }
}

static int64_t
words_per_row(struct image_extent extent)
{
    return (extent.columns + 63) / 64;
}

static void
set_box(uint64_t *bits, struct image_extent extent, uint64_t *random)
{
    int64_t size[3] = {extent.columns, extent.rows, extent.slices}, first[3], last[3];

    for (int axis = 0; axis < 3; axis++) {
        first[axis] = ref_random_below(random, size[axis]);
        last[axis] = first[axis] + ref_random_below(random, size[axis] - first[axis]);
    }
    for (int64_t z = first[2]; z <= last[2]; z++)
        for (int64_t y = first[1]; y <= last[1]; y++)
            for (int64_t x = first[0]; x <= last[0]; x++)
                bits[(z * extent.rows + y) * words_per_row(extent) + x / 64] |= UINT64_C(1) << x % 64;
}

/* Makes a full, empty or scattered region, or a box; NULL for none. Padding bits of rows are random. */
static uint64_t *
random_region(struct image_extent extent, uint64_t *random)
{
    int64_t rows = extent.rows * extent.slices, words = words_per_row(extent);
    int kind = (int)ref_random_below(random, 6);
    uint64_t *bits, padding = extent.columns % 64 ? ~UINT64_C(0) << extent.columns % 64 : 0;

    if (kind == 0)
        return NULL;
    bits = allocate(rows * words, sizeof(*bits));
    for (int64_t i = 0; i < rows * words; i++) {
        uint64_t word = ref_random(random), other = ref_random(random);
        bits[i] = kind == 1 ? ~UINT64_C(0) : kind == 2 ? word : kind == 3 ? word | other : 0;
    }
    if (kind == 5)
        set_box(bits, extent, random);
    for (int64_t row = 0; row < rows; row++) {
        uint64_t *last = &bits[(row + 1) * words - 1];
        *last = (*last & ~padding) | (ref_random(random) & padding);
    }
    return bits;
}

static void
begin(struct kernels_lane *lane, const struct volume *volume)
{
    struct kernels_demand demand = {REF_TEXTURE_DEMAND};
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(lane, volume->extent, volume->pixel, &demand, &voxels, NULL), 0);
    memcpy(voxels, volume->voxels, (size_t)ref_voxels(volume->extent) * image_pixel_size(volume->pixel));
    ck_assert_int_eq(kernels_volume_ready(lane, 0, volume->extent.slices, NULL), 0);
}

/* ------------------------------------------------------------------- the references ---- */

static size_t
matrix_entries(const struct volume *volume, const struct texture_glcm *request)
{
    size_t levels = (size_t)request->levels.levels;

    return (request->per_slice ? (size_t)volume->extent.slices : 1) * request->offset_count * levels * levels;
}

static uint64_t *
expected_glcm(const struct volume *volume, const struct texture_glcm *request)
{
    uint64_t *counts = allocate((int64_t)matrix_entries(volume, request), sizeof(*counts));

    ref_texture_glcm(volume->extent, volume->pixel, volume->voxels, request, counts);
    return counts;
}

static uint64_t *
expected_histogram(const struct volume *volume, const uint64_t *region, bool per_slice)
{
    int64_t slices = per_slice ? volume->extent.slices : 1;
    uint64_t *counts = allocate((int64_t)values_of(volume) * slices, sizeof(*counts));

    ref_texture_histogram(volume->extent, volume->pixel, volume->voxels, region, per_slice, counts);
    return counts;
}

static int64_t
codes_per_slice(struct image_extent extent)
{
    return extent.columns > 2 && extent.rows > 2 ? (extent.columns - 2) * (extent.rows - 2) : 0;
}

/* Computes one pattern of the whole volume, by the text, or by the listing for `strict` or `integer_average`. */
static uint8_t *
expected_map(const struct volume *volume, const struct texture_patterns *request, int pattern)
{
    struct image_extent extent = volume->extent;
    int64_t voxels = extent.columns * extent.rows, codes = codes_per_slice(extent);
    int32_t *values = allocate(voxels, sizeof(*values));
    uint8_t *map = allocate(codes * extent.slices, 1);
    struct ref_slice slice = {extent.columns, extent.rows, values};

    for (int64_t z = 0; z < extent.slices && codes > 0; z++) {
        for (int64_t i = 0; i < voxels; i++)
            values[i] = ref_stored(volume->pixel, volume->voxels, z * voxels + i);
        if (pattern == TEXTURE_LBP)
            ref_lbp_text(&slice, map + z * codes);
        else if (pattern == TEXTURE_TLBAP)
            (request->strict ? ref_tlbap_listing : ref_tlbap_text)(&slice, request->threshold_millionths,
                                                                   map + z * codes);
        else
            (request->integer_average ? ref_lanadp_listing : ref_lanadp_text)(&slice, map + z * codes);
    }
    free(values);
    return map;
}

static void
expected_code_histogram(struct image_extent extent, const uint8_t *map, const uint64_t *region, uint64_t histogram[256])
{
    memset(histogram, 0, 256 * sizeof(*histogram));
    for (int64_t z = 0; z < extent.slices; z++)
        for (int64_t y = 1; y + 1 < extent.rows; y++)
            for (int64_t x = 1; x + 1 < extent.columns; x++)
                if (ref_in_region(region, extent, x, y, z))
                    histogram[map[z * codes_per_slice(extent) + (y - 1) * (extent.columns - 2) + x - 1]]++;
}

/* ------------------------------------------------------------------ checks of a call ---- */

static void
check_glcm(struct variant *variant, const struct texture_glcm *request, const uint64_t *expected, size_t entries,
           uint64_t name)
{
    uint64_t *counts = allocate((int64_t)entries, sizeof(*counts));

    memset(counts, 0xA5, entries * sizeof(*counts));
    ck_assert_int_eq(texture_glcm_run(variant->lane, request, counts, NULL), 0);
    size_t i = 0;
    while (i < entries && counts[i] == expected[i])
        i++;
    ck_assert_msg(i == entries, "job %llu, %s, %d threads: entry %zu is %llu and not %llu", (unsigned long long)name,
                  variant->isa, variant->threads, i, (unsigned long long)(i < entries ? counts[i] : 0),
                  (unsigned long long)(i < entries ? expected[i] : 0));
    free(counts);
}

static void
check_glcm_everywhere(const struct volume *volume, const struct texture_glcm *request, uint64_t name)
{
    uint64_t *expected = expected_glcm(volume, request);

    for (size_t i = 0; i < variant_count; i++) {
        begin(variants[i].lane, volume);
        check_glcm(&variants[i], request, expected, matrix_entries(volume, request), name);
    }
    free(expected);
}

static void
check_histogram_everywhere(const struct volume *volume, const uint64_t *region, bool per_slice, uint64_t name)
{
    size_t entries = values_of(volume) * (per_slice ? (size_t)volume->extent.slices : 1);
    uint64_t *expected = expected_histogram(volume, region, per_slice);
    uint64_t *counts = allocate((int64_t)entries, sizeof(*counts));

    for (size_t i = 0; i < variant_count; i++) {
        begin(variants[i].lane, volume);
        memset(counts, 0xA5, entries * sizeof(*counts));
        ck_assert_int_eq(texture_histogram_run(variants[i].lane, region, per_slice, counts, NULL), 0);
        ck_assert_msg(memcmp(counts, expected, entries * sizeof(*counts)) == 0,
                      "job %llu, %s, %d threads: another histogram", (unsigned long long)name, variants[i].isa,
                      variants[i].threads);
    }
    free(expected);
    free(counts);
}

struct patterns_results {
    uint8_t *maps[TEXTURE_PATTERNS];
    uint64_t histograms[MOST_REGIONS][TEXTURE_PATTERNS][256];
};

static struct patterns_results *
expected_patterns(const struct volume *volume, const struct texture_patterns *request)
{
    struct patterns_results *results = allocate(1, sizeof(*results));

    for (int p = 0; p < TEXTURE_PATTERNS; p++) {
        results->maps[p] = expected_map(volume, request, p);
        for (size_t r = 0; r < request->region_count && request->wanted[p]; r++)
            expected_code_histogram(volume->extent, results->maps[p], request->regions[r], results->histograms[r][p]);
    }
    return results;
}

static void
patterns_free(struct patterns_results *results)
{
    for (int p = 0; p < TEXTURE_PATTERNS; p++)
        free(results->maps[p]);
    free(results);
}

static void
check_maps(const struct variant *variant, const struct volume *volume, const struct texture_patterns *request,
           const struct patterns_results *expected, uint64_t name)
{
    const size_t codes = (size_t)(codes_per_slice(volume->extent) * volume->extent.slices);

    for (int p = 0; p < TEXTURE_PATTERNS; p++) {
        const uint8_t *map = texture_patterns_map(variant->lane, (enum texture_pattern)p);

        ck_assert_msg((map != NULL) == request->maps[p] &&
                          (codes == 0 || !map || memcmp(map, expected->maps[p], codes) == 0),
                      "job %llu, %s, %d threads: other codes of pattern %d", (unsigned long long)name, variant->isa,
                      variant->threads, p);
    }
}

static void
check_patterns(struct variant *variant, const struct volume *volume, const struct texture_patterns *request,
               const struct patterns_results *expected, uint64_t name)
{
    struct texture_patterns own = *request;
    struct patterns_results *results = allocate(1, sizeof(*results));

    memset(results->histograms, 0xA5, sizeof(results->histograms));
    own.histograms = own.region_count > 0 ? results->histograms[0][0] : NULL;
    ck_assert_int_eq(texture_patterns_run(variant->lane, &own, NULL), 0);
    check_maps(variant, volume, &own, expected, name);
    ck_assert_msg(
        memcmp(results->histograms, expected->histograms, own.region_count * sizeof(results->histograms[0])) == 0,
        "job %llu, %s, %d threads: other histograms", (unsigned long long)name, variant->isa, variant->threads);
    patterns_free(results);
}

static void
check_patterns_everywhere(const struct volume *volume, const struct texture_patterns *request, uint64_t name)
{
    struct patterns_results *expected = expected_patterns(volume, request);

    for (size_t i = 0; i < variant_count; i++) {
        begin(variants[i].lane, volume);
        check_patterns(&variants[i], volume, request, expected, name);
    }
    patterns_free(expected);
}

/* ------------------------------------------------------------------------ random jobs ---- */

static struct image_extent
random_extent(uint64_t *random, int64_t job)
{
    struct image_extent extent = {1 + ref_random_below(random, 90), 1 + ref_random_below(random, 20),
                                  1 + ref_random_below(random, 9)};
    int thin = (int)ref_random_below(random, 8);

    if (job % 40 == 0) /* enough voxels for the largest tables */
        return (struct image_extent){100 + ref_random_below(random, 100), 50 + ref_random_below(random, 50),
                                     20 + ref_random_below(random, 10)};
    if (job % 20 == 10) /* longer than one batch */
        return (struct image_extent){2000 + ref_random_below(random, 3000), 3, 3};
    if (thin == 0)
        extent.columns = 1 + ref_random_below(random, 3);
    if (thin == 1)
        extent.rows = 1;
    if (thin == 2)
        extent.slices = 1;
    return extent;
}

static uint16_t *
random_levels(const struct volume *volume, struct texture_levels *levels, uint64_t *random)
{
    static const int counts[] = {2, 3, 8, 9, 15, 16, 32, 33, 64, 100, 255, 256};
    size_t values = values_of(volume);
    bool contiguous = ref_random_below(random, 3) > 0, holes = ref_random_below(random, 2);
    uint16_t *table;

    levels->levels = counts[ref_random_below(random, 12)];
    levels->table_count = ref_random_below(random, 3) ? 1 : (size_t)volume->extent.slices;
    table = allocate((int64_t)(levels->table_count * values), sizeof(*table));
    for (size_t i = 0; i < levels->table_count * values; i++) {
        size_t place = (i + i / values * 17) % values;
        size_t level = contiguous ? 1 + place * (size_t)levels->levels / values
                                  : 1 + (size_t)ref_random_below(random, levels->levels);
        table[i] = (uint16_t)(holes && place % 11 == 0 ? 0 : level);
    }
    levels->level_of = table;
    return table;
}

/* Returns the 13 of one distance, the four of a slice, or any. */
static size_t
random_offsets(struct texture_offset offsets[MOST_OFFSETS], uint64_t *random)
{
    static const int kinds[][2] = {{0, 1}, {0, 1}, {1, 1}, {1, 2}};
    int64_t kind = ref_random_below(random, 8), far = 1 + ref_random_below(random, 3);
    int32_t most = ref_random_below(random, 3) ? 4 : 255;
    size_t count = 0, wanted = 1 + (size_t)ref_random_below(random, 8);

    if (kind < 4) { /* all directions within slices or the volume, of one sign */
        for (int z = 0; z <= kinds[kind][0]; z++)
            for (int y = -1; y <= 1; y++)
                for (int x = -1; x <= 1; x++)
                    if (z > 0 || y > 0 || (y == 0 && x > 0))
                        offsets[count++] = (struct texture_offset){
                            x * (int)far, (kinds[kind][1] == 1 ? -y : y) * (int)far, z * (int)far};
        return count;
    }
    if (kind == 4)
        wanted = MOST_OFFSETS;
    while (count < wanted) {
        struct texture_offset offset = {(int32_t)ref_random_below(random, 2 * most + 1) - most,
                                        (int32_t)ref_random_below(random, 2 * most + 1) - most,
                                        (int32_t)ref_random_below(random, 2 * most + 1) - most};

        if (offset.x || offset.y || offset.z)
            offsets[count++] = offset;
        if (count > 1 && ref_random_below(random, 8) == 0)
            offsets[count - 1] = offsets[count - 2];
    }
    return count;
}

static struct volume
random_volume(uint64_t *random, int64_t job)
{
    struct volume volume = volume_of(random_extent(random, job), (enum image_pixel)ref_random_below(random, 3));

    fill(&volume, (enum content)ref_random_below(random, CONTENTS), ref_random(random));
    return volume;
}

START_TEST(random_glcms_equal_the_reference)
{
    uint64_t random = 5;

    for (uint64_t job = test_share_first(); job < RANDOM_JOBS; job += test_share()) {
        struct volume volume = random_volume(&random, (int64_t)job);
        struct texture_offset offsets[MOST_OFFSETS];
        struct texture_glcm request = {.offsets = offsets, .per_slice = ref_random_below(&random, 2)};
        uint64_t *region = random_region(volume.extent, &random);
        uint16_t *table = random_levels(&volume, &request.levels, &random);

        request.region = region;
        request.offset_count = random_offsets(offsets, &random);
        if (matrix_entries(&volume, &request) > MOST_ENTRIES)
            request.per_slice = false;
        if (matrix_entries(&volume, &request) > MOST_ENTRIES)
            request.offset_count = 1;
        check_glcm_everywhere(&volume, &request, job);
        free(table);
        free(region);
        free(volume.voxels);
    }
}

END_TEST

START_TEST(random_histograms_equal_the_reference)
{
    uint64_t random = 6;

    for (uint64_t job = test_share_first(); job < RANDOM_JOBS; job += test_share()) {
        struct volume volume = random_volume(&random, (int64_t)job);
        uint64_t *region = random_region(volume.extent, &random);

        check_histogram_everywhere(&volume, region, ref_random_below(&random, 2), job);
        free(region);
        free(volume.voxels);
    }
}

END_TEST

static int32_t
random_threshold(uint64_t *random)
{
    static const int32_t special[] = {0, 1, 500000, 900000, 999999, 1000000};
    int64_t kind = ref_random_below(random, 12);

    return kind < 6 ? special[kind] : (int32_t)ref_random_below(random, 1000001);
}

START_TEST(random_patterns_equal_the_references)
{
    uint64_t random = 7;

    for (uint64_t job = test_share_first(); job < RANDOM_JOBS; job += test_share()) {
        struct volume volume = random_volume(&random, (int64_t)job);
        uint64_t *regions[MOST_REGIONS];
        const uint64_t *given[MOST_REGIONS];
        struct texture_patterns request = {.threshold_millionths = random_threshold(&random),
                                           .strict = ref_random_below(&random, 2),
                                           .integer_average = ref_random_below(&random, 2),
                                           .regions = given,
                                           .region_count = (size_t)ref_random_below(&random, MOST_REGIONS + 1)};
        int64_t combination = 1 + ref_random_below(&random, 7);

        for (int p = 0; p < TEXTURE_PATTERNS; p++) {
            request.wanted[p] = combination >> p & 1;
            request.maps[p] = request.wanted[p] && ref_random_below(&random, 4);
        }
        for (size_t r = 0; r < request.region_count; r++)
            given[r] = regions[r] = random_region(volume.extent, &random);
        check_patterns_everywhere(&volume, &request, job);
        for (size_t r = 0; r < request.region_count; r++)
            free(regions[r]);
        free(volume.voxels);
    }
}

END_TEST

/* --------------------------------------------------------------------- known answers ---- */

/* Maps values 1 .. levels to their own level; others have no level. */
static struct texture_levels
identity(int levels)
{
    static uint16_t table[65536];

    for (size_t i = 0; i < 65536; i++)
        table[i] = (uint16_t)(i <= (size_t)levels ? i : 0);
    return (struct texture_levels){levels, table, 1};
}

/* scikit-image's documented example, 0 degrees: rows 2210, 0200, 0031, 0001. */
START_TEST(a_published_matrix)
{
    static const uint16_t image[16] = {1, 1, 2, 2, 1, 1, 2, 2, 1, 3, 3, 3, 3, 3, 4, 4};
    static const uint64_t expected[16] = {2, 2, 1, 0, 0, 2, 0, 0, 0, 0, 3, 1, 0, 0, 0, 1};
    struct volume volume = volume_of((struct image_extent){4, 4, 1}, IMAGE_UINT16);
    struct texture_offset right = {1, 0, 0};
    struct texture_glcm request = {.levels = identity(4), .offsets = &right, .offset_count = 1};

    memcpy(volume.voxels, image, sizeof(image));
    for (size_t i = 0; i < variant_count; i++) {
        begin(variants[i].lane, &volume);
        check_glcm(&variants[i], &request, expected, 16, 0);
    }
    free(volume.voxels);
}

END_TEST

/* A single level fills one counter, which must neither lose a count nor overflow. */
START_TEST(a_constant_volume_counts_every_pair)
{
    struct volume volume = volume_of((struct image_extent){257, 129, 33}, IMAGE_UINT16);
    struct texture_offset offsets[2] = {{1, 0, 0}, {-2, 3, 1}};
    struct texture_glcm request = {.levels = identity(32), .offsets = offsets, .offset_count = 2};
    uint64_t counts[2 * 32 * 32];

    for (int64_t i = 0; i < ref_voxels(volume.extent); i++)
        ref_store(volume.pixel, volume.voxels, i, 20);
    for (size_t i = 0; i < variant_count; i++) {
        begin(variants[i].lane, &volume);
        ck_assert_int_eq(texture_glcm_run(variants[i].lane, &request, counts, NULL), 0);
        ck_assert_uint_eq(counts[19 * 32 + 19], 256 * 129 * 33);
        ck_assert_uint_eq(counts[32 * 32 + 19 * 32 + 19], 255 * 126 * 32);
    }
    free(volume.voxels);
}

END_TEST

/* A single offset is counted along chains of voxels: each pair once, in either direction. */
START_TEST(a_single_offset)
{
    static const struct texture_offset offsets[] = {{1, 0, 0},  {0, 1, 0}, {0, -2, 0}, {3, 2, 0}, {0, 0, 1},
                                                    {0, 0, -3}, {2, 0, 2}, {-1, 1, 1}, {8, 0, -1}};
    struct volume volume = volume_of((struct image_extent){60, 41, 23}, IMAGE_UINT8);

    fill(&volume, SCATTER, 2);
    for (int levels = 3; levels <= 17; levels += 7)
        for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++) {
            uint16_t table[256];
            struct texture_glcm request = {.levels = {levels, table, 1}, .offsets = &offsets[o], .offset_count = 1};

            for (int i = 0; i < 256; i++)
                table[i] = (uint16_t)(i % (levels + 1));
            for (int per_slice = 0; per_slice < 2; per_slice++) {
                request.per_slice = per_slice;
                check_glcm_everywhere(&volume, &request, o);
            }
        }
    free(volume.voxels);
}

END_TEST

static const struct texture_offset in_a_plane[4] = {{1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {-1, 1, 0}};

/* Tables of all sizes, with more counts than two bytes hold, and never the same pair twice in a row. */
START_TEST(two_alternating_levels)
{
    static const int levels[] = {7, 16, 64, 99, 200, 255, 256};
    struct volume volume = volume_of((struct image_extent){300, 160, 24}, IMAGE_UINT16);

    for (size_t l = 0; l < sizeof(levels) / sizeof(levels[0]); l++) {
        struct texture_glcm request = {.levels = identity(levels[l]), .offsets = in_a_plane, .offset_count = 4};

        for (int64_t i = 0; i < ref_voxels(volume.extent); i++)
            ref_store(volume.pixel, volume.voxels, i, i % 2 ? levels[l] : 1);
        check_glcm_everywhere(&volume, &request, l);
    }
    free(volume.voxels);
}

END_TEST

/* Levels close to their neighbours are counted by tuples of three, even if their table is large. */
START_TEST(smooth_levels)
{
    static const int levels[] = {40, 52, 64, 65};
    static const struct texture_offset alone = {-1, 0, 1};
    struct volume volume = volume_of((struct image_extent){301, 160, 24}, IMAGE_UINT16);
    uint16_t *table = allocate(65536, sizeof(*table));

    ref_smooth(volume.extent, volume.pixel, 4000, 3, volume.voxels);
    for (size_t l = 0; l < sizeof(levels) / sizeof(levels[0]); l++) {
        struct texture_glcm request = {
            .levels = {levels[l], table, 1}, .offsets = l % 2 ? &alone : in_a_plane, .offset_count = l % 2 ? 1 : 4};

        for (int value = 0; value <= 4000; value++)
            table[value] = (uint16_t)(value % 97 ? 1 + value * levels[l] / 4001 : 0);
        check_glcm_everywhere(&volume, &request, l);
    }
    free(table);
    free(volume.voxels);
}

END_TEST

START_TEST(offsets_longer_than_the_volume_have_no_pair)
{
    static const struct texture_offset offsets[] = {{3, 0, 0},       {0, 2, 0},    {0, 0, 1},
                                                    {255, 255, 255}, {-255, 0, 0}, {-3, 1, 0}};
    struct volume volume = volume_of((struct image_extent){3, 2, 1}, IMAGE_UINT8);
    struct texture_glcm request = {.levels = identity(2), .offsets = offsets, .offset_count = 6};
    uint64_t counts[6 * 4];

    memset(volume.voxels, 1, 6);
    for (size_t i = 0; i < variant_count; i++) {
        begin(variants[i].lane, &volume);
        memset(counts, 0xFF, sizeof(counts));
        ck_assert_int_eq(texture_glcm_run(variants[i].lane, &request, counts, NULL), 0);
        for (size_t k = 0; k < 24; k++)
            ck_assert_uint_eq(counts[k], 0);
    }
    free(volume.voxels);
}

END_TEST

/* The text's two examples of neighbours: highest 17, threshold 0.9, so 15.3. */
START_TEST(the_threshold_of_the_papers_example)
{
    static const uint8_t image[9] = {12, 15, 16, 17, 13, 13, 15, 16, 1};
    struct volume volume = volume_of((struct image_extent){3, 3, 1}, IMAGE_UINT8);
    struct texture_patterns request = {.wanted = {true, true}, .threshold_millionths = 900000, .maps = {true, true}};

    memcpy(volume.voxels, image, sizeof(image));
    for (size_t i = 0; i < variant_count; i++) {
        begin(variants[i].lane, &volume);
        ck_assert_int_eq(texture_patterns_run(variants[i].lane, &request, NULL), 0);
        ck_assert_uint_eq(*texture_patterns_map(variants[i].lane, TEXTURE_LBP), 1 + 2 + 4 + 16 + 32 + 64);
        ck_assert_uint_eq(*texture_patterns_map(variants[i].lane, TEXTURE_TLBAP), 2 + 16 + 64);
    }
    free(volume.voxels);
}

END_TEST

/* With a threshold of 1 the bound is the maximum itself, at both ends of each pixel type. */
START_TEST(thresholds_at_the_ends_of_the_pixel_types)
{
    for (int pixel = IMAGE_UINT8; pixel <= IMAGE_UINT16; pixel++)
        for (int top = 0; top < 2; top++)
            for (int32_t threshold = 0; threshold <= 1000000; threshold += 500000) {
                struct volume volume = volume_of((struct image_extent){35, 4, 1}, (enum image_pixel)pixel);
                struct texture_patterns request = {
                    .wanted = {true, true, true}, .threshold_millionths = threshold, .maps = {true, true, true}};

                for (int64_t i = 0; i < ref_voxels(volume.extent); i++)
                    ref_store(volume.pixel, volume.voxels, i,
                              top ? largest_of(&volume) - (int32_t)(i % 3 % 2)
                                  : smallest_of(&volume) + (int32_t)(i % 5 % 2));
                for (int options = 0; options < 4; options++) {
                    request.strict = options & 1;
                    request.integer_average = options & 2;
                    check_patterns_everywhere(&volume, &request, (uint64_t)threshold);
                }
                free(volume.voxels);
            }
}

END_TEST

/* More regions than histograms fit into memory together. Each is one voxel, the last is everything. */
START_TEST(a_histogram_for_each_of_many_regions)
{
    struct volume volume = volume_of((struct image_extent){12, 10, 1}, IMAGE_UINT8);
    uint64_t bits[MANY_REGIONS][10] = {{0}};
    const uint64_t *regions[MANY_REGIONS];
    uint64_t *histograms = allocate(MANY_REGIONS * TEXTURE_PATTERNS * 256, sizeof(*histograms));
    struct texture_patterns request = {
        .wanted = {true}, .maps = {true}, .regions = regions, .region_count = MANY_REGIONS, .histograms = histograms};

    fill(&volume, SCATTER, 8);
    for (size_t r = 0; r < MANY_REGIONS; r++) {
        bits[r][1 + r / 10] = UINT64_C(1) << (1 + r % 10);
        regions[r] = r + 1 < MANY_REGIONS ? bits[r] : NULL;
    }
    for (size_t i = 0; i < variant_count; i++) {
        begin(variants[i].lane, &volume);
        ck_assert_int_eq(texture_patterns_run(variants[i].lane, &request, NULL), 0);
        const uint8_t *map = texture_patterns_map(variants[i].lane, TEXTURE_LBP);
        for (size_t r = 0; r < MANY_REGIONS; r++) {
            uint64_t total = 0;

            for (size_t code = 0; code < 256; code++)
                total += histograms[r * TEXTURE_PATTERNS * 256 + code];
            ck_assert_uint_eq(total, r + 1 < MANY_REGIONS ? 1 : 80);
            if (r + 1 < MANY_REGIONS)
                ck_assert_uint_eq(histograms[r * TEXTURE_PATTERNS * 256 + map[r]], 1);
        }
    }
    free(histograms);
    free(volume.voxels);
}

END_TEST

/* ------------------------------------------------------------------------------ lanes ---- */

struct side {
    struct variant *variant;
    const struct volume *volume;
    const struct texture_glcm *glcm;
    const struct texture_patterns *patterns;
    const uint64_t *counts;
    const struct patterns_results *codes;
};

static void *
run_side(void *argument)
{
    const struct side *side = argument;

    for (uint64_t i = test_share_first(); i < 20; i += test_share()) {
        begin(side->variant->lane, side->volume);
        check_glcm(side->variant, side->glcm, side->counts, matrix_entries(side->volume, side->glcm), i);
        check_patterns(side->variant, side->volume, side->patterns, side->codes, i);
        check_glcm(side->variant, side->glcm, side->counts, matrix_entries(side->volume, side->glcm), i);
        check_maps(side->variant, side->volume, side->patterns, side->codes, i); /* must still be there */
    }
    return NULL;
}

START_TEST(lanes_work_side_by_side)
{
    struct variant *shared = &variants[variant_count - 1];
    struct variant own[3];
    struct side sides[3];
    pthread_t threads[3];
    struct volume volume = volume_of((struct image_extent){120, 60, 20}, IMAGE_INT16);
    struct texture_offset offsets[MOST_OFFSETS];
    uint64_t random = 3;
    struct texture_glcm glcm = {.offsets = offsets};
    uint16_t *table = random_levels(&volume, &glcm.levels, &random);
    struct texture_patterns patterns = {
        .wanted = {true, true, true}, .threshold_millionths = 900000, .maps = {true, true, true}};

    fill(&volume, SMOOTH, 9);
    glcm.offset_count = random_offsets(offsets, &random);
    uint64_t *counts = expected_glcm(&volume, &glcm);
    struct patterns_results *codes = expected_patterns(&volume, &patterns);
    for (int i = 0; i < 3; i++) {
        own[i] = *shared;
        ck_assert_int_eq(kernels_lane_open(shared->device, &own[i].lane, NULL), 0);
        sides[i] = (struct side){&own[i], &volume, &glcm, &patterns, counts, codes};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_side, &sides[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        kernels_lane_close(own[i].lane);
    }
    patterns_free(codes);
    free(counts);
    free(table);
    free(volume.voxels);
}

END_TEST

static int64_t
words_of(struct image_extent extent)
{
    return words_per_row(extent) * extent.rows * extent.slices;
}

/* Checks texture within a level set's result, and that the result is unchanged afterwards. */
START_TEST(masks_outlive_texture)
{
    struct volume volume = volume_of((struct image_extent){70, 40, 9}, IMAGE_INT16);
    struct kernels_shape shape = {KERNELS_SPHERE, {35, 20, 4}, {15, 0, 0}};
    struct image_range range = {500, 4000};
    struct kernels_level_set_label label = {
        .shapes = &shape, .shape_count = 1, .ranges = &range, .range_count = 1, .padding = {1, 0}};
    struct kernels_demand demand = {.of[KERNELS_LEVEL_SET] = &(struct kernels_level_set_demand){1}, REF_TEXTURE_DEMAND};
    struct texture_offset right = {1, 0, 0};
    uint16_t *table = allocate(65536, sizeof(*table));

    fill(&volume, SMOOTH, 4);
    for (size_t i = 0; i < 65536; i++)
        table[i] = (uint16_t)(1 + i % 16);
    for (size_t i = 0; i < variant_count; i++) {
        struct kernels_lane *lane = variants[i].lane;
        struct image_mask mask;
        void *voxels;
        size_t bytes = (size_t)words_of(volume.extent) * sizeof(uint64_t);
        uint64_t *before = allocate(1, bytes);

        ck_assert_int_eq(kernels_volume_begin(lane, volume.extent, volume.pixel, &demand, &voxels, NULL), 0);
        memcpy(voxels, volume.voxels, (size_t)ref_voxels(volume.extent) * sizeof(int16_t));
        ck_assert_int_eq(kernels_level_set_begin(lane, &label, 1, NULL), 0);
        ck_assert_int_eq(kernels_volume_ready(lane, 0, volume.extent.slices, NULL), 0);
        ck_assert_int_eq(kernels_level_set_run(lane, &label, 1, &mask, NULL), 0);
        ck_assert_int_gt(mask.voxels, 0);
        memcpy(before, mask.bits, bytes);
        struct texture_glcm request = {
            .levels = {16, table, 1}, .region = mask.bits, .offsets = &right, .offset_count = 1};
        uint64_t *expected = expected_glcm(&volume, &request);
        check_glcm(&variants[i], &request, expected, 256, i);
        check_glcm(&variants[i], &request, expected, 256, i); /* any number of times */
        ck_assert_int_eq(memcmp(before, mask.bits, bytes), 0);
        free(expected);
        free(before);
    }
    free(table);
    free(volume.voxels);
}

END_TEST

/* ----------------------------------------------------------------------------- errors ---- */

static struct kernels_lane *
lane_with(const struct kernels_demand *demand, int64_t announced)
{
    struct kernels_lane *lane = variants[0].lane;
    void *voxels;

    ck_assert_int_eq(kernels_volume_begin(lane, (struct image_extent){8, 8, 4}, IMAGE_UINT8, demand, &voxels, NULL), 0);
    memset(voxels, 1, 256);
    ck_assert_int_eq(kernels_volume_ready(lane, 0, announced, NULL), 0);
    return lane;
}

static const struct texture_offset one_right = {1, 0, 0};

static struct texture_glcm
sound_glcm(void)
{
    return (struct texture_glcm){
        .levels = {4, allocate(1024, sizeof(uint16_t)), 1}, .offsets = &one_right, .offset_count = 1};
}

static void
expect_errors(struct kernels_lane *lane, int rc)
{
    static uint64_t counts[256];
    struct texture_glcm glcm = sound_glcm();
    struct texture_patterns patterns = {.wanted = {true}, .maps = {true}};

    ck_assert_int_eq(texture_glcm_run(lane, &glcm, counts, &error), rc);
    ck_assert_int_eq(texture_histogram_run(lane, NULL, false, counts, &error), rc);
    ck_assert_int_eq(texture_patterns_run(lane, &patterns, &error), rc);
    free((void *)(uintptr_t)glcm.levels.level_of);
}

START_TEST(texture_waits_for_every_slice_and_for_its_memory)
{
    struct kernels_lane *fresh;

    expect_errors(lane_with(&(struct kernels_demand){REF_TEXTURE_DEMAND}, 4), 0);
    expect_errors(lane_with(&(struct kernels_demand){REF_TEXTURE_DEMAND}, 3), -EBUSY);
    ck_assert_str_eq(error.message, "1 of 4 slices are not announced");
    expect_errors(lane_with(&(struct kernels_demand){0}, 4), -EINVAL);
    ck_assert_int_eq(kernels_lane_open(variants[0].device, &fresh, NULL), 0);
    expect_errors(fresh, -EINVAL);
    kernels_lane_close(fresh);
}

END_TEST

static void
expect_bad_glcm(const struct texture_glcm *request, const char *message)
{
    static uint64_t counts[4 * 256 * 256];
    struct kernels_lane *lane = lane_with(&(struct kernels_demand){REF_TEXTURE_DEMAND}, 4);

    ck_assert_int_eq(texture_glcm_run(lane, request, counts, &error), -EINVAL);
    ck_assert_msg(strstr(error.message, message), "\"%s\" does not say \"%s\"", error.message, message);
}

START_TEST(invalid_matrix_requests_are_refused)
{
    struct texture_glcm sound = sound_glcm(), bad;
    uint16_t *table = (uint16_t *)(uintptr_t)sound.levels.level_of;
    struct texture_offset offset;

    for (int levels = -1; levels <= 257; levels += levels == 1 ? 256 : 1) {
        if (levels == 2)
            levels = 257;
        bad = sound;
        bad.levels.levels = levels;
        expect_bad_glcm(&bad, "grey levels are not possible");
    }
    for (size_t tables = 0; tables <= 5; tables++) {
        bad = sound;
        bad.levels.table_count = tables;
        if (tables != 1 && tables != 4)
            expect_bad_glcm(&bad, "tables of levels");
    }
    bad = sound;
    bad.levels.level_of = NULL;
    expect_bad_glcm(&bad, "0 tables of levels");
    bad = sound;
    bad.offset_count = 0;
    expect_bad_glcm(&bad, "no offsets");
    bad = sound;
    bad.offsets = NULL;
    expect_bad_glcm(&bad, "no offsets");
    for (int axis = 0; axis < 3; axis++)
        for (int sign = -1; sign <= 1; sign++) {
            int32_t longest[3] = {0, 0, 0};

            longest[axis] = sign * 256;
            offset = (struct texture_offset){longest[0], longest[1], longest[2]};
            bad = sound;
            bad.offsets = &offset;
            expect_bad_glcm(&bad, "is none or longer");
        }
    table[1023] = 5;
    bad = sound;
    bad.levels.table_count = 4;
    expect_bad_glcm(&bad, "table 3 has a level above the highest one, 4");
    ck_assert_int_eq(texture_glcm_run(variants[0].lane, &sound, NULL, &error), -EINVAL);
    free(table);
}

END_TEST

static void
expect_bad_patterns(const struct texture_patterns *request)
{
    struct kernels_lane *lane = lane_with(&(struct kernels_demand){REF_TEXTURE_DEMAND}, 4);

    error.message[0] = '\0';
    ck_assert_int_eq(texture_patterns_run(lane, request, &error), -EINVAL);
    ck_assert_str_ne(error.message, "");
}

START_TEST(invalid_pattern_requests_are_refused)
{
    const uint64_t *region = NULL;
    uint64_t histograms[TEXTURE_PATTERNS * 256];

    expect_bad_patterns(&(struct texture_patterns){.threshold_millionths = 0});
    expect_bad_patterns(&(struct texture_patterns){.wanted = {true}, .threshold_millionths = -1});
    expect_bad_patterns(&(struct texture_patterns){.wanted = {true}, .threshold_millionths = 1000001});
    expect_bad_patterns(&(struct texture_patterns){.wanted = {true}, .maps = {false, true}});
    expect_bad_patterns(&(struct texture_patterns){.wanted = {true}, .region_count = 1, .regions = &region});
    expect_bad_patterns(&(struct texture_patterns){.wanted = {true}, .region_count = 1, .histograms = histograms});
    ck_assert_int_eq(texture_histogram_run(variants[0].lane, NULL, false, NULL, &error), -EINVAL);
}

END_TEST

#ifndef __SANITIZE_ADDRESS__ /* its shadow uses all of the address space */
/* kernels_volume_begin must reserve the memory of texture, and report a failure. */
START_TEST(memory_for_texture_is_reserved_at_the_beginning)
{
    struct image_extent large = {1 << 10, 1 << 10, 1 << 9};
    struct kernels_demand demand = {REF_TEXTURE_DEMAND};
    struct rlimit before, tight;
    struct kernels_lane *lane;
    void *voxels;
    char statm[64] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    int rc;

    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(statm, sizeof(statm), file));
    fclose(file);
    ck_assert_int_eq(kernels_lane_open(variants[0].device, &lane, NULL), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    /* Allow the voxels, and 64 MiB. */
    tight.rlim_cur = strtoul(statm, NULL, 10) * 4096 + (UINT64_C(1) << 29) + (64 << 20);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &tight), 0);
    rc = kernels_volume_begin(lane, large, IMAGE_UINT8, &demand, &voxels, &error);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert_int_eq(rc, -ENOMEM);
    ck_assert_ptr_nonnull(strstr(error.message, "texture"));
    kernels_lane_close(lane);
}

END_TEST

#endif

static Suite *
suite(void)
{
    Suite *suite = suite_create("texture");
    TCase *random = tcase_create("random"), *known = tcase_create("known");
    TCase *lanes = tcase_create("lanes"), *errors = tcase_create("errors");

    tcase_add_unchecked_fixture(random, open_variants, variants_close);
    tcase_add_unchecked_fixture(known, open_variants, variants_close);
    tcase_add_unchecked_fixture(lanes, open_variants, variants_close);
    tcase_add_unchecked_fixture(errors, open_variants, variants_close);
    tcase_add_test(random, random_glcms_equal_the_reference);
    tcase_add_test(random, random_histograms_equal_the_reference);
    tcase_add_test(random, random_patterns_equal_the_references);
    tcase_add_test(known, a_published_matrix);
    tcase_add_test(known, a_constant_volume_counts_every_pair);
    tcase_add_test(known, a_single_offset);
    tcase_add_test(known, two_alternating_levels);
    tcase_add_test(known, smooth_levels);
    tcase_add_test(known, offsets_longer_than_the_volume_have_no_pair);
    tcase_add_test(known, the_threshold_of_the_papers_example);
    tcase_add_test(known, thresholds_at_the_ends_of_the_pixel_types);
    tcase_add_test(known, a_histogram_for_each_of_many_regions);
    tcase_add_test(lanes, lanes_work_side_by_side);
    tcase_add_test(lanes, masks_outlive_texture);
    tcase_add_test(errors, texture_waits_for_every_slice_and_for_its_memory);
    tcase_add_test(errors, invalid_matrix_requests_are_refused);
    tcase_add_test(errors, invalid_pattern_requests_are_refused);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test(errors, memory_for_texture_is_reserved_at_the_beginning);
#endif
    suite_add_tcase(suite, random);
    suite_add_tcase(suite, known);
    suite_add_tcase(suite, lanes);
    suite_add_tcase(suite, errors);
    return suite;
}

int
main(void)
{
    SRunner *runner = srunner_create(suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
