/*
 * element_writer.h - encodes data elements in Explicit VR Little Endian (PS3.5 7.1.2) in memory, or, if `implicit` is set
 * first, in Implicit VR Little Endian (PS3.5 7.1.3), where every value may have 2^32 - 2 bytes.
 *
 * A buffer grows as needed and keeps its first error. Callers append without checks, and must check
 * `error` once before they use the bytes. Sequences and items get explicit lengths, filled in when
 * they are closed. Callers must append in ascending tag order. One thread per buffer.
 */
#ifndef NOCTULE_DICOM_WRITE_ELEMENT_WRITER_H
#define NOCTULE_DICOM_WRITE_ELEMENT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct element_buffer {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    int error; /* 0, -ENOMEM, or -EMSGSIZE: a value exceeds its length field */
    bool implicit;
};

void element_buffer_free(struct element_buffer *buffer);

/* Records an error, if it is the first. */
void element_fail(struct element_buffer *buffer, int rc);

/* Appends bytes that are already encoded. */
void element_append(struct element_buffer *buffer, const void *bytes, size_t size);

/* Appends an element in Explicit VR with explicit lengths, in the encoding of the buffer. */
void element_append_explicit(struct element_buffer *buffer, const uint8_t *bytes, size_t size);

/* Appends tag, VR and length of a value that the caller appends. `length` must be even. */
void element_header(struct element_buffer *buffer, uint32_t tag, const char vr[2], uint32_t length);

/* Appends the header of an item whose content of `length` bytes the caller appends. */
void element_item_header(struct element_buffer *buffer, uint32_t length);

/* Appends a text value unchanged, padded to even length: with NUL for UI, otherwise with a space. */
void element_text(struct element_buffer *buffer, uint32_t tag, const char vr[2], const char *text);

/* Appends several text values, up to a row without tag. */
struct element_row {
    uint32_t tag;
    const char *vr, *text;
};

void element_texts(struct element_buffer *buffer, const struct element_row *rows);

void element_us(struct element_buffer *buffer, uint32_t tag, const uint16_t *values, size_t count);
void element_ul(struct element_buffer *buffer, uint32_t tag, const uint32_t *values, size_t count);
/* Appends one double. */
void element_fd(struct element_buffer *buffer, uint32_t tag, double value);
/* Appends an element of VR FL. Values are rounded to single precision. */
void element_fl(struct element_buffer *buffer, uint32_t tag, const double *values, size_t count);
void element_at(struct element_buffer *buffer, uint32_t tag, uint32_t value);

/* Return the mark that element_close needs. The caller must close in reverse order of opening. */
size_t element_open_sequence(struct element_buffer *buffer, uint32_t tag);
size_t element_open_item(struct element_buffer *buffer);
void element_close(struct element_buffer *buffer, size_t mark);

/* Open and close a sequence together with its only item. */
size_t element_open_only_item(struct element_buffer *buffer, uint32_t tag);
void element_close_only_item(struct element_buffer *buffer, size_t mark);
void element_only_texts(struct element_buffer *buffer, uint32_t tag, const struct element_row *rows);

#ifdef __cplusplus
}
#endif
#endif
