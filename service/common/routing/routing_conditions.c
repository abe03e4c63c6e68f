#include "service/common/routing/routing_conditions.h"

#include "base/attribute.h"
#include "base/limits.h"
#include "base/text.h"
#include "config/expression.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONDITION_REASON 512
#define AXIAL_COSINE     0.8   /* between a normal and an axis of the patient: 36.87 degrees */
#define SPACING_STEP     0.001 /* mm: positions are decimal strings, and the spacing is a mean */

#define CONTRAST         "ContrastBolusAgent"
#define CONTRAST_ITEMS   "ContrastBolusAgentSequence"
#define CONTRAST_GIVEN   "ContrastBolusAgentAdministered" /* per frame: YES or NO */

/* ------------------------------------------------------------------------------ reporting ---- */

/* Receiver of the results, and their summary. */
struct condition_check {
    rules_report *report;
    void *context;
    char text[CONDITION_TEXT]; /* of the current condition */
    char note[CONDITION_TEXT]; /* an addition to the text */
    bool hold;                 /* no condition failed */
    bool failed;               /* a condition failed whose value could be compared */
    const char *uncompared;    /* the first attribute that could not be compared, or NULL */
};

static void __attribute__((format(printf, 2, 3)))
condition_begin(struct condition_check *check, const char *format, ...)
{
    va_list values;
    if (!check->report)
        return;
    va_start(values, format);
    vsnprintf(check->text, sizeof check->text, format, values);
    va_end(values);
    text_utf8_mend_end(check->text);
    check->note[0] = '\0';
}

static void
condition_pass(struct condition_check *check)
{
    if (check->report)
        check->report(check->context, &(struct rules_condition){check->text, "", check->note});
}

/* Reports that a condition does not hold. */
static void __attribute__((format(printf, 2, 0)))
condition_fail_with(struct condition_check *check, const char *format, va_list values)
{
    char reason[CONDITION_REASON];
    check->hold = false;
    if (!check->report)
        return;
    vsnprintf(reason, sizeof reason, format, values);
    text_utf8_mend_end(reason);
    check->report(check->context, &(struct rules_condition){check->text, reason, check->note});
}

static void __attribute__((format(printf, 2, 3))) condition_fail(struct condition_check *check, const char *format, ...)
{
    va_list values;
    check->failed = true;
    va_start(values, format);
    condition_fail_with(check, format, values);
    va_end(values);
}

/* The attribute has a value that cannot be compared. */
static void __attribute__((format(printf, 3, 4)))
condition_fail_uncompared(struct condition_check *check, const char *tag, const char *format, ...)
{
    va_list values;
    if (!check->uncompared)
        check->uncompared = tag;
    va_start(values, format);
    condition_fail_with(check, format, values);
    va_end(values);
}

/* --------------------------------------------------------------------------- of the series ---- */

/* Compares a complete value of the series, or its origin: an inbox by its name or path, or an AE
 * title. `fits`: it is the wanted one. */
static void
condition_equal(struct condition_check *check, const char *what, const char *wanted, const char *is, bool fits,
                const char *missing)
{
    if (!wanted)
        return;
    condition_begin(check, "%s %s", what, wanted);
    if (fits)
        condition_pass(check);
    else if (*is)
        condition_fail(check, "%s %s is not %s", what, is, wanted);
    else
        condition_fail(check, "%s, not %s", missing, wanted);
}

void
conditions_describe_companion(const struct conf_companion *companion, char text[CONDITION_TEXT])
{
    const char *const words[] = {companion->modality, companion->body_part};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i])
            used += (size_t)snprintf(text + used, CONDITION_TEXT - used, "%s%s", used ? " " : "", words[i]);
    if (companion->description && used < CONDITION_TEXT)
        snprintf(text + used, CONDITION_TEXT - used, "%s\"%s\"", used ? " " : "", companion->description);
    text_utf8_mend_end(text);
}

const struct rules_companion *
conditions_find_companion(const struct conf_companion *wanted, const struct rules_study *study)
{
    for (size_t i = 0; i < study->count; i++) {
        const struct rules_companion *series = &study->series[i];
        if ((!wanted->modality || strcasecmp(wanted->modality, series->modality) == 0) &&
            (!wanted->body_part || strcasecmp(wanted->body_part, series->body_part) == 0) &&
            (!wanted->description || strcasestr(series->description, wanted->description)))
            return series;
    }
    return NULL;
}

