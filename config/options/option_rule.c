/*
 * option_rule.c - the options of rules, and warnings about rules and pipelines without effect.
 */
#include "base/limits.h"
#include "config/options/option_sections.h"

#include <string.h>
#include <strings.h>

static void
check_match(const void *object, const struct option_spot *spot)
{
    const struct conf_rule *rule = object;
    if (rule->max_slices && rule->max_slices < rule->min_slices)
        option_refuse(spot, "max_slices", "%d is below min_slices, %d", rule->max_slices, rule->min_slices);
}

static const struct option_row companion_rows[] = {
    {ROW(conf_companion, text, modality), "", LIMITS(1, 16), .form = &form_dicom,
     .help = "required Modality; case is ignored"},
    {ROW(conf_companion, text, body_part), "", LIMITS(1, 16), .form = &form_dicom,
     .help = "required Body Part Examined; case is ignored"},
    {ROW(conf_companion, text, description), "", LIMITS(1, 64), .form = &form_dicom,
     .help = "required part of Series Description; case is ignored"},
};

static void
check_companion(const void *object, const struct option_spot *spot)
{
    const struct conf_companion *companion = object;
    if (!companion->modality && !companion->body_part && !companion->description && !LOST(spot, *companion))
        option_refuse(spot, "modality", "at least one of modality, body_part and description is required");
}

static const struct option_section companion_section = {SECTION(companion_rows, conf_companion),
                                                        .check = check_companion};

static const char *const orientation_choices[] = {"any", "axial", "coronal", "sagittal", "oblique", NULL};

static const struct option_row match_rows[] = {
    {ROW(conf_rule, text, modality), "", LIMITS(1, 16), .form = &form_dicom,
     .help = "required Modality (0008,0060); case is ignored"},
    {ROW(conf_rule, text, body_part), "", LIMITS(1, 16), .form = &form_dicom,
     .help = "required Body Part Examined (0018,0015); case is ignored"},
    {ROW(conf_rule, text, description), "", LIMITS(1, 64), .form = &form_dicom,
     .help = "required part of Series Description (0008,103E); case is ignored"},
    {ROW(conf_rule, text, inbox), "", LIMITS(1, 4000),
     .help = "name or absolute path of the inbox of the first file; a series with an image from "
             "C-STORE has a sender and no inbox"},
    {ROW(conf_rule, text, called_ae), "", LIMITS(1, 16), .form = &form_ae,
     .help = "our AE title that the first C-STORE called; titles with a pipeline of their own use no rules"},
    {ROW(conf_rule, text, sender), "", LIMITS(1, 16), .form = &form_ae,
     .help = "calling AE title of the first C-STORE"},
    {ROW(conf_rule, integer, min_slices), "0", LIMITS(0, 1000000), .help = "min number of slices"},
    {ROW(conf_rule, integer, max_slices), "0", LIMITS(0, 1000000), .help = "max number of slices; 0: no max"},
    {ROW(conf_rule, list, attributes), MANY(struct conf_rule, attribute_count), .fallback = "",
     LIMITS(1, LIMIT_RULE_ATTRIBUTES), .section = &option_attribute,
     .help = "tests of attributes of the stack's first slice, or of the first frame of an enhanced "
             "image (see NOTES); each must match"},
    {ROW(conf_rule, choice, orientation), "\"any\"", .choices = orientation_choices,
     .help = "orientation of the stack: its normal is within 36.87 degrees (cosine 0.8) of the feet-head (\"axial\"), "
             "front-back (\"coronal\") or side-to-side axis (\"sagittal\") of the patient, or of none (\"oblique\")"},
    {ROW(conf_rule, numbers, spacing), "", LIMITS(0, 1000), ENDS, GIVEN(struct conf_rule, has_spacing),
     .help = "distance between slices by their positions, [ lowest, highest ] in mm, to 0.001 mm; "
             "a single slice does not match"},
    {ROW(conf_rule, boolean, contrast), "", GIVEN(struct conf_rule, has_contrast),
     .help = "required presence of Contrast/Bolus Agent (0018,0010) or its sequence (0018,0012); in enhanced images, "
             "Contrast/Bolus Agent Administered (0018,9342) of the stack's first frame decides"},
    {ROW(conf_rule, list, study), MANY(struct conf_rule, study_count), .fallback = "", LIMITS(1, 8),
     .section = &companion_section,
     .help = "other series of the study that must be complete and accepted; the job waits for them "
             "(STUDY_WAITING) up to the pipeline's patience_seconds, then fails (STUDY_INCOMPLETE)"},
};

