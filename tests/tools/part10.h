/*
 * part10.h - builds DICOM Part 10 files from elements: explicit VR little endian, for synthetic test data.
 *
 * Elements may be put in any order; they are sorted when written. This code must not use Noctule's readers or
 * writers, nor DCMTK, so that their tests have an independent source. A failed allocation is latched and reported by
 * part10_write.
 */
#ifndef NOCTULE_PART10_H
#define NOCTULE_PART10_H

#include <stddef.h>
#include <stdint.h>

#define PART10_UID_SIZE 65

struct part10_element {
    uint32_t tag; /* group << 16 | element */
    size_t offset, size;
};

struct part10 {
    struct part10_element *elements;
    size_t count, count_capacity;
    uint8_t *bytes; /* the encoded elements, in the order of the calls */
    size_t size, size_capacity;
    int error;
};

/* A zeroed struct part10 is an empty data set. To replace an element, put it again. */
void part10_release(struct part10 *set);
void part10_remove(struct part10 *set, uint32_t tag);

void part10_bytes(struct part10 *set, uint32_t tag, const char *vr, const void *bytes, size_t size);
void part10_text(struct part10 *set, uint32_t tag, const char *vr, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void part10_us(struct part10 *set, uint32_t tag, unsigned value);
void part10_ss(struct part10 *set, uint32_t tag, int value);
void part10_ul(struct part10 *set, uint32_t tag, uint32_t value);
void part10_fd(struct part10 *set, uint32_t tag, double value);
/* Puts `count` decimal strings. A string cannot exceed 16 characters. */
void part10_ds(struct part10 *set, uint32_t tag, const double *values, size_t count);
/* Puts a sequence. The caller must release the items. */
void part10_sequence(struct part10 *set, uint32_t tag, const struct part10 *items, size_t count);
/* Adds the first item of a sequence of the set, if there is one, to `item`, which must be empty. */
void part10_first_item(const struct part10 *set, uint32_t tag, struct part10 *item);
/* Changes the VR of an element to UN. The element must not be a sequence. */
void part10_forget_vr(struct part10 *set, uint32_t tag);

/*
 * Writes preamble, file meta information (from the SOP Class and Instance UIDs in the set) and the set to
 * `path`.part, then renames it to `path`. Returns 0 or -errno.
 */
int part10_write(const struct part10 *set, const char *path);

/* Makes "2.25." and a number from the key: the same key gives the same UID. */
void part10_uid(const uint64_t *key, size_t count, char uid[PART10_UID_SIZE]);

/* Computes one step of a hash over 64-bit numbers (splitmix64). */
uint64_t part10_mix(uint64_t hash, uint64_t value);

#endif