static void
conditions_of_series(struct condition_check *check, const struct conf_rule *rule, const struct rules_series *series)
{
    const struct conf_inbox *inbox = series->inbox;
    const char *called = series->called_ae ? series->called_ae : "";
    const char *sender = series->sender ? series->sender : "";
    const char *inbox_name = "";
    if (inbox)
        inbox_name = inbox->name ? inbox->name : inbox->path;
    condition_equal(check, "inbox", rule->inbox, inbox_name, rule->inbox && inbox && conf_inbox_is(inbox, rule->inbox),
                    "the inbox is unknown");
    condition_equal(check, "called AE title", rule->called_ae, called,
                    rule->called_ae && strcmp(rule->called_ae, called) == 0, "the called AE title is unknown");
    condition_equal(check, "sender", rule->sender, sender, rule->sender && strcmp(rule->sender, sender) == 0,
                    "the sender is unknown");
    condition_equal(check, "modality", rule->modality, series->modality,
                    rule->modality && strcasecmp(rule->modality, series->modality) == 0, "modality is missing");
    condition_equal(check, "body part", rule->body_part, series->body_part,
                    rule->body_part && strcasecmp(rule->body_part, series->body_part) == 0, "body part is missing");
    if (!rule->description)
        return;
    condition_begin(check, "description with \"%s\"", rule->description);
    if (strcasestr(series->description, rule->description))
        condition_pass(check);
    else
        condition_fail(check, "the description \"%s\" has no \"%s\"", series->description, rule->description);
}

/* --------------------------------------------------------------------------- the geometry ---- */

const char *
conditions_orientation_name(enum conf_orientation orientation)
{
    static const char *const names[] = {"of no orientation", "axial", "coronal", "sagittal", "oblique"};
    return names[orientation];
}

static void
condition_slices(struct condition_check *check, const struct conf_rule *rule, const struct rules_stack *stack)
{
    if (rule->min_slices > 0) {
        condition_begin(check, "at least %d slices", rule->min_slices);
        if (stack->planes >= rule->min_slices)
            condition_pass(check);
        else
            condition_fail(check, "%d slices are fewer than %d", stack->planes, rule->min_slices);
    }
    if (rule->max_slices > 0) {
        condition_begin(check, "at most %d slices", rule->max_slices);
        if (stack->planes <= rule->max_slices)
            condition_pass(check);
        else
            condition_fail(check, "%d slices are more than %d", stack->planes, rule->max_slices);
    }
}

static void
condition_geometry(struct condition_check *check, const struct conf_rule *rule, const struct rules_facts *facts)
{
    if (rule->orientation) {
        condition_begin(check, "orientation %s", conditions_orientation_name(rule->orientation));
        if (facts && facts->orientation == rule->orientation)
            condition_pass(check);
        else
            condition_fail(check, "the slices are %s, not %s",
                           facts ? conditions_orientation_name(facts->orientation) : "not known",
                           conditions_orientation_name(rule->orientation));
    }
    if (rule->has_spacing) {
        const double *ends = rule->spacing;
        condition_begin(check, "spacing %g to %g mm", ends[0], ends[1]);
        if (facts && facts->spacing > 0 && facts->spacing >= ends[0] - SPACING_STEP &&
            facts->spacing <= ends[1] + SPACING_STEP)
            condition_pass(check);
        else if (!facts || facts->spacing <= 0)
            condition_fail(check, "the spacing is unknown");
        else
            condition_fail(check, "the spacing of %g mm is not within %g to %g mm", facts->spacing, ends[0], ends[1]);
    }
}

