#include "tests/kernels/ref_ibsi.h"

#include "kernels/texture/texture.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct image_extent ibsi_extent = {5, 4, 4};

/* Negative: outside the mask. */
static const int ibsi_values[IBSI_VOXELS] = {
    1, 4, 4, 1,  1,  1, 4, 6, 1, 1, 4,  1, 6,  4, 1, 4, 4, 6, 4, 1, /* slice 1 */
    1, 4, 4, 1,  1,  1, 1, 6, 1, 1, -1, 1, 3,  1, 1, 4, 4, 6, 1, 1, /* slice 2 */
    1, 4, 4, -1, -1, 1, 1, 1, 1, 1, 1,  1, -9, 1, 1, 1, 1, 6, 1, 1, /* slice 3 */
    1, 4, 4, -1, -1, 1, 1, 1, 1, 1, 1,  1, 1,  1, 1, 1, 1, 6, 1, 1, /* slice 4 */
};

void
ibsi_fill(struct ibsi_phantom *phantom)
{
    memset(phantom, 0, sizeof(*phantom));
    for (int i = 0; i < IBSI_VOXELS; i++) {
        phantom->voxels[i] = (uint8_t)abs(ibsi_values[i]);
        if (ibsi_values[i] > 0)
            phantom->region[i / 5] |= UINT64_C(1) << (i % 5);
    }
    for (int level = 1; level <= IBSI_LEVELS; level++)
        phantom->level_of[level] = (uint16_t)level;
}

/* Counts on the lane, if the family needs counts, and takes the values. */
static void
take_values(const struct feature_family *family, const struct feature_region *region, size_t set,
            struct feature_value *values)
{
    struct error error = {0};
    uint64_t *counts = NULL;

    if (family->count)
        ck_assert_msg(family->count(region, set, &counts, &error) == 0, "%s", error.message);
    ck_assert_int_eq(family->values(region, set, counts, values), 0);
    free(counts);
}

static struct kernels_lane *
lane_with_phantom(struct kernels_device *device, const struct ibsi_phantom *phantom)
{
    struct kernels_demand demand = {0};
    struct kernels_lane *lane;
    void *voxels;

    for (size_t f = 0; f < FEATURE_FAMILIES; f++)
        if (feature_families[f]->count && !feature_families[f]->demand)
            demand.of[feature_families[f]->op] = &kernels_asked;
    ck_assert_int_eq(kernels_lane_open(device, &lane, NULL), 0);
    ck_assert_int_eq(kernels_volume_begin(lane, ibsi_extent, IMAGE_UINT8, &demand, &voxels, NULL), 0);
    memcpy(voxels, phantom->voxels, sizeof(phantom->voxels));
    ck_assert_int_eq(kernels_volume_ready(lane, 0, ibsi_extent.slices, NULL), 0);
    return lane;
}

void
ibsi_measure(const struct feature_family *family, const struct texture_options *options, size_t set,
             struct feature_value values[FEATURE_FAMILY_MAX])
{
    static const struct image_rescale as_stored = {1, 0};
    static const struct image_range no_padding = {1, 0};
    const struct kernels_device_options cpu = {.backend = "cpu", .threads = 1};
    uint64_t histogram[256] = {0};
    struct kernels_device *device;
    struct ibsi_phantom phantom;

    ibsi_fill(&phantom);
    for (int i = 0; i < IBSI_VOXELS; i++)
        histogram[phantom.voxels[i]] += phantom.region[i / 5] >> (i % 5) & 1;
    ck_assert_int_eq(kernels_device_open(&cpu, &device, NULL), 0);
    const struct feature_volume volume = {
        .lane = lane_with_phantom(device, &phantom),
        .options = options,
        .columns = ibsi_extent.columns,
        .rows = ibsi_extent.rows,
        .slices = ibsi_extent.slices,
        .voxel_to_mm = {{2, 0, 0, 0}, {0, 2, 0, 0}, {0, 0, 2, 0}},
        .spacing = {2, 2, 2},
        .tables = 1,
        .values = 256,
        .rescales = &as_stored,
        .paddings = &no_padding,
    };
    const struct feature_region region = {
        .volume = &volume,
        .bits = phantom.region,
        .histograms = histogram,
        .kept = {-INFINITY, INFINITY},
        .level_of = phantom.level_of,
        .levels = IBSI_LEVELS,
    };

    for (int f = 0; f < FEATURE_FAMILY_MAX; f++)
        values[f] = feature_absent(FEATURE_EMPTY_REGION);
    take_values(family, &region, set, values);
    kernels_lane_close(volume.lane);
    kernels_device_close(device);
}

static const struct ibsi_published *
find_published(const struct feature_definition *definition, const struct ibsi_published *published, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(published[i].code, definition->ibsi) == 0 && published[i].percent == definition->percent)
            return &published[i];
    ck_abort_msg("%s (%s) is not among what is published", definition->name, definition->ibsi);
    return NULL;
}

void
ibsi_check(const struct feature_family *family, const struct texture_options *options, size_t set,
           const struct ibsi_published *published, size_t count)
{
    struct feature_value values[FEATURE_FAMILY_MAX];
    size_t found = 0;

    ibsi_measure(family, options, set, values);
    for (size_t f = 0; f < family->definition_count; f++) {
        const struct feature_definition *definition = &family->definitions[f];
        char text[32], wanted[32];

        if (definition->ibsi[0] == '\0' || (family->tells && !family->tells(options, f)))
            continue;
        snprintf(text, sizeof(text), "%.3g", values[f].value);
        snprintf(wanted, sizeof(wanted), "%.3g", find_published(definition, published, count)->value);
        ck_assert_msg(values[f].missing == FEATURE_PRESENT && strcmp(text, wanted) == 0, "%s (%s) is %s, not %s",
                      definition->name, definition->ibsi, text, wanted);
        found++;
    }
    ck_assert_uint_eq(found, count);
}
