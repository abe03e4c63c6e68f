/*
 * test_byte_sink.c - checks that a file written past the page cache has the given bytes, for any support of O_DIRECT.
 */
#include "dicom/write/byte_sink.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#define BUFFER (512 * 1024) /* of the sink */

static struct {
    bool refuse;      /* O_DIRECT: -EINVAL */
    bool shorten;     /* one block at a time */
    int64_t full_at;  /* -ENOSPC at this size; 0: never */
    int64_t bypassed; /* bytes written with O_DIRECT */
} disk;

/* Replaces the C library's function. */
ssize_t
write(int fd, const void *bytes, size_t size)
{
    const bool direct = fcntl(fd, F_GETFL) & O_DIRECT;
    if (direct && disk.refuse) {
        errno = EINVAL;
        return -1;
    }
    if (disk.full_at && lseek(fd, 0, SEEK_CUR) >= disk.full_at) {
        errno = ENOSPC;
        return -1;
    }
    const size_t most = disk.shorten && size > 4096 ? 4096 : size;
    const ssize_t written = syscall(SYS_write, fd, bytes, most);
    if (direct && written > 0)
        disk.bypassed += written;
    return written;
}

static uint8_t
byte_at(size_t at)
{
    return (uint8_t)(at * 7 % 251);
}

static int
open_file(void)
{
    int fd = open(scratch_path("file"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static int
fill(int fd, size_t size, size_t piece)
{
    uint8_t *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(i);
    struct byte_sink sink;
    ck_assert_int_eq(byte_sink_open(&sink, fd, true), 0);
    for (size_t at = 0; at < size; at += piece)
        byte_sink_append(&sink, bytes + at, piece < size - at ? piece : size - at);
    const int error = byte_sink_finish(&sink);
    ck_assert_int_eq(sink.total, (int64_t)size);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_DIRECT, 0); /* else the next reader fails */
    byte_sink_close(&sink);
    free(bytes);
    return error;
}

static void
check(int fd, size_t size)
{
    uint8_t *bytes = malloc(size + 1);
    ck_assert_int_eq(pread(fd, bytes, size + 1, 0), (ssize_t)size);
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != byte_at(i))
            ck_abort_msg("byte %zu of %zu", i, size);
    free(bytes);
}

static void
check_sizes(void)
{
    static const size_t sizes[] = {
        0,          1,      BYTE_SINK_HEAD, BYTE_SINK_HEAD + 1, 65535,          65536,      70001,
        BUFFER - 1, BUFFER, BUFFER + 1,     BUFFER + 4097,      BUFFER + 65536, 2 * BUFFER, 3000001};
    static const size_t pieces[] = {131066, 4096, 16372, 3000001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t j = 0; j < sizeof pieces / sizeof *pieces; j++) {
            int fd = open_file();
            ck_assert_int_eq(fill(fd, sizes[i], pieces[j]), 0);
            check(fd, sizes[i]);
            close(fd);
        }
    }
}

static void
set_up(void)
{
    memset(&disk, 0, sizeof disk);
    scratch_make();
}

START_TEST(files_of_any_size_are_complete)
{
    check_sizes();
}

END_TEST

START_TEST(short_writes_are_continued)
{
    disk.shorten = true;
    check_sizes();
}

END_TEST

START_TEST(the_bulk_bypasses_the_cache)
{
    int fd = open_file();
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_DIRECT) != 0) {
        close(fd);
        return; /* this file system does not support it */
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_DIRECT);
    ck_assert_int_eq(fill(fd, 530342, 131066), 0);
    ck_assert_int_eq(disk.bypassed, BUFFER - BYTE_SINK_HEAD);
    close(fd);
}

END_TEST

START_TEST(without_direct_io_files_are_written_normally)
{
    disk.refuse = true;
    check_sizes();
    ck_assert_int_eq(disk.bypassed, 0);
}

END_TEST

START_TEST(one_buffer_serves_file_after_file)
{
    struct byte_sink sink;
    disk.full_at = BYTE_SINK_HEAD; /* of the first */
    uint8_t *bytes = calloc(1, BUFFER);
    int fd = open_file();
    ck_assert_int_eq(byte_sink_open(&sink, fd, true), 0);
    byte_sink_append(&sink, bytes, BUFFER);
    ck_assert_int_eq(byte_sink_finish(&sink), -ENOSPC);
    close(fd);
    disk.full_at = 0;
    for (size_t i = 0; i < BUFFER; i++)
        bytes[i] = byte_at(i);
    for (size_t size = 1000; size <= BUFFER; size += BUFFER - 1000) {
        fd = open_file();
        byte_sink_restart(&sink, fd);
        byte_sink_append(&sink, bytes, size);
        ck_assert_int_eq(byte_sink_finish(&sink), 0);
        ck_assert_int_eq(sink.total, (int64_t)size);
        check(fd, size);
        close(fd);
    }
    ck_assert_int_gt(disk.bypassed, 0); /* also after an error */
    byte_sink_close(&sink);
    free(bytes);
}

END_TEST

START_TEST(a_full_disk_is_reported)
{
    disk.full_at = 1;
    int fd = open_file();
    ck_assert_int_eq(fill(fd, 2000000, 131066), -ENOSPC);
    close(fd);
    disk.full_at = 2 * BUFFER;
    fd = open_file();
    ck_assert_int_eq(fill(fd, 2000000, 131066), -ENOSPC);
    close(fd);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("byte_sink");
    TCase *tests = tcase_create("past_cache");
    tcase_add_checked_fixture(tests, set_up, scratch_remove);
    tcase_add_test(tests, files_of_any_size_are_complete);
    tcase_add_test(tests, short_writes_are_continued);
    tcase_add_test(tests, the_bulk_bypasses_the_cache);
    tcase_add_test(tests, without_direct_io_files_are_written_normally);
    tcase_add_test(tests, one_buffer_serves_file_after_file);
    tcase_add_test(tests, a_full_disk_is_reported);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
