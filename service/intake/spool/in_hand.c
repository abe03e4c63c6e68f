/*
 * in_hand.c - see in_hand.h. A token names the place it was given, so finding it takes no search.
 */
#include "service/intake/spool/in_hand.h"

#include "service/common/commitment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t
in_hand_room(const struct in_hand *in_hand)
{
    return IN_HAND_MAX - in_hand->count;
}

static struct parcel *
new_parcel(struct inbox *inbox, const char *relative, const struct file_stamp *stamp)
{
    struct parcel *parcel = calloc(1, sizeof *parcel);
    if (!parcel || !inbox)
        return parcel;
    parcel->inbox = inbox;
    parcel->item.folder = inbox_path(inbox);
    parcel->item.after = inbox_after(inbox);
    parcel->item.stamp = *stamp;
    parcel->item.relative = strdup(relative);
    const char *move_to = inbox_move_to(inbox);
    parcel->move_to = move_to ? strdup(move_to) : NULL;
    if (!parcel->item.relative || (move_to && !parcel->move_to)) {
        parcel_free(parcel);
        return NULL;
    }
    return parcel;
}

static void
in_hand_give_place(struct in_hand *in_hand, struct parcel *parcel)
{
    size_t slot = 0;
    while (in_hand->slots[slot])
        slot++;
    parcel->item.token = ++in_hand->serial * IN_HAND_MAX + (int64_t)slot;
    in_hand->slots[slot] = parcel;
    in_hand->count++;
}

struct parcel *
in_hand_add(struct in_hand *in_hand, struct inbox *inbox, const char *relative,
            const struct file_stamp *stamp)
{
    struct parcel *parcel = new_parcel(inbox, relative, stamp);
    if (parcel)
        in_hand_give_place(in_hand, parcel);
    return parcel;
}

struct parcel *
in_hand_add_handover(struct in_hand *in_hand, struct handover *handover)
{
    struct parcel *parcel = calloc(1, sizeof *parcel);
    if (!parcel)
        return NULL;
    parcel->item = handover->item;
    parcel->item.relative = strdup(handover->relative);
    if (!parcel->item.relative) {
        free(parcel);
        return NULL;
    }
    parcel->handover = handover;
    in_hand_give_place(in_hand, parcel);
    return parcel;
}

struct parcel *
in_hand_find(struct in_hand *in_hand, int64_t token)
{
    if (token < 0)
        return NULL;
    struct parcel *parcel = in_hand->slots[token % IN_HAND_MAX];
    return parcel && parcel->item.token == token ? parcel : NULL;
}

void
in_hand_drop(struct in_hand *in_hand, const struct parcel *parcel)
{
    in_hand->slots[parcel->item.token % IN_HAND_MAX] = NULL;
    in_hand->count--;
}

void
parcel_free(struct parcel *parcel)
{
    free(parcel->item.relative);
    free(parcel->move_to);
    free(parcel);
}

/* In memory that the caller frees; NULL: there is none. */
static char *
in_hand_join(const char *a, const char *between, const char *b)
{
    char *text;
    return asprintf(&text, "%s%s%s", a, between, b) < 0 ? NULL : text;
}

static void
write_arrived(const struct parcel *parcel, struct proto_writer *writer)
{
    const struct import_report *report = &parcel->item.report;
    const struct handover *handover = parcel->handover;
    char *inbox = parcel->inbox ? in_hand_join("inbox:", parcel->item.folder, "") : NULL;
    const struct message_arrived message = {
        .token = parcel->item.token,
        .sop_instance = report->sop_instance_uid,
        .sop_class = report->sop_class_uid,
        .transfer_syntax = report->transfer_syntax_uid,
        .series = report->series_uid,
        .study = report->study_uid,
        .modality = report->modality,
        .body_part = report->body_part,
        .series_description = report->series_description,
        .path = report->path,
        .source = handover        ? handover->folder
                  : parcel->inbox ? inbox
                                  : "recovered",
        .called_ae = handover ? handover->called_ae : "",
        .sender = handover ? handover->sender : "",
        .size = report->size,
        .frames = report->frames,
        .expected = report->expected,
    };
    message_write_arrived(writer, &message);
    if (parcel->inbox && !inbox)
        writer->error = -ENOMEM;
    free(inbox);
}

static void
write_quarantined(const struct parcel *parcel, struct proto_writer *writer)
{
    const struct import_report *report = &parcel->item.report;
    char *original = in_hand_join(parcel->item.folder, "/", parcel->item.relative);
    const struct message_quarantined message = {
        .token = parcel->item.token,
        .path = report->path,
        .original = original,
        .series = report->series_uid,
        .code = report->code,
        .sentence = report->sentence,
    };
    message_write_quarantined(writer, &message);
    if (!original)
        writer->error = -ENOMEM;
    free(original);
}

void
parcel_frame(const struct parcel *parcel, struct proto_writer *writer)
{
    if (parcel->handover && parcel->handover->commitment)
        commitment_write(writer, parcel->item.token, parcel->handover->commitment);
    else if (parcel->item.outcome == IMPORT_ARRIVED)
        write_arrived(parcel, writer);
    else
        write_quarantined(parcel, writer);
}
