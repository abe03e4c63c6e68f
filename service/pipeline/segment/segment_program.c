#include "service/pipeline/segment/segment_program.h"

#include "base/error.h"
#include "base/text.h"
#include "service/common/volume/mask_file.h"
#include "service/pipeline/volume_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of Algorithm Parameters, which also have digests and steps. */
enum { LABEL_TEXT = 240, COMMAND_TEXT = 360 };

struct program_segment {
    const struct program_mask *from;
    uint64_t *bits;
    struct image_mask mask;
    char parameters[SEGMENT_DESCRIPTION];
    const char *name;
    struct provenance_algorithm algorithm;
    struct provenance provenance; /* borrows the members above, and has no other owner */
};

/* One element per mask of the job, and per segment in the pipeline's order. */
struct program_segments {
    struct program_mask *masks;
    size_t mask_count;
    struct program_segment *segments;
    size_t count;
};

struct coded_concept
segment_program_family(const struct conf_program *program)
{
    static const struct coded_concept families[] = {
#define FAMILY(NAME, word, code, meaning) [CONF_FAMILY_##NAME] = {code, "DCM", meaning},
#include "base/algorithm_families.def"
    };
    return families[program->algorithm.family];
}

/* ---------------------------------------------------------------------------- preparation -- */

static int
program_read_texts(const struct segmentation *segmentation, struct program_segments *own, struct error *error)
{
    struct error why;
    while (own->mask_count < segmentation->program_mask_count) {
        struct program_mask *mask = &own->masks[own->mask_count];
        mask->mask = &segmentation->program_masks[own->mask_count++];
        const int rc = conf_program_from_text(mask->mask->program, &mask->program, &why);
        if (rc)
            return error_set(error, rc, CODE_PROGRAM_UNKNOWN, "the program of a mask of the job cannot be read: %s",
                             why.message);
        if (!mask->mask->sha256[0]) /* results would state none */
            return error_set(error, -EINVAL, CODE_PROGRAM_MASK_DAMAGED,
                             "the job has no digest of the mask of program %s", mask->program->name);
    }
    return 0;
}

static void
program_describe_algorithm(const struct segmentation *segmentation, size_t number, struct program_segment *segment)
{
    const struct conf_algorithm *algorithm = &segment->from->program->algorithm;
    segment_describe(segmentation, number, segment->parameters);
    segment->name = algorithm->name;
    segment->algorithm = (struct provenance_algorithm){.family = segment_program_family(segment->from->program),
                                                       .name = algorithm->name,
                                                       .version = algorithm->version,
                                                       .parameters = segment->parameters,
                                                       .source = algorithm->source};
    segment->provenance = (struct provenance){.type = "AUTOMATIC",
                                              .names = &segment->name,
                                              .name_count = 1,
                                              .algorithms = &segment->algorithm,
                                              .algorithm_count = 1,
                                              .manufacturer = "",
                                              .model = "",
                                              .software = ""};
}

/* Takes the voxels of the segment's labels. */
static int
program_take(const struct segmentation *segmentation, const struct conf_segment *conf, const struct mask_file *file,
             struct program_segment *segment, struct error *error)
{
    const size_t words = segment_mask_words(segmentation->stack);
    segment->bits = calloc(words, sizeof *segment->bits);
    if (!segment->bits)
        return error_set_system(error, -ENOMEM, "hold the mask of a program");
    segment->mask =
        (struct image_mask){.bits = segment->bits, .words_per_row = (segmentation->stack->columns - 1) / 64 + 1};
    mask_file_bits(file, conf->values, conf->value_count, segment->mask.words_per_row, segment->bits);
    for (size_t w = 0; w < words; w++)
        segment->mask.voxels += __builtin_popcountll(segment->bits[w]);
    return 0;
}

/* Fills all segments of a mask. The mask is freed before the volume needs memory. */
static int
program_read_mask(const struct segmentation *segmentation, struct program_segments *own,
                  const struct program_mask *mask, struct error *error)
{
    const struct volume_grid box = volume_source_box(segmentation->grid);
    struct mask_file *file = NULL;
    int rc = 0;
    for (size_t k = 0; k < own->count && rc == 0; k++) {
        const struct conf_segment *conf = segment_at(segmentation, CONF_PROGRAM, k);
        struct program_segment *segment = &own->segments[k];
        if (strcmp(conf->program, mask->program->name) != 0 || segment->from)
            continue;
        segment->from = mask;
        if (!file)
            rc = mask_file_read(mask->mask->path, mask->mask->sha256, &box, &file, error);
        if (rc == 0)
            rc = program_take(segmentation, conf, file, segment, error);
        if (rc == 0)
            program_describe_algorithm(segmentation, segmentation->of[CONF_PROGRAM].segments[k], segment);
    }
    mask_file_free(file);
    return rc;
}

