#include "service/cli/validate/validate_result.h"

#include "service/cli/compare/compare_case.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------------------- decision ---- */

static bool
validate_same_images(const struct validate_case *a, const struct validate_case *b)
{
    return strcmp(a->images.manufacturer, b->images.manufacturer) == 0 &&
           strcmp(a->images.model, b->images.model) == 0 && strcmp(a->images.kernel, b->images.kernel) == 0 &&
           strcmp(trust_thickness(a->images.slice_mm), trust_thickness(b->images.slice_mm)) == 0;
}

/* Returns whether the case is the first of its patient among the complete ones, in its range or in all. */
static bool
validate_is_first(const struct validate_run *run, size_t number, bool in_range)
{
    const struct validate_case *own = &run->cases[number];
    for (size_t i = 0; i < number; i++) {
        const struct validate_case *other = &run->cases[i];
        if (other->complete && !other->other && strcmp(other->patient, own->patient) == 0 &&
            (!in_range || validate_same_images(other, own)))
            return false;
    }
    return true;
}

static void
validate_count(const struct validate_run *run, struct validate_result *result)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct validate_case *own = &run->cases[i];
        const bool done = strcmp(own->outcome, "DONE") == 0;
        result->wrong += own->wrong;
        result->others += own->other;
        result->others_done += own->other && done;
        if (own->other || !own->complete)
            continue;
        size_t at = 0;
        while (at < result->range_count && !validate_same_images(result->ranges[at].first, own))
            at++;
        struct validate_range *range = &result->ranges[at];
        if (at == result->range_count) {
            *range = (struct validate_range){.first = own, .noise = {NAN, NAN}};
            result->range_count++;
        }
        result->cases++;
        result->done += done;
        result->patients += validate_is_first(run, i, false);
        range->cases++;
        range->done += done;
        range->patients += validate_is_first(run, i, true);
        if (done) {
            range->noise[0] = fmin(range->noise[0], own->images.noise);
            range->noise[1] = fmax(range->noise[1], own->images.noise);
        }
    }
}

int
validate_decide(const struct validate_run *run, struct validate_result *result)
{
    size_t large = 0;
    *result = (struct validate_result){.ranges = calloc(run->count + 1, sizeof *result->ranges)};
    if (!result->ranges)
        return -ENOMEM;
    validate_count(run, result);
    for (size_t i = 0; i < result->range_count; i++)
        large += result->ranges[i].patients >= VALIDATE_RANGE_PATIENTS && result->ranges[i].done > 0;
    const size_t tried = result->cases + result->others;
    result->share_95 = result->wrong > 0 || tried == 0 ? NAN : fmin(1, 3 / (double)tried);
    if (result->wrong > 0)
        snprintf(result->why, sizeof result->why, "%zu results are wrong, but DONE", result->wrong);
    else if (result->patients < VALIDATE_PATIENTS)
        snprintf(result->why, sizeof result->why, "%zu patients with a reference of each segment, %d are needed",
                 result->patients, VALIDATE_PATIENTS);
    else if (large == 0)
        snprintf(result->why, sizeof result->why,
                 "no scanner, kernel and slice thickness has %d patients and a DONE result", VALIDATE_RANGE_PATIENTS);
    result->passed = result->why[0] == '\0';
    return 0;
}

/* ------------------------------------------------------------------------------------ text ---- */

void
validate_print(const struct validate_run *run, const struct validate_result *result, FILE *out)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct validate_case *own = &run->cases[i];
        fprintf(out, "%s: %s%s%s%s\n", own->unit->output, own->outcome, own->wrong ? ", WRONG" : "",
                *own->checks ? ": " : "", own->checks);
        for (size_t k = 0; k < own->rows.count; k++) {
            const struct compare_row *row = &own->rows.items[k];
            if (row->error.code != CODE_NONE)
                fprintf(out, "  %s: %s: %s\n", row->regions[0], code_name(row->error.code), row->error.message);
            else
                fprintf(out, "  %s: Dice %.4f, surface Dice %.4f, 95 %% surface distance %.2f mm, bias %+.2f ml\n",
                        row->regions[0], row->agreement.dice, row->agreement.surface_dice, row->agreement.distance_95,
                        row->agreement.bias_ml);
        }
    }
    for (size_t i = 0; i < result->range_count; i++) {
        const struct validate_range *range = &result->ranges[i];
        const struct trust_images *images = &range->first->images;
        fprintf(out, "%s %s, kernel %s, slices %s: %zu patients%s, %zu of %zu DONE", images->manufacturer,
                images->model, images->kernel, trust_thickness(images->slice_mm), range->patients,
                range->patients < VALIDATE_RANGE_PATIENTS ? " (5 are needed)" : "", range->done, range->cases);
        if (!isnan(range->noise[1]))
            fprintf(out, ", noise %.3g to %.3g HU", range->noise[0], range->noise[1]);
        fputc('\n', out);
    }
    fprintf(out, "%s: %s%s%s\n", run->pipeline->name, result->passed ? "passed" : "not passed",
            result->passed ? "" : ": ", result->why);
    fprintf(out, "%zu patients, %zu of %zu results DONE; %zu of %zu of other regions DONE; %zu wrong and DONE\n",
            result->patients, result->done, result->cases, result->others_done, result->others, result->wrong);
    if (!isnan(result->share_95))
        fprintf(out, "With 95 %% confidence, at most %.1f %% of results are wrong and DONE.\n", 100 * result->share_95);
}

/* ---------------------------------------------------------------------------------- record ---- */

static void
validate_put_case(const struct validate_case *own, struct json *json)
{
    const struct trust_images *images = &own->images;
    json_begin_object(json, NULL);
    json_integer(json, "other", own->other);
    json_integer(json, "complete", own->complete);
    json_string(json, "patient", own->patient);
    json_string(json, "series", own->series);
    json_string(json, "manufacturer", images->manufacturer);
    json_string(json, "model", images->model);
    json_string(json, "kernel", images->kernel);
    json_string(json, "thickness", trust_thickness(images->slice_mm));
    json_exact(json, "slice_mm", images->slice_mm);
    json_exact(json, "noise", images->noise);
    json_string(json, "outcome", own->outcome);
    json_string(json, "checks", own->checks);
    json_integer(json, "wrong", own->wrong);
    json_begin_array(json, "regions");
    for (size_t i = 0; i < own->rows.count; i++) {
        if (own->rows.items[i].error.code != CODE_NONE)
            continue;
        json_begin_object(json, NULL);
        compare_put_measures(json, &own->rows.items[i]);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

int
validate_put_record(const struct validate_run *run, const struct validate_result *result, FILE *out)
{
    struct json json = {.out = out};
    char digest[TRUST_DIGEST];
    const int rc = trust_digest(run->pipeline, digest);
    json_begin_object(&json, NULL);
    json_string(&json, "name", run->pipeline->name);
    json_string(&json, "digest", rc ? "" : digest);
    json_string(&json, "version", NOCTULE_VERSION);
    json_integer(&json, "passed", result->passed);
    json_string(&json, "why", result->why);
    json_integer(&json, "patients", (int64_t)result->patients);
    json_exact(&json, "tolerance_mm", run->request.tolerance_mm);
    json_begin_array(&json, "cases");
    for (size_t i = 0; i < run->count; i++)
        validate_put_case(&run->cases[i], &json);
    json_end_array(&json);
    json_end_object(&json);
    return rc;
}
