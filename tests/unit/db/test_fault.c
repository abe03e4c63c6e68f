/*
 * The whole life of a job and of a delivery while the n-th write to disk fails, for n = 1, 2, ...
 * until no write is hit; and a writer that is killed during its commits. After each fault the
 * database opens, it is sound, confirmed data exists, and the job can be finished.
 */
#include "tests/unit/db/failing_vfs.h"

#include "db/retention_rows.h"
#include "tests/share.h"
#include "tests/unit/db/sample.h"

#include <signal.h>
#include <sys/wait.h>

static struct sample s;

#ifdef __SANITIZE_ADDRESS__
/* Each fork copies the page tables of the quarantine (256 MiB by default). */
const char *__asan_default_options(void);

__attribute__((visibility("default"))) const char *
__asan_default_options(void)
{
    return "quarantine_size_mb=32:malloc_context_size=4";
}

/*
 * SQLite allocates per word that it parses, and ASan's allocator takes 40 % of this test. SQLite therefore uses libc's
 * here, behind a header with the size. The main function checks that SQLite has freed everything.
 */
void *__libc_malloc(size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

#define MEMORY_HEADER 16
#define UNCHECKED     __attribute__((no_sanitize("address", "undefined"))) static

UNCHECKED void *
memory_with_header(char *memory, int size)
{
    if (!memory)
        return NULL;
    memcpy(memory, &size, sizeof size);
    return memory + MEMORY_HEADER;
}

UNCHECKED void *
memory_malloc(int size)
{
    return memory_with_header(__libc_malloc((size_t)size + MEMORY_HEADER), size);
}

UNCHECKED void *
memory_realloc(void *memory, int size)
{
    return memory_with_header(__libc_realloc((char *)memory - MEMORY_HEADER, (size_t)size + MEMORY_HEADER), size);
}

UNCHECKED void
memory_free(void *memory)
{
    __libc_free((char *)memory - MEMORY_HEADER);
}

UNCHECKED int
memory_size(void *memory)
{
    int size;
    memcpy(&size, (char *)memory - MEMORY_HEADER, sizeof size);
    return size;
}

static int
memory_round_up(int size)
{
    return (size + 7) & ~7;
}

static int
memory_init(void *unused)
{
    (void)unused;
    return SQLITE_OK;
}

static void
memory_shutdown(void *unused)
{
    (void)unused;
}

static void
use_libc_memory(void)
{
    static const sqlite3_mem_methods methods = {memory_malloc,   memory_free, memory_realloc,  memory_size,
                                                memory_round_up, memory_init, memory_shutdown, NULL};
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 512, 2000), SQLITE_OK);
}
#else
static void
use_libc_memory(void)
{
}
#endif

/* ----------------------------------------------------------------------------- a job's life -- */

static int
add_one(int number)
{
    enum queue_arrival arrival;
    int64_t id;
    return sample_add(s.queue, "1.2.3", number, &arrival, &id);
}

static int
add_first(void)
{
    return add_one(1);
}

static int
add_second(void)
{
    return add_one(2);
}

static int
settle_it(void)
{
    return sample_settle(s.queue, 1, 1);
}

static int
add_the_job(void)
{
    int64_t job;
    return sample_add_job(s.queue, 1, 1, &job);
}

static int
start_it(void)
{
    return queue_start_job(s.queue, 1, "worker-0", 0, SAMPLE_NOW + 3000);
}

static int
finish_it(void)
{
    static const char *const to[] = {"PACS"};
    struct queue_result result = sample_result;
    result.destinations = to;
    result.destination_count = 1;
    const struct queue_figures figures = sample_measured(sample_features, SAMPLE_FEATURES);
    return queue_finish_job(s.queue, 1, &(struct queue_finish){QUEUE_DONE, &figures, &result, 1, CODE_NONE, ""},
                            SAMPLE_NOW + 4000);
}

static const struct queue_attempt attempt = {.dimse_status = 0, .code = CODE_NONE, .message = ""};

