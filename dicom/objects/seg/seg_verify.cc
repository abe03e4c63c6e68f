/*
 * seg_verify.cc - reads a segmentation object back with DCMTK and compares it with what it was to
 * say.
 *
 * Nothing here is shared with the writer but the names (seg_internal.h): attributes come from
 * DCMTK's parser (read_back.hh), frames are found by their source references, and bits are taken
 * out of the stream by a routine of this file (that of DCMTK 3.6.7 is wrong for frames that do not
 * end on a byte), probabilities judged by their distance from the scene. DCMTK leaves the pixel
 * data in the file; one frame per thread is in memory.
 */
#include "dicom/objects/seg/seg.h"

#include "dicom/objects/seg/seg_internal.h"
#include "dicom/value/value_text.h"
#include "dicom/write/pixel_file.hh"
#include "dicom/write/read_back.hh"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <endian.h>
#include <memory>
#include <new>
#include <string>
#include <vector>

using namespace read_back;

namespace
{

/* One written frame: whose voxels it holds. */
struct Frame {
    int32_t segment; /* from 0 */
    int32_t plane;
};

/* --- the comparison --- */

class SegVerifier
{
  public:
    SegVerifier(const struct seg_request &request, const char *path, int threads)
        : request_(request), stack_(*request.source.stack), path_(path), threads_(threads),
          references_(request.source)
    {
    }

    void run()
    {
        load_file(file_, path_);
        utf8_ = is_utf8(file_);
        check_identity();
        check_image();
        check_segments();
        references_.check_shared_groups(item_of(*file_.getDataset(),
                                                DCM_SharedFunctionalGroupsSequence,
                                                "SharedFunctionalGroupsSequence"));
        references_.check_referenced_series(*file_.getDataset());
        check_frames();
        check_dimensions();
        check_pixels();
    }

