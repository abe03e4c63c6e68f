#include "dicom/net/data_pdus.hh"

#include "base/limits.h"
#include "dicom/net/associate.hh"
#include "dicom/value/value.h"

#include <cerrno>

namespace
{

constexpr size_t release_size = 4;

} // namespace

int
DataPdus::violate(const char *what)
{
    violation_ = what;
    return -EPROTO;
}

int
DataPdus::read_pdu(ByteSource &source)
{
    if (const int error = source.await())
        return error;
    uint8_t head[pdu_head_size];
    if (const int error = source.read(head, sizeof(head)))
        return error;
    const size_t size = value_u32(head + 2, true);
    switch (head[0]) {
    case PDU_DATA: {
        if (size > pdu_.size())
            return violate("a PDU is longer than agreed");
        if (size == 0)
            return violate("a P-DATA-TF PDU is empty");
        at_ = size_ = 0;
        const int error = source.read(pdu_.data(), size);
        if (!error)
            size_ = size;
        return error;
    }
    case PDU_RELEASE_RQ: {
        uint8_t reserved[release_size];
        if (size != release_size)
            return violate("a PDU has a wrong length");
        if (const int error = source.read(reserved, size))
            return error;
        return between_messages_ ? +RELEASED : violate("it requests a release within a message");
    }
    case PDU_ABORT:
        return -ECONNABORTED;
    default:
        return violate("a PDU is out of sequence");
    }
}

int
DataPdus::next(ByteSource &source, Fragment &fragment)
{
    if (at_ == size_) {
        if (const int outcome = read_pdu(source))
            return outcome;
    }
    between_messages_ = false;
    const uint8_t *pdv = pdu_.data() + at_;
    const size_t left = size_ - at_;
    const size_t length = left >= pdv_head_size ? value_u32(pdv, true) : 0;
    if (length < pdv_head_size - pdv_length_size || length > left - pdv_length_size)
        return violate("the lengths in a P-DATA-TF PDU contradict each other");
    fragment = {pdv[4], (pdv[5] & pdv_command) != 0, (pdv[5] & pdv_last) != 0, pdv + pdv_head_size,
                length - (pdv_head_size - pdv_length_size)};
    at_ += pdv_length_size + length;
    return 0;
}

int
DataPdus::next_command(ByteSource &source, uint8_t &context_id, struct command &command)
{
    std::vector<uint8_t> bytes;
    int empty = 0;
    Fragment fragment = {};
    expect_message();
    for (bool first = true; !fragment.is_last; first = false) {
        if (const int outcome = next(source, fragment))
            return outcome;
        if (first)
            context_id = fragment.context_id;
        if (!fragment.is_command || fragment.context_id != context_id)
            return violate("it sends data before a command");
        if (fragment.size > LIMIT_COMMAND_BYTES - bytes.size())
            return violate("a command set is too long");
        if (fragment.size == 0 && ++empty > LIMIT_EMPTY_FRAGMENTS)
            return violate("a command set has too many empty fragments");
        bytes.insert(bytes.end(), fragment.bytes, fragment.bytes + fragment.size);
    }
    if (command_decode(bytes.data(), bytes.size(), &command) != 0)
        return violate("a command set is malformed");
    return 0;
}
