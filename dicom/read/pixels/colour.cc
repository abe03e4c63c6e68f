#include "dicom/read/pixels/colour.hh"

#include <algorithm>
#include <cstring>

namespace
{

/* Returns luma in thousandths, which needs no rounding. */
uint32_t
luma_of(uint32_t red, uint32_t green, uint32_t blue)
{
    return 299 * red + 587 * green + 114 * blue;
}

uint8_t
rounded_to_byte(int64_t numerator, int64_t denominator)
{
    const int64_t doubled = 2 * numerator + denominator; /* a half is rounded up */
    return doubled < 0 ? 0 : static_cast<uint8_t>(std::min<int64_t>(doubled / (2 * denominator), UINT8_MAX));
}

/* Solves the equations of DICOM for red, green or blue. */
uint8_t
of_ybr(uint8_t y, uint8_t cb, uint8_t cr, enum dicom_channel channel)
{
    const int64_t b = int64_t{cb} - 128, r = int64_t{cr} - 128;
    switch (channel) {
    case DICOM_CHANNEL_RED:
        return rounded_to_byte(1000 * int64_t{y} + 1402 * r, 1000);
    case DICOM_CHANNEL_GREEN:
        return rounded_to_byte(587000 * int64_t{y} - 114 * 1772 * b - 299 * 1402 * r, 587000);
    case DICOM_CHANNEL_BLUE:
        return rounded_to_byte(1000 * int64_t{y} + 1772 * b, 1000);
    case DICOM_CHANNEL_LUMA:
        break;
    }
    return y;
}

template <typename T>
T
of_rgb(T red, T green, T blue, enum dicom_channel channel)
{
    switch (channel) {
    case DICOM_CHANNEL_RED:
        return red;
    case DICOM_CHANNEL_GREEN:
        return green;
    case DICOM_CHANNEL_BLUE:
        return blue;
    case DICOM_CHANNEL_LUMA:
        break;
    }
    return static_cast<T>((luma_of(red, green, blue) + 500) / 1000);
}

/* A LUT descriptor: number of entries, first stored value, bits of an entry. */
struct Descriptor {
    int32_t entries, first, bits;
};

bool
read_descriptor(const Header &header, const DcmTagKey &tag, bool is_signed, Descriptor &descriptor)
{
    double values[3]; /* of 16 bits, written as US or SS */
    for (unsigned long i = 0; i < 3; i++)
        if (!header_number(header, tag, &values[i], i) || values[i] < INT16_MIN || values[i] > UINT16_MAX)
            return false;
    const int32_t first = static_cast<int32_t>(values[1]);
    descriptor.entries = static_cast<uint16_t>(static_cast<int32_t>(values[0]));
    if (descriptor.entries == 0)
        descriptor.entries = 65536;
    descriptor.first = is_signed ? static_cast<int16_t>(first) : static_cast<uint16_t>(first);
    descriptor.bits = static_cast<int32_t>(values[2]);
    return descriptor.bits >= 8 && descriptor.bits <= 16;
}

/* Reads entries of 16 bits, or of 8 bits packed in 16. Returns false if they are not those of the descriptor. */
bool
read_entries(const Header &header, const DcmTagKey &tag, const Descriptor &descriptor, std::vector<uint16_t> &entries)
{
    DcmElement *element = header.find(tag);
    Uint16 *words = nullptr;
    if (!element || element->getUint16Array(words).bad() || !words)
        return false;
    const size_t count = static_cast<size_t>(descriptor.entries), there = element->getLength() / 2;
    entries.resize(count);
    if (there >= count) {
        std::copy(words, words + count, entries.begin());
    } else {
        if (descriptor.bits != 8 || there < (count + 1) / 2)
            return false;
        for (size_t i = 0; i < count; i++)
            entries[i] = words[i / 2] >> (i % 2 ? 8 : 0) & UINT8_MAX;
    }
    const uint32_t most = (1u << descriptor.bits) - 1;
    return std::all_of(entries.begin(), entries.end(), [most](uint16_t entry) { return entry <= most; });
}

std::string
read_palette(const Header &dataset, bool is_signed, enum dicom_channel channel, ValueTable &table)
{
    static const DcmTagKey descriptors[] = {DCM_RedPaletteColorLookupTableDescriptor,
                                            DCM_GreenPaletteColorLookupTableDescriptor,
                                            DCM_BluePaletteColorLookupTableDescriptor};
    static const DcmTagKey data[] = {DCM_RedPaletteColorLookupTableData, DCM_GreenPaletteColorLookupTableData,
                                     DCM_BluePaletteColorLookupTableData};
    std::vector<uint16_t> colours[3];
    Descriptor descriptor = {}, other = {};
    for (int i = 0; i < 3; i++) {
        if (!read_descriptor(dataset, descriptors[i], is_signed, other) ||
            !read_entries(dataset, data[i], other, colours[i]))
            return "its palette is missing or contradicts its descriptor " + header_tag_name(descriptors[i]);
        if (i > 0 &&
            (other.entries != descriptor.entries || other.first != descriptor.first || other.bits != descriptor.bits))
            return "the palettes of its colours differ in size";
        descriptor = other;
    }
    table.first = descriptor.first;
    table.values.resize(colours[0].size());
    for (size_t i = 0; i < table.values.size(); i++)
        table.values[i] = of_rgb(colours[0][i], colours[1][i], colours[2][i], channel);
    return {};
}

} // namespace

