/*
 * Writes and reads objects, and groups series, while the n-th allocation fails, for n = 1, 2, ... until none is hit.
 * It fails once, and then permanently. Each failure must be reported, must not leak (sanitizers), and must not
 * prevent a later success.
 *
 * Allocations of DCMTK and of C++ do not fail.
 */
#include "tests/unit/dicom/pmap_sample.h"
#include "tests/unit/dicom/sr_sample.h"
#include "tests/unit/dicom/written_object.h"
#include "tests/unit/series_sample.h"
#include "tests/unit/starve.h"
#include "tests/unit/suite.h"

/* --- objects --- */

static struct sr_sample report;
static struct pmap_sample map;
static struct seg_sample masks;
static char target[] = "/tmp/noctule_memory.XXXXXX";

static int
write_to_target(int (*write)(int fd, struct derived_summary *summary, struct error *error), struct error *error)
{
    struct derived_summary summary;
    int fd = open(target, O_RDWR | O_TRUNC);
    if (fd < 0)
        abort();
    int rc = write(fd, &summary, error);
    close(fd);
    return rc;
}

static int
write_seg(int fd, struct derived_summary *summary, struct error *error)
{
    return seg_write(&masks.request, fd, summary, error);
}

static int
write_sr(int fd, struct derived_summary *summary, struct error *error)
{
    return sr_write(&report.request, fd, summary, error);
}

static int
write_pmap(int fd, struct derived_summary *summary, struct error *error)
{
    return pmap_write(&map.request, fd, summary, error);
}

static int
a_segmentation(struct error *error)
{
    return write_to_target(write_seg, error);
}

static int
a_report(struct error *error)
{
    return write_to_target(write_sr, error);
}

static int
a_map(struct error *error)
{
    return write_to_target(write_pmap, error);
}

static int
a_report_read_back(struct error *error)
{
    return sr_verify(&report.request, target, error);
}

static int
a_map_read_back(struct error *error)
{
    return pmap_verify(&map.request, target, error);
}

static void
make(void)
{
    static const struct seg_sample_shape shape = {
        .columns = 33, .rows = 7, .planes = 5, .segments = 2, .charset = "ISO_IR 100"};
    static const struct sr_sample_shape of_report = {
        .seg = {.columns = 9, .rows = 7, .planes = 5, .segments = 1, .multi_frame = true},
        .segments = 2,
        .measurements = 2,
    };
    dicom_init();
    strcpy(target, "/tmp/noctule_memory.XXXXXX");
    int fd = mkstemp(target);
    ck_assert_int_ge(fd, 0);
    close(fd);
    seg_sample_make(&masks, &shape);
    seg_sample_set(&masks, 0, 1, 1, 1);
    seg_sample_set(&masks, 1, 2, 2, 3);
    masks.segments[0].label = "Gr\xC3\xB6\xC3\x9F"
                              "e";
    pmap_sample_make(&map, &shape);
    sr_sample_make(&report, &of_report);
    report.groups[1].segment = SR_WHOLE_VOLUME; /* includes its frames by number */
    report.seg.stack.plane_count = 3;
}

static void
drop(void)
{
    unlink(target);
    sr_sample_free(&report);
    pmap_sample_free(&map);
    seg_sample_free(&masks);
}

START_TEST(writing_a_segmentation)
{
    expect_told(a_segmentation);
}

END_TEST

START_TEST(writing_a_report)
{
    expect_told(a_report);
}

END_TEST

START_TEST(writing_a_map)
{
    expect_told(a_map);
}

END_TEST

START_TEST(reading_back)
{
    struct error error;
    ck_assert_int_eq(a_report(&error), 0);
    expect_told(a_report_read_back);
    ck_assert_int_eq(a_map(&error), 0);
    expect_told(a_map_read_back);
}

END_TEST

/* --- series --- */

static int
a_series(struct error *error)
{
    struct geometry_series *result;
    int rc = geometry_group(series.instances, series.count, &limits, &result, error);
    if ((result == NULL) != (rc != 0))
        abort();
    geometry_series_free(result);
    return rc;
}

/* Twelve echoes and a scout, so that groups are split and their list grows. */
START_TEST(grouping_a_series)
{
    free_series();
    for (int echo = 0; echo < 12; echo++) {
        for (int i = 0; i < 3; i++)
            snprintf(add_slice(2.0 * i)->echo, sizeof(series.storage[0].frames[0].echo), "%d", echo + 1);
    }
    place_frame(add_frames(1), sagittal, 0, 0, 0);
    expect_told(a_series);
    free_series();
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_memory");
    TCase *tests = tcase_create("memory");
    tcase_add_checked_fixture(tests, make, drop);
    tcase_add_test(tests, writing_a_segmentation);
    tcase_add_test(tests, writing_a_report);
    tcase_add_test(tests, writing_a_map);
    tcase_add_test(tests, reading_back);
    tcase_add_test(tests, grouping_a_series);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
