/* part10.c - builds DICOM Part 10 files from elements. */
#include "tests/tools/part10.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOP_CLASS_UID    0x00080016u
#define SOP_INSTANCE_UID 0x00080018u

static void *
grow(void *memory, size_t *capacity, size_t needed, size_t element_size)
{
    if (needed <= *capacity)
        return memory;
    size_t wanted = needed + needed / 2 + 16;
    void *grown = realloc(memory, wanted * element_size);
    if (grown)
        *capacity = wanted;
    return grown;
}

static void
put_raw(struct part10 *set, const void *bytes, size_t size)
{
    uint8_t *grown = set->error ? NULL : grow(set->bytes, &set->size_capacity, set->size + size, 1);
    if (!grown) {
        set->error = -ENOMEM;
        return;
    }
    set->bytes = grown;
    if (size > 0)
        memcpy(set->bytes + set->size, bytes, size);
    set->size += size;
}

static void
put_u16(struct part10 *set, unsigned value)
{
    const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    put_raw(set, bytes, sizeof(bytes));
}

static void
put_u32(struct part10 *set, uint32_t value)
{
    put_u16(set, value & 0xffff);
    put_u16(set, value >> 16);
}

static void
put_tag(struct part10 *set, uint32_t tag)
{
    put_u16(set, tag >> 16);
    put_u16(set, tag & 0xffff);
}

static bool
has_long_length(const char *vr)
{
    static const char long_ones[] = "OB OD OF OL OW SQ UC UN UR UT";
    return strstr(long_ones, vr) != NULL;
}

static size_t
head_size(const char *vr)
{
    return has_long_length(vr) ? 12 : 8;
}

static const struct part10_element *
find_element(const struct part10 *set, uint32_t tag)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->elements[i].tag == tag)
            return &set->elements[i];
    return NULL;
}

void
part10_remove(struct part10 *set, uint32_t tag)
{
    const struct part10_element *found = set->error ? NULL : find_element(set, tag);
    if (!found)
        return;
    const struct part10_element gone = *found;
    memmove(set->bytes + gone.offset, set->bytes + gone.offset + gone.size, set->size - gone.offset - gone.size);
    set->size -= gone.size;
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct part10_element element = set->elements[i];
        if (element.offset > gone.offset)
            element.offset -= gone.size;
        if (element.tag != tag)
            set->elements[kept++] = element;
    }
    set->count = kept;
}

/* Records the element that begins here and writes its header. */
static void
begin_element(struct part10 *set, uint32_t tag, const char *vr, size_t length)
{
    part10_remove(set, tag);
    struct part10_element *grown = grow(set->elements, &set->count_capacity, set->count + 1, sizeof(*grown));
    if (!grown) {
        set->error = -ENOMEM;
        return;
    }
    set->elements = grown;
    set->elements[set->count++] = (struct part10_element){.tag = tag, .offset = set->size};
    put_tag(set, tag);
    put_raw(set, vr, 2);
    if (has_long_length(vr)) {
        put_u16(set, 0);
        put_u32(set, (uint32_t)length);
    } else {
        put_u16(set, (unsigned)length);
    }
}

static void
end_element(struct part10 *set)
{
    if (set->error)
        return;
    struct part10_element *element = &set->elements[set->count - 1];
    element->size = set->size - element->offset;
}

void
part10_release(struct part10 *set)
{
    free(set->elements);
    free(set->bytes);
    *set = (struct part10){0};
}

void
part10_bytes(struct part10 *set, uint32_t tag, const char *vr, const void *bytes, size_t size)
{
    static const char padded_with_blanks[] = "AE AS CS DA DS DT IS LO LT PN SH ST TM UC UR UT";
    const char *padding = strstr(padded_with_blanks, vr) ? " " : "";
    begin_element(set, tag, vr, size + size % 2);
    put_raw(set, bytes, size);
    if (size % 2)
        put_raw(set, padding, 1);
    end_element(set);
}

