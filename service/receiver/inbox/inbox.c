/*
 * inbox.c - see inbox.h.
 *
 *     inotify --> urgent looks --.                       .--> handed out --> inbox_done
 *     sweep ----> first look -----+--> settling looks --+           |
 *                                 ^---------------------+-----------'  (changed meanwhile)
 *
 * A look is one stat of a file. pump() starts the next step if none is running: looks that are due,
 * or the walk through the folders on the stack, alternately. A sweep is a walk that begins at the
 * inbox itself. A new folder is pushed on the stack by the first look or event that reports it. A
 * folder is entered (opened, watched and named in the table of inbox_inotify.h) in one step and
 * read in later ones. A file that appears in it is thus either reported by inotify or read.
 */
#include "service/receiver/inbox/inbox.h"

#include "base/array.h"
#include "service/common/log.h"
#include "service/receiver/inbox/inbox_inotify.h"
#include "service/receiver/inbox/inbox_scan.h"
#include "service/receiver/inbox/inbox_seen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#define MAX_HELD         16384 /* pending looks and unanswered finds; sweeps wait above this */
#define LATER_MS         60000 /* delay after INBOX_LATER */
#define WARN_EVERY_MS    60000 /* interval of warnings about the same problem */
#define MIN_SWEEP_MS     1000  /* between the starts of two sweeps that lost events require */
#define MIN_AGAIN_MS     200   /* before a changed file is looked at again */
#define MISSING_SWEEP_MS 10000 /* max time until a missing inbox is looked for again */
/* Max interval between sweeps if all changes are reported and there are none. */
#define LONGEST_SWEEP_MS 600000
#define HANGING_MS       20000 /* a longer step means that the disk or share hangs */
#define SWEEP_SHARE      50    /* a sweep uses at most 1/50 of a processor's time */
/* A sweep that only checks uses at most 1/1000, if the interval allows. */
#define GUARD_SHARE 1000
#define FORGET_STEP 4096

/* A pending look. */
struct look {
    STAILQ_ENTRY(look) next;
    int64_t due_ms;
    bool renamed;
    char relative[];
};

STAILQ_HEAD(look_queue, look);

struct inbox {
    uv_loop_t *loop;
    const struct inbox_events *events;
    void *context;
    struct conf_inbox conf; /* owns its path and move_to */
    char *root;
    int64_t settle_ms, sweep_ms;

    struct seen_files *seen_files;
    struct look_queue urgent;   /* due at once */
    struct look_queue settling; /* sorted by due time, since the settle time is the same for all */
    size_t held;

    struct inotify *inotify; /* NULL: sweeps only */
    uv_poll_t poll;
    uv_timer_t timer;
    uv_work_t work;
    struct scan_step step;
    bool working;
    bool scan_next; /* whether the next step is a walk */

    char **folders; /* stack of folders to walk */
    size_t folder_count, folder_capacity;
    DIR *directory; /* the folder being read */
    char *reading;  /* its name */

    uint32_t sweep;     /* number of the latest sweep */
    bool sweeping;      /* a sweep is running */
    bool begun;         /* the known files have been set */
    bool guarding;      /* the sweep only checks for missed events */
    int64_t read_at_ms; /* time of the next step of such a sweep */
    bool events_lost;
    int64_t sweep_began_ms, next_sweep_ms;
    int64_t stretched_ms;               /* planned time from the start of this sweep to the next */
    int64_t sweep_cpu_ns;               /* CPU time of this sweep so far */
    bool unreported;                    /* some folders do not report all changes */
    bool sweep_found_new;               /* the sweep found unreported files, or files to try again */
    int64_t warned_ms, watch_warned_ms; /* 0: never */

    bool entered;      /* the last attempt to enter the inbox succeeded */
    char problem[160]; /* otherwise the reason */
    int64_t step_began_ms;

    size_t handed; /* unanswered finds */
    bool closing;
    int handles; /* open uv handles */
};

static void pump(struct inbox *inbox);

/* -------------------------------------------------------------------------- queues ------ */

