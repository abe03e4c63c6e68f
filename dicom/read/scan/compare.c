/*
 * compare.c - computes digests of data sets, and compares data sets independently of their
 * encoding.
 */
#include "dicom/read/scan/scan_header.h"
#include "dicom/value/uid.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/*
 * Digest and encoding of a data set. SHA-256 always digests the attributes.
 *
 * For an identity, XXH3 digests pixel data, ten times as fast: two different instances must not get
 * equal digests by accident. For a comparison, SHA-256 digests all: an instance found equal is
 * dropped, so a sender must not be able to forge one.
 */
struct content {
    XXH3_state_t *pixels; /* NULL: SHA-256 for all */
    char digest[DICOM_UID_SIZE];
    char syntax[DICOM_UID_SIZE];
    bool plain; /* uncompressed little endian values: independent of the transfer syntax */
};

static void
content_add(void *name, const void *bytes, size_t size)
{
    uid_name_bytes(name, bytes, size);
}

static void
content_add_fast(void *pixels, const void *bytes, size_t size)
{
    XXH3_128bits_update(pixels, bytes, size);
}

/* Digests the next bytes of the pixel data. */
static int
content_show_pixels(struct stream *stream, int64_t count, struct content *content, struct uid_name *name)
{
    if (!content->pixels)
        return stream_show(stream, count, content_add, name);
    XXH3_128bits_reset(content->pixels);
    int rc = stream_show(stream, count, content_add_fast, content->pixels);
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(content->pixels));
    uid_name_bytes(name, &digest, sizeof digest);
    return rc;
}

/* Digests a data set, its pixel data and the bytes after it, except padding. */
static int
content_add_all(struct stream *stream, struct content *content, struct uid_name *name)
{
    static const uint8_t padding[] = {0xFC, 0xFF, 0xFC, 0xFF};
    const struct scan_wanted wanted = {.content = content_add, .context = name};
    struct scan scan;
    struct error error;
    int rc = scan_file(stream, "", &wanted, &scan, &error);
    if (!rc && scan.pixel_tag) {
        uid_name_number(name, scan.pixel_tag);
        if (!scan.encapsulated)
            rc = content_show_pixels(stream, scan.pixel_length, content, name);
        const uint8_t *rest = rc ? NULL : stream_peek(stream, sizeof padding, &rc);
        if (!rc && memcmp(rest, padding, sizeof padding) != 0)
            rc = content_show_pixels(stream, INT64_MAX, content, name);
        rc = rc == -ENODATA ? 0 : rc;
    }
    content->plain = !scan.encapsulated && !scan.big_endian;
    memcpy(content->syntax, scan.transfer_syntax_uid, sizeof content->syntax);
    uid_name_text(name, content->plain ? "" : content->syntax);
    scan_release(&scan);
    return rc;
}

static int
content_read(int fd, struct content *content)
{
    struct stream stream;
    struct uid_name *name;
    int rc = stream_open_again(&stream, fd);
    if (rc)
        return rc;
    rc = uid_name_begin(&name);
    if (!rc) {
        rc = content_add_all(&stream, content, name);
        if (rc == -EBADMSG) {
            /* Digest the bytes of a data set that cannot be walked to its end. */
            stream_rewind(&stream);
            rc = stream_show(&stream, INT64_MAX, content_add, name);
            rc = rc == -ENODATA ? 0 : rc;
        }
        const int ended = uid_name_end(name, content->digest);
        rc = rc ? rc : ended;
    }
    stream_close(&stream);
    return rc;
}

int
dicom_compare(int a, int b, enum dicom_likeness *likeness)
{
    struct content first = {0}, second = {0};
    *likeness = DICOM_DIFFERENT;
    int rc = content_read(a, &first);
    if (!rc)
        rc = content_read(b, &second);
    if (rc)
        return rc;
    if (strcmp(first.digest, second.digest) == 0)
        *likeness = DICOM_SAME;
    else if (strcmp(first.syntax, second.syntax) != 0 && !(first.plain && second.plain))
        *likeness = DICOM_RECODED;
    return 0;
}

int
dicom_digest(const char *path, char digest[DICOM_UID_SIZE], struct error *error)
{
    struct content content = {.pixels = XXH3_createState()};
    const int fd = content.pixels ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int rc = !content.pixels ? -ENOMEM : fd < 0 ? -errno : content_read(fd, &content);
    if (fd >= 0)
        close(fd);
    XXH3_freeState(content.pixels);
    if (rc)
        return error_set_files(error, rc, rc == -ENOMEM ? CODE_OUT_OF_MEMORY : CODE_FILE_UNREADABLE, path, NULL,
                               "%s cannot be read for its digest: %s.", text_base_name(path), strerror(-rc));
    memcpy(digest, content.digest, DICOM_UID_SIZE);
    return 0;
}