void
part10_text(struct part10 *set, uint32_t tag, const char *vr, const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= sizeof(text)) {
        set->error = -EMSGSIZE;
        return;
    }
    part10_bytes(set, tag, vr, text, (size_t)length);
}

void
part10_us(struct part10 *set, uint32_t tag, unsigned value)
{
    const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    part10_bytes(set, tag, "US", bytes, sizeof(bytes));
}

void
part10_ss(struct part10 *set, uint32_t tag, int value)
{
    const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)((unsigned)value >> 8)};
    part10_bytes(set, tag, "SS", bytes, sizeof(bytes));
}

void
part10_ul(struct part10 *set, uint32_t tag, uint32_t value)
{
    begin_element(set, tag, "UL", 4);
    put_u32(set, value);
    end_element(set);
}

void
part10_fd(struct part10 *set, uint32_t tag, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    begin_element(set, tag, "FD", 8);
    put_u32(set, (uint32_t)bits);
    put_u32(set, (uint32_t)(bits >> 32));
    end_element(set);
}

void
part10_ds(struct part10 *set, uint32_t tag, const double *values, size_t count)
{
    char text[256];
    size_t at = 0;
    for (size_t i = 0; i < count && at < sizeof(text); i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.9g", i ? "\\" : "", values[i]);
    part10_text(set, tag, "DS", "%s", text);
}

static int
compare_tags(const void *a, const void *b)
{
    const struct part10_element *left = a, *right = b;
    return (left->tag > right->tag) - (left->tag < right->tag);
}

/* Appends the set's elements, sorted by tag. */
static void
put_sorted(struct part10 *out, const struct part10 *set)
{
    if (set->error)
        out->error = set->error;
    if (set->count == 0)
        return;
    struct part10_element *sorted = malloc(set->count * sizeof(*sorted));
    if (!sorted) {
        out->error = -ENOMEM;
        return;
    }
    memcpy(sorted, set->elements, set->count * sizeof(*sorted));
    qsort(sorted, set->count, sizeof(*sorted), compare_tags);
    for (size_t i = 0; i < set->count; i++)
        put_raw(out, set->bytes + sorted[i].offset, sorted[i].size);
    free(sorted);
}

void
part10_sequence(struct part10 *set, uint32_t tag, const struct part10 *items, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += 8 + items[i].size;
    begin_element(set, tag, "SQ", length);
    for (size_t i = 0; i < count; i++) {
        put_tag(set, 0xfffee000u);
        put_u32(set, (uint32_t)items[i].size);
        put_sorted(set, &items[i]);
    }
    end_element(set);
}

static uint32_t
read_u32(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void
put_encoded(struct part10 *set, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0, head; at < size && !set->error;) {
        const char vr[3] = {(char)bytes[at + 4], (char)bytes[at + 5]};
        head = head_size(vr);
        const size_t length = head == 12 ? read_u32(bytes + at + 8) : bytes[at + 6] | (size_t)bytes[at + 7] << 8;
        const uint32_t tag =
            (uint32_t)(bytes[at] | bytes[at + 1] << 8) << 16 | (uint32_t)(bytes[at + 2] | bytes[at + 3] << 8);
        begin_element(set, tag, vr, length);
        put_raw(set, bytes + at + head, length);
        end_element(set);
        at += head + length;
    }
}

void
part10_first_item(const struct part10 *set, uint32_t tag, struct part10 *item)
{
    const struct part10_element *sequence = find_element(set, tag);
    if (!sequence || sequence->size <= 12)
        return;
    const uint8_t *bytes = set->bytes + sequence->offset + 12;
    put_encoded(item, bytes + 8, read_u32(bytes + 4));
}

void
part10_forget_vr(struct part10 *set, uint32_t tag)
{
    const struct part10_element *found = find_element(set, tag);
    if (!found)
        return;
    const char vr[3] = {(char)set->bytes[found->offset + 4], (char)set->bytes[found->offset + 5]};
    const size_t head = head_size(vr), size = found->size - head;
    uint8_t *value = malloc(size + 1);
    if (!value) {
        set->error = -ENOMEM;
        return;
    }
    memcpy(value, set->bytes + found->offset + head, size);
    part10_bytes(set, tag, "UN", value, size);
    free(value);
}

/* Finds the value of a UI element, without its padding. */
static void
find_uid(const struct part10 *set, uint32_t tag, char uid[PART10_UID_SIZE])
{
    const struct part10_element *element = find_element(set, tag);
    const size_t length = element ? element->size - 8 : 0;
    if (length < PART10_UID_SIZE && element)
        memcpy(uid, set->bytes + element->offset + 8, length);
    uid[length < PART10_UID_SIZE ? length : 0] = '\0';
}

static void
put_meta(struct part10 *out, const struct part10 *set)
{
    static const uint8_t preamble[128];
    static const uint8_t version[2] = {0, 1};
    char sop_class[PART10_UID_SIZE], sop_instance[PART10_UID_SIZE];
    find_uid(set, SOP_CLASS_UID, sop_class);
    find_uid(set, SOP_INSTANCE_UID, sop_instance);
    struct part10 meta = {0};
    part10_bytes(&meta, 0x00020001u, "OB", version, sizeof(version));
    part10_text(&meta, 0x00020002u, "UI", "%s", sop_class);
    part10_text(&meta, 0x00020003u, "UI", "%s", sop_instance);
    part10_text(&meta, 0x00020010u, "UI", "1.2.840.10008.1.2.1");
    part10_text(&meta, 0x00020012u, "UI", "2.25.274629461003498216750913482660547199541");
    part10_text(&meta, 0x00020013u, "SH", "PHANTOM");
    put_raw(out, preamble, sizeof(preamble));
    put_raw(out, "DICM", 4);
    part10_ul(out, 0x00020000u, (uint32_t)meta.size);
    put_sorted(out, &meta);
    part10_release(&meta);
}

static int
write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t done = write(fd, bytes, size);
        if (done < 0 && errno != EINTR)
            return -errno;
        if (done > 0) {
            bytes += done;
            size -= (size_t)done;
        }
    }
    return 0;
}

