/*
 * segment_program.h - segments from the mask that a program of the site made of the stack.
 *
 * A segment has the voxels whose label is one of its values. The mask must have the digest of the job and lie on the
 * working grid. Codes: PROGRAM_MASK_DAMAGED, also if the job has no mask of the program; PROGRAM_UNKNOWN if the
 * program's text in the job cannot be read.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_PROGRAM_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_PROGRAM_H

#include "dicom/read/annotation/provenance.h"
#include "service/pipeline/segment/segment.h"

/* A mask of the job that segments use. */
struct program_mask {
    const struct job_mask *mask;
    struct conf_program *program;
};

/* Returns the code of its algorithm's family, PS3.16 CID 7162. */
struct coded_concept segment_program_family(const struct conf_program *program);

/* Returns the mask of a prepared segment; NULL: the segment does not come from a program. */
const struct program_mask *segment_program_mask(const struct segmentation *segmentation, size_t segment);

/* Returns the algorithm of such a segment: that of its program, with the steps of the segment. NULL as above. */
const struct provenance *segment_program_provenance(const struct segmentation *segmentation, size_t segment);

#endif
