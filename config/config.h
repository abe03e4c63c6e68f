/*
 * config.h - loads and checks the configuration, a file in libconfig syntax (config/noctule.conf).
 *
 * Unknown options, wrong types and values outside their limits are errors with file and line.
 * A loaded struct conf is immutable and safe to read from any thread. A reload loads a new struct
 * or keeps the old one. Option names end in their unit: _seconds, _mib, _days, _mm.
 *
 * In all structs, NULL and a count of 0 mean "not given" unless a comment defines them otherwise.
 * conf_free() frees every pointer of a struct conf.
 */
#ifndef NOCTULE_CONFIG_CONFIG_H
#define NOCTULE_CONFIG_CONFIG_H

#include "base/attribute.h"
#include "base/calendar/time_window.h"
#include "base/concept.h"
#include "base/error.h"
#include "base/texture_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_ROOT "/var/lib/noctule" /* the default of the option root */

/* Handling of an inbox file after its copy and its database row are durable. */
enum conf_after { CONF_KEEP, CONF_MOVE, CONF_DELETE };

/* Stored form of values that identify the patient (base/series_about.def). */
enum conf_identifiers { CONF_IDENTIFIERS_NONE, CONF_IDENTIFIERS_HASHED, CONF_IDENTIFIERS_PLAIN };

/* Handling of conflicting copies: reject them, or use the newest. */
enum conf_newest { CONF_REFUSE, CONF_NEWEST };

struct conf_inbox {
    char *name;
    char *path;
    enum conf_after after;
    char *move_to;           /* the folder for originals; only with CONF_MOVE */
    enum conf_newest resent; /* handling of an instance that changes the data of a stored UID */
    double settle_seconds;   /* a file is complete after this time without a change */
    double sweep_seconds;    /* max time between full scans; network shares send no events */
};

struct conf_series {
    double quiet_seconds;    /* a series is complete after this time without a new instance */
    double complete_seconds; /* the quiet time if the expected count has been reached */
    double patience_seconds; /* the quiet time if instances are missing */
    int max_instances;       /* a larger series is rejected with SERIES_TOO_LARGE */
    double max_mib;          /* the max size of all files of a series */
};

enum conf_shape_kind { CONF_SPHERE, CONF_ELLIPSOID, CONF_BOX };

enum conf_unit { CONF_VOXEL, CONF_MM, CONF_FRACTION };

struct conf_shape {
    enum conf_shape_kind kind;
    enum conf_unit center_unit; /* center = { voxel | mm | fraction = [x, y, z]; } */
    double center[3];
    enum conf_unit radius_unit; /* radius_voxels or radius_mm */
    double radius[3];           /* half sizes of a box; equal values if the file gives one number */
};

enum conf_method {

#define METHOD(NAME, name, word) CONF_##NAME,
#include "base/methods.def"
    CONF_METHODS, /* the number of methods */
};

/* The names in the configuration file; ends with NULL. */
extern const char *const conf_method_names[CONF_METHODS + 1];

/* A start point of fuzzy connectedness: the voxel nearest to this point. */
struct conf_seed {
    enum conf_unit unit; /* { voxel | mm | fraction = [x, y, z]; } */
    double at[3];
};

/* A parameter that is measured at the seeds if the file does not give it. */
struct conf_estimable {
    bool given;
    double value; /* real-world units */
};

/* Annotation objects that a segment can be taken from. */
enum conf_object_kind { CONF_RTSTRUCT, CONF_SEG, CONF_SR };

/* Defines if a voxel whose centre lies on a contour is inside (kernels/mask/contours.h). */
enum conf_contour_pixels { CONF_PIXELS_INSIDE, CONF_PIXELS_CENTRES };

/* A region of an annotation object, selected by a name pattern or by its number. */
struct conf_object {
    enum conf_object_kind kind;
    char *roi; /* the name pattern; NULL: select by number */
    bool has_number;
    int number;
    char *from_ae;                   /* the required sender; NULL: any */
    double threshold;                /* CONF_SEG: of a FRACTIONAL segmentation */
    bool own;                        /* CONF_SEG, CONF_SR: accept objects that Noctule wrote */
    bool interpolate;                /* CONF_RTSTRUCT: fill planes between contours */
    enum conf_contour_pixels pixels; /* CONF_RTSTRUCT */
    bool each;                       /* create one segment per region that matches `roi` */
    bool unite;                      /* create one segment of all regions that match `roi` */
    bool optional;                   /* the region may be empty or absent */
    bool corrected;                  /* no option: the masks of a person (pipeline/segment/correction.h) */
};

extern const char *const conf_object_kind_names[];

/* RT ROI Interpreted Type (PS3.3 C.8.8.8.1), after "auto" and "none". */
enum { CONF_ROI_TYPE_AUTO, CONF_ROI_TYPE_NONE };

extern const char *const conf_roi_type_names[];

/* Origin of a range: given, or computed from the values of a segment or of the volume
 * (kernels/mask/relative.h defines each). */
enum conf_relative { CONF_ABSOLUTE, CONF_PERCENTILE, CONF_OTSU, CONF_SIGMA, CONF_OF_MAX };

/* Start region of a level set or fuzzy connectedness without shapes, seeds and `from`. */
enum conf_auto {
    CONF_AUTO_NONE,
    CONF_AUTO_LARGEST,
    CONF_AUTO_CENTER,
    CONF_AUTO_HIGHEST,
    CONF_AUTO_LOWEST,
};

