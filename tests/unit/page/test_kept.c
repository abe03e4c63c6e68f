/* test_kept.c - files of the slice viewer that stay open: each plane is that of its file, also of threads, and nothing stays. */
#include "service/common/clock.h"
#include "service/web/viewer/web_kept.h"
#include "tests/unit/suite.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIDE = 40, PLANES = 100, FILES = 2, THREADS = 4 };

static struct web_kept kept = {.lock = PTHREAD_MUTEX_INITIALIZER};
static int files[FILES];

/* The value of a voxel; files differ. */
static uint16_t
value_of(int file, int32_t x, int32_t y, int32_t z)
{
    return (uint16_t)(1000 * file + x + 3 * y + 7 * z);
}

static void
write_files(void)
{
    struct image_rescale rescale = {1, 0};
    const struct slices_volume volume = {.size = {SIDE, SIDE, PLANES},
                                         .pixel = IMAGE_UINT16,
                                         .spacing = {1, 1, 1},
                                         .window = {0, 1},
                                         .rescale_count = 1,
                                         .rescales = &rescale};
    static uint16_t voxels[PLANES][SIDE][SIDE];
    const struct slices_request request = {&volume, voxels, NULL, 1};
    for (int file = 0; file < FILES; file++) {
        for (int32_t z = 0; z < PLANES; z++)
            for (int32_t y = 0; y < SIDE; y++)
                for (int32_t x = 0; x < SIDE; x++)
                    voxels[z][y][x] = value_of(file, x, y, z);
        files[file] = memfd_create("slices", MFD_CLOEXEC);
        ck_assert_int_ge(files[file], 0);
        ck_assert_int_eq(slices_write(&request, files[file]), 0);
    }
}

static void
close_files(void)
{
    web_kept_close_old(&kept, 0);
    for (int file = 0; file < FILES; file++)
        close(files[file]);
}

static int
count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static struct web_kept_file *
must_open(int file, enum slices_view view, int32_t at)
{
    struct web_kept_file *found;
    struct error error = {0};
    ck_assert_msg(web_kept_open(&kept, dup(files[file]), view, at, &found, &error) == 0, "%s", error.message);
    return found;
}

/* Reads a plane and compares it. Returns whether it is that of the file. The volume has no geometry: its axes are the views'. */
static bool
is_plane(struct web_kept_file *open, int file, enum slices_view view, int32_t at)
{
    const struct slices_layout layout = slices_layout_of(slices_volume_of(open->slices), view);
    struct slices_plane plane;
    struct error error = {0};
    int32_t voxel[3];
    bool equal = slices_read_plane(open->slices, &layout, at, &plane, &error) == 0;
    voxel[layout.through] = at;
    for (int32_t y = 0; equal && y < plane.rows; y++) {
        voxel[layout.down] = layout.from_below ? plane.rows - 1 - y : y;
        for (int32_t x = 0; x < plane.columns; x++) {
            voxel[layout.across] = x;
            equal &= plane.values[y * plane.columns + x] == value_of(file, voxel[0], voxel[1], voxel[2]);
        }
    }
    slices_plane_free(&plane);
    return equal;
}

START_TEST(a_browser_that_scrolls_uses_one_file)
{
    struct web_kept_file *first = must_open(0, SLICES_AXIAL, 0);
    ck_assert(is_plane(first, 0, SLICES_AXIAL, 0));
    web_kept_return(&kept, first, false);
    for (int32_t at = 1; at < PLANES; at++) {
        struct web_kept_file *next = must_open(0, SLICES_AXIAL, at);
        ck_assert_ptr_eq(next, first);
        ck_assert(is_plane(next, 0, SLICES_AXIAL, at));
        web_kept_return(&kept, next, false);
    }
    /* Another view, another file, and a plane while the first is in use, have others. */
    struct web_kept_file *others[] = {must_open(0, SLICES_AXIAL, 99), must_open(0, SLICES_CORONAL, 9),
                                      must_open(1, SLICES_AXIAL, 99), must_open(0, SLICES_AXIAL, 99)};
    ck_assert_ptr_eq(others[0], first);
    for (int i = 0; i < 4; i++) {
        ck_assert(is_plane(others[i], i == 2, i == 1 ? SLICES_CORONAL : SLICES_AXIAL, i == 1 ? 9 : 99));
        for (int k = 0; k < i; k++)
            ck_assert_ptr_ne(others[i], others[k]);
    }
    for (int i = 0; i < 4; i++)
        web_kept_return(&kept, others[i], false);
}

