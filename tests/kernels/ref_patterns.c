/*
 * ref_patterns.c - see ref_patterns.h.
 *
 * The second half is Masur 2022's algorithms 1 and 2 line by line, with threads turned into loops. Details that they
 * omit: the product of threshold and maximum is a real number, so it is compared exactly. `mapping` and the averages
 * are C's int, so a division by two truncates towards 0. `value`, which is never set, is mapping[i], as in the text's
 * example.
 */
#include "tests/kernels/ref_patterns.h"

#include <stdbool.h>

/* ------------------------------------------------------------------------- the text ---- */

static int32_t
at(const struct ref_slice *slice, int64_t x, int64_t y)
{
    return slice->values[y * slice->columns + x];
}

/* Finds the eight neighbours counter-clockwise from the right: the order of the weights 1 to 128. */
static void
neighbours_of(const struct ref_slice *slice, int64_t x, int64_t y, int32_t neighbours[8])
{
    neighbours[0] = at(slice, x + 1, y);
    neighbours[1] = at(slice, x + 1, y - 1);
    neighbours[2] = at(slice, x, y - 1);
    neighbours[3] = at(slice, x - 1, y - 1);
    neighbours[4] = at(slice, x - 1, y);
    neighbours[5] = at(slice, x - 1, y + 1);
    neighbours[6] = at(slice, x, y + 1);
    neighbours[7] = at(slice, x + 1, y + 1);
}

/* Returns the binary pattern for a centre of numerator / denominator. */
static unsigned
pattern_on(const int32_t neighbours[8], int64_t numerator, int64_t denominator)
{
    unsigned code = 0;

    for (int i = 0; i < 8; i++)
        if (neighbours[i] * denominator >= numerator)
            code |= 1U << i;
    return code;
}

static unsigned
lbp(int32_t centre, const int32_t neighbours[8])
{
    return pattern_on(neighbours, centre, 1);
}

static unsigned
tlbap(int32_t centre, const int32_t neighbours[8], int32_t threshold_millionths)
{
    int32_t highest = neighbours[0];

    for (int i = 1; i < 8; i++)
        if (neighbours[i] > highest)
            highest = neighbours[i];
    return lbp(centre, neighbours) & pattern_on(neighbours, (int64_t)threshold_millionths * highest, 1000000);
}

static unsigned
lanadp(const int32_t neighbours[8])
{
    unsigned code = 0;

    for (int i = 0; i < 8; i++) {
        double value = neighbours[i];
        double next = (neighbours[(i + 1) % 8] + (double)neighbours[(i + 2) % 8]) / 2;
        double last = (neighbours[(i + 7) % 8] + (double)neighbours[(i + 6) % 8]) / 2;

        if ((next >= value && last >= value) || (next <= value && last <= value))
            code |= 1U << i;
    }
    return code;
}

void
ref_lbp_text(const struct ref_slice *slice, uint8_t *codes)
{
    int32_t neighbours[8];

    for (int64_t y = 1; y < slice->rows - 1; y++)
        for (int64_t x = 1; x < slice->columns - 1; x++) {
            neighbours_of(slice, x, y, neighbours);
            *codes++ = (uint8_t)lbp(at(slice, x, y), neighbours);
        }
}

void
ref_tlbap_text(const struct ref_slice *slice, int32_t threshold_millionths, uint8_t *codes)
{
    int32_t neighbours[8];

    for (int64_t y = 1; y < slice->rows - 1; y++)
        for (int64_t x = 1; x < slice->columns - 1; x++) {
            neighbours_of(slice, x, y, neighbours);
            *codes++ = (uint8_t)tlbap(at(slice, x, y), neighbours, threshold_millionths);
        }
}

void
ref_lanadp_text(const struct ref_slice *slice, uint8_t *codes)
{
    int32_t neighbours[8];

    for (int64_t y = 1; y < slice->rows - 1; y++)
        for (int64_t x = 1; x < slice->columns - 1; x++) {
            neighbours_of(slice, x, y, neighbours);
            *codes++ = (uint8_t)lanadp(neighbours);
        }
}

