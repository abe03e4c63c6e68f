#include "dicom/value/transfer_syntax.h"

#include <stddef.h>
#include <string.h>

#define ROOT "1.2.840.10008.1.2"

static const struct transfer_syntax syntaxes[] = {
    {ROOT, "Implicit VR Little Endian", TRANSFER_NATIVE, true, false, false, false, ""},
    {ROOT ".1", "Explicit VR Little Endian", TRANSFER_NATIVE, false, false, false, false, ""},
    {ROOT ".1.99", "Deflated Explicit VR Little Endian", TRANSFER_NATIVE, false, false, true, false, ""},
    {ROOT ".2", "Explicit VR Big Endian", TRANSFER_NATIVE, false, true, false, false, ""},
    {ROOT ".4.50", "JPEG Baseline", TRANSFER_JPEG, false, false, false, true, "ISO_10918_1"},
    {ROOT ".4.51", "JPEG Extended", TRANSFER_JPEG, false, false, false, true, "ISO_10918_1"},
    {ROOT ".4.57", "JPEG Lossless", TRANSFER_JPEG, false, false, false, false, ""},
    {ROOT ".4.70", "JPEG Lossless SV1", TRANSFER_JPEG, false, false, false, false, ""},
    {ROOT ".4.80", "JPEG-LS Lossless", TRANSFER_JPEG_LS, false, false, false, false, ""},
    {ROOT ".4.81", "JPEG-LS Near-lossless", TRANSFER_JPEG_LS, false, false, false, true, "ISO_14495_1"},
    {ROOT ".4.90", "JPEG 2000 Lossless", TRANSFER_JPEG_2000, false, false, false, false, ""},
    {ROOT ".4.91", "JPEG 2000", TRANSFER_JPEG_2000, false, false, false, true, "ISO_15444_1"},
    {ROOT ".4.201", "HTJ2K Lossless", TRANSFER_JPEG_2000, false, false, false, false, ""},
    {ROOT ".4.202", "HTJ2K Lossless RPCL", TRANSFER_JPEG_2000, false, false, false, false, ""},
    {ROOT ".4.203", "HTJ2K", TRANSFER_JPEG_2000, false, false, false, true, "ISO_15444_15"},
    {ROOT ".5", "RLE Lossless", TRANSFER_RLE, false, false, false, false, ""},
};

const struct transfer_syntax *
transfer_find(const char *uid)
{
    for (size_t i = 0; i < sizeof(syntaxes) / sizeof(syntaxes[0]); i++)
        if (strcmp(syntaxes[i].uid, uid) == 0)
            return &syntaxes[i];
    return NULL;
}
