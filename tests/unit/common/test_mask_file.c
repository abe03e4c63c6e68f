/* Masks of programs: written, read back, and damaged. */
#include "service/common/volume/mask_file.h"

#include "tests/unit/edge.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

enum { COLUMNS = 70, ROWS = 5, SLICES = 3, LAYERS = 2, VOXELS = COLUMNS * ROWS * SLICES, WORDS = 2 };

static const struct volume_grid grid = {.size = {COLUMNS, ROWS, SLICES},
                                        .to_mm = {0.7, 0, 0, -179.2, 0, 0.7, 0, -179.2, 0, 0, 1, -90}};
static uint16_t maps[LAYERS][VOXELS];
static struct error error;
static struct mask_label_list labels;
static struct mask_file *mask;
static int folder;
static int64_t size;
static char sha256[65];

static void
setup(void)
{
    scratch_make();
    folder = open(scratch, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(folder, 0);
    memset(maps, 0, sizeof maps);
    for (int i = 0; i < VOXELS; i++) {
        maps[0][i] = (uint16_t)(i % COLUMNS < 33 ? 0 : i / COLUMNS % 2 ? 5 : 65535);
        maps[1][i] = i % COLUMNS > 60 && i / COLUMNS < 4 ? 5 : 0;
    }
    maps[0][7] = 300;
    labels = (struct mask_label_list){0};
    mask = NULL;
    error = (struct error){0};
}

static void
teardown(void)
{
    free(labels.items);
    mask_file_free(mask);
    close(folder);
    scratch_remove();
}

static void
write_mask(const char *name, int layers)
{
    free(labels.items);
    const int rc = mask_file_write(folder, name, &grid, layers, maps[0], &size, sha256, &labels, &error);
    ck_assert_msg(rc == 0, "%s", error.message);
}

static int
read_mask(const char *name, const char *digest)
{
    mask_file_free(mask);
    error = (struct error){0};
    return mask_file_read(scratch_path(name), digest, &grid, &mask, &error);
}

static void
must_be_damaged(int rc)
{
    ck_assert_int_lt(rc, 0);
    ck_assert_int_eq(error.code, CODE_PROGRAM_MASK_DAMAGED);
    ck_assert_ptr_null(mask);
}

/* The bits of the mask are those of the maps. */
static void
check_bits(const int *values, size_t count, int layers)
{
    uint64_t bits[ROWS * SLICES * WORDS] = {0};
    mask_file_bits(mask, values, count, WORDS, bits);
    for (int i = 0; i < VOXELS; i++) {
        bool expected = false;
        for (int layer = 0; layer < layers; layer++) {
            for (size_t value = 0; value < count; value++)
                expected |= maps[layer][i] == values[value];
        }
        const uint64_t word = bits[i / COLUMNS * WORDS + i % COLUMNS / 64];
        ck_assert_int_eq(word >> i % COLUMNS % 64 & 1, expected);
    }
    for (int row = 0; row < ROWS * SLICES; row++)
        ck_assert_uint_eq(bits[row * WORDS + 1] >> (COLUMNS - 64), 0); /* padding */
}

START_TEST(a_mask_is_read_back)
{
    write_mask("mask", LAYERS);
    ck_assert_int_eq(read_mask("mask", sha256), 0);
    check_bits((const int[]){5}, 1, LAYERS);
    check_bits((const int[]){65535, 300}, 2, LAYERS);
    check_bits((const int[]){7, -1, 65536, 70000}, 4, LAYERS);
    check_bits(NULL, 0, LAYERS);
    ck_assert_int_eq(read_mask("mask", ""), 0);
    check_bits((const int[]){5, 65535}, 2, LAYERS);
}

END_TEST

START_TEST(labels_are_counted)
{
    write_mask("mask", LAYERS);
    ck_assert_uint_eq(labels.count, 3);
    ck_assert_uint_eq(labels.items[0].value, 5);
    ck_assert_int_eq(labels.items[0].voxels, 7 * 37 + 4 * 9); /* odd rows of 15, and the second layer */
    ck_assert_uint_eq(labels.items[1].value, 300);
    ck_assert_int_eq(labels.items[1].voxels, 1);
    ck_assert_uint_eq(labels.items[2].value, 65535);
    ck_assert_int_eq(labels.items[2].voxels, 8 * 37);
}

END_TEST

START_TEST(the_bytes_are_those_of_the_format)
{
    static const uint16_t small[6] = {0, 0, 9, 300, 300, 300};
    static const struct volume_grid two_rows = {.size = {3, 2, 1}, .to_mm = {1, 0, 0, -0.0, 0, 1, 0, 0, 0, 0, 2.5, 0}};
    static const char expected[] = "noctule-mask 1\nsize 3 2 1\nto_mm 1 0 0 0 0 1 0 0 0 0 2.5 0\nlayers 1\n"
                                   "label 9 1\nlabel 300 3\nend\n\x02\x00\x01\x09\x03\xac\x02";
    ck_assert_int_eq(mask_file_write(folder, "mask", &two_rows, 1, small, &size, sha256, &labels, &error), 0);
    char *text = scratch_text("mask");
    ck_assert_int_eq(size, sizeof expected - 1);
    ck_assert_mem_eq(text, expected, sizeof expected - 1);
    free(text);
    ck_assert_str_eq(sha256, "8d847c9bf2490960f14f2a84c97756bc0a32129b4b11cfa0486563a5d41ca63c");
}

END_TEST

START_TEST(an_empty_mask_has_no_labels)
{
    memset(maps, 0, sizeof maps);
    write_mask("mask", 1);
    ck_assert_uint_eq(labels.count, 0);
    ck_assert_int_eq(read_mask("mask", sha256), 0);
    check_bits((const int[]){1}, 1, 1);
}

END_TEST

START_TEST(a_file_is_not_overwritten)
{
    scratch_write("mask", "x", 1);
    ck_assert_int_eq(mask_file_write(folder, "mask", &grid, 1, maps[0], &size, sha256, &labels, &error), -EEXIST);
    ck_assert_ptr_null(labels.items);
    char *text = scratch_text("mask");
    ck_assert_str_eq(text, "x");
    free(text);
}

END_TEST

/* Changes each bit of each byte, with the digest and without. Without it a change must be found too, since the head has the
 * number of voxels per label: a mask that is accepted has the bytes that the writer would write. */
START_TEST(damage_of_each_byte_is_found)
{
    write_mask("mask", 1);
    char *bytes = scratch_text("mask");
    int accepted = 0;
    for (int64_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (char)(1 << bit);
            scratch_write("other", bytes, (size_t)size);
            must_be_damaged(read_mask("other", sha256));
            if (read_mask("other", "") == 0)
                accepted++;
            else
                must_be_damaged(-1);
            bytes[i] ^= (char)(1 << bit);
        }
    }
    free(bytes);
    ck_assert_int_eq(accepted, 0);
}

