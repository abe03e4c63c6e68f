/*
 * option_pipeline.c - the options of pipelines.
 */
#include "config/options/option_sections.h"

#include "base/quantities.h"

#include <stdio.h>
#include <string.h>

const char *const result_choices[] = {"seg", "codes", "sr", "pmap", "labelmap", "rtstruct", "nifti", "picture", NULL};

/* Allows one group with patterns and one kind of matrices: their files do not name the group. Parametric maps need
 * patterns. */
static void
check_groups(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    const struct glcm_options *kept = NULL;
    size_t patterns = 0;
    for (size_t g = 0; g < pipeline->texture_count; g++) {
        const struct glcm_options *glcm = pipeline->texture[g].glcm;
        if (pipeline->texture[g].patterns && patterns++)
            option_refuse(spot, ELEMENT("texture", g, ".patterns"),
                          "an earlier group of texture has patterns: give all patterns in one group");
        if (!glcm || glcm->matrices == GLCM_NO_MATRICES)
            continue;
        if (kept && kept->matrices != glcm->matrices)
            option_refuse(spot, ELEMENT("texture", g, ".glcm.matrices"),
                          "an earlier group of texture writes the other kind of matrices: use one kind");
        kept = glcm;
    }
    if ((pipeline->results & CONF_RESULT_PMAP) && patterns == 0 && !LOST(spot, pipeline->results) &&
        !LOST_ANY(spot, pipeline->texture, pipeline->texture_count))
        option_refuse(spot, "results", "\"pmap\" requires patterns: name them in texture.patterns");
}

/* Checks that there are measurements, and that a report can refer to their segments: to those of "seg", or to regions
 * of annotation objects. */
static void
check_report(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    bool any = pipeline->changes, of_objects = true;
    if (LOST(spot, pipeline->results) || LOST(spot, pipeline->sr_class) ||
        LOST_ANY(spot, pipeline->texture, pipeline->texture_count))
        return;
    for (size_t g = 0; g < pipeline->texture_count; g++)
        any |= texture_has_features(&pipeline->texture[g]);
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        any |= pipeline->segments[i].quantities != 0;
        of_objects &= pipeline->segments[i].hidden || conf_segment_is_object(&pipeline->segments[i]);
    }
    const bool lists = pipeline->sr_class == CONF_SR_COMPREHENSIVE_3D && (pipeline->results & CONF_RESULT_SEG);
    if (!any && !lists)
        option_refuse(spot, "results",
                      "\"sr\" requires measurements: give texture families, first_order or glcm, or quantities of a "
                      "segment, or changes; only sr_class = \"comprehensive-3d\" with \"seg\" requires none");
    else if ((conf_measured_regions(pipeline) & CONF_SEGMENTS) && !(pipeline->results & CONF_RESULT_SEG) &&
             !of_objects && !LOST_ANY(spot, pipeline->segments, pipeline->segment_count))
        option_refuse(spot, "results",
                      "\"sr\" refers to the segments in \"seg\": add \"seg\", or measure texture.regions = [ "
                      "\"volume\" ] only; only unchanged regions of annotation objects need no \"seg\"");
}

static void
check_methods(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    size_t of[CONF_METHODS] = {0}, shown = 0;
    if (LOST_ANY(spot, pipeline->segments, pipeline->segment_count))
        return;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        of[pipeline->segments[i].method]++;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        shown += pipeline->segments[i].method == CONF_LEVEL_SET && !pipeline->segments[i].hidden &&
                 pipeline->segments[i].grid_mm <= 0;
    if ((pipeline->results & CONF_RESULT_CODES) && shown == 0)
        option_refuse(spot, "results", "\"codes\" requires a level set, and the pipeline has none%s",
                      of[CONF_LEVEL_SET] > 0 ? " that is not hidden and has no grid_mm" : "");
    if (pipeline->relative_connectedness && of[CONF_FUZZY] < 2)
        option_refuse(spot, "relative_connectedness",
                      "requires at least two segments with method = \"fuzzy-connectedness\"");
}

