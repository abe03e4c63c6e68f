/* The pipelines of a series' stacks: a table of single rules, then several rules together. */
#include "service/common/routing/routing_rules.h"

#include "base/limits.h"
#include "config/expression.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct subject {
    const char *modality, *body_part, *description;
    int32_t planes;
};

static const struct {
    struct conf_rule rule;
    struct subject subject;
    bool matches;
} cases[] = {
    {{0}, {"CT", "HEAD", "Brain 5mm", 30}, true},
    {{0}, {"", "", "", 0}, true},
    {{.modality = "CT"}, {"CT", "", "", 1}, true},
    {{.modality = "CT"}, {"ct", "", "", 1}, true},
    {{.modality = "CT"}, {"MR", "", "", 1}, false},
    {{.modality = "CT"}, {"CTX", "", "", 1}, false},
    {{.modality = "CT"}, {"", "", "", 1}, false},
    {{.body_part = "HEAD"}, {"CT", "HEAD", "", 1}, true},
    {{.body_part = "HEAD"}, {"CT", "Head", "", 1}, true},
    {{.body_part = "HEAD"}, {"CT", "HEADNECK", "", 1}, false},
    {{.body_part = "HEAD"}, {"CT", "", "", 1}, false},
    {{.description = "brain"}, {"CT", "", "Axial BRAIN 5 mm", 1}, true},
    {{.description = "brain"}, {"CT", "", "brain", 1}, true},
    {{.description = "brain"}, {"CT", "", "Bone", 1}, false},
    {{.description = "brain"}, {"CT", "", "", 1}, false},
    {{.description = ""}, {"CT", "", "", 1}, true},
    {{.min_slices = 20}, {"CT", "", "", 19}, false},
    {{.min_slices = 20}, {"CT", "", "", 20}, true},
    {{.max_slices = 20}, {"CT", "", "", 20}, true},
    {{.max_slices = 20}, {"CT", "", "", 21}, false},
    {{.min_slices = 5, .max_slices = 9}, {"CT", "", "", 7}, true},
    {{.min_slices = 5, .max_slices = 9}, {"CT", "", "", 10}, false},
    {{.modality = "CT", .body_part = "HEAD", .description = "brain", .min_slices = 20},
     {"CT", "HEAD", "Brain", 20},
     true},
    {{.modality = "CT", .body_part = "HEAD", .description = "brain", .min_slices = 20},
     {"CT", "HEAD", "Brain", 5},
     false},
};

#define MAX_PICKS 512

static struct rules_pick picks[MAX_PICKS];
static struct rules_outcome outcome;

/* Returns the picks for a series with one stack. */
static size_t
pick_one(const struct conf_rule *rules, size_t count, const struct subject *subject)
{
    const struct rules_stack stack = {"", subject->planes, true, NULL};
    const struct rules_series series = {.modality = subject->modality,
                                        .body_part = subject->body_part,
                                        .description = subject->description,
                                        .stacks = &stack,
                                        .stack_count = 1};
    return rules_pick(rules, count, &series, picks, &outcome);
}

START_TEST(one_rule)
{
    struct conf_rule rule = cases[_i].rule;
    char name[] = "p";
    rule.pipeline = name;
    rule.priority = 7;
    ck_assert_uint_eq(pick_one(&rule, 1, &cases[_i].subject), cases[_i].matches);
    ck_assert_int_eq(outcome.matched, cases[_i].matches);
    ck_assert_uint_eq(outcome.too_many, 0);
    if (cases[_i].matches) {
        ck_assert_str_eq(picks[0].pipeline, "p");
        ck_assert_int_eq(picks[0].priority, 7);
    }
}

END_TEST

static char inbox_name[] = "ct", inbox_path[] = "/in/ct";
static const struct conf_inbox ct_inbox = {.name = inbox_name, .path = inbox_path};
static const struct conf_inbox nameless_inbox = {.path = inbox_path};

