/* seg_identity.c - who a segmentation object is: its UIDs, from what it was made of. */
#include "dicom/objects/seg/seg_internal.h"
#include "dicom/value/uid.h"

#include <stdio.h>

int
seg_make_identity(const struct seg_request *request, struct derived_identity *identity)
{
    const struct derived_kind kind = {request->fractional ? "FRACTIONAL SEG " : "SEG ", "",
                                      request->omit_empty_frames};
    return derived_identify(&request->source, &kind, identity);
}

void
seg_identify(const struct seg_request *request, struct derived_identity *identity)
{
    (void)seg_make_identity(request, identity);
}

int
seg_tracking_uid(const struct seg_request *request, const struct seg_segment *segment,
                 char uid[DICOM_UID_SIZE])
{
    struct uid_name *name;
    int error = uid_name_begin(&name);
    if (error)
        return error;
    uid_name_text(name, "tracking");
    uid_name_text(name, derived_plane_instance(&request->source, 0)->series_uid);
    uid_name_text(name, request->source.pipeline);
    uid_name_text(name, segment->label);
    return uid_name_end(name, uid);
}

void
seg_tracking_id(const struct seg_request *request, const struct seg_segment *segment,
                char id[SEG_TRACKING_ID_SIZE])
{
    snprintf(id, SEG_TRACKING_ID_SIZE, "%s: %s", request->source.pipeline, segment->label);
}
