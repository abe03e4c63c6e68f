/*
 * config.c - loads a configuration: reads the text, fills the structs by the option table, checks.
 */
#include "config/config.h"

#include "config/kinds/kinds.h"
#include "config/options/option_sections.h"
#include "config/source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(enum conf_after) == sizeof(unsigned) && sizeof(enum conf_shape_kind) == sizeof(unsigned) &&
                   sizeof(enum conf_method) == sizeof(unsigned) && sizeof(enum conf_unit) == sizeof(unsigned) &&
                   sizeof(enum conf_step_kind) == sizeof(unsigned) && sizeof(enum conf_fill) == sizeof(unsigned) &&
                   sizeof(enum conf_object_kind) == sizeof(unsigned) &&
                   sizeof(enum conf_relative) == sizeof(unsigned) && sizeof(enum conf_auto) == sizeof(unsigned) &&
                   sizeof(enum conf_attribute_test) == sizeof(unsigned) &&
                   sizeof(enum conf_orientation) == sizeof(unsigned) && sizeof(enum conf_volume) == sizeof(unsigned) &&
                   sizeof(enum conf_output) == sizeof(unsigned) && sizeof(enum conf_gpu) == sizeof(unsigned) &&
                   sizeof(enum conf_family) == sizeof(unsigned) && sizeof(enum discretisation) == sizeof(unsigned) &&
                   sizeof(enum aggregation) == sizeof(unsigned),
               "choices are stored as unsigned");
_Static_assert(sizeof(struct texture_offset) == 3 * sizeof(int), "offsets are stored as int[3]");

/* Sets a missing title to the first of our titles. */
static int
conf_resolve_title(const struct conf *conf, char **title)
{
    if (!*title)
        *title = strdup(conf->dicom.titles[0].ae_title);
    return *title ? 0 : -ENOMEM;
}

/* Sets values that are missing and depend on others. */
static int
conf_resolve(struct conf *conf)
{
    static const char *const input_files[] = {[CONF_NIFTI] = "{case}.nii.gz", [CONF_NRRD] = "{case}.nrrd"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < conf->destination_count; i++)
        if (conf->destinations[i].ae_title)
            rc = conf_resolve_title(conf, &conf->destinations[i].calling_ae_title);
    for (size_t i = 0; rc == 0 && i < conf->pull.source_count; i++) {
        rc = conf_resolve_title(conf, &conf->pull.sources[i].calling_ae_title);
        if (rc == 0)
            rc = conf_resolve_title(conf, &conf->pull.sources[i].move_destination);
    }
    for (size_t i = 0; rc == 0 && i < conf->program_count; i++) {
        struct conf_program *program = &conf->programs[i];
        if (program->input_file || program->input == CONF_DICOM)
            continue;
        program->input_file = strdup(input_files[program->input]);
        rc = program->input_file ? 0 : -ENOMEM;
    }
    return rc;
}

int
conf_resolve_root(void *object, char *const *root)
{
    struct conf *conf = object;
    if (root == &conf->root)
        return 0;
    char *copy = strdup(*root);
    if (!copy)
        return -ENOMEM;
    free(conf->root);
    conf->root = copy;
    return 0;
}

/* Reads the source. `root` replaces the root of the file, unless it is NULL. */
static int
conf_read_source(const struct source *source, char *const *root, struct conf **conf, struct conf_findings *findings,
                 struct error *error)
{
    struct conf *loaded = calloc(1, sizeof(*loaded));
    if (!loaded)
        return source_out_of_memory(error);
    int rc = read_source(source, &option_root, loaded, root ? root : &loaded->root, findings, error);
    if (rc == 0 && conf_resolve(loaded) < 0)
        rc = source_out_of_memory(error);
    if (rc < 0) {
        conf_free(loaded);
        return rc;
    }
    for (size_t i = 0; i < loaded->rule_count; i++)
        loaded->rules[i].number = (int)i + 1;
    *conf = loaded;
    return 0;
}

/* Checks that the text for child processes is within the limits. It has more lines than the file,
 * because conf_to_text() writes every default. */
static int
conf_check_text(const struct conf *conf, const char *path, struct error *error)
{
    char *text = conf_to_text(conf);
    if (!text)
        return source_out_of_memory(error);
    size_t lines = 1;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    const bool fits = lines <= LIMIT_CONFIG_LINES && strlen(text) < LIMIT_CONFIG_BYTES;
    free(text);
    return fits ? 0
                : error_set(error, -EINVAL, CODE_NONE,
                            "%s: with all defaults written out, the configuration has more than %d lines or %d bytes",
                            path, LIMIT_CONFIG_LINES, LIMIT_CONFIG_BYTES);
}

