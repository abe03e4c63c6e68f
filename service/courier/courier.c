/*
 * courier.c - the role that delivers: DELIVER comes in over fd 3, and what came of it goes
 * back, as do reports of storage commitment.
 *
 * One libuv loop in the main thread owns the channel and a sender for each destination in use
 * (sender.h), whose threads hand it complete frames. After a RELOAD new senders are made, with the
 * new destinations and certificates, while the old ones finish what they are at. A delivery that
 * the pipe's end leaves unanswered is made again by the next courier.
 */
#include "service/common/messages.h"
#include "service/common/role.h"

#include "config/config.h"
#include "service/common/channel.h"
#include "service/common/log.h"
#include "service/courier/sender.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALIVE_MS 5000

/* A configuration and the certificates it names; as long as a sender uses them, and as the newest.
 */
struct settings {
    struct conf *conf;
    struct dicom_tls *tls;
    int users;
};

/* A sender in the courier's list. One of older settings has been told to stop. */
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
    uv_loop_t loop;
    uv_timer_t alive;
    uv_async_t news; /* letters, or the end of a sender */
    struct channel *channel;
    struct settings *settings;
    struct post *posts;
    pthread_mutex_t mutex;
    struct letter *first, **last; /* guarded by the mutex, as is out_of_memory */
    bool out_of_memory;
    bool draining;
    bool hung_up; /* the daemon is gone: nobody waits for anything */
    bool failed;  /* the daemon broke the rules, or its pipe did */
};

/* -------------------------------------------------------------------------- the settings ---- */

static void
settings_release(struct settings *settings)
{
    if (!settings || --settings->users > 0)
        return;
    dicom_tls_close(settings->tls);
    conf_free(settings->conf);
    free(settings);
}

static bool
needs_tls(const struct conf *conf)
{
    for (size_t i = 0; i < conf->destination_count; i++) {
        if (conf->destinations[i].tls)
            return true;
    }
    return false;
}

/* Certificates that cannot be used cost the destinations with TLS, and no others. */
static void
open_tls(struct settings *settings)
{
    const struct conf_tls *tls = &settings->conf->dicom.tls;
    const struct dicom_tls_settings wanted = {
        .certificate = tls->certificate, .key = tls->key, .ca = tls->ca};
    struct error error;
    if (needs_tls(settings->conf) && dicom_tls_open(&wanted, false, &settings->tls, &error) != 0)
        log_error("courier.tls", LOG_STR("code", code_name(error.code)),
                  LOG_STR("sentence", error.message));
}

static int
settings_load(const char *file, struct settings **out)
{
    char reason[CONF_REASON];
    struct settings *settings = calloc(1, sizeof *settings);
    if (!settings)
        return -ENOMEM;
    int error = conf_load(file, &settings->conf, reason, sizeof reason);
    if (error) {
        log_error("courier.config", LOG_STR("error", reason));
        free(settings);
        return error;
    }
    settings->users = 1;
    open_tls(settings);
    log_set_level(settings->conf->log_level);
    *out = settings;
    return 0;
}

/* ------------------------------------------------------------------------------- telling ---- */

static void
break_off(struct courier *courier, const char *why)
{
    log_error("courier.protocol", LOG_STR("why", why));
    courier->failed = true;
    uv_stop(&courier->loop);
}

/* A frame that cannot be sent leaves the daemon waiting for ever: rather die and be restarted. */
static void
send_frame(struct courier *courier, struct proto_writer *writer)
{
    int error = channel_send(courier->channel, writer);
    if (error)
        break_off(courier, strerror(-error));
}

/* From a sender's thread. */
static void
on_letter(void *context, struct proto_writer *frame)
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

/* From a sender's thread. */
static void
on_ended(void *context)
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
    if (courier->out_of_memory)
        courier->failed = true;
    pthread_mutex_unlock(&courier->mutex);
    return letters;
}

static void
free_post(struct post *post)
{
    sender_close(post->sender);
    settings_release(post->settings);
    free(post);
}

/* Lets go of the senders that have ended. */
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
on_news(uv_async_t *news)
{
    struct courier *courier = news->data;
    sweep_posts(courier); /* first: what an ended sender said is among the letters then */
    for (struct letter *letter = take_letters(courier), *next; letter; letter = next) {
        next = letter->next;
        send_frame(courier, &letter->frame);
        free(letter);
    }
    if (courier->failed || (courier->draining && !courier->posts))
        uv_stop(&courier->loop);
}

static void
on_alive(uv_timer_t *timer)
{
    struct courier *courier = timer->data;
    struct proto_writer writer;
    proto_start(&writer, PROTO_ALIVE);
    send_frame(courier, &writer);
}

/* ------------------------------------------------------------------------------- hearing ---- */

static struct post *
find_post(struct courier *courier, const struct conf_destination *destination)
{
    for (struct post *post = courier->posts; post; post = post->next) {
        if (post->destination == destination)
            return post;
    }
    return NULL;
}

/* The sender of a destination of the settings in force, made when it is not there yet. */
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
        .events = {.frame = on_letter, .ended = on_ended, .context = courier}};
    int error = sender_open(&options, &post->sender);
    if (error) {
        free(post);
        return error;
    }
    post->destination = destination;
    post->settings = courier->settings;
    post->settings->users++;
    post->next = courier->posts;
    courier->posts = post;
    *out = post->sender;
    return 0;
}

