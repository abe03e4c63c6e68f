/*
 * rtstruct_object.h - writes segments as an RT Structure Set (PS3.3 A.19.3), and reads it back.
 *
 * The contours are those of outliner.h: the reader (dicom/read/annotation/rtstruct.h) and kernels_mask_contours return
 * every voxel of the masks. Points have as many decimals as keep their error below a quarter of OUTLINE_INSET, and at
 * most 16 characters.
 *
 * Memory does not depend on the number of contours: sequences of contours have undefined length and are written as they
 * are traced. DCMTK's dcmrt holds the whole object in memory, and a copy while it writes (docs/measurements.md).
 */
#ifndef NOCTULE_DICOM_OBJECTS_RTSTRUCT_RTSTRUCT_OBJECT_H
#define NOCTULE_DICOM_OBJECTS_RTSTRUCT_RTSTRUCT_OBJECT_H

#include "dicom/objects/seg/seg.h"
#include "dicom/read/annotation/rtstruct.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rtstruct_request {
    const struct seg_request *seg; /* source and segments, by their bits */
    const char *const *types;      /* RT ROI Interpreted Type per segment; "": none */
    bool xor_holes;                /* holes are contours of CLOSEDPLANAR_XOR, in regions that have a hole */
    const char *series_description;
    int32_t series_number;
};

/* As seg_identify. */
int rtstruct_identify(const struct rtstruct_request *request, struct derived_identity *identity);

/*
 * Writes the object to `fd`, as seg_write does. Segments without voxels are regions without contours. Codes: those of
 * dicom_inherit; WRITE_FAILED; NO_GEOMETRY; OUT_OF_MEMORY; RTSTRUCT_TOO_LARGE (-EOVERFLOW) for a point more than 1e6 mm
 * from the origin, which the reader refuses; RTSTRUCT_REQUEST_INVALID, a defect of the caller.
 */
int rtstruct_write(const struct rtstruct_request *request, int fd, struct derived_summary *summary,
                   struct error *error);

/* Compares the contours of a segment with its mask. Returns 0 or -errno with the error filled. */
typedef int rtstruct_compare(void *context, int32_t segment, const struct rtstruct_contours *contours,
                             struct error *error);

/*
 * Reads the object back, the head with DCMTK and the regions with Noctule's own reader, and compares it with the
 * request. Calls `compare` for each segment. Codes: RTSTRUCT_MISMATCH (-EBADMSG) with the first difference;
 * RTSTRUCT_TOO_LARGE (-EOVERFLOW) if the reader refuses the object for its size; OUT_OF_MEMORY; those of `compare`.
 */
int rtstruct_verify(const struct rtstruct_request *request, const char *path, rtstruct_compare *compare, void *context,
                    struct error *error);

#ifdef __cplusplus
}
#endif
#endif
