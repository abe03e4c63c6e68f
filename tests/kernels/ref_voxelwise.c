/* ref_voxelwise.c - see ref_voxelwise.h. */
#include "tests/kernels/ref_voxelwise.h"

#include "kernels/features/first_order.h"
#include "kernels/features/matrices/glcm.h"
#include "kernels/features/matrices/level_matrix.h"
#include "kernels/features/statistics.h"
#include "tests/kernels/ref_volumes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------- cases -- */

void
voxelwise_make_case(struct voxelwise_case *each, uint64_t seed)
{
    uint64_t state = seed * 77 + 5;
    const int levels = seed % 5 == 0 ? 1 + (int)ref_random_below(&state, 4) : 2 + (int)ref_random_below(&state, 40);
    const int64_t spread = 1 + ref_random_below(&state, levels);
    int64_t count = 0;

    memset(each, 0, sizeof(*each));
    each->options.radius = 1 + (int)ref_random_below(&state, seed % 7 == 0 ? VOXELWISE_MAX_RADIUS : 2);
    each->request = (struct voxelwise_request){.options = &each->options,
                                               .level_count = seed % 11 == 3 ? VOXELWISE_MAX_LEVELS : levels,
                                               .energy_shift = seed % 3 == 0 ? 12.5 : 0};
    for (int axis = 0; axis < 3; axis++)
        each->request.size[axis] = 1 + ref_random_below(&state, 9);
    for (int row = 0; row < VOXELWISE_FEATURES; row++)
        if (seed % 2 == 0 || ref_random_below(&state, 3) == 0 || row == 20)
            each->options.features[voxelwise_rows[row].family] |= 1u << voxelwise_rows[row].feature;
    each->features = voxelwise_count(&each->options);

    const int64_t all = each->request.size[0] * each->request.size[1] * each->request.size[2];

    each->levels = ref_allocate(all, sizeof(*each->levels));
    each->values = ref_allocate(all, sizeof(*each->values));
    each->voxels = ref_allocate(all, sizeof(*each->voxels));
    for (int64_t i = 0; i < all; i++) {
        const int64_t level = 1 + ref_random_below(&state, spread) * (levels - 1) / (spread > 1 ? spread - 1 : 1);
        const bool in = ref_random_below(&state, 10) > (int64_t)(seed % 4);

        each->levels[i] = (uint16_t)(in ? level : 0);
        each->values[i] = in ? (double)level * 25 - 300 + (double)ref_random_below(&state, 97) / 8 : NAN;
        if (in)
            each->voxels[count++] = i;
    }
    each->request.levels = each->levels;
    each->request.values = each->values;
    each->request.voxels = each->voxels;
    each->request.count = count;
}

void
voxelwise_free_case(struct voxelwise_case *each)
{
    free(each->levels);
    free(each->values);
    free(each->voxels);
}

int
voxelwise_run_case(struct kernels_lane *lane, const struct voxelwise_case *each, double *maps, struct error *error)
{
    const struct kernels_demand demand = {.of = {[KERNELS_VOXELWISE] = &kernels_asked}};
    const struct image_extent extent = {each->request.size[0], each->request.size[1], 1};
    struct voxelwise_request request = each->request;
    void *voxels;
    int rc = kernels_volume_begin(lane, extent, IMAGE_UINT8, &demand, &voxels, error);

    if (rc == 0)
        rc = kernels_volume_ready(lane, 0, 1, error);
    request.options = &each->options;
    request.stride = each->request.count;
    for (int64_t done = 0; done < each->request.count && rc == 0; done += request.count) { /* in two parts */
        request.count = done > 0 ? each->request.count - done : (each->request.count + 1) / 2;
        request.voxels = each->request.voxels + done;
        request.maps = maps + done;
        rc = voxelwise_run(lane, &request, error);
    }
    return rc;
}

/* -------------------------------------------------------------------------------- a window -- */

struct ref_window {
    int side, levels, count;
    int *level; /* 0: beyond the volume or the region */
    double *value;
};

static int
level_at(const struct ref_window *window, int x, int y, int z)
{
    const int side = window->side;
    const bool within = x >= 0 && x < side && y >= 0 && y < side && z >= 0 && z < side;

    return within ? window->level[(z * side + y) * side + x] : 0;
}

