#include "dicom/read/annotation/seg_source.h"
#include "dicom/read/annotation/provenance.hh"
#include "dicom/read/image/source.hh"
#include "dicom/value/charset.hh"
#include "dicom/value/value.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

namespace
{

/* Ascending; all attributes read, also in items. */
constexpr uint32_t wanted_tags[] = {
    0x00080005, 0x00080016, 0x00080018, 0x00080070, 0x00080100, 0x00080102, 0x00080104, 0x00080119, 0x00081090,
    0x00081115, 0x00081155, 0x00081160, 0x00082112, 0x00082218, 0x00089124, 0x00180050, 0x00180088, 0x00181020,
    0x0020000D, 0x0020000E, 0x00200032, 0x00200037, 0x00200052, 0x00209113, 0x00209116, 0x00240202, 0x00280002,
    0x00280008, 0x00280010, 0x00280011, 0x00280030, 0x00280100, 0x00280101, 0x00280102, 0x00280103, 0x00289110,
    0x00620001, 0x00620002, 0x00620003, 0x00620004, 0x00620005, 0x00620007, 0x00620008, 0x00620009, 0x0062000A,
    0x0062000B, 0x0062000D, 0x0062000E, 0x0062000F, 0x00620011, 0x00620020, 0x00620021, 0x0066002F, 0x00660030,
    0x00660031, 0x00660032, 0x00660036, 0x52009229, 0x52009230,
};

/* One file being opened. */
struct Opening : HeaderReader {
    struct scan &scan;
    const Header &dataset;
    struct seg_source &source;
    std::map<int32_t, int32_t> by_number;
};

/* --------------------------------------------------------------------------- identity --- */

int
seg_source_read_identity(Opening &opening)
{
    struct seg_source &source = opening.source;
    const Header &dataset = opening.dataset;
    std::string class_uid = header_text(dataset, DCM_SOPClassUID);
    if (class_uid.empty())
        class_uid = opening.scan.media_class_uid;
    if (class_uid != SEG_SOURCE_CLASS_UID && class_uid != SEG_SOURCE_LABELMAP_CLASS)
        return opening.refuse(CODE_SOP_CLASS_UNSUPPORTED, "is not a Segmentation.");
    header_copy(source.class_uid, class_uid);
    source.own = header_is_own(dataset);
    const int rc = opening.read_identity(dataset, source.sop_instance_uid, source.study_uid, source.series_uid);
    return rc ? rc : opening.read_uid(dataset, DCM_FrameOfReferenceUID, false, source.frame_of_reference_uid);
}

int
seg_source_read_series(Opening &opening)
{
    struct seg_source &source = opening.source;
    const std::vector<DcmItem *> items =
        header_children<DcmItem>(opening.dataset.sequence(DCM_ReferencedSeriesSequence));
    source.series = header_allocate<char[DICOM_UID_SIZE]>(items.size());
    for (DcmItem *item : items) {
        const int rc = opening.read_uid(Header(*item), DCM_SeriesInstanceUID, true, source.series[source.series_count]);
        if (rc)
            return rc;
        source.series_count++;
    }
    return 0;
}

int
seg_source_read_segment(Opening &opening, const Header &item, Charset &charset, int32_t place,
                        struct seg_source_segment &segment)
{
    int rc = opening.read_number(item, DCM_SegmentNumber, 0, UINT16_MAX, &segment.number);
    if (!rc)
        rc = opening.read_uid(item, DCM_TrackingUID, false, segment.tracking_uid);
    if (rc)
        return rc;
    header_copy_name(segment.label, charset_name(charset, header_text(item, DCM_SegmentLabel)));
    header_copy_name(segment.tracking_id, charset_name(charset, header_text(item, DCM_TrackingID)));
    if (!segment.tracking_id[0] || !segment.tracking_uid[0])
        segment.tracking_id[0] = segment.tracking_uid[0] = '\0';
    uint16_t lab[3];
    segment.has_color = true;
    for (unsigned long i = 0; i < 3 && segment.has_color; i++) {
        double value;
        segment.has_color =
            header_number(item, DCM_RecommendedDisplayCIELabValue, &value, i) && value >= 0 && value <= UINT16_MAX;
        lab[i] = segment.has_color ? static_cast<uint16_t>(value) : 0;
    }
    if (segment.has_color)
        value_srgb_from_lab(lab, segment.color);
    segment.provenance = provenance_read(provenance_of_segment, opening.dataset, item, charset);
    provenance_add_codes(segment.provenance, provenance_of_segment, item, charset);
    if (opening.by_number.emplace(segment.number, place).second)
        return 0;
    return opening.invalid(DCM_SegmentNumber, "two segments have " + std::to_string(segment.number));
}

int
seg_source_read_segments(Opening &opening)
{
    DcmSequenceOfItems *sequence = opening.dataset.sequence(DCM_SegmentSequence);
    if (!sequence)
        return opening.missing(DCM_SegmentSequence);
    const std::vector<DcmItem *> items = header_children<DcmItem>(sequence);
    Charset charset(header_character_sets(opening.dataset));
    opening.source.segments = header_allocate<struct seg_source_segment>(items.size());
    for (DcmItem *item : items) {
        const int32_t place = opening.source.segment_count++;
        const int rc = seg_source_read_segment(opening, Header(*item), charset, place, opening.source.segments[place]);
        if (rc)
            return rc;
    }
    return 0;
}

/* ----------------------------------------------------------------------------- pixels ---- */

int
seg_source_read_type(Opening &opening)
{
    static const std::map<std::string, enum seg_source_type> types = {
        {"BINARY", SEG_SOURCE_BINARY}, {"FRACTIONAL", SEG_SOURCE_FRACTIONAL}, {"LABELMAP", SEG_SOURCE_LABELMAP}};

    const auto type = types.find(header_text(opening.dataset, DCM_SegmentationType));
    if (type == types.end())
        return opening.invalid(DCM_SegmentationType, "neither BINARY, FRACTIONAL nor LABELMAP");
    opening.source.type = type->second;
    return type->second != SEG_SOURCE_FRACTIONAL ? 0
                                                 : opening.read_number(opening.dataset, DCM_MaximumFractionalValue, 1,
                                                                       UINT8_MAX, &opening.source.maximum);
}

int
seg_source_read_sizes(Opening &opening)
{
    struct seg_source &source = opening.source;
    const Header &dataset = opening.dataset;
    int32_t stored = 0, high = 0, is_signed = 0, samples = 0;

    const struct {
        DcmTagKey tag;
        int32_t low, high, *value;
    } numbers[] = {
        {DCM_Rows, 1, UINT16_MAX, &source.rows},
        {DCM_Columns, 1, UINT16_MAX, &source.columns},
        {DCM_NumberOfFrames, 1, LIMIT_FRAMES, &source.frame_count},
        {DCM_BitsAllocated, 1, 64, &source.bits},
        {DCM_BitsStored, 1, 64, &stored},
        {DCM_HighBit, 0, 63, &high},
        {DCM_PixelRepresentation, 0, 1, &is_signed},
        {DCM_SamplesPerPixel, 1, 4, &samples},
    };

    for (const auto &each : numbers)
        if (const int rc = opening.read_number(dataset, each.tag, each.low, each.high, each.value))
            return rc;
    const bool fits = source.type == SEG_SOURCE_BINARY       ? source.bits == 1
                      : source.type == SEG_SOURCE_FRACTIONAL ? source.bits == 8
                                                             : source.bits == 8 || source.bits == 16;
    if (fits && stored == source.bits && high == stored - 1 && !is_signed && samples == 1)
        return 0;
    return opening.refuse(CODE_PIXELS_UNSUPPORTED, "has pixels of " + std::to_string(source.bits) + " bits with " +
                                                       std::to_string(stored) +
                                                       " stored, which a segmentation of its type cannot have.");
}

/* Checks that a pixel reader supports the transfer syntax, and that it is lossless. */
int
seg_source_check_syntax(const Opening &opening)
{
    const struct scan &scan = opening.scan;
    if (!scan.syntax || scan.big_endian)
        return opening.refuse(CODE_TRANSFER_SYNTAX_UNSUPPORTED,
                              "is in a transfer syntax that is not supported for segmentations. Send it uncompressed.");
    const std::string is_in = std::string("is in ") + scan.syntax->name;
    if (scan.syntax->lossy)
        return opening.refuse(CODE_TRANSFER_SYNTAX_UNSUPPORTED, is_in + ", which is lossy. Send it uncompressed.");
    if (scan.encapsulated != (scan.syntax->codec != TRANSFER_NATIVE))
        return opening.refuse(CODE_TAG_INVALID, is_in + ", which its pixel data does not match.");
    if (scan.encapsulated && opening.source.type == SEG_SOURCE_BINARY)
        return opening.refuse(CODE_TRANSFER_SYNTAX_UNSUPPORTED,
                              is_in + ", which does not support pixels of one bit. Send it uncompressed.");
    return 0;
}

int
seg_source_measure(Opening &opening, const struct stream &stream)
{
    struct seg_source &source = opening.source;
    const struct scan &scan = opening.scan;
    const int64_t pixels = int64_t{source.rows} * source.columns;
    if (const int rc = seg_source_check_syntax(opening))
        return rc;
    if (pixels > int64_t{LIMIT_PLANE_MI} << 20 || pixels * source.frame_count > int64_t{LIMIT_VOXELS_MI} << 20)
        return opening.refuse(CODE_SIZE_IMPLAUSIBLE, "has more pixels than the limit.");
    if (scan.pixel_tag != SCAN_TAG_PIXELS)
        return opening.refuse(CODE_TAG_MISSING, "has no Pixel Data (7FE0,0010).");
    const int64_t needed = (pixels * source.frame_count * source.bits + 7) / 8;
    if (scan.encapsulated) {
        if (needed <= int64_t{LIMIT_EXPANDED_MIB} << 20 || needed / LIMIT_SEG_EXPANSION <= stream.file_size)
            return 0;
        return opening.refuse(CODE_EXPANSION_IMPLAUSIBLE, "has " + std::to_string(stream.file_size) +
                                                              " bytes and claims " + std::to_string(needed) +
                                                              " of pixels, more than " +
                                                              std::to_string(LIMIT_SEG_EXPANSION) + " times as much.");
    }
    const int64_t there = std::min(scan.pixel_length, stream_remaining(&stream));
    if (there >= needed)
        return 0;
    return opening.refuse(CODE_FILE_TRUNCATED, "holds " + std::to_string(there) + " of " + std::to_string(needed) +
                                                   " bytes of pixel data. Send it again.");
}

/* ----------------------------------------------------------------------------- frames ---- */

int
seg_source_read_frame_segment(Opening &opening, const Source &groups, int32_t *segment)
{
    *segment = -1;
    if (opening.source.type == SEG_SOURCE_LABELMAP)
        return 0;
    int32_t number;
    const int rc = opening.read_number(groups.group(DCM_SegmentIdentificationSequence), DCM_ReferencedSegmentNumber, 0,
                                       UINT16_MAX, &number);
    if (rc)
        return rc;
    const auto found = opening.by_number.find(number);
    if (found == opening.by_number.end())
        return opening.invalid(DCM_ReferencedSegmentNumber, "there is no segment " + std::to_string(number));
    *segment = found->second;
    return 0;
}

int
seg_source_read_frames(Opening &opening)
{
    struct seg_source &source = opening.source;
    Source groups(opening.dataset, opening.scan);
    source.frames = header_allocate<struct seg_source_frame>(static_cast<size_t>(source.frame_count));
    for (int32_t i = 0; i < source.frame_count; i++) {
        struct seg_source_frame &frame = source.frames[i];
        groups.advance();
        int rc = seg_source_read_frame_segment(opening, groups, &frame.segment);
        if (!rc)
            rc = scan_check_time(&opening.scan, opening.path, opening.error);
        if (rc)
            return rc;
        struct dicom_frame read = {};
        frame_read_geometry(groups, source.frame_count == 1, read);
        frame.has_geometry = read.has_position && read.has_orientation && read.has_spacing;
        std::copy(std::begin(read.position), std::end(read.position), frame.position);
        std::copy(std::begin(read.orientation), std::end(read.orientation), frame.orientation);
        frame.spacing[0] = read.pixel_spacing[1];
        frame.spacing[1] = read.pixel_spacing[0];
        frame.between = read.spacing_between_slices;
        frame.thickness = read.slice_thickness;
        const Header image = groups.group(DCM_DerivationImageSequence).item(DCM_SourceImageSequence);
        header_copy(frame.image_uid, header_text(image, DCM_ReferencedSOPInstanceUID));
        if (!header_integer(image, DCM_ReferencedFrameNumber, &frame.image_frame) || frame.image_frame < 0)
            frame.image_frame = 0;
    }
    return 0;
}

/* ------------------------------------------------------------------------- the whole ---- */

int
seg_source_read_header(Opening &opening, const struct stream &stream)
{
    int rc = seg_source_read_identity(opening);
    if (!rc)
        rc = seg_source_read_series(opening);
    if (!rc)
        rc = seg_source_read_segments(opening);
    if (!rc)
        rc = seg_source_read_type(opening);
    if (!rc)
        rc = seg_source_read_sizes(opening);
    if (!rc)
        rc = seg_source_measure(opening, stream);
    if (rc)
        return rc;
    /* The members of an image that a pixel reader uses. */
    const struct seg_source &source = opening.source;
    const struct scan &scan = opening.scan;
    struct dicom_instance &image = *source.image;
    header_copy(image.transfer_syntax_uid, scan.transfer_syntax_uid);
    image.file_size = stream.file_size;
    image.rows = source.rows;
    image.columns = source.columns;
    image.bits_allocated = image.bits_stored = source.bits;
    image.high_bit = source.bits - 1;
    image.pixel = source.bits == 16 ? IMAGE_UINT16 : IMAGE_UINT8;
    image.frame_count = source.frame_count;
    image.pixel_offset = scan.encapsulated || scan.syntax->deflated ? -1 : scan.pixel_offset;
    image.pixel_length = scan.pixel_length;
    /* Must be last: only now the file's size justifies the number of frames. */
    return seg_source_read_frames(opening);
}

} // namespace

