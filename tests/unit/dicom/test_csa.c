/* Siemens' CSA header: both forms, invalid headers, and the cost. */
#include "dicom/read/vendor/csa.h"

#include "tests/unit/dicom_bytes.h"
#include "tests/unit/growth.h"
#include "tests/unit/suite.h"

/* Puts one attribute with the texts of its items, "" for an empty one, up to NULL. */
static void
put_attribute(struct dicom_bytes *bytes, bool second, unsigned first, const char *name, const char *const *texts)
{
    char head[68] = "";
    unsigned items = 0;
    while (texts[items])
        items++;
    snprintf(head, 64, "%s", name);
    bytes_put(bytes, head, sizeof head);
    bytes_put(bytes, "FD\0", 4);
    bytes_u32(bytes, 4);
    bytes_u32(bytes, items);
    bytes_u32(bytes, 77);
    for (; *texts; texts++) {
        const uint32_t length = (uint32_t)strlen(*texts);
        bytes_u32(bytes, second ? length : length + first);
        bytes_u32(bytes, second ? length : 77);
        bytes_u32(bytes, 77);
        bytes_u32(bytes, length);
        bytes_put(bytes, *texts, length);
        bytes_put(bytes, "\0\0\0", (4 - length % 4) % 4);
    }
}

static const char *const lines[] = {"64      ", "", "", NULL};
static const char *const tiles[] = {" 35 ", "", NULL};
static const char *const direction[] = {"0.60000000", "0", "-0.8", NULL};
static const char *const words[] = {"a word that is longer than any number is", NULL};

static struct dicom_bytes
sample_header(bool second)
{
    struct dicom_bytes bytes = {0};
    if (second)
        bytes_put(&bytes, "SV10\4\3\2\1", 8);
    bytes_u32(&bytes, 4);
    bytes_u32(&bytes, 77);
    put_attribute(&bytes, second, 3, "EchoLinePosition", lines);
    put_attribute(&bytes, second, 3, "NumberOfImagesInMosaic", tiles);
    put_attribute(&bytes, second, 3, "Words", words);
    put_attribute(&bytes, second, 3, "DiffusionGradientDirection", direction);
    return bytes;
}

static size_t
values_of(const struct dicom_bytes *bytes, const char *name, char values[6][CSA_VALUE])
{
    return csa_values(bytes->data, bytes->size, name, values, 6);
}

START_TEST(values_are_found_by_name)
{
    char values[6][CSA_VALUE];
    struct dicom_bytes bytes = sample_header(_i);
    ck_assert_uint_eq(values_of(&bytes, "EchoLinePosition", values), 1);
    ck_assert_str_eq(values[0], "64");
    ck_assert_uint_eq(values_of(&bytes, "NumberOfImagesInMosaic", values), 1);
    ck_assert_str_eq(values[0], "35");
    ck_assert_uint_eq(values_of(&bytes, "DiffusionGradientDirection", values), 3);
    ck_assert_str_eq(values[0], "0.60000000");
    ck_assert_str_eq(values[1], "0");
    ck_assert_str_eq(values[2], "-0.8");
    ck_assert_uint_eq(csa_values(bytes.data, bytes.size, "DiffusionGradientDirection", values, 2), 2);
    ck_assert_uint_eq(values_of(&bytes, "Words", values), 0);
    ck_assert_uint_eq(values_of(&bytes, "B_value", values), 0);
    ck_assert_uint_eq(values_of(&bytes, "Diffusion", values), 0);
    bytes_free(&bytes);
}

END_TEST

/* A header that is cut anywhere must have all values before the cut. The reader must not read beyond its end. */
START_TEST(truncated_headers_have_no_values)
{
    char values[6][CSA_VALUE];
    const struct dicom_bytes bytes = sample_header(_i);
    for (size_t size = 0; size <= bytes.size; size++) {
        uint8_t *cut = malloc(size + 1); /* detects reads beyond the end with AddressSanitizer */
        memcpy(cut, bytes.data, size);
        const size_t count = csa_values(cut, size, "DiffusionGradientDirection", values, 6);
        ck_assert_uint_eq(count, size < bytes.size ? 0 : 3);
        free(cut);
    }
    struct dicom_bytes whole = bytes;
    bytes_free(&whole);
}

END_TEST

START_TEST(invalid_headers_have_no_values)
{
    static const char text[] = "### ASCCONV BEGIN ### and other text that is no header at all";
    char values[6][CSA_VALUE];
    ck_assert_uint_eq(csa_values(text, sizeof text, "B_value", values, 6), 0);
    ck_assert_uint_eq(csa_values("SV10", 4, "B_value", values, 6), 0);
    ck_assert_uint_eq(csa_values("", 0, "B_value", values, 6), 0);
}

END_TEST

/* ---- cost ---- */

/* Puts only items without values, of one attribute or of the maximum number of attributes. */
static double
cost_of_items(const void *kind, size_t n)
{
    const bool one = *(const bool *)kind;
    struct dicom_bytes bytes = {0};
    bytes_put(&bytes, "SV10\4\3\2\1", 8);
    bytes_u32(&bytes, one ? 1 : UINT32_MAX);
    bytes_u32(&bytes, 77);
    while (bytes.size < n) {
        static const char *const none[] = {NULL};
        put_attribute(&bytes, true, 0, "Filler", none);
        if (one) {
            bytes.data[bytes.size - 8] = bytes.data[bytes.size - 5] = 0x7f; /* number of items */
            while (bytes.size < n)
                bytes_put(&bytes, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
        }
    }
    char values[6][CSA_VALUE];
    const double before = growth_clock();
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(values_of(&bytes, "B_value", values), 0);
    const double seconds = growth_clock() - before;
    bytes_free(&bytes);
    return seconds;
}

START_TEST(cost_is_linear)
{
    for (int one = 0; one < 2; one++)
        expect_linear(one ? "items" : "attributes", cost_of_items, &(const bool){one}, 1 << 20);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_csa");
    TCase *tests = tcase_create("csa");
    tcase_add_loop_test(tests, values_are_found_by_name, 0, 2);
    tcase_add_loop_test(tests, truncated_headers_have_no_values, 0, 2);
    tcase_add_test(tests, invalid_headers_have_no_values);
    tcase_add_test(tests, cost_is_linear);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
