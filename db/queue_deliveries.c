/*
 * queue_deliveries.c - the outbox: the edges of a delivery, which is one result on its way to one
 * destination.
 *
 *                 +---------+ --start_delivery, attempts+1--> +---------+
 *   -finish_job-> | PENDING | <-return_delivery, attempts-1-- | SENDING | --fail_delivery--> FAILED
 *   -redirect---> |         | <-recover---------------------- |         | --redirect-------> FAILED
 *                 +---------+                                 |         |
 *                 +---------+ --start_delivery, when due----> |         |
 *                 |         | <-delay_delivery--------------- +---------+
 *                 | DELAYED |                                      | delivery_sent
 *                 |         |                                 +---------+
 *                 |         | <-delay_delivery, when not ---- |  SENT   | --fail_delivery--> FAILED
 *                 +---------+     committed                   +---------+     (likewise)
 *
 *     PENDING, DELAYED --fail_delivery---------------------------> FAILED
 *     PENDING, DELAYED --finish_job, of a newer revision---------> CANCELLED (SUPERSEDED)
 *     PENDING, DELAYED --retry_job-------------------------------> CANCELLED (RETRIED)
 *     FAILED, CANCELLED --finish_job, the same result made anew--> PENDING, attempts 0
 *     SENT, DELAYED, FAILED --resend-----------------------------> PENDING, attempts 0
 *     CANCELLED --resend, by its number only---------------------> PENDING, attempts 0
 *
 * Storage commitment is a second, smaller machine beside SENT. REQUESTED and COMMITTED exist in
 * SENT only; what leaves it not committed takes FAILED along until its next attempt.
 *
 *     NONE      --delivery_sent, with a transaction--> REQUESTED
 *     REQUESTED --delivery_committed-----------------> COMMITTED or FAILED
 *
 * Each edge is one UPDATE guarded by the state it leaves and one event row, in one transaction;
 * invariants are in queue.c.
 *
 * What is delivered, and what is not any more:
 *   - A newer revision of a series that ends well (DONE or EMPTY) takes back what the older ones
 *     have not sent yet: an archive should not get, after the fact, what has been replaced. Until
 *     then the older result is valid, and is delivered. One that is being sent at that moment goes
 *     on, and is tried again if it has to be.
 *   - A retried job makes its results again, with the same UIDs as long as the program and the
 *     pipeline are the same. What was SENT stays so: the destination has that object; sending the
 *     new file under the same UID is an operator's decision (resend). What was not sent (CANCELLED,
 *     FAILED) is due again. With other UIDs they are other objects, with deliveries of their own.
 *   - Rows are never deleted. A row that has no result (it was retried and did not come back) is
 *     history and cannot be sent.
 */
#include "queue_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
    [QUEUE_DELIVERY_PENDING] = "PENDING", [QUEUE_DELIVERY_SENDING] = "SENDING",
    [QUEUE_DELIVERY_SENT] = "SENT",       [QUEUE_DELIVERY_DELAYED] = "DELAYED",
    [QUEUE_DELIVERY_FAILED] = "FAILED",   [QUEUE_DELIVERY_CANCELLED] = "CANCELLED",
};

static const char *const commitment_names[] = {
    [QUEUE_COMMITMENT_NONE] = "NONE",
    [QUEUE_COMMITMENT_REQUESTED] = "REQUESTED",
    [QUEUE_COMMITMENT_COMMITTED] = "COMMITTED",
    [QUEUE_COMMITMENT_FAILED] = "FAILED",
};

#define COUNT_OF(names) (sizeof(names) / sizeof *(names))
#define PENDING         (1u << QUEUE_DELIVERY_PENDING)
#define SENDING         (1u << QUEUE_DELIVERY_SENDING)
#define SENT            (1u << QUEUE_DELIVERY_SENT)
#define DELAYED         (1u << QUEUE_DELIVERY_DELAYED)
#define FAILED          (1u << QUEUE_DELIVERY_FAILED)
#define CANCELLED       (1u << QUEUE_DELIVERY_CANCELLED)

const char *
queue_delivery_state_name(enum queue_delivery_state state)
{
    return (size_t)state < COUNT_OF(state_names) ? state_names[state] : "UNKNOWN";
}

/* The index of a name, or -EUCLEAN. */
static int
find_name(const char *const *names, size_t count, const unsigned char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp((const char *)name, names[i]) == 0)
            return (int)i;
    return -EUCLEAN;
}

/* ------------------------------------------------------------------------- what edges share -- */

/* What an edge needs to know of the row it leaves. */
struct delivery_row {
    int64_t id, job_id, series_id;
    enum queue_delivery_state state;
    enum queue_commitment commitment;
    int32_t attempts;
    bool has_result;
    char destination[256]; /* for the words of events */
};

static int
no_such_delivery(struct queue *queue, int64_t delivery_id)
{
    return database_refuse(&queue->db, -ENOENT, "there is no delivery %lld",
                           (long long)delivery_id);
}

