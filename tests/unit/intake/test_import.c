/* Imports: durable copies, duplicates, collisions, full disks, links, and originals. */
#include "service/receiver/spool/import.h"

#include "base/text.h"
#include "tests/unit/dicom_bytes.h"
#include "tests/unit/scratch_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static struct store *store;
static int64_t token;

static void
make_places(void)
{
    dicom_init();
    scratch_make();
    scratch_folder("root");
    scratch_folder("in");
    ck_assert_int_eq(store_open(scratch_path("root"), &store), 0);
    ck_assert_int_eq(store_begin(store), 0);
}

static void
remove_places(void)
{
    store_close(store);
    scratch_remove();
}

/* Writes an image of the series 1.2.3.4.3; `instance` and `maker` distinguish images. */
static void
put_image(const char *relative, const char *instance, const char *maker)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.instance_uid = instance;
    image.manufacturer = maker;
    sample_write(&image, scratch_path(relative));
}

static struct import_item
item_of(const char *relative, enum conf_after after)
{
    static char folder[512];
    snprintf(folder, sizeof folder, "%s", scratch_path("in"));
    struct import_item item = {
        .folder = folder, .relative = (char *)(uintptr_t)relative, .after = after, .token = ++token};
    char path[1024];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", folder, relative);
    ck_assert_int_eq(stat(path, &status), 0);
    file_stamp_from(&status, &item.stamp);
    return item;
}

static void
take_in(struct import_item *item)
{
    import_batch(store, 0, &item, 1);
}

static struct import_item
import_one(const char *relative, enum conf_after after)
{
    struct import_item item = item_of(relative, after);
    take_in(&item);
    return item;
}

static bool
same_files(const char *a, const char *b)
{
    int fd_a = open(scratch_path(a), O_RDONLY), fd_b = open(scratch_path(b), O_RDONLY);
    bool same = false;
    ck_assert_int_ge(fd_a, 0);
    ck_assert_int_ge(fd_b, 0);
    ck_assert_int_eq(file_same_bytes(fd_a, fd_b, &same), 0);
    close(fd_a);
    close(fd_b);
    return same;
}

static int
entries(const char *relative)
{
    int count = 0;
    DIR *directory = opendir(scratch_path(relative));
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 2;
}

#define STORED "root/series/1.2.3.4.3/1.2.3.4.1.dcm"

START_TEST(an_image_is_copied_and_described)
{
    put_image("in/a.dcm", "1.2.3.4.1", "Maker");
    struct import_item item = import_one("a.dcm", CONF_KEEP);
    ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
    ck_assert_str_eq(item.report.path, "series/1.2.3.4.3/1.2.3.4.1.dcm");
    ck_assert_str_eq(item.report.sop_instance_uid, "1.2.3.4.1");
    ck_assert_str_eq(item.report.series_uid, "1.2.3.4.3");
    ck_assert_str_eq(item.report.study_uid, "1.2.3.4.2");
    ck_assert_str_eq(item.report.sop_class_uid, CLASS_CT);
    ck_assert_str_eq(item.report.transfer_syntax_uid, SYNTAX_EXPLICIT);
    ck_assert_int_eq(item.report.size, item.stamp.size);
    ck_assert(same_files("in/a.dcm", STORED));
    ck_assert_int_eq(entries("root/incoming"), 0);
    ck_assert_int_eq(import_finish(&item, NULL), 0);
    ck_assert(scratch_has("in/a.dcm"));
}

END_TEST

