/*
 * child_pool.c - see child_pool.h.
 *
 *     EMPTY --start--> STARTING --HELLO--> READY --DRAIN--> LEAVING
 *       ^                  |                 |                |
 *       |                  +---- TERM, exit or end of pipe ---+
 *       |                                    v
 *       +------ exit and end of pipe ----- DYING
 *
 * Each state has one deadline, and each slot one timer for it:
 *
 *     EMPTY     the next start (none while draining, or if the slot must stay empty)
 *     STARTING  HELLO; then SIGTERM, as in the next two
 *     READY     the next frame, in two steps, because after a pause of the machine frames wait in the pipe
 *     LEAVING   the next frame, in two steps
 *     DYING     the exit; then SIGKILL
 *
 * An exit or the end of the pipe leads to DYING from every state. A child is reaped when it has exited and its pipe was
 * read to the end, whichever comes last. Frames that it sent before a crash are therefore processed.
 */
#include "service/daemon/child_pool.h"

#include "service/common/clock.h"
#include "service/common/handle.h"
#include "service/common/log.h"
#include "service/common/role.h"
#include "service/common/wire/channel.h"
#include "service/common/wire/handed.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BACKLOG (16u << 20)
#define POOL_DEVICE 64

enum slot_state { SLOT_EMPTY, SLOT_STARTING, SLOT_READY, SLOT_LEAVING, SLOT_DYING };

struct slot {
    struct pool *pool;
    int index;
    char role[16];
    int number;
    char device[POOL_DEVICE]; /* "": no device */
    int share;
    bool hands;  /* its children hand over descriptors */
    int handed;  /* the end at which they arrive; -1: none */
    bool wanted; /* whether the slot is refilled after its child's end */
    enum slot_state state;
    /* allocated apart: its handle closes while the next child already runs */
    uv_process_t *process;
    struct channel *channel;
    uv_timer_t timer;
    bool exited;
    bool term_sent;
    bool distrusted; /* it broke the protocol: its frames are ignored */
    bool outdated;   /* the configuration changed after its start */
    bool late;       /* three quarters of its silence limit have passed */
    uint64_t ready_at;
    int early_deaths; /* in a row */
    struct pool_gone gone;
    uint64_t last_frame_at; /* time of its last frame, or of its start */
    int deaths;             /* unordered deaths, each soon after the one before */
    uint64_t died_at;       /* time of the last of them */
    int64_t dying_since_ms; /* Unix time of the first of them */
    char last_cause[96];    /* cause of its last death */
};

struct pool {
    uv_loop_t *loop;
    char *program, *config_file;
    const char *config; /* the text in RELOAD */
    struct pool_timing timing;
    struct pool_events events;
    struct slot **slots; /* allocated one by one: handles must not move */
    int count;
    bool draining;
};

const struct pool_timing pool_default_timing = {
    .hello = 30000, /* opening a sleeping GPU takes seconds */
    .silence = 60000,
    .term = 2000,
    .young = 10000,
    .calm = 600000,
    .first_wait = 250,
    .longest_wait = 30000,
};

static void slot_start(struct slot *slot);
static void slot_dismiss(struct slot *slot, const char *why);

uint64_t
pool_wait(const struct pool_timing *timing, bool was_ready, int deaths)
{
    /* A child that had sent HELLO gets two immediate restarts: most likely its job caused the crash. */
    int doublings = was_ready ? deaths - 3 : deaths - 1;
    if (doublings < 0)
        return 0;
    if (doublings > 30 || timing->first_wait << doublings > timing->longest_wait)
        return timing->longest_wait;
    return timing->first_wait << doublings;
}

static void
slot_close_handed(struct slot *slot)
{
    if (slot->handed >= 0)
        close(slot->handed);
    slot->handed = -1;
}

/* ---------------------------------------------------------------------------- deadlines ---- */

static uint64_t
slot_now(const struct slot *slot)
{
    return uv_now(slot->pool->loop);
}

static void slot_on_deadline(uv_timer_t *timer);

static void
slot_set_deadline(struct slot *slot, uint64_t millis)
{
    uv_timer_start(&slot->timer, slot_on_deadline, millis, 0);
}

static void
slot_end_child(struct slot *slot, const char *why)
{
    if (slot->state == SLOT_EMPTY || slot->term_sent || slot->exited)
        return;
    log_warn("child.kill", LOG_STR("child", slot->role), LOG_INT("number", slot->number),
             LOG_INT("pid", slot->process->pid), LOG_STR("why", why));
    slot->gone.why = why;
    slot->state = SLOT_DYING;
    slot->term_sent = true;
    uv_process_kill(slot->process, SIGTERM);
    slot_set_deadline(slot, slot->pool->timing.term);
}

