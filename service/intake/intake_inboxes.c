/* intake_inboxes.c - the inboxes of the configuration, and its reload. */
#include "service/intake/intake_private.h"

#include "service/common/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct inbox *
find_inbox(const struct intake *intake, const char *path)
{
    for (size_t i = 0; i < intake->inbox_count; i++) {
        if (strcmp(inbox_path(intake->inboxes[i]), path) == 0)
            return intake->inboxes[i];
    }
    return NULL;
}

static bool
is_configured(const struct conf *conf, const char *path)
{
    for (size_t i = 0; i < conf->inbox_count; i++) {
        if (strcmp(conf->inboxes[i].path, path) == 0)
            return true;
    }
    return false;
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
    *inbox = find_inbox(intake, conf->path);
    if (*inbox)
        return inbox_configure(*inbox, conf);
    return inbox_open(&intake->loop, conf, intake->conf->root, intake_on_found, intake, inbox);
}

int
intake_apply_inboxes(struct intake *intake, const struct conf *conf)
{
    struct inbox **inboxes = calloc(conf->inbox_count + 1, sizeof(struct inbox *));
    if (!inboxes)
        return -ENOMEM;
    size_t count = 0;
    int error = 0;
    for (size_t i = 0; i < conf->inbox_count; i++) {
        int failed = open_or_configure(intake, &conf->inboxes[i], &inboxes[count]);
        if (inboxes[count])
            count++;
        error = failed ? failed : error;
    }
    for (size_t i = 0; i < intake->inbox_count; i++) {
        if (!is_configured(conf, inbox_path(intake->inboxes[i])))
            close_inbox(intake, intake->inboxes[i]);
    }
    free(intake->inboxes);
    intake->inboxes = inboxes;
    intake->inbox_count = count;
    return error;
}

void
intake_reload(void *context, struct conf *conf)
{
    struct intake *intake = context;
    if (strcmp(conf->root, intake->conf->root) != 0) {
        log_error("intake.reload", LOG_STR("error", "the root changes only with a restart"));
        conf_free(conf);
        return;
    }
    struct settings *settings;
    struct error error;
    int rc = settings_open(conf, true, &settings, &error);
    if (rc || error.code != CODE_NONE) {
        log_error("intake.reload", LOG_STR("error", rc ? strerror(-rc) : error.message));
        if (!rc)
            settings_drop(settings);
        return;
    }
    rc = intake_apply_inboxes(intake, conf);
    if (rc)
        log_error("intake.reload", LOG_STR("error", strerror(-rc)));
    settings_drop(intake->settings);
    intake->settings = settings;
    intake->conf = conf;
    if (intake->listening)
        listener_configure(intake->listener, settings);
}
