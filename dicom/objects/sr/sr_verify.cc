/*
 * sr_verify.cc - reads a report back with DCMTK and compares it with the request.
 *
 * This file shares only names with the writer (sr_internal.h, seg.h). DCMTK reads the attributes before the content, and
 * dcmsr checks their modules. The content is compared byte by byte (sr_walk.hh), since dcmsr takes 0.1 ms per number to
 * read it. The templates' concepts, the relationships and the types of values come from the tables of dcmsr. Items must be
 * in the order of the templates; others are not allowed.
 */
#include "dicom/objects/sr/sr_internal.h"
#include "dicom/objects/sr/sr_walk.hh"
#include "dicom/write/read_back.hh"

#include "dcmtk/dcmsr/codes/dcm.h"
#include "dcmtk/dcmsr/codes/sct.h"
#include "dcmtk/dcmsr/codes/ucum.h"
#include "dcmtk/dcmsr/dsrdoc.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace read_back;

namespace
{

bool
is_side(const struct coded_concept &code)
{
    static const std::set<std::string> sides = {"24028007", "7771000", "51440002", "66459002"};
    return code.value && strcmp(code.scheme, "SCT") == 0 && sides.count(code.value) == 1;
}

class SrVerifier
{
  public:
    SrVerifier(const struct sr_request &request, const char *path)
        : request_(request), seg_(*request.seg), path_(path),
          dataset_(load_file(file_, path, DICOM_EXPLICIT_LITTLE, DCM_ContentSequence)), utf8_(is_utf8(dataset_))
    {
        std::set<const struct dicom_instance *> seen;
        for (int32_t p = 0; p < seg_.source.stack->plane_count; p++) {
            const struct dicom_instance *instance = derived_plane_instance(&seg_.source, p);
            if (seen.insert(instance).second)
                sources_.push_back(instance);
        }
    }

    void run()
    {
        check_identity();
        expect_text(dataset_, ATTRIBUTE(CompletionFlag), "COMPLETE");
        expect_text(dataset_, ATTRIBUTE(VerificationFlag), "UNVERIFIED");
        DcmItem &used = item_of(dataset_, ATTRIBUTE(ContentTemplateSequence));
        expect_text(used, ATTRIBUTE(TemplateIdentifier), "1500");
        expect_text(used, ATTRIBUTE(MappingResource), "DCMR");
        check_evidence();
        check_root();
        check_content();
    }

  private:
    void check_identity()
    {
        struct derived_identity identity;
        if (sr_make_identity(&request_, &identity))
            throw std::bad_alloc();
        const char *own = request_.comprehensive_3d ? UID_Comprehensive3DSRStorage : UID_EnhancedSRStorage;
        read_back::check_identity(file_, own, identity, seg_.source, "SR");
        const struct derived_reference *replaces = identity.replaces;
        if (!replaces) {
            if (dataset_.tagExists(DCM_PredecessorDocumentsSequence))
                differ("PredecessorDocumentsSequence is present, but no report is replaced");
            return;
        }
        DcmItem &study = item_of(dataset_, ATTRIBUTE(PredecessorDocumentsSequence));
        expect_text(study, {DCM_StudyInstanceUID, "StudyInstanceUID of the predecessor"}, replaces->study_uid);
        check_series(item_of(study, ATTRIBUTE(ReferencedSeriesSequence)), replaces->series_uid,
                     {std::string(replaces->class_uid ? replaces->class_uid : own) + ' ' + replaces->sop_instance_uid});
    }