/* If memory is short, the look is lost, and a sweep will find the file. */
static void
add_look(struct inbox *inbox, struct look_queue *queue, const char *relative, int64_t due_ms, bool renamed)
{
    size_t length = strlen(relative) + 1;
    struct look *look = malloc(sizeof *look + length);
    if (!look) {
        seen_files_remove(inbox->seen_files, file_key(relative));
        inbox->events_lost = true;
        return;
    }
    look->due_ms = due_ms;
    look->renamed = renamed;
    memcpy(look->relative, relative, length);
    STAILQ_INSERT_TAIL(queue, look, next);
    inbox->held++;
}

static void
push_folder(struct inbox *inbox, const char *relative)
{
    char **folders = array_grow(inbox->folders, &inbox->folder_capacity, inbox->folder_count + 1, sizeof *folders);
    char *copy = folders ? strdup(relative) : NULL;
    if (folders)
        inbox->folders = folders;
    if (copy)
        inbox->folders[inbox->folder_count++] = copy;
    else
        inbox->events_lost = true;
}

/* -------------------------------------------------------------------------- sights ------ */

static struct seen_file *
remember(struct inbox *inbox, const char *relative)
{
    struct seen_file *file = seen_files_add(inbox->seen_files, file_key(relative));
    if (file)
        file->sweep = inbox->sweep;
    else
        inbox->events_lost = true;
    return file;
}

static void
hand_out(struct inbox *inbox, struct seen_file *file, const struct scan_found *found)
{
    const struct inbox_find find = {
        .relative = found->relative,
        .stamp = found->stamp,
        .error = found->error,
        .reported = file->reported,
    };
    file->state = SEEN_HANDED;
    file->touched = false;
    inbox->held++;
    inbox->handed++;
    inbox->events->found(inbox->context, inbox, &find);
}

/* Processes a look at a waiting file. */
static void
inbox_process_waiting(struct inbox *inbox, struct seen_file *file, const struct scan_found *found)
{
    if (seen_file_is_complete(file, seen_file_look(&found->stamp), found->renamed, (int64_t)uv_now(inbox->loop),
                              inbox->settle_ms)) {
        hand_out(inbox, file, found);
        return;
    }
    file->state = SEEN_WAITING;
    add_look(inbox, &inbox->settling, found->relative, file->since_ms + inbox->settle_ms, false);
}

static void
inbox_process_file(struct inbox *inbox, const struct scan_found *found, bool was_waiting)
{
    const int64_t now = (int64_t)uv_now(inbox->loop);
    const bool is_new = !seen_files_find(inbox->seen_files, file_key(found->relative));
    struct seen_file *file = remember(inbox, found->relative);
    if (!file)
        return;
    if (is_new) {
        inbox->sweep_found_new = true;
        inbox_process_waiting(inbox, file, found);
        return;
    }
    switch ((enum seen_state)file->state) {
    case SEEN_WAITING:
        if (was_waiting)
            inbox_process_waiting(inbox, file, found);
        break;
    case SEEN_HANDED:
        break;
    case SEEN_LEFT:
        if (file->look != seen_file_look(&found->stamp))
            inbox_process_waiting(inbox, file, found);
        break;
    case SEEN_LATER:
        inbox->sweep_found_new = true;
        if (file->look != seen_file_look(&found->stamp))
            inbox_process_waiting(inbox, file, found);
        else if (now >= file->since_ms)
            hand_out(inbox, file, found);
        break;
    }
}

/* Reports a file or folder that cannot be read, once. Each sweep tries it again. */
static void
inbox_report_error(struct inbox *inbox, const struct scan_found *found)
{
    struct seen_file *file = remember(inbox, found->relative);
    inbox->sweep_found_new = true;
    if (!file || file->state == SEEN_HANDED)
        return;
    if (file->reported)
        file->state = SEEN_LEFT;
    else
        hand_out(inbox, file, found);
}

