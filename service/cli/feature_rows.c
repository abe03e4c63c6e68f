/* feature_rows.c - see feature_rows.h. */
#include "service/cli/feature_rows.h"

#include "db/queue.h"

#include <errno.h>
#include <stdlib.h>

static int
take(void *context, const struct feature *row)
{
    return feature_set_add(context, row);
}

int
feature_rows_read(struct report *report, int64_t job_id, int64_t segment, struct feature_set *set,
                  struct error *error)
{
    int rc = report_each_feature(report, job_id, segment, take, set, error);
    if (rc < 0)
        feature_set_clear(set);
    return rc;
}
