#include "service/common/jobs/job_file.h"

#include "base/array.h"
#include "base/durable.h"
#include "base/text.h"
#include "service/common/jobs/keyed_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "noctule-job 1"

static const char *const job_slices_words[] = {
    [JOB_SLICES_NONE] = "", [JOB_SLICES_REVIEW] = "review", [JOB_SLICES_ALL] = "all"};

/* ------------------------------------------------------------------------------- writing ---- */

int
job_spec_write(const struct job_spec *spec, const char *path)
{
    struct text_stream text;
    int error = text_open(&text);
    if (error)
        return error;
    fprintf(text.out, "%s\nid %" PRId64 "\n", FORMAT, spec->id);
    keyed_put(text.out, "stack", spec->stack);
    keyed_put(text.out, "output", spec->output);
    keyed_put(text.out, "device", spec->device_serial_number);
    if (spec->validated)
        keyed_put(text.out, "validated", spec->validated);
    if (spec->slices != JOB_SLICES_NONE)
        keyed_put(text.out, "slices", job_slices_words[spec->slices]);
    keyed_put(text.out, "settings", spec->settings);
    keyed_put_inputs(text.out, spec->inputs, spec->sha256, spec->input_count);
    for (size_t i = 0; i < spec->object_count; i++)
        keyed_put(text.out, "object", spec->objects[i]);
    if (spec->corrects)
        fprintf(text.out, "corrects %" PRId64 "\n", spec->corrects);
    for (size_t i = 0; i < spec->mask_count; i++) {
        const struct job_mask *mask = &spec->masks[i];
        keyed_put(text.out, "program", mask->program);
        keyed_put(text.out, "mask", mask->path);
        keyed_put(text.out, "mask_sha256", mask->sha256);
        keyed_put(text.out, "mask_identity", mask->identity);
        for (size_t k = 0; k < mask->accepted_count; k++)
            fprintf(text.out, "mask_accepts %d\n", mask->accepted[k]);
    }
    for (size_t i = 0; i < spec->earlier_count; i++)
        keyed_put(text.out, "earlier", spec->earlier[i]);
    if (spec->prior)
        keyed_put(text.out, "prior", spec->prior);
    for (size_t i = 0; i < spec->prior_value_count; i++)
        keyed_put(text.out, "prior_value", spec->prior_values[i]);
    for (size_t i = 0; i < spec->tracked_count; i++)
        keyed_put(text.out, "prior_tracked", spec->tracked[i]);
    fprintf(text.out, "end %zu\n", spec->input_count + spec->object_count + spec->mask_count);
    error = text_close(&text);
    if (error == 0)
        error = durable_write(AT_FDCWD, path, text.bytes, text.size, 0640, DURABLE_REPLACE);
    free(text.bytes);
    if (error)
        return error;
    char *copy = strdup(path);
    error = copy ? durable_sync_folder(AT_FDCWD, dirname(copy)) : -ENOMEM;
    free(copy);
    return error;
}

/* ------------------------------------------------------------------------------- reading ---- */

struct job_reader {
    struct keyed_reader text;
    struct job_spec *spec;
    size_t input_rooms[2], object_capacity, mask_capacity, accepted_capacity, earlier_capacity, prior_capacity,
        tracked_capacity;
    bool has_id, ended;
};

