/* progress.h - a progress bar on the terminal with the remaining time. Thread-safe. */
#ifndef NOCTULE_SERVICE_CLI_PROGRESS_H
#define NOCTULE_SERVICE_CLI_PROGRESS_H

#include <stdbool.h>

struct progress;

/*
 * Opens a bar on standard error. The bar is not drawn if `wanted` is false or standard error is not
 * a terminal. Returns NULL without memory.
 */
struct progress *progress_open(bool wanted);
/* Begins a job with this title. */
void progress_begin(struct progress *progress, const char *title);
/* Updates the bar, as the callback of struct pipeline_watch. context is the struct progress. */
void progress_update(void *context, const char *stage, double fraction);
/* Erases the bar, so that other lines can be printed. */
void progress_clear(struct progress *progress);
void progress_close(struct progress *progress);

#endif
