/*
 * Reads headers while the n-th allocation of C++ and DCMTK fails (starved_new.cc), for n = 1, 2, ... until none is
 * hit. Each failure must be reported as such. Values without memory must not count as damaged or missing, because the
 * file would be quarantined for good.
 */
#include "tests/unit/dicom/peek_sample.h"

#include <errno.h>
#include <sys/wait.h>
#include <sysexits.h>

static int countdown; /* allocations until the failing one; 0: no failure */
static bool hit;
static struct dicom_instance *whole;

bool starved_new(void);

bool
starved_new(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    return hit = true;
}

static bool
is_whole(const struct dicom_instance *instance)
{
    struct dicom_instance same = *instance;
    same.path = whole->path;
    same.frames = whole->frames;
    return memcmp(&same, whole, sizeof(same)) == 0 &&
           memcmp(instance->frames, whole->frames, (size_t)whole->frame_count * sizeof(*whole->frames)) == 0;
}

static int
peek_starved(int n, struct error *error)
{
    struct dicom_instance *instance = NULL;
    countdown = n;
    hit = false;
    const int rc = dicom_peek(path, &instance, error);
    countdown = 0;
    if (rc == 0)
        ck_assert_msg(is_whole(instance), "allocation %d is missing in what was read", n);
    dicom_instance_free(instance);
    return rc;
}

static void
expect_told(const struct sample_image *image)
{
    int n = 0;
    whole = write_and_peek(image);
    do {
        struct error error = {0};
        const int rc = peek_starved(++n, &error);
        ck_assert_msg(rc == (hit ? -ENOMEM : 0) || (hit && rc == 0), "allocation %d: %d %s: %s", n, rc,
                      code_name(error.code), error.message);
    } while (hit);
    ck_assert_int_gt(n, 100);
    dicom_instance_free(whole);
}

/* Starts a process while its nth allocation fails. Returns its exit status. */
static int
begin_starved(int n)
{
    int status = 0;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(STDERR_FILENO);
        hit = false;
        countdown = n;
        dicom_init();
        _exit(hit ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* Must run before any setup. Tries all of the first allocations, then a few of the dictionary's thousands. */
START_TEST(a_start_without_memory)
{
    int status, n = 1;
    while ((status = begin_starved(n)) != 0) {
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == EX_TEMPFAIL, "allocation %d: %#x", n,
                      (unsigned)status);
        n += n < 50 ? 1 : n / 10;
    }
    ck_assert_int_gt(n, 50);
}

END_TEST

START_TEST(a_classic_header)
{
    for (size_t i = 0; i < sizeof(native_syntaxes) / sizeof(*native_syntaxes); i++) {
        struct sample_image image = SAMPLE_IMAGE;
        image.syntax = native_syntaxes[i];
        expect_told(&image);
    }
}

END_TEST

START_TEST(a_header_with_functional_groups)
{
    const struct sample_image image = enhanced_image(SYNTAX_EXPLICIT);
    expect_told(&image);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_peek_memory");
    TCase *start = tcase_create("start");
    tcase_add_test(start, a_start_without_memory);
    suite_add_tcase(suite, start);
    TCase *tests = new_case(suite, "memory");
    tcase_add_test(tests, a_classic_header);
    tcase_add_test(tests, a_header_with_functional_groups);
    return suite_run(suite);
}
