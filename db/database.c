#include "db/database.h"

#include "base/text.h"
#include "db/iso_time.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------- errors --- */

/*
 * SQLite distinguishes a full disk from a broken one only while it writes a page. Elsewhere (shared
 * memory, folders) the system's errno is more exact.
 */
static int
from_system(struct database *db, int otherwise)
{
    int error = db->handle ? sqlite3_system_errno(db->handle) : 0;
    switch (error) {
    case 0:
        return otherwise;
    case EDQUOT:
    case ENOSPC:
        return -ENOSPC;
    default:
        return -error;
    }
}

static int
to_errno(struct database *db, int extended)
{
    switch (extended & 0xff) {
    case SQLITE_OK:
        return 0;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_IOERR:
        if (extended == SQLITE_IOERR_NOMEM)
            return -ENOMEM;
        return from_system(db, -EIO) == -ENOSPC ? -ENOSPC : -EIO;
    case SQLITE_CANTOPEN:
        return from_system(db, -ENOENT);
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -EACCES;
    case SQLITE_CORRUPT:
        return -EUCLEAN;
    case SQLITE_NOTADB:
        return -EBADMSG;
    case SQLITE_INTERRUPT: /* report_bound */
        return -ETIMEDOUT;
    case SQLITE_TOOBIG:
        return -E2BIG;
    case SQLITE_CONSTRAINT:
        return extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY ? -EEXIST : -EINVAL;
    default:
        return -EIO;
    }
}

/* Returns -ENOSPC, -EIO, -EBUSY ... for the last error of the handle, and sets the reason. */
static int
database_failed(struct database *db)
{
    int extended = db->handle ? sqlite3_extended_errcode(db->handle) : SQLITE_NOMEM;
    const char *words = db->handle ? sqlite3_errmsg(db->handle) : "out of memory";
    snprintf(db->reason, sizeof db->reason, "SQLite: %s (%d)", words, extended);
    int error = to_errno(db, extended);
    db->damaged |= error == -EUCLEAN;
    return error < 0 ? error : -EIO;
}

int
database_refuse(struct database *db, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(db->reason, sizeof db->reason, format, arguments);
    va_end(arguments);
    return error;
}

/* ---------------------------------------------------------------------------- open, scripts --- */

int
database_open(struct database *db, const char *path, int flags)
{
    *db = (struct database){0};
    if (sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL) == SQLITE_OK)
        return 0;
    int rc = database_failed(db);
    sqlite3_close(db->handle);
    db->handle = NULL;
    return rc;
}

void
database_close(struct database *db)
{
    for (size_t i = 0; i < db->prepared_count; i++)
        sqlite3_finalize(db->prepared[i].statement);
    free(db->prepared);
    sqlite3_close(db->handle);
    db->prepared = NULL;
    db->prepared_count = db->prepared_capacity = 0;
    db->handle = NULL;
}

int
database_script(struct database *db, const char *sql)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : database_failed(db);
}

int
database_text(struct database *db, const char *sql, char *text, size_t size)
{
    sqlite3_stmt *statement;
    int rc = database_query(db, sql, NO_VALUES, &statement);
    if (rc < 0)
        return rc;
    rc = database_step(db, statement);
    const unsigned char *found = rc == 1 ? sqlite3_column_text(statement, 0) : NULL;
    snprintf(text, size, "%s", found ? (const char *)found : "");
    sqlite3_finalize(statement);
    return rc < 0 ? rc : 0;
}

/* ----------------------------------------------------------------------------------- texts --- */

/* Returns a malloc'd copy with U+FFFD for each byte that is not UTF-8: JSON must not contain such bytes. */
static char *
utf8_repaired(const char *text)
{
    char *copy = malloc(3 * strlen(text) + 1);
    if (!copy)
        return NULL;
    char *to = copy;
    while (*text) {
        size_t length = text_utf8_length(text);
        memcpy(to, length ? text : "\xef\xbf\xbd", length ? length : 3);
        to += length ? length : 3;
        text += length ? length : 1;
    }
    *to = '\0';
    return copy;
}

/* ------------------------------------------------------------------------------ statements --- */

