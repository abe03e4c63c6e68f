/* peek_sample.h - a file for dicom_peek, and checks of the result. */
#ifndef NOCTULE_PEEK_SAMPLE_H
#define NOCTULE_PEEK_SAMPLE_H

#include "dicom/dicom.h"
#include "tests/unit/dicom_bytes.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <unistd.h>

static char path[64];

static inline void
setup(void)
{
    dicom_init();
    strcpy(path, "/tmp/noctule_peek.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static inline void
teardown(void)
{
    unlink(path);
}

static inline struct dicom_instance *
peek_or_fail(void)
{
    struct error error;
    struct dicom_instance *instance = NULL;
    int rc = dicom_peek(path, &instance, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
    ck_assert_str_eq(instance->path, path);
    return instance;
}

static inline struct dicom_instance *
write_and_peek(const struct sample_image *image)
{
    sample_write(image, path);
    return peek_or_fail();
}

/* Returns the error of the file at `path`, which must be rejected. */
static inline const struct error *
peek_error(void)
{
    static struct error error;
    struct dicom_instance *instance = (struct dicom_instance *)&error;
    int rc = dicom_peek(path, &instance, &error);
    ck_assert_msg(rc < 0, "it was accepted");
    ck_assert_ptr_null(instance);
    ck_assert_str_eq(error.file[0], path);
    ck_assert_uint_gt(strlen(error.message), 10);
    return &error;
}

static inline void
expect_code(const struct sample_image *image, enum code code)
{
    sample_write(image, path);
    const struct error *error = peek_error();
    ck_assert_msg(error->code == code, "%s, not %s: %s", code_name(error->code), code_name(code), error->message);
}

static inline TCase *
new_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    return tcase;
}

static const char *const native_syntaxes[] = {SYNTAX_EXPLICIT, SYNTAX_IMPLICIT, SYNTAX_BIG_ENDIAN};

static inline void
write_raw(const void *data, size_t size)
{
    struct dicom_bytes bytes = {0};
    bytes_put(&bytes, data, size);
    bytes_write(&bytes, path);
    bytes_free(&bytes);
}

static inline void
add_classic_keys(struct dicom_bytes *bytes)
{
    bytes_text(bytes, 0x00181060, "DS", "120.0");
    bytes_fd(bytes, 0x00189087, 800);
    bytes_text(bytes, 0x00200012, "IS", "5");
    bytes_text(bytes, 0x00200100, "IS", "3");
}

/* ---- an image with functional groups ---- */

static inline void
put_group(struct dicom_bytes *bytes, uint32_t sequence, uint32_t tag, const char *text)
{
    bytes_sequence(bytes, sequence);
    bytes_item(bytes);
    bytes_text(bytes, tag, "DS", text);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static inline void
put_number_group(struct dicom_bytes *bytes, uint32_t sequence, uint32_t tag, double value)
{
    bytes_sequence(bytes, sequence);
    bytes_item(bytes);
    bytes_fd(bytes, tag, value);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static inline void
put_rescale(struct dicom_bytes *bytes, const char *intercept, const char *slope)
{
    bytes_sequence(bytes, 0x00289145);
    bytes_item(bytes);
    bytes_text(bytes, 0x00281052, "DS", intercept);
    bytes_text(bytes, 0x00281053, "DS", slope);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static inline void
put_content(struct dicom_bytes *bytes, uint32_t temporal)
{
    bytes_sequence(bytes, 0x00209111);
    bytes_item(bytes);
    bytes_text(bytes, 0x00209056, "SH", "1");
    bytes_ul(bytes, 0x00209128, temporal);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static inline void
put_measures(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x00289110);
    bytes_item(bytes);
    bytes_text(bytes, 0x00180050, "DS", "4");
    bytes_text(bytes, 0x00180088, "DS", "5");
    bytes_text(bytes, 0x00280030, "DS", "0.5\\0.75");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

/*
 * Adds three frames. Orientation and measures are shared, the rest is per frame. The rescale is shared, but frame 2
 * has its own.
 */
static inline void
add_functional_groups(struct dicom_bytes *bytes)
{
    bytes_sequence(bytes, 0x52009229);
    bytes_item(bytes);
    put_group(bytes, 0x00209116, 0x00200037, "1\\0\\0\\0\\1\\0");
    put_measures(bytes);
    put_rescale(bytes, "-10", "2");
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_sequence(bytes, 0x52009230);
    for (unsigned i = 0; i < 3; i++) {
        char position[32];
        snprintf(position, sizeof(position), "1\\2\\%u", 5 * i);
        bytes_item(bytes);
        put_number_group(bytes, 0x00189114, 0x00189082, 10 + i);
        put_number_group(bytes, 0x00189117, 0x00189087, 100 * i);
        put_content(bytes, i + 1);
        put_group(bytes, 0x00209113, 0x00200032, position);
        put_number_group(bytes, 0x00189118, 0x00209153, 40 * i);
        if (i == 2)
            put_rescale(bytes, "-20", "3");
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
}

static inline struct sample_image
enhanced_image(const char *syntax)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.syntax = syntax;
    image.class_uid = CLASS_ENHANCED_MR;
    image.modality = "MR";
    image.frames = "3";
    image.position = image.orientation = image.spacing = image.thickness = NULL;
    image.slope = image.intercept = NULL;
    image.extra = add_functional_groups;
    return image;
}

#endif
