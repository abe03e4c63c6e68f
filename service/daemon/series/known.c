/* known.c - see known.h. Sends one portion after the other, each on request: a pipe holds one. */
#include "service/daemon/series/known.h"

#include "service/common/file_ops.h"
#include "service/common/layout.h"
#include "service/common/wire/messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_ROWS 8192

struct known {
    struct core *core;
    bool requested;
    size_t inbox; /* index of the inbox; those before it are sent */
    int64_t file; /* its last file sent */
    char *path;   /* last path sent of series/; NULL: not begun */
};

/* Ends the list, possibly early: the receiver scans files that are not on it. */
static void
known_send_last(struct known *known)
{
    struct proto_writer writer;
    message_write_known(&writer, &(struct message_known){.inbox = "", .last = 1});
    core_send_receiver(known->core, &writer);
}

/* Sends a portion of an inbox's kept files. Returns false if there are no more. */
static bool
known_send_kept(struct known *known, const char *inbox)
{
    struct core *core = known->core;
    struct queue_kept *kept = NULL;
    struct proto_writer writer;
    size_t count = 0;
    char *source = layout_inbox_source(inbox);
    if (!source)
        return false;
    core_failed(
        core,
        queue_kept(core->queue, source, core->conf->retention.delete_originals, known->file, KNOWN_ROWS, &kept, &count),
        "read the files that inboxes keep");
    free(source);
    if (count == 0)
        return false;
    message_write_known(&writer, &(struct message_known){.inbox = inbox});
    for (size_t i = 0; i < count; i++)
        message_add_known_file(&writer, &(struct message_known_file){.key = kept[i].file, .look = kept[i].look});
    known->file = kept[count - 1].file;
    free(kept);
    core_send_receiver(known->core, &writer);
    return true;
}

void
known_answer(struct known *known)
{
    struct core *core = known->core;
    const struct conf *conf = core->conf;
    if (!known->requested || core->auditing)
        return;
    known->requested = false;
    /* An uncommitted row may still be rolled back, and its file would then never be reported again. */
    if (core_failed(core, batch_commit(core->batch), "commit before sending known files")) {
        known_send_last(known);
        return;
    }
    for (; known->inbox < conf->inbox_count; known->inbox++) {
        const struct conf_inbox *inbox = &conf->inboxes[known->inbox];
        if (inbox->after == CONF_KEEP && known_send_kept(known, inbox->path))
            return;
        known->file = INT64_MIN;
    }
    struct proto_writer writer;
    char **paths = NULL;
    size_t count = 0;
    core_failed(core, queue_paths(core->queue, known->path ? known->path : "", KNOWN_ROWS, &paths, &count),
                "read the stored files");
    if (count == 0) {
        known_send_last(known);
        return;
    }
    message_write_known(&writer, &(struct message_known){.inbox = ""});
    for (size_t i = 0; i < count; i++) {
        message_add_known_file(&writer, &(struct message_known_file){.key = (int64_t)file_key(paths[i])});
        free(known->path);
        known->path = paths[i];
    }
    free(paths);
    core_send_receiver(known->core, &writer);
}

void
known_frame(struct known *known, struct proto_reader *reader)
{
    struct core *core = known->core;
    struct message_forget message;
    struct message_forgotten_file file;
    char *source;
    if (reader->type != PROTO_FORGET) {
        if (proto_end(reader) == 0) {
            known->requested = true;
            known_answer(known);
        }
        return;
    }
    if (message_read_forget(reader, &message) || !(source = layout_inbox_source(message.inbox)))
        return;
    while (message_next_forgotten_file(reader, &file))
        if (!core_change(core) || core_failed(core, queue_forget_kept(core->queue, source, file.key), "forget a file"))
            break; /* the next receiver gets it again and forgets it then */
    free(source);
}

void
known_receiver_gone(struct known *known)
{
    free(known->path);
    *known = (struct known){.core = known->core, .file = INT64_MIN};
}

int
known_open(struct core *core, struct known **out)
{
    struct known *known = calloc(1, sizeof *known);
    if (!known)
        return -ENOMEM;
    known->core = core;
    known_receiver_gone(known);
    *out = known;
    return 0;
}

void
known_close(struct known *known)
{
    if (known)
        free(known->path);
    free(known);
}
