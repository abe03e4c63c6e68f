/* The preview's parts: resampled slices, palettes, and pictures that read back as drawn whatever
 * the threads. */
#include "service/pipeline/results/preview.h"

#include "service/pipeline/results/indexed_png.h"
#include "service/pipeline/results/resample.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------ resampling - */

#define COLUMNS 37
#define ROWS    53

static int16_t slice[ROWS * COLUMNS];

/* 3 x - 2 y + 100, which every mean of bilinear samples keeps at the middle of its pixel. */
static void
make_ramp(void)
{
    for (int y = 0; y < ROWS; y++) {
        for (int x = 0; x < COLUMNS; x++)
            slice[y * COLUMNS + x] = (int16_t)(3 * x - 2 * y + 100);
    }
}

static void
resample(int width, int height, float *values)
{
    struct resampler resampler;
    ck_assert_int_eq(resampler_make(COLUMNS, ROWS, width, height, &resampler), 0);
    float *scratch = malloc(resampler_scratch(&resampler) * sizeof *scratch);
    ck_assert_ptr_nonnull(scratch);
    resample_slice(&resampler, slice, IMAGE_INT16, scratch, values);
    free(scratch);
    resampler_free(&resampler);
}

static void
check_ramp(int width, int height)
{
    float *values = malloc((size_t)width * (size_t)height * sizeof *values);
    ck_assert_ptr_nonnull(values);
    resample(width, height, values);
    double across = (double)COLUMNS / width, down = (double)ROWS / height;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            double left = x * across - 0.5, top = y * down - 0.5;
            bool inside =
                left >= 0 && top >= 0 && left + across <= COLUMNS - 1 && top + down <= ROWS - 1;
            double wanted = 3 * (left + across / 2) - 2 * (top + down / 2) + 100;
            if (inside)
                ck_assert_double_eq_tol((double)values[y * width + x], wanted, 1e-3);
        }
    }
    free(values);
}

START_TEST(a_ramp_stays_a_ramp_whatever_the_size)
{
    make_ramp();
    check_ramp(COLUMNS, ROWS);
    check_ramp(19, 17);
    check_ramp(100, 211);
    check_ramp(4, 5);
}

END_TEST

START_TEST(what_lies_beyond_the_border_is_the_border)
{
    float values[2 * COLUMNS * 2 * ROWS];
    make_ramp();
    resample(2 * COLUMNS, 2 * ROWS, values);
    ck_assert_float_eq(values[0], slice[0]);
    ck_assert_float_eq(values[2 * COLUMNS * 2 * ROWS - 1], slice[ROWS * COLUMNS - 1]);
}

END_TEST

/* -------------------------------------------------------------------------------- pictures - */

#define WIDTH  301
#define HEIGHT 77

static uint8_t pixels[HEIGHT * WIDTH];

static void
make_picture(struct indexed_png *picture)
{
    *picture = (struct indexed_png){.width = WIDTH, .height = HEIGHT, .pixels = pixels};
    for (int i = 0; i < 200; i++)
        indexed_png_color(picture, 0,
                          (struct rgb){(uint8_t)i, (uint8_t)(255 - i), (uint8_t)(i * 7)});
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        pixels[i] = (uint8_t)((i * i / 50 + i) % picture->colors);
}

static void
read_back(int fd, uint8_t *rgb)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    off_t size = lseek(fd, 0, SEEK_END);
    void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    ck_assert_int_ne(png_image_begin_read_from_memory(&image, bytes, (size_t)size), 0);
    ck_assert_uint_eq(image.width, WIDTH);
    ck_assert_uint_eq(image.height, HEIGHT);
    image.format = PNG_FORMAT_RGB;
    ck_assert_int_ne(png_image_finish_read(&image, NULL, rgb, 0, NULL), 0);
    munmap(bytes, (size_t)size);
}

START_TEST(a_picture_reads_back)
{
    static uint8_t rgb[3 * HEIGHT * WIDTH];
    struct indexed_png picture;
    make_picture(&picture);
    int fd = memfd_create("picture", MFD_CLOEXEC);
    ck_assert_int_eq(indexed_png_write(&picture, fd), 0);
    read_back(fd, rgb);
    close(fd);
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        struct rgb wanted = picture.palette[pixels[i]];
        ck_assert_uint_eq(rgb[3 * i], wanted.r);
        ck_assert_uint_eq(rgb[3 * i + 1], wanted.g);
        ck_assert_uint_eq(rgb[3 * i + 2], wanted.b);
    }
}

END_TEST

START_TEST(a_disk_that_is_full_is_told)
{
    struct indexed_png picture;
    make_picture(&picture);
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(indexed_png_write(&picture, fd), -ENOSPC);
    close(fd);
}

END_TEST