    void check_evidence()
    {
        std::set<std::string> images;
        for (const struct dicom_instance *source : sources_)
            images.insert(std::string(source->sop_class_uid) + ' ' + source->sop_instance_uid);
        std::vector<const struct seg_origin *> beside, elsewhere;
        for (size_t g = 0; g < request_.group_count; g++)
            if (const struct seg_origin *origin = sr_new_origin(&request_, g))
                (strcmp(origin->study_uid, sources_[0]->study_uid) == 0 ? beside : elsewhere).push_back(origin);
        const std::vector<DcmItem *> studies =
            items_of(dataset_, ATTRIBUTE(CurrentRequestedProcedureEvidenceSequence), 1 + elsewhere.size());
        for (size_t i = 0; i < elsewhere.size(); i++) {
            DcmItem &study = *studies[1 + i];
            const struct seg_origin &origin = *elsewhere[i];
            expect_text(study, {DCM_StudyInstanceUID, "StudyInstanceUID of the evidence"}, origin.study_uid);
            check_origin(*items_of(study, ATTRIBUTE(ReferencedSeriesSequence), 1)[0], origin);
        }
        DcmItem &study = *studies[0];
        expect_text(study, {DCM_StudyInstanceUID, "StudyInstanceUID of the evidence"}, sources_[0]->study_uid);
        std::vector<std::pair<std::string, std::set<std::string>>> own; /* series of the job, with their objects */
        for (size_t i = 0; i < request_.result_count; i++) {
            const struct sr_result &result = request_.results[i];
            if (own.empty() || own.back().first != result.series_uid)
                own.push_back({result.series_uid, {}});
            own.back().second.insert(std::string(result.class_uid) + ' ' + result.instance_uid);
        }
        if (own.empty() && sr_refers_to_segments(&request_))
            own.push_back({request_.seg_identity->series_uid,
                           {std::string(UID_SegmentationStorage) + ' ' + request_.seg_identity->sop_instance_uid}});
        const std::vector<DcmItem *> series =
            items_of(study, ATTRIBUTE(ReferencedSeriesSequence), 1 + own.size() + beside.size());
        check_series(*series[0], sources_[0]->series_uid, images);
        for (size_t i = 0; i < own.size(); i++)
            check_series(*series[1 + i], own[i].first, own[i].second);
        for (size_t i = 0; i < beside.size(); i++)
            check_origin(*series[1 + own.size() + i], *beside[i]);
    }

    void check_origin(DcmItem &series, const struct seg_origin &origin)
    {
        check_series(series, origin.series_uid, {std::string(origin.class_uid) + ' ' + origin.instance_uid});
    }

    void check_series(DcmItem &series, const std::string &series_uid, std::set<std::string> expected)
    {
        expect_text(series, {DCM_SeriesInstanceUID, "SeriesInstanceUID of the evidence"}, series_uid);
        for (DcmItem *item : items_of(series, ATTRIBUTE(ReferencedSOPSequence), expected.size())) {
            const std::string class_and_instance = text_of(*item, ATTRIBUTE(ReferencedSOPClassUID)) + ' ' +
                                                   text_of(*item, ATTRIBUTE(ReferencedSOPInstanceUID));
            if (expected.erase(class_and_instance) != 1)
                differ("the evidence lists %.128s, which is not referenced or is a duplicate",
                       class_and_instance.c_str());
        }
    }

    void check_root()
    {
        DSRDocument document;
        const OFCondition status = document.read(dataset_);
        if (status.bad() || !document.getTree().gotoRoot())
            differ("its modules cannot be read: %s", status.text());
        const DSRCodedEntryValue &title = document.getTree().getCurrentContentItem().getConceptName();
        if (title != CODE_DCM_ImagingMeasurementReport ||
            title.getCodeMeaning() != CODE_DCM_ImagingMeasurementReport.CodeMeaning)
            differ("the title is (%.32s, %.16s, %.64s)", title.getCodeValue().c_str(),
                   title.getCodingSchemeDesignator().c_str(), title.getCodeMeaning().c_str());
    }

    void check_content()
    {
        Walk walk(path_);
        check_context(walk);
        check_library(walk);
        walk.where = "the measurements";
        walk.container(CODE_DCM_ImagingMeasurements);
        std::vector<const struct sr_group *> groups;
        for (size_t g = 0; g < request_.group_count; g++)
            groups.push_back(&request_.groups[g]);
        std::stable_partition(groups.begin(), groups.end(),
                              [](const struct sr_group *group) { return group->segment != SR_WHOLE_VOLUME; });
        for (size_t g = 0; g < groups.size(); g++) {
            walk.where = "measurement group " + std::to_string(g + 1);
            check_group(walk, *groups[g]);
        }
        walk.up();
        const char *remark = sr_remark(&request_);
        if (remark) {
            walk.where = "the evaluations";
            walk.container({"C0034375", "UMLS", "Qualitative Evaluations"});
            walk.text(DSRTypes::RT_contains, CODE_DCM_Comment, lines(remark));
            walk.up();
        }
        walk.finish();
        check_coding_schemes(walk.schemes());
    }