static int
unpack_row(sqlite3_stmt *statement, struct delivery_row *row)
{
    int state = find_name(state_names, COUNT_OF(state_names), sqlite3_column_text(statement, 2));
    int commitment =
        find_name(commitment_names, COUNT_OF(commitment_names), sqlite3_column_text(statement, 3));
    if (state < 0 || commitment < 0)
        return -EUCLEAN;
    row->job_id = sqlite3_column_int64(statement, 0);
    row->series_id = sqlite3_column_int64(statement, 1);
    row->state = (enum queue_delivery_state)state;
    row->commitment = (enum queue_commitment)commitment;
    row->attempts = sqlite3_column_int(statement, 4);
    row->has_result = sqlite3_column_type(statement, 5) != SQLITE_NULL;
    snprintf(row->destination, sizeof row->destination, "%s", sqlite3_column_text(statement, 6));
    return 0;
}

static int
read_row(struct queue *queue, int64_t delivery_id, struct delivery_row *row)
{
    sqlite3_stmt *statement;
    *row = (struct delivery_row){.id = delivery_id};
    int rc = database_start(&queue->db,
                            "SELECT d.job_id, j.series_id, d.state, d.commitment, d.attempts, "
                            "d.result_id, d.destination "
                            "FROM delivery d JOIN job j ON j.id = d.job_id WHERE d.id = ?",
                            VALUES(value_int(delivery_id)), &statement);
    if (rc < 0)
        return rc;
    rc = database_step(&queue->db, statement);
    if (rc == 1)
        rc = unpack_row(statement, row);
    else if (rc == 0)
        rc = no_such_delivery(queue, delivery_id);
    database_end(statement);
    return rc;
}

static int
wrong_state(struct queue *queue, const struct delivery_row *row)
{
    return database_refuse(&queue->db, -EAGAIN, "delivery %lld is %s", (long long)row->id,
                           state_names[row->state]);
}

/* Reads the row; -EAGAIN unless its state is one of `allowed`. */
static int
expect_row(struct queue *queue, int64_t delivery_id, unsigned allowed, struct delivery_row *row)
{
    int rc = read_row(queue, delivery_id, row);
    if (rc == 0 && !(allowed & 1u << row->state))
        rc = wrong_state(queue, row);
    return rc;
}

static int
note(struct queue *queue, const struct delivery_row *row, const char *kind, const char *from_state,
     const char *to_state, const char *words, int64_t now_ms)
{
    char detail[768];
    snprintf(detail, sizeof detail, "%s%s%s", row->destination, words[0] ? ", " : "", words);
    struct queue_event event = {.kind = kind,
                                .series_id = row->series_id,
                                .job_id = row->job_id,
                                .delivery_id = row->id,
                                .from_state = from_state,
                                .to_state = to_state,
                                .detail = detail};
    return queue_add_event(queue, &event, now_ms);
}

/* Turns what the guarded UPDATE of an edge returned into 0 or -errno, and writes the event. */
static int
moved(struct queue *queue, int changed, const struct delivery_row *row,
      enum queue_delivery_state to, const char *kind, const char *words, int64_t now_ms)
{
    if (changed < 0)
        return changed;
    if (changed == 0)
        return wrong_state(queue, row);
    return note(queue, row, kind, state_names[row->state], state_names[to], words, now_ms);
}

static struct database_value
status_or_null(int32_t dimse_status)
{
    return dimse_status >= 0 ? value_int(dimse_status) : value_null();
}

/* "attempt 2, status 0xA700, CODE: sentence"; whichever part there is. */
static const char *
attempt_words(const struct delivery_row *row, const struct queue_attempt *attempt, char *text,
              size_t size)
{
    char status[32] = "", why[512];
    const char *reason = queue_code_and_sentence(attempt->code, attempt->sentence, why, sizeof why);
    if (attempt->dimse_status >= 0)
        snprintf(status, sizeof status, ", status 0x%04X", (unsigned)attempt->dimse_status);
    snprintf(text, size, "attempt %d%s%s%s", row->attempts, status, reason[0] ? ", " : "", reason);
    return text;
}

/* Applies an edge to each of the deliveries that `sql` finds; how many went into *count. */
static int
for_each_delivery(struct queue *queue, const char *sql, const struct database_value *values,
                  size_t value_count,
                  int (*edge)(struct queue *queue, const struct delivery_row *row, int64_t now_ms),
                  int64_t now_ms, int64_t *count)
{
    struct queue_ids ids;
    int rc = queue_read_ids(queue, sql, values, value_count, &ids);
    for (size_t i = 0; rc == 0 && i < ids.count; i++) {
        struct delivery_row row;
        rc = read_row(queue, ids.at[i], &row);
        if (rc == 0)
            rc = edge(queue, &row, now_ms);
    }
    *count = (int64_t)ids.count;
    free(ids.at);
    return rc;
}

/* ------------------------------------------------------------------------------------ adding - */

/* 1 when a row was made, 0 when this result has a delivery to the destination already. */
static int
insert_delivery(struct queue *queue, int64_t result_id, const char *destination, int64_t now_ms)
{
    return database_change(
        &queue->db,
        "INSERT INTO delivery (job_id, result_id, destination, kind, path, sop_class_uid, "
        "sop_instance_uid, state, due_at, created_at, since_at) "
        "SELECT job_id, id, ?2, kind, path, sop_class_uid, sop_instance_uid, 'PENDING', ?3, ?3, ?3 "
        "FROM result WHERE id = ?1 ON CONFLICT DO NOTHING",
        VALUES(value_int(result_id), value_text(destination), value_time(now_ms)));
}

