#include "dicom/read/inherit.hh"

#include "base/text.h"
#include "dicom/value/charset.hh"
#include "dicom/value/value.h"

#include <algorithm>
#include <climits>
#include <memory>

namespace
{

DcmTagKey
key_of(uint32_t tag)
{
    return {static_cast<Uint16>(tag >> 16), static_cast<Uint16>(tag & 0xFFFF)};
}

bool
is_present(DcmItem &item, uint32_t tag)
{
    DcmElement *element = nullptr;
    return tag != 0 && item.findAndGetElement(key_of(tag), element).good() && element && !element->isEmpty(OFFalse);
}

void
take_out(DcmItem &item, uint32_t tag)
{
    delete item.remove(key_of(tag));
}

/* Requirements of an item, by its sequence: every attribute of `all`, and at least one of `any`
 * if that is not empty. */
struct need {
    uint32_t sequence;
    uint32_t all[2];
    uint32_t any[3];
};

constexpr struct need needs[] = {
    /* HL7v2 Hierarchic Designator Macro (PS3.3 10.14) */
    {0x00080051, {}, {0x00400031, 0x00400032}},
    /* Person Identification Macro (10.1) */
    {0x00080096, {0x00401101}, {0x00080080, 0x00080082}},
    {0x0008009D, {0x00401101}, {0x00080080, 0x00080082}},
    {0x00081049, {0x00401101}, {0x00080080, 0x00080082}},
    {0x00081062, {0x00401101}, {0x00080080, 0x00080082}},
    /* SOP Instance Reference Macro (10.8) */
    {0x00081110, {0x00081150, 0x00081155}, {}},
    {0x00081120, {0x00081150, 0x00081155}, {}},
    /* Patient Module (C.7.1.1), Patient Group Macro */
    {0x00100026, {0x00100020}, {}},
    {0x00100027, {0x00100020}, {}},
    {0x00101002, {0x00100020, 0x00100022}, {}},
    {0x00100216, {0x00100214, 0x00100217}, {0x00100215}},
    {0x00100221, {0x00100222, 0x00100223}, {}},
    {0x00102294, {0x00102295, 0x00102296}, {}},
};

/* Code Sequence Macro (8.8). */
constexpr struct need code_needs = {0, {0x00080104}, {0x00080100, 0x00080119, 0x00080120}};

/* Attributes that must be removed if all companions are absent. */
constexpr struct {
    uint32_t tag;
    uint32_t any[3];
} companions[] = {
    {0x00080100, {0x00080102}}, {0x00080119, {0x00080102}}, {0x00400032, {0x00400033}}, {0x00400033, {0x00400032}},
    {0x00100033, {0x00100035}}, {0x00100034, {0x00100035}}, {0x00102297, {0x00102298}},
};

constexpr struct {
    uint32_t tag;
    const char *terms[4];
} enumerated[] = {
    {0x00100040, {"M", "F", "O"}},
    {0x00120062, {"YES", "NO"}},
};

constexpr uint32_t tag_character_set = 0x00080005;
constexpr uint32_t tag_time_zone = 0x00080201;
constexpr uint32_t tag_breed = 0x00102293;              /* type 2C */
constexpr uint32_t tag_breed_registration = 0x00102294; /* type 2C */
constexpr uint32_t tag_identity_removed = 0x00120062;

/* VRs of text in the declared character set. */
constexpr struct text_form {
    DcmEVR vr;
    size_t characters; /* max number in a value; in PN, in a component group */
    bool lines;        /* allows line breaks and backslashes */
} text_forms[] = {
    {EVR_SH, 16, false},   {EVR_LO, 64, false},       {EVR_PN, 64, false},      {EVR_ST, 1024, true},
    {EVR_LT, 10240, true}, {EVR_UC, SIZE_MAX, false}, {EVR_UT, SIZE_MAX, true},
};

size_t
count_characters(const std::string &utf8)
{
    return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/* Returns whether UTF-8 text has a control character of C0 or C1. If `lines` is set, line
 * separators are allowed. */
bool
has_control(const std::string &utf8, bool lines)
{
    for (size_t i = 0; i < utf8.size(); i++) {
        const auto c = static_cast<uint8_t>(utf8[i]);
        if (lines && (c == '\t' || c == '\n' || c == '\f' || c == '\r'))
            continue;
        if (c < 0x20 || c == 0x7F)
            return true;
        if (c == 0xC2 && i + 1 < utf8.size() && static_cast<uint8_t>(utf8[i + 1]) < 0xA0)
            return true;
    }
    return false;
}

template <typename Part>
bool
all_parts(const std::string &text, char delimiter, Part is_valid)
{
    for (size_t start = 0;;) {
        const size_t end = std::min(text.find(delimiter, start), text.size());
        if (!is_valid(text.substr(start, end - start)))
            return false;
        if (end == text.size())
            return true;
        start = end + 1;
    }
}

/* Checks one decoded value. */
bool
is_valid_text(const std::string &utf8, const struct text_form &form)
{
    if (has_control(utf8, form.lines))
        return false;
    if (form.vr != EVR_PN)
        return count_characters(utf8) <= form.characters;
    /* A name has at most three groups of at most five components (PS3.5 6.2). */
    return std::count(utf8.begin(), utf8.end(), '=') <= 2 && all_parts(utf8, '=', [&](const std::string &group) {
               return std::count(group.begin(), group.end(), '^') <= 4 && count_characters(group) <= form.characters;
           });
}

bool
is_term(uint32_t tag, const std::string &value)
{
    for (const auto &each : enumerated)
        if (each.tag == tag)
            return std::any_of(std::begin(each.terms), std::end(each.terms),
                               [&](const char *term) { return term && value == term; });
    return true;
}

/* Returns the max number of values in the dictionary. */
long
max_values(const DcmTagKey &tag)
{
    const DcmDataDictionary &dictionary = dcmDataDict.rdlock();
    const DcmDictEntry *entry = dictionary.findEntry(tag, nullptr);
    const int most = entry ? entry->getVMMax() : DcmVariableVM;
    dcmDataDict.rdunlock();
    return most == DcmVariableVM ? LONG_MAX : most;
}

std::string
value_of(DcmElement &element)
{
    OFString text;
    if (!header_is_good(element.getOFStringArray(text, OFFalse)))
        return {};
    std::string value(text.c_str(), text.size());
    value.resize(value.find_last_not_of(std::string(" \0", 2)) + 1);
    return value;
}

/* Repairs one data set. */
class Repair
{
  public:
    explicit Repair(DcmDataset &dataset) : dataset_(dataset), charset_(choose_charset())
    {
    }

    std::string restore()
    {
        restore_item(dataset_, 0);
        check_identity_removed();
        check_animal();
        return left_out_;
    }

  private:
    DcmDataset &dataset_;
    std::string left_out_;
    uint32_t top_ = 0; /* top-level attribute being checked */
    Charset charset_;

    void report(uint32_t tag)
    {
        const std::string name = header_tag_name(key_of(tag));
        if (left_out_.find(name) == std::string::npos)
            left_out_ += (left_out_.empty() ? "" : ", ") + name;
    }

    /* Returns the declared set if it is valid, or else UTF-8 if the text is UTF-8, or else the
     * default. */
    std::string choose_charset()
    {
        DcmElement *element = nullptr;
        std::string declared;
        if (dataset_.findAndGetElement(key_of(tag_character_set), element).good() && element)
            declared = value_of(*element);
        std::string text; /* all text, to detect its encoding */
        DcmStack stack;
        while (dataset_.nextObject(stack, OFTrue).good()) {
            DcmObject *object = stack.top();
            if (object->isLeaf() && object->isAffectedBySpecificCharacterSet())
                text += value_of(*static_cast<DcmElement *>(object)) + "\n";
        }
        const bool is_ascii =
            std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
        const bool is_default = declared.empty() || declared == "ISO_IR 6";
        if (!is_default && Charset(declared).is_known())
            return declared;
        take_out(dataset_, tag_character_set);
        if (!is_default || !is_ascii)
            report(tag_character_set);
        if (is_ascii || !charset_is_utf8(text))
            return {};
        dataset_.putAndInsertString(key_of(tag_character_set), "ISO_IR 192");
        return "ISO_IR 192";
    }

    bool is_valid_value(DcmElement &element, const std::string &value)
    {
        const DcmTagKey tag = element.getTag();
        const DcmEVR vr = element.ident();
        const uint32_t number = header_tag_number(tag);
        if (number == tag_time_zone)
            return value.empty() || (value.size() == 5 && (value[0] == '+' || value[0] == '-') &&
                                     value.find_first_not_of("0123456789", 1) == std::string::npos);
        const auto *form =
            std::find_if(std::begin(text_forms), std::end(text_forms), [&](const auto &each) { return each.vr == vr; });
        if (form == std::end(text_forms))
            return value_is_legal(DcmVR(vr).getVRName(), value.c_str(), value.size()) &&
                   1 + std::count(value.begin(), value.end(), '\\') <= max_values(tag) &&
                   (value.empty() || is_term(number, value));
        std::string utf8;
        if (!charset_.decode(value, utf8))
            return false;
        if (form->lines)
            return is_valid_text(utf8, *form);
        return 1 + std::count(utf8.begin(), utf8.end(), '\\') <= max_values(tag) &&
               all_parts(utf8, '\\', [&](const std::string &part) { return is_valid_text(part, *form); });
    }

    /* Replaces illegal characters of a name by '?'. Tries the smallest replacement first. */
    bool repair_name(DcmElement &element, const std::string &value)
    {
        static bool (*const is_foreign[])(uint8_t) = {
            [](uint8_t byte) { return (byte < 0x20 && byte != 0x1B) || byte == 0x7F; },
            [](uint8_t byte) { return byte >= 0x80 && byte < 0xA0; },
            [](uint8_t byte) { return byte < 0x20 || byte >= 0x80; },
        };
        std::string name = value;
        for (const auto is_any : is_foreign) {
            std::replace_if(
                name.begin(), name.end(), [&](char c) { return is_any(static_cast<uint8_t>(c)); }, '?');
            if (is_valid_value(element, name))
                return header_is_good(element.putOFStringArray(OFString(name.data(), name.size())));
        }
        return false;
    }

    /* Returns whether the value may stay. */
    bool restore_leaf(DcmItem &item, DcmElement *element)
    {
        const bool is_string = DcmVR(element->ident()).isaString();
        const std::string value = is_string ? value_of(*element) : std::string();
        /* A text gets the dictionary's VR, and a date loses its padding. */
        const DcmTagKey tag = element->getTag();
        const DcmVR vr(DcmTag(tag).getEVR());
        const bool has_vr =
            element->ident() == vr.getEVR() && (vr.getEVR() != EVR_DA || element->getLength() == value.size());
        if (!has_vr && !(vr.isaString() && is_string &&
                         header_is_good(item.putAndInsertOFStringArray(tag, OFString(value.data(), value.size()))) &&
                         item.findAndGetElement(tag, element).good()))
            return false;
        if (!is_string)
            return static_cast<long>(element->getVM()) <= max_values(element->getTag());
        if (is_valid_value(*element, value))
            return true;
        report(top_);
        return element->ident() == EVR_PN && repair_name(*element, value);
    }

    static bool is_valid_item(DcmItem &item, const struct need *need)
    {
        if (!need)
            return item.card() > 0;
        const auto there = [&](uint32_t tag) { return is_present(item, tag); };
        const bool all = std::all_of(std::begin(need->all), std::end(need->all),
                                     [&](uint32_t tag) { return tag == 0 || there(tag); });
        return all && (need->any[0] == 0 || std::any_of(std::begin(need->any), std::end(need->any), there));
    }

    /* Repairs a sequence. Returns whether an item is left, if one is required. Removes items
     * from the head of the list, because DCMTK walks from there to any other place. */
    bool restore_sequence(DcmSequenceOfItems &sequence, int depth)
    {
        const uint32_t number = header_tag_number(sequence.getTag());
        const struct need *need =
            std::find_if(std::begin(needs), std::end(needs), [&](const auto &each) { return each.sequence == number; });
        if (need == std::end(needs))
            need = text_ends_in(DcmTag(sequence.getTag()).getTagName(), "CodeSequence") ? &code_needs : nullptr;
        for (unsigned long left = sequence.card(); left > 0; left--) {
            std::unique_ptr<DcmItem> item(sequence.remove(0UL));
            restore_item(*item, depth + 1);
            if (is_valid_item(*item, need))
                sequence.append(item.release());
            else
                report(top_);
        }
        return sequence.card() > 0 || number == tag_breed || number == tag_breed_registration;
    }

    void restore_item(DcmItem &item, int depth)
    {
        for (DcmElement *element : header_children<DcmElement>(&item)) {
            const uint32_t number = header_tag_number(element->getTag());
            if (depth == 0)
                top_ = number;
            const bool stays = element->ident() == EVR_SQ
                                   ? restore_sequence(*static_cast<DcmSequenceOfItems *>(element), depth)
                                   : restore_leaf(item, element);
            if (stays)
                continue;
            take_out(item, number);
            report(top_);
        }
        for (const auto &companion : companions) {
            if (!is_present(item, companion.tag) || std::any_of(std::begin(companion.any), std::end(companion.any),
                                                                [&](uint32_t tag) { return is_present(item, tag); }))
                continue;
            take_out(item, companion.tag);
            report(depth == 0 ? companion.tag : top_);
        }
    }

    /* YES requires a de-identification method. Without one, removes empty methods too. */
    void check_identity_removed()
    {
        static const uint32_t of_methods[] = {0x00120063, 0x00120064};
        DcmElement *element = nullptr;
        for (const uint32_t tag : of_methods)
            if (is_present(dataset_, tag))
                return;
        for (const uint32_t tag : of_methods)
            take_out(dataset_, tag);
        if (dataset_.findAndGetElement(key_of(tag_identity_removed), element).bad() || !element ||
            value_of(*element) != "YES")
            return;
        take_out(dataset_, tag_identity_removed);
        report(tag_identity_removed);
    }

    /* An animal's species and breed require each other, and a responsible person or
     * organization. */
    void check_animal()
    {
        static const uint32_t of_animals[] = {0x00100212, 0x00100213, 0x00100214, 0x00100215, 0x00100216, 0x00100217,
                                              0x00100218, 0x00100219, 0x00100221, 0x00102201, 0x00102202, 0x00102203,
                                              0x00102292, 0x00102293, 0x00102294, 0x00102295, 0x00102296};
        const auto has = [&](uint32_t tag) { return dataset_.tagExists(key_of(tag)); };
        if (std::none_of(std::begin(of_animals), std::end(of_animals), has))
            return;
        if ((is_present(dataset_, 0x00102201) || is_present(dataset_, 0x00102202)) &&
            (has(0x00102292) || has(0x00102293)) && has(0x00102203) && has(0x00102294) && has(0x00102297) &&
            has(0x00102299))
            return;
        for (const uint32_t tag : of_animals) {
            if (!has(tag))
                continue;
            take_out(dataset_, tag);
            report(tag);
        }
    }
};

} // namespace

std::string
inherit_repair(DcmDataset &dataset)
{
    return Repair(dataset).restore();
}
