/*
 * test_cuda_leave.c - GPU memory that lanes leave to other programs: volumes that would need it do not fit.
 *
 *   kernels_test_cuda_leave [--quick]
 *
 * Exits with 77 ("skipped" for CTest) if there is no GPU.
 */
#include "kernels/kernels.h"
#include "tests/kernels/gpu_suite.h"

#include <errno.h>

static const int64_t MIB = 1 << 20;
static const struct image_extent small = {64, 64, 8}, large = {256, 256, 256}; /* 32 MiB of int16 */

static struct kernels_device *device;
static struct kernels_lane *lane;

static void
set_up(void)
{
    const struct kernels_device_options options = {.backend = "cuda", .threads = 2};
    struct error error = {0};

    ck_assert_msg(kernels_device_open(&options, &device, &error) == 0, "%s", error.message);
    ck_assert_int_eq(kernels_lane_open(device, &lane, &error), 0);
}

static void
tear_down(void)
{
    kernels_lane_close(lane);
    kernels_device_close(device);
}

static struct kernels_gpu_memory
memory_now(void)
{
    struct kernels_gpu_memory memory;

    ck_assert_int_eq(kernels_device_memory(device, &memory), 0);
    return memory;
}

static int
begin(struct kernels_lane *of, struct image_extent extent)
{
    const struct kernels_demand demand = {.of = {NULL}};
    void *voxels;

    return kernels_volume_begin(of, extent, IMAGE_INT16, &demand, &voxels, NULL);
}

START_TEST(the_memory_of_lanes_is_counted)
{
    struct kernels_lane *other;

    ck_assert_int_eq(memory_now().held, 0);
    ck_assert_int_eq(begin(lane, large), 0);
    ck_assert_int_ge(memory_now().held, 32 * MIB);
    ck_assert_int_lt(memory_now().held, 64 * MIB);
    ck_assert_int_eq(kernels_lane_open(device, &other, NULL), 0);
    ck_assert_int_eq(begin(other, large), 0);
    ck_assert_int_ge(memory_now().held, 64 * MIB);
    ck_assert_int_eq(begin(other, small), 0); /* keeps what it has */
    ck_assert_int_ge(memory_now().held, 64 * MIB);
    kernels_lane_close(other);
    ck_assert_int_lt(memory_now().held, 64 * MIB);
    ck_assert_int_le(memory_now().held + memory_now().free, memory_now().usable + 512 * MIB);
}

END_TEST

START_TEST(lanes_leave_memory)
{
    const int64_t usable = memory_now().usable;

    kernels_device_leave(device, usable - 16 * MIB);
    ck_assert_int_eq(begin(lane, large), -ENOMEM);
    ck_assert_int_eq(memory_now().held, 0);
    ck_assert_int_eq(begin(lane, small), 0);
    ck_assert_int_eq(begin(lane, large), -ENOMEM);
    kernels_device_leave(device, usable - 64 * MIB);
    ck_assert_int_eq(begin(lane, large), 0);
    kernels_device_leave(device, 2 * usable); /* more than there is: a lane keeps what it has */
    ck_assert_int_eq(begin(lane, large), 0);
    kernels_device_leave(device, 0);
    ck_assert_int_eq(begin(lane, (struct image_extent){256, 256, 512}), 0);
}

END_TEST

START_TEST(other_lanes_count)
{
    struct kernels_lane *other;

    ck_assert_int_eq(begin(lane, large), 0);
    ck_assert_int_eq(kernels_lane_open(device, &other, NULL), 0);
    kernels_device_leave(device, memory_now().usable - memory_now().held - 8 * MIB);
    ck_assert_int_eq(begin(other, large), -ENOMEM);
    kernels_lane_close(lane);
    lane = other;
    ck_assert_int_eq(begin(lane, large), 0);
}

END_TEST

START_TEST(processors_have_no_gpu_memory)
{
    const struct kernels_device_options options = {.backend = "cpu", .threads = 1};
    struct kernels_gpu_memory memory;
    struct kernels_device *cpu;

    ck_assert_int_eq(kernels_device_open(&options, &cpu, NULL), 0);
    kernels_device_leave(cpu, 1);
    ck_assert_int_eq(kernels_device_memory(cpu, &memory), -ENOTSUP);
    kernels_device_close(cpu);
}

END_TEST

static Suite *
make_suite(void)
{
    Suite *suite = suite_create("cuda_leave");
    TCase *tcase = tcase_create("leave");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_memory_of_lanes_is_counted);
    tcase_add_test(tcase, lanes_leave_memory);
    tcase_add_test(tcase, other_lanes_count);
    tcase_add_test(tcase, processors_have_no_gpu_memory);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(int argc, char **argv)
{
    return gpu_suite_run(argc, argv, make_suite);
}