static int
add_delivery(struct queue *queue, int64_t result_id, const char *destination, int64_t now_ms)
{
    if (!destination || !destination[0])
        return database_refuse(&queue->db, -EINVAL, "a destination has no name");
    int rc = insert_delivery(queue, result_id, destination, now_ms);
    if (rc <= 0)
        return rc;
    struct delivery_row row;
    rc = read_row(queue, sqlite3_last_insert_rowid(queue->db.handle), &row);
    if (rc == 0)
        rc = note(queue, &row, "DELIVERY_ADDED", NULL, state_names[QUEUE_DELIVERY_PENDING], "",
                  now_ms);
    return rc;
}

/* -> PENDING, as if it were new, at once due. */
static int
begin_anew(struct queue *queue, const struct delivery_row *row, const char *kind, const char *words,
           int64_t now_ms)
{
    int changed = database_change(
        &queue->db,
        "UPDATE delivery SET state = 'PENDING', attempts = 0, due_at = ?3, since_at = ?3, "
        "dimse_status = NULL, code = '', sentence = '', commitment = 'NONE', "
        "transaction_uid = '', requested_at = NULL, committed_at = NULL "
        "WHERE id = ?1 AND state = ?2",
        VALUES(value_int(row->id), value_text(state_names[row->state]), value_time(now_ms)));
    return moved(queue, changed, row, QUEUE_DELIVERY_PENDING, kind, words, now_ms);
}

/* The result of a retried job is there again, and with it what was not sent. */
static int
renew(struct queue *queue, const struct delivery_row *row, int64_t now_ms)
{
    return begin_anew(queue, row, "DELIVERY_RENEWED", "its result was made again", now_ms);
}

/* Deliveries of the same object that an earlier run of the job made find their result again. */
static int
find_again(struct queue *queue, int64_t result_id)
{
    int rc = database_change(
        &queue->db,
        "UPDATE delivery SET result_id = r.id, kind = r.kind, sop_class_uid = r.sop_class_uid "
        "FROM result r WHERE r.id = ? AND delivery.job_id = r.job_id AND delivery.path = r.path "
        "AND delivery.sop_instance_uid = r.sop_instance_uid AND delivery.result_id IS NULL",
        VALUES(value_int(result_id)));
    return rc < 0 ? rc : 0;
}

static int
add_or_renew(struct queue *queue, int64_t result_id, const char *destination, int64_t now_ms)
{
    int64_t count;
    int rc = add_delivery(queue, result_id, destination, now_ms);
    if (rc < 0)
        return rc;
    return for_each_delivery(queue,
                             "SELECT id FROM delivery WHERE result_id = ? AND destination = ? "
                             "AND state IN ('FAILED', 'CANCELLED')",
                             VALUES(value_int(result_id), value_text(destination)), renew, now_ms,
                             &count);
}

int
queue_add_deliveries(struct queue *queue, int64_t result_id, const struct queue_result *result,
                     int64_t now_ms)
{
    int rc = find_again(queue, result_id);
    for (size_t i = 0; rc == 0 && i < result->destination_count; i++)
        rc = add_or_renew(queue, result_id, result->destinations[i], now_ms);
    return rc;
}

/* ------------------------------------------------------------------------- not wanted any more */

/* PENDING | DELAYED -> CANCELLED. "+state" below: a job's few rows, not all that wait. */
static int
withdraw(struct queue *queue, const struct delivery_row *row, const char *code,
         const char *sentence, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'CANCELLED', code = ?3, "
                                  "sentence = ?4 WHERE id = ?1 AND state = ?2",
                                  VALUES(value_int(row->id), value_text(state_names[row->state]),
                                         value_text(code), value_text(sentence)));
    char words[256];
    return moved(queue, changed, row, QUEUE_DELIVERY_CANCELLED, "DELIVERY_CANCELLED",
                 queue_code_and_sentence(code, sentence, words, sizeof words), now_ms);
}

static int
withdraw_superseded(struct queue *queue, const struct delivery_row *row, int64_t now_ms)
{
    return withdraw(queue, row, "SUPERSEDED",
                    "late slices came, and the series was processed again before this was sent",
                    now_ms);
}

static int
withdraw_retried(struct queue *queue, const struct delivery_row *row, int64_t now_ms)
{
    return withdraw(queue, row, "RETRIED", "its job was retried before this was sent", now_ms);
}

int
queue_withdraw_superseded(struct queue *queue, int64_t job_id, int64_t now_ms)
{
    int64_t count;
    return for_each_delivery(
        queue,
        "SELECT d.id FROM job n JOIN job o ON o.series_id = n.series_id AND o.stack = n.stack "
        "AND o.pipeline = n.pipeline AND o.revision < n.revision "
        "JOIN delivery d ON d.job_id = o.id AND d.state IN ('PENDING', 'DELAYED') "
        "WHERE n.id = ? ORDER BY d.id",
        VALUES(value_int(job_id)), withdraw_superseded, now_ms, &count);
}

