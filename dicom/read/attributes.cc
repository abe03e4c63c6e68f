/*
 * attributes.cc - attributes by keyword or tag, as rules name them: what the dictionary says of them,
 * and their values in a file.
 */
#include "dicom/read/header.hh"
#include "dicom/value/charset.hh"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace
{

struct AskedAttribute {
    DcmTagKey tag;
    std::string creator; /* "" of a public one */
};

bool
is_private(const DcmTagKey &tag)
{
    return tag.getGroup() & 1;
}

/* "(0018,1030)" or "ProtocolName"; false where it is neither. */
bool
attribute_find(const char *name, DcmTagKey &tag)
{
    unsigned group;
    unsigned element;
    int end = 0;
    if (name[0] == '(') {
        if (sscanf(name, "(%4x,%4x)%n", &group, &element, &end) != 2 || end != 11 || name[end])
            return false;
        tag = DcmTagKey(static_cast<Uint16>(group), static_cast<Uint16>(element));
        return true;
    }
    DcmTag found;
    if (!isalpha(static_cast<unsigned char>(name[0])) || strchr(name, ',') ||
        !header_is_good(DcmTag::findTagFromName(name, found)))
        return false;
    tag = found;
    return true;
}

bool
attribute_is_known(const DcmTagKey &tag)
{
    const DcmDataDictionary &dictionary = dcmDataDict.rdlock();
    const bool known = dictionary.findEntry(tag, nullptr) != nullptr;
    dcmDataDict.rdunlock();
    return known;
}

/* Text, or numbers that DCMTK makes text of. */
bool
is_comparable(DcmEVR vr)
{
    switch (vr) {
    case EVR_FD:
    case EVR_FL:
    case EVR_SL:
    case EVR_SS:
    case EVR_SV:
    case EVR_UL:
    case EVR_US:
    case EVR_UV:
    case EVR_xs:
        return true;
    default:
        return DcmVR(vr).isaString();
    }
}

/* Who somebody is: the patient module, names, and the number of the request. */
bool
is_identity(const DcmTagKey &tag, DcmElement &element)
{
    return tag.getGroup() == 0x0010 || element.ident() == EVR_PN || tag == DCM_AccessionNumber;
}

std::vector<AskedAttribute>
asked_parse(const char *text)
{
    std::vector<AskedAttribute> asked;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const size_t tab = std::min(line.find('\t'), line.size());
        AskedAttribute attribute;
        if (!attribute_find(line.substr(0, tab).c_str(), attribute.tag))
            attribute.tag = DcmTagKey(0, 0);
        if (tab < line.size())
            attribute.creator = line.substr(tab + 1);
        asked.push_back(attribute);
    }
    return asked;
}

/* Ascending: the public ones, or the private ones in whatever block, as scan_wanted has them. */
std::vector<uint32_t>
asked_tags(const std::vector<AskedAttribute> &asked, bool privates)
{
    std::vector<uint32_t> tags;
    if (!privates)
        tags.push_back(0x00080005);
    for (const AskedAttribute &attribute : asked) {
        const uint32_t group = static_cast<uint32_t>(attribute.tag.getGroup()) << 16;
        const uint32_t element = attribute.tag.getElement();
        if (is_private(attribute.tag) == privates)
            tags.push_back(group | (privates ? element & 0xFF : element));
    }
    std::sort(tags.begin(), tags.end());
    return tags;
}

