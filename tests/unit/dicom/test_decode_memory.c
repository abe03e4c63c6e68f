/*
 * Decodes frames, and converts texts, while the n-th allocation fails, including those of DCMTK, OpenJPEG and iconv.
 * Either the failure is reported, or the result must be the same as with memory. A valid file must not be reported as
 * damaged, nor its texts as unsupported. The same holds for the setup.
 */
#include "tests/unit/dicom/compressed_frames.h"
#include "tests/unit/dicom/peek_sample.h"
#include "tests/unit/starved_malloc.h"

#include <string.h>
#include <sys/wait.h>

/* Outcomes of a process in which the nth allocation fails. */
enum outcome { WHOLE, TOLD, NOT_HIT, WRONG };

#define PIXELS (COMPRESSED_ROWS * COMPRESSED_COLUMNS)

/* ---- the start ---- */

static size_t
count_inherited(void)
{
    struct dicom_inherited inherited;
    if (dicom_inherit(path, &inherited, NULL) != 0)
        return 0;
    const size_t count = inherited.count;
    dicom_inherited_free(&inherited);
    return count;
}

static int
begin_starved(int n, size_t inherited)
{
    close(STDERR_FILENO);
    hit = false;
    countdown = n;
    dicom_init();
    countdown = 0;
    return count_inherited() != inherited ? WRONG : hit ? WHOLE : NOT_HIT;
}

static size_t
count_inherited_apart(void)
{
    int ends[2], status;
    size_t count = 0;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        dicom_init();
        count = count_inherited();
        _exit(write(ends[1], &count, sizeof count) != sizeof count);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(read(ends[0], &count, sizeof count), sizeof count);
    return count;
}

/* DCMTK and OpenSSL crash at some allocations. Tries all of the first, then a few of the dictionary's thousands. */
START_TEST(a_start)
{
    const struct sample_image image = SAMPLE_IMAGE;
    int status, n = 0;
    strcpy(path, "/tmp/noctule_peek.XXXXXX");
    close(mkstemp(path));
    sample_write(&image, path);
    const size_t inherited = count_inherited_apart();
    ck_assert_uint_ge(inherited, 3);
    do {
        n += n < 80 ? 1 : n / 10;
        const pid_t pid = fork();
        if (pid == 0)
            _exit(begin_starved(n, inherited));
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(!WIFEXITED(status) || WEXITSTATUS(status) != WRONG,
                      "allocation %d: what it inherits is not whole", n);
    } while (!WIFEXITED(status) || WEXITSTATUS(status) != NOT_HIT);
    unlink(path);
}

END_TEST

/* ---- frames ---- */

#define FRAME(syntax, name, bits)                                                                                      \
    {                                                                                                                  \
        "1.2.840.10008.1.2." syntax, frame_##name, sizeof(frame_##name), bits                                          \
    }

static const struct compressed {
    const char *syntax;
    const uint8_t *bytes;
    size_t size;
    unsigned bits;
} frames[] =
    {
        FRAME("5", rle, 12),        FRAME("4.50", jpeg_baseline, 8), FRAME("4.70", jpeg_lossless_sv1, 12),
        FRAME("4.80", jpeg_ls, 12), FRAME("4.90", jpeg_2000, 12),    FRAME("4.201", htj2k, 12),
},
  *frame;

static void
write_frame(struct dicom_bytes *bytes)
{
    bytes_delimiter(bytes, 0xFFFEE000, 0);
    bytes_delimiter(bytes, 0xFFFEE000, (uint32_t)(frame->size + frame->size % 2));
    bytes_put(bytes, frame->bytes, frame->size);
    bytes_put(bytes, "", frame->size % 2);
    bytes_sequence_end(bytes);
}

static struct dicom_instance *
write_compressed(void)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = frame->syntax;
    image.rows = COMPRESSED_ROWS;
    image.columns = COMPRESSED_COLUMNS;
    image.bits_allocated = frame->bits > 8 ? 16 : 8;
    image.bits_stored = frame->bits;
    image.high_bit = frame->bits - 1;
    image.encapsulated = write_frame;
    return write_and_peek(&image);
}

static int
decode(int n, const struct dicom_instance *instance, uint16_t values[PIXELS], struct error *error)
{
    struct dicom_pixels *pixels;
    countdown = n;
    hit = false;
    int rc = dicom_pixels_open(instance, &pixels, error);
    if (!rc) {
        rc = dicom_pixels_read(pixels, 0, values, error);
        dicom_pixels_close(pixels);
    }
    countdown = 0;
    return rc;
}

