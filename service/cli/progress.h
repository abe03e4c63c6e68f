/* progress.h - a bar on the terminal: how far a job is and how long it will take. Thread-safe. */
#ifndef NOCTULE_SERVICE_CLI_PROGRESS_H
#define NOCTULE_SERVICE_CLI_PROGRESS_H

#include <stdbool.h>

struct progress;

/* On standard error when that is a terminal and `wanted`; otherwise a bar that is never drawn.
 * NULL: no memory. */
struct progress *progress_open(bool wanted);
/* A new job begins: what it is called. */
void progress_begin(struct progress *progress, const char *title);
/* As struct pipeline_watch wants it; context is the struct progress. */
void progress_tell(void *context, const char *stage, double fraction);
/* Wipes the bar off, so that other lines can be written. */
void progress_clear(struct progress *progress);
void progress_close(struct progress *progress);

#endif