/* Reports a use of a segment that the pipeline lacks, or that is replaced by one per region. */
static void
check_uses(const struct option_named *named, const struct conf_pipeline *pipeline)
{
    /* Only each segment's own uses, so that each error is reported at the segment that has it. */
    struct conf_pipeline apart = *pipeline;
    struct conf_use use;
    apart.relative_connectedness = false;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        for (size_t n = 0; conf_segment_use(&apart, i, n, &use); n++) {
            char option[32];
            const size_t used = use.label ? option_find_name(named, use.label) : named->count;
            const bool lacks = use.label && option_lacks(named, use.label);
            if (!lacks && (used == named->count || !conf_segment_is_each(&pipeline->segments[used])))
                continue;
            snprintf(option, sizeof(option), ".%s", use.option);
            option_refuse(named->spot, ELEMENT("segments", i, option),
                          lacks ? "there is no segment \"%s\" in this pipeline: name one by its label"
                                : "\"%s\" is one segment per region: name a segment with object.unite",
                          use.label);
        }
}

/* Checks a use of a segment of the other grid. */
static void
check_use_of_grid(const struct option_named *named, const struct conf_pipeline *pipeline, size_t i,
                  const struct conf_use *use)
{
    char option[32];
    const struct conf_segment *segment = &pipeline->segments[i];
    const size_t used = use->label ? option_find_name(named, use->label) : named->count;
    if (used == named->count)
        return;
    snprintf(option, sizeof(option), ".%s", use->option);
    const bool is_coarse = pipeline->segments[used].grid_mm > 0;
    if (segment->grid_mm > 0 && !is_coarse)
        option_refuse(named->spot, ELEMENT("segments", i, option),
                      "\"%s\" has no grid_mm: a segment with grid_mm uses segments with grid_mm only", use->label);
    else if (segment->refine && use->label == segment->refine->label && !is_coarse)
        option_refuse(named->spot, ELEMENT("segments", i, option), "\"%s\" has no grid_mm", use->label);
}

/* Checks that all segments with grid_mm are on one grid, and use segments of that grid. */
static void
check_grids(const struct option_named *named, const struct conf_pipeline *pipeline)
{
    const struct conf_segment *first = NULL, *fuzzy = NULL;
    if (LOST_ANY(named->spot, pipeline->segments, pipeline->segment_count))
        return;
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct conf_segment *segment = &pipeline->segments[i];
        struct conf_pipeline apart = *pipeline;
        struct conf_use use;
        if (segment->grid_mm > 0 && !first)
            first = segment;
        if (segment->grid_mm > 0 && segment->grid_mm != first->grid_mm)
            option_refuse(named->spot, ELEMENT("segments", i, ".grid_mm"), "\"%s\" has a grid of %g: use one grid",
                          first->label, first->grid_mm);
        if (segment->method == CONF_FUZZY && !fuzzy)
            fuzzy = segment;
        if (segment->method == CONF_FUZZY && pipeline->relative_connectedness &&
            (segment->grid_mm > 0) != (fuzzy->grid_mm > 0))
            option_refuse(named->spot, "relative_connectedness",
                          "\"%s\" and \"%s\" have different grids: give both "
                          "grid_mm, or none",
                          fuzzy->label, segment->label);
        apart.relative_connectedness = false;
        for (size_t n = 0; conf_segment_use(&apart, i, n, &use); n++)
            check_use_of_grid(named, pipeline, i, &use);
        for (size_t n = 0; (use.label = conf_expect_label(segment, n, &use.option)); n++)
            check_use_of_grid(named, pipeline, i, &use);
    }
}

/* The order in which segments are computed. A missing segment counts as computed. */
struct making {
    const struct option_named *named;
    const struct conf_pipeline *pipeline;
    bool made[CONF_MAX_SEGMENTS];
    size_t count;
};

static size_t
making_find(const struct making *making, const char *label)
{
    return label ? option_find_name(making->named, label) : making->named->count;
}

/* Finds a used segment that is not computed yet. Returns false if all are computed. */
static bool
find_unmade(const struct making *making, size_t segment, struct conf_use *use)
{
    for (size_t n = 0; conf_segment_use(making->pipeline, segment, n, use); n++) {
        const size_t used = making_find(making, use->label);
        if (used < making->named->count && !making->made[used])
            return true;
    }
    return false;
}

static void
making_add(struct making *making, size_t segment)
{
    making->count += !making->made[segment];
    making->made[segment] = true;
}

/* Follows the uses that are not computed to a cycle, reports it, and marks its segments as
 * computed. */
