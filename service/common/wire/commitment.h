/* commitment.h - a peer's storage commitment report as the message that tells the daemon. */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_COMMITMENT_H
#define NOCTULE_SERVICE_COMMON_WIRE_COMMITMENT_H

#include "dicom/net/scp.h"
#include "service/common/wire/messages.h"

/* `ae_title` reports it, on an association to `destination` or ("") one of its own. */
void commitment_write(struct proto_writer *writer, int64_t token, const char *ae_title,
                      const char *destination, const struct dicom_commitment *commitment);

#endif