    /* Checks device observer and procedure. */
    void check_context(Walk &walk)
    {
        char device[DICOM_UID_SIZE];
        if (sr_device_uid(&seg_, device) || derived_frame_of_reference_uid(&seg_.source, frame_of_reference_))
            throw std::bad_alloc();
        const auto context = DSRTypes::RT_hasObsContext;
        walk.code(DSRTypes::RT_hasConceptMod, CODE_DCM_LanguageOfContentItemAndDescendants,
                  {"eng", "RFC5646", "English"});
        walk.code(context, CODE_DCM_ObserverType, CODE_DCM_Device);
        walk.uid(context, CODE_DCM_DeviceObserverUID, device);
        walk.text(context, CODE_DCM_DeviceObserverName, "Noctule");
        walk.text(context, CODE_DCM_DeviceObserverManufacturer, "Noctule");
        walk.text(context, CODE_DCM_DeviceObserverModelName, "noctuled");
        walk.text(context, CODE_DCM_DeviceObserverSerialNumber, lines(seg_.source.device_serial_number));
        const std::string modality = sources_[0]->modality;
        const Code procedure = modality == "CT"          ? Code("25045-6", "LN", "CT unspecified body region")
                               : modality == "MR"        ? Code("25056-3", "LN", "MRI unspecified body region")
                               : modality == "PT"        ? Code("44136-0", "LN", "PET unspecified body region")
                               : modality == "XA"        ? Code("77343006", "SCT", "Angiography")
                               : is_radiograph(modality) ? Code("43468-8", "LN", "XR unspecified body region")
                                                         : Code(CODE_SCT_ImagingProcedure);
        walk.code(DSRTypes::RT_hasConceptMod, CODE_DCM_ProcedureReported, procedure);
    }

    static bool is_radiograph(const std::string &modality)
    {
        return modality == "CR" || modality == "DX" || modality == "MG" || modality == "RF";
    }

    static void check_flat_modality(Walk &walk, const std::string &modality)
    {
        static const std::map<std::string, const char *> names = {
            {"CR", "Computed Radiography"}, {"DX", "Digital Radiography"}, {"MG", "Mammography"},
            {"RF", "Radiofluoroscopy"},     {"XA", "X-Ray Angiography"},   {"US", "Ultrasound"},
            {"NM", "Nuclear Medicine"}};
        const auto name = names.find(modality);
        if (name != names.end())
            walk.code(DSRTypes::RT_hasAcqContext, CODE_DCM_Modality, {modality, "DCM", name->second});
    }

    /* Returns the frame that a reference to a 2-D image of several frames must have; else none. */
    std::vector<int32_t> flat_frames(const struct dicom_instance &source) const
    {
        if (!seg_.source.stack->flat || source.frame_count < 2)
            return {};
        return {seg_.source.stack->planes[0].frame + 1};
    }

