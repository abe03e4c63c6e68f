/* commitment.h - write a peer's storage commitment report as a message for the daemon. */
#ifndef NOCTULE_SERVICE_COMMON_WIRE_COMMITMENT_H
#define NOCTULE_SERVICE_COMMON_WIRE_COMMITMENT_H

#include "dicom/net/scp.h"
#include "service/common/wire/messages.h"

/* Writes the report of the peer `ae_title`. If it came on one of our associations, `destination`
 * names that; otherwise it is "". */
void commitment_write(struct proto_writer *writer, int64_t token, const char *ae_title,
                      const char *destination, const struct dicom_commitment *commitment);

#endif
