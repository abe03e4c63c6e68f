/*
 * options.c - the option table, and what follows from it without any file.
 *
 * To add an option: a field in config.h, a row here, a line in noctule.conf. unit.config_options
 * fails until all three agree.
 */
#include "config/options.h"

#include "config/cross_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#define ROWS(array)       .rows = (array), .row_count = sizeof(array) / sizeof((array)[0])
#define AT(type, field)   .offset = offsetof(type, field)
#define LIMITS(low, high) .lo = (low), .hi = (high)
#define MANY(type, field) .count_offset = offsetof(type, field)
#define EITHER(type, field, value)                                                                 \
    .alternative = true, .unit_offset = offsetof(type, field), .unit = (value)
#define ESTIMABLE(type, field)                                                                     \
    .offset = offsetof(type, field.value), .optional = true,                                       \
    .given_offset = offsetof(type, field.given), .fallback = ""
#define LEVEL_SET_ONLY .with = "method", .with_choices = 1u << CONF_LEVEL_SET
#define FUZZY_ONLY     .with = "method", .with_choices = 1u << CONF_FUZZY
#define LEVELS_ONLY                                                                                \
    .with = "discretisation", .with_choices = 1u << CONF_PAPER | 1u << CONF_FIXED_BIN_NUMBER
#define BIN_WIDTH_ONLY                                                                             \
    .with = "discretisation",                                                                      \
    .with_choices = 1u << CONF_FIXED_BIN_SIZE | 1u << CONF_PYRADIOMICS_BIN_WIDTH
#define IN_SLICES_ONLY                                                                             \
    .with = "aggregation", .with_choices = 1u << CONF_2D_AVERAGED | 1u << CONF_2D_SLICE_MERGED |   \
                                           1u << CONF_2_5D_DIRECTION_MERGED |                      \
                                           1u << CONF_2_5D_MERGED
#define TLBAP_ONLY  .with = "patterns", .with_choices = CONF_TLBAP
#define LANADP_ONLY .with = "patterns", .with_choices = CONF_LANADP

/* Centres may lie outside the volume (mm), but not where arithmetic loses voxels. */
#define FAR 1e6

static const char *const after_choices[] = {"keep", "move", "delete", NULL};
static const char *const shape_choices[] = {"sphere", "ellipsoid", "box", NULL};
static const char *const method_choices[] = {"level-set", "fuzzy-connectedness", NULL};
static const char *const result_choices[] = {"seg", "codes", "sr", "pmap", NULL};
static const char *const region_choices[] = {"segments", "volume", NULL};
static const char *const discretisation_choices[] = {"paper", "fixed-bin-number", "fixed-bin-size",
                                                     "pyradiomics-bin-width", NULL};
static const char *const aggregation_choices[] = {
    "2d-averaged", "2d-slice-merged", "2.5d-direction-merged",
    "2.5d-merged", "3d-averaged",     "3d-merged",
    NULL};
static const char *const matrices_choices[] = {"none", "counts", "normalised", NULL};
static const char *const pattern_choices[] = {"lbp", "tlbap", "lanadp", NULL};
static const char *const average_choices[] = {"exact", "integer", NULL};
static const char *const backend_choices[] = {"auto", "cuda", "cpu", NULL};
static const char *const log_choices[] = {"error", "warn", "info", "debug", NULL};

static const struct option_row inbox_rows[] = {
    {"path", OPTION_TEXT, AT(struct conf_inbox, path), NULL, LIMITS(1, 4000), .form = FORM_PATH,
     .help = "folder to watch, with all folders in it; a relative path is below root"},
    {"after", OPTION_CHOICE, AT(struct conf_inbox, after), "\"keep\"", .choices = after_choices,
     .help = "what happens to a file once Noctule's own copy and its row are safe on disk"},
    {"move_to", OPTION_TEXT, AT(struct conf_inbox, move_to), "", LIMITS(1, 4000), .form = FORM_PATH,
     .help = "with after = \"move\": where originals go"},
    {"settle_seconds", OPTION_NUMBER, AT(struct conf_inbox, settle_seconds), "2.0", LIMITS(0, 3600),
     .help = "a file is complete when its size and times stood still for this long"},
    {"sweep_seconds", OPTION_NUMBER, AT(struct conf_inbox, sweep_seconds), "10.0",
     LIMITS(0.1, 86400), .help = "a full look at the folder at least this often"},
};

static const struct option_section inbox_section = {
    ROWS(inbox_rows), .size = sizeof(struct conf_inbox), .check = check_inbox};

static const struct option_row series_rows[] = {
    {"quiet_seconds", OPTION_NUMBER, AT(struct conf_series, quiet_seconds), "60.0",
     LIMITS(0, 86400), .help = "a series is complete when no new slice came for this long"},
    {"complete_seconds", OPTION_NUMBER, AT(struct conf_series, complete_seconds), "5.0",
     LIMITS(0, 86400), .help = "instead, once the number of slices that its files name is there"},
    {"patience_seconds", OPTION_NUMBER, AT(struct conf_series, patience_seconds), "300.0",
     LIMITS(0, 86400), .help = "instead, while there are fewer than its files name"},
};

static const struct option_section series_section = {ROWS(series_rows),
                                                     .size = sizeof(struct conf_series)};

