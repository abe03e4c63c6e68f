#include "dicom/write/derived.h"

#include "dicom/value/uid.h"
#include "dicom/value/value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source_frame {
    const struct dicom_instance *instance;
    int32_t frame;
};

const struct geometry_stack *
derived_images(const struct derived_source *source)
{
    return source->images ? source->images : source->stack;
}

const struct dicom_instance *
derived_plane_instance(const struct derived_source *source, int32_t plane)
{
    return source->instances[derived_images(source)->planes[plane].instance];
}

const struct dicom_frame *
derived_plane_frame(const struct derived_source *source, int32_t plane)
{
    return &derived_plane_instance(source, plane)->frames[derived_images(source)->planes[plane].frame];
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

const char *
derived_transfer_syntax(const struct derived_source *source, bool has_bytes)
{
    if (source->compression == DERIVED_UNCOMPRESSED)
        return DICOM_EXPLICIT_LITTLE;
    return source->compression == DERIVED_RLE && has_bytes ? DICOM_RLE_LOSSLESS : DICOM_DEFLATED_LITTLE;
}

static int
compare_source_frames(const void *a, const void *b)
{
    const struct source_frame *left = a;
    const struct source_frame *right = b;
    int order = strcmp(left->instance->sop_instance_uid, right->instance->sop_instance_uid);
    return order ? order : (left->frame > right->frame) - (left->frame < right->frame);
}

/* Hashes the frames used, independently of their order. */
static int
name_source_frames(const struct derived_source *source, struct uid_name *name)
{
    int32_t count = derived_images(source)->plane_count;
    struct source_frame *frames = malloc((size_t)count * sizeof(*frames));
    if (!frames)
        return -ENOMEM;
    for (int32_t i = 0; i < count; i++) {
        frames[i].instance = derived_plane_instance(source, i);
        frames[i].frame = derived_images(source)->planes[i].frame;
    }
    qsort(frames, (size_t)count, sizeof(*frames), compare_source_frames);
    uid_name_number(name, count);
    for (int32_t i = 0; i < count; i++) {
        uid_name_text(name, frames[i].instance->sop_instance_uid);
        uid_name_text(name, frames[i].instance->digest);
        uid_name_number(name, frames[i].frame);
    }
    free(frames);
    return 0;
}

int
derived_made_of(const struct derived_source *source, char uid[DICOM_UID_SIZE])
{
    struct uid_name *name;
    int rc = uid_name_begin(&name);
    if (rc)
        return rc;
    uid_name_text(name, source->pipeline);
    uid_name_text(name, source->pipeline_settings);
    uid_name_text(name, source->software_version);
    uid_name_text(name, source->device_serial_number);
    rc = name_source_frames(source, name);
    int end_rc = uid_name_end(name, uid);
    return rc ? rc : end_rc;
}

/* Begins a name with the identity of the results. The caller must continue and end it. */
static int
begin_name(const struct derived_source *source, const char *what, struct uid_name **name)
{
    char made_of[DICOM_UID_SIZE];
    const char *whole = source->made_of;
    int rc = 0;
    if (whole[0] == '\0') {
        rc = derived_made_of(source, made_of);
        whole = made_of;
    }
    if (rc == 0)
        rc = uid_name_begin(name);
    if (rc)
        return rc;
    uid_name_text(*name, what);
    uid_name_text(*name, whole);
    return 0;
}

int
derived_part_uid(const struct derived_source *source, const char *what, const char *part, char uid[DICOM_UID_SIZE])
{
    struct uid_name *name;
    int rc = begin_name(source, what, &name);
    if (rc)
        return rc;
    uid_name_text(name, part);
    return uid_name_end(name, uid);
}

int
derived_find_replaced(const struct derived_earlier *earlier,
                      int (*make)(void *context, const struct derived_reference *replaces, char uid[DICOM_UID_SIZE]),
                      void *context, const struct derived_reference **replaces)
{
    char uid[DICOM_UID_SIZE];
    *replaces = NULL;
    if (!earlier)
        return 0;
    if (earlier->replaced.sop_instance_uid)
        *replaces = &earlier->replaced;
    int rc = make(context, *replaces, uid);
    if (rc == 0 && strcmp(uid, earlier->latest.sop_instance_uid) != 0)
        *replaces = &earlier->latest;
    return rc;
}

struct naming {
    const struct derived_source *source;
    const struct derived_kind *kind;
};

static int
derive_uid(const struct naming *naming, const char *part, const struct derived_reference *replaces,
           char uid[DICOM_UID_SIZE])
{
    const struct derived_kind *kind = naming->kind;
    struct uid_name *name;
    char role[64];
    snprintf(role, sizeof(role), "%s%s%s", kind->before, part, kind->after);
    int rc = begin_name(naming->source, role, &name);
    if (rc)
        return rc;
    uid_name_number(name, kind->omits_frames);
    uid_name_text(name, replaces ? replaces->sop_instance_uid : "");
    return uid_name_end(name, uid);
}

static int
derive_instance_uid(void *context, const struct derived_reference *replaces, char uid[DICOM_UID_SIZE])
{
    return derive_uid(context, "instance", replaces, uid);
}

int
derived_identify(const struct derived_source *source, const struct derived_kind *kind,
                 struct derived_identity *identity)
{
    struct naming naming = {source, kind};

    const struct {
        const char *part;
        char *uid;
    } uids[] = {
        {"instance", identity->sop_instance_uid},
        {"series", identity->series_uid},
        {"dimensions", identity->dimension_organization_uid},
    };

    *identity = (struct derived_identity){{0}, {0}, {0}, NULL};
    int rc = derived_find_replaced(source->earlier, derive_instance_uid, &naming, &identity->replaces);
    for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]) && rc == 0; i++)
        rc = derive_uid(&naming, uids[i].part, identity->replaces, uids[i].uid);
    if (rc)
        *identity = (struct derived_identity){{0}, {0}, {0}, NULL};
    return rc;
}

int
derived_frame_of_reference_uid(const struct derived_source *source, char uid[DICOM_UID_SIZE])
{
    const struct dicom_instance *first = derived_plane_instance(source, 0);
    struct uid_name *name;
    if (first->frame_of_reference_uid[0] != '\0') {
        memcpy(uid, first->frame_of_reference_uid, DICOM_UID_SIZE);
        return 0;
    }
    int rc = uid_name_begin(&name);
    if (rc)
        return rc;
    uid_name_text(name, "frame of reference");
    uid_name_text(name, first->series_uid);
    rc = name_source_frames(source, name);
    int end_rc = uid_name_end(name, uid);
    return rc ? rc : end_rc;
}

/* Keeps the later of two texts. Ignores a text that is not a date and time. */
static void
keep_later(char latest[DICOM_DS_SIZE], const char *text)
{
    if (text && strcmp(text, latest) > 0 && strlen(text) == 21 && value_is_legal("DA", text, 8) &&
        value_is_legal("TM", text + 8, 13))
        memcpy(latest, text, 22);
}

void
derived_latest_time(const struct derived_source *source, char text[DICOM_DS_SIZE])
{
    text[0] = '\0';
    for (int32_t p = 0; p < derived_images(source)->plane_count; p++) {
        keep_later(text, derived_plane_frame(source, p)->acquired);
        keep_later(text, derived_plane_instance(source, p)->content);
        keep_later(text, derived_plane_instance(source, p)->created);
    }
    keep_later(text, source->objects_made);
}
