/*
 * option_attribute.c - the options of a rule's attribute tests.
 */
#include "base/limits.h"
#include "config/options/option_sections.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static enum attribute_kind (*attribute_kind_of)(const char *tag);

void conf_set_dictionary(enum attribute_kind (*kind_of)(const char *tag))
{
    attribute_kind_of = kind_of;
}

/* ------------------------------------------------------------------------------- options ---- */

static const struct option_row attribute_rows[] = {
    {ROW(conf_attribute, text, tag), NULL, LIMITS(2, 64),
     .help = "keyword or tag: \"StudyDescription\" or \"(0008,1030)\"; for a private attribute the "
             "tag with any block, such as \"(0019,100C)\""},
    {ROW(conf_attribute, text, creator), "", LIMITS(1, 64), .form = &form_dicom,
     .help = "Private Creator; required for private attributes"},
    {ROW(conf_attribute, names, is), MANY(struct conf_attribute, is_count), .fallback = "", LIMITS(1, 64),
     .form = &form_dicom, EITHER(struct conf_attribute, test, CONF_ATTRIBUTE_IS),
     .help = "values, one of which must be equal; the case of ASCII letters is ignored"},
    {ROW(conf_attribute, text, glob), "", LIMITS(1, 128), EITHER(struct conf_attribute, test, CONF_ATTRIBUTE_GLOB),
     .help = "shell pattern that must match a whole value, such as \"*thorax*\"; the case of ASCII letters is ignored"},
    {ROW(conf_attribute, regex, regex), "", LIMITS(1, 256), EITHER(struct conf_attribute, test, CONF_ATTRIBUTE_REGEX),
     .help = "POSIX extended regular expression that must match a part of a value, ignoring case; "
             "without back-references and (?...) groups; repetitions may multiply to at most 1000"},
    {ROW(conf_attribute, numbers, range), "", LIMITS(-1e12, 1e12), ENDS,
     EITHER(struct conf_attribute, test, CONF_ATTRIBUTE_RANGE),
     .help = "numbers [ lowest, highest ], both inclusive, between which a value must lie"},
    {ROW(conf_attribute, boolean, present), "", EITHER(struct conf_attribute, test, CONF_ATTRIBUTE_PRESENT),
     .help = "required presence of a value: true or false"},
    {"not", &option_boolean, AT(struct conf_attribute, negated), "false",
     .help = "negates the test: no value may pass; an absent attribute matches; one that cannot be "
             "compared (limits, character set) does not"},
};

/* Returns the error of an attribute's tag by the dictionary, or NULL if the tag is valid. */
static const char *
attribute_objection(const struct conf_attribute *attribute)
{
    switch (attribute_kind_of ? attribute_kind_of(attribute->tag) : ATTRIBUTE_UNKNOWN) {
    case ATTRIBUTE_VALUE:
        return attribute->creator ? "is a public attribute: remove creator" : NULL;
    case ATTRIBUTE_PRIVATE:
        return attribute->creator ? NULL : "is a private attribute: give its creator";
    case ATTRIBUTE_SEQUENCE:
        return "is a sequence: name an attribute of the data set itself";
    case ATTRIBUTE_BYTES:
        return "contains bytes, which rules cannot compare";
    case ATTRIBUTE_UNKNOWN:
        break;
    }
    return "is no attribute of a data set: write a keyword of the DICOM dictionary, or a tag \"(gggg,eeee)\"";
}

static void
check_attribute(const void *object, const struct option_spot *spot)
{
    const struct conf_attribute *attribute = object;
    const char *objection = attribute->tag && !LOST(spot, attribute->creator) ? attribute_objection(attribute) : NULL;
    if (objection)
        option_refuse(spot, "tag", "\"%s\" %s", attribute->tag, objection);
    if (attribute->test == CONF_ATTRIBUTE_PRESENT && attribute->negated)
        option_refuse(spot, "not", "is not allowed with present: write present = %s",
                      attribute->present ? "false" : "true");
}

const struct option_section option_attribute = {SECTION(attribute_rows, conf_attribute), .check = check_attribute};

/* --------------------------------------------------------------------- several attributes ---- */

static bool
option_attribute_is_same(const struct conf_attribute *a, const struct conf_attribute *b)
{
    return strcmp(a->tag, b->tag) == 0 && option_is_same(a->creator, b->creator);
}

static bool
attribute_has_same_names(const struct conf_attribute *a, const struct conf_attribute *b)
{
    if (a->is_count != b->is_count)
        return false;
    for (size_t i = 0; i < a->is_count; i++)
        if (strcasecmp(a->is[i], b->is[i]) != 0)
            return false;
    return true;
}

bool
option_attribute_asks_same(const struct conf_attribute *a, const struct conf_attribute *b)
{
    const char *const a_regex = a->regex ? a->regex->text : NULL;
    const char *const b_regex = b->regex ? b->regex->text : NULL;
    return option_attribute_is_same(a, b) && a->test == b->test && a->negated == b->negated &&
           a->present == b->present && !(a->range[0] < b->range[0]) && !(a->range[0] > b->range[0]) &&
           !(a->range[1] < b->range[1]) && !(a->range[1] > b->range[1]) && option_is_same(a->glob, b->glob) &&
           option_is_same(a_regex, b_regex) && attribute_has_same_names(a, b);
}

/* Returns whether no earlier element names the same attribute. */
static bool
attribute_is_first(const struct conf *conf, size_t rule, size_t attribute)
{
    const struct conf_attribute *it = &conf->rules[rule].attributes[attribute];
    for (size_t i = 0; i <= rule; i++) {
        const size_t end = i < rule ? conf->rules[i].attribute_count : attribute;
        for (size_t j = 0; j < end; j++)
            if (conf->rules[i].attributes[j].tag && option_attribute_is_same(&conf->rules[i].attributes[j], it))
                return false;
    }
    return true;
}

void
option_check_attributes(const struct conf *conf, const struct option_spot *spot)
{
    size_t count = 0;
    for (size_t i = 0; i < conf->rule_count; i++) {
        size_t before = count;
        for (size_t j = 0; j < conf->rules[i].attribute_count; j++)
            count += conf->rules[i].attributes[j].tag && attribute_is_first(conf, i, j);
        if (before <= LIMIT_RULE_ATTRIBUTES && count > LIMIT_RULE_ATTRIBUTES)
            option_refuse(spot, ELEMENT("rules", i, ".match.attributes"),
                          "with the rules before, names more than %d different attributes", LIMIT_RULE_ATTRIBUTES);
    }
}
