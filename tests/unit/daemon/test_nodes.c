/*
 * Nodes that get no jobs: those that lost several in a row, for an hour.
 */
#include "service/daemon/slurm/slurm_nodes.h"

#include "tests/unit/suite.h"

#include <stdlib.h>
#include <string.h>

static struct nodes nodes;

static void
setup(void)
{
    nodes = (struct nodes){0};
}

static void
teardown(void)
{
    nodes_free(&nodes);
}

static void
assert_excluded(uint64_t now_ms, const char *expected)
{
    char *names = nodes_excluded(&nodes, now_ms);
    ck_assert_ptr_nonnull(names);
    ck_assert_str_eq(names, expected);
    free(names);
}

START_TEST(a_node_is_excluded_after_three_losses_in_a_row)
{
    ck_assert(!nodes_lost(&nodes, "a", 1000));
    ck_assert(!nodes_lost(&nodes, "a", 1000));
    nodes_well(&nodes, "a");
    ck_assert(!nodes_lost(&nodes, "a", 1000));
    ck_assert(!nodes_lost(&nodes, "a", 1000));
    assert_excluded(1000, "");
    ck_assert(nodes_lost(&nodes, "a", 1000));
    assert_excluded(1000, "a");
}

END_TEST

START_TEST(a_node_gets_jobs_again_after_an_hour)
{
    for (int i = 0; i < 3; i++) {
        nodes_lost(&nodes, "a", 1000);
        nodes_lost(&nodes, "b", 2000);
    }
    assert_excluded(3000, "a,b");
    assert_excluded(1000 + NODES_REST_MS, "b");
    assert_excluded(2000 + NODES_REST_MS, "");
    ck_assert(!nodes_lost(&nodes, "a", 1000 + NODES_REST_MS));
}

END_TEST

/* sbatch takes names: an empty name, or a list of several, excludes no node. */
START_TEST(only_single_nodes_are_excluded)
{
    static const char *const names[] = {"", "a,b", "node[1-2]", "a b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int n = 0; n < 9; n++)
            ck_assert(!nodes_lost(&nodes, names[i], 1000));
    nodes_well(&nodes, "unknown");
    assert_excluded(1000, "");
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("nodes");
    TCase *tests = tcase_create("excluded");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_node_is_excluded_after_three_losses_in_a_row);
    tcase_add_test(tests, a_node_gets_jobs_again_after_an_hour);
    tcase_add_test(tests, only_single_nodes_are_excluded);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
