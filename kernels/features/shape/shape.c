/* shape.c - size and position of a region (from IBSI 3.1), from its bits. */
#include "kernels/features/shape/shape.h"

#include "kernels/texture/region.h"

static const struct feature_definition shape_definitions[SHAPE_FEATURES] = {
    {"voxel_count", "Number of voxels", "", .unit = "1", .of_voxels = true},
    {"volume", "Volume (voxel counting)", "YEKZ", .unit = "ml"},
    {"centroid_x", "Centroid x (LPS)", "", .unit = "mm"},
    {"centroid_y", "Centroid y (LPS)", "", .unit = "mm"},
    {"centroid_z", "Centroid z (LPS)", "", .unit = "mm"},
    {"box_columns", "Bounding box along columns", "", .unit = "mm"},
    {"box_rows", "Bounding box along rows", "", .unit = "mm"},
    {"box_slices", "Bounding box along slices", "", .unit = "mm"},
};

/* Sums over the voxels of a row. */
struct row_sums {
    int64_t count;
    int64_t columns, squares; /* sums of their columns, and of the squares of these */
};

enum { WORD = 64, WORD_PLACES = 2016, WORD_SQUARES = 85344 }; /* sums of 0 .. 63 and their squares */

/* Adds the voxels of a word, using the binary digits of their positions. */
static void
row_add_word(struct row_sums *sums, int64_t word, uint64_t bits)
{
    static const uint64_t place_has[6] = {
        0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC, 0xF0F0F0F0F0F0F0F0,
        0xFF00FF00FF00FF00, 0xFFFF0000FFFF0000, 0xFFFFFFFF00000000,
    };
    const int64_t from = WORD * word, count = __builtin_popcountll(bits);
    int64_t places = 0, squares = 0;

    for (int i = 0; i < 6 && count < WORD; i++) {
        places += (int64_t)__builtin_popcountll(bits & place_has[i]) << i;
        squares += (int64_t)__builtin_popcountll(bits & place_has[i]) << 2 * i;
        for (int j = 0; j < i; j++)
            squares += (int64_t)__builtin_popcountll(bits & place_has[i] & place_has[j]) << (i + j + 1);
    }
    if (count == WORD) {
        places = WORD_PLACES;
        squares = WORD_SQUARES;
    }
    sums->count += count;
    sums->columns += count * from + places;
    sums->squares += count * from * from + 2 * from * places + squares;
}

/* Returns whether the region has all voxels between the row's ends. */
static bool
row_is_whole(const uint64_t *row, const int64_t ends[2])
{
    const int64_t first = ends[0] / WORD, last = ends[1] / WORD;
    uint64_t missing = 0;

    for (int64_t word = first; word <= last && row; word++) {
        uint64_t between = ~UINT64_C(0);

        between &= word == first ? ~UINT64_C(0) << ends[0] % WORD : between;
        between &= word == last ? ~UINT64_C(0) >> (WORD - 1 - ends[1] % WORD) : between;
        missing |= between & ~row[word];
    }
    return missing == 0;
}

/* Returns the sum of squares of 0 .. last. */
static int64_t
squares_to(int64_t last)
{
    return last * (last + 1) * (2 * last + 1) / 6;
}

static struct row_sums
row_sums_of(const uint64_t *row, int64_t columns, const int64_t ends[2])
{
    struct row_sums sums = {0};

    if (row_is_whole(row, ends))
        return (struct row_sums){.count = ends[1] - ends[0] + 1,
                                 .columns = (ends[1] - ends[0] + 1) * (ends[0] + ends[1]) / 2,
                                 .squares = squares_to(ends[1]) - squares_to(ends[0] - 1)};
    for (int64_t word = ends[0] / WORD; word <= ends[1] / WORD; word++) {
        const int64_t left = columns - WORD * word;
        const uint64_t inside = left < WORD ? (UINT64_C(1) << left) - 1 : ~UINT64_C(0);

        row_add_word(&sums, word, row ? row[word] & inside : inside);
    }
    return sums;
}

static void
shape_place_read_row(const uint64_t *bits, int64_t columns, int64_t y, int64_t z, struct shape_place *place)
{
    int64_t ends[2];

    if (!texture_row_ends(bits, columns, ends))
        return;
    const struct row_sums row = row_sums_of(bits, columns, ends);
    const int64_t at[3] = {row.columns, row.count * y, row.count * z};
    const int64_t first[3] = {ends[0], y, z}, last[3] = {ends[1], y, z};

    place->voxels += row.count;
    for (int i = 0; i < 3; i++) {
        place->sum[i] += at[i];
        place->square[i] += i == 0 ? row.squares : (shape_product)at[i] * first[i];
        place->first[i] = first[i] < place->first[i] ? first[i] : place->first[i];
        place->last[i] = last[i] > place->last[i] ? last[i] : place->last[i];
    }
    place->product[0] += (shape_product)at[1] * z;
    place->product[1] += (shape_product)at[0] * z;
    place->product[2] += (shape_product)at[0] * y;
}

