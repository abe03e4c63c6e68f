/*
 * pmap.h - maps of local patterns, of responses of filters and of features as DICOM Parametric Map objects (PS3.3 A.75): unsigned 16-bit
 * integers or doubles, one frame per plane; writes them as a stream and reads them back.
 *
 * Pure C. Besides the caller's codes, and a plane of doubles, memory does not depend on the number of frames. Every write
 * is checked. Any thread.
 */
#ifndef NOCTULE_DICOM_OBJECTS_PMAP_PMAP_H
#define NOCTULE_DICOM_OBJECTS_PMAP_PMAP_H

#include "dicom/write/derived.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PMAP_SOP_CLASS "1.2.840.10008.5.1.4.1.1.30"

/* Stored for voxels on the edge of their plane, which have no code: Pixel Padding Value. */
#define PMAP_PADDING 65535

/* Stored for voxels without a value: Double Float Pixel Padding Value. */
#define PMAP_NO_VALUE (-1.7976931348623157e308)

/* A map of local patterns: an 8-bit code for each voxel that is not on its plane's edge. Or, with `fill`, a map of doubles. */
struct pmap_request {
    const struct derived_source *source;
    /* "lbp": 1 to 16 characters of A-Z, a-z, 0-9, '_'; part of the UIDs. In capitals
     * (pmap_label) it is the Content Label. */
    const char *kind;
    struct coded_concept quantity; /* meaning of a code: Quantity Definition and derivation */
    const char *explanation;       /* LUT Explanation, at most 64 characters, not empty */
    const uint8_t *codes;          /* (columns - 2) * (rows - 2) * planes, x fastest */
    /* Fills columns * rows doubles of a plane, columns fastest; NAN: no value. Called several times. NULL: codes */
    void (*fill)(void *context, int64_t plane, void *values);
    void *context;
    double range[2];                /* of the doubles, for display; the first exceeds the second: there are none */
    struct coded_concept unit;      /* of the doubles */
    bool burned_in, recognizable;   /* of a capture: its source may show the patient's name, or the patient */
    const char *series_description; /* "": "<pipeline>, <kind> map" */
    int32_t series_number;
};

/* Computes the identity of the map from that of the source's segmentation (seg_identify) and the
 * kind. Each kind is a separate series. Returns 0, or -ENOMEM with empty strings. */
int pmap_identify(const struct pmap_request *request, struct derived_identity *identity);

#define PMAP_KIND_SIZE 17

/* Returns the kind in capitals. */
void pmap_label(const struct pmap_request *request, char label[PMAP_KIND_SIZE]);

/*
 * Writes the object to `fd` (a regular file, open for reading and writing, at offset 0). The caller must sync, close
 * and rename it. Inherited attributes, and the replacement of a missing Frame of Reference UID, are as in seg_write.
 * Codes: those of dicom_inherit; WRITE_FAILED (with errno: -ENOSPC, -EIO and so on); PMAP_TOO_LARGE (more than 2^32 - 2
 * bytes of pixel data, PS3.5 7.1); PMAP_EMPTY (-ENODATA: planes of less than 3 x 3 voxels have no code); NO_GEOMETRY;
 * OUT_OF_MEMORY; PMAP_REQUEST_INVALID, a defect of the caller.
 */
int pmap_write(const struct pmap_request *request, int fd, struct derived_summary *summary, struct error *error);

/*
 * Reads the object at `path` with DCMTK, independently of the writer. Compares every value, reference, position and
 * meaning with the request. Pixels are read frame by frame; headers need about 8 KiB per frame. Codes: PMAP_MISMATCH
 * (-EBADMSG) with the first difference, or with the reason why the file cannot be read; OUT_OF_MEMORY.
 */
int pmap_verify(const struct pmap_request *request, const char *path, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
