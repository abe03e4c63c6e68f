/*
 * seg_verify.cc - reads a segmentation object back with DCMTK and compares it with the request.
 *
 * This file shares only names with the writer (seg.h). DCMTK's parser reads the attributes (read_back.hh), and frames
 * are found by their source references. In a label map, labels are compared from the last segment to the first. Bits are extracted by a function of this file, because that of DCMTK 3.6.7 is
 * wrong for frames that do not end on a byte. Probabilities are compared by their distance from the map. DCMTK leaves
 * the pixel data in the file; one frame per thread is in memory.
 */
#include "dicom/objects/seg/seg.h"

#include "dicom/write/read_back.hh"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <endian.h>
#include <vector>

using namespace read_back;

namespace
{

/* One written frame. */
struct Frame {
    int32_t segment; /* from 0 */
    int32_t plane;
};

/* Returns 64 bits from bit `at` on. Reads nine bytes. */
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

/* Returns the distance of `value` of 255 from `connectedness` of 65535, in steps of the map. The
 * nearest value is at most half of its own step away: 65535 / 255 = 257. Halves do not occur. */
int32_t
level_distance(uint8_t value, uint16_t connectedness)
{
    return std::abs(int32_t{value} * 257 - int32_t{connectedness});
}

const int32_t max_distance = 128;

/* Returns whether 64 labels of 8 bits are all 0. */
bool
all_background(const uint8_t *labels)
{
    uint64_t words[8];
    std::memcpy(words, labels, sizeof words);
    uint64_t any = 0;
    for (const uint64_t word : words)
        any |= word;
    return any == 0;
}

/* Returns whether all values are near their voxels. Without branches, so that compilers vectorise it. */
bool
all_near(const uint8_t *values, const uint16_t *map, int64_t count)
{
    int32_t outside = 0; /* negative if a value was below 0 or above twice the distance */
    for (int64_t i = 0; i < count; i++) {
        const int32_t above = int32_t{values[i]} * 257 - int32_t{map[i]} + max_distance;
        outside |= above | (2 * max_distance - above);
    }
    return outside >= 0;
}

class SegVerifier : StackObject
{
  public:
    SegVerifier(const struct seg_request &request, const char *path, int threads)
        : StackObject(request.source, request.type != SEG_BINARY, path), request_(request), threads_(threads),
          labelmap_(request.type == SEG_LABELMAP), bits_(seg_bits(&request))
    {
    }

    void run()
    {
        if (seg_identify(&request_, &identity_))
            throw std::bad_alloc();
        StackObject::check_identity(labelmap_ ? SEG_LABELMAP_SOP_CLASS_UID : SEG_SOP_CLASS_UID, identity_, "SEG");
        static const char *const types[] = {"BINARY", "FRACTIONAL", "LABELMAP"};
        expect_text(dataset_, ATTRIBUTE(SegmentationType), types[request_.type]);
        if (labelmap_) {
            expect_text(dataset_, ATTRIBUTE(SegmentsOverlap), "NO");
            expect_number(dataset_, ATTRIBUTE(PixelPaddingValue), 0);
        }
        if (request_.type == SEG_FRACTIONAL) {
            expect_text(dataset_, ATTRIBUTE(SegmentationFractionalType), "PROBABILITY");
            expect_number(dataset_, ATTRIBUTE(MaximumFractionalValue), 255);
        }
        StackObject::check_image(bits_);
        check_segments();
        check_shared_groups();
        check_referenced_series(identity_.replaces);
        check_each_frame(0, [&](DcmItem &item) { frames_.push_back(check_frame(item)); });
        check_dimensions();
        check_pixels();
    }

  private:
    void check_segments()
    {
        const bool utf8 = is_utf8(dataset_);
        const struct seg_segment *segment = request_.segments;
        int64_t number = 0;
        const size_t before = labelmap_ ? 1 : 0; /* the background comes first */
        std::vector<DcmItem *> items =
            items_of(dataset_, ATTRIBUTE(SegmentSequence), before + static_cast<size_t>(request_.segment_count));
        if (labelmap_)
            check_background(*items[0]);
        items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(before));
        for (DcmItem *item : items) {
            expect_number(*item, ATTRIBUTE(SegmentNumber), ++number);
            expect_text(*item, ATTRIBUTE(SegmentLabel), clean_text(segment->label, 64, VALUE_LINE, utf8));
            expect_code(*item, ATTRIBUTE(SegmentedPropertyCategoryCodeSequence), segment->category);
            expect_code(*item, ATTRIBUTE(SegmentedPropertyTypeCodeSequence), segment->type);
            check_algorithms(*item, *segment, utf8);
            segment++;
        }
    }

