/* docs/database.md: its queries run, and it has every column of every view. */
#include "tests/unit/db/sample.h"

static struct sample s;
static sqlite3 *reader;
static char *document;

static void
open_sample(void)
{
    sample_open(&s);
    int64_t job = sample_job(s.queue, "1.2.3");
    ck_assert_int_eq(queue_start_job(s.queue, job, "worker-0", 0, SAMPLE_NOW), 0);
    ck_assert_int_eq(sample_finish(s.queue, job), 0);
    ck_assert_int_eq(sqlite3_open_v2(s.path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    FILE *file = fopen(NOCTULE_SOURCE_DIR "/docs/database.md", "r");
    ck_assert_ptr_nonnull(file);
    document = calloc(1, 1 << 17);
    ck_assert_uint_lt(fread(document, 1, (1 << 17) - 1, file), (1 << 17) - 1);
    fclose(file);
}

static void
close_sample(void)
{
    free(document);
    sqlite3_close(reader);
    sample_close(&s);
}

START_TEST(documented_queries_run)
{
    static const char fence[] = "\n```sql\n";
    int queries = 0;
    for (char *at = document; (at = strstr(at, fence)) != NULL; queries++) {
        at += strlen(fence);
        char *end = strstr(at, "\n```");
        ck_assert_ptr_nonnull(end);
        *end = '\0';
        char *error = NULL;
        ck_assert_msg(sqlite3_exec(reader, at, NULL, NULL, &error) == SQLITE_OK, "%s\n%s", at, error);
        at = end + 1;
    }
    ck_assert_int_ge(queries, 12);
}

END_TEST

/* The part of the document that starts with "## <view>:" has each column in backquotes. */
static int
expect_column(const char *view, const char *column)
{
    char heading[64], quoted[64];
    snprintf(heading, sizeof heading, "\n## %s:", view);
    snprintf(quoted, sizeof quoted, "`%s`", column);
    const char *part = strstr(document, heading);
    ck_assert_msg(part != NULL, "no part%s", heading);
    const char *end = strstr(part + 1, "\n## ");
    const char *found = strstr(part, quoted);
    ck_assert_msg(found && (!end || found < end), "%s.%s", view, column);
    return 1;
}

START_TEST(each_column_is_documented)
{
    sqlite3_stmt *statement;
    int columns = 0;
    ck_assert_int_eq(sqlite3_prepare_v2(reader,
                                        "SELECT v.name, c.name FROM sqlite_schema v, "
                                        "pragma_table_info(v.name) c WHERE v.type = 'view'",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW)
        columns += expect_column((const char *)sqlite3_column_text(statement, 0),
                                 (const char *)sqlite3_column_text(statement, 1));
    sqlite3_finalize(statement);
    ck_assert_int_gt(columns, 130);
}

END_TEST

/* The kinds of events that db/ writes are in the table of kinds. */
START_TEST(each_kind_of_event_is_documented)
{
    static const char *const kinds[] = {
        "INSTANCE",
        "INSTANCE_KNOWN",
        "INSTANCE_MISSING",
        "INSTANCE_RETURNED",
        "INSTANCE_REPLACED",
        "QUARANTINED",
        "COMPLETE_REQUESTED",
        "MISSING_ACCEPTED",
        "SERIES_SETTLED",
        "SERIES_REFUSED",
        "JOB_ADDED",
        "JOB_STARTED",
        "JOB_DONE",
        "JOB_EMPTY",
        "JOB_FAILED",
        "JOB_DELAYED",
        "JOB_DUE",
        "JOB_RETURNED",
        "JOB_RECOVERED",
        "JOB_CANCELLED",
        "JOB_SUPERSEDED",
        "JOB_RETRIED",
        "DELIVERY_ADDED",
        "DELIVERY_STARTED",
        "DELIVERY_SENT",
        "DELIVERY_DELAYED",
        "DELIVERY_FAILED",
        "DELIVERY_CANCELLED",
        "DELIVERY_RETURNED",
        "DELIVERY_RECOVERED",
        "DELIVERY_RESENT",
        "COMMITMENT_REQUESTED",
        "COMMITMENT_DONE",
        "COMMITMENT_FAILED",
        "HELD",
        "RELEASED",
        "JOB_PRIORITY",
        "JOB_WAITS",
        "JOB_MASK_CAME",
        "PROGRAM_PLANNED",
        "PROGRAM_STARTED",
        "PROGRAM_DONE",
        "PROGRAM_DELAYED",
        "PROGRAM_DUE",
        "PROGRAM_FAILED",
        "PROGRAM_RETURNED",
        "PROGRAM_RECOVERED",
        "PROGRAM_CANCELLED",
        "PROGRAM_AGAIN",
        "PROGRAM_READY",
        "PROGRAM_BROKEN",
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        expect_column("v_events", kinds[i]);
}

END_TEST

SAMPLE_MAIN("db_docs", open_sample, close_sample, documented_queries_run, each_column_is_documented,
            each_kind_of_event_is_documented)
