/* input_sorted.c - see input.h. */
#include "service/cli/input/input.h"

#include "base/text.h"
#include "service/common/series_size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
input_sorted_is_other(const struct error *error)
{
    const char *suffix = strrchr(text_base_name(error->file[0]), '.');
    if (error->code == CODE_NOT_DICOM)
        return !suffix || strcasecmp(suffix, ".dcm") != 0;
    return error->code == CODE_OWN_RESULT || error->code == CODE_SOP_CLASS_UNSUPPORTED ||
           error->code == CODE_PIXELS_UNSUPPORTED;
}

/* -------------------------------------------------------------------------------- series ---- */

static const char *
series_uid(const struct sorted_series *series)
{
    return series->headers.instances[0]->series_uid;
}

static int
split_by_series(struct sorted *sorted, const struct headers *headers)
{
    for (size_t i = 0; i < headers->count; i++) {
        struct dicom_instance *instance = headers->instances[i];
        size_t at = 0;
        if (!instance)
            continue;
        while (at < sorted->count && strcmp(series_uid(&sorted->series[at]), instance->series_uid) != 0)
            at++;
        if (at == sorted->count) {
            const size_t room = headers->count - i;
            struct sorted_series *grown = reallocarray(sorted->series, at + 1, sizeof *grown);
            if (!grown)
                return -ENOMEM;
            sorted->series = grown;
            sorted->count++;
            grown[at] = (struct sorted_series){.headers = {.instances = calloc(room, sizeof *grown->headers.instances),
                                                           .rc = calloc(room, sizeof *grown->headers.rc)},
                                               .paths = calloc(room, sizeof *grown->paths)};
        }
        struct sorted_series *series = &sorted->series[at];
        if (!series->headers.instances || !series->headers.rc || !series->paths)
            return -ENOMEM;
        series->paths[series->headers.count] = instance->path;
        series->headers.instances[series->headers.count++] = instance;
    }
    if (sorted->count > 0)
        sorted->series[0].headers.seconds = headers->seconds;
    return 0;
}

/* ------------------------------------------------------------------------------- damages ---- */

static bool
sorted_has_neighbour(const struct sorted_series *series, const char *path)
{
    const size_t length = (size_t)(text_base_name(path) - path);
    for (size_t i = 0; i < series->headers.count; i++) {
        const char *other = series->paths[i];
        if ((size_t)(text_base_name(other) - other) == length && strncmp(other, path, length) == 0)
            return true;
    }
    return false;
}

/* Counts an unreadable file as missing in the series of its header. If the header has no series,
 * counts it for all series in the same folder. */
static void
sorted_place_damage(struct sorted *sorted, const char *path, const struct error *error)
{
    struct dicom_identity identity;
    dicom_identify(path, &identity);
    bool placed = false;
    for (size_t i = 0; i < sorted->count; i++) {
        struct sorted_series *series = &sorted->series[i];
        if (identity.series_uid[0] ? strcmp(identity.series_uid, series_uid(series)) != 0
                                   : !sorted_has_neighbour(series, path))
            continue;
        placed = true;
        if (series->damaged++ == 0)
            error_set_files(&series->damage, 0, CODE_INCOMPLETE_SERIES, path, NULL,
                            "%s cannot be used (%s), so the series is incomplete. Send the file "
                            "again, or accept the series without it (--accept-missing).",
                            text_base_name(path), code_name(error->code));
    }
    sorted->orphans += !placed;
}

/* --------------------------------------------------------------------------- duplicates ---- */

static int
compare_sop_instances(const void *left, const void *right, void *context)
{
    const size_t a = *(const size_t *)left, b = *(const size_t *)right;
    struct dicom_instance *const *instances = context;
    const int order = strcmp(instances[a]->sop_instance_uid, instances[b]->sop_instance_uid);
    return order ? order : (a > b) - (a < b);
}

static int
sorted_compare(const char *a, const char *b, enum dicom_likeness *likeness)
{
    const int first = open(a, O_RDONLY | O_CLOEXEC), second = open(b, O_RDONLY | O_CLOEXEC);
    int rc = first < 0 || second < 0 ? -errno : dicom_compare(first, second, likeness);
    if (first >= 0)
        close(first);
    if (second >= 0)
        close(second);
    return rc;
}

