/*
 * pixels.cc - decodes frames, one at a time, into the caller's memory.
 *
 * Native little-endian pixels are read from the file into the caller's buffer and adjusted there.
 * Only compressed ones need memory of their own. A reader opens the file once, and rejects a file
 * that changed since its header was read.
 */
#include "dicom/read/header.hh"
#include "dicom/read/pixels/codec.hh"
#include "dicom/read/pixels/colour.hh"
#include "dicom/read/pixels/fragments.h"
#include "dicom/read/pixels/rle.h"

#include <cstring>

struct dicom_pixels {
    const struct dicom_instance *instance;
    const struct transfer_syntax *syntax;
    struct stream stream;
    bool swapped_words; /* native big endian in 16-bit words */
    int64_t pixel_offset;
    struct fragments fragments; /* if encapsulated */
    /* inflated bytes of pixels consumed so far; -1: position unknown */
    int64_t inflated;
    uint8_t last;                  /* last byte consumed; frames of bits may share a byte */
    std::vector<uint8_t> bytes;    /* of one compressed frame, or one frame of bits */
    std::vector<uint16_t> samples; /* of one compressed frame of 8-bit pixels */
    /* A mosaic: this instance has tiles as frames. `instance` is then that of the plane, decoded
     * once. */
    const struct dicom_instance *mosaic;
    /* The image, if a table maps its values; `instance` then describes the stored values. */
    const struct dicom_instance *tabled;
    ValueTable table;
    enum dicom_channel channel;
    struct dicom_instance plane;
    std::vector<uint8_t> decoded;
};

