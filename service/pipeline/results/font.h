/* font.h - the font file within the program; private to lettering.c. */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_FONT_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_FONT_H

#include <stdint.h>

extern const unsigned char font_file[];
extern const uint32_t font_size; /* bytes, rounded up to a multiple of 4 */

#endif