int
queue_withdraw_retried(struct queue *queue, int64_t job_id, int64_t now_ms)
{
    int64_t sending, count;
    int rc =
        database_get(&queue->db, "SELECT id FROM delivery WHERE job_id = ? AND +state = 'SENDING'",
                     VALUES(value_int(job_id)), &sending);
    if (rc < 0)
        return rc;
    if (rc == 1)
        return database_refuse(&queue->db, -EBUSY,
                               "a result of job %lld is being sent (delivery %lld): retry it "
                               "afterwards",
                               (long long)job_id, (long long)sending);
    return for_each_delivery(queue,
                             "SELECT id FROM delivery WHERE job_id = ? "
                             "AND +state IN ('PENDING', 'DELAYED') ORDER BY id",
                             VALUES(value_int(job_id)), withdraw_retried, now_ms, &count);
}

/* ----------------------------------------------------------------------------------- reading - */

void
queue_delivery_clear(struct queue_delivery *delivery)
{
    free(delivery->destination);
    free(delivery->kind);
    free(delivery->path);
    free(delivery->sop_class_uid);
    free(delivery->sop_instance_uid);
    *delivery = (struct queue_delivery){0};
}

#define DELIVERY_COLUMNS                                                                           \
    "id, job_id, attempts, state, commitment, since_at, due_at, destination, kind, path, "         \
    "sop_class_uid, sop_instance_uid"

static int
read_states(sqlite3_stmt *statement, struct queue_delivery *delivery)
{
    int state = find_name(state_names, COUNT_OF(state_names), sqlite3_column_text(statement, 3));
    int commitment =
        find_name(commitment_names, COUNT_OF(commitment_names), sqlite3_column_text(statement, 4));
    if (state < 0 || commitment < 0)
        return -EUCLEAN;
    delivery->state = (enum queue_delivery_state)state;
    delivery->commitment = (enum queue_commitment)commitment;
    return 0;
}

static int
read_delivery(struct queue *queue, sqlite3_stmt *statement, struct queue_delivery *delivery)
{
    *delivery = (struct queue_delivery){
        .id = sqlite3_column_int64(statement, 0),
        .job_id = sqlite3_column_int64(statement, 1),
        .attempts = sqlite3_column_int(statement, 2),
    };
    int rc = read_states(statement, delivery);
    if (rc == 0)
        rc = database_column_time(statement, 5, &delivery->since_ms);
    if (rc == 0)
        rc = database_column_time(statement, 6, &delivery->due_ms);
    char **const texts[] = {&delivery->destination, &delivery->kind, &delivery->path,
                            &delivery->sop_class_uid, &delivery->sop_instance_uid};
    for (size_t i = 0; rc == 0 && i < COUNT_OF(texts); i++)
        rc = database_column_text(statement, 7 + (int)i, texts[i]);
    if (rc < 0) {
        int64_t id = delivery->id;
        queue_delivery_clear(delivery);
        return database_refuse(&queue->db, rc, "the row of delivery %lld cannot be read: %s",
                               (long long)id, strerror(-rc));
    }
    return 0;
}

/* The first row of a started statement; 1 when there is none. Ends it. */
static int
read_only_delivery(struct queue *queue, sqlite3_stmt *statement, struct queue_delivery *delivery)
{
    int rc = database_step(&queue->db, statement);
    if (rc == 1)
        rc = read_delivery(queue, statement, delivery);
    else if (rc == 0)
        rc = 1;
    database_end(statement);
    return rc;
}

int
queue_get_delivery(struct queue *queue, int64_t delivery_id, struct queue_delivery *delivery)
{
    sqlite3_stmt *statement;
    int rc = database_start(&queue->db, "SELECT " DELIVERY_COLUMNS " FROM delivery WHERE id = ?",
                            VALUES(value_int(delivery_id)), &statement);
    if (rc < 0)
        return rc;
    rc = read_only_delivery(queue, statement, delivery);
    return rc == 1 ? no_such_delivery(queue, delivery_id) : rc;
}

/* A growing list of deliveries. */
struct delivery_list {
    struct queue_delivery *at;
    size_t count, capacity;
};

/* Appends the rows of a started statement, and ends it. */
static int
append_deliveries(struct queue *queue, sqlite3_stmt *statement, struct delivery_list *list)
{
    int rc;
    while ((rc = database_step(&queue->db, statement)) == 1) {
        rc = queue_grow(queue, (void **)&list->at, list->count, &list->capacity, sizeof *list->at);
        if (rc == 0)
            rc = read_delivery(queue, statement, &list->at[list->count]);
        if (rc < 0)
            break;
        list->count++;
    }
    database_end(statement);
    return rc;
}

/* Hands the list to the caller; after a failure, nothing. */
static int
hand_over(struct delivery_list *list, int rc, struct queue_delivery **deliveries, size_t *count)
{
    while (rc < 0 && list->count > 0)
        queue_delivery_clear(&list->at[--list->count]);
    if (rc < 0) {
        free(list->at);
        list->at = NULL;
    }
    *deliveries = list->at;
    *count = list->count;
    return rc;
}

