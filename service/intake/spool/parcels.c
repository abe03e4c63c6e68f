/*
 * parcels.c - see parcels.h. A token names the place it was given, so finding it takes no search.
 */
#include "service/intake/spool/parcels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t
parcels_room(const struct parcels *parcels)
{
    return PARCELS_WINDOW - parcels->count;
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
give_place(struct parcels *parcels, struct parcel *parcel)
{
    size_t slot = 0;
    while (parcels->slots[slot])
        slot++;
    parcel->item.token = ++parcels->serial * PARCELS_WINDOW + (int64_t)slot;
    parcels->slots[slot] = parcel;
    parcels->count++;
}

struct parcel *
parcels_add(struct parcels *parcels, struct inbox *inbox, const char *relative,
            const struct file_stamp *stamp)
{
    struct parcel *parcel = new_parcel(inbox, relative, stamp);
    if (parcel)
        give_place(parcels, parcel);
    return parcel;
}

struct parcel *
parcels_add_handover(struct parcels *parcels, struct handover *handover)
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
    give_place(parcels, parcel);
    return parcel;
}

struct parcel *
parcels_find(struct parcels *parcels, int64_t token)
{
    if (token < 0)
        return NULL;
    struct parcel *parcel = parcels->slots[token % PARCELS_WINDOW];
    return parcel && parcel->item.token == token ? parcel : NULL;
}

void
parcels_drop(struct parcels *parcels, const struct parcel *parcel)
{
    parcels->slots[parcel->item.token % PARCELS_WINDOW] = NULL;
    parcels->count--;
}

void
parcel_free(struct parcel *parcel)
{
    free(parcel->item.relative);
    free(parcel->move_to);
    free(parcel);
}

static void
put_joined(struct proto_writer *writer, const char *a, const char *between, const char *b)
{
    char *joined;
    if (asprintf(&joined, "%s%s%s", a, between, b) < 0) {
        writer->error = -ENOMEM;
        return;
    }
    proto_put_str(writer, joined);
    free(joined);
}

static void
put_source(const struct parcel *parcel, struct proto_writer *writer)
{
    const struct handover *handover = parcel->handover;
    if (handover)
        proto_put_str(writer, handover->folder);
    else if (parcel->inbox)
        put_joined(writer, "inbox:", parcel->item.folder, "");
    else
        proto_put_str(writer, "recovered");
    proto_put_str(writer, handover ? handover->called_ae : "");
    proto_put_str(writer, handover ? handover->sender : "");
}

static void
arrived(const struct parcel *parcel, struct proto_writer *writer)
{
    const struct import_report *report = &parcel->item.report;
    proto_start(writer, PROTO_ARRIVED);
    proto_put_i64(writer, parcel->item.token);
    proto_put_str(writer, report->sop_instance_uid);
    proto_put_str(writer, report->sop_class_uid);
    proto_put_str(writer, report->transfer_syntax_uid);
    proto_put_str(writer, report->series_uid);
    proto_put_str(writer, report->study_uid);
    proto_put_str(writer, report->modality);
    proto_put_str(writer, report->body_part);
    proto_put_str(writer, report->series_description);
    proto_put_str(writer, report->path);
    put_source(parcel, writer);
    proto_put_i64(writer, report->size);
    proto_put_i64(writer, report->frames);
    proto_put_i64(writer, report->expected);
}

static void
quarantined(const struct parcel *parcel, struct proto_writer *writer)
{
    const struct import_report *report = &parcel->item.report;
    proto_start(writer, PROTO_QUARANTINED);
    proto_put_i64(writer, parcel->item.token);
    proto_put_str(writer, report->path);
    put_joined(writer, parcel->item.folder, "/", parcel->item.relative);
    proto_put_str(writer, report->series_uid);
    proto_put_str(writer, code_name(report->code));
    proto_put_str(writer, report->sentence);
}

static void
committed(const struct parcel *parcel, struct proto_writer *writer)
{
    const struct dicom_commitment *commitment = parcel->handover->commitment;
    proto_start(writer, PROTO_COMMITTED);
    proto_put_i64(writer, parcel->item.token);
    proto_put_str(writer, commitment->transaction_uid);
    proto_put_i64(writer, (int64_t)commitment->count);
    for (size_t i = 0; i < commitment->count; i++) {
        const struct dicom_commitment_reference *reference = &commitment->references[i];
        proto_put_str(writer, reference->sop_instance_uid);
        proto_put_i64(writer, reference->failure_reason == 0);
        proto_put_i64(writer, reference->failure_reason);
    }
}

void
parcel_frame(const struct parcel *parcel, struct proto_writer *writer)
{
    if (parcel->handover && parcel->handover->commitment)
        committed(parcel, writer);
    else if (parcel->item.outcome == IMPORT_ARRIVED)
        arrived(parcel, writer);
    else
        quarantined(parcel, writer);
}