static int
conf_load_path(const char *path, const char *root_override, struct conf **conf, struct conf_findings *findings,
               struct error *error)
{
    struct source source;
    char *root = NULL;
    if (root_override) { /* relative to the current folder */
        char *here = root_override[0] != '/' ? getcwd(NULL, 0) : NULL;
        const bool known = here || root_override[0] == '/';
        root = known ? strdup(root_override) : NULL;
        const bool made = root && option_make_absolute(&root, here) == 0;
        free(here);
        if (!made) {
            free(root);
            return source_out_of_memory(error);
        }
    }
    int rc = source_read_file(&source, path, error);
    if (findings &&
        (!(findings->files = source_list_files(&source)) || !(findings->folders = source_list_folders(&source))))
        rc = source_out_of_memory(error);
    if (rc == 0)
        rc = conf_read_source(&source, root ? &root : NULL, conf, findings, error);
    free(root);
    source_release(&source);
    if (rc == 0 && (rc = conf_check_text(*conf, path, error)) < 0) {
        conf_free(*conf);
        *conf = NULL;
    }
    return rc;
}

int
conf_load_with_root(const char *path, const char *root_override, struct conf **conf, struct error *error)
{
    return conf_load_path(path, root_override, conf, NULL, error);
}

int
conf_load_all(const char *path, const char *root_override, struct conf **conf, struct conf_findings *findings,
              struct error *error)
{
    findings->count = findings->more = findings->place_count = 0;
    findings->places = NULL;
    findings->files = findings->folders = NULL;
    return conf_load_path(path, root_override, conf, findings, error);
}

void
conf_findings_free(struct conf_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        free(findings->items[i].message);
    for (size_t i = 0; i < findings->place_count; i++)
        free(findings->places[i]);
    free(findings->places);
    free(findings->files);
    free(findings->folders);
    findings->places = NULL;
    findings->files = findings->folders = NULL;
    findings->count = findings->place_count = 0;
}

int
conf_find_root(const char *path, char **root)
{
    struct source source;
    struct error error;
    int rc = source_read_file(&source, path, &error);
    *root = source.layer_count > 0 ? read_root(&source) : NULL;
    source_release(&source);
    return *root ? 0 : rc < 0 ? rc : -ENOMEM;
}

int
conf_load(const char *path, struct conf **conf, struct error *error)
{
    return conf_load_with_root(path, NULL, conf, error);
}

char *
conf_share_path(const char *name)
{
    char program[PATH_MAX], *path;
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0)
        return NULL;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    return asprintf(&path, "%s/../share/noctule/%s", program, name) < 0 ? NULL : path;
}

void
conf_free(struct conf *conf)
{
    if (conf)
        option_clear(&option_root, conf);
    free(conf);
}

char *
conf_to_text(const struct conf *conf)
{
    return write_section(&option_root, conf, false);
}

int
conf_from_text(const char *text, struct conf **conf, struct error *error)
{
    struct source source;
    int rc = source_read_text(&source, "configuration", text, error);
    if (rc == 0)
        rc = conf_read_source(&source, NULL, conf, NULL, error);
    source_release(&source);
    return rc;
}

/* Returns the index of the element with this name, which is its first member; count if absent. */
static size_t
conf_find(const void *elements, size_t count, size_t size, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        const char *own;
        memcpy(&own, (const char *)elements + i * size, sizeof(own));
        if (strcmp(own, name) == 0)
            return i;
    }
    return count;
}

#define CONF_FIND(list, count, name) conf_find((list), (count), sizeof((list)[0]), (name))

size_t
conf_find_segment(const struct conf_pipeline *pipeline, const char *label)
{
    return CONF_FIND(pipeline->segments, pipeline->segment_count, label);
}

bool
conf_segment_looks(const struct conf_segment *segment)
{
    return segment->automatic != CONF_AUTO_NONE && segment->automatic != CONF_AUTO_CENTER;
}

/* Finds the use `number` of the segment itself. If there are fewer, subtracts their count from
 * `number`. */