/* One line: each value without its padding, a blank for what ends a line. False: it is no text. */
bool
value_tidy(const std::string &utf8, std::string &line)
{
    line.clear();
    for (size_t start = 0; start <= utf8.size();) {
        const size_t end = std::min(utf8.find('\\', start), utf8.size());
        line += (start ? "\\" : "") + header_trimmed(utf8.substr(start, end - start));
        start = end + 1;
    }
    for (char &c : line)
        if (c == '\r' || c == '\n' || c == '\f' || c == '\t')
            c = ' ';
    for (size_t i = 0; i < line.size();) {
        const size_t length = line[i] ? text_line_length(line.c_str() + i) : 0;
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

bool
value_decode(DcmElement &element, Charset &charset, std::string &utf8)
{
    const std::string text = header_whole_text(element);
    const bool plain =
        std::all_of(text.begin(), text.end(), [](char c) { return c != '\x1B' && !(c & '\x80'); });
    utf8 = text;
    return plain || charset.decode(text, utf8);
}

std::string
value_tell(const Header &header, const DcmTagKey &tag, Charset &charset)
{
    DcmElement *element = header.find(tag);
    if (!element || element->isEmpty())
        return {ATTRIBUTE_TOLD_ABSENT};
    const bool unknown = element->ident() == EVR_UN || element->ident() == EVR_UNKNOWN;
    std::string utf8;
    std::string line;
    if (!element->isLeaf() || element->getLength() > LIMIT_TEXT_BYTES ||
        !(unknown || is_comparable(element->ident())) || !value_decode(*element, charset, utf8) ||
        !value_tidy(utf8, line) || line.size() > LIMIT_RULE_BYTES)
        return {ATTRIBUTE_TOLD_UNREAD};
    if (line.find_first_not_of('\\') == std::string::npos)
        return {ATTRIBUTE_TOLD_ABSENT};
    const char how = is_identity(tag, *element) ? ATTRIBUTE_TOLD_IDENTITY : ATTRIBUTE_TOLD_VALUE;
    return how + line;
}

DcmTagKey
asked_find(const Header &header, const AskedAttribute &attribute)
{
    if (!is_private(attribute.tag))
        return attribute.tag;
    return header_private(header, {attribute.tag.getGroup(),
                                   static_cast<uint8_t>(attribute.tag.getElement() & 0xFF),
                                   attribute.creator.c_str(), EVR_UN});
}

int
values_read(const char *path, const char *asked_text, char **values, struct error *error)
{
    const std::vector<AskedAttribute> asked = asked_parse(asked_text);
    const std::vector<uint32_t> tags = asked_tags(asked, false);
    const std::vector<uint32_t> privates = asked_tags(asked, true);
    struct stream stream;
    int rc = header_open(-1, path, &stream, error);
    if (rc)
        return rc;
    const std::unique_ptr<struct stream, void (*)(struct stream *)> close(&stream, stream_close);
    struct scan scan = {};
    const std::unique_ptr<struct scan, void (*)(struct scan *)> release(&scan, scan_release);
    /* As long as they may be: what were not kept would seem not to be there. */
    const uint32_t most = static_cast<uint32_t>(LIMIT_KEPT_MIB) << 20;
    struct scan_wanted wanted = scan_wanted_of(tags.data(), tags.size(), most);
    wanted.private_tags = privates.data();
    wanted.private_count = privates.size();
    wanted.most_private_bytes = most;
    DcmDataset dataset;
    rc = header_scan(&stream, path, wanted, &scan, dataset, error);
    if (rc)
        return rc;
    const Header header(dataset);
    Charset charset(header_character_sets(header));
    std::string told;
    for (const AskedAttribute &attribute : asked)
        told += value_tell(header, asked_find(header, attribute), charset) + "\n";
    *values = strdup(told.c_str());
    if (!*values)
        throw std::bad_alloc();
    return 0;
}

} // namespace

enum attribute_kind
dicom_attribute_kind(const char *name)
{
    DcmTagKey tag;
    if (!attribute_find(name, tag) || tag.getGroup() < 8 || tag.getGroup() >= 0xFFFE)
        return ATTRIBUTE_UNKNOWN;
    if (is_private(tag))
        return tag.getElement() >= 0x1000 ? ATTRIBUTE_PRIVATE : ATTRIBUTE_UNKNOWN;
    if (tag.getElement() == 0 || !attribute_is_known(tag))
        return ATTRIBUTE_UNKNOWN;
    const DcmEVR vr = DcmTag(tag).getEVR();
    if (vr == EVR_SQ)
        return ATTRIBUTE_SEQUENCE;
    return is_comparable(vr) ? ATTRIBUTE_VALUE : ATTRIBUTE_BYTES;
}

int
dicom_read_values(const char *path, const char *asked, char **values, struct error *error)
{
    *values = nullptr;
    return header_guard(path, error, [&] { return values_read(path, asked, values, error); });
}
