/*
 * The preview: resampled slices, palettes, and pictures that read back as drawn with any number of threads. Sheets
 * must show the same anatomy in the same place for any acquisition.
 */
#include "service/pipeline/results/preview.h"

#include "service/common/picture/indexed_png.h"
#include "service/pipeline/results/preview_resample.h"
#include "service/pipeline/results/sheet.h"
#include "tests/share.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
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

/* Makes 3 x - 2 y + 100: every mean of bilinear samples is the value at the middle of its pixel. */
static void
make_ramp(void)
{
    for (int y = 0; y < ROWS; y++) {
        for (int x = 0; x < COLUMNS; x++)
            slice[y * COLUMNS + x] = (int16_t)(3 * x - 2 * y + 100);
    }
}

static void
read_row(const void *context, int row, float *values)
{
    (void)context;
    for (int x = 0; x < COLUMNS; x++)
        values[x] = slice[row * COLUMNS + x];
}

static void
resample(int width, int height, float *values)
{
    const struct resample_source source = {read_row, NULL};
    struct resampler resampler;
    ck_assert_int_eq(resampler_make(COLUMNS, ROWS, width, height, &resampler), 0);
    float *scratch = malloc(resampler_scratch(&resampler) * sizeof *scratch);
    ck_assert_ptr_nonnull(scratch);
    resample_rows(&resampler, &source, scratch, values);
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
            bool inside = left >= 0 && top >= 0 && left + across <= COLUMNS - 1 && top + down <= ROWS - 1;
            double wanted = 3 * (left + across / 2) - 2 * (top + down / 2) + 100;
            if (inside)
                ck_assert_double_eq_tol((double)values[y * width + x], wanted, 1e-3);
        }
    }
    free(values);
}

START_TEST(a_ramp_stays_a_ramp_at_any_size)
{
    make_ramp();
    check_ramp(COLUMNS, ROWS);
    check_ramp(19, 17);
    check_ramp(100, 211);
    check_ramp(4, 5);
}

END_TEST

START_TEST(samples_beyond_the_border_equal_the_border)
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
    indexed_png_start(picture);
    for (int i = 0; i < 30; i++)
        indexed_png_color(picture, (struct rgb){(uint8_t)i, (uint8_t)(255 - i), (uint8_t)(i * 7)});
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
    ck_assert_int_eq(indexed_png_write(&picture, 2, fd), 0);
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

START_TEST(a_full_disk_is_reported)
{
    struct indexed_png picture;
    make_picture(&picture);
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(indexed_png_write(&picture, 2, fd), -ENOSPC);
    close(fd);
}

END_TEST

START_TEST(a_colour_is_found_added_or_approximated)
{
    enum { OWN = INDEXED_PNG_COLORS - INDEXED_PNG_GREYS };

    struct indexed_png picture;
    indexed_png_start(&picture);
    for (int i = 0; i < OWN; i++) {
        ck_assert_int_eq(indexed_png_color(&picture, (struct rgb){(uint8_t)i, 0, 0}), INDEXED_PNG_GREYS + i);
        ck_assert_int_eq(indexed_png_color(&picture, (struct rgb){(uint8_t)(i / 2), 0, 0}), INDEXED_PNG_GREYS + i / 2);
    }
    ck_assert_uint_eq(indexed_png_color(&picture, (struct rgb){21, 0, 0}), INDEXED_PNG_GREYS + 21);
    ck_assert_uint_eq(indexed_png_color(&picture, (struct rgb){21, 3, 1}), INDEXED_PNG_GREYS + 21);
    ck_assert_uint_eq(indexed_png_color(&picture, (struct rgb){200, 0, 0}), INDEXED_PNG_COLORS - 1);
    ck_assert_int_eq(picture.colors, INDEXED_PNG_COLORS);
    for (int level = 0; level < 256; level++)
        ck_assert_int_le(abs(picture.palette[indexed_png_grey(level)].g - level), 2);
}

END_TEST

/* ----------------------------------------------------------------------------------- sheets - */

#define SIDE   40 /* voxels of 1 mm */
#define VOXELS (SIDE * SIDE * SIDE)

/* The layout of a sheet, in pixels: three columns in a width of 1170, in letters of 33 per em. */
enum {
    WIDE = 1170,
    GAP = 11,
    LINE = 43,                     /* 31 above the base line, 8 below it, and 4 */
    TILE = (WIDE - 4 * GAP) / 3,   /* 375 */
    ROW = LINE + TILE + GAP,       /* a caption and a tile */
    PLANES_TOP = GAP + LINE + 5,   /* below a legend of one line */
    SLICES_TOP = PLANES_TOP + ROW, /* below the planes */
    END = 2 * LINE + GAP,          /* the grey window, and "Not for diagnosis." */
};

