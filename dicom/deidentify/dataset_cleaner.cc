/*
 * dataset_cleaner.cc - see dataset_cleaner.hh.
 *
 * Table E.1-1 names the attributes that may identify a person. Other attributes stay, if their value has the form of
 * their VR and holds no text of the patient or of another person that the object names (Identifiers). Elements that the
 * dictionary does not have are removed.
 */
#include "dicom/deidentify/dataset_cleaner.hh"

#include <cstring>

namespace
{

constexpr int depth_max = 32; /* deeper items are removed */

const ProfileRow rows[] = {
#define PROFILED(tag, action, options) {tag, Profile::action, options},
#include "dicom/deidentify/attributes.def"
};

const ProfileRow *
find_row(uint32_t tag)
{
    const ProfileRow *row = std::lower_bound(std::begin(rows), std::end(rows), tag,
                                             [](const ProfileRow &each, uint32_t key) { return each.tag < key; });
    return row != std::end(rows) && row->tag == tag ? row : nullptr;
}

/* Rows of PS3.15 table E.3.10-1 that hold only numbers: those that SUV and diffusion weighting need. Each was compared with
 * the transcription of the table in cati-neuroimaging/deidentification (config/safe_private.tsv). */
const struct {
    uint16_t group;
    uint8_t element;
    const char *creator;
} safe_private[] = {
    {0x7053, 0x00, "Philips PET Private Group"}, /* SUV Factor */
    {0x7053, 0x09, "Philips PET Private Group"}, /* Activity Concentration Factor */
    {0x2001, 0x03, "Philips Imaging DD 001"},    /* Diffusion B-Factor */
    {0x2005, 0x0D, "Philips MR Imaging DD 001"}, /* Scale Intercept */
    {0x2005, 0x0E, "Philips MR Imaging DD 001"}, /* Scale Slope */
    {0x0019, 0x0C, "SIEMENS MR HEADER"},         /* B Value */
    {0x0019, 0x0E, "SIEMENS MR HEADER"},         /* Diffusion Gradient Direction */
    {0x0043, 0x39, "GEMS_PARM_01"},              /* the first value is the B Value */
};

/* Attributes without a rule with text that a person writes, by the end of their keyword, for example Segment Label. */
const char *const written[] = {"Label",   "Description",   "Explanation",
                               "Comment", "AlgorithmName", "HangingProtocolName"};

/* UIDs that name a vocabulary. */
const DcmTagKey vocabularies[] = {DCM_CodingSchemeUID, DCM_ContextGroupExtensionCreatorUID, DCM_ContextUID,
                                  DCM_MappingResourceUID};

/* Bulk data that is no text. */
const DcmTagKey bulk[] = {DCM_PixelData,
                          DCM_FloatPixelData,
                          DCM_DoubleFloatPixelData,
                          DCM_ExtendedOffsetTable,
                          DCM_ExtendedOffsetTableLengths,
                          DCM_RedPaletteColorLookupTableData,
                          DCM_GreenPaletteColorLookupTableData,
                          DCM_BluePaletteColorLookupTableData,
                          DCM_LUTData};

/* Sequences with the action D whose items stay, cleaned. Others are removed. */
const DcmTagKey dummy_sequences[] = {DCM_ContentSequence, DCM_VerifyingObserverSequence};

/* Identifiers of the patient, besides names and the birth date. */
const DcmTagKey identifiers[] = {DCM_PatientID,      DCM_AccessionNumber, DCM_RETIRED_OtherPatientIDs,
                                 DCM_PatientAddress, DCM_AdmissionID,     DCM_PatientTelephoneNumbers};

/* Numbers of orders and visits. Some sites use words or small numbers, which identify no patient. */
const DcmTagKey order_numbers[] = {DCM_RETIRED_MedicalRecordLocator,
                                   DCM_RETIRED_InsurancePlanIdentification,
                                   DCM_StudyID,
                                   DCM_RequestedProcedureID,
                                   DCM_ScheduledProcedureStepID,
                                   DCM_PerformedProcedureStepID,
                                   DCM_ServiceEpisodeID,
                                   DCM_PlacerOrderNumberImagingServiceRequest,
                                   DCM_FillerOrderNumberImagingServiceRequest,
                                   DCM_RETIRED_PlacerOrderNumberProcedure,
                                   DCM_RETIRED_FillerOrderNumberProcedure};

template <size_t size>
bool
is_among(const DcmTagKey (&tags)[size], const DcmTagKey &tag)
{
    return std::find(std::begin(tags), std::end(tags), tag) != std::end(tags);
}

/* Returns the values of a text, trimmed. */
std::vector<std::string>
values_of(const std::string &text)
{
    std::vector<std::string> values;
    for (size_t start = 0; start <= text.size();) {
        const size_t end = std::min(text.find('\\', start), text.size());
        values.push_back(header_trimmed(text.substr(start, end - start)));
        start = end + 1;
    }
    return values;
}

std::string
text_of(DcmElement &element)
{
    OFString text;
    if (!header_is_good(element.getOFStringArray(text, OFFalse)))
        return "";
    return {text.c_str(), text.size()};
}

void
put_text(DcmElement &element, const std::string &text)
{
    if (!header_is_good(element.putOFStringArray(OFString(text.c_str(), text.size()))))
        throw std::bad_alloc();
}

void
insert_text(DcmItem &item, const DcmTagKey &tag, const std::string &text)
{
    if (!header_is_good(item.putAndInsertOFStringArray(DcmTag(tag), OFString(text.c_str(), text.size()))))
        throw std::bad_alloc();
}

bool
is_text(DcmEVR vr)
{
    return vr == EVR_LO || vr == EVR_SH || vr == EVR_LT || vr == EVR_ST || vr == EVR_UT || vr == EVR_UC || vr == EVR_PN;
}

/* Returns whether the VR is for texts of several words. */
bool
is_long_text(DcmEVR vr)
{
    return vr == EVR_LT || vr == EVR_ST || vr == EVR_UT || vr == EVR_UC;
}

bool
is_short_text(DcmEVR vr)
{
    return vr == EVR_LO || vr == EVR_SH;
}

/* Returns whether the VR holds only binary numbers. */
bool
is_binary_number(DcmEVR vr)
{
    static const DcmEVR vrs[] = {EVR_US, EVR_SS, EVR_UL, EVR_SL, EVR_FL, EVR_FD, EVR_AT, EVR_UV, EVR_SV, EVR_xs};
    return std::find(std::begin(vrs), std::end(vrs), vr) != std::end(vrs);
}

/* Returns whether each value is a text in a fixed form. */
bool
has_syntax(DcmEVR vr)
{
    static const DcmEVR vrs[] = {EVR_DA, EVR_DT, EVR_TM, EVR_AS, EVR_DS, EVR_IS, EVR_CS, EVR_UI};
    return std::find(std::begin(vrs), std::end(vrs), vr) != std::end(vrs);
}

/* Returns whether no copy has the element: of a repeating group of the table, of no known attribute, a group length,
 * padding, or a signature. */
bool
is_never_kept(const DcmTagKey &tag)
{
    const uint16_t family = tag.getGroup() & 0xFF00;
    if (tag.getGroup() < 8 || tag.getElement() == 0 || family == 0x5000 || family == 0x6000 || tag.getGroup() >= 0xFFFA)
        return true;
    const DcmEVR vr = DcmTag(tag).getEVR();
    return vr == EVR_UNKNOWN || vr == EVR_UNKNOWN2B || (vr == EVR_UN && tag != DCM_PixelData);
}

/* Returns the names of Specific Character Set (0008,0005), or "" if they are not in the form of the standard. */
std::string
character_set_of(DcmItem &item, const std::string &inherited)
{
    OFString text;
    if (!item.tagExists(DCM_SpecificCharacterSet))
        return inherited;
    if (!header_is_good(item.findAndGetOFStringArray(DCM_SpecificCharacterSet, text)))
        return "";
    return {text.c_str(), text.size()};
}

/* Returns whether a person writes the text of this attribute, which has no rule. */
bool
is_written(const DcmTagKey &tag)
{
    DcmTag named(tag);
    const std::string keyword = named.getTagName();
    return tag != DCM_DimensionDescriptionLabel &&
           std::any_of(std::begin(written), std::end(written),
                       [&](const char *end) { return text_ends_in(keyword.c_str(), end); });
}

} // namespace

