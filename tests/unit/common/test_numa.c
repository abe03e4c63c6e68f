/* The NUMA nodes of a machine, from a simulated /sys tree. */
#include "service/common/numa/numa.h"

#include "tests/unit/scratch_folder.h"

#include <errno.h>
#include <pthread.h>

#define GPU_A "0000:3b:00.0"
#define GPU_B "0001:d8:00.0"

static void
tell(const char *name, const char *text)
{
    scratch_write(name, text, strlen(text));
}

/* Two nodes with one GPU and one processor each, and a third node with memory only. */
static void
set_up(void)
{
    static const char *const folders[] = {"devices",
                                          "devices/system",
                                          "devices/system/node",
                                          "devices/system/node/node0",
                                          "devices/system/node/node1",
                                          "devices/system/node/node2",
                                          "bus",
                                          "bus/pci",
                                          "bus/pci/devices",
                                          "bus/pci/devices/" GPU_A,
                                          "bus/pci/devices/" GPU_B};
    scratch_make();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        scratch_folder(folders[i]);
    tell("devices/system/node/has_cpu", "0-1\n");
    tell("devices/system/node/node0/cpulist", "0\n");
    tell("devices/system/node/node1/cpulist", "1-3,8\n");
    tell("devices/system/node/node2/cpulist", "\n");
    tell("bus/pci/devices/" GPU_A "/numa_node", "0\n");
    tell("bus/pci/devices/" GPU_B "/numa_node", "1\n");
}

static void
tear_down(void)
{
    scratch_remove();
}

static const struct {
    const char *list;
    int count, last; /* -1: rejected */
} lists[] = {
    {"", 0, 0},    {"0", 1, 0},       {"0-3,8", 5, 8}, {"0-15,64-79", 32, 79},
    {"7,3", 2, 7}, {"1023", 1, 1023}, {"1024", -1, 0}, {"3-1", -1, 0},
    {"0-", -1, 0}, {",", -1, 0},      {"0,", -1, 0},   {"0 1", -1, 0},
    {"-1", -1, 0}, {"a", -1, 0},      {"0-3x", -1, 0}, {"99999999999999999999", -1, 0},
};

START_TEST(lists_are_read)
{
    cpu_set_t set;
    const bool read = numa_read_list(lists[_i].list, &set);
    ck_assert_msg(read == (lists[_i].count >= 0), "\"%s\"", lists[_i].list);
    if (read) {
        ck_assert_int_eq(CPU_COUNT(&set), lists[_i].count);
        ck_assert(lists[_i].count == 0 || CPU_ISSET((size_t)lists[_i].last, &set));
    }
}

END_TEST

static void
is_at(const char *pci, int node, const char *processors)
{
    const struct numa_place place = numa_of_pci(scratch, pci);
    ck_assert_int_eq(place.node, node);
    ck_assert_str_eq(place.processors, processors);
}

START_TEST(each_device_is_near_its_node)
{
    is_at(GPU_A, 0, "0");
    is_at(GPU_B, 1, "1-3,8");
    is_at("0000:99:00.0", -1, ""); /* does not exist */
    is_at("", -1, "");
    is_at("../devices/" GPU_A, -1, "");
}

END_TEST

START_TEST(an_unknown_device_has_no_node)
{
    static const char *const nodes[] = {"-1\n", "2\n", "7\n", "\n", "x\n", "99999999999\n"};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        tell("bus/pci/devices/" GPU_A "/numa_node", nodes[i]);
        is_at(GPU_A, -1, "");
    }
    tell("devices/system/node/node1/cpulist", "1-3,\n");
    is_at(GPU_B, -1, "");
}

END_TEST

/* There is no choice. */
START_TEST(a_machine_with_one_node_has_no_binding)
{
    tell("devices/system/node/has_cpu", "0\n");
    is_at(GPU_A, -1, "");
    ck_assert_int_eq(remove(scratch_path("devices/system/node/has_cpu")), 0);
    is_at(GPU_A, -1, "");
}

END_TEST

struct binding {
    int node, rc, processors;
    bool first; /* it may run on the test's first processor */
};

static int
first_processor(void)
{
    cpu_set_t set;
    int at = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET((size_t)at, &set))
        at++;
    return at;
}

/* Binds in a separate thread, so that the test itself is not bound. */
static void *
bind_here(void *context)
{
    struct binding *binding = context;
    cpu_set_t set;
    const int first = first_processor();
    binding->rc = numa_bind(scratch, binding->node);
    sched_getaffinity(0, sizeof set, &set);
    binding->processors = CPU_COUNT(&set);
    binding->first = CPU_ISSET((size_t)first, &set);
    return NULL;
}

static struct binding
bind_to(int node)
{
    struct binding binding = {.node = node};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, bind_here, &binding), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return binding;
}

START_TEST(a_thread_stays_on_the_processors_of_its_node)
{
    char own[16];
    cpu_set_t before;
    snprintf(own, sizeof own, "%d\n", first_processor());
    tell("devices/system/node/node0/cpulist", own);
    struct binding binding = bind_to(0);
    ck_assert_int_eq(binding.rc, 0);
    ck_assert_int_eq(binding.processors, 1);
    ck_assert(binding.first);
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    /* Only processors that the test may use must remain. */
    tell("devices/system/node/node0/cpulist", "0-1023\n");
    ck_assert_int_eq(bind_to(0).processors, CPU_COUNT(&before));
}

END_TEST

START_TEST(a_thread_is_not_bound_to_forbidden_processors)
{
    cpu_set_t before;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    tell("devices/system/node/node1/cpulist", "1023\n");
    struct binding binding = bind_to(1);
    ck_assert_int_eq(binding.rc, -EPERM);
    ck_assert_int_eq(binding.processors, CPU_COUNT(&before));
    ck_assert_int_eq(bind_to(2).rc, -ENODEV);
    ck_assert_int_eq(bind_to(5).rc, -ENODEV);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("common_numa");
    TCase *tests = tcase_create("numa");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, lists_are_read, 0, sizeof lists / sizeof *lists);
    tcase_add_test(tests, each_device_is_near_its_node);
    tcase_add_test(tests, an_unknown_device_has_no_node);
    tcase_add_test(tests, a_machine_with_one_node_has_no_binding);
    tcase_add_test(tests, a_thread_stays_on_the_processors_of_its_node);
    tcase_add_test(tests, a_thread_is_not_bound_to_forbidden_processors);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
