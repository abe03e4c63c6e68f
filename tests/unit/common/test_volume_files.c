/* Volume files: what is written is read back, and files of a program with every kind of fault are refused. */
#include "service/common/volume/volume_grid.h"

#include "tests/unit/edge.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <zlib.h>

enum { X = 5, Y = 4, Z = 3, VOXELS = X * Y * Z, NIFTI_HEAD = 352 };

static const struct volume_grid grid = {.size = {X, Y, Z},
                                        .to_mm = {0.7, 0, 0, -100.5, 0, 0, 2.5, -7.25, 0, -0.8, 0, 33}};
static struct error error;
static struct volume_header header;
static int folder;
static double values[VOXELS];

static void
setup(void)
{
    scratch_make();
    folder = open(scratch, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(folder, 0);
    error = (struct error){0};
}

static void
teardown(void)
{
    close(folder);
    scratch_remove();
}

static int
take(void *context, int64_t first, double value, int64_t count, struct error *unused)
{
    int64_t *next = context;
    (void)unused;
    ck_assert_int_eq(first, *next);
    ck_assert_int_gt(count, 0);
    *next += count;
    for (int64_t i = first; i < *next && i < VOXELS; i++)
        values[i] = value;
    return 0;
}

/* Blocks have the values that runs have. */
static int
take_block(void *context, int64_t first, const double *block, int64_t count, struct error *unused)
{
    int64_t *next = context;
    (void)unused;
    ck_assert_int_eq(first, *next);
    ck_assert_int_gt(count, 0);
    for (int64_t i = 0; i < count && first + i < VOXELS; i++)
        ck_assert_msg(memcmp(&block[i], &values[first + i], sizeof *block) == 0, "value %lld", (long long)(first + i));
    *next += count;
    return 0;
}

/* Reads header and voxels, which come as runs and as blocks. Returns the code. */
static enum code
read_file(const char *name, enum volume_format format)
{
    int64_t next = 0, next_block = 0;
    error = (struct error){0};
    int rc = volume_read_header(folder, name, format, &header, &error);
    rc = rc ? rc : volume_read(folder, name, &header, take, &next, &error);
    ck_assert(rc <= 0 && (rc == 0) == (error.code == CODE_NONE));
    if (rc == 0) {
        ck_assert_int_eq(volume_read_blocks(folder, name, &header, take_block, &next_block, &error), 0);
        ck_assert_int_eq(next_block, next);
    }
    if (rc == 0)
        ck_assert_int_eq(next, header.grid.size[0] * header.grid.size[1] * header.grid.size[2]);
    return error.code;
}

static void
must_be(enum code expected, enum code code, const char *what)
{
    ck_assert_msg(code == expected, "%s: %s %s, not %s", what, code_name(code), error.message, code_name(expected));
}

/* Writes bytes as gzip. */
static void
write_gzip(const char *name, const void *bytes, size_t size)
{
    gzFile file = gzopen(scratch_path(name), "wb");
    ck_assert(file && gzwrite(file, bytes, (unsigned)size) == (int)size && gzclose(file) == Z_OK);
}

/* ---- what is written ---- */

struct slices {
    const uint8_t *voxels;
    size_t size;
};

static void
copy_slice(void *context, int64_t slice, void *to)
{
    const struct slices *slices = context;
    memcpy(to, slices->voxels + (size_t)slice * slices->size, slices->size);
}

static int
write_file(const char *name, enum volume_format format, const struct volume_grid *box, enum volume_type type,
           const void *voxels)
{
    struct slices slices = {voxels, (size_t)(box->size[0] * box->size[1]) * (type == VOLUME_INT16 ? 2 : 4)};
    return volume_write(folder, name, format, box, type, copy_slice, &slices, &error);
}

static void
check_written(const char *name, enum volume_format format, enum volume_type type)
{
    int16_t integers[VOXELS];
    float floats[VOXELS];
    for (int i = 0; i < VOXELS; i++) {
        integers[i] = (int16_t)(i * 1000 - 30000);
        floats[i] = (float)i / 3 - 5;
    }
    const void *voxels = type == VOLUME_INT16 ? (const void *)integers : floats;
    ck_assert_int_eq(write_file(name, format, &grid, type, voxels), 0);
    must_be(CODE_NONE, read_file(name, format), name);
    ck_assert_int_eq(header.type, type);
    for (int i = 0; i < 12; i++)
        ck_assert_double_le(fabs(header.grid.to_mm[i] - grid.to_mm[i]), format == VOLUME_NRRD ? 0 : 1e-5);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(header.grid.size[i], grid.size[i]);
    for (int i = 0; i < VOXELS; i++)
        ck_assert_double_eq(values[i], type == VOLUME_INT16 ? integers[i] : floats[i]);
    ck_assert_int_eq(write_file(name, format, &grid, type, voxels), -EEXIST);
}

START_TEST(written_files_are_read_back)
{
    check_written("a.nii", VOLUME_NIFTI, VOLUME_INT16);
    check_written("b.nii", VOLUME_NIFTI, VOLUME_FLOAT32);
    check_written("a.nii.gz", VOLUME_NIFTI, VOLUME_INT16);
    check_written("b.nii.gz", VOLUME_NIFTI, VOLUME_FLOAT32);
    check_written("a.nrrd", VOLUME_NRRD, VOLUME_INT16);
    check_written("b.nrrd", VOLUME_NRRD, VOLUME_FLOAT32);
}

END_TEST

/* Several pieces per thread, which are read by zlib as one member of gzip. */
START_TEST(threads_write_the_same_bytes)
{
    enum { SIDE = 400, SLICES = 21 };

    static int16_t voxels[SLICES * SIDE * SIDE], again[SLICES * SIDE * SIDE];
    static const int threads[] = {1, 2, 3, 16};
    struct volume_grid box = grid;
    static uint8_t first[2 * sizeof voxels], bytes[2 * sizeof voxels];
    size_t length = 0;
    for (int i = 0; i < SLICES * SIDE * SIDE; i++)
        voxels[i] = (int16_t)(i / 7 ^ i / 1000);
    box.size[0] = box.size[1] = SIDE;
    box.size[2] = SLICES;
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        struct slices slices = {(const uint8_t *)voxels, sizeof voxels / SLICES};
        FILE *file = fopen(scratch_path("t.nii.gz"), "w+");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(volume_write_to(fileno(file), VOLUME_NIFTI, VOLUME_GZIP, &box, VOLUME_INT16, copy_slice,
                                         &slices, threads[i], &error),
                         0);
        rewind(file);
        const size_t count = fread(i == 0 ? first : bytes, 1, sizeof bytes, file);
        ck_assert(i == 0 || (count == length && memcmp(first, bytes, count) == 0));
        length = count;
        ck_assert_int_eq(fclose(file), 0);
        gzFile read = gzopen(scratch_path("t.nii.gz"), "rb");
        ck_assert(gzread(read, again, 352) == 352 && gzread(read, again, sizeof again) == (int)sizeof again);
        ck_assert_mem_eq(again, voxels, sizeof voxels);
        ck_assert(gzread(read, again, 1) == 0 && gzclose(read) == Z_OK);
    }
}

