/* commitment.h - a peer's storage commitment report as the message that tells the daemon. */
#ifndef NOCTULE_COMMITMENT_H
#define NOCTULE_COMMITMENT_H

#include "dicom/net/scp.h"
#include "service/common/messages.h"

void commitment_write(struct proto_writer *writer, int64_t token,
                      const struct dicom_commitment *commitment);

#endif
