/*
 * terminal.h - width of the terminal that shows the text of a stream. For one thread.
 */
#ifndef NOCTULE_BASE_TERMINAL_H
#define NOCTULE_BASE_TERMINAL_H

#include <stdio.h>

/* Declares that text of the stream `memory` is later written to `fd`. NULL ends the declaration. */
void terminal_stand_in(FILE *memory, int fd);
/* Returns the file descriptor of a stream's text, or -1. */
int terminal_of(FILE *out);
/* Returns the columns of the terminal, or INT_MAX if the file is not a terminal. */
int terminal_columns(FILE *out);

#endif
