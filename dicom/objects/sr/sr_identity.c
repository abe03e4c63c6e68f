/* sr_identity.c - UIDs of a report, derived from the SEG it refers to and its content. */
#include "dicom/objects/sr/sr_internal.h"
#include "dicom/value/uid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *
sr_class(const struct sr_request *request)
{
    return request->comprehensive_3d ? SR_3D_SOP_CLASS : SR_SOP_CLASS;
}

bool
sr_is_in_evidence_only(const struct sr_result *result)
{
    return strcmp(result->class_uid, SEG_LABELMAP_SOP_CLASS_UID) == 0;
}

const struct seg_origin *
sr_origin(const struct sr_request *request, const struct sr_group *group)
{
    return group->segment == SR_WHOLE_VOLUME || request->seg_identity ? NULL
                                                                      : request->seg->segments[group->segment].origin;
}

const struct seg_origin *
sr_new_origin(const struct sr_request *request, size_t group)
{
    const struct seg_origin *origin = sr_origin(request, &request->groups[group]);
    for (size_t i = 0; origin && i < group; i++) {
        const struct seg_origin *earlier = sr_origin(request, &request->groups[i]);
        if (earlier && strcmp(earlier->instance_uid, origin->instance_uid) == 0)
            return NULL;
    }
    return origin;
}

bool
sr_refers_to_segments(const struct sr_request *request)
{
    for (size_t i = 0; i < request->group_count; i++) {
        const struct sr_group *group = &request->groups[i];
        if (group->segment != SR_WHOLE_VOLUME && !sr_origin(request, group))
            return true;
    }
    return false;
}

int
sr_track(const struct sr_request *request, const struct sr_group *group, char id[SEG_TRACKING_ID_SIZE],
         char uid[DICOM_UID_SIZE])
{
    const struct derived_source *source = &request->seg->source;
    if (group->segment == SR_WHOLE_VOLUME) {
        snprintf(id, SEG_TRACKING_ID_SIZE, "%s: whole volume", source->pipeline);
        return derived_part_uid(source, "tracking of the volume", source->stack->name, uid);
    }
    const struct seg_segment *segment = &request->seg->segments[group->segment];
    seg_tracking_id(request->seg, segment, id);
    return seg_tracking_uid(request->seg, segment, uid);
}

const char *
sr_absence(const struct sr_measurement *measurement)
{
    if (measurement->absence && measurement->absence[0] != '\0')
        return measurement->absence;
    return isfinite(measurement->value) ? NULL : "The computation gave no finite number.";
}

bool
sr_has_path(const struct sr_request *request, const struct sr_measurement *measurement)
{
    /* A path is in the frame of reference, which a 2-D image has not. */
    return request->comprehensive_3d && measurement->has_path && !request->seg->source.stack->flat &&
           !sr_absence(measurement);
}

bool
sr_has_parameters(const struct sr_request *request)
{
    return request->algorithm_parameters && request->algorithm_parameters[0] != '\0';
}

const char *
sr_remark(const struct sr_request *request)
{
    const char *remark = request->seg->source.remark;
    return remark && remark[0] != '\0' ? remark : NULL;
}

static void
name_code(struct uid_name *name, const struct coded_concept *code)
{
    uid_name_text(name, code->value);
    uid_name_text(name, code->scheme);
    uid_name_text(name, code->meaning);
}

/* Names a number by its bits. Numbers that differ in the last bit must give different reports. */
static void
name_value(struct uid_name *name, double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uid_name_number(name, bits);
}

static void
name_measurement(struct uid_name *name, const struct sr_request *request, const struct sr_measurement *measurement)
{
    name_code(name, &measurement->concept);
    name_code(name, &measurement->unit);
    name_value(name, measurement->value);
    uid_name_text(name, measurement->absence ? measurement->absence : "");
    uid_name_number(name, measurement->qualifier);
    uid_name_number(name, (int64_t)measurement->modifier_count);
    for (size_t i = 0; i < measurement->modifier_count; i++) {
        name_code(name, &measurement->modifiers[i][0]);
        name_code(name, &measurement->modifiers[i][1]);
    }
    uid_name_number(name, (int64_t)measurement->parameter_count);
    for (size_t i = 0; i < measurement->parameter_count; i++) {
        name_code(name, &measurement->parameters[i].concept);
        name_code(name, &measurement->parameters[i].unit);
        name_value(name, measurement->parameters[i].value);
    }
    for (size_t i = 0; i < measurement->words_count; i++) {
        name_code(name, &measurement->words[i].concept);
        uid_name_text(name, measurement->words[i].text);
    }
    for (int i = 0; i < 6 && sr_has_path(request, measurement); i++)
        name_value(name, measurement->path[i / 3][i % 3]);
}

struct sr_naming {
    const struct sr_request *request;
    struct derived_identity seg;
};

static int
sr_make_uid(const struct sr_naming *naming, const char *role, const struct derived_reference *replaces,
            char uid[DICOM_UID_SIZE])
{
    const struct sr_request *request = naming->request;
    const struct derived_identity *seg = &naming->seg;
    struct uid_name *name;
    int error = uid_name_begin(&name);
    if (error)
        return error;
    uid_name_text(name, role);
    uid_name_text(name, seg->sop_instance_uid);
    uid_name_text(name, seg->series_uid);
    if (sr_has_parameters(request))
        uid_name_text(name, request->algorithm_parameters);
    if (sr_remark(request))
        uid_name_text(name, sr_remark(request));
    uid_name_number(name, (int64_t)request->group_count);
    for (size_t g = 0; g < request->group_count; g++) {
        const struct sr_group *group = &request->groups[g];
        uid_name_number(name, group->segment);
        uid_name_number(name, (int64_t)group->measurement_count);
        for (size_t i = 0; i < group->measurement_count; i++)
            name_measurement(name, request, &group->measurements[i]);
    }
    if (request->comprehensive_3d) {
        uid_name_text(name, SR_3D_SOP_CLASS);
        for (size_t i = 0; i < request->result_count; i++)
            uid_name_text(name, request->results[i].instance_uid);
    }
    uid_name_text(name, replaces ? replaces->sop_instance_uid : "");
    return uid_name_end(name, uid);
}

static int
sr_make_instance_uid(void *context, const struct derived_reference *replaces, char uid[DICOM_UID_SIZE])
{
    return sr_make_uid(context, "SR instance", replaces, uid);
}

int
sr_make_identity(const struct sr_request *request, struct derived_identity *identity)
{
    struct sr_naming naming = {.request = request};
    *identity = (struct derived_identity){{0}, {0}, {0}, NULL};
    int error = 0;
    if (request->seg_identity)
        naming.seg = *request->seg_identity;
    else
        error = seg_identify(request->seg, &naming.seg);
    if (!error)
        error = derived_find_replaced(request->earlier, sr_make_instance_uid, &naming, &identity->replaces);
    if (!error)
        error = sr_make_instance_uid(&naming, identity->replaces, identity->sop_instance_uid);
    return error ? error : sr_make_uid(&naming, "SR series", identity->replaces, identity->series_uid);
}

int
sr_device_uid(const struct seg_request *request, char uid[DICOM_UID_SIZE])
{
    return uid_from_texts(uid, (const char *const[]){"device observer", request->source.device_serial_number, NULL});
}