    static void check_background(DcmItem &item)
    {
        expect_number(item, ATTRIBUTE(SegmentNumber), 0);
        expect_code(item, ATTRIBUTE(SegmentedPropertyCategoryCodeSequence), {"125040", "DCM", ""});
        expect_code(item, ATTRIBUTE(SegmentedPropertyTypeCodeSequence), {"125040", "DCM", ""});
    }

    static void check_algorithms(DcmItem &item, const struct seg_segment &segment, bool utf8)
    {
        expect_text(item, ATTRIBUTE(SegmentAlgorithmType), seg_algorithm_type(&segment));
        std::string names;
        for (size_t i = 0; const char *name = seg_algorithm_name(&segment, i); i++)
            names += (i > 0 ? "\\" : "") + clean_text(name, 64, VALUE_LINE, utf8);
        if (!names.empty())
            expect_text(item, ATTRIBUTE(SegmentAlgorithmName), names);
        std::vector<struct provenance_algorithm> expected;
        struct provenance_algorithm algorithm = {};
        while (seg_algorithm(&segment, expected.size(), &algorithm))
            expected.push_back(algorithm);
        if (expected.empty())
            return;
        size_t i = 0;
        for (DcmItem *each : items_of(item, ATTRIBUTE(SegmentationAlgorithmIdentificationSequence), expected.size())) {
            expect_code(*each, ATTRIBUTE(AlgorithmFamilyCodeSequence), expected[i].family);
            expect_text(*each, ATTRIBUTE(AlgorithmName), clean_text(expected[i].name, 64, VALUE_LINE, utf8));
            expect_text(*each, ATTRIBUTE(AlgorithmVersion), clean_text(expected[i].version, 64, VALUE_LINE, utf8));
            i++;
        }
    }

    Frame check_frame(DcmItem &item)
    {
        const int32_t plane = plane_of(item);
        if (labelmap_) {
            if (item.tagExists(DCM_SegmentIdentificationSequence))
                differ("SegmentIdentificationSequence is present in a label map");
            indices_.insert(indices_.end(), {1, indices_of(item, 1)[0]});
            return {0, plane};
        }
        Uint16 number = 0;
        DcmItem &segment = item_of(item, ATTRIBUTE(SegmentIdentificationSequence));
        if (segment.findAndGetUint16(DCM_ReferencedSegmentNumber, number).bad() || number < 1 ||
            number > request_.segment_count)
            differ("it belongs to segment %u, which does not exist", static_cast<unsigned>(number));
        const Uint32 *indices = indices_of(item, 2);
        indices_.insert(indices_.end(), indices, indices + 2);
        return {number - 1, plane};
    }

    /* Checks for ordinals from 1 without gaps. */
    static void check_ordinals(const std::vector<uint32_t> &index, const char *what)
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

    /* Checks Dimension Index Values: equal for equal segments and planes, and ascending with them. */
    void check_dimensions() const
    {
        std::vector<uint32_t> segments(layers());
        std::vector<uint32_t> planes(static_cast<size_t>(stack_.plane_count));
        for (size_t f = 0; f < frames_.size(); f++) {
            uint32_t &segment = segments[static_cast<size_t>(frames_[f].segment)];
            uint32_t &plane = planes[static_cast<size_t>(frames_[f].plane)];
            const uint32_t *value = &indices_[2 * f];
            if (value[0] == 0 || value[1] == 0 || (segment != 0 && segment != value[0]) ||
                (plane != 0 && plane != value[1]))
                differ("frame %zu: DimensionIndexValues %u, %u do not fit its segment and plane", f + 1, value[0],
                       value[1]);
            segment = value[0];
            plane = value[1];
        }
        check_ordinals(segments, "segment");
        check_ordinals(planes, "plane");
    }

