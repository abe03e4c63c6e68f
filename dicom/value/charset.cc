
#include "dicom/value/charset.hh"
#include "base/text.h"
#include "dicom/read/inherit.hh"

#include <iconv.h>
#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace
{

/* Returns the name of iconv's converter for the Japanese sets, or nullptr if the declared sets
 * are not of that family. DCMTK with glibc's iconv cannot read ISO 2022 IR 87 and 159, which
 * Japanese sites use. iconv can, escape sequences included. */
const char *
japanese_converter(const std::string &declared)
{
    bool kanji = false;
    bool katakana = false;
    bool supplement = false;
    for (size_t start = 0; start <= declared.size();) {
        const size_t end = std::min(declared.find('\\', start), declared.size());
        const std::string set = declared.substr(start, end - start);
        if (set == "ISO 2022 IR 87")
            kanji = true;
        else if (set == "ISO 2022 IR 159")
            supplement = true;
        else if (set == "ISO 2022 IR 13" || set == "ISO_IR 13")
            katakana = true;
        else if (!set.empty() && set != "ISO 2022 IR 6")
            return nullptr;
        start = end + 1;
    }
    if (!kanji && !supplement)
        return nullptr; /* DCMTK can read it */
    if (katakana && supplement)
        return nullptr; /* iconv has no converter for both */
    return katakana ? "ISO-2022-JP-3" : "ISO-2022-JP-2";
}

/* Adds escape sequences around half-width katakana. DICOM writes them as single bytes
 * 0xA1..0xDF, with any designated set. iconv requires their designation. Restores the
 * previous set after them. */
std::string
designate_katakana(const std::string &text)
{
    std::string result;
    std::string designated = "\x1B(B";
    bool inside = false;
    for (size_t i = 0; i < text.size(); i++) {
        const bool single = static_cast<uint8_t>(text[i]) >= 0xA1 && static_cast<uint8_t>(text[i]) <= 0xDF;
        if (text[i] == '\x1B' && i + 2 < text.size())
            designated = text.substr(i, 3);
        if (single != inside)
            result += single ? std::string("\x1B(I") : designated;
        inside = single;
        result += single ? static_cast<char>(text[i] & 0x7F) : text[i];
    }
    return inside ? result + "\x1B(B" : result;
}

/* An open iconv descriptor. glibc reports a converter that it has no memory to load as unknown (EINVAL). dicom_init()
 * has checked that the converters exist, so any failure to open one is a lack of memory. */
class Converter
{
  public:
    explicit Converter(const char *from) : handle_(iconv_open("UTF-8", from))
    {
        if (handle_ == reinterpret_cast<iconv_t>(-1))
            throw std::bad_alloc();
    }

    ~Converter()
    {
        iconv_close(handle_);
    }

    Converter(const Converter &) = delete;
    Converter &operator=(const Converter &) = delete;

    bool convert(std::string text, std::string &utf8)
    {
        utf8.assign(4 * text.size() + 4, '\0');
        char *from = text.data();
        char *to = utf8.data();
        size_t from_left = text.size();
        size_t to_left = utf8.size();
        iconv(handle_, nullptr, nullptr, nullptr, nullptr);
        if (iconv(handle_, &from, &from_left, &to, &to_left) == static_cast<size_t>(-1))
            return false;
        utf8.resize(utf8.size() - to_left);
        return true;
    }

  private:
    iconv_t handle_;
};

locale_t letters; /* C.UTF-8, which has the upper and lower case of all letters */

/* The base letters of U+00DF to U+017F in lower case. */
const char base_letters[] = "saaaaaaaceeeeiiiidnooooo ouuuuytyaaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkk"
                            "llllllllllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";

/* Returns the number of the character at `text`, of `length` bytes. */
uint32_t
code_point(const char *text, size_t length)
{
    const unsigned char first = static_cast<unsigned char>(*text);
    uint32_t code = length == 1 ? first : first & (0xFFU >> (length + 1));
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
    return code;
}

std::string
utf8_of(uint32_t code)
{
    static const uint32_t lead[] = {0, 0xC0, 0xE0, 0xF0};
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    std::string text(1, static_cast<char>(lead[more] | code >> (6 * more)));
    for (int i = more - 1; i >= 0; i--)
        text += static_cast<char>(0x80U | (code >> (6 * i) & 0x3FU));
    return text;
}

/* Returns the folded form of a character in lower case. */
std::string
folded_letter(uint32_t code, Folding folding)
{
    static const struct {
        uint32_t code;
        const char *spelled;
    } spellings[] = {{0xDF, "ss"}, {0xE4, "ae"}, {0xE5, "aa"}, {0xE6, "ae"}, {0xF6, "oe"},
                     {0xF8, "oe"}, {0xFC, "ue"}, {0xFE, "th"}, {0x153, "oe"}};

    for (const auto &each : spellings)
        if (folding == Folding::Spelled && each.code == code)
            return each.spelled;
    static const uint32_t greek_and_russian[][2] = {{0x3AC, 0x3B1}, {0x3AD, 0x3B5}, {0x3AE, 0x3B7},
                                                    {0x3AF, 0x3B9}, {0x3C2, 0x3C3}, {0x3CC, 0x3BF},
                                                    {0x3CD, 0x3C5}, {0x3CE, 0x3C9}, {0x451, 0x435}};
    for (const auto &pair : greek_and_russian)
        if (pair[0] == code)
            return utf8_of(pair[1]);
    if (code >= 0x300 && code <= 0x36F) /* accents that combine with the letter before */
        return "";
    if (code >= 0xDF && code <= 0x17F)
        return {base_letters[code - 0xDF]};
    return utf8_of(code >= 0xFF01 && code <= 0xFF5E ? code - 0xFEE0 : code);
}

/* Runs `act` of DCMTK, which names sets that it does not know by another condition. */
template <typename Act>
OFCondition
try_encoding(Act act)
{
    const OFCondition condition = header_try(act);
    if (condition.module() == OFCondition(EC_Normal).module() && condition.code() == EC_CODE_CannotOpenEncoding)
        throw std::bad_alloc();
    return condition;
}

OFCondition
convert_japanese(DcmDataset &dataset, const char *converter_name)
{
    Converter converter(converter_name);
    DcmStack stack;
    while (dataset.nextObject(stack, OFTrue).good()) {
        DcmObject *object = stack.top();
        if (!object->isLeaf() || !object->isAffectedBySpecificCharacterSet())
            continue;
        DcmElement &element = *static_cast<DcmElement *>(object);
        OFString text;
        std::string utf8;
        if (!header_is_good(element.getOFStringArray(text, OFFalse)) ||
            !converter.convert(designate_katakana(std::string(text.c_str(), text.size())), utf8))
            return EC_InvalidValue;
        const OFCondition status = element.putOFStringArray(OFString(utf8.data(), utf8.size()));
        if (!header_is_good(status))
            return status;
    }
    return dataset.putAndInsertString(DCM_SpecificCharacterSet, "ISO_IR 192");
}

int
inherited_convert(struct dicom_inherited &inherited)
{
    DcmDataset dataset;
    std::string bytes;
    for (size_t i = 0; i < inherited.count; i++)
        bytes.append(reinterpret_cast<const char *>(inherited.elements[i].bytes), inherited.elements[i].size);
    OFCondition condition = header_decode(bytes.data(), bytes.size(), EXS_LittleEndianExplicit, dataset);
    if (condition.good()) {
        OFString declared;
        dataset.findAndGetOFStringArray(DCM_SpecificCharacterSet, declared);
        const char *japanese = japanese_converter(std::string(declared.c_str(), declared.size()));
        condition =
            japanese ? convert_japanese(dataset, japanese) : try_encoding([&] { return dataset.convertToUTF8(); });
    }
    if (condition.bad()) {
        header_blame_memory();
        return -EILSEQ;
    }
    InheritedElements elements;
    for (DcmElement *element : header_children<DcmElement>(&dataset))
        if (!elements.add(*element))
            return -EIO;
    struct dicom_inherited converted = elements.hand_over();
    memcpy(converted.left_out, inherited.left_out, sizeof(converted.left_out));
    dicom_inherited_free(&inherited);
    inherited = converted;
    return 0;
}

} // namespace

