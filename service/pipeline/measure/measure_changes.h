/*
 * measure_changes.h - the option `changes`: how the volume and the quantities of each segment changed since the latest
 * earlier study of the patient. The daemon chooses that study (queue_find_prior), and the job's file has its values.
 * Segments correspond by the Tracking UID of an annotation object, also if they are of another pipeline; or else by their
 * labels. They are features of the family "change" without settings. Any thread.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_CHANGES_H
#define NOCTULE_SERVICE_PIPELINE_MEASURE_MEASURE_CHANGES_H

#include "config/config.h"
#include "service/common/jobs/feature_document.h"
#include "service/common/jobs/job_file.h"
#include "service/pipeline/pipeline_report.h"

#include "base/image.h"

struct changes_request {
    const struct conf_pipeline *pipeline;
    const struct job_spec *spec;
    const struct image_mask *masks;    /* of the segments */
    struct pipeline_segment *segments; /* likewise: their Tracking UIDs; `prior` is set of those that have one */
    const double *spacing;             /* mm between columns, rows, slices; NULL: not known, and so no volume */
};

/*
 * Adds the changes to a set that has the quantities. Values without a counterpart are missing by NO_PRIOR,
 * PRIOR_NOT_READY, PRIOR_DIFFERS or PRIOR_LACKS_IT. Returns 0, -ENOMEM, or -EBADMSG if the job's file has no such values.
 */
int changes_measure(const struct changes_request *request, struct feature_set *features);

#endif