namespace
{

size_t
frame_pixels(const struct dicom_instance &instance)
{
    return static_cast<size_t>(instance.rows) * static_cast<size_t>(instance.columns);
}

/* Rows of a frame. */
struct Part {
    int32_t frame, row, rows;
};

/* Max bytes of a part, unless two rows have more: its values are adjusted while they are in the cache. */
constexpr int64_t part_bytes = 256 << 10;

size_t
part_pixels(const struct dicom_instance &instance, const Part &part)
{
    return static_cast<size_t>(part.rows) * static_cast<size_t>(instance.columns);
}

/* Byte range of a part. A part of bits may begin and end within a byte. */
struct Span {
    int64_t begin, end;
};

/* `plane`: of colour samples by plane; else 0. */
Span
native_span(const struct dicom_instance &instance, const Part &part, int plane)
{
    const int64_t samples = std::max(instance.stored_samples, 1), each = samples > 1 && instance.planar ? 1 : samples;
    const int64_t plane_pixels = static_cast<int64_t>(frame_pixels(instance));
    const int64_t first =
        samples * plane_pixels * part.frame + plane_pixels * plane + each * instance.columns * part.row;
    const int64_t end = first + each * instance.columns * part.rows;
    return {first * instance.bits_allocated / 8, (end * instance.bits_allocated + 7) / 8};
}

int
read_failed(const struct dicom_pixels &pixels, int rc, struct error *error)
{
    return scan_error(&pixels.stream, pixels.instance->path, rc, "its pixel data", error);
}

int
changed(const struct dicom_instance &instance, struct error *error)
{
    return error_set_files(error, -ESTALE, CODE_FILE_UNREADABLE, instance.path, nullptr,
                           "%s has changed since its header was read.", text_base_name(instance.path));
}

/* Finds data that is not in the public struct: fragments, the start of deflated pixels, the
 * width of words. */
int
locate(struct dicom_pixels &pixels, struct error *error)
{
    const struct dicom_instance &instance = *pixels.instance;
    const uint32_t offset_table = 0x7FE00001;
    struct scan scan;
    const struct scan_wanted wanted = scan_wanted_of(&offset_table, 1, LIMIT_FRAMES * sizeof(uint64_t));
    int rc = scan_file(&pixels.stream, instance.path, &wanted, &scan, error);
    const HeaderOwner<struct scan, scan_release> release(&scan);
    if (rc)
        return rc;
    if (scan.pixel_tag != SCAN_TAG_PIXELS || scan.syntax != pixels.syntax ||
        scan.encapsulated != (pixels.syntax->codec != TRANSFER_NATIVE))
        return changed(instance, error);
    pixels.swapped_words = scan.big_endian && strcmp(scan.pixel_vr, "OW") == 0;
    if (scan.encapsulated)
        return fragments_index(&pixels.stream, &scan, instance.path, instance.frame_count, &pixels.fragments, error);
    return 0;
}

int
read_file(const struct dicom_pixels &pixels, void *destination, size_t size, int64_t offset, struct error *error)
{
    const int rc = stream_read_at(pixels.stream.fd, destination, size, offset);
    return rc ? read_failed(pixels, rc, error) : 0;
}

/* Reads native bytes in file order. */
int
read_native(struct dicom_pixels &pixels, const Span &span, void *destination, struct error *error)
{
    if (pixels.syntax->deflated) {
        /* Continues after the previous part, or restarts. Only one inflated byte is kept. */
        auto *to = static_cast<uint8_t *>(destination);
        const bool shared = pixels.inflated > 0 && pixels.inflated == span.begin + 1;
        int64_t begin = span.begin;
        if (shared) {
            *to++ = pixels.last;
            begin++;
        } else if (pixels.inflated < 0 || pixels.inflated > begin) {
            stream_rewind(&pixels.stream);
            pixels.inflated = -1;
            if (const int rc = locate(pixels, error))
                return rc;
            pixels.inflated = 0; /* at the first byte of the pixels */
        }
        int rc = stream_skip(&pixels.stream, begin - pixels.inflated);
        if (!rc)
            rc = stream_read(&pixels.stream, to, span.end - begin);
        pixels.inflated = rc ? -1 : span.end;
        if (rc)
            return read_failed(pixels, rc, error);
        if (span.end > begin)
            pixels.last = to[span.end - begin - 1];
        return 0;
    }
    return read_file(pixels, destination, static_cast<size_t>(span.end - span.begin), pixels.pixel_offset + span.begin,
                     error);
}

/* Reads bits. Frames have no padding between them; the first pixel is the lowest bit (PS3.5 8.1.1). */
int
read_bits(struct dicom_pixels &pixels, const Part &part, uint8_t *destination, struct error *error)
{
    const Span span = native_span(*pixels.instance, part, 0);
    const size_t count = part_pixels(*pixels.instance, part);
    pixels.bytes.resize(static_cast<size_t>(span.end - span.begin));
    if (const int rc = read_native(pixels, span, pixels.bytes.data(), error))
        return rc;
    const size_t before = frame_pixels(*pixels.instance) * static_cast<size_t>(part.frame) +
                          static_cast<size_t>(part.row) * static_cast<size_t>(pixels.instance->columns);
    const size_t first = before % 8;
    for (size_t i = 0; i < count; i++)
        destination[i] = pixels.bytes[(first + i) / 8] >> (first + i) % 8 & 1;
    return 0;
}

/* Reads 8-bit pixels in big-endian words, which have each pair swapped, also across the ends of
 * odd frames. */
int
read_swapped_bytes(const struct dicom_pixels &pixels, const Span &span, uint8_t *destination, struct error *error)
{
    const int64_t first_word = span.begin & ~INT64_C(1);
    const int64_t after_word = (span.end + 1) & ~INT64_C(1);
    if (after_word > pixels.instance->pixel_length)
        return read_failed(pixels, -ENODATA, error);
    std::vector<uint8_t> words(static_cast<size_t>(after_word - first_word));
    int rc = read_file(pixels, words.data(), words.size(), pixels.pixel_offset + first_word, error);
    if (rc)
        return rc;
    for (int64_t i = span.begin; i < span.end; i++)
        destination[i - span.begin] = words[static_cast<size_t>((i - first_word) ^ 1)];
    return 0;
}

/* Reads native samples of 8 bits. */
int
read_bytes(struct dicom_pixels &pixels, const Span &span, uint8_t *destination, struct error *error)
{
    return pixels.swapped_words ? read_swapped_bytes(pixels, span, destination, error)
                                : read_native(pixels, span, destination, error);
}

/* T is the type of the pixels, so that the second shift extends the sign, or zeros. */
template <typename T>
void
shift(uint16_t *samples, size_t count, int left, int right)
{
    const auto one = [left, right](uint16_t sample) {
        return static_cast<uint16_t>(static_cast<T>(static_cast<uint16_t>(sample << left)) >> right);
    };
    constexpr size_t block = 64; /* compilers vectorise a loop of fixed length */
    size_t i = 0;
    for (; i + block <= count; i += block)
        for (size_t k = 0; k < block; k++)
            samples[i + k] = one(samples[i + k]);
    for (; i < count; i++)
        samples[i] = one(samples[i]);
}

/* Shifts by High Bit, drops overlay bits, extends the sign from Bits Stored, in place. */
void
adjust(const struct dicom_instance &instance, uint16_t *samples, size_t count)
{
    const int left = 15 - instance.high_bit;
    const int right = 16 - instance.bits_stored;
    if (right == 0)
        return;
    if (instance.is_signed)
        shift<int16_t>(samples, count, left, right);
    else
        shift<uint16_t>(samples, count, left, right);
}

int
read_native_part(struct dicom_pixels &pixels, const Part &part, void *destination, struct error *error)
{
    const struct dicom_instance &instance = *pixels.instance;
    const size_t count = part_pixels(instance, part);
    const Span span = native_span(instance, part, 0);
    if (instance.bits_allocated == 1)
        return read_bits(pixels, part, static_cast<uint8_t *>(destination), error);
    if (instance.bits_allocated == 16) {
        int rc = read_native(pixels, span, destination, error);
        if (rc)
            return rc;
        auto *samples = static_cast<uint16_t *>(destination);
        if (pixels.syntax->big_endian)
            for (size_t i = 0; i < count; i++)
                samples[i] = __builtin_bswap16(samples[i]);
        adjust(instance, samples, count);
        return 0;
    }
    uint8_t *bytes = static_cast<uint8_t *>(destination) + (instance.is_signed ? count : 0);
    int rc = read_bytes(pixels, span, bytes, error);
    if (rc || !instance.is_signed)
        return rc;
    /* Widen signed pixels, read into the upper half, from the front. */
    auto *samples = static_cast<int16_t *>(destination);
    for (size_t i = 0; i < count; i++)
        samples[i] = static_cast<int8_t>(bytes[i]);
    return 0;
}

/* Decodes pixels.bytes to pixels of Bits Allocated. Returns "" or why that failed. */
std::string
decode_rle(const struct dicom_pixels &pixels, void *destination)
{
    const struct dicom_instance &instance = *pixels.instance;
    const char *why = rle_decode(pixels.bytes.data(), pixels.bytes.size(),
                                 static_cast<size_t>(instance.bits_allocated / 8), frame_pixels(instance), destination);
    return why ? why : "";
}

/* Decodes pixels.bytes. Returns "" or why that failed. */
std::string
pixels_decode(const struct dicom_pixels &pixels, uint16_t *samples)
{
    const struct dicom_instance &instance = *pixels.instance;
    const codec_frame frame{pixels.syntax, &instance, pixels.bytes};
    switch (pixels.syntax->codec) {
    case TRANSFER_RLE: {
        const size_t count = frame_pixels(instance);
        /* Widens 8 bits, decoded to the upper half, from the front. */
        uint8_t *bytes = reinterpret_cast<uint8_t *>(samples) + (instance.bits_allocated == 8 ? count : 0);
        const std::string why = decode_rle(pixels, bytes);
        for (size_t i = 0; i < count && instance.bits_allocated == 8; i++)
            samples[i] = bytes[i];
        return why;
    }
    case TRANSFER_JPEG:
    case TRANSFER_JPEG_LS:
        return codec_decode_jpeg(frame, samples);
    case TRANSFER_JPEG_2000:
        return codec_decode_jpeg2000(frame, samples);
    case TRANSFER_NATIVE:
        break;
    }
    return "it is not compressed";
}

/* Reads the fragments of a frame to pixels.bytes. */
int
read_fragments(struct dicom_pixels &pixels, int32_t frame, struct error *error)
{
    const struct fragments &fragments = pixels.fragments;
    pixels.bytes.resize(fragments_frame_size(&fragments, frame));
    uint8_t *next = pixels.bytes.data();
    for (int32_t i = fragments.first[frame]; i < fragments.first[frame + 1]; i++) {
        const struct fragment &fragment = fragments.list[i];
        if (const int rc = read_file(pixels, next, fragment.length, fragment.offset, error))
            return rc;
        next += fragment.length;
    }
    return 0;
}

int
undecodable(const struct dicom_pixels &pixels, int32_t frame, const std::string &why, struct error *error)
{
    return error_set_files(error, -EBADMSG, CODE_PIXELS_UNDECODABLE, pixels.instance->path, nullptr,
                           "Frame %d of %s (%s) cannot be decoded: %s.", frame + 1,
                           text_base_name(pixels.instance->path), pixels.syntax->name, why.c_str());
}

int
read_compressed_frame(struct dicom_pixels &pixels, int32_t frame, void *destination, struct error *error)
{
    const struct dicom_instance &instance = *pixels.instance;
    if (const int rc = read_fragments(pixels, frame, error))
        return rc;
    const bool narrow = instance.pixel == IMAGE_UINT8;
    const bool direct = narrow && pixels.syntax->codec == TRANSFER_RLE; /* without samples of 16 bits */
    const size_t count = frame_pixels(instance);
    if (narrow && !direct)
        pixels.samples.resize(count);
    uint16_t *samples = narrow ? pixels.samples.data() : static_cast<uint16_t *>(destination);
    const std::string why = direct ? decode_rle(pixels, destination) : pixels_decode(pixels, samples);
    if (!why.empty())
        return undecodable(pixels, frame, why, error);
    if (direct)
        return 0;
    if (narrow)
        for (size_t i = 0; i < count; i++)
            static_cast<uint8_t *>(destination)[i] = static_cast<uint8_t>(samples[i]);
    else
        adjust(instance, samples, count);
    return 0;
}

/* ---- colour and tables ---- */

/* Decodes pixels.bytes to colour samples in `decoded`, and says how they lie there. Returns "" or why that failed. */
std::string
decode_colour(struct dicom_pixels &pixels, ColourSamples &samples)
{
    const struct dicom_instance &instance = *pixels.instance;
    const codec_frame frame{pixels.syntax, &instance, pixels.bytes};
    const size_t count = frame_pixels(instance);
    std::string why;
    pixels.decoded.resize(3 * count + count % 2); /* an even size, which DCMTK requires */
    uint8_t *to = pixels.decoded.data();
    samples = {to, to + count, to + 2 * count, 1};
    switch (pixels.syntax->codec) {
    case TRANSFER_RLE:
        for (size_t k = 0; k < 3 && why.empty(); k++)
            if (const char *bad =
                    rle_decode_segment(pixels.bytes.data(), pixels.bytes.size(), 3, k, count, to + k * count, 1))
                why = bad;
        return why;
    case TRANSFER_JPEG_2000:
        pixels.samples.resize(3 * count);
        why = codec_decode_jpeg2000(frame, pixels.samples.data());
        for (size_t i = 0; i < 3 * count && why.empty(); i++)
            to[i] = static_cast<uint8_t>(pixels.samples[i]);
        return why;
    case TRANSFER_JPEG:
    case TRANSFER_JPEG_LS:
        samples = {to, to + 1, to + 2, 3};
        return codec_decode_jpeg_colour(frame, pixels.decoded);
    case TRANSFER_NATIVE:
        break;
    }
    return "it is not compressed";
}

/* Reads native colour samples of a part to `decoded`. */
int
read_native_colour(struct dicom_pixels &pixels, const Part &part, ColourSamples &samples, struct error *error)
{
    const struct dicom_instance &instance = *pixels.instance;
    const size_t count = part_pixels(instance, part);
    const int planes = instance.planar ? instance.stored_samples : 1;
    pixels.decoded.resize(count * static_cast<size_t>(instance.stored_samples));
    uint8_t *to = pixels.decoded.data();
    for (int plane = 0; plane < planes; plane++)
        if (const int rc =
                read_bytes(pixels, native_span(instance, part, plane), to + static_cast<size_t>(plane) * count, error))
            return rc;
    if (instance.planar)
        samples = {to, to + count, to + 2 * count, 1};
    else
        samples = {to, to + 1, to + 2, 3};
    return 0;
}

/* Decodes colour samples to one channel. */
int
read_colour_part(struct dicom_pixels &pixels, const Part &part, uint8_t *destination, struct error *error)
{
    const struct dicom_instance &instance = *pixels.instance;
    const size_t count = part_pixels(instance, part);
    ColourSamples samples;
    if (pixels.syntax->codec == TRANSFER_NATIVE) {
        if (const int rc = read_native_colour(pixels, part, samples, error))
            return rc;
        if (instance.colour == DICOM_COLOUR_YBR_422) {
            colour_convert_422(samples.first, pixels.channel, count, destination);
            return 0;
        }
    } else {
        if (const int rc = read_fragments(pixels, part.frame, error))
            return rc;
        if (const std::string why = decode_colour(pixels, samples); !why.empty())
            return undecodable(pixels, part.frame, why, error);
    }
    colour_convert(samples, instance.colour == DICOM_COLOUR_YBR, pixels.channel, count, destination);
    return 0;
}

int read_part(struct dicom_pixels &pixels, const Part &part, void *destination, struct error *error);

/* Reads the palette or the Modality LUT of the image from its header. */
int
read_table(struct dicom_pixels &pixels, struct error *error)
{
    HeaderFile file;
    const struct scan_wanted wanted = [] {
        struct scan_wanted made = scan_wanted_of(colour_table_tags, std::size(colour_table_tags), colour_table_bytes);
        made.nested = true;
        return made;
    }();
    if (const int rc = file.read(pixels.tabled->path, wanted, error))
        return rc;
    const Header header(file.dataset);
    const std::string why = colour_read_table(header, *pixels.tabled, pixels.channel, pixels.table);
    return why.empty() ? 0 : undecodable(pixels, 0, why, error);
}

int
read_tabled_part(struct dicom_pixels &pixels, const Part &part, void *destination, struct error *error)
{
    const size_t count = part_pixels(pixels.plane, part);
    if (pixels.table.empty())
        if (const int rc = read_table(pixels, error))
            return rc;
    pixels.decoded.resize(count * image_pixel_size(pixels.plane.pixel));
    if (const int rc = read_part(pixels, part, pixels.decoded.data(), error))
        return rc;
    colour_apply_table(pixels.table, pixels.decoded.data(), pixels.plane.pixel, count, pixels.tabled->pixel,
                       destination);
    return 0;
}

/* Reads rows of a frame; of a compressed one, all of them. */
int
read_part(struct dicom_pixels &pixels, const Part &part, void *destination, struct error *error)
{
    if (pixels.instance->stored_samples > 1)
        return read_colour_part(pixels, part, static_cast<uint8_t *>(destination), error);
    return pixels.syntax->codec == TRANSFER_NATIVE ? read_native_part(pixels, part, destination, error)
                                                   : read_compressed_frame(pixels, part.frame, destination, error);
}

/* Returns the rows of a part: as many as fit into part_bytes, but all that must be read at once. */
int32_t
rows_at_once(const struct dicom_pixels &pixels)
{
    const struct dicom_instance &instance = *pixels.instance;
    if (pixels.syntax->codec != TRANSFER_NATIVE || (pixels.syntax->deflated && instance.planar))
        return instance.rows;
    const int64_t row = int64_t{instance.columns} * std::max(instance.stored_samples, 1) * instance.bits_allocated;
    const int64_t rows = part_bytes * 8 / row / 2 * 2; /* even, since two pixels of YBR_FULL_422 share samples */
    return static_cast<int32_t>(std::min<int64_t>(std::max<int64_t>(rows, 2), instance.rows));
}

int
read_rows(struct dicom_pixels &pixels, const Part &part, void *destination, struct error *error)
{
    const struct dicom_instance &given = pixels.tabled ? *pixels.tabled : *pixels.instance;
    const size_t row_bytes = static_cast<size_t>(given.columns) * image_pixel_size(given.pixel);
    const int32_t most = rows_at_once(pixels);
    auto *to = static_cast<uint8_t *>(destination);
    for (int32_t done = 0; done < part.rows; done += most) {
        const Part own = {part.frame, part.row + done, std::min(most, part.rows - done)};
        void *const rows = to + static_cast<size_t>(done) * row_bytes;
        const int rc = pixels.tabled ? read_tabled_part(pixels, own, rows, error) : read_part(pixels, own, rows, error);
        if (rc)
            return rc;
    }
    return 0;
}

int
read_tile(struct dicom_pixels &pixels, int32_t tile, uint8_t *destination, struct error *error)
{
    const struct dicom_instance &mosaic = *pixels.mosaic;
    const size_t pixel = image_pixel_size(mosaic.pixel);
    if (pixels.decoded.empty()) {
        std::vector<uint8_t> plane(frame_pixels(pixels.plane) * pixel);
        if (const int rc = read_rows(pixels, {0, 0, pixels.plane.rows}, plane.data(), error))
            return rc;
        pixels.decoded = std::move(plane);
    }
    const size_t row = static_cast<size_t>(mosaic.columns) * pixel;
    const size_t plane_row = row * static_cast<size_t>(mosaic.tile_columns);
    const uint8_t *from =
        pixels.decoded.data() +
        static_cast<size_t>(tile / mosaic.tile_columns) * static_cast<size_t>(mosaic.rows) * plane_row +
        static_cast<size_t>(tile % mosaic.tile_columns) * row;
    for (int32_t y = 0; y < mosaic.rows; y++, from += plane_row, destination += row)
        memcpy(destination, from, row);
    return 0;
}

} // namespace

