#include "dicom/read/header.hh"

#include <dcmtk/dcmdata/dcistrmb.h>

#include <semaphore.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>

int
header_open(int fd, const char *path, struct stream *stream, struct error *error)
{
    const int rc = fd < 0 ? stream_open(stream, path) : stream_open_again(stream, fd);
    if (rc)
        return error_set_files(error, rc, CODE_FILE_UNREADABLE, path, nullptr, "%s cannot be opened: %s.",
                               text_base_name(path), rc == -EINVAL ? "it is not a regular file" : strerror(-rc));
    return 0;
}

static E_TransferSyntax
header_encoding(bool implicit_vr, bool big_endian)
{
    if (implicit_vr)
        return EXS_LittleEndianImplicit;
    return big_endian ? EXS_BigEndianExplicit : EXS_LittleEndianExplicit;
}

bool
header_is_good(const OFCondition &condition)
{
    if (condition == EC_MemoryExhausted)
        throw std::bad_alloc();
    return condition.good();
}

void
header_blame_memory()
{
    if (errno == ENOMEM)
        throw std::bad_alloc();
}

namespace
{

constexpr unsigned TURNS = 6;

sem_t *
turns()
{
    static sem_t free;
    static const int begun = sem_init(&free, 0, TURNS);
    (void)begun;
    return &free;
}

} // namespace

HeaderTurn::HeaderTurn()
{
    while (sem_wait(turns()) != 0)
        ; /* interrupted by a signal */
}

HeaderTurn::~HeaderTurn()
{
    sem_post(turns());
}

OFCondition
header_decode(const void *bytes, size_t size, E_TransferSyntax syntax, DcmDataset &dataset)
{
    DcmInputBufferStream stream;
    stream.setBuffer(bytes, static_cast<offile_off_t>(size));
    stream.setEos();
    dataset.transferInit();
    const OFCondition condition =
        header_try([&] { return dataset.read(stream, syntax, EGL_noChange, DCM_MaxReadLength); });
    dataset.transferEnd();
    return condition;
}

int
header_parse(const struct scan &scan, const char *path, DcmDataset &dataset, struct error *error)
{
    const OFCondition condition =
        header_decode(scan.kept.bytes, scan.kept.size, header_encoding(scan.implicit_vr, scan.big_endian), dataset);
    if (condition.good())
        return 0;
    return error_set_files(error, -EBADMSG, CODE_TAG_INVALID, path, nullptr,
                           "%s is damaged: its header cannot be parsed (%s). Send it again.", text_base_name(path),
                           condition.text());
}

int
header_scan(struct stream *stream, const char *path, const struct scan_wanted &wanted, struct scan *scan,
            DcmDataset &dataset, struct error *error)
{
    const int rc = scan_file(stream, path, &wanted, scan, error);
    return rc ? rc : header_parse(*scan, path, dataset, error);
}

int
HeaderFile::read(const char *path, const struct scan_wanted &wanted, struct error *error)
{
    const int rc = header_open(-1, path, &stream, error);
    if (rc)
        return rc;
    opened.reset(&stream);
    return header_scan(&stream, path, wanted, &scan, dataset, error);
}

bool
header_parse_separate(const struct scan &scan, int32_t number, DcmDataset &item)
{
    const size_t start = number > 0 ? scan.frame_ends[number - 1] : 0;
    const size_t size = scan.frame_ends[number] - start;
    return size == 0 || header_decode(scan.frames.bytes + start, size,
                                      header_encoding(scan.frames_implicit_vr, scan.big_endian), item)
                            .good();
}

using Elements = std::vector<std::pair<uint32_t, DcmElement *>>;

/* Tag and creator of a private attribute. */
using PrivateName = std::pair<uint32_t, const char *>;

struct Header::Index {
    Elements elements;
    std::map<uint32_t, Header> items;
    std::map<PrivateName, DcmTagKey> privates; /* look-ups so far; (0000,0000) if absent */
};

Header::Header(DcmItem &item)
{
    if (item.card() == 0)
        return;
    index_ = std::make_shared<Index>();
    Elements &elements = index_->elements;
    elements.reserve(item.card());
    for (DcmObject *object = item.nextInContainer(nullptr); object; object = item.nextInContainer(object))
        elements.emplace_back(header_tag_number(object->getTag()), static_cast<DcmElement *>(object));
    if (!std::is_sorted(elements.begin(), elements.end()))
        std::sort(elements.begin(), elements.end());
}

/* Returns the first element whose tag is not below `tag`. */
static Elements::const_iterator
header_from(const Elements &elements, uint32_t tag)
{
    return std::lower_bound(elements.begin(), elements.end(), tag,
                            [](const auto &element, uint32_t wanted) { return element.first < wanted; });
}

DcmElement *
Header::find(const DcmTagKey &tag) const
{
    if (!index_)
        return nullptr;
    const auto found = header_from(index_->elements, header_tag_number(tag));
    return found != index_->elements.end() && found->first == header_tag_number(tag) ? found->second : nullptr;
}

