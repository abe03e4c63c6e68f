/*
 * segment.h - finds segments. A method is a row of a table and works on all of its segments at
 * once. The region of a method is cut to other segments and goes through the segment's steps
 * (segment_sets.h). Segments are made in the order in which they use each other.
 *
 * To add a method: its operation in kernels/, a file here with its struct segment_method, and its
 * row in base/methods.def.
 */
#ifndef NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_H
#define NOCTULE_SERVICE_PIPELINE_SEGMENT_SEGMENT_H

#include "base/concept.h"
#include "config/config.h"
#include "dicom/read/geometry/geometry.h"
#include "kernels/mask/mask.h"
#include "kernels/smooth/smooth.h"
#include "service/common/jobs/job_file.h"
#include "service/pipeline/grid.h"
#include "service/pipeline/pipeline_report.h"

#define SEGMENT_DESCRIPTION 1025 /* Algorithm Parameters has 1024 characters; longer text is cut */

#define SEGMENT_NO_PLACE    SIZE_MAX

struct coarse_volume;

/* A range of real-world values: as configured, or computed from `values` values. */
struct segment_range {
    double ends[2];
    uint64_t values;
    bool known;
};

/* Bytes outside of the lane. */
struct segment_bytes {
    int64_t lasting; /* from preparation to the end of the job */
    int64_t passing; /* while a segment is found, one after the other */
};

/*
 * The segments of a job on one grid. Inputs are borrowed. The segments with grid_mm have a
 * segmentation of their own (segment_coarse.h); that of the images' voxels uses their masks.
 */
struct segmentation {
    const struct conf_pipeline *pipeline;
    bool is_coarse;               /* finds the segments with grid_mm; false: those without */
    struct coarse_volume *coarse; /* of the segments with grid_mm; NULL: it has no part in them */
    struct dicom_instance *const *instances;
    const struct geometry_stack *stack;
    const struct grid *grid; /* the grid of both, and its relation to the source's planes */
    char *const *objects;    /* paths of annotation objects */
    size_t object_count;
    bool corrected; /* the last of them has the masks of the segments with object.corrected */
    const struct job_mask *program_masks;
    size_t program_mask_count;
    /* regions of annotation objects (object_pick.h); NULL: no segment comes from one */
    struct object_picks *picks;

    /*
     * The data that each method has prepared, NULL without a segment, and the list of its segments.
     */
    struct {
        void *prepared;
        size_t *segments;
        size_t count;
    } of[CONF_METHODS];
    /*
     * One per segment of the pipeline, in its order, of all methods; owned by the lane. The region
     * that its method found, and the mask made from it.
     */
    struct image_mask *found, *masks;
    uint64_t **own;               /* memory of regions (segment_reserve); NULL: not needed */
    bool *ready;                  /* the requirements of the method are met */
    struct segment_range *ranges; /* of methods with a range */
    struct kernels_mask_demand sets;
    struct smooth_demand smooth;
    size_t spare;   /* the first of the free masks among `sets` */
    size_t *starts; /* index among them, for starts that auto found */
    /* index of the segment's own mask among `sets`; SEGMENT_NO_PLACE: `found` is the mask */
    size_t *places;
    const uint16_t **maps;      /* of connectedness; NULL: not wanted */
    struct segment_bytes bytes; /* total of the methods */
};

/* Returns whether the segmentation finds this segment. */
static inline bool
segment_is_here(const struct segmentation *segmentation, size_t segment)
{
    return (segmentation->pipeline->segments[segment].grid_mm > 0) == segmentation->is_coarse;
}