static void
report_cycle(struct making *making)
{
    struct conf_use use;
    char option[32] = "", circle[200] = "";
    size_t at = 0, used = 0, members[CONF_MAX_SEGMENTS], count = 0;
    while (making->made[at])
        at++;
    for (size_t i = 0; i < making->named->count && find_unmade(making, at, &use); i++)
        at = making_find(making, use.label);
    const size_t first = at;
    do {
        find_unmade(making, at, &use);
        if (at == first)
            snprintf(option, sizeof(option), ".%s", use.option);
        if (used < sizeof(circle))
            used += (size_t)snprintf(circle + used, sizeof(circle) - used, "%s\"%s\"", used > 0 ? ", which uses " : "",
                                     use.label);
        members[count++] = at;
        at = making_find(making, use.label);
    } while (at != first);
    option_refuse(making->named->spot, ELEMENT("segments", first, option), "\"%s\" depends on itself: it uses %s",
                  option_name(making->named, first), circle);
    while (count > 0)
        making_add(making, members[--count]);
}

/* Checks the labels that limits name, and the grid that they require. */
static void
check_expectations(const struct option_named *named, const struct conf_pipeline *pipeline)
{
    const char *option, *label;
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct conf_expect *expect = pipeline->segments[i].expect;
        if (expect && (expect->frame != CONF_FRAME_ANY || expect->noise.given) && pipeline->segments[i].grid_mm <= 0 &&
            !LOST(named->spot, pipeline->segments[i].grid_mm))
            option_refuse(named->spot, ELEMENT("segments", i, ".expect"), "%s requires a segment with grid_mm",
                          expect->noise.given ? "noise" : "frame");
        for (size_t n = 0; (label = conf_expect_label(&pipeline->segments[i], n, &option)); n++) {
            char path[32];
            const size_t other = option_find_name(named, label);
            snprintf(path, sizeof(path), ".%s", option);
            if (option_lacks(named, label) || other == i)
                option_refuse(named->spot, ELEMENT("segments", i, path), "there is no other segment \"%s\"", label);
            else if (other < named->count && conf_segment_is_each(&pipeline->segments[other]))
                option_refuse(named->spot, ELEMENT("segments", i, path),
                              "\"%s\" is one segment per region: name another segment", label);
        }
    }
}

/* Checks that all segments accept objects of one kind from the same sender: a job does not store
 * which object belongs to which segment. */
static void
check_sender(const struct conf_pipeline *pipeline, size_t i, const struct option_spot *spot)
{
    const struct conf_segment *a = &pipeline->segments[i];
    for (size_t j = 0; j < i; j++) {
        const struct conf_segment *b = &pipeline->segments[j];
        if (a->method != CONF_OBJECT || b->method != CONF_OBJECT || a->object.kind != b->object.kind ||
            LOST(spot, a->object) || LOST(spot, b->object) || option_is_same(a->object.from_ae, b->object.from_ae))
            continue;
        option_refuse(spot, ELEMENT("segments", i, ".object"),
                      "from_ae: \"%s\" takes the same kind of object from another sender: use a "
                      "separate pipeline for each",
                      b->label ? b->label : "an earlier segment");
        return;
    }
}

/* Reports quantities of another unit than that of the pipeline. The job checks the unit of the images. */
static void
check_quantities(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    const bool in_suv = pipeline->unit != CONF_UNIT_OF_IMAGES;
    if (LOST(spot, pipeline->unit) || LOST_ANY(spot, pipeline->segments, pipeline->segment_count))
        return;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        for (int q = 0; q < QUANTITIES; q++) {
            const struct quantity_row *row = &quantity_rows[q];
            if (!(pipeline->segments[i].quantities & 1u << q) || row->needs == QUANTITY_NEEDS_ANY)
                continue;
            if (row->needs == QUANTITY_NEEDS_SUV && !in_suv)
                option_refuse(spot, ELEMENT("segments", i, ".quantities"),
                              "\"%s\" requires an SUV: set unit = \"suvbw\" of the pipeline, or another SUV",
                              row->word);
            else if (row->needs != QUANTITY_NEEDS_SUV && in_suv)
                option_refuse(spot, ELEMENT("segments", i, ".quantities"),
                              "\"%s\" requires values in HU, and unit of the pipeline is an SUV: remove one of the two",
                              row->word);
        }
}