static struct database_value
row_limit(size_t limit)
{
    return value_int(limit > INT32_MAX ? INT32_MAX : (int64_t)limit);
}

/* --------------------------------------------------------------------------------------- due - */

/* INDEXED BY: without statistics SQLite prefers delivery_state here, reads all that wait for an
 * archive that has been down all night, and sorts them, at each turn of the daemon. */

/* The next destination by name that has deliveries waiting: 1, or 0 when there is none. */
static int
next_destination(struct queue *queue, char **destination)
{
    sqlite3_stmt *statement;
    int rc = database_start(&queue->db,
                            "SELECT destination FROM delivery INDEXED BY delivery_due "
                            "WHERE state IN ('PENDING', 'DELAYED') AND destination > ? "
                            "ORDER BY destination LIMIT 1",
                            VALUES(value_text(*destination)), &statement);
    if (rc < 0)
        return rc;
    char *next = NULL;
    rc = database_step(&queue->db, statement);
    if (rc == 1 && database_column_text(statement, 0, &next) < 0)
        rc = database_refuse(&queue->db, -ENOMEM, "out of memory");
    database_end(statement);
    free(*destination);
    *destination = next;
    return rc;
}

static bool
is_blocked(const char *destination, const char *const *blocked, size_t blocked_count)
{
    for (size_t i = 0; i < blocked_count; i++)
        if (strcmp(destination, blocked[i]) == 0)
            return true;
    return false;
}

/* Visits every destination that has deliveries waiting and is not blocked. */
static int
each_waiting_destination(struct queue *queue, const char *const *blocked, size_t blocked_count,
                         int (*visit)(struct queue *queue, const char *destination, void *context),
                         void *context)
{
    char *destination = strdup("");
    if (!destination)
        return database_refuse(&queue->db, -ENOMEM, "out of memory");
    int rc;
    while ((rc = next_destination(queue, &destination)) == 1) {
        if (is_blocked(destination, blocked, blocked_count))
            continue;
        rc = visit(queue, destination, context);
        if (rc < 0)
            break;
    }
    free(destination);
    return rc;
}

struct due {
    int64_t now_ms;
    size_t limit;
    struct delivery_list list;
};

static int
append_due(struct queue *queue, const char *destination, void *context)
{
    struct due *due = context;
    sqlite3_stmt *statement;
    int rc = database_start(
        &queue->db,
        "SELECT " DELIVERY_COLUMNS
        " FROM delivery INDEXED BY delivery_due WHERE state IN ('PENDING', 'DELAYED') "
        "AND destination = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?",
        VALUES(value_text(destination), value_time(due->now_ms), row_limit(due->limit)),
        &statement);
    return rc < 0 ? rc : append_deliveries(queue, statement, &due->list);
}

int
queue_due_deliveries(struct queue *queue, int64_t now_ms, size_t limit, const char *const *blocked,
                     size_t blocked_count, struct queue_delivery **deliveries, size_t *count)
{
    struct due due = {.now_ms = now_ms, .limit = limit};
    int rc = each_waiting_destination(queue, blocked, blocked_count, append_due, &due);
    return hand_over(&due.list, rc, deliveries, count);
}

struct earliest {
    bool any;
    int64_t due_ms;
};

static int
look_at_earliest(struct queue *queue, const char *destination, void *context)
{
    struct earliest *earliest = context;
    sqlite3_stmt *statement;
    int rc = database_start(
        &queue->db,
        "SELECT due_at FROM delivery INDEXED BY delivery_due "
        "WHERE state IN ('PENDING', 'DELAYED') AND destination = ? ORDER BY due_at, id LIMIT 1",
        VALUES(value_text(destination)), &statement);
    if (rc < 0)
        return rc;
    int64_t due_ms = 0;
    rc = database_step(&queue->db, statement);
    if (rc == 1)
        rc = database_column_time(statement, 0, &due_ms);
    database_end(statement);
    if (rc == 0 && (!earliest->any || due_ms < earliest->due_ms))
        *earliest = (struct earliest){.any = true, .due_ms = due_ms};
    return rc;
}

int
queue_next_delivery(struct queue *queue, const char *const *blocked, size_t blocked_count,
                    int64_t *due_ms)
{
    struct earliest earliest = {0};
    int rc = each_waiting_destination(queue, blocked, blocked_count, look_at_earliest, &earliest);
    if (rc == 0 && !earliest.any)
        rc = database_refuse(&queue->db, -ENOENT, "no delivery waits");
    if (rc == 0)
        *due_ms = earliest.due_ms;
    return rc;
}

/* ---------------------------------------------------------------------------------- sending -- */

