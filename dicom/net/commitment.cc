#include "dicom/net/commitment.hh"

#include "base/limits.h"
#include "dicom/net/command.h"
#include "dicom/value/transfer_syntax.h"

#include <cstring>

namespace
{

/* PS3.3 C.14.1.1: "processing failure", for a failed item that gives no reason. */
constexpr uint16_t reason_unknown = 0x0110;

/* The data set, and for each sequence that and an item. */
constexpr size_t max_depth = 1 + 2 * LIMIT_REPORT_DEPTH;

constexpr uint32_t undefined_length = 0xFFFFFFFF;

enum : uint32_t {
    TAG_REFERENCED_CLASS = 0x00081150,
    TAG_REFERENCED_INSTANCE = 0x00081155,
    TAG_TRANSACTION = 0x00081195,
    TAG_FAILURE_REASON = 0x00081197,
    TAG_FAILED_SEQUENCE = 0x00081198,
    TAG_REFERENCED_SEQUENCE = 0x00081199,
    TAG_ITEM = 0xFFFEE000,
    TAG_ITEM_END = 0xFFFEE00D,
    TAG_SEQUENCE_END = 0xFFFEE0DD,
};

struct ReportElement {
    uint32_t tag;
    uint32_t length;
    bool implicit_content; /* what is inside a UN is implicit VR (CP-246) */
};

/* The data set, a sequence or an item that is open. */
struct Level {
    bool is_sequence;
    bool implicit_vr;
    bool delimited;     /* it ends with a delimiter, at the latest at `end` */
    const uint8_t *end; /* no element of it goes beyond */
    uint32_t sequence;  /* of a sequence or of its item: its tag; 0: the data set */
};

class ReportReader
{
  public:
    ReportReader(const uint8_t *bytes, size_t size, const struct transfer_syntax &syntax,
                 struct commitment &commitment)
        : at_(bytes), big_endian_(syntax.big_endian), commitment_(commitment)
    {
        levels_[0] = {false, syntax.implicit_vr, false, bytes + size, 0};
    }

    bool read()
    {
        while (depth_ > 0 || at_ != levels_[0].end)
            if (!step())
                return false;
        return true;
    }

  private:
    bool step()
    {
        const Level &level = levels_[depth_];
        if (at_ == level.end && !level.delimited)
            return leave();
        ReportElement element;
        if (!read_head(level, element))
            return false;
        if (level.delimited && element.tag == (level.is_sequence ? TAG_SEQUENCE_END : TAG_ITEM_END))
            return element.length == 0 && leave();
        if (level.is_sequence)
            return element.tag == TAG_ITEM && enter(element, false);
        return element.tag >> 16 != 0xFFFE && read_value(element);
    }

    size_t left() const
    {
        return static_cast<size_t>(levels_[depth_].end - at_);
    }

    uint16_t u16(const uint8_t *bytes) const
    {
        return static_cast<uint16_t>(big_endian_ ? bytes[0] << 8 | bytes[1]
                                                 : bytes[1] << 8 | bytes[0]);
    }

    uint32_t u32(const uint8_t *bytes) const
    {
        const uint32_t first = u16(bytes), second = u16(bytes + 2);
        return big_endian_ ? first << 16 | second : second << 16 | first;
    }

    bool read_head(const Level &level, ReportElement &element)
    {
        if (left() < 8)
            return false;
        element.tag = static_cast<uint32_t>(u16(at_)) << 16 | u16(at_ + 2);
        element.implicit_content = level.implicit_vr;
        if (level.implicit_vr || element.tag >> 16 == 0xFFFE) {
            element.length = u32(at_ + 4);
            at_ += 8;
            return true;
        }
        const uint8_t *vr = at_ + 4;
        element.implicit_content = std::memcmp(vr, "UN", 2) == 0;
        if (!has_long_length(vr)) {
            element.length = u16(at_ + 6);
            at_ += 8;
            return true;
        }
        if (left() < 12)
            return false;
        element.length = u32(at_ + 8);
        at_ += 12;
        return true;
    }

    static bool has_long_length(const uint8_t *vr)
    {
        static const char with_long_length[] = "OBODOFOLOVOWSQSVUCUNURUTUV";
        for (size_t i = 0; with_long_length[i]; i += 2)
            if (std::memcmp(with_long_length + i, vr, 2) == 0)
                return true;
        return false;
    }

    /* Sequences are opened where they are wanted, and where nothing else tells their end. */
    bool read_value(const ReportElement &element)
    {
        const bool wanted = depth_ == 0 && (element.tag == TAG_FAILED_SEQUENCE ||
                                            element.tag == TAG_REFERENCED_SEQUENCE);
        if (wanted || element.length == undefined_length)
            return enter(element, true);
        if (element.length > left())
            return false;
        const bool good = take(element.tag, at_, element.length);
        at_ += element.length;
        return good;
    }

    bool enter(const ReportElement &element, bool is_sequence)
    {
        if (depth_ + 1 == max_depth)
            return false;
        const bool delimited = element.length == undefined_length;
        if (!delimited && element.length > left())
            return false;
        const uint8_t *end = delimited ? levels_[depth_].end : at_ + element.length;
        const bool implicit_vr =
            is_sequence ? element.implicit_content : levels_[depth_].implicit_vr;
        const uint32_t sequence = is_sequence ? element.tag : levels_[depth_].sequence;
        levels_[++depth_] = {is_sequence, implicit_vr, delimited, end, sequence};
        if (is_reference())
            begin_reference();
        return true;
    }

    bool leave()
    {
        const bool whole =
            !is_reference() || commitment_.references.back().sop_instance_uid[0] != '\0';
        depth_--;
        return whole;
    }

    bool is_reference() const
    {
        return depth_ == 2 && (levels_[2].sequence == TAG_FAILED_SEQUENCE ||
                               levels_[2].sequence == TAG_REFERENCED_SEQUENCE);
    }

    void begin_reference()
    {
        commitment_.references.push_back({});
        if (levels_[depth_].sequence == TAG_FAILED_SEQUENCE)
            commitment_.references.back().failure_reason = reason_unknown;
    }

    bool take(uint32_t tag, const uint8_t *value, size_t size)
    {
        if (depth_ == 0 && tag == TAG_TRANSACTION)
            return command_copy_uid(commitment_.view.transaction_uid, value, size);
        if (!is_reference())
            return true;
        struct dicom_commitment_reference &reference = commitment_.references.back();
        if (tag == TAG_REFERENCED_CLASS)
            return command_copy_uid(reference.sop_class_uid, value, size);
        if (tag == TAG_REFERENCED_INSTANCE)
            return command_copy_uid(reference.sop_instance_uid, value, size);
        if (tag == TAG_FAILURE_REASON && size == 2 && reference.failure_reason != 0 &&
            u16(value) != 0)
            reference.failure_reason = u16(value);
        return true;
    }

    const uint8_t *at_;
    const bool big_endian_;
    struct commitment &commitment_;
    Level levels_[max_depth];
    size_t depth_ = 0;
};

} // namespace

bool
commitment_read(const uint8_t *bytes, size_t size, const char *transfer_syntax,
                struct commitment &commitment)
{
    commitment = {};
    const struct transfer_syntax *syntax = transfer_find(transfer_syntax);
    const bool whole = syntax && size <= LIMIT_REPORT_BYTES &&
                       ReportReader(bytes, size, *syntax, commitment).read();
    commitment.view.count = commitment.references.size();
    commitment.view.references = commitment.references.data();
    return whole && commitment.view.transaction_uid[0] != '\0';
}
