#include "dicom/write/read_back.hh"

#include "base/error.h"
#include "base/text.h"
#include "dicom/read/header.hh"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
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
verify_caught(struct error *error, const char *path, enum code code, const char *object)
{
    try {
        header_blame_memory();
        throw;
    } catch (const Mismatch &mismatch) {
        return error_set_files(error, -EBADMSG, code, path, nullptr,
                               "The %s read back from %.80s differs from the written one: %.380s.", object,
                               text_base_name(path), mismatch.message);
    } catch (const std::bad_alloc &) {
        return error_set_files(error, -ENOMEM, CODE_OUT_OF_MEMORY, path, nullptr,
                               "There is not enough memory to read the %s back.", object);
    } catch (...) {
        return error_set_files(error, -EIO, code, path, nullptr, "The %s cannot be read back.", object);
    }
}

DcmDataset &
load_file(DcmFileFormat &file, const char *path, const char *transfer_syntax_uid, const DcmTagKey &end)
{
    const DcmXfer expected(transfer_syntax_uid);
    const bool is_native = expected.getXfer() == EXS_LittleEndianExplicit;
    const OFCondition status = header_try([&] {
        return file.loadFileUntilTag(path, EXS_Unknown, EGL_noChange, DCM_MaxReadLength, ERM_autoDetect,
                                     is_native ? end : DCM_PixelData);
    });
    if (status.bad())
        differ("it cannot be read: %s", status.text());
    if (file.getDataset()->getOriginalXfer() != expected.getXfer())
        differ("its transfer syntax is not %s", expected.getXferName());
    return *file.getDataset();
}

bool
is_utf8(DcmDataset &dataset)
{
    OFString set;
    dataset.findAndGetOFString(DCM_SpecificCharacterSet, set);
    return set == "ISO_IR 192";
}

