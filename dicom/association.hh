/*
 * association.hh - one association as its acceptor has it; private to dicom/, C++.
 *
 * DCMTK negotiates. What follows on an established association (P-DATA-TF, release, abort: PS3.8
 * 9.3.5 to 9.3.8) is read and written here: DCMTK 3.6.7 loses its place in a PDU of three or more
 * PDVs of different lengths, and reads beyond it. One thread an association, any number of
 * associations at once.
 */
#ifndef NOCTULE_DICOM_ASSOCIATION_HH
#define NOCTULE_DICOM_ASSOCIATION_HH

#include "connection.hh"
#include "network.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmnet/assoc.h>

#include <string>
#include <vector>

/* The fragment of a message in one PDV. */
struct Fragment {
    uint8_t context_id;
    bool is_command;
    bool is_last;
    const uint8_t *bytes;
    size_t size;
};

class Association
{
  public:
    explicit Association(const struct dicom_serve_options &options);
    ~Association();
    Association(const Association &) = delete;
    Association &operator=(const Association &) = delete;

    /*
     * What the calls below return: 0, RELEASED, or a negative errno as dicom_serve does, for which
     * `explain` fills the fault.
     */
    enum { RELEASED = 1 };

    /* TLS handshake and A-ASSOCIATE-RQ; takes the socket in every case. */
    int receive(int fd);

    const struct dicom_association_request &request() const
    {
        return request_;
    }

    int reject(enum dicom_admission admission);
    int accept(bool echo_only, bool with_commitments);

    /* The accepted context, or false. */
    bool find_context(uint8_t id, T_ASC_PresentationContext &context) const;

    /* From here on a message is waited for, not the rest of one. */
    void expect_message();
    /* The next fragment, valid until the next call. RELEASED only where a message is expected. */
    int next_fragment(Fragment &fragment);
    int send_command(uint8_t context_id, const uint8_t *bytes, size_t size);

    /* The peer does what it may not: what, for `explain`. Returns the error. */
    int violation(const char *what);

    /* The last words, as RELEASED or an error demands. */
    void end(int outcome);

    void explain(int error, struct dicom_fault *fault) const;

  private:
    int hand_over(int fd);
    int outcome(const OFCondition &condition);
    int line_outcome() const;
    int read_pdu();
    int read_bytes(uint8_t *bytes, size_t size);
    int read_data_pdu(size_t size);
    bool refuse_context_name();
    void read_request();
    int send_reject(T_ASC_RejectParametersResult result, T_ASC_RejectParametersSource source,
                    T_ASC_RejectParametersReason reason);
    void answer_context(const T_ASC_PresentationContext &context, bool echo_only,
                        bool with_commitments);

    const struct dicom_serve_options &options_;
    struct dicom_association_request request_ = {};
    Line line_;
    T_ASC_Network *network_ = nullptr;
    T_ASC_Association *association_ = nullptr;
    std::string violation_;
    std::vector<uint8_t> pdu_; /* the value of the last P-DATA-TF PDU, of which the rest from */
    size_t pdu_at_ = 0;        /* here on has not been handed out */
    size_t pdu_size_ = 0;
};

#endif
