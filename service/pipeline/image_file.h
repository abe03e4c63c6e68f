/*
 * image_file.h - an image of NIfTI or NRRD, for measurement alone: the header of a series of one instance, so that jobs
 * treat it as DICOM. It has no patient, and no DICOM object can refer to it.
 *
 * Values. A file type of at most 16 bits gives the stored values, and the slope of the file is the rescale. So do whole numbers
 * from -32768 to 32767, or from 0 to 65535, of other types. Any other finite values are reals (has_reals): texture uses them
 * as they are. Their stored values, 65536 steps from the lowest to the highest value, serve the preview, and the measures of a
 * segment in job.json. Reals may be NAN (has_none), stored as the lowest value, but not in a segment, and not where values beyond
 * segments are used.
 *
 * Geometry. Slices are the third axis of the file, in LPS (volume_file.h); geometry_group() sorts them along their normal.
 *
 * Functions return 0 or -errno with the error filled. Thread-safe.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_IMAGE_FILE_H
#define NOCTULE_SERVICE_PIPELINE_IMAGE_FILE_H

#include "dicom/dicom.h"
#include "service/common/volume/volume_file.h"
#include "service/pipeline/decode.h"
#include "service/pipeline/grid.h"

/* Returns whether a name ends as those of such images: .nii, .nii.gz, .hdr, .nrrd, .nhdr. */
bool image_file_is_named(const char *name);

/* Returns whether an instance is such a file. */
bool image_file_is(const struct dicom_instance *instance);

/*
 * Reads the header, and the voxels to find their range. The Series Number is `number`, and the UIDs follow from it and the
 * path. Codes: IMAGE_FILE_UNREADABLE, IMAGE_FILE_VALUES, FILE_UNREADABLE, OUT_OF_MEMORY. Free with dicom_instance_free().
 */
int image_file_peek(const char *path, int32_t number, struct dicom_instance **instance, struct error *error);

/*
 * Reserves room for the values of an image with reals, and checks that the pipeline needs no stored values of it: for
 * segments by value, quantities, or rounded texture; with NAN also none beyond the segments. Code: IMAGE_FILE_VALUES (-EINVAL),
 * also for a tilted image.
 */
int image_file_keep_reals(const struct conf_pipeline *pipeline, struct grid *grid, struct error *error);

/* Checks that no voxel of a region is NAN, once the image is decoded. Code: IMAGE_FILE_VALUES (-EINVAL). */
int image_file_check_region(const struct grid *grid, const uint64_t *bits, const char *label, struct error *error);

/* Computes the digest of a file, in the form of a UID. Code: FILE_UNREADABLE. */
int image_file_digest(const char *path, char digest[DICOM_UID_SIZE], struct error *error);

/* Decodes all planes of a stack of such an instance, as decode_stack(). */
int image_file_decode(const struct decode_request *request, struct error *error);

/*
 * Writes the voxels of a label map that have the value `label` as a mask with label 1 (mask_file.h), on the grid of the
 * image: a new file of the folder. The grids must be the same, in any order of axes. Fills the digest of the mask. Codes
 * besides those of image_file_peek(): IMAGE_FILE_GRID, IMAGE_FILE_NO_LABEL.
 */
int image_file_write_mask(const char *path, int label, const struct grid *grid, int folder, const char *name,
                          char sha256[65], struct error *error);

#endif