static int
publish(const struct part10 *file, const char *path)
{
    char *part;
    if (asprintf(&part, "%s.part", path) < 0)
        return -ENOMEM;
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int rc = fd < 0 ? -errno : write_all(fd, file->bytes, file->size);
    if (fd >= 0 && close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(part, path) < 0)
        rc = -errno;
    if (rc < 0 && fd >= 0)
        unlink(part);
    free(part);
    return rc;
}

int
part10_write(const struct part10 *set, const char *path)
{
    struct part10 file = {0};
    put_meta(&file, set);
    put_sorted(&file, set);
    int rc = file.error ? file.error : publish(&file, path);
    part10_release(&file);
    return rc;
}

uint64_t
part10_mix(uint64_t hash, uint64_t value)
{
    uint64_t x = hash * 0x9e3779b97f4a7c15u + value + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void
part10_uid(const uint64_t *key, size_t count, char uid[PART10_UID_SIZE])
{
    uint64_t high = 1, low = 2;
    for (size_t i = 0; i < count; i++) {
        high = part10_mix(high, key[i]);
        low = part10_mix(low, key[i]);
    }
    /* Make it a random UUID (PS3.5, B.2), whose version and variant bits are fixed. */
    high = (high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
    low = (low & ~(UINT64_C(3) << 62)) | (UINT64_C(2) << 62);
    char digits[40];
    size_t at = sizeof(digits);
    digits[--at] = '\0';
    for (unsigned __int128 value = (unsigned __int128)high << 64 | low; value > 0; value /= 10)
        digits[--at] = (char)('0' + (int)(value % 10));
    snprintf(uid, PART10_UID_SIZE, "2.25.%s", digits + at);
}