static const struct {
    struct conf_rule rule;
    const struct conf_inbox *inbox;
    const char *called_ae, *sender;
    const char *reasons;
} origins[] = {
    {{.inbox = "ct"}, &ct_inbox, "", "", ""},
    {{.inbox = "/in/ct"}, &ct_inbox, "", "", ""},
    {{.inbox = "mr"}, &ct_inbox, "", "", "inbox ct is not mr"},
    {{.inbox = "ct"}, &nameless_inbox, "", "", "inbox /in/ct is not ct"},
    {{.inbox = "ct"}, NULL, NULL, NULL, "the inbox is unknown, not ct"},
    {{.called_ae = "HEADS", .sender = "CT1"}, NULL, "HEADS", "CT1", ""},
    {{.called_ae = "HEADS"}, NULL, "Heads", "CT1", "called AE title Heads is not HEADS"},
    {{.sender = "CT1"}, NULL, "HEADS", "CT2", "sender CT2 is not CT1"},
    {{.sender = "CT1"}, NULL, "", "", "the sender is unknown, not CT1"},
};

START_TEST(the_origin_is_checked)
{
    const struct rules_stack stack = {"", 20, true, NULL};
    const struct rules_series series = {.modality = "CT",
                                        .body_part = "",
                                        .description = "",
                                        .stacks = &stack,
                                        .stack_count = 1,
                                        .inbox = origins[_i].inbox,
                                        .called_ae = origins[_i].called_ae,
                                        .sender = origins[_i].sender};
    char reasons[RULES_REASONS];
    const bool matches = rules_match(&origins[_i].rule, &series, &stack, reasons);
    ck_assert_str_eq(reasons, origins[_i].reasons);
    ck_assert_int_eq(matches, origins[_i].reasons[0] == '\0');
    ck_assert_int_eq(rules_match_series(&origins[_i].rule, &series), matches);
}

END_TEST

static const struct {
    struct conf_rule rule;
    const char *reasons;
} mismatches[] = {
    {{0}, ""},
    {{.modality = "MR", .body_part = "HEAD", .description = "5 mm", .max_slices = 20}, ""},
    {{.modality = "CT"}, "modality MR is not CT"},
    {{.body_part = "NECK"}, "body part Head is not NECK"},
    {{.description = "bone"}, "the description \"Axial 5 mm\" has no \"bone\""},
    {{.min_slices = 21}, "20 slices are fewer than 21"},
    {{.max_slices = 19}, "20 slices are more than 19"},
    {{.modality = "CT", .body_part = "NECK", .max_slices = 2},
     "modality MR is not CT; body part Head is not NECK; 20 slices are more than 2"},
};

START_TEST(mismatches_are_reported)
{
    const struct rules_stack stack = {"", 20, true, NULL};
    const struct rules_series series = {
        .modality = "MR", .body_part = "Head", .description = "Axial 5 mm", .stacks = &stack, .stack_count = 1};
    char reasons[RULES_REASONS];
    const bool matches = rules_match(&mismatches[_i].rule, &series, &stack, reasons);
    ck_assert_int_eq(matches, mismatches[_i].reasons[0] == '\0');
    ck_assert_str_eq(reasons, mismatches[_i].reasons);
}

END_TEST

START_TEST(long_reasons_are_cut)
{
    char words[600], reasons[RULES_REASONS];
    memset(words, 'x', sizeof words);
    words[sizeof words - 1] = '\0';
    const struct rules_stack stack = {"", 20, true, NULL};
    const struct rules_series series = {
        .modality = "MR", .body_part = words, .description = words, .stacks = &stack, .stack_count = 1};
    const struct conf_rule rule = {.modality = words, .body_part = "HEAD", .description = "y"};
    ck_assert(!rules_match(&rule, &series, &stack, reasons));
    ck_assert_uint_eq(strlen(reasons), sizeof reasons - 1);
    const struct rules_series nameless = {
        .modality = "", .body_part = "", .description = "", .stacks = &stack, .stack_count = 1};
    ck_assert(!rules_match(&(struct conf_rule){.modality = "CT"}, &nameless, &stack, reasons));
    ck_assert_str_eq(reasons, "modality is missing, not CT");
}