static int
start_sending(void)
{
    return queue_start_delivery(s.queue, 1, SAMPLE_NOW + 5000);
}

static int
delay_it(void)
{
    return queue_delay_delivery(s.queue, 1, SAMPLE_NOW + 5000, &attempt, SAMPLE_NOW + 5000);
}

static int
have_sent(void)
{
    return queue_delivery_sent(s.queue, 1, &attempt, "2.25.77", SAMPLE_NOW + 5000);
}

static int
have_committed(void)
{
    return queue_delivery_committed(s.queue, "2.25.77", "2.25.1", true, CODE_NONE, "", SAMPLE_NOW + 6000);
}

static int
send_again(void)
{
    int64_t count;
    return queue_resend(s.queue, &(struct queue_resend){.job_id = 1}, SAMPLE_NOW + 7000, &count);
}

static const struct queue_hold all = {"queue", "", "jane", ""};

static int
hold_all(void)
{
    return queue_hold(s.queue, &all, SAMPLE_NOW + 7000);
}

static int
release_all(void)
{
    return queue_release(s.queue, &all, SAMPLE_NOW + 7000);
}

static int
run_again(void)
{
    int64_t job;
    return sample_retry(s.queue, 1, true, &job);
}

static int
start_again(void)
{
    return queue_start_job(s.queue, 2, "worker-0", 0, SAMPLE_NOW + 8000);
}

static int
review_again(void)
{
    return sample_review(s.queue, 2);
}

static int
accept_again(void)
{
    static const char *const to[] = {"PACS"};
    return queue_accept_job(s.queue, 2, to, NULL, 1, "jane", SAMPLE_NOW + 9000);
}

/* Each step advances progress() by one. */
static int (*const steps[])(void) = {add_first,      add_second,    settle_it,   add_the_job,   start_it,
                                     finish_it,      start_sending, delay_it,    start_sending, have_sent,
                                     have_committed, send_again,    hold_all,    release_all,   run_again,
                                     start_again,    review_again,  accept_again};

#define STEPS ((int)(sizeof steps / sizeof *steps))

static int
progress(void)
{
    return atoi(sample_ask(&s, "SELECT (SELECT count(*) FROM instance) + (SELECT count(*) FROM v_series "
                               "WHERE state = 'SETTLED') + (SELECT count(*) FROM v_jobs) + (SELECT count(*) FROM "
                               "v_jobs WHERE attempts > 0) + (SELECT count(*) FROM v_jobs WHERE state = 'DONE') + "
                               "(SELECT count(*) FROM v_events WHERE kind IN ('DELIVERY_STARTED', "
                               "'DELIVERY_DELAYED', 'DELIVERY_SENT', 'COMMITMENT_DONE', 'DELIVERY_RESENT', 'HELD', "
                               "'RELEASED', 'JOB_REVIEW'))"));
}

/* All of them exist exactly if the job has ended. */
static void
assert_features_with_the_job(void)
{
    assert_answer(&s,
                  "SELECT (SELECT count(*) FROM v_features) = 3 * n "
                  "AND (SELECT count(*) FROM v_pattern_histograms) = n FROM "
                  "(SELECT count(*) AS n FROM v_jobs WHERE state = 'DONE')",
                  "1");
}

/* Takes the steps, `group` of them per transaction. Returns the number of confirmed steps. */
static int
live(int group)
{
    for (int at = 0; at < STEPS; at += group) {
        int rc = group > 1 ? queue_begin(s.queue) : 0;
        for (int i = at; rc == 0 && i < at + group; i++)
            rc = steps[i]();
        if (group > 1 && rc == 0)
            rc = queue_commit(s.queue);
        if (rc < 0) {
            queue_rollback(s.queue);
            ck_assert_msg(rc == -EIO || rc == -ENOSPC, "step %d: %d, %s", at, rc, queue_reason(s.queue));
            return at;
        }
    }
    return STEPS;
}

