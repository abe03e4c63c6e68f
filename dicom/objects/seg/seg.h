/*
 * seg.h - DICOM Segmentation objects (PS3.3 A.51), BINARY or FRACTIONAL, written as a stream, and
 * read back.
 *
 * Pure C. Memory is constant in the number of frames beyond the caller's masks and maps; every
 * write is checked.
 */
#ifndef NOCTULE_SEG_H
#define NOCTULE_SEG_H

#include "dicom/read/provenance.h"
#include "dicom/write/derived.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEG_SOP_CLASS_UID "1.2.840.10008.5.1.4.1.1.66.4"

/* The object that a segment was taken from as it is, and what it is there. Strings are borrowed. */
struct seg_origin {
    const char *class_uid, *instance_uid, *series_uid, *study_uid;
    int32_t number;                         /* ROI Number, or Segment Number */
    const char *tracking_id, *tracking_uid; /* both "" where it has none */
};

/* One segment: its coding and its voxels. Strings are borrowed, UTF-8. */
struct seg_segment {
    const char *label;       /* unique within the object, at most 64 characters */
    const char *description; /* "" when there is none */
    struct coded_concept category;
    struct coded_concept type;
    struct coded_concept modifier;         /* value NULL when there is none */
    struct coded_concept region;           /* Anatomic Region; value NULL when there is none */
    double color_rgb[3];                   /* 0..1, written as Recommended Display CIELab Value */
    struct coded_concept algorithm_family; /* PS3.16 CID 7162; value NULL: Deformable Models */
    const char *algorithm_name;
    const char *algorithm_version;
    const char *algorithm_parameters; /* free text, at most 1024 characters */
    const struct seg_origin *origin;  /* NULL: found, or changed */
    /* The object's statements on a region that the segment was taken from, and whether Noctule
     * changed that region. NULL: Noctule found the segment by the algorithm above. */
    const struct provenance *provenance;
    bool changed;
    /* Voxel (x, y, z) is bit x % 64 of bits[(z * rows + y) * words_per_row + x / 64]; bits beyond
     * the columns are not looked at. BINARY objects only. */
    const uint64_t *bits;
    int64_t words_per_row;
    /* Fuzzy connectedness of voxel (x, y, z), 0 to 65535, is map[(z * rows + y) * columns + x].
     * FRACTIONAL objects only. */
    const uint16_t *map;
};

struct seg_request {
    struct derived_source source;
    const struct seg_segment *segments;
    int32_t segment_count;
    bool omit_empty_frames;
    /*
     * false: BINARY, from the segments' bits. true: FRACTIONAL (PS3.3 C.8.20.2), the segments' maps
     * as probabilities of 8 bits: round(connectedness * 255 / 65535), halves up, of 255. A frame
     * whose stored values are all 0 is an empty one. The two objects of one job differ in all UIDs:
     * a series has one segmentation.
     */
    bool fractional;
    const char *series_description; /* "": "<pipeline> segmentation[, fractional]" */
    int32_t series_number;
};

/*
 * Identity of the result: the same instances, frames, pipeline, settings, version, type and choice
 * about empty frames give the same UIDs. 0, or -ENOMEM with empty strings.
 */
int seg_identify(const struct seg_request *request, struct derived_identity *identity);

/*
 * Tracking UID of a segment: the same finding of the same pipeline in the same series keeps it over
 * runs, settings and versions; what was taken from an object has that object's, where it has one.
 */
int seg_tracking_uid(const struct seg_request *request, const struct seg_segment *segment,
                     char uid[DICOM_UID_SIZE]);

/* Tracking ID of a segment, the same in every object that speaks of it; cut when it is too long. */
#define SEG_TRACKING_ID_SIZE 512
void seg_tracking_id(const struct seg_request *request, const struct seg_segment *segment,
                     char id[SEG_TRACKING_ID_SIZE]);

/*
 * Segment Algorithm Type. A region whose object states no type is SEMIAUTOMATIC, which excludes
 * neither a person nor a program; so is a manual region that Noctule changed.
 */
const char *seg_algorithm_type(const struct seg_segment *segment);

/* A value of Segment Algorithm Name, or NULL past the last: the object's names, then Noctule's if it
 * changed the region. A MANUAL segment must have none (PS3.3 C.8.20.2). */
#define SEG_ALGORITHM_NOT_STATED "not stated by the source object"
const char *seg_algorithm_name(const struct seg_segment *segment, size_t index);

/*
 * An item of Segmentation Algorithm Identification Sequence; false past the last. The object's items
 * come as they are, without those that lack family, name or version. Noctule's own item is there if
 * it found the segment, or changed a region without such an item: readers such as highdicom 0.28.2
 * reject a sequence of two items.
 */
bool seg_algorithm(const struct seg_segment *segment, size_t index,
                   struct provenance_algorithm *algorithm);
bool seg_algorithm_is_ascii(const struct seg_segment *segment);

/*
 * Writes the object to `fd` (a regular file, open for reading and writing, at offset 0); the caller
 * syncs, closes and renames. The first plane's file is read for what the object
 * inherits (dicom_inherit). A source without Frame of Reference UID gets one that follows from its
 * series, for positions mean nothing without. Codes: those of dicom_inherit; WRITE_FAILED (with
 * errno: -ENOSPC, -EIO, ...); SEG_TOO_LARGE (more than 2^32 - 2 bytes of pixel data, PS3.5 7.1);
 * SEG_EMPTY when no voxel is set and empty frames are omitted; NO_GEOMETRY; OUT_OF_MEMORY;
 * SEG_REQUEST_INVALID, a defect of the caller.
 */
int seg_write(const struct seg_request *request, int fd, struct derived_summary *summary,
              struct error *error);

/*
 * Reads the object at `path` with DCMTK, independently of the writer, and compares every voxel,
 * reference, position and segment with the request; pixels frame by frame, in up to `threads`
 * threads, headers at about 8 KiB per frame. SEG_MISMATCH (-EBADMSG) names the first difference, or
 * why the file cannot be read; OUT_OF_MEMORY.
 */
int seg_verify(const struct seg_request *request, const char *path, int threads,
               struct error *error);

#ifdef __cplusplus
}
#endif
#endif