struct rules_facts
conditions_facts(const double normal[3], double spacing, int32_t planes)
{
    static const enum conf_orientation of_axis[] = {CONF_SAGITTAL, CONF_CORONAL, CONF_AXIAL};
    struct rules_facts facts = {.spacing = planes > 1 ? spacing : 0, .asked = "", .values = ""};
    const double length = hypot(hypot(normal[0], normal[1]), normal[2]);
    facts.orientation = length > 0 ? CONF_OBLIQUE : CONF_ANY_ORIENTATION;
    for (int axis = 0; axis < 3; axis++)
        if (length > 0 && fabs(normal[axis]) >= AXIAL_COSINE * length)
            facts.orientation = of_axis[axis];
    return facts;
}

/* ----------------------------------------------------------------------------- attributes ---- */

/* The answer for an attribute: its state and its values. */
struct attribute_answer {
    enum attribute_told how;
    char text[LIMIT_RULE_BYTES + 1];
    char where[CONDITION_TEXT - 8]; /* place within an enhanced image; "": in the data set */
};

/* Finds the answer for an attribute. Returns false if it was not queried. */
static bool
attribute_answer_find(const struct rules_facts *facts, const char *tag, const char *creator,
                      struct attribute_answer *answer)
{
    if (!facts)
        return false;
    const char *asked = facts->asked, *value = facts->values;
    const size_t tag_length = strlen(tag), creator_length = creator ? strlen(creator) : 0;
    while (*asked && *value) {
        const size_t asked_length = strcspn(asked, "\n"), value_length = strcspn(value, "\n");
        if (asked_length == tag_length + 1 + creator_length && memcmp(asked, tag, tag_length) == 0 &&
            (!creator || memcmp(asked + tag_length + 1, creator, creator_length) == 0)) {
            /* "V120<tab>KVP in CTXRayDetailsSequence of all frames" */
            const char *tab = memchr(value + 1, '\t', value_length - 1);
            const char *end = value + value_length, *where = tab ? tab + 1 : end;
            answer->how = (enum attribute_told)value[0];
            snprintf(answer->text, sizeof answer->text, "%.*s", (int)((tab ? tab : end) - (value + 1)), value + 1);
            snprintf(answer->where, sizeof answer->where, "%.*s", (int)(end - where), where);
            return true;
        }
        asked += asked_length + (asked[asked_length] == '\n');
        value += value_length + (value[value_length] == '\n');
    }
    return false;
}

static void
condition_note_place(struct condition_check *check, const struct attribute_answer *answer)
{
    if (check->report && answer->where[0])
        snprintf(check->note, sizeof check->note, "it is %s", answer->where);
}

static bool
value_is_number(const char *value, double *number)
{
    char *end;
    *number = strtod(value, &end);
    return *value && value[strspn(value, "+-.0123456789eE")] == '\0' && !*end && isfinite(*number);
}

/* Returns 1, 0, or -ENOMEM. */
static int
value_passes(const struct conf_attribute *attribute, const char *value)
{
    double number;
    switch (attribute->test) {
    case CONF_ATTRIBUTE_IS:
        for (size_t i = 0; i < attribute->is_count; i++)
            if (strcasecmp(attribute->is[i], value) == 0)
                return true;
        return false;
    case CONF_ATTRIBUTE_GLOB:
        return fnmatch(attribute->glob, value, FNM_CASEFOLD) == 0;
    case CONF_ATTRIBUTE_REGEX:
        return expression_match(attribute->regex->compiled, value);
    case CONF_ATTRIBUTE_RANGE:
        return value_is_number(value, &number) && number >= attribute->range[0] && number <= attribute->range[1];
    case CONF_ATTRIBUTE_NONE:
    case CONF_ATTRIBUTE_PRESENT:
        break;
    }
    return false;
}

/* Compares several values that are separated by backslashes. Sets *any_number if at least one is a
 * number, which a range can check. Returns 1 if one passes, 0 if none does, or -ENOMEM. */
static int
values_pass(const struct conf_attribute *attribute, const char *text, bool *any_number)
{
    char values[LIMIT_RULE_BYTES + 1];
    double number;
    int pass = 0;
    *any_number = false;
    snprintf(values, sizeof values, "%s", text);
    for (char *value = values, *rest; value; value = rest) {
        rest = strchr(value, '\\');
        if (rest)
            *rest++ = '\0';
        *any_number |= value_is_number(value, &number);
        const int passes = value_passes(attribute, value);
        pass = passes < 0 || pass < 0 ? -ENOMEM : pass | passes;
    }
    return pass;
}