/* RUNNING becomes READY, and SENDING becomes PENDING, after a restart: that step is taken again. */
static void
again_if_recovered(int step)
{
    if (steps[step] == finish_it && sample_state(s.queue, 1) == QUEUE_READY)
        ck_assert_int_eq(start_it(), 0);
    if (steps[step] == review_again && sample_state(s.queue, 2) == QUEUE_READY)
        ck_assert_int_eq(start_again(), 0);
    if ((steps[step] == delay_it || steps[step] == have_sent) &&
        strcmp(sample_ask(&s, "SELECT state FROM v_deliveries"), "PENDING") == 0)
        ck_assert_int_eq(start_sending(), 0);
}

/* Takes all steps again from the present state, as the daemon does after a restart. */
static void
bring_to_the_end(void)
{
    int32_t returned;
    ck_assert_int_eq(queue_recover(s.queue, 3, SAMPLE_NOW, &returned), 0);
    for (int from = progress(); from < STEPS; from++) {
        again_if_recovered(from);
        int rc = steps[from]();
        ck_assert_msg(rc == 0, "step %d: %d, %s", from, rc, queue_reason(s.queue));
    }
    assert_answer(&s, "SELECT group_concat(state || coalesce(superseded_by, '')) FROM v_jobs", "DONE2,DONE");
    assert_answer(&s, "SELECT state || instances || jobs || jobs_done FROM v_series", "SETTLED222");
    assert_answer(&s, "SELECT count(*) FROM v_results", "2");
    assert_features_with_the_job();
    assert_answer(&s,
                  "SELECT group_concat(job || state || attempts || commitment || "
                  "coalesce(sent_at, '')) FROM (SELECT * FROM v_deliveries ORDER BY delivery)",
                  "1CANCELLED0NONE2026-01-31T02:03:25.000Z,2PENDING0NONE");
    assert_answer(&s, "PRAGMA integrity_check", "ok");
    sample_assert_sound(s.queue);
}

/* --------------------------------------------------------------------------- failing writes -- */

/* The file system works again. */
static void
heal(void)
{
    failing.countdown = 0;
}

/*
 * The common beginning of many lives is made once: the file of a first opening; 300 instances in a
 * file that does not shrink.
 */
static struct sample_database opened, old;

static void
make_opened(void)
{
    sample_open(&s);
    sample_store(&s, &opened);
    sample_close(&s);
}

static void
make_old(void)
{
    sample_open(&s);
    sample_series(s.queue, "1.2.3", 300);
    sample_unwatch();
    queue_close(s.queue);
    s.queue = NULL;
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "PRAGMA auto_vacuum = NONE; VACUUM", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    sample_store(&s, &old);
    sample_close(&s);
}

static void
make_stored(void)
{
    make_opened();
    make_old();
}

static void
free_stored(void)
{
    sqlite3_free(opened.bytes);
    sqlite3_free(old.bytes);
}

struct fault {
    bool for_good;
    int sqlite_error;
};

/* Lives once with the n-th write failing. Returns false if there were fewer writes. */
static bool
live_with_fault(int n, struct fault fault, bool first, int group)
{
    struct error error;
    int confirmed = 0;
    sample_folder(&s);
    if (!first)
        sample_restore(&s, &opened);
    failing.countdown = n;
    failing.for_good = fault.for_good;
    failing.error = fault.sqlite_error;
    failing.failures = 0;
    int rc = queue_open(s.path, &s.queue, &error);
    ck_assert_msg(rc == 0 || rc == -EIO || rc == -ENOSPC, "open: %d, %s", rc, error.message);
    bool hit = failing.failures > 0;
    if (rc == 0)
        confirmed = live(group);
    if (!first)
        hit = failing.failures > 0;
    if (fault.for_good || rc < 0) {
        /* The daemon dies; the next one finds the disk repaired. */
        sample_unwatch();
        queue_close(s.queue);
        s.queue = NULL;
        heal();
        sample_reopen(&s);
    }
    heal();
    int there = progress();
    /* A failed step is undone; only a restart may find it complete (transaction.c). */
    bool complete = (fault.for_good || rc < 0) && there == confirmed + group;
    ck_assert_msg(there == confirmed || complete, "write %d failed: %d confirmed, %d there", n, confirmed, there);
    assert_features_with_the_job();
    bring_to_the_end();
    sample_close(&s);
    return hit;
}