struct scene {
    int16_t voxels[VOXELS];
    uint64_t bits[SIDE * SIDE];
    struct geometry_plane planes[SIDE];
    struct dicom_frame frame;
    struct dicom_instance instance;
    struct dicom_instance *instances[1];
    struct geometry_stack stack;
    struct image_mask mask;
    struct drawing_segment segments[12];
    size_t segment_count;
    const char *warnings[2];
    size_t warning_count;
    const char *note;
};

struct drawn {
    void *bytes;
    size_t size;
    uint8_t *rgb;
    int width, height;
};

/* Makes noise, with a box of 22 x 29 x 20 voxels in it as the only segment. */
static void
make_scene(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    for (int i = 0; i < VOXELS; i++)
        scene->voxels[i] = (int16_t)(i * 7919 % 1000);
    for (int row = 0; row < SIDE * SIDE; row++)
        if (row % SIDE > 5 && row % SIDE < 35 && row / SIDE >= 10 && row / SIDE < 30)
            scene->bits[row] = UINT64_C(0x3fffff00);
    for (int z = 0; z < SIDE; z++)
        scene->planes[z].position = z;
    scene->instance.frames = &scene->frame;
    scene->frame.slope = 1;
    scene->instances[0] = &scene->instance;
    scene->stack = (struct geometry_stack){.columns = SIDE,
                                           .rows = SIDE,
                                           .plane_count = SIDE,
                                           .planes = scene->planes,
                                           .pixel = IMAGE_INT16,
                                           .has_geometry = true,
                                           .spacing = {1, 1, 1},
                                           .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    scene->mask = (struct image_mask){.bits = scene->bits, .words_per_row = 1};
    scene->segment_count = 1;
    scene->note = "";
    for (int i = 0; i < 12; i++)
        scene->segments[i] = (struct drawing_segment){
            .mask = &scene->mask, .color = {1, 0, 0}, .label = "Box", .amount = 12.76, .unit = "ml"};
}

static struct drawing_request
request_of(struct scene *scene, int threads)
{
    return (struct drawing_request){.instances = scene->instances,
                                    .stack = &scene->stack,
                                    .voxels = scene->voxels,
                                    .segments = scene->segments,
                                    .segment_count = scene->segment_count,
                                    .warnings = scene->warnings,
                                    .warning_count = scene->warning_count,
                                    .note = scene->note,
                                    .threads = threads};
}

static struct drawn
draw(struct scene *scene, int threads)
{
    const struct drawing_request request = request_of(scene, threads);
    struct drawn drawn;
    png_image image = {.version = PNG_IMAGE_VERSION};
    int fd = memfd_create("preview", MFD_CLOEXEC);
    ck_assert_int_eq(preview_write(&request, fd, NULL), 0);
    drawn.size = (size_t)lseek(fd, 0, SEEK_END);
    drawn.bytes = malloc(drawn.size);
    ck_assert_ptr_nonnull(drawn.bytes);
    ck_assert_int_eq(pread(fd, drawn.bytes, drawn.size, 0), (ssize_t)drawn.size);
    close(fd);
    ck_assert_int_ne(png_image_begin_read_from_memory(&image, drawn.bytes, drawn.size), 0);
    image.format = PNG_FORMAT_RGB;
    drawn.rgb = malloc(PNG_IMAGE_SIZE(image));
    ck_assert_ptr_nonnull(drawn.rgb);
    ck_assert_int_ne(png_image_finish_read(&image, NULL, drawn.rgb, 0, NULL), 0);
    drawn.width = (int)image.width;
    drawn.height = (int)image.height;
    return drawn;
}

static void
drawn_free(struct drawn *drawn)
{
    free(drawn->bytes);
    free(drawn->rgb);
}

static int
pixel_at(const struct drawn *drawn, int x, int y)
{
    const uint8_t *rgb = drawn->rgb + 3 * ((size_t)y * (size_t)drawn->width + (size_t)x);
    return rgb[0] << 16 | rgb[1] << 8 | rgb[2];
}

enum { RED = 0xff0000, LIGHT = 0xededed, WARNING = 0xffc400 };

/* A drawn text, trimmed to its letters. */
struct wanted {
    uint8_t pixels[64 * 1200];
    int left, top, width, height;
    int light_x, light_y; /* a light pixel */
};

enum { WANTED_GROUND = 100, WANTED_WIDTH = 1200 };

/* Draws a text over grey. Where it is light or black, the sheet must be so. */
static void
make_wanted(const char *text, struct wanted *wanted)
{
    struct lettering *lettering = lettering_new(33);
    struct indexed_png picture = {.width = WANTED_WIDTH, .height = 64, .pixels = wanted->pixels};
    const int border = strlen(text) <= 2 ? LINE / 16 : 0; /* letters of directions */
    ck_assert_ptr_nonnull(lettering);
    memset(wanted->pixels, indexed_png_grey(WANTED_GROUND), sizeof wanted->pixels);
    lettering_draw(lettering, &picture, &(struct box){0, 0, WANTED_WIDTH, 64}, text,
                   (struct ink){indexed_png_grey(237), 0, border});
    lettering_free(lettering);
    int right = 0, bottom = 0;
    wanted->left = wanted->top = INT32_MAX;
    for (int i = 0; i < WANTED_WIDTH * 64; i++) {
        const int x = i % WANTED_WIDTH, y = i / WANTED_WIDTH;
        if (wanted->pixels[i] == indexed_png_grey(WANTED_GROUND))
            continue;
        wanted->left = x < wanted->left ? x : wanted->left;
        wanted->top = y < wanted->top ? y : wanted->top;
        right = x > right ? x : right;
        bottom = y > bottom ? y : bottom;
    }
    for (int i = 0; i < WANTED_WIDTH * 64; i++)
        if (wanted->pixels[i] == indexed_png_grey(237)) {
            wanted->light_x = i % WANTED_WIDTH - wanted->left;
            wanted->light_y = i / WANTED_WIDTH - wanted->top;
        }
    wanted->width = right - wanted->left + 1;
    wanted->height = bottom - wanted->top + 1;
}

/* Returns whether a text is at a place of the sheet. */
static bool
text_is_at(const struct drawn *drawn, const struct wanted *wanted, int left, int top)
{
    for (int y = 0; y < wanted->height; y++)
        for (int x = 0; x < wanted->width; x++) {
            const int there = pixel_at(drawn, left + x, top + y);
            const int ink = wanted->pixels[(wanted->top + y) * WANTED_WIDTH + wanted->left + x];
            /* The edge of a letter over another ground may be a level away. */
            if ((ink == indexed_png_grey(237) && (there & 0xff) < (LIGHT & 0xff) - 4) ||
                (ink == 0 && there > 0x040404) || (ink == indexed_png_grey(WANTED_GROUND) && there == LIGHT))
                return false;
        }
    return true;
}

static bool
has_text(const struct drawn *drawn, const char *text, struct box box)
{
    static struct wanted wanted;
    make_wanted(text, &wanted);
    for (int y = box.top; y + wanted.height <= box.top + box.height; y++)
        for (int x = box.left; x + wanted.width <= box.left + box.width; x++)
            if ((pixel_at(drawn, x + wanted.light_x, y + wanted.light_y) & 0xff) >= (LIGHT & 0xff) - 4 &&
                text_is_at(drawn, &wanted, x, y))
                return true;
    return false;
}

static bool
says(const struct drawn *drawn, const char *text)
{
    return has_text(drawn, text, (struct box){0, 0, drawn->width, drawn->height});
}

START_TEST(any_number_of_threads_draws_the_same_image)
{
    static struct scene scene;
    make_scene(&scene);
    struct drawn one = draw(&scene, 1), several = draw(&scene, 5);
    ck_assert_uint_eq(one.size, several.size);
    ck_assert_mem_eq(one.bytes, several.bytes, one.size);
    drawn_free(&one);
    drawn_free(&several);
}

END_TEST

/* The outline must run inside the segment, two pixels wide: of 22 x 29 voxels of TILE / SIDE pixels. */
START_TEST(the_outline_is_the_border_of_the_segment)
{
    static struct scene scene;
    make_scene(&scene);
    struct drawn drawn = draw(&scene, 2);
    const int top = SLICES_TOP + 3 * ROW + LINE; /* of the last row of slices */
    int red = 0, left = INT32_MAX, right = 0;
    for (int y = 0; y < TILE; y++) {
        for (int x = 0; x < TILE; x++) {
            if (pixel_at(&drawn, x + GAP, y + top) == RED) {
                red++;
                left = x < left ? x : left;
                right = x > right ? x : right;
            }
        }
    }
    const int width = right - left + 1, height = red / 4 - width + 4;
    ck_assert_double_eq_tol(left, 8 * (double)TILE / SIDE, 1);
    ck_assert_double_eq_tol(width, 22 * (double)TILE / SIDE, 1);
    ck_assert_double_eq_tol(height, 29 * (double)TILE / SIDE, 2);
    drawn_free(&drawn);
}

END_TEST

START_TEST(legend_window_and_positions_are_printed)
{
    static struct scene scene;
    make_scene(&scene);
    scene.segments[0].label = "L\xc3\xa4sion [1/2] \xe2\x82\xac";
    scene.stack.origin[2] = scene.planes[0].position = -17.5;
    for (int z = 1; z < SIDE; z++)
        scene.planes[z].position = z - 17.5;
    struct drawn drawn = draw(&scene, 2);
    ck_assert(says(&drawn, "L\xc3\xa4sion [1/2] \xe2\x82\xac 12.8 ml"));
    ck_assert_int_eq(pixel_at(&drawn, GAP + 13, GAP + LINE / 2), RED);
    ck_assert(says(&drawn, "11/40, F7.5 mm"));
    ck_assert(says(&drawn, "30/40, H11.5 mm"));
    ck_assert(says(&drawn, "axial 20, H1.5 mm"));
    ck_assert(says(&drawn, "by the segments' values"));
    ck_assert(says(&drawn, "Not for diagnosis."));
    ck_assert(!says(&drawn, "10/40,"));
    drawn_free(&drawn);
}

END_TEST

/* Directions of acquisition. */
static const struct {
    double axes[9];
    const char *left, *above; /* letters of the first slice as acquired */
} acquisitions[] = {
    {{1, 0, 0, 0, 1, 0, 0, 0, 1}, "R", "A"},
    {{1, 0, 0, 0, 0, -1, 0, 1, 0}, "R", "H"},  /* coronal */
    {{0, 1, 0, 0, 0, -1, -1, 0, 0}, "A", "H"}, /* sagittal */
    {{-1, 0, 0, 0, 1, 0, 0, 0, -1}, "L", "A"}, /* feet first, as in some files */
    {{0, 0, -1, -1, 0, 0, 0, 1, 0}, "H", "L"}, /* rotated by 90 degrees */
    {{1, 0, 0, 0, 0.96, -0.28, 0, 0.28, 0.96}, "R", "AH"},
    {{0.96, 0.28, 0, -0.28, 0.96, 0, 0, 0, 1}, "RA", "AL"},
    {{0.28, 0.96, 0, 0, 0, -1, -0.96, 0.28, 0}, "AR", "H"},
};

/* Returns the coordinate of a voxel along an axis of the patient, in voxels from the middle. */
static double
from_middle(const double axes[9], const int voxel[3], int patient)
{
    double sum = 0;
    for (int axis = 0; axis < 3; axis++)
        sum += axes[3 * axis + patient] * (voxel[axis] - (SIDE - 1) / 2.0);
    return sum;
}

/* Makes a bright block in the patient's left, anterior, upper part, which is the segment. */
static void
make_block(struct scene *scene, const double axes[9])
{
    memcpy(scene->stack.axes, axes, sizeof scene->stack.axes);
    memset(scene->bits, 0, sizeof scene->bits);
    for (int i = 0; i < VOXELS; i++) {
        const int voxel[3] = {i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE};
        const double left = from_middle(axes, voxel, 0), behind = from_middle(axes, voxel, 1);
        const double up = from_middle(axes, voxel, 2);
        const bool in = left > 5 && left < 12 && behind < -5 && behind > -12 && up > 5 && up < 12;
        scene->voxels[i] = in ? 1000 : 0;
        if (in)
            scene->bits[i / SIDE] |= UINT64_C(1) << voxel[0];
    }
}

/* Finds the middle of the bright pixels in a plane, relative to its side. */
static void
find_light(const struct drawn *drawn, int plane, double *x, double *y)
{
    const int left = GAP + plane * (TILE + GAP), top = PLANES_TOP + LINE;
    double sum_x = 0, sum_y = 0, count = 0;
    for (int i = 0; i < TILE * TILE; i++) {
        if (pixel_at(drawn, left + i % TILE, top + i / TILE) != 0xffffff)
            continue;
        sum_x += i % TILE;
        sum_y += i / TILE;
        count++;
    }
    ck_assert_double_gt(count, 100);
    *x = sum_x / count / TILE;
    *y = sum_y / count / TILE;
}

START_TEST(planes_have_the_usual_orientation)
{
    static struct scene scene;
    double x, y;
    make_scene(&scene);
    make_block(&scene, acquisitions[_i].axes);
    struct drawn drawn = draw(&scene, 2);
    ck_assert(says(&drawn, "axial"));
    ck_assert(says(&drawn, "coronal"));
    ck_assert(says(&drawn, "sagittal"));
    find_light(&drawn, 0, &x, &y); /* axial: left on the right, anterior above */
    ck_assert(x > 0.55 && y < 0.45);
    find_light(&drawn, 1, &x, &y); /* coronal: left on the right, head above */
    ck_assert(x > 0.55 && y < 0.45);
    find_light(&drawn, 2, &x, &y); /* sagittal: anterior on the left, head above */
    ck_assert(x < 0.45 && y < 0.45);
    drawn_free(&drawn);
}

END_TEST

START_TEST(edges_have_the_letters_of_their_direction)
{
    static struct scene scene;
    make_scene(&scene);
    make_block(&scene, acquisitions[_i].axes);
    struct drawn drawn = draw(&scene, 2);
    const struct box first = {GAP, SLICES_TOP + LINE, TILE, TILE};
    ck_assert(has_text(&drawn, acquisitions[_i].left, (struct box){first.left, first.top, 80, first.height}));
    ck_assert(has_text(&drawn, acquisitions[_i].above, (struct box){first.left, first.top, first.width, LINE + 4}));
    drawn_free(&drawn);
}

END_TEST

/* The height in planes is a twelfth: proportions must hold, and there are no reformatted planes. */
START_TEST(a_thin_volume_has_only_slices)
{
    static struct scene scene;
    make_scene(&scene);
    scene.stack.plane_count = 3;
    memset(scene.bits, 0xff, sizeof scene.bits);
    struct drawn drawn = draw(&scene, 2);
    ck_assert(says(&drawn, "3/3, H2.0 mm"));
    ck_assert(!says(&drawn, "axial"));
    ck_assert_int_eq(drawn.width, WIDE);
    ck_assert_int_eq(drawn.height, PLANES_TOP + ROW + END);
    drawn_free(&drawn);
}

END_TEST

/* Positions that make only some captions too long: then none has the number of slices. */
START_TEST(captions_have_the_same_format)
{
    static struct scene scene;
    make_scene(&scene);
    scene.stack.plane_count = 3;
    memcpy(scene.stack.axes, (double[9]){0.8, 0.6, 0, 0, 0, -1, -0.6, 0.8, 0}, sizeof scene.stack.axes);
    memset(scene.bits, 0xff, sizeof scene.bits);
    for (int z = 0; z < 3; z++)
        scene.planes[z].position = z == 2 ? 12345678 : z;
    struct drawn drawn = draw(&scene, 2);
    ck_assert(says(&drawn, "1, 0.0 mm to PR"));
    ck_assert(says(&drawn, "3, 12345678.0 mm to PR"));
    ck_assert(!says(&drawn, "1/3, 0.0 mm to PR"));
    drawn_free(&drawn);
}

END_TEST

START_TEST(an_only_slice_is_large)
{
    static struct scene scene;
    make_scene(&scene);
    scene.stack.plane_count = 1;
    scene.stack.spacing[0] = 0.5;
    scene.segment_count = 0;
    struct drawn drawn = draw(&scene, 2);
    ck_assert(says(&drawn, "1/1, H0.0 mm"));
    ck_assert(says(&drawn, "by all values"));
    const int side = WIDE - 2 * GAP; /* half as wide as high: between black sides */
    ck_assert_int_eq(drawn.width, WIDE);
    ck_assert_int_eq(drawn.height, GAP + LINE + side + GAP + END);
    ck_assert_int_eq(pixel_at(&drawn, GAP + side / 4 - 2, GAP + LINE + 100), 0);
    ck_assert_int_ne(pixel_at(&drawn, GAP + side / 4 + 2, GAP + LINE + 100), 0);
    ck_assert_int_ne(pixel_at(&drawn, GAP + 3 * side / 4 - 2, GAP + LINE + 100), 0);
    ck_assert_int_eq(pixel_at(&drawn, GAP + 3 * side / 4 + 2, GAP + LINE + 100), 0);
    drawn_free(&drawn);
}

END_TEST

/* A 2-D image: true proportion, an area, no directions, and only the number of a frame. */
START_TEST(a_frame_of_a_2d_image_is_no_slice)
{
    static struct scene scene;
    make_scene(&scene);
    scene.stack.plane_count = 1;
    scene.stack.spacing[0] = 0.5;
    scene.stack.flat = true;
    scene.stack.has_geometry = false;
    scene.instance.frame_count = _i == 0 ? 1 : 12;
    scene.planes[0].frame = 6;
    scene.frame = (struct dicom_frame){.slope = 1};
    scene.segments[0].amount = 12.76;
    scene.segments[0].unit = "mm\xc2\xb2";
    scene.note = "Lengths: Pixel Spacing (0028,0030)";
    struct dicom_frame frames[7] = {[6] = scene.frame};
    scene.instance.frames = frames;
    struct drawn drawn = draw(&scene, 2);
    ck_assert(says(&drawn, "Box 12.8 mm\xc2\xb2"));
    ck_assert_int_eq(says(&drawn, "frame 7/12"), _i);
    ck_assert(says(&drawn, "Lengths: Pixel Spacing (0028,0030)"));
    ck_assert(!says(&drawn, "1/1"));
    ck_assert(!says(&drawn, "mm,"));
    const int side = WIDE - 2 * GAP; /* half as wide as high, between black sides without letters */
    ck_assert_int_eq(pixel_at(&drawn, GAP + side / 4 - 2, PLANES_TOP + LINE + 100), 0);
    ck_assert_int_ne(pixel_at(&drawn, GAP + side / 4 + 2, PLANES_TOP + LINE + 100), 0);
    for (int y = PLANES_TOP + LINE; y < PLANES_TOP + LINE + side; y++)
        ck_assert_int_eq(pixel_at(&drawn, GAP + side / 4 - 20, y), 0);
    drawn_free(&drawn);
}

END_TEST

/* Planes at 0, 1, 2, ... 19 and 39 mm: the last six of 21 even steps are nearest to the last one. */
START_TEST(uneven_planes_have_their_positions)
{
    static struct scene scene;
    make_scene(&scene);
    memset(scene.voxels, 0, sizeof scene.voxels);
    scene.stack.plane_count = 21;
    scene.planes[20].position = 39;
    scene.stack.spacing[2] = 39 / 20.0;
    for (int i = 20 * SIDE * SIDE; i < 21 * SIDE * SIDE; i++)
        scene.voxels[i] = 1000;
    struct drawn drawn = draw(&scene, 2);
    int dark = 0, light = 0;
    const int left = GAP + TILE + GAP + 50; /* coronal, between the letter and the segment */
    const int height = 383;                 /* 21 steps of 1.95 mm, where 40 mm are TILE pixels */
    for (int y = PLANES_TOP + LINE; y < PLANES_TOP + LINE + height; y++) {
        light += pixel_at(&drawn, left, y) > 0xf00000 / 2;
        dark += pixel_at(&drawn, left, y) < 0xf00000 / 2;
    }
    ck_assert_double_eq_tol((double)light / (light + dark), 6.0 / 21, 0.01);
    drawn_free(&drawn);
}

END_TEST

/* One voxel in 512 columns must be visible, although 375 pixels show fewer. */
START_TEST(small_segments_are_visible)
{
    static struct scene scene;
    static int16_t voxels[512];
    static uint64_t bits[8];
    make_scene(&scene);
    scene.stack.columns = 512;
    scene.stack.rows = scene.stack.plane_count = 1;
    for (int i = (int)test_share_first(); i < 512; i += (int)test_share()) {
        memset(bits, 0, sizeof bits);
        bits[i / 64] = UINT64_C(1) << (i % 64);
        const struct drawing_request request = {.instances = scene.instances,
                                                .stack = &scene.stack,
                                                .voxels = voxels,
                                                .segments = scene.segments,
                                                .segment_count = 1,
                                                .note = "",
                                                .threads = 1};
        scene.mask = (struct image_mask){.bits = bits, .words_per_row = 8};
        scene.stack.spacing[1] = 100;
        int fd = memfd_create("preview", MFD_CLOEXEC);
        ck_assert_int_eq(preview_write(&request, fd, NULL), 0);
        png_image image = {.version = PNG_IMAGE_VERSION};
        off_t size = lseek(fd, 0, SEEK_END);
        void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
        ck_assert_int_ne(png_image_begin_read_from_memory(&image, bytes, (size_t)size), 0);
        image.format = PNG_FORMAT_RGB;
        uint8_t *rgb = malloc(PNG_IMAGE_SIZE(image));
        ck_assert_int_ne(png_image_finish_read(&image, NULL, rgb, 0, NULL), 0);
        const uint8_t *row = rgb + 3 * (size_t)image.width * (PLANES_TOP + LINE + 40);
        int red = 0;
        for (uint32_t x = 0; x < image.width; x++)
            red += row[3 * x] == 255 && row[3 * x + 1] == 0;
        ck_assert_int_ge(red, 1);
        free(rgb);
        munmap(bytes, (size_t)size);
        close(fd);
    }
}

END_TEST

START_TEST(warnings_are_on_top)
{
    static struct scene scene;
    make_scene(&scene);
    scene.warnings[0] = "REVIEW: held";
    scene.warnings[1] = "Box: volume 12.8 ml, expected 900 to 1900 ml";
    scene.warning_count = 2;
    struct drawn drawn = draw(&scene, 2);
    ck_assert(has_text(&drawn, scene.warnings[0], (struct box){GAP, GAP, WIDE - GAP, LINE}));
    ck_assert(has_text(&drawn, scene.warnings[1], (struct box){GAP, GAP + LINE, WIDE - GAP, LINE}));
    ck_assert_int_eq(pixel_at(&drawn, GAP + 1, GAP + 1), WARNING);
    ck_assert_int_eq(pixel_at(&drawn, GAP + 1, GAP + 2 * LINE - 1), WARNING);
    ck_assert_int_eq(pixel_at(&drawn, GAP + 13, GAP + 2 * LINE + GAP + LINE / 2), RED);
    drawn_free(&drawn);
}

END_TEST

START_TEST(long_warnings_are_broken_and_a_note_ends_the_sheet)
{
    static struct scene scene;
    make_scene(&scene);
    scene.stack.plane_count = 1;
    scene.segment_count = 0;
    scene.warnings[0] = "Box: reaches the edge of the volume (lowest slice and highest slice), expected to reach none";
    scene.warning_count = 1;
    scene.note = "straightened";
    struct drawn drawn = draw(&scene, 2);
    ck_assert_int_eq(drawn.height, GAP + 2 * LINE + GAP + LINE + WIDE - 2 * GAP + GAP + LINE + END);
    ck_assert(says(&drawn, "Box: reaches the edge of the volume (lowest slice and highest slice),"));
    ck_assert(says(&drawn, "expected to reach none"));
    ck_assert(has_text(&drawn, "straightened", (struct box){0, drawn.height - END, WIDE, LINE}));
    drawn_free(&drawn);
}

END_TEST

START_TEST(used_colours_are_replaced)
{
    static struct scene scene;
    make_scene(&scene);
    scene.segment_count = 12;
    struct drawn drawn = draw(&scene, 2);
    int colours[12], count = 0;
    for (int y = GAP; y < GAP + 4 * LINE; y += LINE)
        for (int x = GAP; x < drawn.width; x++) {
            const int there = pixel_at(&drawn, x, y + LINE / 2), red = there >> 16;
            bool known = red == (there & 255) && red == (there >> 8 & 255);
            for (int i = 0; i < count; i++)
                known = known || colours[i] == there;
            if (!known && count < 12)
                colours[count++] = there;
        }
    ck_assert_int_eq(count, 12);
    ck_assert_int_eq(colours[0], RED);
    drawn_free(&drawn);
}

END_TEST

/* ----------------------------------------------------------------------------------- layout - */

static bool
boxes_meet(const struct box *a, const struct box *b)
{
    return a->left < b->left + b->width && b->left < a->left + a->width && a->top < b->top + b->height &&
           b->top < a->top + a->height;
}

static void
check_inside(const struct box *box, int height)
{
    ck_assert(box->left >= 0 && box->left + box->width <= WIDE);
    ck_assert(box->top >= 0 && box->top + box->height <= height);
}

/* Checks that texts fit into their boxes, and that neither texts nor tiles meet, nor leave the sheet. */
static void
check_layout(const struct sheet *sheet)
{
    const int tiles = sheet->plane_count + sheet->slice_count, texts = (int)sheet->text_count + 1;
    struct box boxes[256];
    int count = 0;
    ck_assert_int_le(tiles + texts, 256);
    for (int i = 0; i < texts - 1; i++) {
        const struct sheet_text *text = &sheet->texts[i];
        const int width = lettering_width(sheet->lettering, text->text) + (text->swatch < 0 ? 0 : sheet->line);
        ck_assert_msg(width <= text->box.width, "%s: %d of %d pixels", text->text, width, text->box.width);
        ck_assert_int_ge(text->box.height, sheet->line);
        boxes[count++] = text->box;
    }
    boxes[count++] = sheet->window;
    for (int i = 0; i < tiles; i++) {
        const struct box *panel = &sheet->panels[i].box, *tile = &sheet->tiles[i];
        ck_assert(panel->left >= tile->left && panel->left + panel->width <= tile->left + tile->width);
        ck_assert(panel->top >= tile->top && panel->top + panel->height <= tile->top + tile->height);
        boxes[count++] = *tile;
    }
    for (int i = 0; i < count; i++) {
        check_inside(&boxes[i], sheet->height);
        for (int j = 0; j < i; j++)
            ck_assert_msg(!boxes_meet(&boxes[i], &boxes[j]), "%d and %d of %d", i, j, count);
    }
}

static unsigned
random_below(unsigned *state, unsigned end)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16) % end;
}

