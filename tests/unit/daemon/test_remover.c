/*
 * Files to be removed, and other files of the same name.
 */
#include "service/daemon/retention/remover.h"

#include "service/common/layout.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char inbox[80];
static struct conf_inbox inboxes[1];
static struct conf conf;
static atomic_bool stop;

static void
put(const char *path, const char *text)
{
    char folder[64];
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        mkdir(scratch_path(folder), 0700);
    }
    FILE *file = fopen(scratch_path(path), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void
set_up(void)
{
    scratch_make();
    snprintf(inbox, sizeof inbox, "%s/inbox", scratch);
    inboxes[0].path = inbox;
    conf = (struct conf){.inboxes = inboxes, .inbox_count = 1};
    atomic_store(&stop, false);
    put(LAYOUT_REMOVED "/keep", "");
    put("inbox/a/keep", "");
}

static void
tear_down(void)
{
    scratch_remove();
}

/* Removes a path and returns the item. */
static struct remover_item
remove_path(int64_t id, const char *path, int64_t size, int64_t taken_ms)
{
    struct remover_item item;
    const struct queue_removal removal = {.id = id, .path = strdup(path), .size = size, .taken_ms = taken_ms};
    remover_take(&item, &removal, &conf);
    remover_set_aside(scratch, &item);
    remover_delete(scratch, &item, 1, &stop);
    remover_release(&item);
    return item;
}

static struct remover_item
remove_original(const char *name, int64_t size, int64_t taken_ms)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", inbox, name);
    return remove_path(1, path, size, taken_ms);
}

static int64_t
in_a_minute(void)
{
    return ((int64_t)time(NULL) + 60) * 1000;
}

START_TEST(a_folder_is_removed_with_its_content)
{
    put("series/1.2/a.dcm", "a");
    put("series/1.2/deep/b.dcm", "b");
    ck_assert(remove_path(7, "series/1.2", 0, 0).gone);
    ck_assert(!scratch_has("series/1.2"));
    ck_assert(!scratch_has(LAYOUT_REMOVED "/7"));
    ck_assert(scratch_has("series"));
    ck_assert(remove_path(7, "series/1.2", 0, 0).gone);
}

END_TEST

START_TEST(renamed_files_are_removed_and_new_ones_stay)
{
    put(LAYOUT_REMOVED "/7/a.dcm", "a");
    put("series/1.2/a.dcm", "new");
    ck_assert(remove_path(7, "series/1.2", 0, 0).gone);
    ck_assert(scratch_has("series/1.2/a.dcm"));
    ck_assert(!scratch_has(LAYOUT_REMOVED "/7"));
}

END_TEST

START_TEST(only_paths_below_the_root_are_removed)
{
    static const char *const paths[] = {"series/..", "..", "series/../../etc", "series", "series/"};
    put("series/1.2/a.dcm", "a");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct remover_item item = remove_path(7, paths[i], 0, 0);
        ck_assert_msg(item.error == -EINVAL && !item.gone, "%s", paths[i]);
    }
    ck_assert(scratch_has("series/1.2/a.dcm"));
}

END_TEST

START_TEST(an_unchanged_original_is_removed)
{
    put("inbox/a/im1", "1234");
    ck_assert(remove_original("a/im1", 5, in_a_minute()).gone); /* another size */
    ck_assert(remove_original("a/im1", 4, 1000).gone);          /* written since */
    ck_assert(scratch_has("inbox/a/im1"));
    ck_assert(remove_original("a/im1", 4, in_a_minute()).gone);
    ck_assert(!scratch_has("inbox/a/im1"));
    ck_assert(remove_original("a/im1", 4, in_a_minute()).gone); /* it is gone in any case */
}

END_TEST

START_TEST(a_link_in_the_inbox_leads_nowhere)
{
    put("elsewhere/im1", "1234");
    ck_assert_int_eq(symlink("../elsewhere", scratch_path("inbox/link")), 0);
    ck_assert(!remove_original("link/im1", 4, in_a_minute()).gone);
    ck_assert(scratch_has("elsewhere/im1"));
}

END_TEST

START_TEST(paths_outside_inboxes_stay)
{
    put("elsewhere/im1", "1234");
    ck_assert(
        /* not the service's own file */
        remove_path(1, scratch_path("elsewhere/im1"), 4, in_a_minute()).gone);
    ck_assert(scratch_has("elsewhere/im1"));
}

END_TEST

START_TEST(a_removal_can_be_stopped)
{
    put("series/1.2/a.dcm", "a");
    atomic_store(&stop, true);
    ck_assert(!remove_path(7, "series/1.2", 0, 0).gone);
    ck_assert(scratch_has(LAYOUT_REMOVED "/7/a.dcm"));
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("remover");
    TCase *tcase = tcase_create("remover");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_folder_is_removed_with_its_content);
    tcase_add_test(tcase, renamed_files_are_removed_and_new_ones_stay);
    tcase_add_test(tcase, only_paths_below_the_root_are_removed);
    tcase_add_test(tcase, an_unchanged_original_is_removed);
    tcase_add_test(tcase, a_link_in_the_inbox_leads_nowhere);
    tcase_add_test(tcase, paths_outside_inboxes_stay);
    tcase_add_test(tcase, a_removal_can_be_stopped);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
