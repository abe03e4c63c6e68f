/*
 * codec.cc - decodes JPEG and JPEG-LS frames with DCMTK.
 *
 * Each frame becomes a one-frame pixel sequence. So readers share no state, memory is one frame,
 * and frames of several fragments need no special case.
 */
#include "dicom/read/pixels/codec.hh"

#include "dicom/read/header.hh"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dcpixel.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dctk.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace
{

/* Frame header of a JPEG or JPEG-LS code stream. */
struct JpegSize {
    uint8_t marker; /* gives the process */
    unsigned precision;
    int rows, columns;
    int components;
    /* Colours by the markers: JFIF (APP0) and Adobe's transform 1 are YBR, Adobe's 0 and the component names R, G, B are RGB. */
    bool is_ybr, is_rgb;
};

bool
is_start_of_frame(uint8_t marker)
{
    const bool in_range = marker >= 0xC0 && marker <= 0xCF;
    /* C4, C8 and CC are tables and extensions. F7 is JPEG-LS. */
    return (in_range && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) || marker == 0xF7;
}

/* Returns whether the segment may precede the frame header: tables, application data, comments. */
bool
may_precede_frame(uint8_t marker)
{
    return marker == 0xC4 || marker == 0xCC || marker == 0xDB || marker == 0xDD || (marker >= 0xE0 && marker <= 0xEF) ||
           marker == 0xF8 || marker == 0xFE;
}

/* Notes the colours of an application segment. An Adobe marker overrules JFIF. */
void
note_colours(const uint8_t *segment, size_t length, uint8_t marker, JpegSize *size)
{
    if (marker == 0xE0 && length >= 7 && memcmp(segment, "JFIF", 5) == 0 && !size->is_rgb)
        size->is_ybr = true;
    if (marker == 0xEE && length >= 14 && memcmp(segment, "Adobe", 5) == 0) {
        size->is_rgb = segment[11] == 0;
        size->is_ybr = segment[11] == 1;
    }
}

/* Finds the frame header. Strict, because DCMTK 3.6.7 searches for it too, and loops forever on
 * some markers that must not precede it. */
bool
find_jpeg_size(const std::vector<uint8_t> &bytes, JpegSize *size)
{
    if (bytes.size() < 2 || bytes[0] != 0xFF || bytes[1] != 0xD8)
        return false;
    size_t at = 2;
    while (at + 4 <= bytes.size() && bytes[at] == 0xFF) {
        const uint8_t marker = bytes[at + 1];
        const size_t length = static_cast<size_t>(bytes[at + 2] << 8 | bytes[at + 3]);
        if (is_start_of_frame(marker)) {
            if (at + 10 > bytes.size())
                return false;
            size->marker = marker;
            size->precision = bytes[at + 4];
            size->rows = bytes[at + 5] << 8 | bytes[at + 6];
            size->columns = bytes[at + 7] << 8 | bytes[at + 8];
            size->components = bytes[at + 9];
            if (size->components == 3 && at + 19 <= bytes.size())
                size->is_rgb |= bytes[at + 10] == 'R' && bytes[at + 13] == 'G' && bytes[at + 16] == 'B';
            return true;
        }
        if (!may_precede_frame(marker) || length < 2)
            return false;
        if (at + 2 + length <= bytes.size())
            note_colours(bytes.data() + at + 4, length - 2, marker, size);
        at += 2 + length;
    }
    return false;
}

std::string
check_jpeg(const codec_frame &frame, JpegSize *size)
{
    if (!find_jpeg_size(frame.bytes, size))
        return "its code stream has no frame header";
    /* Sequential, lossless and JPEG-LS, the only current processes in DICOM, have one scan. A
     * progressive stream costs one frame for each scan that it claims. */
    if (size->marker != 0xC0 && size->marker != 0xC1 && size->marker != 0xC3 && size->marker != 0xF7)
        return "its code stream is progressive, hierarchical or arithmetic";
    if (size->components != (frame.instance->stored_samples > 1 ? 3 : 1) || size->rows != frame.instance->rows ||
        size->columns != frame.instance->columns)
        return "its code stream has " + std::to_string(size->columns) + " x " + std::to_string(size->rows) +
               " pixels and " + std::to_string(size->components) + " components, unlike the header";
    if (size->precision < 2 || size->precision > static_cast<unsigned>(frame.instance->bits_allocated))
        return "its code stream has " + std::to_string(size->precision) + " bits per sample";
    return {};
}

std::string
codec_decode(const codec_frame &frame, unsigned bits, void *buffer, size_t size)
{
    errno = 0; /* if memory is short, DCMTK later reports an invalid stream */
    auto sequence = std::make_unique<DcmPixelSequence>(DCM_PixelSequenceTag);
    auto table = std::make_unique<DcmPixelItem>(DCM_PixelItemTag); /* of offsets: empty */
    auto item = std::make_unique<DcmPixelItem>(DCM_PixelItemTag);
    if (!header_is_good(item->putUint8Array(frame.bytes.data(), static_cast<unsigned long>(frame.bytes.size()))))
        return "its compressed bytes cannot be processed";
    sequence->insert(table.release());
    sequence->insert(item.release());
    DcmDataset dataset; /* the attributes that the decoders use */
    const struct dicom_instance &instance = *frame.instance;
    const Uint16 width = bits > 8 ? 16 : 8;
    const bool has_colour = instance.stored_samples > 1;
    /* As RGB, DCMTK returns the components unchanged. */
    const OFCondition conditions[] = {
        dataset.putAndInsertUint16(DCM_SamplesPerPixel, has_colour ? 3 : 1),
        dataset.putAndInsertUint16(DCM_PlanarConfiguration, 0),
        dataset.putAndInsertString(DCM_PhotometricInterpretation, has_colour ? "RGB" : "MONOCHROME2"),
        dataset.putAndInsertString(DCM_NumberOfFrames, "1"),
        dataset.putAndInsertUint16(DCM_Rows, static_cast<Uint16>(instance.rows)),
        dataset.putAndInsertUint16(DCM_Columns, static_cast<Uint16>(instance.columns)),
        dataset.putAndInsertUint16(DCM_BitsAllocated, width),
        dataset.putAndInsertUint16(DCM_BitsStored, static_cast<Uint16>(bits)),
        dataset.putAndInsertUint16(DCM_HighBit, static_cast<Uint16>(bits - 1)),
        dataset.putAndInsertUint16(DCM_PixelRepresentation, instance.is_signed)};
    for (const OFCondition &condition : conditions)
        header_is_good(condition);
    DcmPixelData pixels(DCM_PixelData);
    pixels.putOriginalRepresentation(DcmXfer(frame.syntax->uid).getXfer(), nullptr, sequence.release());
    Uint32 fragment = 1;
    OFString color_model;
    const OFCondition condition =
        pixels.getUncompressedFrame(&dataset, 0, fragment, buffer, static_cast<Uint32>(size), color_model);
    if (header_is_good(condition))
        return {};
    header_blame_memory();
    return condition.text();
}

} // namespace