/* Checks two files with the same SOP Instance UID. Skips the second (sets it to NULL) if it is
 * equal, else refuses the series. */
static int
sorted_check_duplicate(struct sorted_series *series, size_t first, size_t second, struct input_skipped *skipped)
{
    char *const *paths = series->paths;
    enum dicom_likeness likeness;
    int rc = sorted_compare(paths[first], paths[second], &likeness);
    if (rc)
        return rc;
    if (likeness != DICOM_SAME && series->refusal.code == CODE_NONE)
        error_set_files(&series->refusal, 0, CODE_DUPLICATE_UID_DIFFERENT, paths[first], paths[second],
                        "%s and %s have the same SOP Instance UID and %s. Remove the wrong file.",
                        text_base_name(paths[first]), text_base_name(paths[second]),
                        likeness == DICOM_RECODED ? "different transfer syntaxes" : "different contents");
    if (likeness != DICOM_SAME)
        return 0;
    struct error duplicate;
    error_set(&duplicate, 0, CODE_DUPLICATE_FILE, "%s is the same as %s.", text_base_name(paths[second]), paths[first]);
    series->headers.instances[second] = NULL;
    return input_skipped_add(skipped, paths[second], duplicate.code, duplicate.message);
}

/* Removes duplicate files. Different files with the same SOP Instance UID refuse the series. */
static int
sorted_remove_duplicates(struct sorted_series *series, struct input_skipped *skipped)
{
    const size_t count = series->headers.count;
    struct dicom_instance **instances = series->headers.instances;
    size_t *order = calloc(count, sizeof *order), kept = 0;
    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, compare_sop_instances, instances);
    int rc = 0;
    for (size_t i = 1, first = 0; i < count && rc == 0; i++) {
        if (strcmp(instances[order[first]]->sop_instance_uid, instances[order[i]]->sop_instance_uid) == 0)
            rc = sorted_check_duplicate(series, order[first], order[i], skipped);
        else
            first = i;
    }
    free(order);
    for (size_t i = 0; i < count; i++)
        if (instances[i]) {
            series->paths[kept] = series->paths[i];
            instances[kept++] = instances[i];
        }
    series->headers.count = kept;
    return rc;
}

/* -------------------------------------------------------------------------- entry points ---- */

int
input_sorted_make(const struct headers *headers, char *const *paths, const struct conf_series *series_limits,
                  struct input_skipped *skipped, struct sorted *sorted)
{
    *sorted = (struct sorted){0};
    int rc = split_by_series(sorted, headers);
    for (size_t i = 0; i < headers->count && rc == 0; i++)
        if (headers->rc[i] && !input_sorted_is_other(&headers->errors[i]))
            sorted_place_damage(sorted, paths[i], &headers->errors[i]);
    for (size_t i = 0; i < sorted->count && rc == 0; i++) {
        struct sorted_series *series = &sorted->series[i];
        int64_t bytes = 0;
        rc = sorted_remove_duplicates(series, skipped);
        for (size_t k = 0; k < series->headers.count; k++)
            bytes += series->headers.instances[k]->file_size;
        series_size_check(series_limits, series_uid(series), (int64_t)series->headers.count, bytes, &series->refusal);
    }
    if (rc)
        input_sorted_free(sorted);
    return rc;
}

void
input_sorted_free(struct sorted *sorted)
{
    for (size_t i = 0; i < sorted->count; i++) {
        free(sorted->series[i].headers.instances);
        free(sorted->series[i].headers.rc);
        free(sorted->series[i].paths);
    }
    free(sorted->series);
    *sorted = (struct sorted){0};
}

void
input_sorted_refuse_damaged(const struct sorted_series *series, struct geometry_series *grouped)
{
    for (int32_t i = 0; i < grouped->stack_count && series->damaged > 0; i++) {
        struct geometry_stack *stack = &grouped->stacks[i];
        if (!stack->accepted && stack->error.code != CODE_INCOMPLETE_SERIES)
            continue;
        stack->accepted = false;
        stack->error = series->damage;
    }
}
