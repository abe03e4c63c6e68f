/*
 * feature_rows.h - the features of a job as the database has them, as the set that its worker told:
 * features.json and what the command line prints are written from the same thing by the same code.
 */
#ifndef NOCTULE_FEATURE_ROWS_H
#define NOCTULE_FEATURE_ROWS_H

#include "base/error.h"
#include "db/report.h"
#include "service/common/feature.h"

/*
 * Fills an empty set, of all segments or one (report.h), without histograms. 0, or -errno as
 * report_each_feature has it, and the set is empty; feature_set_clear frees it.
 */
int feature_rows_read(struct report *report, int64_t job_id, int64_t segment,
                      struct feature_set *set, struct error *error);

#endif
