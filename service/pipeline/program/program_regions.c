/*
 * program_regions.c - draws the regions of a Segmentation or an RT Structure Set that a program wrote on the working
 * grid. The label of a region is its Segment Number or ROI Number.
 */
#include "service/pipeline/program/program_labels.h"

#include "base/error.h"
#include "service/common/file_ops.h"
#include "service/pipeline/segment/object.h"
#include "service/pipeline/segment/object_search.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens the file without following links, so that no other file is read below its name. */
static int
regions_check_file(int out, const char *relative, struct error *error)
{
    struct stat status;
    const int fd = file_open_below(out, relative, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const bool regular = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
    if (fd >= 0)
        close(fd);
    return regular
               ? 0
               : error_set(error, -EINVAL, CODE_PROGRAM_OUTPUT_NOT_REGULAR, "the output is no regular file of its own");
}

/* Replaces an error of the readers. Their messages have texts of the file, which may name a patient. */
static int
regions_refuse(int rc, const char *where, const struct error *why, struct error *error)
{
    static const enum code elsewhere[] = {CODE_SEG_GRID_DIFFERS, CODE_CONTOUR_OFF_PLANES, CODE_CONTOUR_OBLIQUE,
                                          CODE_OBJECT_OTHER_SERIES, CODE_OBJECT_OTHER_FRAME};
    enum code code = why->code == CODE_OUT_OF_MEMORY ? CODE_OUT_OF_MEMORY : CODE_PROGRAM_OUTPUT_UNREADABLE;
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (why->code == elsewhere[i])
            code = CODE_PROGRAM_GRID_DIFFERS;
    return error_set(error, rc, code, "%s: %s", where, code_name(why->code));
}

/* Returns whether no voxel of the region has a label in the layer; with a label, stores it in these voxels. */
static bool
regions_lay(const struct image_mask *mask, const int64_t size[3], uint16_t *map, uint16_t label)
{
    for (int64_t row = 0; row < size[1] * size[2]; row++)
        for (int64_t w = 0; w < mask->words_per_row; w++)
            for (uint64_t left = mask->bits[row * mask->words_per_row + w]; left; left &= left - 1) {
                uint16_t *voxel = &map[row * size[0] + w * 64 + __builtin_ctzll(left)];
                if (label)
                    *voxel = label;
                else if (*voxel)
                    return false;
            }
    return true;
}

/* Stores the region in the first layer that has room for it. */
static int
regions_store(struct program_labels *labels, const struct image_mask *mask, uint16_t label, struct error *error)
{
    const struct volume_grid box = volume_source_box(&labels->source->volume.grid);
    int layer = 0;
    while (layer < labels->layers && !regions_lay(mask, box.size, labels->maps + layer * labels->voxels, 0))
        layer++;
    const int rc = layer == labels->layers ? program_labels_add(labels, error) : 0;
    if (rc == 0)
        regions_lay(mask, box.size, labels->maps + layer * labels->voxels, label);
    return rc;
}

static int
regions_take(struct program_labels *labels, const struct object_search *search, struct error *error)
{
    const int32_t number = search->set->items[search->item].number;
    struct object_region region = {.what = search->set->what};
    struct error why = {.code = CODE_NONE};
    char where[64];
    uint16_t label;
    snprintf(where, sizeof where, "region %" PRId32 " of the output", number);
    if (search->set->items[search->item].is_background)
        return 0;
    int rc = object_search_check(search, search->set, search->item, &why);
    if (rc == 0)
        rc = object_region_make(search, &region, &why);
    if (rc)
        regions_refuse(rc, where, &why, error);
    if (rc == 0 && region.mask.voxels > 0)
        rc = program_labels_accept(labels, number, where, &label, error);
    if (rc == 0 && region.mask.voxels > 0 && label)
        rc = regions_store(labels, &region.mask, label, error);
    free(region.bits);
    free(region.grid_bits);
    return rc;
}

int
program_output_regions(struct program_labels *labels, int out, const char *path, const char *relative,
                       struct error *error)
{
    const struct conf_program *program = labels->program;
    const struct grid *grid = &labels->source->volume.grid;
    const struct segmentation segmentation = {.instances = grid->instances, .stack = grid->stack, .grid = grid};
    const struct conf_segment segment = {
        .label = (char[]){"region"},
        .object = {.kind = program->output == CONF_OUTPUT_SEG ? CONF_SEG : CONF_RTSTRUCT,
                   .threshold = program->threshold,
                   .optional = true}};
    struct object_search search = {.segmentation = &segmentation, .segment = &segment};
    struct error why = {.code = CODE_NONE};
    struct object_set *set;
    int rc = regions_check_file(out, relative, error);
    if (rc)
        return rc;
    rc = object_set_open(segment.object.kind, path, &set, &why);
    if (rc)
        return regions_refuse(rc, "the output", &why, error);
    search.set = set;
    if (set->seg && set->seg->type == SEG_SOURCE_FRACTIONAL && !program->has_threshold)
        rc = error_set(error, -EINVAL, CODE_PROGRAM_FRACTIONS,
                       "the output is a FRACTIONAL Segmentation, and the program has no threshold");
    if (rc == 0)
        rc = program_labels_add(labels, error);
    for (; rc == 0 && search.item < set->item_count; search.item++)
        rc = regions_take(labels, &search, error);
    object_set_close(set);
    return rc;
}