/* Changes the scene: its size and directions, long labels, many segments, long warnings, a note. */
static void
vary_scene(struct scene *scene, unsigned seed)
{
    static const char *const texts[] = {"Box", "Left lung without its vessels and bronchi, as far as they are seen",
                                        "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
                                        "\xe8\x82\xba \xe2\x80\x93 poumon \xc3\xa0 gauche"};
    unsigned state = seed;
    make_scene(scene);
    scene->stack.columns = 1 + (int)random_below(&state, SIDE);
    scene->stack.rows = 1 + (int)random_below(&state, SIDE);
    scene->stack.plane_count = 1 + (int)random_below(&state, SIDE);
    for (int axis = 0; axis < 3; axis++)
        scene->stack.spacing[axis] = 0.2 + random_below(&state, 40) / 10.0;
    for (int z = 0; z < SIDE; z++)
        scene->planes[z].position = z * scene->stack.spacing[2] - random_below(&state, 2) * 10000.0;
    scene->stack.has_geometry = random_below(&state, 8) > 0;
    memcpy(scene->stack.axes, acquisitions[random_below(&state, sizeof acquisitions / sizeof acquisitions[0])].axes,
           sizeof scene->stack.axes);
    scene->segment_count = random_below(&state, 13);
    for (size_t i = 0; i < scene->segment_count; i++) {
        scene->segments[i].label = texts[random_below(&state, 4)];
        scene->segments[i].amount = random_below(&state, 3) * 1234.5;
        scene->segments[i].unit = random_below(&state, 2) ? "ml" : DRAWING_PIXELS;
    }
    scene->warning_count = random_below(&state, 3);
    for (size_t i = 0; i < scene->warning_count; i++)
        scene->warnings[i] = texts[random_below(&state, 4)];
    scene->note = texts[random_below(&state, 2)];
}

