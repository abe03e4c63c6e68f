/*
 * sample.h - shared by the tests of db/: a queue in a temporary folder, a series and a job, and a
 * second connection that reads the file as an administrator would.
 */
#ifndef NOCTULE_TEST_DB_SAMPLE_H
#define NOCTULE_TEST_DB_SAMPLE_H

#include "db/queue.h"
#include "db/queue/queue_private.h"
#include "tests/unit/db/plans.h"

#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_NOW INT64_C(1769825000000) /* 2026-01-31T02:03:20.000Z */

struct sample {
    char folder[64];
    char path[96];
    struct queue *queue;
};

/*
 * Uses a folder in memory if there is one: the tests do not depend on the disk, and each commit
 * waits for it.
 */
static inline void
sample_folder(struct sample *sample)
{
    *sample = (struct sample){0};
    snprintf(sample->folder, sizeof sample->folder, "%s/noctule-db-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(sample->folder));
    snprintf(sample->path, sizeof sample->path, "%s/noctule.db", sample->folder);
}

/* The connection of sample_ask(). Opening takes most of the time of a query, so that it stays open. */
static struct {
    char path[96];
    sqlite3 *db;
} sample_watcher;

/* Close that connection. No connection may cross a fork, or see that the database is replaced or removed. */
static inline void
sample_unwatch(void)
{
    sqlite3_close(sample_watcher.db);
    sample_watcher.db = NULL;
}

static inline void
sample_reopen(struct sample *sample)
{
    struct error error = {0};
    sample_unwatch();
    queue_close(sample->queue);
    sample->queue = NULL;
    int rc = queue_open(sample->path, &sample->queue, &error);
    ck_assert_msg(rc == 0, "queue_open: %d, %s", rc, error.message);
    plans_watch(sample->queue->db.handle, true); /* for tests: it reads all rows */
    queue_check(sample->queue, &error);
    plans_watch(sample->queue->db.handle, false);
}

static inline int
sample_remove(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void
sample_assert_sound(struct queue *queue)
{
    struct error error = {0};
    int rc = queue_check(queue, &error);
    ck_assert_msg(rc == 0, "queue_check: %d, %s", rc, error.message);
}

/* Opens the file as another process would. */
static inline sqlite3 *
sample_look(const struct sample *sample)
{
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open_v2(sample->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    return db;
}

/* A database file in memory. */
struct sample_database {
    unsigned char *bytes;
    sqlite3_int64 size;
};

/* Copy the database of a sample, with all that is committed. The caller must free the bytes with sqlite3_free(). */
static inline void
sample_store(const struct sample *sample, struct sample_database *file)
{
    sqlite3 *db = sample_look(sample);
    file->bytes = sqlite3_serialize(db, "main", &file->size, 0);
    ck_assert_ptr_nonnull(file->bytes);
    sqlite3_close(db);
}

static inline void
sample_restore(const struct sample *sample, const struct sample_database *file)
{
    sample_unwatch();
    FILE *to = fopen(sample->path, "wb");
    ck_assert_ptr_nonnull(to);
    ck_assert_uint_eq(fwrite(file->bytes, (size_t)file->size, 1, to), 1);
    ck_assert_int_eq(fclose(to), 0);
}

static struct sample_database sample_migrated;

/* Open an empty database. The program runs the migrations once, and later samples begin with a copy of that file. */
static inline void
sample_open(struct sample *sample)
{
    sample_folder(sample);
    if (sample_migrated.bytes)
        sample_restore(sample, &sample_migrated);
    sample_reopen(sample);
    if (!sample_migrated.bytes)
        sample_store(sample, &sample_migrated);
}

static inline void
sample_close(struct sample *sample)
{
    sample_unwatch();
    if (sample->queue) {
        sample_assert_sound(sample->queue);
        plans_judge(sample->queue->db.handle);
    }
    queue_close(sample->queue);
    nftw(sample->folder, sample_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Returns the first column of the first row, as another process sees it; "" for NULL or no row. */
static inline const char *
sample_ask(const struct sample *sample, const char *sql)
{
    static char answer[4096];
    sqlite3_stmt *statement;
    if (sample_watcher.db && strcmp(sample_watcher.path, sample->path) != 0)
        sample_unwatch();
    if (!sample_watcher.db) {
        snprintf(sample_watcher.path, sizeof sample_watcher.path, "%s", sample->path);
        sample_watcher.db = sample_look(sample);
    }
    sqlite3 *db = sample_watcher.db;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    rc = sqlite3_step(statement);
    ck_assert_msg(rc == SQLITE_ROW || rc == SQLITE_DONE, "%s: %s", sql, sqlite3_errmsg(db));
    const unsigned char *text = rc == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
    snprintf(answer, sizeof answer, "%s", text ? (const char *)text : "");
    sqlite3_finalize(statement);
    return answer;
}

#define assert_answer(sample, sql, expected) ck_assert_str_eq(sample_ask(sample, sql), expected)

/* Checks the kept files of the inbox /drop: "file=look " each. */
static inline void
assert_kept(const struct sample *sample, bool with_original, int64_t after, size_t limit, const char *expected)
{
    struct queue_kept *kept;
    char text[256] = "";
    size_t count;
    ck_assert_int_eq(queue_kept(sample->queue, "inbox:/drop", with_original, after, limit, &kept, &count), 0);
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%lld=%lld ", (long long)kept[i].file,
                 (long long)kept[i].look);
    free(kept);
    ck_assert_str_eq(text, expected);
}

static inline int
sample_add(struct queue *queue, const char *series_uid, int number, enum queue_arrival *arrival, int64_t *series_id)
{
    char sop[64], path[160];
    snprintf(sop, sizeof sop, "%s.%d", series_uid, number);
    snprintf(path, sizeof path, "series/%s/%s.dcm", series_uid, sop);
    struct queue_instance instance = {
        .sop_instance_uid = sop,
        .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
        .transfer_syntax_uid = "1.2.840.10008.1.2.1",
        .series_uid = series_uid,
        .study_uid = "1.2.3",
        .modality = "CT",
        .body_part = "HEAD",
        .series_description = "Head 5 mm",
        .path = path,
        .source = "inbox:drop",
        .size = 525312,
        .frames = 1,
        .expected_instances = 0,
    };
    return queue_add_instance(queue, &instance, SAMPLE_NOW + number, arrival, series_id);
}

/* Adds a series of `instances` that is being received. */
static inline int64_t
sample_series(struct queue *queue, const char *series_uid, int instances)
{
    int64_t id = 0;
    for (int i = 1; i <= instances; i++) {
        enum queue_arrival arrival;
        ck_assert_int_eq(sample_add(queue, series_uid, i, &arrival, &id), 0);
        ck_assert_int_eq(arrival, QUEUE_NEW);
    }
    return id;
}

static inline int
sample_settle(struct queue *queue, int64_t series_id, int32_t revision)
{
    struct queue_stack stack = {.name = "",
                                .accepted = true,
                                .planes = 3,
                                .columns = 512,
                                .rows = 512,
                                .spacing_mm = 5.0,
                                .code = CODE_NONE,
                                .message = "",
                                .file_a = "",
                                .file_b = ""};
    return queue_settle(queue, series_id, revision, "quiet for 60 s", &stack, 1, SAMPLE_NOW + 1000);
}

static inline int
sample_add_job(struct queue *queue, int64_t series_id, int32_t revision, int64_t *job_id)
{
    struct queue_ids running;
    int rc = queue_add_job(queue,
                           &(struct queue_new_job){series_id, revision, "", "head-ct", "name = \"head-ct\";", 5, false,
                                                   NULL, false, 0, NULL, CODE_NONE, 0, NULL, 0, 0, 0},
                           SAMPLE_NOW + 2000, job_id, &running);
    free(running.at);
    return rc;
}

/* An operator's retry with the job's own settings. */
static inline int
sample_retry(struct queue *queue, int64_t job, bool again, int64_t *next)
{
    struct queue_ids running;
    int rc = queue_retry_job(queue, &(struct queue_retry){job, NULL, again}, SAMPLE_NOW + 5000, next, &running);
    free(running.at);
    return rc;
}

/* Adds a READY job of a new, complete series of three instances. */
static inline int64_t
sample_job(struct queue *queue, const char *series_uid)
{
    int64_t job, series = sample_series(queue, series_uid, 3);
    ck_assert_int_eq(sample_settle(queue, series, 1), 0);
    ck_assert_int_eq(sample_add_job(queue, series, 1, &job), 0);
    return job;
}

static const struct queue_segment sample_segments[] = {
    {
        .number = 1,
        .label = "Brain",
        .method = "level-set",
        .unit = "[hnsf'U]",
        .voxels = 1000,
        .millilitres = 0.625,
        .mean = 31.25,
        .minimum = -5,
        .maximum = 80,
        .first = {10, 20, 0},
        .last = {19, 29, 9},
        .centroid = {-1.5, 2.25, 100},
    },
    {
        .number = 2,
        .label = "Ventricle, \"left\"",
        .method = "range",
        .unit = "[hnsf'U]",
        .mean = NAN,
        .minimum = NAN,
        .maximum = NAN,
        .last = {-1, -1, -1},
        .centroid = {NAN, NAN, NAN},
    },
};

static const struct queue_breach sample_breaches[] = {
    {1, "Brain", "volume_ml", 0.625, {900, 1900}, "Brain: volume 0.625 ml, expected 900 to 1900 ml"},
    {0, "Skull", "touches", NAN, {NAN, NAN}, "Skull: reaches the edge of the volume"},
};

static const struct queue_figures sample_figures = {
    .read_seconds = 0.25,
    .compute_seconds = 0.5,
    .write_seconds = 0.125,
    .verify_seconds = -1,
    .total_seconds = 1.0,
    .voxels = 786432,
    .segmented_voxels = 1000,
    .peak_bytes = 100 << 20,
    .backend = "cpu",
    .note = "",
    .voxel = {.spacing = {0.5, 0.5, 2.5},
              .source_spacing = {0.5, 0.5},
              .source_steps = {2.5, 5},
              .straightened = "2.5 to 5 mm apart",
              .kernel = "FC13",
              .kvp = 120,
              .thickness = {2.5, 5}},
    .segments = sample_segments,
    .segment_count = sizeof sample_segments / sizeof *sample_segments,
    .breaches = sample_breaches,
    .breach_count = sizeof sample_breaches / sizeof *sample_breaches,
};

static const struct queue_result sample_result = {
    .kind = "seg",
    .path = "outbox/1/seg.dcm",
    .sop_class_uid = "1.2.840.10008.5.1.4.1.1.66.4",
    .sop_instance_uid = "2.25.1",
    .series_uid = "2.25.2",
    .size = 4096,
    .frames = 3,
};

static const struct feature sample_features[] = {
    {
        .segment = 1,
        .label = "Brain",
        .family = "first-order",
        .name = "mean",
        .meaning = "Mean",
        .ibsi = "Q4LE",
        .value = 31.25,
        .unit = "[hnsf'U]",
    },
    {
        .segment = 1,
        .label = "Brain",
        .family = "glcm",
        .name = "joint_entropy",
        .meaning = "Joint entropy",
        .ibsi = "TU9B",
        .value = 2.1234567890123457,
        .missing_reason = "",
        .unit = "1",
        .settings = "aggregation=3d-merged;aggregation_ibsi_code=IAZD;"
                    "discretisation=fixed-bin-number;distance=1;levels=32;range_high=400;"
                    "range_low=-1000;symmetric=true",
    },
    {
        .segment = 2,
        .label = "Ventricle, \"left\"",
        .family = "glcm",
        .name = "correlation",
        .meaning = "Correlation",
        .ibsi = "NI2N",
        .missing_reason = "ONE_GREY_LEVEL",
        .unit = "1",
        .settings = "aggregation=2d-averaged;aggregation_ibsi_code=BTW3;bin_width=0.1;"
                    "directions=0,90;discretisation=fixed-bin-size;levels=2;symmetric=false",
    },
};

#define SAMPLE_FEATURES (sizeof sample_features / sizeof *sample_features)

static const int64_t sample_counts[QUEUE_CODES] = {[0] = 5, [255] = INT64_C(1) << 40};

static const struct queue_histogram sample_histogram = {
    .segment = 1,
    .label = "Brain",
    .pattern = "tlbap",
    .settings = "threshold=0.9",
    .counts = sample_counts,
};

/* sample_figures with these features and the histogram. */
static inline struct queue_figures
sample_measured(const struct feature *features, size_t count)
{
    struct queue_figures figures = sample_figures;
    figures.features = features;
    figures.feature_count = count;
    figures.histograms = &sample_histogram;
    figures.histogram_count = 1;
    return figures;
}

static inline int
sample_finish_measured(struct queue *queue, int64_t job)
{
    const struct queue_figures figures = sample_measured(sample_features, SAMPLE_FEATURES);
    return queue_finish_job(queue, job, &(struct queue_finish){QUEUE_DONE, &figures, &sample_result, 1, CODE_NONE, ""},
                            SAMPLE_NOW + 4000);
}

static inline int
sample_finish(struct queue *queue, int64_t job)
{
    return queue_finish_job(queue, job,
                            &(struct queue_finish){QUEUE_DONE, &sample_figures, &sample_result, 1, CODE_NONE, ""},
                            SAMPLE_NOW + 4000);
}

/* Ends the job with a broken expectation. */
static inline int
sample_review(struct queue *queue, int64_t job)
{
    const struct queue_figures figures = sample_measured(sample_features, SAMPLE_FEATURES);
    return queue_finish_job(
        queue, job,
        &(struct queue_finish){QUEUE_REVIEW, &figures, &sample_result, 1, CODE_EXPECTATION_BROKEN, "Brain: 31 ml"},
        SAMPLE_NOW + 4000);
}

static inline enum queue_job_state
sample_state(struct queue *queue, int64_t job_id)
{
    struct queue_job job;
    ck_assert_int_eq(queue_get_job(queue, job_id, &job), 0);
    enum queue_job_state state = job.state;
    queue_job_clear(&job);
    return state;
}

/*
 * Runs a suite of one test case; `before` and `after` (may be NULL) run around each test. Returns
 * the exit status for main().
 */
static inline int
sample_run(const char *name, const TTest *const *tests, size_t count, void (*before)(void), void (*after)(void))
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, before, after);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}

#define SAMPLE_MAIN(name, before, after, ...)                                                                          \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const TTest *const tests[] = {__VA_ARGS__};                                                                    \
        return sample_run(name, tests, sizeof tests / sizeof *tests, before, after);                                   \
    }

#endif
