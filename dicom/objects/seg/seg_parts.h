/* seg_parts.h - parts of a segment that segmentations and structure sets have; private to dicom/objects/. */
#ifndef NOCTULE_DICOM_OBJECTS_SEG_SEG_PARTS_H
#define NOCTULE_DICOM_OBJECTS_SEG_SEG_PARTS_H

#include "dicom/objects/seg/seg.h"
#include "dicom/write/dataset_writer.h"

/* Adds a sequence of all items of seg_algorithm, if there are any. */
void seg_add_algorithms(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                        const struct seg_segment *segment);

/* Adds a sequence with the type of the segment. Its item must contain the modifier. */
void seg_add_type(const struct dataset_writer *set, struct element_buffer *to, uint32_t tag,
                  const struct seg_segment *segment);

/* Returns whether label, description, codes and algorithms are ASCII. */
bool seg_segment_is_ascii(const struct seg_segment *segment);

#endif
