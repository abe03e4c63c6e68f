/*
 * association.hh - one association as its acceptor has it (PS3.8); private to dicom/, C++.
 *
 * DCMTK has no part in it: 3.6.7 takes an accepted socket only through a global variable, loses
 * memory with each malformed request, and reads beyond a PDU of three or more PDVs of different
 * lengths. One thread per association, any number of associations at once.
 */
#ifndef NOCTULE_DICOM_ASSOCIATION_HH
#define NOCTULE_DICOM_ASSOCIATION_HH

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

    /*
     * What the calls below return: 0, RELEASED, or a negative errno as dicom_serve does, for which
     * `explain` fills the fault.
     */
    enum { RELEASED = DataPdus::RELEASED };

    /* TLS handshake and A-ASSOCIATE-RQ. Takes the socket, and says so by a `fd` of -1; else it threw. */
    int receive(int &fd);

    const struct dicom_association_request &request() const
    {
        return request_;
    }

    int reject(enum dicom_admission admission);
    int accept(enum dicom_admission admission, bool with_commitments);

    /* The accepted context, or nullptr. */
    const PresentationContext *find_context(uint8_t id) const;

    /* The next message's command set; RELEASED only comes from here. */
    int next_command(uint8_t &context_id, struct command &command);
    /* The next fragment of its data set, valid until the next call. */
    int next_fragment(Fragment &fragment);
    int send_command(uint8_t context_id, const uint8_t *bytes, size_t size);

    /* Between two of its messages: has it aborted or closed? */
    bool peer_is_gone() const
    {
        return connection_->peer_is_gone();
    }

    /* The peer does what it may not: what, for `explain`. Returns the error. */
    int violation(std::string what);

    /* The last words, as RELEASED or an error demands. */
    void end(int outcome);

    void explain(int rc, struct error *error) const;

  private:
    int connect(int &fd);
    int receive_request();
    void describe_request();
    int outcome_of(int outcome);
    int send_reject(uint8_t result, uint8_t source, uint8_t reason);

    const struct dicom_serve_options &options_;
    struct dicom_association_request request_ = {};
    AssociateRequest negotiation_;
    std::unique_ptr<Connection> connection_; /* from the start of `receive` on */
    bool rejected_ = false;
    std::string violation_;
    std::unique_ptr<DataPdus> pdus_; /* from `accept` on */
};

#endif
