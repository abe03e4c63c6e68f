/* deflated.h - writes files with a deflated data set. */
#ifndef NOCTULE_DEFLATED_H
#define NOCTULE_DEFLATED_H

#include "tests/unit/dicom_bytes.h"

#include <check.h>
#include <zlib.h>

/* Writes the file, deflated from `data_set` on, without the last `cut` bytes. */
static inline void
deflated_write(const struct dicom_bytes *plain, size_t data_set, size_t cut, const char *path)
{
    z_stream zlib = {0};
    ck_assert_int_eq(deflateInit2(&zlib, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t room = deflateBound(&zlib, plain->size);
    uint8_t *packed = malloc(room);
    ck_assert_ptr_nonnull(packed);
    zlib.next_in = plain->data + data_set;
    zlib.avail_in = (uInt)(plain->size - data_set);
    zlib.next_out = packed;
    zlib.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    struct dicom_bytes file = {0};
    bytes_put(&file, plain->data, data_set);
    bytes_put(&file, packed, room - zlib.avail_out - cut);
    bytes_write(&file, path);
    bytes_free(&file);
    free(packed);
    deflateEnd(&zlib);
}

static inline void
sample_write_deflated(const struct sample_image *image, const char *path, size_t cut)
{
    struct dicom_bytes bytes = {0};
    bytes_begin_file(&bytes, image->syntax, image->class_uid, image->instance_uid);
    const size_t data_set = bytes.size;
    sample_data_set(&bytes, image);
    deflated_write(&bytes, data_set, cut, path);
    bytes_free(&bytes);
}

#endif
