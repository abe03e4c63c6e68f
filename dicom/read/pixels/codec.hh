/*
 * codec.hh - decodes one compressed frame to samples; private to dicom/, C++.
 *
 * Frames are decoded one at a time, from bytes of that frame only. Both decoders check the code
 * stream's own size against the header before they allocate memory of that size. Several threads
 * may use them at once.
 */
#ifndef NOCTULE_DICOM_READ_PIXELS_CODEC_HH
#define NOCTULE_DICOM_READ_PIXELS_CODEC_HH

#include "dicom/dicom.h"
#include "dicom/value/transfer_syntax.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/* The frame to decode. */
struct codec_frame {
    const struct transfer_syntax *syntax;
    const struct dicom_instance *instance;
    const std::vector<uint8_t> &bytes;
};

/* Fill `samples` with rows * columns 16-bit values as in the code stream, without shift, mask or
 * sign extension. Return "", or the reason of the failure, as the end of "frame 3 cannot be
 * decoded: ". */
std::string codec_decode_jpeg(const codec_frame &frame, uint16_t *samples); /* also JPEG-LS */
/* Also HTJ2K. An image with colour has three such planes: RGB, unless its photometric interpretation is YBR_FULL. */
std::string codec_decode_jpeg2000(const codec_frame &frame, uint16_t *samples);
/* Fills `bytes`, of an even size, with three 8-bit samples per pixel as in the code stream, pixel by pixel. Refuses a stream whose markers
 * contradict the photometric interpretation. */
std::string codec_decode_jpeg_colour(const codec_frame &frame, std::vector<uint8_t> &bytes);

#endif
