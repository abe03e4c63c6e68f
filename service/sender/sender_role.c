/*
 * sender_role.c - the role that connects to destinations and archives: DELIVER, FIND and MOVE
 * arrive over fd 3 (pull_archive.h), and their outcomes and reports of storage commitment are sent
 * back.
 *
 * One libuv loop in the main thread owns the channel and one sender per destination in use
 * (sender.h). The senders' threads pass it complete frames. After RELOAD new senders are created
 * with the new destinations and certificates, while the old ones finish their current delivery. The
 * next process repeats a delivery that was unanswered when the pipe ended.
 */
#include "service/common/role.h"

#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/log.h"
#include "service/common/settings.h"
#include "service/common/wire/child.h"
#include "service/sender/pull_archive.h"
#include "service/sender/sender.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A sender in the list. A sender of older settings has been stopped. */
struct post {
    struct post *next;
    struct settings *settings;
    const struct conf_destination *destination;
    struct sender *sender;
};

struct letter {
    struct letter *next;
    struct proto_writer frame;
};

struct courier {
    struct child child;
    uv_loop_t loop;
    uv_async_t news; /* frames were queued, or a sender ended */
    struct settings *settings;
    struct post *posts;
    struct puller puller;
    pthread_mutex_t mutex;
    struct letter *first, **last; /* guarded by the mutex, as is out_of_memory */
    bool out_of_memory;
};

/* -------------------------------------------------------------------------- the settings ---- */

/* Opens the settings. Unusable certificates affect only destinations with TLS. */
static int
courier_open_settings(struct conf *conf, struct settings **settings)
{
    struct error error;
    const int rc = settings_open(conf, false, settings, &error);
    if (rc == 0 && error.code != CODE_NONE)
        log_error("courier.tls", LOG_STR("code", code_name(error.code)),
                  LOG_STR("message", error.message));
    return rc;
}

/* ------------------------------------------------------------------------------- sending ---- */

/* Called in a sender's thread. */
static void
courier_on_letter(void *context, struct proto_writer *frame)
{
    struct courier *courier = context;
    struct letter *letter = calloc(1, sizeof *letter);
    pthread_mutex_lock(&courier->mutex);
    if (letter) {
        letter->frame = *frame;
        *courier->last = letter;
        courier->last = &letter->next;
    } else {
        courier->out_of_memory = true;
    }
    pthread_mutex_unlock(&courier->mutex);
    if (!letter)
        proto_release(frame);
    uv_async_send(&courier->news);
}

/* Called in a sender's thread. */
static void
courier_on_ended(void *context)
{
    struct courier *courier = context;
    uv_async_send(&courier->news);
}

static struct letter *
take_letters(struct courier *courier)
{
    pthread_mutex_lock(&courier->mutex);
    struct letter *letters = courier->first;
    courier->first = NULL;
    courier->last = &courier->first;
    const bool out_of_memory = courier->out_of_memory;
    pthread_mutex_unlock(&courier->mutex);
    if (out_of_memory)
        child_fail(&courier->child, "no memory for a frame");
    return letters;
}

static void
free_post(struct post *post)
{
    sender_close(post->sender);
    settings_drop(post->settings);
    free(post);
}

/* Frees the senders that have ended. */
static void
sweep_posts(struct courier *courier)
{
    for (struct post **place = &courier->posts; *place;) {
        struct post *post = *place;
        if (sender_has_ended(post->sender)) {
            *place = post->next;
            free_post(post);
        } else {
            place = &post->next;
        }
    }
}

static void
courier_end_if_idle(void *context)
{
    struct courier *courier = context;
    if (courier->child.draining && !courier->posts && !courier->puller.tasks)
        uv_stop(&courier->loop);
}

static void
courier_on_news(uv_async_t *news)
{
    struct courier *courier = news->data;
    sweep_posts(courier); /* first, so that the last frames of an ended sender are taken next */
    struct letter *letters = take_letters(courier);
    if (letters) /* a folder, or the resolver's files, may have changed */
        child_check_places(&courier->child, courier->settings->conf);
    for (struct letter *letter = letters, *next; letter; letter = next) {
        next = letter->next;
        child_send(&courier->child, &letter->frame);
        free(letter);
    }
    courier_end_if_idle(courier);
}

/* ------------------------------------------------------------------------------ messages ---- */

static struct post *
find_post(struct courier *courier, const struct conf_destination *destination)
{
    for (struct post *post = courier->posts; post; post = post->next) {
        if (post->destination == destination)
            return post;
    }
    return NULL;
}

/* Returns the sender of a destination of the settings in force, created if necessary. */
static int
open_post(struct courier *courier, const struct conf_destination *destination, struct sender **out)
{
    struct post *post = find_post(courier, destination);
    if (post) {
        *out = post->sender;
        return 0;
    }
    post = calloc(1, sizeof *post);
    if (!post)
        return -ENOMEM;
    const struct sender_options options = {
        .destination = destination,
        .dicom = &courier->settings->conf->dicom,
        .tls = courier->settings->tls,
        .events = {.frame = courier_on_letter, .ended = courier_on_ended, .context = courier}};
    int error = sender_open(&options, &post->sender);
    if (error) {
        free(post);
        return error;
    }
    post->destination = destination;
    post->settings = settings_keep(courier->settings);
    post->next = courier->posts;
    courier->posts = post;
    *out = post->sender;
    return 0;
}