struct conf_range {
    double ends[2]; /* CONF_ABSOLUTE: real-world units */
    enum conf_relative relative;
    double percentile[2];
    int otsu, otsu_class; /* the number of classes, and the selected class from 1 */
    bool has_class;
    double sigma;
    double of_max;
    char *of; /* a label; NULL: the volume without padding, or with CONF_SIGMA the start region */
};

/* Operations on the mask of a segment: base/mask_steps.def defines each. */
enum conf_step_kind {

#define MASK_STEP(NAME, AMOUNT, components, text) CONF_STEP_##NAME,
#include "base/mask_steps.def"
};

enum conf_fill { CONF_FILL_SLICES, CONF_FILL_VOLUME };

enum conf_space { CONF_SPACE_VOLUME, CONF_SPACE_SLICE };

struct conf_step {
    enum conf_step_kind kind;
    int keep;
    enum conf_fill fill;
    double amount; /* the other kinds: a share, ml, mm or a real-world value */
    int connectivity;
    enum conf_space space; /* of a ball: CONF_SPACE_SLICE is the disk in its slice */
};

/* Finds the outline of a segment of the coarse grid again in the voxels of the images. */
struct conf_refine {
    char *label;
    double band_mm; /* the outline may move by this much */
};

/* Directions of rays: to all 26 neighbours, or the 16 of kernels/enclosed/enclosed.h in a slice. */
enum conf_directions { CONF_DIRECTIONS_26, CONF_DIRECTIONS_AXIAL_16 };

/* CONF_ENCLOSED: voxels from which rays in at least `at_least` directions meet the segment `by`. */
struct conf_enclosed {
    char *by;
    enum conf_directions directions;
    int at_least;
    double within_mm;
};

/* CONF_SECTIONS: the longest chain of components of single slices of `from` that have this size and shape. */
struct conf_sections {
    double area_mm2[2];
    double box_mm;    /* the longest side of the box around a section */
    double fill;      /* the lowest share of its box */
    double aspect;    /* the largest ratio of the sides of its box */
    char *middle_of;  /* the segment whose centre in the slice is the middle */
    double middle_mm; /* the largest distance from it, left or right */
    double length_mm; /* a shorter chain is no result */
};

/* CONF_LEAK: the voxels connected with `from` below the highest limit at which the volume does not jump. */
struct conf_leak {
    double limits[2]; /* real-world values: the first and the last upper limit */
    double step;
    double most_ml;
    double growth;   /* share of its volume that a step may add, and */
    double extra_ml; /* this volume besides */
};

enum conf_which { CONF_RIGHT, CONF_LEFT };

/* CONF_SIDE: the right or the left half of `from`, in the patient's axes. */
struct conf_side {
    enum conf_which which;
    double share;        /* the smaller of the two parts that shrinking leaves has at least this share of both */
    double apart_mm;     /* distance of their centres, left to right */
    double shrink_mm[9]; /* radii to try, ascending */
};

/* CONF_SLICES: `from` in slices where the voxels of `label` are this share of those of `from`. */
struct conf_slices_where {
    char *label;
    double share[2];
    bool longest;       /* of runs of such slices, take the longest alone */
    double at_least_mm; /* drop shorter runs */
};

/* The lowest and the highest accepted value, both inclusive. */
struct conf_bounds {
    bool given;
    double at[2];
};

/* Faces of the volume that a segment may touch. */
enum conf_touches { CONF_TOUCHES_ANY, CONF_TOUCHES_TOP_BOTTOM, CONF_TOUCHES_NONE };

struct conf_share {
    char *label; /* of another segment */
    double range[2];
};

/* Results that need no review: those that meet the expectations, or among these, those within the ranges that this site
 * has validated (service/common/trust.h). */
enum conf_trust { CONF_TRUST_CHECKS, CONF_TRUST_LOCAL };

/* One limit. */
struct conf_limit {
    bool given;
    double at;
};

/* The scale of the values of a volume, checked on a segment that is the body (service/pipeline/expect/look_values.c). */
enum conf_frame { CONF_FRAME_ANY, CONF_FRAME_CT_BODY };

/* The share of the outline that lies near another segment. */
struct conf_near {
    char *label;
    double mm, share;
    double outline_mm; /* the outline is the voxels outside, up to this distance; 0: its own outermost voxels */
    enum conf_space space;
    double slice_share; /* CONF_SPACE_SLICE: the lowest 5th percentile of the slices; 0: no limit */
};

/* The largest contact with faces of the volume, in the patient's axes, cm2. */
struct conf_face_cm2 {
    struct conf_limit lowest, highest, sides;
};

/* The sides of its box along the patient's axes, mm. */
struct conf_extent_mm {
    struct conf_bounds height, depth, width;
};

/* Its share of its closing, and the tissue in the rest. */
struct conf_solidity {
    double mm, at_least;
    char *within;              /* cuts the closing; NULL: does not */
    double thick_mm, dense_ml; /* thick_mm = 0: no limit */
};

/* The largest volume of a segment that others left out: the larger of two limits. */
struct conf_dropped {
    double ml;
    char *label;
    double share; /* of the volume of `label` */
};

/* The largest change of its area along the body. */
struct conf_jump {
    double mm, most;
    char *label; /* as a share of this segment's area; NULL: of its own largest area */
};

/* The other half of a pair, such as the left lung. */
struct conf_beside {
    char *label;
    double tops_mm, bases_mm;
    double over_mm, share, upper_share;
};

/* Plausibility limits of a segment. An empty segment is not plausible, unless it may be empty. */