END_TEST

START_TEST(several_rules)
{
    struct conf_rule rules[] = {
        {.modality = "CT", .pipeline = "a", .priority = 1},
        {.modality = "MR", .pipeline = "b", .priority = 2},
        {.pipeline = "c", .priority = -3},
        {.body_part = "HEAD", .pipeline = "a", .priority = 9},
        {.body_part = "HEAD", .pipeline = "c", .priority = -8},
    };
    const struct subject subject = {"CT", "HEAD", "", 10};
    ck_assert_uint_eq(pick_one(rules, 5, &subject), 2);
    ck_assert_str_eq(picks[0].pipeline, "a");
    ck_assert_int_eq(picks[0].priority, 9);
    ck_assert_str_eq(picks[1].pipeline, "c");
    ck_assert_int_eq(picks[1].priority, -3);
}

END_TEST

START_TEST(no_rules_no_pipelines)
{
    const struct subject subject = {"CT", "HEAD", "", 10};
    ck_assert_uint_eq(pick_one(NULL, 0, &subject), 0);
    ck_assert(!outcome.matched);
}

END_TEST

/* ------------------------------------------------------------------------ which stacks ------ */

static const struct rules_stack diffusion[] = {{"b 0", 20, true, NULL},      {"b 0, direction 1", 20, true, NULL},
                                               {"b 50", 20, false, NULL},    {"b 1000", 20, true, NULL},
                                               {"b none", 20, true, NULL},   {"echo 1, b 1000", 5, true, NULL},
                                               {"localizer", 3, false, NULL}};
static const struct rules_stack echoes[] = {{"echo 1", 9, true, NULL}, {"echo 2", 9, true, NULL}};

static const struct {
    const char *which;
    bool of_echoes;
    int32_t min_slices;
    const char *wanted; /* the expected stacks, one digit per index */
} choices[] = {
    {NULL, false, 0, "01345"}, {"all", false, 0, "01345"},   {"first", false, 0, "0"},    {"last", false, 0, "5"},
    {"last", false, 6, "4"},   {"b0", false, 0, "014"},      {"b 1000", false, 0, "3"},   {"*b 1000", false, 0, "35"},
    {"b*", false, 0, "0134"},  {"b 50", false, 0, ""},       {"localizer", false, 0, ""}, {"[", false, 0, ""},
    {"b0", true, 0, ""},       {"echo [2-9]", true, 0, "1"}, {"first", true, 0, "0"},     {"first", true, 10, ""},
};

START_TEST(stacks_are_chosen)
{
    char which[32] = "", pipeline[] = "p", wanted[8] = "";
    struct conf_rule rule = {.pipeline = pipeline, .min_slices = choices[_i].min_slices};
    if (choices[_i].which) {
        strcpy(which, choices[_i].which);
        rule.stacks = which;
    }
    const struct rules_series series = {
        .modality = "MR",
        .body_part = "",
        .description = "",
        .stacks = choices[_i].of_echoes ? echoes : diffusion,
        .stack_count = choices[_i].of_echoes ? 2 : 7,
    };
    const size_t count = rules_pick(&rule, 1, &series, picks, &outcome);
    for (size_t i = 0; i < count; i++)
        wanted[i] = (char)('0' + picks[i].stack);
    ck_assert_str_eq(wanted, choices[_i].wanted);
    ck_assert_int_eq(outcome.matched, choices[_i].min_slices < 10);
}

END_TEST