/* Returns a delivery untried: RELOAD removed its destination, or the process is ending. */
static void
courier_return_delivery(struct courier *courier, int64_t delivery)
{
    struct proto_writer writer;
    const struct message_delivered message = {
        .delivery = delivery,
        .outcome = PROTO_DELIVERY_RETURNED,
        .dimse_status = -1,
        .code = CODE_RETURNED,
        .message = "It was not tried: the destination is gone, or the courier is ending.",
        .commitment = PROTO_COMMITMENT_NONE,
    };
    message_write_delivered(&writer, &message);
    child_send(&courier->child, &writer);
}

/* Checks a UID, which becomes a file name and part of a request. */
static bool
courier_is_uid(const char *text)
{
    const size_t length = strlen(text);
    return length > 0 && length < DICOM_UID_SIZE && strspn(text, "0123456789.") == length;
}

static void
handle_deliver(struct courier *courier, struct proto_reader *reader)
{
    struct message_deliver told;
    struct sender *sender;
    if (message_read_deliver(reader, &told) != 0)
        return;
    if (*told.file != '/' || !courier_is_uid(told.sop_class) ||
        !courier_is_uid(told.sop_instance)) {
        reader->error = -EBADMSG;
        return;
    }
    const struct conf_destination *destination =
        conf_find_destination(courier->settings->conf, told.destination);
    if (!destination || courier->child.draining)
        courier_return_delivery(courier, told.delivery);
    else if (open_post(courier, destination, &sender) != 0 ||
             sender_deliver(sender, told.delivery, told.file, told.sop_class, told.sop_instance) !=
                 0)
        child_fail(&courier->child, "no memory or thread for a delivery");
}

static void
courier_on_message(void *context, struct proto_reader *reader)
{
    struct courier *courier = context;
    switch (reader->type) {
    case PROTO_DELIVER:
        handle_deliver(courier, reader);
        break;
    case PROTO_FIND:
    case PROTO_MOVE:
    case PROTO_STOP_PULL:
        puller_handle(&courier->puller, courier->settings, reader);
        break;
    default:
        reader->error = -EBADMSG;
    }
}

static void
stop_posts(struct courier *courier)
{
    for (struct post *post = courier->posts; post; post = post->next)
        sender_stop(post->sender);
}

static int
courier_on_reload(void *context, struct conf *conf, struct error *error)
{
    struct courier *courier = context;
    struct settings *settings;
    int rc = settings_open_all(conf, false, &settings, error);
    if (rc)
        return rc;
    stop_posts(courier);
    settings_drop(courier->settings);
    courier->settings = settings;
    child_check_places(&courier->child, settings->conf);
    return 0;
}

static void
courier_on_drain(void *context)
{
    struct courier *courier = context;
    stop_posts(courier);
    puller_stop(&courier->puller);
    courier_end_if_idle(courier);
}

static const struct child_role courier_role = {.name = "courier",
                                               .confined = CONFINE_COURIER,
                                               .message = courier_on_message,
                                               .reload = courier_on_reload,
                                               .drain = courier_on_drain};

/* ---------------------------------------------------------------------------- the process ---- */

/*
 * Serves until the daemon ends it. After DRAIN it waits for senders that are in an association with
 * a slow peer. After a hang-up it exits at once, since their outcomes cannot be sent.
 */
static void
courier_serve(struct courier *courier)
{
    const struct child *child = &courier->child;
    uv_run(&courier->loop, UV_RUN_DEFAULT);
    if (child->hung_up || child->failed)
        _exit(child_status(child));
    child_close(&courier->child);
}

static int
run_courier(struct courier *courier)
{
    int error = uv_loop_init(&courier->loop);
    if (error)
        return error;
    courier->news.data = courier;
    error = uv_async_init(&courier->loop, &courier->news, courier_on_news);
    if (error == 0) {
        error = call_filter_install(CONFINE_COURIER);
        if (error == 0)
            error = child_open(&courier->child, &courier->loop, &courier_role, courier);
        if (error == 0)
            courier_serve(courier);
        uv_close((uv_handle_t *)&courier->news, NULL);
    }
    uv_run(&courier->loop, UV_RUN_DEFAULT);
    uv_loop_close(&courier->loop);
    return error;
}

static int
courier_load_settings(struct courier *courier, const char *config_file)
{
    struct error error;
    struct conf *conf;
    int rc = conf_load(config_file, &conf, &error);
    if (rc) {
        log_error("courier.config", LOG_STR("error", error.message));
        return rc;
    }
    log_set_level(conf->log_level);
    return courier_open_settings(conf, &courier->settings);
}

int
courier_main(const struct role_args *args)
{
    struct courier courier = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    courier.last = &courier.first;
    courier.puller = (struct puller){&courier.child, NULL, courier_end_if_idle, &courier};
    dicom_init();
    int error = courier_load_settings(&courier, args->config_file);
    if (error)
        return child_start_status(error);
    error = confine_self(CONFINE_COURIER, courier.settings->conf);
    if (!error)
        error = run_courier(&courier);
    settings_drop(courier.settings);
    if (error)
        log_error("courier.start", LOG_STR("error", strerror(-error)));
    return child_start_status(error);
}
