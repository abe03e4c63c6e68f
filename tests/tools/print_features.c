/*
 * print_features.c - prints texture and intensity features of a raw volume within a mask, as JSON, for tests to
 * compare with other software. Co-occurrence counts come from tests/kernels/ref_texture.c, all others from the CPU
 * backend.
 *
 *   print_features VOXELS MASK name=value...
 *
 * VOXELS is x fastest, in the machine's byte order. MASK has one byte per voxel, 0 outside. Names: columns, rows,
 * slices; pixel (0 uint8, 1 int16, 2 uint16); slope, intercept; x, y, z (spacings); aggregation, discretisation (as the
 * enumerations of base/texture_options.h); levels, width; lo, hi (re-segmentation); distance; symmetric; counts (1:
 * also print them, one matrix per direction); families (1: also all of them, 2: shape-2d alone); alpha, ivh, ivh_levels, ivh_width.
 */
#include "kernels/features/discretise.h"
#include "kernels/features/matrices/glcm.h"
#include "tests/kernels/ref_texture.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OFFSETS 1000

struct setting {
    const char *name;
    double value;
};

static struct setting settings[] = {
    {"columns", 1},   {"rows", 1},           {"slices", 1},     {"pixel", 0},
    {"slope", 1},     {"intercept", 0},      {"x", 1},          {"y", 1},
    {"z", 1},         {"aggregation", 4},    {"lo", -INFINITY}, {"hi", INFINITY},
    {"levels", 32},   {"discretisation", 0}, {"width", 25},     {"distance", 1},
    {"symmetric", 1}, {"counts", 0},         {"families", 0},   {"ivh", 0},
    {"alpha", 0},     {"ivh_levels", 1000},  {"ivh_width", 1},
};

static struct setting *
find_setting(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if (strlen(settings[i].name) == length && strncmp(settings[i].name, name, length) == 0)
            return &settings[i];
    fprintf(stderr, "no setting %s\n", name);
    exit(2);
}

static double
get(const char *name)
{
    return find_setting(name, strlen(name))->value;
}

static void
read_settings(char **arguments)
{
    for (; *arguments; arguments++) {
        const char *equals = strchr(*arguments, '=');

        if (!equals) {
            fprintf(stderr, "%s is not name=value\n", *arguments);
            exit(2);
        }
        find_setting(*arguments, (size_t)(equals - *arguments))->value = strtod(equals + 1, NULL);
    }
}

