/*
 * charset.h - converts inherited text to UTF-8 with DCMTK.
 *
 * Calls may be made from several threads after dicom_init.
 */
#ifndef NOCTULE_CHARSET_H
#define NOCTULE_CHARSET_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the elements by their UTF-8 form, including Specific Character Set ISO_IR 192.
 * Returns 0, or a negative errno with the elements unchanged: -EILSEQ if the character set is
 * unknown or a text is not valid in it. */
int charset_to_utf8(struct dicom_inherited *inherited);

#ifdef __cplusplus
}
#endif
#endif
