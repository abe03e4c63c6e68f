/*
 * describe.h - how a segment was found, in words: the Algorithm Parameters (0066,0032) of its SEG
 * (PS3.3 10.16) and the job's note.
 */
#ifndef NOCTULE_DESCRIBE_H
#define NOCTULE_DESCRIBE_H

#include "service/pipeline/segment/fuzzy_objects.h"

#define DESCRIBE_SIZE 1025 /* the attribute takes 1024 characters; what is longer is cut */

/* Range and shapes as configured. */
void describe_level_set(const struct conf_segment *segment, char text[DESCRIBE_SIZE]);

/* The numbers that were used, those that were measured marked so, and the seeds in voxels. */
void describe_fuzzy(const struct conf_segment *segment, const struct kernels_fuzzy_object *object,
                    const struct fuzzy_gaussians *gaussians, bool relative,
                    char text[DESCRIBE_SIZE]);

/* What was measured for the segment; false, and nothing written, when nothing was. */
bool describe_measured(const char *label, const struct fuzzy_gaussians *gaussians, char *text,
                       size_t size);

#endif