static void
attribute_describe(const struct conf_attribute *attribute, char text[CONDITION_TEXT])
{
    size_t at = 0;
    switch (attribute->test) {
    case CONF_ATTRIBUTE_IS:
        for (size_t i = 0; i < attribute->is_count && at < CONDITION_TEXT; i++)
            at += (size_t)snprintf(text + at, CONDITION_TEXT - at, "%s\"%s\"", i ? " or " : "", attribute->is[i]);
        break;
    case CONF_ATTRIBUTE_GLOB:
        snprintf(text, CONDITION_TEXT, "like \"%s\"", attribute->glob);
        break;
    case CONF_ATTRIBUTE_REGEX:
        snprintf(text, CONDITION_TEXT, "matched by \"%s\"", attribute->regex->text);
        break;
    case CONF_ATTRIBUTE_RANGE:
        snprintf(text, CONDITION_TEXT, "within %g to %g", attribute->range[0], attribute->range[1]);
        break;
    case CONF_ATTRIBUTE_NONE:
    case CONF_ATTRIBUTE_PRESENT:
        snprintf(text, CONDITION_TEXT, "present");
        break;
    }
    text_utf8_mend_end(text);
}

static void
condition_value(struct condition_check *check, const struct conf_attribute *attribute,
                const struct attribute_answer *answer, const char *wanted)
{
    const char *tag = attribute->tag, *negation = attribute->negated ? "" : "not ";
    bool any_number;
    if (answer->how == ATTRIBUTE_TOLD_ABSENT) {
        if (attribute->negated)
            condition_pass(check);
        else
            condition_fail(check, "there is no %s", tag);
        return;
    }
    if (answer->how == ATTRIBUTE_TOLD_UNREAD) {
        condition_fail_uncompared(check, tag,
                                  "%s cannot be compared: it is longer than %d bytes, or its text is "
                                  "invalid in its character set",
                                  tag, LIMIT_RULE_BYTES);
        return;
    }
    const int passes = values_pass(attribute, answer->text, &any_number);
    if (passes < 0)
        condition_fail_uncompared(check, tag, "%s cannot be compared: not enough memory", tag);
    else if (attribute->test == CONF_ATTRIBUTE_RANGE && !any_number)
        condition_fail(check, "%s is not a number", tag);
    else if ((passes > 0) != attribute->negated)
        condition_pass(check);
    else if (answer->how == ATTRIBUTE_TOLD_IDENTITY)
        condition_fail(check, "%s is %s%s", tag, negation, wanted);
    else
        condition_fail(check, "%s \"%s\" is %s%s", tag, answer->text, negation, wanted);
}

static void
condition_attribute(struct condition_check *check, const struct conf_attribute *attribute,
                    const struct rules_facts *facts)
{
    char wanted[CONDITION_TEXT] = "";
    struct attribute_answer answer;
    const bool present = attribute->test == CONF_ATTRIBUTE_PRESENT;
    const bool absent = present && !attribute->present;
    if (check->report)
        attribute_describe(attribute, wanted);
    condition_begin(check, "%s %s%s", attribute->tag, attribute->negated || absent ? "not " : "", wanted);
    const bool known = attribute_answer_find(facts, attribute->tag, attribute->creator, &answer);
    if (known)
        condition_note_place(check, &answer);
    if (!known)
        condition_fail(check, "%s is unknown", attribute->tag);
    else if (!present)
        condition_value(check, attribute, &answer, wanted);
    else if ((answer.how == ATTRIBUTE_TOLD_ABSENT) == absent)
        condition_pass(check);
    else
        condition_fail(check, "there is %s %s", absent ? "a" : "no", attribute->tag);
}