END_TEST

START_TEST(a_mask_that_is_cut_off_or_too_long_is_damaged)
{
    write_mask("mask", LAYERS);
    char *bytes = scratch_text("mask");
    for (int64_t i = 0; i < size; i++) {
        scratch_write("other", bytes, (size_t)i);
        must_be_damaged(read_mask("other", sha256));
        must_be_damaged(read_mask("other", ""));
    }
    scratch_write("other", bytes, (size_t)size + 1);
    must_be_damaged(read_mask("other", ""));
    free(bytes);
}

END_TEST

START_TEST(runs_have_one_form)
{
    static const struct volume_grid row = {.size = {4, 1, 1}, .to_mm = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};

    static const struct {
        const char *runs;
        size_t size;
        bool good;
    } cases[] = {
        {"\x04\x01", 2, true},
        {"\x02\x01\x02\x01", 4, false},             /* two runs of one value */
        {"\x84\x00\x01", 3, false},                 /* a number with a needless byte */
        {"\x04\x81\x00", 3, false},                 /* the same of a value */
        {"\x05\x01", 2, false},                     /* beyond the row */
        {"\x00\x02\x04\x01", 4, false},             /* an empty run */
        {"\x04\x81\x80\x04", 4, false},             /* value 65537 */
        {"\x04\xff\xff\xff\xff\xff\x01", 7, false}, /* beyond 35 bits */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char file[256];
        const int head = snprintf(file, sizeof file,
                                  "noctule-mask 1\nsize 4 1 1\nto_mm 1 0 0 0 0 1 0 0 0 0 1 0\nlayers 1\n"
                                  "label 1 4\nend\n");
        memcpy(file + head, cases[i].runs, cases[i].size);
        scratch_write("mask", file, (size_t)head + cases[i].size);
        const int rc = mask_file_read(scratch_path("mask"), "", &row, &mask, &error);
        ck_assert_msg((rc == 0) == cases[i].good, "case %zu", i);
        mask_file_free(mask);
        mask = NULL;
    }
}

END_TEST

START_TEST(huge_sizes_do_not_overflow)
{
    static const char *const heads[] = {"9223372036854775807 9223372036854775807 9223372036854775807",
                                        "1048576 1048576 1048576",
                                        "1 1048576 1048576",
                                        "0 5 3",
                                        "-70 5 3",
                                        "70 5",
                                        "x"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char file[256];
        const int length = snprintf(
            file, sizeof file, "noctule-mask 1\nsize %s\nto_mm 1 0 0 0 0 1 0 0 0 0 1 0\nlayers 64\nend\n", heads[i]);
        scratch_write("mask", file, (size_t)length);
        must_be_damaged(read_mask("mask", ""));
    }
}

END_TEST

