/* identifiers.c - all identifiers that de-identified copies replace. Declared in report.h. */
#include "db/report/report_private.h"

int
report_each_identifier(struct report *report, int (*take)(void *context, const struct report_identifier *identifier),
                       void *context, struct error *error)
{
    sqlite3_stmt *row;
    int rc = database_start(
        &report->db,
        "SELECT 'patient', s.patient_id, s.series_uid, s.study_uid, coalesce((SELECT i.path FROM instance i "
        "  WHERE i.series_id = s.id AND NOT i.missing LIMIT 1), '') FROM series s "
        "UNION ALL SELECT 'series', series_uid, series_uid, study_uid, '' FROM series "
        "UNION ALL SELECT 'study', study_uid, '', study_uid, '' FROM series GROUP BY study_uid "
        "UNION ALL SELECT 'instance', i.sop_instance_uid, s.series_uid, s.study_uid, i.path "
        "  FROM instance i JOIN series s ON s.id = i.series_id "
        "UNION ALL SELECT 'result', r.sop_instance_uid, r.series_uid, s.study_uid, r.path "
        "  FROM result r JOIN job j ON j.id = r.job_id JOIN series s ON s.id = j.series_id WHERE r.sop_instance_uid <> "
        "'' "
        "UNION ALL SELECT 'series of results', r.series_uid, r.series_uid, s.study_uid, '' "
        "  FROM result r JOIN job j ON j.id = r.job_id JOIN series s ON s.id = j.series_id WHERE r.series_uid <> ''",
        NO_VALUES, &row);
    if (rc < 0)
        return report_conclude(report, NULL, rc, error);
    while ((rc = database_step(&report->db, row)) == 1) {
        const struct report_identifier identifier = {.kind = report_text(row, 0),
                                                     .value = report_text(row, 1),
                                                     .series_uid = report_text(row, 2),
                                                     .study_uid = report_text(row, 3),
                                                     .path = report_text(row, 4)};
        if ((rc = take(context, &identifier)) < 0)
            break;
    }
    database_end(row);
    return report_conclude(report, NULL, rc, error);
}
