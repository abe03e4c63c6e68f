/* provenance.cc - see provenance.h and provenance.hh. */
#include "dicom/read/annotation/provenance.hh"

#include <atomic>
#include <deque>

namespace
{

/* Owns the texts that the C structure points to. */
struct Provenance : provenance {
    std::deque<std::string> texts;
    std::vector<const char *> name_list;
    std::vector<struct provenance_algorithm> algorithm_list;
    std::atomic<int> holders{1};
};

struct Reader {
    Provenance &provenance;
    Charset &charset;

    /* Reads all but the codes. */
    void read(const struct provenance_tags &tags, const Header &dataset, const Header &item)
    {
        provenance.manufacturer = text(dataset, DCM_Manufacturer);
        provenance.model = text(dataset, DCM_ManufacturerModelName);
        provenance.software = text(dataset, DCM_SoftwareVersions);
        provenance.type = ""; /* for any other value */
        const std::string type = header_text(item, tags.type);
        for (const char *known : {"AUTOMATIC", "SEMIAUTOMATIC", "MANUAL"})
            if (type == known)
                provenance.type = known;
        for (const std::string &name : header_texts(item, tags.names))
            if (!name.empty())
                provenance.name_list.push_back(keep(name));
        provenance.names = provenance.name_list.data();
        provenance.name_count = provenance.name_list.size();
        for (DcmItem *each : header_children<DcmItem>(item.sequence(tags.algorithms)))
            provenance.algorithm_list.push_back(algorithm(Header(*each)));
        provenance.algorithms = provenance.algorithm_list.data();
        provenance.algorithm_count = provenance.algorithm_list.size();
    }

    /* Reads the codes. `type` is the sequence with the type; its item has the modifier. */
    void read_codes(const Header &item, const DcmTagKey &type)
    {
        provenance.category = code(item, DCM_SegmentedPropertyCategoryCodeSequence);
        provenance.property = code(item, type);
        provenance.modifier = code(item.item(type), DCM_SegmentedPropertyTypeModifierCodeSequence);
        provenance.region = code(item, DCM_AnatomicRegionSequence);
    }

    const char *keep(const std::string &text)
    {
        if (text.empty())
            return "";
        provenance.texts.push_back(charset_name(charset, text));
        return provenance.texts.back().c_str();
    }

    const char *text(const Header &header, const DcmTagKey &tag)
    {
        return keep(header_text(header, tag));
    }

    /* Returns the first code of a sequence. Does not read URN Code Value. */
    struct coded_concept code(const Header &header, const DcmTagKey &sequence)
    {
        const Header item = header.item(sequence);
        std::string value = header_text(item, DCM_CodeValue);
        if (value.empty())
            value = header_text(item, DCM_LongCodeValue);
        const std::string scheme = header_text(item, DCM_CodingSchemeDesignator);
        const std::string meaning = header_text(item, DCM_CodeMeaning);
        if (value.empty() || scheme.empty() || meaning.empty())
            return {nullptr, nullptr, nullptr};
        return {keep(value), keep(scheme), keep(meaning)};
    }

    struct provenance_algorithm algorithm(const Header &item)
    {
        /* A text (LT), in which backslashes do not separate values. */
        DcmElement *parameters = item.find(DCM_AlgorithmParameters);
        return {code(item, DCM_AlgorithmFamilyCodeSequence),
                code(item, DCM_AlgorithmNameCodeSequence),
                text(item, DCM_AlgorithmName),
                text(item, DCM_AlgorithmVersion),
                parameters ? keep(header_trimmed(header_whole_text(*parameters))) : "",
                text(item, DCM_AlgorithmSource)};
    }
};

} // namespace

const struct provenance_tags provenance_of_segment = {DCM_SegmentAlgorithmType, DCM_SegmentAlgorithmName,
                                                      DCM_SegmentationAlgorithmIdentificationSequence,
                                                      DCM_SegmentedPropertyTypeCodeSequence};
const struct provenance_tags provenance_of_roi = {DCM_ROIGenerationAlgorithm, DCM_ROIGenerationDescription,
                                                  DCM_ROIDerivationAlgorithmIdentificationSequence,
                                                  DCM_RTROIIdentificationCodeSequence};

const struct provenance *
provenance_read(const struct provenance_tags &tags, const Header &dataset, const Header &item, Charset &charset)
{
    auto provenance = std::make_unique<Provenance>();
    Reader{*provenance, charset}.read(tags, dataset, item);
    return provenance.release();
}

const struct provenance provenance_unstated = {
    "", nullptr, 0, nullptr, 0, {}, {}, {}, {}, "", "", "",
};

static Provenance *
provenance_counted(const struct provenance *provenance)
{
    return provenance == &provenance_unstated ? nullptr
                                              : static_cast<Provenance *>(const_cast<struct provenance *>(provenance));
}

void
provenance_add_codes(const struct provenance *provenance, const struct provenance_tags &tags, const Header &item,
                     Charset &charset)
{
    if (Provenance *added = provenance_counted(provenance))
        Reader{*added, charset}.read_codes(item, tags.code);
}

const struct provenance *
provenance_hold(const struct provenance *provenance)
{
    if (Provenance *held = provenance_counted(provenance))
        held->holders++;
    return provenance;
}

void
provenance_release(const struct provenance *provenance)
{
    Provenance *held = provenance_counted(provenance);
    if (held && --held->holders == 0)
        delete held;
}