int
seg_source_open(const char *path, struct seg_source **source, struct error *error)
{
    *source = nullptr;
    return header_guard(path, error, [&] {
        HeaderOwner<struct seg_source, seg_source_close> made(header_allocate<struct seg_source>(1));
        made->image = header_allocate<struct dicom_instance>(1);
        if (!(made->image->path = strdup(path)))
            throw std::bad_alloc();
        struct scan_wanted wanted = scan_wanted_of(wanted_tags, std::size(wanted_tags), LIMIT_TEXT_BYTES);
        wanted.nested = true;
        HeaderFile file;
        int rc = file.read(path, wanted, error);
        if (rc)
            return rc;
        const Header dataset(file.dataset);
        Opening opening{{path, error}, file.scan, dataset, *made, {}};
        rc = seg_source_read_header(opening, file.stream);
        if (!rc)
            *source = made.release();
        return rc;
    });
}

void
seg_source_close(struct seg_source *source)
{
    if (!source)
        return;
    dicom_instance_free(source->image);
    for (int32_t i = 0; i < source->segment_count; i++)
        provenance_release(source->segments[i].provenance);
    free(source->series);
    free(source->segments);
    free(source->frames);
    free(source);
}

int
seg_source_read(const struct seg_source *source, struct dicom_pixels *reader, int32_t frame, uint16_t *pixels,
                struct error *error)
{
    const int64_t count = int64_t{source->rows} * source->columns;
    const bool narrow = source->bits != 16;
    /* Read into the upper half, then widen from the front. */
    auto *bytes = reinterpret_cast<uint8_t *>(pixels) + (narrow ? count : 0);
    const int rc = dicom_pixels_read(reader, frame, bytes, error);
    for (int64_t i = 0; i < count && !rc && narrow; i++)
        pixels[i] = bytes[i];
    return rc;
}
