/*
 * pipeline.c - options of pipelines, and of the rules that choose them.
 */
#include "config/options/sections.h"

#include <stdio.h>
#include <string.h>

/* Of a pipeline. */
enum { SEGMENTS_MOST = 256 };

static const char *const result_choices[] = {
#define RESULT(id, word, what) word,
#include "config/results.def"
#undef RESULT
    NULL};

static const char result_help[] = "what is written"
#define RESULT(id, word, what) "; \"" word "\": " what
#include "config/results.def"
#undef RESULT
    ;

/* Are all segments that are measured regions of objects, to which a report can refer? */
static bool
pipeline_is_of_objects(const struct conf_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->segment_count; i++)
        if (!pipeline->segments[i].hidden && !conf_segment_is_object(&pipeline->segments[i]))
            return false;
    return true;
}

/* What the results say has to be measured, and what a report refers to has to be written. */
static bool
check_results(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    const struct texture_options *texture = pipeline->texture;
    if ((pipeline->results & CONF_RESULT_PMAP) && !(texture && texture->patterns))
        return option_refuse(spot, "results",
                             "\"pmap\" needs patterns: name them in texture.patterns");
    if (!(pipeline->results & CONF_RESULT_SR))
        return true;
    if (!texture || !texture_has_features(texture))
        return option_refuse(spot, "results",
                             "\"sr\" needs measurements: give texture first_order or glcm");
    if ((texture->regions & CONF_SEGMENTS) && !(pipeline->results & CONF_RESULT_SEG) &&
        !pipeline_is_of_objects(pipeline))
        return option_refuse(spot, "results",
                             "\"sr\" refers to the segments in \"seg\": add \"seg\", or measure "
                             "texture.regions = [ \"volume\" ] only; what is measured without is "
                             "objects as they are");
    return true;
}

static bool
check_methods(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    size_t of[CONF_METHODS] = {0}, shown = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        of[pipeline->segments[i].method]++;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        shown += pipeline->segments[i].method == CONF_LEVEL_SET && !pipeline->segments[i].hidden;
    if ((pipeline->results & CONF_RESULT_CODES) && shown == 0)
        return option_refuse(spot, "results",
                             "\"codes\" are those of level sets, and the pipeline has none%s",
                             of[CONF_LEVEL_SET] > 0 ? " that is not hidden" : "");
    if (pipeline->relative_connectedness && of[CONF_FUZZY] < 2)
        return option_refuse(spot, "relative_connectedness",
                             "needs two segments or more with method = \"fuzzy-connectedness\"");
    return true;
}

/* Every segment that another one uses is there. */
static bool
check_uses(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    struct conf_use use;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        for (size_t n = 0; conf_segment_use(pipeline, i, n, &use); n++) {
            char option[16];
            if (conf_find_segment(pipeline, use.label) < pipeline->segment_count)
                continue;
            snprintf(option, sizeof(option), ".%s", use.option);
            return option_refuse_of(spot, "segments", i, option,
                                    "there is no segment \"%s\" in this pipeline: name one by its "
                                    "label",
                                    use.label);
        }
    return true;
}

/* A use of the segment that is not made yet; false: there is none. */
static bool
find_unmade(const struct conf_pipeline *pipeline, size_t segment, const bool *made,
            struct conf_use *use)
{
    for (size_t n = 0; conf_segment_use(pipeline, segment, n, use); n++)
        if (!made[conf_find_segment(pipeline, use->label)])
            return true;
    return false;
}

/* Follows what is not made, which leads into a circle, and tells it. */
static bool
refuse_circle(const struct conf_pipeline *pipeline, const bool *made,
              const struct option_spot *spot)
{
    struct conf_use use;
    char option[16], circle[200] = "";
    size_t at = 0, used = 0;
    while (made[at])
        at++;
    for (size_t i = 0; i < pipeline->segment_count && find_unmade(pipeline, at, made, &use); i++)
        at = conf_find_segment(pipeline, use.label);
    const size_t first = at;
    do {
        find_unmade(pipeline, at, made, &use);
        if (at == first)
            snprintf(option, sizeof(option), ".%s", use.option);
        used += (size_t)snprintf(circle + used, sizeof(circle) - used, "%s\"%s\"",
                                 used > 0 ? ", which uses " : "", use.label);
        at = conf_find_segment(pipeline, use.label);
    } while (at != first && used < sizeof(circle));
    return option_refuse_of(spot, "segments", first, option,
                            "\"%s\" cannot be made before itself: it uses %s",
                            pipeline->segments[first].label, circle);
}