DcmSequenceOfItems *
Header::sequence(const DcmTagKey &tag) const
{
    DcmElement *element = find(tag);
    return element && element->ident() == EVR_SQ ? static_cast<DcmSequenceOfItems *>(element) : nullptr;
}

Header
Header::item(const DcmTagKey &tag) const
{
    DcmSequenceOfItems *items = sequence(tag);
    if (!items)
        return {};
    const auto known = index_->items.find(header_tag_number(tag));
    if (known != index_->items.end())
        return known->second;
    const Header first = items->card() > 0 ? Header(*items->getItem(0)) : Header();
    index_->items.emplace(header_tag_number(tag), first);
    return first;
}

bool
header_has(const Header &header, const DcmTagKey &tag)
{
    DcmElement *element = header.find(tag);
    return element && element->getLength() > 0;
}

std::string
header_trimmed(const std::string &text)
{
    static const char padding[] = {' ', '\t', '\r', '\n', '\0'};
    const size_t first = text.find_first_not_of(padding, 0, sizeof(padding));
    if (first == std::string::npos)
        return {};
    return text.substr(first, text.find_last_not_of(padding, std::string::npos, sizeof(padding)) - first + 1);
}

static bool
is_unknown(DcmElement &element)
{
    return element.ident() == EVR_UNKNOWN || element.ident() == EVR_UN;
}

std::string
header_whole_text(DcmElement &element)
{
    if (element.getLength() > LIMIT_TEXT_BYTES)
        return {};
    if (is_unknown(element)) {
        /* In implicit VR a private element has no VR: its bytes are the text. */
        Uint8 *bytes = nullptr;
        if (!header_is_good(element.getUint8Array(bytes)) || !bytes)
            return {};
        return std::string(reinterpret_cast<const char *>(bytes), element.getLength());
    }
    OFString text;
    if (!header_is_good(element.getOFStringArray(text, OFFalse)))
        return {};
    return std::string(text.c_str(), text.length());
}

std::string
header_text(const Header &header, const DcmTagKey &tag, unsigned long index)
{
    DcmElement *element = header.find(tag);
    if (!element || element->getLength() == 0)
        return {};
    const std::string whole = header_whole_text(*element);
    size_t start = 0;
    for (; index > 0; index--) {
        const size_t end = whole.find('\\', start);
        if (end == std::string::npos)
            return {};
        start = end + 1;
    }
    return header_trimmed(whole.substr(start, whole.find('\\', start) - start));
}

std::vector<std::string>
header_texts(const Header &header, const DcmTagKey &tag)
{
    std::vector<std::string> texts;
    DcmElement *element = header.find(tag);
    if (!element || element->getLength() == 0)
        return texts;
    const std::string whole = header_whole_text(*element);
    for (size_t start = 0, end = 0; end != std::string::npos && texts.size() < LIMIT_VALUES; start = end + 1) {
        end = whole.find('\\', start);
        texts.push_back(header_trimmed(whole.substr(start, end - start)));
    }
    return texts;
}

std::string
header_character_sets(const Header &header)
{
    std::string declared;
    bool first = true;
    for (const std::string &set : header_texts(header, DCM_SpecificCharacterSet)) {
        declared += first ? set : "\\" + set;
        first = false;
    }
    return declared;
}

bool
header_is_own(const Header &header)
{
    return header_text(header, DCM_Manufacturer) == "Noctule" &&
           header_text(header, DCM_ManufacturerModelName) == "noctuled";
}

bool
header_parse_number(const std::string &text, double *value)
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
    return header_is_good(condition);
}

bool
header_number(const Header &header, const DcmTagKey &tag, double *value, unsigned long index)
{
    DcmElement *element = header.find(tag);
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
        return header_parse_number(header_text(header, tag, index), value);
    }
}

bool
header_integer(const Header &header, const DcmTagKey &tag, int32_t *value)
{
    double number;
    if (!header_number(header, tag, &number) || std::trunc(number) != number || std::fabs(number) > INT32_MAX)
        return false;
    *value = static_cast<int32_t>(number);
    return true;
}

DcmTagKey
header_private(const Header &header, const struct private_attribute &attribute)
{
    if (header.empty())
        return {0, 0};
    auto &known = header.index_->privates;
    const PrivateName name(static_cast<uint32_t>(attribute.group) << 8 | attribute.element, attribute.creator);
    const auto found = known.find(name);
    if (found != known.end())
        return found->second;
    const uint32_t group = static_cast<uint32_t>(attribute.group) << 16;
    const Elements &elements = header.index_->elements;
    DcmTagKey tag(0, 0);
    for (auto creator = header_from(elements, group | 0x10);
         creator != elements.end() && creator->first <= (group | 0xFF); ++creator) {
        const uint32_t block = creator->first & 0xFF;
        const DcmTagKey own(attribute.group, static_cast<Uint16>(block << 8 | attribute.element));
        if (header_trimmed(header_whole_text(*creator->second)) == attribute.creator && header.find(own)) {
            tag = own;
            break;
        }
    }
    known.emplace(name, tag);
    return tag;
}

