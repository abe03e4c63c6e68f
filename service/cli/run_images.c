#include "service/cli/run_images.h"

#include "service/cli/cli.h"
#include "service/pipeline/image_file.h"
#include "service/pipeline/volume_source.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define IMAGES_MASK "image-mask" /* file in the scratch folder */

/* A program that stands for the masks, since jobs take masks from programs. */
static const char mask_program[] = "name = \"mask\";\n"
                                   "command = [ \"/bin/false\", \"{in}\", \"{out}\" ];\n"
                                   "input = \"nifti\";\ninput_file = \"image.nii\";\noutput = \"nifti\";\n"
                                   "algorithm = { name = \"mask\"; version = \"given\"; family = \"manual\"; };\n";
static const char mask_pipeline[] =
    "name = \"mask\";\n"
    "segments = ( { label = \"mask\"; method = \"program\"; program = \"mask\"; value = 1;\n"
    "type = { code = \"123037004\"; scheme = \"SCT\"; meaning = \"Body structure\"; }; } );\n";

bool
run_images_are_given(const struct run_images_request *request)
{
    return request->images.count > 0 || request->pairs;
}

/* `where` is the line of the table with ": " behind it, or "". */
static int
images_complain(const char *where, const char *what, int rc)
{
    cli_print_error("%s%s: %s", where, what, strerror(-rc));
    return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_PARTIAL;
}

/* Adds an image. Paths are relative to `folder`, unless it is NULL. */
static int
images_add(struct run_images *images, const char *where, const char *folder, const char *image, const char *mask,
           int label)
{
    const char *const given[] = {image, mask};
    char *found[] = {NULL, NULL};
    int status = EXIT_OK;
    if (!image_file_is_named(image)) {
        cli_print_error("%s%s: the name of an image must end with .nii, .nii.gz, .hdr, .nrrd or .nhdr", where, image);
        return EXIT_USAGE;
    }
    struct run_image *grown = reallocarray(images->items, images->count + 1, sizeof *grown);
    if (!grown)
        return images_complain(where, image, -ENOMEM);
    images->items = grown;
    for (int i = 0; i < 2 && status == EXIT_OK && given[i]; i++) {
        char *path = NULL;
        const bool below = folder && given[i][0] != '/';
        if (asprintf(&path, "%s%s%s", below ? folder : "", below ? "/" : "", given[i]) < 0)
            return images_complain(where, given[i], -ENOMEM);
        found[i] = realpath(path, NULL);
        if (!found[i])
            status = images_complain(where, path, -errno);
        free(path);
    }
    if (status == EXIT_OK)
        images->items[images->count++] = (struct run_image){found[0], found[1], label};
    else
        free(found[0]);
    return status;
}

/* ------------------------------------------------------------------------- table of pairs ---- */

/* Takes the next field of a line (RFC 4180, without line breaks in fields), unquoted in place. NULL: there is none. */
static char *
pairs_field(char **line)
{
    char *from = *line, *field = from, *to = from;
    if (!from)
        return NULL;
    const bool quoted = *from == '"';
    for (from += quoted; *from && *from != '\r' && *from != '\n' && (quoted || *from != ','); from++) {
        if (quoted && *from == '"' && from[1] != '"')
            break;
        from += quoted && *from == '"';
        *to++ = *from;
    }
    from += quoted && *from == '"';
    *line = *from == ',' ? from + 1 : NULL;
    *to = '\0';
    return field;
}

enum { PAIRS_IMAGE, PAIRS_MASK, PAIRS_LABEL, PAIRS_COLUMNS };

/* Fills the places of the columns; -1: absent. */
static int
pairs_read_head(const char *name, char *line, int places[PAIRS_COLUMNS])
{
    static const char *const names[PAIRS_COLUMNS] = {"image", "mask", "label"};
    char *field;
    for (int column = 0; column < PAIRS_COLUMNS; column++)
        places[column] = -1;
    if (strncmp(line, "\xef\xbb\xbf", 3) == 0) /* byte order mark */
        line += 3;
    for (int place = 0; (field = pairs_field(&line)); place++)
        for (int column = 0; column < PAIRS_COLUMNS; column++)
            if (strcasecmp(field, names[column]) == 0)
                places[column] = place;
    if (places[PAIRS_IMAGE] >= 0 && places[PAIRS_MASK] >= 0)
        return EXIT_OK;
    cli_print_error("%s: the first line must name the columns Image and Mask, separated by a comma", name);
    return EXIT_USAGE;
}

static int
pairs_read_row(struct run_images *images, const char *name, const char *folder, int number, char *line,
               const int places[PAIRS_COLUMNS], int label)
{
    char *fields[PAIRS_COLUMNS] = {NULL}, *field, where[PATH_MAX];
    int64_t value = label;
    for (int place = 0; (field = pairs_field(&line)); place++)
        for (int column = 0; column < PAIRS_COLUMNS; column++)
            if (places[column] == place)
                fields[column] = field;
    if (!fields[PAIRS_IMAGE] || !*fields[PAIRS_IMAGE])
        return EXIT_OK; /* an empty line */
    if (!fields[PAIRS_MASK] || !*fields[PAIRS_MASK] ||
        (fields[PAIRS_LABEL] && *fields[PAIRS_LABEL] &&
         (cli_parse_number(fields[PAIRS_LABEL], &value) != 0 || value > INT_MAX))) {
        cli_print_error("%s, line %d: needs an image, a mask and perhaps a label from 1", name, number);
        return EXIT_USAGE;
    }
    snprintf(where, sizeof where, "%s, line %d: ", name, number);
    return images_add(images, where, folder, fields[PAIRS_IMAGE], fields[PAIRS_MASK], (int)value);
}