    void check_library(Walk &walk)
    {
        const auto context = DSRTypes::RT_hasAcqContext;
        const struct geometry_stack &stack = *seg_.source.stack;
        const Code pixels("{pixels}", "UCUM", "Pixels");
        const Code millimeter("mm", "UCUM", "millimeter");
        const std::string modality = sources_[0]->modality;
        walk.where = "the image library";
        walk.container(CODE_DCM_ImageLibrary);
        walk.container(CODE_DCM_ImageLibraryGroup);
        if (modality == "CT")
            walk.code(context, CODE_DCM_Modality, {"CT", "DCM", "Computed Tomography"});
        else if (modality == "MR")
            walk.code(context, CODE_DCM_Modality, {"MR", "DCM", "Magnetic Resonance"});
        else if (modality == "PT")
            walk.code(context, CODE_DCM_Modality, {"PT", "DCM", "Positron emission tomography"});
        else
            check_flat_modality(walk, modality);
        walk.number(context, CODE_DCM_PixelDataRows, stack.rows, pixels);
        walk.number(context, CODE_DCM_PixelDataColumns, stack.columns, pixels);
        if (sources_[0]->frame_of_reference_uid[0] != '\0' && !stack.flat)
            walk.uid(context, CODE_DCM_FrameOfReferenceUID, sources_[0]->frame_of_reference_uid);
        if (!stack.flat || stack.spacing_source != DICOM_SPACING_NONE) {
            walk.number(context, CODE_DCM_HorizontalPixelSpacing, stack.spacing[0], millimeter);
            walk.number(context, CODE_DCM_VerticalPixelSpacing, stack.spacing[1], millimeter);
        }
        if (stack.plane_count > 1 && !stack.uneven)
            walk.number(context, CODE_DCM_SpacingBetweenSlices, stack.spacing[2], millimeter);
        for (const struct dicom_instance *source : sources_)
            walk.image(nullptr, {source->sop_class_uid, source->sop_instance_uid, 0, flat_frames(*source)});
        walk.up();
        if (request_.result_count > 0) {
            walk.container(CODE_DCM_ImageLibraryGroup);
            for (size_t i = 0; i < request_.result_count; i++) {
                const struct sr_result &result = request_.results[i];
                const Reference reference = {result.class_uid, result.instance_uid, 0, {}};
                if (sr_is_in_evidence_only(&result))
                    continue;
                if (strcmp(result.class_uid, UID_RTStructureSetStorage) == 0)
                    walk.composite(nullptr, reference);
                else
                    walk.image(nullptr, reference);
            }
            walk.up();
        }
        walk.up();
    }

    void check_group(Walk &walk, const struct sr_group &group)
    {
        char tracking_uid[DICOM_UID_SIZE];
        char tracking_id[SEG_TRACKING_ID_SIZE];
        if (sr_track(&request_, &group, tracking_id, tracking_uid))
            throw std::bad_alloc();
        walk.container(CODE_DCM_MeasurementGroup);
        walk.text(DSRTypes::RT_hasObsContext, CODE_DCM_TrackingIdentifier, lines(tracking_id));
        walk.uid(DSRTypes::RT_hasObsContext, CODE_DCM_TrackingUniqueIdentifier, tracking_uid);
        if (group.segment == SR_WHOLE_VOLUME)
            check_volume(walk);
        else
            check_segment(walk, group);
        check_values(walk, group);
        walk.up();
    }

    void check_segment(Walk &walk, const struct sr_group &group)
    {
        const struct seg_segment &segment = seg_.segments[group.segment];
        walk.code(DSRTypes::RT_contains, {"276214006", "SCT", "Finding category"}, code(segment.category));
        walk.code(DSRTypes::RT_contains, CODE_DCM_Finding, code(segment.type));
        walk.down();
        if (segment.modifier.value && !(segment.region.value && is_side(segment.modifier)))
            walk.code(DSRTypes::RT_hasConceptMod,
                      is_side(segment.modifier)
                          ? Code(CODE_SCT_Laterality)
                          : Code("TYPE_MODIFIER", "99NOCTULE", "Segmented Property Type Modifier"),
                      code(segment.modifier));
        walk.up();
        const struct seg_origin *origin = sr_origin(&request_, &group);
        const int32_t frame = origin ? 0 : frame_of(group.segment);
        if (frame > 0)
            check_referenced(walk, segment,
                             {UID_SegmentationStorage, request_.seg_identity->sop_instance_uid, 0, {frame}});
        else if (!origin)
            check_referenced(walk, segment,
                             {UID_SegmentationStorage,
                              request_.seg_identity->sop_instance_uid,
                              static_cast<uint16_t>(group.segment + 1),
                              {}});
        else if (strcmp(origin->class_uid, UID_RTStructureSetStorage) == 0) {
            const Code region("130488", "DCM", "Region in Space");
            walk.composite(&region, {origin->class_uid, origin->instance_uid, 0, {}});
            walk.down();
            walk.text(DSRTypes::RT_hasConceptMod, {"130489", "DCM", "Referenced Region of Interest Identifier"},
                      std::to_string(origin->number));
            check_provenance(walk, segment);
            walk.up();
        } else
            check_referenced(walk, segment,
                             {origin->class_uid, origin->instance_uid, static_cast<uint16_t>(origin->number), {}});
        if (segment.region.value) {
            walk.code(DSRTypes::RT_hasConceptMod, CODE_SCT_FindingSite, code(segment.region));
            walk.down();
            if (is_side(segment.modifier))
                walk.code(DSRTypes::RT_hasConceptMod, CODE_SCT_Laterality, code(segment.modifier));
            walk.up();
        }
        check_algorithm(walk);
    }

