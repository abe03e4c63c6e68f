/* measure_changes.c - see measure_changes.h. */
#include "service/pipeline/measure/measure_changes.h"

#include "base/texture_options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct prior {
    int64_t job;
    int days;
    bool is_there, is_same;
    bool is_missed;  /* an archive has it, or may have it, but it did not come in time */
    bool is_other;   /* its segment of that name is another finding */
    const char *uid; /* the Tracking UID by which it was found; NULL: by the label */
};

static int
prior_read(const struct job_spec *spec, struct prior *prior)
{
    char date[16], word[8];
    *prior = (struct prior){.is_there = spec->prior != NULL};
    if (!spec->prior)
        return 0;
    if (sscanf(spec->prior, "%" SCNd64 " %d %15s %7s", &prior->job, &prior->days, date, word) != 4)
        return -EBADMSG;
    prior->is_same = strcmp(word, "same") == 0;
    prior->is_missed = strcmp(word, "missed") == 0;
    prior->is_there = !prior->is_missed;
    return 0;
}

/* Takes the next of the tab-separated fields of a text. */
static bool
field_is(const char **at, const char *text)
{
    const size_t length = strcspn(*at, "\t");
    const bool is = strlen(text) == length && strncmp(*at, text, length) == 0;
    *at += length + ((*at)[length] != '\0');
    return is;
}

/* Reads a line of a segment with this Tracking UID (NULL: any). Sets `rest` to its label, name, unit and value. */
static bool
tracked_read(const char *line, const char *uid, struct prior *prior, const char **rest)
{
    char word[8];
    int used = 0;
    const bool is = field_is(&line, uid ? uid : "");
    if ((uid && !is) || sscanf(line, "%" SCNd64 "\t%d\t%7[a-z]\t%n", &prior->job, &prior->days, word, &used) != 3)
        return false;
    prior->is_there = true;
    prior->is_same = strcmp(word, "same") == 0;
    prior->uid = uid;
    *rest = line + used;
    return used > 0;
}

/* Chooses the earlier segment: the latest one with the same Tracking UID, or else the one of the same name, unless that has
 * another Tracking UID. */
static struct prior
prior_of_segment(const struct job_spec *spec, const struct prior *of_job, const char *uid, const char *label)
{
    struct prior found = {0}, prior = *of_job;
    const char *rest;
    for (size_t i = 0; *uid && i < spec->tracked_count; i++)
        if (tracked_read(spec->tracked[i], uid, &found, &rest))
            return found;
    for (size_t i = 0; *uid && i < spec->tracked_count; i++)
        if (tracked_read(spec->tracked[i], NULL, &found, &rest) && found.job == of_job->job && field_is(&rest, label))
            prior.is_other = true;
    return prior;
}

/* Finds the earlier value of a segment. Returns false if there is none, or several. */
static bool
prior_value(const struct job_spec *spec, const struct prior *prior, const char *label, const char *name,
            const char *unit, double *value)
{
    size_t found = 0;
    char *const *lines = prior->uid ? spec->tracked : spec->prior_values;
    const size_t count = prior->uid ? spec->tracked_count : spec->prior_value_count;
    for (size_t i = 0; i < count; i++) {
        struct prior other;
        const char *at = lines[i];
        if (prior->uid && (!tracked_read(lines[i], prior->uid, &other, &at) || other.job != prior->job))
            continue;
        const bool is_label = field_is(&at, label) || prior->uid, is_name = field_is(&at, name),
                   is_unit = field_is(&at, unit);
        if (!is_label || !is_name || !is_unit)
            continue;
        *value = strtod(at, NULL);
        found++;
    }
    return found == 1;
}

/* Returns the reason why there is no earlier study. */
static enum feature_missing
prior_missing(const struct prior *prior)
{
    return prior->is_there ? FEATURE_PRESENT : prior->is_missed ? FEATURE_PRIOR_NOT_READY : FEATURE_NO_PRIOR;
}

