#include "dicom/objects/sr/sr_walk.hh"

#include "dicom/value/value.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <utility>

namespace read_back
{

namespace
{

/* Returns the text padded to an even length (PS3.5 6.2). */
std::string
sr_padded(const std::string &text, char padding)
{
    return text.size() % 2 == 0 ? text : text + padding;
}

std::string
sr_trimmed(const std::string &text)
{
    return text.substr(0, text.find_last_not_of(' ') + 1);
}

uint64_t
sr_bits(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

} // namespace

/* A Code Value has at most 16 characters (PS3.3 8.1). */
Code::Code(const DSRBasicCodedEntry &entry)
    : Code(entry.CodeValue.c_str(), entry.CodingSchemeDesignator.c_str(), entry.CodeMeaning.c_str())
{
}

Code::Code(std::string its_value, std::string its_scheme, std::string its_meaning)
    : value(std::move(its_value)), scheme(std::move(its_scheme)), meaning(std::move(its_meaning)),
      is_long(value.size() > 16)
{
}

Walk::Walk(const char *path) : file_(path)
{
    WrittenFile::Element found = {};
    const uint32_t content = header_tag_number(DCM_ContentSequence);
    while (file_.next(found) && found.tag < content)
        file_.skip(found.length);
    if (found.tag != content || memcmp(found.header + 4, "SQ\0\0", 4) != 0)
        differ("there is no content");
    left_.push_back(found.length);
}

const std::set<std::string> &
Walk::schemes() const
{
    return schemes_;
}

/* ----------------------------------------------------------------------------- elements ---- */

void
Walk::take(void *destination, size_t size)
{
    if (size > left_.back())
        differ("%s: %s is not complete", where.c_str(), name_.c_str());
    left_.back() -= static_cast<uint32_t>(size);
    file_.read(destination, size);
}

uint32_t
Walk::element(const DcmTagKey &tag, const char *vr)
{
    uint8_t header[12];
    take(header, 8);
    const uint32_t found = value_tag(header, false);
    const bool is_item = tag == DCM_Item;
    if (found != header_tag_number(tag) || (!is_item && memcmp(header + 4, vr, 2) != 0))
        differ("%s: %s has (%04X,%04X) %.2s instead of (%04X,%04X) %s", where.c_str(), name_.c_str(), found >> 16,
               found & 0xFFFF, reinterpret_cast<const char *>(header + 4), tag.getGroup(), tag.getElement(), vr);
    uint32_t length = is_item ? value_u32(header + 4, false) : value_u16(header + 6, false);
    if (!is_item && value_vr_form(vr) == VALUE_VR_LONG) {
        if (length != 0)
            differ("%s: %s has reserved bytes that are not 0", where.c_str(), name_.c_str());
        take(header + 8, 4);
        length = value_u32(header + 8, false);
    }
    if (length > left_.back())
        differ("%s: %s has a length of %u", where.c_str(), name_.c_str(), length);
    return length;
}

void
Walk::open(const DcmTagKey &tag)
{
    const uint32_t length = element(tag, "SQ");
    left_.back() -= length;
    left_.push_back(length);
}

void
Walk::close()
{
    if (left_.back() != 0)
        differ("%s: an unexpected element or item follows %s", where.c_str(), name_.c_str());
    left_.pop_back();
}

void
Walk::open_only_item(const DcmTagKey &tag)
{
    open(tag);
    open(DCM_Item);
}

void
Walk::close_only_item()
{
    close();
    close();
}

/* ------------------------------------------------------------------------------- values ---- */

std::string
Walk::value(const DcmTagKey &tag, const char *vr)
{
    std::string text(element(tag, vr), '\0');
    take(text.data(), text.size());
    return text;
}

void
Walk::expect(const DcmTagKey &tag, const char *vr, const std::string &expected, const char *what)
{
    const std::string text = value(tag, vr);
    if (text != sr_padded(expected, strcmp(vr, "UI") == 0 ? '\0' : ' '))
        differ("%s: %s is \"%.64s\" instead of \"%.64s\"", where.c_str(), what, text.c_str(), expected.c_str());
}

void
Walk::expect(const DcmTagKey &tag, const Code &expected, const char *what)
{
    open_only_item(tag);
    std::string found;
    if (!expected.is_long)
        found = value(DCM_CodeValue, "SH");
    const std::string scheme = value(DCM_CodingSchemeDesignator, "SH");
    const std::string meaning = value(DCM_CodeMeaning, "LO");
    if (expected.is_long)
        found = value(DCM_LongCodeValue, "UC");
    close_only_item();
    if (found != sr_padded(expected.value, ' ') || scheme != sr_padded(expected.scheme, ' ') ||
        meaning != sr_padded(expected.meaning, ' '))
        differ("%s: %s is (%.32s, %.16s, %.64s) instead of (%.32s, %.16s, %.64s)", where.c_str(), what, found.c_str(),
               scheme.c_str(), meaning.c_str(), expected.value.c_str(), expected.scheme.c_str(),
               expected.meaning.c_str());
    schemes_.insert(expected.scheme);
}

/* ----------------------------------------------------------------------------- the cursor -- */

void
Walk::begin_item(const char *name)
{
    end_item();
    if (left_.back() == 0)
        differ("%s: %s is missing", where.c_str(), name);
    name_ = name;
    open(DCM_Item);
    leaf_ = true;
}

void
Walk::end_item()
{
    if (leaf_)
        close();
    leaf_ = false;
}

/* Compares the name first, so that the message names the item. */
void
Walk::head(DSRTypes::E_RelationshipType relation, DSRTypes::E_ValueType type, const Code *concept)
{
    const std::string its_relation = sr_trimmed(value(DCM_RelationshipType, "CS"));
    const std::string its_type = sr_trimmed(value(DCM_ValueType, "CS"));
    if (concept)
        expect(DCM_ConceptNameCodeSequence, *concept, "a concept name");
    if (its_relation != DSRTypes::relationshipTypeToDefinedTerm(relation) ||
        its_type != DSRTypes::valueTypeToDefinedTerm(type))
        differ("%s: %s has another relationship or type of value", where.c_str(), name_.c_str());
}

void
Walk::down()
{
    leaf_ = false;
    if (left_.back() > 0)
        open(DCM_ContentSequence);
    else
        left_.push_back(0);
}

void
Walk::up()
{
    end_item();
    close();
    leaf_ = true;
}

void
Walk::finish()
{
    end_item();
    close();
    if (!file_.at_end())
        differ("an unexpected element follows its content");
}

/* -------------------------------------------------------------------------------- items ---- */

void
Walk::container(const Code &concept)
{
    begin_item(concept.meaning.c_str());
    head(DSRTypes::RT_contains, DSRTypes::VT_Container, &concept);
    expect(DCM_ContinuityOfContent, "CS", "SEPARATE", "ContinuityOfContent");
    down();
}

void
Walk::code(DSRTypes::E_RelationshipType relation, const Code &concept, const Code &expected)
{
    begin_item(concept.meaning.c_str());
    head(relation, DSRTypes::VT_Code, &concept);
    expect(DCM_ConceptCodeSequence, expected, concept.meaning.c_str());
}

void
Walk::number(DSRTypes::E_RelationshipType relation, const Code &concept, double expected, const Code &unit)
{
    begin_item(concept.meaning.c_str());
    head(relation, DSRTypes::VT_Num, &concept);
    open_only_item(DCM_MeasuredValueSequence);
    expect(DCM_MeasurementUnitsCodeSequence, unit, "a unit");
    const std::string binary = value(DCM_FloatingPointValue, "FD");
    const std::string text = sr_trimmed(value(DCM_NumericValue, "DS"));
    close_only_item();
    uint8_t bytes[sizeof(double)] = {};
    binary.copy(reinterpret_cast<char *>(bytes), sizeof(bytes));
    const uint64_t bits = static_cast<uint64_t>(value_u32(bytes + 4, false)) << 32 | value_u32(bytes, false);
    if (binary.size() != sizeof(bytes) || bits != sr_bits(expected))
        differ("%s: %s has not the bits of %.17g", where.c_str(), name_.c_str(), expected);
    OFBool good = OFFalse;
    const double decimal = OFStandard::atof(text.c_str(), &good);
    /* Sixteen characters may leave nine digits. DCMTK reads numbers below DBL_MIN as 0. */
    const double tolerance = std::max(1e-7 * std::fabs(expected), DBL_MIN);
    if (!good || text.size() > 16 || !(std::fabs(decimal - expected) <= tolerance))
        differ("%s: %s is written \"%.20s\" for %.17g", where.c_str(), name_.c_str(), text.c_str(), expected);
}

void
Walk::path(const Code &concept, const double (&expected)[2][3], const std::string &frame_of_reference)
{
    begin_item(concept.meaning.c_str());
    head(DSRTypes::RT_inferredFrom, DSRTypes::VT_SCoord3D, &concept);
    const std::string points = value(DCM_GraphicData, "FL");
    if (points.size() != 6 * sizeof(float))
        differ("%s: the ends of a length are not two points", where.c_str());
    for (size_t i = 0; i < 6; i++) {
        uint8_t bytes[sizeof(float)];
        points.copy(reinterpret_cast<char *>(bytes), sizeof(bytes), i * sizeof(bytes));
        const uint32_t bits = value_u32(bytes, false);
        float found = 0;
        memcpy(&found, &bits, sizeof(found));
        const auto wanted = static_cast<float>(expected[i / 3][i % 3]);
        if (memcmp(&found, &wanted, sizeof(wanted)) != 0)
            differ("%s: an end of a length is at %.9g instead of %.9g", where.c_str(), static_cast<double>(found),
                   static_cast<double>(wanted));
    }
    expect(DCM_GraphicType, "CS", DSRTypes::graphicType3DToEnumeratedValue(DSRTypes::GT3_Polyline),
           "the type of the ends of a length");
    expect(DCM_ReferencedFrameOfReferenceUID, "UI", frame_of_reference, "the frame of reference of a length");
}

void
Walk::text(DSRTypes::E_RelationshipType relation, const Code &concept, const std::string &expected)
{
    begin_item(concept.meaning.c_str());
    head(relation, DSRTypes::VT_Text, &concept);
    expect(DCM_TextValue, "UT", expected, concept.meaning.c_str());
}

void
Walk::uid(DSRTypes::E_RelationshipType relation, const Code &concept, const std::string &expected)
{
    begin_item(concept.meaning.c_str());
    head(relation, DSRTypes::VT_UIDRef, &concept);
    expect(DCM_UID, "UI", expected, concept.meaning.c_str());
}

void
Walk::refer(const Reference &expected)
{
    open_only_item(DCM_ReferencedSOPSequence);
    expect(DCM_ReferencedSOPClassUID, "UI", expected.class_uid, "the class of a referenced object");
    const std::string instance = value(DCM_ReferencedSOPInstanceUID, "UI");
    if (instance != sr_padded(expected.instance_uid, '\0'))
        differ("%s: it refers to %.64s instead of %.64s", where.c_str(), instance.c_str(),
               expected.instance_uid.c_str());
    std::string frames;
    for (int32_t frame : expected.frames)
        frames += (frames.empty() ? "" : "\\") + std::to_string(frame);
    if (!frames.empty())
        expect(DCM_ReferencedFrameNumber, "IS", frames, "the list of frames");
    if (expected.segment != 0) {
        const std::string segment = value(DCM_ReferencedSegmentNumber, "US");
        uint8_t bytes[2] = {};
        segment.copy(reinterpret_cast<char *>(bytes), sizeof(bytes));
        if (segment.size() != sizeof(bytes) || value_u16(bytes, false) != expected.segment)
            differ("%s: it does not refer to segment %u", where.c_str(), static_cast<unsigned>(expected.segment));
    }
    close_only_item();
}

/* The tag of the reference is below those of the head. */
void
Walk::reference(DSRTypes::E_ValueType type, const Code *concept, const Reference &expected)
{
    begin_item(concept ? concept->meaning.c_str() : "a reference");
    refer(expected);
    head(DSRTypes::RT_contains, type, concept);
}

void
Walk::composite(const Code *concept, const Reference &expected)
{
    reference(DSRTypes::VT_Composite, concept, expected);
}

void
Walk::image(const Code *concept, const Reference &expected)
{
    reference(DSRTypes::VT_Image, concept, expected);
}

} // namespace read_back