/* Reports an upright grid of stacks that the pipeline refuses. */
static void
check_seg_grid(const struct conf_pipeline *pipeline, const struct option_spot *spot)
{
    if (pipeline->seg_grid != CONF_SEG_UPRIGHT || LOST(spot, pipeline->tilt) || LOST(spot, pipeline->results))
        return;
    if (pipeline->tilt == CONF_TILT_REFUSE)
        option_refuse(spot, "seg_grid", "\"upright\" requires tilt = \"straighten\"");
    else if (pipeline->results & CONF_RESULT_PMAP)
        option_refuse(spot, "seg_grid", "\"upright\" is not allowed with \"pmap\", which refuses such stacks");
}

static void
check_pipeline(const void *object, const struct option_spot *spot)
{
    const struct conf_pipeline *pipeline = object;
    const struct option_named segments = NAMED(spot, "segments", pipeline->segments, pipeline->segment_count);
    option_refuse_duplicates(&segments, ".label", "the label of an earlier segment");
    check_methods(pipeline, spot);
    check_uses(&segments, pipeline);
    check_grids(&segments, pipeline);
    /* Check that each segment can be computed after all segments that it uses. */
    struct making making = {.named = &segments, .pipeline = pipeline};
    while (making.count < segments.count) {
        const size_t before = making.count;
        for (size_t i = 0; i < segments.count; i++) {
            struct conf_use use;
            if (!find_unmade(&making, i, &use))
                making_add(&making, i);
        }
        if (making.count == before)
            report_cycle(&making);
    }
    size_t k = 0;
    while (k < pipeline->segment_count && pipeline->segments[k].hidden)
        k++;
    if (k == pipeline->segment_count && k > 0)
        option_refuse(spot, "segments", "all of them are hidden: the pipeline has no result; show at least one");
    check_expectations(&segments, pipeline);
    if (pipeline->preview_window[1] < 0)
        option_refuse(spot, "preview_window", "the width is negative: give [ centre, width ]");
    for (size_t i = 0; i < pipeline->segment_count; i++)
        check_sender(pipeline, i, spot);
    check_groups(pipeline, spot);
    check_seg_grid(pipeline, spot);
    check_quantities(pipeline, spot);
    if (pipeline->changes && pipeline->segment_count == 0)
        option_refuse(spot, "changes", "there is no segment whose change could be measured: remove one of the two");
    if (pipeline->results & CONF_RESULT_SR)
        check_report(pipeline, spot);
}

static const char *const overlap_choices[] = {"refuse", "last", NULL};
static const char *const sr_class_choices[] = {"enhanced", "comprehensive-3d", NULL};
static const char *const review_choices[] = {"hold", "deliver", NULL};
static const char *const picture_choices[] = {"multi", "single", NULL};
static const char *const where_choices[] = {"any", "local", "slurm", NULL};
static const char *const compression_choices[] = {"none", "rle", "deflated", NULL};
static const char *const changes_choices[] = {"false", "true", "pull", NULL};
static const char *const holes_choices[] = {"keyhole", "xor", NULL};
static const char *const colour_choices[] = {"luma", "red", "green", "blue", NULL};
static const char *const tilt_choices[] = {"straighten", "refuse", NULL};

static const char *const seg_grid_choices[] = {"source", "upright", NULL};

static const char *const unit_choices[] = {"images",
#define SUV_UNIT(id, option, ...) option,
#include "base/suv_units.def"
#undef SUV_UNIT
                                           NULL};

static const struct option_row grid_rows[] = {
    {"mm", &option_number, AT(struct conf_pipeline, grid_mm), "0.0", LIMITS(0, 100), .later = true,
     .help = "max slice distance of a straightened stack, whose first and last slice lie on its "
             "first and last plane; 0: the distance of its two closest planes"},
};

static const struct option_section grid_section = {SECTION(grid_rows, conf_pipeline)};

const char *const newest_choices[] = {"refuse", "newest", NULL};