static bool
segment_own_use(const struct conf_segment *segment, size_t *number, struct conf_use *use)
{
    const struct {
        const char *option;
        char *const *labels;
        size_t count;
        bool start;
    } lists[] = {{"from", &segment->from, segment->from != NULL, true},
                 {"refine.label", segment->refine ? &segment->refine->label : NULL, segment->refine != NULL, true},
                 {"any_of", segment->any_of, segment->any_of_count, true},
                 {"enclosed.by", &segment->enclosed.by, segment->enclosed.by != NULL, true},
                 {"sections.middle_of", &segment->sections.middle_of, segment->sections.middle_of != NULL, true},
                 {"slices_where.label", &segment->slices_where.label, segment->slices_where.label != NULL, true},
                 {"range.of", &segment->range.of, segment->range.of != NULL, true},
                 {"within", segment->within, segment->within_count,
                  segment->method == CONF_LEVEL_SET || segment->method == CONF_LEAK || conf_segment_looks(segment)},
                 {"minus", segment->minus, segment->minus_count, false},
                 {"intersect", segment->intersect, segment->intersect_count, false}};

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (*number < lists[i].count) {
            *use = (struct conf_use){lists[i].option, lists[i].labels[*number], lists[i].start};
            return true;
        }
        *number -= lists[i].count;
    }
    return false;
}

bool
conf_segment_use(const struct conf_pipeline *pipeline, size_t segment, size_t number, struct conf_use *use)
{
    const bool together = pipeline->relative_connectedness && pipeline->segments[segment].method == CONF_FUZZY;
    if (segment_own_use(&pipeline->segments[segment], &number, use))
        return true;
    for (size_t i = 0; i < pipeline->segment_count && together; i++) {
        const struct conf_segment *other = &pipeline->segments[i];
        if (i == segment || other->method != CONF_FUZZY)
            continue;
        for (size_t n = 0, own = 0; segment_own_use(other, &own, use); own = ++n) /* those that it needs to start */
            if (use->start && number-- == 0)
                return true;
    }
    return false;
}

const char *
conf_expect_label(const struct conf_segment *segment, size_t number, const char **option)
{
    static const struct conf_expect none;
    const struct conf_expect *expect = segment->expect ? segment->expect : &none;

    const struct {
        const char *option, *label;
    } labels[] = {{"expect.share_of.label", expect->share_of ? expect->share_of->label : NULL},
                  {"expect.near.label", expect->near ? expect->near->label : NULL},
                  {"expect.solidity.within", expect->solidity ? expect->solidity->within : NULL},
                  {"expect.dropped.label", expect->dropped ? expect->dropped->label : NULL},
                  {"expect.jump.label", expect->jump ? expect->jump->label : NULL},
                  {"expect.beside.label", expect->beside ? expect->beside->label : NULL}};

    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        if (labels[i].label && number-- == 0) {
            *option = labels[i].option;
            return labels[i].label;
        }
    return NULL;
}

bool
conf_segment_is_object(const struct conf_segment *segment)
{
    return segment->method == CONF_OBJECT && segment->object.kind != CONF_SR && !segment->object.interpolate &&
           !segment->object.unite && segment->within_count == 0 && segment->minus_count == 0 &&
           segment->intersect_count == 0 && segment->then_count == 0;
}

bool
conf_segment_is_each(const struct conf_segment *segment)
{
    return segment->method == CONF_OBJECT && segment->object.each;
}

bool
conf_pipeline_takes_own(const struct conf_pipeline *pipeline)
{
    bool takes = false;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        takes |= pipeline->segments[i].object.own;
    return takes;
}

unsigned
conf_measured_regions(const struct conf_pipeline *pipeline)
{
    unsigned regions = pipeline->changes ? CONF_SEGMENTS : 0;
    for (size_t g = 0; g < pipeline->texture_count; g++)
        regions |= pipeline->texture[g].regions;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        regions |= pipeline->segments[i].quantities ? CONF_SEGMENTS : 0;
    return regions;
}

int32_t
conf_segment_number(const struct conf_pipeline *pipeline, size_t segment)
{
    int32_t number = 1;
    for (size_t i = 0; i < segment; i++)
        number += !pipeline->segments[i].hidden;
    return pipeline->segments[segment].hidden ? 0 : number;
}

const struct conf_pipeline *
conf_find_pipeline(const struct conf *conf, const char *name)
{
    const size_t i = CONF_FIND(conf->pipelines, conf->pipeline_count, name);
    return i < conf->pipeline_count ? &conf->pipelines[i] : NULL;
}