void
DatasetCleaner::run(DcmDataset &dataset)
{
    is_report_ = dataset.tagExists(DCM_ContentSequence);
    choose_patient(dataset);
    collect(dataset, "");
    clean_item(dataset, "", 0);
    put_identity(dataset);
    put_method(dataset);
}

/* Returns the text of an element in UTF-8. Bytes outside the character set become words that no list has. */
std::string
DatasetCleaner::decoded(DcmElement &element, const std::string &set)
{
    std::string text = text_of(element), utf8;
    Charset &charset = sets_.try_emplace(set, set).first->second;
    return charset.is_known() && charset.decode(text, utf8) ? utf8 : text;
}

/* Finds the texts that identify persons, at each depth. */
void
DatasetCleaner::collect(DcmItem &item, const std::string &inherited_set)
{
    const std::string set = character_set_of(item, inherited_set);
    for (DcmElement *element : header_children<DcmElement>(&item)) {
        if (element->ident() == EVR_SQ)
            for (DcmItem *each : header_children<DcmItem>(element))
                collect(*each, set);
        else if (element->ident() == EVR_PN)
            identifiers_.add_name(decoded(*element, set));
        else if (element->getTag() == DCM_PatientBirthDate)
            identifiers_.add_birth_date(decoded(*element, set));
        else if (is_among(order_numbers, element->getTag()))
            identifiers_.add_number(decoded(*element, set));
        else if (is_among(identifiers, element->getTag()))
            identifiers_.add_identifier(decoded(*element, set));
    }
}