/* A functional series gets jobs only if a rule names its volumes. */
START_TEST(too_many_stacks_have_to_be_named)
{
    char names[100][16];
    struct rules_stack stacks[100];
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "volume %d", i + 1);
        stacks[i] = (struct rules_stack){names[i], 30, true, NULL};
    }
    struct conf_rule rules[] = {
        {.modality = "MR", .pipeline = "a"},
        {.pipeline = "b", .stacks = "volume 1?"},
        {.pipeline = "b", .stacks = "first", .priority = 5},
        {.pipeline = "b", .stacks = "volume 12", .priority = 3},
    };
    struct rules_series series = {
        .modality = "MR", .body_part = "", .description = "", .stacks = stacks, .stack_count = RULES_MAX_STACKS};
    ck_assert_uint_eq(rules_pick(rules, 1, &series, picks, &outcome), RULES_MAX_STACKS);
    ck_assert_uint_eq(outcome.too_many, 0);
    series.stack_count = 100;
    ck_assert_uint_eq(rules_pick(rules, 1, &series, picks, &outcome), 0);
    ck_assert_uint_eq(outcome.too_many, 100);
    ck_assert_str_eq(outcome.pipeline, "a");
    ck_assert(outcome.matched);
    ck_assert_uint_eq(rules_pick(rules, 4, &series, picks, &outcome), 11);
    ck_assert_uint_eq(outcome.too_many, 100);
    ck_assert_uint_eq(picks[2].stack, 11);
    ck_assert_int_eq(picks[2].priority, 3);
    ck_assert_uint_eq(picks[10].stack, 0);
    ck_assert_uint_eq(rules_pick(rules + 1, 3, &series, picks, &outcome), 11);
    ck_assert_uint_eq(outcome.too_many, 0);
}

END_TEST

/* --------------------------------------------------------------------- attributes ------ */

#define ASKED                                                                                                          \
    "StudyDescription\t\nImageType\t\nKVP\t\n(0019,100C)\tMAKER\nPatientID\t\nLongText\t\n"                            \
    "Absent\t\nContrastBolusAgent\t\nContrastBolusAgentSequence\t\n"                                                   \
    "ContrastBolusAgentAdministered\t\n"
#define VALUES                                                                                                         \
    "=Thorax C+ "                                                                                                      \
    "M\xc3\xbcller\n=ORIGINAL\\PRIMARY\\AXIAL\n=120\n=50\n~SECRET\n!\n-\n=Iomeron\n-\n-\n"

static char *names[] = {"foo", "primary"}, *other_names[] = {"secondary"}, *secret[] = {"secret"};
static struct conf_regex expression = {.text = "(C[+]|KM)"}, end = {.text = "l+er$"};

#define TAG(name)                                                                                                      \
    .tag = (char[])                                                                                                    \
    {                                                                                                                  \
        name                                                                                                           \
    }
#define IS(list) .test = CONF_ATTRIBUTE_IS, .is = (list), .is_count = sizeof(list) / sizeof((list)[0])
#define GLOB(pattern)                                                                                                  \
    .test = CONF_ATTRIBUTE_GLOB, .glob = (char[])                                                                      \
    {                                                                                                                  \
        pattern                                                                                                        \
    }
#define RANGE(low, high) .test = CONF_ATTRIBUTE_RANGE, .range = {(low), (high)}
#define PRESENT(is_)     .test = CONF_ATTRIBUTE_PRESENT, .present = (is_)
#define REGEX(it)        .test = CONF_ATTRIBUTE_REGEX, .regex = &(it)