const struct conf_program *
conf_find_program(const struct conf *conf, const char *name)
{
    const size_t i = CONF_FIND(conf->programs, conf->program_count, name);
    return i < conf->program_count ? &conf->programs[i] : NULL;
}

const struct conf_destination *
conf_find_destination(const struct conf *conf, const char *name)
{
    const size_t i = CONF_FIND(conf->destinations, conf->destination_count, name);
    return i < conf->destination_count ? &conf->destinations[i] : NULL;
}

void
conf_takes(const struct conf_destination *destination, char text[CONF_TAKES])
{
    const unsigned all = CONF_RESULT_SEG | CONF_RESULT_SR | CONF_RESULT_PMAP | CONF_RESULT_LABELMAP |
                         CONF_RESULT_RTSTRUCT | (destination->deidentify ? 0 : CONF_RESULT_PICTURE);
    const bool images = destination->send & CONF_SEND_IMAGES;
    const unsigned given = destination->takes || !(images || destination->deidentify) ? destination->takes : all;
    const unsigned takes = destination->send & CONF_SEND_RESULTS ? given : 0;
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; result_choices[i] && used < CONF_TAKES; i++)
        if (takes & 1u << i)
            used += (size_t)snprintf(text + used, CONF_TAKES - used, "%s%s ", used > 0 ? "" : " ",
                                     1u << i == CONF_RESULT_SEG ? "seg seg-fractional" : result_choices[i]);
    if (images)
        snprintf(text + used, CONF_TAKES - used, "%s" CONF_KIND_IMAGES " ", used > 0 ? "" : " ");
}

const struct conf_source *
conf_find_source(const struct conf *conf, const char *name)
{
    const size_t i = CONF_FIND(conf->pull.sources, conf->pull.source_count, name);
    return i < conf->pull.source_count ? &conf->pull.sources[i] : NULL;
}

const struct conf_destination *
conf_find_destination_ae(const struct conf *conf, const char *ae_title)
{
    for (size_t i = 0; i < conf->destination_count; i++) {
        const char *title = conf->destinations[i].ae_title;
        if (title && strcmp(title, ae_title) == 0)
            return &conf->destinations[i];
    }
    return NULL;
}

const struct conf_title *
conf_find_title(const struct conf *conf, const char *ae_title)
{
    const size_t i = CONF_FIND(conf->dicom.titles, conf->dicom.title_count, ae_title);
    return i < conf->dicom.title_count ? &conf->dicom.titles[i] : NULL;
}

const struct conf_inbox *
conf_find_inbox(const struct conf *conf, const char *path)
{
    for (size_t i = 0; i < conf->inbox_count; i++)
        if (strcmp(conf->inboxes[i].path, path) == 0)
            return &conf->inboxes[i];
    return NULL;
}

bool
conf_inbox_is(const struct conf_inbox *inbox, const char *name)
{
    return (inbox->name && strcmp(inbox->name, name) == 0) || strcmp(inbox->path, name) == 0;
}

/* Writes a pipeline without its destinations, times and executor, which do not change results. The
 * identity also omits the limits of jobs, and the compression. */
static char *
conf_pipeline_text(const struct conf_pipeline *pipeline, bool identity)
{
    struct conf_pipeline settings = *pipeline;
    settings.deliver = NULL;
    settings.deliver_count = 0;
    settings.window = settings.done_by = NULL;
    settings.by_hand = false;
    settings.executor = CONF_ANYWHERE;
    if (identity) { /* values at their default are not written */
        settings.memory_mib = settings.deadline_seconds = 0;
        settings.patience_seconds = CONF_PATIENCE_SECONDS;
        if (settings.changes == CONF_CHANGES_PULL) /* the values of the changes are part of the identity */
            settings.changes = CONF_CHANGES_STORED;
        settings.compression = CONF_COMPRESSION_NONE;
    }
    return write_section(&option_pipeline, &settings, identity);
}

char *
conf_pipeline_to_text(const struct conf_pipeline *pipeline)
{
    return conf_pipeline_text(pipeline, false);
}

char *
conf_pipeline_identity(const struct conf_pipeline *pipeline)
{
    return conf_pipeline_text(pipeline, true);
}