int64_t
dicom_pixels_bytes(const struct dicom_instance *instance)
{
    const struct transfer_syntax *syntax = transfer_find(instance->transfer_syntax_uid);
    const bool is_tabled = instance->colour == DICOM_COLOUR_PALETTE || instance->has_modality_lut;
    const int64_t tiles = instance->tile_columns > 0 ? int64_t{instance->tile_columns} * instance->tile_rows : 1;
    const int64_t samples = std::max(instance->stored_samples, 1),
                  count = int64_t{instance->rows} * instance->columns * tiles;
    const int64_t frame = (count * samples * instance->bits_allocated + 7) / 8;
    int64_t bytes = tiles > 1 ? frame : 0; /* the mosaic */
    if (is_tabled)
        bytes += 32 * int64_t{colour_table_bytes}; /* and the header that has it, as DCMTK reads it */
    if (!syntax)
        return bytes;
    if (syntax->codec == TRANSFER_NATIVE) {
        const bool is_whole = syntax->deflated && instance->planar;
        const bool is_direct = samples == 1 && instance->bits_allocated > 1 && !is_tabled && !syntax->big_endian;
        const int64_t rows = 2 * frame / instance->rows;
        /* Twice: samples in words that are swapped. */
        return bytes + (is_direct ? 0 : 2 * (is_whole ? frame : std::min(frame, std::max(part_bytes, rows))));
    }
    /* A frame among others may be longer than its pixels, but hardly twice as long. */
    const int64_t encoded =
        instance->frame_count > 1 ? std::min(instance->file_size, 2 * frame + part_bytes) : instance->file_size;
    const int64_t values = count * (samples > 1 ? 3 : 1), decoded = values * (instance->bits_allocated > 8 ? 2 : 1);
    if (is_tabled)
        bytes += 2 * count;
    switch (syntax->codec) {
    case TRANSFER_RLE:
        return bytes + encoded + (samples > 1 ? decoded : 0);
    case TRANSFER_JPEG:
    case TRANSFER_JPEG_LS: /* DCMTK copies the code stream; 8 bits are decoded to 16, or apart */
        return bytes + 2 * encoded + 2 * decoded + count;
    case TRANSFER_JPEG_2000: /* OpenJPEG has the image and its tiles in 32 bits; 8 bits are decoded to 16 */
        return bytes + 2 * encoded + values * 2 * int64_t{sizeof(int32_t)} + 3 * decoded;
    case TRANSFER_NATIVE:
        break;
    }
    return bytes;
}

