/* import_peek.c - see import.h: read the header of a file. */
#include "service/receiver/spool/import.h"

#include "base/error.h"
#include "service/common/layout.h"
#include "service/receiver/spool/replaced.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
import_path(const struct import_report *report, int32_t replaced, char path[IMPORT_PATH])
{
    char name[REPLACED_NAME];
    replaced_name(report->sop_instance_uid, replaced, name);
    snprintf(path, IMPORT_PATH, LAYOUT_SERIES "/%s/%s", report->series_uid, name);
}

#define COPY_TEXT(to, from) snprintf(to, sizeof(to), "%s", from)

static int
import_peek_object(int fd, const char *path, const struct dicom_requestor *requestor, struct import_item *item,
                   struct error *error)
{
    struct object_peek *peek;
    int rc = object_peek_open(fd, path, requestor, &peek, error);
    if (rc)
        return rc;
    struct import_report *report = &item->report;
    COPY_TEXT(report->sop_instance_uid, peek->sop_instance_uid);
    COPY_TEXT(report->sop_class_uid, peek->sop_class_uid);
    COPY_TEXT(report->transfer_syntax_uid, peek->transfer_syntax_uid);
    COPY_TEXT(report->series_uid, peek->series_uid);
    COPY_TEXT(report->study_uid, peek->study_uid);
    COPY_TEXT(report->modality, peek->modality);
    COPY_TEXT(report->series_description, peek->description);
    COPY_TEXT(report->kind, peek->kind);
    COPY_TEXT(report->label, peek->label);
    COPY_TEXT(report->made, peek->made);
    COPY_TEXT(report->person, peek->person);
    report->size = peek->file_size;
    free(item->references);
    free(item->regions);
    item->references = peek->references;
    peek->references = NULL;
    item->regions = strdup(peek->regions);
    object_peek_free(peek);
    return item->regions ? 0 : error_set_system(error, -ENOMEM, "hold an object");
}

int
import_peek(int fd, const char *path, const struct dicom_requestor *requestor, struct import_item *item,
            struct error *error)
{
    struct dicom_instance *instance;
    struct error otherwise = {0};
    int rc = dicom_peek_open(fd, path, requestor, &instance, error);
    if (rc == 0) {
        struct import_report *report = &item->report;
        COPY_TEXT(report->sop_instance_uid, instance->sop_instance_uid);
        COPY_TEXT(report->sop_class_uid, instance->sop_class_uid);
        COPY_TEXT(report->transfer_syntax_uid, instance->transfer_syntax_uid);
        COPY_TEXT(report->series_uid, instance->series_uid);
        COPY_TEXT(report->study_uid, instance->study_uid);
        COPY_TEXT(report->modality, instance->modality);
        COPY_TEXT(report->body_part, instance->body_part);
        COPY_TEXT(report->series_description, instance->series_description);
        report->about = instance->about;
        COPY_TEXT(report->frame_of_reference_uid, instance->frame_of_reference_uid);
        report->size = instance->file_size;
        report->frames = instance->frame_count;
        report->expected = instance->expected_instances;
        dicom_instance_free(instance);
    } else if (error->code == CODE_SOP_CLASS_UNSUPPORTED || error->code == CODE_OWN_RESULT) {
        rc = import_peek_object(fd, path, requestor, item, &otherwise);
        if (rc && otherwise.code != CODE_SOP_CLASS_UNSUPPORTED)
            *error = otherwise;
    }
    if (rc == 0)
        import_path(&item->report, 0, item->report.path);
    return rc;
}

void
import_forget(struct import_item *item)
{
    free(item->references);
    free(item->regions);
    item->references = item->regions = NULL;
    item->report = (struct import_report){0};
}
