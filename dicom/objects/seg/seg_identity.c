/* seg_identity.c - who a segmentation object is: its UIDs, from what it was made of. */
#include "dicom/objects/seg/seg_internal.h"
#include "dicom/value/uid.h"

#include <stdio.h>

int
seg_identify(const struct seg_request *request, struct derived_identity *identity)
{
    const struct derived_kind kind = {request->fractional ? "FRACTIONAL SEG " : "SEG ", "",
                                      request->omit_empty_frames};
    return derived_identify(&request->source, &kind, identity);
}

int
seg_tracking_uid(const struct seg_request *request, const struct seg_segment *segment,
                 char uid[DICOM_UID_SIZE])
{
    const char *const name[] = {"tracking", derived_plane_instance(&request->source, 0)->series_uid,
                                request->source.pipeline, segment->label};
    return uid_from_texts(name, sizeof(name) / sizeof(name[0]), uid);
}

void
seg_tracking_id(const struct seg_request *request, const struct seg_segment *segment,
                char id[SEG_TRACKING_ID_SIZE])
{
    snprintf(id, SEG_TRACKING_ID_SIZE, "%s: %s", request->source.pipeline, segment->label);
}
