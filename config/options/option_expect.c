/*
 * option_expect.c - the options of plausibility limits of a segment
 * (service/pipeline/expectations.h).
 */
#include "config/options/option_sections.h"

static const char *const touches_choices[] = {"any", "top-bottom", "none", NULL};
static const char *const trust_choices[] = {"checks", "local", NULL};

static void
check_bounds(const struct conf_bounds *bounds, const char *name, const struct option_spot *spot)
{
    if (bounds->given)
        option_check_ends(bounds->at, name, spot);
}

static void
check_expect(const void *object, const struct option_spot *spot)
{
    const struct conf_expect *expect = object;
    check_bounds(&expect->volume_ml, "volume_ml", spot);
    check_bounds(&expect->mean, "mean", spot);
    check_bounds(&expect->components, "components", spot);
    check_bounds(&expect->slices, "slices", spot);
    check_bounds(&expect->share_of_box, "share_of_box", spot);
    check_bounds(&expect->slice_mm, "slice_mm", spot);
}

static void
check_share(const void *object, const struct option_spot *spot)
{
    const struct conf_share *share = object;
    option_check_ends(share->range, "range", spot);
}

static const struct option_row share_rows[] = {
    {ROW(conf_share, text, label), NULL, LIMITS(1, 64), .form = &form_dicom,
     .help = "label of another segment of the pipeline"},
    {ROW(conf_share, numbers, range), NULL, LIMITS(0, 1e9), .array = {.count = 2},
     .help = "lowest and highest share, both inclusive: 0.1 is a tenth of the voxels of that segment"},
};

static const struct option_section share_section = {SECTION(share_rows, conf_share), .check = check_share};

#define BOUNDS(name_, low, high, help_)                                                                                \
    {                                                                                                                  \
#name_, &option_numbers, .offset = offsetof(struct conf_expect, name_.at), .fallback = "",                     \
                                 GIVEN(struct conf_expect, name_.given), LIMITS(low, high),                            \
                                 .array = {.count = 2 }, .help = (help_)                                               \
    }

static const struct option_row expect_rows[] = {
    BOUNDS(volume_ml, 0, 1e9, "lowest and highest volume, both inclusive"),
    BOUNDS(mean, -1e9, 1e9, "lowest and highest mean of its values, both inclusive, in real-world units (HU in CT)"),
    BOUNDS(components, 1, 1e9, "lowest and highest number of 6-connected components, both inclusive"),
    BOUNDS(slices, 1, 65535,
           "lowest and highest number of slices with a voxel, both inclusive; in a straightened "
           "stack, slices of its grid"),
    {ROW(conf_expect, choice, touches), "\"any\"", .choices = touches_choices, .later = true,
     .help = "faces of the volume that it may touch: any, only those of the lowest and highest "
             "slice, or none; see NOTES for straightened stacks and padding"},
    {ROW(conf_expect, part, share_of), "", .section = &share_section,
     .help = "limits of its voxels divided by the voxels of another segment"},
    BOUNDS(share_of_box, 0, 1,
           "lowest and highest share of its bounding box, both inclusive; a vessel tree fills a "
           "small share, a leak into an organ a larger one"),
    BOUNDS(slice_mm, 0, 1000,
           "lowest and highest slice distance of the images, both inclusive, to 0.001 mm: Slice "
           "Thickness (0018,0050), or the distance between slices if that is larger"),
    {ROW(conf_expect, text, unit), "", LIMITS(1, 16), .form = &form_dicom,
     .help = "required unit of the images, in UCUM: \"g/ml\" for SUV, \"Bq/ml\" for activity, "
             "\"[hnsf'U]\" for HU; from Units (0054,1001) or Rescale Type (0028,1054)"},
    {ROW(conf_expect, boolean, contrast), "", GIVEN(struct conf_expect, has_contrast),
     .help = "required presence of Contrast/Bolus Agent (0018,0010) or its sequence (0018,0012) in "
             "one of the images"},
    {ROW(conf_expect, choice, trust), "\"checks\"", .choices = trust_choices, .later = true,
     .help = "results to deliver without REVIEW: checks (all that meet the limits), or local (of these, those within the "
             "ranges that this site has validated); unreviewed overrides it"},
    {ROW(conf_expect, text, unvalidated), "", LIMITS(1, 200), .form = &form_dicom,
     .help = "hold each result for REVIEW, for this reason, unless the pipeline sets unreviewed"},
};

const struct option_section option_expect = {SECTION(expect_rows, conf_expect), .check = check_expect};