/* Begins a mask with its program. */
static int
job_take_program(struct job_reader *reader, const char *text)
{
    struct job_spec *spec = reader->spec;
    struct job_mask *grown = array_grow(spec->masks, &reader->mask_capacity, spec->mask_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    spec->masks = grown;
    grown[spec->mask_count] = (struct job_mask){0};
    reader->accepted_capacity = 0;
    return keyed_take_text(&reader->text, text, &grown[spec->mask_count++].program);
}

/* Reads a value of the last mask. */
static int
job_take_of_mask(struct job_reader *reader, const char *key, const char *text)
{
    const struct job_spec *spec = reader->spec;
    if (spec->mask_count == 0)
        return keyed_bad(&reader->text, "a mask without a program");
    struct job_mask *last = &spec->masks[spec->mask_count - 1];
    if (strcmp(key, "mask") == 0)
        return keyed_take_text(&reader->text, text, &last->path);
    if (strcmp(key, "mask_sha256") == 0)
        return keyed_take_text(&reader->text, text, &last->sha256);
    if (strcmp(key, "mask_identity") == 0)
        return keyed_take_text(&reader->text, text, &last->identity);
    if (strcmp(key, "mask_accepts") == 0) {
        int64_t value;
        const int rc = keyed_take_number(&reader->text, text, &value);
        if (rc)
            return rc;
        if (value > UINT16_MAX)
            return keyed_bad(&reader->text, "not a label");
        uint16_t *grown =
            array_grow(last->accepted, &reader->accepted_capacity, last->accepted_count + 1, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        last->accepted = grown;
        grown[last->accepted_count++] = (uint16_t)value;
        return 0;
    }
    return keyed_bad(&reader->text, "an unknown key");
}

static int
job_take_earlier(struct job_reader *reader, const char *text)
{
    struct job_spec *spec = reader->spec;
    size_t words = 1;
    for (const char *blank = text; (blank = strchr(blank, ' ')); blank++)
        words++;
    if (words != 5 && words != 9 && words != 4 && words != 7) /* the last two: without classes, of version 0.2.0 */
        return keyed_bad(&reader->text, "not a file name with the UIDs of one or two results");
    return keyed_take_item(&reader->text, text, &spec->earlier, &spec->earlier_count, &reader->earlier_capacity);
}

static int
job_take_slices(struct job_reader *reader, const char *text)
{
    enum job_slices *slices = &reader->spec->slices;
    char *word = NULL;
    int rc = keyed_take_text(&reader->text, text, &word);
    if (rc)
        return rc;
    *slices = strcmp(word, job_slices_words[JOB_SLICES_ALL]) == 0 ? JOB_SLICES_ALL : JOB_SLICES_REVIEW;
    if (strcmp(word, job_slices_words[*slices]) != 0)
        rc = keyed_bad(&reader->text, "slices is not \"review\" or \"all\"");
    free(word);
    return rc;
}

static int
take_end(struct job_reader *reader, const char *text)
{
    int64_t count;
    int error = keyed_take_number(&reader->text, text, &count);
    if (error)
        return error;
    if (count != (int64_t)(reader->spec->input_count + reader->spec->object_count + reader->spec->mask_count))
        return keyed_bad(&reader->text, "the number of files does not match");
    if (reader->text.length >= 0)
        return keyed_bad(&reader->text, "data after the end");
    reader->ended = true;
    return 0;
}

static int
job_take_line(struct job_reader *reader)
{
    struct job_spec *spec = reader->spec;

    const struct {
        const char *key;
        char **value;
    } texts[] = {{"stack", &spec->stack},         {"output", &spec->output}, {"device", &spec->device_serial_number},
                 {"validated", &spec->validated}, {"prior", &spec->prior},   {"settings", &spec->settings}};

    const char *key, *text;
    int rc = keyed_split(&reader->text, &key, &text);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(key, texts[i].key) == 0)
            return keyed_take_text(&reader->text, text, texts[i].value);
    }
    if (strcmp(key, "input") == 0)
        return keyed_take_input(&reader->text, text, &spec->inputs, &spec->sha256, &spec->input_count,
                                reader->input_rooms);
    if (strcmp(key, "sha256") == 0)
        return keyed_take_digest(&reader->text, text, spec->sha256, spec->input_count);
    if (strcmp(key, "object") == 0)
        return keyed_take_item(&reader->text, text, &spec->objects, &spec->object_count, &reader->object_capacity);
    if (strcmp(key, "program") == 0)
        return job_take_program(reader, text);
    if (strncmp(key, "mask", strlen("mask")) == 0)
        return job_take_of_mask(reader, key, text);
    if (strcmp(key, "slices") == 0)
        return job_take_slices(reader, text);
    if (strcmp(key, "earlier") == 0)
        return job_take_earlier(reader, text);
    if (strcmp(key, "prior_tracked") == 0)
        return keyed_take_item(&reader->text, text, &spec->tracked, &spec->tracked_count, &reader->tracked_capacity);
    if (strcmp(key, "prior_value") == 0)
        return keyed_take_item(&reader->text, text, &spec->prior_values, &spec->prior_value_count,
                               &reader->prior_capacity);
    if (strcmp(key, "corrects") == 0)
        return keyed_take_number(&reader->text, text, &spec->corrects);
    if (strcmp(key, "end") == 0)
        return take_end(reader, text);
    if (strcmp(key, "id") == 0) {
        if (reader->has_id)
            return keyed_bad(&reader->text, "a duplicate key");
        reader->has_id = true;
        return keyed_take_number(&reader->text, text, &spec->id);
    }
    return keyed_bad(&reader->text, "an unknown key");
}