enum { SHAPE_PARTS = 32, SHAPE_WORDS = 64 << 10 /* a part has more */ };

/* The rows of a region, in parts that threads take in turn. */
struct shape_reading {
    const uint64_t *bits;
    const struct image_extent *extent;
    int64_t parts;
    struct shape_place places[SHAPE_PARTS];
};

static void
shape_place_begin(const struct image_extent *extent, struct shape_place *place)
{
    *place = (struct shape_place){.first = {extent->columns, extent->rows, extent->slices}, .last = {-1, -1, -1}};
}

static void
shape_read_part(void *context, int64_t part)
{
    struct shape_reading *reading = context;
    const struct image_extent *extent = reading->extent;
    const int64_t rows = extent->rows * extent->slices, words = (extent->columns + WORD - 1) / WORD;
    const int64_t end = rows * (part + 1) / reading->parts;

    shape_place_begin(extent, &reading->places[part]);
    for (int64_t row = rows * part / reading->parts, next; row < end; row = next) {
        const int64_t z = row / extent->rows, slice_end = (z + 1) * extent->rows;

        next = slice_end < end ? slice_end : end;
        if (reading->bits && !texture_slice_has_bits(reading->bits + row * words, (next - row) * words))
            continue;
        for (; row < next; row++)
            shape_place_read_row(reading->bits ? reading->bits + row * words : NULL, extent->columns,
                                 row - z * extent->rows, z, &reading->places[part]);
    }
}

void
shape_place_of(const struct kernels_lane *lane, const uint64_t *bits, const struct image_extent *extent,
               struct shape_place *place)
{
    const int64_t parts = (extent->columns + WORD - 1) / WORD * extent->rows * extent->slices / SHAPE_WORDS;
    struct shape_reading reading = {bits, extent, parts < 1 ? 1 : parts < SHAPE_PARTS ? parts : SHAPE_PARTS, {{0}}};

    kernels_lane_for(lane, reading.parts, shape_read_part, &reading);
    shape_place_begin(extent, place);
    for (int64_t part = 0; part < reading.parts; part++) {
        const struct shape_place *own = &reading.places[part];

        place->voxels += own->voxels;
        for (int i = 0; i < 3; i++) {
            place->sum[i] += own->sum[i];
            place->square[i] += own->square[i];
            place->product[i] += own->product[i];
            place->first[i] = own->first[i] < place->first[i] ? own->first[i] : place->first[i];
            place->last[i] = own->last[i] > place->last[i] ? own->last[i] : place->last[i];
        }
    }
}

static int
shape_values(const struct feature_region *region, size_t set, const uint64_t *counts, struct feature_value *values)
{
    const struct feature_volume *volume = region->volume;
    const double voxel = volume->spacing[0] * volume->spacing[1] * volume->spacing[2];
    const struct image_extent extent = feature_extent(volume);
    struct shape_place place;
    double centre[3];

    (void)set;
    (void)counts;
    shape_place_of(volume->lane, region->bits, &extent, &place);
    values[SHAPE_VOXEL_COUNT] = feature_present((double)place.voxels);
    values[SHAPE_VOLUME_ML] = feature_present((double)place.voxels * voxel / 1000);
    if (place.voxels == 0)
        return 0;
    for (int i = 0; i < 3; i++)
        centre[i] = (double)(place.sum[i] + place.voxels * volume->first[i]) / (double)place.voxels;
    for (int i = 0; i < 3; i++) {
        const double *to = volume->voxel_to_mm[i];

        values[SHAPE_CENTROID_X + i] =
            feature_present(to[0] * centre[0] + to[1] * centre[1] + to[2] * centre[2] + to[3]);
        values[SHAPE_BOX_X + i] = feature_present((double)(place.last[i] - place.first[i] + 1) * volume->spacing[i]);
    }
    return 0;
}

const struct feature_family family_shape = {
    .name = "shape",
    .definitions = shape_definitions,
    .definition_count = SHAPE_FEATURES,
    .space = FEATURE_OF_VOLUME,
    .choice = TEXTURE_FAMILY_shape,
    .by_first_order = true,
    .values = shape_values,
};

int
shape_kept_make(const struct feature_region *region, struct morphology_region *made, uint64_t **kept,
                struct error *error)
{
    const struct feature_volume *volume = region->volume;
    const size_t entries = volume->tables * volume->values;
    int rc = feature_counts_make(entries / 64, kept, error);

    for (size_t i = 0; i < entries && rc == 0; i++)
        (*kept)[i / 64] |= (uint64_t)(region->histograms[i] > 0) << i % 64;
    *made = (struct morphology_region){region->bits, *kept, volume->tables};
    return rc;
}