static void
inbox_process(struct inbox *inbox, const struct scan_found *found, bool was_waiting)
{
    if (found->error == -ENOENT || found->error == -ENOTDIR) {
        struct seen_file *file = seen_files_find(inbox->seen_files, file_key(found->relative));
        if (file && file->state != SEEN_HANDED)
            seen_files_remove(inbox->seen_files, file->key);
    } else if (found->error) {
        inbox_report_error(inbox, found);
    } else if (S_ISREG(found->mode)) {
        inbox_process_file(inbox, found, was_waiting);
    } else if (S_ISDIR(found->mode)) {
        push_folder(inbox, found->relative);
    } else { /* a link or a special file is skipped, with one warning */
        struct seen_file *file = remember(inbox, found->relative);
        if (!file || file->state == SEEN_HANDED)
            return;
        if (!file->reported)
            log_warn("inbox.skipped", LOG_STR("inbox", inbox->conf.path),
                     LOG_STR("kind", S_ISLNK(found->mode) ? "symbolic link" : "special file"),
                     LOG_INT("inode", found->stamp.inode));
        file->reported = true;
        file->state = SEEN_LEFT;
        file->look = seen_file_look(&found->stamp);
    }
}

/* ---------------------------------------------------------------------------- news ------ */

static void
inbox_hint(struct inbox *inbox, const char *relative, bool renamed)
{
    struct seen_file *file = seen_files_find(inbox->seen_files, file_key(relative));
    if (file && file->state == SEEN_HANDED) {
        file->touched = true;
        return;
    }
    if (file && file->state == SEEN_WAITING && !renamed)
        return;
    if (inbox->held >= MAX_HELD) {
        inbox->events_lost = true;
        return;
    }
    file = remember(inbox, relative);
    if (!file)
        return;
    file->state = SEEN_WAITING;
    file->look = 0;
    add_look(inbox, &inbox->urgent, relative, 0, renamed);
}

static void
inbox_on_event(void *context, enum inotify_event_kind kind, const char *folder, const char *name)
{
    struct inbox *inbox = context;
    char *relative;
    if (kind == INOTIFY_OVERFLOW || (kind == INOTIFY_GONE && !*folder)) {
        inbox->events_lost = true;
        return;
    }
    if (kind == INOTIFY_GONE)
        return;
    if (scan_ignores(name))
        return;
    if (asprintf(&relative, "%s%s%s", folder, folder[0] ? "/" : "", name) < 0) {
        inbox->events_lost = true;
        return;
    }
    if (kind == INOTIFY_FOLDER) {
        inbox->guarding = false; /* the folder comes after those being read */
        push_folder(inbox, relative);
    } else {
        inbox_hint(inbox, relative, kind == INOTIFY_RENAMED);
    }
    free(relative);
}

static void
inbox_on_events(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct inbox *inbox = poll->data;
    int error = status < 0 ? status : inotify_read(inbox->inotify, inbox_on_event, inbox);
    if (error) {
        log_warn("inbox.watch", LOG_STR("inbox", inbox->conf.path), LOG_STR("error", strerror(-error)),
                 LOG_STR("effect", "new files are found by sweeps only"));
        uv_poll_stop(poll);
        inbox->events_lost = true;
    }
    pump(inbox);
}

/* --------------------------------------------------------------------------- steps ------ */

/* Returns whether to warn: at most once per minute. */
static bool
may_warn(struct inbox *inbox, int64_t *last_ms)
{
    const int64_t now = (int64_t)uv_now(inbox->loop);
    if (*last_ms && now - *last_ms < WARN_EVERY_MS)
        return false;
    *last_ms = now;
    return true;
}

static void
inbox_report_folder(struct inbox *inbox, const char *relative, int error)
{
    char *copy = strdup(relative);
    if (!copy)
        return;
    const struct scan_found found = {.relative = copy, .error = error};
    inbox_report_error(inbox, &found);
    free(copy);
}

static void
name_watch(struct inbox *inbox, const char *folder, int descriptor)
{
    int error = descriptor;
    inbox->unreported = inbox->unreported || descriptor < 0;
    if (!inbox->inotify)
        return;
    if (descriptor >= 0)
        error = inotify_name(inbox->inotify, descriptor, folder, inbox->sweep);
    if (error < 0 && may_warn(inbox, &inbox->watch_warned_ms))
        log_warn("inbox.watch", LOG_STR("inbox", inbox->conf.path), LOG_STR("error", strerror(-error)),
                 LOG_STR("effect", "new files in some folders are found by sweeps only"));
}

