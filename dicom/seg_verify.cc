/*
 * seg_verify.cc - reads a segmentation object back with DCMTK and compares it with what it was to
 * say.
 *
 * Nothing here is shared with the writer but the names (seg_internal.h): attributes come from
 * DCMTK's parser, frames are found by their source references, and bits are taken out of the stream
 * by a routine of this file (that of DCMTK 3.6.7 is wrong for frames that do not end on a byte),
 * probabilities judged by their distance from the scene. DCMTK leaves the pixel data in the file;
 * one frame at a time is in memory.
 */
#include "seg.h"

#include "fault.h"
#include "seg_internal.h"
#include "value_text.h"

#include "dcmtk/config/osconfig.h"
#include "dcmtk/dcmdata/dcfcache.h"
#include "dcmtk/dcmdata/dctk.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace
{

/* The first difference, on its way to the fault. */
struct Mismatch {
    char sentence[400];
};

[[noreturn]] __attribute__((format(printf, 1, 2))) void
differ(const char *format, ...)
{
    Mismatch mismatch;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(mismatch.sentence, sizeof(mismatch.sentence), format, arguments);
    va_end(arguments);
    throw mismatch;
}

/* One written frame: whose voxels it holds. */
struct Frame {
    int32_t segment; /* from 0 */
    int32_t plane;
};

std::string
trimmed(const std::string &text)
{
    const size_t first = text.find_first_not_of(' ');
    if (first == std::string::npos)
        return "";
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/* --- attributes --- */

std::string
text_of(DcmItem &item, const DcmTagKey &tag, const char *name)
{
    OFString value;
    if (item.findAndGetOFStringArray(tag, value).bad())
        differ("%s is missing", name);
    return trimmed(std::string(value.c_str(), value.size()));
}

void
expect_text(DcmItem &item, const DcmTagKey &tag, const char *name, const std::string &expected)
{
    const std::string value = text_of(item, tag, name);
    if (value != trimmed(expected))
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

/* A decimal string has 16 characters at most: the last digits of a double may be lost. */
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

/* --- the comparison --- */

class Verifier
{
  public:
    Verifier(const struct seg_request &request, const char *path)
        : request_(request), stack_(*request.stack), path_(path)
    {
    }

    void run()
    {
        load();
        check_identity();
        check_image();
        check_segments();
        check_shared_groups();
        check_referenced_series();
        index_planes();
        check_frames();
        check_dimensions();
        check_pixels();
    }

  private:
    void load();
    void check_identity();
    void check_image();
    void check_segments();
    void check_code(DcmItem &item, const DcmTagKey &tag, const char *name, const seg_code &code);
    void check_label(DcmItem &item, const char *label);
    void check_shared_groups();
    void check_referenced_series();
    void index_planes();
    void check_frames();
    Frame check_frame(DcmItem &item);
    int32_t plane_of(DcmItem &frame);
    void check_dimensions();
    void check_pixels();
    void check_omitted(const std::vector<bool> &present);
    void compare_mask(const uint8_t *bytes, unsigned first_bit, const Frame &frame);
    void compare_scene(const uint8_t *values, const Frame &frame);
    bool is_empty(const Frame &frame) const;
    bool mask_is_empty(const Frame &frame) const;

    int64_t voxels() const /* of a frame */
    {
        return static_cast<int64_t>(stack_.rows) * stack_.columns;
    }

    const uint16_t *scene_of(const Frame &frame) const
    {
        return request_.segments[frame.segment].scene + frame.plane * voxels();
    }

    size_t slot(const Frame &frame) const
    {
        return static_cast<size_t>(frame.segment) * static_cast<size_t>(stack_.plane_count) +
               static_cast<size_t>(frame.plane);
    }

    const struct seg_request &request_;
    const struct geometry_stack &stack_;
    const char *path_;
    DcmFileFormat file_;
    bool utf8_ = false;
    std::unordered_map<std::string, int32_t> planes_; /* by source instance and frame number */
    std::vector<Frame> frames_;
    std::vector<uint32_t> indices_; /* two Dimension Index Values a frame */
};

void
Verifier::load()
{
    const OFCondition status = file_.loadFile(path_, EXS_Unknown, EGL_noChange);
    if (status.bad())
        differ("it cannot be read: %s", status.text());
    if (file_.getDataset()->getOriginalXfer() != EXS_LittleEndianExplicit)
        differ("its transfer syntax is not Explicit VR Little Endian");
    OFString set;
    file_.getDataset()->findAndGetOFString(DCM_SpecificCharacterSet, set);
    utf8_ = set == "ISO_IR 192";
}

void
Verifier::check_identity()
{
    DcmDataset &dataset = *file_.getDataset();
    struct seg_identity identity;
    char frame_of_reference[DICOM_UID_SIZE];
    if (seg_make_identity(&request_, &identity) ||
        seg_frame_of_reference_uid(&request_, frame_of_reference))
        throw std::bad_alloc();
    expect_text(*file_.getMetaInfo(), DCM_MediaStorageSOPClassUID, "MediaStorageSOPClassUID",
                SEG_SOP_CLASS_UID);
    expect_text(*file_.getMetaInfo(), DCM_MediaStorageSOPInstanceUID, "MediaStorageSOPInstanceUID",
                identity.sop_instance_uid);
    expect_text(dataset, DCM_SOPClassUID, "SOPClassUID", SEG_SOP_CLASS_UID);
    expect_text(dataset, DCM_SOPInstanceUID, "SOPInstanceUID", identity.sop_instance_uid);
    expect_text(dataset, DCM_SeriesInstanceUID, "SeriesInstanceUID", identity.series_uid);
    expect_text(dataset, DCM_StudyInstanceUID, "StudyInstanceUID",
                seg_plane_instance(&request_, 0)->study_uid);
    expect_text(dataset, DCM_FrameOfReferenceUID, "FrameOfReferenceUID", frame_of_reference);
    expect_text(dataset, DCM_Modality, "Modality", "SEG");
}

void
Verifier::check_image()
{
    DcmDataset &dataset = *file_.getDataset();
    const int64_t bits = request_.fractional ? 8 : 1;
    expect_text(dataset, DCM_SegmentationType, "SegmentationType",
                request_.fractional ? "FRACTIONAL" : "BINARY");
    if (request_.fractional) {
        expect_text(dataset, DCM_SegmentationFractionalType, "SegmentationFractionalType",
                    "PROBABILITY");
        expect_number(dataset, DCM_MaximumFractionalValue, "MaximumFractionalValue", 255);
    }
    expect_text(dataset, DCM_PhotometricInterpretation, "PhotometricInterpretation", "MONOCHROME2");
    expect_number(dataset, DCM_SamplesPerPixel, "SamplesPerPixel", 1);
    expect_number(dataset, DCM_Rows, "Rows", stack_.rows);
    expect_number(dataset, DCM_Columns, "Columns", stack_.columns);
    expect_number(dataset, DCM_BitsAllocated, "BitsAllocated", bits);
    expect_number(dataset, DCM_BitsStored, "BitsStored", bits);
    expect_number(dataset, DCM_HighBit, "HighBit", bits - 1);
    expect_number(dataset, DCM_PixelRepresentation, "PixelRepresentation", 0);
}

void
Verifier::check_code(DcmItem &item, const DcmTagKey &tag, const char *name, const seg_code &code)
{
    DcmItem &coded = item_of(item, tag, name);
    const bool is_long = !coded.tagExists(DCM_CodeValue);
    expect_text(coded, is_long ? DCM_LongCodeValue : DCM_CodeValue, name, code.value);
    expect_text(coded, DCM_CodingSchemeDesignator, name, code.scheme);
}

void
Verifier::check_label(DcmItem &item, const char *label)
{
    const std::unique_ptr<char, void (*)(void *)> clean(
        value_text_clean(label, 64, VALUE_LINE, !utf8_), std::free);
    if (!clean)
        throw std::bad_alloc();
    expect_text(item, DCM_SegmentLabel, "SegmentLabel", clean.get());
}

void
Verifier::check_segments()
{
    DcmSequenceOfItems &segments =
        sequence_of(*file_.getDataset(), DCM_SegmentSequence, "SegmentSequence",
                    static_cast<size_t>(request_.segment_count));
    for (int32_t i = 0; i < request_.segment_count; i++) {
        DcmItem &item = *segments.getItem(static_cast<unsigned long>(i));
        const struct seg_segment &segment = request_.segments[i];
        expect_number(item, DCM_SegmentNumber, "SegmentNumber", i + 1);
        check_label(item, segment.label);
        check_code(item, DCM_SegmentedPropertyCategoryCodeSequence,
                   "SegmentedPropertyCategoryCodeSequence", segment.category);
        check_code(item, DCM_SegmentedPropertyTypeCodeSequence, "SegmentedPropertyTypeCodeSequence",
                   segment.type);
        expect_text(item, DCM_SegmentAlgorithmType, "SegmentAlgorithmType", "AUTOMATIC");
    }
}

void
Verifier::check_shared_groups()
{
    DcmItem &groups = item_of(*file_.getDataset(), DCM_SharedFunctionalGroupsSequence,
                              "SharedFunctionalGroupsSequence");
    DcmItem &orientation =
        item_of(groups, DCM_PlaneOrientationSequence, "PlaneOrientationSequence");
    DcmItem &measures = item_of(groups, DCM_PixelMeasuresSequence, "PixelMeasuresSequence");
    const struct dicom_frame &first = *seg_plane_frame(&request_, 0);
    for (unsigned long i = 0; i < 6; i++)
        expect_decimal(orientation, DCM_ImageOrientationPatient, "ImageOrientationPatient", i,
                       first.orientation[i]);
    for (unsigned long i = 0; i < 2; i++)
        expect_decimal(measures, DCM_PixelSpacing, "PixelSpacing", i, first.pixel_spacing[i]);
    if (decimal_of(measures, DCM_SliceThickness, "SliceThickness", 0) <= 0.0)
        differ("SliceThickness is not positive");
    if (stack_.plane_count > 1)
        expect_decimal(measures, DCM_SpacingBetweenSlices, "SpacingBetweenSlices", 0,
                       stack_.spacing[2]);
    else if (measures.tagExists(DCM_SpacingBetweenSlices))
        differ("SpacingBetweenSlices is there for one plane");
}

void
Verifier::check_referenced_series()
{
    std::unordered_set<std::string> expected;
    for (int32_t p = 0; p < stack_.plane_count; p++)
        expected.insert(seg_plane_instance(&request_, p)->sop_instance_uid);

    DcmItem &series =
        item_of(*file_.getDataset(), DCM_ReferencedSeriesSequence, "ReferencedSeriesSequence");
    expect_text(series, DCM_SeriesInstanceUID, "SeriesInstanceUID of the source",
                seg_plane_instance(&request_, 0)->series_uid);
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

std::string
source_key(const std::string &sop_instance_uid, int64_t frame)
{
    return sop_instance_uid + '#' + std::to_string(frame);
}

void
Verifier::index_planes()
{
    for (int32_t p = 0; p < stack_.plane_count; p++) {
        const int32_t frame = stack_.planes[p].frame;
        planes_.emplace(source_key(seg_plane_instance(&request_, p)->sop_instance_uid, frame), p);
    }
}

int32_t
Verifier::plane_of(DcmItem &frame)
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
    const struct dicom_instance &instance = *seg_plane_instance(&request_, found->second);
    if (numbered != instance.multi_frame)
        differ("its ReferencedFrameNumber is %s", numbered ? "needless" : "missing");
    expect_text(source, DCM_ReferencedSOPClassUID, "ReferencedSOPClassUID", instance.sop_class_uid);
    expect_text(source, DCM_SpatialLocationsPreserved, "SpatialLocationsPreserved", "YES");
    return found->second;
}

Frame
Verifier::check_frame(DcmItem &item)
{
    Frame frame;
    frame.plane = plane_of(item);

    DcmItem &position = item_of(item, DCM_PlanePositionSequence, "PlanePositionSequence");
    const struct dicom_frame &expected = *seg_plane_frame(&request_, frame.plane);
    for (unsigned long i = 0; i < 3; i++)
        expect_decimal(position, DCM_ImagePositionPatient, "ImagePositionPatient", i,
                       expected.position[i]);

    Uint16 number = 0;
    DcmItem &segment =
        item_of(item, DCM_SegmentIdentificationSequence, "SegmentIdentificationSequence");
    if (segment.findAndGetUint16(DCM_ReferencedSegmentNumber, number).bad() || number < 1 ||
        number > request_.segment_count)
        differ("it belongs to segment %u, which does not exist", static_cast<unsigned>(number));
    frame.segment = number - 1;

    DcmItem &content = item_of(item, DCM_FrameContentSequence, "FrameContentSequence");
    const Uint32 *indices = nullptr;
    unsigned long count = 0;
    if (content.findAndGetUint32Array(DCM_DimensionIndexValues, indices, &count).bad() ||
        count != 2)
        differ("DimensionIndexValues are not two");
    indices_.insert(indices_.end(), indices, indices + 2);
    return frame;
}

void
Verifier::check_frames()
{
    DcmDataset &dataset = *file_.getDataset();
    Sint32 count = 0;
    if (dataset.findAndGetSint32(DCM_NumberOfFrames, count).bad() || count < 1)
        differ("NumberOfFrames is missing");
    DcmSequenceOfItems &groups =
        sequence_of(dataset, DCM_PerFrameFunctionalGroupsSequence,
                    "PerFrameFunctionalGroupsSequence", static_cast<size_t>(count));
    frames_.reserve(static_cast<size_t>(count));
    indices_.reserve(2 * static_cast<size_t>(count));
    for (DcmObject *object = groups.nextInContainer(nullptr); object;
         object = groups.nextInContainer(object)) {
        try {
            frames_.push_back(check_frame(*static_cast<DcmItem *>(object)));
        } catch (const Mismatch &mismatch) {
            differ("frame %zu: %.300s", frames_.size() + 1, mismatch.sentence);
        }
    }
}

/*
 * Dimension Index Values: equal for equal segments and planes, rising with them, from 1 without
 * gaps.
 */
void
check_ordinals(const std::vector<uint32_t> &index, const char *what)
{
    uint32_t last = 0;
    for (const uint32_t value : index) {
        if (value == 0)
            continue;
        if (value != last + 1)
            differ("DimensionIndexValues of the %ss jump from %u to %u", what, last, value);
        last = value;
    }
}

void
Verifier::check_dimensions()
{
    std::vector<uint32_t> segments(static_cast<size_t>(request_.segment_count));
    std::vector<uint32_t> planes(static_cast<size_t>(stack_.plane_count));
    for (size_t f = 0; f < frames_.size(); f++) {
        uint32_t &segment = segments[static_cast<size_t>(frames_[f].segment)];
        uint32_t &plane = planes[static_cast<size_t>(frames_[f].plane)];
        const uint32_t *value = &indices_[2 * f];
        if (value[0] == 0 || value[1] == 0 || (segment != 0 && segment != value[0]) ||
            (plane != 0 && plane != value[1]))
            differ("frame %zu: DimensionIndexValues %u, %u do not fit its segment and plane", f + 1,
                   value[0], value[1]);
        segment = value[0];
        plane = value[1];
    }
    check_ordinals(segments, "segment");
    check_ordinals(planes, "plane");
}

/* --- pixels --- */

/* Pixel data, read once from front to back; a byte that two frames share is kept between them. */
class PixelStream
{
  public:
    PixelStream(DcmElement &element, uint64_t frame_bits)
        : element_(element), frame_bits_(frame_bits), buffer_(frame_bits / 8 + 16)
    {
    }

    /* The next frame's bytes, eight more to be read without harm, and its first bit in them. */
    const uint8_t *next(unsigned &first_bit)
    {
        const uint64_t end = bit_ + frame_bits_;
        const uint64_t begin_byte = bit_ / 8;
        const uint64_t end_byte = (end + 7) / 8;
        size_t kept = 0;
        if (begin_byte < read_) {
            buffer_[0] = last_;
            kept = 1;
        }
        const size_t wanted = static_cast<size_t>(end_byte - read_);
        fetch(&buffer_[kept], wanted);
        first_bit = static_cast<unsigned>(bit_ % 8);
        if (kept + wanted > 0)
            last_ = buffer_[kept + wanted - 1];
        read_ = end_byte;
        bit_ = end;
        return buffer_.data();
    }

    /* What follows the last frame must be zero bits. */
    void finish(uint64_t length)
    {
        const size_t rest = static_cast<size_t>(length - read_);
        fetch(buffer_.data(), rest);
        const unsigned used = static_cast<unsigned>(bit_ % 8);
        bool zero = used == 0 || last_ >> used == 0;
        for (size_t i = 0; i < rest; i++)
            zero = zero && buffer_[i] == 0;
        if (!zero)
            differ("the padding after the last frame is not zero");
    }

  private:
    void fetch(uint8_t *place, size_t size)
    {
        if (size == 0)
            return;
        const OFCondition status =
            element_.getPartialValue(place, static_cast<Uint32>(read_), static_cast<Uint32>(size),
                                     &cache_, EBO_LittleEndian);
        if (status.bad())
            differ("PixelData cannot be read: %s", status.text());
    }

    DcmElement &element_;
    DcmFileCache cache_;
    const uint64_t frame_bits_;
    std::vector<uint8_t> buffer_;
    uint64_t bit_ = 0;  /* where the next frame begins */
    uint64_t read_ = 0; /* bytes fetched */
    uint8_t last_ = 0;
};

/* 64 bits from bit `at` on; nine bytes are touched. */
uint64_t
bits_at(const uint8_t *bytes, uint64_t at)
{
    const uint8_t *place = bytes + at / 8;
    const unsigned shift = static_cast<unsigned>(at % 8);
    uint64_t low = 0;
    for (unsigned i = 0; i < 8; i++)
        low |= static_cast<uint64_t>(place[i]) << (8 * i);
    return shift == 0 ? low : low >> shift | static_cast<uint64_t>(place[8]) << (64 - shift);
}

void
Verifier::compare_mask(const uint8_t *bytes, unsigned first_bit, const Frame &frame)
{
    const struct seg_segment &segment = request_.segments[frame.segment];
    const int32_t columns = stack_.columns;
    uint64_t at = first_bit;
    for (int32_t y = 0; y < stack_.rows; y++) {
        const uint64_t *row = segment.bits + (static_cast<int64_t>(frame.plane) * stack_.rows + y) *
                                                 segment.words_per_row;
        for (int32_t x = 0; x < columns; x += 64) {
            const int32_t count = std::min(columns - x, 64);
            const uint64_t mask = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
            const uint64_t difference = (bits_at(bytes, at) ^ row[x / 64]) & mask;
            if (difference != 0)
                differ("voxel (%d, %d, %d) of segment %d is not what was segmented",
                       x + __builtin_ctzll(difference), y, frame.plane, frame.segment + 1);
            at += static_cast<uint64_t>(count);
        }
    }
}

/*
 * How far `value` of 255 is from `scene` of 65535, in steps of the scene. The nearest value is not
 * farther than half of its own step, 65535 / 255 = 257; halves do not occur.
 */
int32_t
distance(uint8_t value, uint16_t scene)
{
    return std::abs(int32_t{value} * 257 - int32_t{scene});
}

const int32_t max_distance = 128;

void
Verifier::compare_scene(const uint8_t *values, const Frame &frame)
{
    const uint16_t *scene = scene_of(frame);
    const int64_t count = voxels();
    int32_t farthest = 0;
    for (int64_t i = 0; i < count; i++)
        farthest = std::max(farthest, distance(values[i], scene[i]));
    if (farthest <= max_distance)
        return;
    int64_t i = 0;
    while (distance(values[i], scene[i]) <= max_distance)
        i++;
    differ("voxel (%d, %d, %d) of segment %d is %u of 255 instead of %u of 65535",
           static_cast<int>(i % stack_.columns), static_cast<int>(i / stack_.columns), frame.plane,
           frame.segment + 1, static_cast<unsigned>(values[i]), static_cast<unsigned>(scene[i]));
}

bool
Verifier::mask_is_empty(const Frame &frame) const
{
    const struct seg_segment &segment = request_.segments[frame.segment];
    const int64_t first = static_cast<int64_t>(frame.plane) * stack_.rows;
    for (int32_t y = 0; y < stack_.rows; y++) {
        const uint64_t *row = segment.bits + (first + y) * segment.words_per_row;
        for (int32_t x = 0; x < stack_.columns; x += 64) {
            const int32_t count = std::min(stack_.columns - x, 64);
            if (row[x / 64] << (64 - count) != 0)
                return false;
        }
    }
    return true;
}

/* Whether the frame has nothing but zeros to store. */
bool
Verifier::is_empty(const Frame &frame) const
{
    if (!request_.fractional)
        return mask_is_empty(frame);
    const uint16_t *scene = scene_of(frame);
    return std::all_of(scene, scene + voxels(),
                       [](uint16_t value) { return distance(0, value) <= max_distance; });
}

/* Frames that were left out must have no voxel; with empty frames kept, none is left out. */
void
Verifier::check_omitted(const std::vector<bool> &present)
{
    for (Frame frame = {0, 0}; frame.segment < request_.segment_count; frame.segment++) {
        for (frame.plane = 0; frame.plane < stack_.plane_count; frame.plane++) {
            if (!present[slot(frame)] && (!request_.omit_empty_frames || !is_empty(frame)))
                differ("plane %d of segment %d is missing", frame.plane, frame.segment + 1);
        }
    }
}

void
Verifier::check_pixels()
{
    DcmElement *pixels = nullptr;
    if (file_.getDataset()->findAndGetElement(DCM_PixelData, pixels).bad() || !pixels)
        differ("PixelData is missing");
    const uint64_t frame_bits = static_cast<uint64_t>(voxels()) * (request_.fractional ? 8 : 1);
    const uint64_t length = (frame_bits * frames_.size() + 15) / 16 * 2;
    if (pixels->getLength() != length)
        differ("PixelData has %u bytes instead of %llu", static_cast<unsigned>(pixels->getLength()),
               static_cast<unsigned long long>(length));

    std::vector<bool> present(static_cast<size_t>(request_.segment_count) *
                              static_cast<size_t>(stack_.plane_count));
    PixelStream stream(*pixels, frame_bits);
    for (size_t f = 0; f < frames_.size(); f++) {
        if (present[slot(frames_[f])])
            differ("frame %zu: plane %d of segment %d is there twice", f + 1, frames_[f].plane,
                   frames_[f].segment + 1);
        present[slot(frames_[f])] = true;
        unsigned first_bit = 0;
        const uint8_t *bytes = stream.next(first_bit);
        if (request_.fractional)
            compare_scene(bytes, frames_[f]);
        else
            compare_mask(bytes, first_bit, frames_[f]);
    }
    stream.finish(length);
    check_omitted(present);
}

} // namespace

extern "C" int
seg_verify(const struct seg_request *request, const char *path, struct dicom_fault *fault)
try {
    Verifier(*request, path).run();
    return 0;

} catch (const Mismatch &mismatch) {
    return fault_set(fault, -EBADMSG, "SEG_MISMATCH", path, nullptr,
                     "The segmentation read back from %.80s is not the one written: %.380s.",
                     fault_base_name(path), mismatch.sentence);

} catch (const std::bad_alloc &) {

    return fault_set(fault, -ENOMEM, "OUT_OF_MEMORY", path, nullptr,
                     "There is not enough memory to read the segmentation back.");

} catch (...) {

    return fault_set(fault, -EIO, "SEG_MISMATCH", path, nullptr,
                     "The segmentation cannot be read back.");
}