enum { KINDS = 4 };

static struct fault
fault_of(int kind)
{
    return (struct fault){kind & 1, kind & 2 ? SQLITE_FULL : SQLITE_IOERR_WRITE};
}

/* Each write fails with `kinds` of the kinds; the next write begins with the next kind. */
static void
live_with_faults(int kinds, bool first, int group)
{
    for (int kind = 0; kind < kinds; kind++) {
        int n = 1 + (int)test_share_first();
        while (live_with_fault(n, fault_of(kind + n), first, group))
            n += (int)test_share();
        ck_assert_int_gt(n, 20);
    }
}

static int
all_kinds(void)
{
    return test_share() > 1 ? 1 : KINDS;
}

/* All migrations are one transaction, of hundreds of similar writes. */
START_TEST(any_write_of_the_first_opening_may_fail)
{
    live_with_faults(1, true, 1);
}

END_TEST

START_TEST(any_write_may_fail)
{
    live_with_faults(all_kinds(), false, 1);
}

END_TEST

START_TEST(any_write_of_a_group_may_fail)
{
    live_with_faults(all_kinds(), false, STEPS);
}

END_TEST

/* ----------------------------------------------------------------------------- the rebuild --- */

static void
rebuild_open_old(void)
{
    sample_folder(&s);
    sample_restore(&s, &old);
    sample_reopen(&s);
}

static void
rebuild_assert_sound(void)
{
    sample_assert_sound(s.queue);
    assert_answer(&s, "PRAGMA integrity_check", "ok");
    assert_answer(&s, "SELECT instances FROM v_series", "300");
    assert_answer(&s, "SELECT count(*) FROM instance", "300");
}

/*
 * The n-th write fails, or is the last one of a process that is then killed. Returns false if there
 * was no such write.
 */
static bool
rebuild_with_fault(int n, struct fault fault, bool killed)
{
    int64_t bytes;
    sample_folder(&s);
    sample_restore(&s, &old);
    failing.failures = 0; /* The parent must not open the database before the fork. */
    sample_unwatch();
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct error error;
        if (queue_open(s.path, &s.queue, &error) < 0)
            _exit(3);
        failing.countdown = n;
        failing.for_good = fault.for_good || killed;
        failing.error = fault.sqlite_error;
        int rc = queue_rebuild(s.queue);
        const int status = failing.failures == 0 ? 0 : rc == 0 || rc == -EIO || rc == -ENOSPC ? 1 : 2;
        if (!killed) {
            heal();
            sample_unwatch();
            queue_close(s.queue);
        }
        _exit(status);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) < 2, "write %d: status %x", n, status);
    sample_reopen(&s);
    rebuild_assert_sound();
    ck_assert_int_eq(queue_rebuild(s.queue), 0);
    ck_assert_int_eq(queue_rebuild_size(s.queue, &bytes), 0);
    ck_assert_int_eq(bytes, 0);
    rebuild_assert_sound();
    sample_close(&s);
    return WEXITSTATUS(status) == 1;
}

START_TEST(any_write_of_a_rebuild_may_fail)
{
    int64_t bytes;
    rebuild_open_old();
    ck_assert_int_eq(queue_rebuild_size(s.queue, &bytes), 0);
    ck_assert_int_gt(bytes, 100000);
    sample_close(&s);
    for (int kind = 0; kind < 6; kind++) {
        int n = 1 + 7 * (int)test_share_first();
        while (rebuild_with_fault(n, fault_of(kind), kind >= 4))
            n += 7 * (int)test_share();
        ck_assert_int_gt(n, 30);
    }
}

END_TEST

