/*
 * database.h - SQLite as db/ sees it: errors as -errno with words, typed values, statements that
 * are prepared once. Private to db/.
 *
 * A struct database belongs to one thread. Whatever a call returns but 0 (or a count) is a negative
 * errno, and `reason` says it in words until the next failure.
 */
#ifndef NOCTULE_DB_DATABASE_H
#define NOCTULE_DB_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DATABASE_REASON         512
#define DATABASE_BUSY_MILLIS    5000
#define DATABASE_APPLICATION_ID 0x4e6f6374 /* "Noct", PRAGMA application_id */

struct database_prepared {
    const char *sql;
    sqlite3_stmt *statement;
};

struct database {
    sqlite3 *handle;
    struct database_prepared *prepared; /* by the address of the text */
    size_t prepared_count, prepared_capacity;
    char reason[DATABASE_REASON];
    bool
        damaged; /* says SQLite, of the file or only of what it has in memory of it after a read that failed */
};

/* `flags`: of sqlite3_open_v2. On failure nothing is left to close, and `reason` is set. */
int database_open(struct database *db, const char *path, int flags);
void database_close(struct database *db);

/* -ENOSPC, -EIO, -EBUSY ... for the last failure of the handle, put into words. */
int database_failed(struct database *db);
/* Sets the reason and returns `error`, so that a refusal is one line. */
int database_refuse(struct database *db, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs a script; not for hot paths. */
int database_script(struct database *db, const char *sql);
/* The first column of the first row, cut to `size`; "" when there is none. Not for hot paths. */
int database_text(struct database *db, const char *sql, char *text, size_t size);

/* ------------------------------------------------------------------------------ statements --- */

struct database_value {
    enum { VALUE_NULL, VALUE_INT, VALUE_REAL, VALUE_TEXT, VALUE_TIME } kind;

    union {
        int64_t i;
        double d;
        const char *s;
    } as;
};

static inline struct database_value
value_null(void)
{
    return (struct database_value){.kind = VALUE_NULL};
}

static inline struct database_value
value_int(int64_t value)
{
    return (struct database_value){.kind = VALUE_INT, .as.i = value};
}

static inline struct database_value
value_real(double value)
{
    return (struct database_value){.kind = VALUE_REAL, .as.d = value};
}

/* NULL is stored as ''; bytes that are not UTF-8 as U+FFFD. */
static inline struct database_value
value_text(const char *value)
{
    return (struct database_value){.kind = VALUE_TEXT, .as.s = value};
}

/* NULL stays NULL. */
static inline struct database_value
value_optional(const char *value)
{
    return value ? value_text(value) : value_null();
}

/* Of a row; 0: NULL. */
static inline struct database_value
value_id(int64_t id)
{
    return id ? value_int(id) : value_null();
}

/* Unix milliseconds, stored as ISO-8601 text. */
static inline struct database_value
value_time(int64_t ms)
{
    return (struct database_value){.kind = VALUE_TIME, .as.i = ms};
}

#define VALUES(...)                                                                                \
    (const struct database_value[]){__VA_ARGS__},                                                  \
        sizeof(const struct database_value[]){__VA_ARGS__} / sizeof(struct database_value)
#define NO_VALUES NULL, 0

/*
 * `sql` has static storage (a literal that stands where it is used): its address finds the prepared
 * statement again. The texts among the values must live until database_end.
 */
int database_start(struct database *db, const char *sql, const struct database_value *values,
                   size_t count, sqlite3_stmt **statement);
int database_step(struct database *db, sqlite3_stmt *statement); /* 1 a row, 0 no more */
void database_end(sqlite3_stmt *statement);

/* For texts that are put together at run time: not kept; sqlite3_finalize it. */
int database_query(struct database *db, const char *sql, const struct database_value *values,
                   size_t count, sqlite3_stmt **statement);

/* Prepares ahead, where a failure at the time of use could not be dealt with. */
int database_prepare(struct database *db, const char *sql);

/* Start, step to the end, end: returns the number of rows changed. */
int database_change(struct database *db, const char *sql, const struct database_value *values,
                    size_t count);
/* The same, 0 for any number of them. */
int database_run(struct database *db, const char *sql, const struct database_value *values,
                 size_t count);
/* The first column of the first row: 1, or 0 when there is none. */
int database_get(struct database *db, const char *sql, const struct database_value *values,
                 size_t count, int64_t *value);
/* For rollbacks: the reason of the failure that made it necessary stays. */
bool database_quietly(struct database *db, const char *sql);

/*
 * Rows that are read as structs. A list has one line per member, from which come the columns that
 * are asked for and the table that database_read_row follows; the first is the row's id.
 *
 *     #define JOB_FIELDS(FIELD) FIELD(INT64, id, "j.id") FIELD(TEXT, stack, "j.stack")
 *     #define JOB_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_job, member)},
 *
 *     "SELECT " JOB_FIELDS(DATABASE_COLUMN) "NULL FROM job j"
 *     static const struct database_field job_fields[] = {JOB_FIELDS(JOB_FIELD)};
 *
 * Kinds are INT64, INT32, BOOL, TIME (milliseconds, 0 for NULL), TEXT (malloc'd, "" for NULL) and
 * NAME(names): an enum, by its name.
 */
struct database_field {
    enum { FIELD_INT64, FIELD_INT32, FIELD_BOOL, FIELD_TIME, FIELD_TEXT, FIELD_NAME } kind;

    const char *const *names;
    size_t name_count;
    size_t offset;
};

#define DATABASE_COLUMN(kind, member, sql) sql ", "
#define DATABASE_INT64                     FIELD_INT64, NULL, 0
#define DATABASE_INT32                     FIELD_INT32, NULL, 0
#define DATABASE_BOOL                      FIELD_BOOL, NULL, 0
#define DATABASE_TIME                      FIELD_TIME, NULL, 0
#define DATABASE_TEXT                      FIELD_TEXT, NULL, 0
#define DATABASE_NAME(names)               FIELD_NAME, names, sizeof(names) / sizeof *(names)

struct database_shape {
    const char *what; /* "job" */
    size_t size;      /* of the struct */
    const struct database_field *fields;
    size_t count;
};

/* Rows of one column: int64_t, milliseconds, malloc'd text. */
extern const struct database_shape database_id, database_time, database_string;

/* On an error the struct is cleared. */
int database_read_row(struct database *db, sqlite3_stmt *statement,
                      const struct database_shape *shape, void *row);
/* Frees its texts, and leaves zeros. */
void database_clear_row(const struct database_shape *shape, void *row);

#endif
