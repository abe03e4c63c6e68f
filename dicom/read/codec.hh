/*
 * codec.hh - one compressed frame to samples; private to dicom/, C++.
 *
 * Frames are decoded one at a time from bytes that belong to that frame alone. Both decoders check
 * the code stream's own size against the header before anything of that size is allocated, and may
 * run in several threads at once.
 */
#ifndef NOCTULE_DICOM_CODEC_H
#define NOCTULE_DICOM_CODEC_H

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

/*
 * Fills `samples` with rows * columns values of 16 bits as the code stream holds them, not yet
 * shifted, masked or sign-extended. Returns "" or why the frame cannot be decoded, to follow "frame
 * 3 cannot be decoded: ".
 */
std::string codec_decode_jpeg(const codec_frame &frame, uint16_t *samples);     /* and JPEG-LS */
std::string codec_decode_jpeg2000(const codec_frame &frame, uint16_t *samples); /* and HTJ2K */

#endif
