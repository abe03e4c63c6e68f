/* tables.c - features as files for people, and the files next to them, as rows (row.h). */
#include "service/common/slices/slices.h"
#include "service/pipeline/results/row.h"

static size_t
features_wanted(const struct results *results)
{
    return results->request->pipeline->texture_count > 0 || conf_measured_regions(results->request->pipeline);
}

static size_t
histograms_wanted(const struct results *results)
{
    return results->report->features.histogram_count > 0;
}

static bool
matrices_are(const struct results *results, enum glcm_matrices kind)
{
    const struct conf_pipeline *pipeline = results->request->pipeline;
    for (size_t g = 0; g < pipeline->texture_count; g++)
        if (pipeline->texture[g].glcm && pipeline->texture[g].glcm->matrices == kind)
            return true;
    return false;
}

static size_t
counts_wanted(const struct results *results)
{
    return matrices_are(results, GLCM_COUNTS);
}

static size_t
probabilities_wanted(const struct results *results)
{
    return matrices_are(results, GLCM_NORMALISED);
}

const struct result_row result_tables[] = {
    {.file = "features.json", .wanted = features_wanted, .put = feature_set_to_json},
    {.file = "features.csv", .wanted = features_wanted, .put = feature_set_to_csv},
    {.file = "patterns.json", .wanted = histograms_wanted, .put = feature_set_to_patterns},
    {.file = "matrices.json", .wanted = counts_wanted, .put = feature_set_to_counts},
    {.file = "matrices.json", .wanted = probabilities_wanted, .put = feature_set_to_probabilities},
    {.file = "preview.png"}, /* drawn by a thread of its own */
    {.file = SLICES_FILE},   /* written by the same thread */
    {.file = "job.json"},    /* written last */
    {.file = NULL},
};