static void
cut_out(const struct voxelwise_request *request, int64_t voxel, struct ref_window *window)
{
    const int64_t columns = request->size[0], rows = request->size[1];
    const int64_t r = request->options->radius, x = voxel % columns, y = voxel / columns % rows,
                  z = voxel / columns / rows;
    int at = 0;

    window->side = (int)(2 * r + 1);
    window->levels = request->level_count;
    window->count = 0;
    window->level = ref_allocate((int64_t)window->side * window->side * window->side, sizeof(*window->level));
    window->value = ref_allocate((int64_t)window->side * window->side * window->side, sizeof(*window->value));
    for (int64_t k = z - r; k <= z + r; k++)
        for (int64_t j = y - r; j <= y + r; j++)
            for (int64_t i = x - r; i <= x + r; i++, at++)
                if (i >= 0 && i < columns && j >= 0 && j < rows && k >= 0 && k < request->size[2]) {
                    window->level[at] = request->levels[(k * rows + j) * columns + i];
                    window->value[at] = request->values[(k * rows + j) * columns + i];
                    window->count += window->level[at] > 0;
                }
}

/* Writes the values of a family of regions by their names. */
static void
write_named(enum voxelwise_family family, const struct feature_family *home, const struct feature_value *from,
            double *to)
{
    for (int row = 0; row < VOXELWISE_FEATURES; row++)
        for (size_t d = 0; d < home->definition_count && voxelwise_rows[row].family == family; d++)
            if (strcmp(home->definitions[d].name, voxelwise_rows[row].name) == 0)
                to[row] = from[d].missing ? NAN : from[d].value;
}

/* --------------------------------------------------------------------------------- families -- */

static void
ref_first_order(const struct voxelwise_request *request, const struct ref_window *window, double *to)
{
    struct value_count *items = ref_allocate(window->count, sizeof(*items));
    struct value_list list = {.items = items, .total = window->count};
    struct feature_value values[FIRST_ORDER_FEATURES] = {{0}}, statistics[STATISTICS];
    double uniformity = 0;
    uint64_t *counts = ref_allocate(window->levels, sizeof(*counts));

    for (;;) { /* the next larger value, and its count */
        const double after = list.size > 0 ? items[list.size - 1].value : -INFINITY;
        double next = INFINITY;

        for (int i = 0; i < window->side * window->side * window->side; i++)
            if (window->level[i] > 0 && window->value[i] > after)
                next = fmin(next, window->value[i]);
        if (next == INFINITY)
            break;
        items[list.size].value = next;
        items[list.size].count = 0;
        for (int i = 0; i < window->side * window->side * window->side; i++)
            items[list.size].count += window->level[i] > 0 && window->value[i] == next;
        list.size++;
    }
    statistics_of(&list, 0, statistics);
    values[FIRST_ORDER_MEAN] = statistics[STATISTIC_MEAN];
    values[FIRST_ORDER_STANDARD_DEVIATION].value = sqrt(statistics[STATISTIC_VARIANCE].value);
    for (int s = STATISTIC_VARIANCE; s < STATISTICS; s++)
        values[FIRST_ORDER_VARIANCE + s - STATISTIC_VARIANCE] = statistics[s];
    for (size_t i = 0; i < list.size; i++)
        items[i].value += request->energy_shift;
    statistics_of(&list, 0, statistics);
    values[FIRST_ORDER_ENERGY] = statistics[STATISTIC_ENERGY];
    values[FIRST_ORDER_ROOT_MEAN_SQUARE] = statistics[STATISTIC_ROOT_MEAN_SQUARE];
    for (int i = 0; i < window->side * window->side * window->side; i++)
        if (window->level[i] > 0)
            counts[window->level[i] - 1]++;
    for (int i = 0; i < window->levels; i++)
        uniformity += (double)(counts[i] * counts[i]) / ((double)window->count * window->count);
    write_named(VOXELWISE_FAMILY_first_order, &family_first_order, values, to);
    to[VOXELWISE_OF_first_order_SKEWNESS] = list.size > 1 ? to[VOXELWISE_OF_first_order_SKEWNESS] : 0;
    to[VOXELWISE_OF_first_order_KURTOSIS] = list.size > 1 ? to[VOXELWISE_OF_first_order_KURTOSIS] : 0;
    to[VOXELWISE_OF_first_order_ENTROPY] = entropy_of_counts(counts, (size_t)window->levels);
    to[VOXELWISE_OF_first_order_UNIFORMITY] = uniformity;
    free(counts);
    free(items);
}

