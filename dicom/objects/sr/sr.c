/*
 * sr.c - writes measurement reports: checks the request, encodes the object in memory
 * (sr_modules.c, sr_tree.c) and writes it to the descriptor.
 */
#include "dicom/objects/sr/sr.h"

#include "base/durable.h"
#include "base/error.h"
#include "dicom/objects/sr/sr_internal.h"
#include "dicom/objects/sr/sr_writer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *
invalid_measurement(const struct sr_measurement *measurement)
{
    if (!dataset_code_is_complete(&measurement->concept) || !dataset_code_is_complete(&measurement->unit))
        return "a measurement without concept or unit";
    if (measurement->modifier_count > SR_MAX_MODIFIERS || measurement->parameter_count > SR_MAX_PARAMETERS)
        return "a measurement with too many settings";
    for (size_t i = 0; i < measurement->words_count; i++)
        if (!dataset_code_is_complete(&measurement->words[i].concept))
            return "a textual setting without a concept";
    for (size_t i = 0; i < measurement->modifier_count; i++) {
        if (!dataset_code_is_complete(&measurement->modifiers[i][0]) ||
            !dataset_code_is_complete(&measurement->modifiers[i][1]))
            return "a modifier without a code";
    }
    for (size_t i = 0; i < measurement->parameter_count; i++) {
        const struct sr_parameter *parameter = &measurement->parameters[i];
        if (!dataset_code_is_complete(&parameter->concept) || !dataset_code_is_complete(&parameter->unit))
            return "a parameter without concept or unit";
        if (!isfinite(parameter->value))
            return "a parameter that is not a number";
    }
    return NULL;
}

static const char *
invalid_group(const struct sr_request *request, const struct sr_group *group)
{
    if (group->segment != SR_WHOLE_VOLUME) {
        if (group->segment < 0 || group->segment >= request->seg->segment_count || group->segment >= UINT16_MAX)
            return "a group without a segment";
        const struct seg_segment *segment = &request->seg->segments[group->segment];
        if (!dataset_code_is_complete(&segment->category) || !dataset_code_is_complete(&segment->type) ||
            segment->label[0] == '\0')
            return "a segment without label, category or type";
        if (dataset_code_is_partial(&segment->modifier) || dataset_code_is_partial(&segment->region))
            return "a segment with an incomplete code";
    }
    if (group->measurement_count == 0 && !(request->comprehensive_3d && group->segment != SR_WHOLE_VOLUME))
        return "a group without a measurement";
    for (size_t i = 0; i < group->measurement_count; i++) {
        const char *what = invalid_measurement(&group->measurements[i]);
        if (what)
            return what;
    }
    return NULL;
}

static const char *
sr_invalid_request(const struct sr_request *request)
{
    if (request->seg->source.stack->plane_count < 1)
        return "a stack without planes";
    if (request->seg->source.device_serial_number[0] == '\0' || request->seg->source.software_version[0] == '\0')
        return "no serial number or version";
    if (request->group_count == 0)
        return "no measurement group";
    for (size_t i = 0; i < request->group_count; i++) {
        const char *what = invalid_group(request, &request->groups[i]);
        if (what)
            return what;
    }
    if (request->result_count > 0 && !request->comprehensive_3d)
        return "an Enhanced SR as the root of results";
    bool listed = request->result_count == 0;
    for (size_t i = 0; i < request->result_count && request->seg_identity; i++)
        listed |= strcmp(request->results[i].instance_uid, request->seg_identity->sop_instance_uid) == 0;
    if (sr_refers_to_segments(request) &&
        (!listed || !request->seg_identity || request->seg_identity->sop_instance_uid[0] == '\0' ||
         request->seg_identity->series_uid[0] == '\0'))
        return "a segmentation without identity";
    return NULL;
}

static bool
measurement_is_ascii(const struct sr_measurement *measurement)
{
    bool ascii = dataset_code_is_ascii(&measurement->concept) && dataset_code_is_ascii(&measurement->unit) &&
                 (!measurement->absence || value_text_is_ascii(measurement->absence));
    for (size_t i = 0; i < measurement->words_count; i++)
        ascii = ascii && value_text_is_ascii(measurement->words[i].text) &&
                dataset_code_is_ascii(&measurement->words[i].concept);
    for (size_t i = 0; i < measurement->modifier_count; i++)
        ascii = ascii && dataset_code_is_ascii(&measurement->modifiers[i][0]) &&
                dataset_code_is_ascii(&measurement->modifiers[i][1]);
    for (size_t i = 0; i < measurement->parameter_count; i++)
        ascii = ascii && dataset_code_is_ascii(&measurement->parameters[i].concept) &&
                dataset_code_is_ascii(&measurement->parameters[i].unit);
    return ascii;
}

