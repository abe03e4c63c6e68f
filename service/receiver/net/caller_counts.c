#include "service/receiver/net/caller_counts.h"

#include "dicom/net/scp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_MS 1000

struct noted_caller {
    const char *reason;
    char calling_ae[DICOM_AE_SIZE], called_ae[DICOM_AE_SIZE];
    char host[ADMISSION_HOST], certificate[DICOM_SHA256_SIZE];
    int64_t count;
};

struct callers {
    pthread_mutex_t lock;
    struct noted_caller noted[CALLERS_MAX];
    size_t count;
    int64_t reported_ms;
};

struct callers *
callers_new(void)
{
    struct callers *callers = calloc(1, sizeof *callers);
    if (callers)
        pthread_mutex_init(&callers->lock, NULL); /* cannot fail */
    return callers;
}

void
callers_free(struct callers *callers)
{
    if (!callers)
        return;
    pthread_mutex_destroy(&callers->lock);
    free(callers);
}

bool
callers_note(struct callers *callers, enum admission_verdict verdict, const struct admission_caller *caller)
{
    static const char *const reasons[] = {
        [ADMISSION_UNKNOWN_CALLER] = "unknown_caller",
        [ADMISSION_OTHER_ADDRESS] = "other_address",
        [ADMISSION_OTHER_CERTIFICATE] = "other_certificate",
        [ADMISSION_UNKNOWN_TITLE] = "unknown_title",
        [ADMISSION_BUSY] = NULL,
    };
    const char *reason = reasons[verdict];
    if (!reason)
        return false;
    pthread_mutex_lock(&callers->lock);
    struct noted_caller *noted = callers->noted;
    const struct noted_caller *end = noted + callers->count;
    while (noted < end && (strcmp(noted->reason, reason) != 0 || strcmp(noted->calling_ae, caller->calling_ae) != 0 ||
                           strcmp(noted->called_ae, caller->called_ae) != 0 || strcmp(noted->host, caller->host) != 0))
        noted++;
    if (noted == end && callers->count < CALLERS_MAX) {
        *noted = (struct noted_caller){.reason = reason};
        snprintf(noted->calling_ae, sizeof noted->calling_ae, "%s", caller->calling_ae);
        snprintf(noted->called_ae, sizeof noted->called_ae, "%s", caller->called_ae);
        snprintf(noted->host, sizeof noted->host, "%s", caller->host);
        callers->count++;
    }
    if (noted < callers->noted + callers->count) { /* a caller that finds no space is added at its next call */
        noted->count++;
        snprintf(noted->certificate, sizeof noted->certificate, "%s", caller->certificate);
    }
    pthread_mutex_unlock(&callers->lock);
    return true;
}

bool
callers_report(struct callers *callers, int64_t now_ms, struct proto_writer *writer, int64_t *wait_ms)
{
    pthread_mutex_lock(&callers->lock);
    const int64_t due_ms = callers->reported_ms ? callers->reported_ms + REPORT_MS : now_ms;
    const bool due = callers->count > 0 && now_ms >= due_ms;
    *wait_ms = callers->count > 0 && !due ? due_ms - now_ms : 0;
    if (due) {
        message_write_callers(writer, NULL);
        for (size_t i = 0; i < callers->count; i++) {
            const struct noted_caller *noted = &callers->noted[i];
            const struct message_caller row = {.calling = noted->calling_ae,
                                               .called = noted->called_ae,
                                               .host = noted->host,
                                               .certificate = noted->certificate,
                                               .reason = noted->reason,
                                               .rejected = noted->count};
            message_add_caller(writer, &row);
        }
        callers->count = 0;
        callers->reported_ms = now_ms;
    }
    pthread_mutex_unlock(&callers->lock);
    return due;
}