  private:
    void check_identity();
    void check_image();
    void check_segments();
    void check_label(DcmItem &item, const char *label);
    void check_frames();
    Frame check_frame(DcmItem &item);
    void check_dimensions();
    std::vector<bool> mark_present() const;
    void check_pixels();
    void compare_frames(const PixelFile &pixels, size_t first, size_t end) const;
    void check_omitted(const std::vector<bool> &present) const;
    void compare_row(const uint8_t *bytes, uint64_t at, const uint64_t *row, const Frame &frame,
                     int32_t y) const;
    void compare_mask(const uint8_t *bytes, unsigned first_bit, const Frame &frame) const;
    void compare_scene(const uint8_t *values, const Frame &frame) const;
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
    const int threads_;
    const StackReferences references_;
    DcmFileFormat file_;
    bool utf8_ = false;
    std::vector<Frame> frames_;
    std::vector<uint32_t> indices_; /* two Dimension Index Values a frame */
};

void
SegVerifier::check_identity()
{
    struct derived_identity identity;
    if (seg_identify(&request_, &identity))
        throw std::bad_alloc();
    read_back::check_identity(file_, SEG_SOP_CLASS_UID, identity,
                              derived_plane_instance(&request_.source, 0)->study_uid, "SEG");
    references_.check_frame_of_reference(*file_.getDataset());
}

void
SegVerifier::check_image()
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
SegVerifier::check_label(DcmItem &item, const char *label)
{
    const std::unique_ptr<char, void (*)(void *)> clean(
        value_text_clean(label, 64, VALUE_LINE, !utf8_), std::free);
    if (!clean)
        throw std::bad_alloc();
    expect_text(item, DCM_SegmentLabel, "SegmentLabel", clean.get());
}

void
SegVerifier::check_segments()
{
    DcmSequenceOfItems &segments =
        sequence_of(*file_.getDataset(), DCM_SegmentSequence, "SegmentSequence",
                    static_cast<size_t>(request_.segment_count));
    for (int32_t i = 0; i < request_.segment_count; i++) {
        DcmItem &item = *segments.getItem(static_cast<unsigned long>(i));
        const struct seg_segment &segment = request_.segments[i];
        expect_number(item, DCM_SegmentNumber, "SegmentNumber", i + 1);
        check_label(item, segment.label);
        expect_code(item, DCM_SegmentedPropertyCategoryCodeSequence,
                    "SegmentedPropertyCategoryCodeSequence", segment.category);
        expect_code(item, DCM_SegmentedPropertyTypeCodeSequence,
                    "SegmentedPropertyTypeCodeSequence", segment.type);
        expect_text(item, DCM_SegmentAlgorithmType, "SegmentAlgorithmType", "AUTOMATIC");
    }
}

Frame
SegVerifier::check_frame(DcmItem &item)
{
    Frame frame;
    frame.plane = references_.plane_of(item);

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
SegVerifier::check_frames()
{
    DcmDataset &dataset = *file_.getDataset();
    Sint32 count = 0;
    if (dataset.findAndGetSint32(DCM_NumberOfFrames, count).bad() || count < 1)
        differ("NumberOfFrames is missing");
    frames_.reserve(static_cast<size_t>(count));
    indices_.reserve(2 * static_cast<size_t>(count));
    check_each_frame(dataset, static_cast<size_t>(count),
                     [&](DcmItem &item) { frames_.push_back(check_frame(item)); });
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
SegVerifier::check_dimensions()
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

/* 64 bits from bit `at` on; nine bytes are touched. */
uint64_t
bits_at(const uint8_t *bytes, uint64_t at)
{
    const uint8_t *place = bytes + at / 8;
    const unsigned shift = static_cast<unsigned>(at % 8);
    uint64_t low;
    std::memcpy(&low, place, sizeof low);
    low = le64toh(low);
    return shift == 0 ? low : low >> shift | static_cast<uint64_t>(place[8]) << (64 - shift);
}

/* Whether the voxels of a row are the bytes from bit `at` on: told without looking at bits where
 * both are whole bytes in the same order, else left open. */
bool
same_bytes(const uint8_t *bytes, uint64_t at, const uint64_t *row, int32_t columns)
{
    return __BYTE_ORDER == __LITTLE_ENDIAN && at % 8 == 0 && columns % 8 == 0 &&
           std::memcmp(bytes + at / 8, row, static_cast<size_t>(columns) / 8) == 0;
}

void
SegVerifier::compare_row(const uint8_t *bytes, uint64_t at, const uint64_t *row, const Frame &frame,
                         int32_t y) const
{
    for (int32_t x = 0; x < stack_.columns; x += 64) {
        const int32_t count = std::min(stack_.columns - x, 64);
        const uint64_t mask = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
        const uint64_t difference =
            (bits_at(bytes, at + static_cast<uint64_t>(x)) ^ row[x / 64]) & mask;
        if (difference != 0)
            differ("voxel (%d, %d, %d) of segment %d is not what was segmented",
                   x + __builtin_ctzll(difference), y, frame.plane, frame.segment + 1);
    }
}

void
SegVerifier::compare_mask(const uint8_t *bytes, unsigned first_bit, const Frame &frame) const
{
    const struct seg_segment &segment = request_.segments[frame.segment];
    uint64_t at = first_bit;
    for (int32_t y = 0; y < stack_.rows; y++) {
        const uint64_t *row = segment.bits + (static_cast<int64_t>(frame.plane) * stack_.rows + y) *
                                                 segment.words_per_row;
        if (!same_bytes(bytes, at, row, stack_.columns))
            compare_row(bytes, at, row, frame, y);
        at += static_cast<uint64_t>(stack_.columns);
    }
}

/*
 * How far `value` of 255 is from `scene` of 65535, in steps of the scene. The nearest value is not
 * farther than half of its own step, 65535 / 255 = 257; halves do not occur.
 */
int32_t
level_distance(uint8_t value, uint16_t scene)
{
    return std::abs(int32_t{value} * 257 - int32_t{scene});
}

const int32_t max_distance = 128;

/* Whether none is too far from its voxel: no test, so that compilers make vectors of it. */
bool
all_near(const uint8_t *values, const uint16_t *scene, int64_t count)
{
    int32_t outside = 0; /* negative: one of them was below 0 or above twice the distance */
    for (int64_t i = 0; i < count; i++) {
        const int32_t above = int32_t{values[i]} * 257 - int32_t{scene[i]} + max_distance;
        outside |= above | (2 * max_distance - above);
    }
    return outside >= 0;
}

void
SegVerifier::compare_scene(const uint8_t *values, const Frame &frame) const
{
    const int64_t block = 512; /* of one size, which spares vectors their remainder */
    const uint16_t *scene = scene_of(frame);
    int64_t i = 0;
    while (i + block <= voxels() && all_near(values + i, scene + i, block))
        i += block;
    while (i < voxels() && level_distance(values[i], scene[i]) <= max_distance)
        i++;
    if (i == voxels())
        return;
    differ("voxel (%d, %d, %d) of segment %d is %u of 255 instead of %u of 65535",
           static_cast<int>(i % stack_.columns), static_cast<int>(i / stack_.columns), frame.plane,
           frame.segment + 1, static_cast<unsigned>(values[i]), static_cast<unsigned>(scene[i]));
}

bool
SegVerifier::mask_is_empty(const Frame &frame) const
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
SegVerifier::is_empty(const Frame &frame) const
{
    if (!request_.fractional)
        return mask_is_empty(frame);
    const uint16_t *scene = scene_of(frame);
    return std::all_of(scene, scene + voxels(),
                       [](uint16_t value) { return level_distance(0, value) <= max_distance; });
}

/* Frames that were left out must have no voxel; with empty frames kept, none is left out. */
void
SegVerifier::check_omitted(const std::vector<bool> &present) const
{
    for (Frame frame = {0, 0}; frame.segment < request_.segment_count; frame.segment++) {
        for (frame.plane = 0; frame.plane < stack_.plane_count; frame.plane++) {
            if (!present[slot(frame)] && (!request_.omit_empty_frames || !is_empty(frame)))
                differ("plane %d of segment %d is missing", frame.plane, frame.segment + 1);
        }
    }
}

void
SegVerifier::compare_frames(const PixelFile &pixels, size_t first, size_t end) const
{
    std::vector<uint8_t> buffer;
    for (size_t f = first; f < end; f++) {
        unsigned first_bit = 0;
        const uint8_t *bytes = pixels.read(f, buffer, first_bit);
        if (request_.fractional)
            compare_scene(bytes, frames_[f]);
        else
            compare_mask(bytes, first_bit, frames_[f]);
    }
}

std::vector<bool>
SegVerifier::mark_present() const
{
    std::vector<bool> present(static_cast<size_t>(request_.segment_count) *
                              static_cast<size_t>(stack_.plane_count));
    for (size_t f = 0; f < frames_.size(); f++) {
        if (present[slot(frames_[f])])
            differ("frame %zu: plane %d of segment %d is there twice", f + 1, frames_[f].plane,
                   frames_[f].segment + 1);
        present[slot(frames_[f])] = true;
    }
    return present;
}

void
SegVerifier::check_pixels()
{
    const uint64_t worth = UINT64_C(1) << 25; /* bits: to compare fewer, no thread is started */
    const uint64_t frame_bits = static_cast<uint64_t>(voxels()) * (request_.fractional ? 8 : 1);
    const PixelFile pixels(path_, *file_.getDataset(), frame_bits, frames_.size());
    const std::vector<bool> present = mark_present();
    in_parts(frames_.size(), static_cast<size_t>(worth / frame_bits + 1), threads_,
             [&](size_t first, size_t end) { compare_frames(pixels, first, end); });
    pixels.check_padding();
    check_omitted(present);
}

} // namespace

extern "C" int
seg_verify(const struct seg_request *request, const char *path, int threads, struct error *error)
try {
    SegVerifier(*request, path, threads).run();
    return 0;

} catch (...) {

    return caught(error, path, CODE_SEG_MISMATCH, "segmentation");
}