static bool
sr_request_is_ascii(const struct sr_request *request)
{
    bool ascii = !sr_has_parameters(request) || value_text_is_ascii(request->algorithm_parameters);
    for (size_t i = 0; i < request->group_count && ascii; i++) {
        const struct sr_group *group = &request->groups[i];
        if (group->segment != SR_WHOLE_VOLUME) {
            const struct seg_segment *segment = &request->seg->segments[group->segment];
            ascii = value_text_is_ascii(segment->label) && dataset_code_is_ascii(&segment->category) &&
                    dataset_code_is_ascii(&segment->type) && dataset_code_is_ascii(&segment->modifier) &&
                    dataset_code_is_ascii(&segment->region) &&
                    (!segment->provenance || seg_algorithm_is_ascii(segment));
        }
        for (size_t k = 0; k < group->measurement_count && ascii; k++)
            ascii = measurement_is_ascii(&group->measurements[k]);
    }
    return ascii;
}

const struct dicom_instance *
sr_source(const struct sr_writer *w, int32_t i)
{
    return w->request->seg->source.instances[w->sources[i]];
}

/* Lists each source instance once. A multi-frame instance has many planes. */
static int
list_sources(struct sr_writer *w)
{
    const struct seg_request *seg = w->request->seg;
    bool *seen = calloc((size_t)seg->source.instance_count, sizeof(*seen));
    w->sources = calloc((size_t)seg->source.instance_count, sizeof(*w->sources));
    if (!seen || !w->sources) {
        free(seen);
        return -ENOMEM;
    }
    for (int32_t p = 0; p < seg->source.stack->plane_count; p++) {
        int32_t instance = seg->source.stack->planes[p].instance;
        if (!seen[instance])
            w->sources[w->source_count++] = instance;
        seen[instance] = true;
    }
    free(seen);
    return 0;
}

static int
sr_invalid(struct error *error, int rc, const char *what)
{
    return error_set(error, rc, CODE_SR_REQUEST_INVALID,
                     "The report cannot be written: %s. This is a defect of Noctule.", what);
}

static int
write_report(struct sr_writer *w, int fd, struct error *error)
{
    const struct element_buffer *report = &w->set.elements;
    const struct sr_request *request = w->request;
    w->set.source = &request->seg->source;
    w->set.object = (struct dataset_object){
        .what = "report",
        .sop_class_uid = sr_class(request),
        .modality = "SR",
        .own_codes = sr_uses(request, CONCEPT_OWN_SCHEME),
        .ibsi_codes = sr_uses(request, CONCEPT_IBSI_SCHEME),
    };
    dataset_describe(&w->set, request->series_description, "%s measurements", request->seg->source.pipeline);
    int rc = dataset_writer_open(&w->set, sr_request_is_ascii(request), error);
    if (rc)
        return rc;
    if (sr_make_identity(request, &w->set.identity) || sr_device_uid(request->seg, w->device_uid) ||
        derived_frame_of_reference_uid(&request->seg->source, w->frame_of_reference_uid) || list_sources(w))
        return dataset_out_of_memory(&w->set, error);
    sr_put_modules(w);
    sr_put_content(w);
    if (report->error == -EMSGSIZE)
        return sr_invalid(error, -EMSGSIZE, "a text or a sequence is too long");
    if (report->error)
        return dataset_out_of_memory(&w->set, error);
    rc = durable_write_all(fd, report->bytes, report->size);
    if (rc)
        return error_set(error, rc, CODE_WRITE_FAILED, "Writing the report of %zu bytes failed: %s.", report->size,
                         strerror(-rc));
    return 0;
}

int
sr_write(const struct sr_request *request, int fd, struct derived_summary *summary, struct error *error)
{
    const char *what = sr_invalid_request(request);
    if (what)
        return sr_invalid(error, -EINVAL, what);
    struct sr_writer w = {.request = request};
    int rc = write_report(&w, fd, error);
    if (!rc) {
        *summary = (struct derived_summary){
            .identity = w.set.identity,
            .bytes = (int64_t)w.set.elements.size,
        };
        memcpy(summary->left_out, w.set.inherited.left_out, sizeof(summary->left_out));
    }
    free(w.sources);
    dataset_writer_free(&w.set);
    return rc;
}
