/*
 * web_planes.h - the slice viewer: planes of a job's brick file (slices.h), and the parts of pages that show them.
 *
 * Planes are answered on threads of their own, so functions of web_planes.c use only the configuration and web_kept.h. They
 * decode no DICOM.
 */
#ifndef NOCTULE_SERVICE_WEB_VIEWER_WEB_PLANES_H
#define NOCTULE_SERVICE_WEB_VIEWER_WEB_PLANES_H

#include "service/common/slices/slices.h"
#include "service/web/pages/web_view.h"

/* The start of the paths: "/api/v1/jobs/12/planes", ".../planes/ax/5" and ".../planes/ax/5.png". */
#define WEB_PLANES_PATH "/api/v1/jobs/"

/* Returns whether a path has the form of one of them. */
bool web_planes_is_path(const char *path);

/*
 * Answers such a path. The first is JSON: size, unit, window, segments, views, and the largest error of a value, since the
 * file may have rounded values. The second has values and masks for the script, little endian:
 *
 *     0    8 bytes   "NOCTPLN1"
 *     8    u32       offset of the values
 *     12   u32       number of the file, as in the JSON: differs if the file was made of other results
 *     16   2 u32     columns, rows
 *     24   u32       1: the values are signed
 *     28   u32       number of rescales: 1, the rows, or the columns
 *     32   u32       0: one rescale for all, 1: one per row, 2: one per column
 *     36   u32       number of layers
 *     40   32 bytes  position for people, UTF-8, padded with zeros
 *     72   2 f64     per rescale: slope, intercept
 *          u32       per layer: the number of its segment, from 0; then zeros to a multiple of 8
 *          u16, i16  values, row by row
 *          bytes     per layer: rows of (columns + 7) / 8 bytes, bit x % 8 of byte x / 8
 *
 * The third is a PNG with the grey window and outlines of the segments, of true proportions.
 */
int web_planes_answer(struct web *web, const struct web_request *request, struct web_reply *answer,
                      struct error *error);

/* Opens the file of a job, which borrows *fd. The caller must close both. Returns 0, -ENOENT or another -errno. */
int web_planes_open(const struct web *web, int64_t job, int *fd, struct slices **file, struct error *error);

/* web_plane_png.c: draws a plane. The caller must free *bytes. Returns 0 or -ENOMEM. */
int web_plane_png(const struct slices_volume *volume, const struct slices_layout *layout, int32_t at,
                  const struct slices_plane *plane, uint8_t **bytes, size_t *size);

/* Returns the rescales of a plane, *count of them: one for all (*along 0), or one per row (1) or column (2). */
const struct image_rescale *web_planes_rescales(const struct slices_volume *volume, const struct slices_layout *layout,
                                                int32_t at, int32_t *count, int *along);

#endif