static void
after_enter(struct inbox *inbox, struct scan_step *step)
{
    if (step->made)
        log_info("inbox.made", LOG_STR("inbox", inbox->conf.path));
    if (step->error == -ENOENT && step->folder[0])
        return; /* removed meanwhile */
    if (step->error && !step->folder[0]) {
        const char *why = step->conflict ? step->conflict : strerror(-step->error);
        const int64_t soon = (int64_t)uv_now(inbox->loop) + MISSING_SWEEP_MS;
        inbox->sweeping = inbox->entered = false;
        snprintf(inbox->problem, sizeof inbox->problem, "%s", why);
        if (soon < inbox->next_sweep_ms)
            inbox->next_sweep_ms = soon;
        if (may_warn(inbox, &inbox->warned_ms))
            log_error("inbox.unusable", LOG_STR("inbox", inbox->conf.path), LOG_STR("error", why));
        return;
    }
    if (step->error == -ELOOP || step->error == -ENOTDIR)
        return; /* no longer a folder: a later look finds its new kind */
    if (step->error) {
        inbox_report_folder(inbox, step->folder, step->error);
        return;
    }
    inbox->entered = true;
    name_watch(inbox, step->folder, step->descriptor);
    inbox->unreported = inbox->unreported || step->remote;
    inbox->directory = step->directory;
    inbox->reading = step->folder;
    step->folder = NULL;
}

static void
end_sweep_if_done(struct inbox *inbox)
{
    if (!inbox->sweeping || inbox->directory || inbox->folder_count > 0)
        return;
    inbox->sweeping = false;
    /* If all folders report their changes, a sweep only checks for missed events. Its interval doubles each time it finds no
     * new file. Otherwise sweeps are the only way to find files. */
    const bool needed = inbox->unreported || inbox->sweep_found_new;
    const int64_t longest = inbox->sweep_ms > LONGEST_SWEEP_MS ? inbox->sweep_ms : LONGEST_SWEEP_MS;
    const int64_t spent_ms = inbox->sweep_cpu_ns / 1000000;
    const int64_t afforded = spent_ms * SWEEP_SHARE;
    int64_t stretched = needed ? inbox->sweep_ms : 2 * inbox->stretched_ms;
    if (!needed && stretched < spent_ms * GUARD_SHARE)
        stretched = spent_ms * GUARD_SHARE;
    inbox->stretched_ms = stretched < longest ? stretched : longest;
    inbox->next_sweep_ms = inbox->sweep_began_ms + (inbox->stretched_ms > afforded ? inbox->stretched_ms : afforded);
    /* Files in a folder that could not be read are forgotten, too. They are imported again later,
     * which changes nothing. */
    uint64_t keys[FORGET_STEP];
    size_t count;
    do {
        count = seen_files_forget_unmet(inbox->seen_files, inbox->sweep, keys, FORGET_STEP);
        if (count > 0)
            inbox->events->forgot(inbox->context, inbox, keys, count);
    } while (count == FORGET_STEP);
    if (inbox->inotify)
        inotify_forget_unmet(inbox->inotify, inbox->sweep);
    log_debug("inbox.swept", LOG_STR("inbox", inbox->conf.path), LOG_INT("known", seen_files_count(inbox->seen_files)),
              LOG_INT("ms", (int64_t)uv_now(inbox->loop) - inbox->sweep_began_ms),
              LOG_INT("next_ms", inbox->next_sweep_ms - inbox->sweep_began_ms));
}

static void
finish_close(struct inbox *inbox)
{
    if (!inbox->closing || inbox->working || inbox->handed > 0 || inbox->handles > 0)
        return;
    if (inbox->directory)
        closedir(inbox->directory);
    for (size_t i = 0; i < inbox->folder_count; i++)
        free(inbox->folders[i]);
    free(inbox->folders);
    free(inbox->reading);
    STAILQ_CONCAT(&inbox->urgent, &inbox->settling);
    for (struct look *look = STAILQ_FIRST(&inbox->urgent), *next; look; look = next) {
        next = STAILQ_NEXT(look, next);
        free(look);
    }
    inotify_close(inbox->inotify);
    seen_files_close(inbox->seen_files);
    free(inbox->conf.move_to);
    free(inbox->root);
    free(inbox->conf.path);
    free(inbox);
}