/* A destination that a RELOAD took away, or a courier that is ending. */
static void
return_delivery(struct courier *courier, int64_t delivery)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_DELIVERED);
    proto_put_i64(&writer, delivery);
    proto_put_i64(&writer, PROTO_DELIVERY_RETURNED);
    proto_put_i64(&writer, -1);
    proto_put_str(&writer, "RETURNED");
    proto_put_str(&writer, "It was not tried: the destination is gone, or the courier is ending.");
    proto_put_i64(&writer, PROTO_COMMITMENT_NONE);
    proto_put_str(&writer, "");
    send_frame(courier, &writer);
}

/* It becomes a file name, and part of a request. */
static bool
is_uid(const char *text)
{
    const size_t length = strlen(text);
    return length > 0 && length < DICOM_UID_SIZE && strspn(text, "0123456789.") == length;
}

static void
on_deliver(struct courier *courier, struct proto_reader *reader)
{
    int64_t delivery = proto_get_i64(reader);
    const char *name = proto_get_str(reader);
    const char *file = proto_get_str(reader);
    const char *sop_class = proto_get_str(reader);
    const char *sop_instance = proto_get_str(reader);
    struct sender *sender;
    if (proto_end(reader) != 0 || *file != '/' || !is_uid(sop_class) || !is_uid(sop_instance)) {
        break_off(courier, "a DELIVER that is none");
        return;
    }
    const struct conf_destination *destination =
        conf_find_destination(courier->settings->conf, name);
    if (!destination || courier->draining)
        return_delivery(courier, delivery);
    else if (open_post(courier, destination, &sender) != 0 ||
             sender_deliver(sender, delivery, file, sop_class, sop_instance) != 0)
        break_off(courier, "no memory or thread for a delivery");
}

static void
stop_posts(struct courier *courier)
{
    for (struct post *post = courier->posts; post; post = post->next)
        sender_stop(post->sender);
}

static void
on_reload(struct courier *courier, struct proto_reader *reader)
{
    const char *file = proto_get_str(reader);
    struct settings *settings;
    if (proto_end(reader) != 0) {
        break_off(courier, "a RELOAD that is none");
        return;
    }
    if (settings_load(file, &settings) != 0)
        return;
    stop_posts(courier);
    settings_release(courier->settings);
    courier->settings = settings;
}

static void
on_drain(struct courier *courier, struct proto_reader *reader)
{
    if (proto_end(reader) != 0) {
        break_off(courier, "a DRAIN that is none");
        return;
    }
    courier->draining = true;
    stop_posts(courier);
    if (!courier->posts)
        uv_stop(&courier->loop);
}

static void
on_frame(void *context, struct channel *channel, struct proto_reader *reader)
{
    struct courier *courier = context;
    (void)channel;
    if (reader->type == PROTO_DELIVER)
        on_deliver(courier, reader);
    else if (reader->type == PROTO_RELOAD)
        on_reload(courier, reader);
    else if (reader->type == PROTO_DRAIN)
        on_drain(courier, reader);
    else
        break_off(courier, message_name(reader->type));
}

static void
on_end(void *context, struct channel *channel, int status)
{
    struct courier *courier = context;
    (void)channel;
    courier->hung_up = true;
    if (status != 0)
        break_off(courier, strerror(-status));
    uv_stop(&courier->loop);
}

/* -------------------------------------------------------------------------------- a life ---- */

static void
say_hello(struct courier *courier)
{
    struct proto_writer writer;
    proto_start(&writer, PROTO_HELLO);
    proto_put_str(&writer, "courier");
    proto_put_str(&writer, proto_build_id());
    send_frame(courier, &writer);
}

/*
 * Senders may be in the middle of an association with a peer that takes its time. They are waited
 * for when the daemon asked for that (DRAIN); without it nobody hears what they would have to say.
 */
static void
serve(struct courier *courier)
{
    say_hello(courier);
    uv_timer_start(&courier->alive, on_alive, ALIVE_MS, ALIVE_MS);
    uv_run(&courier->loop, UV_RUN_DEFAULT);
    if (courier->hung_up || courier->failed)
        _exit(courier->failed ? EXIT_FAILURE : EXIT_SUCCESS);
    channel_close(courier->channel);
}

static int
run_courier(struct courier *courier)
{
    const struct channel_events events = {.frame = on_frame, .end = on_end, .context = courier};
    int error = uv_loop_init(&courier->loop);
    if (error)
        return error;
    uv_timer_init(&courier->loop, &courier->alive);
    courier->alive.data = courier->news.data = courier;
    error = uv_async_init(&courier->loop, &courier->news, on_news);
    if (error == 0) {
        error = channel_open(&courier->loop, ROLE_FD, &events, &courier->channel);
        if (error == 0)
            serve(courier);
        uv_close((uv_handle_t *)&courier->news, NULL);
    }
    uv_close((uv_handle_t *)&courier->alive, NULL);
    uv_run(&courier->loop, UV_RUN_DEFAULT);
    uv_loop_close(&courier->loop);
    return error;
}

int
courier_main(const struct role_args *args)
{
    struct courier courier = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    courier.last = &courier.first;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an errno, not a death */
    dicom_init();
    if (settings_load(args->config_file, &courier.settings) != 0)
        return EXIT_FAILURE;
    int error = run_courier(&courier);
    settings_release(courier.settings);
    if (error)
        log_error("courier.start", LOG_STR("error", strerror(-error)));
    return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