static int
start_delivery(struct queue *queue, int64_t delivery_id, int64_t now_ms)
{
    struct delivery_row row;
    int rc = expect_row(queue, delivery_id, PENDING | DELAYED, &row);
    if (rc < 0)
        return rc;
    int changed = database_change(
        &queue->db,
        "UPDATE delivery SET state = 'SENDING', attempts = attempts + 1, started_at = ?3, "
        "dimse_status = NULL, code = '', sentence = '', commitment = 'NONE', "
        "transaction_uid = '', requested_at = NULL "
        "WHERE id = ?1 AND state = ?2 AND due_at <= ?3",
        VALUES(value_int(delivery_id), value_text(state_names[row.state]), value_time(now_ms)));
    if (changed == 0)
        return database_refuse(&queue->db, -EAGAIN, "delivery %lld is not due yet",
                               (long long)delivery_id);
    char words[32];
    snprintf(words, sizeof words, "attempt %d", row.attempts + 1);
    return moved(queue, changed, &row, QUEUE_DELIVERY_SENDING, "DELIVERY_STARTED", words, now_ms);
}

int
queue_start_delivery(struct queue *queue, int64_t delivery_id, int64_t now_ms)
{
    int rc = queue_enter(queue);
    return rc < 0 ? rc : queue_leave(queue, start_delivery(queue, delivery_id, now_ms));
}

/* SENT; commitment NONE -> REQUESTED: the attempt that has just ended asked for it. */
static int
request_commitment(struct queue *queue, const struct delivery_row *row, const char *transaction_uid,
                   int64_t now_ms)
{
    int rc = database_change(
        &queue->db,
        "UPDATE delivery SET commitment = 'REQUESTED', transaction_uid = ?2, requested_at = ?3 "
        "WHERE id = ?1 AND state = 'SENT' AND commitment = 'NONE'",
        VALUES(value_int(row->id), value_text(transaction_uid), value_time(now_ms)));
    if (rc < 0)
        return rc;
    return note(queue, row, "COMMITMENT_REQUESTED", NULL, NULL, transaction_uid, now_ms);
}

static int
delivery_sent(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt,
              const char *transaction_uid, int64_t now_ms)
{
    struct delivery_row row;
    int rc = expect_row(queue, delivery_id, SENDING, &row);
    if (rc < 0)
        return rc;
    int changed = database_change(
        &queue->db,
        "UPDATE delivery SET state = 'SENT', sent_at = ?2, dimse_status = ?3, "
        "code = ?4, sentence = ?5 WHERE id = ?1 AND state = 'SENDING'",
        VALUES(value_int(delivery_id), value_time(now_ms), status_or_null(attempt->dimse_status),
               value_text(attempt->code), value_text(attempt->sentence)));
    char words[640];
    rc = moved(queue, changed, &row, QUEUE_DELIVERY_SENT, "DELIVERY_SENT",
               attempt_words(&row, attempt, words, sizeof words), now_ms);
    if (rc == 0 && transaction_uid && transaction_uid[0])
        rc = request_commitment(queue, &row, transaction_uid, now_ms);
    return rc;
}

int
queue_delivery_sent(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt,
                    const char *transaction_uid, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    return queue_leave(queue, delivery_sent(queue, delivery_id, attempt, transaction_uid, now_ms));
}

/* A SENT one may leave that state when its commitment was asked for and has not been given. */
static int
expect_unsettled(struct queue *queue, int64_t delivery_id, unsigned allowed,
                 struct delivery_row *row)
{
    int rc = expect_row(queue, delivery_id, allowed | SENT, row);
    if (rc == 0 && row->state == QUEUE_DELIVERY_SENT &&
        row->commitment != QUEUE_COMMITMENT_REQUESTED && row->commitment != QUEUE_COMMITMENT_FAILED)
        rc = wrong_state(queue, row);
    return rc;
}

static int
delay_delivery(struct queue *queue, int64_t delivery_id, int64_t not_before_ms,
               const struct queue_attempt *attempt, int64_t now_ms)
{
    struct delivery_row row;
    int rc = expect_unsettled(queue, delivery_id, SENDING, &row);
    if (rc < 0)
        return rc;
    int changed = database_change(
        &queue->db,
        "UPDATE delivery SET state = 'DELAYED', due_at = ?3, dimse_status = ?4, code = ?5, "
        "sentence = ?6, commitment = iif(commitment = 'REQUESTED', 'FAILED', commitment) "
        "WHERE id = ?1 AND state = ?2",
        VALUES(value_int(delivery_id), value_text(state_names[row.state]),
               value_time(not_before_ms), status_or_null(attempt->dimse_status),
               value_text(attempt->code), value_text(attempt->sentence)));
    char words[640];
    return moved(queue, changed, &row, QUEUE_DELIVERY_DELAYED, "DELIVERY_DELAYED",
                 attempt_words(&row, attempt, words, sizeof words), now_ms);
}

int
queue_delay_delivery(struct queue *queue, int64_t delivery_id, int64_t not_before_ms,
                     const struct queue_attempt *attempt, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    return queue_leave(queue, delay_delivery(queue, delivery_id, not_before_ms, attempt, now_ms));
}