static int64_t
thread_cpu_ns(void)
{
    struct timespec spent;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (int64_t)spent.tv_sec * 1000000000 + spent.tv_nsec;
}

static void
on_step(uv_work_t *work)
{
    struct inbox *inbox = work->data;
    const int64_t began = thread_cpu_ns();
    scan_run(&inbox->step);
    inbox->step.cpu_ns = thread_cpu_ns() - began;
}

static void
after_step(uv_work_t *work, int status)
{
    (void)status; /* steps are not cancelled */
    struct inbox *inbox = work->data;
    struct scan_step *step = &inbox->step;
    if (inbox->closing) {
        inbox->working = false;
        inbox->directory = step->directory;
        scan_clear(step);
        finish_close(inbox);
        return;
    }
    const int64_t began = thread_cpu_ns();
    for (size_t i = 0; i < step->count; i++)
        inbox_process(inbox, &step->found_files[i], step->kind == SCAN_LOOK);
    if (step->kind == SCAN_ENTER)
        after_enter(inbox, step);
    if (step->kind == SCAN_READ) {
        inbox->directory = step->directory;
        if (step->error && step->error != -ENOENT)
            inbox_report_folder(inbox, step->folder, step->error);
        if (!inbox->directory) {
            free(inbox->reading);
            inbox->reading = NULL;
        }
    }
    scan_clear(step);
    const int64_t spent_ns = step->cpu_ns + thread_cpu_ns() - began;
    inbox->sweep_cpu_ns += spent_ns;
    /* Spread the steps of a checking sweep over the time until the next one. */
    const int64_t files = (int64_t)seen_files_count(inbox->seen_files) + 1;
    const int64_t even = inbox->stretched_ms * SCAN_STEP / files;
    const int64_t pause = spent_ns * GUARD_SHARE / 1000000;
    inbox->read_at_ms = (int64_t)uv_now(inbox->loop) + (pause < even ? pause : even);
    /* Must not be cleared earlier: an immediate answer would start the next step. */
    inbox->working = false;
    end_sweep_if_done(inbox);
    pump(inbox);
}

/* ---------------------------------------------------------------------------- pump ------ */

static void
take_looks(struct inbox *inbox, struct look_queue *queue, struct scan_step *step)
{
    const int64_t now = (int64_t)uv_now(inbox->loop);
    struct look *look;
    while (step->count < SCAN_STEP && (look = STAILQ_FIRST(queue)) && look->due_ms <= now) {
        STAILQ_REMOVE_HEAD(queue, next);
        inbox->held--;
        char *relative = strdup(look->relative);
        if (relative) {
            step->found_files[step->count++] = (struct scan_found){.relative = relative, .renamed = look->renamed};
        } else {
            seen_files_remove(inbox->seen_files, file_key(look->relative));
            inbox->events_lost = true;
        }
        free(look);
    }
}

/* Returns whether a checking sweep can pause between its steps, since nothing requires it to be fast. */
static bool
inbox_can_pause(const struct inbox *inbox)
{
    return inbox->sweeping && inbox->guarding && !inbox->events_lost && !inbox->unreported && !inbox->sweep_found_new;
}

static bool
prepare_walk(struct inbox *inbox, struct scan_step *step)
{
    if (inbox->held >= MAX_HELD || (inbox->directory && !inbox->begun))
        return false;
    if (inbox_can_pause(inbox) && (int64_t)uv_now(inbox->loop) < inbox->read_at_ms)
        return false;
    if (inbox->directory) {
        step->kind = SCAN_READ;
        step->directory = inbox->directory;
        step->folder = strdup(inbox->reading);
        return step->folder != NULL;
    }
    if (inbox->folder_count == 0)
        return false;
    step->kind = SCAN_ENTER;
    step->folder = inbox->folders[--inbox->folder_count];
    return true;
}

