/*
 * csa.h - the CSA header of Siemens, in (0029,xx10) "SIEMENS CSA HEADER": named attributes with
 * text values. Software up to VB17 describes mosaics and diffusion only here. Systems that strip
 * group 0019 mostly keep it.
 *
 * The layout is Siemens' own, as others have found it (NiBabel, "Siemens format DICOM with CSA
 * header", https://nipy.org/nibabel/dicom/siemens_csa.html), all little endian:
 *
 *   "SV10", 4 bytes        CSA2 only; older headers begin with the count
 *   u32 count, u32 77
 *   per attribute: name[64], i32 multiplicity, vr[4], i32, u32 items, i32
 *     per item: u32 x[4], then the value, padded to 4 bytes; its length is x[1], in an older header
 *               x[0] less the items of the first attribute
 */
#ifndef NOCTULE_DICOM_READ_VENDOR_CSA_H
#define NOCTULE_DICOM_READ_VENDOR_CSA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CSA_VALUE 32 /* text of a number, with NUL */

/* Returns the number of non-empty values of the attribute `name`, and copies up to `room` of
 * them without padding. Returns 0 if the attribute is absent or has no value, or if the header
 * ends or is damaged before it. The time is linear in the size for any bytes. */
size_t csa_values(const void *bytes, size_t size, const char *name, char (*values)[CSA_VALUE], size_t room);

#ifdef __cplusplus
}
#endif
#endif