static int
fail(struct queue *queue, const struct delivery_row *row, const struct queue_attempt *attempt,
     int64_t now_ms)
{
    int changed = database_change(
        &queue->db,
        "UPDATE delivery SET state = 'FAILED', dimse_status = ?3, code = ?4, sentence = ?5, "
        "commitment = iif(commitment = 'REQUESTED', 'FAILED', commitment) "
        "WHERE id = ?1 AND state = ?2",
        VALUES(value_int(row->id), value_text(state_names[row->state]),
               status_or_null(attempt->dimse_status), value_text(attempt->code),
               value_text(attempt->sentence)));
    char words[640];
    return moved(queue, changed, row, QUEUE_DELIVERY_FAILED, "DELIVERY_FAILED",
                 attempt_words(row, attempt, words, sizeof words), now_ms);
}

int
queue_fail_delivery(struct queue *queue, int64_t delivery_id, const struct queue_attempt *attempt,
                    int64_t now_ms)
{
    struct delivery_row row;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = expect_unsettled(queue, delivery_id, PENDING | SENDING | DELAYED, &row);
    if (rc == 0)
        rc = fail(queue, &row, attempt, now_ms);
    return queue_leave(queue, rc);
}

static int
redirect_delivery(struct queue *queue, int64_t delivery_id, const char *destination,
                  const struct queue_attempt *attempt, int64_t now_ms)
{
    struct delivery_row row;
    int64_t result_id;
    int rc = expect_row(queue, delivery_id, SENDING, &row);
    if (rc == 0)
        rc = fail(queue, &row, attempt, now_ms);
    if (rc == 0)
        rc = database_get(&queue->db, "SELECT result_id FROM delivery WHERE id = ?",
                          VALUES(value_int(delivery_id)), &result_id);
    return rc < 0 ? rc : add_delivery(queue, result_id, destination, now_ms);
}

int
queue_redirect_delivery(struct queue *queue, int64_t delivery_id, const char *destination,
                        const struct queue_attempt *attempt, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    return queue_leave(queue, redirect_delivery(queue, delivery_id, destination, attempt, now_ms));
}

static int
return_delivery(struct queue *queue, int64_t delivery_id, const char *why, int64_t now_ms)
{
    struct delivery_row row;
    int rc = expect_row(queue, delivery_id, SENDING, &row);
    if (rc < 0)
        return rc;
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'PENDING', due_at = ?2, "
                                  "attempts = attempts - 1 WHERE id = ?1 AND state = 'SENDING'",
                                  VALUES(value_int(delivery_id), value_time(now_ms)));
    return moved(queue, changed, &row, QUEUE_DELIVERY_PENDING, "DELIVERY_RETURNED", why ? why : "",
                 now_ms);
}

int
queue_return_delivery(struct queue *queue, int64_t delivery_id, const char *why, int64_t now_ms)
{
    int rc = queue_enter(queue);
    return rc < 0 ? rc : queue_leave(queue, return_delivery(queue, delivery_id, why, now_ms));
}

static int
recover_as_pending(struct queue *queue, const struct delivery_row *row, int64_t now_ms)
{
    int changed = database_change(&queue->db,
                                  "UPDATE delivery SET state = 'PENDING', due_at = ?2 "
                                  "WHERE id = ?1 AND state = 'SENDING'",
                                  VALUES(value_int(row->id), value_time(now_ms)));
    return moved(queue, changed, row, QUEUE_DELIVERY_PENDING, "DELIVERY_RECOVERED",
                 "it was being sent when the daemon ended", now_ms);
}

int
queue_recover_deliveries(struct queue *queue, int64_t now_ms)
{
    int64_t count;
    return for_each_delivery(queue, "SELECT id FROM delivery WHERE state = 'SENDING' ORDER BY id",
                             NO_VALUES, recover_as_pending, now_ms, &count);
}

/* ------------------------------------------------------------------------- storage commitment */

int
queue_find_commitment(struct queue *queue, const char *transaction_uid,
                      const char *sop_instance_uid, struct queue_delivery *delivery)
{
    sqlite3_stmt *statement;
    int rc = database_start(&queue->db,
                            "SELECT " DELIVERY_COLUMNS " FROM delivery WHERE transaction_uid = ? "
                            "AND transaction_uid <> '' AND sop_instance_uid = ? "
                            "AND state = 'SENT' ORDER BY id LIMIT 1",
                            VALUES(value_text(transaction_uid), value_text(sop_instance_uid)),
                            &statement);
    if (rc < 0)
        return rc;
    rc = read_only_delivery(queue, statement, delivery);
    if (rc == 1)
        rc = database_refuse(&queue->db, -ENOENT,
                             "no delivery of instance %s is under transaction %s", sop_instance_uid,
                             transaction_uid);
    return rc;
}

static int
commit_delivery(struct queue *queue, const struct delivery_row *row, bool committed,
                const char *code, const char *sentence, int64_t now_ms)
{
    int changed = database_change(
        &queue->db,
        "UPDATE delivery SET commitment = ?2, committed_at = ?3, "
        "code = iif(?3 IS NULL, ?4, code), sentence = iif(?3 IS NULL, ?5, sentence) "
        "WHERE id = ?1 AND state = 'SENT' AND commitment = 'REQUESTED'",
        VALUES(value_int(row->id), value_text(committed ? "COMMITTED" : "FAILED"),
               committed ? value_time(now_ms) : value_null(), value_text(code),
               value_text(sentence)));
    if (changed <= 0)
        return changed; /* told before: one event is enough */
    char words[512];
    return note(queue, row, committed ? "COMMITMENT_DONE" : "COMMITMENT_FAILED", NULL, NULL,
                queue_code_and_sentence(code, sentence, words, sizeof words), now_ms);
}

