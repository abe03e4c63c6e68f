/* input_units.c - see input.h. */
#include "service/cli/input/input.h"

#include "base/text.h"
#include "service/common/routing/routing_rules.h"
#include "service/pipeline/pipeline.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------- units ---- */

static struct unit *
add_unit(struct units *units, const struct sorted_series *series, const char *stack, const struct error *refusal)
{
    struct unit *grown = reallocarray(units->items, units->count + 1, sizeof *grown);
    if (!grown)
        return NULL;
    units->items = grown;
    struct unit *unit = &grown[units->count++];
    *unit = (struct unit){.headers = &series->headers, .paths = series->paths};
    snprintf(unit->stack, sizeof unit->stack, "%s", stack);
    if (refusal)
        unit->refusal = *refusal;
    return unit;
}

/* Skips each file of a stack once, although several frames may come from one file. The reason
 * begins with its own name: "im1.dcm is a localizer." */
static int
skip_stack(const struct sorted_series *series, const struct geometry_stack *stack, struct input_skipped *skipped)
{
    const char *words = stack->error.message, *name = text_base_name(stack->error.file[0]);
    const size_t length = strncmp(words, name, strlen(name)) == 0 ? strlen(name) : 0;
    const char *end = length > 0 ? strstr(words + length, ". ") : NULL;
    const size_t kept = end ? (size_t)(end + 1 - words) - length : strlen(words + length);
    bool *is_listed = calloc(series->headers.count + 1, sizeof *is_listed);
    int rc = is_listed ? 0 : -ENOMEM;
    for (int32_t i = 0; i < stack->plane_count && rc == 0; i++) {
        const int32_t at = stack->planes[i].instance;
        char message[sizeof stack->error.message];
        if (is_listed[at])
            continue;
        is_listed[at] = true;
        snprintf(message, sizeof message, "%s%.*s", length > 0 ? text_base_name(series->paths[at]) : "", (int)kept,
                 words + length);
        rc = input_skipped_add(skipped, series->paths[at], stack->error.code, message);
    }
    free(is_listed);
    return rc;
}

/* -------------------------------------------------------------------------- selection ---- */

/* The stacks of one series, and the selected ones. */
struct choice {
    const struct geometry_series *grouped;
    struct rules_stack *stacks;
    bool *chosen;
    size_t too_many; /* accepted stacks, if there are too many to run without a selection; else 0 */
};

static void
choice_release(struct choice *choice)
{
    free(choice->stacks);
    free(choice->chosen);
}

static bool
choice_names(const struct units_request *request, const char *stack)
{
    if (request->stack)
        return strcmp(request->stack, stack) == 0;
    return !request->stacks || strcmp(request->stacks, CONF_ALL_STACKS) == 0 || fnmatch(request->stacks, stack, 0) == 0;
}

/* Selects accepted stacks as a rule with this `stacks` does. */
static int
choose_accepted(const struct units_request *request, struct choice *choice)
{
    const struct conf_rule rule = {.pipeline = request->pipeline->name,
                                   .stacks = request->stacks ? strdup(request->stacks) : NULL};
    const struct rules_series series = {.modality = "",
                                        .body_part = "",
                                        .description = "",
                                        .stacks = choice->stacks,
                                        .stack_count = (size_t)choice->grouped->stack_count};
    struct rules_pick *picks = calloc(series.stack_count + 1, sizeof *picks);
    struct rules_outcome outcome = {0};
    const bool able = picks && (rule.stacks || !request->stacks);
    const size_t picked = able ? rules_pick(&rule, 1, &series, picks, &outcome) : 0;
    for (size_t i = 0; i < picked; i++)
        choice->chosen[picks[i].stack] = true;
    choice->too_many = outcome.too_many;
    free(picks);
    free(rule.stacks);
    return able ? 0 : -ENOMEM;
}

/* Selects refused stacks that are named, or all refused ones if no other stack is selected. */
static void
choose_refused(const struct units_request *request, struct choice *choice)
{
    bool any = false;
    for (int32_t i = 0; i < choice->grouped->stack_count; i++)
        any |= choice->chosen[i];
    for (int32_t i = 0; i < choice->grouped->stack_count; i++) {
        const struct geometry_stack *stack = &choice->grouped->stacks[i];
        if (!stack->accepted && !stack->passed_over)
            choice->chosen[i] = choice_names(request, stack->name) || (!any && !request->stack);
    }
}

static int
choice_make(const struct units_request *request, const struct geometry_series *grouped, struct choice *choice)
{
    const size_t count = (size_t)grouped->stack_count;
    *choice = (struct choice){.grouped = grouped,
                              .stacks = calloc(count + 1, sizeof *choice->stacks),
                              .chosen = calloc(count + 1, sizeof *choice->chosen)};
    int rc = choice->stacks && choice->chosen ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct geometry_stack *stack = &grouped->stacks[i];
        choice->stacks[i] = (struct rules_stack){stack->name, stack->plane_count, stack->accepted, NULL};
        choice->chosen[i] = request->stack && stack->accepted && choice_names(request, stack->name);
    }
    if (rc == 0 && !request->stack)
        rc = choose_accepted(request, choice);
    if (rc) {
        choice_release(choice);
        return rc;
    }
    choose_refused(request, choice);
    return 0;
}