/* There is an order in which each segment is made after those that it uses. */
static bool
check_makeable(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    bool made[SEGMENTS_MOST] = {false}, more = true;
    size_t count = 0;
    while (more) {
        more = false;
        for (size_t i = 0; i < pipeline->segment_count; i++) {
            struct conf_use use;
            if (made[i] || find_unmade(pipeline, i, made, &use))
                continue;
            made[i] = more = true;
            count++;
        }
    }
    return count == pipeline->segment_count || refuse_circle(pipeline, made, spot);
}

static bool
check_shown(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    size_t i = 0;
    while (i < pipeline->segment_count && pipeline->segments[i].hidden)
        i++;
    return i < pipeline->segment_count ||
           option_refuse(spot, "segments",
                         "all of them are hidden: nothing would come of the pipeline");
}

static bool
check_shares(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct conf_expect *expect = pipeline->segments[i].expect;
        const char *of = expect && expect->share_of ? expect->share_of->label : NULL;
        size_t j = 0;
        while (of && j < pipeline->segment_count &&
               (j == i || strcmp(pipeline->segments[j].label, of) != 0))
            j++;
        if (of && j == pipeline->segment_count)
            return option_refuse_of(spot, "segments", i, ".expect.share_of.label",
                                    "there is no other segment \"%s\"", of);
    }
    return true;
}

static bool
is_same_title(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* A job has the objects of its pipeline, and does not know which is for which segment. */
static bool
check_senders(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    for (size_t i = 0; i < pipeline->segment_count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct conf_segment *a = &pipeline->segments[i], *b = &pipeline->segments[j];
            if (a->method == CONF_OBJECT && b->method == CONF_OBJECT &&
                a->object.kind == b->object.kind &&
                !is_same_title(a->object.from_ae, b->object.from_ae))
                return option_refuse_of(
                    spot, "segments", i, ".object",
                    "from_ae: \"%s\" takes the same kind of object from another "
                    "sender: give each a pipeline of its own",
                    b->label);
        }
    return true;
}

static bool
check_pipeline(const void *object, const struct option_spot *spot)
{
    const struct conf_pipeline *pipeline = object;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(pipeline->segments[i].label, pipeline->segments[j].label) == 0) {
                return option_refuse_of(spot, "segments", i, ".label",
                                        "\"%s\" is the label of an earlier segment",
                                        pipeline->segments[i].label);
            }
    return check_methods(pipeline, spot) && check_uses(pipeline, spot) &&
           check_makeable(pipeline, spot) && check_shown(pipeline, spot) &&
           check_shares(pipeline, spot) && check_senders(pipeline, spot) &&
           check_results(pipeline, spot);
}

static const char *const review_choices[] = {"hold", "deliver", NULL};
static const char *const tilt_choices[] = {"straighten", "refuse", NULL};

static const struct option_row grid_rows[] = {
    {"mm", &option_number, AT(struct conf_pipeline, grid_mm), "0.0", LIMITS(0, 100), .later = true,
     .help =
         "between the slices of a straightened stack, at most, for the first and the last lie on "
         "its first and last plane; 0 means the distance of its two closest planes"},
};

static const struct option_section grid_section = {ROWS(grid_rows),
                                                   .size = sizeof(struct conf_pipeline)};

const char *const newest_choices[] = {"refuse", "newest", NULL};

