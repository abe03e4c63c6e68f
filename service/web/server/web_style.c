/* web_style.c - the style sheets of the web UI within the program, in the order in which they apply. */
#include "service/web/pages/web_view.h"

/* NOCTULE_STYLES is the folder service/web/style (service/CMakeLists.txt). */
#define STYLE(file) ".incbin \"" NOCTULE_STYLES "/" file "\"\n"

/* clang-format off */
__asm__(".pushsection .rodata\n"
        ".globl web_style\n"
        ".hidden web_style\n"
        ".type web_style, %object\n"
        "web_style:\n"
        STYLE("frame.css")
        STYLE("list.css")
        STYLE("overview.css")
        STYLE("reports.css")
        STYLE("review.css")
        STYLE("similar.css")
        ".byte 0\n"
        ".size web_style, . - web_style\n"
        ".popsection\n");
/* clang-format on */