/* "75 volumes: b 0, b 1000 #2, ..." */
static void
describe_too_many(const struct choice *choice, struct error *refusal)
{
    char names[320] = "";
    size_t used = 0, is_listed = 0;
    for (int32_t i = 0; i < choice->grouped->stack_count; i++) {
        const char *name = choice->grouped->stacks[i].name;
        if (!choice->grouped->stacks[i].accepted || used + strlen(name) + 3 > sizeof names)
            continue;
        used += (size_t)sprintf(names + used, "%s%s", is_listed++ > 0 ? "; " : "", name);
    }
    error_set(refusal, 0, CODE_TOO_MANY_STACKS,
              "the series has %zu volumes: %s%s. Select some with --stacks all, first, last, b0 or "
              "a pattern, or with --stack NAME.",
              choice->too_many, names, is_listed < choice->too_many ? "; ..." : "");
}

/* ------------------------------------------------------------------ checking a series ---- */

static int
units_of_stacks(struct units *units, const struct sorted_series *series, const struct units_request *request,
                const struct geometry_series *grouped)
{
    struct choice choice;
    struct error refusal = {0};
    int rc = 0;
    for (int32_t i = 0; i < grouped->stack_count && rc == 0; i++) {
        if (grouped->stacks[i].passed_over)
            rc = skip_stack(series, &grouped->stacks[i], request->skipped);
        else
            units->stacks++;
    }
    if (rc == 0)
        rc = choice_make(request, grouped, &choice);
    if (rc)
        return rc;
    for (int32_t i = 0; i < grouped->stack_count && rc == 0; i++) {
        const struct geometry_stack *stack = &grouped->stacks[i];
        if (choice.chosen[i] && !add_unit(units, series, stack->name, stack->accepted ? NULL : &stack->error))
            rc = -ENOMEM;
    }
    if (rc == 0 && choice.too_many > 0) {
        describe_too_many(&choice, &refusal);
        rc = add_unit(units, series, "", &refusal) ? 0 : -ENOMEM;
    }
    choice_release(&choice);
    return rc;
}

/* Notes the missing files or slices in the units from `first` on. */
static int
units_note_missing(struct units *units, size_t first, const struct sorted_series *series, struct geometry_limits limits)
{
    struct geometry_series *strict;
    struct error refusal;
    limits.allow_missing = false;
    int rc = geometry_group(series->headers.instances, (int32_t)series->headers.count, &limits, &strict, &refusal);
    for (size_t i = first; (rc == 0 || rc == -EINVAL) && i < units->count; i++) {
        struct unit *unit = &units->items[i];
        int32_t at = 0;
        while (rc == 0 && at < strict->stack_count && strcmp(strict->stacks[at].name, unit->stack) != 0)
            at++;
        if (rc == -EINVAL) {
            snprintf(unit->note, sizeof unit->note, "accepted: %s: %.140s", code_name(refusal.code), refusal.message);
        } else if (series->damaged > 0) {
            snprintf(unit->note, sizeof unit->note, "missing files are accepted: %zu cannot be used, such as %.100s",
                     series->damaged, text_base_name(series->damage.file[0]));
        } else if (at < strict->stack_count && strict->stacks[at].error.code == CODE_INCOMPLETE_SERIES) {
            const char *message = strict->stacks[at].error.message;
            const char *remedy = strstr(message, GEOMETRY_REMEDY);
            snprintf(unit->note, sizeof unit->note, "missing slices are accepted: %.*s",
                     (int)(remedy ? (size_t)(remedy - message) : strlen(message)), message);
        }
        text_utf8_mend_end(unit->note);
    }
    if (rc == 0)
        geometry_series_free(strict);
    return rc == -EINVAL ? 0 : rc;
}

static int
units_check_stacks(struct units *units, const struct sorted_series *series, const struct units_request *request,
                   struct error *refusal)
{
    struct geometry_limits limits = pipeline_limits(request->pipeline);
    limits.allow_missing = request->accept_missing;
    struct geometry_series *grouped;
    const size_t first = units->count;
    int rc = geometry_group(series->headers.instances, (int32_t)series->headers.count, &limits, &grouped, refusal);
    if (rc)
        return rc;
    if (!request->accept_missing)
        input_sorted_refuse_damaged(series, grouped);
    rc = units_of_stacks(units, series, request, grouped);
    geometry_series_free(grouped);
    if (rc == 0 && request->accept_missing && units->count > first)
        rc = units_note_missing(units, first, series, limits);
    return rc;
}

