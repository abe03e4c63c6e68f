/* The parts that write a segmentation: UIDs, values, elements, colours, bits, the sink. */
#include "dicom/objects/seg/seg_writer.h"
#include "dicom/value/uid.h"
#include "dicom/value/value.h"
#include "dicom/write/byte_sink.h"
#include "dicom/write/element_writer.h"
#include "dicom/write/mask_bits.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- the system: this program's write(2), which can be made to fail --- */

static struct {
    bool interrupt; /* every other call ends with EINTR */
    bool shorten;   /* at most 1000 bytes per call */
    int fail_at;    /* the n-th call from now on fails with `error` */
    int error;
    int calls;
} misbehaviour;

ssize_t
write(int fd, const void *bytes, size_t size)
{
    misbehaviour.calls++;
    if (misbehaviour.fail_at && misbehaviour.calls >= misbehaviour.fail_at) {
        errno = misbehaviour.error;
        return misbehaviour.error ? -1 : 0;
    }
    if (misbehaviour.interrupt && misbehaviour.calls % 2) {
        errno = EINTR;
        return -1;
    }
    if (misbehaviour.shorten && size > 1000)
        size = 1000;
    return syscall(SYS_write, fd, bytes, size);
}

/* --- UIDs --- */

START_TEST(uid_is_the_decimal_form)
{
    const uint8_t zero[16] = {0};
    uint8_t ones[16];
    char uid[DICOM_UID_SIZE];
    memset(ones, 0xFF, sizeof(ones));
    uid_from_bytes(zero, uid); /* 00000000-0000-8000-8000-000000000000 */
    ck_assert_str_eq(uid, "2.25.604472133179351442128896");
    uid_from_bytes(ones, uid); /* ffffffff-ffff-8fff-bfff-ffffffffffff */
    ck_assert_str_eq(uid, "2.25.340282366920937934553716840013076889599");
}

END_TEST

START_TEST(uid_depends_on_fields_and_their_borders)
{
    const char *const names[][2] = {{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}};
    char uids[4][DICOM_UID_SIZE];
    for (int i = 0; i < 4; i++) {
        struct uid_name *name;
        ck_assert_int_eq(uid_name_begin(&name), 0);
        uid_name_text(name, names[i][0]);
        uid_name_text(name, names[i][1]);
        ck_assert_int_eq(uid_name_end(name, uids[i]), 0);
        ck_assert_uint_le(strlen(uids[i]), 64);
        ck_assert_int_eq(strncmp(uids[i], "2.25.", 5), 0);
        ck_assert_int_ne(uids[i][5], '0');
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(uids[i], uids[k]);
    }
    struct uid_name *again;
    char uid[DICOM_UID_SIZE];
    ck_assert_int_eq(uid_name_begin(&again), 0);
    uid_name_text(again, "ab");
    uid_name_text(again, "c");
    ck_assert_int_eq(uid_name_end(again, uid), 0);
    ck_assert_str_eq(uid, uids[0]);
}

END_TEST

/* --- values --- */

START_TEST(ds_is_short_and_exact)
{
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0.0, "0"},
        {-0.0, "0"},
        {1.0, "1"},
        {-115.5, "-115.5"},
        {0.1, "0.1"},
        {100000.0, "100000"},
        {1e300, "1e300"},
        {1e-7, "1e-7"},
        {1.0 / 3.0, "0.33333333333333"},
        {-1.0 / 3.0, "-0.3333333333333"},
        {0.666666686534882, "0.66666668653488"},
        {-123456.789012345678, "-123456.78901235"},
        {-1.234567890123456e-100, "-1.23456789e-100"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[VALUE_DS_SIZE];
        value_ds_format(cases[i].number, text);
        ck_assert_uint_le(strlen(text), 16);
        ck_assert_str_eq(text, cases[i].text);
        ck_assert_double_le(fabs(strtod(text, NULL) - cases[i].number), 1e-8 * fabs(cases[i].number));
        ck_assert(value_is_legal("DS", text, strlen(text)));
    }
}