static struct {
    struct conf_attribute attribute;
    const char *text, *reason; /* "": it holds */
} asked_attributes[] = {
    {{TAG("ImageType"), IS(names)}, "ImageType \"foo\" or \"primary\"", ""},
    {{TAG("ImageType"), IS(other_names)},
     "ImageType \"secondary\"",
     "ImageType \"ORIGINAL\\PRIMARY\\AXIAL\" is not \"secondary\""},
    {{TAG("ImageType"), IS(other_names), .negated = true}, "ImageType not \"secondary\"", ""},
    {{TAG("ImageType"), IS(names), .negated = true},
     "ImageType not \"foo\" or \"primary\"",
     "ImageType \"ORIGINAL\\PRIMARY\\AXIAL\" is \"foo\" or \"primary\""},
    {{TAG("StudyDescription"), GLOB("thorax*M\xc3\xbcller")}, "StudyDescription like \"thorax*M\xc3\xbcller\"", ""},
    {{TAG("StudyDescription"), GLOB("thorax")},
     "StudyDescription like \"thorax\"",
     "StudyDescription \"Thorax C+ M\xc3\xbcller\" is not like \"thorax\""},
    {{TAG("StudyDescription"), REGEX(expression)}, "StudyDescription matched by \"(C[+]|KM)\"", ""},
    {{TAG("StudyDescription"), REGEX(end)}, "StudyDescription matched by \"l+er$\"", ""},
    {{TAG("StudyDescription"), RANGE(0, 9)}, "StudyDescription within 0 to 9", "StudyDescription is not a number"},
    {{TAG("StudyDescription"), RANGE(0, 9), .negated = true},
     "StudyDescription not within 0 to 9",
     "StudyDescription is not a number"},
    {{TAG("KVP"), RANGE(120, 140)}, "KVP within 120 to 140", ""},
    {{TAG("KVP"), RANGE(120.001, 140)}, "KVP within 120.001 to 140", "KVP \"120\" is not within 120.001 to 140"},
    {{TAG("KVP"), RANGE(80, 119.9), .negated = true}, "KVP not within 80 to 119.9", ""},
    {{TAG("(0019,100C)"), .creator = (char[]){"MAKER"}, RANGE(50, 50)}, "(0019,100C) within 50 to 50", ""},
    {{TAG("(0019,100C)"), .creator = (char[]){"OTHER"}, RANGE(50, 50)},
     "(0019,100C) within 50 to 50",
     "(0019,100C) is unknown"},
    {{TAG("PatientID"), IS(secret)}, "PatientID \"secret\"", ""},
    {{TAG("PatientID"), GLOB("X*")}, "PatientID like \"X*\"", "PatientID is not like \"X*\""},
    {{TAG("LongText"), GLOB("*")},
     "LongText like \"*\"",
     "LongText cannot be compared: it is longer than 1024 bytes, or its text is invalid in its "
     "character set"},
    {{TAG("LongText"), GLOB("x"), .negated = true},
     "LongText not like \"x\"",
     "LongText cannot be compared: it is longer than 1024 bytes, or its text is invalid in its "
     "character set"},
    {{TAG("LongText"), PRESENT(true)}, "LongText present", ""},
    {{TAG("Absent"), GLOB("*")}, "Absent like \"*\"", "there is no Absent"},
    {{TAG("Absent"), GLOB("*"), .negated = true}, "Absent not like \"*\"", ""},
    {{TAG("Absent"), PRESENT(true)}, "Absent present", "there is no Absent"},
    {{TAG("Absent"), PRESENT(false)}, "Absent not present", ""},
    {{TAG("KVP"), PRESENT(false)}, "KVP not present", "there is a KVP"},
    {{TAG("Unasked"), PRESENT(false)}, "Unasked not present", "Unasked is unknown"},
};

static void
take_condition(void *context, const struct rules_condition *condition)
{
    /* The strings are valid only during the call. */
    *(struct rules_condition *)context =
        (struct rules_condition){strdup(condition->text), strdup(condition->reason), strdup(condition->note)};
}

static bool
ask_condition(const struct conf_rule *rule, const struct rules_facts *facts, struct rules_condition *told)
{
    const struct rules_stack stack = {"", 20, true, facts};
    const struct rules_series series = {
        .modality = "CT", .body_part = "", .description = "", .stacks = &stack, .stack_count = 1};
    return conditions_hold(rule, &series, &stack, take_condition, told);
}

static void
expect_condition(const struct conf_rule *rule, const struct rules_facts *facts, const char *text, const char *reason)
{
    struct rules_condition told = {0};
    const bool holds = ask_condition(rule, facts, &told);
    ck_assert_str_eq(told.text, text);
    ck_assert_str_eq(told.reason, reason);
    ck_assert_int_eq(holds, *reason == '\0');
    const struct rules_stack stack = {"", 20, true, facts};
    const struct rules_series series = {
        .modality = "CT", .body_part = "", .description = "", .stacks = &stack, .stack_count = 1};
    ck_assert_int_eq(rules_match(rule, &series, &stack, NULL), holds);
    free((char *)(uintptr_t)told.text);
    free((char *)(uintptr_t)told.reason);
    free((char *)(uintptr_t)told.note);
}

