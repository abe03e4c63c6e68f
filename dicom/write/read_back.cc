#include "dicom/write/read_back.hh"

#include "base/error.h"
#include "base/text.h"
#include "dicom/write/derived.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <new>
#include <unordered_set>

namespace read_back
{

void
differ(const char *format, ...)
{
    Mismatch mismatch;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(mismatch.message, sizeof(mismatch.message), format, arguments);
    va_end(arguments);
    throw mismatch;
}

int
caught(struct error *error, const char *path, enum code code, const char *object)
try {
    throw;

} catch (const Mismatch &mismatch) {
    return error_set_files(error, -EBADMSG, code, path, nullptr,
                           "The %s read back from %.80s is not the one written: %.380s.", object,
                           text_base_name(path), mismatch.message);

} catch (const std::bad_alloc &) {

    return error_set_files(error, -ENOMEM, CODE_OUT_OF_MEMORY, path, nullptr,
                           "There is not enough memory to read the %s back.", object);

} catch (...) {

    return error_set_files(error, -EIO, code, path, nullptr, "The %s cannot be read back.", object);
}

void
load_file(DcmFileFormat &file, const char *path)
{
    const OFCondition status = file.loadFile(path, EXS_Unknown, EGL_noChange);
    if (status.bad())
        differ("it cannot be read: %s", status.text());
    if (file.getDataset()->getOriginalXfer() != EXS_LittleEndianExplicit)
        differ("its transfer syntax is not Explicit VR Little Endian");
}

bool
is_utf8(DcmFileFormat &file)
{
    OFString set;
    file.getDataset()->findAndGetOFString(DCM_SpecificCharacterSet, set);
    return set == "ISO_IR 192";
}

namespace
{

std::string
read_back_trimmed(const std::string &text)
{
    const size_t first = text.find_first_not_of(' ');
    if (first == std::string::npos)
        return "";
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string
source_key(const std::string &sop_instance_uid, int64_t frame)
{
    return sop_instance_uid + '#' + std::to_string(frame);
}

} // namespace

std::string
text_of(DcmItem &item, const DcmTagKey &tag, const char *name)
{
    OFString value;
    if (item.findAndGetOFStringArray(tag, value).bad())
        differ("%s is missing", name);
    return read_back_trimmed(std::string(value.c_str(), value.size()));
}

void
expect_text(DcmItem &item, const DcmTagKey &tag, const char *name, const std::string &expected)
{
    const std::string value = text_of(item, tag, name);
    if (value != read_back_trimmed(expected))
        differ("%s is \"%.64s\" instead of \"%.64s\"", name, value.c_str(), expected.c_str());
}

void
expect_number(DcmItem &item, const DcmTagKey &tag, const char *name, int64_t expected)
{
    Uint16 value = 0;
    if (item.findAndGetUint16(tag, value).bad())
        differ("%s is missing", name);
    if (value != expected)
        differ("%s is %u instead of %lld", name, static_cast<unsigned>(value),
               static_cast<long long>(expected));
}

double
decimal_of(DcmItem &item, const DcmTagKey &tag, const char *name, unsigned long index)
{
    OFString text;
    if (item.findAndGetOFString(tag, text, index).bad() || text.empty())
        differ("%s is missing or too short", name);
    OFBool good = OFFalse;
    const double value = OFStandard::atof(text.c_str(), &good);
    if (!good || !std::isfinite(value))
        differ("%s holds \"%.20s\", which is no number", name, text.c_str());
    return value;
}

void
expect_decimal(DcmItem &item, const DcmTagKey &tag, const char *name, unsigned long index,
               double expected)
{
    const double value = decimal_of(item, tag, name, index);
    if (std::fabs(value - expected) > 1e-6 * std::max(1.0, std::fabs(expected)))
        differ("%s [%lu] is %.9g instead of %.9g", name, index, value, expected);
}

DcmItem &
item_of(DcmItem &item, const DcmTagKey &tag, const char *name)
{
    DcmSequenceOfItems *sequence = nullptr;
    if (item.findAndGetSequence(tag, sequence).bad() || !sequence || sequence->card() == 0)
        differ("%s is missing", name);
    if (sequence->card() != 1)
        differ("%s has %lu items instead of one", name, sequence->card());
    return *sequence->getItem(0);
}

DcmSequenceOfItems &
sequence_of(DcmItem &item, const DcmTagKey &tag, const char *name, size_t count)
{
    DcmSequenceOfItems *sequence = nullptr;
    if (item.findAndGetSequence(tag, sequence).bad() || !sequence)
        differ("%s is missing", name);
    if (sequence->card() != count)
        differ("%s has %lu items instead of %zu", name, sequence->card(), count);
    return *sequence;
}

void
expect_code(DcmItem &item, const DcmTagKey &tag, const char *name, const coded_concept &code)
{
    DcmItem &coded = item_of(item, tag, name);
    const bool is_long = !coded.tagExists(DCM_CodeValue);
    expect_text(coded, is_long ? DCM_LongCodeValue : DCM_CodeValue, name, code.value);
    expect_text(coded, DCM_CodingSchemeDesignator, name, code.scheme);
}

void
check_identity(DcmFileFormat &file, const char *sop_class, const struct derived_identity &identity,
               const char *study_uid, const char *modality)
{
    DcmItem &meta = *file.getMetaInfo();
    DcmItem &dataset = *file.getDataset();
    expect_text(meta, DCM_MediaStorageSOPClassUID, "MediaStorageSOPClassUID", sop_class);
    expect_text(meta, DCM_MediaStorageSOPInstanceUID, "MediaStorageSOPInstanceUID",
                identity.sop_instance_uid);
    expect_text(dataset, DCM_SOPClassUID, "SOPClassUID", sop_class);
    expect_text(dataset, DCM_SOPInstanceUID, "SOPInstanceUID", identity.sop_instance_uid);
    expect_text(dataset, DCM_SeriesInstanceUID, "SeriesInstanceUID", identity.series_uid);
    expect_text(dataset, DCM_StudyInstanceUID, "StudyInstanceUID", study_uid);
    expect_text(dataset, DCM_Modality, "Modality", modality);
}

void
check_each_frame(DcmItem &dataset, size_t count, const std::function<void(DcmItem &)> &check)
{
    DcmSequenceOfItems &groups = sequence_of(dataset, DCM_PerFrameFunctionalGroupsSequence,
                                             "PerFrameFunctionalGroupsSequence", count);
    size_t frame = 0;
    for (DcmObject *object = groups.nextInContainer(nullptr); object;
         object = groups.nextInContainer(object)) {
        frame++;
        try {
            check(*static_cast<DcmItem *>(object));
        } catch (const Mismatch &mismatch) {
            differ("frame %zu: %.300s", frame, mismatch.message);
        }
    }
}

StackReferences::StackReferences(const struct derived_source &source) : source_(source)
{
    for (int32_t p = 0; p < source.stack->plane_count; p++)
        planes_.emplace(source_key(derived_plane_instance(&source, p)->sop_instance_uid,
                                   source.stack->planes[p].frame),
                        p);
}

void
StackReferences::check_frame_of_reference(DcmItem &dataset) const
{
    char uid[DICOM_UID_SIZE];
    if (derived_frame_of_reference_uid(&source_, uid))
        throw std::bad_alloc();
    expect_text(dataset, DCM_FrameOfReferenceUID, "FrameOfReferenceUID", uid);
}

void
StackReferences::check_shared_groups(DcmItem &groups) const
{
    const struct geometry_stack &stack = *source_.stack;
    DcmItem &orientation =
        item_of(groups, DCM_PlaneOrientationSequence, "PlaneOrientationSequence");
    DcmItem &measures = item_of(groups, DCM_PixelMeasuresSequence, "PixelMeasuresSequence");
    const struct dicom_frame &first = *derived_plane_frame(&source_, 0);
    for (unsigned long i = 0; i < 6; i++)
        expect_decimal(orientation, DCM_ImageOrientationPatient, "ImageOrientationPatient", i,
                       first.orientation[i]);
    for (unsigned long i = 0; i < 2; i++)
        expect_decimal(measures, DCM_PixelSpacing, "PixelSpacing", i, first.pixel_spacing[i]);
    if (decimal_of(measures, DCM_SliceThickness, "SliceThickness", 0) <= 0.0)
        differ("SliceThickness is not positive");
    if (stack.plane_count > 1)
        expect_decimal(measures, DCM_SpacingBetweenSlices, "SpacingBetweenSlices", 0,
                       stack.spacing[2]);
    else if (measures.tagExists(DCM_SpacingBetweenSlices))
        differ("SpacingBetweenSlices is there for one plane");
}

void
StackReferences::check_referenced_series(DcmItem &dataset) const
{
    std::unordered_set<std::string> expected;
    for (int32_t p = 0; p < source_.stack->plane_count; p++)
        expected.insert(derived_plane_instance(&source_, p)->sop_instance_uid);

    DcmItem &series = item_of(dataset, DCM_ReferencedSeriesSequence, "ReferencedSeriesSequence");
    expect_text(series, DCM_SeriesInstanceUID, "SeriesInstanceUID of the source",
                derived_plane_instance(&source_, 0)->series_uid);
    DcmSequenceOfItems &references = sequence_of(series, DCM_ReferencedInstanceSequence,
                                                 "ReferencedInstanceSequence", expected.size());
    for (DcmObject *object = references.nextInContainer(nullptr); object;
         object = references.nextInContainer(object)) {
        const std::string uid = text_of(*static_cast<DcmItem *>(object),
                                        DCM_ReferencedSOPInstanceUID, "ReferencedSOPInstanceUID");
        if (expected.erase(uid) != 1)
            differ(
                "ReferencedInstanceSequence names %.64s, which is not a source or is there twice",
                uid.c_str());
    }
}

int32_t
StackReferences::plane_of(DcmItem &frame) const
{
    DcmItem &derivation = item_of(frame, DCM_DerivationImageSequence, "DerivationImageSequence");
    DcmItem &source = item_of(derivation, DCM_SourceImageSequence, "SourceImageSequence");
    const std::string uid =
        text_of(source, DCM_ReferencedSOPInstanceUID, "ReferencedSOPInstanceUID");
    Sint32 number = 0;
    const bool numbered = source.findAndGetSint32(DCM_ReferencedFrameNumber, number).good();
    if (!numbered)
        number = 1;
    const auto found = planes_.find(source_key(uid, int64_t{number} - 1));
    if (found == planes_.end())
        differ("it refers to frame %d of %.64s, which is no plane of the stack",
               static_cast<int>(number), uid.c_str());
    const struct dicom_instance &instance = *derived_plane_instance(&source_, found->second);
    if (numbered != instance.multi_frame)
        differ("its ReferencedFrameNumber is %s", numbered ? "needless" : "missing");
    expect_text(source, DCM_ReferencedSOPClassUID, "ReferencedSOPClassUID", instance.sop_class_uid);
    expect_text(source, DCM_SpatialLocationsPreserved, "SpatialLocationsPreserved", "YES");
    DcmItem &position = item_of(frame, DCM_PlanePositionSequence, "PlanePositionSequence");
    const struct dicom_frame &expected = *derived_plane_frame(&source_, found->second);
    for (unsigned long i = 0; i < 3; i++)
        expect_decimal(position, DCM_ImagePositionPatient, "ImagePositionPatient", i,
                       expected.position[i]);
    return found->second;
}

} // namespace read_back
