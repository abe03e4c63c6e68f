#include "service/pipeline/program/program_steps.h"

#include "base/error.h"
#include "service/pipeline/program/program_source.h"

#include <errno.h>

int
program_source_open(const struct program_order *order, struct program_source *source, struct error *error)
{
    struct error why;
    *source = (struct program_source){0};
    int rc = conf_pipeline_from_text(order->pipeline, &source->pipeline, &why);
    if (rc)
        return error_set(error, rc, CODE_PIPELINE_INVALID, "the pipeline of the run cannot be read: %s", why.message);
    rc = headers_read(order->inputs, order->input_count, order->threads, NULL, &source->headers);
    if (rc) {
        source->headers = (struct headers){0};
        return error_set_system(error, rc, "read the headers of the series");
    }
    return volume_source_choose(source->pipeline, &source->headers, order->stack, &source->volume, error);
}

void
program_source_close(struct program_source *source)
{
    volume_source_release(&source->volume);
    if (source->headers.count > 0)
        headers_free(&source->headers);
    conf_pipeline_free(source->pipeline);
}

const struct program_steps program_steps = {.write_input = program_write_input, .read_output = program_read_output};