/* -------------------------------------------------------------------------------- naming ---- */

/* Makes a part of a file name: keeps letters, digits, dots and underscores, and replaces other runs
 * by one dash. */
static void
plain_name(char *to, size_t size, const char *from)
{
    size_t length = 0;
    for (; *from && length + 1 < size; from++) {
        bool kept = isalnum((unsigned char)*from) || *from == '.' || *from == '_';
        if (kept)
            to[length++] = *from;
        else if (length > 0 && to[length - 1] != '-')
            to[length++] = '-';
    }
    while (length > 0 && to[length - 1] == '-')
        length--;
    to[length] = '\0';
}

/* Sets the group of a series: the name of a folder directly below the only input, or of one of several inputs. */
static void
name_group(const struct units_request *request, const char *path, char group[NAME_MAX + 1])
{
    *group = '\0';
    for (size_t i = 0; i < request->group_count; i++) {
        const char *input = request->groups[i];
        const size_t length = strlen(input);
        if (strncmp(path, input, length) != 0 || (path[length] && path[length] != '/'))
            continue;
        const char *below = path + length + (path[length] == '/');
        if (request->group_count == 1 && strchr(below, '/'))
            snprintf(group, NAME_MAX + 1, "%.*s", (int)strcspn(below, "/"), below);
        else
            snprintf(group, NAME_MAX + 1, "%s", text_base_name(input));
        return;
    }
}

static char *
folder_name(const struct units *units, const struct unit *unit, const struct units_request *request, int again)
{
    char modality[DICOM_CS_SIZE], description[49], stack[sizeof unit->stack], number[DICOM_UID_SIZE];
    char group[sizeof unit->group], other_group[sizeof unit->group];
    char repeat[16] = "", *path;
    const struct dicom_instance *first = unit->headers->instances[0];
    plain_name(modality, sizeof modality, first->modality);
    plain_name(description, sizeof description, first->series_description);
    plain_name(stack, sizeof stack, unit->stack);
    bool unique = first->series_number > 0;
    for (size_t i = 0; i < units->sorted.count; i++) {
        const struct headers *other = &units->sorted.series[i].headers;
        name_group(request, units->sorted.series[i].paths[0], other_group);
        unique &= other == unit->headers || other->instances[0]->series_number != first->series_number ||
                  strcmp(other_group, unit->group) != 0;
    }
    plain_name(group, sizeof group, unit->group);
    snprintf(number, sizeof number, "%d", first->series_number);
    if (!unique)
        snprintf(number, sizeof number, "%s", first->series_uid);
    if (again > 1)
        snprintf(repeat, sizeof repeat, "-%d", again);
    return asprintf(&path, "%s%s%s/%s-%s%s%s%s%s%s", request->output, group[0] ? "/" : "", group, modality, number,
                    description[0] ? "-" : "", description, stack[0] ? "-" : "", stack, repeat) < 0
               ? NULL
               : path;
}

static int
name_units(struct units *units, const struct units_request *request)
{
    for (size_t i = 0; i < units->count; i++)
        name_group(request, units->items[i].paths[0], units->items[i].group);
    for (size_t i = 0; i < units->count; i++) {
        struct unit *unit = &units->items[i];
        int again = 1;
        bool is_taken;
        do {
            free(unit->output);
            unit->output = units->count == 1 && !request->groups ? strdup(request->output)
                                                                 : folder_name(units, unit, request, again++);
            if (!unit->output)
                return -ENOMEM;
            is_taken = false;
            for (size_t k = 0; k < i; k++)
                is_taken |= strcmp(units->items[k].output, unit->output) == 0;
        } while (is_taken);
    }
    return 0;
}

int
input_units_make(const struct units_request *request, struct units *units, struct error *error)
{
    *units = (struct units){0};
    int rc =
        input_sorted_make(request->headers, request->paths, request->series_limits, request->skipped, &units->sorted);
    for (size_t i = 0; i < units->sorted.count && rc == 0; i++) {
        const struct sorted_series *series = &units->sorted.series[i];
        struct error refusal = series->refusal;
        rc = refusal.code == CODE_NONE ? units_check_stacks(units, series, request, &refusal) : -EINVAL;
        if (rc != -EINVAL)
            continue;
        units->stacks++; /* a series without stacks becomes one refused unit */
        rc = add_unit(units, series, "", &refusal) ? 0 : -ENOMEM;
    }
    if (rc == 0)
        rc = name_units(units, request);
    if (rc) {
        error_set_system(error, rc, "sort the files");
        input_units_free(units);
    }
    return rc;
}

void
input_units_free(struct units *units)
{
    for (size_t i = 0; i < units->count; i++)
        free(units->items[i].output);
    free(units->items);
    input_sorted_free(&units->sorted);
    *units = (struct units){0};
}
