/*
 * echoes.h - C-ECHO on behalf of operators: asked of the courier, and answered when it has heard.
 */
#ifndef NOCTULE_ECHOES_H
#define NOCTULE_ECHOES_H

#include "control.h"
#include "core.h"

struct echoes;

int echoes_open(struct core *core, struct echoes **echoes);
/* Leaves those who wait without an answer. NULL is allowed. */
void echoes_close(struct echoes *echoes);

/* Answers the client now or later. */
void echoes_ask(struct echoes *echoes, struct control *control, int64_t client,
                const char *destination);
/* The courier's ECHOED. */
void echoes_frame(struct echoes *echoes, struct proto_reader *reader);
void echoes_courier_gone(struct echoes *echoes);

#endif