/* The patient is known by the ID, or else by name and birth date, or else by the study. */
void
DatasetCleaner::choose_patient(DcmItem &dataset)
{
    const std::string set = character_set_of(dataset, "");
    std::string patient;
    const auto add = [&](const DcmTagKey &tag) {
        DcmElement *element = nullptr;
        if (dataset.findAndGetElement(tag, element).good() && !is_binary_number(element->ident()))
            patient += header_trimmed(decoded(*element, set));
    };
    add(DCM_PatientID);
    if (patient.empty()) {
        add(DCM_PatientName);
        add(DCM_PatientBirthDate);
    }
    if (patient.empty())
        add(DCM_StudyInstanceUID);
    char word[DEIDENTIFY_WORD];
    uint8_t digest[DEIDENTIFY_DIGEST];
    if (deidentify_patient(&how_, patient.c_str(), word) || how_.digest(how_.key, ("days " + patient).c_str(), digest))
        throw std::bad_alloc();
    pseudonym_ = word;
    days_ = -(30 + (digest[0] << 8 | digest[1]) % 3650);
}

/* --- the walk --- */

void
DatasetCleaner::clean_item(DcmItem &item, const std::string &inherited_set, int depth)
{
    const std::string set = character_set_of(item, inherited_set);
    std::set<uint32_t> blocks; /* private ones of which an element stays */
    std::vector<DcmElement *> creators;
    for (DcmElement *element : header_children<DcmElement>(&item)) {
        const DcmTagKey tag = element->getTag();
        if (tag.getGroup() % 2 != 0 && tag.getElement() >= 0x10 && tag.getElement() <= 0xFF)
            creators.push_back(element);
        else if (tag.getGroup() % 2 != 0 ? !keeps_private(item, *element, blocks) : is_never_kept(tag))
            delete item.remove(element);
        else if (tag.getGroup() % 2 == 0)
            clean_element(item, *element, set, depth);
    }
    for (DcmElement *creator : creators)
        if (!blocks.count(header_tag_number(creator->getTag())))
            delete item.remove(creator);
}

