/* pmap_identity.c - who a parametric map is: its UIDs, from what it was made of. */
#include "dicom/objects/pmap/pmap_internal.h"
#include "dicom/objects/seg/seg_internal.h"

#include <stdio.h>

static int
make_uid(const struct pmap_request *request, const char *part, char uid[DICOM_UID_SIZE])
{
    struct seg_request source = *request->source;
    char role[64];
    source.omit_empty_frames = false; /* a map has all frames, whatever the segmentation has */
    snprintf(role, sizeof(role), "Parametric Map %s %s", part, request->kind);
    return seg_role_uid(&source, role, uid);
}

int
pmap_make_identity(const struct pmap_request *request, struct seg_identity *identity)
{
    *identity = (struct seg_identity){{0}, {0}, {0}};
    int error = make_uid(request, "instance", identity->sop_instance_uid);
    if (!error)
        error = make_uid(request, "series", identity->series_uid);
    if (!error)
        error = make_uid(request, "dimensions", identity->dimension_organization_uid);
    if (error)
        *identity = (struct seg_identity){{0}, {0}, {0}};
    return error;
}

void
pmap_identify(const struct pmap_request *request, struct seg_identity *identity)
{
    (void)pmap_make_identity(request, identity);
}

void
pmap_label(const struct pmap_request *request, char label[PMAP_KIND_SIZE])
{
    snprintf(label, PMAP_KIND_SIZE, "%s", request->kind);
    for (char *c = label; *c; c++) {
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    }
}
