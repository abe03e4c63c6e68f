/* compare_print.c - see compare_case.h. */
#include "service/cli/compare/compare_case.h"

#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Measures of all cases of one pair of regions. */
struct compare_summary {
    size_t cases;
    double median_dice, lowest_dice;
    double median_distance_95, highest_distance_95;
    double mean_wrong_share, highest_wrong_share;
    double mean_bias_ml, sd_bias_ml; /* sd_bias_ml: of at least two cases, else NAN */
};

/* ------------------------------------------------------------------------------- summary ---- */

static bool
compare_is_like(const struct compare_row *row, const struct compare_row *like)
{
    return strcmp(row->regions[0], like->regions[0]) == 0 && strcmp(row->regions[1], like->regions[1]) == 0;
}

static int
compare_doubles(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double
compare_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count == 0 ? NAN : (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Summarizes the rows without an error whose regions have the same names as this one. Returns 0 or -ENOMEM. */
static int
compare_summarize(const struct compare_rows *rows, const struct compare_row *like, struct compare_summary *summary)
{
    double *dice = calloc(rows->count + 1, sizeof *dice), *distance = calloc(rows->count + 1, sizeof *distance);
    double sum = 0, squares = 0, shares = 0;
    *summary = (struct compare_summary){.lowest_dice = NAN, .highest_distance_95 = NAN, .highest_wrong_share = NAN};
    for (size_t i = 0; i < rows->count && dice && distance; i++) {
        const struct agreement *agreement = &rows->items[i].agreement;
        if (rows->items[i].error.code != CODE_NONE || !compare_is_like(&rows->items[i], like) || isnan(agreement->dice))
            continue;
        dice[summary->cases] = agreement->dice;
        distance[summary->cases++] = agreement->distance_95;
        sum += agreement->bias_ml;
        shares += agreement->wrong_share;
        summary->highest_wrong_share = fmax(summary->highest_wrong_share, agreement->wrong_share);
        summary->lowest_dice = fmin(summary->lowest_dice, agreement->dice);
        summary->highest_distance_95 = fmax(summary->highest_distance_95, agreement->distance_95);
    }
    const double count = (double)summary->cases;
    summary->mean_bias_ml = sum / count;
    summary->mean_wrong_share = shares / count;
    for (size_t i = 0; i < rows->count && dice && distance; i++) {
        const double off = rows->items[i].agreement.bias_ml - summary->mean_bias_ml;
        if (rows->items[i].error.code == CODE_NONE && compare_is_like(&rows->items[i], like) &&
            !isnan(rows->items[i].agreement.dice))
            squares += off * off;
    }
    summary->sd_bias_ml = summary->cases > 1 ? sqrt(squares / (count - 1)) : NAN;
    const bool able = dice && distance;
    if (able) {
        summary->median_dice = compare_median(dice, summary->cases);
        summary->median_distance_95 = compare_median(distance, summary->cases);
    }
    free(dice);
    free(distance);
    return able ? 0 : -ENOMEM;
}

/* Calls `take` with the summary of each pair of regions that has several rows. */
static void
compare_each_summary(const struct compare_rows *rows,
                     void (*take)(void *context, const struct compare_row *like, const struct compare_summary *summary),
                     void *context)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct compare_summary summary;
        size_t before = 0, all = 0;
        for (size_t k = 0; k < rows->count; k++) {
            const bool like = compare_is_like(&rows->items[k], &rows->items[i]);
            before += like && k < i;
            all += like;
        }
        if (before == 0 && all > 1 && compare_summarize(rows, &rows->items[i], &summary) == 0)
            take(context, &rows->items[i], &summary);
    }
}

/* ---------------------------------------------------------------------------------- JSON ---- */

void
compare_put_measures(struct json *json, const struct compare_row *row)
{
    const struct agreement *agreement = &row->agreement;
    json_string(json, "region", row->regions[AGREEMENT_FOUND]);
    json_string(json, "reference_region", row->regions[AGREEMENT_REFERENCE]);
    json_integer(json, "voxels", agreement->voxels[AGREEMENT_FOUND]);
    json_integer(json, "reference_voxels", agreement->voxels[AGREEMENT_REFERENCE]);
    json_integer(json, "common_voxels", agreement->common);
    json_integer(json, "wrong_voxels", agreement->wrong);
    json_exact(json, "wrong_share", agreement->wrong_share);
    json_exact(json, "ml", agreement->ml[AGREEMENT_FOUND]);
    json_exact(json, "reference_ml", agreement->ml[AGREEMENT_REFERENCE]);
    json_exact(json, "dice", agreement->dice);
    json_exact(json, "volume_ratio", agreement->ratio);
    json_exact(json, "bias_ml", agreement->bias_ml);
    json_exact(json, "distance_95_mm", agreement->distance_95);
    json_exact(json, "surface_dice", agreement->surface_dice);
}

