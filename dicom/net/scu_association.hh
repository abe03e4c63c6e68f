/*
 * scu_association.hh - an association to a peer, and functions that all messages over it share;
 * private to scu*.cc, C++.
 */
#ifndef NOCTULE_DICOM_NET_SCU_ASSOCIATION_HH
#define NOCTULE_DICOM_NET_SCU_ASSOCIATION_HH

#include "dicom/net/associate.hh"
#include "dicom/net/command.h"
#include "dicom/net/commitment.hh"
#include "dicom/net/connection.hh"
#include "dicom/net/scu.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dctk.h>

#include <deque>
#include <memory>
#include <string>

struct dicom_association {
    explicit dicom_association(const struct dicom_peer &peer);

    const std::string name; /* for messages */
    const std::chrono::milliseconds acse_time, dimse_time;
    const double min_rate;                  /* bytes per second at which the peer must take data */
    const uint32_t max_pdu;                 /* longest PDU that the peer may send */
    std::unique_ptr<Connection> connection; /* nullptr if not connected */
    AssociateRequest negotiation;           /* answered contexts */
    DataPdus pdus;
    const char *violation = ""; /* violation of the peer in a well-formed PDU */
    bool open = false;
    uint16_t next_message = 1;
    std::deque<struct commitment> reports; /* received during another call */
    struct commitment given;               /* the report returned last */
};

namespace scu
{

void clear_answer(struct dicom_answer *answer);

/* Allows the peer this much time for the next exchanges. */
void allow(struct dicom_association &association, std::chrono::milliseconds time);

/* Closes a broken association. Sends an abort if the peer still receives. */
void disconnect(struct dicom_association &association);

/* Closes the association after a failure of its connection or PDUs, and fills the error. */
int fail_broken(struct dicom_association &association, int rc, const char *doing, struct error *error);

/* Requests the contexts over a connected socket, of which it takes ownership. A TLS server's
 * certificate must be for the host of `peer`. */
int negotiate(struct dicom_association &association, int fd, const struct dicom_peer &peer,
              const struct dicom_context *contexts, size_t count, struct dicom_answer *answer, struct error *error);

/* Finds the context accepted for a class, with this transfer syntax or (nullptr) with any.
 * Returns nullptr if there is none or the association has ended. */
const PresentationContext *find_context(const struct dicom_association &association, const char *sop_class,
                                        const char *syntax);

/* Numbers a request and sends it. */
int send_request(struct dicom_association &association, const PresentationContext &context, struct command &request);
/* Sends the next bytes of its data set. */
int send_data(struct dicom_association &association, const PresentationContext &context, const uint8_t *bytes,
              size_t size, bool last);
/* Sends the whole data set, encoded in the context's transfer syntax. */
int send_data_set(struct dicom_association &association, const PresentationContext &context, DcmDataset &dataset);
/* Records a violation of the peer. Returns the error. */
int violate(struct dicom_association &association, const char *what);
/* Waits for the response to a request. Keeps reports that come before it. */
int await_response(struct dicom_association &association, const struct command &request, struct dicom_answer *answer);
/* Reads the next of several responses, with its data set up to the limit. */
int next_response(struct dicom_association &association, const struct command &request, struct command &response,
                  std::vector<uint8_t> &bytes);

} // namespace scu

#endif