bool
dicom_pixels_by_rows(const struct dicom_instance *instance)
{
    const struct transfer_syntax *syntax = transfer_find(instance->transfer_syntax_uid);
    return instance->tile_columns == 0 && syntax && syntax->codec == TRANSFER_NATIVE && !syntax->deflated;
}

bool
dicom_pixels_in_order(const struct dicom_instance *instance)
{
    const struct transfer_syntax *syntax = transfer_find(instance->transfer_syntax_uid);
    return instance->tile_columns > 0 || (syntax && syntax->deflated && instance->frame_count > 1);
}

int
dicom_pixels_open(const struct dicom_instance *instance, struct dicom_pixels **pixels, struct error *error)
{
    *pixels = nullptr;
    return header_guard(instance->path, error, [&] {
        auto bare = std::make_unique<struct dicom_pixels>();
        int rc = stream_open(&bare->stream, instance->path);
        if (rc)
            return error_set_files(error, rc, CODE_FILE_UNREADABLE, instance->path, nullptr, "%s cannot be opened: %s.",
                                   text_base_name(instance->path), strerror(-rc));
        HeaderOwner<struct dicom_pixels, dicom_pixels_close> made(bare.release());
        made->instance = instance;
        if (instance->tile_columns > 0) {
            made->mosaic = instance;
            made->instance = &made->plane;
            made->plane = *instance;
            made->plane.rows *= instance->tile_rows;
            made->plane.columns *= instance->tile_columns;
            made->plane.frame_count = 1;
        }
        if (instance->colour == DICOM_COLOUR_PALETTE || instance->has_modality_lut) {
            made->tabled = instance;
            made->instance = &made->plane;
            made->plane = *instance;
            made->plane.pixel = instance->is_signed             ? IMAGE_INT16
                                : instance->bits_allocated == 8 ? IMAGE_UINT8
                                                                : IMAGE_UINT16;
        }
        made->syntax = transfer_find(instance->transfer_syntax_uid);
        made->pixel_offset = instance->pixel_offset;
        if (made->stream.file_size != instance->file_size || !made->syntax)
            return changed(*instance, error);
        const bool plain =
            made->syntax->codec == TRANSFER_NATIVE && !made->syntax->deflated && !made->syntax->big_endian;
        rc = plain ? 0 : locate(*made, error);
        if (!rc)
            *pixels = made.release();
        return rc;
    });
}

