/*
 * data_pdus.hh - messages as they come in P-DATA-TF PDUs (PS3.8 9.3.5, E), fragment by fragment;
 * private to dicom/, C++.
 *
 * Reads from any source of bytes, so that a test can take the place of the network. Memory is one
 * PDU. One thread a reader.
 */
#ifndef NOCTULE_DICOM_DATA_PDUS_HH
#define NOCTULE_DICOM_DATA_PDUS_HH

#include "dicom/net/command.h"

#include <cstddef>
#include <cstdint>
#include <vector>

/* A negative errno ends what is read. */
class ByteSource
{
  public:
    virtual ~ByteSource() = default;
    /* Waits for something to read: 0 or the error, with nothing consumed. */
    virtual int await() = 0;
    /* Exactly so many bytes: 0 or the error. */
    virtual int read(uint8_t *bytes, size_t size) = 0;
};

constexpr size_t pdv_length_size = 4;
constexpr size_t pdv_head_size = 6; /* length, context, message control header */
constexpr uint8_t pdv_command = 1;
constexpr uint8_t pdv_last = 2;

/* The fragment of a message in one PDV. */
struct Fragment {
    uint8_t context_id;
    bool is_command;
    bool is_last;
    const uint8_t *bytes;
    size_t size;
};

class DataPdus
{
  public:
    /* No PDU may be longer than max_pdu (without its head). */
    explicit DataPdus(size_t max_pdu) : pdu_(max_pdu)
    {
    }

    enum { RELEASED = 1 };

    /* From here on a message is waited for, not the rest of one. */
    void expect_message()
    {
        between_messages_ = true;
    }

    /*
     * The next fragment, valid until the next call: 0, RELEASED (only where a message is expected),
     * -ECONNABORTED for an A-ABORT, -EPROTO for a violation, or the error of the source.
     */
    int next(ByteSource &source, Fragment &fragment);

    /*
     * A message's whole command set, and the context that it is on; what is returned is as above.
     * Its data set is read with `next`.
     */
    int next_command(ByteSource &source, uint8_t &context_id, struct command &command);

    /* Is there a fragment that needs nothing read? */
    bool has_fragment() const
    {
        return at_ != size_;
    }

    /* What the last -EPROTO was for; "" when the source said it. */
    const char *violation() const
    {
        return violation_;
    }

  private:
    int violate(const char *what);
    int read_pdu(ByteSource &source);
    int read_data(ByteSource &source, size_t size);
    int read_release(ByteSource &source, size_t size);

    const char *violation_ = "";
    bool between_messages_ = false;
    std::vector<uint8_t> pdu_; /* the value of the last one; from at_ on it is not handed out */
    size_t at_ = 0;
    size_t size_ = 0;
};

#endif
