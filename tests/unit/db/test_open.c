/* Opening: the owner of a database, migrations, views, file systems. */
#include "db/filesystem.h"
#include "db/migrate.h"
#include "db/pull_queue.h"

#include "tests/unit/db/sample.h"

#include <ctype.h>
#include <sys/stat.h>

static void
run_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    char *error = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    int rc = sqlite3_exec(db, sql, NULL, NULL, &error);
    ck_assert_msg(rc == SQLITE_OK, "%s", error);
    sqlite3_close(db);
}

static char *
read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = calloc(1, 1 << 16);
    size_t size = fread(text, 1, (1 << 16) - 1, file);
    ck_assert_uint_gt(size, 0);
    ck_assert_uint_lt(size, (1 << 16) - 1);
    fclose(file);
    return text;
}

/* Removes comments and white space, which differ after ALTER TABLE. */
static void
squeeze(char *sql)
{
    char *to = sql;
    for (const char *from = sql; *from; from++) {
        if (from[0] == '-' && from[1] == '-') {
            while (from[1] && from[1] != '\n')
                from++;
        } else if (!isspace((unsigned char)*from)) {
            *to++ = *from;
        }
    }
    *to = '\0';
}

/* Returns the text of each table, index and trigger, by name. */
static char *
schema_of(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    char *all = calloc(1, 1 << 16);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "SELECT type || ' ' || name || ' ' || sql FROM "
                                        "sqlite_schema WHERE type <> 'view' AND sql IS NOT NULL "
                                        "ORDER BY type, name",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        strcat(all, (const char *)sqlite3_column_text(statement, 0));
        strcat(all, "\n");
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    squeeze(all);
    return all;
}

/*
 * Returns the schema in reading order: tables in the order of their creation, each with its
 * indexes.
 */