static int
pairs_read(struct run_images *images, const char *name, int label)
{
    char *line = NULL, *copy = strdup(name);
    size_t size = 0;
    int places[PAIRS_COLUMNS], status = EXIT_OK;
    FILE *in = fopen(name, "re");
    if (!in || !copy) {
        status = images_complain("", name, in ? -ENOMEM : -errno);
    } else {
        const char *folder = dirname(copy);
        for (int number = 1; status == EXIT_OK && getline(&line, &size, in) >= 0; number++)
            status = number == 1 ? pairs_read_head(name, line, places)
                                 : pairs_read_row(images, name, folder, number, line, places, label);
        if (status == EXIT_OK && images->count == 0) {
            cli_print_error("%s: lists no image", name);
            status = EXIT_USAGE;
        }
    }
    if (in)
        fclose(in);
    free(copy);
    free(line);
    return status;
}

/* ------------------------------------------------------------------------------- opening ---- */

/* Copies the pipeline, with the masks as its only segment. */
static int
images_make_pipeline(struct run_images *images, const struct conf_pipeline *pipeline)
{
    struct conf_pipeline *masks = NULL;
    struct error error = {0};
    char *text = conf_pipeline_to_text(pipeline);
    int rc = text ? conf_pipeline_from_text(text, &images->pipeline, &error) : -ENOMEM;
    if (rc == 0 && images->masks)
        rc = conf_pipeline_from_text(mask_pipeline, &masks, &error);
    if (rc == 0) {
        struct conf_pipeline *own = images->pipeline;
        if (images->masks) {
            const struct conf_pipeline other = *own;
            for (size_t i = 0; i < own->segment_count; i++)
                masks->segments[0].quantities |= own->segments[i].quantities;
            own->segments = masks->segments;
            own->segment_count = masks->segment_count;
            own->relative_connectedness = false;
            own->unreviewed = true; /* a mask that was given is no result to review */
            masks->segments = other.segments;
            masks->segment_count = other.segment_count;
        }
    }
    for (size_t i = 0; rc == 0 && !images->masks && i < images->pipeline->segment_count; i++)
        if (images->pipeline->segments[i].method == CONF_PROGRAM || images->pipeline->segments[i].method == CONF_OBJECT)
            rc = error_set(&error, -EINVAL, CODE_NONE, "segment \"%s\" needs DICOM images: give a mask with --mask",
                           images->pipeline->segments[i].label);
    conf_pipeline_free(masks);
    free(text);
    if (rc)
        cli_print_error("pipeline %s: %s", pipeline->name, *error.message ? error.message : strerror(-rc));
    return rc ? EXIT_USAGE : EXIT_OK;
}

int
run_images_open(struct run_images *images, const struct run_images_request *request,
                const struct conf_pipeline *pipeline, struct scratch *scratch)
{
    const int label = request->label > 0 ? (int)request->label : 1;
    struct error error;
    int status = request->pairs ? pairs_read(images, request->pairs, label) : EXIT_OK;
    for (size_t i = 0; i < request->images.count && status == EXIT_OK; i++)
        status = images_add(images, "", NULL, request->images.items[i],
                            request->masks.count > 0 ? request->masks.items[i] : NULL, label);
    images->masks = request->pairs || request->masks.count > 0;
    if (status == EXIT_OK)
        status = images_make_pipeline(images, pipeline);
    if (status == EXIT_OK && images->masks && scratch_open(scratch, scratch_where(NULL), &error) != 0) {
        cli_print_error("%s: %s", code_name(error.code), error.message);
        status = EXIT_PARTIAL;
    }
    return status;
}

/* ---------------------------------------------------------------------------------- masks ---- */

static void
images_forget_mask(struct run_images *images)
{
    if (images->mask.path)
        unlink(images->mask.path);
    free(images->mask.program);
    free(images->mask.path);
    free(images->mask.sha256);
    free(images->mask.identity);
    images->mask = (struct job_mask){0};
}

int
run_images_take_mask(struct run_images *images, const struct unit *unit, const struct scratch *scratch,
                     struct error *error)
{
    const struct run_image *image = &images->items[unit->headers->instances[0]->series_number - 1];
    struct job_mask *mask = &images->mask;
    struct volume_source source;
    char sha256[65];
    images_forget_mask(images);
    const int folder = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return error_set_system(error, -errno, "open the scratch folder");
    int rc = volume_source_choose(images->pipeline, unit->headers, unit->stack, &source, error);
    if (rc == 0)
        rc = image_file_write_mask(image->mask, image->label, &source.grid, folder, IMAGES_MASK, sha256, error);
    volume_source_release(&source);
    close(folder);
    if (rc)
        return rc;
    mask->program = strdup(mask_program);
    mask->sha256 = strdup(sha256);
    mask->identity = strdup("");
    if (asprintf(&mask->path, "%s/" IMAGES_MASK, scratch->path) < 0)
        mask->path = NULL;
    return mask->program && mask->sha256 && mask->identity && mask->path
               ? 0
               : error_set_system(error, -ENOMEM, "describe a mask");
}

void
run_images_close(struct run_images *images)
{
    images_forget_mask(images);
    for (size_t i = 0; i < images->count; i++) {
        free(images->items[i].image);
        free(images->items[i].mask);
    }
    free(images->items);
    conf_pipeline_free(images->pipeline);
    *images = (struct run_images){0};
}
