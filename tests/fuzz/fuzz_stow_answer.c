/* fuzz_stow_answer.c - any bytes as what a STOW-RS service says of an instance: nothing is read beyond them, and nothing
 * is stored that is not named. */
#include "service/common/stow/stow_answer.h"

#include <stdlib.h>
#include <string.h>

static const char instance[] = "2.25.7";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct stow_answer answer;
    char *copy = malloc(size ? size : 1); /* so that a sanitizer sees where it ends */
    memcpy(copy, bytes, size);
    stow_answer_read(copy, size, instance, &answer);
    if (answer.reason < -1 || answer.reason > UINT16_MAX || answer.warning < 0 ||
        answer.warning > UINT16_MAX)
        abort();
    if (answer.stored && !memmem(bytes, size, instance, strlen(instance)))
        abort();
    free(copy);
    return 0;
}
