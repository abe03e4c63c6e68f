/*
 * jpeg2000.cc - decodes JPEG 2000 and HTJ2K frames with OpenJPEG.
 */
#include "dicom/read/pixels/codec.hh"

#include "base/limits.h"
#include "dicom/read/header.hh"

#include <openjpeg.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace
{

/* A code stream in memory, as OpenJPEG's source. */
struct Memory {
    const std::vector<uint8_t> &bytes;
    size_t at;
};

OPJ_SIZE_T
memory_read(void *buffer, OPJ_SIZE_T count, void *user)
{
    Memory &memory = *static_cast<Memory *>(user);
    const size_t left = memory.bytes.size() - memory.at;
    if (left == 0)
        return static_cast<OPJ_SIZE_T>(-1);
    const size_t taken = std::min<size_t>(count, left);
    memcpy(buffer, memory.bytes.data() + memory.at, taken);
    memory.at += taken;
    return taken;
}

OPJ_OFF_T
memory_skip(OPJ_OFF_T count, void *user)
{
    Memory &memory = *static_cast<Memory *>(user);
    if (count < 0)
        return -1;
    const size_t left = memory.bytes.size() - memory.at;
    const size_t taken = std::min<size_t>(static_cast<size_t>(count), left);
    memory.at += taken;
    return static_cast<OPJ_OFF_T>(taken);
}

OPJ_BOOL
memory_seek(OPJ_OFF_T position, void *user)
{
    Memory &memory = *static_cast<Memory *>(user);
    if (position < 0 || static_cast<size_t>(position) > memory.bytes.size())
        return OPJ_FALSE;
    memory.at = static_cast<size_t>(position);
    return OPJ_TRUE;
}

/* DICOM requires the bare code stream (PS3.5 A.4.4). Some senders leave the JP2 boxes around it. */
OPJ_CODEC_FORMAT
format_of(const std::vector<uint8_t> &bytes)
{
    static const uint8_t signature[] = {0, 0, 0, 12, 'j', 'P', ' ', ' '};
    const bool boxed = bytes.size() >= sizeof(signature) && memcmp(bytes.data(), signature, sizeof(signature)) == 0;
    return boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K;
}

uint64_t
big_endian(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Returns the start of the code stream: the content of its box (ISO 15444-1, I.4). */
size_t
find_code_stream(const std::vector<uint8_t> &bytes)
{
    if (format_of(bytes) == OPJ_CODEC_J2K)
        return 0;
    for (size_t at = 0; bytes.size() - at >= 16;) {
        const uint64_t length = big_endian(bytes.data() + at, 4);
        const size_t header = length == 1 ? 16 : 8;
        if (memcmp(bytes.data() + at + 4, "jp2c", 4) == 0)
            return at + header;
        const uint64_t whole = length == 1 ? big_endian(bytes.data() + at + 8, 8) : length;
        if (whole < header || whole > bytes.size() - at)
            break;
        at += static_cast<size_t>(whole);
    }
    return bytes.size();
}

/* Checks the tiles before OpenJPEG allocates memory for every tile that the header claims (ISO
 * 15444-1, A.5.1). */
std::string
check_tiles(const std::vector<uint8_t> &bytes)
{
    static const uint8_t start[] = {0xFF, 0x4F, 0xFF, 0x51};
    constexpr size_t header_size = 40;
    const size_t at = find_code_stream(bytes);
    if (bytes.size() - at < header_size || memcmp(bytes.data() + at, start, sizeof(start)) != 0)
        return "its code stream has no valid header";
    const uint8_t *siz = bytes.data() + at + 8;
    uint64_t tiles = 1;
    for (size_t axis = 0; axis < 2; axis++) {
        const uint8_t *number = siz + 4 * axis;
        const uint64_t end = big_endian(number, 4), size = big_endian(number + 16, 4),
                       first = big_endian(number + 24, 4);
        if (size == 0 || first >= end)
            return "its code stream has no valid header";
        tiles *= (end - first + size - 1) / size;
    }
    return tiles <= LIMIT_TILES ? std::string() : "its code stream has " + std::to_string(tiles) + " tiles";
}

std::string
check_component(const opj_image_comp_t &component, const struct dicom_instance &instance)
{
    if (component.w != static_cast<OPJ_UINT32>(instance.columns) ||
        component.h != static_cast<OPJ_UINT32>(instance.rows))
        return "its code stream has " + std::to_string(component.w) + " x " + std::to_string(component.h) +
               " pixels, unlike the header";
    if (component.prec < 1 || component.prec > static_cast<OPJ_UINT32>(instance.bits_allocated))
        return "its code stream has " + std::to_string(component.prec) + " bits per sample";
    if (component.sgnd && !instance.is_signed)
        return "its code stream is signed, and the header is unsigned";
    if (!component.sgnd && instance.is_signed && component.prec < static_cast<OPJ_UINT32>(instance.bits_stored))
        return "its code stream is unsigned and has fewer bits than the header's signed values";
    return {};
}

std::string
check_image(const opj_image_t &image, const struct dicom_instance &instance)
{
    const OPJ_UINT32 components = instance.stored_samples > 1 ? 3 : 1;
    if (image.numcomps != components)
        return "its code stream has " + std::to_string(image.numcomps) + " components";
    for (OPJ_UINT32 i = 0; i < components; i++) {
        const std::string why = check_component(image.comps[i], instance);
        if (!why.empty())
            return why;
    }
    return {};
}

/* Returns whether the code stream transforms its components to RGB (multiple component transformation). */
bool
is_transformed(opj_codec_t *codec)
{
    opj_codestream_info_v2_t *about = opj_get_cstr_info(codec);
    const bool transformed = about && about->m_default_tile_info.mct != 0;
    opj_destroy_cstr_info(&about);
    return transformed;
}

/* Compares the transformation of the code stream with the photometric interpretation. */
std::string
check_transform(opj_codec_t *codec, const struct dicom_instance &instance)
{
    const bool named = strcmp(instance.photometric, "YBR_RCT") == 0 || strcmp(instance.photometric, "YBR_ICT") == 0;
    if (instance.stored_samples == 1)
        return {};
    const bool transformed = is_transformed(codec);
    if (transformed == named || (transformed && instance.colour == DICOM_COLOUR_RGB))
        return {};
    return std::string("its code stream has ") + (transformed ? "a" : "no") +
           " colour transformation, which contradicts the Photometric Interpretation " + instance.photometric;
}

/* Throws if errno (set to 0 before) shows a failed allocation. OpenJPEG does not distinguish
 * that from damage. */
std::string
refuse(std::string why)
{
    header_blame_memory();
    return why;
}

} // namespace

std::string
codec_decode_jpeg2000(const codec_frame &frame, uint16_t *samples)
{
    std::string why = check_tiles(frame.bytes);
    if (!why.empty())
        return why;
    errno = 0;
    Memory memory{frame.bytes, 0};
    /* OpenJPEG's stream and codec are both void, so each needs its own end. */
    const HeaderOwner<opj_stream_t, opj_stream_destroy> stream(opj_stream_default_create(OPJ_TRUE));
    const HeaderOwner<opj_codec_t, opj_destroy_codec> codec(opj_create_decompress(format_of(frame.bytes)));
    if (!stream || !codec)
        throw std::bad_alloc();
    opj_stream_set_user_data(stream.get(), &memory, nullptr);
    opj_stream_set_user_data_length(stream.get(), memory.bytes.size());
    opj_stream_set_read_function(stream.get(), memory_read);
    opj_stream_set_skip_function(stream.get(), memory_skip);
    opj_stream_set_seek_function(stream.get(), memory_seek);
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_image_t *raw = nullptr;
    const bool has_header = opj_setup_decoder(codec.get(), &parameters) &&
                            opj_decoder_set_strict_mode(codec.get(), OPJ_TRUE) &&
                            opj_read_header(stream.get(), codec.get(), &raw);
    const HeaderOwner<opj_image_t, opj_image_destroy> image(raw);
    if (!has_header || !image)
        return refuse("its code stream has no valid header");
    why = check_image(*image, *frame.instance);
    if (why.empty())
        why = check_transform(codec.get(), *frame.instance);
    if (!why.empty())
        return refuse(why);
    if (!opj_decode(codec.get(), stream.get(), image.get()) || !opj_end_decompress(codec.get(), stream.get()) ||
        !std::all_of(image->comps, image->comps + image->numcomps, [](const auto &each) { return each.data; }))
        return refuse("its code stream is damaged");
    why = check_image(*image, *frame.instance);
    if (!why.empty())
        return refuse(why);
    const size_t count = static_cast<size_t>(frame.instance->rows) * static_cast<size_t>(frame.instance->columns);
    for (OPJ_UINT32 k = 0; k < image->numcomps; k++, samples += count)
        for (size_t i = 0; i < count; i++)
            samples[i] = static_cast<uint16_t>(image->comps[k].data[i]);
    return {};
}
