/*
 * charset.h - inherited text from its own character set to UTF-8, by DCMTK. Calls are safe from
 * several threads after dicom_init.
 */
#ifndef NOCTULE_CHARSET_H
#define NOCTULE_CHARSET_H

#include "dicom/dicom.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Replaces the elements by the same in UTF-8, Specific Character Set ISO_IR 192 among them.
 * Returns 0, or a negative errno with the elements as they were: -EILSEQ when a text is not in the
 * set that its object declares, or the set is not known.
 */
int charset_to_utf8(struct dicom_inherited *inherited);

#ifdef __cplusplus
}
#endif
#endif