static void
compile(struct conf_regex *regex)
{
    char reason[EXPRESSION_REASON] = "";
    ck_assert_msg(expression_compile(regex->text, &regex->compiled, reason) == 0, "%s", reason);
}

START_TEST(attributes_are_checked)
{
    const struct rules_facts facts = {CONF_AXIAL, 1.5, ASKED, VALUES};
    struct conf_rule rule = {.attributes = &asked_attributes[_i].attribute, .attribute_count = 1};
    for (struct conf_regex *it = &expression; it; it = it == &expression ? &end : NULL)
        compile(it);
    expect_condition(&rule, &facts, asked_attributes[_i].text, asked_attributes[_i].reason);
    expression_free(expression.compiled);
    expression_free(end.compiled);
    /* If facts are unknown, no rule must match. */
    const struct rules_stack stack = {"", 20, true, NULL};
    const struct rules_series series = {
        .modality = "CT", .body_part = "", .description = "", .stacks = &stack, .stack_count = 1};
    ck_assert(!rules_match(&rule, &series, &stack, NULL));
    ck_assert(rules_match_series(&rule, &series));
    ck_assert(conditions_need_facts(&rule));
}

END_TEST

/* A value that cannot be compared leaves a rule undecided, unless another condition fails. */
START_TEST(rules_that_cannot_be_decided_are_reported)
{
    struct conf_attribute compared[] = {{TAG("LongText"), GLOB("x"), .negated = true}, {TAG("KVP"), RANGE(120, 140)}};
    const struct rules_facts facts = {CONF_AXIAL, 1.5, ASKED, VALUES};
    struct rules_stack stack = {"", 20, true, &facts};
    const struct rules_series series = {
        .modality = "CT", .body_part = "", .description = "", .stacks = &stack, .stack_count = 1};
    struct conf_rule rules[] = {{.pipeline = (char[]){"p"}},
                                {.pipeline = (char[]){"q"}, .attributes = compared, .attribute_count = 2}};
    struct rules_pick picked[2];
    struct rules_outcome came;
    /* The job of the other rule. */
    ck_assert_uint_eq(rules_pick(rules, 2, &series, picked, &came), 1);
    ck_assert_str_eq(came.undecided, "LongText");
    ck_assert_str_eq(came.undecided_pipeline, "q");
    compared[1].range[0] = 121;
    ck_assert_uint_eq(rules_pick(rules, 2, &series, picked, &came), 1);
    ck_assert_ptr_null(came.undecided);
    compared[1].range[0] = 120;
    stack.accepted = false;
    ck_assert_uint_eq(rules_pick(rules, 2, &series, picked, &came), 0);
    ck_assert_ptr_null(came.undecided);
}

END_TEST

START_TEST(geometry_and_contrast_are_checked)
{
    const struct rules_facts axial = {CONF_AXIAL, 1.5, ASKED, VALUES}, none = {CONF_ANY_ORIENTATION, 0, "", ""};
    const struct conf_rule orientation = {.orientation = CONF_AXIAL}, coronal = {.orientation = CONF_CORONAL},
                           spacing = {.has_spacing = true, .spacing = {1.5004, 2}},
                           wider = {.has_spacing = true, .spacing = {1.6, 2}},
                           given = {.has_contrast = true, .contrast = true}, not_given = {.has_contrast = true};
    expect_condition(&orientation, &axial, "orientation axial", "");
    expect_condition(&coronal, &axial, "orientation coronal", "the slices are axial, not coronal");
    expect_condition(&coronal, &none, "orientation coronal", "the slices are of no orientation, not coronal");
    expect_condition(&spacing, &axial, "spacing 1.5004 to 2 mm", "");
    expect_condition(&wider, &axial, "spacing 1.6 to 2 mm", "the spacing of 1.5 mm is not within 1.6 to 2 mm");
    expect_condition(&wider, &none, "spacing 1.6 to 2 mm", "the spacing is unknown");
    expect_condition(&given, &axial, "contrast given", "");
    expect_condition(&not_given, &axial, "contrast not given", "there is a contrast agent");
    expect_condition(&not_given, &none, "contrast not given", "contrast agent unknown");
}

