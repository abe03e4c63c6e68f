/*
 * program_output.c - finds the output of a program, reads it, and writes the mask of the run.
 */
#include "service/pipeline/program/program_labels.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "service/common/file_ops.h"
#include "service/common/program/program_words.h"
#include "service/common/volume/mask_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -------------------------------------------------------------------------------- labels ---- */

int
program_labels_add(struct program_labels *labels, struct error *error)
{
    const size_t size = (size_t)labels->voxels, count = (size_t)labels->layers;
    if (labels->layers == LIMIT_MASK_LAYERS)
        return error_set(error, -E2BIG, CODE_PROGRAM_OUTPUT_TOO_LARGE,
                         "more than %d regions of the output share a voxel", LIMIT_MASK_LAYERS);
    /* calloc gives the first layer no memory before a label is stored. */
    uint16_t *grown =
        count == 0 ? calloc(size, sizeof *grown) : reallocarray(labels->maps, (count + 1) * size, sizeof *grown);
    if (!grown)
        return error_set_system(error, -ENOMEM, "hold the labels of a program");
    if (count > 0)
        memset(grown + count * size, 0, size * sizeof *grown);
    labels->maps = grown;
    labels->layers++;
    return 0;
}

int
program_labels_accept(const struct program_labels *labels, int64_t value, const char *where, uint16_t *label,
                      struct error *error)
{
    *label = 0;
    if (value >= 0 && value < PROGRAM_LABELS && labels->known[value])
        *label = (uint16_t)value;
    else if (!labels->program->ignore_others)
        return error_set(error, -EINVAL, CODE_PROGRAM_LABEL_UNKNOWN,
                         "%s has label %lld, which neither labels nor a segment of a pipeline names", where,
                         (long long)value);
    return 0;
}

/* Fills the known labels. An order without a list accepts all. */
static void
labels_know(struct program_labels *labels, const struct program_order *order)
{
    for (int value = 1; value < PROGRAM_LABELS; value++)
        labels->known[value] = order->accepted_count == 0;
    for (size_t i = 0; i < order->accepted_count; i++)
        labels->known[order->accepted[i]] = order->accepted[i] > 0;
}

/* ------------------------------------------------------------------------------ the file ---- */

/* The endings of files that may be the output, by enum conf_output. */
static const char *const output_endings[][4] = {
    [CONF_OUTPUT_NIFTI] = {".nii", ".nii.gz", ".hdr"},
    [CONF_OUTPUT_NRRD] = {".nrrd", ".nhdr"},
    [CONF_OUTPUT_SEG] = {".dcm"},
    [CONF_OUTPUT_RTSTRUCT] = {".dcm"},
};

struct output_search {
    const char *const *endings;
    int found;
    char relative[2 * NAME_MAX + 2]; /* of the first */
};

static bool
output_fits(const struct output_search *search, const char *name)
{
    bool fits = false;
    for (const char *const *ending = search->endings; *ending; ending++)
        fits |= text_ends_in(name, *ending);
    return fits;
}

/* Counts files with a fitting ending in the folder, and in its folders if `below` is "". */
static int
output_scan(int out, const char *below, struct output_search *search)
{
    DIR *entries;
    int rc = file_open_directory(out, below[0] ? below : ".", O_NOFOLLOW, &entries);
    if (rc)
        return rc;
    for (const struct dirent *entry; rc == 0 && (entry = readdir(entries));) {
        struct stat status;
        const bool dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (dots || fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
            continue;
        if (S_ISDIR(status.st_mode)) {
            rc = below[0] ? 0 : output_scan(out, entry->d_name, search);
        } else if (output_fits(search, entry->d_name) && search->found++ == 0) {
            snprintf(search->relative, sizeof search->relative, "%s%s%s", below, below[0] ? "/" : "", entry->d_name);
        }
    }
    closedir(entries);
    return rc;
}

/* Finds the configured file, or the only one of the format. */
static int
output_find(const struct conf_program *program, int out, struct output_search *search, struct error *error)
{
    struct stat status;
    char *name = program_file_name(program->output_file);
    if (!name)
        return error_set_system(error, -ENOMEM, "name the output");
    if (name[0]) {
        search->found = fstatat(out, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
        snprintf(search->relative, sizeof search->relative, "%s", name);
    }
    free(name);
    search->endings = output_endings[program->output];
    const int rc = search->relative[0] ? 0 : output_scan(out, "", search);
    if (rc)
        return error_set_system(error, rc, "list the output of a program");
    if (search->found == 0)
        return error_set(error, -ENOENT, CODE_PROGRAM_NO_OUTPUT, "the program ended well and left no file %s%s",
                         program->output_file[0] ? program->output_file : "that ends in ",
                         program->output_file[0] ? "" : search->endings[0]);
    if (search->found > 1)
        return error_set(error, -EINVAL, CODE_PROGRAM_OUTPUT_AMBIGUOUS,
                         "%d files may be the output: name one in output_file", search->found);
    return 0;
}

/* -------------------------------------------------------------------------------- the step -- */

static int
output_read(struct program_labels *labels, const struct program_order *order, int out, struct error *error)
{
    struct output_search search = {.found = 0};
    char path[PATH_MAX];
    int rc = output_find(labels->program, out, &search, error);
    if (rc)
        return rc;
    if (labels->program->output == CONF_OUTPUT_NIFTI || labels->program->output == CONF_OUTPUT_NRRD)
        return program_output_volume(labels, out, search.relative, error);
    snprintf(path, sizeof path, "%s/out/%s", order->work, search.relative);
    return program_output_regions(labels, out, path, search.relative, error);
}

static int
output_write_mask(const struct program_labels *labels, const struct volume_grid *box, int work,
                  struct program_outcome *outcome, struct error *error)
{
    struct mask_label_list found = {0};
    const int rc = mask_file_write(work, "mask", box, labels->layers, labels->maps, &outcome->size, outcome->sha256,
                                   &found, error);
    outcome->labels = (int64_t)found.count;
    outcome->labelled = 0;
    for (size_t i = 0; i < found.count; i++)
        outcome->labelled += found.items[i].voxels;
    free(found.items);
    return rc;
}

int
program_read_output(const struct program_order *order, const struct conf_program *program, int work,
                    struct program_outcome *outcome, struct error *error)
{
    struct program_source source;
    struct program_labels labels = {.source = &source, .program = program};
    const int out = openat(work, "out", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (out < 0)
        return error_set_system(error, -errno, "open the output folder of a program");
    int rc = program_source_open(order, &source, error);
    if (rc == 0) {
        const struct volume_grid box = volume_source_box(&source.volume.grid);
        labels.voxels = box.size[0] * box.size[1] * box.size[2];
        labels_know(&labels, order);
        rc = output_read(&labels, order, out, error);
        if (rc == 0)
            rc = output_write_mask(&labels, &box, work, outcome, error);
    }
    free(labels.maps);
    program_source_close(&source);
    close(out);
    return rc;
}