static const struct option_row jobs_rows[] = {
    {"max_attempts", OPTION_INTEGER, AT(struct conf_jobs, max_attempts), "3", LIMITS(1, 100),
     .help = "a job that did not get through this often has failed"},
    {"retry_seconds", OPTION_NUMBER, AT(struct conf_jobs, retry_seconds), "30.0", LIMITS(0, 86400),
     .help = "the wait before the second attempt; doubled before each further one"},
    {"retry_max_seconds", OPTION_NUMBER, AT(struct conf_jobs, retry_max_seconds), "600.0",
     LIMITS(0, 86400), .help = "the longest such wait"},
    {"deadline_seconds", OPTION_NUMBER, AT(struct conf_jobs, deadline_seconds), "3600.0",
     LIMITS(1, 604800), .help = "a job that takes longer is stopped; it counts as an attempt"},
};

static const struct option_section jobs_section = {ROWS(jobs_rows),
                                                   .size = sizeof(struct conf_jobs)};

static const struct option_row compute_rows[] = {
    {"backend", OPTION_WORD, AT(struct conf_compute, backend), "\"auto\"",
     .choices = backend_choices,
     .help = "where to compute: \"cuda\" on GPUs, \"cpu\", or \"auto\", GPUs where there are any"},
    {"devices", OPTION_NAMES, AT(struct conf_compute, devices),
     MANY(struct conf_compute, device_count), .fallback = "[ ]", LIMITS(0, 64), .form = FORM_GPU,
     .help = "the GPUs to compute on, by index or UUID as nvidia-smi -L prints them; all when none "
             "is named"},
    {"threads", OPTION_INTEGER, AT(struct conf_compute, threads), "0", LIMITS(0, 1024),
     .help = "CPU threads of a job; 0 means a worker's share of the cores"},
    {"lanes", OPTION_INTEGER, AT(struct conf_compute, lanes), "2", LIMITS(1, 16),
     .help = "jobs at a time: one reads or writes while another computes"},
};

static const struct option_section compute_section = {
    ROWS(compute_rows), .size = sizeof(struct conf_compute), .check = check_compute};

static const struct option_row code_rows[] = {
    {"code", OPTION_TEXT, AT(struct conf_code, value), NULL, LIMITS(1, 16), .form = FORM_DICOM,
     .help = "Code Value (0008,0100)"},
    {"scheme", OPTION_TEXT, AT(struct conf_code, scheme), NULL, LIMITS(1, 16), .form = FORM_DICOM,
     .help = "Coding Scheme Designator (0008,0102): SCT, DCM, FMA, 99... for your own"},
    {"meaning", OPTION_TEXT, AT(struct conf_code, meaning), NULL, LIMITS(1, 64), .form = FORM_DICOM,
     .help = "Code Meaning (0008,0104)"},
};

static const struct option_section code_section = {ROWS(code_rows),
                                                   .size = sizeof(struct conf_code)};

#define CENTER(name_, unit_, low, high, help_)                                                     \
    {                                                                                              \
        (name_), OPTION_NUMBERS, AT(struct conf_shape, center), "", LIMITS(low, high),             \
            .count = 3, EITHER(struct conf_shape, center_unit, unit_), .help = (help_)             \
    }

static const struct option_row center_rows[] = {
    CENTER("voxel", CONF_VOXEL, -FAR, FAR, "column, row and slice, from 0, slices ascending"),
    CENTER("mm", CONF_MM, -FAR, FAR, "patient coordinates, LPS"),
    CENTER("fraction", CONF_FRACTION, -10, 10,
           "of the volume: 0 is the centre of the first voxel, 1 that of the last"),
};

static const struct option_section center_section = {ROWS(center_rows),
                                                     .size = sizeof(struct conf_shape)};

#define RADIUS(name_, unit_, help_)                                                                \
    {                                                                                              \
        (name_), OPTION_NUMBERS, AT(struct conf_shape, radius), "", LIMITS(1e-3, FAR),             \
            .count = 3, .uniform = true, EITHER(struct conf_shape, radius_unit, unit_),            \
            .help = (help_)                                                                        \
    }

static const struct option_row shape_rows[] = {
    {"kind", OPTION_CHOICE, AT(struct conf_shape, kind), "\"sphere\"", .choices = shape_choices,
     .help = "the form of the start region"},
    {"center", OPTION_GROUP, .offset = 0, NULL, .section = &center_section,
     .help = "exactly one of voxel, mm and fraction"},
    RADIUS("radius_voxels", CONF_VOXEL,
           "radius, or half of a box's side, in voxels: a number, or three (x, y, z)"),
    RADIUS("radius_mm", CONF_MM, "the same in mm; exactly one of the two is given"),
};

static const struct option_section shape_section = {
    ROWS(shape_rows), .size = sizeof(struct conf_shape), .check = check_shape};

#define SEED(name_, unit_, low, high, help_)                                                       \
    {                                                                                              \
        (name_), OPTION_NUMBERS, AT(struct conf_seed, at), "", LIMITS(low, high),                  \
            .count = 3, EITHER(struct conf_seed, unit, unit_), .help = (help_)                     \
    }

static const struct option_row seed_rows[] = {
    SEED("voxel", CONF_VOXEL, 0, FAR, "column, row and slice, from 0, slices ascending"),
    SEED("mm", CONF_MM, -FAR, FAR, "patient coordinates, LPS"),
    SEED("fraction", CONF_FRACTION, 0, 1,
         "of the volume: 0 is the centre of the first voxel, 1 that of the last"),
};

static const struct option_section seed_section = {ROWS(seed_rows),
                                                   .size = sizeof(struct conf_seed)};

