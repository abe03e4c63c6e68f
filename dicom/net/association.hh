/*
 * association.hh - one association on the acceptor's side (PS3.8); private to dicom/, C++.
 *
 * DCMTK is not used. Version 3.6.7 takes an accepted socket only through a global variable, leaks
 * memory with each malformed request, and reads beyond a PDU of three or more PDVs of different
 * lengths. One thread per association; any number of associations at once.
 */
#ifndef NOCTULE_DICOM_NET_ASSOCIATION_HH
#define NOCTULE_DICOM_NET_ASSOCIATION_HH

#include "dicom/net/associate.hh"
#include "dicom/net/connection.hh"
#include "dicom/net/data_pdus.hh"
#include "dicom/net/scp.h"

#include <memory>
#include <string>
#include <vector>

class Association
{
  public:
    explicit Association(const struct dicom_serve_options &options);
    Association(const Association &) = delete;
    Association &operator=(const Association &) = delete;

    /* The calls below return 0, RELEASED, or a negative errno as dicom_serve does. After an
     * error `explain` fills a struct error. */
    enum { RELEASED = DataPdus::RELEASED };

    /* Does the TLS handshake and reads the A-ASSOCIATE-RQ. Takes ownership of the socket and
     * sets `fd` to -1, unless it throws before. */
    int receive(int &fd);

    const struct dicom_association_request &request() const
    {
        return request_;
    }

    int reject(enum dicom_admission admission);
    int accept(enum dicom_admission admission, bool with_commitments);

    /* Returns the accepted context, or nullptr. */
    const PresentationContext *find_context(uint8_t id) const;

    /* Reads the next message's command set. Only this call returns RELEASED. */
    int next_command(uint8_t &context_id, struct command &command);
    /* Reads the next fragment of its data set. Valid until the next call. */
    int next_fragment(Fragment &fragment);
    int send_command(uint8_t context_id, const uint8_t *bytes, size_t size);

    /* Returns whether the peer has aborted or closed. Must be called between two of its messages. */
    bool peer_is_gone() const
    {
        return connection_->peer_is_gone();
    }

    /* Records a protocol violation of the peer, for `explain`. Returns the error. */
    int violation(std::string what);

    /* Sends the last PDU that the outcome requires: a release response or an abort. */
    void end(int outcome);

    void explain(int rc, struct error *error) const;

  private:
    int receive_request();
    int outcome_of(int outcome);
    int send_reject(uint8_t result, uint8_t source, uint8_t reason);

    const struct dicom_serve_options &options_;
    struct dicom_association_request request_ = {};
    AssociateRequest negotiation_;
    std::unique_ptr<Connection> connection_; /* set by `receive` */
    bool rejected_ = false;
    std::string violation_;
    std::unique_ptr<DataPdus> pdus_; /* set by `accept` */
};

#endif
