/*
 * attributes.cc - attributes by keyword or tag, as in routing rules: their entries in the
 * dictionary, and their values in a file.
 */
#include "dicom/read/image/groups.hh"
#include "dicom/value/charset.hh"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace
{

struct RequestedAttribute {
    DcmTagKey tag;
    std::string creator; /* "" of a public attribute */
};

bool
is_private(const DcmTagKey &tag)
{
    return tag.getGroup() & 1;
}

/* Finds "(0018,1030)" or "ProtocolName". Returns false for any other text. */
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

/* Returns whether values are text, or numbers that DCMTK converts to text. */
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

std::vector<RequestedAttribute>
requested_parse(const char *text)
{
    std::vector<RequestedAttribute> requested;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const size_t tab = std::min(line.find('\t'), line.size());
        RequestedAttribute attribute;
        if (!attribute_find(line.substr(0, tab).c_str(), attribute.tag))
            attribute.tag = DcmTagKey(0, 0);
        if (tab < line.size())
            attribute.creator = line.substr(tab + 1);
        requested.push_back(attribute);
    }
    return requested;
}

/* Finds the tags to keep, ascending, including places in enhanced images; private tags for any
 * block, as scan_wanted requires. */
void
requested_tags(const std::vector<RequestedAttribute> &requested, std::vector<uint32_t> &tags,
               std::vector<uint32_t> &privates)
{
    tags = {header_tag_number(DCM_SpecificCharacterSet)};
    for (const RequestedAttribute &attribute : requested)
        if (is_private(attribute.tag))
            privates.push_back(header_tag_number(attribute.tag) & 0xFFFF00FF);
        else
            tags.push_back(header_tag_number(attribute.tag));
    const std::vector<uint32_t> groups = groups_wanted(tags);
    tags.insert(tags.end(), groups.begin(), groups.end());
    std::sort(tags.begin(), tags.end());
    std::sort(privates.begin(), privates.end());
}

/* Makes one line: each value without its padding, spaces for line breaks. Returns false if it is
 * not text. */
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
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c != '\x1B' && !(c & '\x80'); });
    utf8 = text;
    return plain || charset.decode(text, utf8);
}

/* Returns the values of one element, or of one element from each item of a group. */
std::string
value_format(const std::vector<DcmElement *> &elements, const DcmTagKey &tag, Charset &charset)
{
    std::string told;
    bool identity = false;
    for (DcmElement *element : elements) {
        const bool unknown = element->ident() == EVR_UN || element->ident() == EVR_UNKNOWN;
        std::string utf8;
        std::string line;
        if (!element->isLeaf() || element->getLength() > LIMIT_TEXT_BYTES ||
            !(unknown || is_comparable(element->ident())) || !value_decode(*element, charset, utf8) ||
            !value_tidy(utf8, line))
            return {ATTRIBUTE_TOLD_UNREAD};
        told += (element == elements.front() ? "" : "\\") + line;
        /* The patient module, names, and the accession number identify a patient. */
        identity |= tag.getGroup() == 0x0010 || element->ident() == EVR_PN || tag == DCM_AccessionNumber;
    }
    if (told.find_first_not_of('\\') == std::string::npos)
        return {ATTRIBUTE_TOLD_ABSENT};
    if (told.size() > LIMIT_RULE_BYTES)
        return {ATTRIBUTE_TOLD_UNREAD};
    return static_cast<char>(identity ? ATTRIBUTE_TOLD_IDENTITY : ATTRIBUTE_TOLD_VALUE) + told;
}

/* Reads values from a file, frame by frame. */
class ValueReader
{
  public:
    ValueReader(const std::vector<RequestedAttribute> &requested, const struct scan &scan, DcmDataset &dataset)
        : requested_(requested), scan_(scan), dataset_(dataset), charset_(header_character_sets(dataset_))
    {
        DcmSequenceOfItems *items = dataset_.sequence(DCM_SharedFunctionalGroupsSequence);
        if (items && items->card() > 0)
            shared_ = Groups(*items->getItem(0), "all frames");
    }