static void
begin_sweep_if_due(struct inbox *inbox)
{
    const int64_t now = (int64_t)uv_now(inbox->loop);
    if (inbox->sweeping || inbox->held >= MAX_HELD)
        return;
    if (inbox->events_lost && inbox->next_sweep_ms > inbox->sweep_began_ms + MIN_SWEEP_MS)
        inbox->next_sweep_ms = inbox->sweep_began_ms + MIN_SWEEP_MS;
    if (now < inbox->next_sweep_ms)
        return;
    inbox->guarding = inbox->stretched_ms > inbox->sweep_ms && !inbox->events_lost;
    inbox->events_lost = inbox->unreported = inbox->sweep_found_new = false;
    inbox->sweeping = true;
    inbox->sweep++;
    inbox->sweep_began_ms = now;
    inbox->sweep_cpu_ns = 0;
    inbox->next_sweep_ms = now + inbox->sweep_ms;
    push_folder(inbox, "");
}

static void
on_timer(uv_timer_t *timer)
{
    pump(timer->data);
}

static void
pump(struct inbox *inbox)
{
    if (inbox->working || inbox->closing)
        return;
    begin_sweep_if_due(inbox);
    struct scan_step *step = &inbox->step;
    step->count = 0;
    step->error = 0;
    step->conflict = NULL;
    step->made = false;
    step->folder = NULL;
    step->directory = NULL;
    step->inbox = inbox->conf.path;
    step->root = inbox->root;
    step->inotify = inbox->inotify;
    inbox->scan_next = !inbox->scan_next;
    bool ready = inbox->scan_next && prepare_walk(inbox, step);
    if (!ready) {
        take_looks(inbox, &inbox->urgent, step);
        take_looks(inbox, &inbox->settling, step);
        step->kind = SCAN_LOOK;
        ready = step->count > 0 || prepare_walk(inbox, step);
    }
    const int64_t now = (int64_t)uv_now(inbox->loop);
    if (ready) {
        inbox->working = true;
        inbox->step_began_ms = now;
        inbox->work.data = inbox;
        /* Fails only without a callback. */
        uv_queue_work(inbox->loop, &inbox->work, on_step, after_step);
        return;
    }
    int64_t due = inbox_can_pause(inbox) ? inbox->read_at_ms : inbox->next_sweep_ms;
    const struct look *first = STAILQ_FIRST(&inbox->settling);
    if (first && first->due_ms < due)
        due = first->due_ms;
    /* If a sweep is overdue because the inbox is full, wait: inbox_done pumps when it drains. */
    if (due <= now)
        due = now + MIN_SWEEP_MS;
    uv_timer_start(&inbox->timer, on_timer, (uint64_t)(due - now), 0);
}

/* ----------------------------------------------------------------- opening, closing ------ */

int
inbox_configure(struct inbox *inbox, const struct conf_inbox *conf)
{
    char *move_to = conf->move_to ? strdup(conf->move_to) : NULL;
    if (conf->move_to && !move_to)
        return -ENOMEM;
    free(inbox->conf.move_to);
    inbox->conf.move_to = move_to;
    inbox->conf.after = conf->after;
    inbox->conf.resent = conf->resent;
    inbox->settle_ms = (int64_t)(conf->settle_seconds * 1000.0);
    inbox->sweep_ms = inbox->stretched_ms = (int64_t)(conf->sweep_seconds * 1000.0);
    const int64_t next = inbox->sweep_began_ms + inbox->sweep_ms;
    if (next < inbox->next_sweep_ms)
        inbox->next_sweep_ms = next;
    pump(inbox);
    return 0;
}

/* Without inotify (instance or watch limit reached), only sweeps find files. */
static void
start_watching(struct inbox *inbox)
{
    int error = inotify_open(&inbox->inotify);
    if (!error) {
        error = uv_poll_init(inbox->loop, &inbox->poll, inotify_fd(inbox->inotify));
        if (error) {
            inotify_close(inbox->inotify);
            inbox->inotify = NULL;
        }
    }
    if (error) {
        log_warn("inbox.watch", LOG_STR("inbox", inbox->conf.path), LOG_STR("error", strerror(-error)),
                 LOG_STR("effect", "new files are found by sweeps only"));
        return;
    }
    inbox->poll.data = inbox;
    inbox->handles++;
    uv_poll_start(&inbox->poll, UV_READABLE, inbox_on_events);
}