/* Adds the two changes of a value of a segment. */
static int
changes_add(const struct changes_request *request, const struct prior *prior, const struct feature *now,
            struct feature_set *features)
{
    double before = NAN;
    enum feature_missing missing = !prior->is_there  ? prior_missing(prior)
                                   : prior->is_other ? FEATURE_PRIOR_LACKS_IT
                                   : !prior->is_same ? FEATURE_PRIOR_DIFFERS
                                                     : FEATURE_PRESENT;
    const char *reason = now->missing_reason;
    if (missing == FEATURE_PRESENT && !prior_value(request->spec, prior, now->label, now->name, now->unit, &before))
        missing = FEATURE_PRIOR_LACKS_IT;
    if (!*reason)
        reason = feature_missing_names[missing];
    const double change = now->value - before;
    char names[2][64], meanings[2][96];
    snprintf(names[0], sizeof names[0], "%s_change", now->name);
    snprintf(names[1], sizeof names[1], "%s_relative_change", now->name);
    snprintf(meanings[0], sizeof meanings[0], "Change of %s", now->meaning);
    snprintf(meanings[1], sizeof meanings[1], "Relative change of %s", now->meaning);
    struct feature feature = {.segment = now->segment,
                              .label = now->label,
                              .family = "change",
                              .name = names[0],
                              .meaning = meanings[0],
                              .ibsi = "",
                              .value = *reason ? 0 : change,
                              .missing_reason = reason,
                              .unit = now->unit,
                              .settings = ""};
    const int rc = feature_set_add(features, &feature);
    if (rc)
        return rc;
    feature.name = names[1];
    feature.meaning = meanings[1];
    feature.unit = "%";
    if (!*reason && before == 0)
        feature.missing_reason = feature_missing_names[FEATURE_DIVISION_BY_ZERO];
    feature.value = *feature.missing_reason ? 0 : 100 * change / fabs(before);
    return feature_set_add(features, &feature);
}

/* Adds the volume's changes, those of the quantities, and the days between the studies. */
static int
changes_of_segment(const struct changes_request *request, const struct prior *prior, size_t segment,
                   size_t quantity_count, struct feature_set *features)
{
    const double *spacing = request->spacing;
    const struct feature volume = {
        .segment = conf_segment_number(request->pipeline, segment),
        .label = request->pipeline->segments[segment].label,
        .name = "volume",
        .meaning = "Volume",
        .unit = "ml",
        .value = spacing ? (double)request->masks[segment].voxels * spacing[0] * spacing[1] * spacing[2] / 1000 : 0,
        .missing_reason = "",
    };
    const struct feature days = {.segment = volume.segment,
                                 .label = volume.label,
                                 .family = "change",
                                 .name = "days_since_prior",
                                 .meaning = "Days since the prior study",
                                 .ibsi = "",
                                 .value = prior->days,
                                 .missing_reason = feature_missing_names[prior_missing(prior)],
                                 .unit = "d",
                                 .settings = ""};
    int rc = feature_set_add(features, &days);
    if (rc == 0 && spacing)
        rc = changes_add(request, prior, &volume, features);
    for (size_t i = 0; rc == 0 && i < quantity_count; i++) {
        const struct feature now = features->items[i]; /* the set may move */
        if (now.segment == volume.segment && strcmp(now.family, "quantity") == 0)
            rc = changes_add(request, prior, &now, features);
    }
    return rc;
}

int
changes_measure(const struct changes_request *request, struct feature_set *features)
{
    const size_t count = features->count;
    struct prior prior;
    int rc = prior_read(request->spec, &prior);
    for (size_t i = 0; rc == 0 && i < request->pipeline->segment_count; i++) {
        struct pipeline_segment *segment = &request->segments[i];
        if (request->pipeline->segments[i].hidden)
            continue;
        const struct prior own = prior_of_segment(
            request->spec, &prior, segment->object.changed ? "" : segment->object.tracking_uid, segment->label);
        segment->prior = own.uid ? own.job : 0;
        rc = changes_of_segment(request, &own, i, count, features);
    }
    return rc;
}