END_TEST

static void
expect_note(const struct conf_rule *rule, const struct rules_facts *facts, const struct rules_study *study,
            const char *note, const char *reason)
{
    struct rules_condition told = {0};
    const struct rules_stack stack = {"", 20, true, facts};
    const struct rules_series series = {
        .modality = "CT", .body_part = "", .description = "", .stacks = &stack, .stack_count = 1, .study = study};
    conditions_hold(rule, &series, &stack, take_condition, &told);
    ck_assert_str_eq(told.note, note);
    ck_assert_str_eq(told.reason, reason);
    free((char *)(uintptr_t)told.text);
    free((char *)(uintptr_t)told.reason);
    free((char *)(uintptr_t)told.note);
}

#define AGENTS "ContrastBolusAgent\t\nContrastBolusAgentSequence\t\nContrastBolusAgentAdministered\t\n"

START_TEST(the_place_of_a_value_is_reported)
{
    const struct rules_facts facts = {CONF_AXIAL, 1, "EchoTime\t\n",
                                      "=12\tEffectiveEchoTime in MREchoSequence of frame 3\n"},
                             before = {CONF_AXIAL, 1, AGENTS,
                                       "-\n!\n=NO\\NO\tContrastBolusAgentAdministered in "
                                       "ContrastBolusUsageSequence of frame 1\n"},
                             after = {CONF_AXIAL, 1, AGENTS, "-\n!\n=NO\\YES\tx\n"};
    struct conf_attribute asked = {TAG("EchoTime"), RANGE(10, 20)};
    const struct conf_rule rule = {.attributes = &asked, .attribute_count = 1},
                           given = {.has_contrast = true, .contrast = true};
    const char *note = "it is EffectiveEchoTime in MREchoSequence of frame 3";
    expect_note(&rule, &facts, NULL, note, "");
    asked.range[1] = 11;
    expect_note(&rule, &facts, NULL, note, "EchoTime \"12\" is not within 10 to 11");
    expect_note(&given, &before, NULL, "it is ContrastBolusAgentAdministered in ContrastBolusUsageSequence of frame 1",
                "there is no contrast agent");
    expect_note(&given, &after, NULL, "it is x", "");
}

END_TEST

START_TEST(required_series_of_the_study_are_reported)
{
    struct conf_companion wanted = {.modality = (char[]){"CT"}, .description = (char[]){"native"}};
    const struct rules_companion others[] = {{"1.1", "MR", "", "native"}, {"1.2", "ct", "", "Native"}};
    const struct conf_rule rule = {.study = &wanted, .study_count = 1};
    expect_note(&rule, NULL, NULL, "", "");
    expect_note(&rule, NULL, &(struct rules_study){others, 1}, "it is not there, and the job waits (STUDY_WAITING)",
                "");
    expect_note(&rule, NULL, &(struct rules_study){others, 2}, "it is there: 1.2", "");
}

END_TEST

START_TEST(normals_have_an_orientation)
{
    static const struct {
        double normal[3];
        enum conf_orientation orientation;
    } of[] = {{{0, 0, 1}, CONF_AXIAL},         {{0, 0, -1}, CONF_AXIAL},         {{0, 1, 0}, CONF_CORONAL},
              {{-1, 0, 0}, CONF_SAGITTAL},     {{0, 0.59, 0.81}, CONF_AXIAL},    {{0, 0.61, 0.79}, CONF_OBLIQUE},
              {{0.6, 0.6, 0.6}, CONF_OBLIQUE}, {{0, 0, 0}, CONF_ANY_ORIENTATION}};

    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        ck_assert_int_eq(conditions_facts(of[i].normal, 2, 5).orientation, of[i].orientation);
    ck_assert_double_eq(conditions_facts(of[0].normal, 2, 5).spacing, 2);
    ck_assert_double_eq(conditions_facts(of[0].normal, 2, 1).spacing, 0);
}

