/*
 * segment.h - how segments are found: a method is a row, which works on all of its segments at once.
 * The region of a method is cut to other segments and goes through the segment's steps (segment_sets.h);
 * segments are made in the order in which they use each other.
 *
 * To add one: its operation in kernels/, a file here with its struct segment_method, and its row in
 * base/methods.def.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_H

#include "base/concept.h"
#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "kernels/mask/mask.h"
#include "service/pipeline/grid.h"
#include "service/pipeline/pipeline_report.h"

#define SEGMENT_DESCRIPTION                                                                        \
    1025 /* Algorithm Parameters take 1024 characters; what is longer is cut */

#define SEGMENT_NO_PLACE SIZE_MAX

/* A range of real-world values: as given, or computed of so many values. */
struct segment_range {
    double ends[2];
    uint64_t values;
    bool known;
};

/* Bytes outside of the lane. */
struct segment_bytes {
    int64_t lasting; /* from what is prepared on, as long as the job */
    int64_t passing; /* while the segment is found, one after the other */
};

/* The segments of a job. What it is made of is borrowed. */
struct segmentation {
    const struct conf_pipeline *pipeline;
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    const struct grid *grid; /* whose the two are, and how the source's planes lie to them */
    char *const *objects;    /* paths of what was drawn beside the images */
    size_t object_count;
    struct object_picks *picks; /* regions of objects (object_pick.h); NULL: no segment is one */

    /* What each method has prepared, NULL where it has no segment, and which segments are its. */
    struct {
        void *prepared;
        size_t *segments;
        size_t count;
    } of[CONF_METHODS];
    /* One per segment of the pipeline, in its order, whatever the method; the lane's. What its
     * method has found, and what is made of that. */
    struct image_mask *found, *masks;
    bool *ready;                  /* what the method needs is there */
    struct segment_range *ranges; /* of methods that have one */
    struct kernels_mask_demand sets;
    size_t *starts; /* among them, of what auto has found */
    size_t *places; /* of the segment's own mask among `sets`; SEGMENT_NO_PLACE: found is enough */
    const uint16_t **maps;      /* of connectedness; NULL: none wanted */
    struct segment_bytes bytes; /* of all that the methods take */
};

/* Functions return 0 or -errno with the error filled. */
struct segment_method {
    const char *algorithm;       /* Algorithm Name of the SEG */
    struct coded_concept family; /* Algorithm Family, PS3.16 CID 7162; empty: Deformable Models */
    enum kernels_op_id op;       /* that it demands; KERNELS_OPS: none of its own */
    bool lasts;                  /* what it prepares asks no voxel, nor what is padding */
    /* Fills `prepared`, `size` bytes that are zeros, with what can be known before there are pixels;
     * it begins with the demand of the operation, and is released also after an error. */
    size_t size;
    int (*prepare)(const struct segmentation *segmentation, void *prepared, struct error *error);
    void (*release)(void *prepared); /* what it owns */
    /* What one of its segments takes, at most; what is small beside a mask is left out. NULL:
     * nothing. */
    struct segment_bytes (*bytes)(const struct segmentation *segmentation, size_t segment);
    /* Before the first slice, where all segments may start by then; NULL: no use. */
    int (*begin)(const struct segmentation *segmentation, struct kernels_lane *lane,
                 struct error *error);
    /* Fills `found` and maps of its segments that are ready, once more of those that were; `voxels`
     * is the decoded volume. */
    int (*run)(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels,
               struct error *error);
    /* Where a segment is made of a range and of another segment, and run finds no mask: fills them
     * in. */
    void (*begin_mask)(const struct segmentation *segmentation, size_t segment,
                       struct kernels_mask_request *request);
    /* Of a segment that was found: Algorithm Parameters (0066,0032; PS3.3 10.16), what a reader of
     * the SEG needs to do it again; and the numbers of the record (NULL: none). */
    void (*describe)(const struct segmentation *segmentation, size_t segment,
                     char text[SEGMENT_DESCRIPTION]);
    void (*report)(const struct segmentation *segmentation, size_t segment,
                   struct pipeline_segment *report);
};

#define METHOD(NAME, name, word) extern const struct segment_method segment_##name;
#include "base/methods.def"
/* By enum conf_method. */
extern const struct segment_method *const segment_methods[CONF_METHODS];

/* All methods that have segments: what they make before the pixels are there, and what they ask a
 * lane for. segmentation_release takes it back, also after an error. */
int segmentation_prepare(struct segmentation *segmentation, struct kernels_demand *demand,
                         struct error *error);
void segmentation_release(struct segmentation *segmentation);
/* Releases all but what lasts, for another segmentation_prepare on the same grid. */
void segmentation_restart(struct segmentation *segmentation);

/* Hints to a lane whose volume has begun. */
int segmentation_begin(const struct segmentation *segmentation, struct kernels_lane *lane,
                       struct error *error);

/* Finds all segments, those that others use first. */
int segmentation_run(struct segmentation *segmentation, struct kernels_lane *lane,
                     const void *voxels, struct error *error);

/* The segments of a method, in the pipeline's order; and which of its method's one is. */
static inline const struct conf_segment *
segment_at(const struct segmentation *segmentation, enum conf_method method, size_t place)
{
    return &segmentation->pipeline->segments[segmentation->of[method].segments[place]];
}

/* Of a mask of the stack. */
static inline size_t
segment_mask_words(const struct geometry_stack *stack)
{
    return (size_t)((stack->columns - 1) / 64 + 1) * (size_t)stack->rows *
           (size_t)stack->plane_count;
}

static inline int64_t
segment_mask_bytes(const struct geometry_stack *stack)
{
    return (int64_t)(segment_mask_words(stack) * sizeof(uint64_t));
}

size_t segment_place(const struct segmentation *segmentation, size_t segment);

/* The mask of the segment that `from` names, which is made. */
const uint64_t *segment_from(const struct segmentation *segmentation, size_t segment);

/* Algorithm Parameters of a segment that was found: its method's, and what was done then. */
void segment_describe(const struct segmentation *segmentation, size_t segment,
                      char text[SEGMENT_DESCRIPTION]);

/* "Vessel: measured mean 40, sigma 7"; false, and nothing written, when nothing was measured. */
bool segment_describe_measured(const struct pipeline_segment *segment, char *text, size_t size);

/* Adds to the text what there is room for. */
void segment_append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