int
queue_delivery_committed(struct queue *queue, const char *transaction_uid,
                         const char *sop_instance_uid, bool committed, const char *code,
                         const char *sentence, int64_t now_ms)
{
    struct queue_delivery delivery;
    struct delivery_row row;
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = queue_find_commitment(queue, transaction_uid, sop_instance_uid, &delivery);
    if (rc == 0) {
        rc = read_row(queue, delivery.id, &row);
        queue_delivery_clear(&delivery);
    }
    if (rc == 0)
        rc = commit_delivery(queue, &row, committed, code, sentence, now_ms);
    return queue_leave(queue, rc);
}

int
queue_overdue_commitments(struct queue *queue, const char *destination, int64_t before_ms,
                          size_t limit, struct queue_delivery **deliveries, size_t *count)
{
    sqlite3_stmt *statement;
    struct delivery_list list = {0};
    int rc = database_start(
        &queue->db,
        "SELECT " DELIVERY_COLUMNS " FROM delivery "
        "WHERE commitment = 'REQUESTED' AND destination = ? "
        "AND requested_at < ? ORDER BY requested_at, id LIMIT ?",
        VALUES(value_text(destination), value_time(before_ms), row_limit(limit)), &statement);
    if (rc == 0)
        rc = append_deliveries(queue, statement, &list);
    return hand_over(&list, rc, deliveries, count);
}

/* ------------------------------------------------------------------------------------ resend - */

static int
resend(struct queue *queue, const struct delivery_row *row, int64_t now_ms)
{
    return begin_anew(queue, row, "DELIVERY_RESENT", "an operator's resend", now_ms);
}

static int
resend_one(struct queue *queue, const struct queue_resend *which, int64_t now_ms, int64_t *count)
{
    unsigned allowed = FAILED | DELAYED | (which->not_arrived ? 0 : SENT | CANCELLED);
    struct delivery_row row;
    int rc = expect_row(queue, which->delivery_id, allowed, &row);
    if (rc == 0 && !row.has_result)
        rc = database_refuse(&queue->db, -ESTALE,
                             "delivery %lld: its job was retried, and the result is not there "
                             "any more",
                             (long long)row.id);
    if (rc == 0)
        rc = resend(queue, &row, now_ms);
    *count = rc == 0;
    return rc;
}

static int
resend_of_job(struct queue *queue, const struct queue_resend *which, int64_t now_ms, int64_t *count)
{
    int64_t found;
    int rc = database_get(&queue->db, "SELECT 1 FROM job WHERE id = ?",
                          VALUES(value_int(which->job_id)), &found);
    if (rc == 0)
        rc = database_refuse(&queue->db, -ENOENT, "there is no job %lld", (long long)which->job_id);
    if (rc < 0)
        return rc;
    return for_each_delivery(queue,
                             "SELECT id FROM delivery WHERE job_id = ?1 AND result_id IS NOT NULL "
                             "AND (state IN ('FAILED', 'DELAYED') OR state = 'SENT' AND NOT ?2) "
                             "ORDER BY id",
                             VALUES(value_int(which->job_id), value_int(which->not_arrived)),
                             resend, now_ms, count);
}

/* Results that a newer revision has replaced are passed over: an archive is not to get them anew
 * because it was down. */
static int
resend_to_destination(struct queue *queue, const struct queue_resend *which, int64_t now_ms,
                      int64_t *count)
{
    int64_t found;
    int rc = database_get(&queue->db, "SELECT 1 FROM delivery WHERE destination = ? LIMIT 1",
                          VALUES(value_text(which->destination)), &found);
    if (rc == 0)
        rc = database_refuse(&queue->db, -ENOENT, "there is no delivery to %s", which->destination);
    if (rc < 0)
        return rc;
    return for_each_delivery(
        queue,
        "SELECT d.id FROM delivery d JOIN job j ON j.id = d.job_id "
        "WHERE d.destination = ?1 AND d.result_id IS NOT NULL AND j.superseded_by IS NULL "
        "AND (d.state IN ('FAILED', 'DELAYED') OR d.state = 'SENT' AND NOT ?2) ORDER BY d.id",
        VALUES(value_text(which->destination), value_int(which->not_arrived)), resend, now_ms,
        count);
}

int
queue_resend(struct queue *queue, const struct queue_resend *which, int64_t now_ms, int64_t *count)
{
    *count = 0;
    if ((which->delivery_id != 0) + (which->job_id != 0) + (which->destination != NULL) != 1)
        return database_refuse(&queue->db, -EINVAL,
                               "a resend names a delivery, or a job, or a destination");
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    if (which->delivery_id)
        rc = resend_one(queue, which, now_ms, count);
    else if (which->job_id)
        rc = resend_of_job(queue, which, now_ms, count);
    else
        rc = resend_to_destination(queue, which, now_ms, count);
    rc = queue_leave(queue, rc);
    if (rc < 0)
        *count = 0;
    return rc;
}