END_TEST

/* More voxels than a stored block holds. */
START_TEST(stored_blocks_are_gzip)
{
    enum { SIDE = 300 };
    const struct volume_grid large = {.size = {SIDE, SIDE, 1}, .to_mm = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
    static int16_t voxels[SIDE * SIDE], inflated[SIDE * SIDE];
    char head[NIFTI_HEAD];
    for (int i = 0; i < SIDE * SIDE; i++)
        voxels[i] = (int16_t)(i * 7919);
    ck_assert_int_eq(write_file("a.nii.gz", VOLUME_NIFTI, &large, VOLUME_INT16, voxels), 0);
    gzFile file = gzopen(scratch_path("a.nii.gz"), "rb");
    ck_assert_int_eq(gzread(file, head, sizeof head), sizeof head);
    ck_assert_int_eq(gzread(file, inflated, sizeof inflated), sizeof inflated);
    ck_assert_int_eq(gzread(file, head, 1), 0);
    ck_assert_int_eq(gzclose(file), Z_OK); /* the checksum is right */
    ck_assert_mem_eq(voxels, inflated, sizeof voxels);
    must_be(CODE_NONE, read_file("a.nii.gz", VOLUME_NIFTI), "large");
}

END_TEST

START_TEST(an_axis_too_long_for_nifti_is_refused)
{
    const struct volume_grid longest = {.size = {32767, 1, 1}, .to_mm = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}};
    struct volume_grid longer = longest;
    static int16_t voxels[32768];
    longer.size[0]++;
    ck_assert_int_eq(write_file("a.nii", VOLUME_NIFTI, &longest, VOLUME_INT16, voxels), 0);
    ck_assert_int_lt(write_file("b.nii", VOLUME_NIFTI, &longer, VOLUME_INT16, voxels), 0);
    ck_assert_int_eq(error.code, CODE_SIZE_IMPLAUSIBLE);
    ck_assert(!scratch_has("b.nii"));
    ck_assert_int_eq(write_file("b.nrrd", VOLUME_NRRD, &longer, VOLUME_INT16, voxels), 0);
}

END_TEST

/* ---- NIfTI ---- */

/* A little-endian NIfTI-1 file of bytes 0, 1, 2, ... */
static uint8_t nifti[NIFTI_HEAD + VOXELS + 1];

static void
put(int at, const void *value, size_t size)
{
    memcpy(nifti + at, value, size);
}

static void
put_short(int at, int value)
{
    const uint16_t number = htole16((uint16_t)value);
    put(at, &number, sizeof number);
}

static void
put_float(int at, double value)
{
    const float number = (float)value;
    put(at, &number, sizeof number);
}

static void
make_nifti(void)
{
    static const float rows[12] = {-0.7F, 0, 0, 100.5F, 0, 0, -2.5F, 7.25F, 0, -0.8F, 0, 33};
    static const int dim[8] = {3, X, Y, Z, 1, 1, 1, 1};
    memset(nifti, 0, sizeof nifti);
    put_short(0, 348);
    for (int i = 0; i < 8; i++)
        put_short(40 + 2 * i, dim[i]);
    put_short(70, 2);
    put_short(72, 8);
    for (int i = 0; i < 4; i++)
        put_float(76 + 4 * i, i ? i : 1); /* pixdim */
    put_float(108, NIFTI_HEAD);
    put_short(254, 1);
    put(280, rows, sizeof rows);
    put(344, "n+1", 4);
    for (int i = 0; i <= VOXELS; i++)
        nifti[NIFTI_HEAD + i] = (uint8_t)i;
}

static enum code
read_nifti(void)
{
    scratch_write("a.nii", nifti, sizeof nifti - 1);
    return read_file("a.nii", VOLUME_NIFTI);
}

