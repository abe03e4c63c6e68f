#include "service/common/program/program_order.h"

#include "base/array.h"
#include "base/durable.h"
#include "base/text.h"
#include "service/common/jobs/keyed_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORDER_FORMAT   "noctule-program 1"
#define OUTCOME_FORMAT "noctule-outcome 1"
#define COUNT(rows)    (sizeof(rows) / sizeof *(rows))

/* A member of a struct, and its key. */
struct order_field {
    const char *key;

    enum { ORDER_STRING, ORDER_CHARS, ORDER_INT, ORDER_INT64, ORDER_DOUBLE } kind;

    size_t offset, size;
};

#define ROW(structure, kind, member)                                                                                   \
    {                                                                                                                  \
#member, (kind), offsetof(struct structure, member), sizeof(((struct structure *)NULL)->member)                \
    }

static const struct order_field order_rows[] = {
    ROW(program_order, ORDER_INT64, run),       ROW(program_order, ORDER_INT, attempt),
    ROW(program_order, ORDER_STRING, program),  ROW(program_order, ORDER_STRING, identity),
    ROW(program_order, ORDER_STRING, pipeline), ROW(program_order, ORDER_STRING, stack),
    ROW(program_order, ORDER_STRING, work),     ROW(program_order, ORDER_STRING, result),
    ROW(program_order, ORDER_STRING, gpu),      ROW(program_order, ORDER_INT, as),
    ROW(program_order, ORDER_INT, slot),        ROW(program_order, ORDER_INT, threads),
};

static const struct order_field outcome_rows[] = {
    ROW(program_outcome, ORDER_INT, end),
    ROW(program_outcome, ORDER_CHARS, error.message),
    ROW(program_outcome, ORDER_CHARS, identity),
    ROW(program_outcome, ORDER_CHARS, program_sha256),
    ROW(program_outcome, ORDER_CHARS, weights_sha256),
    ROW(program_outcome, ORDER_CHARS, sha256),
    ROW(program_outcome, ORDER_CHARS, sandbox),
    ROW(program_outcome, ORDER_INT64, size),
    ROW(program_outcome, ORDER_INT64, labels),
    ROW(program_outcome, ORDER_INT64, labelled),
    ROW(program_outcome, ORDER_INT64, peak_bytes),
    ROW(program_outcome, ORDER_INT, starts),
    ROW(program_outcome, ORDER_DOUBLE, write_seconds),
    ROW(program_outcome, ORDER_DOUBLE, program_seconds),
    ROW(program_outcome, ORDER_DOUBLE, read_seconds),
};

enum program_as
program_next_place(enum conf_gpu gpu, bool has_cpu_command, enum program_as as)
{
    if (as == PROGRAM_AS_CPU || gpu == CONF_GPU_NONE)
        return as;
    if (as == PROGRAM_AS_GIVEN && gpu == CONF_GPU_SHARED)
        return PROGRAM_AS_WHOLE;
    return has_cpu_command ? PROGRAM_AS_CPU : as;
}

/* ------------------------------------------------------------------------------- writing ---- */

static void
order_put_rows(FILE *out, const struct order_field *rows, size_t count, const void *from)
{
    for (const struct order_field *row = rows; row < rows + count; row++) {
        const void *member = (const char *)from + row->offset;
        if (row->kind == ORDER_STRING)
            keyed_put(out, row->key, *(char *const *)member);
        else if (row->kind == ORDER_CHARS)
            keyed_put(out, row->key, member);
        else if (row->kind == ORDER_INT)
            fprintf(out, "%s %d\n", row->key, *(const int *)member);
        else if (row->kind == ORDER_INT64)
            fprintf(out, "%s %" PRId64 "\n", row->key, *(const int64_t *)member);
        else
            fprintf(out, "%s %.17g\n", row->key, *(const double *)member);
    }
}

/* Writes a text to a file, and frees it. NULL: no memory. */
static int
order_write_text(char *text, const char *path)
{
    if (!text)
        return -ENOMEM;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    int rc = fd < 0 ? -errno : durable_write_all(fd, text, strlen(text));
    if (fd >= 0) {
        const int closed = durable_close(fd);
        rc = rc ? rc : closed;
    }
    free(text);
    return rc;
}

