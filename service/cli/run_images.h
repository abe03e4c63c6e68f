/*
 * run_images.h - `noctule run --image`: images of NIfTI or NRRD, each with a mask or without one.
 *
 * With a mask, the pipeline measures its voxels of one label as the only segment, with the quantities of all its segments;
 * without one, it segments the image itself.
 * Results are features, the preview and NIfTI, since DICOM objects need DICOM images.
 */
#ifndef NOCTULE_SERVICE_CLI_RUN_IMAGES_H
#define NOCTULE_SERVICE_CLI_RUN_IMAGES_H

#include "config/config.h"
#include "service/cli/input/input.h"
#include "service/cli/line/line.h"
#include "service/cli/scratch.h"
#include "service/common/jobs/job_file.h"

struct run_images {
    struct run_image {
        char *image, *mask; /* absolute; no mask: NULL */
        int label;
    } * items;

    size_t count;
    bool masks;                     /* each image has one */
    struct conf_pipeline *pipeline; /* for these images */
    struct job_mask mask;           /* of the current job */
};

/* The options of the command. */
struct run_images_request {
    struct cli_texts images, masks;
    const char *pairs; /* a table of CSV with the columns Image, Mask and perhaps Label; NULL: none */
    int64_t label;     /* 0: not given, which means 1 */
};

/* Returns whether the command has images of NIfTI or NRRD. */
bool run_images_are_given(const struct run_images_request *request);

/*
 * Lists the images, makes their pipeline, and opens the scratch folder if there are masks. Must be called before the command
 * is confined. Returns EXIT_OK, or another exit code after an error message. The caller must call run_images_close() in
 * either case.
 */
int run_images_open(struct run_images *images, const struct run_images_request *request,
                    const struct conf_pipeline *pipeline, struct scratch *scratch);

/*
 * Converts the mask of an image, whose Series Number is its place from 1, to images->mask in the scratch folder. Returns 0,
 * or -errno with the error filled.
 */
int run_images_take_mask(struct run_images *images, const struct unit *unit, const struct scratch *scratch,
                         struct error *error);
void run_images_close(struct run_images *images);

#endif