START_TEST(a_nifti_file_is_read)
{
    make_nifti();
    must_be(CODE_NONE, read_nifti(), "made");
    struct volume_walk walk;
    char why[160];
    ck_assert_msg(volume_grid_same(&header.grid, &grid, &walk, why), "%s", why);
    for (int i = 0; i < VOXELS; i++)
        ck_assert_double_eq(values[i], i);
}

END_TEST

START_TEST(a_slope_scales_if_it_is_a_number_other_than_0)
{
    static const struct {
        double slope, intercept, value; /* of voxel 2 */
        enum code code;
    } cases[] = {{2, 3, 7, CODE_NONE},
                 {0, 3, 2, CODE_NONE},
                 {NAN, 3, 2, CODE_NONE},
                 {INFINITY, 3, 2, CODE_NONE},
                 {0, NAN, 2, CODE_NONE},
                 {-1, 0, -2, CODE_NONE},
                 {1, NAN, 0, CODE_PROGRAM_OUTPUT_UNREADABLE}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_nifti();
        put_float(112, cases[i].slope);
        put_float(116, cases[i].intercept);
        must_be(cases[i].code, read_nifti(), "slope");
        if (cases[i].code == CODE_NONE)
            ck_assert_double_eq(values[2], cases[i].value);
    }
}

END_TEST