static void
slot_distrust(struct slot *slot, const char *why)
{
    slot->distrusted = true;
    slot_end_child(slot, why);
}

static void
slot_on_deadline(uv_timer_t *timer)
{
    struct slot *slot = timer->data;
    switch (slot->state) {
    case SLOT_EMPTY:
        slot_start(slot);
        break;
    case SLOT_STARTING:
        slot_distrust(slot, "no HELLO in time");
        break;
    case SLOT_READY:
    case SLOT_LEAVING:
        /* libuv runs timers before it reads, so the second step begins after the waiting frames were read. */
        if (slot->late)
            slot_end_child(slot, "it gave no sign of life");
        else
            slot_set_deadline(slot, slot->pool->timing.silence / 4);
        slot->late = true;
        break;
    case SLOT_DYING:
        if (!slot->exited)
            uv_process_kill(slot->process, SIGKILL);
        break;
    }
}

/* -------------------------------------------------------------------------- life, death ---- */

static void
slot_note_death(struct slot *slot, const char *how)
{
    const uint64_t now = slot_now(slot);
    if (slot->deaths == 0 || now - slot->died_at > slot->pool->timing.calm) {
        slot->deaths = 0;
        slot->dying_since_ms = clock_unix_ms();
    }
    slot->deaths++;
    slot->died_at = now;
    snprintf(slot->last_cause, sizeof slot->last_cause, "%s", how);
}

static void
slot_reap_if_over(struct slot *slot)
{
    if (!slot->exited || slot->channel)
        return;
    struct pool *pool = slot->pool;
    const struct pool_gone gone = slot->gone;
    const bool early = !gone.was_ready || slot_now(slot) - slot->ready_at < pool->timing.young;
    slot->early_deaths = early && !gone.ordered ? slot->early_deaths + 1 : 0;
    const uint64_t wait = pool_wait(&pool->timing, gone.was_ready, slot->early_deaths);
    const bool refilled = slot->wanted && !pool->draining;
    log_write(gone.ordered ? LOG_INFO : LOG_WARN, "child.gone",
              LOG_FIELDS(LOG_STR("child", slot->role), LOG_INT("number", slot->number),
                         LOG_INT("pid", slot->process->pid), LOG_INT("status", gone.exit_status),
                         LOG_INT("signal", gone.signal), LOG_STR("why", gone.why),
                         LOG_INT("restart_ms", refilled ? (int64_t)wait : -1)));
    uv_close((uv_handle_t *)slot->process, handle_free);
    slot->process = NULL;
    slot_close_handed(slot);
    slot->state = SLOT_EMPTY;
    char how[96];
    if (*gone.why)
        snprintf(how, sizeof how, "it was ended: %s", gone.why);
    else if (gone.signal)
        snprintf(how, sizeof how, "by signal %d, %s", gone.signal, strsignal(gone.signal));
    else
        snprintf(how, sizeof how, "with exit status %d", (int)gone.exit_status);
    if (!gone.ordered)
        slot_note_death(slot, how);
    pool->events.gone(pool->events.context, slot->index, &gone);
    if (slot->wanted && !pool->draining)
        slot_set_deadline(slot, wait);
}

static void
slot_on_exit(uv_process_t *process, int64_t exit_status, int term_signal)
{
    struct slot *slot = process->data;
    slot->exited = true;
    slot->gone.exit_status = exit_status;
    slot->gone.signal = term_signal;
    /* A child that was ordered to end before its HELLO was ended by a signal. */
    bool as_ordered = !slot->gone.was_ready || (!exit_status && !term_signal);
    slot->gone.ordered = slot->gone.ordered && as_ordered;
    slot->state = SLOT_DYING;
    uv_timer_stop(&slot->timer);
    slot_reap_if_over(slot);
}

static void
slot_on_end(void *context, struct channel *channel, int status)
{
    struct slot *slot = context;
    channel_close(channel);
    slot->channel = NULL;
    if (status < 0 && status != -ECONNRESET) {
        slot_distrust(slot, "its frames are broken");
    } else if (!slot->exited && !slot->term_sent) {
        /* The child is most likely exiting. It gets the same time as after SIGTERM. */
        slot->state = SLOT_DYING;
        slot_set_deadline(slot, slot->pool->timing.term);
    }
    slot_reap_if_over(slot);
}

/* ------------------------------------------------------------------------------- frames ---- */

