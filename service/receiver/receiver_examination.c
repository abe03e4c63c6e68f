/* receiver_examination.c - reads the headers of annotation objects that are not received yet, in the pool. */
#include "service/receiver/receiver_private.h"

#include "service/common/file_ops.h"
#include "service/receiver/spool/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct receiver_examination {
    struct receiver *receiver;
    uv_work_t work;
    int64_t number;
    char *path;
    struct import_item item;
    struct error error;
    int rc;
};

static void
on_examine(uv_work_t *work)
{
    struct receiver_examination *examination = work->data;
    const int fd = file_open_below(store_fd(examination->receiver->store), examination->path, O_RDONLY | O_NONBLOCK);
    examination->rc = fd < 0 ? error_set_system(&examination->error, fd, "open the file")
                             : import_peek(fd, "The file", NULL, &examination->item, &examination->error);
    if (fd >= 0)
        close(fd);
}

static void
after_examine(uv_work_t *work, int status)
{
    (void)status;
    struct receiver_examination *examination = work->data;
    struct receiver *receiver = examination->receiver;
    const struct import_report *report = &examination->item.report;
    receiver->working--;
    if (!receiver->stopping) {
        struct proto_writer writer;
        message_write_examined(
            &writer,
            &(struct message_examined){.number = examination->number,
                                       .code = examination->rc == 0                   ? CODE_NONE
                                               : examination->error.code != CODE_NONE ? examination->error.code
                                                                                      : CODE_FILE_UNREADABLE,
                                       .message = examination->error.message,
                                       .sop_instance = report->sop_instance_uid,
                                       .sop_class = report->sop_class_uid,
                                       .transfer_syntax = report->transfer_syntax_uid,
                                       .series = report->series_uid,
                                       .study = report->study_uid,
                                       .size = report->size,
                                       .object_kind = report->kind,
                                       .label = report->label,
                                       .description = report->series_description,
                                       .made = report->made,
                                       .references = examination->item.references ? examination->item.references : "",
                                       .person = report->person,
                                       .regions = examination->item.regions ? examination->item.regions : ""});
        receiver_send_frame(receiver, &writer);
    }
    import_forget(&examination->item);
    free(examination->path);
    free(examination);
}

void
receiver_examine(struct receiver *receiver, struct proto_reader *reader)
{
    struct message_examine message;
    if (message_read_examine(reader, &message))
        return;
    struct receiver_examination *examination = calloc(1, sizeof *examination);
    char *path = strdup(message.path);
    if (!examination || !path) {
        free(examination);
        free(path);
        reader->error = -ENOMEM;
        return;
    }
    *examination = (struct receiver_examination){
        .receiver = receiver, .work.data = examination, .number = message.number, .path = path};
    receiver_queue_work(receiver, &examination->work, on_examine, after_examine);
}
