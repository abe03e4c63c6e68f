/* broker.c - the parent's end of the broker (broker.h). */
#include "service/common/program/broker_private.h"

#include "service/common/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS      100
#define STAGE_SECOND 1.0

struct broker {
    int fd;
    pid_t pid;
    struct broker_answer partial; /* the answer that is being received */
    size_t received;
};

int
broker_open(const struct program_steps *steps, const char *root, struct broker **broker)
{
    int ends[2];
    struct broker *made = calloc(1, sizeof *made);
    if (!made)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        free(made);
        return -errno;
    }
    made->pid = fork();
    if (made->pid == 0) {
        close(ends[0]);
        broker_main(ends[1], steps, root);
    }
    const int rc = made->pid < 0 ? -errno : 0;
    close(ends[1]);
    made->fd = ends[0];
    if (rc) {
        close(ends[0]);
        free(made);
        return rc;
    }
    *broker = made;
    return 0;
}

int
broker_fd(const struct broker *broker)
{
    return broker->fd;
}

/* ----------------------------------------------------------------------------- requests ---- */

static int
broker_send_all(struct broker *broker, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        const ssize_t sent = send(broker->fd, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return errno == ECONNRESET ? -EPIPE : -errno;
        at += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

int
broker_send(struct broker *broker, enum broker_verb verb, int64_t run, const char *text)
{
    const struct broker_head head = {.verb = verb, .run = run, .size = strlen(text)};
    const int rc = broker_send_all(broker, &head, sizeof head);
    return rc ? rc : broker_send_all(broker, text, head.size);
}

/* ------------------------------------------------------------------------------ answers ---- */

int
broker_receive(struct broker *broker, struct broker_answer *answer)
{
    char *into = (char *)&broker->partial;
    *answer = (struct broker_answer){.event = BROKER_NONE};
    const ssize_t got =
        recv(broker->fd, into + broker->received, sizeof broker->partial - broker->received, MSG_DONTWAIT);
    if (got == 0)
        return -EPIPE;
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : errno == ECONNRESET ? -EPIPE : -errno;
    broker->received += (size_t)got;
    if (broker->received == sizeof broker->partial) {
        *answer = broker->partial;
        broker->received = 0;
    }
    return 0;
}

/* Calls `stage` when a stage begins, and about once per second during it. */
struct broker_progress {
    void (*stage)(void *context, const char *stage);
    void *context;
    char name[16];
    double last;
};

static void
broker_report_stage(struct broker_progress *progress, const struct broker_answer *answer)
{
    const double now = clock_seconds();
    if (answer->event == BROKER_STAGE)
        memcpy(progress->name, answer->stage, sizeof progress->name);
    if (!progress->stage || !progress->name[0] ||
        (answer->event != BROKER_STAGE && now - progress->last < STAGE_SECOND))
        return;
    progress->last = now;
    progress->stage(progress->context, progress->name);
}

int
broker_run(struct broker *broker, const struct program_order *order, const atomic_bool *stop,
           void (*stage)(void *context, const char *stage), void *context, struct program_outcome *outcome)
{
    struct broker_progress progress = {.stage = stage, .context = context};
    struct broker_answer answer = {.event = BROKER_NONE};
    bool stopping = false;
    char *text = program_order_to_text(order);
    int rc = text ? broker_send(broker, BROKER_ORDER, order->run, text) : -ENOMEM;
    free(text);
    while (rc == 0 && !(answer.event == BROKER_ENDED && answer.run == order->run)) {
        struct pollfd ready = {.fd = broker->fd, .events = POLLIN};
        if (stop && atomic_load(stop) && !stopping) {
            rc = broker_send(broker, BROKER_STOP, order->run, "");
            stopping = true;
        }
        answer.event = BROKER_NONE;
        if (rc == 0 && poll(&ready, 1, POLL_MS) > 0)
            rc = broker_receive(broker, &answer);
        broker_report_stage(&progress, &answer);
    }
    if (rc == 0)
        *outcome = answer.outcome;
    return rc;
}

void
broker_close(struct broker *broker)
{
    if (!broker)
        return;
    close(broker->fd); /* the broker ends all processes below it, and exits */
    while (waitpid(broker->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    free(broker);
}