static void *
allocate(size_t size)
{
    void *memory = calloc(1, size);

    if (!memory) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

static void *
read_all(const char *path, size_t size)
{
    void *bytes = allocate(size);
    FILE *file = fopen(path, "rb");

    if (!file || fread(bytes, 1, size, file) != size) {
        fprintf(stderr, "%s: cannot read %zu bytes\n", path, size);
        exit(1);
    }
    fclose(file);
    return bytes;
}

struct scene {
    struct image_extent extent;
    enum image_pixel pixel;
    void *voxels;
    uint64_t *mask;   /* the morphological mask */
    uint64_t *region; /* the mask after re-segmentation */
    struct image_rescale rescale;
    double lo, hi; /* range of the region */
    uint16_t *level_of;
    int levels;
};

static void
add_to(uint64_t *region, const struct scene *scene, int64_t voxel)
{
    const int64_t words = (scene->extent.columns + 63) / 64;
    const int64_t x = voxel % scene->extent.columns, row = voxel / scene->extent.columns;

    region[row * words + x / 64] |= UINT64_C(1) << (x % 64);
}

static void
add_to_region(struct scene *scene, int64_t voxel, double value)
{
    add_to(scene->region, scene, voxel);
    scene->lo = fmin(scene->lo, value);
    scene->hi = fmax(scene->hi, value);
}

static uint64_t *
allocate_bits(struct image_extent extent)
{
    return allocate((size_t)((extent.columns + 63) / 64 * extent.rows * extent.slices) * sizeof(uint64_t));
}

static void
open_scene(struct scene *scene, const char *voxels_path, const char *mask_path)
{
    int64_t voxels;
    uint8_t *mask;

    *scene = (struct scene){
        .extent = {(int64_t)get("columns"), (int64_t)get("rows"), (int64_t)get("slices")},
        .pixel = (enum image_pixel)get("pixel"),
        .rescale = {get("slope"), get("intercept")},
        .lo = INFINITY,
        .hi = -INFINITY,
    };
    voxels = ref_voxels(scene->extent);
    scene->voxels = read_all(voxels_path, (size_t)voxels * (scene->pixel == IMAGE_UINT8 ? 1 : 2));
    mask = read_all(mask_path, (size_t)voxels);
    scene->mask = allocate_bits(scene->extent);
    scene->region = allocate_bits(scene->extent);
    for (int64_t i = 0; i < voxels; i++) {
        const double stored = ref_stored(scene->pixel, scene->voxels, i);
        const double value = scene->rescale.slope * stored + scene->rescale.intercept;

        if (mask[i])
            add_to(scene->mask, scene, i);
        if (mask[i] && value >= get("lo") && value <= get("hi"))
            add_to_region(scene, i, value);
    }
    free(mask);
}

static int
find_levels(struct scene *scene)
{
    const size_t values = ref_texture_values(scene->pixel);
    const struct discretisation_options rule = {
        .kind = (enum discretisation)get("discretisation"),
        .levels = (int)get("levels"),
        .bin_width = get("width"),
        .has_range = isfinite(get("lo")),
        .range = {get("lo"), get("hi")},
    };

    scene->level_of = allocate(values * sizeof(*scene->level_of));
    return discretise(&rule, &scene->rescale, 1, values, ref_texture_smallest(scene->pixel), scene->lo, scene->hi,
                      scene->level_of, &scene->levels);
}

static void
close_scene(struct scene *scene)
{
    free(scene->voxels);
    free(scene->mask);
    free(scene->region);
    free(scene->level_of);
}

static void
print_family(const char *separator, const struct feature_family *family, const struct feature_value *values)
{
    for (size_t f = 0; f < family->definition_count; f++) {
        printf("%s\"%s\": ", f ? ", " : separator, family->definitions[f].name);
        if (values[f].missing == FEATURE_PRESENT)
            printf("%.17g", values[f].value);
        else
            printf("null");
    }
}

static void
print_counts(const uint64_t *counts, size_t matrices, int levels)
{
    const size_t square = (size_t)levels * (size_t)levels;

    printf(",\n \"counts\": [");
    for (size_t i = 0; i < matrices * square; i++)
        printf("%s%llu", i ? "," : "", (unsigned long long)counts[i]);
    printf("]");
}

static int
print_glcm(const struct scene *scene)
{
    static struct texture_offset offsets[MAX_OFFSETS];
    const struct glcm_settings glcm = {scene->levels, (enum aggregation)get("aggregation"), get("symmetric") > 0,
                                       GLCM_ONE_LEVEL_ABSENT};
    const struct texture_glcm request = {
        .levels = {scene->levels, scene->level_of, 1},
        .region = scene->region,
        .offsets = offsets,
        .offset_count = ref_directions(aggregation_is_2d(glcm.aggregation), (int32_t)get("distance"), offsets),
        .per_slice = aggregation_per_slice(glcm.aggregation),
    };
    const int64_t slices = request.per_slice ? scene->extent.slices : 1;
    const size_t matrices = (size_t)slices * request.offset_count;
    uint64_t *counts = allocate(matrices * (size_t)scene->levels * (size_t)scene->levels * sizeof(*counts));
    struct feature_value values[GLCM_FEATURES];
    int error;

    ref_texture_glcm(scene->extent, scene->pixel, scene->voxels, &request, counts);
    error = glcm_features(&glcm, NULL, counts, slices, (int64_t)request.offset_count, values);
    if (!error) {
        printf(",\n \"glcm\": {");
        print_family("", &family_glcm, values);
        printf("}");
        if (get("counts") > 0)
            print_counts(counts, matrices, scene->levels);
    }
    free(counts);
    return error;
}

static int
print_basic(const struct scene *scene)
{
    const size_t size = ref_texture_values(scene->pixel);
    uint64_t *histogram = allocate(size * sizeof(*histogram));
    struct feature_value values[2][FEATURE_FAMILY_MAX] = {0};
    const struct texture_options options = {0};
    const struct feature_volume volume = {
        .options = &options,
        .columns = scene->extent.columns,
        .rows = scene->extent.rows,
        .slices = scene->extent.slices,
        .voxel_to_mm = {{get("x"), 0, 0, 0}, {0, get("y"), 0, 0}, {0, 0, get("z"), 0}},
        .spacing = {get("x"), get("y"), get("z")},
        .tables = 1,
        .values = size,
        .smallest = ref_texture_smallest(scene->pixel),
        .rescales = &scene->rescale,
    };
    const struct feature_region region = {
        .volume = &volume,
        .bits = scene->region,
        .histograms = histogram,
        .level_of = scene->level_of,
        .levels = scene->levels,
    };
    int error;

    for (int i = 0; i < 2 * FEATURE_FAMILY_MAX; i++)
        values[i / FEATURE_FAMILY_MAX][i % FEATURE_FAMILY_MAX] = feature_absent(FEATURE_EMPTY_REGION);
    ref_texture_histogram(scene->extent, scene->pixel, scene->voxels, scene->region, false, histogram);
    error = family_shape.values(&region, 0, NULL, values[0]);
    if (!error)
        error = family_first_order.values(&region, 0, NULL, values[1]);
    if (!error) {
        printf(",\n \"basic\": {");
        print_family("", &family_shape, values[0]);
        print_family(", ", &family_first_order, values[1]);
        printf("}");
    }
    free(histogram);
    return error;
}

/* ---------------------------------------------------------------- families of the backend ---- */

static void
print_set(const struct feature_family *family, const struct texture_options *options,
          const struct feature_value *values)
{
    const char *separator = "";

    for (size_t f = 0; f < family->definition_count; f++) {
        const struct feature_definition *definition = &family->definitions[f];

        if (family->tells && !family->tells(options, f))
            continue;
        printf("%s\n  {\"family\": \"%s\", \"name\": \"%s\", \"ibsi\": \"%s\", \"percent\": %d, ", separator,
               family->name, definition->name, definition->ibsi, definition->percent);
        if (values[f].missing == FEATURE_PRESENT)
            printf("\"value\": %.17g}", values[f].value);
        else
            printf("\"value\": null}");
        separator = ",";
    }
}

static int
take_set(const struct feature_family *family, const struct feature_region *region, size_t set,
         struct feature_value *values)
{
    struct error error = {0};
    uint64_t *counts = NULL;
    int rc = 0;

    for (int f = 0; f < FEATURE_FAMILY_MAX; f++)
        values[f] = feature_absent(region->no_levels ? region->no_levels : FEATURE_EMPTY_REGION);
    if (family->needs == FEATURE_NEEDS_LEVELS && region->no_levels)
        return 0;
    if (family->count)
        rc = family->count(region, set, &counts, &error);
    if (rc)
        fprintf(stderr, "%s\n", error.message);
    else
        rc = family->values(region, set, counts, values);
    free(counts);
    return rc;
}

/* Prints the selected families that are in neither part above. */
static int
print_wanted(const struct feature_region *region)
{
    const struct texture_options *options = region->volume->options;
    const char *separator = "";
    int rc = 0;

    for (size_t f = 0; f < FEATURE_FAMILIES && rc == 0; f++) {
        const struct feature_family *family = feature_families[f];

        if (!feature_family_wanted(family, options) || !family->values)
            continue;
        for (size_t set = 0; set < (family->sets ? family->sets(options) : 1) && rc == 0; set++) {
            struct feature_value values[FEATURE_FAMILY_MAX];

            rc = take_set(family, region, set, values);
            fputs(separator, stdout);
            print_set(family, options, values);
            separator = ",";
        }
    }
    return rc;
}

static struct kernels_lane *
open_lane(struct kernels_device **device, const struct scene *scene)
{
    const struct kernels_device_options cpu = {.backend = "cpu"};
    struct kernels_demand demand = {0};
    struct kernels_lane *lane;
    void *voxels;

    for (size_t f = 0; f < FEATURE_FAMILIES; f++)
        if (feature_families[f]->count && !feature_families[f]->demand)
            demand.of[feature_families[f]->op] = &kernels_asked;
    if (kernels_device_open(&cpu, device, NULL) || kernels_lane_open(*device, &lane, NULL) ||
        kernels_volume_begin(lane, scene->extent, scene->pixel, &demand, &voxels, NULL)) {
        fputs("no lane\n", stderr);
        exit(1);
    }
    memcpy(voxels, scene->voxels, (size_t)ref_voxels(scene->extent) * image_pixel_size(scene->pixel));
    kernels_volume_ready(lane, 0, scene->extent.slices, NULL);
    return lane;
}

static int
print_families(const struct scene *scene)
{
    static const struct image_range no_padding = {1, 0};
    const size_t size = ref_texture_values(scene->pixel);
    uint64_t *histogram = allocate(size * sizeof(*histogram));
    struct kernels_device *device;
    const struct texture_options options = {
        .aggregation = (enum aggregation)get("aggregation"),
        .ngtdm_distance = (int)get("distance"),
        .ngldm_distance = (int)get("distance"),
        .ngldm_alpha = (int)get("alpha"),
        .families = 1u << (get("families") == 2 ? TEXTURE_FAMILY_shape_flat : TEXTURE_FAMILY_all),
        .levels = {.has_range = isfinite(get("lo")), .range = {get("lo"), get("hi")}},
        .ivh = {(enum volume_histogram_kind)get("ivh"), (int)get("ivh_levels"), get("ivh_width")},
    };
    const struct feature_volume volume = {
        .lane = open_lane(&device, scene),
        .options = &options,
        .columns = scene->extent.columns,
        .rows = scene->extent.rows,
        .slices = scene->extent.slices,
        .voxel_to_mm = {{get("x"), 0, 0, 0}, {0, get("y"), 0, 0}, {0, 0, get("z"), 0}},
        .spacing = {get("x"), get("y"), get("z")},
        .tables = 1,
        .values = size,
        .smallest = ref_texture_smallest(scene->pixel),
        .rescales = &scene->rescale,
        .paddings = &no_padding,
    };
    const struct feature_region region = {
        .volume = &volume,
        .bits = scene->mask,
        .histograms = histogram,
        .kept = {get("lo"), get("hi")},
        .extremes = {scene->lo, scene->hi},
        .level_of = scene->level_of,
        .levels = scene->levels,
        .no_levels = scene->lo > scene->hi ? FEATURE_EMPTY_REGION : FEATURE_PRESENT,
    };
    int rc;

    ref_texture_histogram(scene->extent, scene->pixel, scene->voxels, scene->region, false, histogram);
    printf(",\n \"families\": [");
    rc = print_wanted(&region);
    printf("]");
    kernels_lane_close(volume.lane);
    kernels_device_close(device);
    free(histogram);
    return rc;
}

int
main(int argc, char **argv)
{
    struct scene scene;
    int error;

    if (argc < 3) {
        fputs("usage: print_features VOXELS MASK name=value...\n", stderr);
        return 2;
    }
    read_settings(argv + 3);
    open_scene(&scene, argv[1], argv[2]);
    error = find_levels(&scene);
    if (!error) {
        printf("{\"levels\": %d", scene.levels);
        error = print_glcm(&scene);
    }
    if (!error)
        error = print_basic(&scene);
    if (!error && get("families") > 0)
        error = print_families(&scene);
    close_scene(&scene);
    if (error) {
        fprintf(stderr, "print_features: %s\n", strerror(-error));
        return 1;
    }
    puts("}");
    return 0;
}
