/* receiver_inboxes.c - the configured inboxes and their reload. */
#include "service/receiver/receiver_private.h"

#include "service/common/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inbox *
intake_find_inbox(const struct intake *intake, const char *path)
{
    for (size_t i = 0; i < intake->inbox_count; i++) {
        if (strcmp(inbox_path(intake->inboxes[i]), path) == 0)
            return intake->inboxes[i];
    }
    return NULL;
}

/* Returns inbox i of the configuration. After the last one comes the inbox of released files. */
static const struct conf_inbox *
nth_inbox(const struct intake *intake, const struct conf *conf, size_t i)
{
    return i < conf->inbox_count ? &conf->inboxes[i] : &intake->released;
}

static bool
is_configured(const struct intake *intake, const struct conf *conf, const char *path)
{
    for (size_t i = 0; i <= conf->inbox_count; i++) {
        if (strcmp(nth_inbox(intake, conf, i)->path, path) == 0)
            return true;
    }
    return false;
}

/* Sets the inbox of files that `noctule quarantine release` receives again. */
static int
set_released(struct intake *intake, const struct conf *conf)
{
    if (intake->released.path)
        return 0;
    intake->released = (struct conf_inbox){.after = CONF_DELETE, .sweep_seconds = 10};
    return asprintf(&intake->released.path, "%s/" LAYOUT_RELEASED, conf->root) < 0 ? -ENOMEM : 0;
}

static void
close_inbox(struct intake *intake, struct inbox *inbox)
{
    inbox_close(inbox);
    intake_forget_ready(intake, inbox);
}

static int
open_or_configure(struct intake *intake, const struct conf_inbox *conf, struct inbox **inbox)
{
    *inbox = intake_find_inbox(intake, conf->path);
    if (*inbox)
        return inbox_configure(*inbox, conf);
    const int error =
        inbox_open(&intake->loop, conf, intake->conf->root, &intake_inbox_events, intake, inbox);
    if (!error && intake->known)
        inbox_begin(*inbox);
    return error;
}

int
intake_apply_inboxes(struct intake *intake, const struct conf *conf)
{
    struct inbox **inboxes = calloc(conf->inbox_count + 1, sizeof(struct inbox *));
    if (!inboxes || set_released(intake, conf)) {
        free(inboxes);
        return -ENOMEM;
    }
    size_t count = 0;
    int error = 0;
    for (size_t i = 0; i <= conf->inbox_count; i++) {
        int failed = open_or_configure(intake, nth_inbox(intake, conf, i), &inboxes[count]);
        if (inboxes[count])
            count++;
        error = failed ? failed : error;
    }
    for (size_t i = 0; i < intake->inbox_count; i++) {
        if (!is_configured(intake, conf, inbox_path(intake->inboxes[i])))
            close_inbox(intake, intake->inboxes[i]);
    }
    free(intake->inboxes);
    intake->inboxes = inboxes;
    intake->inbox_count = count;
    return error;
}

bool
intake_lacks_an_inbox(const struct intake *intake)
{
    for (size_t i = 0; i < intake->inbox_count; i++) {
        const char *trouble = inbox_problem(intake->inboxes[i]);
        if (trouble && *trouble)
            return true;
    }
    return false;
}

int
intake_reload(void *context, struct conf *conf, struct error *error)
{
    struct intake *intake = context;
    struct settings *settings;
    if (strcmp(conf->root, intake->conf->root) != 0) {
        conf_free(conf);
        return error_set(error, -EINVAL, CODE_NONE, "the root can change only with a restart");
    }
    int rc = settings_open_all(conf, true, &settings, error);
    if (rc)
        return rc;
    rc = intake_apply_inboxes(intake, conf);
    settings_drop(intake->settings);
    intake->settings = settings;
    intake->conf = conf;
    store_want_digests(intake->store, conf_uses_slurm(conf));
    intake->told_any = false; /* the daemon waits for the result */
    if (intake->listening)
        listener_configure(intake->listener, settings);
    child_check_places(&intake->child, conf);
    return rc ? error_set_system(error, rc, "open the inboxes") : 0;
}