static const struct option_row segment_rows[] = {
    {"label", OPTION_TEXT, AT(struct conf_segment, label), NULL, LIMITS(1, 64), .form = FORM_DICOM,
     .help = "Segment Label (0062,0005); unique in its pipeline"},
    {"description", OPTION_TEXT, AT(struct conf_segment, description), "\"\"", LIMITS(0, 1024),
     .help = "Segment Description (0062,0006)"},
    {"method", OPTION_CHOICE, AT(struct conf_segment, method), "\"level-set\"",
     .choices = method_choices, .help = "how the segment is found"},
    {"range", OPTION_NUMBERS, AT(struct conf_segment, range), NULL, LIMITS(-1e9, 1e9), .count = 2,
     LEVEL_SET_ONLY,
     .help = "level set: lowest and highest value that belong to it, both inclusive, in real-world "
             "units (HU in CT)"},
    {"shapes", OPTION_LIST, AT(struct conf_segment, shapes), MANY(struct conf_segment, shape_count),
     .fallback = "( )", LIMITS(0, 64), .section = &shape_section, LEVEL_SET_ONLY,
     .help = "level set: where it starts from, the union of these and of the object of from"},
    {"from", OPTION_TEXT, AT(struct conf_segment, from), "", LIMITS(1, 64), .form = FORM_DICOM,
     LEVEL_SET_ONLY,
     .help = "level set: label of an earlier fuzzy connectedness segment, whose object it starts "
             "from"},
    {"seeds", OPTION_LIST, AT(struct conf_segment, seeds), MANY(struct conf_segment, seed_count),
     .fallback = NULL, LIMITS(1, 256), .section = &seed_section, FUZZY_ONLY,
     .help =
         "fuzzy connectedness: points in the object, each exactly one of voxel, mm and fraction"},
    {"object_mean", OPTION_NUMBER, ESTIMABLE(struct conf_segment, object_mean), LIMITS(-1e9, 1e9),
     FUZZY_ONLY,
     .help = "fuzzy connectedness: mean value of the object, in real-world units; measured at the "
             "seeds when not given"},
    {"object_sigma", OPTION_NUMBER, ESTIMABLE(struct conf_segment, object_sigma), LIMITS(1e-6, 1e9),
     FUZZY_ONLY,
     .help = "fuzzy connectedness: standard deviation of the object's values, likewise"},
    {"homogeneity_sigma", OPTION_NUMBER, ESTIMABLE(struct conf_segment, homogeneity_sigma),
     LIMITS(1e-6, 1e9), FUZZY_ONLY,
     .help = "fuzzy connectedness: root mean square of half the difference of neighbours in the "
             "object, likewise"},
    {"estimate_voxels", OPTION_INTEGER, AT(struct conf_segment, estimate_voxels), "2",
     LIMITS(1, 16), FUZZY_ONLY,
     .help = "fuzzy connectedness: what is not given is measured in cubes that reach so far from "
             "each seed"},
    {"weight", OPTION_NUMBER, AT(struct conf_segment, weight), "0.5", LIMITS(0, 1), FUZZY_ONLY,
     .help =
         "fuzzy connectedness: how much the object's values count; the rest is for homogeneity"},
    {"threshold", OPTION_NUMBER, AT(struct conf_segment, threshold), "0.5", LIMITS(0, 1),
     FUZZY_ONLY,
     .help = "fuzzy connectedness: what is connected more strongly than this belongs to the "
             "segment"},
    {"scene", OPTION_BOOLEAN, AT(struct conf_segment, scene), "false", FUZZY_ONLY,
     .help = "fuzzy connectedness: write the strength of connectedness too, as a FRACTIONAL DICOM "
             "Segmentation"},
    {"category", OPTION_GROUP, AT(struct conf_segment, category),
     "{ code = \"123037004\"; scheme = \"SCT\"; meaning = \"Anatomical Structure\"; }",
     .section = &code_section, .help = "Segmented Property Category Code Sequence (0062,0003)"},
    {"type", OPTION_GROUP, AT(struct conf_segment, type), NULL, .section = &code_section,
     .help = "Segmented Property Type Code Sequence (0062,000F)"},
    {"modifier", OPTION_GROUP, AT(struct conf_segment, modifier), "", .section = &code_section,
     .help = "Segmented Property Type Modifier Code Sequence (0062,0011): left, right, ..."},
    {"region", OPTION_GROUP, AT(struct conf_segment, region), "", .section = &code_section,
     .help = "Anatomic Region Sequence (0008,2218), where the type does not say it"},
    {"color", OPTION_NUMBERS, AT(struct conf_segment, color), "[ 0.9, 0.3, 0.2 ]", LIMITS(0, 1),
     .count = 3, .help = "red, green and blue that viewers are told to show it in"},
};

static const struct option_section segment_section = {
    ROWS(segment_rows), .size = sizeof(struct conf_segment), .check = check_segment};

