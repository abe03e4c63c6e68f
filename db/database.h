/*
 * database.h - SQLite for db/: errors as -errno with a reason, typed values, prepared statements. Private to db/.
 *
 * One thread per struct database. Unless a function states otherwise, it returns 0 or a count, or
 * -errno. `reason` then describes the error until the next one.
 */
#ifndef NOCTULE_DB_DATABASE_H
#define NOCTULE_DB_DATABASE_H

#include <math.h>
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
    /* SQLite reported damage: of the file, or only of its cached pages after a failed read */
    bool damaged;
};

/*
 * Opens a database with the `flags` of sqlite3_open_v2(). After an error there is nothing to close,
 * and `reason` is set.
 */
int database_open(struct database *db, const char *path, int flags);
void database_close(struct database *db);

/* Sets the reason and returns `error`. */
int database_refuse(struct database *db, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Runs a script. Do not use it in hot paths. */
int database_script(struct database *db, const char *sql);
/* Reads the first column of the first row, cut to `size`; "" if there is no row. Do not use it in hot paths. */
int database_text(struct database *db, const char *sql, char *text, size_t size);

/* ------------------------------------------------------------------------------ statements --- */

struct database_value {
    enum { VALUE_NULL, VALUE_INT, VALUE_REAL, VALUE_TEXT, VALUE_TIME, VALUE_BLOB } kind;

    union {
        int64_t i;
        double d;
        const char *s;
        const void *b;
    } as;

    size_t size; /* of a blob */
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

/* The bytes must live until database_end(). */
static inline struct database_value
value_blob(const void *bytes, size_t size)
{
    return (struct database_value){.kind = VALUE_BLOB, .as.b = bytes, .size = size};
}

/* NULL stays NULL. */
static inline struct database_value
value_optional(const char *value)
{
    return value ? value_text(value) : value_null();
}

/* The id of a row; 0 is stored as NULL. */
static inline struct database_value
value_id(int64_t id)
{
    return id ? value_int(id) : value_null();
}

/* A number that is negative while it is unknown, which is stored as NULL. */
static inline struct database_value
value_known(int64_t value)
{
    return value >= 0 ? value_int(value) : value_null();
}

/* A duration; NULL unless it is finite and not negative. */
static inline struct database_value
value_seconds(double seconds)
{
    return isfinite(seconds) && seconds >= 0 ? value_real(seconds) : value_null();
}

/* A length; NULL unless it is finite and positive. */
static inline struct database_value
value_length(double mm)
{
    return isfinite(mm) && mm > 0 ? value_real(mm) : value_null();
}

/* Unix milliseconds, stored as ISO-8601 text. */
static inline struct database_value
value_time(int64_t ms)
{
    return (struct database_value){.kind = VALUE_TIME, .as.i = ms};
}

/* 0 is stored as NULL. */
static inline struct database_value
value_optional_time(int64_t ms)
{
    return ms ? value_time(ms) : value_null();
}

#define VALUES(...)                                                                                                    \
    (const struct database_value[]){__VA_ARGS__},                                                                      \
        sizeof(const struct database_value[]){__VA_ARGS__} / sizeof(struct database_value)
#define NO_VALUES NULL, 0

/*
 * Starts a statement. `sql` must have static storage: its address finds the prepared statement
 * again. Texts among the values must live until database_end().
 */
int database_start(struct database *db, const char *sql, const struct database_value *values, size_t count,
                   sqlite3_stmt **statement);
int database_step(struct database *db, sqlite3_stmt *statement); /* 1: a row; 0: no more rows */
void database_end(sqlite3_stmt *statement);

/* Starts a statement whose text is made at run time. It is not kept; free it with sqlite3_finalize(). */
int database_query(struct database *db, const char *sql, const struct database_value *values, size_t count,
                   sqlite3_stmt **statement);

/* Prepares a statement ahead of its use, for callers that cannot handle an error then. */
int database_prepare(struct database *db, const char *sql);

/* Runs a statement to its end. Returns the number of rows that it changed. */
int database_change(struct database *db, const char *sql, const struct database_value *values, size_t count);
/* Runs a statement to its end. Returns 0 for any number of changed rows. */
int database_run(struct database *db, const char *sql, const struct database_value *values, size_t count);
/* Reads the first column of the first row. Returns 1, or 0 if there is no row. */
int database_get(struct database *db, const char *sql, const struct database_value *values, size_t count,
                 int64_t *value);
/* Runs a rollback. Keeps the reason of the error that caused it. */
bool database_quietly(struct database *db, const char *sql);

/*
 * Reads rows as structs. One list has a line per member. It makes both the columns of the query and
 * the table that database_read_row() uses. The first member is the id of the row.
 *
 *     #define JOB_FIELDS(FIELD) FIELD(INT64, id, "j.id") FIELD(TEXT, stack, "j.stack")
 *     #define JOB_FIELD(kind, member, sql) {DATABASE_##kind, offsetof(struct queue_job, member)},
 *
 *     "SELECT " JOB_FIELDS(DATABASE_COLUMN) "NULL FROM job j"
 *     static const struct database_shape job_shape =
 *         DATABASE_SHAPE("job", struct queue_job, JOB_FIELDS(JOB_FIELD));
 *
 * Kinds: INT64, INT32, BOOL, TIME (milliseconds, 0 for NULL), REAL (0.0 for NULL), TEXT (malloc'd, "" for NULL) and
 * NAME(names), an enum by its name.
 */
struct database_field {
    enum { FIELD_INT64, FIELD_INT32, FIELD_BOOL, FIELD_TIME, FIELD_REAL, FIELD_TEXT, FIELD_NAME } kind;

    const char *const *names;
    size_t name_count;
    size_t offset;
};

#define DATABASE_COLUMN(kind, member, sql) sql ", "
#define DATABASE_INT64                     FIELD_INT64, NULL, 0
#define DATABASE_INT32                     FIELD_INT32, NULL, 0
#define DATABASE_BOOL                      FIELD_BOOL, NULL, 0
#define DATABASE_TIME                      FIELD_TIME, NULL, 0
#define DATABASE_REAL                      FIELD_REAL, NULL, 0
#define DATABASE_TEXT                      FIELD_TEXT, NULL, 0
#define DATABASE_NAME(names)               FIELD_NAME, names, sizeof(names) / sizeof *(names)

struct database_shape {
    const char *what; /* "job" */
    size_t size;      /* of the struct */
    const struct database_field *fields;
    size_t count;
};

/* The arguments after the type are the fields. */
#define DATABASE_SHAPE(what, type, ...)                                                                                \
    {                                                                                                                  \
        what, sizeof(type), (const struct database_field[]){__VA_ARGS__},                                              \
            sizeof((const struct database_field[]){__VA_ARGS__}) / sizeof(struct database_field)                       \
    }

/* Shapes of one column: int64_t, milliseconds, malloc'd text. */
extern const struct database_shape database_id, database_time, database_string;

/*
 * Reads the ranges of images that are validated for a digest (service/common/trust.h), "" if there are none. Returns 0 or
 * -errno. The caller must free *ranges.
 */
int database_validated(struct database *db, const char *digest, char **ranges);

/* Reads a row. After an error the struct is zero. */
int database_read_row(struct database *db, sqlite3_stmt *statement, const struct database_shape *shape, void *row);
/* Frees the texts of a row and sets all members to zero. */
void database_clear_row(const struct database_shape *shape, void *row);
/* Frees an array of rows, with their texts. */
void database_free_rows(const struct database_shape *shape, void *rows, size_t count);
/* Define the functions that clear a struct of this shape, and that free an array of them. */
#define DATABASE_CLEAR(name, type, shape)                                                                              \
    void name(struct type *row)                                                                                        \
    {                                                                                                                  \
        database_clear_row(&(shape), row);                                                                             \
    }
#define DATABASE_FREE(name, type, shape)                                                                               \
    void name(struct type *rows, size_t count)                                                                         \
    {                                                                                                                  \
        database_free_rows(&(shape), rows, count);                                                                     \
    }

#endif
