/* troubles.h - what is not well: for whoever asks, in PING's answer, which `noctule status` shows, and for the page. */
#ifndef NOCTULE_TROUBLES_H
#define NOCTULE_TROUBLES_H

#include "service/daemon/core.h"

/*
 * Lines "LEVEL<tab>SINCE<tab>what it is": SINCE in Unix milliseconds, 0 where it is not known.
 * malloc'd; NULL: no memory.
 */
char *troubles_to_text(const struct core *core);

/* CONDITION, to the page if one is there: what is broken. */
void troubles_tell_page(const struct core *core);

#endif
