/* font.c - the font file within the program; see lettering.h. */
#include "service/pipeline/results/lettering.h"

/* NOCTULE_FONT is the path of DejaVuSans.ttf (service/CMakeLists.txt). */
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl font_file, font_size\n"
        ".hidden font_file, font_size\n"
        ".type font_file, %object\n"
        "font_file:\n"
        ".incbin \"" NOCTULE_FONT "\"\n"
        ".size font_file, . - font_file\n"
        ".balign 4\n"
        "font_size:\n"
        ".long font_size - font_file\n"
        ".size font_size, 4\n"
        ".popsection\n");
