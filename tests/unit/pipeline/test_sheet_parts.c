/* The parts of sheets: directions as letters, texts in the font, extents of segments. */
#include "service/common/picture/orientation.h"
#include "service/pipeline/results/drawing.h"
#include "service/pipeline/results/lettering.h"
#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------ directions - */

static const struct {
    double direction[3];
    const char *letters;
} directions[] = {
    {{1, 0, 0}, "L"},           {{-1, 0, 0}, "R"},      {{0, 1, 0}, "P"},
    {{0, -1, 0}, "A"},          {{0, 0, 1}, "H"},       {{0, 0, -1}, "F"},
    {{0.0, 0.6, 0.8}, "HP"},    {{0.8, -0.6, 0}, "LA"}, {{-0.48, -0.36, 0.8}, "HRA"}, /* sorted by size */
    {{0.9998, 0.02, 0}, "L"},                                                         /* a degree is ignored */
    {{0.995, 0.0998, 0}, "LP"},
};

START_TEST(directions_have_letters)
{
    char letters[ORIENTATION_SIZE];
    orientation_letters(directions[_i].direction, letters);
    ck_assert_str_eq(letters, directions[_i].letters);
}

END_TEST

START_TEST(positions_are_printed_from_the_origin)
{
    static const double head[3] = {0, 0, 1}, foot[3] = {0, 0, -1}, tilted[3] = {0, 0.31, 0.95};
    char text[ORIENTATION_PLACE_SIZE];
    orientation_place(head, 12.34, text);
    ck_assert_str_eq(text, "H12.3 mm");
    orientation_place(head, -12.34, text);
    ck_assert_str_eq(text, "F12.3 mm");
    orientation_place(foot, -999999.96, text);
    ck_assert_str_eq(text, "H1000000.0 mm");
    orientation_place(head, 0, text);
    ck_assert_str_eq(text, "H0.0 mm");
    orientation_place(tilted, 34.06, text);
    ck_assert_str_eq(text, "34.1 mm to HP");
    orientation_place(tilted, -999999.96, text);
    ck_assert_str_eq(text, "1000000.0 mm to FA");
}

END_TEST

START_TEST(each_axis_has_one_patient_axis)
{
    static const double turned[9] = {0, 0.1, -0.9, -1, 0, 0, 0, 0.9, 0.1};
    static const double between[9] = {0.7, 0.7, 0.14, 0.69, -0.7, -0.15, 0, 0.2, -0.97};
    int patient[3];
    orientation_of_axes(turned, patient);
    ck_assert(patient[0] == 2 && patient[1] == 0 && patient[2] == 1);
    orientation_of_axes(between, patient);
    ck_assert(patient[0] == 0 && patient[1] == 1 && patient[2] == 2);
}

END_TEST

/* ----------------------------------------------------------------------------------- texts - */

#define WIDTH  400
#define HEIGHT 60

static uint8_t pixels[HEIGHT * WIDTH];
static struct lettering *lettering;

static void
letter(const char *text, struct box box, int border)
{
    struct indexed_png picture = {.width = WIDTH, .height = HEIGHT, .pixels = pixels};
    const struct ink ink = {.ink = indexed_png_grey(255), .edge = 0, .border = border};
    memset(pixels, indexed_png_grey(100), sizeof pixels);
    lettering_draw(lettering, &picture, &box, text, ink);
}

/* The em of DejaVu Sans is 2048 units. Its "H" is 1493 high, has stems of 202, and advances by 1540. */
START_TEST(letters_have_the_shape_of_the_font)
{
    lettering = lettering_new(33);
    const int size = 33, grey = indexed_png_grey(100), white = indexed_png_grey(255);
    int top = HEIGHT, bottom = 0, white_in_row = 0;
    letter("HH", (struct box){5, 5, WIDTH - 10, HEIGHT - 10}, 0);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        if (pixels[i] == grey)
            continue;
        top = i / WIDTH < top ? i / WIDTH : top;
        bottom = i / WIDTH > bottom ? i / WIDTH : bottom;
    }
    ck_assert_double_eq_tol(bottom - top + 1, 1493.0 / 2048 * size, 1);
    for (int x = 0; x < WIDTH; x++) /* above the bars: four stems */
        white_in_row += pixels[(top + 4) * WIDTH + x] - grey;
    ck_assert_double_eq_tol((double)white_in_row / (white - grey), 4 * 202.0 / 2048 * size * 0.9, 0.2);
    ck_assert_double_eq_tol(lettering_width(lettering, "HH"), 2 * 1540.0 / 2048 * size * 0.9, 1);
    lettering_free(lettering);
}

