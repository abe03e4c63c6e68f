/* import_tokens.c - see import_tokens.h. A token contains the index of its place, so that finding
 * it needs no search. */
#include "service/receiver/spool/import_tokens.h"

#include "service/common/layout.h"
#include "service/common/wire/child.h"
#include "service/receiver/inbox/inbox_seen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t
import_tokens_room(const struct import_tokens *tokens)
{
    return IMPORT_TOKENS_MAX - tokens->count;
}

static void
import_token_give_place(struct import_tokens *tokens, struct import_token *item)
{
    size_t slot = 0;
    while (tokens->slots[slot])
        slot++;
    item->import.token = ++tokens->serial * IMPORT_TOKENS_MAX + (int64_t)slot;
    tokens->slots[slot] = item;
    tokens->count++;
}

struct import_token *
import_token_add(struct import_tokens *tokens, struct inbox *inbox, const char *relative,
                 const struct file_stamp *stamp)
{
    struct import_token *item = calloc(1, sizeof *item);
    if (item && inbox) {
        item->inbox = inbox;
        const struct conf_inbox *conf = inbox_conf(inbox);
        item->import.folder = conf->path;
        item->import.after = conf->after;
        item->import.resent = conf->resent;
        item->import.stamp = *stamp;
        item->import.relative = strdup(relative);
        item->move_to = conf->move_to ? strdup(conf->move_to) : NULL;
        if (!item->import.relative || (conf->move_to && !item->move_to)) {
            import_token_free(item);
            return NULL;
        }
    }
    if (item)
        import_token_give_place(tokens, item);
    return item;
}

struct import_token *
import_token_add_handover(struct import_tokens *tokens, struct handover *handover)
{
    struct import_token *item = calloc(1, sizeof *item);
    if (!item)
        return NULL;
    item->import = handover->item;
    item->import.relative = strdup(handover->relative);
    if (!item->import.relative) {
        free(item);
        return NULL;
    }
    item->handover = handover;
    import_token_give_place(tokens, item);
    return item;
}

struct import_token *
import_token_find(struct import_tokens *tokens, int64_t token)
{
    if (token < 0)
        return NULL;
    struct import_token *item = tokens->slots[token % IMPORT_TOKENS_MAX];
    return item && item->import.token == token ? item : NULL;
}

void
import_token_drop(struct import_tokens *tokens, const struct import_token *item)
{
    tokens->slots[item->import.token % IMPORT_TOKENS_MAX] = NULL;
    tokens->count--;
}

void
import_token_free(struct import_token *item)
{
    free(item->import.relative);
    if (!item->handover) /* owns the references otherwise */
        import_forget(&item->import);
    free(item->move_to);
    free(item);
}

/* Returns a path that the caller must free, or NULL if memory is short. */
static char *
import_token_path(const char *folder, const char *name)
{
    char *text;
    return asprintf(&text, "%s/%s", folder, name) < 0 ? NULL : text;
}

/* Returns the source, which the caller must free, or NULL if memory is short. */
static char *
import_token_source(const struct import_token *item)
{
    char *text;
    if (!item->released)
        return layout_inbox_source(item->import.folder);
    return asprintf(&text, RELEASED_SOURCE "%s", item->import.relative) < 0 ? NULL : text;
}

static void
write_arrived(const struct import_token *item, struct proto_writer *writer)
{
    const struct import_report *report = &item->import.report;
    const struct handover *handover = item->handover;
    const bool kept = item->inbox && item->import.after == CONF_KEEP;
    char *inbox = NULL, *original = NULL, about[SERIES_ABOUT_TEXT];
    series_about_join(&report->about, about);
    struct message_arrived message = {
        .token = item->import.token,
        .sop_instance = report->sop_instance_uid,
        .sop_class = report->sop_class_uid,
        .transfer_syntax = report->transfer_syntax_uid,
        .series = report->series_uid,
        .study = report->study_uid,
        .modality = report->modality,
        .body_part = report->body_part,
        .series_description = report->series_description,
        .path = report->path,
        .sha256 = report->sha256,
        .source = "recovered",
        .size = report->size,
        .frames = report->frames,
        .expected = report->expected,
        .replaced = report->replaced,
        .frame_of_reference = report->frame_of_reference_uid,
        .object_kind = report->kind,
        .label = report->label,
        .made = report->made,
        .references = item->import.references,
        .person = report->person,
        .regions = item->import.regions,
        .about = about,
    };
    if (handover) {
        message.source = handover->folder;
        message.called_ae = handover->called_ae;
        message.sender = handover->sender;
    } else if (item->inbox) {
        inbox = import_token_source(item);
        message.source = inbox;
    }
    if (kept) {
        original = import_token_path(item->import.folder, item->import.relative);
        message.original = original;
        message.kept_key = (int64_t)file_key(item->import.relative);
        message.kept_look = (int64_t)seen_file_look(&item->import.stamp);
    }
    message_write_arrived(writer, &message);
    if ((item->inbox && !inbox) || (kept && !original))
        writer->error = -ENOMEM;
    free(original);
    free(inbox);
}

void
import_token_write(const struct import_token *item, struct proto_writer *writer)
{
    const struct import_report *report = &item->import.report;
    const struct handover *handover = item->handover;
    if (handover && handover->commitment) {
        child_write_commitment(writer, item->import.token, handover->sender, "", handover->commitment);
    } else if (handover && handover->unwanted) {
        message_write_unwanted(writer, &(struct message_unwanted){.token = item->import.token,
                                                                  .sop_instance = report->sop_instance_uid,
                                                                  .sop_class = report->sop_class_uid,
                                                                  .series = report->series_uid,
                                                                  .study = report->study_uid});
    } else if (item->import.outcome == IMPORT_ARRIVED) {
        write_arrived(item, writer);
    } else {
        char *original =
            item->released ? import_token_source(item) : import_token_path(item->import.folder, item->import.relative);
        const struct message_quarantined message = {
            .token = item->import.token,
            .path = report->path,
            .original = original,
            .called_ae = handover ? handover->called_ae : "",
            .series = report->series_uid,
            .sop_instance = report->sop_instance_uid,
            .code = report->code,
            .message = report->message,
        };
        message_write_quarantined(writer, &message);
        if (!original)
            writer->error = -ENOMEM;
        free(original);
    }
}