struct conf_expect {
    struct conf_bounds volume_ml, mean, components, slices;
    enum conf_touches touches;
    struct conf_share *share_of;
    struct conf_bounds share_of_box;
    bool may_be_empty;
    struct conf_limit slice_parts, mirror, ends;
    struct conf_extent_mm *extent_mm;
    struct conf_face_cm2 *face_cm2;
    struct conf_near *near;
    struct conf_solidity *solidity;
    struct conf_dropped *dropped;
    struct conf_jump *jump;
    struct conf_beside *beside;
    /* Limits of the images: */
    enum conf_frame frame;
    struct conf_limit noise;
    struct conf_bounds slice_mm;
    char *unit; /* UCUM; NULL: any */
    bool has_contrast, contrast;
    enum conf_trust trust; /* without effect if the pipeline is `unreviewed` */
    double trust_dice;     /* the lowest Dice of a DONE result in a validation */
};

#define CONF_CATEGORY "123037004" /* the default category: SCT, Anatomical Structure */

/* A label value of a program's output, for `segments = "all labels"`. */
struct conf_label {
    char *name;
    int value; /* 1..65535 */
    struct coded_concept category, type, modifier, region;
    double color[3]; /* RGB, 0..1 */
};

enum conf_volume { CONF_NIFTI, CONF_NRRD, CONF_DICOM };

enum conf_output { CONF_OUTPUT_NIFTI, CONF_OUTPUT_NRRD, CONF_OUTPUT_SEG, CONF_OUTPUT_RTSTRUCT };

enum conf_gpu { CONF_GPU_NONE, CONF_GPU_SHARED, CONF_GPU_WHOLE };

enum conf_family {

#define FAMILY(NAME, word, code, meaning) CONF_FAMILY_##NAME,
#include "base/algorithm_families.def"
};

/* The algorithm that a program runs, as results state it. */
struct conf_algorithm {
    char *name, *version;
    enum conf_family family;
    char *source; /* URI; "" if not given */
};

/* A program of the site that writes a label map. Its output is used by segments with CONF_PROGRAM. */
struct conf_program {
    char *name;
    char **command; /* argument vector with placeholders; the first word is an absolute path */
    size_t command_count;
    char **cpu_command; /* used without a GPU once the GPU's memory did not suffice; none: 0 */
    size_t cpu_command_count;
    char **environment; /* "NAME=VALUE"; no other variable is inherited */
    size_t environment_count;
    enum conf_volume input;
    char *input_file; /* name in the input folder, with placeholders; NULL with CONF_DICOM */
    bool task_file;   /* write task.json, which modules of mercure read */
    enum conf_output output;
    char *output_file; /* name in the output folder, with placeholders; "": the only file of the format */
    bool has_threshold;
    double threshold; /* fractions of at least this value have label 1 */
    bool resample;    /* take the nearest voxel of an output on another grid; false: refuse it */
    struct conf_algorithm algorithm;
    struct conf_label *labels;
    size_t label_count;
    bool ignore_others; /* values that neither a label nor a segment names */
    char **weights;     /* absolute paths, read-only for the program; their digest is part of results */
    size_t weights_count;
    char **read; /* further absolute paths, read-only for the program */
    size_t read_count;
    bool container;    /* the command is podman, docker or apptainer, which makes the sandbox */
    bool host_network; /* the program may use the network */
    enum conf_gpu gpu;
    double gpu_memory_mib;
    int cpus;          /* 0: no limit */
    double memory_mib; /* 0: no limit */
    int processes;
    double deadline_seconds;
    double silence_seconds; /* 0: not checked */
    double output_mib;
    int output_files;
    int max_attempts;
    bool warm; /* the process stays for the next case */
    double warm_seconds;
};

struct conf_segment {
    char *label;
    char *description; /* "" if not given */
    enum conf_method method;
    /* Options of methods; 0 for a method that does not use them. */
    struct conf_range range;
    struct conf_shape *shapes;
    size_t shape_count;
    char *from;
    enum conf_auto automatic;
    double auto_mm;
    struct conf_seed *seeds;
    size_t seed_count;
    struct conf_estimable object_mean, object_sigma, homogeneity_sigma;
    int estimate_voxels;
    double weight, threshold;
    bool connectedness_map;
    double grid_mm;             /* size of the blocks that the segment is found on; 0: the voxels of the images */
    double smooth_mm;           /* CONF_RANGE: standard deviation of the filter of the values; 0: none */
    struct conf_refine *refine; /* CONF_RANGE; NULL: not given */
    char **any_of;              /* CONF_ANY_OF: labels of the segments to unite */
    size_t any_of_count;
    struct conf_enclosed enclosed;
    struct conf_sections sections;
    struct conf_leak leak;
    struct conf_side side;
    struct conf_slices_where slices_where;
    struct conf_object object;
    char *program; /* of CONF_PROGRAM: the name of a row of `programs` */
    int *values;   /* label values of the program's output that the segment takes */
    size_t value_count;
    /* Labels of other segments. The mask must lie in each segment of `within` and `intersect`, and
     * in no segment of `minus`, before the steps and after each step. */
    char **within, **minus, **intersect;
    size_t within_count, minus_count, intersect_count;
    struct conf_step *then;
    size_t then_count;
    bool hidden;         /* only other segments use it; it is no part of the results */
    unsigned quantities; /* 1 << enum quantity (base/quantities.h), OR-ed */
    /* Only hidden segments and segments that take the codes of a SEG may lack a type. */
    struct coded_concept category, type, modifier, region;
    double color[3]; /* RGB, 0..1 */
    int roi_type;    /* index in conf_roi_type_names; the first two stand for the category and for no type */
    struct conf_expect *expect;
};