/* Calls `take` for each direction and its steps. */
static void
ref_directions(const struct ref_window *window, double *to, enum voxelwise_family family,
               bool (*take)(const struct ref_window *window, const int step[3], double *features))
{
    double sum[VOXELWISE_FEATURES] = {0}, features[VOXELWISE_FEATURES];
    int count = 0;

    for (int z = 0; z <= 1; z++)
        for (int y = -1; y <= 1; y++)
            for (int x = -1; x <= 1; x++) {
                const int step[3] = {x, y, z};

                if (z * 9 + y * 3 + x <= 0 || !take(window, step, features))
                    continue;
                count++;
                for (int row = 0; row < VOXELWISE_FEATURES; row++)
                    if (voxelwise_rows[row].family == family)
                        sum[row] += features[row];
            }
    for (int row = 0; row < VOXELWISE_FEATURES; row++)
        if (voxelwise_rows[row].family == family)
            to[row] = count > 0 ? sum[row] / count : NAN;
}

static bool
ref_glcm(const struct ref_window *window, const int step[3], double *features)
{
    const int side = window->side, n = window->levels;
    const struct glcm_settings settings = {n > 1 ? n : 2, AGGREGATION_3D_AVERAGED, true, GLCM_ONE_LEVEL_ABSENT};
    uint64_t *counts = ref_allocate((int64_t)settings.levels * settings.levels, sizeof(*counts)), pairs = 0;
    struct feature_value values[GLCM_FEATURES];

    for (int z = 0; z < side; z++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++) {
                const int a = level_at(window, x, y, z), b = level_at(window, x + step[0], y + step[1], z + step[2]);

                if (a > 0 && b > 0) {
                    counts[(a - 1) * settings.levels + b - 1]++;
                    pairs++;
                }
            }
    if (pairs > 0) {
        glcm_features(&settings, NULL, counts, 1, 1, values);
        write_named(VOXELWISE_FAMILY_glcm, &family_glcm, values, features);
        if (isnan(features[VOXELWISE_OF_glcm_CORRELATION])) { /* one grey level */
            features[VOXELWISE_OF_glcm_CORRELATION] = 1;
            features[VOXELWISE_OF_glcm_INFORMATION_CORRELATION_1] = 0;
            features[VOXELWISE_OF_glcm_MAXIMAL_CORRELATION_COEFFICIENT] = 0;
        }
    }
    free(counts);
    return pairs > 0;
}

/* Writes the features of a matrix counts[levels][lengths]. */
static void
ref_matrix(enum voxelwise_family family, const struct feature_family *home, const uint64_t *counts, int levels,
           int lengths, double *to)
{
    struct level_cell *cells = ref_allocate((int64_t)levels * lengths, sizeof(*cells));
    struct feature_value values[LEVEL_MATRIX_FEATURES] = {{0}};
    struct level_average average = {.matrices = 0};
    uint64_t voxels = 0;

    for (int i = 0; i < levels * lengths; i++)
        voxels += counts[i] * (family == VOXELWISE_FAMILY_ngldm ? 1 : (uint64_t)(i % lengths + 1));
    level_average_add(&average, cells, level_cells_of(counts, (size_t)levels, (size_t)lengths, cells), voxels);
    level_average_take(&average, home->definition_count, values);
    write_named(family, home, values, to);
    free(cells);
}

static bool
ref_glrlm(const struct ref_window *window, const int step[3], double *features)
{
    const int side = window->side;
    uint64_t *counts = ref_allocate((int64_t)window->levels * side, sizeof(*counts));
    bool lines = false;

    for (int z = 0; z < side; z++)
        for (int y = 0; y < side; y++)
            for (int x = 0; x < side; x++) {
                const int level = level_at(window, x, y, z);
                int length = 1;

                for (int k = 1; k < side && level > 0; k++) /* another voxel of the line */
                    lines |= level_at(window, x + k * step[0], y + k * step[1], z + k * step[2]) > 0;
                if (level == 0 || level_at(window, x - step[0], y - step[1], z - step[2]) == level)
                    continue;
                while (level_at(window, x + length * step[0], y + length * step[1], z + length * step[2]) == level)
                    length++;
                counts[(level - 1) * side + length - 1]++;
            }
    if (lines)
        ref_matrix(VOXELWISE_FAMILY_glrlm, &family_glrlm, counts, window->levels, side, features);
    free(counts);
    return lines;
}

/* Removes the zone of a voxel. Returns its size. */
static int
remove_zone(struct ref_window *window, int x, int y, int z, int level)
{
    int size = 1;

    if (level_at(window, x, y, z) != level)
        return 0;
    window->level[(z * window->side + y) * window->side + x] = 0;
    for (int i = 0; i < 27; i++)
        size += remove_zone(window, x + i % 3 - 1, y + i / 3 % 3 - 1, z + i / 9 - 1, level);
    return size;
}