END_TEST

START_TEST(ds_keeps_the_sources_text)
{
    char text[VALUE_DS_SIZE];
    value_ds_copy(" 1.50000e+01 ", 15.0, text);
    ck_assert_str_eq(text, "1.50000e+01");
    value_ds_copy("0.666666686534882", 0.666666686534882, text); /* 17 characters */
    ck_assert_str_eq(text, "0.66666668653488");
    value_ds_copy("1,5", 1.5, text);
    ck_assert_str_eq(text, "1.5");
    value_ds_copy("", 2.5, text);
    ck_assert_str_eq(text, "2.5");
}

END_TEST

START_TEST(values_are_checked_by_vr)
{
    static const struct {
        const char *vr;
        const char *value;
        bool legal;
    } cases[] = {
        {"AS", "042Y", true},
        {"AS", "42", false},
        {"AS", "42Y ", false},
        {"DA", "20240229", true},
        {"DA", "2024.02.29", false},
        {"DA", "20241301", false},
        {"TM", "10", true},
        {"TM", "101112.1", true},
        {"TM", "101112.123456 ", true},
        {"TM", "10:11:12", false},
        {"TM", "251112", false},
        {"TM", "101112.", false},
        {"DS", "1\\-2.5\\3e5", true},
        {"DS", "1\\x", false},
        {"DS", "12345678901234567", false},
        {"DS", "1.2.3", false},
        {"DS", "1e", false},
        {"IS", "-12", true},
        {"IS", "1.5", false},
        {"CS", "ISO_IR 100\\A", true},
        {"CS", "male", false},
        {"CS", "ABCDEFGHIJKLMNOPQ", false},
        {"UI", "1.2.840.0", true},
        {"UI", "1.2.03", false},
        {"UI", "1..2", false},
        {"UI", ".1", false},
        {"UI", "1.", false},
        {"UI", "1.2.a", false},
        {"LO", "anything: \xE4", true},
        {"DA", "", true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool legal = value_is_legal(cases[i].vr, cases[i].value, strlen(cases[i].value));
        ck_assert_msg(legal == cases[i].legal, "%s [%s]", cases[i].vr, cases[i].value);
    }
}

END_TEST

START_TEST(text_is_shortened_and_cleaned)
{
    static const struct {
        const char *text;
        size_t characters;
        enum value_text_kind kind;
        bool ascii;
        const char *clean;
    } cases[] = {
        {"Brain", 64, VALUE_LINE, true, "Brain"},
        {"a\\b\tc\nd\x01", 64, VALUE_LINE, false, "a/b c d_"},
        {"a\\b\nc", 64, VALUE_LINES, false, "a\\b\nc"},
        {"Gro\xC3\x9Fhirn", 64, VALUE_LINE, false, "Gro\xC3\x9Fhirn"},
        {"Gro\xC3\x9Fhirn", 64, VALUE_LINE, true, "Gro?hirn"},
        {"Gro\xC3\x9Fhirn", 4, VALUE_LINE, false, "Gro\xC3\x9F"},
        {"\xE8\x84\xB3\xE8\x84\xB3", 1, VALUE_LINE, false, "\xE8\x84\xB3"},
        {"\xF0\x9F\xA7\xA0x", 64, VALUE_LINE, false, "\xF0\x9F\xA7\xA0x"},
        {"bad \xC3(\xED\xA0\x80\xC0\xAF", 64, VALUE_LINE, false, "bad ?(?????"},
        {"cut\xE8\x84", 64, VALUE_LINE, false, "cut??"},
        {"trail   ", 64, VALUE_LINE, false, "trail"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *clean = value_text_clean(cases[i].text, cases[i].characters, cases[i].kind, cases[i].ascii);
        ck_assert_ptr_nonnull(clean);
        ck_assert_str_eq(clean, cases[i].clean);
        free(clean);
    }
}

END_TEST

START_TEST(cs_is_derived_from_any_text)
{
    char cs[VALUE_CS_SIZE];
    value_cs_make("head-ct", "NONE", cs);
    ck_assert_str_eq(cs, "HEAD_CT");
    value_cs_make("a very long pipeline name", "NONE", cs);
    ck_assert_str_eq(cs, "A_VERY_LONG_PIPE");
    value_cs_make("\xE8\x84\xB3 2", "NONE", cs);
    ck_assert_str_eq(cs, "__2");
    value_cs_make("---", "NONE", cs);
    ck_assert_str_eq(cs, "NONE");
}

END_TEST

START_TEST(colours_are_cielab)
{
    /* L, a, b of sRGB under D50, as printed in colour tables. */
    static const struct {
        double rgb[3];
        double lab[3];
    } cases[] = {
        {{1, 1, 1}, {100.0, 0.0, 0.0}},      {{0, 0, 0}, {0.0, 0.0, 0.0}},         {{1, 0, 0}, {54.29, 80.81, 69.89}},
        {{0, 1, 0}, {87.82, -79.29, 80.99}}, {{0, 0, 1}, {29.57, 68.30, -112.03}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint16_t lab[3];
        value_lab_from_srgb(cases[i].rgb, lab);
        ck_assert_double_eq_tol(lab[0] / 655.35, cases[i].lab[0], 0.02);
        ck_assert_double_eq_tol(lab[1] / 257.0 - 128.0, cases[i].lab[1], 0.05);
        ck_assert_double_eq_tol(lab[2] / 257.0 - 128.0, cases[i].lab[2], 0.05);
        double back[3];
        value_srgb_from_lab(lab, back);
        for (int k = 0; k < 3; k++)
            ck_assert_double_eq_tol(back[k], cases[i].rgb[k], 0.002);
    }
}

END_TEST

/* --- elements --- */

START_TEST(elements_are_explicit_little_endian)
{
    static const uint8_t expected[] = {
        0x08, 0x00, 0x05, 0x00, 'C',  'S',  2,    0,    'A',  ' ',           /* padded with a space */
        0x08, 0x00, 0x18, 0x00, 'U',  'I',  4,    0,    '1',  '.',  '2',  0, /* padded with NUL */
        0x20, 0x00, 0x57, 0x91, 'U',  'L',  8,    0,    1,    0,    0,    0,    2,    1,    0,    0,   0x20,
        0x00, 0x65, 0x91, 'A',  'T',  4,    0,    0x62, 0x00, 0x0B, 0x00, 0x28, 0x00, 0x10, 0x00, 'U', 'S',
        2,    0,    0x01, 0x02, 0x62, 0x00, 0x02, 0x00, 'S',  'Q',  0,    0,    18,   0,    0,    0, /* 8 + 10 bytes */
        0xFE, 0xFF, 0x00, 0xE0, 10,   0,    0,    0,                                       /* an item of 10 bytes */
        0x62, 0x00, 0x04, 0x00, 'U',  'S',  2,    0,    1,    0,                           /* its element */
        0x62, 0x00, 0x20, 0x00, 'U',  'T',  0,    0,    2,    0,    0,    0,    'x',  ' ', /* 32-bit
                                                                                             length
                                                                                           */
    };
    const uint32_t indices[2] = {1, 258};
    const uint16_t rows = 0x0201;
    const uint16_t number = 1;
    struct element_buffer buffer = {0};
    element_text(&buffer, 0x00080005, "CS", "A");
    element_text(&buffer, 0x00080018, "UI", "1.2");
    element_ul(&buffer, 0x00209157, indices, 2);
    element_at(&buffer, 0x00209165, 0x0062000B);
    element_us(&buffer, 0x00280010, &rows, 1);
    size_t sequence = element_open_sequence(&buffer, 0x00620002);
    size_t item = element_open_item(&buffer);
    element_us(&buffer, 0x00620004, &number, 1);
    element_close(&buffer, item);
    element_close(&buffer, sequence);
    element_text(&buffer, 0x00620020, "UT", "x");
    ck_assert_int_eq(buffer.error, 0);
    ck_assert_uint_eq(buffer.size, sizeof(expected));
    ck_assert_mem_eq(buffer.bytes, expected, sizeof(expected));
    element_buffer_free(&buffer);
}

END_TEST

START_TEST(a_text_too_long_is_latched)
{
    struct element_buffer buffer = {0};
    char *text = malloc(70001);
    memset(text, 'x', 70000);
    text[70000] = '\0';
    element_text(&buffer, 0x00620020, "UT", text);
    ck_assert_int_eq(buffer.error, 0);
    element_text(&buffer, 0x00104000, "LT", text);
    ck_assert_int_eq(buffer.error, -EMSGSIZE);
    size_t size = buffer.size;
    element_text(&buffer, 0x00104000, "LT", "after");
    ck_assert_uint_eq(buffer.size, size);
    element_buffer_free(&buffer);
    free(text);
}

END_TEST

/* --- bits --- */

static uint64_t random_state = 88172645463325252u;

static uint64_t
next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static bool
voxel(const struct mask_plane *plane, int32_t x, int32_t y)
{
    return plane->words[y * plane->words_per_row + x / 64] >> x % 64 & 1;
}

/* Packs planes through a file, and compares them with the bits taken one by one. */
static void
check_packing(int32_t columns, int32_t rows, int32_t planes, int64_t extra_words)
{
    int64_t words_per_row = (columns + 63) / 64 + extra_words;
    size_t words = (size_t)(words_per_row * rows * planes);
    uint64_t *mask = malloc(words * sizeof(*mask));
    for (size_t i = 0; i < words; i++)
        mask[i] = next_random(); /* sets padding bits, too, which must not count */

    FILE *file = tmpfile();
    struct byte_sink sink;
    ck_assert_int_eq(byte_sink_open(&sink, fileno(file), false), 0);
    struct mask_packer packer = {.sink = &sink};
    for (int32_t z = 0; z < planes; z++) {
        struct mask_plane plane = {mask + z * rows * words_per_row, words_per_row, columns, rows};
        mask_pack(&packer, &plane);
    }
    mask_pack_finish(&packer);
    ck_assert_int_eq(byte_sink_finish(&sink), 0);
    int64_t bits = (int64_t)columns * rows * planes;
    ck_assert_int_eq(sink.total, (bits + 7) / 8);
    uint8_t *bytes = calloc((size_t)sink.total + 1, 1);
    ck_assert_int_eq(pread(fileno(file), bytes, (size_t)sink.total + 1, 0), sink.total);

    int64_t at = 0;
    for (int32_t z = 0; z < planes; z++) {
        struct mask_plane plane = {mask + z * rows * words_per_row, words_per_row, columns, rows};
        for (int32_t y = 0; y < rows; y++) {
            for (int32_t x = 0; x < columns; x++, at++) {
                bool packed = bytes[at / 8] >> at % 8 & 1;
                if (packed != voxel(&plane, x, y))
                    ck_abort_msg("%d x %d: voxel (%d, %d, %d)", columns, rows, x, y, z);
            }
        }
    }
    for (; at % 8; at++)
        ck_assert_int_eq(bytes[at / 8] >> at % 8 & 1, 0);
    byte_sink_close(&sink);
    fclose(file);
    free(bytes);
    free(mask);
}

START_TEST(packing_is_one_bit_stream)
{
    for (int32_t columns = 1; columns <= 200; columns++)
        check_packing(columns, 3, 3, columns % 2);
    check_packing(255, 257, 5, 0);
    check_packing(512, 64, 3, 0);
    check_packing(512, 64, 3, 1);
    check_packing(65535, 3, 2, 0);
}

END_TEST

START_TEST(large_planes_bypass_the_buffer)
{
    check_packing(1024, 1024, 2, 0);
    check_packing(2048, 2049, 2, 0);
}

END_TEST

START_TEST(any_and_add_read_only_columns)
{
    uint64_t a[6] = {0, ~UINT64_C(0) << 36, 0, 0, 0, 0}; /* beyond column 99 */
    uint64_t b[6] = {0, 0, 0, UINT64_C(1) << 35, 0, 0};  /* column 99 of row 1 */
    uint64_t seen[6] = {0};
    struct mask_plane empty = {a, 2, 100, 3};
    struct mask_plane one = {b, 2, 100, 3};
    ck_assert(!mask_any(&empty));
    ck_assert(mask_any(&one));
    ck_assert(!mask_add(&one, seen));
    ck_assert(!mask_add(&empty, seen));
    ck_assert_uint_eq(seen[1], 0);
    ck_assert(mask_add(&one, seen));
}

END_TEST

/* --- maps --- */

START_TEST(maps_are_rounded_to_the_nearest)
{
    for (uint32_t connectedness = 0; connectedness <= UINT16_MAX; connectedness++) {
        uint64_t nearest = (UINT64_C(2) * 255 * connectedness + 65535) / (2 * 65535);
        ck_assert_uint_eq(seg_fractional_value((uint16_t)connectedness), nearest);
    }
}

END_TEST

/* Checks every place, at sizes close to the size of one step; 128 is still 0. */
START_TEST(any_finds_the_only_voxel)
{
    static const int64_t counts[] = {1, 2, 4095, 4096, 4097, 9000};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        uint16_t *map = malloc((size_t)counts[c] * sizeof(*map));
        for (int64_t i = 0; i < counts[c]; i++)
            map[i] = 128;
        ck_assert(!seg_fractional_any(map, counts[c]));
        for (int64_t i = 0; i < counts[c]; i++) {
            map[i] = 129;
            ck_assert(seg_fractional_any(map, counts[c]));
            map[i] = 128;
        }
        free(map);
    }
}

END_TEST

START_TEST(maps_pass_through_the_buffer)
{
    static const int64_t counts[] = {1, 65535, 65536, 65537, 1300001};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        size_t count = (size_t)counts[c];
        uint16_t *map = malloc(count * sizeof(*map));
        uint8_t *bytes = malloc(2 * count + 1);
        for (size_t i = 0; i < count; i++)
            map[i] = (uint16_t)next_random();
        FILE *file = tmpfile();
        struct byte_sink sink;
        ck_assert_int_eq(byte_sink_open(&sink, fileno(file), false), 0);
        seg_fractional_append(&sink, map, counts[c]);
        seg_fractional_append(&sink, map, counts[c]); /* now the buffer is not empty */
        ck_assert_int_eq(byte_sink_finish(&sink), 0);
        ck_assert_int_eq(sink.total, 2 * counts[c]);
        ck_assert_int_eq(pread(fileno(file), bytes, 2 * count + 1, 0), sink.total);
        for (size_t i = 0; i < 2 * count; i++)
            ck_assert_uint_eq(bytes[i], seg_fractional_value(map[i % count]));
        byte_sink_close(&sink);
        fclose(file);
        free(bytes);
        free(map);
    }
}

END_TEST

/* --- the sink --- */

static void
check_sink_content(FILE *file, size_t size)
{
    uint8_t *bytes = malloc(size + 1);
    ck_assert_int_eq(pread(fileno(file), bytes, size + 1, 0), (ssize_t)size);
    for (size_t i = 0; i < size; i++)
        ck_assert_uint_eq(bytes[i], i % 251);
    free(bytes);
}

/* Appends 0, 1, ... 250, 0, ... in pieces of odd sizes. */
static int
fill_sink(int fd, size_t size)
{
    uint8_t *bytes = malloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i % 251);
    struct byte_sink sink;
    ck_assert_int_eq(byte_sink_open(&sink, fd, false), 0);
    size_t piece = 1;
    for (size_t at = 0; at < size;) {
        size_t part = piece < size - at ? piece : size - at;
        byte_sink_append(&sink, bytes + at, part);
        at += part;
        piece = piece * 3 % 400009;
    }
    int error = byte_sink_finish(&sink);
    ck_assert_int_eq(sink.total, (int64_t)size);
    byte_sink_close(&sink);
    free(bytes);
    return error;
}

