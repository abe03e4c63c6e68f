/*
 * fuzz_stow_answer.c - any bytes as the answer of a STOW-RS service. The reader must not read beyond them, and must
 * only mark an instance as stored if the answer names it.
 */
#include "service/common/stow/stow.h"

#include <stdlib.h>
#include <string.h>

static const char instance[] = "2.25.7";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stow_answer answer;
    char *copy = malloc(size ? size : 1); /* a sanitizer detects reads beyond its end */
    memcpy(copy, bytes, size);
    stow_answer_read(copy, size, instance, &answer);
    if (answer.reason < -1 || answer.reason > UINT16_MAX || answer.warning < 0 || answer.warning > UINT16_MAX)
        abort();
    if (answer.stored && !memmem(bytes, size, instance, strlen(instance)))
        abort();
    free(copy);
    return 0;
}
