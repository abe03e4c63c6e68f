/* Checks that the time to order a series grows at most linearly with its frames, for any headers. */
#include "dicom/read/geometry/geometry.h"
#include "tests/share.h"
#include "tests/unit/edge.h"
#include "tests/unit/growth.h"
#include "tests/unit/suite.h"

#include <math.h>
#include <string.h>

/* A series of n frames that an algorithm may compare with one another. */
struct kind {
    const char *name;
    size_t n;
    void (*describe)(struct dicom_instance *instance, struct dicom_frame *frame, size_t i, size_t n);
    bool newest;
};

static void
turn(struct dicom_frame *frame, size_t number)
{
    const double angle = 0.006 * (double)number;
    frame->orientation[0] = cos(angle);
    frame->orientation[1] = sin(angle);
}

/* Two thirds of the orientations have no other near them, all around the axis. */
static void
orientations(struct dicom_instance *instance, struct dicom_frame *frame, size_t i, size_t n)
{
    (void)instance;
    const double tilt = 0.006 * (double)(i / 1000);
    turn(frame, i % 1000);
    frame->orientation[3] = -frame->orientation[1] * cos(tilt);
    frame->orientation[4] = frame->orientation[0] * cos(tilt);
    frame->orientation[5] = sin(tilt);
    (void)n;
}

static void
few_orientations(struct dicom_instance *instance, struct dicom_frame *frame, size_t i, size_t n)
{
    orientations(instance, frame, i % LIMIT_STACKS, n);
}

static void
one_position(struct dicom_instance *instance, struct dicom_frame *frame, size_t i, size_t n)
{
    (void)n;
    frame->position[2] = 1;
    instance->instance_number = (int32_t)i;
}

static void
echoes(struct dicom_instance *instance, struct dicom_frame *frame, size_t i, size_t n)
{
    (void)instance;
    frame->position[2] = (double)(i % 5);
    snprintf(frame->echo, sizeof(frame->echo), "%zu", i % (n / 5));
}

static void
keys_of_all_kinds(struct dicom_instance *instance, struct dicom_frame *frame, size_t i, size_t n)
{
    (void)instance;
    (void)n;
    frame->position[2] = (double)(i % 3);
#define KEY(id, ...) snprintf(frame->id, sizeof(frame->id), "%zu", i * 31 % 7);
#include "dicom/read/image/keys.def"
#undef KEY
}

/* Puts each slice at two of the positions of the next: one grid, in which every volume lacks many slices. */
static void
chains(struct dicom_instance *instance, struct dicom_frame *frame, size_t i, size_t n)
{
    (void)instance;
    (void)n;
    frame->position[2] = 3 * (double)(i / 2) + 3 * (double)(i % 2);
    snprintf(frame->echo, sizeof(frame->echo), "%zu", i / 2);
}

static void
numbers(struct dicom_instance *instance, struct dicom_frame *frame, size_t i, size_t n)
{
    frame->position[2] = (double)(i % (n / 8));
    instance->instance_number = (int32_t)(i * 7919 % n);
    instance->images_in_acquisition = (int32_t)(i % 97);
    instance->expected_instances = (int32_t)n;
    snprintf(frame->acquired, sizeof(frame->acquired), "20200101%06zu.000000", i * 104729 % 240000);
}

static void
derived(struct dicom_instance *instance, struct dicom_frame *frame, size_t i, size_t n)
{
    (void)instance;
    frame->position[2] = (double)(i % (n / 2));
    frame->derived = i % 2;
}

static const struct kind kinds[] = {
    {"orientations", 5000, orientations, false},
    {"few orientations", 5000, few_orientations, false},
    {"one position", 20000, one_position, false},
    {"newest of one position", 20000, one_position, true},
    {"echoes", 10000, echoes, false},
    {"keys of all kinds", 20000, keys_of_all_kinds, false},
    {"chains", 2000, chains, false},
    {"numbers", 10000, numbers, false},
    {"newest by number", 10000, numbers, true},
    {"derived", 10000, derived, false},
};

static struct dicom_instance *
make(const struct kind *kind, size_t n)
{
    static char file[] = "f";
    struct dicom_instance *all = calloc(n, sizeof(*all));
    struct dicom_frame *frames = calloc(n, sizeof(*frames));
    ck_assert(all && frames);
    for (size_t i = 0; i < n; i++) {
        struct dicom_frame *frame = &frames[i];
        all[i].path = file;
        all[i].frames = frame;
        all[i].frame_count = 1;
        all[i].rows = all[i].columns = 4;
        all[i].bits_allocated = all[i].bits_stored = 16;
        all[i].pixel = IMAGE_INT16;
        strcpy(all[i].modality, "MR");
        strcpy(all[i].series_uid, "1.2");
        snprintf(all[i].sop_instance_uid, sizeof(all[i].sop_instance_uid), "1.%zu", i);
        frame->has_position = frame->has_orientation = frame->has_spacing = true;
        frame->orientation[0] = frame->orientation[4] = 1;
        frame->pixel_spacing[0] = frame->pixel_spacing[1] = frame->slope = 1;
        frame->position[2] = (double)i;
        kind->describe(&all[i], frame, i, n);
    }
    return all;
}

static double
cost(const void *context, size_t n)
{
    const struct kind *kind = context;
    const struct geometry_limits limits = {
        .min_planes = 2, .spacing_tolerance = 0.01, .newest_of_duplicates = kind->newest};
    struct dicom_instance *all = make(kind, n);
    struct dicom_instance **instances = calloc(n, sizeof(struct dicom_instance *));
    struct geometry_series *series;
    struct error error;
    ck_assert_ptr_nonnull(instances);
    for (size_t i = 0; i < n; i++)
        instances[i] = &all[i];
    const double begun = growth_clock();
    ck_assert_int_eq(geometry_group(instances, (int32_t)n, &limits, &series, &error), 0);
    const double seconds = growth_clock() - begun;
    geometry_series_free(series);
    free(instances);
    free(all[0].frames);
    free(all);
    return seconds;
}

START_TEST(time_of_the_processor)
{
    if (!test_share_has((uint64_t)_i))
        return;
    expect_linear(kinds[_i].name, cost, &kinds[_i], kinds[_i].n);
}

END_TEST

START_TEST(too_many_orientations)
{
    const struct kind kind = {"orientations", 0, orientations, false};
    const struct geometry_limits limits = {.min_planes = 2, .spacing_tolerance = 0.01};
    static const struct edge edge = EDGE(STACKS);
    const size_t n = (size_t)edge.most + 1;
    struct dicom_instance *all = make(&kind, n);
    struct dicom_instance *instances[LIMIT_STACKS + 1];
    struct geometry_series *series;
    struct error error;
    for (size_t i = 0; i < n; i++)
        instances[i] = &all[i];
    ck_assert_int_eq(geometry_group(instances, (int32_t)n, &limits, &series, &error), 0);
    ck_assert_int_eq(series->stack_count, 1);
    ck_assert_int_eq(series->stacks[0].error.code, edge.code);
    geometry_series_free(series);
    ck_assert_int_eq(geometry_group(instances, (int32_t)n - 1, &limits, &series, &error), 0);
    ck_assert_int_eq(series->stack_count, LIMIT_STACKS);
    geometry_series_free(series);
    free(all[0].frames);
    free(all);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_geometry_cost");
    TCase *tests = tcase_create("cost");
    tcase_add_loop_test(tests, time_of_the_processor, 0, (int)(sizeof(kinds) / sizeof(kinds[0])));
    tcase_add_test(tests, too_many_orientations);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
