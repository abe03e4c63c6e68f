/*
 * ref_patterns.h - the local patterns of Masur 2022, twice: from its text, and from its listings. Each was written
 * from its own source, without the other.
 *
 * All functions take one slice and write (columns - 2) * (rows - 2) codes, x fastest. A thinner slice has no codes.
 * The listings do not specify types and one name; see ref_patterns.c.
 */
#ifndef NOCTULE_REF_PATTERNS_H
#define NOCTULE_REF_PATTERNS_H

#include <stdint.h>

struct ref_slice {
    int64_t columns, rows;
    const int32_t *values; /* stored values, x fastest */
};

/* From the text: "higher or equal" everywhere, averages and the threshold exact. */
void ref_lbp_text(const struct ref_slice *slice, uint8_t *codes);
void ref_tlbap_text(const struct ref_slice *slice, int32_t threshold_millionths, uint8_t *codes);
void ref_lanadp_text(const struct ref_slice *slice, uint8_t *codes);

/* From algorithms 1 and 2: strictly higher, averages of integers. */
void ref_tlbap_listing(const struct ref_slice *slice, int32_t threshold_millionths, uint8_t *codes);
void ref_lanadp_listing(const struct ref_slice *slice, uint8_t *codes);

#endif
