#include "service/cli/compare/compare_input.h"

#include "service/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
compare_complain(const char *what, const struct error *error)
{
    cli_print_error("%s%s%s: %s", what, *what ? ": " : "", code_name(error->code), error->message);
}

/* Sorts a file that is no image: to the objects, to the failures, or to the files that are skipped. */
static int
compare_sort_file(struct compare_input *input, size_t file)
{
    struct compare_object *object = &input->objects[input->object_count];
    const struct error *header = &input->headers.errors[file];
    struct error error = *header;
    const char *path = input->files.paths[file];
    int rc = -EINVAL;
    if (input_sorted_is_other(header) && file < input->images)
        rc = compare_object_open(path, object, &error);
    if (rc == 0) {
        object->side = file < input->reference ? AGREEMENT_FOUND : AGREEMENT_REFERENCE;
        input->object_count++;
    }
    if (rc == 0 || rc == -ENOMEM)
        return rc;
    if (input_sorted_is_other(&error))
        return input_skipped_add(&input->skipped, path, header->code, header->message);
    compare_complain(path, &error);
    input->failed++;
    return 0;
}

int
compare_input_read(struct compare_input *input, int threads)
{
    int rc = headers_read(input->files.paths, input->files.count, threads, NULL, &input->headers);
    input->objects = calloc(input->files.count + 1, sizeof *input->objects);
    if (!input->objects)
        rc = -ENOMEM;
    for (size_t i = 0; i < input->headers.count && rc == 0; i++)
        if (input->headers.rc[i])
            rc = compare_sort_file(input, i);
    if (rc)
        cli_print_error("cannot read the files: %s", strerror(-rc));
    return rc;
}

void
compare_input_free(struct compare_input *input)
{
    for (size_t i = 0; i < input->object_count; i++)
        free(input->objects[i].references);
    free(input->objects);
    input_skipped_clear(&input->skipped);
    headers_free(&input->headers);
    input_collect_free(&input->files);
}