START_TEST(sink_survives_short_writes_and_signals)
{
    FILE *file = tmpfile();
    memset(&misbehaviour, 0, sizeof(misbehaviour));
    misbehaviour.shorten = true;
    misbehaviour.interrupt = true;
    int error = fill_sink(fileno(file), 3000000);
    memset(&misbehaviour, 0, sizeof(misbehaviour));
    ck_assert_int_eq(error, 0);
    check_sink_content(file, 3000000);
    fclose(file);
}

END_TEST

START_TEST(sink_keeps_the_first_error)
{
    static const int errors[] = {ENOSPC, EIO, EDQUOT, 0};
    for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
        int calls = 1000;
        for (int n = 1; n <= calls; n++) {
            FILE *file = tmpfile();
            memset(&misbehaviour, 0, sizeof(misbehaviour));
            misbehaviour.fail_at = n;
            misbehaviour.error = errors[e];
            int error = fill_sink(fileno(file), 3000000);
            calls = misbehaviour.calls;
            memset(&misbehaviour, 0, sizeof(misbehaviour));
            fclose(file);
            if (calls < n) {
                ck_assert_int_eq(error, 0);
                break;
            }
            ck_assert_int_eq(error, errors[e] ? -errors[e] : -EIO); /* 0: wrote no bytes */
            ck_assert_int_eq(calls, n);                             /* no calls after the first error */
            calls = 1000;
        }
    }
}