END_TEST

START_TEST(each_attribute_is_queried_once)
{
    struct conf_attribute attributes[] = {{TAG("KVP"), PRESENT(true)},
                                          {TAG("(0019,100C)"), .creator = (char[]){"A"}},
                                          {TAG("(0019,100C)"), .creator = (char[]){"B"}},
                                          {TAG("KVP"), RANGE(1, 2)}};
    const struct conf_rule rules[] = {{.attributes = attributes, .attribute_count = 2},
                                      {.has_contrast = true},
                                      {.attributes = attributes + 2, .attribute_count = 2}};
    char *asked = conditions_attributes(rules, 3);
    ck_assert_str_eq(asked, "KVP\t\n(0019,100C)\tA\n(0019,100C)\tB\nContrastBolusAgent\t\n"
                            "ContrastBolusAgentSequence\t\nContrastBolusAgentAdministered\t\n");
    free(asked);
    asked = conditions_attributes(NULL, 0);
    ck_assert_str_eq(asked, "");
    free(asked);
}

END_TEST

/* Matches the longest value against the slowest patterns. A failure would be a hang. */
START_TEST(the_cost_of_matching_is_bounded)
{
    char values[LIMIT_RULE_BYTES + 3] = "=", glob[129] = "", regex[257] = "";
    memset(values + 1, 'a', LIMIT_RULE_BYTES);
    values[LIMIT_RULE_BYTES + 1] = '\n';
    for (int i = 0; i < 63; i++)
        strcat(glob, "*a");
    strcat(glob, "b");
    for (int i = 0; i < 16; i++)
        strcat(regex, "(a*a*|a?a+)*");
    strcat(regex, "b");
    struct conf_regex worst = {.text = regex};
    compile(&worst);
    struct conf_attribute attributes[] = {{TAG("KVP"), .test = CONF_ATTRIBUTE_GLOB, .glob = glob},
                                          {TAG("KVP"), REGEX(worst)}};
    const struct rules_facts facts = {CONF_AXIAL, 1, "KVP\t\n", values};
    const struct rules_stack stack = {"", 20, true, &facts};
    const struct rules_series series = {
        .modality = "CT", .body_part = "", .description = "", .stacks = &stack, .stack_count = 1};
    const struct conf_rule rule = {.attributes = attributes, .attribute_count = 2};
    ck_assert(!rules_match(&rule, &series, &stack, NULL));
    expression_free(worst.compiled);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_rules");
    TCase *tests = tcase_create("rules");
    tcase_add_loop_test(tests, one_rule, 0, sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(tests, mismatches_are_reported, 0, sizeof mismatches / sizeof mismatches[0]);
    tcase_add_loop_test(tests, the_origin_is_checked, 0, (int)(sizeof origins / sizeof *origins));
    tcase_add_test(tests, long_reasons_are_cut);
    tcase_add_test(tests, several_rules);
    tcase_add_test(tests, no_rules_no_pipelines);
    tcase_add_loop_test(tests, stacks_are_chosen, 0, sizeof choices / sizeof choices[0]);
    tcase_add_test(tests, too_many_stacks_have_to_be_named);
    tcase_add_loop_test(tests, attributes_are_checked, 0, sizeof asked_attributes / sizeof asked_attributes[0]);
    tcase_add_test(tests, rules_that_cannot_be_decided_are_reported);
    tcase_add_test(tests, geometry_and_contrast_are_checked);
    tcase_add_test(tests, the_place_of_a_value_is_reported);
    tcase_add_test(tests, required_series_of_the_study_are_reported);
    tcase_add_test(tests, normals_have_an_orientation);
    tcase_add_test(tests, each_attribute_is_queried_once);
    tcase_add_test(tests, the_cost_of_matching_is_bounded);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
