/* explained_text.c - prints the result as text that fits a terminal; see explained.h. */
#include "service/cli/explain/explained.h"

#include "base/text.h"
#include "service/common/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WIDTH      96
#define MAX_VALUES 64 /* distinct values counted; beyond that the list ends in "..." */
#define MAX_TOLD   4  /* values printed */
#define MAX_FILES  20 /* files printed one by one */

/* ---------------------------------------------------------------------------------- lines ---- */

/* "  title         the text; its rest continues below, in the same column" */
static void
text_wrapped(const char *title, const char *text)
{
    const int indent = 25;
    printf("  %-*s", indent - 3, title);
    int column = (int)strlen(title) > indent - 3 ? (int)strlen(title) + 2 : indent - 1;
    while (*text) {
        const size_t length = strcspn(text, " ");
        if (column > indent && column + 1 + (int)length > WIDTH) {
            printf("\n%*s", indent - 1, "");
            column = indent - 1;
        }
        putchar(' ');
        column += 1 + (int)length;
        for (const char *end = text + length; text < end;) {
            const size_t bytes = text_line_length(text);
            fwrite(bytes ? text : " ", 1, bytes ? bytes : 1, stdout);
            text += bytes ? bytes : 1;
        }
        text += strspn(text, " ");
    }
    putchar('\n');
}

void
explained_put_line(const char *title, const char *format, ...)
{
    char text[2048];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    text_wrapped(title, text);
}

/* ---------------------------------------------------------------------------------- facts ---- */

/* The distinct values of a fact, in order of first appearance. */
struct fact_values {
    char texts[MAX_VALUES][FACT_TEXT];
    size_t count;
    bool more;
};

static void
text_fact(const struct explained_fact_name *name, const struct fact_values *values)
{
    char text[(MAX_TOLD + 2) * (FACT_TEXT + 4)] = "";
    size_t used = 0;
    if (values->count == 0 || (values->count == 1 && !values->texts[0][0]))
        return;
    for (size_t i = 0; i < values->count && i < MAX_TOLD; i++)
        used += (size_t)sprintf(text + used, "%s%s", i ? ", " : "", values->texts[i][0] ? values->texts[i] : "none");
    if (values->more)
        used += (size_t)sprintf(text + used, ", ... (more than %d values)", MAX_VALUES);
    else if (values->count > MAX_TOLD)
        used += (size_t)sprintf(text + used, ", ... (%zu values)", values->count);
    if (name->sets_apart)
        sprintf(text + used, "; %s", name->title);
    text_wrapped(name->sets_apart ? name->key : name->title, text);
}

static void
text_header(const struct explained *explained)
{
    static struct fact_values values[FACT_COUNT];
    static char texts[FACT_COUNT][FACT_TEXT];
    const struct headers *headers = &explained->files->headers;
    const struct dicom_instance *first = headers->instances[0];
    int32_t low = INT32_MAX, high = INT32_MIN;
    size_t frames = 0;
    memset(values, 0, sizeof values);
    for (size_t i = 0; i < headers->count; i++) {
        const struct dicom_instance *instance = headers->instances[i];
        frames += (size_t)instance->frame_count;
        low = instance->instance_number < low ? instance->instance_number : low;
        high = instance->instance_number > high ? instance->instance_number : high;
        for (int32_t f = 0; f < instance->frame_count; f++) {
            explained_describe(instance, &instance->frames[f], texts);
            for (int fact = 0; fact < FACT_COUNT; fact++) {
                struct fact_values *known = &values[fact];
                size_t at = 0;
                while (at < known->count && strcmp(known->texts[at], texts[fact]) != 0)
                    at++;
                known->more |= at == MAX_VALUES;
                if (at == known->count && at < MAX_VALUES)
                    memcpy(known->texts[known->count++], texts[fact], FACT_TEXT);
            }
        }
    }
    printf("Series %s\n", first->series_uid);
    explained_put_line("is", "%s, body part %s, \"%s\", number %d", first->modality,
                       first->body_part[0] ? first->body_part : "unknown", first->series_description,
                       first->series_number);
    explained_put_line("files", "%zu with %zu image%s", headers->count, frames, frames == 1 ? "" : "s");
    for (int fact = 0; fact < FACT_COUNT; fact++) {
        if (fact == FACT_EXPECTED + 1 && headers->count > 1)
            explained_put_line("instance numbers", "%d to %d, in %zu files", low, high, headers->count);
        text_fact(&explained_fact_names[fact], &values[fact]);
    }
}