static const struct option_row pipeline_rows[] = {
    {ROW(conf_pipeline, text, name), NULL, LIMITS(1, 64), .form = &form_name,
     .help = "name for rules, jobs and the command line"},
    {"program", &option_labelled, .offset = 0, .fallback = "", LIMITS(1, 64), .form = &form_name,
     .help = "the name of one of programs, whose labels are the segments; only with segments = \"all labels\""},
    {ROW(conf_pipeline, segments, segments), MANY(struct conf_pipeline, segment_count), .fallback = NULL,
     LIMITS(1, CONF_MAX_SEGMENTS), .section = &option_segment,
     .help = "segments to find; they may overlap; or \"all labels\": one segment per element of labels of program"},
    {ROW(conf_pipeline, parts, texture), MANY(struct conf_pipeline, texture_count), .fallback = "", LIMITS(1, 64),
     .section = &option_texture,
     .help = "measurements of the segments and of the volume: one group, or a list of groups; by default none"},
    {ROW(conf_pipeline, flags, results), "[ \"seg\" ]", .choices = result_choices,
     .help = "result objects to write: \"seg\", a DICOM Segmentation; \"codes\", the state codes of the level set as a "
             "NRRD volume; \"sr\", a DICOM Structured Report of the measurements; \"pmap\", a DICOM Parametric Map for "
             "each of the patterns, or of 2-D images a Secondary Capture; \"labelmap\", a DICOM Label Map "
             "Segmentation, with one frame per slice for all segments; \"rtstruct\", a DICOM RT Structure Set whose "
             "contours follow the edges of voxels; \"nifti\", the volume and a label map of all segments as NIfTI "
             "files, with a list of the labels; \"picture\", DICOM Secondary Captures in colour: the slices with "
             "outlines, and an overview"},
    {ROW(conf_pipeline, choice, sr_class), "\"enhanced\"", .choices = sr_class_choices, .later = true,
     .help =
         "SOP class of \"sr\": \"enhanced\", Enhanced SR; or \"comprehensive-3d\", Comprehensive 3D SR, which is the "
         "root of the results: it refers to all other DICOM objects of the job, and also lists segments that have no "
         "measurement"},
    {ROW(conf_pipeline, choice, rtstruct_holes), "\"keyhole\"", .choices = holes_choices, .later = true,
     .help = "holes in the contours of \"rtstruct\": \"keyhole\", joined to the outline by two equal edges; \"xor\", "
             "contours of type CLOSEDPLANAR_XOR, which few readers support"},
    {ROW(conf_pipeline, boolean, relative_connectedness), "false",
     .help = "assign each voxel to the fuzzy connectedness segment that it is connected to most "
             "strongly; to no segment if two are equal"},
    {ROW(conf_pipeline, boolean, omit_empty_frames), "true", .help = "omit frames without a voxel of the segment"},
    {ROW(conf_pipeline, choice, overlap), "\"refuse\"", .choices = overlap_choices, .later = true,
     .help = "a voxel of several segments in \"labelmap\" and \"nifti\": \"refuse\" the job with SEGMENTS_OVERLAP, or "
             "use the "
             "\"last\" of these segments, in the order of segments"},
    {ROW(conf_pipeline, choice, compression), "\"none\"", .choices = compression_choices, .later = true,
     .help = "encoding of segmentations, parametric maps and pictures: \"none\"; \"rle\", RLE Lossless for pictures, "
             "label maps and fractional segmentations, and \"deflated\" for the others, because RLE cannot hold pixels "
             "of one bit; \"deflated\", Deflated Explicit VR Little Endian; UIDs stay the same"},
    {ROW(conf_pipeline, integer, min_slices), "3", LIMITS(1, 65535),
     .help = "min number of slices; smaller stacks are rejected with TOO_FEW_SLICES"},
    {ROW(conf_pipeline, number, spacing_tolerance), "0.03", LIMITS(0, 0.5),
     .help = "max deviation of slice distances, as a fraction of the median distance; the rounding "
             "of the written positions is allowed besides"},
    {ROW(conf_pipeline, choice, duplicates), "\"refuse\"", .choices = newest_choices, .later = true,
     .help = "several slices at one position: \"refuse\" the stack with DUPLICATE_POSITION, or use the \"newest\" copy "
             "by creation or content time; copies have equal Instance Number, acquisition time and contrast"},
    {ROW(conf_pipeline, choice, tilt), "\"straighten\"", .choices = tilt_choices, .later = true,
     .help = "sheared (tilted gantry) or unevenly spaced stacks: \"straighten\" them to an upright "
             "grid for segments and texture, or \"refuse\" them with GANTRY_TILT or "
             "SPACING_NOT_UNIFORM; pipelines with \"pmap\" always refuse"},
    {"grid", &option_group, .offset = 0, "{ }", .section = &grid_section, .later = true,
     .help = "grid of a straightened stack; pixels as in its planes; values between planes are "
             "interpolated linearly and rounded to stored values, except for texture of other values than CT in HU"},
    {ROW(conf_pipeline, choice, seg_grid), "\"source\"", .choices = seg_grid_choices, .later = true,
     .help = "frames of the segmentations of a straightened stack: its \"source\" slices, to which each frame refers, "
             "or the slices of its \"upright\" grid, which viewers load as a volume; no effect on other stacks"},
    {ROW(conf_pipeline, choice, unit), "\"images\"", .choices = unit_choices, .later = true,
     .help = "unit of the values that ranges, expectations, measurements and programs use: \"images\", that of the "
             "headers; or a standardised uptake value of PET, computed per slice from the headers, which must have all "
             "attributes that it needs (SUV_* in codes.md): by body weight, lean body mass of James or of "
             "Janmahasatian, body surface area, or ideal body weight"},
    {ROW(conf_pipeline, graded, changes), "false", .choices = changes_choices, .later = true,
     .help = "measure how the volume and the quantities of each segment changed since the latest earlier study of the "
             "patient that this pipeline measured with the same settings: of the studies that are stored here, or with "
             "\"pull\" of those in the archive prior_source, which sends that study first (see docs/features.md)"},
    {ROW(conf_pipeline, boolean, derived), "false", .later = true,
     .help = "accept reformats, projections and maps as images; by default they are skipped with DERIVED_IMAGE"},
    {ROW(conf_pipeline, boolean, flat), "false", .later = true,
     .help = "accept 2-D images (CR, DX, MG, US, XA, RF, NM, SC): each frame is a stack of one slice without patient "
             "position, "
             "whatever min_slices is; by default they are skipped with FLAT_IMAGE"},
    {ROW(conf_pipeline, choice, colour), "\"luma\"", .choices = colour_choices, .later = true,
     .help = "value of a pixel of a 2-D image with colour: \"luma\", Y of the equations of DICOM (0.299 R + 0.587 G + "
             "0.114 B, rounded), \"red\", \"green\" or \"blue\"; no effect on other images"},
    {ROW(conf_pipeline, choice, review), "\"hold\"", .choices = review_choices, .later = true,
     .help = "results outside the limits of expect: \"hold\" them until noctule accept or noctule "
             "reject, or \"deliver\" them with a remark in Content Description (0070,0081)"},
    {ROW(conf_pipeline, boolean, unreviewed), "false", .later = true,
     .help =
         "deliver results without REVIEW, also of segments with expect.trust = \"local\", such as those of presets, "
         "and of programs without expect"},
    {ROW(conf_pipeline, text, series_description), "\"\"", LIMITS(0, 64), .form = &form_dicom,
     .help = "Series Description (0008,103E) of the results; empty: derived from the name"},
    {ROW(conf_pipeline, integer, series_number), "9000", LIMITS(0, 2147483647),
     .help = "Series Number (0020,0011) of the SEG. Other results have it plus 1 to 7, and pictures plus 50"},
    {"picture_frames", &option_switch, AT(struct conf_pipeline, picture_single), "\"multi\"",
     .choices = picture_choices, .later = true,
     .help = "objects of \"picture\": \"multi\", one with all slices; \"single\", one per slice"},
    {ROW(conf_pipeline, numbers, preview_window), "[ 0.0, 0.0 ]", LIMITS(-1e9, 1e9), .array = {.count = 2},
     .later = true,
     .help = "centre and width of the grey window of preview.png and \"picture\", in the unit of the values; width 0: "
             "the window of the "
             "images, or one that shows the values of the segments"},
    {ROW(conf_pipeline, number, memory_mib), "0.0", LIMITS(0, 16777216), .later = true,
     .help = "max memory of a job, at most jobs.memory_mib; a job that needs more fails at once; 0: jobs.memory_mib"},
    {ROW(conf_pipeline, number, deadline_seconds), "0.0", LIMITS(0, 604800), .later = true,
     .help = "max duration of a job; a longer job is stopped, and counts as an attempt; 0: jobs.deadline_seconds"},
    {ROW(conf_pipeline, number, patience_seconds), "86400.0", LIMITS(0, 31536000), .later = true,
     .help = "max wait of a job for its annotation objects (OBJECT_WAITING), from the completion "
             "of its series; then it fails with OBJECT_MISSING, or runs without optional ones"},
    {ROW(conf_pipeline, number, prior_wait_seconds), "3600.0", LIMITS(1, 2592000), .later = true,
     ONLY_WITH("changes", 1u << CONF_CHANGES_PULL),
     .help =
         "max wait of a job for the earlier study (PRIOR_WAITING), from the time when it could start; then it runs, "
         "and its changes are missing with the reason PRIOR_NOT_READY"},
    {ROW(conf_pipeline, text, prior_source), "\"\"", LIMITS(0, 64), .later = true,
     ONLY_WITH("changes", 1u << CONF_CHANGES_PULL),
     .help = "name of the archive in pull.sources that has the earlier studies; empty: the first one"},
    {ROW(conf_pipeline, boolean, by_hand), "false", .later = true,
     .help = "suppress the warning of check-config that no rule and no title uses this pipeline"},
    {ROW(conf_pipeline, choice, executor), "\"any\"", .choices = where_choices, .later = true,
     .help = "where jobs run: \"any\" as in compute.executor, \"local\" on this machine, \"slurm\" by compute.slurm"},
    {ROW(conf_pipeline, names, deliver), MANY(struct conf_pipeline, deliver_count), .fallback = "[ ]", LIMITS(0, 16),
     .form = &form_name,
     .help = "names of destinations to send results to; \"sender\" is the destination with the AE "
             "title that sent the series"},
    {ROW(conf_pipeline, window, window), "", LIMITS(1, 400), .later = true,
     .help = "times when jobs may start, such as \"22:00-06:00\" or \"Mon-Fri 20:00-06:00; Sat,Sun "
             "00:00-24:00 Europe/Berlin\" (see NOTES); by default any time"},
    {ROW(conf_pipeline, moments, done_by), "", LIMITS(1, 400), .later = true,
     .help = "deadline of results, such as \"07:00\" or \"Mon-Fri 07:00 Europe/Berlin\": the first "
             "such time after the job was created; its jobs start before jobs without a deadline, "
             "by deadline instead of priority; noctule status reports late jobs"},
};