void
dicom_pixels_choose(struct dicom_pixels *pixels, enum dicom_channel channel)
{
    pixels->channel = channel;
}

int
dicom_pixels_read_rows(struct dicom_pixels *pixels, int32_t frame, int32_t first, int32_t count, void *destination,
                       struct error *error)
{
    const struct dicom_instance *instance = pixels->mosaic ? pixels->mosaic : pixels->instance;
    if (frame < 0 || frame >= instance->frame_count)
        return error_set_files(error, -EINVAL, CODE_PIXELS_UNDECODABLE, instance->path, nullptr,
                               "%s has %d frames; there is no frame %d.", text_base_name(instance->path),
                               instance->frame_count, frame + 1);
    if (first < 0 || count < 1 || count > instance->rows || first > instance->rows - count ||
        (count < instance->rows && !dicom_pixels_by_rows(instance)))
        return error_set_files(error, -EINVAL, CODE_PIXELS_UNDECODABLE, instance->path, nullptr,
                               "%s has %d rows; rows %d to %d cannot be read apart.", text_base_name(instance->path),
                               instance->rows, first + 1, first + count);
    return header_guard(instance->path, error, [&] {
        return pixels->mosaic ? read_tile(*pixels, frame, static_cast<uint8_t *>(destination), error)
                              : read_rows(*pixels, {frame, first, count}, destination, error);
    });
}

int
dicom_pixels_read(struct dicom_pixels *pixels, int32_t frame, void *destination, struct error *error)
{
    const struct dicom_instance *instance = pixels->mosaic ? pixels->mosaic : pixels->instance;
    return dicom_pixels_read_rows(pixels, frame, 0, instance->rows, destination, error);
}

void
dicom_pixels_close(struct dicom_pixels *pixels)
{
    if (!pixels)
        return;
    stream_close(&pixels->stream);
    fragments_release(&pixels->fragments);
    delete pixels;
}
