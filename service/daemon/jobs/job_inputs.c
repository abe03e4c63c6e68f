#include "service/daemon/jobs/job_inputs.h"

#include <errno.h>
#include <stdlib.h>

int
job_inputs_find(const struct core *core, int64_t series_id, struct job_spec *spec)
{
    struct queue_file *files;
    size_t count;
    int error = queue_series_files(core->queue, series_id, &files, &count);
    if (error)
        return error;
    spec->inputs = calloc(count + 1, sizeof *spec->inputs);
    spec->sha256 = calloc(count + 1, sizeof *spec->sha256);
    error = spec->inputs && spec->sha256 ? 0 : -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        char *path = error ? NULL : core_path(core, files[i].path);
        if (path) {
            spec->inputs[spec->input_count] = path;
            if (*files[i].sha256) {
                spec->sha256[spec->input_count] = files[i].sha256;
                files[i].sha256 = NULL;
            }
            spec->input_count++;
        } else {
            error = -ENOMEM;
        }
        queue_file_clear(&files[i]);
    }
    free(files);
    return error;
}

void
job_inputs_free(struct job_spec *spec)
{
    for (size_t i = 0; i < spec->input_count; i++) {
        free(spec->inputs[i]);
        free(spec->sha256[i]);
    }
    free(spec->inputs);
    free(spec->sha256);
}