static void
slot_handle_hello(struct slot *slot, struct proto_reader *reader)
{
    struct message_hello hello;
    if (message_read_hello(reader, &hello) || strcmp(hello.role, slot->role) != 0) {
        slot_distrust(slot, "it did not begin with HELLO");
        return;
    }
    if (strcmp(hello.build_id, proto_build_id()) != 0) {
        slot_distrust(slot, "it is of another build");
        return;
    }
    slot->state = SLOT_READY;
    slot->ready_at = slot_now(slot);
    slot->gone.was_ready = true;
    slot->late = false;
    slot_set_deadline(slot, slot->pool->timing.silence * 3 / 4);
    log_info("child.ready", LOG_STR("child", slot->role), LOG_INT("number", slot->number),
             LOG_INT("pid", slot->process->pid));
    if (slot->outdated)
        pool_reload(slot->pool, slot->index);
    slot->pool->events.ready(slot->pool->events.context, slot->index);
}

static void
slot_on_frame(void *context, struct channel *channel, struct proto_reader *reader)
{
    (void)channel;
    struct slot *slot = context;
    struct message_renew renew;
    if (slot->distrusted)
        return;
    slot->last_frame_at = slot_now(slot);
    if (slot->state == SLOT_STARTING) {
        slot_handle_hello(slot, reader);
        return;
    }
    if (slot->state == SLOT_READY || slot->state == SLOT_LEAVING) {
        slot->late = false;
        slot_set_deadline(slot, slot->pool->timing.silence * 3 / 4);
    }
    if (reader->type != PROTO_RENEW) {
        if (slot->gone.was_ready && reader->type != PROTO_ALIVE)
            slot->pool->events.frame(slot->pool->events.context, slot->index, reader);
    } else if (message_read_renew(reader, &renew) == 0 && slot->state == SLOT_READY) {
        log_info("child.renewed", LOG_STR("child", slot->role), LOG_INT("number", slot->number),
                 LOG_INT("pid", slot->process->pid), LOG_STR("why", renew.why));
        slot_dismiss(slot, "a new one is to take its place");
    }
    if (proto_end(reader))
        slot_distrust(slot, "it sent a broken frame");
}

/* ----------------------------------------------------------------------------- starting ---- */

/* Starts the child with `pipe` as this end of its fd 3, and `handed` as its fd 4 unless that is -1. If it fails, the
 * caller still owns the pipe. */
static int
slot_spawn(struct slot *slot, uv_pipe_t *pipe, int handed)
{
    char number[12], share[12];
    snprintf(number, sizeof number, "%d", slot->number);
    snprintf(share, sizeof share, "%d", slot->share);
    char name[] = "noctuled", role[] = "--role", which[] = "--slot", config[] = "--config";
    char device[] = "--device", part[] = "--share";
    char *arguments[] = {name,   role,         slot->role, which, number, config, slot->pool->config_file,
                         device, slot->device, part,       share, NULL};
    if (!*slot->device)
        arguments[7] = NULL;
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = 2},
        {.flags = UV_INHERIT_FD, .data.fd = 2},
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)pipe},
        [ROLE_HANDED_FD] = {.flags = UV_INHERIT_FD, .data.fd = handed},
    };
    const uv_process_options_t options = {
        .exit_cb = slot_on_exit,
        .file = slot->pool->program,
        .args = arguments,
        .stdio = stdio,
        .stdio_count = handed < 0 ? ROLE_HANDED_FD : ROLE_HANDED_FD + 1,
    };
    return uv_spawn(slot->pool->loop, slot->process, &options);
}

static int
slot_try_start(struct slot *slot)
{
    uv_process_t *process = calloc(1, sizeof *process);
    uv_pipe_t *pipe = malloc(sizeof *pipe);
    int ends[2] = {-1, -1};
    int error = process && pipe ? 0 : -ENOMEM;
    if (!error && slot->hands)
        error = handed_open(ends);
    if (!error)
        error = uv_pipe_init(slot->pool->loop, pipe, 0); /* cannot fail */
    if (error) {
        free(process);
        free(pipe);
        return error;
    }
    process->data = slot;
    slot->process = process;
    error = slot_spawn(slot, pipe, ends[1]);
    if (ends[1] >= 0)
        close(ends[1]);
    slot->handed = ends[0];
    if (error) {
        slot_close_handed(slot);
        uv_close((uv_handle_t *)pipe, handle_free);
        uv_close((uv_handle_t *)process, handle_free);
        slot->process = NULL;
        return error;
    }
    slot->state = SLOT_STARTING;
    slot->exited = slot->term_sent = slot->distrusted = slot->outdated = false;
    slot->gone = (struct pool_gone){.why = ""};
    slot->last_frame_at = slot_now(slot);
    slot_set_deadline(slot, slot->pool->timing.hello);
    const struct channel_events events = {slot_on_frame, slot_on_end, slot};
    if (channel_adopt(pipe, &events, &slot->channel))
        slot_end_child(slot, "there was no memory for its pipe");
    return 0;
}