START_TEST(a_colour_is_found_made_or_the_nearest)
{
    struct indexed_png picture = {.colors = 0};
    for (int i = 0; i < INDEXED_PNG_COLORS; i++) {
        ck_assert_int_eq(indexed_png_color(&picture, 0, (struct rgb){(uint8_t)i, 0, 0}), i);
        ck_assert_int_eq(indexed_png_color(&picture, 0, (struct rgb){(uint8_t)(i / 2), 0, 0}),
                         i / 2);
    }
    ck_assert_uint_eq(indexed_png_color(&picture, 0, (struct rgb){77, 0, 0}), 77);
    ck_assert_uint_eq(indexed_png_color(&picture, 0, (struct rgb){77, 3, 1}), 77);
    ck_assert_uint_eq(indexed_png_color(&picture, 100, (struct rgb){77, 0, 0}), 100);
    ck_assert_int_eq(picture.colors, INDEXED_PNG_COLORS);
}

END_TEST

/* ----------------------------------------------------------------------------------- sheets - */

#define PLANES 20

struct scene {
    int16_t voxels[PLANES * ROWS * COLUMNS];
    uint64_t bits[PLANES * ROWS];
    struct geometry_plane planes[PLANES];
    struct dicom_frame frame;
    struct dicom_instance instance;
    struct dicom_instance *instances[1];
    struct geometry_stack stack;
    struct image_mask mask;
    struct preview_segment segment;
};

static void
make_scene(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    for (int i = 0; i < PLANES * ROWS * COLUMNS; i++)
        scene->voxels[i] = (int16_t)(i * 7919 % 1000);
    for (int row = 0; row < PLANES * ROWS; row++)
        scene->bits[row] = row % ROWS > 10 && row % ROWS < 40 ? UINT64_C(0x3fffff00) : 0;
    scene->instance.frames = &scene->frame;
    scene->instances[0] = &scene->instance;
    scene->stack = (struct geometry_stack){.columns = COLUMNS,
                                           .rows = ROWS,
                                           .plane_count = PLANES,
                                           .planes = scene->planes,
                                           .pixel = IMAGE_INT16};
    scene->mask = (struct image_mask){.bits = scene->bits, .words_per_row = 1};
    scene->segment = (struct preview_segment){.mask = &scene->mask, .color = {1, 0, 0}};
}

static size_t
draw(struct scene *scene, int threads, void **bytes)
{
    const struct preview_request request = {.instances = scene->instances,
                                            .stack = &scene->stack,
                                            .voxels = scene->voxels,
                                            .segments = &scene->segment,
                                            .segment_count = 1,
                                            .threads = threads};
    int fd = memfd_create("preview", MFD_CLOEXEC);
    ck_assert_int_eq(preview_write(&request, fd), 0);
    size_t size = (size_t)lseek(fd, 0, SEEK_END);
    *bytes = malloc(size);
    ck_assert_ptr_nonnull(*bytes);
    ck_assert_int_eq(pread(fd, *bytes, size, 0), (ssize_t)size);
    close(fd);
    return size;
}

START_TEST(threads_draw_what_one_draws)
{
    static struct scene scene;
    void *one, *several;
    make_scene(&scene);
    size_t size = draw(&scene, 1, &one);
    ck_assert_uint_eq(draw(&scene, 5, &several), size);
    ck_assert_mem_eq(one, several, size);
    free(one);
    free(several);
}

END_TEST

/* The outline runs within the segment, one pixel wide: of 22 x 29 voxels, drawn at 288 / 53 of
 * their size. */
START_TEST(the_outline_is_the_border_of_the_segment)
{
    static struct scene scene;
    void *bytes;
    png_image image = {.version = PNG_IMAGE_VERSION};
    make_scene(&scene);
    size_t size = draw(&scene, 2, &bytes);
    ck_assert_int_ne(png_image_begin_read_from_memory(&image, bytes, size), 0);
    image.format = PNG_FORMAT_RGB;
    uint8_t *rgb = malloc(PNG_IMAGE_SIZE(image));
    ck_assert_ptr_nonnull(rgb);
    ck_assert_int_ne(png_image_finish_read(&image, NULL, rgb, 0, NULL), 0);
    int red = 0, left = INT32_MAX, right = 0;
    for (int y = 0; y < 288; y++) {
        for (int x = 0; x < 201; x++) {
            const uint8_t *at = rgb + 3 * ((size_t)(y + 4) * image.width + (size_t)(x + 4));
            if (at[0] == 255 && at[1] == 0 && at[2] == 0) {
                red++;
                left = x < left ? x : left;
                right = x > right ? x : right;
            }
        }
    }
    int width = right - left + 1, height = red / 2 - width + 2;
    ck_assert_double_eq_tol(left, 8 * 288.0 / 53, 1);
    ck_assert_double_eq_tol(width, 22 * 288.0 / 53, 1);
    ck_assert_double_eq_tol(height, 29 * 288.0 / 53, 1);
    free(rgb);
    free(bytes);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_preview");
    TCase *tests = tcase_create("preview");
    tcase_add_test(tests, a_ramp_stays_a_ramp_whatever_the_size);
    tcase_add_test(tests, what_lies_beyond_the_border_is_the_border);
    tcase_add_test(tests, a_picture_reads_back);
    tcase_add_test(tests, a_disk_that_is_full_is_told);
    tcase_add_test(tests, a_colour_is_found_made_or_the_nearest);
    tcase_add_test(tests, threads_draw_what_one_draws);
    tcase_add_test(tests, the_outline_is_the_border_of_the_segment);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
