/* receiver_inboxes.c - the configured inboxes and their reload. */
#include "service/receiver/receiver_private.h"

#include "service/common/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inbox *
receiver_find_inbox(const struct receiver *receiver, const char *path)
{
    for (size_t i = 0; i < receiver->inbox_count; i++) {
        if (strcmp(inbox_conf(receiver->inboxes[i])->path, path) == 0)
            return receiver->inboxes[i];
    }
    return NULL;
}

/* Returns inbox i of the configuration. After the last one comes the inbox of released files. */
static const struct conf_inbox *
nth_inbox(const struct receiver *receiver, const struct conf *conf, size_t i)
{
    return i < conf->inbox_count ? &conf->inboxes[i] : &receiver->released;
}

int
receiver_apply_inboxes(struct receiver *receiver, const struct conf *conf)
{
    struct inbox **inboxes = calloc(conf->inbox_count + 1, sizeof(struct inbox *));
    if (!inboxes)
        return -ENOMEM;
    if (!receiver->released.path) { /* files that `noctule quarantine release` receives again */
        receiver->released = (struct conf_inbox){.after = CONF_DELETE, .sweep_seconds = 10};
        if (asprintf(&receiver->released.path, "%s/" LAYOUT_RELEASED, conf->root) < 0) {
            receiver->released.path = NULL;
            free(inboxes);
            return -ENOMEM;
        }
    }
    size_t count = 0;
    int error = 0;
    for (size_t i = 0; i <= conf->inbox_count; i++) {
        const struct conf_inbox *wanted = nth_inbox(receiver, conf, i);
        struct inbox **inbox = &inboxes[count];
        *inbox = receiver_find_inbox(receiver, wanted->path);
        int failed = 0;
        if (*inbox) {
            failed = inbox_configure(*inbox, wanted);
        } else {
            failed = inbox_open(&receiver->loop, wanted, receiver->conf->root, &receiver_inbox_events, receiver, inbox);
            if (!failed && receiver->known)
                inbox_begin(*inbox);
        }
        count += *inbox != NULL;
        error = failed ? failed : error;
    }
    for (size_t i = 0; i < receiver->inbox_count; i++) {
        struct inbox *inbox = receiver->inboxes[i];
        bool is_configured = false;
        for (size_t c = 0; c <= conf->inbox_count && !is_configured; c++)
            is_configured = strcmp(nth_inbox(receiver, conf, c)->path, inbox_conf(inbox)->path) == 0;
        if (is_configured)
            continue;
        inbox_close(inbox);
        receiver_forget_ready(receiver, inbox);
    }
    free(receiver->inboxes);
    receiver->inboxes = inboxes;
    receiver->inbox_count = count;
    return error;
}

int
receiver_reload(void *context, struct conf *conf, struct error *error)
{
    struct receiver *receiver = context;
    struct settings *settings;
    if (strcmp(conf->root, receiver->conf->root) != 0) {
        conf_free(conf);
        return error_set(error, -EINVAL, CODE_NONE, "the root can change only with a restart");
    }
    int rc = settings_open_all(conf, true, &settings, error);
    if (rc)
        return rc;
    rc = receiver_apply_inboxes(receiver, conf);
    settings_drop(receiver->settings);
    receiver->settings = settings;
    receiver->conf = conf;
    store_want_digests(receiver->store, conf_uses_slurm(conf));
    receiver->reported_any = false; /* the daemon waits for the result */
    if (receiver->listening)
        listener_configure(receiver->listener, settings);
    child_check_places(&receiver->child, conf);
    return rc ? error_set_system(error, rc, "open the inboxes") : 0;
}
