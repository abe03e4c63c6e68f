/*
 * cross_check.c - checks that concern more than one option.
 */
#include "config/cross_check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Folders of the root that are Noctule's own (service/common/layout.h; a test compares them). */
static const char *const own_folders[] = {"incoming", "series", "quarantine",
                                          "jobs",     "outbox", "run"};

__attribute__((format(printf, 3, 4))) static bool
complain(struct option_complaint *complaint, const char *option, const char *format, ...)
{
    snprintf(complaint->option, sizeof(complaint->option), "%s", option);
    va_list values;
    va_start(values, format);
    vsnprintf(complaint->text, sizeof(complaint->text), format, values);
    va_end(values);
    return false;
}

bool
check_inbox(const void *object, struct option_complaint *complaint)
{
    const struct conf_inbox *inbox = object;
    if (inbox->after == CONF_MOVE && !inbox->move_to)
        return complain(complaint, "after", "\"move\" needs move_to");
    if (inbox->after != CONF_MOVE && inbox->move_to)
        return complain(complaint, "move_to", "is used only with after = \"move\"");
    return true;
}

bool
check_shape(const void *object, struct option_complaint *complaint)
{
    const struct conf_shape *shape = object;
    const double *r = shape->radius;
    bool round = r[0] <= r[1] && r[1] <= r[2] && r[2] <= r[0];
    if (shape->kind == CONF_SPHERE && !round)
        return complain(complaint, shape->radius_unit == CONF_MM ? "radius_mm" : "radius_voxels",
                        "a sphere has one radius; use kind = \"ellipsoid\"");
    return true;
}

bool
check_segment(const void *object, struct option_complaint *complaint)
{
    const struct conf_segment *segment = object;
    if (segment->method == CONF_LEVEL_SET && segment->range[0] > segment->range[1])
        return complain(complaint, "range", "the lower end %g is above the upper end %g",
                        segment->range[0], segment->range[1]);
    if (segment->method == CONF_LEVEL_SET && segment->shape_count == 0 && !segment->from)
        return complain(complaint, "shapes", "a level set starts from shapes, or from a segment");
    if (segment->method == CONF_FUZZY && segment->threshold >= 1)
        return complain(complaint, "threshold", "nothing is connected more strongly than 1");
    return true;
}

bool
check_compute(const void *object, struct option_complaint *complaint)
{
    const struct conf_compute *compute = object;
    if (compute->device_count > 0 && strcmp(compute->backend, "cpu") == 0)
        return complain(complaint, "devices", "is not used with backend = \"cpu\"");
    for (size_t i = 0; i < compute->device_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcasecmp(compute->devices[i], compute->devices[j]) == 0)
                return complain(complaint, "devices", "\"%s\" stands twice", compute->devices[i]);
    return true;
}

static bool
is_in_slices(enum conf_aggregation aggregation)
{
    return aggregation != CONF_3D_AVERAGED && aggregation != CONF_3D_MERGED;
}

static bool
check_offsets(const struct conf_glcm *glcm, struct option_complaint *complaint)
{
    for (size_t i = 0; i < glcm->offset_count; i++) {
        const struct conf_offset *offset = &glcm->offsets[i];
        char option[32];
        snprintf(option, sizeof(option), "offsets.[%zu]", i);
        if (offset->column == 0 && offset->row == 0 && offset->slice == 0)
            return complain(complaint, option,
                            "no voxel is its own neighbour: leave [ 0, 0, 0 ] out");
        if (offset->slice != 0 && is_in_slices(glcm->aggregation))
            return complain(complaint, option,
                            "leads to another slice: make the third number 0, or the aggregation "
                            "\"3d-averaged\" or \"3d-merged\"");
        for (size_t j = 0; j < i; j++)
            if (memcmp(&glcm->offsets[j], offset, sizeof(*offset)) == 0)
                return complain(complaint, option, "stands twice: leave one out");
    }
    return true;
}

static bool
check_twice(const char *name, const int *values, size_t count, struct option_complaint *complaint)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (values[i] == values[j])
                return complain(complaint, name, "%d stands twice: leave one out", values[i]);
    return true;
}

bool
check_glcm(const void *object, struct option_complaint *complaint)
{
    const struct conf_glcm *glcm = object;
    if (glcm->has_range && glcm->range[0] > glcm->range[1])
        return complain(complaint, "range", "the lower end %g is above the upper end %g",
                        glcm->range[0], glcm->range[1]);
    for (size_t i = 0; i < glcm->angle_count; i++)
        if (glcm->angles[i] % 45 != 0)
            return complain(complaint, "angles", "%d has to be 0, 45, 90 or 135", glcm->angles[i]);
    return check_offsets(glcm, complaint) &&
           check_twice("distances", glcm->distances, glcm->distance_count, complaint) &&
           check_twice("angles", glcm->angles, glcm->angle_count, complaint);
}

