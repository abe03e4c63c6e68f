/* must.h - aborts if a target breaks a guarantee, for any input. */
#ifndef NOCTULE_FUZZ_MUST_H
#define NOCTULE_FUZZ_MUST_H

#include "dicom/dicom.h"

#include <stdlib.h>
#include <string.h>

static inline void
must(bool condition)
{
    if (!condition)
        abort();
}

static inline void
must_be_error(int rc, const struct error *error)
{
    must(rc < 0 && error->code != CODE_NONE && error->message[0]);
}

static inline bool
is_uid(const char *text)
{
    const size_t length = strlen(text);
    return length > 0 && length < DICOM_UID_SIZE && strspn(text, "0123456789.") == length;
}

#endif