static const struct option_section match_section = {SECTION(match_rows, conf_rule), .check = check_match};

static const struct option_row rule_rows[] = {
    {ROW(conf_rule, text, name), "", LIMITS(1, 64), .form = &form_name,
     .help = "name of the rule, shown in v_jobs; a later file (@overlay) can replace the rule or "
             "switch it off by this name"},
    {"match", &option_group, .offset = 0, "{ }", .section = &match_section,
     .help = "conditions of the rule; all must match; an empty group matches every series"},
    {ROW(conf_rule, text, pipeline), NULL, LIMITS(1, 64), .form = &form_name,
     .help = "pipeline to run on a matching series"},
    {ROW(conf_rule, integer, priority), "0", LIMITS(CONF_MIN_PRIORITY, CONF_MAX_PRIORITY),
     .help = "priority of the jobs; larger values run first; the highest of all matching rules applies"},
    STACKS_ROW(conf_rule),
    {ROW(conf_rule, boolean, otherwise), "false", .help = "match only series that no other rule matches"},
    {ROW(conf_rule, boolean, off), "false",
     .help = "switch the rule off; a later file needs only the name: { name = \"head\"; off = true; }"},
};

const struct option_section option_rule = {SECTION(rule_rows, conf_rule)};

/* Checks the pipeline of a rule or title: it must exist, and must not need Noctule's own results,
 * which the service rejects. */
static void
check_chosen(const struct conf *conf, const struct option_named *pipelines, const char *name, const char *list,
             size_t i, const struct option_spot *spot)
{
    bool takes_own = false;
    for (size_t k = 0; k < conf->pipeline_count; k++)
        takes_own |= option_is_same(conf->pipelines[k].name, name) && conf_pipeline_takes_own(&conf->pipelines[k]);
    if (name && option_lacks(pipelines, name))
        option_refuse(spot, ELEMENT(list, i, ".pipeline"), "there is no pipeline named \"%s\"", name);
    else if (name && takes_own)
        option_refuse(spot, ELEMENT(list, i, ".pipeline"),
                      "\"%s\" has object = { own = true; }, but the service rejects its own results "
                      "(OWN_RESULT) to avoid cycles: only noctule run --object can process them",
                      name);
}

void
option_check_rules(const struct conf *conf, const struct option_spot *spot)
{
    const struct option_named pipelines = NAMED(spot, "pipelines", conf->pipelines, conf->pipeline_count);
    const struct option_named rules = NAMED(spot, "rules", conf->rules, conf->rule_count);
    /* A rejected inbox may have the name that a rule uses. */
    bool inboxes_known = !LOST(spot, conf->inboxes);
    for (size_t i = 0; i < conf->inbox_count; i++)
        inboxes_known &= conf->inboxes[i].path && !LOST(spot, conf->inboxes[i].name);
    option_refuse_duplicates(&rules, ".name", "the name of an earlier rule");
    for (size_t i = 0; i < conf->rule_count; i++)
        check_chosen(conf, &pipelines, conf->rules[i].pipeline, "rules", i, spot);
    for (size_t i = 0; i < conf->rule_count && inboxes_known; i++)
        if (conf->rules[i].inbox) {
            const char *name = conf->rules[i].inbox;
            size_t k = 0;
            while (k < conf->inbox_count && !conf_inbox_is(&conf->inboxes[k], name))
                k++;
            if (k == conf->inbox_count)
                option_refuse(spot, ELEMENT("rules", i, ".match.inbox"),
                              "there is no inbox \"%s\": give one this name, or write its absolute path", name);
        }
    option_check_attributes(conf, spot);
    for (size_t i = 0; i < conf->dicom.title_count; i++) {
        const struct conf_title *title = &conf->dicom.titles[i];
        check_chosen(conf, &pipelines, title->pipeline, "dicom.titles", i, spot);
        if (title->stacks && !title->pipeline && !LOST(spot, title->pipeline))
            option_refuse(spot, ELEMENT("dicom.titles", i, ".stacks"),
                          "is only allowed with a pipeline of the title: set stacks in the rules instead");
    }
}

