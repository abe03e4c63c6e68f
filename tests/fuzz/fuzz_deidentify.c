/*
 * fuzz_deidentify.c - any bytes as an object for a de-identified copy: refused with a reason, or a copy with the pseudonym,
 * of which a copy can be made again.
 */
#include "dicom/deidentify/deidentify.h"
#include "tests/fuzz/must.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char *const words[] = {"brain", "head"};

static int
digest_of(const void *key, const char *text, uint8_t digest[DEIDENTIFY_DIGEST])
{
    (void)key;
    uint64_t sum = 14695981039346656037U; /* FNV-1a */
    for (; *text; text++)
        sum = (sum ^ (uint8_t)*text) * 1099511628211U;
    for (int i = 0; i < DEIDENTIFY_DIGEST; i++)
        digest[i] = (uint8_t)(sum >> 8 * (i % 8));
    return 0;
}

static int
make_copy(const struct deidentify *how, int from, int to, struct error *error)
{
    char path[64];
    struct dicom_form made;
    snprintf(path, sizeof path, "/proc/self/fd/%d", from);
    struct dicom_identity identity;
    const int rc = deidentify_file(how, path, to, &made, error);
    if (rc) {
        must_be_error(rc, error);
        return rc;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", to);
    dicom_identify(path, &identity);
    must(strncmp(identity.patient_id, "h:", 2) == 0);
    return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dicom_init();
    const int from = memfd_create("from", MFD_CLOEXEC), to = memfd_create("to", MFD_CLOEXEC),
              again = memfd_create("again", MFD_CLOEXEC);
    must(from >= 0 && to >= 0 && again >= 0 && write(from, bytes, size) == (ssize_t)size);
    const struct deidentify how = {
        .keep = size % 128, .released = true, .digest = digest_of, .words = words, .word_count = 2};
    struct error error = {0};
    if (make_copy(&how, from, to, &error) == 0)
        must(make_copy(&how, to, again, &error) == 0);
    close(from);
    close(to);
    close(again);
    return 0;
}