/* Functions return 0 or -errno with the error filled. */
struct segment_method {
    const char *algorithm;       /* Algorithm Name of the SEG */
    struct coded_concept family; /* Algorithm Family, PS3.16 CID 7162; empty: Deformable Models */
    enum kernels_op_id op;       /* operation that it demands; KERNELS_OPS: none of its own */
    bool is_stored;              /* the operation is for stored values: not for slices with rescales of their own */
    bool lasts;                  /* its preparation needs neither voxels nor padding */
    /*
     * Fills `prepared`, `size` bytes of zeros, with data that is known before there are pixels. It
     * begins with the demand of the operation. It is released also after an error. NULL: there is no data.
     */
    size_t size;
    int (*prepare)(const struct segmentation *segmentation, void *prepared, struct error *error);
    void (*release)(void *prepared); /* frees its members */
    /*
     * Returns the maximum bytes of one of its segments, without items that are small compared with
     * a mask. NULL: no bytes.
     */
    struct segment_bytes (*bytes)(const struct segmentation *segmentation, size_t segment);
    /* Called before the first slice, if all segments can start then; may be NULL. */
    int (*begin)(const struct segmentation *segmentation, struct kernels_lane *lane, struct error *error);
    /*
     * Fills `found` and the maps of its ready segments, and again of earlier ones; `voxels` is the
     * decoded volume. NULL, without `find`: it finds no region.
     */
    int (*run)(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels, struct error *error);
    /* Replaces `run` in a method that finds one segment after the other. Sets its voxels in zeroed words of a mask. */
    int (*find)(struct segmentation *segmentation, size_t segment, struct kernels_lane *lane, const void *voxels,
                uint64_t *bits, struct error *error);
    /*
     * Fills the request of a segment that is made from a range and another segment, if run() finds
     * no mask.
     */
    void (*begin_mask)(const struct segmentation *segmentation, size_t segment, struct kernels_mask_request *request);
    /*
     * Writes Algorithm Parameters (0066,0032; PS3.3 10.16) of a segment that was found. They must be sufficient to
     * repeat the segmentation. Also writes the numbers of the record, which may be NULL.
     */
    void (*describe)(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION]);
    void (*report)(const struct segmentation *segmentation, size_t segment, struct pipeline_segment *report);
};

#define METHOD(NAME, name, word) extern const struct segment_method segment_##name;
#include "base/methods.def"
/* Indexed by enum conf_method. */
extern const struct segment_method *const segment_methods[CONF_METHODS];

/*
 * Prepares all methods that have segments: data that needs no pixels, and the demand of a lane.
 * Call segmentation_release() also after an error.
 */
int segmentation_prepare(struct segmentation *segmentation, struct kernels_demand *demand, struct error *error);
void segmentation_release(struct segmentation *segmentation);
/* Releases all but lasting data, for another segmentation_prepare() on the same grid. */
void segmentation_restart(struct segmentation *segmentation);

/* Passes hints to a lane whose volume has begun. */
int segmentation_begin(const struct segmentation *segmentation, struct kernels_lane *lane, struct error *error);

/* Finds all segments, used ones first. */
int segmentation_run(struct segmentation *segmentation, struct kernels_lane *lane, const void *voxels,
                     struct error *error);

/*
 * Return the segments of a method, in the pipeline's order, and the index of a segment within its
 * method.
 */
static inline const struct conf_segment *
segment_at(const struct segmentation *segmentation, enum conf_method method, size_t place)
{
    return &segmentation->pipeline->segments[segmentation->of[method].segments[place]];
}

/* Returns the words of a mask of the stack. */
static inline size_t
segment_mask_words(const struct geometry_stack *stack)
{
    return (size_t)((stack->columns - 1) / 64 + 1) * (size_t)stack->rows * (size_t)stack->plane_count;
}

static inline int64_t
segment_mask_bytes(const struct geometry_stack *stack)
{
    return (int64_t)(segment_mask_words(stack) * sizeof(uint64_t));
}

size_t segment_place(const struct segmentation *segmentation, size_t segment);

/* Returns the mask of the segment that `from` names; it must be made. */
const uint64_t *segment_from(const struct segmentation *segmentation, size_t segment);

/* Returns the segmentation that found the segment. */
const struct segmentation *segment_finder(const struct segmentation *segmentation, size_t segment);

/* Writes Algorithm Parameters of a segment that was found: those of its method, then its grid and its steps. */
void segment_describe(const struct segmentation *segmentation, size_t segment, char text[SEGMENT_DESCRIPTION]);

/*
 * Writes "Vessel: measured mean 40, sigma 7". Returns false and writes no text if no number was
 * measured.
 */
bool segment_describe_measured(const struct pipeline_segment *segment, char *text, size_t size);

/* Appends to the text; cuts it if there is no room. */
void segment_append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ------------------------------------------------------------------------- segment_start.c ---- */

/*
 * The start of a segment by auto, for all methods: the largest component of the voxels that are in range and in all
 * segments of `within`, or the one of the voxels there with the highest (lowest) mean around them (segment_extreme.h).
 */

/*
 * Finds the start of a segment; the segments of its `within` must be made. `range` has ranges,
 * range_count and padding for the largest component; its other members are 0. The bits belong to
 * the lane; no bit is set if no voxel qualifies.
 */
int start_find(const struct segmentation *segmentation, size_t segment, struct kernels_lane *lane, const void *voxels,
               const struct kernels_mask_request *range, const uint64_t **bits, struct error *error);

/* Returns the bytes that it needs; 0 for a segment without auto. */
int64_t start_bytes(const struct segmentation *segmentation, size_t segment);

/* Appends "; from the highest mean over 10 mm" for auto by a mean. */
void start_describe(const struct conf_segment *segment, char text[SEGMENT_DESCRIPTION]);

#endif
