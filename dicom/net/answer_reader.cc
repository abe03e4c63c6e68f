#include "dicom/net/answer_reader.hh"
#include "dicom/value/value.h"

#include <cstring>

namespace
{

constexpr uint32_t undefined_length = 0xFFFFFFFF;

enum : uint32_t {
    TAG_ITEM = 0xFFFEE000,
    TAG_ITEM_END = 0xFFFEE00D,
    TAG_SEQUENCE_END = 0xFFFEE0DD,
};

} // namespace

AnswerReader::AnswerReader(const uint8_t *bytes, size_t size, const struct transfer_syntax &syntax)
    : big_endian_(syntax.big_endian), at_(bytes)
{
    levels_[0] = {false, syntax.implicit_vr, false, bytes + size, 0};
}

bool
AnswerReader::read()
{
    while (depth_ > 0 || at_ != levels_[0].end)
        if (!step())
            return false;
    return true;
}

bool
AnswerReader::step()
{
    const Level &level = levels_[depth_];
    if (at_ == level.end && !level.delimited)
        return leave();
    Element element;
    if (!read_head(level, element))
        return false;
    if (level.delimited && element.tag == (level.is_sequence ? TAG_SEQUENCE_END : TAG_ITEM_END))
        return element.length == 0 && leave();
    if (level.is_sequence)
        return element.tag == TAG_ITEM && enter(element, false);
    return element.tag >> 16 != 0xFFFE && read_value(element);
}

size_t
AnswerReader::left() const
{
    return static_cast<size_t>(levels_[depth_].end - at_);
}

bool
AnswerReader::read_head(const Level &level, Element &element)
{
    if (left() < 8)
        return false;
    element.tag = value_tag(at_, big_endian_);
    element.implicit_content = level.implicit_vr;
    if (level.implicit_vr || element.tag >> 16 == 0xFFFE) {
        element.length = value_u32(at_ + 4, big_endian_);
        at_ += 8;
        return true;
    }
    const uint8_t *vr = at_ + 4;
    element.implicit_content = std::memcmp(vr, "UN", 2) == 0;
    if (value_vr_form(vr) != VALUE_VR_LONG) {
        element.length = value_u16(at_ + 6, big_endian_);
        at_ += 8;
        return true;
    }
    if (left() < 12)
        return false;
    element.length = value_u32(at_ + 8, big_endian_);
    at_ += 12;
    return true;
}

/* Enters a sequence that is selected, or whose end can only be found by reading it. */
bool
AnswerReader::read_value(const Element &element)
{
    if ((depth_ == 0 && opens(element.tag)) || element.length == undefined_length)
        return enter(element, true);
    if (element.length > left())
        return false;
    bool good = true;
    if (depth_ == 0)
        good = take(element.tag, at_, element.length);
    else if (is_wanted_item())
        good = take_of_item(element.tag, at_, element.length);
    at_ += element.length;
    return good;
}

bool
AnswerReader::enter(const Element &element, bool is_sequence)
{
    if (depth_ + 1 == sizeof(levels_) / sizeof(levels_[0]))
        return false;
    const bool delimited = element.length == undefined_length;
    if (!delimited && element.length > left())
        return false;
    const uint8_t *end = delimited ? levels_[depth_].end : at_ + element.length;
    const bool implicit_vr = is_sequence ? element.implicit_content : levels_[depth_].implicit_vr;
    const uint32_t sequence = is_sequence ? element.tag : levels_[depth_].sequence;
    levels_[++depth_] = {is_sequence, implicit_vr, delimited, end, sequence};
    if (is_wanted_item())
        begin_item(sequence);
    return true;
}

bool
AnswerReader::leave()
{
    const bool whole = !is_wanted_item() || end_item();
    depth_--;
    return whole;
}

bool
AnswerReader::is_wanted_item() const
{
    return depth_ == 2 && opens(levels_[2].sequence);
}