END_TEST

/* A file that was written again is another one, also if its number is the same. */
START_TEST(a_changed_file_is_not_used)
{
    struct web_kept_file *open = must_open(0, SLICES_AXIAL, 5);
    ck_assert(is_plane(open, 0, SLICES_AXIAL, 5));
    web_kept_return(&kept, open, false);
    const off_t size = lseek(files[1], 0, SEEK_END);
    uint8_t *bytes = malloc((size_t)size);
    ck_assert_int_eq(pread(files[1], bytes, (size_t)size, 0), size);
    ck_assert_int_eq(ftruncate(files[0], size + 1), 0); /* never of the same size within one tick of its time */
    struct web_kept_file *none;
    struct error error = {0};
    ck_assert_int_eq(web_kept_open(&kept, dup(files[0]), SLICES_AXIAL, 5, &none, &error), -EBADMSG);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(ftruncate(files[0], size), 0);
    ck_assert_int_eq(pwrite(files[0], bytes, (size_t)size, 0), size);
    open = must_open(0, SLICES_AXIAL, 5);
    ck_assert(is_plane(open, 1, SLICES_AXIAL, 5));
    web_kept_return(&kept, open, false);
    free(bytes);
}

END_TEST

START_TEST(nothing_stays_open)
{
    struct web_kept_file *open[WEB_KEPT_FILES], *none;
    struct error error = {0};
    const int before = count_descriptors();
    for (int i = 0; i < WEB_KEPT_FILES; i++)
        open[i] = must_open(i % FILES, SLICES_AXIAL, 50);
    ck_assert_int_eq(web_kept_open(&kept, dup(files[0]), SLICES_AXIAL, 50, &none, &error), -EAGAIN);
    web_kept_close_old(&kept, 0); /* none that is in use */
    ck_assert_int_eq(count_descriptors(), before + WEB_KEPT_FILES);
    for (int i = 0; i < WEB_KEPT_FILES; i++)
        web_kept_return(&kept, open[i], i == 3); /* one was damaged */
    ck_assert_int_eq(count_descriptors(), before + WEB_KEPT_FILES - 1);
    const int64_t now = clock_steady_ms();
    web_kept_close_old(&kept, now);
    ck_assert_int_eq(count_descriptors(), before + WEB_KEPT_FILES - 1);
    web_kept_close_old(&kept, now + WEB_KEPT_MS + 1000);
    ck_assert_int_eq(count_descriptors(), before);
}

END_TEST

static void *
scroll(void *argument)
{
    uint32_t state = *(uint32_t *)argument;
    for (int i = 0; i < 300; i++) {
        state = state * 1664525 + 1013904223;
        const int file = state >> 9 & 1;
        const enum slices_view view = (state >> 10) % SLICES_VIEWS;
        const int32_t at = (int32_t)((state >> 12) % (view == SLICES_AXIAL ? PLANES : SIDE));
        struct web_kept_file *open;
        struct error error = {0};
        if (web_kept_open(&kept, dup(files[file]), view, at, &open, &error) != 0)
            return "not opened";
        const bool equal = is_plane(open, file, view, at);
        web_kept_return(&kept, open, i % 50 == 49);
        if (!equal)
            return "another plane";
    }
    return NULL;
}

START_TEST(threads_have_their_planes)
{
    pthread_t threads[THREADS];
    uint32_t seeds[THREADS] = {1, 2, 3, 4};
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, scroll, &seeds[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_msg(!wrong, "%s", (const char *)wrong);
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("page_kept");
    TCase *tests = tcase_create("kept");
    tcase_add_checked_fixture(tests, write_files, close_files);
    tcase_add_test(tests, a_browser_that_scrolls_uses_one_file);
    tcase_add_test(tests, a_changed_file_is_not_used);
    tcase_add_test(tests, nothing_stays_open);
    tcase_add_test(tests, threads_have_their_planes);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