static int
take_spec(struct job_reader *reader)
{
    int error = keyed_begin(&reader->text, FORMAT);
    while (error == 0 && reader->text.length >= 0)
        error = job_take_line(reader);
    if (error)
        return error;
    const struct job_spec *spec = reader->spec;
    if (!reader->ended)
        return keyed_bad(&reader->text, "the file was cut off");
    if (!reader->has_id || !spec->stack || !spec->output || !spec->device_serial_number || !spec->settings)
        return keyed_bad(&reader->text, "id, stack, output, device or settings is missing");
    if (spec->corrects && spec->object_count == 0)
        return keyed_bad(&reader->text, "the object with the corrected masks is missing");
    for (size_t i = 0; i < spec->mask_count; i++)
        if (!spec->masks[i].path || !spec->masks[i].sha256 || !spec->masks[i].identity)
            return keyed_bad(&reader->text, "the path, digest or identity of a mask is missing");
    return 0;
}

int
job_spec_read(const char *path, struct job_spec **spec, struct error *error)
{
    struct job_reader reader = {.text.error = error};
    *spec = NULL;
    *error = (struct error){0};
    reader.text.in = fopen(path, "re");
    reader.spec = reader.text.in ? calloc(1, sizeof *reader.spec) : NULL;
    int rc = reader.spec ? take_spec(&reader) : -errno;
    if (rc && error->message[0] == '\0')
        error_set(error, rc, CODE_NONE, "%s", strerror(-rc));
    free(reader.text.line);
    if (reader.text.in)
        fclose(reader.text.in);
    if (rc)
        job_spec_free(reader.spec);
    else
        *spec = reader.spec;
    return rc;
}

void
job_masks_free(struct job_mask *masks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(masks[i].program);
        free(masks[i].path);
        free(masks[i].sha256);
        free(masks[i].identity);
        free(masks[i].accepted);
    }
    free(masks);
}

void
job_spec_free(struct job_spec *spec)
{
    if (!spec)
        return;
    for (size_t i = 0; i < spec->input_count; i++) {
        free(spec->inputs[i]);
        if (spec->sha256)
            free(spec->sha256[i]);
    }
    free(spec->inputs);
    free(spec->sha256);
    for (size_t i = 0; i < spec->object_count; i++)
        free(spec->objects[i]);
    free(spec->objects);
    job_masks_free(spec->masks, spec->mask_count);
    for (size_t i = 0; i < spec->earlier_count; i++)
        free(spec->earlier[i]);
    free(spec->earlier);
    for (size_t i = 0; i < spec->prior_value_count; i++)
        free(spec->prior_values[i]);
    free(spec->prior_values);
    for (size_t i = 0; i < spec->tracked_count; i++)
        free(spec->tracked[i]);
    free(spec->tracked);
    free(spec->prior);
    free(spec->stack);
    free(spec->settings);
    free(spec->validated);
    free(spec->output);
    free(spec->device_serial_number);
    free(spec);
}