char *
program_order_to_text(const struct program_order *order)
{
    struct text_stream text;
    if (text_open(&text) != 0)
        return NULL;
    fprintf(text.out, "%s\n", ORDER_FORMAT);
    order_put_rows(text.out, order_rows, COUNT(order_rows), order);
    for (size_t i = 0; i < order->accepted_count; i++)
        fprintf(text.out, "accepted %u\n", (unsigned)order->accepted[i]);
    keyed_put_inputs(text.out, order->inputs, order->sha256, order->input_count);
    fprintf(text.out, "end %zu\n", order->input_count);
    return text_close(&text) == 0 ? text.bytes : NULL;
}

int
program_order_write(const struct program_order *order, const char *path)
{
    return order_write_text(program_order_to_text(order), path);
}

int
program_outcome_write(const struct program_outcome *outcome, const char *path)
{
    struct text_stream text;
    int rc = text_open(&text);
    if (rc)
        return rc;
    fprintf(text.out, "%s\n", OUTCOME_FORMAT);
    keyed_put(text.out, "code", code_name(outcome->error.code));
    order_put_rows(text.out, outcome_rows, COUNT(outcome_rows), outcome);
    fputs("complete yes\n", text.out);
    return order_write_text(text_close(&text) == 0 ? text.bytes : NULL, path);
}

/* ------------------------------------------------------------------------------- reading ---- */

static int
order_take_chars(struct keyed_reader *reader, const char *text, char *to, size_t size)
{
    char *copy = NULL;
    int rc = keyed_take_text(reader, text, &copy);
    if (rc == 0 && strlen(copy) >= size)
        rc = keyed_bad(reader, "the text is too long");
    if (rc == 0)
        memcpy(to, copy, strlen(copy) + 1);
    free(copy);
    return rc;
}

static int
order_take_row(struct keyed_reader *reader, const struct order_field *row, const char *text, void *to)
{
    void *member = (char *)to + row->offset;
    int64_t number = 0;
    if (row->kind == ORDER_STRING)
        return keyed_take_text(reader, text, member);
    if (row->kind == ORDER_CHARS)
        return order_take_chars(reader, text, member, row->size);
    if (row->kind == ORDER_DOUBLE) {
        double *value = member;
        char *end, *copy = NULL;
        int rc = keyed_take_text(reader, text, &copy);
        if (rc)
            return rc;
        *value = strtod(copy, &end);
        rc = end == copy || *end || !(*value >= 0) ? keyed_bad(reader, "not a number") : 0;
        free(copy);
        return rc;
    }
    int rc = keyed_take_number(reader, text, &number);
    if (rc == 0 && row->kind == ORDER_INT && number > INT32_MAX)
        rc = keyed_bad(reader, "the number is too large");
    if (rc == 0 && row->kind == ORDER_INT)
        *(int *)member = (int)number;
    else if (rc == 0)
        *(int64_t *)member = number;
    return rc;
}

/* Returns the row with the key, or NULL. */
static const struct order_field *
order_find_row(const struct order_field *rows, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].key, key) == 0)
            return &rows[i];
    return NULL;
}

struct order_reader {
    struct keyed_reader text;
    struct program_order *order;
    size_t input_rooms[2], accepted_room;
    bool ended;
};