static void
slot_start(struct slot *slot)
{
    int error = slot_try_start(slot);
    if (!error)
        return;
    uint64_t wait = pool_wait(&slot->pool->timing, false, ++slot->early_deaths);
    slot_note_death(slot, strerror(-error));
    log_error("child.start_failed", LOG_STR("child", slot->role), LOG_INT("number", slot->number),
              LOG_STR("reason", strerror(-error)), LOG_INT("restart_ms", wait));
    slot_set_deadline(slot, wait);
}

int
pool_reserve(struct pool *pool, const char *role, int number)
{
    struct slot *slot = calloc(1, sizeof *slot);
    struct slot **grown = realloc(pool->slots, ((size_t)pool->count + 1) * sizeof *grown);
    if (grown)
        pool->slots = grown;
    if (!slot || !grown) {
        free(slot);
        return -ENOMEM;
    }
    *slot = (struct slot){.pool = pool, .index = pool->count, .number = number, .handed = -1};
    snprintf(slot->role, sizeof slot->role, "%s", role);
    uv_timer_init(pool->loop, &slot->timer); /* cannot fail */
    slot->timer.data = slot;
    pool->slots[pool->count++] = slot;
    return slot->index;
}

int
pool_add(struct pool *pool, const char *role, int number)
{
    int index = pool_reserve(pool, role, number);
    if (index < 0)
        return index;
    pool->slots[index]->wanted = true;
    slot_start(pool->slots[index]);
    return index;
}

/* ------------------------------------------------------------------------------- orders ---- */

void
pool_take_handed(struct pool *pool, int slot)
{
    pool->slots[slot]->hands = true;
}

int
pool_handed(const struct pool *pool, int slot)
{
    return pool->slots[slot]->handed;
}

bool
pool_ready(const struct pool *pool, int slot)
{
    return pool->slots[slot]->state == SLOT_READY;
}

int
pool_send(struct pool *pool, int index, struct proto_writer *writer)
{
    struct slot *slot = pool->slots[index];
    if ((slot->state != SLOT_READY && slot->state != SLOT_LEAVING) || !slot->channel) {
        proto_release(writer);
        return -EPIPE;
    }
    int error = channel_send(slot->channel, writer);
    if (channel_backlog(slot->channel) > MAX_BACKLOG)
        slot_end_child(slot, "it does not read its messages");
    return error;
}

int
pool_send_empty(struct pool *pool, int slot, enum proto_type type)
{
    struct proto_writer writer;
    proto_start(&writer, type);
    return pool_send(pool, slot, &writer);
}

void
pool_set_config(struct pool *pool, const char *config_file, const char *config)
{
    char *copy = strdup(config_file);
    pool->config = config;
    if (!copy)
        return;
    free(pool->config_file);
    pool->config_file = copy;
}

void
pool_reload(struct pool *pool, int index)
{
    struct proto_writer writer;
    struct slot *slot = pool->slots[index];
    slot->outdated = slot->state == SLOT_STARTING;
    if (slot->state != SLOT_READY)
        return;
    message_write_reload(&writer, &(struct message_reload){.config = pool->config});
    if (pool_send(pool, index, &writer))
        slot_end_child(slot, "the reload could not be sent to it");
}

void
pool_kill(struct pool *pool, int slot, const char *why)
{
    slot_end_child(pool->slots[slot], why);
}

/* Ends the child without starting another. */
static void
slot_dismiss(struct slot *slot, const char *why)
{
    if (slot->state == SLOT_EMPTY)
        uv_timer_stop(&slot->timer);
    if (slot->state != SLOT_STARTING && slot->state != SLOT_READY)
        return;
    slot->gone.ordered = true;
    if (slot->state == SLOT_STARTING || pool_send_empty(slot->pool, slot->index, PROTO_DRAIN))
        slot_end_child(slot, why);
    else
        slot->state = SLOT_LEAVING;
}

void
pool_fill(struct pool *pool, int index, const struct pool_device *device)
{
    static const struct pool_device none = {.name = ""};
    struct slot *slot = pool->slots[index];
    if (!device)
        device = &none;
    snprintf(slot->device, sizeof slot->device, "%s", device->name);
    slot->share = device->share;
    slot->wanted = true;
    slot->early_deaths = slot->deaths = 0;
    slot_dismiss(slot, "a new one is to take its place");
    if (slot->state == SLOT_EMPTY && !pool->draining)
        slot_set_deadline(slot, 0);
}