/* Returns whether a private element stays, and then adds the tag of its creator. */
bool
DatasetCleaner::keeps_private(DcmItem &item, DcmElement &element, std::set<uint32_t> &blocks) const
{
    const DcmTagKey tag = element.getTag();
    const DcmTagKey creator(tag.getGroup(), static_cast<Uint16>(tag.getElement() >> 8));
    OFString name;
    if (!keeps(DEIDENTIFY_SAFE_PRIVATE) || tag.getElement() < 0x1000 ||
        !header_is_good(item.findAndGetOFString(creator, name)))
        return false;
    const std::string given = header_trimmed(name.c_str());
    const bool is_listed = std::any_of(std::begin(safe_private), std::end(safe_private), [&](const auto &row) {
        return row.group == tag.getGroup() && row.element == (tag.getElement() & 0xFF) && given == row.creator;
    });
    const DcmEVR vr = element.ident();
    if (!is_listed ||
        !(is_binary_number(vr) || ((vr == EVR_DS || vr == EVR_IS) && cleaned_is_valid(vr, text_of(element)))))
        return false;
    blocks.insert(header_tag_number(creator));
    return true;
}

/* Decides by the options. `decided`: one applies. */
DatasetCleaner::Act
DatasetCleaner::act_of_option(const ProfileRow &row, bool &decided) const
{
    Act act = Act::Words;
    decided = false;
    for (unsigned i = 0; row.options[i]; i++) {
        if (row.options[i] == '-' || !keeps(1u << i))
            continue;
        decided = true;
        if (row.options[i] == 'K')
            return Act::Keep;
        act = 1u << i == DEIDENTIFY_DATES ? Act::Shift : Act::Words;
    }
    return act;
}

/* Where the type of the attribute in its module decides, the value becomes what is valid for each type. */
DatasetCleaner::Act
DatasetCleaner::act_of(const DcmElement &element, const ProfileRow *row) const
{
    bool decided = false;
    const Act act = act_of_option(*row, decided);
    if (decided)
        return act;
    const bool is_sequence = element.ident() == EVR_SQ;
    switch (row->action) {
    case Profile::X:
        return Act::Remove;
    case Profile::Z:
        return Act::Empty;
    case Profile::XZ:
        return is_sequence && element.getTag() != DCM_AcquisitionContextSequence ? Act::Remove : Act::Empty;
    case Profile::ZD:
        return element.getTag() == DCM_ContrastBolusAgent || element.getTag() == DCM_ContentCreatorName ? Act::Empty
                                                                                                        : Act::Dummy;
    case Profile::XD:
        return is_sequence ? Act::Remove : Act::Dummy;
    case Profile::XZD: /* Referenced Performed Procedure Step Sequence is of type 2 in reports */
        return !is_sequence ? Act::Dummy : is_report_ ? Act::Empty : Act::Remove;
    case Profile::U:
        return Act::MapUid;
    case Profile::XZU:
        return Act::Keep; /* with UIDs mapped */
    case Profile::D:
        break;
    }
    return !is_sequence ? Act::Dummy : is_among(dummy_sequences, element.getTag()) ? Act::Keep : Act::Remove;
}

DatasetCleaner::Act
DatasetCleaner::act_without_rule(const DcmElement &element, int depth) const
{
    const DcmEVR vr = element.ident();
    const DcmTagKey tag = element.getTag();
    if (is_among(bulk, tag))
        return depth > 0 && tag.getGroup() == 0x7FE0 ? Act::Remove : Act::Keep;
    if (vr == EVR_UI)
        return keeps(DEIDENTIFY_UIDS) ? Act::Keep : Act::MapUid;
    if (vr == EVR_PN)
        return Act::Dummy;
    if (vr == EVR_DA || vr == EVR_DT)
        return keeps(DEIDENTIFY_DATES) ? Act::Shift : Act::Remove;
    if (is_long_text(vr) || (is_short_text(vr) && is_written(tag)) ||
        (is_short_text(vr) && !is_short_text(DcmTag(tag).getEVR())))
        return Act::Words;
    return vr == EVR_SQ || has_syntax(vr) || is_short_text(vr) || is_binary_number(vr) ? Act::Keep : Act::Remove;
}

