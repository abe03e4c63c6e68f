/* metric_values.c - see db/metrics.h. */
#include "db/metrics.h"

#include "db/report/report_private.h"

static const double bounds_of_JOB[METRIC_BOUNDS] = {0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600};
static const double bounds_of_ANSWER[METRIC_BOUNDS] = {0.002, 0.01, 0.05, 0.2, 1, 5};
#define bounds_of_NONE NULL

const struct metric metric_table[] = {

#define METRIC(kind_, name_, label_, bounds_, help_, sql_)                                                             \
    {.name = #name_, .label = #label_, .help = (help_), .kind = METRIC_##kind_, .bounds = bounds_of_##bounds_},
#include "db/metrics.def"
#undef METRIC
};

static const char *const metric_queries[] = {

#define METRIC(kind_, name_, label_, bounds_, help_, sql_) sql_,
#include "db/metrics.def"
#undef METRIC
};

int
report_last_event(struct report *report, int64_t *event, struct error *error)
{
    *event = 0;
    const int rc = database_get(&report->db, "SELECT coalesce(max(event), 0) FROM v_events", NO_VALUES, event);
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}

int
report_each_sample(struct report *report, enum metric_name name, int64_t after, int64_t until,
                   int (*take)(void *context, const char *label, double value), void *context, struct error *error)
{
    const bool counts = metric_table[name].kind == METRIC_COUNTER || metric_table[name].kind == METRIC_HISTOGRAM;
    const struct database_value values[] = {value_int(after), value_int(until)};
    sqlite3_stmt *row;
    int rc = metric_queries[name] ? database_start(&report->db, metric_queries[name], values, counts ? 2 : 0, &row) : 0;
    if (rc < 0 || !metric_queries[name])
        return report_conclude(report, NULL, rc, error);
    while ((rc = database_step(&report->db, row)) == 1)
        if ((rc = take(context, report_text(row, 0), sqlite3_column_double(row, 1))) < 0)
            break;
    database_end(row);
    return report_conclude(report, NULL, rc < 0 ? rc : 0, error);
}