    bool has_pixel(const struct seg_segment &segment) const
    {
        for (int32_t y = 0; segment.bits && y < seg_.source.stack->rows; y++)
            for (int32_t x = 0; x < seg_.source.stack->columns; x++)
                if (segment.bits[y * segment.words_per_row + x / 64] >> x % 64 & 1)
                    return true;
        return false;
    }

    /* Returns the frame of a segment of a 2-D image: one more than those of the segments before. 0: none. */
    int32_t frame_of(int32_t segment) const
    {
        const auto has_frame = [this](const struct seg_segment &each) {
            return !seg_.omit_empty_frames || has_pixel(each);
        };
        if (!seg_.source.stack->flat || !has_frame(seg_.segments[segment]))
            return 0;
        return 1 + static_cast<int32_t>(std::count_if(seg_.segments, seg_.segments + segment, has_frame));
    }

    void check_referenced(Walk &walk, const struct seg_segment &segment, const Reference &reference)
    {
        const Code referenced =
            reference.frames.empty() ? CODE_DCM_ReferencedSegment : CODE_DCM_ReferencedSegmentationFrame;
        walk.image(&referenced, reference);
        walk.down();
        check_provenance(walk, segment);
        walk.up();
        const struct dicom_instance &source = *sources_[0];
        const Code source_image = CODE_DCM_SourceImageForSegmentation;
        if (seg_.source.stack->flat)
            walk.image(&source_image, {source.sop_class_uid, source.sop_instance_uid, 0, flat_frames(source)});
        else
            walk.uid(DSRTypes::RT_contains, CODE_DCM_SourceSeriesForSegmentation, source.series_uid);
    }

    void check_provenance(Walk &walk, const struct seg_segment &segment)
    {
        const auto modifier = DSRTypes::RT_hasConceptMod;
        if (!segment.provenance)
            return;
        walk.text(modifier, {"ALGORITHM_TYPE", "99NOCTULE", "Segment Algorithm Type"}, seg_algorithm_type(&segment));
        for (size_t i = 0; const char *name = seg_algorithm_name(&segment, i); i++)
            walk.text(modifier, CODE_DCM_AlgorithmName, lines(name));
        struct provenance_algorithm algorithm = {};
        if (!seg_algorithm(&segment, 0, &algorithm))
            return;
        walk.text(modifier, CODE_DCM_AlgorithmVersion, lines(algorithm.version));
        if (algorithm.parameters[0] != '\0')
            walk.text(modifier, CODE_DCM_AlgorithmParameters, lines(algorithm.parameters));
        walk.code(modifier, {"111000", "DCM", "Algorithm Family"}, code(algorithm.family));
    }

    /* Checks the images. Frame numbers are required if the stack lacks frames of an instance. */
    void check_volume(Walk &walk)
    {
        std::map<const struct dicom_instance *, std::vector<int32_t>> frames;
        for (int32_t p = 0; p < seg_.source.stack->plane_count; p++)
            frames[derived_plane_instance(&seg_.source, p)].push_back(seg_.source.stack->planes[p].frame + 1);
        check_algorithm(walk);
        const Code source_of_measurement = CODE_DCM_SourceOfMeasurement;
        for (const struct dicom_instance *source : sources_) {
            std::vector<int32_t> &numbers = frames[source];
            if (!source->multi_frame || numbers.size() == static_cast<size_t>(source->frame_count))
                numbers.clear();
            walk.image(&source_of_measurement, {source->sop_class_uid, source->sop_instance_uid, 0, numbers});
        }
    }

    void check_algorithm(Walk &walk)
    {
        walk.text(DSRTypes::RT_hasConceptMod, CODE_DCM_AlgorithmName, "Noctule");
        walk.text(DSRTypes::RT_hasConceptMod, CODE_DCM_AlgorithmVersion, lines(seg_.source.software_version));
        if (sr_has_parameters(&request_))
            walk.text(DSRTypes::RT_hasConceptMod, CODE_DCM_AlgorithmParameters, lines(request_.algorithm_parameters));
    }