/* The machines that may run the jobs of a pipeline. */
enum conf_where { CONF_ANYWHERE, CONF_HERE, CONF_ON_SLURM };

/* Changes since an earlier study: not measured; since the latest one that is stored here; or since the latest one that
 * the archive has, which is fetched first. */
enum conf_changes { CONF_CHANGES_NONE, CONF_CHANGES_STORED, CONF_CHANGES_PULL };

/* Handling of a result outside the limits of `expect`: hold it for review, or deliver it. */
enum conf_review { CONF_HOLD, CONF_DELIVER };

/* SOP class of the report. */
enum conf_sr_class { CONF_SR_ENHANCED, CONF_SR_COMPREHENSIVE_3D };

enum conf_result { /* OR-able, in the order of the option's words */
                   CONF_RESULT_SEG = 1 << 0,
                   CONF_RESULT_CODES = 1 << 1,
                   CONF_RESULT_SR = 1 << 2,
                   CONF_RESULT_PMAP = 1 << 3,
                   CONF_RESULT_LABELMAP = 1 << 4,
                   CONF_RESULT_RTSTRUCT = 1 << 5,
                   CONF_RESULT_NIFTI = 1 << 6,
                   CONF_RESULT_PICTURE = 1 << 7,
};

/* Handling of a voxel of several segments in a label map: refuse the object, or use the last segment. */
enum conf_overlap { CONF_OVERLAP_REFUSE, CONF_OVERLAP_LAST };

/* Encoding of segmentations and maps, in the order of enum derived_compression. */
enum conf_compression { CONF_COMPRESSION_NONE, CONF_COMPRESSION_RLE, CONF_COMPRESSION_DEFLATED };

#define CONF_RESULT_FILES (CONF_RESULT_CODES | CONF_RESULT_NIFTI) /* those that are no DICOM objects */

/* Holes in the contours of a structure set: joined to the outline, or contours of their own. */
enum conf_holes { CONF_HOLES_KEYHOLE, CONF_HOLES_XOR };

/* Handling of a stack that is sheared or unevenly spaced. */
enum conf_tilt { CONF_TILT_STRAIGHTEN, CONF_TILT_REFUSE };

/* Frames of the segmentations of a straightened stack: the source's planes, or the slices of the upright grid. */
enum conf_seg_grid { CONF_SEG_SOURCE, CONF_SEG_UPRIGHT };

/* Unit of the values of a pipeline: that of the images, or a standardised uptake value of PET (suv_units.def). */
enum conf_unit_of_values {
    CONF_UNIT_OF_IMAGES,

#define SUV_UNIT(id, ...) CONF_UNIT_SUV_##id,
#include "base/suv_units.def"
#undef SUV_UNIT
};

/* Regions that texture is measured of. */
enum conf_region { CONF_SEGMENTS = 1, CONF_VOLUME = 2 }; /* OR-able */

/* Times of the week, as text and parsed. */
struct conf_window {
    char *text;
    struct time_window *times;
};

/* The max number of segments of a pipeline; `each` regions count as segments of their own. */
#define CONF_MAX_SEGMENTS 256

/* The value of a pixel of a 2-D image with colour, in the order of enum dicom_channel. */
enum conf_colour { CONF_LUMA, CONF_RED, CONF_GREEN, CONF_BLUE };

struct conf_pipeline {
    char *name;
    struct conf_segment *segments;
    size_t segment_count;
    struct texture_options *texture; /* one element per set of measurements */
    size_t texture_count;
    unsigned results; /* enum conf_result */
    enum conf_sr_class sr_class;
    /* Each voxel belongs to at most one of the CONF_FUZZY segments. */
    bool relative_connectedness;
    bool omit_empty_frames;
    enum conf_overlap overlap;
    enum conf_holes rtstruct_holes;
    int min_slices;           /* stacks of fewer slices are rejected with TOO_FEW_SLICES */
    double spacing_tolerance; /* relative */
    enum conf_newest duplicates;
    enum conf_tilt tilt;
    double grid_mm; /* slice distance of a straightened stack; 0: that of its closest planes */
    enum conf_seg_grid seg_grid;
    enum conf_unit_of_values unit;
    bool derived; /* accept reformats, projections and maps as images */
    bool flat;    /* accept 2-D images, each frame as a stack of one slice */
    enum conf_colour colour;
    enum conf_review review;
    enum conf_changes changes;
    bool unreviewed;          /* deliver results of segments with `trust` without a validation */
    char *series_description; /* "": derived from the name */
    int series_number;
    bool picture_single;      /* pictures are objects of one frame each */
    double preview_window[2]; /* centre and width of the grey window of pictures; width 0: chosen from the images */
    /* The members below are no part of the results' identity (conf_pipeline_identity). */
#define CONF_PATIENCE_SECONDS 86400.0 /* the default of patience_seconds */
    enum conf_compression compression;
    double patience_seconds;   /* max wait for missing annotation objects */
    double prior_wait_seconds; /* max wait for the earlier study that is fetched */
    char *prior_source;        /* the archive; "": the first of pull.sources */
    double memory_mib;         /* of a job; 0: the value of struct conf_jobs */
    double deadline_seconds;   /* the same */
    bool by_hand;              /* no rule needs to name this pipeline */
    char **deliver;            /* names of destinations, and CONF_SENDER */
    size_t deliver_count;
    /* The next three are no part of a job's settings either: conf_pipeline_to_text omits them. */
    struct conf_window *window;  /* NULL: at any time */
    struct conf_window *done_by; /* moments, not intervals */
    enum conf_where executor;
};

