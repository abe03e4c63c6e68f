/* validation_rows.c - validations of pipelines, and the ranges of images that they allow. */
#include "db/queue/queue_private.h"

int
queue_add_validation(struct queue *queue, const char *record, const char *by, int64_t now_ms)
{
    const struct queue_event event = {.kind = "PIPELINE_VALIDATED", .detail = by};
    int rc = queue_enter(queue);
    if (rc < 0)
        return rc;
    rc = database_run(&queue->db,
                      "INSERT INTO validation (at, by, name, digest, version, passed, why, patients, tolerance_mm) "
                      "SELECT ?2, ?3, ?1 ->> 'name', ?1 ->> 'digest', ?1 ->> 'version', ?1 ->> 'passed', ?1 ->> 'why', "
                      "?1 ->> 'patients', ?1 ->> 'tolerance_mm'",
                      VALUES(value_text(record), value_time(now_ms), value_text(by)));
    if (rc == 0)
        rc =
            database_run(&queue->db,
                         "INSERT INTO validation_case SELECT (SELECT max(id) FROM validation), key, value ->> 'other', "
                         "value ->> 'complete', value ->> 'patient', value ->> 'series', value ->> 'manufacturer', "
                         "value ->> 'model', value ->> 'kernel', value ->> 'thickness', value ->> 'slice_mm', "
                         "value ->> 'noise', value ->> 'outcome', value ->> 'checks', value ->> 'wrong' "
                         "FROM json_each(?1, '$.cases')",
                         VALUES(value_text(record)));
    if (rc == 0)
        rc = database_run(
            &queue->db,
            "INSERT INTO validation_region SELECT (SELECT max(id) FROM validation), cases.key, "
            "regions.value ->> 'region', regions.value ->> 'reference_region', regions.value ->> 'dice', "
            "regions.value ->> 'surface_dice', regions.value ->> 'distance_95_mm', regions.value ->> 'volume_ratio', "
            "regions.value ->> 'bias_ml' FROM json_each(?1, '$.cases') cases, json_each(cases.value, '$.regions') "
            "regions",
            VALUES(value_text(record)));
    if (rc == 0)
        rc = queue_add_event(queue, &event, now_ms);
    return queue_leave(queue, rc);
}

int
queue_validated(struct queue *queue, const char *digest, char **ranges)
{
    return database_validated(&queue->db, digest, ranges);
}
