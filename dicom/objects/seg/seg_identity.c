/* seg_identity.c - who a segmentation object is: its UIDs, from what it was made of. */
#include "dicom/objects/seg/seg_internal.h"
#include "dicom/value/uid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source_frame {
    const char *sop_instance_uid;
    int32_t frame;
};

const struct dicom_instance *
seg_plane_instance(const struct seg_request *request, int32_t plane)
{
    return request->instances[request->stack->planes[plane].instance];
}

const struct dicom_frame *
seg_plane_frame(const struct seg_request *request, int32_t plane)
{
    return &seg_plane_instance(request, plane)->frames[request->stack->planes[plane].frame];
}

static int
compare_source_frames(const void *a, const void *b)
{
    const struct source_frame *left = a;
    const struct source_frame *right = b;
    int order = strcmp(left->sop_instance_uid, right->sop_instance_uid);
    return order ? order : (left->frame > right->frame) - (left->frame < right->frame);
}

/* Hashes the frames used, whatever order they came in. */
static int
name_source_frames(const struct seg_request *request, struct uid_name *name)
{
    int32_t count = request->stack->plane_count;
    struct source_frame *frames = malloc((size_t)count * sizeof(*frames));
    if (!frames)
        return -ENOMEM;
    for (int32_t i = 0; i < count; i++) {
        frames[i].sop_instance_uid = seg_plane_instance(request, i)->sop_instance_uid;
        frames[i].frame = request->stack->planes[i].frame;
    }
    qsort(frames, (size_t)count, sizeof(*frames), compare_source_frames);
    uid_name_number(name, count);
    for (int32_t i = 0; i < count; i++) {
        uid_name_text(name, frames[i].sop_instance_uid);
        uid_name_number(name, frames[i].frame);
    }
    free(frames);
    return 0;
}

int
seg_role_uid(const struct seg_request *request, const char *role, char uid[DICOM_UID_SIZE])
{
    struct uid_name *name;
    uid[0] = '\0';
    int error = uid_name_begin(&name);
    if (error)
        return error;
    uid_name_text(name, role);
    uid_name_text(name, request->pipeline);
    uid_name_text(name, request->pipeline_settings);
    uid_name_text(name, request->software_version);
    uid_name_number(name, request->omit_empty_frames);
    error = name_source_frames(request, name);
    int end_error = uid_name_end(name, uid);
    if (error)
        uid[0] = '\0';
    return error ? error : end_error;
}

/* What the UIDs are for: part of their names. */
struct roles {
    const char *instance;
    const char *series;
    const char *dimensions;
};

static const struct roles binary_roles = {"SEG instance", "SEG series", "SEG dimensions"};
static const struct roles fractional_roles = {"FRACTIONAL SEG instance", "FRACTIONAL SEG series",
                                              "FRACTIONAL SEG dimensions"};

int
seg_make_identity(const struct seg_request *request, struct seg_identity *identity)
{
    const struct roles *roles = request->fractional ? &fractional_roles : &binary_roles;
    *identity = (struct seg_identity){{0}, {0}, {0}};
    int error = seg_role_uid(request, roles->instance, identity->sop_instance_uid);
    if (!error)
        error = seg_role_uid(request, roles->series, identity->series_uid);
    if (!error)
        error = seg_role_uid(request, roles->dimensions, identity->dimension_organization_uid);
    if (error)
        *identity = (struct seg_identity){{0}, {0}, {0}};
    return error;
}

void
seg_identify(const struct seg_request *request, struct seg_identity *identity)
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
    uid_name_text(name, seg_plane_instance(request, 0)->series_uid);
    uid_name_text(name, request->pipeline);
    uid_name_text(name, segment->label);
    return uid_name_end(name, uid);
}

void
seg_tracking_id(const struct seg_request *request, const struct seg_segment *segment,
                char id[SEG_TRACKING_ID_SIZE])
{
    snprintf(id, SEG_TRACKING_ID_SIZE, "%s: %s", request->pipeline, segment->label);
}

int
seg_frame_of_reference_uid(const struct seg_request *request, char uid[DICOM_UID_SIZE])
{
    const struct dicom_instance *first = seg_plane_instance(request, 0);
    if (first->frame_of_reference_uid[0] != '\0') {
        memcpy(uid, first->frame_of_reference_uid, DICOM_UID_SIZE);
        return 0;
    }
    struct uid_name *name;
    int error = uid_name_begin(&name);
    if (error)
        return error;
    uid_name_text(name, "frame of reference");
    uid_name_text(name, first->series_uid);
    return uid_name_end(name, uid);
}