/* Reads the text of a section into a new struct, which has the section's size. */
static int
conf_part_from_text(const struct option_section *section, const char *name, const char *text, void **part,
                    struct error *error)
{
    struct source source;
    void *loaded = calloc(1, section->size);
    if (!loaded)
        return source_out_of_memory(error);
    int rc = source_read_text(&source, name, text, error);
    if (rc == 0)
        rc = read_source(&source, section, loaded, NULL, NULL, error);
    source_release(&source);
    if (rc == 0) {
        *part = loaded;
        return 0;
    }
    option_clear(section, loaded);
    free(loaded);
    return rc;
}

int
conf_pipeline_from_text(const char *text, struct conf_pipeline **pipeline, struct error *error)
{
    void *part;
    int rc = conf_part_from_text(&option_pipeline, "pipeline", text, &part, error);
    if (rc == 0)
        *pipeline = part;
    return rc;
}

void
conf_pipeline_free(struct conf_pipeline *pipeline)
{
    if (pipeline)
        option_clear(&option_pipeline, pipeline);
    free(pipeline);
}

char *
conf_grid_text(const struct conf_pipeline *pipeline)
{
    struct conf_pipeline grid = *pipeline;
    grid.changes = CONF_CHANGES_NONE;
    return write_identity_of(&option_pipeline, "min_slices", "colour", &grid);
}

char *
conf_checked_text(const struct conf_pipeline *pipeline)
{
    static const char *const ranges[][2] = {
        {"segments", "segments"}, {"relative_connectedness", "relative_connectedness"}, {"min_slices", "colour"}};
    struct conf_pipeline masks = *pipeline; /* without quantities and changes, which change no mask */
    masks.changes = CONF_CHANGES_NONE;
    char *all = strdup("");
    masks.segments = calloc(pipeline->segment_count + 1, sizeof *masks.segments);
    for (size_t i = 0; i < pipeline->segment_count && masks.segments; i++) {
        masks.segments[i] = pipeline->segments[i];
        masks.segments[i].quantities = 0;
    }
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && all; i++) {
        char *before = all, *part = NULL;
        if (masks.segments)
            part = write_identity_of(&option_pipeline, ranges[i][0], ranges[i][1], &masks);
        if (!part || asprintf(&all, "%s%s", before, part) < 0)
            all = NULL;
        free(before);
        free(part);
    }
    free(masks.segments);
    return all;
}

/* ------------------------------------------------------------------------------ programs ---- */

char *
conf_program_to_text(const struct conf_program *program)
{
    return write_section(&option_program, program, false);
}

char *
conf_program_identity(const struct conf_program *program)
{
    return write_identity_of(&option_program, "command", "algorithm", program);
}

int
conf_program_from_text(const char *text, struct conf_program **program, struct error *error)
{
    void *part;
    int rc = conf_part_from_text(&option_program, "program", text, &part, error);
    if (rc == 0)
        *program = part;
    return rc;
}

void
conf_program_free(struct conf_program *program)
{
    if (program)
        option_clear(&option_program, program);
    free(program);
}

bool
conf_pipeline_names_program(const struct conf_pipeline *pipeline, const char *program)
{
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const char *named = pipeline->segments[i].program;
        if (named && (!program || strcmp(named, program) == 0))
            return true;
    }
    return false;
}

int
conf_accepted_labels(const struct conf *conf, const struct conf_program *program, uint16_t **values, size_t *count)
{
    enum { VALUES = UINT16_MAX + 1 };

    bool *accepted = calloc(VALUES, sizeof(*accepted));
    uint16_t *found = calloc(VALUES, sizeof(*found));
    size_t n = 0;
    if (!accepted || !found) {
        free(accepted);
        free(found);
        return -ENOMEM;
    }
    for (size_t i = 0; i < program->label_count; i++)
        accepted[program->labels[i].value] = true;
    for (size_t i = 0; i < conf->pipeline_count; i++)
        for (size_t j = 0; j < conf->pipelines[i].segment_count; j++) {
            const struct conf_segment *segment = &conf->pipelines[i].segments[j];
            if (!segment->program || strcmp(segment->program, program->name) != 0)
                continue;
            for (size_t k = 0; k < segment->value_count; k++)
                accepted[segment->values[k]] = true;
        }
    for (int value = 1; value < VALUES; value++)
        if (accepted[value])
            found[n++] = (uint16_t)value;
    free(accepted);
    *values = found;
    *count = n;
    return 0;
}
