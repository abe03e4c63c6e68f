/* validation_rows.c - validations of pipelines, and the ranges of images that they allow. */
#include "db/queue/queue_private.h"

#define OF_RECORD(member) "json_extract(?1, '$." member "')"
#define OF_CASE(member)   "json_extract(c.value, '$." member "')"
#define OF_REGION(member) "json_extract(r.value, '$." member "')"

int
queue_add_validation(struct queue *queue, const char *record, const char *by, int64_t now_ms)
{
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db,
                      "INSERT INTO validation (at, by, name, digest, version, passed, why, patients, tolerance_mm) "
                      "SELECT ?2, ?3, " OF_RECORD("name") ", " OF_RECORD("digest") ", " OF_RECORD("version") ", " OF_RECORD(
                          "passed") ", " OF_RECORD("why") ", " OF_RECORD("patients") ", " OF_RECORD("tolerance_mm"),
                      VALUES(value_text(record), value_time(now_ms), value_text(by)));
    if (rc == 0)
        rc = database_run(
            &queue->db,
            "INSERT INTO validation_case SELECT (SELECT max(id) FROM validation), c.key, " OF_CASE("other") ", " OF_CASE(
                "complete") ", " OF_CASE("patient") ", " OF_CASE("series") ", " OF_CASE("manufacturer") ", " OF_CASE("model") ", " OF_CASE("kernel"
            ) ", " OF_CASE("thickness") ", " OF_CASE("slice_mm") ", " OF_CASE("noise") ", " OF_CASE("outcome") ", "
            OF_CASE("checks") ", " OF_CASE("wrong") " FROM json_each(?1, '$.cases') c",
            VALUES(value_text(record)));
    if (rc == 0)
        rc = database_run(
            &queue->db,
            "INSERT INTO validation_region SELECT (SELECT max(id) FROM validation), c.key, " OF_REGION(
                "region") ", " OF_REGION("reference_region") ", " OF_REGION("dice") ", " OF_REGION("surface_dice") ", "
            OF_REGION("distance_95_mm") ", " OF_REGION("volume_ratio") ", " OF_REGION("bias_ml")
            " FROM json_each(?1, '$.cases') c, json_each(c.value, '$.regions') r",
            VALUES(value_text(record)));
    if (rc == 0) {
        const struct queue_event event = {.kind = "PIPELINE_VALIDATED", .detail = by};
        rc = queue_add_event(queue, &event, now_ms);
    }
    return queue_leave(queue, rc);
}

int
queue_validated(struct queue *queue, const char *digest, char **ranges)
{
    return database_validated(&queue->db, digest, ranges);
}