void
pool_empty(struct pool *pool, int index)
{
    struct slot *slot = pool->slots[index];
    slot->wanted = false;
    slot_dismiss(slot, "it is not needed any more");
}

void
pool_drain(struct pool *pool)
{
    pool->draining = true;
    for (int i = 0; i < pool->count; i++)
        slot_dismiss(pool->slots[i], "the daemon is stopping");
}

void
pool_kill_all(struct pool *pool, const char *why)
{
    for (int i = 0; i < pool->count; i++)
        slot_end_child(pool->slots[i], why);
}

size_t
pool_living(const struct pool *pool)
{
    size_t living = 0;
    for (int i = 0; i < pool->count; i++)
        living += pool->slots[i]->state != SLOT_EMPTY;
    return living;
}

/* ------------------------------------------------------------------------------- alerts ---- */

/* Returns whether the child has used up a quarter of its silence limit. */
static bool
slot_is_silent(const struct slot *slot)
{
    const struct pool_timing *timing = &slot->pool->timing;
    const uint64_t silence = slot_now(slot) - slot->last_frame_at;
    return slot->state == SLOT_DYING || (slot->state == SLOT_STARTING && silence > timing->hello / 4) ||
           ((slot->state == SLOT_READY || slot->state == SLOT_LEAVING) && silence > timing->silence / 4);
}

bool
pool_works(const struct pool *pool, int index)
{
    const struct slot *slot = pool->slots[index];
    return slot->state == SLOT_READY && !slot_is_silent(slot);
}

/* Fills the alert of a silent child, or of one that keeps dying. */
static void
slot_describe(const struct slot *slot, bool is_silent, struct pool_alert *alert)
{
    const uint64_t silence = slot_now(slot) - slot->last_frame_at;
    const bool restarts = slot->state == SLOT_EMPTY && uv_is_active((const uv_handle_t *)&slot->timer);
    const uint64_t due = restarts ? uv_timer_get_due_in(&slot->timer) : 0;
    if (is_silent) {
        alert->since_ms = clock_unix_ms() - (int64_t)silence;
        if (slot->state == SLOT_DYING) /* it ends by itself unless a reason is set */
            snprintf(alert->text, sizeof alert->text, "%s%s", *slot->gone.why ? "is being stopped: " : "is exiting",
                     slot->gone.why);
        else
            snprintf(alert->text, sizeof alert->text, "%s no message for %" PRIu64 " s",
                     slot->state == SLOT_STARTING ? "is starting:" : "hangs:", silence / 1000);
        return;
    }
    alert->since_ms = slot->dying_since_ms;
    snprintf(alert->text, sizeof alert->text, "died %d %s, the last time %s%s", slot->deaths,
             slot->deaths == 1 ? "time" : "times", slot->last_cause, alert->works ? "; it runs again" : "");
    const size_t length = strlen(alert->text);
    if (due > 0)
        snprintf(alert->text + length, sizeof alert->text - length, "; restarts in %" PRIu64 " s", (due + 999) / 1000);
}

void
pool_each_alert(const struct pool *pool, void (*report)(void *context, const struct pool_alert *alert), void *context)
{
    for (int i = 0; i < pool->count; i++) {
        const struct slot *slot = pool->slots[i];
        const bool is_silent = slot_is_silent(slot) && !slot->gone.ordered;
        const bool dies = slot->deaths > 0 && slot_now(slot) - slot->died_at <= pool->timing.calm;
        struct pool_alert alert = {.role = slot->role, .slot = i, .number = slot->number, .works = pool_works(pool, i)};
        if (!is_silent && !(dies && slot->wanted && (!alert.works || slot->deaths > 1)))
            continue;
        slot_describe(slot, is_silent, &alert);
        report(context, &alert);
    }
}

/* ------------------------------------------------------------------------- open, close ---- */

int
pool_open(uv_loop_t *loop, const struct pool_options *options, struct pool **out)
{
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return -ENOMEM;
    *pool = (struct pool){.loop = loop,
                          .program = strdup(options->program),
                          .config_file = strdup(options->config_file),
                          .timing = options->timing,
                          .events = options->events};
    if (!pool->program || !pool->config_file) {
        pool_close(pool);
        return -ENOMEM;
    }
    *out = pool;
    return 0;
}

void
pool_close(struct pool *pool)
{
    if (!pool)
        return;
    for (int i = 0; i < pool->count; i++)
        uv_close((uv_handle_t *)&pool->slots[i]->timer, handle_free_owner);
    free(pool->slots);
    free(pool->program);
    free(pool->config_file);
    free(pool);
}
