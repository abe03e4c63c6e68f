/*
 * fuzz_data_pdus.cc - any bytes as the input of an accepted association. The fragments and the end must match a
 * reference that parses the whole input at once.
 */
#include "dicom/net/data_pdus.hh"

#include "dicom/net/associate.hh"
#include "dicom/value/value.h"
#include "tests/fuzz/must.h"

#include <cerrno>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

namespace
{

constexpr size_t max_pdu = 1024;

/* Breaks the connection at the end of the input. */
class Input : public ByteSource
{
  public:
    Input(const uint8_t *bytes, size_t size) : bytes_(bytes), left_(size)
    {
    }

    int await() override
    {
        return left_ > 0 ? 0 : -ECONNABORTED;
    }

    int read(uint8_t *bytes, size_t size) override
    {
        must(size <= max_pdu);
        if (size > left_)
            return -ECONNABORTED;
        std::memcpy(bytes, bytes_, size);
        bytes_ += size;
        left_ -= size;
        return 0;
    }

  private:
    const uint8_t *bytes_;
    size_t left_;
};

/* Starts a message after each last fragment. */
class Reference
{
  public:
    Reference(const uint8_t *bytes, size_t size) : bytes_(bytes), size_(size)
    {
    }

    int next(Fragment &fragment)
    {
        if (at_ == pdu_end_)
            if (const int outcome = enter_pdu())
                return outcome;
        if (pdu_end_ - at_ < pdv_head_size)
            return -EPROTO;
        const size_t length = value_u32(bytes_ + at_, true);
        if (length < 2 || length > pdu_end_ - at_ - 4)
            return -EPROTO;
        const uint8_t header = bytes_[at_ + 5];
        fragment = {bytes_[at_ + 4], (header & 1) != 0, (header & 2) != 0, bytes_ + at_ + pdv_head_size, length - 2};
        at_ += 4 + length;
        within_ = !fragment.is_last;
        return 0;
    }

  private:
    int enter_pdu()
    {
        if (size_ - at_ < pdu_head_size)
            return -ECONNABORTED;
        const uint8_t type = bytes_[at_];
        const size_t length = value_u32(bytes_ + at_ + 2, true);
        at_ += pdu_head_size;
        const bool is_whole = length <= size_ - at_;
        pdu_end_ = at_ + (is_whole ? length : 0);
        if (type == PDU_ABORT)
            return -ECONNABORTED;
        if (type == PDU_RELEASE_RQ && length == 4)
            return !is_whole ? -ECONNABORTED : within_ ? -EPROTO : +DataPdus::RELEASED;
        if (type != PDU_DATA || length == 0 || length > max_pdu)
            return -EPROTO;
        return is_whole ? 0 : -ECONNABORTED;
    }

    const uint8_t *bytes_;
    size_t size_;
    size_t at_ = 0;
    size_t pdu_end_ = 0;
    bool within_ = false;
};

void
check_same(const Fragment &fragment, const Fragment &expected)
{
    must(fragment.context_id == expected.context_id);
    must(fragment.is_command == expected.is_command && fragment.is_last == expected.is_last);
    must(fragment.size == expected.size);
    must(fragment.size == 0 || std::memcmp(fragment.bytes, expected.bytes, fragment.size) == 0);
}

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    Input input(bytes, size);
    Reference reference(bytes, size);
    DataPdus pdus(max_pdu);
    pdus.expect_message();
    for (;;) {
        Fragment fragment = {};
        Fragment expected = {};
        const int outcome = pdus.next(input, fragment);
        must(outcome == reference.next(expected));
        must((outcome == -EPROTO) == (pdus.violation()[0] != '\0'));
        if (outcome)
            return 0;
        check_same(fragment, expected);
        if (fragment.is_last)
            pdus.expect_message();
    }
}