static const struct option_row glcm_rows[] = {
    {"discretisation", OPTION_CHOICE, AT(struct conf_glcm, discretisation), "\"fixed-bin-number\"",
     .choices = discretisation_choices, .help = "how values become grey levels"},
    {"levels", OPTION_INTEGER, AT(struct conf_glcm, levels), "32", LIMITS(2, 256), LEVELS_ONLY,
     .help = "with paper and fixed-bin-number: how many grey levels"},
    {"bin_width", OPTION_NUMBER, AT(struct conf_glcm, bin_width), NULL, LIMITS(1e-6, 1e9),
     BIN_WIDTH_ONLY,
     .help = "with fixed-bin-size and pyradiomics-bin-width: how wide a grey level is, in "
             "real-world units"},
    {"range", OPTION_NUMBERS, AT(struct conf_glcm, range), .optional = true,
     .given_offset = offsetof(struct conf_glcm, has_range), .fallback = "", LIMITS(-1e9, 1e9),
     .count = 2,
     .help = "re-segmentation: voxels whose value is not within these two, both inclusive and in "
             "real-world units, take no part"},
    {"aggregation", OPTION_CHOICE, AT(struct conf_glcm, aggregation), "\"3d-merged\"",
     .choices = aggregation_choices,
     .help = "which neighbours count, and how their matrices become one number"},
    {"symmetric", OPTION_BOOLEAN, AT(struct conf_glcm, symmetric), "true",
     .help = "count each pair in both directions, as IBSI does; false counts it once"},
    {"offsets", OPTION_INTEGERS, AT(struct conf_glcm, offsets),
     MANY(struct conf_glcm, offset_count), .fallback = "", LIMITS(-255, 255), .count = 3,
     .most = 16,
     .help = "instead of distances and angles: the neighbours, by column, row and slice from the "
             "voxel"},
    {"distances", OPTION_INTEGERS, AT(struct conf_glcm, distances),
     MANY(struct conf_glcm, distance_count), .fallback = "[ 1 ]", LIMITS(1, 255), .count = 1,
     .most = 16, .instead = "offsets",
     .help = "how far neighbours are apart, in voxels along the axis where they are farthest "
             "(Chebyshev); each distance gives numbers of its own"},
    {"angles", OPTION_INTEGERS, AT(struct conf_glcm, angles), MANY(struct conf_glcm, angle_count),
     .fallback = "[ 0, 45, 90, 135 ]", LIMITS(0, 135), .count = 1, .most = 4, .instead = "offsets",
     IN_SLICES_ONLY,
     .help = "with the 2d and 2.5d aggregations: the directions in a slice, in degrees "
             "counter-clockwise from the direction of a row; of 0, 45, 90 and 135"},
    {"matrices", OPTION_CHOICE, AT(struct conf_glcm, matrices), "\"none\"",
     .choices = matrices_choices,
     .help =
         "write the matrices that features are of, too, into matrices.json: how often each pair "
         "of levels occurs, or normalised, so that a matrix sums to 1"},
};

static const struct option_section glcm_section = {
    ROWS(glcm_rows), .size = sizeof(struct conf_glcm), .check = check_glcm};

static const struct option_row texture_rows[] = {
    {"regions", OPTION_FLAGS, AT(struct conf_texture, regions), "[ \"segments\" ]",
     .choices = region_choices,
     .help = "what is measured: each of the segments, the whole volume, or both"},
    {"first_order", OPTION_BOOLEAN, AT(struct conf_texture, first_order), "true",
     .help = "measure the statistics of the values, and volume, centroid and bounding box"},
    {"glcm", OPTION_PART, AT(struct conf_texture, glcm), "", .section = &glcm_section,
     .help = "grey level co-occurrence: all features of IBSI, and Haralick's f14"},
    {"patterns", OPTION_FLAGS, AT(struct conf_texture, patterns), "", .choices = pattern_choices,
     .help = "local patterns of each slice, whose histograms within the regions are kept"},
    {"tlbap_threshold", OPTION_NUMBER, AT(struct conf_texture, tlbap_threshold), "0.9",
     LIMITS(0, 1), TLBAP_ONLY,
     .help = "tlbap: a neighbour reaches at least this part of the largest value of the window; "
             "up to six decimals"},
    {"tlbap_strict", OPTION_BOOLEAN, AT(struct conf_texture, tlbap_strict), "false", TLBAP_ONLY,
     .help = "tlbap: compare by greater, as the paper's listing, instead of greater or equal"},
    {"lanadp_average", OPTION_SWITCH, AT(struct conf_texture, lanadp_integer), "\"exact\"",
     .choices = average_choices, LANADP_ONLY,
     .help = "lanadp: whether averages of two values keep their halves; the paper's listing cuts "
             "them to integers"},
};

static const struct option_section texture_section = {
    ROWS(texture_rows), .size = sizeof(struct conf_texture), .check = check_texture};

static const struct option_row pipeline_rows[] = {
    {"name", OPTION_TEXT, AT(struct conf_pipeline, name), NULL, LIMITS(1, 64), .form = FORM_NAME,
     .help = "what rules, jobs and the command line call it"},
    {"segments", OPTION_LIST, AT(struct conf_pipeline, segments),
     MANY(struct conf_pipeline, segment_count), .fallback = NULL, LIMITS(1, 256),
     .section = &segment_section, .help = "what to find; segments may overlap"},
    {"texture", OPTION_PART, AT(struct conf_pipeline, texture), "", .section = &texture_section,
     .help = "what is measured of the segments and of the volume; nothing when not given"},
    {"results", OPTION_FLAGS, AT(struct conf_pipeline, results), "[ \"seg\" ]",
     .choices = result_choices,
     .help =
         "what is written: \"seg\" a DICOM Segmentation, \"codes\" the state codes of the level "
         "set as a NRRD volume, \"sr\" a DICOM Structured Report of the measurements, \"pmap\" a "
         "DICOM Parametric Map for each of the patterns"},
    {"relative_connectedness", OPTION_BOOLEAN, AT(struct conf_pipeline, relative_connectedness),
     "false",
     .help = "a voxel that several fuzzy connectedness segments claim goes to the one it is "
             "connected to most strongly, and to none of them when two are equal"},
    {"omit_empty_frames", OPTION_BOOLEAN, AT(struct conf_pipeline, omit_empty_frames), "true",
     .help = "leave out frames of a segment in which it has no voxel"},
    {"min_slices", OPTION_INTEGER, AT(struct conf_pipeline, min_slices), "1", LIMITS(1, 65535),
     .help = "stacks of fewer slices are refused: TOO_FEW_SLICES"},
    {"spacing_tolerance", OPTION_NUMBER, AT(struct conf_pipeline, spacing_tolerance), "0.01",
     LIMITS(0, 0.5),
     .help = "how far slice distances may differ, as a part of the median distance"},
    {"series_description", OPTION_TEXT, AT(struct conf_pipeline, series_description), "\"\"",
     LIMITS(0, 64), .form = FORM_DICOM,
     .help = "Series Description (0008,103E) of the result; made from the name when empty"},
    {"series_number", OPTION_INTEGER, AT(struct conf_pipeline, series_number), "9000",
     LIMITS(0, 2147483647), .help = "Series Number (0020,0011) of the result"},
    {"deliver", OPTION_NAMES, AT(struct conf_pipeline, deliver),
     MANY(struct conf_pipeline, deliver_count), .fallback = "[ ]", LIMITS(0, 16), .form = FORM_NAME,
     .help = "the destinations that results are sent to; \"sender\" is the one with the AE title "
             "that sent the series"},
};