static int
program_prepare(const struct segmentation *segmentation, void *prepared, struct error *error)
{
    struct program_segments *own = prepared;
    own->count = segmentation->of[CONF_PROGRAM].count;
    own->masks = calloc(segmentation->program_mask_count + 1, sizeof *own->masks);
    own->segments = calloc(own->count, sizeof *own->segments);
    if (!own->masks || !own->segments)
        return error_set_system(error, -ENOMEM, "hold the masks of programs");
    int rc = program_read_texts(segmentation, own, error);
    for (size_t m = 0; m < own->mask_count && rc == 0; m++)
        rc = program_read_mask(segmentation, own, &own->masks[m], error);
    for (size_t k = 0; k < own->count && rc == 0; k++)
        if (!own->segments[k].from)
            rc = error_set(error, -EINVAL, CODE_PROGRAM_MASK_DAMAGED,
                           "segment \"%s\" needs the mask of program %s, which the job does not have",
                           segment_at(segmentation, CONF_PROGRAM, k)->label,
                           segment_at(segmentation, CONF_PROGRAM, k)->program);
    return rc;
}

static void
program_release(void *prepared)
{
    struct program_segments *own = prepared;
    for (size_t k = 0; k < own->count && own->segments; k++)
        free(own->segments[k].bits);
    for (size_t m = 0; m < own->mask_count; m++)
        conf_program_free(own->masks[m].program);
    free(own->segments);
    free(own->masks);
}

static struct segment_bytes
program_bytes(const struct segmentation *segmentation, size_t segment)
{
    (void)segment;
    return (struct segment_bytes){.lasting = segment_mask_bytes(segmentation->stack)};
}

static int
program_take_masks(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels,
                   struct error *error)
{
    const struct program_segments *own = segmentation->of[CONF_PROGRAM].prepared;
    (void)lane;
    (void)voxels;
    (void)error;
    for (size_t k = 0; k < own->count; k++)
        segmentation->found[segmentation->of[CONF_PROGRAM].segments[k]] = own->segments[k].mask;
    return 0;
}

/* ----------------------------------------------------------------------------- provenance -- */

static const struct program_segment *
program_segment_of(const struct segmentation *segmentation, size_t segment)
{
    const struct program_segments *own = segmentation->of[CONF_PROGRAM].prepared;
    return segmentation->pipeline->segments[segment].method == CONF_PROGRAM
               ? &own->segments[segment_place(segmentation, segment)]
               : NULL;
}

const struct program_mask *
segment_program_mask(const struct segmentation *segmentation, size_t segment)
{
    const struct program_segment *own = program_segment_of(segmentation, segment);
    return own ? own->from : NULL;
}

const struct provenance *
segment_program_provenance(const struct segmentation *segmentation, size_t segment)
{
    const struct program_segment *own = program_segment_of(segmentation, segment);
    return own ? &own->provenance : NULL;
}

static void
program_describe_labels(const struct conf_segment *conf, char text[SEGMENT_DESCRIPTION])
{
    snprintf(text, SEGMENT_DESCRIPTION, conf->value_count == 1 ? "label" : "labels");
    for (size_t i = 0; i < conf->value_count; i++) {
        if (strlen(text) > LABEL_TEXT) {
            segment_append(text, SEGMENT_DESCRIPTION, ", ...");
            return;
        }
        segment_append(text, SEGMENT_DESCRIPTION, "%s %d", i > 0 ? "," : "", conf->values[i]);
    }
}

static void
program_describe(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION])
{
    const struct program_mask *from = segment_program_mask(segmentation, segment);
    char command[COMMAND_TEXT] = "";
    program_describe_labels(&segmentation->pipeline->segments[segment], text);
    segment_append(text, SEGMENT_DESCRIPTION, " of mask SHA-256 %s", from->mask->sha256);
    if (from->mask->identity[0])
        segment_append(text, SEGMENT_DESCRIPTION, "; program and weights SHA-256 %s", from->mask->identity);
    for (size_t i = 0; i < from->program->command_count; i++)
        segment_append(command, sizeof command, " \"%s\"", from->program->command[i]);
    const bool whole = strlen(command) + 1 < sizeof command;
    text_utf8_mend_end(command);
    segment_append(text, SEGMENT_DESCRIPTION, "; argv%s%s", command, whole ? "" : "...");
}

const struct segment_method segment_program = {
    /* of a changed segment, besides the algorithm of the program */
    .algorithm = "Noctule steps on a label",
    .family = {"123104", "DCM", "Morphological Operations"},
    .op = KERNELS_OPS,
    .lasts = true,
    .size = sizeof(struct program_segments),
    .prepare = program_prepare,
    .release = program_release,
    .bytes = program_bytes,
    .run = program_take_masks,
    .describe = program_describe,
};