static int
find_prepared(struct database *db, const char *sql, sqlite3_stmt **statement)
{
    for (size_t i = 0; i < db->prepared_count; i++) {
        if (db->prepared[i].sql == sql) {
            *statement = db->prepared[i].statement;
            return 0;
        }
    }
    if (db->prepared_count == db->prepared_capacity) {
        size_t capacity = db->prepared_capacity ? 2 * db->prepared_capacity : 64;
        struct database_prepared *grown = realloc(db->prepared, capacity * sizeof *grown);
        if (!grown)
            return database_refuse(db, -ENOMEM, "out of memory");
        db->prepared = grown;
        db->prepared_capacity = capacity;
    }
    if (sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) != SQLITE_OK)
        return database_failed(db);
    db->prepared[db->prepared_count++] = (struct database_prepared){sql, *statement};
    return 0;
}

int
database_prepare(struct database *db, const char *sql)
{
    sqlite3_stmt *statement;
    return find_prepared(db, sql, &statement);
}

static int
bind_value(struct database *db, sqlite3_stmt *statement, int index, const struct database_value *value)
{
    char time[ISO_TIME_SIZE];
    int rc = SQLITE_ERROR;
    switch (value->kind) {
    case VALUE_NULL:
        rc = sqlite3_bind_null(statement, index);
        break;
    case VALUE_INT:
        rc = sqlite3_bind_int64(statement, index, value->as.i);
        break;
    case VALUE_REAL:
        rc = sqlite3_bind_double(statement, index, value->as.d);
        break;
    case VALUE_TEXT: {
        const char *text = value->as.s ? value->as.s : "", *end = text;
        for (size_t length; (length = text_utf8_length(end)) > 0; end += length)
            ;
        char *repaired = *end ? utf8_repaired(text) : NULL;
        if (*end == '\0')
            rc = sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
        else
            rc = repaired ? sqlite3_bind_text(statement, index, repaired, -1, free) : SQLITE_NOMEM;
        break;
    }
    case VALUE_TIME:
        if (iso_time_from_ms(value->as.i, time) < 0)
            return database_refuse(db, -EINVAL, "%lld ms is no time between the years 0 and 9999",
                                   (long long)value->as.i);
        rc = sqlite3_bind_text(statement, index, time, ISO_TIME_LENGTH, SQLITE_TRANSIENT);
        break;
    case VALUE_BLOB:
        rc = sqlite3_bind_blob64(statement, index, value->as.b, value->size, SQLITE_STATIC);
        break;
    }
    if (rc == SQLITE_NOMEM)
        return database_refuse(db, -ENOMEM, "out of memory");
    return rc == SQLITE_OK ? 0 : database_failed(db);
}

static int
bind_values(struct database *db, sqlite3_stmt *statement, const struct database_value *values, size_t count)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = bind_value(db, statement, (int)i + 1, &values[i]);
    return rc;
}

int
database_query(struct database *db, const char *sql, const struct database_value *values, size_t count,
               sqlite3_stmt **statement)
{
    if (sqlite3_prepare_v2(db->handle, sql, -1, statement, NULL) != SQLITE_OK)
        return database_failed(db);
    int rc = bind_values(db, *statement, values, count);
    if (rc < 0)
        sqlite3_finalize(*statement);
    return rc;
}

int
database_start(struct database *db, const char *sql, const struct database_value *values, size_t count,
               sqlite3_stmt **statement)
{
    int rc = find_prepared(db, sql, statement);
    return rc < 0 ? rc : bind_values(db, *statement, values, count);
}

int
database_step(struct database *db, sqlite3_stmt *statement)
{
    switch (sqlite3_step(statement)) {
    case SQLITE_ROW:
        return 1;
    case SQLITE_DONE:
        return 0;
    default:
        return database_failed(db);
    }
}

void
database_end(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
}

int
database_change(struct database *db, const char *sql, const struct database_value *values, size_t count)
{
    sqlite3_stmt *statement;
    int rc = database_start(db, sql, values, count, &statement);
    if (rc < 0)
        return rc;
    rc = database_step(db, statement);
    database_end(statement);
    return rc < 0 ? rc : sqlite3_changes(db->handle);
}

int
database_run(struct database *db, const char *sql, const struct database_value *values, size_t count)
{
    int rc = database_change(db, sql, values, count);
    return rc < 0 ? rc : 0;
}

int
database_get(struct database *db, const char *sql, const struct database_value *values, size_t count, int64_t *value)
{
    sqlite3_stmt *statement;
    int rc = database_start(db, sql, values, count, &statement);
    if (rc < 0)
        return rc;
    rc = database_step(db, statement);
    if (rc == 1)
        *value = sqlite3_column_int64(statement, 0);
    database_end(statement);
    return rc;
}

