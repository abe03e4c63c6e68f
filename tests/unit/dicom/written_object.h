/*
 * written_object.h - an object that a test has written to a file: searches it, damages it, and writes it without
 * space. Failures are reported to Check.
 */
#ifndef NOCTULE_WRITTEN_OBJECT_H
#define NOCTULE_WRITTEN_OBJECT_H

#include "dicom/objects/seg/seg.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct written_object {
    const char *path;   /* path of the file; set once there is a folder for it */
    enum code mismatch; /* code of a file that differs from the request */
    int (*write)(int fd, struct derived_summary *summary, struct error *error);
    int (*verify)(const char *path, struct error *error);
    uint8_t *bytes; /* the file's bytes when taken, and those with the test's changes */
    size_t size;
    struct derived_summary summary; /* of the last write */
};

static inline int
written_try(struct written_object *object, struct error *error)
{
    int fd = open(object->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0) {
        perror(object->path);
        abort();
    }
    int rc = object->write(fd, &object->summary, error);
    close(fd);
    return rc;
}

/* Writes the file, which must read back, and takes its bytes. */
static inline void
written_take(struct written_object *object)
{
    struct error error = {0};
    int rc = written_try(object, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
    rc = object->verify(object->path, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
    FILE *file = fopen(object->path, "rb");
    ck_assert_ptr_nonnull(file);
    object->bytes = realloc(object->bytes, (size_t)object->summary.bytes + 1);
    ck_assert_ptr_nonnull(object->bytes);
    object->size = fread(object->bytes, 1, (size_t)object->summary.bytes + 1, file);
    fclose(file);
    ck_assert_int_eq((int64_t)object->size, object->summary.bytes);
}

static inline void
written_free(struct written_object *object)
{
    free(object->bytes);
    object->bytes = NULL;
}

/* Writes the file again. The bytes must be the same. */
static inline void
written_expect_same_again(struct written_object *object)
{
    uint8_t *bytes = object->bytes;
    const size_t size = object->size;
    object->bytes = NULL;
    written_take(object);
    ck_assert_uint_eq(object->size, size);
    ck_assert_mem_eq(object->bytes, bytes, size);
    free(bytes);
}

/* --- content --- */

static inline int
written_count(const struct written_object *object, const void *pattern, size_t length)
{
    const uint8_t *place = object->bytes;
    const uint8_t *end = object->bytes + object->size;
    int count = 0;
    while ((place = memmem(place, (size_t)(end - place), pattern, length)) != NULL) {
        count++;
        place++;
    }
    return count;
}

static inline int
written_count_text(const struct written_object *object, const char *text)
{
    return written_count(object, text, strlen(text));
}

/* Returns the n-th occurrence (from 1) of a pattern. */
static inline uint8_t *
written_find(const struct written_object *object, const void *pattern, size_t length, int nth)
{
    uint8_t *place = object->bytes;
    for (;;) {
        place = memmem(place, object->size - (size_t)(place - object->bytes), pattern, length);
        ck_assert_ptr_nonnull(place);
        if (--nth == 0)
            return place;
        place++;
    }
}

static inline uint8_t *
written_find_text(const struct written_object *object, const char *text, int nth)
{
    return written_find(object, text, strlen(text), nth);
}

/* Returns the value of the n-th element with the tag and a 16-bit length. */
static inline uint8_t *
written_find_value(const struct written_object *object, uint32_t tag, const char *vr, int nth)
{
    const uint8_t head[6] = {(uint8_t)(tag >> 16), (uint8_t)(tag >> 24), (uint8_t)tag,
                             (uint8_t)(tag >> 8),  (uint8_t)vr[0],       (uint8_t)vr[1]};
    return written_find(object, head, sizeof(head), nth) + 8;
}

/* --- damage --- */

static inline void
written_save(const struct written_object *object, size_t count)
{
    FILE *file = fopen(object->path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(object->bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
}

/* Checks that the current file is rejected with a message that contains `word`. */
static inline void
written_expect_refused(const struct written_object *object, const char *word)
{
    struct error error = {0};
    ck_assert_int_eq(object->verify(object->path, &error), -EBADMSG);
    ck_assert_int_eq(error.code, object->mismatch);
    ck_assert_str_eq(error.file[0], object->path);
    ck_assert_msg(strstr(error.message, word) != NULL, "\"%s\" lacks \"%s\"", error.message, word);
}

/* Same for the bytes with the test's changes. */
static inline void
written_expect_mismatch(const struct written_object *object, const char *word)
{
    written_save(object, object->size);
    written_expect_refused(object, word);
}

/* Same with bits of this byte flipped, which are restored afterwards. */
static inline void
written_expect_damage(const struct written_object *object, uint8_t *byte, uint8_t bits, const char *word)
{
    *byte ^= bits;
    written_expect_mismatch(object, word);
    *byte ^= bits;
}

/* Cuts the file anywhere. It must be rejected without a crash. */
static inline void
written_expect_cuts_refused(const struct written_object *object, size_t step)
{
    for (size_t cut = 0; cut < object->size; cut += step) {
        written_save(object, cut);
        written_expect_refused(object, "differs from the written one");
    }
    written_save(object, object->size - 1);
    written_expect_refused(object, "differs from the written one");
}

/* Changes any one byte. The reader must not crash, for any result on values that are not compared. */
static inline void
written_expect_no_crash(const struct written_object *object, size_t step)
{
    for (size_t i = 132; i < object->size; i += step) {
        struct error error = {0};
        object->bytes[i] ^= 0xFF;
        written_save(object, object->size);
        int rc = object->verify(object->path, &error);
        ck_assert(rc == 0 || rc == -EBADMSG);
        object->bytes[i] ^= 0xFF;
    }
}

static inline void
written_expect_no_file_refused(const struct written_object *object)
{
    unlink(object->path);
    written_expect_refused(object, "cannot be read");
}

/* --- no space --- */

static inline void
written_expect_full_device_told(struct written_object *object)
{
    struct error error = {0};
    int fd = open("/dev/full", O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(object->write(fd, &object->summary, &error), -ENOSPC);
    ck_assert_int_eq(error.code, CODE_WRITE_FAILED);
    close(fd);
}

/* Limits the disk at every kind of place, from the first byte to the last but one. */
static inline void
written_expect_full_disk_told(struct written_object *object)
{
    struct rlimit limit;
    written_take(object);
    const int64_t whole = object->summary.bytes;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert(handler != SIG_ERR);
    for (int64_t i = 0; i <= 18; i++) {
        int64_t end = i < 16 ? i * (whole / 16) : i == 16 ? 1 : i == 17 ? 4096 % whole : whole - 1;
        struct rlimit cut = {.rlim_cur = (rlim_t)end, .rlim_max = limit.rlim_max};
        struct error error = {0};
        int limited = setrlimit(RLIMIT_FSIZE, &cut); /* no assertions: Check writes to a file */
        int rc = written_try(object, &error);
        int restored = setrlimit(RLIMIT_FSIZE, &limit);
        ck_assert_int_eq(limited, 0);
        ck_assert_int_eq(restored, 0);
        ck_assert_int_eq(rc, -EFBIG);
        ck_assert_int_eq(error.code, CODE_WRITE_FAILED);
    }
    signal(SIGXFSZ, handler);
    written_take(object);
}

#endif
