/* font.h - the font file within the program; private to lettering.c. */
#ifndef NOCTULE_SERVICE_PIPELINE_RESULTS_FONT_H
#define NOCTULE_SERVICE_PIPELINE_RESULTS_FONT_H

extern const unsigned char font_file[], font_file_end[];

#endif