bool
charset_is_utf8(const std::string &text)
{
    for (size_t i = 0; i < text.size();) {
        const size_t length = text[i] ? text_utf8_length(text.c_str() + i) : 1;
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

void
charset_load_converters()
{
    for (const char *name : {"ISO-8859-1", "GB18030", "EUC-KR", "ISO-2022-JP-2", "ISO-2022-JP-3"})
        Converter{name};
    if (!letters)
        letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (!letters)
        throw std::bad_alloc();
}

std::string
charset_folded(const std::string &utf8, Folding folding)
{
    std::string folded;
    for (size_t i = 0; i < utf8.size();) {
        const size_t length = text_utf8_length(utf8.c_str() + i);
        if (length)
            folded +=
                folded_letter(towlower_l(static_cast<wint_t>(code_point(utf8.c_str() + i, length)), letters), folding);
        else
            folded += utf8[i];
        i += std::max<size_t>(length, 1);
    }
    return folded;
}

Charset::Charset(const std::string &declared)
    : japanese_(japanese_converter(declared)), is_utf8_(declared == "ISO_IR 192"),
      is_known_(
          japanese_ || is_utf8_ ||
          try_encoding([&] { return set_.selectCharacterSet(OFString(declared.c_str(), declared.size())); }).good())
{
}

bool
Charset::decode(const std::string &text, std::string &utf8)
{
    if (is_utf8_) {
        utf8 = text;
        return charset_is_utf8(text);
    }
    if (japanese_) {
        return Converter(japanese_).convert(designate_katakana(text), utf8);
    }
    OFString converted;
    if (!is_known_ ||
        header_try([&] { return set_.convertString(OFString(text.data(), text.size()), converted, "\\^="); }).bad())
        return false;
    utf8.assign(converted.c_str(), converted.size());
    return true;
}

extern "C" int
dicom_inherited_to_utf8(struct dicom_inherited *inherited)
{
    try {
        return inherited_convert(*inherited);
    } catch (const std::bad_alloc &) {
        return -ENOMEM;
    } catch (...) {
        return -EIO;
    }
}

std::string
charset_name(Charset &charset, const std::string &text)
{
    std::string utf8;
    if (charset.decode(text, utf8))
        return utf8;
    utf8 = text;
    std::replace_if(
        utf8.begin(), utf8.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return utf8;
}