static const struct option_row pipeline_rows[] = {
    {"name", &option_text, AT(struct conf_pipeline, name), NULL, LIMITS(1, 64), .form = &form_name,
     .help = "what rules, jobs and the command line call it"},
    {"segments", &option_list, AT(struct conf_pipeline, segments),
     MANY(struct conf_pipeline, segment_count), .fallback = NULL, LIMITS(1, SEGMENTS_MOST),
     .section = &option_segment, .help = "what to find; segments may overlap"},
    {"texture", &option_part, AT(struct conf_pipeline, texture), "", .section = &option_texture,
     .help = "what is measured of the segments and of the volume; nothing when not given"},
    {"results", &option_flags, AT(struct conf_pipeline, results), "[ \"seg\" ]",
     .choices = result_choices, .help = result_help},
    {"relative_connectedness", &option_boolean, AT(struct conf_pipeline, relative_connectedness),
     "false",
     .help = "a voxel that several fuzzy connectedness segments claim goes to the one it is "
             "connected to most strongly, and to none of them when two are equal"},
    {"omit_empty_frames", &option_boolean, AT(struct conf_pipeline, omit_empty_frames), "true",
     .help = "leave out frames of a segment in which it has no voxel"},
    {"min_slices", &option_integer, AT(struct conf_pipeline, min_slices), "1", LIMITS(1, 65535),
     .help = "stacks of fewer slices are refused: TOO_FEW_SLICES"},
    {"spacing_tolerance", &option_number, AT(struct conf_pipeline, spacing_tolerance), "0.01",
     LIMITS(0, 0.5),
     .help = "how far slice distances may differ, as a part of the median distance"},
    {"duplicates", &option_choice, AT(struct conf_pipeline, duplicates), "\"refuse\"",
     .choices = newest_choices, .later = true,
     .help = "of several slices at one position: \"refuse\" the stack with DUPLICATE_POSITION, or "
             "take the \"newest\" where creation, content or acquisition time says which it is"},
    {"tilt", &option_choice, AT(struct conf_pipeline, tilt), "\"straighten\"",
     .choices = tilt_choices, .later = true,
     .help = "stacks that are sheared (a tilted gantry) or unevenly spaced: \"straighten\" them to "
             "an upright grid, on which segments and texture are found, or \"refuse\" them: "
             "GANTRY_TILT, SPACING_NOT_UNIFORM; pipelines with the result \"pmap\" refuse them"},
    {"grid", &option_group, .offset = 0, "{ }", .section = &grid_section, .later = true,
     .help = "of a straightened stack: pixels as in its planes, values between planes linear and "
             "rounded to stored values"},
    {"derived", &option_boolean, AT(struct conf_pipeline, derived), "false", .later = true,
     .help = "take reformats, projections and maps as images; else they are passed over, with "
             "DERIVED_IMAGE"},
    {"review", &option_choice, AT(struct conf_pipeline, review), "\"hold\"",
     .choices = review_choices, .later = true,
     .help =
         "what is not as a segment's expect says: \"hold\" it, written and delivered to nobody, "
         "until somebody says noctule accept or noctule reject; or \"deliver\" it all the same, "
         "and say so in Content Description (0070,0081)"},
    {"series_description", &option_text, AT(struct conf_pipeline, series_description), "\"\"",
     LIMITS(0, 64), .form = &form_dicom,
     .help = "Series Description (0008,103E) of the result; made from the name when empty"},
    {"series_number", &option_integer, AT(struct conf_pipeline, series_number), "9000",
     LIMITS(0, 2147483647), .help = "Series Number (0020,0011) of the result"},
    {"memory_mib", &option_number, AT(struct conf_pipeline, memory_mib), "0.0", LIMITS(0, 16777216),
     .later = true,
     .help = "memory that a job of this pipeline may take, at most jobs.memory_mib; one that needs "
             "more fails at once; 0 means jobs.memory_mib"},
    {"deadline_seconds", &option_number, AT(struct conf_pipeline, deadline_seconds), "0.0",
     LIMITS(0, 604800), .later = true,
     .help = "a job of this pipeline that takes longer is stopped, and counts as an attempt; 0 "
             "means jobs.deadline_seconds"},
    {"patience_seconds", &option_number, AT(struct conf_pipeline, patience_seconds), "86400.0",
     LIMITS(0, 31536000), .later = true,
     .help = "how long a job waits for the objects that its segments name (OBJECT_WAITING), once "
             "its series has settled; then it fails with OBJECT_MISSING"},
    {"deliver", &option_names, AT(struct conf_pipeline, deliver),
     MANY(struct conf_pipeline, deliver_count), .fallback = "[ ]", LIMITS(0, 16),
     .form = &form_name,
     .help = "the destinations that results are sent to; \"sender\" is the one with the AE title "
             "that sent the series"},
};

const struct option_section option_pipeline = {
    ROWS(pipeline_rows), .size = sizeof(struct conf_pipeline), .check = check_pipeline};

static bool
check_match(const void *object, const struct option_spot *spot)
{
    const struct conf_rule *rule = object;
    if (rule->max_slices && rule->max_slices < rule->min_slices)
        return option_refuse(spot, "max_slices", "%d is below min_slices, %d", rule->max_slices,
                             rule->min_slices);
    return true;
}