/* The threshold is compared as a whole number of millionths. */
static bool
has_six_decimals(double value)
{
    double millionths = value * 1e6;
    return fabs(millionths - round(millionths)) < 1e-6;
}

bool
check_texture(const void *object, struct option_complaint *complaint)
{
    const struct conf_texture *texture = object;
    if (!texture->first_order && !texture->glcm && !texture->patterns)
        return complain(complaint, "first_order",
                        "nothing is left to measure: make it true, or give glcm or patterns");
    if (!has_six_decimals(texture->tlbap_threshold))
        return complain(complaint, "tlbap_threshold",
                        "%.17g has more than six decimals: round it to six",
                        texture->tlbap_threshold);
    return true;
}

/* What the results say has to be measured, and what a report refers to has to be written. */
static bool
check_results(const struct conf_pipeline *pipeline, struct option_complaint *complaint)
{
    const struct conf_texture *texture = pipeline->texture;
    if ((pipeline->results & CONF_RESULT_PMAP) && !(texture && texture->patterns))
        return complain(complaint, "results",
                        "\"pmap\" needs patterns: name them in texture.patterns");
    if (!(pipeline->results & CONF_RESULT_SR))
        return true;
    if (!texture || !(texture->first_order || texture->glcm))
        return complain(complaint, "results",
                        "\"sr\" needs measurements: give texture first_order or glcm");
    if ((texture->regions & CONF_SEGMENTS) && !(pipeline->results & CONF_RESULT_SEG))
        return complain(complaint, "results",
                        "\"sr\" refers to the segments in \"seg\": add \"seg\", or measure "
                        "texture.regions = [ \"volume\" ] only");
    return true;
}

static bool
check_methods(const struct conf_pipeline *pipeline, struct option_complaint *complaint)
{
    size_t fuzzy = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        fuzzy += pipeline->segments[i].method == CONF_FUZZY;
    if ((pipeline->results & CONF_RESULT_CODES) && fuzzy == pipeline->segment_count)
        return complain(complaint, "results",
                        "\"codes\" are those of level sets, and the pipeline has none");
    if (pipeline->relative_connectedness && fuzzy < 2)
        return complain(complaint, "relative_connectedness",
                        "needs two segments or more with method = \"fuzzy-connectedness\"");
    return true;
}

static bool
check_from(const struct conf_pipeline *pipeline, struct option_complaint *complaint)
{
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const char *from = pipeline->segments[i].from;
        size_t j = 0;
        while (from && j < i && strcmp(pipeline->segments[j].label, from) != 0)
            j++;
        if (!from || (j < i && pipeline->segments[j].method == CONF_FUZZY))
            continue;
        char option[64];
        snprintf(option, sizeof(option), "segments.[%zu].from", i);
        return complain(complaint, option,
                        "there is no earlier segment \"%s\" with method = \"fuzzy-connectedness\"",
                        from);
    }
    return true;
}

bool
check_pipeline(const void *object, struct option_complaint *complaint)
{
    const struct conf_pipeline *pipeline = object;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(pipeline->segments[i].label, pipeline->segments[j].label) == 0) {
                char option[64];
                snprintf(option, sizeof(option), "segments.[%zu].label", i);
                return complain(complaint, option, "\"%s\" is the label of an earlier segment",
                                pipeline->segments[i].label);
            }
    return check_methods(pipeline, complaint) && check_from(pipeline, complaint) &&
           check_results(pipeline, complaint);
}

/* A title that two rows had would have two pipelines. */
static bool
check_titles(const struct conf_dicom *dicom, struct option_complaint *complaint)
{
    for (size_t i = 0; i < dicom->title_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(dicom->titles[i].ae_title, dicom->titles[j].ae_title) == 0) {
                char option[64];
                snprintf(option, sizeof(option), "titles.[%zu].ae_title", i);
                return complain(complaint, option, "\"%s\" is an earlier title",
                                dicom->titles[i].ae_title);
            }
    return true;
}

static bool
check_tls(const struct conf_dicom *dicom, struct option_complaint *complaint)
{
    const struct conf_tls *tls = &dicom->tls;
    if (!tls->certificate != !tls->key)
        return complain(complaint, "tls", "certificate and key go together");
    if (dicom->tls_port == 0)
        return true;
    if (!tls->certificate)
        return complain(complaint, "tls_port", "needs tls.certificate and tls.key");
    if (tls->require_peer && !tls->ca)
        return complain(complaint, "tls_port", "needs tls.ca, or tls.require_peer = false");
    return true;
}