END_TEST

START_TEST(drawing_is_clipped_to_the_box)
{
    lettering = lettering_new(33);
    const struct box box = {10, 5, 57, 19};
    letter("MWMWMWMW@@@", box, 2);
    int inside = 0;
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        const int x = i % WIDTH - box.left, y = i / WIDTH - box.top;
        const bool within = x >= 0 && x < box.width && y >= 0 && y < box.height;
        ck_assert(within || pixels[i] == indexed_png_grey(100));
        inside += pixels[i] != indexed_png_grey(100);
    }
    ck_assert_int_gt(inside, 200);
    lettering_free(lettering);
}

END_TEST

/* The border is black around white letters, and colours under letters give way to them. */
START_TEST(letters_have_a_border_of_their_own)
{
    lettering = lettering_new(33);
    letter("I", (struct box){5, 5, 50, 50}, 2);
    int black = 0, white = 0;
    for (int x = 0; x < 30; x++) {
        black += pixels[30 * WIDTH + x] == 0;
        white += pixels[30 * WIDTH + x] == indexed_png_grey(255);
    }
    ck_assert_int_ge(white, 2);
    ck_assert_int_ge(black, 2);
    struct indexed_png picture = {.width = WIDTH, .height = HEIGHT, .pixels = pixels};
    memset(pixels, INDEXED_PNG_GREYS + 3, sizeof pixels);
    lettering_draw(lettering, &picture, &(struct box){0, 0, WIDTH, HEIGHT}, "Outline", (struct ink){.ink = 7});
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        ck_assert(pixels[i] == INDEXED_PNG_GREYS + 3 || pixels[i] == 7);
    lettering_free(lettering);
}

END_TEST

START_TEST(invalid_bytes_become_replacement_characters)
{
    static uint8_t plain[HEIGHT * WIDTH];

    static const struct {
        const char *text, *as;
    } texts[] = {
        {"a\tb", "a\xef\xbf\xbd"
                 "b"},
        {"\xff\x80x", "\xef\xbf\xbd\xef\xbf\xbdx"},
        {"\xc3", "\xef\xbf\xbd"},
    };
    const struct box all = {0, 0, WIDTH, HEIGHT};
    lettering = lettering_new(33);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        letter(texts[i].as, all, 0);
        memcpy(plain, pixels, sizeof plain);
        letter(texts[i].text, all, 0);
        ck_assert_mem_eq(pixels, plain, sizeof plain);
    }
    letter("\xc3\x84", all, 0); /* not the letter without its accent */
    memcpy(plain, pixels, sizeof plain);
    letter("A", all, 0);
    ck_assert_mem_ne(pixels, plain, sizeof plain);
    lettering_free(lettering);
}

END_TEST

START_TEST(long_texts_end_in_an_ellipsis)
{
    char text[64] = "Left lung", cut[64] = "Lungs of the left and of the right side",
         umlauts[64] = "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4";
    lettering = lettering_new(33);
    lettering_cut(lettering, text, lettering_width(lettering, text));
    ck_assert_str_eq(text, "Left lung");
    lettering_cut(lettering, cut, 200);
    ck_assert_int_le(lettering_width(lettering, cut), 200);
    ck_assert_int_gt(lettering_width(lettering, cut), 150);
    ck_assert(strncmp(cut, "Lungs of the left", strlen(cut) - 3) == 0);
    ck_assert_str_eq(cut + strlen(cut) - 3, "\xe2\x80\xa6");
    lettering_cut(lettering, umlauts, lettering_width(lettering, umlauts) - 1);
    ck_assert_str_eq(umlauts, "\xc3\xa4\xc3\xa4\xe2\x80\xa6");
    lettering_free(lettering);
}