const uint32_t colour_table_tags[10] = {0x00281101, 0x00281102, 0x00281103, 0x00281201, 0x00281202,
                                        0x00281203, 0x00283000, 0x00283002, 0x00283006, 0x7FE00001};

void
colour_convert(const ColourSamples &samples, bool is_ybr, enum dicom_channel channel, size_t count, uint8_t *values)
{
    for (size_t i = 0; i < count; i++) {
        const size_t at = i * samples.step;
        values[i] = is_ybr ? of_ybr(samples.first[at], samples.second[at], samples.third[at], channel)
                           : of_rgb(samples.first[at], samples.second[at], samples.third[at], channel);
    }
}

void
colour_convert_422(const uint8_t *samples, enum dicom_channel channel, size_t count, uint8_t *values)
{
    for (size_t i = 0; i < count; i += 2, samples += 4) {
        values[i] = of_ybr(samples[0], samples[2], samples[3], channel);
        values[i + 1] = of_ybr(samples[1], samples[2], samples[3], channel);
    }
}

std::string
colour_read_table(const Header &dataset, const struct dicom_instance &instance, enum dicom_channel channel,
                  ValueTable &table)
{
    if (instance.colour == DICOM_COLOUR_PALETTE)
        return read_palette(dataset, instance.is_signed, channel, table);
    const Header item = dataset.item(DCM_ModalityLUTSequence);
    Descriptor descriptor = {};
    if (!read_descriptor(item, DCM_LUTDescriptor, instance.is_signed, descriptor) ||
        !read_entries(item, DCM_LUTData, descriptor, table.values))
        return "its Modality LUT (0028,3000) is missing or contradicts its descriptor";
    table.first = descriptor.first;
    return {};
}

void
colour_apply_table(const ValueTable &table, const void *stored, enum image_pixel pixel, size_t count,
                   enum image_pixel into, void *values)
{
    const int32_t last = static_cast<int32_t>(table.values.size()) - 1;
    for (size_t i = 0; i < count; i++) {
        const int32_t at = image_value(stored, pixel, static_cast<int64_t>(i)) - table.first;
        const uint16_t value = table.values[static_cast<size_t>(std::min(std::max(at, 0), last))];
        if (into == IMAGE_UINT8)
            static_cast<uint8_t *>(values)[i] = static_cast<uint8_t>(value);
        else
            static_cast<uint16_t *>(values)[i] = value;
    }
}
