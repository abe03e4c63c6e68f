#include "kernels/gpu.h"

#include <stdio.h>

/* The oldest driver per major version of programs (NVIDIA, CUDA Compatibility, table 1). */
static const struct {
    int major, series;
} oldest_drivers[] = {{11, 450}, {12, 525}, {13, 580}};

int
kernels_gpus(struct kernels_gpu *gpus, int capacity)
{
#ifdef NOCTULE_CUDA
    return cuda_gpus(gpus, capacity);
#else
    (void)gpus;
    (void)capacity;
    return 0;
#endif
}

int
kernels_cuda_version(void)
{
#ifdef NOCTULE_CUDA
    return cuda_version();
#else
    return 0;
#endif
}

bool
kernels_driver_serves(int driver, int program)
{
    return driver / 1000 >= program / 1000;
}

void
kernels_driver_refusal(int driver, int program, char *text, size_t size)
{
    char series[32] = "";

    for (size_t i = 0; i < sizeof oldest_drivers / sizeof *oldest_drivers; i++)
        if (oldest_drivers[i].major == program / 1000)
            snprintf(series, sizeof series, ", %d or later", oldest_drivers[i].series);
    snprintf(text, size,
             "the NVIDIA driver is for CUDA up to %d.%d, and this program was made with %d.%d: it "
             "needs a driver for CUDA %d%s",
             driver / 1000, driver % 1000 / 10, program / 1000, program % 1000 / 10, program / 1000, series);
}
