/* Quarantined files, and the instances that their series lack. */
#include "tests/unit/db/sample.h"

static struct sample s;

static void
open_sample(void)
{
    sample_open(&s);
}

static void
close_sample(void)
{
    sample_close(&s);
}

static void
add_file(struct queue_quarantine file)
{
    file.message = file.message ? file.message : "it is damaged";
    ck_assert_int_eq(queue_add_quarantine(s.queue, &file, SAMPLE_NOW + 500), 0);
}

/* As a file of an inbox. */
static void
add_damaged(const char *series_uid, const char *sop_instance_uid, enum code code)
{
    char original[64], path[64];
    snprintf(original, sizeof original, "/inbox/%s", sop_instance_uid);
    snprintf(path, sizeof path, "quarantine/%s", sop_instance_uid);
    add_file((struct queue_quarantine){.path = path,
                                       .original_path = original,
                                       .series_uid = series_uid,
                                       .sop_instance_uid = sop_instance_uid,
                                       .code = code});
}

static int64_t
count_lacking(const char *series_uid)
{
    struct queue_lacking lacking;
    ck_assert_int_eq(queue_find_lacking(s.queue, series_uid, &lacking), 0);
    int64_t count = lacking.count;
    queue_lacking_clear(&lacking);
    return count;
}

START_TEST(an_unrecorded_file_is_recorded_from_its_reason_file)
{
    sample_series(s.queue, "SERIES", 3);
    ck_assert_int_eq(queue_has_quarantine(s.queue, "quarantine/a"), 0);
    const char *reason = "{\"code\": \"FILE_TRUNCATED\", \"message\": \"it \\\"ends\\\"\", "
                         "\"original_path\": \"/inbox/a\", \"series_uid\": \"SERIES\", "
                         "\"sop_instance_uid\": \"1.2.2\", \"time\": \"2026\"}";
    ck_assert_int_eq(queue_adopt_quarantine(s.queue, "quarantine/a", reason, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_has_quarantine(s.queue, "quarantine/a"), 1);
    assert_answer(&s, "SELECT code || message || original_path || sop_instance_uid FROM quarantine",
                  "FILE_TRUNCATEDit \"ends\"/inbox/a1.2.2");
    assert_answer(&s, "SELECT count(*) FROM event WHERE kind = 'QUARANTINED'", "1");
}

END_TEST

START_TEST(an_invalid_reason_file_is_ignored)
{
    static const char *const reasons[] = {"", "{\"code\": ", "[]", "{\"code\": \"NO_SUCH\"}", "{\"code\": {\"a\": 1}}"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        char path[32];
        snprintf(path, sizeof path, "quarantine/%zu", i);
        ck_assert_int_eq(queue_adopt_quarantine(s.queue, path, reasons[i], SAMPLE_NOW), 0);
    }
    assert_answer(&s,
                  "SELECT count(*) FROM quarantine WHERE code = 'FILE_UNREADABLE' "
                  "AND message LIKE 'The service was stopped %'",
                  "5");
}

END_TEST

START_TEST(a_file_is_recorded_once)
{
    struct queue_quarantine file = {.path = "quarantine/a",
                                    .original_path = "/inbox/a",
                                    .code = CODE_NOT_DICOM,
                                    .message = "a has no DICOM header"};
    add_file(file);
    file.message = "told twice";
    add_file(file);
    assert_answer(&s,
                  "SELECT quarantined_at || path || original_path || series_uid || code || message "
                  "FROM v_quarantine",
                  "2026-01-31T02:03:20.500Zquarantine/a/inbox/aNOT_DICOMa has no DICOM header");
    assert_answer(&s, "SELECT count(*) || max(lacking) FROM v_quarantine", "10");
    for (int i = 0; i < 4; i++) {
        char original[16];
        snprintf(original, sizeof original, "/inbox/%d", i / 2);
        add_file((struct queue_quarantine){.original_path = original, .code = CODE_FILE_UNREADABLE});
    }
    assert_answer(&s, "SELECT count(*) FROM v_quarantine WHERE path = ''", "2");
    assert_answer(&s, "SELECT kind || ' ' || detail FROM v_events ORDER BY event",
                  "QUARANTINED NOT_DICOM: quarantine/a");
    assert_answer(&s, "SELECT count(*) FROM v_events", "3");
}

END_TEST

START_TEST(other_bytes_under_a_known_uid_flag_the_series)
{
    sample_series(s.queue, "1.2.3", 1);
    add_damaged("1.2.3", "1.2.3.1", CODE_DUPLICATE_UID_DIFFERENT);
    add_damaged("1.2.3", "1.2.3.1", CODE_DUPLICATE_UID_DIFFERENT);
    add_damaged("1.2.3", "1.2.3.1", CODE_SOP_CLASS_UNSUPPORTED);
    add_damaged("9.9", "9.9.1", CODE_DUPLICATE_UID_DIFFERENT);
    assert_answer(&s, "SELECT duplicate_conflicts || state || revision || quarantined FROM v_series", "1GATHERING10");
    assert_answer(&s, "SELECT count(*) FROM v_events WHERE series_uid = '1.2.3'", "3");
}

END_TEST

/* The first is named, with the number of all. */
START_TEST(missing_files_of_a_series_are_reported)
{
    struct queue_lacking lacking;
    sample_series(s.queue, "1.2.3", 3);
    ck_assert_int_eq(queue_find_lacking(s.queue, "1.2.3", &lacking), 0);
    ck_assert_int_eq(lacking.count, 0);
    add_damaged("1.2.3", "1.2.3.7", CODE_FILE_TRUNCATED);
    add_damaged("1.2.3", "1.2.3.8", CODE_PIXELS_UNDECODABLE);
    add_damaged("1.2.3", "1.2.3.9", CODE_SOP_CLASS_UNSUPPORTED); /* of another kind */
    add_damaged("1.2.3", "1.2.3.2", CODE_TAG_MISSING);           /* it is there */
    ck_assert_int_eq(queue_find_lacking(s.queue, "1.2.3", &lacking), 0);
    ck_assert_int_eq(lacking.count, 2);
    ck_assert_str_eq(lacking.code, "FILE_TRUNCATED");
    ck_assert_str_eq(lacking.path, "quarantine/1.2.3.7");
    ck_assert_int_eq(lacking.id, 1);
    ck_assert_str_eq(lacking.message, "it is damaged");
    queue_lacking_clear(&lacking);
    assert_answer(&s, "SELECT quarantined || last_seen_at FROM v_series", "22026-01-31T02:03:20.500Z");
}

END_TEST

START_TEST(a_valid_file_releases_the_quarantined_one)
{
    enum queue_arrival arrival;
    int64_t id;
    add_damaged("1.2.3", "1.2.3.4", CODE_FILE_TRUNCATED); /* before any other of its series */
    id = sample_series(s.queue, "1.2.3", 3);
    ck_assert_int_eq(count_lacking("1.2.3"), 1);
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 4, &arrival, &id), 0);
    ck_assert_int_eq(count_lacking("1.2.3"), 0);
    assert_answer(&s, "SELECT quarantined FROM v_series", "0");
    assert_answer(&s, "SELECT sop_instance_uid || lacking FROM v_quarantine", "1.2.3.40");
    add_damaged("1.2.3", "1.2.3.4", CODE_TAG_INVALID); /* too late to be missed */
    ck_assert_int_eq(count_lacking("1.2.3"), 0);
}