/* --------------------------------------------------------------------------------- stacks ---- */

static const char *
stack_name(const struct geometry_stack *stack)
{
    return stack->name[0] ? stack->name : "the only stack";
}

static void
text_stack(const struct explained *explained, const struct geometry_stack *stack)
{
    char spacing[80] = "", more[300] = "";
    char *const *paths = explained->files->paths;
    const int32_t last = stack->plane_count - 1;
    if (stack->accepted)
        snprintf(spacing, sizeof spacing, ", %.4g x %.4g x %.4g mm", stack->spacing[0], stack->spacing[1],
                 stack->spacing[2]);
    if (last > 0)
        snprintf(more, sizeof more, " to %.250s", text_base_name(paths[stack->planes[last].instance]));
    explained_put_line(stack->accepted      ? "  accepted"
                       : stack->passed_over ? "  skipped"
                                            : "  refused",
                       "%s: %d slice%s of %d x %d%s: %.250s%s", stack_name(stack), stack->plane_count,
                       stack->plane_count == 1 ? "" : "s", stack->columns, stack->rows, spacing,
                       text_base_name(paths[stack->planes[0].instance]), more);
    if (!stack->accepted)
        explained_put_line("    why", "%s: %s", code_name(stack->error.code), stack->error.message);
    else if (geometry_needs_resampling(stack))
        explained_put_line("    resampled", "its slices are %s%s%s", stack->tilted ? "tilted" : "",
                           stack->tilted && stack->uneven ? " and " : "",
                           stack->uneven || !stack->tilted ? "unevenly spaced" : "");
}

static void
text_stacks(const struct explained *explained)
{
    const struct geometry_series *first = explained->views[0].grouped;
    if (explained->refusal.code != CODE_NONE)
        explained_put_line("refused", "%s: %s", code_name(explained->refusal.code), explained->refusal.message);
    if (first && first->times_announced > 0)
        explained_put_line("temporal positions", "%d of %d", first->times, first->times_announced);
    for (size_t i = 0; i < explained->view_count; i++) {
        const struct geometry_series *grouped = explained->views[i].grouped;
        const char *split_by = "", *options = routing_options_text(explained->views[i].options);
        if (!grouped)
            continue;
        if (explained->view_count == 1)
            printf("  stacks: %d\n", grouped->stack_count);
        else
            printf("  stacks: %d, of pipelines with%s %s\n", grouped->stack_count, *options ? "" : "out",
                   *options ? options : routing_options_text(ROUTING_OPTION_SETS - 1));
        for (int32_t k = 0; k < grouped->stack_count; k++) {
            const struct geometry_stack *stack = &grouped->stacks[k];
            text_stack(explained, stack);
            if (strcmp(split_by, stack->split_by) != 0 && !stack->passed_over)
                explained_put_line("    split by", "%s", split_by = stack->split_by);
        }
    }
}

static void
text_file(const struct explained *explained, size_t i)
{
    const struct dicom_instance *instance = explained->files->headers.instances[i];
    const char *name = text_base_name(explained->files->paths[i]);
    const char *title = input_collect_has(explained->named, explained->files->paths[i]) ? "named file" : "file";
    const struct explained_place place = explained->places[i][0];
    if (place.stack < 0)
        explained_put_line(title, "%.300s: number %d", name, instance->instance_number);
    else
        explained_put_line(title, "%.300s: number %d, %s, slice %d of %d%s", name, instance->instance_number,
                           stack_name(&explained->views[0].grouped->stacks[place.stack]), place.plane + 1,
                           explained->views[0].grouped->stacks[place.stack].plane_count,
                           instance->frame_count > 1 ? ", the first of its images" : "");
}