END_TEST

/* ---------------------------------------------------------------------------------- extent - */

#define COLUMNS 131 /* two words and three bits */
#define ROWS    70
#define SLICES  37
#define WORDS   3

static uint64_t bits[2][SLICES * ROWS * WORDS];

static void
set_voxel(int mask, int x, int y, int z)
{
    bits[mask][(z * ROWS + y) * WORDS + x / 64] |= UINT64_C(1) << (x % 64);
}

static struct segments_extent
find(size_t masks, int threads)
{
    static const struct image_mask each[2] = {{.bits = bits[0], .words_per_row = WORDS},
                                              {.bits = bits[1], .words_per_row = WORDS}};
    const struct image_mask *const both[2] = {&each[0], &each[1]};
    struct segments_extent extent;
    ck_assert_int_eq(segments_extent_find(both, masks, (struct image_extent){COLUMNS, ROWS, SLICES}, threads, &extent),
                     0);
    return extent;
}

START_TEST(an_empty_segment_extends_over_all_slices)
{
    memset(bits, 0, sizeof bits);
    struct segments_extent extent = find(2, 1);
    ck_assert(extent.first == 0 && extent.last == SLICES - 1);
    ck_assert(extent.fullest[0] == 65 && extent.fullest[1] == 34 && extent.fullest[2] == 18);
    extent = find(0, 3);
    ck_assert(extent.first == 0 && extent.last == SLICES - 1);
}

END_TEST

/* Compares with sums voxel by voxel. */
START_TEST(the_fullest_planes_are_found)
{
    static int64_t counts[3][COLUMNS];
    const int sizes[3] = {COLUMNS, ROWS, SLICES};
    uint32_t random = 1;
    memset(bits, 0, sizeof bits);
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < COLUMNS * ROWS * SLICES; i++) {
        const int x = i % COLUMNS, y = i / COLUMNS % ROWS, z = i / COLUMNS / ROWS;
        bool any = false;
        for (int mask = 0; mask < 2; mask++) {
            random = random * 1664525 + 1013904223;
            if (z > 3 && z < 30 && random >> 30 == 0) {
                set_voxel(mask, x, y, z);
                any = true;
            }
        }
        counts[0][x] += any;
        counts[1][y] += any;
        counts[2][z] += any;
    }
    struct segments_extent extent = find(2, 3);
    ck_assert(extent.first == 4 && extent.last == 29);
    for (int axis = 0; axis < 3; axis++)
        for (int i = 0; i < sizes[axis]; i++)
            ck_assert_int_le(counts[axis][i], counts[axis][extent.fullest[axis]]);
}

END_TEST

START_TEST(the_middle_of_equally_full_planes_is_chosen)
{
    memset(bits, 0, sizeof bits);
    set_voxel(0, 0, 3, 2);
    set_voxel(1, 130, 60, 30);
    set_voxel(1, 100, 20, 12);
    struct segments_extent extent = find(2, 2);
    ck_assert(extent.first == 2 && extent.last == 30);
    ck_assert(extent.fullest[0] == 100 && extent.fullest[1] == 20 && extent.fullest[2] == 12);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_sheet_parts");
    TCase *tests = tcase_create("parts");
    tcase_add_loop_test(tests, directions_have_letters, 0, sizeof directions / sizeof directions[0]);
    tcase_add_test(tests, positions_are_printed_from_the_origin);
    tcase_add_test(tests, each_axis_has_one_patient_axis);
    tcase_add_test(tests, letters_have_the_shape_of_the_font);
    tcase_add_test(tests, drawing_is_clipped_to_the_box);
    tcase_add_test(tests, letters_have_a_border_of_their_own);
    tcase_add_test(tests, invalid_bytes_become_replacement_characters);
    tcase_add_test(tests, long_texts_end_in_an_ellipsis);
    tcase_add_test(tests, an_empty_segment_extends_over_all_slices);
    tcase_add_test(tests, the_fullest_planes_are_found);
    tcase_add_test(tests, the_middle_of_equally_full_planes_is_chosen);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