START_TEST(a_mask_of_another_grid_is_refused)
{
    write_mask("mask", 1);
    struct volume_grid other = grid;
    other.to_mm[3] += 0.009;
    ck_assert_int_eq(mask_file_read(scratch_path("mask"), sha256, &other, &mask, &error), 0);
    mask_file_free(mask);
    other.to_mm[3] += 0.002;
    must_be_damaged(mask_file_read(scratch_path("mask"), sha256, &other, &mask, &error));
    ck_assert_str_eq(error.message, "the mask is of another grid: voxel (0, 0, 0) is 0.011 mm from its place");
    other = grid; /* the same voxels, from the other end of the first axis */
    other.to_mm[0] = -0.7;
    other.to_mm[3] = -179.2 + 0.7 * (COLUMNS - 1);
    must_be_damaged(mask_file_read(scratch_path("mask"), sha256, &other, &mask, &error));
}

END_TEST

START_TEST(only_regular_files_are_read)
{
    write_mask("mask", 1);
    ck_assert_int_eq(symlink(scratch_path("mask"), scratch_path("link")), 0);
    ck_assert_int_eq(mkfifo(scratch_path("pipe"), 0600), 0);
    scratch_folder("folder");
    must_be_damaged(read_mask("link", sha256));
    must_be_damaged(read_mask("pipe", sha256));
    must_be_damaged(read_mask("folder", sha256));
    must_be_damaged(read_mask("absent", sha256));
    must_be_damaged(read_mask("mask/below", sha256));
    scratch_write("empty", "", 0);
    must_be_damaged(read_mask("empty", ""));
}

END_TEST

START_TEST(layers_have_a_limit)
{
    const struct edge edge = EDGE(MASK_LAYERS);
    static const struct volume_grid voxel = {.size = {1, 1, 1}, .to_mm = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
    uint16_t many[LIMIT_MASK_LAYERS + 1] = {0};
    many[edge.most - 1] = 1;
    ck_assert_int_eq(mask_file_write(folder, "mask", &voxel, (int)edge.most, many, &size, sha256, &labels, &error), 0);
    ck_assert_int_eq(mask_file_read(scratch_path("mask"), sha256, &voxel, &mask, &error), 0);
    free(labels.items);
    ck_assert_int_lt(mask_file_write(folder, "more", &voxel, (int)edge.most + 1, many, &size, sha256, &labels, &error),
                     0);
    ck_assert_int_eq(error.code, edge.code);
    ck_assert(!scratch_has("more"));
}

END_TEST

/* Maps in which each voxel is a run: one slice of 4 MiB of the file, repeated in memory. */
static const uint16_t *
map_noise(int64_t slice, int64_t slices)
{
    const size_t bytes = (size_t)slice * sizeof(uint16_t);
    const int fd = memfd_create("noise", MFD_CLOEXEC);
    ck_assert(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    uint8_t *all = mmap(NULL, bytes * (size_t)slices, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(all, MAP_FAILED);
    for (int64_t i = 0; i < slices; i++)
        ck_assert_ptr_ne(mmap(all + bytes * (size_t)i, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
                         MAP_FAILED);
    close(fd);
    uint16_t *values = (uint16_t *)(void *)all;
    for (int64_t i = 0; i < slice; i++)
        values[i] = (uint16_t)(i % 2 ? 20000 : 20001); /* 4 bytes per run */
    return values;
}

START_TEST(the_size_of_a_mask_has_a_limit)
{
    const struct edge edge = EDGE(MASK_MIB);
    const int64_t slice = 1 << 20, slices = edge.most / 4;
    const struct volume_grid large = {.size = {1024, 1024, slices}, .to_mm = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
    ck_assert_int_lt(
        mask_file_write(folder, "mask", &large, 1, map_noise(slice, slices), &size, sha256, &labels, &error),
        0); /* the runs have 256 MiB, and the head is beyond */
    ck_assert_int_eq(error.code, edge.code);
    ck_assert(!scratch_has("mask"));
    scratch_write("mask", "", 0);
    ck_assert_int_eq(truncate(scratch_path("mask"), (off_t)edge.most << 20), 0);
    must_be_damaged(read_mask("mask", ""));
    ck_assert_str_eq(error.message, "the file is no mask"); /* the file was read */
    ck_assert_int_eq(truncate(scratch_path("mask"), ((off_t)edge.most << 20) + 1), 0);
    must_be_damaged(read_mask("mask", ""));
    ck_assert_ptr_nonnull(strstr(error.message, "too large"));
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("mask_file");
    TCase *tests = tcase_create("mask_file");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_mask_is_read_back);
    tcase_add_test(tests, labels_are_counted);
    tcase_add_test(tests, the_bytes_are_those_of_the_format);
    tcase_add_test(tests, an_empty_mask_has_no_labels);
    tcase_add_test(tests, a_file_is_not_overwritten);
    tcase_add_test(tests, damage_of_each_byte_is_found);
    tcase_add_test(tests, a_mask_that_is_cut_off_or_too_long_is_damaged);
    tcase_add_test(tests, runs_have_one_form);
    tcase_add_test(tests, huge_sizes_do_not_overflow);
    tcase_add_test(tests, a_mask_of_another_grid_is_refused);
    tcase_add_test(tests, only_regular_files_are_read);
    tcase_add_test(tests, layers_have_a_limit);
    tcase_add_test(tests, the_size_of_a_mask_has_a_limit);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