const struct option_section option_pipeline = {
    ROWS(pipeline_rows), .size = sizeof(struct conf_pipeline), .check = check_pipeline};

static const struct option_row match_rows[] = {
    {"modality", OPTION_TEXT, AT(struct conf_rule, modality), "", LIMITS(1, 16), .form = FORM_DICOM,
     .help = "Modality (0008,0060) is this; capitals do not matter"},
    {"body_part", OPTION_TEXT, AT(struct conf_rule, body_part), "", LIMITS(1, 16),
     .form = FORM_DICOM, .help = "Body Part Examined (0018,0015) is this; capitals do not matter"},
    {"description", OPTION_TEXT, AT(struct conf_rule, description), "", LIMITS(1, 64),
     .form = FORM_DICOM,
     .help = "Series Description (0008,103E) contains this; capitals do not matter"},
    {"min_slices", OPTION_INTEGER, AT(struct conf_rule, min_slices), "0", LIMITS(0, 1000000),
     .help = "at least so many slices"},
    {"max_slices", OPTION_INTEGER, AT(struct conf_rule, max_slices), "0", LIMITS(0, 1000000),
     .help = "at most so many slices; 0 means any number"},
};

static const struct option_section match_section = {
    ROWS(match_rows), .size = sizeof(struct conf_rule), .check = check_match};

static const struct option_row rule_rows[] = {
    {"match", OPTION_GROUP, .offset = 0, "{ }", .section = &match_section,
     .help = "all that is given here has to fit; nothing given fits every series"},
    {"pipeline", OPTION_TEXT, AT(struct conf_rule, pipeline), NULL, LIMITS(1, 64),
     .form = FORM_NAME, .help = "the pipeline that a series gets for which this rule fits"},
    {"priority", OPTION_INTEGER, AT(struct conf_rule, priority), "0", LIMITS(-1000, 1000),
     .help = "jobs with a larger one run first; the highest of the rules that fit counts"},
};

static const struct option_section rule_section = {ROWS(rule_rows),
                                                   .size = sizeof(struct conf_rule)};

static const struct option_row title_rows[] = {
    {"ae_title", OPTION_TEXT, AT(struct conf_title, ae_title), NULL, LIMITS(1, 16), .form = FORM_AE,
     .help = "an AE title that Noctule answers to"},
    {"pipeline", OPTION_TEXT, AT(struct conf_title, pipeline), "", LIMITS(1, 64), .form = FORM_NAME,
     .help = "the pipeline of every series that is sent to this title, in place of the rules"},
};

static const struct option_section title_section = {ROWS(title_rows),
                                                    .size = sizeof(struct conf_title)};

static const struct option_row peer_rows[] = {
    {"ae_title", OPTION_TEXT, AT(struct conf_peer, ae_title), NULL, LIMITS(1, 16), .form = FORM_AE,
     .help = "its calling AE title"},
    {"host", OPTION_TEXT, AT(struct conf_peer, host), "", LIMITS(1, 45), .form = FORM_ADDRESS,
     .help = "the IPv4 or IPv6 address that it calls from; any when not given"},
    {"certificate", OPTION_TEXT, AT(struct conf_peer, certificate), "", LIMITS(64, 95),
     .form = FORM_FINGERPRINT,
     .help = "the SHA-256 fingerprint of its TLS certificate, in hexadecimal; with it, it may call "
             "by TLS only"},
    {"max_associations", OPTION_INTEGER, AT(struct conf_peer, max_associations), "0",
     LIMITS(0, 1000),
     .help = "associations at a time of this peer; 0 means as many as there may be in all"},
};

static const struct option_section peer_section = {ROWS(peer_rows),
                                                   .size = sizeof(struct conf_peer)};

static const struct option_row tls_rows[] = {
    {"certificate", OPTION_TEXT, AT(struct conf_tls, certificate), "", LIMITS(1, 4000),
     .form = FORM_PATH,
     .help = "PEM file of Noctule's own certificate and those that vouch for it"},
    {"key", OPTION_TEXT, AT(struct conf_tls, key), "", LIMITS(1, 4000), .form = FORM_PATH,
     .help = "PEM file of its private key, without a passphrase"},
    {"ca", OPTION_TEXT, AT(struct conf_tls, ca), "", LIMITS(1, 4000), .form = FORM_PATH,
     .help = "PEM file of the authorities whose certificates are believed"},
    {"require_peer", OPTION_BOOLEAN, AT(struct conf_tls, require_peer), "true",
     .help = "turn callers away that show no certificate of one of these authorities"},
};