static int
order_take_key(struct order_reader *reader)
{
    struct program_order *order = reader->order;
    const char *key, *text;
    int64_t count;
    int rc = keyed_split(&reader->text, &key, &text);
    if (rc)
        return rc;
    const struct order_field *row = order_find_row(order_rows, COUNT(order_rows), key);
    if (row)
        return order_take_row(&reader->text, row, text, order);
    if (strcmp(key, "accepted") == 0) {
        int64_t value;
        uint16_t *grown = array_grow(order->accepted, &reader->accepted_room, order->accepted_count + 1, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        order->accepted = grown;
        rc = keyed_take_number(&reader->text, text, &value);
        if (rc == 0 && value > UINT16_MAX)
            rc = keyed_bad(&reader->text, "the number is too large");
        if (rc == 0)
            grown[order->accepted_count++] = (uint16_t)value;
        return rc;
    }
    if (strcmp(key, "input") == 0)
        return keyed_take_input(&reader->text, text, &order->inputs, &order->sha256, &order->input_count,
                                reader->input_rooms);
    if (strcmp(key, "sha256") == 0)
        return keyed_take_digest(&reader->text, text, order->sha256, order->input_count);
    if (strcmp(key, "end") != 0)
        return keyed_bad(&reader->text, "an unknown key");
    rc = keyed_take_number(&reader->text, text, &count);
    if (rc == 0 && (count != (int64_t)order->input_count))
        rc = keyed_bad(&reader->text, "the number of files does not match");
    reader->ended = rc == 0;
    return rc;
}

static int
order_take(struct order_reader *reader)
{
    int rc = keyed_begin(&reader->text, ORDER_FORMAT);
    while (rc == 0 && reader->text.length >= 0 && !reader->ended)
        rc = order_take_key(reader);
    if (rc)
        return rc;
    if (!reader->ended || reader->text.length >= 0)
        return keyed_bad(&reader->text, reader->ended ? "data after the end" : "the file was cut off");
    for (size_t i = 0; i < COUNT(order_rows); i++)
        if (order_rows[i].kind == ORDER_STRING && !*(char **)((char *)reader->order + order_rows[i].offset))
            return keyed_bad(&reader->text, "a key is missing");
    return 0;
}

/* Reads from `in`, and closes it. */
static int
order_read(FILE *in, struct program_order **order, struct error *error)
{
    struct order_reader reader = {.text = {.in = in, .error = error}};
    *order = NULL;
    *error = (struct error){0};
    reader.order = in ? calloc(1, sizeof *reader.order) : NULL;
    int rc = reader.order ? order_take(&reader) : -errno;
    if (rc && error->message[0] == '\0')
        error_set(error, rc, CODE_NONE, "%s", strerror(-rc));
    free(reader.text.line);
    if (in)
        fclose(in);
    if (rc)
        program_order_free(reader.order);
    else
        *order = reader.order;
    return rc;
}

int
program_order_read(const char *path, struct program_order **order, struct error *error)
{
    return order_read(fopen(path, "re"), order, error);
}

int
program_order_from_text(const char *text, struct program_order **order, struct error *error)
{
    char *copy = strdup(text); /* fmemopen() takes no const text */
    const int rc = order_read(copy ? fmemopen(copy, strlen(copy), "r") : NULL, order, error);
    free(copy);
    return rc;
}

void
program_order_free(struct program_order *order)
{
    if (!order)
        return;
    for (size_t i = 0; i < order->input_count; i++) {
        free(order->inputs[i]);
        free(order->sha256[i]);
    }
    free(order->inputs);
    free(order->sha256);
    free(order->accepted);
    for (size_t i = 0; i < COUNT(order_rows); i++)
        if (order_rows[i].kind == ORDER_STRING)
            free(*(char **)((char *)order + order_rows[i].offset));
    free(order);
}

static int
outcome_take(struct keyed_reader *reader, struct program_outcome *outcome)
{
    const char *key, *text;
    char name[CODE_NAME_SIZE];
    bool ended = false;
    int rc = keyed_begin(reader, OUTCOME_FORMAT);
    while (rc == 0 && reader->length >= 0 && !ended) {
        if ((rc = keyed_split(reader, &key, &text)) != 0)
            return rc;
        const struct order_field *row = order_find_row(outcome_rows, COUNT(outcome_rows), key);
        ended = strcmp(key, "complete") == 0;
        if (row)
            rc = order_take_row(reader, row, text, outcome);
        else if (strcmp(key, "code") == 0 || ended)
            rc = order_take_chars(reader, text, name, sizeof name);
        else
            rc = keyed_bad(reader, "an unknown key");
        if (rc == 0 && !row && !ended)
            outcome->error.code = code_find(name);
    }
    return rc || ended ? rc : keyed_bad(reader, "the file was cut off");
}

int
program_outcome_read(const char *path, struct program_outcome *outcome, struct error *error)
{
    struct keyed_reader reader = {.in = fopen(path, "re"), .error = error};
    *outcome = (struct program_outcome){0};
    *error = (struct error){0};
    const int rc = reader.in ? outcome_take(&reader, outcome) : -errno;
    if (rc && error->message[0] == '\0')
        error_set(error, rc, CODE_NONE, "%s", strerror(-rc));
    free(reader.line);
    if (reader.in)
        fclose(reader.in);
    return rc;
}
