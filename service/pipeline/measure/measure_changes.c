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
    int days;
    bool is_there, is_same;
};

static int
prior_read(const struct job_spec *spec, struct prior *prior)
{
    int64_t job;
    char date[16], word[8];
    *prior = (struct prior){.is_there = spec->prior != NULL};
    if (!spec->prior)
        return 0;
    if (sscanf(spec->prior, "%" SCNd64 " %d %15s %7s", &job, &prior->days, date, word) != 4)
        return -EBADMSG;
    prior->is_same = strcmp(word, "same") == 0;
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

/* Finds the earlier value of a segment. Returns false if there is none, or several. */
static bool
prior_value(const struct job_spec *spec, const char *label, const char *name, const char *unit, double *value)
{
    size_t found = 0;
    for (size_t i = 0; i < spec->prior_value_count; i++) {
        const char *at = spec->prior_values[i];
        const bool is_label = field_is(&at, label), is_name = field_is(&at, name), is_unit = field_is(&at, unit);
        if (!is_label || !is_name || !is_unit)
            continue;
        *value = strtod(at, NULL);
        found++;
    }
    return found == 1;
}

/* Adds the two changes of a value of a segment. */
static int
changes_add(const struct changes_request *request, const struct prior *prior, const struct feature *now,
            struct feature_set *features)
{
    double before = NAN;
    enum feature_missing missing = !prior->is_there  ? FEATURE_NO_PRIOR
                                   : !prior->is_same ? FEATURE_PRIOR_DIFFERS
                                                     : FEATURE_PRESENT;
    const char *reason = now->missing_reason;
    if (missing == FEATURE_PRESENT && !prior_value(request->spec, now->label, now->name, now->unit, &before))
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
                                 .missing_reason = prior->is_there ? "" : feature_missing_names[FEATURE_NO_PRIOR],
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
    for (size_t i = 0; rc == 0 && i < request->pipeline->segment_count; i++)
        if (!request->pipeline->segments[i].hidden)
            rc = changes_of_segment(request, &prior, i, count, features);
    return rc;
}