std::string
clean_text(const char *text, size_t characters, enum value_text_kind kind, bool utf8)
{
    const std::unique_ptr<char, void (*)(void *)> clean(value_text_clean(text, characters, kind, !utf8), std::free);
    if (!clean)
        throw std::bad_alloc();
    return clean.get();
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
text_of(DcmItem &item, const Attribute &attribute)
{
    OFString value;
    if (item.findAndGetOFStringArray(attribute.tag, value).bad())
        differ("%s is missing", attribute.name);
    return read_back_trimmed(std::string(value.c_str(), value.size()));
}

void
expect_text(DcmItem &item, const Attribute &attribute, const std::string &expected)
{
    const std::string value = text_of(item, attribute);
    if (value != read_back_trimmed(expected))
        differ("%s is \"%.64s\" instead of \"%.64s\"", attribute.name, value.c_str(), expected.c_str());
}

void
expect_number(DcmItem &item, const Attribute &attribute, int64_t expected)
{
    Uint16 value = 0;
    if (item.findAndGetUint16(attribute.tag, value).bad())
        differ("%s is missing", attribute.name);
    if (value != expected)
        differ("%s is %u instead of %lld", attribute.name, static_cast<unsigned>(value),
               static_cast<long long>(expected));
}

static double
decimal_of(DcmItem &item, const Attribute &attribute, unsigned long index = 0)
{
    OFString text;
    if (item.findAndGetOFString(attribute.tag, text, index).bad() || text.empty())
        differ("%s is missing or too short", attribute.name);
    OFBool good = OFFalse;
    const double value = OFStandard::atof(text.c_str(), &good);
    if (!good || !std::isfinite(value))
        differ("%s has \"%.20s\", which is not a number", attribute.name, text.c_str());
    return value;
}

void
expect_decimal(DcmItem &item, const Attribute &attribute, double expected, unsigned long index)
{
    const double value = decimal_of(item, attribute, index);
    if (std::fabs(value - expected) > 1e-6 * std::max(1.0, std::fabs(expected)))
        differ("%s [%lu] is %.9g instead of %.9g", attribute.name, index, value, expected);
}

DcmItem &
item_of(DcmItem &item, const Attribute &attribute)
{
    return *items_of(item, attribute, 1)[0];
}

std::vector<DcmItem *>
items_of(DcmItem &item, const Attribute &attribute, size_t count)
{
    DcmSequenceOfItems *sequence = nullptr;
    if (item.findAndGetSequence(attribute.tag, sequence).bad() || !sequence)
        differ("%s is missing", attribute.name);
    if (sequence->card() != count)
        differ("%s has %lu items instead of %zu", attribute.name, sequence->card(), count);
    std::vector<DcmItem *> items;
    for (DcmObject *each = nullptr; (each = sequence->nextInContainer(each));)
        items.push_back(static_cast<DcmItem *>(each));
    return items;
}

void
expect_code(DcmItem &item, const Attribute &attribute, const coded_concept &code)
{
    DcmItem &coded = item_of(item, attribute);
    const bool is_long = !coded.tagExists(DCM_CodeValue);
    expect_text(coded, {is_long ? DCM_LongCodeValue : DCM_CodeValue, attribute.name}, code.value);
    expect_text(coded, {DCM_CodingSchemeDesignator, attribute.name}, code.scheme);
}

void
check_identity(DcmFileFormat &file, const char *sop_class, const struct derived_identity &identity,
               const struct derived_source &source, const char *modality)
{
    DcmItem &meta = *file.getMetaInfo();
    DcmDataset &dataset = *file.getDataset();
    expect_text(meta, ATTRIBUTE(MediaStorageSOPClassUID), sop_class);
    expect_text(meta, ATTRIBUTE(MediaStorageSOPInstanceUID), identity.sop_instance_uid);
    expect_text(dataset, ATTRIBUTE(SOPClassUID), sop_class);
    expect_text(dataset, ATTRIBUTE(SOPInstanceUID), identity.sop_instance_uid);
    expect_text(dataset, ATTRIBUTE(SeriesInstanceUID), identity.series_uid);
    expect_text(dataset, ATTRIBUTE(StudyInstanceUID), derived_plane_instance(&source, 0)->study_uid);
    expect_text(dataset, ATTRIBUTE(Modality), modality);
    if (source.equipment_count == 0)
        return;
    const bool utf8 = is_utf8(dataset);
    const struct derived_equipment *equipment = source.equipment;
    for (DcmItem *item : items_of(dataset, ATTRIBUTE(ContributingEquipmentSequence), source.equipment_count)) {
        expect_text(*item, ATTRIBUTE(Manufacturer), clean_text(equipment->name, 64, VALUE_LINE, utf8));
        expect_text(*item, ATTRIBUTE(SoftwareVersions), clean_text(equipment->version, 64, VALUE_LINE, utf8));
        equipment++;
    }
}

StackObject::StackObject(const struct derived_source &source, bool has_bytes, const char *path)
    : source_(source), stack_(*source.stack), path_(path),
      transfer_syntax_uid_(derived_transfer_syntax(&source, has_bytes)),
      dataset_(load_file(file_, path, transfer_syntax_uid_))
{
    for (int32_t p = 0; p < stack_.plane_count && !source.images; p++)
        planes_.emplace(source_key(derived_plane_instance(&source, p)->sop_instance_uid, stack_.planes[p].frame), p);
}

void
StackObject::check_identity(const char *sop_class, const struct derived_identity &identity, const char *modality)
{
    char uid[DICOM_UID_SIZE];
    read_back::check_identity(file_, sop_class, identity, source_, modality);
    if (stack_.flat) {
        if (dataset_.tagExists(DCM_FrameOfReferenceUID) || dataset_.tagExists(DCM_PositionReferenceIndicator))
            differ("a Frame of Reference is present for a 2-D image");
        return;
    }
    if (derived_frame_of_reference_uid(&source_, uid))
        throw std::bad_alloc();
    expect_text(dataset_, ATTRIBUTE(FrameOfReferenceUID), uid);
}

PixelLayout
StackObject::layout(int32_t bits, size_t frames) const
{
    return {path_, transfer_syntax_uid_, stack_.rows, stack_.columns, bits, frames};
}

void
StackObject::check_image(int32_t bits)
{
    expect_text(dataset_, ATTRIBUTE(PhotometricInterpretation), "MONOCHROME2");
    expect_number(dataset_, ATTRIBUTE(SamplesPerPixel), 1);
    expect_number(dataset_, ATTRIBUTE(Rows), stack_.rows);
    expect_number(dataset_, ATTRIBUTE(Columns), stack_.columns);
    expect_number(dataset_, ATTRIBUTE(BitsAllocated), bits);
    if (bits == 64) {
        if (dataset_.tagExists(DCM_BitsStored) || dataset_.tagExists(DCM_PixelRepresentation))
            differ("BitsStored or PixelRepresentation is present for floating point values");
        return;
    }
    expect_number(dataset_, ATTRIBUTE(BitsStored), bits);
    expect_number(dataset_, ATTRIBUTE(HighBit), bits - 1);
    expect_number(dataset_, ATTRIBUTE(PixelRepresentation), 0);
}

/* Checks that the functional groups of a 2-D image state no geometry: that of its source image holds. */
static void
expect_flat(DcmItem &groups)
{
    for (const DcmTagKey &tag : {DCM_PlanePositionSequence, DCM_PlaneOrientationSequence, DCM_PixelMeasuresSequence})
        if (groups.tagExists(tag))
            differ("%s is present for a 2-D image", DcmTag(tag).getTagName());
}

void
StackObject::check_measures(DcmItem &groups, int32_t plane) const
{
    DcmItem &measures = item_of(groups, ATTRIBUTE(PixelMeasuresSequence));
    const struct dicom_frame &frame = *derived_plane_frame(&source_, plane);
    for (unsigned long i = 0; i < 2; i++)
        expect_decimal(measures, ATTRIBUTE(PixelSpacing), frame.pixel_spacing[i], i);
    if (decimal_of(measures, ATTRIBUTE(SliceThickness)) <= 0.0)
        differ("SliceThickness is not positive");
    if (source_.images)
        expect_decimal(measures, ATTRIBUTE(SliceThickness), stack_.spacing[2]);
    else if (frame.slice_thickness > 0.0)
        expect_decimal(measures, ATTRIBUTE(SliceThickness), frame.slice_thickness);
    if (stack_.plane_count > 1 && !stack_.uneven)
        expect_decimal(measures, ATTRIBUTE(SpacingBetweenSlices), stack_.spacing[2]);
    else if (measures.tagExists(DCM_SpacingBetweenSlices))
        differ("SpacingBetweenSlices is present for one plane, or for unevenly spaced ones");
}

DcmItem &
StackObject::check_shared_groups()
{
    DcmItem &groups = item_of(dataset_, ATTRIBUTE(SharedFunctionalGroupsSequence));
    if (stack_.flat) {
        expect_flat(groups);
        return groups;
    }
    DcmItem &orientation = item_of(groups, ATTRIBUTE(PlaneOrientationSequence));
    const struct dicom_frame &first = *derived_plane_frame(&source_, 0);
    for (unsigned long i = 0; i < 6; i++)
        expect_decimal(orientation, ATTRIBUTE(ImageOrientationPatient), first.orientation[i], i);
    if (!derived_measures_differ(&source_))
        check_measures(groups, 0);
    else if (groups.tagExists(DCM_PixelMeasuresSequence))
        differ("PixelMeasuresSequence is shared by planes of several thicknesses");
    if (source_.images)
        check_shared_derivation(groups);
    else if (groups.tagExists(DCM_DerivationImageSequence))
        differ("DerivationImageSequence is shared by frames with source images of their own");
    return groups;
}

/* Checks for one reference to each source image, without a claim that pixels have the same place. */
void
StackObject::check_shared_derivation(DcmItem &groups) const
{
    std::unordered_map<std::string, std::string> expected; /* frame numbers by instance */
    for (int32_t p = 0; p < source_.images->plane_count; p++) {
        std::string &numbers = expected[derived_plane_instance(&source_, p)->sop_instance_uid];
        numbers += (numbers.empty() ? "" : "\\") + std::to_string(source_.images->planes[p].frame + 1);
    }
    DcmItem &derivation = item_of(groups, ATTRIBUTE(DerivationImageSequence));
    for (DcmItem *image : items_of(derivation, ATTRIBUTE(SourceImageSequence), expected.size())) {
        const auto found = expected.find(text_of(*image, ATTRIBUTE(ReferencedSOPInstanceUID)));
        if (found == expected.end())
            differ("SourceImageSequence has an image that is not a source, or is a duplicate");
        expect_text(*image, ATTRIBUTE(SpatialLocationsPreserved), "NO");
        if (image->tagExists(DCM_ReferencedFrameNumber))
            expect_text(*image, ATTRIBUTE(ReferencedFrameNumber), found->second);
        expected.erase(found);
    }
}

void
StackObject::check_referenced_series(const struct derived_reference *replaces)
{
    std::unordered_set<std::string> expected;
    for (int32_t p = 0; p < derived_images(&source_)->plane_count; p++)
        expected.insert(derived_plane_instance(&source_, p)->sop_instance_uid);

    const bool beside = replaces && strcmp(replaces->study_uid, derived_plane_instance(&source_, 0)->study_uid) == 0;
    const std::vector<DcmItem *> all = items_of(dataset_, ATTRIBUTE(ReferencedSeriesSequence), beside ? 2 : 1);
    DcmItem &series = *all[0];
    if (replaces) {
        DcmItem *replaced = beside ? all[1] : nullptr;
        if (!replaced) {
            DcmItem &study = item_of(dataset_, ATTRIBUTE(StudiesContainingOtherReferencedInstancesSequence));
            expect_text(study, {DCM_StudyInstanceUID, "StudyInstanceUID of the replaced object"}, replaces->study_uid);
            replaced = &item_of(study, ATTRIBUTE(ReferencedSeriesSequence));
        }
        expect_text(item_of(dataset_, ATTRIBUTE(ReferencedImageSequence)), ATTRIBUTE(ReferencedSOPInstanceUID),
                    replaces->sop_instance_uid);
        expect_text(*replaced, {DCM_SeriesInstanceUID, "SeriesInstanceUID of the replaced object"},
                    replaces->series_uid);
        expect_text(item_of(*replaced, ATTRIBUTE(ReferencedInstanceSequence)), ATTRIBUTE(ReferencedSOPInstanceUID),
                    replaces->sop_instance_uid);
    } else if (dataset_.tagExists(DCM_ReferencedImageSequence))
        differ("ReferencedImageSequence is present, but no object is replaced");
    expect_text(series, {DCM_SeriesInstanceUID, "SeriesInstanceUID of the source"},
                derived_plane_instance(&source_, 0)->series_uid);
    for (DcmItem *reference : items_of(series, ATTRIBUTE(ReferencedInstanceSequence), expected.size())) {
        const std::string uid = text_of(*reference, ATTRIBUTE(ReferencedSOPInstanceUID));
        if (expected.erase(uid) != 1)
            differ("ReferencedInstanceSequence lists %.64s, which is not a source or is a duplicate", uid.c_str());
    }
}

void
StackObject::check_each_frame(int32_t count, const std::function<void(DcmItem &)> &check)
{
    Sint32 there = 0;
    if (dataset_.findAndGetSint32(DCM_NumberOfFrames, there).bad() || there < 1)
        differ("NumberOfFrames is missing");
    if (count != 0 && there != count)
        differ("NumberOfFrames is %d instead of %d", static_cast<int>(there), count);
    size_t frame = 0;
    for (DcmItem *item : items_of(dataset_, ATTRIBUTE(PerFrameFunctionalGroupsSequence), static_cast<size_t>(there))) {
        frame++;
        try {
            check(*item);
        } catch (const Mismatch &mismatch) {
            differ("frame %zu: %.300s", frame, mismatch.message);
        }
    }
}

/* Returns the tile of a mosaic at the frame's position, or -1. */
int32_t
StackObject::tile_of(DcmItem &frame, const std::string &uid) const
{
    constexpr double tolerance_mm = 1e-3; /* precision of decimals of 16 characters */
    DcmItem &item = item_of(frame, ATTRIBUTE(PlanePositionSequence));
    for (int32_t p = 0; p < stack_.plane_count; p++) {
        const struct dicom_frame &tile = *derived_plane_frame(&source_, p);
        if (uid != derived_plane_instance(&source_, p)->sop_instance_uid)
            continue;
        bool equal = true;
        for (unsigned long i = 0; i < 3 && equal; i++) {
            Float64 value;
            equal = item.findAndGetFloat64(DCM_ImagePositionPatient, value, i).good() &&
                    std::fabs(value - tile.position[i]) <= tolerance_mm;
        }
        if (equal)
            return p;
    }
    return -1;
}

/* Returns the slice of a resampled grid at the frame's position. */
int32_t
StackObject::slice_of(DcmItem &frame) const
{
    DcmItem &position = item_of(frame, ATTRIBUTE(PlanePositionSequence));
    const double *normal = stack_.axes + 6;
    double along = 0;
    for (unsigned long i = 0; i < 3; i++) {
        Float64 value;
        if (position.findAndGetFloat64(DCM_ImagePositionPatient, value, i).bad())
            differ("ImagePositionPatient is missing");
        along += (value - stack_.origin[i]) * normal[i];
    }
    const double slice = std::round(along / stack_.spacing[2]);
    if (!(slice >= 0 && slice < stack_.plane_count))
        differ("its position is outside the grid");
    for (unsigned long i = 0; i < 3; i++)
        expect_decimal(position, ATTRIBUTE(ImagePositionPatient),
                       stack_.origin[i] + slice * stack_.spacing[2] * normal[i], i);
    if (frame.tagExists(DCM_DerivationImageSequence))
        differ("it has a source image of its own, which a frame of a resampled grid has not");
    return static_cast<int32_t>(slice);
}

int32_t
StackObject::plane_of(DcmItem &frame) const
{
    if (source_.images)
        return slice_of(frame);
    DcmItem &derivation = item_of(frame, ATTRIBUTE(DerivationImageSequence));
    DcmItem &source = item_of(derivation, ATTRIBUTE(SourceImageSequence));
    const std::string uid = text_of(source, ATTRIBUTE(ReferencedSOPInstanceUID));
    Sint32 number = 0;
    const bool numbered = source.findAndGetSint32(DCM_ReferencedFrameNumber, number).good();
    if (!numbered)
        number = 1;
    const auto found = planes_.find(source_key(uid, int64_t{number} - 1));
    int32_t plane = found == planes_.end() ? -1 : found->second;
    if (!numbered && (plane < 0 || derived_plane_instance(&source_, plane)->tile_columns > 0))
        plane = tile_of(frame, uid);
    if (plane < 0)
        differ("it refers to frame %d of %.64s, which is not a plane of the stack", static_cast<int>(number),
               uid.c_str());
    const struct dicom_instance &instance = *derived_plane_instance(&source_, plane);
    if (numbered != instance.multi_frame)
        differ("its ReferencedFrameNumber is %s", numbered ? "needless" : "missing");
    expect_text(source, ATTRIBUTE(ReferencedSOPClassUID), instance.sop_class_uid);
    expect_text(source, ATTRIBUTE(SpatialLocationsPreserved), instance.tile_columns > 0 ? "NO" : "YES");
    if (stack_.flat) {
        expect_flat(frame);
        return plane;
    }
    DcmItem &position = item_of(frame, ATTRIBUTE(PlanePositionSequence));
    const struct dicom_frame &expected = *derived_plane_frame(&source_, plane);
    for (unsigned long i = 0; i < 3; i++)
        expect_decimal(position, ATTRIBUTE(ImagePositionPatient), expected.position[i], i);
    if (derived_measures_differ(&source_))
        check_measures(frame, plane);
    return plane;
}

const Uint32 *
StackObject::indices_of(DcmItem &frame, unsigned long count)
{
    DcmItem &content = item_of(frame, ATTRIBUTE(FrameContentSequence));
    const Uint32 *indices = nullptr;
    unsigned long found = 0;
    if (content.findAndGetUint32Array(DCM_DimensionIndexValues, indices, &found).bad() || found != count)
        differ("DimensionIndexValues are not %lu", count);
    return indices;
}

} // namespace read_back