#define CONF_SENDER       "sender" /* in `deliver`: the AE that sent the series */

#define CONF_MIN_PRIORITY (-1000)
#define CONF_MAX_PRIORITY 1000

/* Tests that a rule can apply to an attribute. */
enum conf_attribute_test {
    CONF_ATTRIBUTE_NONE,
    CONF_ATTRIBUTE_IS,
    CONF_ATTRIBUTE_GLOB,
    CONF_ATTRIBUTE_REGEX,
    CONF_ATTRIBUTE_RANGE,
    CONF_ATTRIBUTE_PRESENT,
};

/* A regular expression (expression.h). */
struct conf_regex {
    char *text;
    struct expression *compiled;
};

struct conf_attribute {
    char *tag;     /* the keyword, or "(gggg,eeee)" */
    char *creator; /* only of a private attribute */
    enum conf_attribute_test test;
    char **is; /* the accepted values */
    size_t is_count;
    char *glob;
    struct conf_regex *regex;
    double range[2]; /* inclusive */
    bool present;
    bool negated; /* no value may pass the test */
};

/* The patient axis that is nearest to the normal of a stack. */
enum conf_orientation { CONF_ANY_ORIENTATION, CONF_AXIAL, CONF_CORONAL, CONF_SAGITTAL, CONF_OBLIQUE };

/* A required other series of the same study. Members are compared as those of a rule. */
struct conf_companion {
    char *modality, *body_part, *description;
};

/* A rule matches if all given members match. */
struct conf_rule {
    char *name;
    char *modality;
    char *body_part;
    char *description;                 /* case-insensitive substring of Series Description */
    char *inbox;                       /* name or path of the inbox of the series */
    char *called_ae, *sender;          /* of the first C-STORE of the series */
    int min_slices, max_slices;        /* 0: no limit */
    struct conf_attribute *attributes; /* each must match */
    size_t attribute_count;
    enum conf_orientation orientation;
    bool has_spacing, has_contrast; /* the next two are given */
    double spacing[2];              /* mm between slices, inclusive */
    bool contrast;
    struct conf_companion *study; /* each must be accepted before a job runs */
    size_t study_count;
    char *pipeline;
    int priority;   /* jobs with larger values run first */
    char *stacks;   /* CONF_ALL_STACKS ..., or a name pattern; NULL: all, up to a limit */
    bool otherwise; /* matches only series that no other rule matches */
    bool off;       /* always false: loading drops rules that are off */
    int number;     /* from 1; 0: not a rule of the file */
};

#define CONF_ALL_STACKS  "all"
#define CONF_FIRST_STACK "first"
#define CONF_LAST_STACK  "last"
#define CONF_B0_STACKS   "b0" /* without diffusion weighting */

struct conf_jobs {
    int max_attempts;
    double retry_seconds; /* the first delay, doubled before each further attempt */
    double retry_max_seconds;
    double deadline_seconds; /* a job that runs longer is stopped */
    double memory_mib;       /* per job; 0: the memory of the machine */
    double ageing_hours;     /* waiting time that raises the priority by 1; 0: never */
};

enum conf_executor { CONF_EXECUTOR_LOCAL, CONF_EXECUTOR_SLURM, CONF_EXECUTOR_BOTH };

/* Submission of jobs to Slurm. */
struct conf_slurm {
    char *share;     /* a folder that the compute nodes have under the same path */
    char *program;   /* the path of noctule on the nodes */
    char *partition; /* "": Slurm's default */
    char *gres;      /* the same */
    int time_minutes;
    char **arguments; /* further arguments of sbatch */
    size_t argument_count;
    double batch_seconds; /* shorter jobs share a Slurm job, up to this much work */
    int max_submitted;    /* max Slurm jobs in the queue */
    double poll_seconds;
    int backlog_jobs; /* CONF_EXECUTOR_BOTH: this many waiting jobs stay on this machine */
};

struct conf_compute {
    enum conf_executor executor;
    struct conf_slurm slurm;
    char *backend;  /* "auto", "cuda", "cpu" */
    char **devices; /* GPUs, by index or UUID; NULL: all */
    size_t device_count;
    int threads;     /* of a job that runs alone; 0: all */
    int lanes;       /* concurrent jobs per worker */
    double keep_mib; /* pinned memory per lane of a GPU worker, allocated at its start */
    int programs;    /* runs of programs at the same time */
};

/* One of our own AE titles. */
struct conf_title {
    char *ae_title;
    char *pipeline; /* processes every series sent to this title; NULL: the rules decide */
    char *stacks;   /* as of a rule, for this pipeline */
};

/* A caller that may connect. NULL members are not checked. Peers may share an AE title. */
struct conf_peer {
    char *ae_title;
    char *host;              /* an IPv4 or IPv6 address, as inet_ntop() writes it */
    char *certificate;       /* SHA-256 of the certificate's DER form: 64 lower-case digits */
    int max_associations;    /* 0: half of all if there are other peers (admission_share) */
    enum conf_newest resent; /* as of an inbox */
};

/* PEM files, for both directions. certificate and key are both NULL or both given. */
struct conf_tls {
    char *certificate; /* with its chain */
    char *key;
    char *ca;          /* the trusted authorities */
    char *crl;         /* their revocation lists; NULL: revocation is not checked */
    bool require_peer; /* callers must show a certificate of `ca` */
};

