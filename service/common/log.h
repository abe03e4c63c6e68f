/*
 * log.h - one logfmt line per event on standard error (the input of journald). Only service/ logs.
 *
 *     ts=2026-01-31T02:03:04.567Z level=info role=daemon event=job.done job=17 seconds=0.41
 *
 * Lines must not contain patient names or IDs. They name series and jobs by their UIDs and numbers. Values are quoted
 * and escaped if needed, so a line break in a file name cannot start a new line. Thread-safe; errno is kept.
 */
#ifndef NOCTULE_SERVICE_COMMON_LOG_H
#define NOCTULE_SERVICE_COMMON_LOG_H

#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

struct log_field {
    const char *key; /* NULL ends the list */
    char kind;       /* 's', 'i', 'f' */

    union {
        const char *s;
        int64_t i;
        double f;
    } value;
};

#define LOG_STR(k, v)                                                                                                  \
    {                                                                                                                  \
        .key = (k), .kind = 's', .value.s = (v)                                                                        \
    }
#define LOG_INT(k, v)                                                                                                  \
    {                                                                                                                  \
        .key = (k), .kind = 'i', .value.i = (int64_t)(v)                                                               \
    }
#define LOG_NUM(k, v)                                                                                                  \
    {                                                                                                                  \
        .key = (k), .kind = 'f', .value.f = (double)(v)                                                                \
    }

/* Sets the role ("daemon", "intake", ...) and the level by its name in the configuration. Must be
 * called once, before any thread is created. */
void log_open(const char *role, const char *level);
void log_set_level(const char *level);

void log_write(enum log_level level, const char *event, const struct log_field *fields);

/* log_info("job.done", LOG_INT("job", id), LOG_NUM("seconds", s)). At least one field must be given. */
#define LOG_FIELDS(...)       ((const struct log_field[]){__VA_ARGS__, {.key = 0}})
#define log_error(event, ...) log_write(LOG_ERROR, event, LOG_FIELDS(__VA_ARGS__))
#define log_warn(event, ...)  log_write(LOG_WARN, event, LOG_FIELDS(__VA_ARGS__))
#define log_info(event, ...)  log_write(LOG_INFO, event, LOG_FIELDS(__VA_ARGS__))
#define log_debug(event, ...) log_write(LOG_DEBUG, event, LOG_FIELDS(__VA_ARGS__))

#endif
