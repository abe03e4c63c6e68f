#include "dicom/objects/sr/sr_walk.hh"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <utility>

namespace read_back
{

Code::Code(const DSRBasicCodedEntry &entry)
    : value(entry.CodeValue.c_str()), scheme(entry.CodingSchemeDesignator.c_str()), meaning(entry.CodeMeaning.c_str())
{
}

Code::Code(std::string its_value, std::string its_scheme, std::string its_meaning)
    : value(std::move(its_value)), scheme(std::move(its_scheme)), meaning(std::move(its_meaning))
{
}

Walk::Walk(DSRDocumentTree &tree) : tree_(tree)
{
    if (!tree_.gotoRoot())
        differ("there is no content");
}

const std::set<std::string> &
Walk::schemes() const
{
    return schemes_;
}

/* ------------------------------------------------------------------------------- values ---- */

void
Walk::expect(const DSRCodedEntryValue &code, const Code &expected, const char *what)
{
    const std::string value = code.getCodeValue().c_str();
    const std::string scheme = code.getCodingSchemeDesignator().c_str();
    const std::string meaning = code.getCodeMeaning().c_str();
    if (value != expected.value || scheme != expected.scheme || meaning != expected.meaning)
        differ("%s: %s is (%.32s, %.16s, %.64s) instead of (%.32s, %.16s, %.64s)", where.c_str(), what, value.c_str(),
               scheme.c_str(), meaning.c_str(), expected.value.c_str(), expected.scheme.c_str(),
               expected.meaning.c_str());
    schemes_.insert(scheme);
}

void
Walk::expect(const DSRNumericMeasurementValue &value, const char *name, double expected) const
{
    Float64 number = 0.0;
    if (value.getFloatingPointRepresentation(number).bad() || memcmp(&number, &expected, sizeof(number)) != 0)
        differ("%s: %s is %.17g instead of %.17g", where.c_str(), name, number, expected);
    OFBool good = OFFalse;
    const OFString &text = value.getNumericValue();
    const double decimal = OFStandard::atof(text.c_str(), &good);
    /* Sixteen characters may leave nine digits. DCMTK reads numbers below DBL_MIN as 0. */
    const double tolerance = std::max(1e-7 * std::fabs(expected), DBL_MIN);
    if (!good || text.size() > 16 || !(std::fabs(decimal - expected) <= tolerance))
        differ("%s: %s is written \"%.20s\" for %.17g", where.c_str(), name, text.c_str(), expected);
    if (!value.getNumericValueQualifier().isEmpty())
        differ("%s: %s has a value and a qualifier", where.c_str(), name);
}

/* ----------------------------------------------------------------------------- the cursor -- */

void
Walk::title(const Code &expected)
{
    expect(tree_.getCurrentContentItem().getConceptName(), expected, "the title");
}

DSRContentItem &
Walk::next(DSRTypes::E_RelationshipType relation, DSRTypes::E_ValueType type, const Code *concept)
{
    const char *name = concept ? concept->meaning.c_str() : "image";
    end_item();
    if (empty_ || (!fresh_ && !tree_.gotoNext()))
        differ("%s: %s is missing", where.c_str(), name);
    fresh_ = false;
    leaf_ = true;
    DSRContentItem &item = tree_.getCurrentContentItem();
    if (concept)
        expect(item.getConceptName(), *concept, "a concept name");
    if (item.getValueType() != type || item.getRelationshipType() != relation)
        differ("%s: %s has another relationship or type of value", where.c_str(), name);
    if (!concept && !item.getConceptName().isEmpty())
        differ("%s: an image has a concept name", where.c_str());
    return item;
}

void
Walk::down()
{
    fresh_ = tree_.goDown() != 0;
    empty_ = !fresh_;
    leaf_ = false;
}

void
Walk::up()
{
    end_item();
    if (fresh_ || (!empty_ && tree_.gotoNext()))
        differ("%s: an unexpected item follows", where.c_str());
    if (!empty_)
        tree_.goUp();
    empty_ = false;
}

void
Walk::end_item()
{
    if (leaf_ && tree_.goDown())
        differ("%s: an unexpected item follows", where.c_str());
    leaf_ = false;
}

/* -------------------------------------------------------------------------------- items ---- */

void
Walk::container(const Code &concept)
{
    next(DSRTypes::RT_contains, DSRTypes::VT_Container, &concept);
    down();
}

void
Walk::code(DSRTypes::E_RelationshipType relation, const Code &concept, const Code &expected)
{
    DSRContentItem &item = next(relation, DSRTypes::VT_Code, &concept);
    expect(*item.getCodeValuePtr(), expected, concept.meaning.c_str());
}

void
Walk::number(DSRTypes::E_RelationshipType relation, const Code &concept, double expected, const Code &unit)
{
    DSRContentItem &item = next(relation, DSRTypes::VT_Num, &concept);
    expect(*item.getNumericValuePtr(), concept.meaning.c_str(), expected);
    expect(item.getNumericValuePtr()->getMeasurementUnit(), unit, "a unit");
}

void
Walk::path(const Code &concept, const double (&expected)[2][3], const std::string &frame_of_reference)
{
    DSRSpatialCoordinates3DValue *value =
        next(DSRTypes::RT_inferredFrom, DSRTypes::VT_SCoord3D, &concept).getSpatialCoordinates3DPtr();
    if (value->getGraphicType() != DSRTypes::GT3_Polyline || value->getGraphicDataList().getNumberOfItems() != 2)
        differ("%s: the ends of a length are not two points", where.c_str());
    if (value->getFrameOfReferenceUID().c_str() != frame_of_reference)
        differ("%s: the ends of a length are in another frame of reference", where.c_str());
    for (size_t i = 0; i < 2; i++) {
        const DSRGraphicData3DItem &point = value->getGraphicDataList().getItem(i + 1);
        const float found[3] = {point.XCoord, point.YCoord, point.ZCoord};
        for (size_t axis = 0; axis < 3; axis++) {
            const auto wanted = static_cast<float>(expected[i][axis]);
            if (memcmp(&found[axis], &wanted, sizeof(wanted)) != 0)
                differ("%s: an end of a length is at %.9g instead of %.9g", where.c_str(),
                       static_cast<double>(found[axis]), static_cast<double>(wanted));
        }
    }
}

void
Walk::string(DSRTypes::E_RelationshipType relation, DSRTypes::E_ValueType type, const Code &concept,
             const std::string &expected)
{
    const DSRContentItem &item = next(relation, type, &concept);
    const std::string value = item.getStringValue().c_str();
    if (value != expected)
        differ("%s: %s is \"%.64s\" instead of \"%.64s\"", where.c_str(), concept.meaning.c_str(), value.c_str(),
               expected.c_str());
}

void
Walk::text(DSRTypes::E_RelationshipType relation, const Code &concept, const std::string &expected)
{
    string(relation, DSRTypes::VT_Text, concept, expected);
}

void
Walk::uid(DSRTypes::E_RelationshipType relation, const Code &concept, const std::string &expected)
{
    string(relation, DSRTypes::VT_UIDRef, concept, expected);
}

void
Walk::composite(const Code *concept, const Reference &expected)
{
    DSRContentItem &item = next(DSRTypes::RT_contains, DSRTypes::VT_Composite, concept);
    DSRCompositeReferenceValue &reference = *item.getCompositeReferencePtr();
    if (reference.getSOPClassUID() != expected.class_uid.c_str() ||
        reference.getSOPInstanceUID() != expected.instance_uid.c_str())
        differ("%s: it refers to %.64s instead of %.64s", where.c_str(), reference.getSOPInstanceUID().c_str(),
               expected.instance_uid.c_str());
}

void
Walk::image(const Code *concept, const Reference &expected)
{
    DSRContentItem &item = next(DSRTypes::RT_contains, DSRTypes::VT_Image, concept);
    DSRImageReferenceValue &reference = *item.getImageReferencePtr();
    if (reference.getSOPClassUID() != expected.class_uid.c_str() ||
        reference.getSOPInstanceUID() != expected.instance_uid.c_str())
        differ("%s: it refers to %.64s instead of %.64s", where.c_str(), reference.getSOPInstanceUID().c_str(),
               expected.instance_uid.c_str());
    const size_t segments = expected.segment == 0 ? 0 : 1;
    if (reference.getSegmentList().getNumberOfItems() != segments ||
        reference.getFrameList().getNumberOfItems() != expected.frames.size())
        differ("%s: it refers to other segments or frames", where.c_str());
    if (segments == 1 && !reference.getSegmentList().isElement(expected.segment))
        differ("%s: it does not refer to segment %u", where.c_str(), static_cast<unsigned>(expected.segment));
    for (int32_t frame : expected.frames) {
        if (!reference.getFrameList().isElement(frame))
            differ("%s: it does not refer to frame %d", where.c_str(), frame);
    }
}

} // namespace read_back