static void
compare_put_summary(void *context, const struct compare_row *like, const struct compare_summary *summary)
{
    struct json *json = context;
    json_begin_object(json, NULL);
    json_string(json, "region", like->regions[AGREEMENT_FOUND]);
    json_string(json, "reference_region", like->regions[AGREEMENT_REFERENCE]);
    json_integer(json, "cases", (int64_t)summary->cases);
    json_exact(json, "median_dice", summary->median_dice);
    json_exact(json, "lowest_dice", summary->lowest_dice);
    json_exact(json, "median_distance_95_mm", summary->median_distance_95);
    json_exact(json, "highest_distance_95_mm", summary->highest_distance_95);
    json_exact(json, "mean_wrong_share", summary->mean_wrong_share);
    json_exact(json, "highest_wrong_share", summary->highest_wrong_share);
    json_exact(json, "mean_bias_ml", summary->mean_bias_ml);
    json_exact(json, "sd_bias_ml", summary->sd_bias_ml);
    json_end_object(json);
}

static void
compare_print_json(const struct compare_rows *rows, double tolerance_mm)
{
    struct json json = {.out = stdout};
    json_begin_object(&json, NULL);
    json_exact(&json, "tolerance_mm", tolerance_mm);
    json_begin_array(&json, "regions");
    for (size_t i = 0; i < rows->count; i++) {
        const struct compare_row *row = &rows->items[i];
        json_begin_object(&json, NULL);
        json_string(&json, "series_uid", row->series_uid);
        json_string(&json, "found", row->paths[AGREEMENT_FOUND]);
        json_string(&json, "reference", row->paths[AGREEMENT_REFERENCE]);
        if (row->error.code == CODE_NONE) {
            compare_put_measures(&json, row);
        } else {
            json_string(&json, "region", row->regions[AGREEMENT_FOUND]);
            json_string(&json, "reference_region", row->regions[AGREEMENT_REFERENCE]);
            json_error(&json, &row->error);
        }
        json_end_object(&json);
    }
    json_end_array(&json);
    json_begin_array(&json, "summary");
    compare_each_summary(rows, compare_put_summary, &json);
    json_end_array(&json);
    json_end_object(&json);
}

/* ---------------------------------------------------------------------------------- text ---- */

static void
compare_print_row(const struct compare_row *row, double tolerance_mm)
{
    const struct agreement *agreement = &row->agreement;
    const char *path = row->paths[AGREEMENT_FOUND] ? row->paths[AGREEMENT_FOUND] : "";
    const char *name = text_base_name(path), *folder = name;
    for (int slashes = 0; folder > path && slashes < 2; slashes += folder[-1] == '/', folder -= slashes < 2)
        ;
    const bool same = strcmp(row->regions[0], row->regions[1]) == 0;
    printf("%s: %s%s%s\n", folder, row->regions[0], same ? "" : " with ", same ? "" : row->regions[1]);
    if (row->error.code != CODE_NONE) {
        printf("  %s: %s\n", code_name(row->error.code), row->error.message);
        return;
    }
    if (isnan(agreement->dice)) {
        puts("  both regions are empty");
        return;
    }
    printf("  Dice %.4f, surface Dice %.4f (%.4g mm), 95 %% surface distance %.2f mm\n", agreement->dice,
           agreement->surface_dice, tolerance_mm, agreement->distance_95);
    printf("  %.2f ml, reference %.2f ml, ratio %.4f, bias %+.2f ml\n", agreement->ml[AGREEMENT_FOUND],
           agreement->ml[AGREEMENT_REFERENCE], agreement->ratio, agreement->bias_ml);
    printf("  %lld wrong voxels, %.4g %% of the volume\n", (long long)agreement->wrong, 100 * agreement->wrong_share);
}

static void
compare_print_summary(void *context, const struct compare_row *like, const struct compare_summary *summary)
{
    const bool same = strcmp(like->regions[0], like->regions[1]) == 0;
    (void)context;
    printf("%s%s%s, %zu cases\n", like->regions[0], same ? "" : " with ", same ? "" : like->regions[1], summary->cases);
    printf("  Dice median %.4f, lowest %.4f; 95 %% surface distance median %.2f mm, highest %.2f mm\n",
           summary->median_dice, summary->lowest_dice, summary->median_distance_95, summary->highest_distance_95);
    printf("  bias %+.2f ml, standard deviation %.2f ml\n", summary->mean_bias_ml, summary->sd_bias_ml);
    printf("  wrong voxels mean %.4g %%, highest %.4g %% of the volume\n", 100 * summary->mean_wrong_share,
           100 * summary->highest_wrong_share);
}

void
compare_print(const struct compare_rows *rows, double tolerance_mm, bool json)
{
    if (json) {
        compare_print_json(rows, tolerance_mm);
        return;
    }
    for (size_t i = 0; i < rows->count; i++)
        compare_print_row(&rows->items[i], tolerance_mm);
    compare_each_summary(rows, compare_print_summary, NULL);
}
