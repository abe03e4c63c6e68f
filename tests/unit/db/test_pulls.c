/* Pulls: each item once, by its stored instances, with a kill at any point. */
#include "db/pull_queue.h"
#include "db/retention_rows.h"
#include "tests/unit/db/sample.h"

#define STUDY  "1.2.3" /* of all samples */
#define STATES "SELECT group_concat(item || state, ' ') FROM v_pulls"

static struct sample s;
static int64_t batch;

static void
open_sample(void)
{
    const struct queue_pull_wish wishes[] = {{QUEUE_PULL_ACCESSION, "h:1", 1}, {QUEUE_PULL_STUDY, STUDY, 2}};
    sample_open(&s);
    ck_assert_int_eq(queue_next_batch(s.queue, &batch), 0);
    ck_assert_int_eq(queue_add_pulls(s.queue, batch, "PACS", "jane", wishes, 2, SAMPLE_NOW), 0);
}

static void
close_sample(void)
{
    sample_close(&s);
}

static int
start(int64_t id)
{
    return queue_start_pull(s.queue, id, SAMPLE_NOW + 1000);
}

/* Sets the number of instances that the archive reports; -1: not reported. */
static int
found(int64_t id, int64_t expected)
{
    const struct queue_pull_part part = {STUDY, "", expected, 0, 0};
    return queue_pull_found(s.queue, id, &part, 1, SAMPLE_NOW + 2000);
}

static int
end(int64_t id, enum queue_pull_state state, enum code code)
{
    return queue_end_pull(s.queue, id, state, code, "as it is", SAMPLE_NOW + 3000);
}

START_TEST(a_batch_is_its_first_item)
{
    const struct queue_pull_wish wish = {QUEUE_PULL_SERIES, "1.2.3.4", 1};
    int64_t next;
    ck_assert_int_eq(batch, 1);
    ck_assert_int_eq(queue_next_batch(s.queue, &next), 0);
    ck_assert_int_eq(next, 3);
    ck_assert_int_eq(queue_add_pulls(s.queue, next, "CT", "joe", &wish, 1, SAMPLE_NOW), 0);
    assert_answer(&s,
                  "SELECT group_concat(batch || source || key || identifier || asked_by, ' ') "
                  "FROM v_pulls",
                  "1PACSaccessionh:1jane 1PACSstudy1.2.3jane 3CTseries1.2.3.4joe");
    ck_assert_int_eq(queue_add_pulls(s.queue, 4, "CT", "joe", &wish, 0, SAMPLE_NOW), -EINVAL);
    ck_assert_int_eq(queue_add_pulls(s.queue, 9, "CT", "joe", &wish, 1, SAMPLE_NOW), -EINVAL);
}

END_TEST

