/*
 * kind_labels.c - `segments = "all labels"`: a segment per label of a program.
 *
 * The segments replace the words in the parsed settings, before they are read. The same defaults and checks apply, and
 * texts of the configuration and of pipelines list the segments. Programs are read before pipelines, so that the
 * settings of their profiles are present.
 */
#include "config/kinds/kinds.h"

#include <errno.h>

static const char all_labels[] = "all labels";

static bool
is_all_labels(const config_setting_t *segments)
{
    const char *text = segments ? config_setting_get_string(segments) : NULL;
    return text && strcmp(text, all_labels) == 0;
}

/* Returns the program of that name, or NULL. */
static const config_setting_t *
find_program(const config_setting_t *setting, const char *name)
{
    while (config_setting_parent(setting))
        setting = config_setting_parent(setting);
    const config_setting_t *programs = config_setting_get_member(setting, "programs");
    for (unsigned i = 0; programs && i < (unsigned)config_setting_length(programs); i++) {
        const config_setting_t *program = config_setting_get_elem(programs, i);
        const char *own;
        if (config_setting_is_group(program) && config_setting_lookup_string(program, "name", &own) &&
            strcmp(own, name) == 0)
            return program;
    }
    return NULL;
}

static int
put_string(config_setting_t *group, const char *name, const char *text, unsigned line)
{
    config_setting_t *setting = config_setting_add(group, name, CONFIG_TYPE_STRING);
    if (!setting || !config_setting_name(setting) || !config_setting_set_string(setting, text) ||
        !config_setting_get_string(setting))
        return -ENOMEM;
    setting->line = line;
    return 0;
}

/* Adds the segment of a label to the list. Errors have the line of the label. */
static int
labels_put(config_setting_t *segments, const char *program, const config_setting_t *label)
{
    static const char *const same[] = {"value", "category", "type", "modifier", "region", "color"};
    const unsigned line = config_setting_source_line(label);
    const char *name = "";
    config_setting_t *segment = config_setting_add(segments, NULL, CONFIG_TYPE_GROUP), *copy;
    if (!segment)
        return -ENOMEM;
    segment->line = line;
    config_setting_lookup_string(label, "name", &name);
    int rc = put_string(segment, "label", name, line);
    if (rc == 0)
        rc = put_string(segment, "method", "program", line);
    if (rc == 0)
        rc = put_string(segment, "program", program, line);
    for (size_t i = 0; rc == 0 && i < sizeof(same) / sizeof(same[0]); i++) {
        const config_setting_t *from = config_setting_get_member(label, same[i]);
        if (from)
            rc = overlay_copy_setting(segment, from, &(struct copied){.line = line}, &copy);
    }
    return rc;
}

/* Replaces the words by the list of segments. */
static int
segments_expand(const struct option_reader *reader, config_setting_t *setting)
{
    config_setting_t *pipeline = config_setting_parent(setting);
    config_setting_t *given = config_setting_get_member(pipeline, "program");
    const char *name = given ? config_setting_get_string(given) : NULL;
    if (!given)
        return read_fail(reader, setting, "requires program, whose labels are the segments");
    const config_setting_t *program = name ? find_program(setting, name) : NULL;
    const config_setting_t *labels = program ? config_setting_get_member(program, "labels") : NULL;
    if (!program)
        return read_fail(reader, given, "there is no program \"%s\": name one of programs", name ? name : "");
    if (!labels || !config_setting_is_list(labels) || config_setting_length(labels) == 0)
        return read_fail(reader, given, "\"%s\" has no labels: list them in programs", name);
    const unsigned line = config_setting_source_line(setting);
    config_setting_remove(pipeline, "segments");
    config_setting_t *segments = config_setting_add(pipeline, "segments", CONFIG_TYPE_LIST);
    if (!segments || !config_setting_name(segments))
        return -ENOMEM;
    segments->line = line;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < (unsigned)config_setting_length(labels); i++)
        rc = labels_put(segments, name, config_setting_get_elem(labels, i));
    return rc;
}

int
read_segments(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    if (!is_all_labels(setting))
        return option_list.read(reader, row, setting, field);
    config_setting_t *pipeline = config_setting_parent(setting);
    const int rc = segments_expand(reader, setting);
    if (rc < 0)
        return read_lose(reader, field, sizeof(char *), rc);
    return option_list.read(reader, row, config_setting_get_member(pipeline, row->name), field);
}

/* Checks that the segments, which are read later, are those of the program. */
static int
labelled_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    (void)row;
    (void)field;
    if (!is_all_labels(config_setting_get_member(config_setting_parent(setting), "segments")))
        return read_fail(reader, setting, "is only allowed with segments = \"%s\"", all_labels);
    return 0;
}

const struct option_kind option_labelled = {.read = labelled_read, .type = "string", .limits = " characters"};
