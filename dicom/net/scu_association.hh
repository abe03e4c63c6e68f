/*
 * scu_association.hh - an association to a peer, and what the messages that go over it have in
 * common; private to scu*.cc, C++.
 */
#ifndef NOCTULE_DICOM_SCU_ASSOCIATION_H
#define NOCTULE_DICOM_SCU_ASSOCIATION_H

#include "dicom/net/commitment.hh"
#include "dicom/net/scu.h"

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmnet/assoc.h>
#include <dcmtk/dcmnet/dcmlayer.h>
#include <dcmtk/dcmnet/dimse.h>

#include <deque>
#include <string>

namespace scu
{

/* Hands DCMTK its connections, and keeps hold of the socket. One association's own. */
class PeerLayer : public DcmTransportLayer
{
  public:
    PeerLayer(struct dicom_tls *security, double timeout);

    DcmTransportConnection *createConnection(DcmNativeSocketType opened, OFBool secure) override;

    int socket = -1;

  private:
    struct dicom_tls *const tls;
    const double seconds;
};

} // namespace scu

struct dicom_association {
    explicit dicom_association(const struct dicom_peer &peer);
    dicom_association(const dicom_association &) = delete;
    dicom_association &operator=(const dicom_association &) = delete;
    ~dicom_association();

    const std::string name; /* for messages */
    const double acse_seconds, dimse_seconds;
    scu::PeerLayer layer;
    T_ASC_Network *network = nullptr;
    T_ASC_Association *asc = nullptr;
    bool open = false;
    std::deque<struct commitment> reports; /* that came while something else was waited for */
    struct commitment given;               /* the one handed out last */
};

namespace scu
{

/* DCMTK counts whole seconds, and 0 means something else to it. */
int scu_whole_seconds(double seconds);

void clear_answer(struct dicom_answer *answer);

/* Ends an association that cannot go on; the peer is told if it still listens. */
void break_off(struct dicom_association &association);

/* The same, as a fault. */
int fail_broken(struct dicom_association &association, const OFCondition &condition,
                const char *doing, struct error *error);

/*
 * The context accepted for a class; its own syntax is asked for, or (nullptr) any. 0: none, or the
 * association is at its end.
 */
T_ASC_PresentationContextID find_context(const struct dicom_association &association,
                                         const char *sop_class, const char *syntax);

/* Waits for the response to a request, taking reports that come before it. */
OFCondition await_response(struct dicom_association &association, T_DIMSE_Command expected,
                           uint16_t message_id, struct dicom_answer *answer);

} // namespace scu

#endif
