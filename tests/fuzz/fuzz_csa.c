/* fuzz_csa.c - any bytes as a Siemens CSA header: values must lie within the input. */
#include "dicom/read/vendor/csa.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"NumberOfImagesInMosaic", "B_value", "DiffusionGradientDirection", "B_matrix",
                                        ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char values[6][CSA_VALUE];
        const size_t count = csa_values(bytes, size, names[i], values, 6);
        for (size_t v = 0; v < count; v++)
            if (!values[v][0] || !memchr(values[v], '\0', CSA_VALUE))
                abort();
        if (count > 6)
            abort();
    }
    return 0;
}