/* ---------------------------------------------------------------------------- rules, jobs ---- */

static void
text_rule(const struct explained *explained, size_t number, const struct explained_rule *rule)
{
    char title[96];
    const struct routing_rule *is = rule->is;
    const char *pipeline = is->rule->pipeline, *stacks = is->rule->stacks, *name = is->rule->name;
    snprintf(title, sizeof title, "  rule %zu%s%s", number, name ? ", " : "", name ? name : "");
    if (explained->title || explained->pipeline)
        snprintf(title, sizeof title, "  pipeline");
    if (is->matching == 0)
        explained_put_line(title, "%s: no: %s", pipeline, is->checked ? rule->reasons : "there is no stack to match");
    else if (rule->too_many)
        explained_put_line(title,
                           "%s: yes, but the series has %zu volumes and the rule does not select "
                           "some (option stacks): TOO_MANY_STACKS",
                           pipeline, is->accepted);
    else if (is->accepted == 0)
        explained_put_line(title, "%s: yes, but no stack is accepted", pipeline);
    else
        explained_put_line(title, "%s: yes, for %zu of %zu stacks%s%s%s%s%s", pipeline, is->selected, is->checked,
                           stacks ? " (stacks = \"" : "", stacks ? stacks : "", stacks ? "\")" : "",
                           rule->reasons[0] ? "; others do not match: " : "", rule->reasons);
}

static void
text_rules(const struct explained *explained)
{
    if (explained->title)
        printf("  rules: not used, AE title %s has a pipeline\n", explained->title);
    else if (explained->pipeline)
        printf("  rules: not used, the pipeline is given\n");
    else
        printf("  rules: %zu\n", explained->result.rule_count);
    for (size_t i = 0; i < explained->result.rule_count; i++) {
        const struct explained_rule *rule = &explained->rules[i];
        text_rule(explained, i + 1, rule);
        for (size_t k = 0; k < rule->condition_count; k++) {
            const struct explained_condition *condition = &rule->conditions[k];
            if (rule->condition_count > 1 || condition->note[0])
                explained_put_line("    condition", "%s: %s%s%s%s", condition->text,
                                   condition->reason[0] ? "no: " : "yes", condition->reason,
                                   condition->note[0] ? "; " : "", condition->note);
        }
    }
}

static void
text_job(const struct explained_job *job)
{
    const struct conf_window *window = job->window, *done_by = job->done_by;
    const bool is_open = window && time_window_is_open(window->times, clock_unix_ms());
    if (job->geometry.code == CODE_NONE)
        explained_put_line(
            "  job", "%s on %s, priority %d%s%s%s%s%s%s%s%s%s%s", job->pipeline, stack_name(job->stack), job->priority,
            !window   ? ""
            : is_open ? ", in its window, "
                      : ", would wait for its window, ",
            window ? window->text : "", done_by ? ", deadline " : "", done_by ? done_by->text : "",
            job->lacks[0] ? ", would wait for another series of the study: " : "", job->lacks,
            job->programs[0] ? ", after the programs: " : "", job->programs, job->takers[0] ? "; " : "", job->takers);
    else
        explained_put_line("  job", "%s on %s would be refused: %s: %s", job->pipeline, stack_name(job->stack),
                           code_name(job->geometry.code), job->geometry.message);
}

void
explained_to_text(const struct explained *explained)
{
    const size_t count = explained->files->headers.count;
    text_header(explained);
    text_stacks(explained);
    for (size_t i = 0; i < count; i++)
        if (count <= MAX_FILES ||
            (explained->named->count <= MAX_FILES && input_collect_has(explained->named, explained->files->paths[i])))
            text_file(explained, i);
    text_rules(explained);
    printf("  jobs: %zu\n", explained->result.count);
    for (size_t i = 0; i < explained->result.count; i++)
        text_job(&explained->jobs[i]);
}