    void check_pixels()
    {
        const uint64_t worth = UINT64_C(1) << 25; /* bits; fewer do not justify another thread */
        const PixelLayout frames = layout(bits_, frames_.size());
        std::vector<bool> present(layers() * static_cast<size_t>(stack_.plane_count));
        for (size_t f = 0; f < frames_.size(); f++) {
            if (present[slot(frames_[f])])
                differ("frame %zu: plane %d of segment %d is a duplicate", f + 1, frames_[f].plane,
                       frames_[f].segment + 1);
            present[slot(frames_[f])] = true;
        }
        PixelReader::check(frames, dataset_);
        in_parts(frames_.size(), static_cast<size_t>(worth / frames.frame_bits() + 1),
                 PixelReader::in_order(frames) ? 1 : threads_,
                 [&](size_t first, size_t end) { compare_frames(frames, first, end); });
        /* Omitted frames must have no voxel. If empty frames are kept, no frame may be omitted. */
        for (Frame frame = {0, 0}; frame.segment < static_cast<int32_t>(layers()); frame.segment++) {
            for (frame.plane = 0; frame.plane < stack_.plane_count; frame.plane++) {
                if (!present[slot(frame)] && (!request_.omit_empty_frames || !is_empty(frame)))
                    differ("plane %d of segment %d is missing", frame.plane, frame.segment + 1);
            }
        }
    }

    void compare_frames(const PixelLayout &frames, size_t first, size_t end)
    {
        const std::unique_ptr<PixelReader> pixels = PixelReader::open(frames);
        for (size_t f = first; f < end; f++) {
            unsigned first_bit = 0;
            const uint8_t *bytes = pixels->read(f, first_bit);
            if (request_.type == SEG_FRACTIONAL)
                compare_map(bytes, frames_[f]);
            else if (labelmap_)
                compare_labels(bytes, frames_[f].plane);
            else
                compare_mask(bytes, first_bit, frames_[f]);
        }
    }

    void compare_map(const uint8_t *values, const Frame &frame) const
    {
        const int64_t block = 512; /* fixed length, which spares vector loops their remainder */
        const uint16_t *map = map_of(frame);
        int64_t i = 0;
        while (i + block <= voxels() && all_near(values + i, map + i, block))
            i += block;
        while (i < voxels() && level_distance(values[i], map[i]) <= max_distance)
            i++;
        if (i == voxels())
            return;
        differ("voxel (%d, %d, %d) of segment %d is %u of 255 instead of %u of 65535",
               static_cast<int>(i % stack_.columns), static_cast<int>(i / stack_.columns), frame.plane,
               frame.segment + 1, static_cast<unsigned>(values[i]), static_cast<unsigned>(map[i]));
    }

    unsigned label_at(const uint8_t *labels, int64_t voxel) const
    {
        return bits_ == 8 ? labels[voxel] : labels[2 * voxel] | static_cast<unsigned>(labels[2 * voxel + 1]) << 8;
    }

    void compare_labels(const uint8_t *labels, int32_t plane) const
    {
        for (int32_t y = 0; y < stack_.rows; y++)
            for (int32_t x = 0; x < stack_.columns; x += 64)
                compare_labels_of_word(labels, plane, y, x);
    }

    /* Compares up to 64 voxels from column x on. The last segment that has a voxel has its label. */
    void compare_labels_of_word(const uint8_t *labels, int32_t plane, int32_t y, int32_t x) const
    {
        const int64_t first = static_cast<int64_t>(y) * stack_.columns + x;
        const int32_t count = std::min(stack_.columns - x, 64);
        uint64_t left = columns_from(x);
        for (int32_t s = request_.segment_count; s-- > 0;) {
            uint64_t mine = row_of({s, plane}, y)[x / 64] & left;
            left &= ~mine;
            for (; mine != 0; mine &= mine - 1)
                expect_label(labels, first, __builtin_ctzll(mine), plane, s + 1);
        }
        if (left == UINT64_MAX && bits_ == 8 && all_background(labels + first))
            return;
        for (int32_t i = 0; i < count; i++)
            if (left >> i & 1)
                expect_label(labels, first, i, plane, 0);
    }