const struct option_section option_pipeline = {SECTION(pipeline_rows, conf_pipeline), .check = check_pipeline};

static void
check_prior_source(const struct conf *conf, size_t place, const struct option_spot *spot)
{
    const struct option_named sources = NAMED(spot, "pull.sources", conf->pull.sources, conf->pull.source_count);
    const char *name = conf->pipelines[place].prior_source;
    if (conf->pull.source_count == 0 && !LOST(spot, conf->pull.sources))
        option_refuse(spot, ELEMENT("pipelines", place, ".changes"), "requires an archive in pull.sources");
    else if (name && *name && option_lacks(&sources, name))
        option_refuse(spot, ELEMENT("pipelines", place, ".prior_source"), "\"%s\" is not in pull.sources", name);
}

void
option_check_pipelines(const struct conf *conf, const struct option_spot *spot)
{
    const struct option_named named = NAMED(spot, "pipelines", conf->pipelines, conf->pipeline_count);
    option_refuse_duplicates(&named, ".name", "the name of an earlier pipeline");
    for (size_t i = 0; i < conf->pipeline_count; i++) {
        const struct option_named destinations =
            NAMED(spot, "destinations", conf->destinations, conf->destination_count);
        const struct conf_pipeline *pipeline = &conf->pipelines[i];
        for (size_t j = 0; j < pipeline->deliver_count; j++) {
            const char *name = pipeline->deliver[j];
            size_t k = 0;
            while (k < j && (!name || !pipeline->deliver[k] || strcmp(name, pipeline->deliver[k]) != 0))
                k++;
            if (k < j)
                option_refuse(spot, ELEMENT("pipelines", i, ".deliver"), "\"%s\" is given twice: remove one", name);
            else if (name && strcmp(name, CONF_SENDER) != 0 && option_lacks(&destinations, name))
                option_refuse(spot, ELEMENT("pipelines", i, ".deliver"), "there is no destination named \"%s\"", name);
        }
        if (pipeline->changes == CONF_CHANGES_PULL)
            check_prior_source(conf, i, spot);
        if (pipeline->changes && conf->identifiers == CONF_IDENTIFIERS_NONE)
            option_warn(spot, ELEMENT("pipelines", i, ".changes"),
                        "finds no earlier study: identifiers = \"none\" stores no Patient ID");
        /* Check the memory of a pipeline: jobs.memory_mib limits the workers. */
        const double own = conf->pipelines[i].memory_mib, most = conf->jobs.memory_mib;
        if (most > 0 && own > most)
            option_refuse(spot, ELEMENT("pipelines", i, ".memory_mib"), "%g is above jobs.memory_mib, %g", own, most);
    }
}
