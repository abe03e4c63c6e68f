/*
 * peer_calls.h - Noctule's side of a connection with a peer of peer_bytes.h. The timeout must not expire before the
 * peer has sent everything.
 */
#ifndef NOCTULE_PEER_CALLS_H
#define NOCTULE_PEER_CALLS_H

#include "tests/unit/dicom/peer_bytes.h"

static const struct dicom_serve_options peer_options = {.max_pdu = DICOM_PDU_MAX,
                                                        .acse_seconds = 60,
                                                        .dimse_seconds = 60,
                                                        .idle_seconds = 60,
                                                        .max_instance = UINT64_C(1) << 32,
                                                        .stop_fd = -1};

static inline enum dicom_admission
peer_admit(void *context, const struct dicom_association_request *request)
{
    (void)context;
    (void)request;
    return DICOM_ADMIT;
}

static inline uint16_t
peer_committed(void *context, const struct dicom_association_request *request,
               const struct dicom_commitment *commitment)
{
    (void)context;
    (void)request;
    (void)commitment;
    return DICOM_SUCCESS;
}

/*
 * Requests a commitment from the destination at a port. Returns 0 if the association was accepted, for any answer:
 * the error has its code.
 */
static inline int
peer_ask(int port, struct dicom_association **association, struct error *error)
{
    static const struct dicom_context contexts[] = {{CLASS_CT, SYNTAX_IMPLICIT},
                                                    {DICOM_COMMITMENT_CLASS, SYNTAX_IMPLICIT}};
    const struct dicom_peer peer = {.calling_ae = "NOCTULE",
                                    .called_ae = "PEER",
                                    .host = "127.0.0.1",
                                    .port = port,
                                    .connect_seconds = 60,
                                    .acse_seconds = 60,
                                    .dimse_seconds = 60,
                                    .max_pdu = DICOM_PDU_MAX};
    struct dicom_answer answer;
    const int rc = dicom_connect(&peer, contexts, 2, association, &answer, error);
    if (!rc)
        (void)dicom_commit(*association, "1.2.3", CLASS_CT, "1.2.3", &answer, error);
    return rc;
}

#endif