static const struct option_section tls_section = {ROWS(tls_rows), .size = sizeof(struct conf_tls)};

static const struct option_row dicom_rows[] = {
    {"bind", OPTION_TEXT, AT(struct conf_dicom, bind), "\"\"", LIMITS(0, 45), .form = FORM_ADDRESS,
     .help = "the IPv4 or IPv6 address to listen on; every one of the host when empty"},
    {"port", OPTION_INTEGER, AT(struct conf_dicom, port), "0", LIMITS(0, 65535),
     .help = "the port for C-STORE and C-ECHO, 11112 by custom; 0 means not to listen"},
    {"tls_port", OPTION_INTEGER, AT(struct conf_dicom, tls_port), "0", LIMITS(0, 65535),
     .help = "the same with TLS, 2762 by registration; 0 means not to listen"},
    {"titles", OPTION_LIST, AT(struct conf_dicom, titles), MANY(struct conf_dicom, title_count),
     .fallback = "( { ae_title = \"NOCTULE\"; } )", LIMITS(1, 64), .section = &title_section,
     .help = "the AE titles that Noctule answers to; it calls others by the first"},
    {"peers", OPTION_LIST, AT(struct conf_dicom, peers), MANY(struct conf_dicom, peer_count),
     .fallback = "( )", LIMITS(0, 1000), .section = &peer_section,
     .help = "who may call; nobody else is let in"},
    {"max_associations", OPTION_INTEGER, AT(struct conf_dicom, max_associations), "25",
     LIMITS(1, 1000),
     .help = "associations at a time; further callers are told to come back later"},
    {"acse_seconds", OPTION_NUMBER, AT(struct conf_dicom, acse_seconds), "30.0", LIMITS(0.1, 3600),
     .help = "how long an association may take to be asked for, and one of ours to be granted"},
    {"dimse_seconds", OPTION_NUMBER, AT(struct conf_dicom, dimse_seconds), "60.0",
     LIMITS(0.1, 3600), .help = "how long the next part of a message may take"},
    {"idle_seconds", OPTION_NUMBER, AT(struct conf_dicom, idle_seconds), "300.0",
     LIMITS(0.1, 86400), .help = "how long an association may be open without a message"},
    {"max_pdu_kib", OPTION_INTEGER, AT(struct conf_dicom, max_pdu_kib), "128", LIMITS(4, 128),
     .help = "the largest PDU that is received, in KiB"},
    {"echo_from_anybody", OPTION_BOOLEAN, AT(struct conf_dicom, echo_from_anybody), "false",
     .help = "answer C-ECHO, and nothing else, to callers that are no peers"},
    {"tls", OPTION_GROUP, AT(struct conf_dicom, tls), "{ }", .section = &tls_section,
     .help = "certificates, for calls that come in and for those that go out"},
};

static const struct option_section dicom_section = {
    ROWS(dicom_rows), .size = sizeof(struct conf_dicom), .check = check_dicom};

static const struct option_row destination_rows[] = {
    {"name", OPTION_TEXT, AT(struct conf_destination, name), NULL, LIMITS(1, 64), .form = FORM_NAME,
     .help = "what pipelines and the command line call it"},
    {"folder", OPTION_TEXT, AT(struct conf_destination, folder), "", LIMITS(1, 4000),
     .form = FORM_PATH,
     .help =
         "a folder that results are copied to, named by their SOP Instance UID, in place of an AE"},
    {"ae_title", OPTION_TEXT, AT(struct conf_destination, ae_title), "", LIMITS(1, 16),
     .form = FORM_AE, .help = "its AE title"},
    {"host", OPTION_TEXT, AT(struct conf_destination, host), "", LIMITS(1, 253),
     .help = "its name, or its IPv4 address"},
    {"port", OPTION_INTEGER, AT(struct conf_destination, port), "0", LIMITS(0, 65535),
     .help = "its port; an AE needs one"},
    {"calling_ae_title", OPTION_TEXT, AT(struct conf_destination, calling_ae_title), "",
     LIMITS(1, 16), .form = FORM_AE,
     .help = "what Noctule calls itself there; the first of dicom.titles when not given"},
    {"tls", OPTION_BOOLEAN, AT(struct conf_destination, tls), "false",
     .help = "call by TLS, with the certificates of dicom.tls"},
    {"commit", OPTION_BOOLEAN, AT(struct conf_destination, commit), "false",
     .help = "ask for storage commitment; a result counts as sent once that is given"},
    {"commit_seconds", OPTION_NUMBER, AT(struct conf_destination, commit_seconds), "3600.0",
     LIMITS(0.1, 604800),
     .help = "how long the commitment may take before the result is sent again"},
    {"fallback", OPTION_TEXT, AT(struct conf_destination, fallback), "", LIMITS(1, 64),
     .form = FORM_NAME,
     .help = "the destination of results that this one cannot store; without it their delivery has "
             "failed"},
    {"connect_seconds", OPTION_NUMBER, AT(struct conf_destination, connect_seconds), "10.0",
     LIMITS(0.1, 600), .help = "how long a connection may take to come about"},
    {"dimse_seconds", OPTION_NUMBER, AT(struct conf_destination, dimse_seconds), "60.0",
     LIMITS(0.1, 3600), .help = "how long its answer to a message may take"},
    {"idle_seconds", OPTION_NUMBER, AT(struct conf_destination, idle_seconds), "10.0",
     LIMITS(0, 3600), .help = "how long an association is kept open for the next result"},
};

