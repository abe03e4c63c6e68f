/*
 * terminal.h - where a stream's text is seen: on a terminal, so many columns wide. For one thread.
 */
#ifndef NOCTULE_TERMINAL_H
#define NOCTULE_TERMINAL_H

#include <stdio.h>

/* What is written to a stream in memory goes to this file then; NULL: to none any more. */
void terminal_stand_in(FILE *memory, int fd);
/* The file that a stream's text goes to; -1: to none. */
int terminal_of(FILE *out);
/* INT_MAX where it is no terminal. */
int terminal_columns(FILE *out);

#endif