/* ----------------------------------------------------------------------------- warnings ---- */

/* Returns whether `wide` accepts every text that `narrow` accepts. NULL accepts any text. */
static bool
match_takes_text(const char *wide, const char *narrow)
{
    return !wide || (narrow && strcasecmp(wide, narrow) == 0);
}

/* Does the same for the origin of a series. */
static bool
match_takes_origin(const struct conf_rule *wide, const struct conf_rule *narrow)
{
    return (!wide->inbox || option_is_same(wide->inbox, narrow->inbox)) &&
           (!wide->called_ae || option_is_same(wide->called_ae, narrow->called_ae)) &&
           (!wide->sender || option_is_same(wide->sender, narrow->sender));
}

/* Returns whether `narrow` has every attribute test of `wide`. */
static bool
match_takes_attributes(const struct conf_rule *wide, const struct conf_rule *narrow)
{
    for (size_t i = 0; i < wide->attribute_count; i++) {
        bool asked = false;
        for (size_t j = 0; j < narrow->attribute_count && !asked; j++)
            asked = option_attribute_asks_same(&wide->attributes[i], &narrow->attributes[j]);
        if (!asked)
            return false;
    }
    return true;
}

static bool
match_takes_geometry(const struct conf_rule *wide, const struct conf_rule *narrow)
{
    return (!wide->orientation || wide->orientation == narrow->orientation) &&
           (!wide->has_spacing || (narrow->has_spacing && wide->spacing[0] <= narrow->spacing[0] &&
                                   narrow->spacing[1] <= wide->spacing[1])) &&
           (!wide->has_contrast || (narrow->has_contrast && wide->contrast == narrow->contrast));
}

/* Returns whether `wide` matches every stack that `narrow` matches
 * (service/common/routing/routing_rules.h). */
static bool
match_takes(const struct conf_rule *wide, const struct conf_rule *narrow)
{
    return wide->study_count == 0 && match_takes_text(wide->modality, narrow->modality) &&
           match_takes_text(wide->body_part, narrow->body_part) &&
           (!wide->description || (narrow->description && strcasestr(narrow->description, wide->description))) &&
           match_takes_origin(wide, narrow) && match_takes_attributes(wide, narrow) &&
           match_takes_geometry(wide, narrow) && wide->min_slices <= narrow->min_slices &&
           (!wide->max_slices || (narrow->max_slices && narrow->max_slices <= wide->max_slices));
}

/* Returns whether `wide` selects every stack that `narrow` selects from the stacks it matches. */
static bool
stacks_take(const struct conf_rule *wide, const struct conf_rule *narrow)
{
    if (wide->stacks && strcmp(wide->stacks, CONF_ALL_STACKS) == 0)
        return true;
    /* "first" and the limit on the number of stacks depend on the stacks that the rule matches. */
    return option_is_same(wide->stacks, narrow->stacks) && wide->min_slices == narrow->min_slices &&
           wide->max_slices == narrow->max_slices && match_takes_attributes(narrow, wide) &&
           match_takes_geometry(narrow, wide);
}

/* Returns whether a rule has no effect because of the other one. All rules apply, and a pipeline
 * runs once for several rules. */