static const struct option_section destination_section = {
    ROWS(destination_rows), .size = sizeof(struct conf_destination), .check = check_destination};

static const struct option_row delivery_rows[] = {
    {"retry_seconds", OPTION_NUMBER, AT(struct conf_delivery, retry_seconds), "30.0",
     LIMITS(0.1, 86400),
     .help = "the wait before the second attempt; about doubled before each further one"},
    {"retry_max_seconds", OPTION_NUMBER, AT(struct conf_delivery, retry_max_seconds), "3600.0",
     LIMITS(0.1, 86400), .help = "the longest such wait"},
    {"give_up_seconds", OPTION_NUMBER, AT(struct conf_delivery, give_up_seconds), "259200.0",
     LIMITS(1, 31536000), .help = "a delivery that did not get through for so long has failed"},
    {"breaker_failures", OPTION_INTEGER, AT(struct conf_delivery, breaker_failures), "5",
     LIMITS(1, 1000), .help = "after so many failures in a row a destination is left alone"},
    {"breaker_seconds", OPTION_NUMBER, AT(struct conf_delivery, breaker_seconds), "60.0",
     LIMITS(0.1, 86400), .help = "for so long; then one delivery tries whether it is back"},
};

static const struct option_section delivery_section = {ROWS(delivery_rows),
                                                       .size = sizeof(struct conf_delivery)};

static const struct option_row root_rows[] = {
    {"root", OPTION_TEXT, AT(struct conf, root), "\"/var/lib/noctule\"", LIMITS(1, 4000),
     .form = FORM_ABSOLUTE,
     .help = "database, spool and results; --root on the command line overrides it"},
    {"inbox", OPTION_LIST, AT(struct conf, inboxes), MANY(struct conf, inbox_count),
     .fallback = "( { path = \"inbox\"; } )", LIMITS(0, 16), .section = &inbox_section,
     .help = "folders from which files are taken in"},
    {"series", OPTION_GROUP, AT(struct conf, series), "{ }", .section = &series_section,
     .help = "when a series counts as complete"},
    {"jobs", OPTION_GROUP, AT(struct conf, jobs), "{ }", .section = &jobs_section,
     .help = "how often and how long a job is tried"},
    {"compute", OPTION_GROUP, AT(struct conf, compute), "{ }", .section = &compute_section,
     .help = "what the work is done with"},
    {"dicom", OPTION_GROUP, AT(struct conf, dicom), "{ }", .section = &dicom_section,
     .help = "receiving from modalities and archives"},
    {"destinations", OPTION_LIST, AT(struct conf, destinations),
     MANY(struct conf, destination_count), .fallback = "( )", LIMITS(0, 64),
     .section = &destination_section, .help = "where results can be sent"},
    {"delivery", OPTION_GROUP, AT(struct conf, delivery), "{ }", .section = &delivery_section,
     .help = "how often and how long a delivery is tried"},
    {"min_free_mib", OPTION_NUMBER, AT(struct conf, min_free_mib), "1024.0", LIMITS(0, 1e9),
     .help = "with less free disk space, nothing is taken in and no job starts"},
    {"pipelines", OPTION_LIST, AT(struct conf, pipelines), MANY(struct conf, pipeline_count),
     .fallback = "( )", LIMITS(0, 256), .section = &option_pipeline,
     .help = "what can be done with a series"},
    {"rules", OPTION_LIST, AT(struct conf, rules), MANY(struct conf, rule_count), .fallback = "( )",
     LIMITS(0, 256), .section = &rule_section,
     .help = "which series gets which pipelines: those of all rules that fit, each once"},
    {"device_serial_number", OPTION_TEXT, AT(struct conf, device_serial_number), "\"noctule-1\"",
     LIMITS(1, 64), .form = FORM_DICOM,
     .help = "Device Serial Number (0018,1000) of this installation, in every result"},
    {"log_level", OPTION_WORD, AT(struct conf, log_level), "\"info\"", .choices = log_choices,
     .help = "the least important lines that are logged"},
};

const struct option_section option_root = {ROWS(root_rows), .size = sizeof(struct conf)};

const struct option_row *
option_find(const struct option_section *section, const char *name)
{
    for (size_t i = 0; i < section->row_count; i++)
        if (strcmp(section->rows[i].name, name) == 0)
            return &section->rows[i];
    return NULL;
}

bool
option_replaced(const struct option_section *section, const struct option_row *row,
                const void *object)
{
    if (!row->instead)
        return false;
    size_t count;
    memcpy(&count, (const char *)object + option_find(section, row->instead)->count_offset,
           sizeof(count));
    return count > 0;
}

bool
option_applies(const struct option_section *section, const struct option_row *row,
               const void *object)
{
    if (option_replaced(section, row, object))
        return false;
    if (!row->with)
        return true;
    const struct option_row *with = option_find(section, row->with);
    unsigned value;
    memcpy(&value, (const char *)object + with->offset, sizeof(value));
    unsigned choices = with->kind == OPTION_FLAGS ? value : 1u << value;
    return (choices & row->with_choices) != 0;
}

static void
clear_part(const struct option_row *row, void *object)
{
    char *part;
    memcpy(&part, (char *)object + row->offset, sizeof(part));
    if (part)
        option_clear(row->section, part);
    free(part);
}

static void
clear_list(const struct option_row *row, void *object)
{
    char *base = object;
    char *elements;
    size_t count;
    memcpy(&elements, base + row->offset, sizeof(elements));
    memcpy(&count, base + row->count_offset, sizeof(count));
    for (size_t i = 0; i < count; i++)
        option_clear(row->section, elements + i * row->section->size);
    free(elements);
}

