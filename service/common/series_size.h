/* series_size.h - check the size of a series against the configured limits (SERIES_TOO_LARGE). */
#ifndef NOCTULE_SERVICE_COMMON_SERIES_SIZE_H
#define NOCTULE_SERVICE_COMMON_SERIES_SIZE_H

#include "base/error.h"
#include "config/config.h"

#include <errno.h>
#include <stdint.h>

/* Returns 0, or -E2BIG with an error that names the series, its size and the option to change. */
static inline int
series_size_check(const struct conf_series *limits, const char *series_uid, int64_t instances, int64_t bytes,
                  struct error *error)
{
    const double mib = (double)bytes / (1 << 20);
    if (instances > limits->max_instances)
        return error_set(error, -E2BIG, CODE_SERIES_TOO_LARGE,
                         "series %s has %lld instances, and series.max_instances is %d: raise it, or split the series",
                         series_uid, (long long)instances, limits->max_instances);
    if (mib > limits->max_mib)
        return error_set(error, -E2BIG, CODE_SERIES_TOO_LARGE,
                         "the files of series %s have %.1f MiB, and series.max_mib is %.1f: raise "
                         "it, or split the series",
                         series_uid, mib, limits->max_mib);
    return 0;
}

#endif
