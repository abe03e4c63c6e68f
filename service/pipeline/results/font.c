/* font.c - the font file within the program; see lettering.h. */
#include "service/pipeline/results/font.h"

/* NOCTULE_FONT is the path of DejaVuSans.ttf (service/CMakeLists.txt). */
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl font_file, font_file_end\n"
        ".hidden font_file, font_file_end\n"
        ".type font_file, %object\n"
        "font_file:\n"
        ".incbin \"" NOCTULE_FONT "\"\n"
        "font_file_end:\n"
        ".size font_file, font_file_end - font_file\n"
        ".byte 0\n"
        ".popsection\n");