START_TEST(texts_do_not_overlap)
{
    static struct scene scene;
    for (unsigned seed = 0; seed < 150; seed++) {
        vary_scene(&scene, seed);
        const struct drawing_request request = request_of(&scene, 1);
        struct drawing drawing;
        struct sheet sheet;
        ck_assert_int_eq(drawing_open(&request, &drawing), 0);
        ck_assert_int_eq(sheet_open(&drawing, &sheet), 0);
        check_layout(&sheet);
        sheet_close(&sheet);
        drawing_close(&drawing);
    }
}

END_TEST

/* 11 pixels per em on a telephone of 390 pixels. */
START_TEST(texts_are_readable_on_a_telephone)
{
    static struct scene scene;
    make_scene(&scene);
    struct drawn drawn = draw(&scene, 2);
    static struct wanted wanted; /* drawn at 33 pixels per em */
    make_wanted("Not for diagnosis.", &wanted);
    ck_assert(says(&drawn, "Not for diagnosis."));
    ck_assert_double_ge(33.0 * 390 / drawn.width, 11);
    drawn_free(&drawn);
}

END_TEST

int
main(void)
{
    const int ways = sizeof acquisitions / sizeof acquisitions[0];
    Suite *suite = suite_create("service_preview");
    TCase *tests = tcase_create("preview");
    tcase_add_test(tests, a_ramp_stays_a_ramp_at_any_size);
    tcase_add_test(tests, samples_beyond_the_border_equal_the_border);
    tcase_add_test(tests, a_picture_reads_back);
    tcase_add_test(tests, a_full_disk_is_reported);
    tcase_add_test(tests, a_colour_is_found_added_or_approximated);
    tcase_add_test(tests, any_number_of_threads_draws_the_same_image);
    tcase_add_test(tests, the_outline_is_the_border_of_the_segment);
    tcase_add_test(tests, legend_window_and_positions_are_printed);
    tcase_add_loop_test(tests, planes_have_the_usual_orientation, 0, ways);
    tcase_add_loop_test(tests, edges_have_the_letters_of_their_direction, 0, ways);
    tcase_add_test(tests, a_thin_volume_has_only_slices);
    tcase_add_test(tests, captions_have_the_same_format);
    tcase_add_test(tests, an_only_slice_is_large);
    tcase_add_loop_test(tests, a_frame_of_a_2d_image_is_no_slice, 0, 2);
    tcase_add_test(tests, uneven_planes_have_their_positions);
    tcase_add_test(tests, small_segments_are_visible);
    tcase_add_test(tests, warnings_are_on_top);
    tcase_add_test(tests, long_warnings_are_broken_and_a_note_ends_the_sheet);
    tcase_add_test(tests, texts_do_not_overlap);
    tcase_add_test(tests, texts_are_readable_on_a_telephone);
    tcase_add_test(tests, used_colours_are_replaced);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