/* --------------------------------------------------------------------- the listings ---- */

static const int power[3][3] = {{8, 4, 2}, {16, 0, 1}, {32, 64, 128}};
static const int flat_power[9] = {0, 1, 2, 4, 8, 16, 32, 64, 128};

static bool
above(int64_t pixel, int64_t th_millionths, int64_t max)
{
    return pixel * 1000000 > th_millionths * max;
}

static void
algorithm_1(const struct ref_slice *slice, int64_t row, int64_t col, int64_t th, uint8_t *out)
{
    const int32_t *img = slice->values;
    int64_t width = slice->columns;
    int32_t max = img[(row - 1) * width + col];
    int ans = 0, power_i = 0;

    for (int64_t i = row - 1; i <= row + 1; i++)
        for (int64_t j = col - 1; j <= col + 1; j++)
            if (img[i * width + j] > max)
                max = img[i * width + j];
    int32_t centre_px = img[row * width + col];
    for (int64_t i = row - 1; i <= row + 1; i++) {
        int power_j = 0;

        for (int64_t j = col - 1; j <= col + 1; j++) {
            if (img[i * width + j] > centre_px && above(img[i * width + j], th, max))
                ans = ans + power[power_i][power_j];
            power_j += 1;
        }
        power_i += 1;
    }
    out[(row - 1) * (width - 2) + (col - 1)] = (uint8_t)ans;
}

static int
circular_index(int i)
{
    if (i < 1)
        return 8 + i;
    if (i > 8)
        return i % 9 + 1;
    return i;
}

static int64_t
global_id(int64_t row, int64_t col, int64_t width)
{
    return row * width + col;
}

static void
algorithm_2(const struct ref_slice *slice, int64_t row, int64_t col, uint8_t *out)
{
    const int32_t *img = slice->values;
    int64_t width = slice->columns;
    int mapping[9] = {
        0,
        img[global_id(row, col + 1, width)],
        img[global_id(row - 1, col + 1, width)],
        img[global_id(row - 1, col, width)],
        img[global_id(row - 1, col - 1, width)],
        img[global_id(row, col - 1, width)],
        img[global_id(row + 1, col - 1, width)],
        img[global_id(row + 1, col, width)],
        img[global_id(row + 1, col + 1, width)],
    };
    int ans = 0;

    for (int i = 1; i <= 8; i++) {
        int value = mapping[i];
        int avg_1 = (mapping[circular_index(i + 1)] + mapping[circular_index(i + 2)]) / 2;
        int avg_2 = (mapping[circular_index(i - 1)] + mapping[circular_index(i - 2)]) / 2;

        if ((avg_1 >= value && avg_2 >= value) || (avg_1 <= value && avg_2 <= value))
            ans = ans + flat_power[i];
    }
    out[(row - 1) * (width - 2) + (col - 1)] = (uint8_t)ans;
}

static bool
is_inside(const struct ref_slice *slice, int64_t row, int64_t col)
{
    return row != 0 && col != 0 && col != slice->columns - 1 && row != slice->rows - 1;
}

void
ref_tlbap_listing(const struct ref_slice *slice, int32_t threshold_millionths, uint8_t *codes)
{
    for (int64_t row = 0; row < slice->rows; row++)
        for (int64_t col = 0; col < slice->columns; col++)
            if (is_inside(slice, row, col))
                algorithm_1(slice, row, col, threshold_millionths, codes);
}

void
ref_lanadp_listing(const struct ref_slice *slice, uint8_t *codes)
{
    for (int64_t row = 0; row < slice->rows; row++)
        for (int64_t col = 0; col < slice->columns; col++)
            if (is_inside(slice, row, col))
                algorithm_2(slice, row, col, codes);
}
