/* derived.c - see derived.h. */
#include "dicom/write/derived.h"

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
derived_plane_instance(const struct derived_source *source, int32_t plane)
{
    return source->instances[source->stack->planes[plane].instance];
}

const struct dicom_frame *
derived_plane_frame(const struct derived_source *source, int32_t plane)
{
    return &derived_plane_instance(source, plane)->frames[source->stack->planes[plane].frame];
}

bool
derived_measures_differ(const struct derived_source *source)
{
    const double thickness = derived_plane_frame(source, 0)->slice_thickness;
    for (int32_t p = 1; source->stack->uneven && p < source->stack->plane_count; p++)
        if (derived_plane_frame(source, p)->slice_thickness != thickness)
            return true;
    return false;
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
name_source_frames(const struct derived_source *source, struct uid_name *name)
{
    int32_t count = source->stack->plane_count;
    struct source_frame *frames = malloc((size_t)count * sizeof(*frames));
    if (!frames)
        return -ENOMEM;
    for (int32_t i = 0; i < count; i++) {
        frames[i].sop_instance_uid = derived_plane_instance(source, i)->sop_instance_uid;
        frames[i].frame = source->stack->planes[i].frame;
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

static int
derive_uid(const struct derived_source *source, const char *role, bool omits_frames,
           char uid[DICOM_UID_SIZE])
{
    struct uid_name *name;
    int rc = uid_name_begin(&name);
    if (rc)
        return rc;
    uid_name_text(name, role);
    uid_name_text(name, source->pipeline);
    uid_name_text(name, source->pipeline_settings);
    uid_name_text(name, source->software_version);
    uid_name_number(name, omits_frames);
    rc = name_source_frames(source, name);
    int end_rc = uid_name_end(name, uid);
    return rc ? rc : end_rc;
}

int
derived_identify(const struct derived_source *source, const struct derived_kind *kind,
                 struct derived_identity *identity)
{
    const struct {
        const char *part;
        char *uid;
    } uids[] = {
        {"instance", identity->sop_instance_uid},
        {"series", identity->series_uid},
        {"dimensions", identity->dimension_organization_uid},
    };

    int rc = 0;
    *identity = (struct derived_identity){{0}, {0}, {0}};
    for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]) && rc == 0; i++) {
        char role[64];
        snprintf(role, sizeof(role), "%s%s%s", kind->before, uids[i].part, kind->after);
        rc = derive_uid(source, role, kind->omits_frames, uids[i].uid);
    }
    if (rc)
        *identity = (struct derived_identity){{0}, {0}, {0}};
    return rc;
}

int
derived_frame_of_reference_uid(const struct derived_source *source, char uid[DICOM_UID_SIZE])
{
    const struct dicom_instance *first = derived_plane_instance(source, 0);
    if (first->frame_of_reference_uid[0] != '\0') {
        memcpy(uid, first->frame_of_reference_uid, DICOM_UID_SIZE);
        return 0;
    }
    return uid_from_texts(uid,
                          (const char *const[]){"frame of reference", first->series_uid, NULL});
}