std::string
codec_decode_jpeg_colour(const codec_frame &frame, std::vector<uint8_t> &bytes)
{
    JpegSize size{};
    std::string why = check_jpeg(frame, &size);
    if (!why.empty())
        return why;
    const bool is_ybr = frame.instance->colour == DICOM_COLOUR_YBR;
    if (is_ybr ? size.is_rgb : size.is_ybr)
        return std::string("its code stream is ") + (size.is_rgb ? "RGB" : "YBR") +
               " by its markers, which contradicts the Photometric Interpretation " + frame.instance->photometric;
    if (size.precision != 8)
        return "its code stream has " + std::to_string(size.precision) + " bits per sample";
    return codec_decode(frame, size.precision, bytes.data(), bytes.size());
}

std::string
codec_decode_jpeg(const codec_frame &frame, uint16_t *samples)
{
    JpegSize size{};
    std::string why = check_jpeg(frame, &size);
    if (!why.empty())
        return why;
    const size_t count = static_cast<size_t>(frame.instance->rows) * static_cast<size_t>(frame.instance->columns);
    if (size.precision > 8)
        return codec_decode(frame, size.precision, samples, count * 2);
    /* Decode into the upper half, then widen from the front. DCMTK requires an even size. */
    std::vector<uint8_t> odd;
    uint8_t *narrow = reinterpret_cast<uint8_t *>(samples) + count;
    if (count % 2) {
        odd.resize(count + 1);
        narrow = odd.data();
    }
    why = codec_decode(frame, size.precision, narrow, count + count % 2);
    if (why.empty())
        for (size_t i = 0; i < count; i++)
            samples[i] = narrow[i];
    return why;
}
