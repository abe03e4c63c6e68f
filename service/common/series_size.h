/* series_size.h - check the size of a series against the configured limits (SERIES_TOO_LARGE). */
#ifndef NOCTULE_SERVICE_COMMON_SERIES_SIZE_H
#define NOCTULE_SERVICE_COMMON_SERIES_SIZE_H

#include "base/error.h"
#include "config/config.h"

#include <stdint.h>

/* Returns 0, or -E2BIG with an error that names the series, its size and the option to change. */
int series_size_check(const struct conf_series *limits, const char *series_uid, int64_t instances,
                      int64_t bytes, struct error *error);

#endif