static bool
check_peers(const struct conf_dicom *dicom, struct option_complaint *complaint)
{
    for (size_t i = 0; i < dicom->peer_count; i++)
        if (dicom->peers[i].certificate && dicom->tls_port == 0) {
            char option[64];
            snprintf(option, sizeof(option), "peers.[%zu].certificate", i);
            return complain(complaint, option, "is asked for, but there is no tls_port");
        }
    return true;
}

bool
check_dicom(const void *object, struct option_complaint *complaint)
{
    const struct conf_dicom *dicom = object;
    if (dicom->port != 0 && dicom->port == dicom->tls_port)
        return complain(complaint, "tls_port", "%d is the port without TLS", dicom->tls_port);
    return check_titles(dicom, complaint) && check_tls(dicom, complaint) &&
           check_peers(dicom, complaint);
}

static bool
check_destination_folder(const struct conf_destination *destination,
                         struct option_complaint *complaint)
{
    const struct {
        const char *option;
        bool given;
    } of_an_ae[] = {
        {"ae_title", destination->ae_title != NULL},
        {"host", destination->host != NULL},
        {"port", destination->port != 0},
        {"calling_ae_title", destination->calling_ae_title != NULL},
        {"tls", destination->tls},
        {"commit", destination->commit},
        {"fallback", destination->fallback != NULL},
    };

    for (size_t i = 0; i < sizeof(of_an_ae) / sizeof(of_an_ae[0]); i++)
        if (of_an_ae[i].given)
            return complain(complaint, of_an_ae[i].option, "is not used with folder");
    return true;
}

bool
check_destination(const void *object, struct option_complaint *complaint)
{
    const struct conf_destination *destination = object;
    if (strcmp(destination->name, CONF_SENDER) == 0)
        return complain(complaint, "name", "\"%s\" stands for whoever sent a series", CONF_SENDER);
    if (destination->folder)
        return check_destination_folder(destination, complaint);
    if (!destination->ae_title || !destination->host || destination->port == 0)
        return complain(complaint, "name", "needs ae_title, host and port, or folder");
    if (strchr(destination->host, ':'))
        return complain(complaint, "host", "has to be a name or an IPv4 address");
    return true;
}

bool
check_match(const void *object, struct option_complaint *complaint)
{
    const struct conf_rule *rule = object;
    if (rule->max_slices && rule->max_slices < rule->min_slices)
        return complain(complaint, "max_slices", "%d is below min_slices, %d", rule->max_slices,
                        rule->min_slices);
    return true;
}

static bool
check_pipeline_names(const struct conf *conf, struct option_complaint *complaint)
{
    for (size_t i = 0; i < conf->pipeline_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(conf->pipelines[i].name, conf->pipelines[j].name) == 0) {
                char option[64];
                snprintf(option, sizeof(option), "pipelines.[%zu].name", i);
                return complain(complaint, option, "\"%s\" is the name of an earlier pipeline",
                                conf->pipelines[i].name);
            }
    return true;
}

static bool
check_rules(const struct conf *conf, struct option_complaint *complaint)
{
    for (size_t i = 0; i < conf->rule_count; i++)
        if (!conf_find_pipeline(conf, conf->rules[i].pipeline)) {
            char option[64];
            snprintf(option, sizeof(option), "rules.[%zu].pipeline", i);
            return complain(complaint, option, "there is no pipeline named \"%s\"",
                            conf->rules[i].pipeline);
        }
    return true;
}

static bool
check_title_pipelines(const struct conf *conf, struct option_complaint *complaint)
{
    for (size_t i = 0; i < conf->dicom.title_count; i++) {
        const char *pipeline = conf->dicom.titles[i].pipeline;
        if (pipeline && !conf_find_pipeline(conf, pipeline)) {
            char option[64];
            snprintf(option, sizeof(option), "dicom.titles.[%zu].pipeline", i);
            return complain(complaint, option, "there is no pipeline named \"%s\"", pipeline);
        }
    }
    return true;
}

static bool
check_deliver(const struct conf *conf, size_t i, struct option_complaint *complaint)
{
    const struct conf_pipeline *pipeline = &conf->pipelines[i];
    char option[64];
    for (size_t j = 0; j < pipeline->deliver_count; j++) {
        const char *name = pipeline->deliver[j];
        snprintf(option, sizeof(option), "pipelines.[%zu].deliver", i);
        if (strcmp(name, CONF_SENDER) != 0 && !conf_find_destination(conf, name))
            return complain(complaint, option, "there is no destination named \"%s\"", name);
        for (size_t k = 0; k < j; k++)
            if (strcmp(name, pipeline->deliver[k]) == 0)
                return complain(complaint, option, "\"%s\" stands twice", name);
    }
    return true;
}

