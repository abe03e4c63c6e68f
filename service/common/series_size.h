/* series_size.h - is a series larger than the configuration lets one be (SERIES_TOO_LARGE)? */
#ifndef NOCTULE_SERVICE_COMMON_SERIES_SIZE_H
#define NOCTULE_SERVICE_COMMON_SERIES_SIZE_H

#include "base/error.h"
#include "config/config.h"

#include <stdint.h>

/* 0, or -E2BIG with the error: which series, how large, and what to change. */
int series_size_check(const struct conf_series *most, const char *series_uid, int64_t instances,
                      int64_t bytes, struct error *error);

#endif
