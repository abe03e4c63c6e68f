/*
 * seg.h - DICOM Segmentation objects (PS3.3 A.51), BINARY, FRACTIONAL or LABELMAP; writes them as a stream and reads them back.
 *
 * Pure C. Besides the caller's masks and maps, memory does not depend on the number of frames. Every write is checked.
 */
#ifndef NOCTULE_DICOM_OBJECTS_SEG_SEG_H
#define NOCTULE_DICOM_OBJECTS_SEG_SEG_H

#include "dicom/read/annotation/provenance.h"
#include "dicom/write/derived.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEG_SOP_CLASS_UID          "1.2.840.10008.5.1.4.1.1.66.4"
#define SEG_LABELMAP_SOP_CLASS_UID "1.2.840.10008.5.1.4.1.1.66.7"

/* The annotation object, and the region in it, from which a segment was taken unchanged. Strings are borrowed. */
struct seg_origin {
    const char *class_uid, *instance_uid, *series_uid, *study_uid;
    int32_t number;                         /* ROI Number, or Segment Number */
    const char *tracking_id, *tracking_uid; /* both "" if absent */
};

/* One segment: its codes and its voxels. Strings are borrowed, UTF-8. */
struct seg_segment {
    const char *label;       /* unique within the object, at most 64 characters */
    const char *description; /* "" if absent */
    struct coded_concept category;
    struct coded_concept type;
    struct coded_concept modifier; /* value NULL if absent */
    struct coded_concept region;   /* Anatomic Region; value NULL if absent */
    double color_rgb[3];           /* 0..1, written as Recommended Display CIELab Value */
    /* PS3.16 CID 7162; if value is NULL: Deformable Models */
    struct coded_concept algorithm_family;
    const char *algorithm_name;
    const char *algorithm_version;
    const char *algorithm_parameters; /* free text, at most 1024 characters */
    const struct seg_origin *origin;  /* NULL if the segment was computed or changed, or is drawn in a report */
    const struct seg_origin *tracked; /* the region whose tracking it keeps, also one of a report; NULL: none */
    /* Provenance of the region from which the segment was taken, as its object states it, and
     * whether Noctule changed that region. NULL if Noctule found the segment by the algorithm
     * above. */
    const struct provenance *provenance;
    bool changed;
    bool corrected; /* a person corrected the region: a type AUTOMATIC of its object no longer holds */
    /* Voxel (x, y, z) is bit x % 64 of bits[(z * rows + y) * words_per_row + x / 64]. Bits
     * beyond the columns are ignored. Not in FRACTIONAL objects. */
    const uint64_t *bits;
    int64_t words_per_row;
    /* Fuzzy connectedness of voxel (x, y, z), 0 to 65535, is map[(z * rows + y) * columns + x].
     * FRACTIONAL objects only. */
    const uint16_t *map;
};

enum seg_type {
    SEG_BINARY, /* from the segments' bits */
    /*
     * From the segments' maps as 8-bit probabilities (PS3.3 C.8.20.2): round(connectedness * 255 / 65535), halves up,
     * of 255. A frame whose stored values are all 0 counts as empty.
     */
    SEG_FRACTIONAL,
    /*
     * From the segments' bits: one frame per plane, whose pixels are segment numbers, in 8 bits up to 255 segments,
     * else in 16. 0 is the background, which is a segment of its own (PS3.3 C.8.20.2.3).
     */
    SEG_LABELMAP,
};

struct seg_request {
    struct derived_source source;
    const struct seg_segment *segments;
    int32_t segment_count;
    bool omit_empty_frames;
    /* The objects of one job differ in all UIDs, because a series has one segmentation. */
    enum seg_type type;
    bool overlap_last;              /* LABELMAP: a voxel of several segments has the number of the last one */
    const char *series_description; /* "": "<pipeline> segmentation[, fractional]" */
    int32_t series_number;
};

/* Computes the identity of the result. Equal instances, frames, pipeline, settings, version,
 * type and omission of empty frames give equal UIDs. Returns 0, or -ENOMEM with empty strings. */
int seg_identify(const struct seg_request *request, struct derived_identity *identity);

/* Computes the Tracking UID of a segment. The same finding of the same pipeline in the same
 * series keeps it over runs, settings and versions. A segment taken from an annotation object
 * has the object's Tracking UID, if present. */
int seg_tracking_uid(const struct seg_request *request, const struct seg_segment *segment, char uid[DICOM_UID_SIZE]);

/* Writes the Tracking ID of a segment, equal in every object that refers to it. Cut if it is too long. */
#define SEG_TRACKING_ID_SIZE 512
void seg_tracking_id(const struct seg_request *request, const struct seg_segment *segment,
                     char id[SEG_TRACKING_ID_SIZE]);

/* Returns Segment Algorithm Type. If the region's object states no type, it is SEMIAUTOMATIC,
 * which excludes neither a person nor a program. So is a manual region that Noctule changed, and an automatic one that a
 * person corrected. */
const char *seg_algorithm_type(const struct seg_segment *segment);

/* Returns a value of Segment Algorithm Name, or NULL past the last: the object's names, then
 * Noctule's if it changed the region. A MANUAL segment must have no name (PS3.3 C.8.20.2). */
#define SEG_ALGORITHM_NOT_STATED "not stated by the source object"
const char *seg_algorithm_name(const struct seg_segment *segment, size_t index);

/*
 * Returns an item of the Segmentation Algorithm Identification Sequence; false past the last. The
 * object's items are copied unchanged. Items without family, name or version are skipped. Noctule's
 * own item is present if it found the segment, or if it changed a region without such an item:
 * readers such as highdicom 0.28.2 reject a sequence of two items.
 */
bool seg_algorithm(const struct seg_segment *segment, size_t index, struct provenance_algorithm *algorithm);
bool seg_algorithm_is_ascii(const struct seg_segment *segment);

/*
 * Writes the object to `fd` (a regular file, open for reading and writing, at offset 0). The caller must sync, close
 * and rename it. Inherited attributes are read from the first plane's file (dicom_inherit). Positions need a frame of
 * reference; if the source has no Frame of Reference UID, one is derived from its series. A frame of a 2-D image has
 * neither: it has the pixels of the image frame to which it refers (PS3.3 A.51). Codes: those of
 * dicom_inherit; WRITE_FAILED (with errno: -ENOSPC, -EIO and so on); SEG_TOO_LARGE (more than 2^32 - 2 bytes of pixel
 * data, PS3.5 7.1); SEGMENTS_OVERLAP (LABELMAP without overlap_last: names both labels and a voxel); SEG_EMPTY if no voxel is set and empty frames are omitted; NO_GEOMETRY; OUT_OF_MEMORY;
 * SEG_REQUEST_INVALID, a defect of the caller.
 */
int seg_write(const struct seg_request *request, int fd, struct derived_summary *summary, struct error *error);

/* Returns the bits per pixel of the object: 1, 8 or 16. */
uint16_t seg_bits(const struct seg_request *request);

/*
 * Reads the object at `path` with DCMTK, independently of the writer. Compares every voxel,
 * reference, position and segment with the request. Pixels are read frame by frame, in up to
 * `threads` threads; headers need about 8 KiB per frame. Codes: SEG_MISMATCH (-EBADMSG) with the
 * first difference, or with the reason why the file cannot be read; OUT_OF_MEMORY.
 */
int seg_verify(const struct seg_request *request, const char *path, int threads, struct error *error);

#ifdef __cplusplus
}
#endif
#endif