/* Its own name, and fallbacks that end: a result must not go round in a circle. */
static bool
check_destination_names(const struct conf *conf, size_t i, struct option_complaint *complaint)
{
    const struct conf_destination *destination = &conf->destinations[i];
    char option[64];
    snprintf(option, sizeof(option), "destinations.[%zu].name", i);
    if (conf_find_destination(conf, destination->name) != destination)
        return complain(complaint, option, "\"%s\" is the name of an earlier destination",
                        destination->name);
    snprintf(option, sizeof(option), "destinations.[%zu].fallback", i);
    const struct conf_destination *at = destination;
    for (size_t steps = 0; at->fallback; steps++) {
        const struct conf_destination *next = conf_find_destination(conf, at->fallback);
        if (!next)
            return complain(complaint, option, "there is no destination named \"%s\"",
                            at->fallback);
        if (steps == conf->destination_count)
            return complain(complaint, option, "leads round in a circle");
        at = next;
    }
    return true;
}

/* What is left of `path` below `folder`: "" when they are the same, NULL when it is elsewhere. */
static const char *
path_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0)
        return NULL;
    if (length > 0 && folder[length - 1] == '/')
        return path + length;
    if (path[length] == '\0')
        return path + length;
    return path[length] == '/' ? path + length + 1 : NULL;
}

static bool
is_own_folder(const char *below_root)
{
    size_t length = strcspn(below_root, "/");
    if (length == 0)
        return true;
    for (size_t i = 0; i < sizeof(own_folders) / sizeof(own_folders[0]); i++)
        if (strlen(own_folders[i]) == length && strncmp(own_folders[i], below_root, length) == 0)
            return true;
    return false;
}

/* ".." would make two names of one folder look apart. */
static bool
climbs(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")); at++)
        if (at[3] == '/' || at[3] == '\0')
            return true;
    return false;
}

/* Noctule's own files must neither be taken in again nor be mixed with originals. */
static bool
check_apart_from_root(const struct conf *conf, const char *path, const char *option,
                      struct option_complaint *complaint)
{
    if (climbs(path))
        return complain(complaint, option, "holds \"..\"");
    const char *below = path_below(path, conf->root);
    if (path_below(conf->root, path) || (below && is_own_folder(below)))
        return complain(complaint, option, "%s is, or holds, a folder of Noctule's own", path);
    return true;
}

static bool
check_inbox_paths(const struct conf *conf, size_t i, struct option_complaint *complaint)
{
    const struct conf_inbox *inbox = &conf->inboxes[i];
    char path_option[64], move_option[64];
    snprintf(path_option, sizeof(path_option), "inbox.[%zu].path", i);
    snprintf(move_option, sizeof(move_option), "inbox.[%zu].move_to", i);
    if (!check_apart_from_root(conf, inbox->path, path_option, complaint))
        return false;
    if (inbox->move_to && !check_apart_from_root(conf, inbox->move_to, move_option, complaint))
        return false;
    for (size_t j = 0; j < conf->inbox_count; j++) {
        const struct conf_inbox *other = &conf->inboxes[j];
        if (j != i && path_below(inbox->path, other->path))
            return complain(complaint, path_option, "%s is within another inbox", inbox->path);
        if (inbox->move_to && path_below(inbox->move_to, other->path))
            return complain(complaint, move_option, "%s is within an inbox", inbox->move_to);
    }
    return true;
}

/* Results must not be taken in again. */
static bool
check_destination_folders(const struct conf *conf, size_t i, struct option_complaint *complaint)
{
    const char *folder = conf->destinations[i].folder;
    char option[64];
    snprintf(option, sizeof(option), "destinations.[%zu].folder", i);
    if (!folder)
        return true;
    if (!check_apart_from_root(conf, folder, option, complaint))
        return false;
    for (size_t j = 0; j < conf->inbox_count; j++)
        if (path_below(folder, conf->inboxes[j].path))
            return complain(complaint, option, "%s is within an inbox", folder);
    return true;
}

static bool
check_destinations(const struct conf *conf, struct option_complaint *complaint)
{
    for (size_t i = 0; i < conf->destination_count; i++) {
        if (!check_destination_names(conf, i, complaint) ||
            !check_destination_folders(conf, i, complaint))
            return false;
        if (conf->destinations[i].tls && !conf->dicom.tls.ca) {
            char option[64];
            snprintf(option, sizeof(option), "destinations.[%zu].tls", i);
            return complain(complaint, option, "needs dicom.tls.ca");
        }
    }
    return true;
}

bool
check_conf(const void *object, struct option_complaint *complaint)
{
    const struct conf *conf = object;
    for (size_t i = 0; i < conf->inbox_count; i++)
        if (!check_inbox_paths(conf, i, complaint))
            return false;
    for (size_t i = 0; i < conf->pipeline_count; i++)
        if (!check_deliver(conf, i, complaint))
            return false;
    return check_pipeline_names(conf, complaint) && check_rules(conf, complaint) &&
           check_title_pipelines(conf, complaint) && check_destinations(conf, complaint);
}