static void
condition_contrast(struct condition_check *check, const struct conf_rule *rule, const struct rules_facts *facts)
{
    struct attribute_answer agent, items, given;
    if (!rule->has_contrast)
        return;
    condition_begin(check, "contrast %s", rule->contrast ? "given" : "not given");
    if (!attribute_answer_find(facts, CONTRAST, NULL, &agent) ||
        !attribute_answer_find(facts, CONTRAST_ITEMS, NULL, &items) ||
        !attribute_answer_find(facts, CONTRAST_GIVEN, NULL, &given)) {
        condition_fail(check, "contrast agent unknown");
        return;
    }
    condition_note_place(check, &given);
    /* An answer of the stack's frame overrides the image. */
    bool is_given = agent.how != ATTRIBUTE_TOLD_ABSENT || items.how != ATTRIBUTE_TOLD_ABSENT;
    if (given.how == ATTRIBUTE_TOLD_VALUE)
        is_given = strstr(given.text, "YES") != NULL;
    if (is_given == rule->contrast)
        condition_pass(check);
    else
        condition_fail(check, "there is %s contrast agent", rule->contrast ? "no" : "a");
}

/* ---------------------------------------------------------------------------------- all ---- */

static void
conditions_check(struct condition_check *check, const struct conf_rule *rule, const struct rules_series *series,
                 const struct rules_stack *stack)
{
    conditions_of_series(check, rule, series);
    if (!stack)
        return;
    condition_slices(check, rule, stack);
    condition_geometry(check, rule, stack->facts);
    condition_contrast(check, rule, stack->facts);
    for (size_t i = 0; i < rule->attribute_count; i++)
        condition_attribute(check, &rule->attributes[i], stack->facts);
    /* Conditions on other series of the study do not decide whether the rule matches, only when its job runs. */
    char words[CONDITION_TEXT];
    for (size_t i = 0; i < rule->study_count && check->report; i++) {
        conditions_describe_companion(&rule->study[i], words);
        condition_begin(check, "waits for another series of the study: %s", words);
        const struct rules_companion *found =
            series->study ? conditions_find_companion(&rule->study[i], series->study) : NULL;
        if (series->study)
            snprintf(check->note, sizeof check->note, "it is %s%s",
                     found ? "there: " : "not there, and the job waits (STUDY_WAITING)",
                     found ? found->series_uid : "");
        condition_pass(check);
    }
}

bool
conditions_hold(const struct conf_rule *rule, const struct rules_series *series, const struct rules_stack *stack,
                rules_report *report, void *context)
{
    struct condition_check check = {.report = report, .context = context, .hold = true};
    conditions_check(&check, rule, series, stack);
    return check.hold;
}

const char *
conditions_undecided(const struct conf_rule *rule, const struct rules_series *series, const struct rules_stack *stack)
{
    struct condition_check check = {.hold = true};
    conditions_check(&check, rule, series, stack);
    return check.failed ? NULL : check.uncompared;
}

bool
conditions_need_facts(const struct conf_rule *rule)
{
    return rule->attribute_count > 0 || rule->orientation || rule->has_spacing || rule->has_contrast;
}

static void
attributes_add(FILE *out, const char *tag, const char *creator)
{
    fprintf(out, "%s\t%s\n", tag, creator ? creator : "");
}

static bool
attributes_has(const struct conf_rule *rules, size_t rule, size_t attribute)
{
    const struct conf_attribute *it = &rules[rule].attributes[attribute];
    for (size_t i = 0; i <= rule; i++) {
        const size_t end = i < rule ? rules[i].attribute_count : attribute;
        for (size_t j = 0; j < end; j++) {
            const struct conf_attribute *other = &rules[i].attributes[j];
            if (strcmp(other->tag, it->tag) == 0 &&
                strcmp(other->creator ? other->creator : "", it->creator ? it->creator : "") == 0)
                return true;
        }
    }
    return false;
}

char *
conditions_attributes(const struct conf_rule *rules, size_t count)
{
    struct text_stream text;
    bool contrast = false;
    if (text_open(&text) != 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        contrast |= rules[i].has_contrast;
        for (size_t j = 0; j < rules[i].attribute_count; j++)
            if (!attributes_has(rules, i, j))
                attributes_add(text.out, rules[i].attributes[j].tag, rules[i].attributes[j].creator);
    }
    if (contrast) {
        attributes_add(text.out, CONTRAST, NULL);
        attributes_add(text.out, CONTRAST_ITEMS, NULL);
        attributes_add(text.out, CONTRAST_GIVEN, NULL);
    }
    return text_close(&text) == 0 ? text.bytes : NULL;
}
