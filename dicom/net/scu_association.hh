/*
 * scu_association.hh - an association to a peer, and what the messages that go over it have in
 * common; private to scu*.cc, C++.
 */
#ifndef NOCTULE_DICOM_SCU_ASSOCIATION_H
#define NOCTULE_DICOM_SCU_ASSOCIATION_H

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
    const double min_rate;                  /* bytes per second at which it takes what is sent */
    const uint32_t max_pdu;                 /* that the peer may send */
    std::unique_ptr<Connection> connection; /* nullptr: none was made */
    AssociateRequest negotiation;           /* contexts as they have been answered */
    DataPdus pdus;
    const char *violation = ""; /* what the peer did wrong, where its PDUs are right */
    bool open = false;
    uint16_t next_message = 1;
    std::deque<struct commitment> reports; /* that came while something else was waited for */
    struct commitment given;               /* the one handed out last */
};

namespace scu
{

void clear_answer(struct dicom_answer *answer);

/* Until so much time has passed, the association's peer may take to do the next things. */
void allow(struct dicom_association &association, std::chrono::milliseconds time);

/* A message is sent from here on: its time is what its bytes earn. */
void allow_message(struct dicom_association &association);

/* Ends an association that cannot go on; the peer is told if it still listens. */
void break_off(struct dicom_association &association);

/* The same for what a connection or the PDUs on it failed with, as a fault. */
int fail_broken(struct dicom_association &association, int rc, const char *doing,
                struct error *error);

/*
 * Asks for the contexts over a connected socket, which it takes; `host` is the name that is
 * expected in a TLS server's certificate.
 */
int negotiate(struct dicom_association &association, int fd, const struct dicom_peer &peer,
              const struct dicom_context *contexts, size_t count, struct dicom_answer *answer,
              struct error *error);

/*
 * The context accepted for a class; its own syntax is asked for, or (nullptr) any. nullptr: none,
 * or the association is at its end.
 */
const PresentationContext *find_context(const struct dicom_association &association,
                                        const char *sop_class, const char *syntax);

/* A request, numbered, on its way. */
int send_request(struct dicom_association &association, const PresentationContext &context,
                 struct command &request);
/* The next bytes of its data set. */
int send_data(struct dicom_association &association, const PresentationContext &context,
              const uint8_t *bytes, size_t size, bool last);
/* The whole data set, encoded as the context asks for. */
int send_data_set(struct dicom_association &association, const PresentationContext &context,
                  DcmDataset &dataset);
/* The peer does what it may not: what. Returns the error. */
int violate(struct dicom_association &association, const char *what);
/* Waits for the response to a request, taking reports that come before it. */
int await_response(struct dicom_association &association, const struct command &request,
                   struct dicom_answer *answer);
/* The same where several come: the next one, and so much of its data set as may be read. */
int next_response(struct dicom_association &association, const struct command &request,
                  struct command &response, std::vector<uint8_t> &bytes);

} // namespace scu

#endif
