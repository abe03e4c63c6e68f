/*
 * capture.h - a map of local patterns of a 2-D image as a Multi-frame Grayscale Word Secondary Capture of one frame (PS3.3
 * A.8.4); writes it as a stream and reads it back.
 *
 * A Parametric Map (pmap.h) must have a Frame of Reference, Pixel Measures and Plane Positions, which a 2-D image does not
 * have. Pixels and their meaning are those of a Parametric Map. Memory and threads are as in pmap.h.
 */
#ifndef NOCTULE_DICOM_OBJECTS_PMAP_CAPTURE_H
#define NOCTULE_DICOM_OBJECTS_PMAP_CAPTURE_H

#include "dicom/objects/pmap/pmap.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CAPTURE_SOP_CLASS "1.2.840.10008.5.1.4.1.1.7.3"

/* Computes the identity from that of the source and the kind. Returns 0, or -ENOMEM with empty strings. */
int capture_identify(const struct pmap_request *request, struct derived_identity *identity);

/* Writes a map of codes of a source with one plane, as pmap_write() does, with its error codes. */
int capture_write(const struct pmap_request *request, int fd, struct derived_summary *summary, struct error *error);

/* Reads the object at `path` with DCMTK, independently of the writer, and compares every value, reference and meaning with
 * the request. Codes: those of pmap_verify(). */
int capture_verify(const struct pmap_request *request, const char *path, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