static const struct option_row match_rows[] = {
    {"modality", &option_text, AT(struct conf_rule, modality), "", LIMITS(1, 16),
     .form = &form_dicom, .help = "Modality (0008,0060) is this; capitals do not matter"},
    {"body_part", &option_text, AT(struct conf_rule, body_part), "", LIMITS(1, 16),
     .form = &form_dicom, .help = "Body Part Examined (0018,0015) is this; capitals do not matter"},
    {"description", &option_text, AT(struct conf_rule, description), "", LIMITS(1, 64),
     .form = &form_dicom,
     .help = "Series Description (0008,103E) contains this; capitals do not matter"},
    {"min_slices", &option_integer, AT(struct conf_rule, min_slices), "0", LIMITS(0, 1000000),
     .help = "at least so many slices"},
    {"max_slices", &option_integer, AT(struct conf_rule, max_slices), "0", LIMITS(0, 1000000),
     .help = "at most so many slices; 0 means any number"},
};

static const struct option_section match_section = {
    ROWS(match_rows), .size = sizeof(struct conf_rule), .check = check_match};

static const struct option_row rule_rows[] = {
    {"match", &option_group, .offset = 0, "{ }", .section = &match_section,
     .help = "all that is given here has to fit; nothing given fits every series"},
    {"pipeline", &option_text, AT(struct conf_rule, pipeline), NULL, LIMITS(1, 64),
     .form = &form_name, .help = "the pipeline that a series gets for which this rule fits"},
    {"priority", &option_integer, AT(struct conf_rule, priority), "0",
     LIMITS(CONF_MIN_PRIORITY, CONF_MAX_PRIORITY),
     .help = "jobs with a larger one run first; the highest of the rules that fit counts"},
    STACKS_ROW(struct conf_rule),
};

const struct option_section option_rule = {ROWS(rule_rows), .size = sizeof(struct conf_rule)};

static bool
check_pipeline_names(const struct conf *conf, const struct option_spot *spot)
{
    for (size_t i = 0; i < conf->pipeline_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(conf->pipelines[i].name, conf->pipelines[j].name) == 0) {
                return option_refuse_of(spot, "pipelines", i, ".name",
                                        "\"%s\" is the name of an earlier pipeline",
                                        conf->pipelines[i].name);
            }
    return true;
}

static bool
check_rules(const struct conf *conf, const struct option_spot *spot)
{
    for (size_t i = 0; i < conf->rule_count; i++)
        if (!conf_find_pipeline(conf, conf->rules[i].pipeline)) {
            return option_refuse_of(spot, "rules", i, ".pipeline",
                                    "there is no pipeline named \"%s\"", conf->rules[i].pipeline);
        }
    return true;
}

static bool
check_title_pipelines(const struct conf *conf, const struct option_spot *spot)
{
    for (size_t i = 0; i < conf->dicom.title_count; i++) {
        const struct conf_title *title = &conf->dicom.titles[i];
        if (title->pipeline && !conf_find_pipeline(conf, title->pipeline)) {
            return option_refuse_of(spot, "dicom.titles", i, ".pipeline",
                                    "there is no pipeline named \"%s\"", title->pipeline);
        }
        if (title->stacks && !title->pipeline)
            return option_refuse_of(spot, "dicom.titles", i, ".stacks",
                                    "is used only with a pipeline of the title: rules have their "
                                    "own");
    }
    return true;
}

static bool
check_deliver(const struct conf *conf, size_t i, const struct option_spot *spot)
{
    const struct conf_pipeline *pipeline = &conf->pipelines[i];
    for (size_t j = 0; j < pipeline->deliver_count; j++) {
        const char *name = pipeline->deliver[j];
        if (strcmp(name, CONF_SENDER) != 0 && !conf_find_destination(conf, name))
            return option_refuse_of(spot, "pipelines", i, ".deliver",
                                    "there is no destination named \"%s\"", name);
        for (size_t k = 0; k < j; k++)
            if (strcmp(name, pipeline->deliver[k]) == 0)
                return option_refuse_of(spot, "pipelines", i, ".deliver", "\"%s\" stands twice",
                                        name);
    }
    return true;
}

/* Workers are bound by what jobs has. */
static bool
check_memory(const struct conf *conf, size_t i, const struct option_spot *spot)
{
    const double own = conf->pipelines[i].memory_mib, most = conf->jobs.memory_mib;
    if (most > 0 && own > most)
        return option_refuse_of(spot, "pipelines", i, ".memory_mib",
                                "%g is above jobs.memory_mib, %g", own, most);
    return true;
}

bool
check_pipelines(const struct conf *conf, const struct option_spot *spot)
{
    for (size_t i = 0; i < conf->pipeline_count; i++)
        if (!check_deliver(conf, i, spot) || !check_memory(conf, i, spot))
            return false;
    return check_pipeline_names(conf, spot) && check_rules(conf, spot) &&
           check_title_pipelines(conf, spot);
}