static char *
schema_text(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db,
                                        "SELECT iif(s.type = 'table', char(10), ''), s.sql "
                                        "FROM sqlite_schema s JOIN sqlite_schema t ON t.name = s.tbl_name "
                                        "WHERE t.type = 'table' AND s.sql IS NOT NULL "
                                        "ORDER BY t.rowid, s.type <> 'table', s.rowid",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    fputs("-- schema.sql - what the migrations add up to, where the tables have their comments.\n"
          "-- Not to be edited: NOCTULE_WRITE_SCHEMA=1 unit_test_db_open writes it.\n"
          "-- Private to db/: people ask the views of views.sql, which docs/database.md describes.\n",
          out);
    while (sqlite3_step(statement) == SQLITE_ROW)
        fprintf(out, "%s%s;\n", (const char *)sqlite3_column_text(statement, 0),
                (const char *)sqlite3_column_text(statement, 1));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

START_TEST(the_schema_equals_the_sum_of_the_migrations)
{
    static const char file[] = NOCTULE_SOURCE_DIR "/tests/unit/db/schema.sql";
    struct sample sample;
    sample_open(&sample);
    char *text = schema_text(sample.path);
    if (getenv("NOCTULE_WRITE_SCHEMA")) {
        FILE *out = fopen(file, "w");
        ck_assert_ptr_nonnull(out);
        fputs(text, out);
        ck_assert_int_eq(fclose(out), 0);
    }
    char *written = read_whole(file);
    ck_assert_str_eq(written, text);
    free(written);
    free(text);
    sample_close(&sample);
}

END_TEST

static void
assert_newest_version(const struct sample *sample)
{
    char version[12];
    snprintf(version, sizeof version, "%d", migrate_version);
    assert_answer(sample, "PRAGMA user_version", version);
}

/* Makes an empty database as that version left it. */
static void
make_empty_version(const char *path, int version)
{
    char sql[64];
    for (int step = 1; step <= version; step++) {
        char file[160];
        snprintf(file, sizeof file, NOCTULE_SOURCE_DIR "/db/migrations/%04d.sql", step);
        char *text = read_whole(file);
        run_sql(path, text);
        free(text);
    }
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", version);
    run_sql(path, sql);
    run_sql(path, "PRAGMA application_id = 1315922804");
}

/* Makes a database as that version left it, with a series, a finished job and its events. */
static void
make_version(const char *path, int version)
{
    make_empty_version(path, version);
    run_sql(path, "INSERT INTO series (id, series_uid, study_uid, modality, body_part, description, "
                  "state, revision, instances, frames, expected_instances, first_seen_at, last_seen_at, "
                  "settled_at) VALUES (1, '1.2', '1', 'CT', '', '', 'SETTLED', 1, 1, 1, 0, "
                  "'2026-01-31T02:03:20.000Z', '2026-01-31T02:03:20.000Z', '2026-01-31T02:03:21.000Z');"
                  "INSERT INTO instance VALUES (1, 1, 1, '1.2.1', '', '', 'series/1.2/1.2.1.dcm', "
                  "'inbox:a', 1, 1, 0, '2026-01-31T02:03:20.000Z');"
                  "INSERT INTO stack VALUES (1, 1, 1, '', 1, 1, 1, 1, 5.0, '', '', '', '');"
                  "INSERT INTO settings VALUES (1, 'x');"
                  "INSERT INTO job (id, series_id, revision, stack, pipeline, settings_id, state, "
                  "priority, attempts, created_at, ready_at, started_at, ended_at) VALUES (1, 1, 1, '', "
                  "'head-ct', 1, 'DONE', 0, 1, '2026-01-31T02:03:22.000Z', '2026-01-31T02:03:22.000Z', "
                  "'2026-01-31T02:03:22.000Z', '2026-01-31T02:03:23.000Z');"
                  "INSERT INTO result VALUES (1, 1, 'seg', 'outbox/1/seg.dcm', '1', '2.25.1', '2.25.2', "
                  "1, 1, '2026-01-31T02:03:23.000Z');"
                  "INSERT INTO event (at, kind, series_id, job_id, from_state, to_state, detail) VALUES "
                  "('2026-01-31T02:03:21.000Z', 'SERIES_SETTLED', 1, NULL, 'GATHERING', 'SETTLED', ''), "
                  "('2026-01-31T02:03:23.000Z', 'JOB_DONE', 1, 1, 'RUNNING', 'DONE', '')");
}

/* Compares the schemas byte by byte. */
static void
assert_schema_of_a_new_one(const struct sample *sample)
{
    struct sample fresh;
    sample_open(&fresh);
    char *migrated = schema_of(sample->path), *direct = schema_of(fresh.path);
    ck_assert_str_eq(migrated, direct);
    free(migrated);
    free(direct);
    sample_close(&fresh);
}

/* Runs the old job again, measures it, and delivers its result. */
static void
assert_goes_on_working(const struct sample *sample)
{
    static const char *const to[] = {"PACS"};
    const struct queue_figures figures = sample_measured(sample_features, SAMPLE_FEATURES);
    struct queue_result result = sample_result;
    result.destinations = to;
    result.destination_count = 1;
    int64_t next;
    char sql[128];
    ck_assert_int_eq(sample_retry(sample->queue, 1, true, &next), 0);
    ck_assert_int_eq(queue_start_job(sample->queue, next, "worker-0", 1, SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_finish_job(sample->queue, next,
                                      &(struct queue_finish){QUEUE_DONE, &figures, &result, 1, CODE_NONE, ""},
                                      SAMPLE_NOW),
                     0);
    assert_answer(sample, "SELECT count(*) FROM v_features WHERE superseded_by IS NULL", "3");
    snprintf(sql, sizeof sql, "SELECT superseded_by = %d FROM v_jobs WHERE job = 1", (int)next);
    assert_answer(sample, sql, "1");
    assert_answer(sample, "SELECT destination || state FROM v_deliveries ORDER BY delivery DESC LIMIT 1",
                  "PACSPENDING");
}

/* The items of version 50 stay with their parts, and their numbers go on. */
START_TEST(version_50_keeps_its_pulls)
{
    struct sample sample;
    int64_t batch;
    sample_folder(&sample);
    make_empty_version(sample.path, 50);
    run_sql(
        sample.path,
        "INSERT INTO pull (id, batch, line, source, key, identifier, state, due_at, asked_by, created_at, ended_at) "
        "VALUES (7, 7, 0, 'PACS', 'study', '1.2', 'DONE', '2026-01-31T02:03:23.000Z', 'jane', "
        "'2026-01-31T02:03:23.000Z', '2026-01-31T02:03:24.000Z'), (9, 9, 0, 'PACS', 'study', '1.3', 'WAITING', "
        "'2026-01-31T02:03:23.000Z', 'jane', '2026-01-31T02:03:23.000Z', NULL);"
        "INSERT INTO pull_part VALUES (7, '1.2', '', 4);"
        "INSERT INTO pull_unwanted VALUES ('1.2.3', '1', '1.2.4', '1.2', 7); DELETE FROM pull WHERE id = 9");
    sample_reopen(&sample);
    sample_assert_sound(sample.queue);
    assert_newest_version(&sample);
    assert_answer(&sample, "SELECT item || ' ' || state || ' ' || study_uids || ' ' || unwanted FROM v_pulls",
                  "7 DONE 1.2 1");
    ck_assert_int_eq(queue_next_batch(sample.queue, &batch), 0);
    ck_assert_int_eq(batch, 10);
    assert_schema_of_a_new_one(&sample);
    sample_close(&sample);
}

END_TEST

START_TEST(version_1_is_brought_up_to_date)
{
    struct sample sample;
    sample_folder(&sample);
    make_version(sample.path, 1);
    sample_reopen(&sample);
    sample_assert_sound(sample.queue);
    assert_newest_version(&sample);
    assert_answer(&sample, "SELECT state || ' ' || result_path FROM v_jobs", "DONE outbox/1/seg.dcm");
    assert_answer(&sample, "SELECT '<' || called_ae || sender || '>' FROM v_series", "<>");
    assert_answer(&sample, "SELECT count(*) FROM v_events WHERE delivery IS NULL", "2");
    assert_schema_of_a_new_one(&sample);
    assert_goes_on_working(&sample);
    sample_close(&sample);
}

END_TEST

/*
 * As the previous release left it in the middle of its work: a delivery sent, a job running, views
 * without features.
 */
START_TEST(version_3_is_brought_up_to_date)
{
    struct sample sample;
    sample_folder(&sample);
    make_version(sample.path, 3);
    run_sql(sample.path, "INSERT INTO delivery (id, job_id, result_id, destination, kind, path, sop_class_uid, "
                         "sop_instance_uid, state, attempts, due_at, created_at, since_at, started_at, sent_at) "
                         "VALUES (1, 1, 1, 'SHELF', 'seg', 'outbox/1/seg.dcm', '1', '2.25.1', 'SENT', 1, "
                         "'2026-01-31T02:03:23.000Z', '2026-01-31T02:03:23.000Z', '2026-01-31T02:03:23.000Z', "
                         "'2026-01-31T02:03:23.000Z', '2026-01-31T02:03:24.000Z');"
                         "INSERT INTO job (id, series_id, revision, stack, pipeline, settings_id, state, "
                         "priority, attempts, worker, lane, created_at, ready_at, started_at) VALUES (2, 1, 1, "
                         "'', 'other', 1, 'RUNNING', 0, 1, 'worker-0', 0, '2026-01-31T02:03:22.000Z', "
                         "'2026-01-31T02:03:22.000Z', '2026-01-31T02:03:22.000Z');"
                         "INSERT INTO event (at, kind, series_id, job_id, delivery_id, from_state, to_state, "
                         "detail) VALUES "
                         "('2026-01-31T02:03:23.000Z', 'JOB_STARTED', 1, 2, NULL, 'READY', 'RUNNING', ''), "
                         "('2026-01-31T02:03:24.000Z', 'DELIVERY_SENT', 1, 1, 1, 'SENDING', 'SENT', '');"
                         "CREATE VIEW v_jobs AS SELECT id AS job, state FROM job");
    sample_reopen(&sample);
    sample_assert_sound(sample.queue);
    assert_newest_version(&sample);
    assert_answer(&sample,
                  "SELECT group_concat(state || ' ' || coalesce(features, 'unknown') || ' ' || "
                  "coalesce(result_path, ''), ', ') FROM v_jobs",
                  "DONE 0 outbox/1/seg.dcm, RUNNING unknown ");
    assert_answer(&sample, "SELECT destination || state || sent_at FROM v_deliveries",
                  "SHELFSENT2026-01-31T02:03:24.000Z");
    assert_answer(&sample, "SELECT count(*) FROM v_events", "4");
    assert_answer(&sample, "SELECT count(*) FROM v_features", "0");
    assert_schema_of_a_new_one(&sample);
    assert_goes_on_working(&sample);
    sample_close(&sample);
}

END_TEST

/*
 * Settings of features were columns. They are the same in the view, and a feature that is measured
 * again finds its row.
 */
START_TEST(version_4_is_brought_up_to_date)
{
    static const char brain[] = "'Brain', 'glcm', 'Joint entropy', 'TU9B', '1', ";
    char sql[2048];
    struct sample sample;
    sample_folder(&sample);
    make_version(sample.path, 4);
    snprintf(sql, sizeof sql,
             "INSERT INTO feature_definition VALUES "
             "(1, 'mean', 'Brain', 'first-order', 'Mean', 'Q4LE', '[hnsf''U]', '', '', '', 0, 0.0, "
             "0, 0, 0, 0.0, 0.0, ''), "
             "(2, 'joint_entropy', %s '3d-merged', 'IAZD', 'fixed-bin-number', 32, 0.0, 1, 1, 1, "
             "-1000.0, 400.0, ''), "
             "(3, 'joint_entropy', %s '2d-averaged', 'BTW3', 'paper', 8, 0.1, 0, 0, 1, "
             "-0.30000000000000004, 1e300, '0,90');"
             "INSERT INTO feature VALUES (1, 1, 1, 1, 31.25, ''), (1, 1, 2, 2, 0.1, ''), "
             "(1, 1, 3, 3, NULL, 'ONE_GREY_LEVEL');"
             "CREATE VIEW v_jobs AS SELECT id AS job, state FROM job;"
             "CREATE VIEW \"of the site\" AS SELECT job, ';' AS own FROM v_jobs",
             brain, brain);
    run_sql(sample.path, sql);
    sample_reopen(&sample);
    sample_assert_sound(sample.queue);
    assert_newest_version(&sample);
    assert_answer(&sample, "SELECT settings FROM v_features WHERE place = 1", "");
    assert_answer(&sample, "SELECT settings FROM v_features WHERE place = 2", sample_features[1].settings);
    assert_answer(&sample, "SELECT settings FROM v_features WHERE place = 3",
                  "aggregation=2d-averaged;aggregation_ibsi_code=BTW3;bin_width=0.1;"
                  "directions=0,90;discretisation=stored-256;levels=8;range_high=1e+300;"
                  "range_low=-0.30000000000000004;symmetric=false");
    assert_answer(&sample,
                  "SELECT json_array(value, reason, aggregation, aggregation_ibsi_code, "
                  "discretisation, levels, bin_width, distance, symmetric, range_low = "
                  "-0.30000000000000004, range_high, directions) FROM v_features WHERE place = 3",
                  "[null,\"ONE_GREY_LEVEL\",\"2d-averaged\",\"BTW3\",\"stored-256\",8,0.1,null,"
                  "0,1,1.0e+300,\"0,90\"]");
    assert_answer(&sample,
                  "SELECT json_array(value, aggregation, discretisation, levels, bin_width, "
                  "distance, symmetric, range_low, directions) FROM v_features WHERE place = 1",
                  "[31.25,\"\",\"\",null,null,null,null,null,\"\"]");
    assert_schema_of_a_new_one(&sample);
    assert_answer(&sample, "SELECT group_concat(job || own) FROM \"of the site\"", "1;");
    assert_goes_on_working(&sample);
    assert_answer(&sample, "SELECT count(*) FROM feature_definition", "4");
    sample_close(&sample);
}

END_TEST

/* The message of a code was called a sentence. */
START_TEST(version_5_is_brought_up_to_date)
{
    struct sample sample;
    sample_folder(&sample);
    make_version(sample.path, 5);
    run_sql(sample.path, "INSERT INTO job (id, series_id, revision, stack, pipeline, settings_id, state, "
                         "priority, created_at, ready_at, ended_at, code, sentence) VALUES (2, 1, 1, '', "
                         "'other', 1, 'CANCELLED', 0, '2026-01-31T02:03:22.000Z', '2026-01-31T02:03:22.000Z', "
                         "'2026-01-31T02:03:23.000Z', 'CANCELLED', 'by an operator');"
                         "INSERT INTO event (at, kind, series_id, job_id, to_state, detail) VALUES "
                         "('2026-01-31T02:03:23.000Z', 'JOB_CANCELLED', 1, 2, 'CANCELLED', '');"
                         "INSERT INTO quarantine VALUES "
                         "(1, 'a', 'b', '', 'NOT_DICOM', 'it is none', '2026-01-31T02:03:23.000Z');"
                         "CREATE VIEW v_jobs AS SELECT id AS job, sentence FROM job");
    sample_reopen(&sample);
    sample_assert_sound(sample.queue);
    assert_newest_version(&sample);
    assert_answer(&sample, "SELECT code || ' ' || message FROM v_jobs WHERE job = 2", "CANCELLED by an operator");
    assert_answer(&sample, "SELECT code || ' ' || message FROM v_quarantine", "NOT_DICOM it is none");
    assert_schema_of_a_new_one(&sample);
    assert_goes_on_working(&sample);
    sample_close(&sample);
}

END_TEST

/* The public contract. Adding a column at the end is allowed; everything else is a new version. */
START_TEST(views_have_their_columns)
{
    static const char *const views[][2] = {
        {"v_jobs", "job,state,pipeline,stack,series_uid,modality,body_part,series_description,"
                   "revision,attempts,priority,created_at,started_at,ended_at,not_before_at,"
                   "wait_seconds,read_seconds,compute_seconds,write_seconds,verify_seconds,"
                   "total_seconds,voxels,segmented_voxels,peak_mib,backend,note,code,message,"
                   "file_a,file_b,result_path,result_sop_instance_uid,superseded_by,features,"
                   "removed_at,held,reviewed_at,reviewed_by,done_by_at,window_closed,window_opens_"
                   "at,expected_at,executor,slurm_state,slurm_id,node,slurm_reason,submitted_at,"
                   "stage,stage_since,"
                   "spacing_x_mm,spacing_y_mm,spacing_z_mm,source_x_mm,source_y_mm,"
                   "source_step_min_mm,source_step_max_mm,straightened,straightened_because,"
                   "broken_expectation,broken_label,broken_found,broken_low,broken_high,rule,"
                   "programs,program_runs,manufacturer,model,kernel,kvp,slice_thickness_min_mm,slice_thickness_max_mm,"
                   "corrects,corrected_by,correction_uid,prior_job,prior_study_date,pixel_values,"
                   "pixel_intensity,spacing_source,prior_item"},
        {"v_segments", "job,segment,label,method,voxels,volume_ml,mean,minimum,maximum,unit,first_column,"
                       "last_column,first_row,last_row,first_slice,last_slice,width_mm,height_mm,depth_mm,x_mm,"
                       "y_mm,z_mm,pipeline,stack,series_uid,series_description,revision,state,measured_at,"
                       "superseded_by,prior_job,prior_study_date,volume_change_ml,volume_change_percent,tracking_uid"},
        {"v_breaches", "job,place,segment,label,expectation,found,low,high,text,pipeline,"
                       "series_uid,state"},
        {"v_review", "job,pipeline,stack,series_uid,modality,body_part,series_description,revision,"
                     "since_at,code,message,preview_path,result_path,outdated,version,decision,decided_by,"
                     "decision_reason,decided_at,final_at,corrects,corrected_by,correction_job"},
        {"v_saved_filters", "person,list,name,filter,saved_at"},
        {"v_audit", "audit,at,action,subject,job,revision,reason,actor,how,role,address,seen"},
        {"v_series", "series_uid,state,revision,study_uid,modality,body_part,series_description,instances,"
                     "frames,expected_instances,first_seen_at,last_seen_at,settled_at,evidence,"
                     "complete_requested,stacks,accepted_stacks,code,message,file_a,file_b,"
                     "duplicate_conflicts,missing_files,jobs,jobs_done,called_ae,sender,split_by,passed_over,"
                     "incomplete,quarantined,missing_accepted_by,temporal_positions,"
                     "announced_temporal_positions,removed_at,accession_number,patient_id,study_date,"
                     "study_description,manufacturer,model,station,institution,inbox,patient_issuer"},
        {"v_work",
         "work,job,series_uid,state,at,pipeline,stack,revision,modality,body_part,series_description,study_uid,"
         "accession_number,patient_id,manufacturer,model,station,sender,instances,expected_instances,"
         "first_seen_at,last_seen_at,started_at,ended_at,total_seconds,code,message,not_before_at,superseded_by,"
         "removed_at,backend"},
        {"v_undelivered", "destination,cause,code,message,deliveries,jobs,tried,oldest_at,next_attempt_at,delivery"},
        {"v_trends", "day,pipeline,station,jobs,done,empty,review,rejected,failed,cancelled,mean_seconds"},
        {"v_objects", "sop_instance_uid,kind,sop_class_uid,label,object_series_uid,series_uid,"
                      "study_uid,series_description,path,source,sender,size_bytes,received_at,"
                      "replaced,own,missing,superseded_by,removed_at,person"},
        {"v_instances", "series_uid,sop_instance_uid,sop_class_uid,transfer_syntax_uid,path,source,"
                        "size_bytes,frames,missing,revision,received_at,replaced,sha256"},
        {"v_stacks", "series_uid,revision,stack,accepted,passed_over,planes,columns,rows,spacing_mm,split_by,"
                     "code,message,file_a,file_b,options,spacing_x_mm,spacing_y_mm,orientation,"
                     "image_orientation"},
        {"v_results", "job,pipeline,stack,series_uid,revision,kind,path,sop_class_uid,sop_instance_uid,"
                      "result_series_uid,size_bytes,frames,created_at,superseded_by,"
                      "removed_at,state,replaces,replaced_by,not_taken_by"},
        {"v_quarantine", "quarantined_at,path,original_path,series_uid,code,message,sop_instance_uid,lacking,"
                         "removed_at,quarantine,sender,called_ae"},
        {"v_events", "event,at,kind,series_uid,job,from_state,to_state,detail,delivery,program_run"},
        {"v_night", "now_at,jobs_ready,jobs_running,jobs_delayed,jobs_done,jobs_empty,jobs_failed,"
                    "jobs_cancelled,series_gathering,series_settled,series_refused,oldest_waiting_seconds,"
                    "jobs_ended_12h,jobs_ended_24h,jobs_failed_24h,mean_seconds,median_seconds,backlog_jobs,"
                    "eta_seconds,quarantined_24h,deliveries_pending,deliveries_sending,deliveries_delayed,"
                    "deliveries_failed,deliveries_sent_24h,oldest_delivery_seconds,compute_waiting,"
                    "free_mib,disk_full_days,held,series_refused_24h,jobs_review,jobs_rejected,"
                    "series_without_rule,jobs_expected,jobs_late,compute,free_at,programs_waiting,programs_running,"
                    "deliveries_review"},
        {"v_deliveries", "delivery,job,destination,state,attempts,kind,path,sop_class_uid,sop_instance_uid,"
                         "dimse_status,dimse_status_hex,code,message,commitment,transaction_uid,created_at,"
                         "not_before_at,started_at,sent_at,requested_at,committed_at,series_uid,pipeline,"
                         "superseded_by,held,sent_sop_class,sent_transfer_syntax,sent_sop_instance_uid,confirmed,"
                         "version,reviewed_at,reviewed_by"},
        {"v_holds", "kind,name,held_at,held_by,reason"},
        {"v_programs", "program,state,code,message,since_at,sandbox,identity,program_sha256,weights_sha256,weights_mib,"
                       "waiting,running,runs,failed,starts,cases_per_start,mean_seconds,median_seconds,max_seconds,"
                       "mean_write_seconds,mean_read_seconds,max_peak_mib,whole_runs,cpu_runs,last_ended_at,last_code"},
        {"v_program_runs", "run,program,state,series_uid,modality,stack,revision,attempts,created_at,started_at,"
                           "ended_at,not_before_at,wait_seconds,write_seconds,program_seconds,read_seconds,"
                           "total_seconds,peak_mib,ran_as,gpu,sandbox,executor,starts,labels,labelled_voxels,"
                           "mask_path,mask_sha256,output_path,code,message,identity,jobs_waiting,superseded_by,"
                           "removed_at"},
        {"v_measured", "pipeline,jobs,mean_seconds,lanes,jobs_per_series"},
        {"v_backlog", "pipeline,jobs_ready,jobs_running,jobs_delayed,jobs_expected,mean_seconds,"
                      "work_seconds,is_held,window,window_opens_at,eta_seconds,done_by_at,"
                      "jobs_late,jobs_unfit"},
        {"v_wanted", "job,pipeline,state,done_by_at,expected_at,is_late,late_why,mean_seconds,"
                     "room_seconds"},
        {"v_windows", "pipeline,window,is_open,opens_at,closes_at"},
        {"v_configuration", "state,at,since_at,cause,asked_by,files,reason"},
        {"v_pulls", "item,batch,source,key,identifier,state,attempts,expected,arrived,code,message,"
                    "not_before_at,created_at,started_at,moved_at,ended_at,asked_by,study_uids,"
                    "list_line,unwanted,quarantined"},
        {"v_callers", "calling_ae,called_ae,host,reason,meaning,admit,rejected,first_at,last_at,"
                      "admitted_at,certificate,id"},
        {"v_disk", "at,free_mib"},
        {"v_nights", "night,since_at,until_at,series_settled,series_refused,series_without_rule,instances,"
                     "bytes,jobs_done,jobs_empty,jobs_review,jobs_rejected,jobs_failed,jobs_cancelled,"
                     "busy_seconds,compute_seconds,result_bytes,delivered,undelivered,waiting,quarantined,"
                     "free_mib,report,report_at,report_message"},
        {"v_features", "job,segment,name,ibsi_code,value,unit,reason,label,family,meaning,aggregation,"
                       "aggregation_ibsi_code,discretisation,levels,bin_width,distance,symmetric,range_low,"
                       "range_high,directions,place,pipeline,stack,series_uid,series_description,revision,"
                       "measured_at,superseded_by,settings,other_settings,"
                       "spacing_x_mm,spacing_y_mm,spacing_z_mm,source_x_mm,source_y_mm,"
                       "source_step_min_mm,source_step_max_mm,straightened,straightened_because,"
                       "manufacturer,model,kernel,kvp,slice_thickness_min_mm,slice_thickness_max_mm,"
                       "pixel_values,pixel_intensity,spacing_source"},
        {"v_pattern_histograms",
         "job,segment,label,pattern,settings,counts,pipeline,stack,series_uid,series_description,"
         "revision,measured_at,superseded_by"},
        {"v_pattern_distances", "job,segment,label,pattern,settings,other_job,other_segment,other_label,"
                                "other_pipeline,other_series_uid,chi_square,l1,cosine"},
        {"v_destinations", "destination,pending,sending,delayed,sent,failed,cancelled,uncommitted,"
                           "oldest_waiting_at,next_attempt_at,last_sent_at,down_since,down_reason,review"},
        {"v_alerts", "alert,severity,since_at,changed_at,size,text"},
        {"v_validations",
         "validation,at,by,name,passed,why,patients,cases,done,others,others_done,wrong,wrong_share_95,"
         "tolerance_mm,version,digest,in_force"},
        {"v_validation_cases",
         "validation,validation_case,other,complete,patient,series,manufacturer,model,kernel,thickness,"
         "slice_mm,noise,outcome,checks,wrong,segment,reference,dice,surface_dice,distance_95_mm,"
         "volume_ratio,bias_ml"},
        {"v_validated_ranges",
         "validation,name,digest,manufacturer,model,kernel,thickness,patients,noise_low,noise_high"},
        {"v_acknowledgements", "alert,acknowledged_at,acknowledged_by,reason,until_at,severity,changed_at,size"},
        {"v_notifications", "name,event,ended_at,failures,failing_since_at,message"},
        {"v_troubles", "level,since_at,text"},
    };
    struct sample sample;
    sample_open(&sample);
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        char sql[160];
        snprintf(sql, sizeof sql,
                 "SELECT group_concat(name) FROM (SELECT name FROM pragma_table_info('%s') "
                 "ORDER BY cid)",
                 views[i][0]);
        assert_answer(&sample, sql, views[i][1]);
    }
    assert_answer(&sample, "SELECT count(*) FROM sqlite_schema WHERE type = 'view'", "41");
    sample_close(&sample);
}

END_TEST

START_TEST(a_new_database_has_the_current_schema)
{
    struct sample sample;
    sample_open(&sample);
    assert_answer(&sample, "PRAGMA journal_mode", "wal");
    assert_answer(&sample, "PRAGMA application_id", "1315922804");
    assert_newest_version(&sample);
    assert_answer(&sample,
                  "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' "
                  "AND type = 'table' AND name NOT LIKE 'sqlite%' AND NOT strict",
                  "0");
    sample_close(&sample);
}

END_TEST

START_TEST(a_second_opening_has_no_effect)
{
    struct sample sample;
    sample_open(&sample);
    int64_t job = sample_job(sample.queue, "1.2.3");
    char before[64];
    snprintf(before, sizeof before, "%s", sample_ask(&sample, "PRAGMA schema_version"));
    sample_reopen(&sample);
    assert_answer(&sample, "PRAGMA schema_version", before);
    ck_assert_int_eq(sample_state(sample.queue, job), QUEUE_READY);
    sample_close(&sample);
}

END_TEST

START_TEST(changed_views_are_replaced_and_foreign_ones_left)
{
    struct sample sample;
    sample_open(&sample);
    sample_job(sample.queue, "1.2.3");
    sample_unwatch();
    queue_close(sample.queue);
    sample.queue = NULL;
    run_sql(sample.path, "DROP VIEW v_jobs; CREATE VIEW v_jobs AS SELECT 1 AS old;"
                         "DROP VIEW v_night; CREATE VIEW of_the_site AS SELECT 2 AS own");
    sample_reopen(&sample);
    assert_answer(&sample, "SELECT state FROM v_jobs", "READY");
    assert_answer(&sample, "SELECT jobs_ready FROM v_night", "1");
    assert_answer(&sample, "SELECT own FROM of_the_site", "2");
    sample_close(&sample);
}

END_TEST

static void
assert_refused(const char *path, int expected, const char *words)
{
    struct queue *queue = NULL;
    struct error error = {0};
    ck_assert_int_eq(queue_open(path, &queue, &error), expected);
    ck_assert_ptr_null(queue);
    ck_assert_msg(strstr(error.message, words) && strstr(error.message, path), "%s", error.message);
}

START_TEST(a_newer_database_is_refused_unchanged)
{
    struct sample sample;
    sample_open(&sample);
    sample_unwatch();
    queue_close(sample.queue);
    sample.queue = NULL;
    run_sql(sample.path, "PRAGMA user_version = 99; DROP VIEW v_jobs");
    assert_refused(sample.path, -EPROTONOSUPPORT, "99");
    assert_answer(&sample, "SELECT count(*) FROM sqlite_schema WHERE name = 'v_jobs'", "0");
    sample_close(&sample);
}

END_TEST

START_TEST(a_foreign_database_is_refused_unchanged)
{
    struct sample sample;
    sample_folder(&sample);
    run_sql(sample.path, "CREATE TABLE theirs (x)");
    assert_refused(sample.path, -EBADMSG, "another program");
    assert_answer(&sample, "SELECT count(*) FROM sqlite_schema", "1");
    assert_answer(&sample, "PRAGMA journal_mode", "delete");
    sample_close(&sample);
}

END_TEST

START_TEST(a_file_of_another_format_is_refused)
{
    struct sample sample;
    sample_folder(&sample);
    FILE *file = fopen(sample.path, "w");
    for (int i = 0; i < 1000; i++)
        fputs("this is no database", file);
    fclose(file);
    assert_refused(sample.path, -EBADMSG, "not a database");
    sample_close(&sample);
}

END_TEST

START_TEST(a_missing_folder_is_refused)
{
    assert_refused("/nonexistent/noctule.db", -ENOENT, "No such file");
}

END_TEST

START_TEST(a_folder_in_its_place_is_refused)
{
    struct sample sample;
    sample_folder(&sample);
    ck_assert_int_eq(mkdir(sample.path, 0700), 0);
    assert_refused(sample.path, -EISDIR, "unable to open");
    sample_close(&sample);
}

END_TEST

START_TEST(network_file_systems_are_known)
{
    ck_assert_str_eq(filesystem_remote_name(0x6969), "NFS");
    ck_assert_str_eq(filesystem_remote_name(0xff534d42), "CIFS");
    ck_assert_str_eq(filesystem_remote_name(0xfe534d42), "SMB2");
    ck_assert_str_eq(filesystem_remote_name(0x65735546), "FUSE");
    ck_assert_str_eq(filesystem_remote_name(0x00c36400), "Ceph");
    ck_assert_str_eq(filesystem_remote_name(0x01021997), "9P");
    /* As a signed 32-bit f_type arrives in a wider one. */
    ck_assert_str_eq(filesystem_remote_name((unsigned long)(int)0xff534d42), "CIFS");
    ck_assert_ptr_null(filesystem_remote_name(0xef53));     /* ext4 */
    ck_assert_ptr_null(filesystem_remote_name(0x58465342)); /* XFS */
    ck_assert_ptr_null(filesystem_remote_name(0x01021994)); /* tmpfs */
    const char *name = "";
    ck_assert_int_eq(filesystem_check("/nonexistent/noctule.db", &name), -ENOENT);
    ck_assert_ptr_null(name);
}

END_TEST

START_TEST(events_are_append_only)
{
    struct sample sample;
    sample_open(&sample);
    ck_assert_int_eq(queue_note(sample.queue, "START", "a test", SAMPLE_NOW), 0);
    sqlite3 *db;
    ck_assert_int_eq(sqlite3_open(sample.path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, "UPDATE event SET detail = 'x'", NULL, NULL, NULL), SQLITE_CONSTRAINT);
    ck_assert_str_eq(sqlite3_errmsg(db), "events are append-only");
    ck_assert_int_eq(sqlite3_exec(db, "DELETE FROM event", NULL, NULL, NULL), SQLITE_CONSTRAINT);
    sqlite3_close(db);
    assert_answer(&sample, "SELECT kind || ' ' || detail || ' ' || at FROM v_events",
                  "START a test 2026-01-31T02:03:20.000Z");
    sample_close(&sample);
}

END_TEST

START_TEST(another_key_is_noticed_until_it_is_accepted)
{
    struct sample sample;
    sample_open(&sample);
    ck_assert_int_eq(queue_check_key(sample.queue, "h:1"), 1);
    ck_assert_int_eq(queue_check_key(sample.queue, "h:2"), 0);
    ck_assert_int_eq(queue_check_key(sample.queue, "h:1"), 1);
    ck_assert_int_eq(queue_replace_key(sample.queue, "h:2", SAMPLE_NOW), 0);
    ck_assert_int_eq(queue_check_key(sample.queue, "h:1"), 0);
    ck_assert_int_eq(queue_check_key(sample.queue, "h:2"), 1);
    assert_answer(&sample, "SELECT count(*) || ' ' || min(kind) FROM v_events", "1 IDENTIFIER_KEY_REPLACED");
    sample_close(&sample);
}

END_TEST

SAMPLE_MAIN("db_open", NULL, NULL, the_schema_equals_the_sum_of_the_migrations, version_50_keeps_its_pulls,
            version_1_is_brought_up_to_date, version_3_is_brought_up_to_date, version_4_is_brought_up_to_date,
            version_5_is_brought_up_to_date, views_have_their_columns, a_new_database_has_the_current_schema,
            a_second_opening_has_no_effect, changed_views_are_replaced_and_foreign_ones_left,
            a_newer_database_is_refused_unchanged, a_foreign_database_is_refused_unchanged,
            a_file_of_another_format_is_refused, a_missing_folder_is_refused, a_folder_in_its_place_is_refused,
            network_file_systems_are_known, events_are_append_only, another_key_is_noticed_until_it_is_accepted)
