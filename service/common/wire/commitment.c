/* commitment.c - see commitment.h. */
#include "service/common/wire/commitment.h"

void
commitment_write(struct proto_writer *writer, int64_t token, const char *ae_title,
                 const char *destination, const struct dicom_commitment *commitment)
{
    const struct message_committed message = {.token = token,
                                              .ae_title = ae_title,
                                              .destination = destination,
                                              .transaction_uid = commitment->transaction_uid};
    message_write_committed(writer, &message);
    for (size_t i = 0; i < commitment->count; i++) {
        const struct dicom_commitment_reference *reference = &commitment->references[i];
        const struct message_reference row = {.sop_instance = reference->sop_instance_uid,
                                              .ok = reference->failure_reason == 0,
                                              .failure_reason = reference->failure_reason};
        message_add_reference(writer, &row);
    }
}
