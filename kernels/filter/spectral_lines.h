/* spectral_lines.h - the transfer function of spectral.h on the CPU. isa_private.h includes it per instruction set. */
#ifndef NOCTULE_KERNELS_FILTER_SPECTRAL_LINES_H
#define NOCTULE_KERNELS_FILTER_SPECTRAL_LINES_H

#include "kernels/filter/spectral.h"

LOOP void
spectral_apply(const struct spectral_plan *plan, int64_t kx, int64_t ky, struct fft_lanes *values)
{
    const struct spectral_plan own = *plan;
    const int64_t last = own.axis[0].fft.side - 1;
    const double real = own.order % 2 == 0 ? 1 : 0, imaginary = 1 - real;
    struct spectral_sums sums[FFT_LANES];

    for (int64_t lane = 0; lane < FFT_LANES; lane++)
        sums[lane] = spectral_sums_at(&own, kx + lane < last ? kx + lane : last, ky);
    for (int64_t kz = 0; kz < own.axis[2].fft.side; kz++) {
        double *const re = values[kz].part[0], *const im = values[kz].part[1];
        double gain[FFT_LANES];

        for (int lane = 0; lane < FFT_LANES; lane++)
            gain[lane] = spectral_gain(&own, &sums[lane], kz);
        for (int lane = 0; lane < FFT_LANES; lane++) { /* one of the products is 0 */
            const double a = re[lane] * gain[lane], b = im[lane] * gain[lane];

            re[lane] = a * real + b * imaginary;
            im[lane] = b * real - a * imaginary;
        }
    }
}

#endif
