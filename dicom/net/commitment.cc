#include "dicom/net/commitment.hh"

#include "base/limits.h"
#include "dicom/net/answer_reader.hh"
#include "dicom/net/command.h"
#include "dicom/value/transfer_syntax.h"
#include "dicom/value/value.h"

namespace
{

/* PS3.3 C.14.1.1: "processing failure", for a failed item without a reason. */
constexpr uint16_t reason_unknown = 0x0110;

enum : uint32_t {
    TAG_REFERENCED_CLASS = 0x00081150,
    TAG_REFERENCED_INSTANCE = 0x00081155,
    TAG_TRANSACTION = 0x00081195,
    TAG_FAILURE_REASON = 0x00081197,
    TAG_FAILED_SEQUENCE = 0x00081198,
    TAG_REFERENCED_SEQUENCE = 0x00081199,
};

class ReportReader : public AnswerReader
{
  public:
    ReportReader(const uint8_t *bytes, size_t size, const struct transfer_syntax &syntax, struct commitment &commitment)
        : AnswerReader(bytes, size, syntax), commitment_(commitment)
    {
    }

  private:
    bool opens(uint32_t sequence) const override
    {
        return sequence == TAG_FAILED_SEQUENCE || sequence == TAG_REFERENCED_SEQUENCE;
    }

    void begin_item(uint32_t sequence) override
    {
        commitment_.references.push_back({});
        if (sequence == TAG_FAILED_SEQUENCE)
            commitment_.references.back().failure_reason = reason_unknown;
    }

    bool end_item() override
    {
        return commitment_.references.back().sop_instance_uid[0] != '\0';
    }

    bool take(uint32_t tag, const uint8_t *value, size_t size) override
    {
        return tag != TAG_TRANSACTION || command_copy_uid(commitment_.view.transaction_uid, value, size);
    }

    bool take_of_item(uint32_t tag, const uint8_t *value, size_t size) override
    {
        struct dicom_commitment_reference &reference = commitment_.references.back();
        if (tag == TAG_REFERENCED_CLASS)
            return command_copy_uid(reference.sop_class_uid, value, size);
        if (tag == TAG_REFERENCED_INSTANCE)
            return command_copy_uid(reference.sop_instance_uid, value, size);
        const uint16_t reason = tag == TAG_FAILURE_REASON && size == 2 ? value_u16(value, big_endian_) : 0;
        if (reference.failure_reason != 0 && reason != 0)
            reference.failure_reason = reason;
        return true;
    }

    struct commitment &commitment_;
};

} // namespace

bool
commitment_read(const uint8_t *bytes, size_t size, const char *transfer_syntax, struct commitment &commitment)
{
    commitment = {};
    const struct transfer_syntax *syntax = transfer_find(transfer_syntax);
    const bool whole = syntax && size <= LIMIT_REPORT_BYTES && ReportReader(bytes, size, *syntax, commitment).read();
    commitment.view.count = commitment.references.size();
    commitment.view.references = commitment.references.data();
    return whole && commitment.view.transaction_uid[0] != '\0';
}
