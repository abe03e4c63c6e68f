#include "dicom/read/image/groups.hh"

#include <algorithm>

namespace
{

/* Groups of all images, then of MR, CT and PET (PS3.3 C.7.6.16.2, C.8.13.5, C.8.15.3, C.8.22.5),
 * and the group for attributes that converters of classic images cannot place (C.7.6.16.2.25). */
const DcmTagKey group_sequences[] = {
    DCM_PixelMeasuresSequence,
    DCM_FrameContentSequence,
    DCM_PlanePositionSequence,
    DCM_PlaneOrientationSequence,
    DCM_DerivationImageSequence,
    DCM_CardiacSynchronizationSequence,
    DCM_RespiratorySynchronizationSequence,
    DCM_TemporalPositionSequence,
    DCM_FrameAnatomySequence,
    DCM_PixelValueTransformationSequence,
    DCM_FrameVOILUTSequence,
    DCM_RealWorldValueMappingSequence,
    DCM_ContrastBolusUsageSequence,
    DCM_PatientOrientationInFrameSequence,
    DCM_IrradiationEventIdentificationSequence,
    DCM_RadiopharmaceuticalUsageSequence,
    DCM_PatientPhysiologicalStateSequence,
    DCM_MRImageFrameTypeSequence,
    DCM_MRTimingAndRelatedParametersSequence,
    DCM_MRFOVGeometrySequence,
    DCM_MREchoSequence,
    DCM_MRModifierSequence,
    DCM_MRImagingModifierSequence,
    DCM_MRReceiveCoilSequence,
    DCM_MRTransmitCoilSequence,
    DCM_MRDiffusionSequence,
    DCM_MRAveragesSequence,
    DCM_MRSpatialSaturationSequence,
    DCM_MRMetaboliteMapSequence,
    DCM_MRVelocityEncodingSequence,
    DCM_MRArterialSpinLabelingSequence,
    DCM_CTImageFrameTypeSequence,
    DCM_CTAcquisitionTypeSequence,
    DCM_CTAcquisitionDetailsSequence,
    DCM_CTTableDynamicsSequence,
    DCM_CTPositionSequence,
    DCM_CTGeometrySequence,
    DCM_CTReconstructionSequence,
    DCM_CTExposureSequence,
    DCM_CTXRayDetailsSequence,
    DCM_CTAdditionalXRaySourceSequence,
    DCM_MultienergyCTAcquisitionSequence,
    DCM_MultienergyCTProcessingSequence,
    DCM_MultienergyCTCharacteristicsSequence,
    DCM_PETFrameTypeSequence,
    DCM_PETFrameAcquisitionSequence,
    DCM_PETDetectorMotionDetailsSequence,
    DCM_PETTableDynamicsSequence,
    DCM_PETPositionSequence,
    DCM_PETFrameCorrectionFactorsSequence,
    DCM_PETReconstructionSequence,
    DCM_UnassignedSharedConvertedAttributesSequence,
    DCM_UnassignedPerFrameConvertedAttributesSequence,
};

/* Attributes of enhanced images that replace those of classic ones, in the same unit. */
const struct {
    DcmTagKey classic, enhanced;
} renamed[] = {
    {DCM_ImageType, DCM_FrameType},
    {DCM_EchoTime, DCM_EffectiveEchoTime},
    {DCM_InversionTime, DCM_InversionTimes},
    {DCM_ExposureTime, DCM_ExposureTimeInms},
    {DCM_XRayTubeCurrent, DCM_XRayTubeCurrentInmA},
    {DCM_Exposure, DCM_ExposureInmAs},
};

std::string
tag_keyword(const DcmTagKey &tag)
{
    DcmTag named(tag);
    return named.getTagName();
}

} // namespace

std::vector<uint32_t>
groups_wanted(const std::vector<uint32_t> &asked)
{
    std::vector<uint32_t> wanted = {header_tag_number(DCM_SharedFunctionalGroupsSequence),
                                    header_tag_number(DCM_PerFrameFunctionalGroupsSequence)};
    for (const DcmTagKey &sequence : group_sequences)
        wanted.push_back(header_tag_number(sequence));
    for (const auto &each : renamed)
        if (std::find(asked.begin(), asked.end(), header_tag_number(each.classic)) != asked.end())
            wanted.push_back(header_tag_number(each.enhanced));
    return wanted;
}

/* If several groups have an attribute, the first counts. */
Groups::Groups(DcmItem &item, const std::string &whose) : whose_(whose)
{
    const auto *first = std::begin(group_sequences), *end = std::end(group_sequences);
    for (DcmElement *sequence : header_children<DcmElement>(&item)) {
        const DcmTagKey tag = sequence->getTag();
        if (sequence->ident() != EVR_SQ || std::find(first, end, tag) == end)
            continue;
        for (DcmItem *group : header_children<DcmItem>(sequence))
            for (DcmElement *element : header_children<DcmElement>(group)) {
                if (element->isEmpty())
                    continue;
                const uint32_t number = header_tag_number(element->getTag());
                Found &found = found_.emplace(number, Found{tag, {}}).first->second;
                if (found.sequence == tag)
                    found.elements.push_back(element);
            }
    }
}

GroupAttribute
Groups::find(const DcmTagKey &tag) const
{
    const auto found = found_.find(header_tag_number(tag));
    if (found == found_.end())
        return {};
    return {found->second.elements, tag_keyword(tag) + " in " + tag_keyword(found->second.sequence) + " of " + whose_};
}

GroupAttribute
groups_find(const Groups &own, const Groups &shared, const DcmTagKey &tag)
{
    std::vector<DcmTagKey> names = {tag};
    for (const auto &each : renamed)
        if (each.classic == tag)
            names.push_back(each.enhanced);
    for (const DcmTagKey &name : names)
        for (const Groups *groups : {&own, &shared}) {
            GroupAttribute found = groups->find(name);
            if (!found.elements.empty())
                return found;
        }
    return {};
}