START_TEST(damaged_nifti_headers_are_refused)
{
    static const struct {
        int at;
        bool real;
        double value;
        enum code code;
    } cases[] = {
        {0, false, 349, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {40, false, 0, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {40, false, 8, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {40, false, -3, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {42, false, 0, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {44, false, -4, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {46, false, 2, CODE_PROGRAM_OUTPUT_SIZE},
        {46, false, 4, CODE_PROGRAM_OUTPUT_SIZE},
        {70, false, 0, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {70, false, 1, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {70, false, 128, CODE_PROGRAM_NOT_3D},
        {70, false, 2304, CODE_PROGRAM_NOT_3D},
        {70, false, 32, CODE_PROGRAM_NOT_3D},
        {70, false, 1536, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {70, false, 4, CODE_PROGRAM_OUTPUT_SIZE},
        {108, true, NAN, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {108, true, INFINITY, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {108, true, -352, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {108, true, 0, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {108, true, 352.5, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {108, true, 351, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {108, true, 1e30, CODE_PROGRAM_OUTPUT_UNREADABLE},
        {108, true, 60000, CODE_PROGRAM_OUTPUT_SIZE},
        {123, false, 1, CODE_PROGRAM_GRID_DIFFERS},
        {123, false, 3, CODE_PROGRAM_GRID_DIFFERS},
        {123, false, 2 + 8, CODE_NONE},
        {254, false, 0, CODE_PROGRAM_GRID_DIFFERS},
        {254, false, -1, CODE_PROGRAM_GRID_DIFFERS},
        {280, true, NAN, CODE_PROGRAM_GRID_DIFFERS},
        {280, true, 0, CODE_PROGRAM_GRID_DIFFERS},
        {292, true, INFINITY, CODE_PROGRAM_GRID_DIFFERS},
        {304, true, NAN, CODE_PROGRAM_GRID_DIFFERS},
        {344, false, 'n' + 256 * '-', CODE_PROGRAM_OUTPUT_UNREADABLE},
        {344, false, 'n' + 256 * 'i', CODE_PROGRAM_OUTPUT_UNREADABLE}, /* a pair whose header is no .hdr */
        {346, false, '2', CODE_PROGRAM_OUTPUT_UNREADABLE},
        {72, false, 77, CODE_NONE}, /* bitpix has no effect */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char what[64];
        make_nifti();
        if (cases[i].real)
            put_float(cases[i].at, cases[i].value);
        else
            put_short(cases[i].at, (int)cases[i].value);
        snprintf(what, sizeof what, "%g at byte %d", cases[i].value, cases[i].at);
        must_be(cases[i].code, read_nifti(), what);
    }
}

END_TEST

START_TEST(axes_beyond_the_third_have_size_1)
{
    make_nifti();
    put_short(40, 7);
    must_be(CODE_NONE, read_nifti(), "7 axes");
    for (int axis = 4; axis <= 7; axis++) {
        make_nifti();
        put_short(40, axis);
        put_short(40 + 2 * axis, 2);
        must_be(CODE_PROGRAM_NOT_3D, read_nifti(), "two volumes");
    }
    make_nifti();
    put_short(48, 2); /* not one of three axes */
    must_be(CODE_NONE, read_nifti(), "3 axes");
    make_nifti();
    put_short(40, 2);
    put_short(44, Y * Z); /* one slice */
    must_be(CODE_NONE, read_nifti(), "2 axes");
    ck_assert_int_eq(header.grid.size[2], 1);
}

END_TEST

static void
put_qform(double b, double c, double d, double qfac)
{
    static const double offsets[3] = {100.5, 7.25, 33};
    make_nifti();
    put_short(252, 1);
    put_short(254, 0);
    put_float(76, qfac);
    put_float(256, b);
    put_float(260, c);
    put_float(264, d);
    for (int i = 0; i < 3; i++)
        put_float(268 + 4 * i, offsets[i]);
}

/* Expected columns, RAS, by hand: a quarter turn about an axis maps the next axis to the one after. */
START_TEST(a_quaternion_is_a_rotation)
{
    const double half = sqrt(0.5);

    const struct {
        double b, c, d, qfac;
        double ras[9];
    } cases[] = {{0, 0, 0, 1, {1, 0, 0, 0, 2, 0, 0, 0, 3}},     {0, 0, 0, -1, {1, 0, 0, 0, 2, 0, 0, 0, -3}},
                 {half, 0, 0, 1, {1, 0, 0, 0, 0, -3, 0, 2, 0}}, {0, half, 0, 1, {0, 0, 3, 0, 2, 0, -1, 0, 0}},
                 {0, 0, half, 0, {0, -2, 0, 1, 0, 0, 0, 0, 3}}, {1, 0, 0, 1, {1, 0, 0, 0, -2, 0, 0, 0, -3}},
                 {0, 0, 1, -1, {-1, 0, 0, 0, -2, 0, 0, 0, -3}}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_qform(cases[i].b, cases[i].c, cases[i].d, cases[i].qfac);
        must_be(CODE_NONE, read_nifti(), "rotation");
        for (int row = 0; row < 3; row++) {
            for (int axis = 0; axis < 3; axis++)
                ck_assert_double_eq_tol(header.grid.to_mm[4 * row + axis],
                                        cases[i].ras[3 * row + axis] * (row < 2 ? -1 : 1), 1e-6);
        }
        ck_assert_double_eq(header.grid.to_mm[3], -100.5);
        ck_assert_double_eq(header.grid.to_mm[7], -7.25);
        ck_assert_double_eq(header.grid.to_mm[11], 33);
    }
}

END_TEST

START_TEST(a_quaternion_that_is_no_rotation_is_refused)
{
    put_qform(1, 1, 1, 1);
    must_be(CODE_PROGRAM_GRID_DIFFERS, read_nifti(), "too long");
    put_qform(NAN, 0, 0, 1);
    must_be(CODE_PROGRAM_GRID_DIFFERS, read_nifti(), "not a number");
    for (int axis = 1; axis <= 3; axis++) {
        static const double odd[] = {0, -1, NAN, INFINITY};
        for (int i = 0; i < 4; i++) {
            put_qform(0, 0, 0, 1);
            put_float(76 + 4 * axis, odd[i]);
            must_be(CODE_PROGRAM_GRID_DIFFERS, read_nifti(), "spacing");
        }
    }
}

END_TEST

START_TEST(the_written_qform_is_the_sform)
{
    static const int16_t voxels[VOXELS] = {0};
    for (int i = 0; i < 400; i++) {
        /* Rotations in all directions, half of them mirrored. */
        const double a = i * 0.7, b = i * 1.3, c = i * 2.1, mirror = i % 2 ? -1 : 1;
        const double to_mm[12] = {cos(a) * cos(b),
                                  mirror * (cos(a) * sin(b) * sin(c) - sin(a) * cos(c)),
                                  2 * (cos(a) * sin(b) * cos(c) + sin(a) * sin(c)),
                                  5,
                                  sin(a) * cos(b),
                                  mirror * (sin(a) * sin(b) * sin(c) + cos(a) * cos(c)),
                                  2 * (sin(a) * sin(b) * cos(c) - cos(a) * sin(c)),
                                  -6,
                                  -sin(b),
                                  mirror * cos(b) * sin(c),
                                  2 * cos(b) * cos(c),
                                  7};
        struct volume_grid turned = {.size = {X, Y, Z}, .to_mm = {0}};
        struct volume_walk walk;
        char why[160];
        memcpy(turned.to_mm, to_mm, sizeof to_mm);
        unlinkat(folder, "a.nii", 0);
        ck_assert_int_eq(write_file("a.nii", VOLUME_NIFTI, &turned, VOLUME_INT16, voxels), 0);
        FILE *file = fopen(scratch_path("a.nii"), "r+b");
        static const int16_t none = 0;
        ck_assert(file && fseek(file, 254, SEEK_SET) == 0 && fwrite(&none, 2, 1, file) == 1 && fclose(file) == 0);
        must_be(CODE_NONE, read_file("a.nii", VOLUME_NIFTI), "qform");
        ck_assert_msg(volume_grid_same(&header.grid, &turned, &walk, why), "%d: %s", i, why);
        ck_assert_int_eq(walk.first, 0);
    }
}

END_TEST

START_TEST(a_sheared_grid_has_no_qform)
{
    static const int16_t voxels[VOXELS] = {0};
    struct volume_grid sheared = grid;
    int16_t codes[2];
    sheared.to_mm[1] = 0.1;
    ck_assert_int_eq(write_file("a.nii", VOLUME_NIFTI, &sheared, VOLUME_INT16, voxels), 0);
    FILE *file = fopen(scratch_path("a.nii"), "rb");
    ck_assert(file && fseek(file, 252, SEEK_SET) == 0 && fread(codes, 2, 2, file) == 2 && fclose(file) == 0);
    ck_assert_int_eq(codes[0], 0);
    ck_assert_int_eq(codes[1], 1);
}

END_TEST

START_TEST(pairs_have_their_voxels_in_the_same_folder)
{
    make_nifti();
    put(344, "ni1", 4);
    put_float(108, 2);
    scratch_folder("deep");
    scratch_write("deep/a.hdr", nifti, 348);
    must_be(CODE_PROGRAM_NO_OUTPUT, read_file("deep/a.hdr", VOLUME_NIFTI), "no voxels");
    scratch_write("deep/a.img", nifti + NIFTI_HEAD - 2, VOXELS + 2);
    must_be(CODE_NONE, read_file("deep/a.hdr", VOLUME_NIFTI), "pair");
    ck_assert_double_eq(values[7], 7);
    scratch_write("deep/a.img", nifti + NIFTI_HEAD - 2, VOXELS + 3);
    must_be(CODE_PROGRAM_OUTPUT_SIZE, read_file("deep/a.hdr", VOLUME_NIFTI), "one byte more");
    ck_assert(unlink(scratch_path("deep/a.img")) == 0 && symlink("a.hdr", scratch_path("deep/a.img")) == 0);
    must_be(CODE_PROGRAM_OUTPUT_NOT_REGULAR, read_file("deep/a.hdr", VOLUME_NIFTI), "link");
}

END_TEST

/* ---- gzip ---- */

START_TEST(gzip_is_found_by_its_bytes)
{
    make_nifti();
    write_gzip("a.nii", nifti, sizeof nifti - 1);
    must_be(CODE_NONE, read_file("a.nii", VOLUME_NIFTI), "gzip as .nii");
    scratch_write("b.nii.gz", nifti, sizeof nifti - 1);
    must_be(CODE_NONE, read_file("b.nii.gz", VOLUME_NIFTI), "no gzip as .nii.gz");
}

END_TEST

/* Every cut and every changed byte of a gzip file is found, or has no effect (bytes of the gzip header that have no meaning). */
START_TEST(damaged_gzip_is_refused)
{
    make_nifti();
    write_gzip("a.nii.gz", nifti, sizeof nifti - 1);
    static char bytes[4096];
    FILE *file = fopen(scratch_path("a.nii.gz"), "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t i = 0; i < size; i++) {
        scratch_write("b.nii.gz", bytes, i);
        must_be(CODE_PROGRAM_OUTPUT_UNREADABLE, read_file("b.nii.gz", VOLUME_NIFTI), "cut off");
        bytes[i] ^= 1;
        scratch_write("b.nii.gz", bytes, size);
        const enum code code = read_file("b.nii.gz", VOLUME_NIFTI);
        if (i >= 3 && i < 10 && code == CODE_NONE) { /* text, time, level, system */
            for (int voxel = 0; voxel < VOXELS; voxel++)
                ck_assert_double_eq(values[voxel], voxel);
        } else {
            ck_assert_int_ne(code, CODE_NONE);
        }
        bytes[i] ^= 1;
    }
    bytes[size] = 0;
    scratch_write("b.nii.gz", bytes, size + 1);
    must_be(CODE_PROGRAM_OUTPUT_UNREADABLE, read_file("b.nii.gz", VOLUME_NIFTI), "a byte behind gzip");
}

END_TEST

START_TEST(gzip_may_have_members)
{
    make_nifti();
    write_gzip("a", nifti, 400);
    write_gzip("b", nifti + 400, sizeof nifti - 1 - 400);
    write_gzip("c", "", 0);
    char all[8192];
    size_t size = 0;
    for (int i = 0; i < 4; i++) {
        FILE *file = fopen(scratch_path(i == 0 ? "a" : i == 2 ? "b" : "c"), "rb");
        size += fread(all + size, 1, sizeof all - size, file);
        fclose(file);
    }
    scratch_write("a.nii.gz", all, size);
    must_be(CODE_NONE, read_file("a.nii.gz", VOLUME_NIFTI), "four members");
    ck_assert_double_eq(values[VOXELS - 1], VOXELS - 1);
}

END_TEST

START_TEST(gzip_is_not_inflated_beyond_the_voxels)
{
    static uint8_t zeros[1 << 20];
    make_nifti();
    gzFile file = gzopen(scratch_path("a.nii.gz"), "wb9");
    ck_assert(file && gzwrite(file, nifti, sizeof nifti - 1) > 0);
    for (int i = 0; i < 64; i++)
        ck_assert_int_gt(gzwrite(file, zeros, sizeof zeros), 0);
    ck_assert_int_eq(gzclose(file), Z_OK);
    must_be(CODE_PROGRAM_OUTPUT_SIZE, read_file("a.nii.gz", VOLUME_NIFTI), "more voxels");
    write_gzip("a.nii.gz", nifti, sizeof nifti - 2);
    must_be(CODE_PROGRAM_OUTPUT_SIZE, read_file("a.nii.gz", VOLUME_NIFTI), "a voxel is absent");
}

END_TEST

/* ---- the file itself ---- */

START_TEST(only_regular_files_with_one_name_are_read)
{
    static const char *const names[] = {"link", "pipe", "folder", "second", "linked/a.nii"};
    make_nifti();
    must_be(CODE_NONE, read_nifti(), "a file");
    ck_assert_int_eq(symlink("a.nii", scratch_path("link")), 0);
    ck_assert_int_eq(mkfifo(scratch_path("pipe"), 0600), 0);
    scratch_folder("folder");
    ck_assert_int_eq(symlink(".", scratch_path("linked")), 0);
    scratch_write("first", nifti, sizeof nifti - 1);
    ck_assert_int_eq(link(scratch_path("first"), scratch_path("second")), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        must_be(CODE_PROGRAM_OUTPUT_NOT_REGULAR, read_file(names[i], VOLUME_NIFTI), names[i]);
        must_be(CODE_PROGRAM_OUTPUT_NOT_REGULAR, read_file(names[i], VOLUME_NRRD), names[i]);
    }
    must_be(CODE_PROGRAM_NO_OUTPUT, read_file("absent", VOLUME_NIFTI), "absent");
    scratch_write("empty", "", 0);
    must_be(CODE_PROGRAM_OUTPUT_UNREADABLE, read_file("empty", VOLUME_NIFTI), "empty");
    must_be(CODE_PROGRAM_OUTPUT_UNREADABLE, read_file("empty", VOLUME_NRRD), "empty");
}

END_TEST

static int
stop(void *context, int64_t first, double value, int64_t count, struct error *unused)
{
    (void)context;
    (void)first;
    (void)value;
    (void)count;
    return error_set(unused, -ECANCELED, CODE_PROGRAM_NOT_FINITE, "stopped");
}

START_TEST(the_caller_may_stop)
{
    make_nifti();
    must_be(CODE_NONE, read_nifti(), "a file");
    ck_assert_int_eq(volume_read(folder, "a.nii", &header, stop, NULL, &error), -ECANCELED);
    ck_assert_int_eq(error.code, CODE_PROGRAM_NOT_FINITE);
}

END_TEST

/* ---- NRRD ---- */

static const char nrrd_head[] =
    "NRRD0005\n# comment\ntype: unsigned char\ndimension: 3\nspace: left-posterior-superior\n"
    "sizes: 5 4 3\nspace directions: (0.7,0,0) (0,0,-0.8) (0,2.5,0)\nencoding: raw\n"
    "key:=value: x\nspace origin: (-100.5,-7.25,33)\n\n";

/* Writes the header with one text replaced, and the voxels behind it. */
static enum code
read_nrrd(const char *from, const char *to)
{
    static char file[LIMIT_VOLUME_HEADER_BYTES + 1024];
    const char *at = from ? strstr(nrrd_head, from) : nrrd_head;
    ck_assert_ptr_nonnull(at);
    int length =
        snprintf(file, sizeof file, "%.*s%s%s", (int)(at - nrrd_head), nrrd_head, to, at + strlen(from ? from : ""));
    for (int i = 0; i < VOXELS; i++)
        file[length++] = (char)i;
    scratch_write("a.nrrd", file, (size_t)length);
    return read_file("a.nrrd", VOLUME_NRRD);
}

START_TEST(an_nrrd_file_is_read)
{
    must_be(CODE_NONE, read_nrrd(NULL, ""), "as it is");
    struct volume_walk walk;
    char why[160];
    ck_assert_msg(volume_grid_same(&header.grid, &grid, &walk, why), "%s", why);
    ck_assert_int_eq(walk.first, 0);
    for (int i = 0; i < VOXELS; i++)
        ck_assert_double_eq(values[i], i);
}

END_TEST

START_TEST(variants_of_nrrd_are_read)
{
    static const char *const variants[][2] = {
        {"type: unsigned char", "type: uint8"},
        {"type: unsigned char", "type: uchar\r"},
        {"NRRD0005", "NRRD0001"},
        {"space: left-posterior-superior", "space: LPS"},
        {"space: left-posterior-superior", "Space: lps"},
        {"(0.7,0,0) (0,0,-0.8)", "( 0.7 , 0 , 0 )\t(0,0,-0.8)  "},
        {"encoding: raw", "encoding: raw\nendian: big"}, /* no effect on bytes */
        {"encoding: raw", "encoding: RAW\nline skip: 0\nbyte skip: 0"},
        {"encoding: raw", "encoding: raw\nspace units: \"mm\" \"mm\" \"mm\""},
        {"dimension: 3\nspace: left-posterior-superior\nsizes: 5 4 3\nspace directions: ",
         "dimension: 4\nspace: LPS\nsizes: 1 5 4 3\nkinds: list domain domain domain\nspace directions: none "},
        {"\n\n", "\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        must_be(CODE_NONE, read_nrrd(variants[i][0], variants[i][1]), variants[i][1]);
        for (int at = 0; at < 12; at++)
            ck_assert_double_eq(header.grid.to_mm[at], grid.to_mm[at]);
        ck_assert_double_eq(values[VOXELS - 1], VOXELS - 1);
    }
}

END_TEST

START_TEST(spaces_of_nrrd_become_lps)
{
    static const struct {
        const char *space;
        int x, y;
    } spaces[] = {{"RAS", -1, -1},
                  {"right-anterior-superior", -1, -1},
                  {"LAS", 1, -1},
                  {"left-anterior-superior", 1, -1},
                  {"LPS", 1, 1}};

    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "space: %s", spaces[i].space);
        must_be(CODE_NONE, read_nrrd("space: left-posterior-superior", line), line);
        for (int at = 0; at < 12; at++)
            ck_assert_double_eq(header.grid.to_mm[at], grid.to_mm[at] * (at < 4   ? spaces[i].x
                                                                         : at < 8 ? spaces[i].y
                                                                                  : 1));
    }
}

END_TEST

START_TEST(damaged_nrrd_headers_are_refused)
{
    static const struct {
        const char *from, *to;
        enum code code;
    } cases[] = {
        {"NRRD0005", "NRRD0006", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"NRRD0005", "NRRD", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"type: unsigned char", "type: block", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"type: unsigned char", "type: uchar|unsigned char", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"type: unsigned char", "type: a type with a name that is rather long", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"type: unsigned char", "type: char", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"type: unsigned char", "", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"type: unsigned char", "type: short", CODE_PROGRAM_OUTPUT_UNREADABLE}, /* byte order is absent */
        {"type: unsigned char", "type: short\nendian: little", CODE_PROGRAM_OUTPUT_SIZE},
        {"type: unsigned char", "type: uint8\ntype: int8", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"dimension: 3", "dimension: 0", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"dimension: 3", "dimension: 17", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"dimension: 3", "dimension: 2", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"dimension: 3", "dimension: 4", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"sizes: 5 4 3", "sizes: 5 4 0", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"sizes: 5 4 3", "sizes: 5 4 -3", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"sizes: 5 4 3", "sizes: 5 4 99999999999999999999", CODE_PROGRAM_NOT_3D},
        {"sizes: 5 4 3", "sizes: 5 4 2", CODE_PROGRAM_OUTPUT_SIZE},
        {"sizes: 5 4 3", "sizes: 5 4 4", CODE_PROGRAM_OUTPUT_SIZE},
        {"dimension: 3\nspace: left-posterior-superior\nsizes: 5 4 3\nspace directions: ",
         "dimension: 4\nspace: LPS\nsizes: 2 5 4 3\nspace directions: none ", CODE_PROGRAM_NOT_3D},
        {"dimension: 3\nspace: left-posterior-superior\nsizes: 5 4 3\nspace directions: (0.7,0,0)",
         "dimension: 3\nspace: LPS\nsizes: 3 5 4\nspace directions: none", CODE_PROGRAM_NOT_3D},
        {"(0.7,0,0)", "(0,0,0)", CODE_PROGRAM_GRID_DIFFERS},
        {"(0.7,0,0)", "(nan,0,0)", CODE_PROGRAM_GRID_DIFFERS},
        {"(0.7,0,0)", "(inf,0,0)", CODE_PROGRAM_GRID_DIFFERS},
        {"(0.7,0,0)", "(0.7,0)", CODE_PROGRAM_GRID_DIFFERS},
        {"(0.7,0,0)", "(0.7,0,0,0)", CODE_PROGRAM_GRID_DIFFERS},
        {"(0.7,0,0)", "", CODE_PROGRAM_GRID_DIFFERS},
        {"(0.7,0,0)", "(0.7,0,0) (0.7,0,0)", CODE_PROGRAM_GRID_DIFFERS},
        {"(0.7,0,0)", "(0.7,0,x)", CODE_PROGRAM_GRID_DIFFERS},
        {"space directions: ", "spacings: ", CODE_PROGRAM_GRID_DIFFERS},
        {"space: left-posterior-superior", "space dimension: 3", CODE_PROGRAM_GRID_DIFFERS},
        {"space: left-posterior-superior", "space: scanner-xyz", CODE_PROGRAM_GRID_DIFFERS},
        {"space origin: (-100.5,-7.25,33)", "", CODE_PROGRAM_GRID_DIFFERS},
        {"space origin: (-100.5,-7.25,33)", "space origin: (-100.5,nan,33)", CODE_PROGRAM_GRID_DIFFERS},
        {"encoding: raw", "encoding: raw\nspace units: \"m\" \"m\" \"m\"", CODE_PROGRAM_GRID_DIFFERS},
        {"encoding: raw", "encoding: ascii", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: bzip2", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: gzip", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: raw\nbyte skip: -1", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: raw\nlineskip: 1", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: raw\ndata file: ../a.raw", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: raw\ndata file: /etc/passwd", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: raw\ndata file: ..", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: raw\ndata file: LIST", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: raw\ndatafile: %03d.raw 1 3 1", CODE_PROGRAM_OUTPUT_UNREADABLE},
        {"encoding: raw", "encoding: raw\ndata file: absent.raw", CODE_PROGRAM_NO_OUTPUT},
        {"\n\n", "\n", CODE_PROGRAM_OUTPUT_UNREADABLE},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        must_be(cases[i].code, read_nrrd(cases[i].from, cases[i].to), cases[i].to);
}

END_TEST

START_TEST(detached_nrrd_has_its_voxels_in_the_same_folder)
{
    char text[1024];
    const int length = snprintf(text, sizeof text, "%.*sdata file: a.raw.gz\n", (int)sizeof nrrd_head - 2, nrrd_head);
    char *raw = strstr(text, "encoding: raw");
    uint8_t voxels[VOXELS];
    for (int i = 0; i < VOXELS; i++)
        voxels[i] = (uint8_t)(2 * i);
    scratch_folder("deep");
    scratch_write("deep/a.nhdr", text, (size_t)length);
    scratch_write("deep/a.raw.gz", voxels, VOXELS);
    must_be(CODE_NONE, read_file("deep/a.nhdr", VOLUME_NRRD), "raw");
    ck_assert_double_eq(values[VOXELS - 1], 2 * VOXELS - 2);
    memcpy(raw, "encoding: gz ", 13);
    scratch_write("deep/a.nhdr", text, (size_t)length - 1); /* without a newline at the end */
    write_gzip("deep/a.raw.gz", voxels, VOXELS);
    must_be(CODE_NONE, read_file("deep/a.nhdr", VOLUME_NRRD), "gzip");
    ck_assert_double_eq(values[VOXELS - 1], 2 * VOXELS - 2);
    ck_assert_int_eq(link(scratch_path("deep/a.raw.gz"), scratch_path("b")), 0);
    must_be(CODE_PROGRAM_OUTPUT_NOT_REGULAR, read_file("deep/a.nhdr", VOLUME_NRRD), "two names");
}

END_TEST

/* ---- types ---- */

START_TEST(values_of_all_types_are_read_in_both_orders)
{
    static const struct {
        const char *name;
        size_t size;
        const char bytes[9]; /* big endian */
        double value;
    } types[] = {
        {"uint8", 1, "\xfe", 254},
        {"int8", 1, "\xfe", -2},
        {"uint16", 2, "\xff\xfe", 65534},
        {"int16", 2, "\xff\xfe", -2},
        {"uint32", 4, "\xff\xff\xff\xfe", 4294967294},
        {"int32", 4, "\xff\xff\xff\xfe", -2},
        {"uint64", 8, "\x80\x00\x00\x00\x00\x00\x00\x00", 9223372036854775808.0},
        {"int64", 8, "\xff\xff\xff\xff\xff\xff\xff\xfe", -2},
        {"float", 4, "\xc0\x20\x00\x00", -2.5},
        {"double", 8, "\xc0\x04\x00\x00\x00\x00\x00\x00", -2.5},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        for (int big = 0; big < 2; big++) {
            char file[512];
            int length = snprintf(
                file, sizeof file,
                "NRRD0004\ntype: %s\ndimension: 3\nspace: LPS\nsizes: 3 1 1\nspace directions: (1,0,0) (0,1,0) "
                "(0,0,1)\nencoding: raw\nspace origin: (0,0,0)\nendian: %s\n\n",
                types[i].name, big ? "big" : "little");
            for (int voxel = 0; voxel < 3; voxel++) {
                for (size_t byte = 0; byte < types[i].size; byte++)
                    file[length++] = types[i].bytes[big ? byte : types[i].size - 1 - byte];
            }
            scratch_write("a.nrrd", file, (size_t)length);
            must_be(CODE_NONE, read_file("a.nrrd", VOLUME_NRRD), types[i].name);
            for (int voxel = 0; voxel < 3; voxel++)
                ck_assert_double_eq(values[voxel], types[i].value);
        }
    }
}

END_TEST

/* ---- limits ---- */

START_TEST(axes_have_a_limit)
{
    const struct edge edge = EDGE(VOLUME_AXIS);
    char sizes[64];
    for (int axis = 0; axis < 3; axis++) {
        for (int beyond = 0; beyond < 2; beyond++) {
            const long long size = edge.most + beyond;
            snprintf(sizes, sizeof sizes, "sizes: %lld %lld %lld", axis == 0 ? size : 1, axis == 1 ? size : 1,
                     axis == 2 ? size : 1);
            must_be(beyond ? edge.code : CODE_PROGRAM_OUTPUT_SIZE, read_nrrd("sizes: 5 4 3", sizes), sizes);
        }
    }
}

END_TEST

START_TEST(headers_have_a_limit)
{
    const struct edge edge = EDGE(VOLUME_HEADER_BYTES);
    static char text[LIMIT_VOLUME_HEADER_BYTES + 1024];
    const size_t wanted = (size_t)edge.most - (sizeof nrrd_head - 1);
    for (int beyond = 0; beyond < 2; beyond++) {
        memset(text, 'x', wanted + (size_t)beyond);
        memcpy(text, "\n#", 2);
        text[wanted + (size_t)beyond] = '\0';
        must_be(beyond ? edge.code : CODE_NONE, read_nrrd("\n\n", strcat(text, "\n\n")), "a comment");
    }
    static uint8_t file[LIMIT_VOLUME_HEADER_BYTES + 1 + VOXELS];
    make_nifti();
    for (int beyond = 0; beyond < 2; beyond++) {
        put_float(108, (double)edge.most + beyond);
        memcpy(file, nifti, NIFTI_HEAD);
        memcpy(file + edge.most + beyond, nifti + NIFTI_HEAD, VOXELS);
        scratch_write("a.nii", file, (size_t)edge.most + (size_t)beyond + VOXELS);
        must_be(beyond ? edge.code : CODE_NONE, read_file("a.nii", VOLUME_NIFTI), "extensions");
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("volume_files");
    TCase *tests = tcase_create("volume_files");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, written_files_are_read_back);
    tcase_add_test(tests, threads_write_the_same_bytes);
    tcase_add_test(tests, stored_blocks_are_gzip);
    tcase_add_test(tests, an_axis_too_long_for_nifti_is_refused);
    tcase_add_test(tests, a_nifti_file_is_read);
    tcase_add_test(tests, a_slope_scales_if_it_is_a_number_other_than_0);
    tcase_add_test(tests, damaged_nifti_headers_are_refused);
    tcase_add_test(tests, axes_beyond_the_third_have_size_1);
    tcase_add_test(tests, a_quaternion_is_a_rotation);
    tcase_add_test(tests, a_quaternion_that_is_no_rotation_is_refused);
    tcase_add_test(tests, the_written_qform_is_the_sform);
    tcase_add_test(tests, a_sheared_grid_has_no_qform);
    tcase_add_test(tests, pairs_have_their_voxels_in_the_same_folder);
    tcase_add_test(tests, gzip_is_found_by_its_bytes);
    tcase_add_test(tests, damaged_gzip_is_refused);
    tcase_add_test(tests, gzip_may_have_members);
    tcase_add_test(tests, gzip_is_not_inflated_beyond_the_voxels);
    tcase_add_test(tests, only_regular_files_with_one_name_are_read);
    tcase_add_test(tests, the_caller_may_stop);
    tcase_add_test(tests, an_nrrd_file_is_read);
    tcase_add_test(tests, variants_of_nrrd_are_read);
    tcase_add_test(tests, spaces_of_nrrd_become_lps);
    tcase_add_test(tests, damaged_nrrd_headers_are_refused);
    tcase_add_test(tests, detached_nrrd_has_its_voxels_in_the_same_folder);
    tcase_add_test(tests, values_of_all_types_are_read_in_both_orders);
    tcase_add_test(tests, axes_have_a_limit);
    tcase_add_test(tests, headers_have_a_limit);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