/* Reads one value of an element with VR UN, which is little endian (CP-246). */
template <typename T>
static bool
unknown_number(DcmElement &element, double *value, unsigned long index)
{
    Uint8 *bytes = nullptr;
    T number;
    if (!header_is_good(element.getUint8Array(bytes)) || !bytes || element.getLength() < (index + 1) * sizeof(number))
        return false;
    std::memcpy(&number, bytes + index * sizeof(number), sizeof(number));
    *value = static_cast<double>(number);
    return true;
}

bool
header_private_number(const Header &header, const struct private_attribute &attribute, double *value,
                      unsigned long index)
{
    const DcmTagKey tag = header_private(header, attribute);
    DcmElement *element = header.find(tag);
    if (element && is_unknown(*element)) {
        if (attribute.vr == EVR_FD)
            return unknown_number<double>(*element, value, index);
        if (attribute.vr == EVR_FL)
            return unknown_number<float>(*element, value, index);
        if (attribute.vr == EVR_SL)
            return unknown_number<int32_t>(*element, value, index);
        if (attribute.vr == EVR_SS)
            return unknown_number<int16_t>(*element, value, index);
        if (attribute.vr == EVR_US)
            return unknown_number<uint16_t>(*element, value, index);
    }
    return header_number(header, tag, value, index);
}

/* Returns `size` digits, also from "2020.01.31" and "10:26:04" (ACR-NEMA). Pads with zeros.
 * Other texts become zeros. */
static std::string
date_time_digits(const std::string &text, size_t size)
{
    std::string digits;
    if (text.find_first_not_of("0123456789.:") == std::string::npos)
        std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c >= '0' && c <= '9'; });
    digits.resize(size, '0');
    return digits;
}

std::string
header_date_time(const Header &header, const struct date_time_tags &tags)
{
    std::string date = header_text(header, tags.together);
    date.resize(std::min(date.find_first_of("+-&"), date.size()));
    std::string time;
    if (date.empty()) {
        date = header_text(header, tags.date);
        time = header_text(header, tags.time);
    } else if (date.size() > 8) {
        time = date.substr(8);
        date.resize(8);
    }
    const size_t point = std::min(time.find('.'), time.size());
    const std::string fraction = point < time.size() ? time.substr(point + 1) : std::string();
    const std::string text =
        date_time_digits(date, 8) + date_time_digits(time.substr(0, point), 6) + "." + date_time_digits(fraction, 6);
    return text.find_first_not_of("0.") == std::string::npos ? std::string() : text;
}

bool
header_is_uid(const std::string &text)
{
    return !text.empty() && text.size() < DICOM_UID_SIZE && text[0] != '.' &&
           text.find_first_not_of("0123456789.") == std::string::npos;
}

std::string
header_tag_name(const DcmTagKey &tag)
{
    DcmTag named(tag);
    char number[32];
    snprintf(number, sizeof(number), " (%04X,%04X)", tag.getGroup(), tag.getElement());
    return std::string(named.getTagName()) + number;
}

int
HeaderReader::refuse(enum code code, const std::string &what) const
{
    return error_set_files(error, -EBADMSG, code, path, nullptr, "%s %s", text_base_name(path), what.c_str());
}

int
HeaderReader::missing(const DcmTagKey &tag, const std::string &where) const
{
    return refuse(CODE_TAG_MISSING, "has no " + header_tag_name(tag) + where + ".");
}

int
HeaderReader::invalid(const DcmTagKey &tag, const std::string &why) const
{
    return refuse(CODE_TAG_INVALID, "has an invalid " + header_tag_name(tag) + ": " + why + ".");
}

int
HeaderReader::read_uid(const Header &header, const DcmTagKey &tag, bool required, char (&uid)[DICOM_UID_SIZE]) const
{
    const std::string text = header_text(header, tag);
    if (text.empty())
        return required ? missing(tag) : 0;
    if (!header_is_uid(text))
        return refuse(CODE_UID_INVALID, "has an invalid " + header_tag_name(tag) +
                                            ": a UID must have 1 to 64 digits and dots, and begin with a digit.");
    header_copy(uid, text);
    return 0;
}

int
HeaderReader::read_identity(const Header &header, char (&sop)[DICOM_UID_SIZE], char (&study)[DICOM_UID_SIZE],
                            char (&series)[DICOM_UID_SIZE]) const
{
    if (const int rc = read_uid(header, DCM_SOPInstanceUID, true, sop))
        return rc;
    if (const int rc = read_uid(header, DCM_StudyInstanceUID, true, study))
        return rc;
    return read_uid(header, DCM_SeriesInstanceUID, true, series);
}

int
HeaderReader::read_number(const Header &header, const DcmTagKey &tag, int32_t low, int32_t high, int32_t *number) const
{
    if (!header_has(header, tag))
        return missing(tag);
    if (!header_integer(header, tag, number) || *number < low || *number > high)
        return invalid(tag, "not a whole number from " + std::to_string(low) + " to " + std::to_string(high));
    return 0;
}
