/* html_style.c - the style sheet of reports and the web UI within the program. */
#include "service/common/html/html.h"

/* NOCTULE_STYLE is the path of style.css (service/CMakeLists.txt). */
__asm__(".pushsection .rodata\n"
        ".globl html_style\n"
        ".hidden html_style\n"
        ".type html_style, %object\n"
        "html_style:\n"
        ".incbin \"" NOCTULE_STYLE "\"\n"
        ".byte 0\n"
        ".size html_style, . - html_style\n"
        ".popsection\n");