struct conf_dicom {
    char *bind;   /* the local address; "": all addresses */
    int port;     /* 0: closed */
    int tls_port; /* the same */
    struct conf_title *titles;
    size_t title_count; /* at least one */
    struct conf_peer *peers;
    size_t peer_count;
    int max_associations;
    double acse_seconds;       /* timeout of an association request, or of the answer to ours */
    double dimse_seconds;      /* timeout of the next part of a message */
    double idle_seconds;       /* timeout of the next message */
    double min_kib_per_second; /* of a message after its first dimse_seconds; 0: any */
    int max_instance_mib;
    int max_pdu_kib;
    bool echo_from_anybody; /* answer C-ECHO, and no other command, to callers that are no peers */
    struct conf_tls tls;
};

/* A `folder`, a `stow` URL, or an AE with ae_title, host and port.
 * options/option_delivery.c defines the options of each kind. */
/* What a destination gets. */
enum conf_send { CONF_SEND_RESULTS = 1 << 0, CONF_SEND_IMAGES = 1 << 1 }; /* OR-able */

/* Copies without the identity of the patient (dicom/deidentify/deidentify.h). */
enum conf_deidentify_profile { CONF_PROFILE_BASIC };

enum conf_deidentify_patient { CONF_PATIENT_PSEUDONYM, CONF_PATIENT_EMPTY };

struct conf_deidentify {
    enum conf_deidentify_profile profile;
    unsigned keep; /* enum deidentify_keep: the order of the words is the same */
    enum conf_deidentify_patient patient;
    char **words; /* that cleaned texts may keep, besides those of the pipelines */
    size_t word_count;
};

struct conf_destination {
    char *name;
    char *folder;
    char *stow; /* the URL of a STOW-RS service */
    char *ca;   /* stow: the trusted authorities, PEM; NULL: those of the system */
    /* stow: PEM; without a key file, the certificate file contains the key */
    char *client_certificate, *client_key;
    char *token_file, *login_file; /* stow: at most one is given */
    char *ae_title;
    char *host; /* a name, or an IPv4 or IPv6 address */
    int port;
    char *calling_ae_title; /* default: the first of our titles */
    bool tls;
    char *certificate;                  /* SHA-256, as of a peer; NULL: any valid certificate of the host */
    bool commit;                        /* a result is SENT only after its storage commitment */
    double commit_seconds;              /* timeout of the commitment */
    char *fallback;                     /* the destination of results that this one does not support */
    unsigned takes;                     /* enum conf_result: the kinds of results that it gets; 0: all DICOM objects */
    unsigned send;                      /* enum conf_send */
    struct conf_deidentify *deidentify; /* NULL: objects leave as they are */
    double connect_seconds, dimse_seconds;
    double min_kib_per_second; /* of a message after its first dimse_seconds; 0: any */
    double idle_seconds;       /* time that an unused association stays open */
};

struct conf_delivery {
    double retry_seconds; /* the first delay, doubled before each further attempt */
    double retry_max_seconds;
    double give_up_seconds; /* a delivery fails after trying for this long */
    int breaker_failures;   /* consecutive failures that open the circuit breaker */
    double breaker_seconds; /* time until the next attempt */
};

/* The unit of a C-MOVE request. */
enum conf_pull_level { CONF_PULL_STUDY, CONF_PULL_SERIES };

/* An archive that is queried by C-FIND and sends to one of our titles after a C-MOVE. */
struct conf_source {
    char *name;
    char *ae_title;
    char *host; /* this and the next members: as of a destination */
    int port;
    char *calling_ae_title;
    bool tls;
    char *certificate;
    double connect_seconds, dimse_seconds;
    char *move_destination; /* default: the first of our titles */
    enum conf_pull_level level;
    struct conf_window *window; /* C-FIND and C-MOVE may start within; NULL: at any time */
    int per_hour;               /* max items that start per hour; 0: no limit, one at a time */
    double deadline_seconds;    /* of one C-FIND, and of one C-MOVE */
    double arrival_seconds;     /* timeout of instances that the archive reports as sent */
};

struct conf_pull {
    struct conf_source *sources;
    size_t source_count;
};

/* Retention times in days; 0: forever. */
struct conf_retention {
    double series_days;     /* images, from the end of the last job of a complete series */
    double results_days;    /* delivered results, from the end of their job */
    double quarantine_days; /* files in quarantine */
    double events_days;     /* database rows of removed items, from their last event */
    double min_days;        /* younger items are never removed to free space */
    double low_mib;         /* free space below which the oldest items are removed; 0: never */
    double high_mib;        /* free space at which that ends */
    /* Delete a removed series from its inbox with CONF_KEEP. If false, such series stay. */
    bool delete_originals;
};

/* The backups of the site; `noctule doctor` checks them. */
struct conf_backup {
    char *folder; /* NULL: unknown */
    double max_age_hours;
};

/* The report of each report period (service/daemon/report/). */
struct conf_report {
    struct conf_window *at; /* moments: the ends of the periods */
    char *command;          /* run by /bin/sh to deliver the report */
    double timeout_seconds;
};

/* Events that a site's command can receive. */
enum conf_notify_event {
    CONF_NOTIFY_ALERT = 1 << 0,
    CONF_NOTIFY_JOB_FAILED = 1 << 1,
    CONF_NOTIFY_JOB_REVIEW = 1 << 2,
    CONF_NOTIFY_SERIES_REFUSED = 1 << 3,
};

/* A command that receives single events. */
struct conf_notify {
    char *name;
    unsigned events; /* enum conf_notify_event */
    char *command;   /* of /bin/sh */
    double interval_seconds, timeout_seconds;
};

