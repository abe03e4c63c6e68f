/*
 * plans.h - checks that no statement of the queue scans a table that grows. When a sample is
 * closed, SQLite's planner explains each statement that the test ran.
 *
 * A daemon that scans 100,000 rows at each event does no other work, and a test with three rows
 * does not notice. Partial indexes may be scanned: they contain waiting rows only, and statements
 * take the first.
 */
#ifndef NOCTULE_TEST_DB_PLANS_H
#define NOCTULE_TEST_DB_PLANS_H

#include <check.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS_MOST = 512 };

static struct {
    char *ran[PLANS_MOST], *ignored[PLANS_MOST];
    int count, ignored_count;
    int judged; /* statements checked so far, on a database without statistics */
    bool ignoring;
} plans;

static inline bool
plans_has(char *const *list, int count, const char *sql)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i], sql) == 0)
            return true;
    }
    return false;
}

static inline int
plans_on_statement(unsigned type, void *context, void *statement, void *text)
{
    const char *sql = sqlite3_sql(statement);
    char **list = plans.ignoring ? plans.ignored : plans.ran;
    int *count = plans.ignoring ? &plans.ignored_count : &plans.count;
    (void)type;
    (void)context;
    (void)text;
    if (!sql || plans_has(list, *count, sql))
        return 0;
    ck_assert_int_lt(*count, PLANS_MOST);
    list[(*count)++] = strdup(sql);
    return 0;
}

/* Watches statements from now on; `ignored`: statements that may scan, here and later. */
static inline void
plans_watch(sqlite3 *db, bool ignored)
{
    plans.ignoring = ignored;
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, plans_on_statement, NULL);
}

/*
 * Returns whether the step scans: "SCAN job", "SCAN j USING COVERING INDEX job_state". Tables that
 * do not grow may be scanned: constants, holds, results of the statement itself, the row of a
 * pragma.
 */
static inline bool
plans_walks(sqlite3 *db, const char *step)
{
    static const char *const small[] = {"CONSTANT",
                                        "hold",
                                        "h",
                                        "horizon",
                                        "acknowledgement",
                                        "notification",
                                        "program",
                                        "alert_raised",
                                        "disk",
                                        "waiting",
                                        "w",
                                        "ranks",
                                        "k",
                                        "first",
                                        "f",
                                        "pipeline_window",
                                        "pipelines",
                                        "p",
                                        "(subquery",
                                        "main.sqlite_stat1",
                                        "v_validated_ranges",
                                        "json_each",
                                        "cases",
                                        "regions",
                                        "sqlite_sequence"};
    char name[64] = "", sql[160];
    sqlite3_stmt *found;
    if (sscanf(step, "SCAN %63[^ -]", name) != 1 || strncmp(name, "pragma_", 7) == 0)
        return false;
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        if (strcmp(name, small[i]) == 0)
            return false;
    }
    const char *index = strstr(step, " INDEX ");
    snprintf(sql, sizeof sql, "SELECT 1 FROM sqlite_schema WHERE name = '%s' AND sql LIKE '%% WHERE %%'",
             index ? index + strlen(" INDEX ") : "");
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &found, NULL), SQLITE_OK);
    const bool partial = sqlite3_step(found) == SQLITE_ROW;
    sqlite3_finalize(found);
    return !partial;
}

/*
 * Returns whether the statement may scan: on an operator's command only; the last row by id;
 * SQLite's own.
 */
static inline bool
plans_may_walk(const char *sql)
{
    static const char *const beginnings[] = {"SELECT id FROM quarantine WHERE quarantined_at < ?1 AND NOT EXISTS",
                                             "SELECT at FROM event ORDER BY id DESC LIMIT 1",
                                             "SELECT tbl,idx,stat FROM 'main'.sqlite_stat1"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        if (strncmp(sql, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    }
    return false;
}

static inline void
plans_judge_one(sqlite3 *db, const char *ran)
{
    sqlite3_stmt *steps;
    char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", ran);
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &steps, NULL) == SQLITE_OK, "%s: %s", ran, sqlite3_errmsg(db));
    while (sqlite3_step(steps) == SQLITE_ROW) {
        const char *step = (const char *)sqlite3_column_text(steps, 3);
        ck_assert_msg(!plans_walks(db, step), "%s\nwalks all there is: %s", ran, step);
    }
    sqlite3_finalize(steps);
    sqlite3_free(sql);
}

/* Returns whether SQLite has statistics, which change plans: PRAGMA optimize. */
static inline bool
plans_follow_statistics(sqlite3 *db)
{
    sqlite3_stmt *found;
    if (sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_stat1", -1, &found, NULL) != SQLITE_OK)
        return false;
    const bool counted = sqlite3_step(found) == SQLITE_ROW;
    sqlite3_finalize(found);
    return counted;
}

/*
 * Checks all statements since plans_watch(); without statistics, the plan of a statement is checked
 * once.
 */
static inline void
plans_judge(sqlite3 *db)
{
    static const char *const kinds[] = {"SELECT", "WITH", "UPDATE", "DELETE", "INSERT"};
    sqlite3_trace_v2(db, 0, NULL, NULL);
    const bool statistics = plans_follow_statistics(db);
    for (int i = statistics ? 0 : plans.judged; i < plans.count; i++) {
        const bool judged =
            !plans_has(plans.ignored, plans.ignored_count, plans.ran[i]) && !plans_may_walk(plans.ran[i]);
        bool known = false;
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++)
            known |= strncmp(plans.ran[i], kinds[j], strlen(kinds[j])) == 0;
        if (judged && known)
            plans_judge_one(db, plans.ran[i]);
    }
    if (!statistics)
        plans.judged = plans.count;
}

#endif
