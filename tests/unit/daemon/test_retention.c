/*
 * Intervals between two sweeps.
 */
#include "service/daemon/retention/retention.h"
#include "tests/unit/suite.h"

#include <check.h>

static const struct {
    struct conf_retention conf;
    int64_t rest_ms;
} cases[] = {
    {{.series_days = 90, .results_days = 90, .quarantine_days = 90, .events_days = 730}, 3600000},
    {{.series_days = 0}, 3600000},
    {{.series_days = 10.0 / 24}, 3600000},
    {{.series_days = 5.0 / 24, .events_days = 730}, 1800000},
    {{.series_days = 0.002}, 17280},
    {{.results_days = 0.002, .series_days = 0.01}, 17280},
    {{.quarantine_days = 0.002}, 17280},
    {{.events_days = 0.002}, 17280},
    {{.series_days = 1e-8}, 1000},
};

START_TEST(the_shortest_age_sets_the_interval)
{
    ck_assert_int_eq(retention_rest_ms(&cases[_i].conf), cases[_i].rest_ms);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("retention");
    TCase *tcase = tcase_create("rest");
    tcase_add_loop_test(tcase, the_shortest_age_sets_the_interval, 0, sizeof(cases) / sizeof(cases[0]));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