enum conf_page_may {
    CONF_PAGE_REVIEW = 1 << 0,
    CONF_PAGE_DELIVERIES = 1 << 1,
    CONF_PAGE_QUARANTINE = 1 << 2,
    CONF_PAGE_JOBS = 1 << 3,
    CONF_PAGE_ALERTS = 1 << 4,
    CONF_PAGE_FILTERS = 1 << 5,
    CONF_PAGE_MASKS = 1 << 6,
};

/* The web UI. Addresses other than loopback must have token_file, tokens_file or user_header. */
struct conf_page {
    int port; /* 0: closed */
    char *bind;
    char *socket;      /* path of a Unix socket instead of a port; NULL if unset */
    char *socket_mode; /* its permissions, octal */
    char *zone;        /* time zone of the pages; NULL: that of the machine */
    char *token_file;  /* of viewers without a name; NULL if unset */
    char **hosts;      /* accepted host names besides localhost and addresses */
    size_t host_count;
    bool slices;                   /* all jobs leave a file for the slice viewer, not only those under review */
    char *viewer;                  /* URL of a viewer, with {study_uid} and {series_uid}; NULL: none */
    unsigned may;                  /* enum conf_page_may: decisions that it accepts */
    char *tokens_file;             /* of persons with their roles; NULL: none */
    char *user_header;             /* in which a proxy names the person; NULL: none */
    char *secret_file;             /* of that proxy; NULL only without user_header */
    char **reviewers, **operators; /* names as in user_header; others are viewers */
    size_t reviewer_count, operator_count;
    double undo_seconds; /* before a decision on a result takes effect */
};

struct conf {
    char *root;
    struct conf_inbox *inboxes;
    size_t inbox_count;
    struct conf_series series;
    struct conf_jobs jobs;
    struct conf_compute compute;
    struct conf_dicom dicom;
    struct conf_destination *destinations;
    size_t destination_count;
    struct conf_delivery delivery;
    struct conf_pull pull;
    struct conf_retention retention;
    struct conf_backup backup;
    struct conf_report report;
    struct conf_notify *notify;
    size_t notify_count;
    struct conf_page page;
    double min_free_mib; /* with less free disk space, no file is received and no job starts */
    struct conf_program *programs;
    size_t program_count;
    struct conf_pipeline *pipelines;
    size_t pipeline_count;
    struct conf_rule *rules;
    size_t rule_count;
    char *device_serial_number; /* of this installation; written into every result */
    enum conf_identifiers identifiers;
    char *log_level; /* "error", "warn", "info", "debug" */
};

/* Sets the function that classifies the tags of rules. The program must call this once, before it
 * loads a configuration and before it starts a thread. Without it, every tag is unknown. */
void conf_set_dictionary(enum attribute_kind (*kind_of)(const char *tag));

/* Reads and checks `path`, and makes its paths absolute. Returns 0, -EINVAL with the error
 * "FILE:LINE: message", or another -errno if the file cannot be read. The caller must set *conf to
 * NULL before; it stays NULL on error. The caller must free it with conf_free(). */
int conf_load(const char *path, struct conf **conf, struct error *error);
/* Does the same with another root folder; NULL: the root of the file. A relative root is relative
 * to the current folder. Relative paths of the file are relative to the root. */
int conf_load_with_root(const char *path, const char *root_override, struct conf **conf, struct error *error);

#define CONF_FINDINGS 100

/* Errors of a configuration, and warnings if there are no errors, in line order. Consequences of an
 * earlier error are omitted. */
struct conf_findings {
    struct conf_finding {
        bool wrong;       /* false: a warning */
        char *message;    /* "FILE:LINE: message" */
        unsigned line;    /* private: of the expanded text */
        const char *text; /* private: the message after the option's name */
    } items[CONF_FINDINGS];

    size_t count;
    size_t more; /* findings beyond CONF_FINDINGS; reading stops after 1000 errors */
    /* The "FILE:LINE" of each pipeline, then of each destination, rule, notification, and program. */
    char **places;
    size_t place_count;
    char *files;   /* all files that were read, one per line, this file first */
    char *folders; /* of @overlay patterns, one per line; files that appear there are read, too */
};

/* Does the same and reports all findings; the error is the first of them. Returns an error without
 * findings if the file cannot be read or parsed. The caller must free the findings in any case. */
int conf_load_all(const char *path, const char *root_override, struct conf **conf, struct conf_findings *findings,
                  struct error *error);
void conf_findings_free(struct conf_findings *findings);
/* Finds the root folder in a file that may have errors; "" if it gives none. Returns 0 or -errno.
 * The caller must free *root. */
int conf_find_root(const char *path, char **root);
/* Returns the path of an installed data file or folder, such as "presets"; NULL if there is no
 * memory or no /proc. It is relative to the running program, BIN/../share/noctule, so that it is
 * valid for each installation prefix, and in a build folder, which links to the sources. The caller
 * must free it. */
char *conf_share_path(const char *name);
void conf_free(struct conf *conf);

/* Returns the whole configuration as text, which conf_from_text() reads back to the same values;
 * NULL if there is no memory. The daemon passes it to its children, so that they use exactly the
 * checked configuration. The caller must free the text. */
char *conf_to_text(const struct conf *conf);
int conf_from_text(const char *text, struct conf **conf, struct error *error);

/* Returns the index of the first segment with this label, or segment_count if there is none. */
size_t conf_find_segment(const struct conf_pipeline *pipeline, const char *label);

/* The use of one segment by another. */
struct conf_use {
    const char *option; /* "within" */
    const char *label;
    bool start; /* the method needs the segment; if false, only the limits after it do */
};