int
inbox_open(uv_loop_t *loop, const struct conf_inbox *conf, const char *root, const struct inbox_events *events,
           void *context, struct inbox **out)
{
    struct inbox *inbox = calloc(1, sizeof *inbox);
    if (!inbox)
        return -ENOMEM;
    inbox->loop = loop;
    inbox->events = events;
    inbox->context = context;
    STAILQ_INIT(&inbox->urgent);
    STAILQ_INIT(&inbox->settling);
    inbox->conf.path = strdup(conf->path);
    inbox->root = strdup(root);
    int error = -ENOMEM;
    if (!inbox->conf.path || !inbox->root)
        goto fail;
    error = seen_files_open(&inbox->seen_files);
    if (error)
        goto fail;
    uv_timer_init(loop, &inbox->timer); /* cannot fail */
    inbox->timer.data = inbox;
    inbox->handles = 1;
    start_watching(inbox);
    error = inbox_configure(inbox, conf);
    if (error) {
        inbox_close(inbox);
        return error;
    }
    *out = inbox;
    return 0;

fail:
    free(inbox->conf.path);
    free(inbox->root);
    free(inbox);
    return error;
}

void
inbox_know(struct inbox *inbox, uint64_t key, uint64_t look)
{
    if (inbox->conf.after != CONF_KEEP || seen_files_find(inbox->seen_files, key))
        return;
    struct seen_file *file = seen_files_add(inbox->seen_files, key);
    if (!file)
        return; /* the file is imported again, which changes nothing */
    file->state = SEEN_LEFT;
    file->look = look;
}

void
inbox_begin(struct inbox *inbox)
{
    inbox->begun = true;
    pump(inbox);
}

static void
inbox_on_closed(uv_handle_t *handle)
{
    struct inbox *inbox = handle->data;
    inbox->handles--;
    finish_close(inbox);
}

void
inbox_close(struct inbox *inbox)
{
    if (!inbox || inbox->closing)
        return;
    inbox->closing = true;
    uv_close((uv_handle_t *)&inbox->timer, inbox_on_closed);
    if (inbox->inotify)
        uv_close((uv_handle_t *)&inbox->poll, inbox_on_closed);
}

const struct conf_inbox *
inbox_conf(const struct inbox *inbox)
{
    return &inbox->conf;
}

const char *
inbox_problem(const struct inbox *inbox)
{
    if (inbox->working && (int64_t)uv_now(inbox->loop) - inbox->step_began_ms > HANGING_MS)
        return "its disk or share does not respond";
    if (inbox->entered)
        return "";
    return *inbox->problem ? inbox->problem : NULL;
}

/* ------------------------------------------------------------------------- answers ------ */

static void
inbox_answer(struct inbox *inbox, struct seen_file *file, const char *relative, const struct file_stamp *stamp,
             enum inbox_fate fate)
{
    if (fate == INBOX_AGAIN || file->touched) {
        /* Delayed, so that a file that keeps changing does not occupy a processor. */
        file->state = SEEN_WAITING;
        file->look = 0;
        add_look(inbox, &inbox->settling, relative, (int64_t)uv_now(inbox->loop) + MIN_AGAIN_MS, false);
        return;
    }
    switch (fate) {
    case INBOX_GONE:
        seen_files_remove(inbox->seen_files, file->key);
        break;
    case INBOX_LATER:
        file->state = SEEN_LATER;
        file->reported = true;
        file->look = seen_file_look(stamp);
        file->since_ms = (int64_t)uv_now(inbox->loop) + LATER_MS;
        if (file->since_ms < inbox->next_sweep_ms)
            inbox->next_sweep_ms = file->since_ms;
        break;
    case INBOX_LEFT:
    case INBOX_AGAIN:
        file->state = SEEN_LEFT;
        file->look = seen_file_look(stamp);
        break;
    }
}

void
inbox_done(struct inbox *inbox, const char *relative, const struct file_stamp *stamp, enum inbox_fate fate)
{
    inbox->held--;
    inbox->handed--;
    if (inbox->closing) {
        finish_close(inbox);
        return;
    }
    struct seen_file *file = seen_files_find(inbox->seen_files, file_key(relative));
    if (file && file->state == SEEN_HANDED)
        inbox_answer(inbox, file, relative, stamp, fate);
    pump(inbox);
}