START_TEST(a_batch_may_contain_duplicates)
{
    put_image("in/a", "1.2.3.4.1", "Maker");
    put_image("in/b", "1.2.3.4.1", "Maker");
    put_image("in/c", "1.2.3.4.1", "Another");
    put_image("in/d", "1.2.3.4.9", "Maker");
    struct import_item a = item_of("a", CONF_DELETE), b = item_of("b", CONF_DELETE), c = item_of("c", CONF_DELETE),
                       d = item_of("d", CONF_DELETE);
    struct import_item *batch[] = {&a, &b, &c, &d};
    import_batch(store, 0, batch, 4);
    ck_assert_int_eq(a.outcome, IMPORT_ARRIVED);
    ck_assert_int_eq(b.outcome, IMPORT_ARRIVED);
    ck_assert_str_eq(a.report.path, b.report.path);
    ck_assert_int_eq(c.outcome, IMPORT_QUARANTINED);
    ck_assert_int_eq(c.report.code, CODE_DUPLICATE_UID_DIFFERENT);
    ck_assert_str_eq(c.report.series_uid, "1.2.3.4.3");
    ck_assert_int_eq(d.outcome, IMPORT_ARRIVED);
    ck_assert(same_files("in/a", STORED));
    ck_assert_int_eq(entries("root/series/1.2.3.4.3"), 2);
    ck_assert_int_eq(entries("root/incoming"), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(import_finish(batch[i], NULL), 0);
    ck_assert_int_eq(entries("in"), 0);
}

END_TEST

START_TEST(a_resend_has_no_effect)
{
    put_image("in/a", "1.2.3.4.1", "Maker");
    import_one("a", CONF_KEEP);
    struct stat before, after;
    ck_assert_int_eq(stat(scratch_path(STORED), &before), 0);
    for (int keep = 0; keep < 2; keep++) {
        put_image("in/b", "1.2.3.4.1", "Maker");
        struct import_item item = import_one("b", keep ? CONF_KEEP : CONF_MOVE);
        ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
    }
    ck_assert_int_eq(stat(scratch_path(STORED), &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_int_eq(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
}

END_TEST

START_TEST(a_writer_of_the_original_cannot_change_the_copy)
{
    put_image("in/a", "1.2.3.4.1", "Maker");
    put_image("same", "1.2.3.4.1", "Maker");
    ck_assert_int_eq(chmod(scratch_path("in/a"), 0666), 0);
    int writer = open(scratch_path("in/a"), O_RDWR);
    ck_assert_int_ge(writer, 0);
    struct import_item item = import_one("a", CONF_DELETE);
    ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
    ck_assert_int_eq(pwrite(writer, "Noctule", 7, 200), 7);
    struct stat stored;
    ck_assert_int_eq(stat(scratch_path(STORED), &stored), 0);
    ck_assert_uint_eq(stored.st_mode & 0777, 0640);
    ck_assert_uint_eq(stored.st_nlink, 1);
    ck_assert(same_files("same", STORED));
    /* The file was changed, so it must not be deleted. */
    ck_assert_int_eq(import_finish(&item, NULL), -ESTALE);
    close(writer);
    ck_assert(scratch_has("in/a"));
}

END_TEST

START_TEST(an_original_is_deleted_once)
{
    put_image("in/a", "1.2.3.4.1", "Maker");
    struct import_item item = import_one("a", CONF_DELETE);
    /* Importing again, as after a crash before STORED, must have no effect. */
    struct import_item again = import_one("a", CONF_DELETE);
    ck_assert_int_eq(again.outcome, IMPORT_ARRIVED);
    ck_assert_int_eq(import_finish(&again, NULL), 0);
    ck_assert(!scratch_has("in/a"));
    ck_assert(scratch_has(STORED));
    ck_assert_int_eq(import_finish(&item, NULL), -ENOENT);
}

END_TEST

/* ---------------------------------------------------------------------- a name that moves ---- */

static atomic_bool moving;

/* Renames so that `in` alternately leads to one and two. */
static void *
move_to_and_fro(void *unused)
{
    char in[PATH_MAX], spare[PATH_MAX];
    snprintf(in, sizeof in, "%s", scratch_path("in"));
    snprintf(spare, sizeof spare, "%s", scratch_path("spare"));
    for (int i = 0; atomic_load(&moving); i++)
        if (symlink(i % 2 ? "one" : "two", spare) != 0 || rename(spare, in) != 0)
            break;
    return unused;
}

START_TEST(the_header_belongs_to_the_stored_bytes)
{
    scratch_folder("one");
    scratch_folder("two");
    put_image("one/a", "1.2.3.4.1", "Maker");
    put_image("two/a", "1.2.3.4.2", "Maker");
    ck_assert_int_eq(rmdir(scratch_path("in")), 0);
    ck_assert_int_eq(symlink("one", scratch_path("in")), 0);
    pthread_t mover;
    atomic_store(&moving, true);
    ck_assert_int_eq(pthread_create(&mover, NULL, move_to_and_fro, NULL), 0);
    for (int taken = 0; taken < 300;) {
        struct import_item item = import_one("a", CONF_KEEP);
        if (item.outcome != IMPORT_ARRIVED)
            continue;
        taken++;
        struct dicom_instance *stored;
        char path[IMPORT_PATH + 8];
        snprintf(path, sizeof path, "root/%s", item.report.path);
        ck_assert_int_eq(dicom_peek(scratch_path(path), &stored, NULL), 0);
        ck_assert_str_eq(stored->sop_instance_uid, item.report.sop_instance_uid);
        dicom_instance_free(stored);
        ck_assert_int_eq(unlink(scratch_path(path)), 0);
    }
    atomic_store(&moving, false);
    pthread_join(mover, NULL);
}

END_TEST

/* ------------------------------------------------------------------- the same, otherwise ---- */

/* Writes other file meta information, and the preamble of a file that is also a TIFF. */
static void
put_copy(const char *relative, const struct sample_image *image)
{
    struct dicom_bytes bytes = {0};
    sample_file(&bytes, image);
    memcpy(bytes.data, "II*", 4);
    bytes_write(&bytes, scratch_path(relative));
    bytes_free(&bytes);
}

START_TEST(file_meta_information_makes_no_other_instance)
{
    struct sample_image image = SAMPLE_IMAGE;
    put_image("in/a", "1.2.3.4.1", "Maker");
    struct import_item first = import_one("a", CONF_KEEP);
    put_copy("in/b", &image);
    ck_assert(!same_files("in/a", "in/b"));
    struct import_item second = import_one("b", CONF_DELETE);
    ck_assert_int_eq(second.outcome, IMPORT_ARRIVED);
    ck_assert_str_eq(second.report.path, first.report.path);
    ck_assert(same_files("in/a", STORED));
    image.syntax = SYNTAX_IMPLICIT;
    put_copy("in/c", &image);
    struct import_item third = import_one("c", CONF_DELETE);
    ck_assert_int_eq(third.outcome, IMPORT_ARRIVED);
    ck_assert_str_eq(third.report.transfer_syntax_uid, SYNTAX_EXPLICIT); /* of the stored file */
    ck_assert_int_eq(third.report.size, first.report.size);
    image.syntax = SYNTAX_BIG_ENDIAN;
    put_copy("in/d", &image);
    struct import_item fourth = import_one("d", CONF_DELETE);
    ck_assert_int_eq(fourth.outcome, IMPORT_QUARANTINED);
    ck_assert_int_eq(fourth.report.code, CODE_DUPLICATE_UID_DIFFERENT);
    ck_assert_ptr_nonnull(strstr(fourth.report.message, "another transfer syntax"));
    ck_assert_int_eq(entries("root/series/1.2.3.4.3"), 1);
}

END_TEST

START_TEST(a_changed_file_is_not_touched)
{
    put_image("in/a", "1.2.3.4.1", "Maker");
    struct import_item stale = item_of("a", CONF_DELETE);
    put_image("in/a", "1.2.3.4.1", "Somebody else");
    take_in(&stale);
    ck_assert_int_eq(stale.outcome, IMPORT_CHANGED);
    ck_assert_int_eq(entries("root/series"), 0);
    struct import_item item = import_one("a", CONF_DELETE);
    put_image("in/b", "1.2.3.4.2", "Maker");
    ck_assert_int_eq(rename(scratch_path("in/b"), scratch_path("in/a")), 0);
    ck_assert_int_eq(import_finish(&item, NULL), -ESTALE);
    ck_assert(scratch_has("in/a"));
}

END_TEST

START_TEST(missing_originals_and_links_are_refused)
{
    scratch_folder("in/sub");
    scratch_folder("out");
    put_image("in/sub/a", "1.2.3.4.1", "Maker");
    put_image("in/b", "1.2.3.4.2", "Maker");
    struct import_item gone = item_of("b", CONF_DELETE);
    ck_assert_int_eq(unlink(scratch_path("in/b")), 0);
    take_in(&gone);
    ck_assert_int_eq(gone.outcome, IMPORT_GONE);
    /* The folder becomes a link to an outside folder that contains the same file. */
    struct import_item item = item_of("sub/a", CONF_DELETE);
    ck_assert_int_eq(rename(scratch_path("in/sub"), scratch_path("out/sub")), 0);
    ck_assert_int_eq(symlink(scratch_path("out/sub"), scratch_path("in/sub")), 0);
    struct import_item through = item;
    take_in(&through);
    ck_assert_int_eq(through.outcome, IMPORT_CHANGED);
    item.outcome = IMPORT_ARRIVED;
    ck_assert_int_lt(import_finish(&item, NULL), 0);
    ck_assert(scratch_has("out/sub/a"));
}

END_TEST

START_TEST(originals_are_moved_without_overwriting)
{
    scratch_folder("in/x");
    for (int i = 0; i < 3; i++) {
        put_image("in/x/a", "1.2.3.4.1", "Maker");
        struct import_item item = import_one("x/a", CONF_MOVE);
        ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
        ck_assert_int_eq(import_finish(&item, scratch_path("moved/deep")), 0);
        ck_assert(!scratch_has("in/x/a"));
    }
    ck_assert(same_files("moved/deep/x/a", STORED));
    ck_assert(scratch_has("moved/deep/x/a.1") && scratch_has("moved/deep/x/a.2"));
    put_image("in/x/a", "1.2.3.4.1", "Maker");
    struct import_item item = import_one("x/a", CONF_MOVE);
    ck_assert_int_eq(symlink(scratch_path("in/x"), scratch_path("trap")), 0);
    ck_assert_int_eq(import_finish(&item, scratch_path("trap")), -ELOOP);
    ck_assert(scratch_has("in/x/a"));
}

END_TEST

static ino_t synced[64];
static size_t synced_count;

/* Replaces the C library's function and records the call. */
int
fsync(int fd)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && synced_count < 64)
        synced[synced_count++] = status.st_ino;
    return (int)syscall(SYS_fsync, fd);
}

static bool
was_synced(const char *relative)
{
    struct stat status;
    ck_assert_int_eq(stat(scratch_path(relative), &status), 0);
    for (size_t i = 0; i < synced_count; i++)
        if (synced[i] == status.st_ino)
            return true;
    return false;
}

START_TEST(a_move_is_on_disk_in_both_folders)
{
    scratch_folder("in/x");
    put_image("in/x/a", "1.2.3.4.1", "Maker");
    struct import_item item = import_one("x/a", CONF_MOVE);
    synced_count = 0;
    ck_assert_int_eq(import_finish(&item, scratch_path("moved")), 0);
    ck_assert(was_synced("moved/x") && was_synced("in/x"));
}

END_TEST

START_TEST(originals_are_moved_to_another_file_system)
{
    char other[] = "/dev/shm/noctule-unit.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(other));
    put_image("in/a", "1.2.3.4.1", "Maker");
    struct import_item item = import_one("a", CONF_MOVE);
    struct stat original, moved;
    ck_assert_int_eq(stat(scratch_path("in/a"), &original), 0);
    ck_assert_int_eq(import_finish(&item, other), 0);
    ck_assert(!scratch_has("in/a"));
    char path[64];
    snprintf(path, sizeof path, "%s/a", other);
    ck_assert_int_eq(stat(path, &moved), 0);
    ck_assert_int_eq(moved.st_size, original.st_size);
    ck_assert_int_eq(moved.st_mtim.tv_nsec, original.st_mtim.tv_nsec);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(other), 0); /* no other file must be left */
}

END_TEST

START_TEST(a_full_disk_loses_no_file)
{
    put_image("in/a", "1.2.3.4.1", "Maker");
    struct rlimit limit, tight;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    tight = limit;
    tight.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    int limited = setrlimit(RLIMIT_FSIZE, &tight); /* Check's own file must grow for an assertion */
    struct import_item item = import_one("a", CONF_KEEP);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(limited, 0);
    ck_assert_int_eq(item.outcome, IMPORT_RETRY);
    ck_assert_int_eq(item.error, -EFBIG);
    ck_assert_int_eq(entries("root/incoming"), 0);
    ck_assert_int_eq(entries("root/series"), 0);
    ck_assert_int_eq(import_finish(&item, NULL), 0);
    take_in(&item);
    ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
    ck_assert(same_files("in/a", STORED));
}

END_TEST

START_TEST(an_unwritable_spool_loses_no_file)
{
    put_image("in/a", "1.2.3.4.1", "Maker");
    ck_assert_int_eq(rmdir(scratch_path("root/incoming")), 0);
    scratch_write("root/incoming", "", 0);
    struct import_item item = import_one("a", CONF_DELETE);
    ck_assert_int_eq(item.outcome, IMPORT_RETRY);
    ck_assert_int_eq(unlink(scratch_path("root/incoming")), 0);
    ck_assert_int_eq(rmdir(scratch_path("root/series")), 0);
    scratch_write("root/series", "", 0);
    take_in(&item);
    ck_assert_int_eq(item.outcome, IMPORT_RETRY);
    ck_assert_int_eq(unlink(scratch_path("root/series")), 0);
    ck_assert_int_eq(import_finish(&item, NULL), 0);
    ck_assert(scratch_has("in/a"));
    item = import_one("a", CONF_DELETE);
    ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
}

END_TEST

START_TEST(foreign_files_are_quarantined_with_a_reason)
{
    scratch_write("in/letter", "Dear colleague,", 15);
    struct import_item item = import_one("letter", CONF_DELETE);
    ck_assert_int_eq(item.outcome, IMPORT_QUARANTINED);
    ck_assert_int_eq(item.report.code, CODE_NOT_DICOM);
    char kept[512];
    snprintf(kept, sizeof kept, "root/%s", item.report.path);
    ck_assert(same_files("in/letter", kept));
    strcat(kept, ".reason.json");
    ck_assert(scratch_has(kept));
    /* The file is found again, as after a crash: the path must be the same, and a lost reason must
     * be written again. */
    ck_assert_int_eq(unlink(scratch_path(kept)), 0);
    struct import_item again = import_one("letter", CONF_DELETE);
    ck_assert_str_eq(again.report.path, item.report.path);
    ck_assert(scratch_has(kept));
    ck_assert_int_eq(import_finish(&again, NULL), 0);
    ck_assert(!scratch_has("in/letter"));
}

END_TEST

START_TEST(the_reported_path_of_an_odd_file_exists)
{
    scratch_write("in/L\xe4nge \xc2\x9b.dcm", "Dear colleague,", 15);
    struct import_item item = import_one("L\xe4nge \xc2\x9b.dcm", CONF_DELETE);
    ck_assert_int_eq(item.outcome, IMPORT_QUARANTINED);
    char kept[512];
    snprintf(kept, sizeof kept, "root/%s", item.report.path);
    ck_assert(scratch_has(kept));
    for (const char *at = kept; *at; at += text_line_length(at))
        ck_assert_uint_gt(text_line_length(at), 0); /* valid in a database row */
}

END_TEST

START_TEST(junk_does_not_fill_the_disk)
{
    scratch_write("in/huge", "pretends to be huge", 19);
    struct import_item item = item_of("huge", CONF_MOVE), *one = &item;
    import_batch(store, INT64_MAX / 2, &one, 1);
    ck_assert_int_eq(item.outcome, IMPORT_QUARANTINED);
    ck_assert_str_eq(item.report.path, "");
    ck_assert_int_eq(item.report.code, CODE_NOT_DICOM);
    ck_assert_int_eq(import_finish(&item, scratch_path("moved")), 0);
    ck_assert(scratch_has("in/huge"));
}

END_TEST

static struct sample_image
own_result(void)
{
    struct sample_image image = SAMPLE_IMAGE;
    image.manufacturer = "Noctule";
    image.model = "noctuled";
    return image;
}

START_TEST(own_results_are_skipped_or_moved)
{
    const struct sample_image image = own_result();
    sample_write(&image, scratch_path("in/own"));
    for (int after = CONF_KEEP; after <= CONF_DELETE; after++) {
        struct import_item item = import_one("own", CONF_KEEP);
        item.after = after == CONF_MOVE ? CONF_KEEP : (enum conf_after)after;
        ck_assert_int_eq(item.outcome, IMPORT_OWN_RESULT);
        ck_assert_int_eq(import_finish(&item, NULL), 0);
        ck_assert(scratch_has("in/own"));
    }
    struct import_item item = import_one("own", CONF_MOVE);
    ck_assert_int_eq(import_finish(&item, scratch_path("moved")), 0);
    ck_assert(!scratch_has("in/own") && scratch_has("moved/own"));
    ck_assert_int_eq(entries("root/series") + entries("root/quarantine"), 0);
}

END_TEST

START_TEST(an_earlier_run_is_swept_up)
{
    scratch_write("root/incoming/old-1.part", "half", 4);
    scratch_write("root/incoming/notes.txt", "somebody's", 10);
    ck_assert_int_eq(store_begin(store), 0);
    ck_assert(!scratch_has("root/incoming/old-1.part"));
    ck_assert(scratch_has("root/incoming/notes.txt"));
}

END_TEST

/* ------------------------------------------------------------------------- replaced ------ */

static struct import_item
import_newest(const char *relative)
{
    struct import_item item = item_of(relative, CONF_DELETE);
    item.resent = CONF_NEWEST;
    take_in(&item);
    ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
    return item;
}

#define SERIES "series/1.2.3.4.3/1.2.3.4.1"

START_TEST(the_newest_replaces_the_first_after_its_row)
{
    put_image("in/a", "1.2.3.4.1", "First");
    put_image("in/b", "1.2.3.4.1", "Second");
    put_image("in/c", "1.2.3.4.1", "Third");
    import_newest("a");
    struct import_item item = import_newest("b");
    ck_assert_str_eq(item.report.path, SERIES "+1.dcm");
    ck_assert_int_eq(item.report.replaced, 1);
    ck_assert(same_files("in/a", STORED) && same_files("in/b", "root/" SERIES "+1.dcm"));
    /* Again, as after a crash before the row. */
    item = import_newest("b");
    ck_assert_str_eq(item.report.path, SERIES "+1.dcm");
    import_retire(store, &item.report);
    import_retire(store, &item.report);
    ck_assert_int_eq(open(scratch_path(STORED), O_RDONLY), -1); /* a reader with the old row */
    ck_assert_int_eq(entries("root/series/1.2.3.4.3"), 2);
    item = import_newest("b");
    ck_assert_str_eq(item.report.path, SERIES "+1.dcm");
    /* Back to the first data set, and on. */
    item = import_newest("a");
    ck_assert_str_eq(item.report.path, SERIES "+2.dcm");
    item = import_newest("c");
    ck_assert_str_eq(item.report.path, SERIES "+3.dcm");
    import_retire(store, &item.report);
    ck_assert(same_files("in/c", "root/" SERIES "+3.dcm"));
    ck_assert_int_eq(entries("root/series/1.2.3.4.3"), 2);
    ck_assert_int_eq(entries("root/incoming"), 0);
    /* Without "newest" the newest stored file rejects another data set. */
    struct import_item other = import_one("b", CONF_DELETE);
    ck_assert_int_eq(other.outcome, IMPORT_QUARANTINED);
    ck_assert_int_eq(other.report.replaced, 0);
    ck_assert_ptr_nonnull(strstr(other.report.message, "resent = \"newest\" for this inbox"));
    other = import_one("c", CONF_MOVE);
    ck_assert_str_eq(other.report.path, SERIES "+3.dcm");
}

END_TEST

START_TEST(replacements_within_a_batch_are_applied_in_order)
{
    put_image("in/a", "1.2.3.4.1", "First");
    put_image("in/b", "1.2.3.4.1", "Second");
    put_image("in/c", "1.2.3.4.1", "Second");
    struct import_item a = item_of("a", CONF_MOVE), b = item_of("b", CONF_MOVE), c = item_of("c", CONF_MOVE);
    a.resent = b.resent = c.resent = CONF_NEWEST;
    struct import_item *batch[] = {&a, &b, &c};
    import_batch(store, 0, batch, 3);
    ck_assert_str_eq(a.report.path, SERIES ".dcm");
    ck_assert_str_eq(b.report.path, SERIES "+1.dcm");
    ck_assert_str_eq(c.report.path, SERIES "+1.dcm");
    ck_assert(same_files("in/b", "root/" SERIES "+1.dcm"));
}

END_TEST

START_TEST(a_replaced_kept_original_is_not_received_again)
{
    put_image("in/a", "1.2.3.4.1", "First");
    import_one("a", CONF_KEEP);
    put_image("in/b", "1.2.3.4.1", "Second");
    struct import_item item = import_newest("b");
    import_retire(store, &item.report);
    item = import_one("a", CONF_KEEP); /* after a restart */
    ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
    ck_assert_str_eq(item.report.path, SERIES "+1.dcm");
    ck_assert_int_eq(entries("root/quarantine"), 0);
}

END_TEST

START_TEST(a_removed_replacement_is_written_again)
{
    put_image("in/a", "1.2.3.4.1", "First");
    put_image("in/b", "1.2.3.4.1", "Second");
    import_newest("a");
    struct import_item item = import_newest("b");
    import_retire(store, &item.report);
    ck_assert_int_eq(unlink(scratch_path("root/" SERIES "+1.dcm")), 0);
    item = import_one("a", CONF_DELETE);
    ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
    ck_assert_str_eq(item.report.path, SERIES "+2.dcm");
}

END_TEST

/* ------------------------------------------------------------------------- received ------ */

static const struct import_claim claim = {.sop_class_uid = CLASS_CT, .sop_instance_uid = "1.2.3.4.1"};

/* Receives the bytes of a file, as an association's thread does. */
static struct import_item
receive(const char *relative, const struct import_claim *claimed)
{
    struct import_item item = {.folder = "scu:CT1", .relative = (char *)(uintptr_t) "1.2.3.4.1"};
    struct staged staged;
    bool read_failed;
    ck_assert_int_eq(store_create(store, &staged), 0);
    int source = open(scratch_path(relative), O_RDONLY);
    ck_assert_int_eq(file_copy(source, staged.fd, &read_failed), 0);
    close(source);
    import_received(store, &staged, claimed, &item);
    ck_assert_int_eq(staged.fd, -1);
    ck_assert_int_eq(entries("root/incoming"), 0);
    return item;
}

START_TEST(images_by_c_store_and_inbox_have_the_same_path)
{
    put_image("in/a.dcm", "1.2.3.4.1", "Maker");
    struct import_item item = receive("in/a.dcm", &claim);
    ck_assert_int_eq(item.outcome, IMPORT_ARRIVED);
    ck_assert_str_eq(item.report.path, "series/1.2.3.4.3/1.2.3.4.1.dcm");
    ck_assert_str_eq(item.report.series_uid, "1.2.3.4.3");
    ck_assert_int_eq(item.report.frames, 1);
    ck_assert(same_files("in/a.dcm", STORED));
    struct stat status;
    ck_assert_int_eq(stat(scratch_path(STORED), &status), 0);
    ck_assert_int_eq(item.report.size, status.st_size);
}

END_TEST

/* If the sync fails, the file must stay, and the next attempt must repeat the sync. */
START_TEST(a_received_image_is_stored_in_two_steps)
{
    put_image("in/a.dcm", "1.2.3.4.1", "Maker");
    const struct import_item item = receive("in/a.dcm", &claim);
    char folder[PATH_MAX], away[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", scratch_path("root/series/1.2.3.4.3"));
    snprintf(away, sizeof away, "%s", scratch_path("root/away"));
    ck_assert_int_eq(rename(folder, away), 0);
    ck_assert_int_eq(import_seal(store, &item), -ENOENT);
    ck_assert_int_eq(rename(away, folder), 0);
    ck_assert_int_eq(import_seal(store, &item), 0);
    ck_assert(same_files("in/a.dcm", STORED));
}

END_TEST

START_TEST(a_received_resend_has_no_effect)
{
    put_image("in/a.dcm", "1.2.3.4.1", "Maker");
    receive("in/a.dcm", &claim);
    struct import_item again = receive("in/a.dcm", &claim);
    ck_assert_int_eq(again.outcome, IMPORT_ARRIVED);
    ck_assert_int_eq(entries("root/series/1.2.3.4.3"), 1);
}

END_TEST

static void
assert_digest_of(const struct import_item *item, const char *stored)
{
    struct digest digest;
    const int fd = open(scratch_path(stored), O_RDONLY);
    ck_assert_int_eq(digest_file(fd, -1, &digest, NULL), 0);
    close(fd);
    ck_assert_str_eq(item->report.sha256, digest.sha256);
}

START_TEST(stored_files_have_a_digest_on_request)
{
    put_image("in/a.dcm", "1.2.3.4.1", "Maker");
    put_image("in/b.dcm", "1.2.3.4.1", "Another");
    struct import_item found = import_one("a.dcm", CONF_KEEP);
    ck_assert_str_eq(found.report.sha256, "");
    ck_assert_int_eq(unlink(scratch_path(STORED)), 0);
    store_want_digests(store, true);
    found = import_one("a.dcm", CONF_KEEP);
    assert_digest_of(&found, STORED);
    found = import_one("a.dcm", CONF_DELETE); /* the stored bytes may differ */
    ck_assert_int_eq(found.outcome, IMPORT_ARRIVED);
    ck_assert_str_eq(found.report.sha256, "");
    ck_assert_int_eq(unlink(scratch_path(STORED)), 0);
    struct import_item received = receive("in/a.dcm", &claim);
    assert_digest_of(&received, STORED);
    received = receive("in/b.dcm", &claim);
    ck_assert_int_eq(received.outcome, IMPORT_QUARANTINED);
    ck_assert_str_eq(received.report.sha256, "");
    store_want_digests(store, false);
    ck_assert_int_eq(unlink(scratch_path(STORED)), 0);
    received = receive("in/a.dcm", &claim);
    ck_assert_str_eq(received.report.sha256, "");
}

END_TEST

START_TEST(a_digest_belongs_to_the_stored_file_of_a_batch)
{
    store_want_digests(store, true);
    put_image("in/a", "1.2.3.4.1", "Maker");
    put_image("in/b", "1.2.3.4.1", "Maker");
    struct import_item a = item_of("a", CONF_DELETE), b = item_of("b", CONF_DELETE);
    struct import_item *batch[] = {&a, &b};
    import_batch(store, 0, batch, 2);
    assert_digest_of(&a, STORED);
    ck_assert_int_eq(b.outcome, IMPORT_ARRIVED);
    ck_assert_str_eq(b.report.sha256, "");
}

END_TEST

START_TEST(different_bytes_of_an_instance_are_quarantined_once)
{
    put_image("in/a.dcm", "1.2.3.4.1", "Maker");
    put_image("in/b.dcm", "1.2.3.4.1", "Another");
    receive("in/a.dcm", &claim);
    struct import_item second = receive("in/b.dcm", &claim);
    ck_assert_int_eq(second.outcome, IMPORT_QUARANTINED);
    ck_assert_int_eq(second.report.code, CODE_DUPLICATE_UID_DIFFERENT);
    ck_assert_str_eq(second.report.series_uid, "1.2.3.4.3");
    char kept[IMPORT_PATH + 8];
    snprintf(kept, sizeof kept, "root/%s", second.report.path);
    ck_assert(same_files("in/b.dcm", kept));
    ck_assert(same_files("in/a.dcm", STORED));
    struct import_item third = receive("in/b.dcm", &claim);
    ck_assert_int_eq(third.outcome, IMPORT_QUARANTINED);
    ck_assert_str_eq(third.report.path, second.report.path);
}

END_TEST

START_TEST(a_command_that_contradicts_its_data_set_is_refused)
{
    static const struct import_claim claims[] = {
        {.sop_class_uid = CLASS_MR, .sop_instance_uid = "1.2.3.4.1"},
        {.sop_class_uid = CLASS_CT, .sop_instance_uid = "1.2.3.4.10"},
    };
    put_image("in/a.dcm", "1.2.3.4.1", "Maker");
    for (size_t i = 0; i < 2; i++) {
        struct import_item item = receive("in/a.dcm", &claims[i]);
        ck_assert_int_eq(item.outcome, IMPORT_QUARANTINED);
        ck_assert_int_eq(item.report.code, CODE_COMMAND_MISMATCH);
        ck_assert(!scratch_has(STORED));
    }
}

END_TEST

START_TEST(foreign_data_by_c_store_is_quarantined_with_a_reason)
{
    static const char junk[] = "this is not DICOM";
    scratch_write("in/junk", junk, sizeof junk);
    struct import_item item = receive("in/junk", &claim);
    ck_assert_int_eq(item.outcome, IMPORT_QUARANTINED);
    ck_assert_int_eq(item.report.code, CODE_NOT_DICOM);
    char kept[IMPORT_PATH + 24];
    snprintf(kept, sizeof kept, "root/%s.reason.json", item.report.path);
    ck_assert(scratch_has(kept));
    ck_assert_uint_eq(strlen(strrchr(item.report.path, '/') + 1), 16); /* only the digest */
}

END_TEST

START_TEST(an_abandoned_file_leaves_no_trace)
{
    struct staged staged;
    ck_assert_int_eq(store_create(store, &staged), 0);
    ck_assert_int_eq(entries("root/incoming"), 1);
    store_discard(store, &staged);
    ck_assert_int_eq(entries("root/incoming"), 0);
    store_discard(store, &staged);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_import");
    TCase *tests = tcase_create("import");
    tcase_add_checked_fixture(tests, make_places, remove_places);
    tcase_add_test(tests, an_image_is_copied_and_described);
    tcase_add_test(tests, a_batch_may_contain_duplicates);
    tcase_add_test(tests, a_resend_has_no_effect);
    tcase_add_test(tests, a_writer_of_the_original_cannot_change_the_copy);
    tcase_add_test(tests, an_original_is_deleted_once);
    tcase_add_test(tests, the_header_belongs_to_the_stored_bytes);
    tcase_add_test(tests, file_meta_information_makes_no_other_instance);
    tcase_add_test(tests, a_changed_file_is_not_touched);
    tcase_add_test(tests, missing_originals_and_links_are_refused);
    tcase_add_test(tests, originals_are_moved_without_overwriting);
    tcase_add_test(tests, a_move_is_on_disk_in_both_folders);
    tcase_add_test(tests, originals_are_moved_to_another_file_system);
    tcase_add_test(tests, a_full_disk_loses_no_file);
    tcase_add_test(tests, an_unwritable_spool_loses_no_file);
    tcase_add_test(tests, foreign_files_are_quarantined_with_a_reason);
    tcase_add_test(tests, the_reported_path_of_an_odd_file_exists);
    tcase_add_test(tests, junk_does_not_fill_the_disk);
    tcase_add_test(tests, own_results_are_skipped_or_moved);
    tcase_add_test(tests, an_earlier_run_is_swept_up);
    tcase_add_test(tests, the_newest_replaces_the_first_after_its_row);
    tcase_add_test(tests, replacements_within_a_batch_are_applied_in_order);
    tcase_add_test(tests, a_replaced_kept_original_is_not_received_again);
    tcase_add_test(tests, a_removed_replacement_is_written_again);
    tcase_add_test(tests, images_by_c_store_and_inbox_have_the_same_path);
    tcase_add_test(tests, a_received_image_is_stored_in_two_steps);
    tcase_add_test(tests, a_received_resend_has_no_effect);
    tcase_add_test(tests, different_bytes_of_an_instance_are_quarantined_once);
    tcase_add_test(tests, a_command_that_contradicts_its_data_set_is_refused);
    tcase_add_test(tests, stored_files_have_a_digest_on_request);
    tcase_add_test(tests, a_digest_belongs_to_the_stored_file_of_a_batch);
    tcase_add_test(tests, foreign_data_by_c_store_is_quarantined_with_a_reason);
    tcase_add_test(tests, an_abandoned_file_leaves_no_trace);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
