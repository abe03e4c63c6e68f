/*
 * cielab.h - display colours as PCS-values of CIELab (PS3.3 C.10.7.1.1, D50 white of ICC).
 */
#ifndef NOCTULE_CIELAB_H
#define NOCTULE_CIELAB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Converts sRGB, each 0..1 (clamped), to L 0..65535 (for 0..100) and a, b 0..65535 (for
 * -128..127). */
void cielab_from_srgb(const double rgb[3], uint16_t lab[3]);

/* Converts back. Colours outside sRGB are clamped. */
void srgb_from_cielab(const uint16_t lab[3], double rgb[3]);

#ifdef __cplusplus
}
#endif
#endif