/* Returns the use `number` (from 0) of the segment, or false if it has fewer uses. A segment may
 * use another one twice. Segments of relative connectedness are found together: a use that one of
 * them needs to start is a use of all. */
bool conf_segment_use(const struct conf_pipeline *pipeline, size_t segment, size_t number, struct conf_use *use);

/* Returns label `number` (from 0) that the limits in `expect` of the segment name, with its option, such as
 * "expect.share_of.label"; NULL if there are fewer. */
const char *conf_expect_label(const struct conf_segment *segment, size_t number, const char **option);

/* Returns the program of this name, or NULL. */
const struct conf_program *conf_find_program(const struct conf *conf, const char *name);
/* Returns whether a segment of the pipeline takes the output of this program; NULL: of any program. */
bool conf_pipeline_names_program(const struct conf_pipeline *pipeline, const char *program);
/* Returns a program as text, which conf_program_from_text() reads back to the same values; NULL without memory. The
 * caller must free the text. */
char *conf_program_to_text(const struct conf_program *program);
/* Returns 0 or -errno with the error filled. The caller must free the program with conf_program_free(). */
int conf_program_from_text(const char *text, struct conf_program **program, struct error *error);
void conf_program_free(struct conf_program *program);
/* Returns those options of a program as text that can change its output, or the algorithm that results state: neither
 * name, labels, weights nor limits are among them. NULL without memory. The caller must free the text. */
char *conf_program_identity(const struct conf_program *program);
/* Returns those options of a pipeline as text that decide the volume that a program reads; NULL without memory. Pipelines
 * with equal text share the runs of a program. The caller must free the text. */
char *conf_grid_text(const struct conf_pipeline *pipeline);
/* Returns those options of a pipeline as text that decide its masks and their checks; NULL without memory. The caller must
 * free the text. */
char *conf_checked_text(const struct conf_pipeline *pipeline);
/* Finds the label values that the program's labels or a segment of a pipeline names, in ascending order. Returns 0 or
 * -ENOMEM. The caller must free *values. */
int conf_accepted_labels(const struct conf *conf, const struct conf_program *program, uint16_t **values, size_t *count);

/* Returns the regions that texture groups, quantities and changes measure: enum conf_region, OR-ed. */
unsigned conf_measured_regions(const struct conf_pipeline *pipeline);

/* Returns whether the segment is an unchanged region of an RTSTRUCT or SEG. */
bool conf_segment_is_object(const struct conf_segment *segment);

/* Returns whether one segment is created per matching region of an annotation object. */
bool conf_segment_is_each(const struct conf_segment *segment);

/* Returns whether a segment accepts annotation objects that Noctule wrote. */
bool conf_pipeline_takes_own(const struct conf_pipeline *pipeline);

/* Returns the number of the segment among the written ones, from 1, or 0 if it is hidden. */
int32_t conf_segment_number(const struct conf_pipeline *pipeline, size_t segment);

/* Returns whether the start is searched in the image, within the segments of `within`. */
bool conf_segment_looks(const struct conf_segment *segment);

/* These return NULL if there is no such element. */
const struct conf_pipeline *conf_find_pipeline(const struct conf *conf, const char *name);
const struct conf_destination *conf_find_destination(const struct conf *conf, const char *name);
const struct conf_source *conf_find_source(const struct conf *conf, const char *name);
/* Writes the kinds of v_results that the destination takes, each between blanks: " seg seg-fractional sr "; "": all
 * DICOM objects. With source images, CONF_KIND_IMAGES is one of them. Without `takes`, a destination of de-identified
 * copies takes all DICOM objects but pictures, on which labels are drawn. */
#define CONF_TAKES       128
#define CONF_KIND_IMAGES "images" /* all source images of a job, as one delivery */
void conf_takes(const struct conf_destination *destination, char text[CONF_TAKES]);
/* Returns the first AE with that title; resolves CONF_SENDER. */
const struct conf_destination *conf_find_destination_ae(const struct conf *conf, const char *ae_title);
/* Returns whether the web UI listens on a port or a socket. */
bool conf_page_is_open(const struct conf_page *page);
/* Returns whether its address is a loopback address. */
bool conf_page_is_local(const struct conf_page *page);
/* Returns whether jobs may be submitted to Slurm. */
bool conf_uses_slurm(const struct conf *conf);
const struct conf_title *conf_find_title(const struct conf *conf, const char *ae_title);
/* Returns the inbox with this path, as database rows store it. */
const struct conf_inbox *conf_find_inbox(const struct conf *conf, const char *path);
/* Returns whether the text is the name or the path of the inbox. */
bool conf_inbox_is(const struct conf_inbox *inbox, const char *name);

/* Returns one pipeline as text with every default, or NULL if there is no memory. A job stores its
 * pipeline in this form. `deliver` is omitted: the sender looks it up in the current configuration
 * by the pipeline's name. The caller must free the text. */
char *conf_pipeline_to_text(const struct conf_pipeline *pipeline);
/* Returns 0, or -EINVAL or -ENOMEM with an error. Free *pipeline with conf_pipeline_free(). */
int conf_pipeline_from_text(const char *text, struct conf_pipeline **pipeline, struct error *error);
void conf_pipeline_free(struct conf_pipeline *pipeline);
/* Returns the text that the UIDs of results are derived from, or NULL if there is no memory. It
 * must not change between versions, so it omits newer options (option_row.later) at their default.
 * The caller must free the text. */
char *conf_pipeline_identity(const struct conf_pipeline *pipeline);

#endif
