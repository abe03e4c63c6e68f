/* tables.c - what was measured as files for people, and what lies beside them, as rows (row.h). */
#include "service/pipeline/results/row.h"

#include "base/durable.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

static int
table_write(const struct results *results, const struct result_file *file,
            void (*put)(const struct feature_set *, FILE *))
{
    struct text_stream text;
    int rc = text_open(&text);
    if (rc == 0) {
        put(&results->report->features, text.out);
        rc = text_close(&text);
    }
    if (rc == 0) {
        rc = durable_write_all(file->fd, text.bytes, text.size);
        free(text.bytes);
    }
    return rc ? results_file_error(results->report, rc, "write", file->name) : 0;
}

static size_t
features_wanted(const struct results *results)
{
    return results->request->pipeline->texture != NULL;
}

static int
features_json_write(const struct results *results, struct result_file *file)
{
    return table_write(results, file, feature_set_to_json);
}

static int
features_csv_write(const struct results *results, struct result_file *file)
{
    return table_write(results, file, feature_set_to_csv);
}

static size_t
patterns_wanted(const struct results *results)
{
    return results->report->features.histogram_count > 0;
}

static int
patterns_write(const struct results *results, struct result_file *file)
{
    return table_write(results, file, feature_set_to_patterns);
}

static enum conf_matrices
matrices_of(const struct results *results)
{
    const struct conf_texture *texture = results->request->pipeline->texture;
    return texture && texture->glcm ? texture->glcm->matrices : CONF_NO_MATRICES;
}

static size_t
matrices_wanted(const struct results *results)
{
    return matrices_of(results) != CONF_NO_MATRICES;
}

static int
matrices_write(const struct results *results, struct result_file *file)
{
    return table_write(results, file,
                       matrices_of(results) == CONF_COUNTS ? feature_set_to_counts
                                                           : feature_set_to_probabilities);
}

const struct result_row result_tables[] = {
    {.file = "features.json", .wanted = features_wanted, .write = features_json_write},
    {.file = "features.csv", .wanted = features_wanted, .write = features_csv_write},
    {.file = "patterns.json", .wanted = patterns_wanted, .write = patterns_write},
    {.file = "matrices.json", .wanted = matrices_wanted, .write = matrices_write},
    {.file = "preview.png"}, /* drawn beside the others */
    {.file = "job.json"},    /* written last */
    {.file = NULL},
};