END_TEST

/*
 * A series that was complete without it is inspected again; a refused series waits for the good
 * file.
 */
START_TEST(a_late_damaged_file_flags_its_series)
{
    enum queue_arrival arrival;
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    ck_assert_int_eq(sample_settle(s.queue, id, 1), 0);
    add_damaged("1.2.3", "1.2.3.4", CODE_FILE_TRUNCATED);
    assert_answer(&s, "SELECT state || revision FROM v_series", "GATHERING2");
    assert_answer(&s, "SELECT kind || ' ' || detail FROM v_events ORDER BY event DESC LIMIT 1",
                  "INSTANCE a damaged instance: revision 2");
    struct queue_stack stack = {.name = "", .code = CODE_INCOMPLETE_SERIES, .message = "one"};
    ck_assert_int_eq(queue_settle(s.queue, id, 2, "", &stack, 1, SAMPLE_NOW), 0);
    add_damaged("1.2.3", "1.2.3.5", CODE_FILE_TRUNCATED);
    assert_answer(&s, "SELECT state || revision || quarantined FROM v_series", "REFUSED22");
    ck_assert_int_eq(sample_add(s.queue, "1.2.3", 4, &arrival, &id), 0);
    assert_answer(&s, "SELECT state || revision || quarantined FROM v_series", "GATHERING31");
}

END_TEST

/* A file of the same SOP Instance UID in another series, and one without a series, change nothing. */
START_TEST(a_file_of_another_series_releases_no_file)
{
    int64_t id = sample_series(s.queue, "1.2.3", 3);
    add_file((struct queue_quarantine){.original_path = "scu:CT1/1.2.4.1",
                                       .series_uid = "1.2.3",
                                       .sop_instance_uid = "1.2.4.1",
                                       .code = CODE_NOT_RECEIVED});
    add_file((struct queue_quarantine){.original_path = "scu:CT1/1.2.4.2",
                                       .series_uid = "",
                                       .sop_instance_uid = "1.2.4.2",
                                       .code = CODE_NOT_RECEIVED});
    struct queue_stack stack = {.name = "", .code = CODE_INCOMPLETE_SERIES, .message = "one"};
    ck_assert_int_eq(queue_settle(s.queue, id, 1, "", &stack, 1, SAMPLE_NOW), 0);
    sample_series(s.queue, "1.2.4", 2);
    assert_answer(&s,
                  "SELECT state || revision || quarantined FROM v_series "
                  "WHERE series_uid = '1.2.3'",
                  "REFUSED11");
    assert_answer(&s, "SELECT group_concat(lacking) FROM v_quarantine", "1,0");
}

