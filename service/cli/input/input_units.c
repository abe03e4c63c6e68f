/* input_units.c - see input_units.h. */
#include "service/cli/input/input_units.h"

#include "base/error.h"
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
add_unit(struct units *units, const struct sorted_series *series, const char *stack,
         const struct error *refusal)
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

/* Writes the first part, "im1.dcm is a localizer.", for the file at `path`. */
static void
describe_skipped_file(const struct geometry_stack *stack, const char *path, char *message,
                      size_t size)
{
    const char *words = stack->error.message, *name = text_base_name(stack->error.file[0]);
    const size_t length = strlen(name);
    if (strncmp(words, name, length) != 0) {
        snprintf(message, size, "%s", words);
        return;
    }
    const char *end = strstr(words + length, ". ");
    const size_t kept = end ? (size_t)(end + 1 - words) - length : strlen(words + length);
    snprintf(message, size, "%s%.*s", text_base_name(path), (int)kept, words + length);
}

/* Skips each file of a stack once, although several frames may come from one file. */
static int
skip_stack(const struct sorted_series *series, const struct geometry_stack *stack,
           struct input_skipped *skipped)
{
    bool *is_listed = calloc(series->headers.count + 1, sizeof *is_listed);
    int rc = is_listed ? 0 : -ENOMEM;
    for (int32_t i = 0; i < stack->plane_count && rc == 0; i++) {
        const int32_t at = stack->planes[i].instance;
        char message[sizeof stack->error.message];
        if (is_listed[at])
            continue;
        is_listed[at] = true;
        describe_skipped_file(stack, series->paths[at], message, sizeof message);
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
    return !request->stacks || strcmp(request->stacks, CONF_ALL_STACKS) == 0 ||
           fnmatch(request->stacks, stack, 0) == 0;
}

/* Selects accepted stacks as a rule with this `stacks` does. `picks` must have room for all of
 * them. */
static void
choose_as(const struct conf_rule *rule, struct choice *choice, struct rules_pick *picks)
{
    const struct rules_series series = {.modality = "",
                                        .body_part = "",
                                        .description = "",
                                        .stacks = choice->stacks,
                                        .stack_count = (size_t)choice->grouped->stack_count};
    struct rules_outcome outcome;
    const size_t picked = rules_pick(rule, 1, &series, picks, &outcome);
    for (size_t i = 0; i < picked; i++)
        choice->chosen[picks[i].stack] = true;
    choice->too_many = outcome.too_many;
}

static int
choose_accepted(const struct units_request *request, struct choice *choice)
{
    const struct conf_rule rule = {.pipeline = request->pipeline->name,
                                   .stacks = request->stacks ? strdup(request->stacks) : NULL};
    struct rules_pick *picks = calloc((size_t)choice->grouped->stack_count + 1, sizeof *picks);
    const bool able = picks && (rule.stacks || !request->stacks);
    if (able)
        choose_as(&rule, choice, picks);
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
choice_make(const struct units_request *request, const struct geometry_series *grouped,
            struct choice *choice)
{
    const size_t count = (size_t)grouped->stack_count;
    *choice = (struct choice){.grouped = grouped,
                              .stacks = calloc(count + 1, sizeof *choice->stacks),
                              .chosen = calloc(count + 1, sizeof *choice->chosen)};
    if (!choice->stacks || !choice->chosen) {
        choice_release(choice);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct geometry_stack *stack = &grouped->stacks[i];
        choice->stacks[i] =
            (struct rules_stack){stack->name, stack->plane_count, stack->accepted, NULL};
        choice->chosen[i] = request->stack && stack->accepted && choice_names(request, stack->name);
    }
    int rc = request->stack ? 0 : choose_accepted(request, choice);
    if (rc)
        choice_release(choice);
    else
        choose_refused(request, choice);
    return rc;
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
make_chosen(struct units *units, const struct sorted_series *series, const struct choice *choice)
{
    for (int32_t i = 0; i < choice->grouped->stack_count; i++) {
        const struct geometry_stack *stack = &choice->grouped->stacks[i];
        if (choice->chosen[i] &&
            !add_unit(units, series, stack->name, stack->accepted ? NULL : &stack->error))
            return -ENOMEM;
    }
    struct error refusal = {0};
    if (choice->too_many == 0)
        return 0;
    describe_too_many(choice, &refusal);
    return add_unit(units, series, "", &refusal) ? 0 : -ENOMEM;
}

static int
units_of_stacks(struct units *units, const struct sorted_series *series,
                const struct units_request *request, const struct geometry_series *grouped)
{
    struct choice choice;
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
    rc = make_chosen(units, series, &choice);
    choice_release(&choice);
    return rc;
}

static const struct geometry_stack *
find_stack(const struct geometry_series *grouped, const char *name)
{
    for (int32_t i = 0; i < grouped->stack_count; i++)
        if (strcmp(grouped->stacks[i].name, name) == 0)
            return &grouped->stacks[i];
    return NULL;
}

static size_t
message_without_remedy(const char *message)
{
    const char *remedy = strstr(message, GEOMETRY_REMEDY);
    return remedy ? (size_t)(remedy - message) : strlen(message);
}

/* Notes the missing files or slices in the units from `first` on. `strict` is the result without
 * accept_missing. */
static void
note_missing(struct units *units, size_t first, const struct sorted_series *series,
             const struct geometry_series *strict)
{
    for (size_t i = first; i < units->count; i++) {
        struct unit *unit = &units->items[i];
        const struct geometry_stack *stack = find_stack(strict, unit->stack);
        if (series->damaged > 0)
            snprintf(unit->note, sizeof unit->note,
                     "missing files are accepted: %zu cannot be used, such as %.100s",
                     series->damaged, text_base_name(series->damage.file[0]));
        else if (stack && stack->error.code == CODE_INCOMPLETE_SERIES)
            snprintf(unit->note, sizeof unit->note, "missing slices are accepted: %.*s",
                     (int)message_without_remedy(stack->error.message), stack->error.message);
        text_utf8_mend_end(unit->note);
    }
}

static int
units_check_strictly(struct units *units, size_t first, const struct sorted_series *series,
                     struct geometry_limits limits)
{
    struct geometry_series *strict;
    struct error refusal;
    limits.allow_missing = false;
    int rc = geometry_group(series->headers.instances, (int32_t)series->headers.count, &limits,
                            &strict, &refusal);
    for (size_t i = first; rc == -EINVAL && i < units->count; i++) {
        struct unit *unit = &units->items[i];
        snprintf(unit->note, sizeof unit->note, "accepted: %s: %.140s", code_name(refusal.code),
                 refusal.message);
        text_utf8_mend_end(unit->note);
    }
    if (rc)
        return rc == -EINVAL ? 0 : rc;
    note_missing(units, first, series, strict);
    geometry_series_free(strict);
    return 0;
}

static int
units_check_stacks(struct units *units, const struct sorted_series *series,
                   const struct units_request *request, struct error *refusal)
{
    struct geometry_limits limits = pipeline_limits(request->pipeline);
    limits.allow_missing = request->accept_missing;
    struct geometry_series *grouped;
    const size_t first = units->count;
    int rc = geometry_group(series->headers.instances, (int32_t)series->headers.count, &limits,
                            &grouped, refusal);
    if (rc)
        return rc;
    if (!request->accept_missing)
        input_sorted_refuse_damaged(series, grouped);
    rc = units_of_stacks(units, series, request, grouped);
    geometry_series_free(grouped);
    if (rc == 0 && request->accept_missing && units->count > first)
        rc = units_check_strictly(units, first, series, limits);
    return rc;
}

/* A series without stacks becomes one refused unit. */
static int
units_check_series(struct units *units, const struct sorted_series *series,
                   const struct units_request *request)
{
    struct error refusal = series->refusal;
    int rc =
        refusal.code == CODE_NONE ? units_check_stacks(units, series, request, &refusal) : -EINVAL;
    if (rc != -EINVAL)
        return rc;
    units->stacks++;
    return add_unit(units, series, "", &refusal) ? 0 : -ENOMEM;
}

/* -------------------------------------------------------------------------------- naming ---- */

static int32_t
unique_number(const struct units *units, const struct headers *series)
{
    int32_t number = series->instances[0]->series_number;
    for (size_t i = 0; i < units->sorted.count; i++) {
        const struct headers *other = &units->sorted.series[i].headers;
        if (other != series && other->instances[0]->series_number == number)
            return 0;
    }
    return number;
}

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

static bool
is_taken(const struct units *units, const struct unit *unit)
{
    for (const struct unit *other = units->items; other < unit; other++) {
        if (strcmp(other->output, unit->output) == 0)
            return true;
    }
    return false;
}

static char *
folder_name(const struct units *units, const struct unit *unit, const char *output, int again)
{
    char modality[DICOM_CS_SIZE], description[49], stack[sizeof unit->stack],
        number[DICOM_UID_SIZE];
    char repeat[16] = "", *path;
    const struct dicom_instance *first = unit->headers->instances[0];
    plain_name(modality, sizeof modality, first->modality);
    plain_name(description, sizeof description, first->series_description);
    plain_name(stack, sizeof stack, unit->stack);
    snprintf(number, sizeof number, "%d", first->series_number);
    if (unique_number(units, unit->headers) <= 0)
        snprintf(number, sizeof number, "%s", first->series_uid);
    if (again > 1)
        snprintf(repeat, sizeof repeat, "-%d", again);
    return asprintf(&path, "%s/%s-%s%s%s%s%s%s", output, modality, number,
                    description[0] ? "-" : "", description, stack[0] ? "-" : "", stack, repeat) < 0
               ? NULL
               : path;
}

static int
name_units(struct units *units, const char *output)
{
    for (size_t i = 0; i < units->count; i++) {
        struct unit *unit = &units->items[i];
        int again = 1;
        do {
            free(unit->output);
            unit->output =
                units->count == 1 ? strdup(output) : folder_name(units, unit, output, again++);
            if (!unit->output)
                return -ENOMEM;
        } while (is_taken(units, unit));
    }
    return 0;
}

int
input_units_make(const struct units_request *request, struct units *units, struct error *error)
{
    *units = (struct units){0};
    int rc = input_sorted_make(request->headers, request->paths, request->series_limits,
                               request->skipped, &units->sorted);
    for (size_t i = 0; i < units->sorted.count && rc == 0; i++)
        rc = units_check_series(units, &units->sorted.series[i], request);
    if (rc == 0)
        rc = name_units(units, request->output);
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