END_TEST

START_TEST(sink_reports_a_full_device)
{
    int fd = open("/dev/full", O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fill_sink(fd, 100), -ENOSPC);
    ck_assert_int_eq(fill_sink(fd, 2000000), -ENOSPC);
    close(fd);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_seg_parts");
    TCase *values = tcase_create("values");
    tcase_add_test(values, uid_is_the_decimal_form);
    tcase_add_test(values, uid_depends_on_fields_and_their_borders);
    tcase_add_test(values, ds_is_short_and_exact);
    tcase_add_test(values, ds_keeps_the_sources_text);
    tcase_add_test(values, values_are_checked_by_vr);
    tcase_add_test(values, text_is_shortened_and_cleaned);
    tcase_add_test(values, cs_is_derived_from_any_text);
    tcase_add_test(values, colours_are_cielab);
    suite_add_tcase(suite, values);
    TCase *bytes = tcase_create("bytes");
    tcase_add_test(bytes, elements_are_explicit_little_endian);
    tcase_add_test(bytes, a_text_too_long_is_latched);
    tcase_add_test(bytes, packing_is_one_bit_stream);
    tcase_add_test(bytes, large_planes_bypass_the_buffer);
    tcase_add_test(bytes, any_and_add_read_only_columns);
    tcase_add_test(bytes, maps_are_rounded_to_the_nearest);
    tcase_add_test(bytes, any_finds_the_only_voxel);
    tcase_add_test(bytes, maps_pass_through_the_buffer);
    suite_add_tcase(suite, bytes);
    TCase *sink = tcase_create("sink");
    tcase_add_test(sink, sink_survives_short_writes_and_signals);
    tcase_add_test(sink, sink_keeps_the_first_error);
    tcase_add_test(sink, sink_reports_a_full_device);
    suite_add_tcase(suite, sink);
    return suite_run(suite);
}
