/*
 * done_by.h - pipelines whose results cannot be there when they are wanted, whatever else there is to do: their window does
 * not open before, or not for as long as a job takes by what was measured here. Known before any job is late.
 */
#ifndef NOCTULE_CLI_DONE_BY_H
#define NOCTULE_CLI_DONE_BY_H

#include "config/config.h"

struct report;

/*
 * Each as a trouble; a negative errno of take ends it and is returned. Without a report nothing is measured.
 * queued: also where what waits for the pipeline takes longer than its window is open until then; of the windows that the
 * daemon has, v_wanted tells that.
 */
int done_by_each_doubt(const struct conf *conf, struct report *report, bool queued, int64_t now_ms,
                       int (*take)(void *context, int level, int64_t since_ms, const char *text),
                       void *context);

#endif
