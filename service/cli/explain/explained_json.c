/* explained_json.c - writes the complete result as JSON; see explained.h. */
#include "service/cli/explain/explained.h"

static void
explanation_frame(struct json *json, const struct explained *explained, size_t i, int32_t f)
{
    static char texts[FACT_COUNT][FACT_TEXT];
    const struct dicom_instance *instance = explained->files->headers.instances[i];
    const struct dicom_frame *frame = &instance->frames[f];
    const struct explained_place place = explained->places[i][f];
    const bool placed = place.stack >= 0;
    json_begin_object(json, NULL);
    json_string(json, "stack", placed ? explained->views[0].grouped->stacks[place.stack].name : "");
    json_integer(json, "slice", placed ? place.plane + 1 : 0);
    json_begin_row(json, "position_mm");
    for (int axis = 0; axis < 3 && frame->has_position; axis++)
        json_exact(json, NULL, frame->position[axis]);
    json_end_row(json);
    explained_describe(instance, frame, texts);
    for (int fact = 0; fact < FACT_COUNT; fact++) {
        if (fact == FACT_EXPECTED + 1) /* the others split volumes */
            json_begin_object(json, "keys");
        if (texts[fact][0])
            json_string(json, explained_fact_names[fact].key, texts[fact]);
    }
    json_end_object(json);
    json_end_object(json);
}

static void
explanation_stack(struct json *json, const struct geometry_stack *stack, int options)
{
    json_begin_object(json, NULL);
    json_string(json, "stack", stack->name);
    json_boolean(json, "accepted", stack->accepted);
    json_boolean(json, "passed_over", stack->passed_over);
    json_boolean(json, "straightened", stack->accepted && geometry_needs_resampling(stack));
    json_string(json, "split_by", stack->split_by);
    json_string(json, "options", routing_options_text(options));
    json_integer(json, "slices", stack->plane_count);
    json_integer(json, "columns", stack->columns);
    json_integer(json, "rows", stack->rows);
    json_begin_row(json, "spacing_mm");
    for (int axis = 0; axis < 3 && stack->accepted; axis++)
        json_exact(json, NULL, stack->spacing[axis]);
    json_end_row(json);
    json_error(json, &stack->error);
    json_end_object(json);
}

static void
explanation_rule(struct json *json, const struct explained_rule *rule, bool of_title)
{
    const struct routing_rule *is = rule->is;
    json_begin_object(json, NULL);
    json_string(json, "rule", is->rule->name && !of_title ? is->rule->name : "");
    json_string(json, "pipeline", is->rule->pipeline);
    json_boolean(json, "matches", is->matching > 0);
    json_string(json, "stacks", is->rule->stacks ? is->rule->stacks : "");
    json_integer(json, "stacks_asked", (int64_t)is->checked);
    json_integer(json, "stacks_matching", (int64_t)is->matching);
    json_integer(json, "stacks_accepted", (int64_t)is->accepted);
    json_integer(json, "stacks_wanted", (int64_t)is->selected);
    json_boolean(json, "too_many_stacks", rule->too_many);
    json_string(json, "reasons", rule->reasons);
    json_begin_array(json, "conditions");
    for (size_t i = 0; i < rule->condition_count; i++) {
        json_begin_object(json, NULL);
        json_string(json, "condition", rule->conditions[i].text);
        json_boolean(json, "holds", !rule->conditions[i].reason[0]);
        json_string(json, "reason", rule->conditions[i].reason);
        json_string(json, "note", rule->conditions[i].note);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static void
explanation_outcome(struct json *json, const struct explained *explained)
{
    const struct geometry_series none = {0}, *grouped = explained->views[0].grouped;
    grouped = grouped ? grouped : &none;
    json_integer(json, "temporal_positions", grouped->times);
    json_integer(json, "announced_temporal_positions", grouped->times_announced);
    json_begin_array(json, "stacks");
    for (size_t v = 0; v < explained->view_count; v++)
        for (int32_t i = 0; explained->views[v].grouped && i < explained->views[v].grouped->stack_count; i++)
            explanation_stack(json, &explained->views[v].grouped->stacks[i], explained->views[v].options);
    json_end_array(json);
    json_string(json, "ae_title", explained->title ? explained->title : "");
    json_begin_array(json, "rules");
    for (size_t i = 0; i < explained->result.rule_count; i++)
        explanation_rule(json, &explained->rules[i], explained->title != NULL);
    json_end_array(json);
    json_begin_array(json, "jobs");
    for (size_t i = 0; i < explained->result.count; i++) {
        const struct explained_job *job = &explained->jobs[i];
        json_begin_object(json, NULL);
        json_string(json, "pipeline", job->pipeline);
        json_string(json, "stack", job->stack->name);
        json_integer(json, "priority", job->priority);
        if (job->window)
            json_string(json, "window", job->window->text);
        if (job->done_by)
            json_string(json, "done_by", job->done_by->text);
        json_string(json, "waits_for_series", job->lacks);
        json_string(json, "programs", job->programs);
        json_string(json, "takes", job->takers);
        json_boolean(json, "accepted", job->geometry.code == CODE_NONE);
        json_error(json, &job->geometry);
        json_end_object(json);
    }
    json_end_array(json);
}

void
explained_to_json(const struct explained *explained, struct json *json)
{
    const struct headers *headers = &explained->files->headers;
    const struct dicom_instance *first = headers->instances[0];
    json_string(json, "series_uid", first->series_uid);
    json_string(json, "modality", first->modality);
    json_string(json, "body_part", first->body_part);
    json_string(json, "series_description", first->series_description);
    json_integer(json, "series_number", first->series_number);
    json_integer(json, "damaged_files", (int64_t)explained->files->damaged);
    json_error(json, &explained->refusal);
    explanation_outcome(json, explained);
    json_begin_array(json, "instances");
    for (size_t i = 0; i < headers->count; i++) {
        const struct dicom_instance *instance = headers->instances[i];
        json_begin_object(json, NULL);
        json_string(json, "file", explained->files->paths[i]);
        json_string(json, "sop_instance_uid", instance->sop_instance_uid);
        json_integer(json, "instance_number", instance->instance_number);
        json_boolean(json, "named", input_collect_has(explained->named, explained->files->paths[i]));
        json_begin_array(json, "images");
        for (int32_t f = 0; f < instance->frame_count; f++)
            explanation_frame(json, explained, i, f);
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
}