    std::string tell(int32_t frame)
    {
        DcmDataset item;
        if (frame < scan_.frame_count && !header_parse_separate(scan_, frame, item))
            throw std::runtime_error("a frame's functional groups");
        const Groups own(item, "frame " + std::to_string(frame + 1));
        std::string told;
        for (const RequestedAttribute &attribute : requested_)
            told += format_one(attribute, own) + "\n";
        return told;
    }

  private:
    std::string format_one(const RequestedAttribute &attribute, const Groups &own)
    {
        const bool in_groups = !is_private(attribute.tag);
        const GroupAttribute found = in_groups ? groups_find(own, shared_, attribute.tag) : GroupAttribute();
        if (!found.elements.empty())
            return value_format(found.elements, attribute.tag, charset_) + "\t" + found.where;

        const struct private_attribute sought {
            attribute.tag.getGroup(),
                static_cast<uint8_t>(attribute.tag.getElement() & 0xFF), attribute.creator.c_str(), EVR_UN
        };

        const DcmTagKey tag = in_groups ? attribute.tag : header_private(dataset_, sought);
        DcmElement *element = dataset_.find(tag);
        if (!element || element->isEmpty())
            return {ATTRIBUTE_TOLD_ABSENT};
        return value_format({element}, tag, charset_);
    }

    const std::vector<RequestedAttribute> &requested_;
    const struct scan &scan_;
    const Header dataset_;
    Charset charset_;
    Groups shared_;
};

} // namespace

enum attribute_kind
dicom_attribute_kind(const char *name)
{
    DcmTagKey tag;
    if (!attribute_find(name, tag) || tag.getGroup() < 8 || tag.getGroup() >= 0xFFFE)
        return ATTRIBUTE_UNKNOWN;
    if (is_private(tag))
        return tag.getElement() >= 0x1000 ? ATTRIBUTE_PRIVATE : ATTRIBUTE_UNKNOWN;
    const DcmDataDictionary &dictionary = dcmDataDict.rdlock();
    const bool known = dictionary.findEntry(tag, nullptr) != nullptr;
    dcmDataDict.rdunlock();
    if (tag.getElement() == 0 || !known)
        return ATTRIBUTE_UNKNOWN;
    const DcmEVR vr = DcmTag(tag).getEVR();
    if (vr == EVR_SQ)
        return ATTRIBUTE_SEQUENCE;
    return is_comparable(vr) ? ATTRIBUTE_VALUE : ATTRIBUTE_BYTES;
}

int
dicom_read_values(const struct dicom_value_request *request, char **values, struct error *error)
{
    std::fill_n(values, request->frame_count, nullptr);
    const int failed = header_guard(request->path, error, [&] {
        const std::vector<RequestedAttribute> requested = requested_parse(request->attributes);
        std::vector<uint32_t> tags, privates;
        requested_tags(requested, tags, privates);
        /* The limit for all elements together: a value that was not kept would seem absent. */
        const uint32_t most = static_cast<uint32_t>(LIMIT_KEPT_MIB) << 20;
        struct scan_wanted wanted = scan_wanted_of(tags.data(), tags.size(), most);
        wanted.nested = true;
        wanted.private_tags = privates.data();
        wanted.private_count = privates.size();
        wanted.max_private_bytes = most;
        HeaderFile file;
        const int rc = file.read(request->path, wanted, error);
        if (rc)
            return rc;
        ValueReader reader(requested, file.scan, file.dataset);
        for (size_t i = 0; i < request->frame_count; i++) {
            values[i] = strdup(reader.tell(request->frames[i]).c_str());
            if (!values[i])
                throw std::bad_alloc();
        }
        return 0;
    });
    for (size_t i = 0; i < request->frame_count && failed; i++) {
        free(values[i]);
        values[i] = nullptr;
    }
    return failed;
}
