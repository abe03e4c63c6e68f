/*
 * colour.hh - makes one value per pixel of colour samples, palettes and Modality LUTs; private to dicom/read/pixels/.
 *
 * Luma is Y of the equations of DICOM (PS3.3 C.7.6.3.1.2, which are those of BT.601), rounded half up. In YBR images it is the
 * stored Y.
 */
#ifndef NOCTULE_DICOM_READ_PIXELS_COLOUR_HH
#define NOCTULE_DICOM_READ_PIXELS_COLOUR_HH

#include "dicom/read/header.hh"

/* Colour samples of 8 bits: of pixel i at first[i * step], second[i * step] and third[i * step]. */
struct ColourSamples {
    const uint8_t *first, *second, *third;
    size_t step;
};

/* Converts RGB, or with `is_ybr` YBR_FULL, to one channel. */
void colour_convert(const ColourSamples &samples, bool is_ybr, enum dicom_channel channel, size_t count,
                    uint8_t *values);
/* Converts YBR_FULL_422: two pixels are Y, Y, Cb, Cr. `count` must be even. */
void colour_convert_422(const uint8_t *samples, enum dicom_channel channel, size_t count, uint8_t *values);

/* A table of values for stored values from `first` on. Those before and after the table have its first and last value. */
struct ValueTable {
    int32_t first = 0;
    std::vector<uint16_t> values;

    bool empty() const
    {
        return values.empty();
    }
};

/* Tags of the look-up tables, ascending, for a scan. */
extern const uint32_t colour_table_tags[10];
/* Max bytes of a value of them: 65536 entries of 16 bits. */
constexpr uint32_t colour_table_bytes = 131072;

/* Reads the palette or the Modality LUT of a data set. Returns "", or the reason of the failure. */
std::string colour_read_table(const Header &dataset, const struct dicom_instance &instance, enum dicom_channel channel,
                              ValueTable &table);

/* Converts stored values to those of the table: of IMAGE_UINT8 or IMAGE_UINT16, as instance.pixel. */
void colour_apply_table(const ValueTable &table, const void *stored, enum image_pixel pixel, size_t count,
                        enum image_pixel into, void *values);

#endif
