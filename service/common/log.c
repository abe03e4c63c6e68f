/*
 * log.c - logfmt lines on standard error; see log.h.
 *
 * A line is composed on the stack and written with one write(2), so lines of several threads and processes do not mix.
 * If standard error is the journal, lines begin with "<3>", which journald reads as the priority.
 */
#include "service/common/log.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* PIPE_BUF: a pipe does not mix writes of up to this size with those of other processes. */
#define LINE_BYTES 4096
#define CUT_MARK   " cut=1\n"

struct log_line {
    char text[LINE_BYTES];
    size_t size;
    bool cut;
};

static const char *const level_names[] = {
    [LOG_ERROR] = "error", [LOG_WARN] = "warn", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};
static const char journal_priority[] = {[LOG_ERROR] = '3', [LOG_WARN] = '4', [LOG_INFO] = '6', [LOG_DEBUG] = '7'};

static char role_name[24] = "noctule";
static bool to_journal;
static atomic_int threshold = LOG_INFO;

void
log_open(const char *role, const char *level)
{
    const char *stream = getenv("JOURNAL_STREAM"); /* "device:inode", set by systemd */
    struct stat status;
    uintmax_t device, inode;
    snprintf(role_name, sizeof role_name, "%s", role);
    to_journal = stream && sscanf(stream, "%" SCNuMAX ":%" SCNuMAX, &device, &inode) == 2 &&
                 fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
    log_set_level(level);
}

void
log_set_level(const char *level)
{
    for (int i = LOG_ERROR; i <= LOG_DEBUG; i++) {
        if (level && strcmp(level, level_names[i]) == 0)
            atomic_store(&threshold, i);
    }
}

static void
log_add(struct log_line *line, const char *text, size_t size)
{
    size_t room = sizeof line->text - sizeof CUT_MARK - line->size;
    if (size > room) {
        line->cut = true;
        size = room;
    }
    memcpy(line->text + line->size, text, size);
    line->size += size;
}

static void
add_text(struct log_line *line, const char *text)
{
    log_add(line, text, strlen(text));
}

static bool
needs_quotes(const char *value)
{
    if (!*value)
        return true;
    size_t length = 1;
    for (; *value && length > 0 && !strchr(" \"=\\", *value); value += length)
        length = text_line_length(value);
    return *value || length == 0;
}

static void
add_value(struct log_line *line, const char *value)
{
    if (!needs_quotes(value)) {
        add_text(line, value);
        return;
    }
    add_text(line, "\"");
    while (*value) {
        const size_t length = text_line_length(value);
        if (length == 0) { /* a byte that a line cannot contain */
            char escape[5];
            snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)*value);
            add_text(line, *value == '\n' ? "\\n" : *value == '\t' ? "\\t" : escape);
        }
        if (*value == '"' || *value == '\\')
            add_text(line, "\\");
        log_add(line, value, length);
        value += length ? length : 1;
    }
    add_text(line, "\"");
}

static void
add_field(struct log_line *line, const struct log_field *field)
{
    char number[40];
    add_text(line, " ");
    add_text(line, field->key);
    add_text(line, "=");
    if (field->kind == 's') {
        add_value(line, field->value.s ? field->value.s : "");
        return;
    }
    if (field->kind == 'i')
        snprintf(number, sizeof number, "%" PRId64, field->value.i);
    else
        snprintf(number, sizeof number, "%.6g", field->value.f);
    add_text(line, number);
}

void
log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    if ((int)level > atomic_load_explicit(&threshold, memory_order_relaxed))
        return;
    int saved = errno;
    struct timespec now;
    struct tm utc;
    char stamp[32], head[128];
    struct log_line line;
    line.size = 0;
    line.cut = false;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    if (to_journal)
        log_add(&line, (char[]){'<', journal_priority[level], '>'}, 3);
    snprintf(head, sizeof head, "ts=%s.%03ldZ level=%s role=%s event=", stamp, now.tv_nsec / 1000000,
             level_names[level], role_name);
    add_text(&line, head);
    add_value(&line, event);
    for (; fields->key; fields++)
        add_field(&line, fields);
    const char *ending = line.cut ? CUT_MARK : "\n";
    memcpy(line.text + line.size, ending, strlen(ending));
    line.size += strlen(ending);
    /* If the log cannot be written, the error cannot be reported anywhere. */
    if (write(STDERR_FILENO, line.text, line.size) < 0)
        errno = saved;
    errno = saved;
}