START_TEST(an_item_is_done_when_its_instances_are_stored)
{
    struct queue_pull_part *parts;
    size_t count;
    sample_series(s.queue, "1.2.3.4", 2);
    ck_assert_int_eq(start(1), 0);
    ck_assert_int_eq(start(1), -EAGAIN);
    ck_assert_int_eq(found(1, 3), 0);
    ck_assert_int_eq(queue_pull_parts(s.queue, 1, &parts, &count), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(parts[0].expected, 3);
    ck_assert_int_eq(parts[0].arrived, 2);
    queue_pull_parts_free(parts, count);
    sample_series(s.queue, "1.2.3.5", 1);
    ck_assert_int_eq(queue_note_move(s.queue, 1, SAMPLE_NOW + 2500), 0);
    ck_assert_int_eq(end(1, QUEUE_PULL_DONE, CODE_NONE), 0);
    assert_answer(&s,
                  "SELECT state || expected || arrived || study_uids || (moved_at IS NOT NULL) "
                  "FROM v_pulls WHERE item = 1",
                  "DONE331.2.31");
    ck_assert_int_eq(end(1, QUEUE_PULL_FAILED, CODE_FIND_REFUSED), -EAGAIN);
}

END_TEST

/*
 * An instance that arrived and is not kept counts once, and only for an item of its study that is
 * MOVING.
 */
START_TEST(dropped_instances_are_counted)
{
    const struct queue_unwanted report = {"1.2.3.9.1", "1.2.840.10008.5.1.4.1.1.88.67", "1.2.3.9", STUDY};
    const struct queue_unwanted other = {"1.2.4.9.1", "1.2.840.10008.5.1.4.1.1.88.67", "1.2.4.9", "1.2.4"};
    struct queue_pull_part *parts;
    size_t count;
    ck_assert_int_eq(start(1), 0);
    ck_assert_int_eq(queue_add_unwanted(s.queue, &report), 0); /* FINDING: not requested yet */
    ck_assert_int_eq(found(1, 2), 0);
    ck_assert_int_eq(queue_add_unwanted(s.queue, &other), 0);
    ck_assert_int_eq(queue_add_unwanted(s.queue, &report), 0);
    ck_assert_int_eq(queue_add_unwanted(s.queue, &report), 0);
    ck_assert_int_eq(queue_pull_parts(s.queue, 1, &parts, &count), 0);
    ck_assert_int_eq(parts[0].arrived, 0);
    ck_assert_int_eq(parts[0].unwanted, 1);
    queue_pull_parts_free(parts, count);
    assert_answer(&s, "SELECT group_concat(unwanted || ' ' || list_line, ' ') FROM v_pulls", "1 1 0 2");
}

END_TEST

/* Series of a study are counted separately if they were requested so. */
START_TEST(a_series_is_a_part)
{
    const struct queue_pull_part parts[] = {{STUDY, "1.2.3.4", 2, 0, 0}, {STUDY, "1.2.3.5", -1, 0, 0}};
    struct queue_pull_part *now;
    size_t count;
    sample_series(s.queue, "1.2.3.4", 2);
    sample_series(s.queue, "1.2.3.5", 1);
    ck_assert_int_eq(start(2), 0);
    ck_assert_int_eq(queue_pull_found(s.queue, 2, parts, 2, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_pull_parts(s.queue, 2, &now, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(now[0].arrived, 2);
    ck_assert_int_eq(now[1].arrived, 1);
    ck_assert_int_eq(now[1].expected, -1);
    queue_pull_parts_free(now, count);
    assert_answer(&s, "SELECT coalesce(expected, 'unknown') || arrived FROM v_pulls WHERE item = 2", "unknown3");
}

END_TEST

START_TEST(waiting_items_are_ordered_by_time)
{
    struct queue_pull pull;
    int64_t due_ms, at_ms;
    ck_assert_int_eq(start(1), 0);
    ck_assert_int_eq(
        queue_delay_pull(s.queue, 1, SAMPLE_NOW + 60000, true, CODE_PEER_UNREACHABLE, "gone", SAMPLE_NOW + 2000), 0);
    ck_assert_int_eq(queue_next_pull(s.queue, "PACS", &pull, &due_ms), 0);
    ck_assert_int_eq(pull.id, 2);
    ck_assert_int_eq(pull.line, 1);
    queue_pull_clear(&pull);
    ck_assert_int_eq(start(2), 0);
    ck_assert_int_eq(queue_next_pull(s.queue, "PACS", &pull, &due_ms), 0);
    ck_assert_int_eq(pull.id, 1);
    ck_assert_int_eq(pull.attempts, 1);
    ck_assert_int_eq(pull.since_ms, SAMPLE_NOW + 1000);
    ck_assert_int_eq(due_ms, SAMPLE_NOW + 60000);
    queue_pull_clear(&pull);
    ck_assert_int_eq(queue_next_pull(s.queue, "CT", &pull, &due_ms), 1);
    ck_assert_int_eq(queue_last_move(s.queue, "PACS", &at_ms), 0);
    ck_assert_int_eq(at_ms, 0);
    ck_assert_int_eq(found(2, 3), 0);
    ck_assert_int_eq(queue_note_move(s.queue, 2, SAMPLE_NOW + 5000), 0);
    ck_assert_int_eq(queue_last_move(s.queue, "PACS", &at_ms), 0);
    ck_assert_int_eq(at_ms, SAMPLE_NOW + 5000);
}

END_TEST

START_TEST(a_restart_repeats_requests)
{
    int32_t returned;
    ck_assert_int_eq(start(1), 0);
    ck_assert_int_eq(start(2), 0);
    ck_assert_int_eq(found(2, 3), 0);
    ck_assert_int_eq(queue_recover(s.queue, 3, SAMPLE_NOW + 9000, &returned), 0);
    assert_answer(&s, STATES, "1WAITING 2WAITING");
    ck_assert_int_eq(start(1), 0);
    ck_assert_int_eq(queue_return_pull(s.queue, 1, "untried", SAMPLE_NOW + 9000), 0);
    assert_answer(&s, "SELECT group_concat(attempts, ' ') FROM v_pulls", "1 1");
}

END_TEST

START_TEST(cancelling_a_batch_includes_running_items)
{
    struct queue_ids busy;
    int64_t count;
    ck_assert_int_eq(start(1), 0);
    ck_assert_int_eq(queue_cancel_pulls(s.queue, 7, "joe", SAMPLE_NOW, &busy, &count), -ENOENT);
    ck_assert_int_eq(queue_cancel_pulls(s.queue, batch, "joe", SAMPLE_NOW, &busy, &count), 0);
    ck_assert_int_eq(count, 2);
    ck_assert_uint_eq(busy.count, 1);
    ck_assert_int_eq(busy.at[0], 1);
    free(busy.at);
    assert_answer(&s, STATES, "1CANCELLED 2CANCELLED");
    ck_assert_int_eq(found(1, 1), -EAGAIN);
    ck_assert_int_eq(queue_cancel_pulls(s.queue, batch, "joe", SAMPLE_NOW, &busy, &count), -EAGAIN);
    free(busy.at);
}

END_TEST

/* Only an accession number must be kept outside the database, and only until its item has ended. */
START_TEST(keys_are_needed_until_the_end)
{
    ck_assert_int_eq(queue_pulls_need_keys(s.queue, batch), 1);
    ck_assert_int_eq(start(1), 0);
    ck_assert_int_eq(queue_pulls_need_keys(s.queue, batch), 1);
    ck_assert_int_eq(end(1, QUEUE_PULL_NOT_FOUND, CODE_NONE), 0);
    ck_assert_int_eq(queue_pulls_need_keys(s.queue, batch), 0);
}

END_TEST

START_TEST(finished_items_are_removed_by_age)
{
    size_t swept;
    ck_assert_int_eq(start(1), 0);
    ck_assert_int_eq(found(1, 3), 0);
    ck_assert_int_eq(end(1, QUEUE_PULL_PARTIAL, CODE_MOVE_INCOMPLETE), 0);
    ck_assert_int_eq(queue_sweep_events(s.queue, SAMPLE_NOW + 3000, 100, &swept), 0);
    assert_answer(&s, STATES, "1PARTIAL 2WAITING");
    ck_assert_int_eq(queue_sweep_events(s.queue, SAMPLE_NOW + 86400000, 100, &swept), 0);
    assert_answer(&s, STATES, "2WAITING");
}

END_TEST

START_TEST(waiting_items_follow_a_changed_clock)
{
    struct queue_pull pull;
    int64_t due_ms;
    ck_assert_int_eq(queue_clock_was_set(s.queue, 3600000), 0);
    ck_assert_int_eq(queue_next_pull(s.queue, "PACS", &pull, &due_ms), 0);
    ck_assert_int_eq(due_ms, SAMPLE_NOW + 3600000);
    queue_pull_clear(&pull);
}

END_TEST

SAMPLE_MAIN("db_pulls", open_sample, close_sample, a_batch_is_its_first_item,
            an_item_is_done_when_its_instances_are_stored, dropped_instances_are_counted, a_series_is_a_part,
            waiting_items_are_ordered_by_time, a_restart_repeats_requests, cancelling_a_batch_includes_running_items,
            keys_are_needed_until_the_end, finished_items_are_removed_by_age, waiting_items_follow_a_changed_clock)