void
DatasetCleaner::clean_element(DcmItem &item, DcmElement &element, const std::string &set, int depth)
{
    const ProfileRow *row = find_row(header_tag_number(element.getTag()));
    const Act act = row ? act_of(element, row) : act_without_rule(element, depth);
    if (element.getTag() == DCM_SpecificCharacterSet) {
        if (!sets_.try_emplace(set, set).first->second.is_known())
            delete item.remove(&element);
        return;
    }
    if (act == Act::Remove) {
        delete item.remove(&element);
        return;
    }
    if (element.ident() == EVR_SQ) {
        clean_sequence(element, act, set, depth);
        return;
    }
    if (element.getLength() == 0)
        return;
    switch (act) {
    case Act::Empty:
        header_is_good(element.clear());
        break;
    case Act::Dummy:
        put_dummy(item, element);
        break;
    case Act::MapUid:
        map_uids(item, element, row);
        break;
    case Act::Shift:
        shift(item, element, row);
        break;
    default:
        clean_value(item, element, set, act == Act::Words, row);
    }
}

void
DatasetCleaner::clean_sequence(DcmElement &element, Act act, const std::string &set, int depth)
{
    if (act == Act::Empty || depth >= depth_max) {
        header_is_good(element.clear());
        return;
    }
    for (DcmItem *each : header_children<DcmItem>(&element))
        clean_item(*each, set, depth + 1);
}

/* --- values --- */

void
DatasetCleaner::clean_value(DcmItem &item, DcmElement &element, const std::string &set, bool by_words,
                            const ProfileRow *row)
{
    const DcmEVR vr = element.ident();
    if (is_binary_number(vr) || is_among(bulk, element.getTag()))
        return;
    if (!is_text(vr) && !has_syntax(vr)) {
        delete item.remove(&element);
        return;
    }
    const bool is_form = has_syntax(vr);
    if (is_form && !cleaned_is_valid(vr, text_of(element))) {
        delete item.remove(&element);
        return;
    }
    if (vr == EVR_IS && element.getLength() <= 64 && identifiers_.occur_in_numbers(text_of(element))) {
        header_is_good(element.clear());
        return;
    }
    if (vr == EVR_DS || vr == EVR_IS || vr == EVR_UI) {
        element.compact(); /* contours: the text is read again when it is written */
        return;
    }
    const std::string utf8 = decoded(element, set);
    std::string left = by_words ? cleaned_text(how_, utf8) : utf8;
    if (is_form && left != utf8) /* a shortened text has not the form */
        left.clear();
    if (!left.empty() && !identifiers_.occur_in(left, !is_form)) {
        if (left != utf8)
            put_text(element, left);
    } else if (row && row->action == Profile::X) {
        delete item.remove(&element);
    } else if (row && (row->action == Profile::Z || row->action == Profile::XZ)) {
        header_is_good(element.clear());
    } else {
        put_dummy(item, element);
    }
}

/* Times of day stay: each date moves by whole days. */
void
DatasetCleaner::shift(DcmItem &item, DcmElement &element, const ProfileRow *row)
{
    const DcmEVR vr = element.ident();
    std::string moved;
    bool good = (vr == EVR_DA || vr == EVR_DT || vr == EVR_TM) && cleaned_is_valid(vr, text_of(element));
    for (std::string value : values_of(text_of(element))) {
        good = good && (vr == EVR_TM || value.empty() || cleaned_date(value, days_));
        moved += "\\" + value;
    }
    if (good)
        put_text(element, moved.substr(1));
    else if (!row || row->action == Profile::X || row->action == Profile::XD)
        delete item.remove(&element);
    else
        put_dummy(item, element);
}