    /* Checks numbers, then missing numbers. */
    void check_values(Walk &walk, const struct sr_group &group)
    {
        std::vector<const struct sr_measurement *> values;
        for (size_t i = 0; i < group.measurement_count; i++)
            values.push_back(&group.measurements[i]);
        std::stable_partition(values.begin(), values.end(),
                              [](const struct sr_measurement *value) { return !sr_absence(value); });
        for (const struct sr_measurement *value : values) {
            const char *absence = sr_absence(value);
            if (!absence)
                walk.number(DSRTypes::RT_contains, code(value->concept), value->value, code(value->unit));
            else
                walk.code(DSRTypes::RT_contains, code(value->concept),
                          value->qualifier == SR_MEASUREMENT_FAILURE ? CODE_DCM_MeasurementFailure
                          : value->qualifier == SR_NOT_ATTEMPTED     ? CODE_DCM_MeasurementNotAttempted
                                                                     : CODE_DCM_NotANumber);
            walk.down();
            for (size_t i = 0; i < value->modifier_count; i++)
                walk.code(DSRTypes::RT_hasConceptMod, code(value->modifiers[i][0]), code(value->modifiers[i][1]));
            for (size_t i = 0; i < value->words_count; i++)
                walk.text(DSRTypes::RT_hasConceptMod, code(value->words[i].concept), lines(value->words[i].text));
            for (size_t i = 0; i < value->parameter_count; i++)
                walk.number(DSRTypes::RT_inferredFrom, code(value->parameters[i].concept), value->parameters[i].value,
                            code(value->parameters[i].unit));
            if (sr_has_path(&request_, value))
                walk.path({"121055", "DCM", "Path"}, value->path, frame_of_reference_);
            if (absence)
                walk.text(DSRTypes::RT_hasProperties, CODE_DCM_Comment, lines(absence));
            walk.up();
        }
    }

    /* Checks that the report identifies IBSI's or our scheme exactly if it uses its codes. */
    void check_coding_schemes(const std::set<std::string> &used)
    {
        std::set<std::string> named;
        DcmSequenceOfItems *schemes = nullptr;
        if (dataset_.findAndGetSequence(DCM_CodingSchemeIdentificationSequence, schemes).good()) {
            for (unsigned long i = 0; i < schemes->card(); i++)
                named.insert(text_of(*schemes->getItem(i), ATTRIBUTE(CodingSchemeDesignator)));
        }
        for (const char *scheme : {CONCEPT_IBSI_SCHEME, CONCEPT_OWN_SCHEME}) {
            if (used.count(scheme) != named.count(scheme))
                differ("CodingSchemeIdentificationSequence %s %s",
                       used.count(scheme) ? "lacks" : "lists, but no code uses,", scheme);
            named.erase(scheme);
        }
        if (!named.empty())
            differ("CodingSchemeIdentificationSequence has %.16s", named.begin()->c_str());
    }

    std::string lines(const char *text) const
    {
        return clean_text(text, SIZE_MAX, VALUE_LINES, utf8_);
    }

    Code code(const struct coded_concept &of) const
    {
        Code code(clean_text(of.value, SIZE_MAX, VALUE_LINE, utf8_), clean_text(of.scheme, 16, VALUE_LINE, utf8_),
                  clean_text(of.meaning, 64, VALUE_LINE, utf8_));
        code.is_long = strlen(of.value) > 16;
        return code;
    }

    const struct sr_request &request_;
    const struct seg_request &seg_;
    const char *path_;
    DcmFileFormat file_;
    DcmDataset &dataset_;
    const bool utf8_;                                    /* its texts are UTF-8 */
    std::vector<const struct dicom_instance *> sources_; /* by ascending plane, each once */
    char frame_of_reference_[DICOM_UID_SIZE] = "";
};

} // namespace

extern "C" int
sr_verify(const struct sr_request *request, const char *path, struct error *error)
{
    return verify(error, path, CODE_SR_MISMATCH, "report", [&] { SrVerifier(*request, path).run(); });
}