static bool
rule_is_covered(const struct conf_rule *rule, const struct conf_rule *other)
{
    return !other->otherwise && strcmp(rule->pipeline, other->pipeline) == 0 && other->priority >= rule->priority &&
           match_takes(other, rule) && stacks_take(other, rule);
}

/* Warns about a rule without effect; of two equivalent rules, about the later one. */
static void
warn_rule(const struct conf *conf, size_t i, const struct option_spot *spot)
{
    for (size_t j = 0; j < conf->rule_count; j++) {
        const struct conf_rule *rule = &conf->rules[i], *other = &conf->rules[j];
        if (j == i || !rule_is_covered(rule, other) || (j > i && rule_is_covered(other, rule)))
            continue;
        char place[1024];
        option_put_place(spot, ELEMENT("rules", j, ""), place, sizeof(place));
        option_warn(spot, ELEMENT("rules", i, ""),
                    "has no effect: the rule at %s already selects pipeline \"%s\" for all its series", place,
                    rule->pipeline);
        return;
    }
}

/* Returns the reason why no series can match the origin of the rule, or NULL. */
static const char *
rule_obstacle(const struct conf *conf, const struct conf_rule *rule)
{
    const struct conf_title *title = rule->called_ae ? conf_find_title(conf, rule->called_ae) : NULL;
    bool peer = !rule->sender;
    for (size_t i = 0; i < conf->dicom.peer_count && !peer; i++)
        peer = strcmp(conf->dicom.peers[i].ae_title, rule->sender) == 0;
    if (rule->called_ae && !title)
        return "its called_ae is not among dicom.titles";
    if (title && title->pipeline)
        return "its called_ae has a pipeline of its own, so that rules do not apply";
    return peer ? NULL : "its sender is not among dicom.peers";
}

/* Only images of these modalities are series. RTSTRUCT, SEG and SR belong to a series. */
static bool
modality_is_read(const char *modality)
{
    static const char *const read[] = {"CT", "MR", "PT"};
    bool is = !modality;
    for (size_t i = 0; i < sizeof(read) / sizeof(read[0]); i++)
        is |= modality && strcasecmp(modality, read[i]) == 0;
    return is;
}

static bool
pipeline_is_chosen(const struct conf *conf, const char *name)
{
    for (size_t i = 0; i < conf->rule_count; i++)
        if (strcmp(conf->rules[i].pipeline, name) == 0)
            return true;
    for (size_t i = 0; i < conf->dicom.title_count; i++)
        if (option_is_same(conf->dicom.titles[i].pipeline, name))
            return true;
    return false;
}

void
option_warn_rules(const struct conf *conf, const struct option_spot *spot)
{
    for (size_t i = 0; i < conf->rule_count; i++)
        warn_rule(conf, i, spot);
    for (size_t i = 0; i < conf->rule_count; i++) {
        const char *obstacle = rule_obstacle(conf, &conf->rules[i]);
        if (obstacle)
            option_warn(spot, ELEMENT("rules", i, ""), "matches no series: %s", obstacle);
    }
    for (size_t i = 0; i < conf->rule_count; i++) {
        const struct conf_rule *rule = &conf->rules[i];
        const char *wrong = modality_is_read(rule->modality) ? NULL : rule->modality;
        for (size_t k = 0; k < rule->study_count && !wrong; k++)
            wrong = modality_is_read(rule->study[k].modality) ? NULL : rule->study[k].modality;
        if (wrong)
            option_warn(spot, ELEMENT("rules", i, ""),
                        "matches no series with Modality \"%s\": only CT, MR and PT are processed", wrong);
    }
    for (size_t i = 0; i < conf->pipeline_count; i++)
        if (!conf->pipelines[i].by_hand && !pipeline_is_chosen(conf, conf->pipelines[i].name))
            option_warn(spot, ELEMENT("pipelines", i, ""),
                        "\"%s\" is used by no rule and no title, only by \"noctule run\" and "
                        "\"noctule submit\"; by_hand = true suppresses this warning",
                        conf->pipelines[i].name);
}
