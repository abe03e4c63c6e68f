/*
 * deidentify.h - copies of DICOM objects without the identity of the patient: PS3.15 Annex E, table E.1-1
 * (attributes.def), docs/conformance.md.
 *
 * Equal files, settings and keys give equal bytes. UIDs, the patient's pseudonym and the shift of dates depend only on
 * the key and on the original value, so copies that were made at different times fit together. Pixels are copied byte
 * for byte and never decoded, without other texts in Pixel Data (pixel_texts.hh). Burned-in text stays. Objects that
 * may have it are therefore refused until a person has released them.
 */
#ifndef NOCTULE_DICOM_DEIDENTIFY_DEIDENTIFY_H
#define NOCTULE_DICOM_DEIDENTIFY_DEIDENTIFY_H

#include "dicom/net/scu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Options of the profile, OR-able. The first six are the columns of attributes.def. */
enum deidentify_keep {
    DEIDENTIFY_UIDS = 1 << 0,
    DEIDENTIFY_DEVICE = 1 << 1,
    DEIDENTIFY_INSTITUTION = 1 << 2,
    DEIDENTIFY_CHARACTERISTICS = 1 << 3,
    DEIDENTIFY_DATES = 1 << 4,
    DEIDENTIFY_DESCRIPTORS = 1 << 5,
    DEIDENTIFY_SAFE_PRIVATE = 1 << 6,
};

enum { DEIDENTIFY_DIGEST = 32, DEIDENTIFY_WORD = 27 };

/* Settings. One may be used by several threads. */
struct deidentify {
    unsigned keep;   /* enum deidentify_keep */
    bool no_patient; /* Patient ID and name are left empty, instead of a pseudonym */
    bool released;   /* a person looked at the pixels: text that may be burned in is no reason to refuse */
    /* Computes a keyed digest of a text. Returns 0 or -ENOMEM. */
    int (*digest)(const void *key, const char *text, uint8_t digest[DEIDENTIFY_DIGEST]);
    const void *key;
    /* Words that a cleaned text may keep, in lower case (ASCII), sorted by strcmp. */
    const char *const *words;
    size_t word_count;
};

/* Computes the UID that replaces another one. UIDs of the DICOM standard stay. Returns 0 or -ENOMEM. */
int deidentify_uid(const struct deidentify *how, const char *uid, char replaced[DICOM_UID_SIZE]);
/* Computes the pseudonym of a Patient ID, "h:" and 24 digits, as service/common/pseudonym.h does. Returns 0 or -ENOMEM. */
int deidentify_patient(const struct deidentify *how, const char *patient_id, char pseudonym[DEIDENTIFY_WORD]);

/* Writes a text (UTF-8) without the words that are not on the list. Returns false if no word is left, or if there is not
 * enough memory or room. */
bool deidentify_text(const struct deidentify *how, const char *text, size_t length, char *cleaned, size_t size);

/* Returns 0 if deidentify_file() makes a copy of a readable object without a person's release. Reads no pixels. Codes:
 * BURNED_IN_TEXT, DEIDENTIFY_CLASS, OUT_OF_MEMORY, TAG_INVALID or FILE_UNREADABLE. */
int deidentify_check(const char *path, struct error *error);

/*
 * Writes the copy of the object at `path` to `fd` (a regular file, open for writing, at offset 0), which the caller must
 * close. A deflated data set is inflated. `made`: the form of the copy. Memory does not grow with native or encapsulated
 * pixel data, except with fragments that have texts. Codes: DEIDENTIFY_CLASS if the class has no rules here,
 * BURNED_IN_TEXT, WRITE_FAILED, OUT_OF_MEMORY, PIXELS_UNDECODABLE if a code stream cannot be searched for texts, and
 * TAG_INVALID or FILE_UNREADABLE if the file cannot be parsed.
 */
int deidentify_file(const struct deidentify *how, const char *path, int fd, struct dicom_form *made,
                    struct error *error);

#ifdef __cplusplus
}
#endif
#endif