static enum outcome
decode_starved(int n, const struct dicom_instance *instance, const uint16_t whole[PIXELS])
{
    uint16_t values[PIXELS] = {0};
    struct error error = {0};
    const int rc = decode(n, instance, values, &error);
    if (rc == -ENOMEM && hit && error.code == CODE_OUT_OF_MEMORY)
        return TOLD;
    if (rc == 0 && memcmp(values, whole, sizeof values) == 0)
        return hit ? WHOLE : NOT_HIT;
    fprintf(stderr, "%s, allocation %d: %d %s\n", frame->syntax, n, rc, rc ? error.message : "other pixels");
    return WRONG;
}

/* OpenJPEG 2.5.0 crashes if it has no memory to copy a header. */
START_TEST(a_frame)
{
    uint16_t whole[PIXELS] = {0};
    int n = 0, status;
    frame = &frames[_i];
    struct dicom_instance *instance = write_compressed();
    ck_assert_int_eq(decode(0, instance, whole, NULL), 0);
    const bool may_crash = frame->bytes == frame_jpeg_2000 || frame->bytes == frame_htj2k;
    do {
        const pid_t pid = fork();
        if (pid == 0)
            _exit(decode_starved(n + 1, instance, whole));
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        n++;
        ck_assert_msg(WIFEXITED(status) ? WEXITSTATUS(status) != WRONG : may_crash, "%s, allocation %d: %#x",
                      frame->syntax, n, (unsigned)status);
    } while (!WIFEXITED(status) || WEXITSTATUS(status) != NOT_HIT);
    dicom_instance_free(instance);
}

END_TEST

/* ---- texts ---- */

static const struct text {
    const char *set, *name, *utf8;
} texts[] =
    {
        {"ISO_IR 100", "L\xF6we^Jo", "L\xC3\xB6we^Jo"},
        {"ISO_IR 144", "\xB8\xD2\xD0\xDD", "\xD0\x98\xD0\xB2\xD0\xB0\xD0\xBD"},
        {"\\ISO 2022 IR 87", "Y^T=\x1B$B;3ED\x1B(B^T", "Y^T=\xE5\xB1\xB1\xE7\x94\xB0^T"},
        {"\\ISO 2022 IR 149", "H^K=\x1B$)C\xFB\xF3^K", "H^K=\xE6\xB4\xAA^K"},
},
  *text;

static void
add_text(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00080005, "CS", text->set);
    bytes_text(bytes, 0x00101001, "PN", text->name);
}

static bool
has_text(const struct dicom_inherited *inherited, const char *value)
{
    for (size_t i = 0; i < inherited->count; i++) {
        const struct dicom_element *element = &inherited->elements[i];
        if (element->tag == 0x00101001 && memmem(element->bytes, element->size, value, strlen(value)))
            return true;
    }
    return false;
}

static enum outcome
inherit_starved(int n)
{
    struct dicom_inherited inherited;
    countdown = n;
    hit = false;
    int rc = dicom_inherit(path, &inherited, NULL);
    const bool whole = rc || has_text(&inherited, text->name);
    if (!rc)
        rc = dicom_inherited_to_utf8(&inherited);
    countdown = 0;
    if (whole && rc == -ENOMEM && hit)
        return TOLD;
    if (whole && rc == 0 && has_text(&inherited, text->utf8))
        return hit ? WHOLE : NOT_HIT;
    fprintf(stderr, "%s, allocation %d: %d, %s\n", text->set, n, rc, whole ? "another text" : "text left out");
    return WRONG;
}

/* In a process each, because the C library loads a converter once. */
START_TEST(a_text)
{
    struct sample_image image = SAMPLE_IMAGE;
    int n = 0, status;
    text = &texts[_i];
    image.without = 0x00080005;
    image.extra = add_text;
    sample_write(&image, path);
    do {
        const pid_t pid = fork();
        if (pid == 0)
            _exit(inherit_starved(n + 1));
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        n++;
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) != WRONG, "%s, allocation %d: %#x", text->set, n,
                      (unsigned)status);
    } while (WEXITSTATUS(status) != NOT_HIT);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_decode_memory");
    TCase *start = tcase_create("start"); /* must run before any setup */
    tcase_add_test(start, a_start);
    suite_add_tcase(suite, start);
    TCase *tests = new_case(suite, "memory");
    tcase_add_loop_test(tests, a_frame, 0, (int)(sizeof frames / sizeof *frames));
    tcase_add_loop_test(tests, a_text, 0, (int)(sizeof texts / sizeof *texts));
    return suite_run(suite);
}