static void
clear_names(const struct option_row *row, void *object)
{
    char **names;
    size_t count;
    memcpy(&names, (char *)object + row->offset, sizeof(names));
    memcpy(&count, (char *)object + row->count_offset, sizeof(count));
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static void
clear_pointer(const struct option_row *row, void *object)
{
    void *pointer;
    memcpy(&pointer, (char *)object + row->offset, sizeof(pointer));
    free(pointer);
}

void
option_clear(const struct option_section *section, void *object)
{
    for (size_t i = 0; i < section->row_count; i++) {
        const struct option_row *row = &section->rows[i];
        switch (row->kind) {
        case OPTION_TEXT:
        case OPTION_WORD:
        case OPTION_INTEGERS:
            clear_pointer(row, object);
            break;
        case OPTION_GROUP:
            option_clear(row->section, (char *)object + row->offset);
            break;
        case OPTION_PART:
            clear_part(row, object);
            break;
        case OPTION_LIST:
            clear_list(row, object);
            break;
        case OPTION_NAMES:
            clear_names(row, object);
            break;
        case OPTION_CHOICE:
        case OPTION_FLAGS:
        case OPTION_NUMBER:
        case OPTION_INTEGER:
        case OPTION_BOOLEAN:
        case OPTION_SWITCH:
        case OPTION_NUMBERS:
            break;
        }
    }
}

/* ------------------------------------------------------------------- the table, for people ---- */

#define MAX_OPTIONS 256

struct listed {
    char key[96], type[128], limits[64];
};

static struct listed listed[MAX_OPTIONS];
static struct conf_option listing[MAX_OPTIONS];
static size_t listing_count;
static once_flag listing_once = ONCE_FLAG_INIT;

static void
describe_choices(char *type, size_t size, const char *what, const char *const *choices)
{
    size_t at = (size_t)snprintf(type, size, "%s", what);
    for (size_t i = 0; choices[i] && at < size; i++)
        at += (size_t)snprintf(type + at, size - at, "%s%s", i ? "|" : " ", choices[i]);
}

static void
describe_type(const struct option_row *row, char *type, size_t size)
{
    switch (row->kind) {
    case OPTION_TEXT:
        snprintf(type, size, "string");
        break;
    case OPTION_WORD:
    case OPTION_CHOICE:
    case OPTION_SWITCH:
        describe_choices(type, size, "enum", row->choices);
        break;
    case OPTION_FLAGS:
        describe_choices(type, size, "set", row->choices);
        break;
    case OPTION_NUMBER:
        snprintf(type, size, "number");
        break;
    case OPTION_INTEGER:
        snprintf(type, size, "integer");
        break;
    case OPTION_BOOLEAN:
        snprintf(type, size, "boolean");
        break;
    case OPTION_NUMBERS:
        snprintf(type, size, row->uniform ? "number or %zu" : "%zu numbers", row->count);
        break;
    case OPTION_INTEGERS:
        snprintf(type, size, row->count > 1 ? "lists of %zu integers" : "integers", row->count);
        break;
    case OPTION_GROUP:
    case OPTION_PART:
        snprintf(type, size, "group");
        break;
    case OPTION_LIST:
        snprintf(type, size, "list");
        break;
    case OPTION_NAMES:
        snprintf(type, size, "names");
        break;
    }
}

static void
describe_limits(const struct option_row *row, char *limits, size_t size)
{
    switch (row->kind) {
    case OPTION_TEXT:
        snprintf(limits, size, "%.0f .. %.0f characters", row->lo, row->hi);
        break;
    case OPTION_LIST:
    case OPTION_NAMES:
        snprintf(limits, size, "%.0f .. %.0f elements", row->lo, row->hi);
        break;
    case OPTION_NUMBER:
    case OPTION_INTEGER:
    case OPTION_NUMBERS:
        snprintf(limits, size, "%.10g .. %.10g", row->lo, row->hi);
        break;
    case OPTION_INTEGERS:
        snprintf(limits, size, "%.10g .. %.10g, 1 .. %zu elements", row->lo, row->hi, row->most);
        break;
    case OPTION_WORD:
    case OPTION_CHOICE:
    case OPTION_FLAGS:
    case OPTION_BOOLEAN:
    case OPTION_SWITCH:
    case OPTION_GROUP:
    case OPTION_PART:
        limits[0] = '\0';
        break;
    }
}

static void
list_section(const struct option_section *section, const char *prefix)
{
    for (size_t i = 0; i < section->row_count && listing_count < MAX_OPTIONS; i++) {
        const struct option_row *row = &section->rows[i];
        struct listed *text = &listed[listing_count];
        snprintf(text->key, sizeof(text->key), "%s%s", prefix, row->name);
        describe_type(row, text->type, sizeof(text->type));
        describe_limits(row, text->limits, sizeof(text->limits));
        listing[listing_count++] = (struct conf_option){.key = text->key,
                                                        .type = text->type,
                                                        .fallback = row->fallback,
                                                        .limits = text->limits,
                                                        .help = row->help};
        if (row->section) {
            char below[128];
            snprintf(below, sizeof(below), "%s%s", text->key,
                     row->kind == OPTION_LIST ? "[]." : ".");
            list_section(row->section, below);
        }
    }
}

static void
list_all(void)
{
    list_section(&option_root, "");
}

const struct conf_option *
conf_options(size_t *count)
{
    call_once(&listing_once, list_all);
    *count = listing_count;
    return listing;
}
