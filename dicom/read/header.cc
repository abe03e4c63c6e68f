#include "dicom/read/header.hh"

#include <dcmtk/dcmdata/dcistrmb.h>

#include <charconv>
#include <cmath>
#include <cstdio>

static E_TransferSyntax
encoding_of(const struct scan &scan)
{
    if (scan.implicit_vr)
        return EXS_LittleEndianImplicit;
    return scan.big_endian ? EXS_BigEndianExplicit : EXS_LittleEndianExplicit;
}

OFCondition
header_decode(const void *bytes, size_t size, E_TransferSyntax syntax, DcmDataset &dataset)
{
    DcmInputBufferStream stream;
    stream.setBuffer(bytes, static_cast<offile_off_t>(size));
    stream.setEos();
    dataset.transferInit();
    const OFCondition condition = dataset.read(stream, syntax, EGL_noChange, DCM_MaxReadLength);
    dataset.transferEnd();
    return condition;
}

int
header_parse(const struct scan &scan, const char *path, DcmDataset &dataset, struct error *error)
{
    const OFCondition condition =
        header_decode(scan.kept, scan.kept_size, encoding_of(scan), dataset);
    if (condition.good())
        return 0;
    return error_set_files(error, -EBADMSG, CODE_TAG_INVALID, path, nullptr,
                           "%s is damaged: its header cannot be parsed (%s). Send it again.",
                           text_base_name(path), condition.text());
}

static DcmElement *
header_find(DcmItem &item, const DcmTagKey &tag)
{
    DcmElement *element = nullptr;
    item.findAndGetElement(tag, element);
    return element;
}

bool
header_has(DcmItem &item, const DcmTagKey &tag)
{
    DcmElement *element = header_find(item, tag);
    return element && element->getLength() > 0;
}

static std::string
header_trimmed(const OFString &value)
{
    static const char padding[] = {' ', '\t', '\r', '\n', '\0'};
    const std::string text(value.c_str(), value.length());
    const size_t first = text.find_first_not_of(padding, 0, sizeof(padding));
    if (first == std::string::npos)
        return {};
    return text.substr(first, text.find_last_not_of(padding, std::string::npos, sizeof(padding)) -
                                  first + 1);
}

/* A private element has no VR of its own in implicit VR; its bytes are the text all the same. */
static OFString
unknown_text(DcmElement &element)
{
    Uint8 *bytes = nullptr;
    if (element.getUint8Array(bytes).bad() || !bytes)
        return {};
    return OFString(reinterpret_cast<const char *>(bytes), element.getLength());
}

std::string
header_text(DcmItem &item, const DcmTagKey &tag, unsigned long index)
{
    DcmElement *element = header_find(item, tag);
    if (element && (element->ident() == EVR_UNKNOWN || element->ident() == EVR_UN))
        return header_trimmed(unknown_text(*element));
    OFString value;
    if (!element || element->getOFString(value, index).bad())
        return {};
    return header_trimmed(value);
}

std::vector<std::string>
header_texts(DcmItem &item, const DcmTagKey &tag)
{
    std::vector<std::string> texts;
    DcmElement *element = header_find(item, tag);
    const unsigned long count = element ? element->getVM() : 0;
    for (unsigned long i = 0; i < count; i++) {
        OFString value;
        if (element->getOFString(value, i).bad())
            value.clear();
        texts.push_back(header_trimmed(value));
    }
    return texts;
}

/* A Decimal or Integer String (PS3.5 6.2). */
static bool
parse_number(const std::string &text, double *value)
{
    const char *begin = text.c_str();
    const char *end = begin + text.size();
    if (*begin == '+')
        begin++;
    const auto result = std::from_chars(begin, end, *value);
    return result.ec == std::errc() && result.ptr == end;
}

template <typename T>
static bool
assign(OFCondition condition, const T &number, double *value)
{
    *value = static_cast<double>(number);
    return condition.good();
}

bool
header_number(DcmItem &item, const DcmTagKey &tag, double *value, unsigned long index)
{
    DcmElement *element = header_find(item, tag);
    if (!element || element->getLength() == 0)
        return false;
    Float64 f64 = 0;
    Float32 f32 = 0;
    Uint16 u16 = 0;
    Sint16 s16 = 0;
    Uint32 u32 = 0;
    Sint32 s32 = 0;
    switch (element->ident()) {
    case EVR_FD:
        return assign(element->getFloat64(f64, index), f64, value);
    case EVR_FL:
        return assign(element->getFloat32(f32, index), f32, value);
    case EVR_US:
    case EVR_xs:
        return assign(element->getUint16(u16, index), u16, value);
    case EVR_SS:
        return assign(element->getSint16(s16, index), s16, value);
    case EVR_UL:
        return assign(element->getUint32(u32, index), u32, value);
    case EVR_SL:
        return assign(element->getSint32(s32, index), s32, value);
    default:
        return parse_number(header_text(item, tag, index), value);
    }
}

bool
header_integer(DcmItem &item, const DcmTagKey &tag, int32_t *value)
{
    double number;
    if (!header_number(item, tag, &number) || std::trunc(number) != number ||
        std::fabs(number) > INT32_MAX)
        return false;
    *value = static_cast<int32_t>(number);
    return true;
}

DcmItem *
header_item(DcmItem &item, const DcmTagKey &sequence)
{
    DcmItem *first = nullptr;
    return item.findAndGetSequenceItem(sequence, first, 0).good() ? first : nullptr;
}

std::string
header_tag_name(const DcmTagKey &tag)
{
    DcmTag named(tag);
    char number[32];
    snprintf(number, sizeof(number), " (%04X,%04X)", tag.getGroup(), tag.getElement());
    return std::string(named.getTagName()) + number;
}