/* Attributes without a rule may name a class or a vocabulary, also one that is newer than the dictionary. */
void
DatasetCleaner::map_uids(DcmItem &item, DcmElement &element, const ProfileRow *row) const
{
    if (element.ident() != EVR_UI) {
        put_dummy(item, element);
        return;
    }
    const bool is_name = is_among(vocabularies, element.getTag());
    std::string mapped;
    for (const std::string &uid : values_of(text_of(element))) {
        char replaced[DICOM_UID_SIZE] = "";
        if (!row && (is_name || uid.rfind("1.2.840.10008.", 0) == 0) && !identifiers_.occur_in_numbers(uid))
            header_copy(replaced, uid);
        else if (!uid.empty() && deidentify_uid(&how_, uid.c_str(), replaced))
            throw std::bad_alloc();
        mapped += "\\" + std::string(replaced);
    }
    put_text(element, mapped.substr(1));
}

void
DatasetCleaner::put_dummy(DcmItem &item, DcmElement &element) const
{
    switch (element.ident()) {
    case EVR_DA:
        put_text(element, "19000101");
        break;
    case EVR_DT:
        put_text(element, "19000101000000");
        break;
    case EVR_TM:
        put_text(element, "000000");
        break;
    case EVR_AS:
        put_text(element, "000Y");
        break;
    case EVR_UI:
        map_uids(item, element, find_row(header_tag_number(element.getTag())));
        break;
    case EVR_AE:
    case EVR_CS:
    case EVR_LO:
    case EVR_LT:
    case EVR_PN:
    case EVR_SH:
    case EVR_ST:
    case EVR_UC:
    case EVR_UT:
        put_text(element, CLEANED_DUMMY);
        break;
    default:
        delete item.remove(&element);
    }
}

/* --- the attributes of a de-identified object --- */

void
DatasetCleaner::put_identity(DcmItem &dataset) const
{
    const std::string patient = how_.no_patient ? "" : pseudonym_;
    insert_text(dataset, DCM_PatientName, patient);
    insert_text(dataset, DCM_PatientID, patient);
    insert_text(dataset, DCM_PatientIdentityRemoved, "YES");
    insert_text(dataset, DCM_LongitudinalTemporalInformationModified, keeps(DEIDENTIFY_DATES) ? "MODIFIED" : "REMOVED");
    insert_text(dataset, DCM_DeidentificationMethod, "Noctule: PS3.15 table E.1-1, 2024-09 and 2026c");
}

/* CID 7050. */
void
DatasetCleaner::put_method(DcmItem &dataset) const
{
    static const struct {
        unsigned option; /* 0: always */
        const char *value, *meaning;
    } methods[] = {
        {0, "113100", "Basic Application Confidentiality Profile"},
        {0, "113104", "Clean Structured Content Option"},
        {DEIDENTIFY_DESCRIPTORS, "113105", "Clean Descriptors Option"},
        {DEIDENTIFY_DATES, "113107", "Retain Longitudinal Temporal Information Modified Dates Option"},
        {DEIDENTIFY_CHARACTERISTICS, "113108", "Retain Patient Characteristics Option"},
        {DEIDENTIFY_DEVICE, "113109", "Retain Device Identity Option"},
        {DEIDENTIFY_UIDS, "113110", "Retain UIDs Option"},
        {DEIDENTIFY_SAFE_PRIVATE, "113111", "Retain Safe Private Option"},
        {DEIDENTIFY_INSTITUTION, "113112", "Retain Institution Identity Option"},
    };

    delete dataset.remove(DCM_DeidentificationMethodCodeSequence);
    for (const auto &method : methods) {
        DcmItem *code = nullptr;
        if (method.option && !keeps(method.option))
            continue;
        if (!header_is_good(dataset.findOrCreateSequenceItem(DCM_DeidentificationMethodCodeSequence, code, -2)))
            throw std::bad_alloc();
        insert_text(*code, DCM_CodeValue, method.value);
        insert_text(*code, DCM_CodingSchemeDesignator, "DCM");
        insert_text(*code, DCM_CodeMeaning, method.meaning);
    }
}