END_TEST

/* -------------------------------------------------------------------- release, forget ---- */

#define BY "root (jane)"

START_TEST(a_refused_release_restores_the_entry)
{
    sample_series(s.queue, "SERIES", 3);
    add_damaged("SERIES", "1.2.3", CODE_FILE_TRUNCATED);
    ck_assert_int_eq(queue_release_quarantine(s.queue, 1, BY, SAMPLE_NOW + 600), 0);
    assert_answer(&s, "SELECT (removed_at IS NOT NULL) || lacking FROM v_quarantine", "11");
    assert_answer(&s, "SELECT group_concat(path) FROM removal", "quarantine/1.2.3,quarantine/1.2.3.reason.json");
    assert_answer(&s,
                  "SELECT detail || ' ' || series_uid FROM v_events "
                  "WHERE kind = 'QUARANTINE_RELEASED'",
                  "1 (FILE_TRUNCATED) by " BY " SERIES");
    ck_assert_int_eq(queue_release_quarantine(s.queue, 1, BY, SAMPLE_NOW + 600), -EINVAL);
    ck_assert_int_eq(queue_release_quarantine(s.queue, 1, NULL, SAMPLE_NOW + 600), 0);
    ck_assert_int_eq(queue_release_quarantine(s.queue, 2, BY, SAMPLE_NOW + 600), -ENOENT);
    ck_assert_int_eq(queue_has_quarantine(s.queue, "quarantine/1.2.3"), 1);

    add_file((struct queue_quarantine){.path = "quarantine/again",
                                       .original_path = "released:1",
                                       .series_uid = "SERIES",
                                       .sop_instance_uid = "1.2.3",
                                       .code = CODE_TAG_INVALID,
                                       .released = 1});
    assert_answer(&s,
                  "SELECT quarantine || ' ' || path || ' ' || original_path || ' ' || code || ' ' || "
                  "coalesce(removed_at, 'there') FROM v_quarantine",
                  "1 quarantine/again /inbox/1.2.3 TAG_INVALID there");
    ck_assert_int_eq(count_lacking("SERIES"), 1);
}

END_TEST

START_TEST(a_forgotten_file_leaves_an_event)
{
    sample_series(s.queue, "SERIES", 3);
    add_damaged("", "junk", CODE_NOT_DICOM);
    add_damaged("SERIES", "1.2.3", CODE_FILE_TRUNCATED);
    ck_assert_int_eq(queue_forget_quarantine(s.queue, 1, BY, SAMPLE_NOW + 600), 0);
    assert_answer(&s, "SELECT group_concat(quarantine) FROM v_quarantine", "2");
    assert_answer(&s, "SELECT detail FROM v_events WHERE kind = 'QUARANTINE_FORGOTTEN'", "1 (NOT_DICOM) by " BY);
    /* Until its file is deleted, a start must not adopt it. */
    ck_assert_int_eq(queue_has_quarantine(s.queue, "quarantine/junk"), 1);
    ck_assert_int_eq(queue_forget_quarantine(s.queue, 1, BY, SAMPLE_NOW + 600), -ENOENT);
    ck_assert_int_eq(queue_forget_quarantine(s.queue, 2, BY, SAMPLE_NOW + 600), -EPERM);
    const struct queue_complete as_it_is = {"SERIES", true, BY};
    ck_assert_int_eq(queue_request_complete(s.queue, &as_it_is, SAMPLE_NOW + 700), 0);
    ck_assert_int_eq(queue_forget_quarantine(s.queue, 2, BY, SAMPLE_NOW + 800), 0);
    assert_answer(&s, "SELECT count(*) FROM v_quarantine", "0");
}

END_TEST

START_TEST(a_file_by_c_store_has_its_ae_titles)
{
    add_file((struct queue_quarantine){.path = "quarantine/1",
                                       .original_path = "scu:CT1/1.2.3",
                                       .series_uid = "",
                                       .sop_instance_uid = "",
                                       .called_ae = "NOCTULE",
                                       .code = CODE_TAG_MISSING});
    assert_answer(&s, "SELECT sender || ' ' || called_ae FROM v_quarantine", "CT1 NOCTULE");
}

END_TEST

SAMPLE_MAIN("db_quarantine", open_sample, close_sample, a_file_is_recorded_once,
            an_unrecorded_file_is_recorded_from_its_reason_file, an_invalid_reason_file_is_ignored,
            other_bytes_under_a_known_uid_flag_the_series, missing_files_of_a_series_are_reported,
            a_valid_file_releases_the_quarantined_one, a_late_damaged_file_flags_its_series,
            a_file_of_another_series_releases_no_file, a_refused_release_restores_the_entry,
            a_forgotten_file_leaves_an_event, a_file_by_c_store_has_its_ae_titles)
