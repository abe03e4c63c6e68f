/* concepts.cc - see concepts.hh. */
#include "dicom/read/concepts.hh"

namespace
{

void
header_read_concept(const Header &item, Charset &charset, struct dicom_concept &read)
{
    const std::string value = header_text(item, DCM_CodeValue);
    const std::string scheme = header_text(item, DCM_CodingSchemeDesignator);
    const std::string meaning = header_text(item, DCM_CodeMeaning);
    if (value.empty() || scheme.empty() || meaning.empty())
        return;
    header_copy_name(read.value, charset_name(charset, value));
    header_copy_name(read.scheme, charset_name(charset, scheme));
    header_copy_name(read.meaning, charset_name(charset, meaning));
}

} // namespace

void
header_read_concepts(const Header &item, const DcmTagKey &type, Charset &charset,
                     struct dicom_concepts &concepts)
{
    const Header typed = item.item(type);
    header_read_concept(item.item(DCM_SegmentedPropertyCategoryCodeSequence), charset,
                        concepts.category);
    header_read_concept(typed, charset, concepts.type);
    header_read_concept(typed.item(DCM_SegmentedPropertyTypeModifierCodeSequence), charset,
                        concepts.modifier);
    header_read_concept(item.item(DCM_AnatomicRegionSequence), charset, concepts.region);
}