    void expect_label(const uint8_t *labels, int64_t first, int32_t offset, int32_t plane, int32_t expected) const
    {
        const int64_t voxel = first + offset;
        const unsigned label = label_at(labels, voxel);
        if (label != static_cast<unsigned>(expected))
            differ("voxel (%d, %d, %d) has label %u instead of %d", static_cast<int>(voxel % stack_.columns),
                   static_cast<int>(voxel / stack_.columns), plane, label, expected);
    }

    void compare_mask(const uint8_t *bytes, unsigned first_bit, const Frame &frame) const
    {
        const size_t whole = static_cast<size_t>(stack_.columns) / 8;
        uint64_t at = first_bit;
        for (int32_t y = 0; y < stack_.rows; y++, at += static_cast<uint64_t>(stack_.columns)) {
            const uint64_t *row = row_of(frame, y);
            /* Whole bytes are compared only if both have the same bit order. */
            if (__BYTE_ORDER == __LITTLE_ENDIAN && at % 8 == 0 && stack_.columns % 8 == 0 &&
                std::memcmp(bytes + at / 8, row, whole) == 0)
                continue;
            for (int32_t x = 0; x < stack_.columns; x += 64) {
                const uint64_t read = bits_at(bytes, at + static_cast<uint64_t>(x));
                const uint64_t difference = (read ^ row[x / 64]) & columns_from(x);
                if (difference != 0)
                    differ("voxel (%d, %d, %d) of segment %d differs from the mask", x + __builtin_ctzll(difference), y,
                           frame.plane, frame.segment + 1);
            }
        }
    }

    /* Returns whether the frame's stored values are all zero. */
    bool is_empty(const Frame &frame) const
    {
        if (labelmap_) {
            for (int32_t s = 0; s < request_.segment_count; s++)
                if (!is_empty_mask({s, frame.plane}))
                    return false;
            return true;
        }
        if (request_.type == SEG_BINARY)
            return is_empty_mask(frame);
        const uint16_t *map = map_of(frame);
        return std::all_of(map, map + voxels(),
                           [](uint16_t value) { return level_distance(0, value) <= max_distance; });
    }

    bool is_empty_mask(const Frame &frame) const
    {
        for (int32_t y = 0; y < stack_.rows; y++) {
            for (int32_t x = 0; x < stack_.columns; x += 64) {
                if ((row_of(frame, y)[x / 64] & columns_from(x)) != 0)
                    return false;
            }
        }
        return true;
    }

    /* Returns the bits of the word at column x that are columns. */
    uint64_t columns_from(int32_t x) const
    {
        const int32_t count = stack_.columns - x;
        return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    }

    const uint64_t *row_of(const Frame &frame, int32_t y) const
    {
        const struct seg_segment &segment = request_.segments[frame.segment];
        return segment.bits + (static_cast<int64_t>(frame.plane) * stack_.rows + y) * segment.words_per_row;
    }

    const uint16_t *map_of(const Frame &frame) const
    {
        return request_.segments[frame.segment].map + frame.plane * voxels();
    }

    int64_t voxels() const /* number per frame */
    {
        return static_cast<int64_t>(stack_.rows) * stack_.columns;
    }

    /* Returns the number of frames that a plane may have. */
    size_t layers() const
    {
        return labelmap_ ? 1 : static_cast<size_t>(request_.segment_count);
    }

    size_t slot(const Frame &frame) const
    {
        return static_cast<size_t>(frame.segment) * static_cast<size_t>(stack_.plane_count) +
               static_cast<size_t>(frame.plane);
    }

    const struct seg_request &request_;
    struct derived_identity identity_ = {};
    const int threads_;
    const bool labelmap_;
    const int32_t bits_; /* per pixel */
    std::vector<Frame> frames_;
    std::vector<uint32_t> indices_; /* two Dimension Index Values per frame */
};

} // namespace

extern "C" int
seg_verify(const struct seg_request *request, const char *path, int threads, struct error *error)
{
    return verify(error, path, CODE_SEG_MISMATCH, "segmentation", [&] { SegVerifier(*request, path, threads).run(); });
}
