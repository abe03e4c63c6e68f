/*
 * transfer_syntax.h - table of the transfer syntaxes that can be read; private to dicom/.
 */
#ifndef NOCTULE_DICOM_VALUE_TRANSFER_SYNTAX_H
#define NOCTULE_DICOM_VALUE_TRANSFER_SYNTAX_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum transfer_codec {
    TRANSFER_NATIVE,
    TRANSFER_RLE,
    TRANSFER_JPEG,
    TRANSFER_JPEG_LS,
    TRANSFER_JPEG_2000, /* also HTJ2K: one decoder reads both */
};

struct transfer_syntax {
    const char *uid;
    const char *name;
    enum transfer_codec codec;
    bool implicit_vr;
    bool big_endian;
    bool deflated;
    bool lossy;
    const char *lossy_method; /* Lossy Image Compression Method (0028,2114); "" if lossless */
};

/* Returns NULL if this program cannot read the syntax. */
const struct transfer_syntax *transfer_find(const char *uid);

#ifdef __cplusplus
}
#endif
#endif
