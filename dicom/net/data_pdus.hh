/*
 * data_pdus.hh - reads messages from P-DATA-TF PDUs (PS3.8 9.3.5, E), fragment by fragment; private to dicom/, C++.
 *
 * Reads from any source of bytes, so that a test can replace the network. Memory is one PDU. One thread per reader.
 */
#ifndef NOCTULE_DICOM_NET_DATA_PDUS_HH
#define NOCTULE_DICOM_NET_DATA_PDUS_HH

#include "dicom/net/command.h"

#include <cstddef>
#include <cstdint>
#include <vector>

/* Source of bytes. A negative errno ends the reading. */
class ByteSource
{
  public:
    virtual ~ByteSource() = default;
    /* Waits for bytes, without consuming any. Returns 0 or the error. */
    virtual int await() = 0;
    /* Reads exactly `size` bytes. Returns 0 or the error. */
    virtual int read(uint8_t *bytes, size_t size) = 0;
};

constexpr size_t pdv_length_size = 4;
constexpr size_t pdv_head_size = 6; /* length, context, message control header */
constexpr uint8_t pdv_command = 1;
constexpr uint8_t pdv_last = 2;

/* Fragment of a message, in one PDV. */
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
    /* No PDU may be longer than max_pdu (without its header). */
    explicit DataPdus(size_t max_pdu) : pdu_(max_pdu)
    {
    }

    enum { RELEASED = 1 };

    /* Expects a new message next, not the rest of one. */
    void expect_message()
    {
        between_messages_ = true;
    }

    /* Reads the next fragment, valid until the next call. Returns 0, RELEASED (only if a message
     * is expected), -ECONNABORTED for an A-ABORT, -EPROTO for a violation, or the error of the
     * source. */
    int next(ByteSource &source, Fragment &fragment);

    /* Reads the whole command set of a message and its context. Returns the same values as
     * `next`, which must then read its data set. */
    int next_command(ByteSource &source, uint8_t &context_id, struct command &command);

    /* Returns whether the next fragment is already in memory. */
    bool has_fragment() const
    {
        return at_ != size_;
    }

    /* Returns the reason of the last -EPROTO; "" if it came from the source. */
    const char *violation() const
    {
        return violation_;
    }

  private:
    int violate(const char *what);
    int read_pdu(ByteSource &source);

    const char *violation_ = "";
    bool between_messages_ = false;
    /* value of the last PDU; the part from at_ on has not been returned */
    std::vector<uint8_t> pdu_;
    size_t at_ = 0;
    size_t size_ = 0;
};

#endif