START_TEST(a_rebuilt_database_is_smaller)
{
    rebuild_open_old();
    const int pages = atoi(sample_ask(&s, "PRAGMA page_count"));
    ck_assert_int_eq(queue_rebuild(s.queue), 0);
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(db, "DELETE FROM instance; UPDATE series SET instances = 0, frames = 0", NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    ck_assert_int_eq(queue_tidy(s.queue, 1000), 0);
    ck_assert_int_lt(atoi(sample_ask(&s, "PRAGMA page_count")), pages - 10);
    sample_close(&s);
}

END_TEST

/* -------------------------------------------------------------------------------- kill -9 ---- */

/* The child: opens the database, and adds an instance per commit, reporting each confirmed one. */
static void
write_until_killed(int pipe_fd, int round)
{
    char uid[32];
    struct queue *queue;
    struct error error;
    if (queue_open(s.path, &queue, &error) < 0)
        _exit(1);
    snprintf(uid, sizeof uid, "1.%d", round);
    for (int number = 1;; number++) {
        enum queue_arrival arrival;
        int64_t id;
        if (queue_begin(queue) < 0 || sample_add(queue, uid, number, &arrival, &id) < 0 ||
            queue_note(queue, "TEST", uid, SAMPLE_NOW) < 0 || queue_commit(queue) < 0)
            _exit(2);
        if (write(pipe_fd, &number, sizeof number) != sizeof number)
            _exit(3);
    }
}

/* Kills the child at its `until`-th confirmation. Returns the last one that it made. */
static int
kill_after(pid_t child, int pipe_fd, int until)
{
    int number, last = 0;
    bool killed = false;
    while (read(pipe_fd, &number, sizeof number) == sizeof number) {
        last = number;
        if (!killed && last >= until) {
            ck_assert_int_eq(kill(child, SIGKILL), 0);
            killed = true;
        }
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(killed && WIFSIGNALED(status), "the child ended by itself: %d", status);
    return last;
}

START_TEST(a_killed_writer_loses_no_confirmed_row)
{
    sample_folder(&s);
    for (int round = 0; round < 40; round++) {
        int fds[2];
        char sql[128];
        ck_assert_int_eq(pipe(fds), 0);
        sample_unwatch();
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            close(fds[0]);
            write_until_killed(fds[1], round);
        }
        close(fds[1]);
        int confirmed = kill_after(child, fds[0], 1 + round * 7 % 60);
        close(fds[0]);
        sample_reopen(&s);
        sample_assert_sound(s.queue);
        assert_answer(&s, "PRAGMA integrity_check", "ok");
        snprintf(sql, sizeof sql, "SELECT instances FROM v_series WHERE series_uid = '1.%d'", round);
        int there = atoi(sample_ask(&s, sql));
        /* The transaction in which it was killed may have been complete. */
        ck_assert_msg(there == confirmed || there == confirmed + 1, "%d confirmed, %d there", confirmed, there);
        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM v_events WHERE kind = 'TEST' AND "
                 "detail = '1.%d'",
                 round);
        ck_assert_int_eq(atoi(sample_ask(&s, sql)), there);
        sample_unwatch();
        queue_close(s.queue);
        s.queue = NULL;
    }
    sample_close(&s);
}

END_TEST

int
main(void)
{
    const TTest *const killed[] = {a_killed_writer_loses_no_confirmed_row};
    const TTest *const failed[] = {any_write_of_the_first_opening_may_fail, any_write_may_fail,
                                   any_write_of_a_group_may_fail, any_write_of_a_rebuild_may_fail,
                                   a_rebuilt_database_is_smaller};
    use_libc_memory();
    int rc = sample_run("db_kill", killed, 1, NULL, NULL);
    failing_vfs_install();
    rc |= sample_run("db_fault", failed, 5, make_stored, free_stored);
    sqlite3_free(sample_migrated.bytes);
    if (sqlite3_memory_used() > 0)
        fprintf(stderr, "SQLite did not free %lld bytes.\n", (long long)sqlite3_memory_used());
    return rc || sqlite3_memory_used() > 0;
}