static void
ref_glszm(struct ref_window *window, double *to)
{
    const int side = window->side, all = side * side * side;
    uint64_t *counts = ref_allocate((int64_t)window->levels * all, sizeof(*counts));

    for (int i = 0; i < all; i++) {
        const int level = window->level[i];

        if (level > 0)
            counts[(level - 1) * all + remove_zone(window, i % side, i / side % side, i / side / side, level) - 1]++;
    }
    ref_matrix(VOXELWISE_FAMILY_glszm, &family_glszm, counts, window->levels, all, to);
    free(counts);
}

static void
ref_ngldm(const struct ref_window *window, double *to)
{
    const int side = window->side;
    uint64_t *counts = ref_allocate((int64_t)window->levels * 27, sizeof(*counts));

    for (int i = 0; i < side * side * side; i++) {
        int alike = 0; /* and the voxel itself */

        for (int k = 0; k < 27 && window->level[i] > 0; k++)
            alike += level_at(window, i % side + k % 3 - 1, i / side % side + k / 3 % 3 - 1,
                              i / side / side + k / 9 - 1) == window->level[i];
        if (alike > 0)
            counts[(window->level[i] - 1) * 27 + alike - 1]++;
    }
    ref_matrix(VOXELWISE_FAMILY_ngldm, &family_ngldm, counts, window->levels, 27, to);
    free(counts);
}

static void
ref_ngtdm(const struct ref_window *window, double *to)
{
    const int side = window->side, n = window->levels;
    double *p = ref_allocate(n, sizeof(*p)), *s = ref_allocate(n, sizeof(*s));
    double voxels = 0, weighted = 0, sum = 0, contrast = 0, busyness = 0, complexity = 0, strength = 0, levels = 0;

    for (int i = 0; i < side * side * side; i++) {
        double around = 0, neighbours = 0;

        for (int k = 0; k < 27; k++) {
            const int level =
                level_at(window, i % side + k % 3 - 1, i / side % side + k / 3 % 3 - 1, i / side / side + k / 9 - 1);

            around += k != 13 ? level : 0;
            neighbours += k != 13 && level > 0;
        }
        if (window->level[i] == 0)
            continue;
        voxels++;
        p[window->level[i] - 1]++;
        s[window->level[i] - 1] += neighbours > 0 ? fabs(window->level[i] - around / neighbours) : 0;
    }
    for (int i = 0; i < n; i++) {
        levels += p[i] > 0;
        p[i] = p[i] > 0 ? p[i] / voxels : 0;
        weighted += p[i] * s[i];
        sum += s[i];
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            if (p[i] == 0 || p[j] == 0)
                continue;
            contrast += p[i] * p[j] * (i - j) * (i - j);
            busyness += fabs((i + 1) * p[i] - (j + 1) * p[j]);
            complexity += abs(i - j) * (p[i] * s[i] + p[j] * s[j]) / (p[i] + p[j]);
            strength += (p[i] + p[j]) * (i - j) * (i - j);
        }
    to[VOXELWISE_OF_ngtdm_COARSENESS] = weighted > 0 ? fmin(1e6, 1 / weighted) : 1e6;
    to[VOXELWISE_OF_ngtdm_CONTRAST] = levels > 1 ? contrast / (levels * (levels - 1)) * sum / voxels : 0;
    to[VOXELWISE_OF_ngtdm_BUSYNESS] = busyness > 0 ? weighted / busyness : 0;
    to[VOXELWISE_OF_ngtdm_COMPLEXITY] = voxels > 0 ? complexity / voxels : 0;
    to[VOXELWISE_OF_ngtdm_STRENGTH] = sum > 0 ? strength / sum : 0;
    free(p);
    free(s);
}

void
ref_voxelwise(const struct voxelwise_request *request, int64_t voxel, double values[VOXELWISE_FEATURES])
{
    struct ref_window window;

    cut_out(request, voxel, &window);
    ref_first_order(request, &window, values);
    ref_directions(&window, values, VOXELWISE_FAMILY_glcm, ref_glcm);
    ref_directions(&window, values, VOXELWISE_FAMILY_glrlm, ref_glrlm);
    ref_ngldm(&window, values);
    ref_ngtdm(&window, values);
    ref_glszm(&window, values); /* last: removes the zones */
    free(window.level);
    free(window.value);
}