bool
database_quietly(struct database *db, const char *sql)
{
    char reason[sizeof db->reason];
    memcpy(reason, db->reason, sizeof reason);
    int rc = database_change(db, sql, NO_VALUES);
    memcpy(db->reason, reason, sizeof reason);
    return rc >= 0;
}

/* -------------------------------------------------------------------------------------- rows - */

static int
database_column_time(sqlite3_stmt *statement, int column, int64_t *ms)
{
    *ms = 0;
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
        return 0;
    const unsigned char *found = sqlite3_column_text(statement, column);
    if (!found)
        return -ENOMEM;
    return iso_time_to_ms((const char *)found, ms) < 0 ? -EUCLEAN : 0;
}

static int
database_read_field(sqlite3_stmt *statement, int column, const struct database_field *field, void *member)
{
    const char *text;
    switch (field->kind) {
    case FIELD_INT64:
        *(int64_t *)member = sqlite3_column_int64(statement, column);
        return 0;
    case FIELD_INT32:
        *(int32_t *)member = sqlite3_column_int(statement, column);
        return 0;
    case FIELD_BOOL:
        *(bool *)member = sqlite3_column_int(statement, column) != 0;
        return 0;
    case FIELD_TIME:
        return database_column_time(statement, column, member);
    case FIELD_REAL:
        *(double *)member = sqlite3_column_double(statement, column);
        return 0;
    case FIELD_TEXT: {
        text = (const char *)sqlite3_column_text(statement, column);
        if (!text && sqlite3_column_type(statement, column) != SQLITE_NULL)
            return -ENOMEM;
        char *copy = strdup(text ? text : "");
        memcpy(member, &copy, sizeof copy);
        return copy ? 0 : -ENOMEM;
    }
    case FIELD_NAME:
        text = (const char *)sqlite3_column_text(statement, column);
        for (int name = 0; text && name < (int)field->name_count; name++) {
            memcpy(member, &name, sizeof name);
            if (strcmp(text, field->names[name]) == 0)
                return 0;
        }
        return -EUCLEAN;
    }
    return -EINVAL;
}

int
database_read_row(struct database *db, sqlite3_stmt *statement, const struct database_shape *shape, void *row)
{
    int rc = 0;
    memset(row, 0, shape->size);
    for (size_t i = 0; rc == 0 && i < shape->count; i++)
        rc = database_read_field(statement, (int)i, &shape->fields[i], (char *)row + shape->fields[i].offset);
    if (rc == 0)
        return 0;
    database_clear_row(shape, row);
    return database_refuse(db, rc, "the row of %s %lld cannot be read: %s", shape->what,
                           (long long)sqlite3_column_int64(statement, 0), strerror(-rc));
}

void
database_clear_row(const struct database_shape *shape, void *row)
{
    for (size_t i = 0; i < shape->count; i++) {
        if (shape->fields[i].kind == FIELD_TEXT)
            free(*(char **)((char *)row + shape->fields[i].offset));
    }
    memset(row, 0, shape->size);
}

void
database_free_rows(const struct database_shape *shape, void *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        database_clear_row(shape, (char *)rows + i * shape->size);
    free(rows);
}

const struct database_shape database_id = DATABASE_SHAPE("id", int64_t, {DATABASE_INT64, 0});
const struct database_shape database_time = DATABASE_SHAPE("time", int64_t, {DATABASE_TIME, 0});
const struct database_shape database_string = DATABASE_SHAPE("text", char *, {DATABASE_TEXT, 0});

int
database_validated(struct database *db, const char *digest, char **ranges)
{
    sqlite3_stmt *row;
    *ranges = NULL;
    int rc =
        database_start(db,
                       "SELECT coalesce(group_concat(manufacturer || char(9) || model || char(9) || kernel || "
                       "char(9) || thickness || char(9) || iif(noise_low IS NULL, '', printf('%!.17g', noise_low)) "
                       "|| char(9) || iif(noise_high IS NULL, '', printf('%!.17g', noise_high)), char(10)), '') "
                       "FROM v_validated_ranges WHERE digest = ?",
                       VALUES(value_text(digest)), &row);
    if (rc < 0)
        return rc;
    rc = database_step(db, row);
    if (rc == 1)
        rc = database_read_row(db, row, &database_string, ranges);
    database_end(row);
    return rc;
}
